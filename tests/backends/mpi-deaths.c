/* SPDX-License-Identifier: BSD-3-Clause */
/* The last rank dies while a group of all ranks is made; the mode selects the
 * moment. The others learn of it long before the group's deadline. Or it dies
 * after the library has been finalized. The launcher must not kill the others.
 */
#include "config.h"

#include "tests/backends/mpi-host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 8
#define TIMEOUT_MS 120000

static int pids[RANKS_MAX];

static void join_and_share_pids(const char *backend)
{
    int own = getpid();

    setenv("DSCOMM_BACKEND", backend, 1);
    join(backend);
    need(ranks <= RANKS_MAX, "few ranks");
    DSCOMM_CHECK(dscomm_all_gather(world, &own, pids, 1, DSCOMM_INT32, NULL));
}

static void make_group(void)
{
    static const int members[RANKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    const time_t begun = time(NULL);
    dscomm_group_t *group;
    dscomm_status_t status;
    char who[64];

    attr.members_only = 1;
    attr.backend = "mpi";
    attr.timeout_ms = TIMEOUT_MS;
    status = dscomm_group_new(world, members, ranks, &attr, &group);
    fprintf(stderr, "rank %d: %s\n", rank, dscomm_last_error());
    snprintf(who, sizeof who, "rank %d (pid %d", ranks - 1, pids[ranks - 1]);
    need(status == DSCOMM_ERR_PEER_FAILED, "a failure");
    need_sentence(who);
    need(time(NULL) - begun < TIMEOUT_MS / 4000, "the deadline is far");
}

static void die_in_place(void)
{
    if (rank == ranks - 1) {
        usleep(300000);
        raise(SIGKILL);
    }
    make_group();
}

/* Dies while the others wait for its card. */
void die_meeting(void)
{
    join_and_share_pids("mpi");
    die_in_place();
}

/* Dies while the others are in MPI_Comm_create_group(). */
void die_making(void)
{
    join_and_share_pids("mpi");
    dying = rank == ranks - 1;
    make_group();
}

/* Dies while the others are in MPI_Init_thread(). */
void die_beginning(void)
{
    join_and_share_pids("shm");
    die_in_place();
}

/* Dies while the others are in MPI_Finalize(), at the end of the program. */
void die_finalizing(void)
{
    join_and_share_pids("mpi");
    DSCOMM_CHECK(dscomm_finalize(world));
    if (rank == ranks - 1)
        raise(SIGKILL);
}

static void need_begun(void)
{
    if (endless_begun)
        return;
    fprintf(stderr, "rank %d ends too early\n", rank);
    _exit(1);
}

/* All end while MPI_Init_thread() connects to the launcher. */
void quit_beginning(void)
{
    static const int members[RANKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group;

    atexit(need_begun);
    join_and_share_pids("shm");
    attr.backend = "mpi";
    attr.timeout_ms = 100;
    endless_ms = 250;
    need(dscomm_group_new(world, members, ranks, &attr, &group) ==
             DSCOMM_ERR_TIMEOUT,
         "a time-out");
    need_sentence("MPI_Init_thread() has not come back");
}
