/* SPDX-License-Identifier: BSD-3-Clause */
/* Not a test: ranks of a job that fails in the way of the first argument, after
 * three all_reduces and a group of the even ranks. Rank 1 is the culprit. */
#include "config.h"

#include <dscomm/dscomm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(dscomm_group_t *world)
{
    (void)world;
    raise(SIGKILL);
}

static void stop(dscomm_group_t *world)
{
    (void)world;
    raise(SIGSTOP);
}

/* Waits, without a call, until the others have given up. */
static void stay_away(dscomm_group_t *world)
{
    while (dscomm_group_status(world) == DSCOMM_OK)
        usleep(1000);
}

static void differ(dscomm_group_t *world)
{
    float x[4] = {0};

    dscomm_broadcast(world, x, 4, DSCOMM_FLOAT32, 0, NULL);
}

/* Makes no other call after that has failed. */
static void receive(dscomm_group_t *world)
{
    float x;

    if (dscomm_recv(world, &x, 1, DSCOMM_FLOAT32, 0, 5, NULL, NULL) < 0)
        exit(1);
}

static const struct {
    const char *name;
    void (*fail)(dscomm_group_t *world);
} ways[] = {
    {"die", die},       {"stop", stop},       {"late", stay_away},
    {"differ", differ}, {"receive", receive}, {NULL, NULL},
};

static int end(dscomm_group_t *world, dscomm_status_t status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", dscomm_last_error());
    dscomm_finalize(world);
    return status < 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "none";
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *world, *even;
    float x[4] = {1, 2, 3, 4}, y[4];

    signal(SIGTERM, SIG_IGN); /* the launcher's; survivors end by themselves */
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    attr.name = "even";
    DSCOMM_CHECK(dscomm_group_split(
        world, dscomm_group_rank(world) % 2 ? DSCOMM_NO_COLOR : 0, 0, &attr,
        &even));
    for (int i = 0; i < 3; i++)
        DSCOMM_CHECK(dscomm_all_reduce(world, x, y, 4, DSCOMM_FLOAT32,
                                       DSCOMM_SUM, NULL));
    if (strcmp(way, "all") == 0)
        raise(SIGKILL);
    for (int i = 0; dscomm_group_rank(world) == 1 && ways[i].name; i++)
        if (strcmp(ways[i].name, way) == 0)
            ways[i].fail(world);
    return end(world, dscomm_all_reduce(world, x, y, 4, DSCOMM_FLOAT32,
                                        DSCOMM_SUM, NULL));
}
