/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of a message, of a stream of messages, or of an all_reduce, in
 * whichever library it is linked with:
 *
 *   exchange latency|bandwidth|all_reduce BYTES [BATCHES]
 *
 * Rank 0 prints the median of the batches in microseconds, and the processor
 * time of all threads in nanoseconds a byte. */
#include "config.h"

#include "tests/bench/bench.h"
#include "tests/bench/hosts/exchange.h"

#include <stdio.h>
#include <string.h>

#define BATCHES_MOST 1001
#define BATCH_BYTES ((size_t)64 << 20)

/* The calls of a batch: the same in all ranks. */
static int calls_of(size_t bytes)
{
    if (bytes <= 4096)
        return 500;
    return bytes >= BATCH_BYTES / 8 ? 2 : (int)(BATCH_BYTES / 4 / bytes);
}

static void run(const char *what, int rank, char *data, char *other,
                size_t bytes, int calls)
{
    char answer = 1;

    if (!strcmp(what, "all_reduce")) {
        for (int i = 0; i < calls; i++)
            peer_all_reduce((float *)data, (float *)other,
                            bytes / sizeof(float));
    } else if (rank > 1) {
        return;
    } else if (!strcmp(what, "bandwidth")) {
        peer_stream(rank, data, bytes, calls);
        if (rank)
            peer_send(&answer, 1);
        else
            peer_recv(&answer, 1);
    } else {
        for (int i = 0; i < calls; i++) {
            if (rank)
                peer_recv(data, bytes);
            else
                peer_send(data, bytes);
            if (rank)
                peer_send(data, bytes);
            else
                peer_recv(data, bytes);
        }
    }
}

int main(int argc, char **argv)
{
    static const char *const ranks_of[] = {"RANK", "OMPI_COMM_WORLD_RANK",
                                           "PMI_RANK"};
    static double times[BATCHES_MOST];
    const char *what = argc > 2 ? argv[1] : "";
    const size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    const int batches = argc > 3 ? atoi(argv[3]) : 11;
    const int calls = calls_of(bytes);
    const int messages = strcmp(what, "latency") ? calls : 2 * calls;
    char *data, *other;
    int rank, ranks;
    double cpu;

    if (!bytes || batches < 1 || batches > BATCHES_MOST)
        return 2;
    for (size_t i = 0; i < sizeof ranks_of / sizeof *ranks_of; i++)
        if (getenv(ranks_of[i]))
            bind_rank(atoi(getenv(ranks_of[i])));
    peer_open(&rank, &ranks);
    data = calloc(1, bytes);
    other = calloc(1, bytes);
    if (!data || !other)
        return 1;
    memset(data, 1, bytes);
    memset(other, 0, bytes);
    run(what, rank, data, other, bytes, calls > 2 ? calls / 2 : 1);
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < batches; i++) {
        const double begin = now_ns();

        run(what, rank, data, other, bytes, calls);
        times[i] = (now_ns() - begin) / messages / 1e3;
    }
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    if (rank == 0)
        printf("%.3f us %.4f ns/B\n", median(times, (size_t)batches),
               cpu / messages / batches / (double)bytes);
    fflush(stdout);
    peer_close();
    free(data);
    free(other);
    return 0;
}
