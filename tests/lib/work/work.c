/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: completion, time-outs, cancelling, and groups in several threads. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <signal.h>
#include <stdatomic.h>

#define ROUNDS 300

/* A signal handler that blocks its thread for 400 ms. */
static void doze(int signal)
{
    const struct timespec pause = {0, 400000000};

    (void)signal;
    nanosleep(&pause, NULL);
}

/* After 50 ms, blocks the thread in arg for 400 ms by a signal. */
static void *disturb(void *arg)
{
    usleep(50000);
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    return NULL;
}

static void several_in_order(rank_t *self)
{
    int32_t in[8], out[8];
    dscomm_work_t *works[8];

    for (int i = 0; i < 8; i++) {
        in[i] = self->rank + i;
        CHECK(self, !sum_one(self->world, &in[i], &out[i], &works[i]));
        CHECK(self, dscomm_work_sequence(works[i]) == (uint64_t)i + 1);
        CHECK(self, dscomm_work_group(works[i]) == self->world);
    }
    CHECK(self, dscomm_barrier(self->world, NULL) == DSCOMM_OK);
    for (int i = 7; i >= 0; i--) {
        CHECK(self, dscomm_work_wait(works[i], -1) == DSCOMM_OK);
        CHECK(self, dscomm_work_wait(works[i], 0) == DSCOMM_OK);
        CHECK(self, dscomm_work_test(works[i]) == DSCOMM_OK);
        CHECK(self, out[i] == 3 + 3 * i);
        dscomm_work_free(works[i]);
    }
}

static atomic_int have_waited;

/* Rank 0 is late on purpose: the other ranks see a work in progress. */
static void wait_a_little(rank_t *self)
{
    dscomm_work_t *work;

    while (self->rank == 0 && have_waited < self->size - 1)
        usleep(1000);
    CHECK(self, !dscomm_barrier(self->world, &work));
    if (self->rank) {
        CHECK(self, dscomm_work_test(work) == DSCOMM_IN_PROGRESS);
        CHECK(self, dscomm_work_wait(work, 0) == DSCOMM_IN_PROGRESS);
        CHECK(self, dscomm_work_wait(work, 10) == DSCOMM_IN_PROGRESS);
        have_waited++;
    }
    FINISH(self, work, DSCOMM_OK);
}

/* The displacements of a _v call are kept after the call. */
static void packed(rank_t *self)
{
    size_t counts[2][3] = {{1, 2, 3}, {3, 2, 1}};
    int32_t in[2][3], out[2][6];
    dscomm_work_t *works[2];

    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 3; i++)
            in[k][i] = 100 * k + 10 * self->rank + i;
        CHECK(self, !dscomm_all_gather_v(
                        self->world, in[k], counts[k][self->rank], out[k],
                        counts[k], NULL, DSCOMM_INT32, &works[k]));
    }
    CHECK(self, dscomm_work_wait_all(works, 2, -1) == DSCOMM_OK);
    CHECK(self, out[0][0] == 0 && out[0][1] == 10 && out[0][5] == 22);
    CHECK(self, out[1][2] == 102 && out[1][3] == 110 && out[1][5] == 120);
    for (int k = 0; k < 2; k++)
        dscomm_work_free(works[k]);
}

/* Messages around a ring, also from any source. */
static void messages(rank_t *self)
{
    int next = (self->rank + 1) % self->size, source = -9, tag = -9;
    int before = (self->rank + self->size - 1) % self->size;
    int64_t out = self->rank, in = -1, more[2] = {7, 8};
    dscomm_work_t *work;
    size_t bytes = 0;

    CHECK(self, !dscomm_irecv(self->world, &in, 1, DSCOMM_INT64,
                              DSCOMM_ANY_SOURCE, DSCOMM_ANY_TAG, &work));
    CHECK(self, dscomm_work_received(work, &source, &tag, &bytes) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, dscomm_barrier(self->world, NULL) == DSCOMM_OK);
    CHECK(self, !dscomm_send(self->world, &out, 1, DSCOMM_INT64, next, 5));
    CHECK(self, dscomm_work_wait(work, -1) == DSCOMM_OK && in == before);
    CHECK(self, !dscomm_work_received(work, &source, &tag, &bytes));
    CHECK(self, source == before && tag == 5 && bytes == 8);
    dscomm_work_free(work);
    CHECK(self, !dscomm_send(self->world, more, 2, DSCOMM_INT64, next, 6));
    CHECK(self, dscomm_recv(self->world, &in, 1, DSCOMM_INT64, before, 6,
                            &source, &bytes) == DSCOMM_ERR_TRUNCATED);
    CHECK(self, in == 7 && bytes == 16 && source == before);
    CHECK(self, strstr(dscomm_last_error(), "16 bytes"));
    CHECK(self, dscomm_barrier(self->world, NULL) == DSCOMM_OK);
}

/* A freed work runs to its end. */
static void zombies(rank_t *self)
{
    static int32_t in[3][64], out[3][64];
    dscomm_work_t *work;

    for (int i = 0; i < 64; i++) {
        in[self->rank][i] = i + self->rank;
        CHECK(self, !sum_one(self->world, &in[self->rank][i],
                             &out[self->rank][i], &work));
        dscomm_work_free(work);
    }
    CHECK(self, dscomm_barrier(self->world, NULL) == DSCOMM_OK);
    for (int i = 0; i < 64; i++)
        CHECK(self, out[self->rank][i] == 3 * i + 3);
}

/* A wait that is shorter than the group's time-out does not end the group, even
 * if this process is scheduled too late. */
static void disturbed(rank_t *self)
{
    pthread_t own = pthread_self(), other;
    dscomm_work_t *work;
    dscomm_group_t *group = split_all(self, 200);
    int x;

    CHECK(self, !irecv_one(group, &x, 0, 1, &work));
    signal(SIGUSR1, doze);
    pthread_create(&other, NULL, disturb, &own);
    CHECK(self, dscomm_work_wait(work, 150) == DSCOMM_IN_PROGRESS);
    pthread_join(other, NULL);
    CHECK(self, dscomm_group_status(group) == DSCOMM_OK);
    CHECK(self, !dscomm_group_free(group));
    dscomm_work_free(work);
}

/* No rank sends: the group's own time-out ends the group. */
static void expire(rank_t *self)
{
    dscomm_work_t *work, *other;
    dscomm_group_t *group = split_all(self, 1000);
    int x;

    CHECK(self, !irecv_one(group, &x, 0, 1, &work));
    CHECK(self, !irecv_one(group, &x, 1, 2, &other));
    CHECK(self, dscomm_work_wait(work, 20) == DSCOMM_IN_PROGRESS);
    FAILS(self, DSCOMM_ERR_TIMEOUT, " 1000 ms", dscomm_work_wait(work, -1));
    CHECK(self, strstr(dscomm_last_error(), "nobody knows"));
    CHECK(self, dscomm_work_test(other) == DSCOMM_ERR_TIMEOUT);
    CHECK(self, dscomm_group_status(group) == DSCOMM_ERR_TIMEOUT);
    CHECK(self, dscomm_barrier(group, NULL) == DSCOMM_ERR_TIMEOUT);
    CHECK(self, dscomm_isend(group, &x, 1, DSCOMM_INT32, 0, 1, &work) ==
                    DSCOMM_ERR_TIMEOUT);
    dscomm_work_free(work);
    dscomm_work_free(other);
    CHECK(self, !dscomm_group_free(group));
}

/* A backend without the slot withdraw says so, and the work goes on. */
static void not_cancelled(rank_t *self)
{
    int32_t x = self->rank, y = -1;
    dscomm_work_t *work;

    CHECK(self, !irecv_one(self->world, &y, self->rank ^ 1, 1, &work));
    FAILS(self, DSCOMM_ERR_UNSUPPORTED, "backend thread cannot",
          dscomm_work_cancel(work));
    CHECK(self, dscomm_work_set_timeout(work, 10) == DSCOMM_ERR_UNSUPPORTED);
    CHECK(self, !dscomm_work_set_timeout(work, DSCOMM_TIMEOUT_NONE));
    FAILS(self, DSCOMM_ERR_UNSUPPORTED, "backend thread cannot probe",
          dscomm_probe(self->world, 0, 1, 0, NULL));
    CHECK(self, dscomm_recv_within(self->world, &y, 1, DSCOMM_INT32, 0, 2, 10,
                                   NULL) == DSCOMM_ERR_UNSUPPORTED);
    CHECK(self, !send_one(self->world, &x, self->rank ^ 1, 1));
    CHECK(self, !dscomm_work_wait(work, -1) && y == (self->rank ^ 1));
    dscomm_work_free(work);
}

static void never_sent(rank_t *self)
{
    static int32_t x[RANKS_MAX];
    dscomm_work_t *work;

    CHECK(self, !irecv_one(self->world, &x[self->rank], 0, 1, &work));
}

static void never_sent_and_cancelled(rank_t *self)
{
    dscomm_work_t *work;
    int32_t x;

    CHECK(self, !irecv_one(self->world, &x, 0, 1, &work));
    CHECK(self, !dscomm_work_cancel(work));
    FAILS(self, DSCOMM_ERR_CANCELLED, "was cancelled", dscomm_work_test(work));
    dscomm_work_free(work);
}

static void count_warnings(dscomm_log_level_t level, const char *domain,
                           const char *message, void *arg)
{
    (void)level, (void)domain;
    *(int *)arg += strstr(message, "incomplete work") != NULL;
}

/* Finalize warns about an incomplete receive, but not about a cancelled one. */
static void test_warnings(void)
{
    int warnings = 0;

    dscomm_log_set_handler(count_warnings, &warnings);
    ranks_run(1, 10000, never_sent, "a receive of what is never sent");
    is_int(warnings, 1, "finalize warns of it");
    ranks_run(1, 10000, never_sent_and_cancelled, "it is cancelled");
    is_int(warnings, 1, "finalize says nothing");
    dscomm_log_set_handler(NULL, NULL);
}

enum { BY_TEST, BY_SHORT_WAITS, BY_WAIT_ANY, BY_WAIT_ALL, POLLS };

static dscomm_status_t poll_once(dscomm_work_t *work, int how)
{
    size_t index;

    if (how == BY_TEST)
        return dscomm_work_test(work);
    if (how == BY_SHORT_WAITS)
        return dscomm_work_wait(work, 1);
    if (how == BY_WAIT_ANY)
        return dscomm_work_wait_any(&work, 1, 0, &index);
    return dscomm_work_wait_all(&work, 1, 0);
}

/* The group's deadline applies to a work that is tested and never waited for.
 * Time that the program spends between two tests does not count. */
static void polled(rank_t *self, int how)
{
    dscomm_status_t status = DSCOMM_IN_PROGRESS;
    dscomm_work_t *work;
    dscomm_group_t *group = split_all(self, 300);
    double start;
    int x;

    CHECK(self, !irecv_one(group, &x, 0, 1, &work));
    CHECK(self, poll_once(work, how) == DSCOMM_IN_PROGRESS);
    usleep(500000);
    start = now_ms();
    CHECK(self, poll_once(work, how) == DSCOMM_IN_PROGRESS);
    while (status == DSCOMM_IN_PROGRESS && now_ms() - start < 8000) {
        usleep(500);
        status = poll_once(work, how);
    }
    FAILS(self, DSCOMM_ERR_TIMEOUT, " 300 ms", status);
    CHECK(self, now_ms() - start > 100);
    CHECK(self, dscomm_group_status(group) == DSCOMM_ERR_TIMEOUT);
    dscomm_work_free(work);
    CHECK(self, !dscomm_group_free(group));
}

static void polled_in_all_ways(rank_t *self)
{
    for (int how = 0; how < POLLS; how++)
        polled(self, how);
}

/* A collective with a deadline of its own, long before the group's. */
static void own_deadline(rank_t *self)
{
    dscomm_group_t *group = split_all(self, 60000);
    const double start = now_ms();
    int32_t in = 1, out = 0;
    dscomm_work_t *work;

    if (self->rank == 0) {
        CHECK(self, !sum_one(group, &in, &out, &work));
        FAILS(self, DSCOMM_ERR_INVALID, "timeout_ms is 0",
              dscomm_work_set_timeout(work, 0));
        CHECK(self, !dscomm_work_set_timeout(work, DSCOMM_TIMEOUT_DEFAULT));
        CHECK(self, !dscomm_work_set_timeout(work, 300));
        FAILS(self, DSCOMM_ERR_TIMEOUT, " 300 ms", dscomm_work_wait(work, -1));
        CHECK(self, now_ms() - start > 250);
        dscomm_work_free(work);
    }
    while (dscomm_group_status(group) == DSCOMM_OK && now_ms() - start < 30000)
        usleep(1000);
    CHECK(self, dscomm_group_status(group) == DSCOMM_ERR_TIMEOUT);
    CHECK(self, !dscomm_group_free(group));
}

/* Coalesced calls have the deadline of their work: a short one in a patient
 * group ends that, a long one outlives the deadline of a short group. */
static void own_deadline_of_all(rank_t *self)
{
    static const struct {
        int group_ms, own_ms;
        dscomm_status_t want;
    } rows[] = {{60000, 300, DSCOMM_ERR_TIMEOUT}, {300, 60000, DSCOMM_OK}};

    for (int i = 0; i < 2; i++) {
        dscomm_group_t *group = split_all(self, rows[i].group_ms);
        int32_t in = 1, out[2] = {0};
        dscomm_work_t *work = NULL;

        if (self->rank > 0 && rows[i].want == DSCOMM_OK)
            usleep(1500000);
        if (self->rank == 0 || rows[i].want == DSCOMM_OK) {
            CHECK(self, !dscomm_coalesce_begin(group));
            CHECK(self, !sum_one(group, &in, &out[0], NULL));
            CHECK(self, !sum_one(group, &in, &out[1], NULL));
            CHECK(self, !dscomm_coalesce_end(group, &work));
            CHECK(self, !dscomm_work_set_timeout(work, rows[i].own_ms));
            FINISH(self, work, rows[i].want);
        }
        while (rows[i].want < 0 && dscomm_group_status(group) == DSCOMM_OK)
            usleep(1000);
        CHECK(self, !dscomm_group_free(group));
    }
}

/* No rank waits or tests: the progress thread detects that the deadline has
 * passed. */
static void untested(rank_t *self)
{
    const double start = now_ms();
    dscomm_work_t *work;
    dscomm_group_t *group = split_all(self, 300);
    int x;

    CHECK(self, !irecv_one(group, &x, 0, 1, &work));
    while (dscomm_group_status(group) == DSCOMM_OK && now_ms() - start < 8000)
        usleep(1000);
    CHECK(self, dscomm_group_status(group) == DSCOMM_ERR_TIMEOUT);
    CHECK(self, now_ms() - start > 250);
    FAILS(self, DSCOMM_ERR_TIMEOUT, " 300 ms", dscomm_work_test(work));
    dscomm_work_free(work);
    CHECK(self, !dscomm_group_free(group));
}

/* Works end with their group, and their handles stay valid. */
static void freed_group(rank_t *self)
{
    dscomm_work_t *work;
    dscomm_group_t *group = split_all(self, 0);
    int x;

    CHECK(self, !irecv_one(group, &x, 0, 1, &work));
    CHECK(self, !dscomm_group_free(group));
    FAILS(self, DSCOMM_ERR_ABORTED, "was freed", dscomm_work_wait(work, -1));
    CHECK(self, dscomm_work_group(work) == NULL);
    dscomm_work_free(work);
}

static void any_of(rank_t *self)
{
    dscomm_group_t *group = split_all(self, 0);
    dscomm_work_t *works[3] = {NULL, NULL, NULL};
    size_t index = 9;
    int x, y = 1;

    CHECK(self, !irecv_one(self->world, &x, DSCOMM_ANY_SOURCE, 1, &works[0]));
    CHECK(self, !irecv_one(group, &x, DSCOMM_ANY_SOURCE, 1, &works[2]));
    CHECK(self,
          dscomm_work_wait_any(works, 3, 0, &index) == DSCOMM_IN_PROGRESS);
    CHECK(self,
          dscomm_work_wait_any(works, 3, 10, &index) == DSCOMM_IN_PROGRESS);
    CHECK(self, dscomm_work_wait_all(works, 3, 10) == DSCOMM_IN_PROGRESS);
    CHECK(self, index == 9);
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, !send_one(group, &y, self->rank ^ 1, 1));
    CHECK(self, !dscomm_work_wait_any(works, 3, -1, &index) && index == 2);
    CHECK(self, !dscomm_barrier(group, NULL));
    CHECK(self, !send_one(self->world, &y, self->rank ^ 1, 1));
    CHECK(self, !dscomm_work_wait_all(works, 3, -1));
    dscomm_work_free(works[0]);
    dscomm_work_free(works[2]);
    CHECK(self, !dscomm_group_free(group));
}

/* One of two threads in a rank, with its own group. */
typedef struct {
    rank_t *rank;
    dscomm_group_t *group;
} user_t;

static void *use_group(void *arg)
{
    user_t *user = arg;
    rank_t *self = user->rank;
    dscomm_work_t *works[3];
    int32_t in[3], out[3];

    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 3; k++) {
            in[k] = i + k;
            CHECK(self, !sum_one(user->group, &in[k], &out[k], &works[k]));
        }
        if (i % 3 == 0)
            CHECK(self, !dscomm_barrier(user->group, NULL));
        CHECK(self, !dscomm_work_wait_all(works, 3, -1));
        for (int k = 0; k < 3; k++) {
            CHECK(self, out[k] == self->size * (i + k));
            dscomm_work_free(works[k]);
        }
    }
    return NULL;
}

static void two_threads(rank_t *self)
{
    user_t users[2];
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        users[i].rank = self;
        users[i].group = split_all(self, 0);
    }
    pthread_create(&thread, NULL, use_group, &users[1]);
    use_group(&users[0]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++)
        CHECK(self, !dscomm_group_free(users[i].group));
}

/* Ranks wait in different orders, each for a different group first; this works
 * only because all groups make progress. */
static void crosswise(rank_t *self)
{
    dscomm_group_t *groups[2];
    dscomm_work_t *works[2];

    for (int i = 0; i < 2; i++)
        groups[i] = split_all(self, 0);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 2; i++) {
            int k = self->rank % 2 ? 1 - i : i;

            CHECK(self, !dscomm_barrier(groups[k], &works[k]));
        }
        for (int i = 0; i < 2; i++) {
            int k = self->rank % 2 ? i : 1 - i;

            FINISH(self, works[k], DSCOMM_OK);
        }
    }
    for (int i = 0; i < 2; i++)
        CHECK(self, !dscomm_group_free(groups[i]));
}

/* No rank waits: the progress thread completes the work. */
static void progress_thread(rank_t *self)
{
    static int done[RANKS_MAX];
    dscomm_work_t *work;
    int x = 1, y = 0;

    CHECK(self, !sum_one(self->world, &x, &y, &work));
    usleep(50000);
    done[self->rank] = dscomm_work_wait(work, 2000);
    CHECK(self, done[self->rank] == DSCOMM_OK && y == self->size);
    dscomm_work_free(work);
    two_threads(self);
}

/* The group of one rank: messages to oneself. */
static void alone(rank_t *self)
{
    dscomm_group_t *group;
    dscomm_work_t *send, *recv;
    int x = 41, y = 0, z = 0, source, pair[2] = {1, 2};
    size_t bytes;

    CHECK(self, !dscomm_group_split(self->world, self->rank, 0, NULL, &group));
    CHECK(self, recv_one(group, &y, 0, 1) == DSCOMM_ERR_STATE);
    CHECK(self, send_one(group, &x, 0, 1) == DSCOMM_ERR_STATE);
    CHECK(self,
          !irecv_one(group, &y, DSCOMM_ANY_SOURCE, DSCOMM_ANY_TAG, &recv));
    CHECK(self, dscomm_work_test(recv) == DSCOMM_IN_PROGRESS);
    CHECK(self, !send_one(group, &x, 0, 3));
    CHECK(self, !dscomm_work_test(recv) && y == 41);
    dscomm_work_free(recv);
    CHECK(self, !dscomm_isend(group, &x, 1, DSCOMM_INT32, 0, 4, &send));
    CHECK(self, dscomm_work_test(send) == DSCOMM_IN_PROGRESS);
    CHECK(self,
          !dscomm_recv(group, &z, 1, DSCOMM_INT32, 0, 4, &source, &bytes));
    CHECK(self, z == 41 && source == 0 && bytes == 4);
    FINISH(self, send, DSCOMM_OK);
    CHECK(self, !irecv_one(group, &y, 0, 5, &recv));
    CHECK(self, !dscomm_send(group, pair, 2, DSCOMM_INT32, 0, 5));
    CHECK(self, !dscomm_group_free(group));
    FAILS(self, DSCOMM_ERR_TRUNCATED, "message of 8 bytes",
          dscomm_work_test(recv));
    dscomm_work_free(recv);
}

int main(void)
{
    ranks_use_modules();
    ranks_run(3, 10000, several_in_order, "works start in order");
    ranks_run(3, 10000, wait_a_little, "a wait that is too short");
    ranks_run(3, 10000, packed, "packed displacements are kept");
    ranks_run(4, 10000, messages, "messages");
    ranks_run(3, 10000, zombies, "freed works go on");
    ranks_run(2, 10000, disturbed, "a wait that takes too long");
    ranks_run(2, 10000, expire, "the group's deadline");
    /* for the watchdog, time between two tests counts */
    setenv("DSCOMM_WATCHDOG", "no", 1);
    ranks_run(2, 60000, own_deadline, "a collective's own deadline");
    ranks_run(2, 60000, own_deadline_of_all, "coalesced calls' own deadline");
    ranks_run(1, 10000, polled_in_all_ways, "the deadline of polled works");
    unsetenv("DSCOMM_WATCHDOG");
    ranks_run(2, 10000, not_cancelled, "a backend that cannot cancel");
    ranks_run(2, 10000, freed_group, "works of a freed group");
    ranks_run(2, 10000, any_of, "waiting for any and for all");
    ranks_run(3, 20000, two_threads, "two threads, two groups");
    ranks_run(4, 20000, crosswise, "waits in different orders");
    ranks_run(2, 10000, alone, "messages to oneself");
    test_warnings();
    setenv("DSCOMM_PROGRESS", "thread", 1);
    ranks_run(3, 20000, progress_thread, "the progress thread");
    ranks_run(1, 10000, untested,
              "the deadline of untested works beside the progress thread");
    return tap_done();
}
