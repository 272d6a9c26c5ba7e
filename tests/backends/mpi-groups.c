/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups that do not begin or end in the usual way. */
#include "config.h"

#include "tests/backends/mpi-host.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_BYTES (4 << 20)
enum { SENT = 0x55 };

/* Pretends that every rank is on its own host, so that two_level uses only
 * mpi. */
static void join_hosts(void)
{
    char host[16];

    snprintf(host, sizeof host, "h%d", launched_rank());
    setenv("DSCOMM_HOST_ID", host, 1);
    setenv("DSCOMM_BACKEND", "two_level", 1);
    join("two_level");
}

/* Sends both messages, and waits until rank 1 has looked. */
static void send_both(dscomm_group_t *group, char *memory)
{
    dscomm_work_t *work;

    memset(memory, SENT, LONG_BYTES);
    DSCOMM_CHECK(
        dscomm_isend(group, memory, LONG_BYTES, DSCOMM_UINT8, 1, 1, &work));
    DSCOMM_CHECK(dscomm_send(group, memory, 1, DSCOMM_UINT8, 1, 2));
    finish(work);
    DSCOMM_CHECK(dscomm_recv(group, memory, 1, DSCOMM_UINT8, 1, 4, NULL, NULL));
}

/* The long message arrives before the short one, and is complete in memory
 * before the program asks for it. Only other sends let MPI make progress. */
static void receive_unseen(dscomm_group_t *group, volatile char *memory,
                           dscomm_work_t **works)
{
    int more = 3;

    DSCOMM_CHECK(
        dscomm_recv(group, (char *)memory, 1, DSCOMM_UINT8, 0, 2, NULL, NULL));
    DSCOMM_CHECK(dscomm_irecv(group, (char *)memory, LONG_BYTES, DSCOMM_UINT8,
                              0, 1, &works[1]));
    for (int i = 2; i < 1000 && more; i++) {
        DSCOMM_CHECK(
            dscomm_isend(group, "x", 1, DSCOMM_UINT8, 0, 3, &works[i]));
        more -= memory[LONG_BYTES - 1] == (char)SENT;
        usleep(1000);
    }
    need(!more, "the long message comes");
    DSCOMM_CHECK(dscomm_isend(group, "x", 1, DSCOMM_UINT8, 0, 4, &works[0]));
}

/* A group ends with works that are complete, but were not tested. */
void withdraw(void)
{
    static char memory[LONG_BYTES];
    static dscomm_work_t *works[1000];
    dscomm_group_t *group;
    int before;

    join_hosts();
    before = kept;
    DSCOMM_CHECK(dscomm_group_split(world, 0, rank, NULL, &group));
    if (rank == 0)
        send_both(group, memory);
    else
        receive_unseen(group, memory, works);
    DSCOMM_CHECK(dscomm_group_free(group));
    need(!rank || kept == before, "MPI has nothing left to do");
    for (int i = 0; i < 1000; i++)
        dscomm_work_free(works[i]);
    DSCOMM_CHECK(dscomm_finalize(world));
}

/* alone: no message goes to other ranks of the world. */
static dscomm_status_t make_group(int count, int timeout_ms, int alone,
                                  dscomm_group_t **ret_group)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    int members[64];

    for (int r = 0; r < count; r++)
        members[r] = r;
    attr.timeout_ms = timeout_ms;
    attr.members_only = alone;
    attr.backend = "mpi";
    return dscomm_group_new(world, members, count, &attr, ret_group);
}

/* MPI_Init_thread() waits for a rank that is not in the group. Later all ranks
 * are in it. */
void part(void)
{
    dscomm_group_t *group = NULL;
    dscomm_status_t status;

    setenv("DSCOMM_BACKEND", "shm", 1);
    join("shm");
    status = make_group(2, 1500, 0, &group);
    if (rank < 2) {
        need(status == DSCOMM_ERR_TIMEOUT, "a time-out");
        need(strstr(dscomm_last_error(),
                    "MPI_Init_thread() has not come back within ") &&
                 strstr(dscomm_last_error(), "let all ranks make the first"),
             "the sentence");
    }
    DSCOMM_CHECK(make_group(ranks, 60000, 0, &group));
    sum_ones(group);
    DSCOMM_CHECK(dscomm_group_free(group));
    DSCOMM_CHECK(dscomm_finalize(world));
}

/* MPI allows only one thread at a time, and its blocking calls are requested: a
 * receive makes progress all the same. */
void take_turns(void)
{
    static char memory[LONG_BYTES];
    dscomm_group_t *groups[2];
    dscomm_work_t *work;
    int level;

    setenv("DSCOMM_MPI_BLOCKING", "yes", 1);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    join("mpi");
    for (int i = 0; i < 2; i++)
        DSCOMM_CHECK(dscomm_group_split(world, 0, rank, NULL, &groups[i]));
    if (rank == 0)
        DSCOMM_CHECK(dscomm_irecv(groups[1], memory, LONG_BYTES, DSCOMM_UINT8,
                                  1, 0, &work));
    else
        DSCOMM_CHECK(
            dscomm_send(groups[1], memory, LONG_BYTES, DSCOMM_UINT8, 0, 0));
    sum_ones(groups[0]);
    if (rank == 0)
        finish(work);
    for (int i = 0; i < 2; i++)
        DSCOMM_CHECK(dscomm_group_free(groups[i]));
    DSCOMM_CHECK(dscomm_finalize(world));
    MPI_Finalize();
}

/* A child of a process that uses MPI cannot use MPI. */
void fork_twice(void)
{
    int status = -1;
    pid_t child;

    join("mpi");
    DSCOMM_CHECK(dscomm_finalize(world));
    MPI_Barrier(MPI_COMM_WORLD);
    child = fork();
    if (child == 0) {
        need(dscomm_init(NULL, &world) == DSCOMM_ERR_STATE, "a refusal");
        need_sentence("was forked by one that uses MPI");
        _exit(0);
    }
    need(child > 0 && waitpid(child, &status, 0) == child && status == 0,
         "the child is content");
}

/* The last rank stays until the others have given up, which they announce by
 * MPI. These pass if they have given up in time. */
static void notify_last(int last)
{
    if (rank != last)
        MPI_Send(&rank, 1, MPI_INT, last, 7, MPI_COMM_WORLD);
    else
        for (int r = 0, from; r < last; r++)
            MPI_Recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

/* dscomm_finalize() has a deadline, although blocking calls of MPI have
 * none. */
void part_late(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_status_t status;
    char names[32];
    int last;

    MPI_Init(NULL, NULL);
    setenv("DSCOMM_MPI_BLOCKING", "yes", 1);
    attr.timeout_ms = 3000;
    DSCOMM_CHECK(dscomm_init(&attr, &world));
    rank = dscomm_group_rank(world);
    last = dscomm_group_size(world) - 1;
    DSCOMM_CHECK(dscomm_barrier(world, NULL));
    if (rank == last)
        notify_last(last);
    status = dscomm_finalize(world);
    snprintf(names, sizeof names, "rank %d", last);
    need(rank == last || status == DSCOMM_ERR_TIMEOUT, "a time-out");
    need(rank == last || strstr(dscomm_last_error(), names), "the culprit");
    if (rank != last)
        notify_last(last);
    MPI_Finalize();
}

/* Groups of all ranks, and of some, are made while the program waits for any
 * message. */
void receive_any(void)
{
    const int first[] = {0, 1};
    dscomm_group_t *groups[2];
    int own = 1, got = 0, level, number;
    MPI_Request request;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    if (number == 0)
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &request);
    MPI_Barrier(MPI_COMM_WORLD);
    join("mpi");
    DSCOMM_CHECK(dscomm_group_split(world, 0, rank, NULL, &groups[0]));
    DSCOMM_CHECK(dscomm_group_new(world, first, 2, NULL, &groups[1]));
    for (int i = 0; i < 2; i++)
        DSCOMM_CHECK(dscomm_group_free(groups[i]));
    if (number == 1)
        MPI_Send(&own, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    if (number == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    need(number || got == 1, "the program's message");
    DSCOMM_CHECK(dscomm_finalize(world));
    MPI_Finalize();
}

/* Some ranks of a group on two levels cannot open the level between nodes. Then
 * no rank gets the group, also not a rank without that level. */
void lack_rail(void)
{
    dscomm_group_t *group;

    join("two_level");
    unmade = 2;
    need(dscomm_group_split(world, 0, rank, NULL, &group) ==
             DSCOMM_ERR_NO_MEMORY,
         "a failure");
    need_sentence("MPI_Comm_create_group");
    unmade = 0;
    DSCOMM_CHECK(dscomm_group_split(world, 0, rank, NULL, &group));
    DSCOMM_CHECK(dscomm_barrier(group, NULL));
    DSCOMM_CHECK(dscomm_group_free(group));
    DSCOMM_CHECK(dscomm_finalize(world));
}

static void use_group(void)
{
    dscomm_group_t *group;

    DSCOMM_CHECK(make_group(ranks, 60000, 1, &group));
    DSCOMM_CHECK(dscomm_barrier(group, NULL));
    DSCOMM_CHECK(dscomm_group_free(group));
}

/* Makes a group of backend mpi in a world of another backend; the last rank
 * comes too late. The library has initialised MPI. */
static void miss(unsigned late_s)
{
    dscomm_group_t *group;

    setenv("DSCOMM_BACKEND", "shm", 1);
    join("shm");
    use_group();
    if (rank == ranks - 1)
        sleep(late_s);
    need(make_group(ranks, 1000, 1, &group) == DSCOMM_ERR_TIMEOUT,
         "a time-out");
    need_sentence(") of 3 did not come within 1.0 s;");
}

/* The last rank does not come at all: the others end without it. */
void miss_one(void)
{
    miss(60);
    printf("joined\n");
    fflush(stdout);
}

/* The last rank comes to the next group: the program then ends normally. */
void miss_once(void)
{
    miss(2);
    use_group();
    DSCOMM_CHECK(dscomm_finalize(world));
}

/* Waits in a group of another backend, while the world has works, and sends in
 * the world. */
static void *stand_by(void *arg)
{
    dscomm_group_t *group = arg;
    dscomm_work_t *work;

    outsider = pthread_self();
    if (rank == 0)
        usleep(300000);
    DSCOMM_CHECK(dscomm_barrier(group, NULL));
    DSCOMM_CHECK(dscomm_isend(world, &rank, 1, DSCOMM_INT32, (rank + 1) % ranks,
                              9, &work));
    for (int i = 0; i < 20; i++) {
        dscomm_work_test(work);
        usleep(1000);
    }
    need(!strays, "MPI is left to the thread that may call it");
    return work;
}

/* MPI allows calls of only one thread, while another thread uses the
 * library. */
void use_funneled(void)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    int one = 1, sum = 0, got[2] = {-1, -1}, level, from;
    dscomm_work_t *reduced, *received;
    dscomm_group_t *group;
    pthread_t thread;
    void *sent;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    join("mpi");
    from = (rank + ranks - 1) % ranks;
    attr.backend = "shm";
    DSCOMM_CHECK(dscomm_group_split(world, 0, rank, &attr, &group));
    DSCOMM_CHECK(
        dscomm_irecv(world, &got[0], 1, DSCOMM_INT32, from, 8, &received));
    DSCOMM_CHECK(dscomm_all_reduce(world, &one, &sum, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, &reduced));
    need(level < MPI_THREAD_SERIALIZED, "one thread alone");
    pthread_create(&thread, NULL, stand_by, group);
    pthread_join(thread, &sent);
    DSCOMM_CHECK(
        dscomm_send(world, &rank, 1, DSCOMM_INT32, (rank + 1) % ranks, 8));
    DSCOMM_CHECK(
        dscomm_recv(world, &got[1], 1, DSCOMM_INT32, from, 9, NULL, NULL));
    finish(received);
    finish(reduced);
    finish(sent);
    need(got[0] == from && got[1] == from && sum == ranks, "what has come");
    DSCOMM_CHECK(dscomm_group_free(group));
    DSCOMM_CHECK(dscomm_finalize(world));
    MPI_Finalize();
}

/* A thread of the library initialises MPI, which then allows calls of no other
 * thread. */
void need_more(void)
{
    given = MPI_THREAD_FUNNELED;
    need(dscomm_init(NULL, &world) == DSCOMM_ERR_STATE, "a refusal");
    need_sentence("call MPI_Init_thread() before");
}

/* No rank can open the module for its MPI library. Needs no MPI. */
void lack_files(void)
{
    dscomm_backend_info_t info = {.size = sizeof info};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    struct rlimit limit;
    dscomm_group_t *group;
    int next;

    setenv("DSCOMM_BACKEND", "shm", 1);
    join("shm");
    for (size_t i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++)
        continue; /* loads all backends, but no module for an MPI library */
    getrlimit(RLIMIT_NOFILE, &limit);
    next = dup(STDIN_FILENO);
    close(next);
    limit.rlim_cur = (rlim_t)next;
    setrlimit(RLIMIT_NOFILE, &limit);
    attr.backend = "mpi";
    need(dscomm_group_split(world, 0, 0, &attr, &group) == DSCOMM_ERR_NO_MEMORY,
         "a failure");
    need_sentence(".so: Too many open files; raise the limit");
}
