/* SPDX-License-Identifier: BSD-3-Clause */
/* Hundreds of works outstanding on several groups, started in one order and
 * waited for in another, by one thread and by two; also abandoned and
 * aborted. */
#include "config.h"

#include "tests/backends/conform.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS 3
#define EACH 72 /* works on each group */
#define CROWD (GROUPS * EACH)

typedef struct {
    dscomm_group_t *groups[GROUPS];
    exchange_t exchanges[CROWD];
    int order[CROWD];
    uint64_t seed; /* of the operation's data: equal on all ranks */
} crowd_t;

static void prepare(exchange_t *x, dscomm_group_t *group, uint64_t r)
{
    memset(x, 0, sizeof *x);
    x->group = group;
    x->coll = (int)(r % 14);
    x->dtype = r >> 8 & 1 ? DSCOMM_INT32 : DSCOMM_FLOAT32;
    x->root = (int)(r >> 12 & 0xff) % dscomm_group_size(group);
    x->count = conform_scale(r >> 20 & 15 ? r >> 24 & 0x7f : 20000);
    x->seed = r;
    x->in_place = r >> 40 & 1;
}

/* Shuffles the order, differently on each rank. */
static void shuffle(int *order, uint64_t seed)
{
    for (int i = 0; i < CROWD; i++) {
        int k = (int)(mix(seed + (uint64_t)i) % (uint64_t)(i + 1));

        order[i] = order[k];
        order[k] = i;
    }
}

static void post(crowd_t *c, int i)
{
    exchange_t *x = &c->exchanges[i];

    prepare(x, c->groups[i % GROUPS], mix(c->seed + (uint64_t)i));
    exchange_start(x, 1);
}

static void land(crowd_t *c)
{
    for (int i = 0; i < CROWD; i++)
        exchange_end(&c->exchanges[c->order[i]]);
}

static void fly(crowd_t *c)
{
    shuffle(c->order, c->seed + 1000 * (uint64_t)my.rank);
    for (int i = 0; i < CROWD; i++)
        post(c, i);
    land(c);
}

static crowd_t *crowd_new(uint64_t seed)
{
    crowd_t *c = calloc(1, sizeof *c);

    c->seed = seed;
    for (int g = 0; g < GROUPS; g++)
        CHECK_OK(dscomm_group_split(my.group, 0, g == 1 ? -my.rank : 0, NULL,
                                    &c->groups[g]));
    return c;
}

static void crowd_free(crowd_t *c)
{
    for (int g = 0; g < GROUPS; g++)
        CHECK_OK(dscomm_group_free(c->groups[g]));
    free(c);
}

static void test_one_thread(void)
{
    crowd_t *c = crowd_new(1);

    fly(c);
    c->seed = 2;
    fly(c);
    crowd_free(c);
}

static void *fly_in_thread(void *arg)
{
    fly(arg);
    return NULL;
}

static void test_two_threads(void)
{
    crowd_t *c[2] = {crowd_new(3), crowd_new(4)};
    pthread_t thread;
    int started = check(pthread_create(&thread, NULL, fly_in_thread, c[1]) == 0,
                        "no thread");

    fly(c[0]);
    if (started)
        pthread_join(thread, NULL);
    crowd_free(c[0]);
    crowd_free(c[1]);
}

/* Recordings among the works. Every third one is blocking, so it returns after
 * everything that was started on its group before it has ended. */
static void test_recordings(void)
{
    crowd_t *c = crowd_new(5);
    dscomm_work_t *works[CROWD / EACH * 8] = {NULL};
    int nworks = 0;

    for (int i = 0; i < CROWD; i += 9) {
        dscomm_group_t *group = c->groups[i / 9 % GROUPS];
        int blocks = i / 9 % 3 == 2;

        CHECK_OK(dscomm_coalesce_begin(group));
        for (int k = i; k < i + 9; k++) {
            exchange_t *x = &c->exchanges[k];

            prepare(x, group, mix(c->seed + (uint64_t)k));
            if (k % 9 < 6)
                x->coll = DSCOMM_COLL_ALL_REDUCE;
            exchange_start(x, 0);
        }
        CHECK_OK(dscomm_coalesce_end(group, blocks ? NULL : &works[nworks]));
        nworks += !blocks;
    }
    for (int i = nworks - 1; i >= 0; i--)
        conform_finish(&works[i], 1);
    for (int i = 0; i < CROWD; i++)
        exchange_end(&c->exchanges[i]);
    crowd_free(c);
}

/* Buffers of works that never complete. */
typedef struct {
    int32_t in[64], out[64];
    dscomm_work_t *works[EACH];
} waiting_t;

/* Starts works. The last rank starts none, so works that need it cannot
 * complete. */
static void start_waiting(waiting_t *w, dscomm_group_t *group)
{
    for (int i = 0; i < EACH && my.rank != my.ranks - 1; i++) {
        if (i % 8 == 0)
            CHECK_OK(dscomm_coalesce_begin(group));
        CHECK_OK(dscomm_all_reduce(
            group, w->in, w->out, 1 + (size_t)i % 8, DSCOMM_INT32,
            i % 3 ? DSCOMM_SUM : DSCOMM_MAX, i % 8 < 4 ? NULL : &w->works[i]));
        if (i % 8 == 3)
            CHECK_OK(dscomm_coalesce_end(group, &w->works[i]));
    }
}

/* Returns how many works have ended with status. */
static int end_waiting(waiting_t *w, dscomm_status_t status)
{
    int ended = 0;

    for (int i = EACH - 1; i >= 0; i--) {
        if (!w->works[i])
            continue;
        ended +=
            check_status(dscomm_work_wait(w->works[i], DSCOMM_TIMEOUT_DEFAULT),
                         status, "work %d", i);
        dscomm_work_free(w->works[i]);
        w->works[i] = NULL;
    }
    return ended;
}

static void *abort_soon(void *arg)
{
    conform_pause(50);
    CHECK_OK(dscomm_group_abort(arg, "enough of them"));
    return NULL;
}

/* A group is aborted by a thread that does not use its works; other groups are
 * not affected. */
static void test_aborted(void)
{
    dscomm_group_t *group = NULL;
    waiting_t w = {{0}, {0}, {NULL}};
    crowd_t *c = crowd_new(6);
    double start = conform_now_ms();
    pthread_t thread;
    int started = 0;

    CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &group));
    start_waiting(&w, group);
    CHECK_OK(dscomm_barrier(my.world, NULL)); /* no rank aborts before this */
    for (int i = 0; i < CROWD; i++)
        post(c, i);
    shuffle(c->order, c->seed);
    if (my.rank == 0)
        started = check(pthread_create(&thread, NULL, abort_soon, group) == 0,
                        "no thread");
    land(c);
    if (my.ranks > 1 && my.rank != my.ranks - 1) {
        end_waiting(&w, DSCOMM_ERR_ABORTED);
        check_sentence("enough of them", "reason");
    }
    if (started)
        pthread_join(thread, NULL);
    while (dscomm_group_status(group) == DSCOMM_OK &&
           conform_now_ms() - start < 10000)
        conform_pause(1);
    CHECK_FAILS(dscomm_group_status(group), DSCOMM_ERR_ABORTED);
    CHECK_OK(dscomm_group_free(group));
    crowd_free(c);
}

/* Freeing a group or works does not wait for anything. */
static void test_abandoned(void)
{
    dscomm_group_t *group = NULL;
    waiting_t w = {{0}, {0}, {NULL}};
    double start = conform_now_ms();

    if (my.ranks == 1) {
        conform_skip("needs 2 ranks");
        return;
    }
    CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &group));
    start_waiting(&w, group);
    for (int i = 0; i < EACH; i += 3) {
        dscomm_work_free(w.works[i]);
        w.works[i] = NULL;
    }
    if (my.rank == my.ranks - 1)
        CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_group_free(group));
    end_waiting(&w, DSCOMM_ERR_ABORTED);
    if (my.rank != my.ranks - 1)
        CHECK_OK(dscomm_barrier(my.group, NULL));
    check(conform_now_ms() - start < 10000, "that took %.0f ms",
          conform_now_ms() - start);
}

#define MESSAGES 64
#define MESSAGE_BYTES 40000

static int message_is(const unsigned char *bytes, int i)
{
    for (int k = 0; k < MESSAGE_BYTES; k++)
        if (bytes[k] != i + 1)
            return 0;
    return 1;
}

/* Starts more messages to each rank than a backend takes from the memory of
 * their sender, and gives them up. */
static void give_up_messages(dscomm_group_t *group, unsigned char *bytes)
{
    const char *backend = dscomm_group_backend(my.group);
    dscomm_work_t *work;

    for (int i = 0; i < MESSAGES; i++) {
        memset(bytes + i * MESSAGE_BYTES, i + 1, MESSAGE_BYTES);
        for (int r = 1; r < my.ranks; r++) {
            CHECK_OK(dscomm_isend(group, bytes + i * MESSAGE_BYTES,
                                  MESSAGE_BYTES, DSCOMM_INT8, r, 0, &work));
            dscomm_work_free(work);
        }
    }
    CHECK_OK(dscomm_group_free(group));
    /* MPI may go on reading them (dscomm/work.h). */
    if (strcmp(backend, "mpi") && strcmp(backend, "two_level"))
        memset(bytes, 0, (size_t)MESSAGES * MESSAGE_BYTES);
}

/* Receives those that were sent nevertheless: each as it was, and in order. */
static void receive_what_came(dscomm_group_t *group, unsigned char *bytes)
{
    const int sends_early = !strcmp(dscomm_group_backend(my.group), "tcp");
    dscomm_status_t status = DSCOMM_OK;
    dscomm_work_t *work;

    for (int i = 0; i < MESSAGES && status == DSCOMM_OK; i++) {
        status =
            dscomm_irecv(group, bytes, MESSAGE_BYTES, DSCOMM_INT8, 0, 0, &work);
        if (status < 0)
            break;
        status = dscomm_work_wait(work, 100);
        if (status == DSCOMM_OK)
            check(message_is(bytes, i), "message %d has bytes of %d", i,
                  bytes[0]);
        else
            check(i || !sends_early, "no message has come");
        dscomm_work_free(work);
    }
    CHECK_OK(dscomm_group_free(group));
}

/* Messages that arrive although their sender has given them up are whole. */
static void test_messages(void)
{
    static unsigned char bytes[MESSAGES * MESSAGE_BYTES];
    dscomm_group_t *group = NULL;

    if (my.ranks == 1) {
        conform_skip("needs 2 ranks");
        return;
    }
    CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &group));
    if (my.rank == 0)
        give_up_messages(group, bytes);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    if (my.rank != 0)
        receive_what_came(group, bytes);
}

static const conform_test_t tests[] = {
    {"hundreds of works on several groups", test_one_thread},
    {"the same in two threads", test_two_threads},
    {"recordings among them", test_recordings},
    {"aborted while others go on", test_aborted},
    {"abandoned", test_abandoned},
    {"abandoned messages", test_messages},
    {NULL, NULL},
};
const conform_area_t conform_crowd = {"crowd", NULL, tests};
