/* SPDX-License-Identifier: BSD-3-Clause */
/* How long ranks take from dscomm_init() to the end of their first barrier, and
 * to leave; and how many descriptors they have then. Not a test.
 *
 *     tests/bench/startup [RANKS [ROUNDS [URL [ring]]]]
 *
 * Ranks are processes that begin at the same time: by default 8, for 15 rounds,
 * which meet at a port of the loopback (also if URL is -). With ring, each
 * sends a number to the next one in place of the barrier. Figures are
 * milliseconds from the beginning of the first rank to the end of the last one:
 * minimum, median and maximum of all rounds. */
#include "config.h"

#include "tests/bench/bench.h"
#include "tests/descriptors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <dscomm/dscomm.h>

#define ROUNDS_MAX 1000

enum { BEGUN, JOINED, MET, LEFT, TIMES };

/* Times of each rank, and the descriptors that it had then; in shared memory.
 */
static double (*times)[TIMES];
static int (*descriptors)[TIMES];
static int ranks = 8, rounds = 15, is_ring;
static const char *url;

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, dscomm_last_error());
    exit(1);
}

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && !bind(fd, (struct sockaddr *)&address, size) &&
             !getsockname(fd, (struct sockaddr *)&address, &size),
         "no free port");
    close(fd);
    return ntohs(address.sin_port);
}

static void *memory_share(size_t size)
{
    void *memory = mmap(NULL, (size_t)ranks * size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    must(memory != MAP_FAILED, "mmap");
    return memory;
}

/* The first operation. */
static void meet(dscomm_group_t *world, int rank)
{
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    dscomm_work_t *sent;
    int other = -1;

    if (!is_ring) {
        must(dscomm_barrier(world, NULL) == DSCOMM_OK, "dscomm_barrier");
        return;
    }
    must(dscomm_isend(world, &rank, 1, DSCOMM_INT32, next, 0, &sent) ==
                 DSCOMM_OK &&
             dscomm_recv(world, &other, 1, DSCOMM_INT32, before, 0, NULL,
                         NULL) == DSCOMM_OK &&
             dscomm_work_wait(sent, -1) == DSCOMM_OK && other == before,
         "the ring");
    dscomm_work_free(sent);
}

static void live(int rank, const char *where, int gate)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;
    char byte;

    attr.init_method = where;
    attr.has_rank = 1;
    attr.rank = rank;
    attr.world_size = ranks;
    attr.timeout_ms = 60000;
    must(read(gate, &byte, 1) == 0, "gate");
    times[rank][BEGUN] = now_ns() / 1e6;
    must(dscomm_init(&attr, &world) == DSCOMM_OK, "dscomm_init");
    times[rank][JOINED] = now_ns() / 1e6;
    descriptors[rank][JOINED] = descriptors_count() - 3;
    meet(world, rank);
    times[rank][MET] = now_ns() / 1e6;
    descriptors[rank][MET] = descriptors_count() - 3;
    must(dscomm_finalize(world) == DSCOMM_OK, "dscomm_finalize");
    times[rank][LEFT] = now_ns() / 1e6;
    exit(0);
}

/* Computes the time from the first rank's beginning to the last one's end of
 * each stage. */
static void measure(double *ret_spans)
{
    char where[64];
    int gate[2], status;
    double begin;

    snprintf(where, sizeof where, "tcp://127.0.0.1:%d", free_port());
    must(pipe(gate) == 0, "pipe");
    for (int i = 0; i < ranks; i++) {
        pid_t pid = fork();

        must(pid >= 0, "fork");
        if (pid == 0) {
            close(gate[1]);
            live(i, url ? url : where, gate[0]);
        }
    }
    usleep((useconds_t)(20000 + ranks * 1000)); /* all ranks are ready */
    close(gate[1]);
    close(gate[0]);
    for (int i = 0; i < ranks; i++)
        must(wait(&status) > 0 && status == 0, "a rank failed");
    begin = times[0][BEGUN];
    for (int i = 1; i < ranks; i++)
        begin = times[i][BEGUN] < begin ? times[i][BEGUN] : begin;
    for (int t = JOINED; t < TIMES; t++) {
        ret_spans[t] = 0;
        for (int i = 0; i < ranks; i++)
            if (times[i][t] - begin > ret_spans[t])
                ret_spans[t] = times[i][t] - begin;
    }
}

static void report(const char *name, double *spans)
{
    const double middle = median(spans, (size_t)rounds);

    printf("%-24s %9.2f %9.2f %9.2f\n", name, spans[0], middle,
           spans[rounds - 1]);
}

/* Rank 0, which may serve the store, is apart from the others. */
static void report_descriptors(void)
{
    for (int t = JOINED; t <= MET; t++) {
        int most = 0;

        for (int i = 1; i < ranks; i++)
            most = descriptors[i][t] > most ? descriptors[i][t] : most;
        printf("descriptors after %-20s rank 0: %d; the others at most: %d\n",
               t == JOINED ? "init" : "the first call", descriptors[0][t],
               most);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[TIMES] = {[JOINED] = "init",
                                             [MET] = "to the first call's end",
                                             [LEFT] = "and left"};
    static double spans[TIMES][ROUNDS_MAX];

    if (argc > 1)
        ranks = atoi(argv[1]);
    if (argc > 2)
        rounds = atoi(argv[2]);
    if (argc > 3 && strcmp(argv[3], "-") != 0)
        url = argv[3];
    is_ring = argc > 4 && !strcmp(argv[4], "ring");
    must(ranks > 0 && rounds > 0 && rounds <= ROUNDS_MAX,
         "usage: startup [RANKS [ROUNDS [URL [ring]]]]");
    times = memory_share(sizeof *times);
    descriptors = memory_share(sizeof *descriptors);
    for (int r = 0; r < rounds; r++) {
        double one[TIMES];

        measure(one);
        for (int t = JOINED; t < TIMES; t++)
            spans[t][r] = one[t];
    }
    printf("%d ranks, %d rounds: ms    least    median      most\n", ranks,
           rounds);
    for (int t = JOINED; t < TIMES; t++)
        report(names[t], spans[t]);
    report_descriptors();
    return 0;
}
