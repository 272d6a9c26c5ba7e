/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressors and their groups: if one rank is refused, all are; groups that
 * are freed first, or in another order; two at a time in two threads; works
 * that a thread of the library advances. */
#include "config.h"

#include "compression/core/compressor.h"
#include "tests/compression/compress.h"

#include <sys/wait.h>

#define COUNT 3000
#define ROUNDS 40

/* One rank's arguments are invalid: no rank waits for the deadline, and all
 * have the same sentence. */
static void refused_by_one(rank_t *self)
{
    static const struct {
        dscomm_status_t status;
        const char *text;
        dscomm_compressor_attr_t attr;
        size_t count;
        int is_lost; /* nowhere to return it to */
    } rows[] = {
        {DSCOMM_ERR_INVALID, "parameter is 7", {.parameter = 7}, COUNT, 0},
        {DSCOMM_ERR_NOT_FOUND, "no codec 'zip'", {.codec = "zip"}, COUNT, 0},
        {DSCOMM_ERR_INVALID, "attr.size is 3", {.size = 3}, COUNT, 0},
        {DSCOMM_ERR_INVALID, "padded is 5", {.padded = 5}, COUNT, 0},
        {DSCOMM_ERR_INVALID,
         "more than memory can hold",
         {.sum = 0},
         SIZE_MAX / 4,
         0},
        {DSCOMM_ERR_INVALID, "ret_compressor is NULL", {.sum = 0}, COUNT, 1},
    };

    for (int i = 0; i < 6; i++) {
        const int culprit = i % self->size, is_it = self->rank == culprit;
        dscomm_compressor_attr_t attr = {.size = 0};
        dscomm_compressor_t *c = NULL;
        char who[32];

        if (is_it)
            attr = rows[i].attr;
        attr.size = attr.size ? attr.size : sizeof attr;
        snprintf(who, sizeof who, "rank %d says", culprit);
        CHECK(self,
              dscomm_compressor_create(
                  self->world, is_it ? rows[i].count : COUNT, &attr,
                  is_it && rows[i].is_lost ? NULL : &c) == rows[i].status);
        CHECK(self, strstr(dscomm_last_error(), rows[i].text));
        CHECK(self, strstr(dscomm_last_error(), who) && !c);
    }
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
}

/* After its group was freed, a call that communicates returns a status, and
 * local calls still work. */
static void outlives(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 0);
    dscomm_compressor_t *c = open_on(self, group, COUNT);
    dscomm_compressor_t *d = open_on(self, group, COUNT);
    dscomm_work_t *work = NULL;
    float x[COUNT], y[COUNT];
    char *state;

    fill_noise(x, COUNT, self->rank, 0);
    fill_noise(y, COUNT, self->rank, 1);
    reduce(self, c, x);
    meet(self);
    if (self->size > 1 && !self->rank)
        CHECK(self, !dscomm_compressor_all_reduce(d, y, DSCOMM_FLOAT32, &work));
    CHECK(self, !dscomm_group_free(group));
    CHECK(self, !work || dscomm_work_wait(work, -1) == DSCOMM_ERR_ABORTED);
    dscomm_work_free(work);
    CHECK(self, try_reduce(c, x) == DSCOMM_ERR_STATE);
    CHECK(self, strstr(dscomm_last_error(), "was freed"));
    CHECK(self, info_of(self, c).count == COUNT);
    state = save(self, c);
    CHECK(self,
          !dscomm_compressor_load(c, state, info_of(self, c).state_bytes));
    free(state);
    CHECK(self, !dscomm_compressor_free(c) && !dscomm_compressor_free(d));
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
}

/* Compressors of groups of one rank that were freed long before: a group of all
 * ranks at the same address is not affected by them. */
static void same_place(rank_t *self)
{
    enum { OLD = 40, FORGOTTEN = 300, NEW = 120 };
    dscomm_compressor_t *old[OLD], *c = NULL;
    dscomm_group_t *alone[OLD], *groups[NEW];
    float x[1];

    for (int i = 0; i < OLD; i++) {
        CHECK(self,
              !dscomm_group_split(self->world, self->rank, 0, NULL, &alone[i]));
        old[i] = open_on(self, alone[i], 1);
    }
    for (int i = 0; i < OLD; i++)
        CHECK(self, !dscomm_group_free(alone[i]));
    for (int i = 0; i < FORGOTTEN; i++) {
        dscomm_group_t *group = NULL;

        CHECK(self,
              !dscomm_group_split(self->world, self->rank, 0, NULL, &group));
        CHECK(self, !dscomm_group_free(group));
    }
    for (int i = 0; i < NEW; i++) {
        groups[i] = all_of(self, 0);
        c = open_on(self, groups[i], 1);
        *x = self->rank ? 0 : (float)self->size;
        reduce(self, c, x);
        CHECK(self, *x > 0.5f && *x < 1.5f);
        CHECK(self, !dscomm_compressor_free(c));
    }
    for (int i = 0; i < NEW; i++)
        CHECK(self, !dscomm_group_free(groups[i]));
    for (int i = 0; i < OLD; i++) {
        CHECK(self, try_reduce(old[i], x) == DSCOMM_ERR_STATE);
        CHECK(self, !dscomm_compressor_free(old[i]));
    }
}

/* Freeing is local: ranks may free a compressor before or after the next one is
 * made. */
static void any_order(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 0);
    dscomm_compressor_t *c = open_on(self, group, COUNT), *next;
    float x[COUNT];

    if (self->rank % 2)
        CHECK(self, !dscomm_compressor_free(c));
    next = open_on(self, group, COUNT);
    if (self->rank % 2 == 0)
        CHECK(self, !dscomm_compressor_free(c));
    for (int i = 0; i < COUNT; i++)
        x[i] = i % 2 ? 2 : -2;
    reduce(self, next, x);
    CHECK(self, x[0] == -2 && x[COUNT - 1] == 2);
    close_on(self, group, &next, 1);
}

/* The calls of one thread on its own group. */
typedef struct {
    rank_t self;
    dscomm_group_t *group;
    float size;
} thread_t;

/* Values of equal size and sign on all ranks, which are sent without loss. */
static void *call_many(void *argument)
{
    thread_t *thread = argument;
    dscomm_compressor_t *c = open_on(&thread->self, thread->group, COUNT);
    float x[COUNT];

    for (int round = 0; round < ROUNDS && !*thread->self.failure; round++) {
        int wrong = 0;

        for (int i = 0; i < COUNT; i++)
            x[i] = (i + round) % 3 ? thread->size : -thread->size;
        reduce_as(&thread->self, c, x, DSCOMM_FLOAT32, round % 2);
        for (int i = 0; i < COUNT; i++)
            wrong += x[i] != ((i + round) % 3 ? thread->size : -thread->size);
        CHECK(&thread->self, !wrong);
    }
    CHECK(&thread->self, !dscomm_compressor_free(c));
    return NULL;
}

static void two_threads(rank_t *self)
{
    thread_t threads[2];
    pthread_t ids[2];

    for (int i = 0; i < 2; i++)
        threads[i] = (thread_t){*self, all_of(self, 0), i ? 4 : 1};
    for (int i = 0; i < 2; i++)
        pthread_create(&ids[i], NULL, call_many, &threads[i]);
    for (int i = 0; i < 2; i++) {
        pthread_join(ids[i], NULL);
        CHECK(self, !*threads[i].self.failure);
        if (*threads[i].self.failure)
            printf("# %s\n", threads[i].self.failure);
        CHECK(self, !dscomm_group_free(threads[i].group));
    }
}

/* No rank waits or tests: errors can be read when the call is complete. */
static void by_itself(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
    dscomm_work_t *work = NULL;
    float x[COUNT], *worker, *server;

    for (int i = 0; i < COUNT; i++)
        x[i] = i % 2 ? 2 : -2;
    CHECK(self, !dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, &work));
    for (int i = 0; i < 10000 && dscomm_compressor_errors(
                                     c, &worker, &server) == DSCOMM_ERR_STATE;
         i++)
        usleep(1000);
    CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
    finish(self, work);
    CHECK(self, x[0] == -2 && x[COUNT - 1] == 2);
    CHECK(self, !dscomm_compressor_free(c));
}

/* In a child, a thread that does not exist there may hold a lock. */
static void forked(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
    float x[COUNT] = {1};
    int status = -1;
    pid_t child;

    reduce(self, c, x);
    pthread_mutex_lock(&c->channel->lock);
    child = fork();
    if (!child) {
        alarm(10);
        _exit(dscomm_compressor_free(c) != DSCOMM_OK);
    }
    pthread_mutex_unlock(&c->channel->lock);
    CHECK(self, child > 0 && waitpid(child, &status, 0) == child && !status);
    reduce(self, c, x);
    CHECK(self, !dscomm_compressor_free(c));
}

static void run_all(const char *how)
{
    static const int sizes[] = {1, 2, 3, 5};
    static const struct {
        rank_body_t body;
        const char *what;
    } tests[] = {
        {refused_by_one, "what one rank refuses"},
        {outlives, "a group that is freed first"},
        {any_order, "freed before and after the next is made"},
        {two_threads, "two groups from two threads"},
    };

    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            char what[80];

            snprintf(what, sizeof what, "%s%s", tests[t].what, how);
            ranks_run(sizes[s], 20000, tests[t].body, what);
        }
}

int main(void)
{
    ranks_use_modules();
    run_all("");
    ranks_run(3, 20000, same_place, "groups where others were");
    ranks_run(2, 60000, forked, "a child that frees what it inherits");
    setenv("DSCOMM_PROGRESS", "thread", 1);
    run_all(", with a thread of progress");
    ranks_run(3, 20000, by_itself, "a work that nobody looks at");
    return tap_done();
}
