/* SPDX-License-Identifier: BSD-3-Clause */
/* Receivers that are late: what senders send ahead takes memory of the stated
 * bound, nothing blocks, and every message arrives, in order. flood.t [BACKEND
 * [SECONDS [COUNT]]]: by that backend, or tcp; rank 0 first sleeps for so many
 * seconds; and only so many floods are tested. */
#include "config.h"

#include "tests/backends/job.h"

#include <glib.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define MESSAGES 10000
#define EAGER_MAX (512 << 10) /* the longest message that is sent at once */
/* Most that a receiver keeps for each sender, as dscomm-backends(7) says, less
 * its 256 bytes. */
#define BOUND ((size_t)1 << 20)
#define SLACK                                                                  \
    ((size_t)1 << 18) /* other memory that a process takes meanwhile */
/* Most that a sender keeps for a message: its work, which the program has. */
#define WORK_BOUND ((size_t)1024)
#define LATE_MS 400
#define STEP 8 /* message i begins at pool + i * STEP */

enum { TAG_DATA = 5, TAG_FIRST = 7, TAG_NEVER = 99 };

typedef struct {
    const char *name;
    size_t bytes; /* of a message; MIXED: from 0 to more than EAGER_MAX */
    int messages, ranks;
    bool both; /* all ranks send to rank 0, and it to them */
    int window; /* receives that are posted at a time; 0: one */
} flood_t;

#define MIXED ((size_t)-1)

static unsigned sleep_s;
static unsigned char pool[MESSAGES * STEP + 2 * EAGER_MAX];
static unsigned char room[2 * EAGER_MAX];

/* Every 8 bytes of the pool are different, so a message that is taken for
 * another one is seen. */
static void pool_fill(void)
{
    for (uint64_t i = 0; i < sizeof pool / 8; i++) {
        const uint64_t value = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

        memcpy(pool + 8 * i, &value, 8);
    }
}

static size_t bytes_of(const flood_t *flood, int i)
{
    static const size_t mixed[] = {
        0, 1, 100, 4096, 65536, 0, 1, EAGER_MAX, 100, 4096, 100, EAGER_MAX + 1};

    return flood->bytes == MIXED ? mixed[i % (int)G_N_ELEMENTS(mixed)]
                                 : flood->bytes;
}

/* Bytes that this process has allocated, if libc counts them. */
static size_t allocated(void)
{
#ifdef HAVE_MALLINFO2
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

/* Makes progress for so long, without a receive. */
static dscomm_status_t be_late(job_rank_t *me, int ms)
{
    const dscomm_status_t status =
        dscomm_probe(me->world, DSCOMM_ANY_SOURCE, TAG_NEVER, ms, NULL);

    return status == DSCOMM_IN_PROGRESS ? DSCOMM_OK : status;
}

static dscomm_status_t send_all(job_rank_t *me, const flood_t *flood, int dest,
                                dscomm_work_t **works)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < flood->messages && status == DSCOMM_OK; i++)
        status = dscomm_isend(me->world, pool + i * STEP, bytes_of(flood, i),
                              DSCOMM_UINT8, dest, TAG_DATA, &works[i]);
    return status;
}

/* Ends the works in pieces: a list of them has a limit. */
static dscomm_status_t wait_all(dscomm_work_t **works, int count)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < count; i++) {
        if (status == DSCOMM_OK)
            status = dscomm_work_wait(works[i], DSCOMM_TIMEOUT_DEFAULT);
        dscomm_work_free(works[i]);
    }
    return status;
}

/* Counts a message that is not number i of its sender. */
static void check(job_rank_t *me, const flood_t *flood, int i,
                  const unsigned char *data, size_t bytes)
{
    me->report->other_status +=
        bytes != bytes_of(flood, i) || memcmp(data, pool + i * STEP, bytes);
}

/* Receives the messages of all peers of this rank, one after the other. */
static dscomm_status_t receive_all(job_rank_t *me, const flood_t *flood,
                                   int senders)
{
    int next[JOB_RANKS_MAX] = {0}, source;
    dscomm_status_t status = DSCOMM_OK;
    size_t bytes;

    for (int n = 0; n < senders * flood->messages && status == DSCOMM_OK; n++) {
        status = dscomm_recv(me->world, room, sizeof room, DSCOMM_UINT8,
                             DSCOMM_ANY_SOURCE, TAG_DATA, &source, &bytes);
        if (status == DSCOMM_OK)
            check(me, flood, next[source]++, room, bytes);
    }
    return status;
}

/* Receives from rank 1 with many receives at a time, and is late again after
 * each lot: *ret_most gets the most memory that messages took then. */
static dscomm_status_t receive_lots(job_rank_t *me, const flood_t *flood,
                                    size_t before, size_t *ret_most)
{
    const size_t most = flood->bytes;
    unsigned char *rooms = malloc((size_t)flood->window * most);
    dscomm_work_t **works = calloc((size_t)flood->window, sizeof *works);
    const size_t own = (size_t)flood->window * (most + WORK_BOUND);
    dscomm_status_t status = DSCOMM_OK;

    for (int first = 0; first < flood->messages && status == DSCOMM_OK;
         first += flood->window) {
        size_t now;

        for (int i = 0; i < flood->window; i++)
            dscomm_irecv(me->world, rooms + (size_t)i * most, most,
                         DSCOMM_UINT8, 1, TAG_DATA, &works[i]);
        status = wait_all(works, flood->window);
        for (int i = 0; i < flood->window; i++)
            check(me, flood, first + i, rooms + (size_t)i * most,
                  bytes_of(flood, first + i));
        if (status == DSCOMM_OK)
            status = be_late(me, LATE_MS / 4);
        now = allocated() - before;
        now -= now < own ? now : own;
        *ret_most = now > *ret_most ? now : *ret_most;
    }
    free(works);
    free(rooms);
    return status;
}

/* A rank that sends, receives, or does both; value is the memory that it took
 * for messages, other_status counts wrong ones. */
static void run_flood(job_rank_t *me)
{
    const flood_t *flood = me->arg;
    const int peers = me->rank ? 1 : me->ranks - 1;
    const bool sends = me->rank || flood->both;
    dscomm_work_t **works =
        calloc((size_t)(peers * flood->messages), sizeof *works);
    dscomm_status_t status;
    size_t before, most = 0;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL);
    before = allocated();
    for (int p = 0; p < peers && sends && status == DSCOMM_OK; p++)
        status = send_all(me, flood, me->rank ? 0 : p + 1,
                          works + p * flood->messages);
    if (!me->rank && sleep_s)
        sleep(sleep_s);
    if (status == DSCOMM_OK && (!me->rank || flood->both))
        status = be_late(me, LATE_MS);
    most = allocated() - before;
    if (status == DSCOMM_OK && flood->window && !me->rank)
        status = receive_lots(me, flood, before, &most);
    else if (status == DSCOMM_OK && (!me->rank || flood->both))
        status = receive_all(me, flood, peers);
    if (sends && status == DSCOMM_OK)
        status = wait_all(works, peers * flood->messages);
    me->report->value = (int64_t)most;
    free(works);
    job_leave(me, status);
}

static void test_flood(const flood_t *flood)
{
    const size_t works = (size_t)flood->messages * WORK_BOUND;
    int64_t wrong = 0;
    bool bounded = true;
    job_t job;

    job_run(&job, flood->ranks, 20000 + 2000 * (int)sleep_s, run_flood,
            (void *)(uintptr_t)flood, 30000 + 3000 * (int)sleep_s);
    for (int r = 0; r < flood->ranks; r++) {
        const size_t peers = r ? 1 : (size_t)flood->ranks - 1;
        const size_t bound = SLACK + (r && !flood->both ? 0 : peers * BOUND) +
                             (r || flood->both ? peers * works : 0);

        printf("# rank %d: %zu of %zu KiB\n", r,
               (size_t)job.reports[r].value >> 10, bound >> 10);
        bounded = bounded && (size_t)job.reports[r].value <= bound;
        wrong += job.reports[r].other_status;
    }
    is_int(wrong, 0, "%s: no message is wrong", flood->name);
#ifdef HAVE_MALLINFO2
    ok(bounded, "%s: memory is bounded", flood->name);
#else
    skip("%s: libc does not count memory", flood->name);
#endif
    job_ok(&job, job_all(&job, DSCOMM_OK), "%s", flood->name);
}

/* Messages wait for credit while rank 0 waits for one that comes after them. */
static void run_overtaken(job_rank_t *me)
{
    enum { COUNT = 100 };
    const flood_t flood = {.bytes = EAGER_MAX, .messages = COUNT};
    dscomm_work_t *works[COUNT + 1] = {NULL};
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL);
    if (me->rank && status == DSCOMM_OK) {
        status = send_all(me, &flood, 0, works);
        if (status == DSCOMM_OK)
            status = be_late(me, LATE_MS);
        if (status == DSCOMM_OK)
            status = dscomm_isend(me->world, pool, 1, DSCOMM_UINT8, 0,
                                  TAG_FIRST, &works[COUNT]);
        if (status == DSCOMM_OK)
            status = wait_all(works, COUNT + 1);
    } else if (status == DSCOMM_OK) {
        status = dscomm_recv(me->world, room, 1, DSCOMM_UINT8, 1, TAG_FIRST,
                             NULL, NULL);
        if (status == DSCOMM_OK)
            status = receive_all(me, &flood, 1);
    }
    job_leave(me, status);
}

static void test_overtaken(void)
{
    job_t job;

    job_run(&job, 2, 0, run_overtaken, NULL, 30000);
    is_int(job.reports[0].other_status, 0, "no message is wrong");
    job_ok(&job, job_all(&job, DSCOMM_OK),
           "a receive of a message that is sent after those without credit");
}

int main(int argc, char **argv)
{
    static const flood_t floods[] = {
        {"messages of 0 bytes", 0, MESSAGES, 2, false, 0},
        {"messages of 4 KiB", 4096, MESSAGES, 2, false, 0},
        {"messages of 64 KiB", 65536, 2000, 2, false, 0},
        {"messages of 512 KiB", EAGER_MAX, 300, 2, false, 0},
        {"mixed messages", MIXED, MESSAGES, 2, false, 0},
        {"messages of three senders", MIXED, 4000, 4, false, 0},
        {"both ends send", MIXED, MESSAGES, 2, true, 0},
        {"all ends send", MIXED, 2000, 4, true, 0},
        {"receives in lots", 65536, 2000, 2, false, 200},
        {"long receives in lots", EAGER_MAX, 400, 2, false, 40},
    };

    const size_t count = argc > 3 ? (size_t)atoi(argv[3]) : SIZE_MAX;

    setenv("DSCOMM_BACKEND", argc > 1 ? argv[1] : "tcp", 1);
    sleep_s = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    setenv("DSCOMM_TCP_UNIX", "no", 1);
    pool_fill();
    for (size_t i = 0; i < MIN(count, G_N_ELEMENTS(floods)); i++)
        test_flood(&floods[i]);
    test_overtaken();
    return job_done();
}
