/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of calls of one host's ranks, in whichever library it is linked
 * with; compare.py runs it:
 *
 *   loop FILE CALL BYTES,BYTES,... MILLISECONDS [fresh] [alloc] [unpinned]
 *        [in_place]
 *
 * FILE is one of zeros that all ranks map, by which they agree on times without
 * the library. A batch of calls takes so many milliseconds. Rank 0 prints a
 * line a size:
 *
 *   CALL BYTES us line_ns line_ns
 *
 * The result of a size's first call is checked. us is the median over batches
 * of a call's mean time on the slowest rank. Of a message it is one way, of a
 * broadcast by rotating roots. line_ns is the time of a cache line between
 * ranks 0 and 1 before and after. BYTES are those of the message, for
 * all_gather of the gathered result, for reduce_scatter and all_to_all of one
 * rank's input; "copy" is memcpy() by all ranks at once, which no library can
 * beat for long messages. With fresh, each rank writes its input before each
 * call; then only the calls are timed. With alloc, buffers are of the library.
 * With in_place, an all_reduce has one buffer. Buffers hold other data than
 * zeros, which some processors write at twice the speed of others. */
#include "config.h"

#include "tests/bench/bench.h"
#include "tests/bench/compare/peer.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define RANKS_MOST 64
#define BATCHES 9
#define CALLS_MOST 20000
#define LINE_TURNS 400

typedef struct {
    struct {
        _Alignas(128) _Atomic int turn;
    } line[2];
    _Alignas(128) double ns[RANKS_MOST];
} shared_t;

static shared_t *shared;
static int rank, ranks;
static bool fresh, in_place;
static char *in, *out;

static void all_reduce(size_t bytes, int turn)
{
    (void)turn;
    peer_all_reduce(in, in_place ? in : out, bytes / sizeof(float));
}

static void reduce_scatter(size_t bytes, int turn)
{
    (void)turn;
    peer_reduce_scatter(in, out, bytes / sizeof(float) / (size_t)ranks);
}

static void all_gather(size_t bytes, int turn)
{
    (void)turn;
    peer_all_gather(in, out, bytes / (size_t)ranks);
}

static void all_to_all(size_t bytes, int turn)
{
    (void)turn;
    peer_all_to_all(in, out, bytes / (size_t)ranks);
}

static void broadcast(size_t bytes, int turn)
{
    peer_broadcast(in, bytes, turn % ranks);
}

static void barrier(size_t bytes, int turn)
{
    (void)bytes;
    (void)turn;
    peer_barrier();
}

static void message(size_t bytes, int turn)
{
    const int other = rank ^ 1;

    (void)turn;
    if (other >= ranks)
        return;
    if (rank < other)
        peer_send(in, bytes, other);
    peer_recv(out, bytes, other);
    if (rank > other)
        peer_send(in, bytes, other);
}

static void copy(size_t bytes, int turn)
{
    (void)turn;
    memcpy(out, in, bytes);
}

/* The result of a call if each rank's input is its number plus one. */
typedef enum {
    NOTHING, /* not checked */
    SUM,
    PART_OF_SUM,
    PARTS, /* one of each rank, in order */
    OF_ROOT,
    OF_OTHER
} result_t;

typedef struct {
    const char *name;
    void (*run)(size_t bytes, int turn);
    int ways; /* messages one after the other */
    result_t result;
} call_t;

static const call_t calls[] = {
    {"all_reduce", all_reduce, 1, SUM},
    {"all_gather", all_gather, 1, PARTS},
    {"all_to_all", all_to_all, 1, PARTS},
    {"broadcast", broadcast, 1, OF_ROOT},
    {"reduce_scatter", reduce_scatter, 1, PART_OF_SUM},
    {"message", message, 2, OF_OTHER},
    {"barrier", barrier, 1, NOTHING},
    {"copy", copy, 1, NOTHING},
};

/* Ends the process if a call gives something else than it must. */
static void check(const call_t *call, size_t bytes)
{
    const result_t result = call->result;
    const float sum = (float)(ranks * (ranks + 1) / 2),
                other = (float)(rank ^ 1) + 1;
    const float *got =
        (const float *)(result == OF_ROOT || (result == SUM && in_place) ? in
                                                                         : out);
    float first = sum, last = sum;
    size_t count = bytes / sizeof(float);

    if (result == NOTHING || bytes % (sizeof(float) * (size_t)ranks) ||
        (result == OF_OTHER && (rank ^ 1) >= ranks))
        return;
    for (size_t i = 0; i < count; i++)
        ((float *)in)[i] = (float)(rank + 1);
    call->run(bytes, 0);
    if (result == PART_OF_SUM)
        count /= (size_t)ranks;
    else if (result != SUM)
        first = last = result == OF_OTHER ? other : 1;
    if (result == PARTS)
        last = (float)ranks;
    if (got[0] != first || got[count - 1] != last) {
        fprintf(stderr, "%s of %zu bytes: %g to %g, want %g to %g\n",
                call->name, bytes, got[0], got[count - 1], first, last);
        exit(1);
    }
    memset(in, 0x3f, bytes);
}

/* The time of a cache line from rank to rank, one way. */
static double line_ns(void)
{
    static int last;
    double begin;

    peer_barrier();
    begin = now_ns();
    for (int i = 0; rank < 2 && ranks > 1 && i < LINE_TURNS; i++) {
        last++;
        if (!rank)
            atomic_store(&shared->line[0].turn, last);
        while (atomic_load(&shared->line[!rank].turn) != last)
            continue;
        if (rank)
            atomic_store(&shared->line[1].turn, last);
    }
    begin = (now_ns() - begin) / LINE_TURNS / 2;
    peer_barrier();
    return begin;
}

/* The mean time of a call on the slowest rank, ns. */
static double batch_ns(const call_t *call, size_t bytes, int count)
{
    double begin, ns = 0, most = 0;

    peer_barrier();
    begin = now_ns();
    for (int i = 0; i < count; i++) {
        if (fresh) {
            memset(in, 0x3f, bytes);
            peer_barrier();
            begin = now_ns();
        }
        call->run(bytes, i);
        if (fresh)
            ns += now_ns() - begin;
    }
    if (!fresh)
        ns = now_ns() - begin;
    shared->ns[rank] = ns / count;
    peer_barrier();
    for (int r = 0; r < ranks; r++)
        most = shared->ns[r] > most ? shared->ns[r] : most;
    peer_barrier();
    return most;
}

static void point(const call_t *call, size_t bytes, double batch_ms)
{
    double times[BATCHES], before, once;
    int count;

    check(call, bytes);
    batch_ns(call, bytes, 1);
    once = batch_ns(call, bytes, bytes < 1 << 20 ? 10 : 2);
    once = batch_ns(call, bytes, 2);
    count = (int)(batch_ms * 1e6 / (once > 1 ? once : 1));
    count = count < 1 ? 1 : count > CALLS_MOST ? CALLS_MOST : count;
    batch_ns(call, bytes, count);
    before = line_ns();
    for (int i = 0; i < BATCHES; i++)
        times[i] = batch_ns(call, bytes, count);
    once = median(times, BATCHES) / call->ways / 1e3;
    times[0] = line_ns();
    if (!rank)
        printf("%s %zu %.4f %.0f %.0f\n", call->name, bytes, once, before,
               times[0]);
    fflush(stdout);
}

static bool given(int argc, char **argv, const char *word)
{
    for (int i = 5; i < argc; i++)
        if (!strcmp(argv[i], word))
            return true;
    return false;
}

static void buffers_make(size_t bytes, bool allocated)
{
    const size_t page = 4096, whole = (bytes + page - 1) & ~(page - 1);

    in = allocated ? peer_alloc(bytes) : aligned_alloc(page, whole);
    out = allocated ? peer_alloc(bytes) : aligned_alloc(page, whole);
    if (!in || !out)
        exit(1);
    memset(in, 0x3f, bytes);
    memset(out, 0x3f, bytes);
}

static void buffers_free(bool allocated)
{
    if (allocated) {
        peer_free(in);
        peer_free(out);
    } else {
        free(in);
        free(out);
    }
}

int main(int argc, char **argv)
{
    const bool allocated = given(argc, argv, "alloc");
    const call_t *call = calls;
    size_t most = 1;
    int file;

    if (argc < 5)
        return 2;
    while (strcmp(call->name, argv[2]))
        if (++call == calls + sizeof calls / sizeof *calls)
            return 2;
    for (const char *size = argv[3]; size; size = strchr(size, ',')) {
        const size_t bytes = strtoull(size += *size == ',', NULL, 10);

        most = bytes > most ? bytes : most;
    }
    fresh = given(argc, argv, "fresh");
    in_place = given(argc, argv, "in_place");
    file = open(argv[1], O_RDWR);
    shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || shared == MAP_FAILED)
        return 1;
    peer_open(&rank, &ranks);
    if (ranks > RANKS_MOST)
        return 1;
    if (!given(argc, argv, "unpinned"))
        bind_rank(rank);
    buffers_make(most, allocated);
    for (const char *size = argv[3]; size; size = strchr(size, ','))
        point(call, strtoull(size += *size == ',', NULL, 10), atof(argv[4]));
    buffers_free(allocated);
    peer_close();
    return 0;
}
