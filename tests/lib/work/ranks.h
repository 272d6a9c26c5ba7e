/* SPDX-License-Identifier: BSD-3-Clause */
/* Worlds whose ranks are threads of the test, over the backend in thread.c.
 * Checks in threads are collected, and printed as one line of TAP. */
#ifndef TESTS_LIB_RANKS_H
#define TESTS_LIB_RANKS_H

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 16
/* The stack of a rank's thread: bodies have large arrays. */
#define STACK_SIZE ((size_t)1 << 20)

typedef struct {
    dscomm_group_t *world;
    int rank, size;
    char failure[1024]; /* the first failed check */
} rank_t;

typedef void (*rank_body_t)(rank_t *self);

typedef struct {
    rank_t rank;
    rank_body_t body;
    dscomm_store_t *store;
    int timeout_ms;
} rank_thread_t;

/* Keeps the first failure, with its line. */
#define CHECK(self, cond)                                                      \
    do {                                                                       \
        if (!(cond) && !*(self)->failure)                                      \
            snprintf((self)->failure, sizeof(self)->failure,                   \
                     "line %d: rank %d: %s (%s)", __LINE__, (self)->rank,      \
                     #cond, dscomm_last_error());                              \
    } while (0)

/* A call that must fail with want, and with words in its sentence. */
#define FAILS(self, want, words, call)                                         \
    CHECK(self, (call) == (want) && strstr(dscomm_last_error(), words))

/* Waits for a work, which must end with want, and frees it. */
#define FINISH(self, work, want)                                               \
    do {                                                                       \
        CHECK(self, dscomm_work_wait(work, -1) == (want));                     \
        dscomm_work_free(work);                                                \
    } while (0)

static inline int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A group of all ranks; timeout_ms 0: the world's. */
static inline dscomm_group_t *split_all(rank_t *self, int timeout_ms)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL;

    attr.timeout_ms = timeout_ms;
    CHECK(self, !dscomm_group_split(self->world, 0, 0, &attr, &group));
    return group;
}

/* Calls on one number, or on one for each rank. */

static inline dscomm_status_t sum_one(dscomm_group_t *group, const int32_t *in,
                                      int32_t *out, dscomm_work_t **ret_work)
{
    return dscomm_all_reduce(group, in, out, 1, DSCOMM_INT32, DSCOMM_SUM,
                             ret_work);
}

static inline dscomm_status_t exchange_one(dscomm_group_t *group,
                                           const int32_t *in, int32_t *out,
                                           dscomm_work_t **ret_work)
{
    return dscomm_all_to_all(group, in, out, 1, DSCOMM_INT32, ret_work);
}

static inline dscomm_status_t send_one(dscomm_group_t *group, const int32_t *x,
                                       int dest, int tag)
{
    return dscomm_send(group, x, 1, DSCOMM_INT32, dest, tag);
}

static inline dscomm_status_t recv_one(dscomm_group_t *group, int32_t *x,
                                       int source, int tag)
{
    return dscomm_recv(group, x, 1, DSCOMM_INT32, source, tag, NULL, NULL);
}

static inline dscomm_status_t irecv_one(dscomm_group_t *group, int32_t *x,
                                        int source, int tag,
                                        dscomm_work_t **ret_work)
{
    return dscomm_irecv(group, x, 1, DSCOMM_INT32, source, tag, ret_work);
}

static inline void *rank_main(void *arg)
{
    rank_thread_t *thread = arg;
    rank_t *self = &thread->rank;
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_status_t status;

    attr.backend = "thread";
    attr.store = thread->store;
    attr.has_rank = 1;
    attr.rank = self->rank;
    attr.world_size = self->size;
    attr.timeout_ms = thread->timeout_ms;
    status = dscomm_init(&attr, &self->world);
    CHECK(self, status == DSCOMM_OK);
    if (status == DSCOMM_OK) {
        thread->body(self);
        status = dscomm_finalize(self->world);
        CHECK(self, status == DSCOMM_OK);
    }
    return NULL;
}

/* Runs body in size ranks, which meet in the store at url. Returns how many of
 * them failed, after printing the reasons. */
static inline int ranks_try(const char *url, int size, int timeout_ms,
                            rank_body_t body)
{
    rank_thread_t threads[RANKS_MAX] = {0};
    pthread_t ids[RANKS_MAX];
    dscomm_store_t *store = NULL;
    pthread_attr_t attr;
    int failed = 0;

    dscomm_store_open(url, NULL, &store);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    for (int i = 0; i < size; i++) {
        threads[i].rank.rank = i;
        threads[i].rank.size = size;
        threads[i].body = body;
        threads[i].store = store;
        threads[i].timeout_ms = timeout_ms;
        pthread_create(&ids[i], &attr, rank_main, &threads[i]);
    }
    pthread_attr_destroy(&attr);
    for (int i = 0; i < size; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < size; i++) {
        if (*threads[i].rank.failure)
            printf("# %s\n", threads[i].rank.failure);
        failed += *threads[i].rank.failure != 0;
    }
    dscomm_store_close(store);
    return failed;
}

/* Does the same as a test with name what. */
static inline void ranks_run_in(const char *url, int size, int timeout_ms,
                                rank_body_t body, const char *what)
{
    ok(!ranks_try(url, size, timeout_ms, body), "%s, %d ranks", what, size);
}

static inline void ranks_run(int size, int timeout_ms, rank_body_t body,
                             const char *what)
{
    ranks_run_in("memory://", size, timeout_ms, body, what);
}

/* Sets DSCOMM_BACKEND_PATH to the folder of the test modules. */
static inline void ranks_use_modules(void)
{
    const char *top = getenv("abs_top_builddir");
    char path[4096];

    snprintf(path, sizeof path, "%s/tests/lib/work/.libs", top ? top : ".");
    setenv("DSCOMM_BACKEND_PATH", path, 1);
}

#endif
