/* SPDX-License-Identifier: BSD-3-Clause */
/* Worlds whose ranks are threads of the test, over the backend in
 * thread.c. Checks in threads are collected; one line of TAP tells of
 * all. */
#ifndef TESTS_LIB_RANKS_H
#define TESTS_LIB_RANKS_H

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <pthread.h>
#include <unistd.h>

#define RANKS_MAX 16

typedef struct {
    dscomm_group_t *world;
    int rank, size;
    char failure[1024]; /* of the first check that failed */
} rank_t;

typedef void (*rank_body_t)(rank_t *self);

typedef struct {
    rank_t rank;
    rank_body_t body;
    dscomm_store_t *store;
    int timeout_ms;
} rank_thread_t;

/* The first failure is kept, with its line. */
#define CHECK(self, cond)                                                      \
    do {                                                                       \
        if (!(cond) && !*(self)->failure)                                      \
            snprintf((self)->failure, sizeof(self)->failure,                   \
                     "line %d: rank %d: %s (%s)", __LINE__, (self)->rank,      \
                     #cond, dscomm_last_error());                              \
    } while (0)

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
 * them failed, after printing why. */
static inline int ranks_try(const char *url, int size, int timeout_ms,
                            rank_body_t body)
{
    rank_thread_t threads[RANKS_MAX] = {0};
    pthread_t ids[RANKS_MAX];
    dscomm_store_t *store = NULL;
    int failed = 0;

    dscomm_store_open(url, NULL, &store);
    for (int i = 0; i < size; i++) {
        threads[i].rank.rank = i;
        threads[i].rank.size = size;
        threads[i].body = body;
        threads[i].store = store;
        threads[i].timeout_ms = timeout_ms;
        pthread_create(&ids[i], NULL, rank_main, &threads[i]);
    }
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

/* The same, as one test called what. */
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

/* Where the test modules are, for DSCOMM_BACKEND_PATH. */
static inline void ranks_use_modules(void)
{
    const char *top = getenv("abs_top_builddir");
    char path[4096];

    snprintf(path, sizeof path, "%s/tests/lib/work/.libs", top ? top : ".");
    setenv("DSCOMM_BACKEND_PATH", path, 1);
}

#endif
