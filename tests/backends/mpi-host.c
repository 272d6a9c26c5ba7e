/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that uses MPI itself, together with backend mpi; the first argument
 * selects how. Each rank that passes prints "content". */
#include "config.h"

#include "tests/backends/mpi-host.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 20000
#define GROUPS 2200 /* more than MPICH has communicators */

dscomm_group_t *world;
int rank, ranks;

void need(int cond, const char *what)
{
    if (cond)
        return;
    fprintf(stderr, "rank %d: not so: %s (%s)\n", rank, what,
            dscomm_last_error());
    exit(3);
}

void join(const char *backend)
{
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    rank = dscomm_group_rank(world);
    ranks = dscomm_group_size(world);
    need(!strcmp(dscomm_group_backend(world), backend), "the backend");
}

void need_sentence(const char *text)
{
    need(strstr(dscomm_last_error(), text) != NULL, "the sentence");
}

void finish(dscomm_work_t *work)
{
    DSCOMM_CHECK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
}

void sum_ones(dscomm_group_t *group)
{
    int one = 1, sum = 0;

    DSCOMM_CHECK(dscomm_all_reduce(group, &one, &sum, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL));
    need(sum == dscomm_group_size(group), "the library's sum");
}

int launched_rank(void)
{
    const char *number = getenv("PMI_RANK");

    if (!number)
        number = getenv("OMPI_COMM_WORLD_RANK");
    return number ? atoi(number) : 0;
}

static void sum_ours(void)
{
    int mine = rank + 1, sum = 0;
    dscomm_work_t *work;

    sum_ones(world);
    DSCOMM_CHECK(dscomm_all_reduce(world, &mine, &sum, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, &work));
    finish(work);
    need(sum == ranks * (ranks + 1) / 2, "the library's sum by a work");
}

/* Sums ranks while the program itself exchanges messages with all ranks. */
static void sum_theirs(void)
{
    int mine = rank + 1, sum = 0, next = (rank + 1) % ranks, got = -1;
    int prev = (rank + ranks - 1) % ranks;
    MPI_Request request;

    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
              &request);
    sum_ours();
    MPI_Send(&rank, 1, MPI_INT, next, 5, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    need(got == prev, "the program's message");
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    need(sum == ranks * (ranks + 1) / 2, "the program's sum");
}

/* Uses MPI before and after the library, at the lowest and the highest thread
 * level. */
static void use_both(int wanted)
{
    int level;

    MPI_Init_thread(NULL, NULL, wanted, &level);
    for (int i = 0; i < 2; i++) {
        join("mpi");
        for (int k = 0; k < 5; k++)
            sum_theirs();
        DSCOMM_CHECK(dscomm_finalize(world));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

static void use_single(void)
{
    use_both(MPI_THREAD_SINGLE);
}

static void use_multiple(void)
{
    use_both(MPI_THREAD_MULTIPLE);
}

/* Makes two worlds one after the other, and does not call MPI. */
static void use_none(void)
{
    int over = 1;

    for (int i = 0; i < 2; i++) {
        join("mpi");
        sum_ours();
        DSCOMM_CHECK(dscomm_finalize(world));
    }
    MPI_Finalized(&over);
    need(!over, "MPI goes on until the end");
}

/* Finalises MPI too early, while a message was not received. */
static void end_early(void)
{
    static char large[16 << 20];
    dscomm_work_t *sent, *awaited;

    MPI_Init(NULL, NULL);
    join("mpi");
    DSCOMM_CHECK(dscomm_isend(world, large, sizeof large, DSCOMM_UINT8,
                              (rank + 1) % ranks, 1, &sent));
    DSCOMM_CHECK(dscomm_irecv(world, large, sizeof large, DSCOMM_UINT8,
                              (rank + 1) % ranks, 2, &awaited));
    MPI_Finalize();
    need(dscomm_work_wait(sent, 10000) == DSCOMM_ERR_STATE, "of a send");
    need(dscomm_work_wait(awaited, 10000) == DSCOMM_ERR_STATE, "of a receive");
    dscomm_work_free(sent);
    dscomm_work_free(awaited);
    need(dscomm_barrier(world, NULL) == DSCOMM_ERR_STATE, "ERR_STATE");
    need_sentence("MPI_Finalize");
    DSCOMM_CHECK(dscomm_finalize(world));
    need(dscomm_init(NULL, &world) < 0, "there is no MPI any more");
}

/* Joins and prints a line, for ranks that will not live long enough to pass. */
static void join_aloud(void)
{
    join("mpi");
    printf("joined\n");
    fflush(stdout);
    DSCOMM_CHECK(dscomm_barrier(world, NULL));
}

static void die(void)
{
    join_aloud();
    if (rank == ranks - 1) {
        usleep(500000); /* the launcher drops output that it has not read yet */
        raise(SIGKILL);
    }
    sleep(1);
    dscomm_barrier(world, NULL);
    sleep(30);
}

/* A rank ends the group and leaves, while the others wait for it in a call of
 * MPI that cannot be interrupted. */
static void desert(void)
{
    int mine = 1, sum;

    join_aloud();
    if (rank)
        dscomm_all_reduce(world, &mine, &sum, 1, DSCOMM_INT32, DSCOMM_SUM,
                          NULL);
    else
        usleep(300000);
    DSCOMM_CHECK(dscomm_group_abort(world, "enough"));
    dscomm_finalize(world);
}

/* When the group ends, MPI still reads a message that was not received: memory
 * of the library is kept for it, although the group is freed. */
static void keep(void)
{
    const size_t bytes = 64 << 20;
    dscomm_group_t *group;
    dscomm_status_t status;
    dscomm_work_t *work;
    void *memory;

    join("mpi");
    DSCOMM_CHECK(dscomm_group_split(world, 0, rank, NULL, &group));
    DSCOMM_CHECK(dscomm_mem_alloc(group, bytes, &memory));
    DSCOMM_CHECK(dscomm_isend(group, memory, bytes, DSCOMM_UINT8,
                              (rank + 1) % ranks, 1, &work));
    DSCOMM_CHECK(dscomm_barrier(world, NULL));
    DSCOMM_CHECK(dscomm_group_abort(group, "enough"));
    status = dscomm_work_wait(work, 10000); /* OK: MPI has copied the message */
    need(status == DSCOMM_ERR_ABORTED || status == DSCOMM_OK, "the end");
    dscomm_work_free(work);
    /* then the memory is overwritten */
    DSCOMM_CHECK(dscomm_barrier(world, NULL));
    DSCOMM_CHECK(dscomm_group_free(group));
    if (status != DSCOMM_OK)
        memset(memory, 1, bytes);
    DSCOMM_CHECK(dscomm_finalize(world));
}

#define LONG_BYTES ((size_t)64 << 20)
enum { POISON = 0xaa, SENT = 0x55, OWN = 0x33 };

static char *allocate(dscomm_group_t *group, int value)
{
    void *memory;

    DSCOMM_CHECK(dscomm_mem_alloc(group, LONG_BYTES, &memory));
    return memset(memory, value, LONG_BYTES);
}

static int is_all(const char *memory, int value)
{
    return *memory == (char)value &&
           !memcmp(memory, memory + 1, LONG_BYTES - 1);
}

/* Receives until the message has begun to arrive, and stops its sender. Returns
 * 1 if the receive ends without it. */
static int receive_a_part(dscomm_group_t *group, volatile char *memory,
                          pid_t sender)
{
    dscomm_status_t status = DSCOMM_IN_PROGRESS;
    dscomm_work_t *work;

    DSCOMM_CHECK(dscomm_irecv(group, (void *)memory, LONG_BYTES, DSCOMM_UINT8,
                              0, 1, &work));
    while (status == DSCOMM_IN_PROGRESS && *memory == (char)POISON)
        status = dscomm_work_test(work);
    need(kill(sender, SIGSTOP) == 0, "the sender stops");
    status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    need(status == DSCOMM_OK || status == DSCOMM_ERR_TIMEOUT, "the end");
    dscomm_work_free(work);
    return status == DSCOMM_OK;
}

/* All ranks make calls of MPI, until rank 1 has received the last byte of the
 * message that it gave up. */
static void go_on(const volatile char *memory)
{
    int over = 0;

    while (!over) {
        over = !memory || memory[LONG_BYTES - 1] == (char)SENT;
        DSCOMM_CHECK(dscomm_broadcast(world, &over, 1, DSCOMM_INT32, 1, NULL));
    }
}

static void send_long(dscomm_group_t *group)
{
    char *memory = allocate(group, SENT);
    dscomm_work_t *work;

    DSCOMM_CHECK(
        dscomm_isend(group, memory, LONG_BYTES, DSCOMM_UINT8, 1, 1, &work));
    dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
}

/* Rank 0 is stopped in the middle of a message, and rank 1 gives up that
 * receive. When rank 0 goes on, it must not write to memory that rank 1 then
 * uses for a group with rank 2. */
static void stop(void)
{
    int pids[64], own = (int)getpid(), first[] = {0, 1}, others[] = {1, 2};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group, *other;
    char *old = NULL, *memory = NULL;

    join("mpi");
    DSCOMM_CHECK(dscomm_all_gather(world, &own, pids, 1, DSCOMM_INT32, NULL));
    attr.timeout_ms = 3000;
    DSCOMM_CHECK(dscomm_group_new(world, first, 2, &attr, &group));
    DSCOMM_CHECK(dscomm_group_new(world, others, 2, NULL, &other));
    if (rank == 0)
        send_long(group);
    if (rank == 1) {
        old = allocate(group, POISON);
        if (receive_a_part(group, old, pids[0]))
            old = NULL; /* this MPI has received the message at once */
        else
            printf("given up\n");
    }
    DSCOMM_CHECK(dscomm_group_free(group));
    if (rank)
        memory = allocate(other, OWN);
    if (rank == 1)
        need(kill(pids[0], SIGCONT) == 0, "the sender goes on");
    go_on(old);
    if (memory) {
        need(is_all(memory, OWN), "memory of the other group");
        DSCOMM_CHECK(dscomm_all_reduce(other, memory, memory, LONG_BYTES,
                                       DSCOMM_UINT8, DSCOMM_SUM, NULL));
        need(is_all(memory, 2 * OWN), "its sum");
    }
    DSCOMM_CHECK(dscomm_group_free(other));
    DSCOMM_CHECK(dscomm_finalize(world));
}

/* The root is late, while the others look for notices. */
static void broadcast_late(dscomm_group_t *group)
{
    int value = rank == 0 ? 42 : 0;
    dscomm_work_t *work;

    if (rank == 0)
        usleep(1500000); /* they begin to look after a second */
    DSCOMM_CHECK(dscomm_broadcast(group, &value, 1, DSCOMM_INT32, 0, &work));
    finish(work);
    need(value == 42, "what is broadcast");
}

/* All other ranks are late for a barrier; a normal barrier follows. */
static void meet_late(dscomm_group_t *group)
{
    int over = 0;

    if (rank == 0)
        need(dscomm_monitored_barrier(group, 1) < 0, "nobody comes in time");
    DSCOMM_CHECK(dscomm_broadcast(group, &over, 1, DSCOMM_INT32, 0, NULL));
    if (rank)
        need(dscomm_monitored_barrier(group, 60000) < 0, "it is over");
    DSCOMM_CHECK(dscomm_monitored_barrier(group, 60000));
}

/* Makes many groups. Most have two ranks, so that each rank has a processor,
 * because MPICH does not yield; for some groups, ranks are late. */
static void make_many(void)
{
    dscomm_group_t *group;
    int all[64], before;

    join("mpi");
    before = kept;
    for (int r = 0; r < ranks; r++)
        all[r] = r;
    for (int i = 0; i < GROUPS; i++) {
        const int large = i % (GROUPS / 2) == 0;

        DSCOMM_CHECK(
            dscomm_group_new(world, all, large ? ranks : 2, NULL, &group));
        if (large)
            broadcast_late(group);
        if (group && i % (GROUPS / 100) == 0)
            meet_late(group);
        DSCOMM_CHECK(dscomm_group_free(group));
    }
    need(kept == before, "the groups' communicators go back to MPI");
    DSCOMM_CHECK(dscomm_finalize(world));
}

/* Makes a second world beside the first, at the same time, as two libraries
 * might. */
static void twice(void)
{
    dscomm_group_t *other;

    join("mpi");
    DSCOMM_CHECK(dscomm_init(NULL, &other));
    need(made_tags[0] != made_tags[1], "MPI can tell them apart");
    sum_ones(other);
    sum_ours();
    DSCOMM_CHECK(dscomm_finalize(other));
    DSCOMM_CHECK(dscomm_finalize(world));
}

static uint64_t hash(const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    uint64_t sum = UINT64_C(14695981039346656037);

    while (bytes--)
        sum = (sum ^ *byte++) * UINT64_C(1099511628211);
    return sum;
}

/* Checks that all ranks get the same bits, and the same bits again. */
static void compare_bits(const float *in, float *out, size_t count,
                         dscomm_op_t op)
{
    uint64_t mine[2], all[2 * 64];

    for (int i = 0; i < 2; i++) {
        usleep((useconds_t)(rand() % 200));
        DSCOMM_CHECK(
            dscomm_all_reduce(world, in, out, count, DSCOMM_FLOAT32, op, NULL));
        mine[i] = hash(out, count * sizeof *out);
    }
    DSCOMM_CHECK(dscomm_all_gather(world, mine, all, 2, DSCOMM_UINT64, NULL));
    for (int i = 0; i < 2 * ranks; i++)
        need(all[i] == all[0], "the same bits on all ranks, always");
}

static void see_bits(void)
{
    static float in[COUNT], out[COUNT];

    join("mpi");
    srand((unsigned)rank + 1);
    for (size_t i = 0; i < COUNT; i++)
        in[i] = (float)rand() / 1e7f - 100;
    for (size_t count = 1; count <= COUNT; count = count * 3 + 1)
        for (int op = DSCOMM_SUM; op <= DSCOMM_AVG; op++)
            compare_bits(in, out, count, (dscomm_op_t)op);
    DSCOMM_CHECK(dscomm_finalize(world));
}

/* MPI is not wired up: checks the sentence. */
static void complain(void)
{
    if (dscomm_init(NULL, &world) == DSCOMM_OK)
        exit(3);
    fprintf(stderr, "%s\n", dscomm_last_error());
    exit(4);
}

/* Below MPI_THREAD_MULTIPLE, another thread tries to make a group. */
static void *intrude(void *arg)
{
    int all[64];
    dscomm_group_t *group;

    outsider = pthread_self();
    for (int i = 0; i < 20; i++) {
        DSCOMM_CHECK(dscomm_group_status(world));
        usleep(2000);
    }
    need(!strays, "a question calls nothing of MPI");
    for (int r = 0; r < ranks; r++)
        all[r] = r;
    need(dscomm_group_new(world, all, ranks, NULL, &group) < 0, "a refusal");
    need_sentence("one thread makes all groups");
    return arg;
}

static void use_serialized(void)
{
    pthread_t thread;
    int level, fd;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    join("mpi");
    if (level < MPI_THREAD_MULTIPLE) {
        need(dscomm_group_fd(world, &fd) == DSCOMM_ERR_UNSUPPORTED,
             "no thread that makes progress for a loop");
        pthread_create(&thread, NULL, intrude, NULL);
        pthread_join(thread, NULL);
    }
    DSCOMM_CHECK(dscomm_finalize(world));
    setenv("DSCOMM_PROGRESS", "thread", 1);
    if (level < MPI_THREAD_MULTIPLE) {
        need(dscomm_init(NULL, &world) < 0, "no thread of the library's own");
        need_sentence("DSCOMM_PROGRESS=thread");
    }
    MPI_Finalize();
}

/* MPI runs out of resources. The program has set an error handler that ends it,
 * but only for its own errors. */
static void run_out(void)
{
    MPI_Errhandler handler;

    MPI_Init(NULL, NULL);
    MPI_Add_error_class(&exhausted);
    MPI_Add_error_string(exhausted,
                         "Other error, stack:\nf(1)\nf(2): none left");
    need(dscomm_init(NULL, &world) == DSCOMM_ERR_NO_MEMORY, "a failure");
    need(strstr(dscomm_last_error(), "MPI_Comm_create_group") != NULL &&
             strstr(dscomm_last_error(), "MPI: f(2): none left"),
         "the sentence");
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    need(handler == MPI_ERRORS_ARE_FATAL, "the program's choice is back");
    exhausted = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

/* Ranks have different settings. */
static void differ(void)
{
    if (launched_rank())
        setenv("DSCOMM_MPI_CHUNK", "1000", 1);
    need(dscomm_init(NULL, &world) == DSCOMM_ERR_NO_BACKEND, "a refusal");
    need(strstr(dscomm_last_error(),
                "DSCOMM_MPI_CHUNK is 1073741824 for rank 0 (pid ") != NULL &&
             strstr(dscomm_last_error(), ") and 1000 for rank 1 (pid ") != NULL,
         "the sentence");
}

static void complain_after_init(void)
{
    MPI_Init(NULL, NULL);
    complain();
}

/* Rank 1 uses MPI and never joins; the launcher ends it with the others. */
static void stay_away(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        sleep(60);
    need(dscomm_init(NULL, &world) == DSCOMM_ERR_TIMEOUT, "a time-out");
    need_sentence("rank 1 of 3 did not come within 5.0 s");
    need(dscomm_init(NULL, &world) == DSCOMM_ERR_STATE, "no second attempt");
    need_sentence("set MASTER_ADDR");
    exit(4);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"serialized", use_serialized},
    {"single", use_single},
    {"multiple", use_multiple},
    {"none", use_none},
    {"early", end_early},
    {"die", die},
    {"desert", desert},
    {"keep", keep},
    {"twice", twice},
    {"many", make_many},
    {"stop", stop},
    {"bits", see_bits},
    {"differ", differ},
    {"exhausted", run_out},
    {"complain", complain},
    {"lost", complain_after_init},
    {"stay-away", stay_away},
    {"withdraw", withdraw},
    {"part", part},
    {"turns", take_turns},
    {"fork", fork_twice},
    {"part-late", part_late},
    {"receive-any", receive_any},
    {"rail", lack_rail},
    {"need-more", need_more},
    {"miss-one", miss_one},
    {"funneled", use_funneled},
    {"miss-once", miss_once},
    {"die-meeting", die_meeting},
    {"die-making", die_making},
    {"die-beginning", die_beginning},
    {"die-finalizing", die_finalizing},
    {"quit-beginning", quit_beginning},
    {"lack-files", lack_files},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, argv[1]))
            continue;
        modes[i].run();
        printf("content\n");
        return 0;
    }
    return 2;
}
