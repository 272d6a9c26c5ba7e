/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that are interrupted by signals, and transfers that are
 * incomplete: every second call of a whole job is, and nothing is lost. */
#include "config.h"

#include "tests/backends/inject.h"
#include "tests/backends/job.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define RANKS 3

/* The calls that are interrupted. Not connect() over TCP, which would go on;
 * nor reads of /proc, which are never interrupted. */
static const inject_call_t calls[] = {
    INJECT_ACCEPT4, INJECT_CONNECT,   INJECT_EPOLL_WAIT, INJECT_FALLOCATE,
    INJECT_FLOCK,   INJECT_FTRUNCATE, INJECT_GETRANDOM,  INJECT_OPEN_CREATE,
    INJECT_POLL,    INJECT_PREAD,     INJECT_PWRITE,     INJECT_RECV,
    INJECT_RECVMSG, INJECT_SEND,      INJECT_SENDMSG,    INJECT_SENDMSG_INET,
    INJECT_WRITE};

#define CALLS ((int)(sizeof calls / sizeof calls[0]))

static atomic_uint counts[INJECT_CALLS];
static int interrupts[INJECT_CALLS];
static atomic_int armed;

/* Fails the first of two calls of a kind. */
INJECT_UNWATCHED int inject_error(inject_call_t call)
{
    return interrupts[call] && atomic_load(&armed) &&
                   atomic_fetch_add(&counts[call], 1) % 2 == 0
               ? EINTR
               : 0;
}

INJECT_UNWATCHED size_t inject_part(size_t size)
{
    return atomic_load(&armed) ? (size + 1) / 2 : size;
}

static dscomm_status_t use_file(const char *path)
{
    char url[128], big[3000];
    dscomm_store_t *store = NULL;
    dscomm_status_t status;
    int64_t sum = 0;
    void *value;
    size_t size = 0;

    memset(big, 'x', sizeof big);
    snprintf(url, sizeof url, "file://%s.%d", path, (int)getpid());
    status = dscomm_store_open(url, NULL, &store);
    if (!status)
        status = dscomm_store_set(store, "key", big, sizeof big);
    if (!status)
        status = dscomm_store_add(store, "number", 3, &sum);
    if (!status)
        status = dscomm_store_get(store, "key", 1000, &value, &size);
    if (!status && (size != sizeof big || memcmp(value, big, size) || sum != 3))
        status = DSCOMM_ERR_PROTOCOL;
    if (!status)
        dscomm_store_free(value);
    dscomm_store_close(store);
    unlink(url + strlen("file://"));
    return status;
}

static dscomm_status_t use_group(dscomm_group_t *world, int rank)
{
    static float in[50000], out[50000];
    dscomm_group_t *group;
    dscomm_work_t *work;
    dscomm_status_t status;
    const int to = (rank + 1) % RANKS, from = (rank + RANKS - 1) % RANKS;

    for (size_t i = 0; i < 50000; i++)
        in[i] = (float)rank;
    status = dscomm_group_split(world, 0, rank, NULL, &group);
    if (!status)
        status = dscomm_all_reduce(group, in, out, 50000, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, NULL);
    if (!status && out[49999] != 3)
        status = DSCOMM_ERR_PROTOCOL;
    if (!status)
        status = dscomm_isend(group, in, 50000, DSCOMM_FLOAT32, to, 1, &work);
    if (!status)
        status =
            dscomm_recv(group, out, 50000, DSCOMM_FLOAT32, from, 1, NULL, NULL);
    if (!status && out[49999] != (float)from)
        status = DSCOMM_ERR_PROTOCOL;
    if (!status)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    if (!status)
        dscomm_work_free(work);
    return status;
}

static void run_rank(job_rank_t *me)
{
    dscomm_status_t status;

    atomic_store(&armed, 1);
    status = job_init(me);
    if (!status)
        status = use_group(me->world, me->rank);
    if (!status)
        status = use_file(me->arg);
    if (!status)
        status = dscomm_finalize(me->world);
    atomic_store(&armed, 0);
    for (int i = 0; i < CALLS; i++)
        if (atomic_load(&counts[calls[i]]))
            me->report->value |= INT64_C(1) << i;
    job_report(me, status);
}

int main(void)
{
    int64_t seen = 0;
    int passed = 1;
    job_t job;

    inject_look_up();
    for (int i = 0; i < CALLS; i++)
        interrupts[calls[i]] = 1;
    job_make(&job, RANKS, 0, run_rank, NULL);
    job_use_tcp(&job);
    job.arg = job.path;
    job_start(&job);
    passed &= job_join(&job, 20000);
    for (int r = 0; r < RANKS; r++)
        seen |= job.reports[r].value;
    passed &= job_all(&job, DSCOMM_OK);
    if (!ok(passed, "a job whose system calls are interrupted"))
        job_show(&job);
    for (int i = 0; i < CALLS; i++)
        ok(seen >> i & 1, "%s was interrupted", inject_names[calls[i]]);
    job_end(&job, "interrupted");
    return tap_done();
}
