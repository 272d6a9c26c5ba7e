/* SPDX-License-Identifier: BSD-3-Clause */
/* Not a test: ranks of a job that fails in the way of the first argument, after
 * a group of the even ranks and three all_reduces. Rank 1 is the culprit. With
 * a second argument, ranks end as soon as a call has failed. */
#include "config.h"

#include <dscomm/dscomm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG 5
#define LONG_COUNT (1 << 23) /* floats, more than any backend buffers */

static dscomm_group_t *world, *even;
static float x[4] = {1, 2, 3, 4}, y[4];

static dscomm_status_t reduce(void)
{
    return dscomm_all_reduce(world, x, y, 4, DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
}

static dscomm_status_t die(void)
{
    raise(SIGKILL);
    return DSCOMM_OK;
}

static dscomm_status_t stop(void)
{
    raise(SIGSTOP);
    return DSCOMM_OK;
}

static dscomm_status_t leave(void)
{
    dscomm_finalize(world);
    exit(0);
}

/* Waits, without a call, until the group has failed. */
static dscomm_status_t stay_away(dscomm_group_t *group)
{
    while (dscomm_group_status(group) == DSCOMM_OK)
        usleep(1000);
    return dscomm_group_status(group);
}

static dscomm_status_t come_late(void)
{
    return stay_away(world);
}

/* Calls a second later. */
static dscomm_status_t reduce_later(void)
{
    sleep(1);
    return reduce();
}

/* Goes on until the job is killed, in steps of 1 ms. */
static dscomm_status_t work_on(void)
{
    dscomm_status_t status = DSCOMM_OK;

    while (status == DSCOMM_OK) {
        if (dscomm_group_rank(world) == 1)
            usleep(1000);
        status = reduce();
    }
    return status;
}

static dscomm_status_t call_other(void)
{
    return dscomm_broadcast(world, x, 4, DSCOMM_FLOAT32, 0, NULL);
}

static dscomm_status_t call_count(void)
{
    return dscomm_all_reduce(world, x, y, 3, DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
}

static dscomm_status_t call_dtype(void)
{
    return dscomm_all_reduce(world, x, y, 4, DSCOMM_INT32, DSCOMM_SUM, NULL);
}

static dscomm_status_t call_op(void)
{
    return dscomm_all_reduce(world, x, y, 4, DSCOMM_FLOAT32, DSCOMM_MAX, NULL);
}

static dscomm_status_t call_root(void)
{
    return dscomm_broadcast(world, x, 4, DSCOMM_FLOAT32, 2, NULL);
}

static dscomm_status_t abort_group(void)
{
    return dscomm_group_abort(world, "the loss is not a number");
}

/* Makes as many calls as the flight recorder holds, and dies of the launcher's
 * signal. */
static dscomm_status_t fill_record(void)
{
    dscomm_status_t status = DSCOMM_OK;

    signal(SIGTERM, SIG_DFL);
    for (int i = 0; i < 1024 && status == DSCOMM_OK; i++)
        status = reduce();
    return status;
}

static dscomm_status_t fill_and_abort(void)
{
    const dscomm_status_t status = fill_record();

    return status < 0 ? status : abort_group();
}

static dscomm_status_t fill_and_reduce(void)
{
    const dscomm_status_t status = fill_record();

    return status < 0 ? status : reduce();
}

static dscomm_status_t receive_from(int rank)
{
    return dscomm_recv(world, x, 1, DSCOMM_FLOAT32, rank, TAG, NULL, NULL);
}

static dscomm_status_t receive(void)
{
    return receive_from(0);
}

static dscomm_status_t receive_any(void)
{
    return receive_from(DSCOMM_ANY_SOURCE);
}

/* From the next one; the last from the first. */
static dscomm_status_t receive_next(void)
{
    return receive_from((dscomm_group_rank(world) + 1) %
                        dscomm_group_size(world));
}

static dscomm_status_t send_long(void)
{
    float *buffer = calloc(LONG_COUNT, sizeof *buffer);
    dscomm_status_t status =
        dscomm_send(world, buffer, LONG_COUNT, DSCOMM_FLOAT32, 0, TAG);

    free(buffer);
    return status;
}

/* Starts count works, and waits for them. */
static dscomm_status_t start(size_t count)
{
    dscomm_work_t *works[3];
    float results[3][4];
    dscomm_status_t status;

    for (size_t i = 0; i < count; i++)
        DSCOMM_CHECK(dscomm_all_reduce(world, x, results[i], 4, DSCOMM_FLOAT32,
                                       DSCOMM_SUM, &works[i]));
    status = dscomm_work_wait_all(works, count, DSCOMM_TIMEOUT_DEFAULT);
    for (size_t i = 0; i < count; i++)
        dscomm_work_free(works[i]);
    return status;
}

static dscomm_status_t start_three(void)
{
    return start(3);
}

static dscomm_status_t start_one(void)
{
    const dscomm_status_t status = start(1);

    return status < 0 ? status : stay_away(world);
}

/* Of the even ranks, only the first waits for the other. */
static dscomm_status_t wait_even(void)
{
    return dscomm_group_rank(world) ? stay_away(even ? even : world)
                                    : dscomm_barrier(even, NULL);
}

static dscomm_status_t advance(void *state)
{
    (void)state;
    return DSCOMM_OK;
}

static void cancel(void *state, dscomm_status_t status)
{
    (void)state, (void)status;
}

/* Makes a custom work and coalesced calls, which end before it dies. */
static dscomm_status_t compose(void)
{
    const dscomm_work_ops_t ops = {sizeof ops, advance, cancel};
    dscomm_work_t *work = NULL;

    DSCOMM_CHECK(dscomm_work_create(world, &ops, NULL, &work));
    DSCOMM_CHECK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
    DSCOMM_CHECK(dscomm_coalesce_begin(world));
    DSCOMM_CHECK(dscomm_send(world, x, 1, DSCOMM_FLOAT32, 1, TAG));
    DSCOMM_CHECK(dscomm_recv(world, y, 1, DSCOMM_FLOAT32, 1, TAG, NULL, NULL));
    DSCOMM_CHECK(dscomm_coalesce_end(world, NULL));
    return die();
}

/* Each rank has a world of its own as well. Rank 0 dies; the others do not
 * notice. */
static dscomm_status_t live_apart(void)
{
    static const char *const names[][2] = {{"RANK", "0"},
                                           {"WORLD_SIZE", "1"},
                                           {"LOCAL_RANK", "0"},
                                           {"LOCAL_WORLD_SIZE", "1"}};
    const int rank = dscomm_group_rank(world);
    dscomm_group_t *own;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i][0], names[i][1], 1);
    DSCOMM_CHECK(dscomm_init(NULL, &own));
    for (int i = 0; i < 20; i++)
        DSCOMM_CHECK(dscomm_barrier(own, NULL));
    DSCOMM_CHECK(reduce());
    if (rank == 0)
        return die();
    for (;;)
        pause();
}

static const struct {
    const char *name;
    dscomm_status_t (*culprit)(void);
    dscomm_status_t (*others)(void);
} ways[] = {
    {"none", reduce, reduce},
    {"die", die, reduce},
    {"stop", stop, reduce},
    {"leave", leave, reduce},
    {"late", come_late, reduce},
    {"later", come_late, reduce_later},
    {"healthy", work_on, work_on},
    {"differ", call_other, reduce},
    {"count", call_count, reduce},
    {"dtype", call_dtype, reduce},
    {"op", call_op, reduce},
    {"root", call_root, call_other},
    {"abort", abort_group, reduce},
    {"full", fill_and_abort, fill_and_reduce},
    {"receive", receive, reduce},
    {"lone", receive, come_late},
    {"any", receive_any, come_late},
    {"send", send_long, come_late},
    {"circle", receive_next, receive_next},
    {"works", start_one, start_three},
    {"even", wait_even, wait_even},
    {"compose", compose, reduce},
    {"all", die, die},
    {"apart", live_apart, live_apart},
};

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "none";
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_status_t status = DSCOMM_OK;
    int rank;

    signal(SIGTERM, SIG_IGN); /* the launcher's; survivors end by themselves */
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    rank = dscomm_group_rank(world);
    attr.name = "even";
    DSCOMM_CHECK(dscomm_group_split(world, rank % 2 ? DSCOMM_NO_COLOR : 0, 0,
                                    &attr, &even));
    for (int i = 0; i < 3; i++)
        DSCOMM_CHECK(reduce());
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, way) == 0)
            status = (rank == 1 ? ways[i].culprit : ways[i].others)();
    if (status < 0)
        fprintf(stderr, "%s\n", dscomm_last_error());
    if (argc > 2 && status < 0)
        _exit(1);
    dscomm_finalize(world);
    return status < 0;
}
