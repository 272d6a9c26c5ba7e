/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining and leaving: attributes, environment, ranks that do not come or do
 * not agree, forks. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <stdatomic.h>
#include <sys/wait.h>

static dscomm_status_t init_with(const char *backend, const char *method,
                                 int rank, int size)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world = NULL;
    dscomm_status_t status;

    attr.backend = backend;
    attr.init_method = method;
    attr.has_rank = size != 0;
    attr.rank = rank;
    attr.world_size = size;
    attr.timeout_ms = 300;
    status = dscomm_init(&attr, &world);
    if (status == DSCOMM_OK)
        dscomm_finalize(world);
    else if (world)
        ok(0, "the world is not written on failure");
    return status;
}

static void check_refusals(void)
{
    static const struct {
        const char *backend, *method;
        int rank, size;
        dscomm_status_t status;
        const char *words;
    } rows[] = {
        {"teleport", NULL, 0, 1, DSCOMM_ERR_NO_BACKEND, "'teleport'"},
        {NULL, "smoke://signals", 0, 1, DSCOMM_ERR_INVALID, "no such method"},
        {NULL, "tcp://h:1?rank=1", 0, 0, DSCOMM_ERR_INVALID, "go together"},
        {NULL, "tcp://h:1?rank=a&world_size=2", 0, 0, DSCOMM_ERR_INVALID,
         "whole numbers"},
        {NULL, "tcp://h:1?rank=0&world_size=2", 0, 2, DSCOMM_ERR_INVALID,
         "leave one out"},
        {NULL, "env://", 2, 2, DSCOMM_ERR_INVALID, "rank 2 of a world of 2"},
        {NULL, "env://", -1, 2, DSCOMM_ERR_INVALID, "rank -1"},
        {NULL, "env://", 0, -2, DSCOMM_ERR_INVALID, "-2 ranks"},
        {NULL, "env://", 1, 2, DSCOMM_ERR_ENVIRONMENT, "MASTER_ADDR"},
        {NULL, "env://", 0, 1048577, DSCOMM_ERR_INVALID, "at most 1048576"},
        {NULL, "tcp://h:1?rank=0&world_size=2147483647", 0, 0,
         DSCOMM_ERR_INVALID, "at most 1048576"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        is_int(init_with(rows[i].backend, rows[i].method, rows[i].rank,
                         rows[i].size),
               rows[i].status, "init row %zu is refused", i);
        ok(strstr(dscomm_last_error(), rows[i].words) != NULL,
           "  says \"%s\": %s", rows[i].words, dscomm_last_error());
    }
}

static void check_attr(void)
{
    struct {
        dscomm_init_attr_t attr;
        int more;
    } newer = {DSCOMM_INIT_ATTR_INIT, 0};
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;

    newer.attr.size = sizeof newer;
    is_int(dscomm_init(&newer.attr, &world), DSCOMM_OK,
           "a newer caller's attributes, not used");
    is_int(dscomm_finalize(world), DSCOMM_OK, "finalize");
    newer.more = 1;
    is_int(dscomm_init(&newer.attr, &world), DSCOMM_ERR_INVALID,
           "a newer caller's attributes, used");
    ok(strstr(dscomm_last_error(), "does not know") != NULL, "says so");
    attr.size = offsetof(dscomm_init_attr_t, timeout_ms);
    attr.timeout_ms = -77;
    is_int(dscomm_init(&attr, &world), DSCOMM_OK,
           "an older caller's attributes");
    is_int(dscomm_finalize(world), DSCOMM_OK, "finalize");
    attr.size = 2;
    is_int(dscomm_init(&attr, &world), DSCOMM_ERR_INVALID, "size 2");
    attr.size = sizeof attr;
    is_int(dscomm_init(&attr, &world), DSCOMM_ERR_INVALID, "timeout_ms -77");
    is_int(dscomm_init(NULL, NULL), DSCOMM_ERR_INVALID, "no ret_world");
    attr.timeout_ms = 0;
    attr.world_size = 2;
    is_int(dscomm_init(&attr, &world), DSCOMM_ERR_INVALID,
           "a world_size without has_rank");
    ok(strstr(dscomm_last_error(), "set it to 1") != NULL, "says so");
}

static void check_alone(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world, *second;

    attr.name = "solo";
    attr.timeout_ms = 4321;
    is_int(dscomm_init(&attr, &world), DSCOMM_OK, "no launcher: one rank");
    is_int(dscomm_group_size(world), 1, "size");
    is_str(dscomm_group_name(world), "solo", "name");
    is_str(dscomm_group_backend(world), "self", "backend");
    is_int(dscomm_group_timeout(world), 4321, "time-out");
    is_int(dscomm_init(NULL, &second), DSCOMM_OK, "a second world");
    is_int(dscomm_group_timeout(second), 1800000, "its time-out is default");
    is_int(dscomm_finalize(world), DSCOMM_OK, "the first is finalized");
    is_int(dscomm_barrier(second, NULL), DSCOMM_OK, "the second goes on");
    is_int(dscomm_finalize(second), DSCOMM_OK, "the second is finalized");
    is_int(dscomm_finalize(second), DSCOMM_ERR_STATE, "but not twice");
    is_int(dscomm_finalize(NULL), DSCOMM_OK, "NULL is fine");
}

static void check_environment(void)
{
    dscomm_group_t *world;

    setenv("DSCOMM_TIMEOUT", "2.5", 1);
    if (is_int(dscomm_init(NULL, &world), DSCOMM_OK, "DSCOMM_TIMEOUT")) {
        is_int(dscomm_group_timeout(world), 2500, "is the time-out");
        dscomm_finalize(world);
    }
    setenv("DSCOMM_TIMEOUT", "soon", 1);
    is_int(dscomm_init(NULL, &world), DSCOMM_ERR_ENVIRONMENT,
           "a bad value is an error");
    ok(strstr(dscomm_last_error(), "DSCOMM_TIMEOUT") != NULL, "that names it");
    unsetenv("DSCOMM_TIMEOUT");
}

static void keep_line(dscomm_log_level_t level, const char *domain,
                      const char *message, void *arg)
{
    (void)level, (void)domain;
    snprintf(arg, 256, "%s", message);
}

/* Must come first: the check is made once a process. */
static void check_unknown_variable(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;
    char line[256] = "";

    setenv("DSCOMM_BACKND", "shm", 1);
    dscomm_log_set_levels("warn");
    dscomm_log_set_handler(keep_line, line);
    attr.backend = "self";
    is_int(dscomm_init(&attr, &world), DSCOMM_OK,
           "an unknown variable is no error");
    is_str(line,
           "DSCOMM_BACKND is no setting and has no effect; is DSCOMM_BACKEND "
           "meant?",
           "but a warning, also where there is one rank and one backend");
    dscomm_finalize(world);
    dscomm_log_set_handler(NULL, NULL);
    unsetenv("DSCOMM_BACKND");
}

/* A thread that joins a world, and its result. */
typedef struct joiner {
    dscomm_init_attr_t attr;
    const struct joiner *until; /* finalizes after this one has ended */
    dscomm_status_t status;
    char text[512];
    atomic_int ended;
} joiner_t;

static void *join(void *arg)
{
    joiner_t *joiner = arg;
    dscomm_group_t *world;

    joiner->status = dscomm_init(&joiner->attr, &world);
    while (joiner->status == DSCOMM_OK && joiner->until &&
           !joiner->until->ended)
        usleep(1000);
    if (joiner->status == DSCOMM_OK)
        joiner->status = dscomm_finalize(world);
    if (joiner->status < 0)
        snprintf(joiner->text, sizeof joiner->text, "%s", dscomm_last_error());
    joiner->ended = 1;
    return NULL;
}

static void prepare(joiner_t *joiners, int count, dscomm_store_t *store)
{
    for (int i = 0; i < count; i++) {
        joiners[i] = (joiner_t){.attr = DSCOMM_INIT_ATTR_INIT};
        joiners[i].attr.backend = "thread";
        joiners[i].attr.store = store;
        joiners[i].attr.has_rank = 1;
        joiners[i].attr.rank = i;
        joiners[i].attr.world_size = count;
        joiners[i].attr.timeout_ms = 5000;
    }
}

static void run(joiner_t *joiners, int count)
{
    pthread_t threads[8];

    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, join, &joiners[i]);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void all_fail(const joiner_t *joiners, int count, dscomm_status_t want,
                     const char *words, const char *what)
{
    for (int i = 0; i < count; i++) {
        is_int(joiners[i].status, want, "%s: rank %d fails", what,
               joiners[i].attr.rank);
        ok(strstr(joiners[i].text, words) != NULL, "  says \"%s\": %s", words,
           joiners[i].text);
    }
}

/* Runs joiners with a new store. */
static void run_fresh(joiner_t *joiners, int count)
{
    dscomm_store_t *store;

    dscomm_store_open("memory://", NULL, &store);
    for (int i = 0; i < count; i++)
        joiners[i].attr.store = store;
    run(joiners, count);
    dscomm_store_close(store);
}

static void check_missing(void)
{
    joiner_t joiners[4];

    prepare(joiners, 4, NULL);
    for (int i = 0; i < 4; i++)
        joiners[i].attr.timeout_ms = 300;
    joiners[1].attr.rank = 2;
    joiners[2].attr.rank = 0;
    run_fresh(&joiners[1], 2);
    all_fail(&joiners[1], 2, DSCOMM_ERR_TIMEOUT,
             "ranks 1, 3 of 4 did not come within 0.3 s", "two are missing");
    run_fresh(&joiners[1], 1);
    all_fail(&joiners[1], 1, DSCOMM_ERR_TIMEOUT, "ranks 0, 1, 3 of 4",
             "rank 0 is missing too");
}

/* All in one store: a world that has failed does not affect the next one. */
static void check_disagreement(void)
{
    dscomm_store_t *store;
    joiner_t joiners[3];

    dscomm_store_open("memory://", NULL, &store);
    prepare(joiners, 3, store);
    joiners[2].attr.world_size = 5;
    run(joiners, 3);
    all_fail(joiners, 3, DSCOMM_ERR_MISMATCH, "rank 2 on", "sizes differ");
    prepare(joiners, 3, store);
    joiners[0].attr.world_size = 5;
    run(joiners, 3);
    all_fail(joiners, 3, DSCOMM_ERR_MISMATCH, "rank 0 was told of 5 ranks",
             "rank 0's size is larger");
    prepare(joiners, 3, store);
    joiners[0].attr.world_size = joiners[1].attr.world_size = 2;
    joiners[0].until = joiners[1].until = &joiners[2];
    run(joiners, 3);
    is_int(joiners[1].status, DSCOMM_OK, "two make a world");
    all_fail(&joiners[2], 1, DSCOMM_ERR_MISMATCH,
             "rank 0 was told of 2 ranks, rank 2 of 3", "a third");
    prepare(joiners, 3, store);
    joiners[1].attr.backend = "auto";
    run(joiners, 3);
    all_fail(joiners, 3, DSCOMM_ERR_MISMATCH, "rank 1 on", "backends differ");
    prepare(joiners, 3, store);
    for (int i = 0; i < 3; i++)
        joiners[i].attr.backend = "teleport";
    run(joiners, 3);
    all_fail(joiners, 3, DSCOMM_ERR_NO_BACKEND, "no backend 'teleport'",
             "no such backend");
    prepare(joiners, 3, store);
    for (int i = 0; i < 3; i++)
        joiners[i].attr.backend = "self";
    run(joiners, 3);
    all_fail(joiners, 3, DSCOMM_ERR_NO_BACKEND, "one rank only",
             "a backend for one");
    prepare(joiners, 3, store);
    run(joiners, 3);
    for (int i = 0; i < 3; i++)
        is_int(joiners[i].status, DSCOMM_OK,
               "after all that rank %d joins in the same store", i);
    dscomm_store_close(store);
}

/* In the child, the parent's world cannot be used, and does no harm. */
static int in_child(dscomm_group_t *world)
{
    dscomm_group_t *own;
    int x = 1, y;

    if (sum_one(world, &x, &y, NULL) != DSCOMM_ERR_STATE ||
        !strstr(dscomm_last_error(), "forked"))
        return 1;
    if (dscomm_group_free(world) != DSCOMM_ERR_STATE)
        return 2;
    if (dscomm_finalize(world) != DSCOMM_OK)
        return 3;
    if (dscomm_init(NULL, &own) != DSCOMM_OK)
        return 4;
    if (dscomm_barrier(own, NULL) != DSCOMM_OK)
        return 5;
    return dscomm_finalize(own) == DSCOMM_OK ? 0 : 6;
}

static void check_fork(void)
{
    dscomm_group_t *world;
    dscomm_work_t *work;
    int status = -1, x;
    pid_t child;

    dscomm_init(NULL, &world);
    irecv_one(world, &x, 0, 1, &work);
    child = fork();
    if (child == 0)
        _exit(in_child(world));
    waitpid(child, &status, 0);
    is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
           "a forked child loses its world cleanly");
    is_int(dscomm_barrier(world, NULL), DSCOMM_OK, "the parent keeps it");
    is_int(dscomm_work_test(work), DSCOMM_IN_PROGRESS, "and its works");
    is_int(dscomm_finalize(world), DSCOMM_OK,
           "finalize cancels what is left, and frees it");
}

/* A log handler that blocks its thread until it is released. */
typedef struct {
    atomic_int entered, go_on;
} stall_t;

static void stall(dscomm_log_level_t level, const char *domain,
                  const char *message, void *arg)
{
    stall_t *self = arg;

    (void)level, (void)domain, (void)message;
    atomic_store(&self->entered, 1);
    while (!atomic_load(&self->go_on))
        usleep(1000);
}

static void *join_alone(void *arg)
{
    dscomm_group_t *world;

    if (dscomm_init(NULL, &world) == DSCOMM_OK)
        dscomm_finalize(world);
    return arg;
}

static void check_fork_while_logging(void)
{
    stall_t self = {0};
    pthread_t thread;
    pid_t child;
    int status = -1;

    dscomm_log_set_levels("debug");
    dscomm_log_set_handler(stall, &self);
    pthread_create(&thread, NULL, join_alone, NULL);
    while (!atomic_load(&self.entered))
        usleep(1000);
    child = fork();
    if (child == 0) {
        alarm(20);
        dscomm_log_set_handler(NULL, NULL);
        dscomm_log_set_levels("error");
        _exit(0);
    }
    waitpid(child, &status, 0);
    atomic_store(&self.go_on, 1);
    pthread_join(thread, NULL);
    dscomm_log_set_handler(NULL, NULL);
    dscomm_log_set_levels("error");
    is_int(status, 0, "a fork while another thread logs");
}

static void *come_and_go(void *arg)
{
    for (int i = 0; i < 500; i++) {
        dscomm_group_t *world;

        if (dscomm_init(NULL, &world) < 0 || dscomm_finalize(world) < 0)
            return arg;
    }
    return NULL;
}

/* The progress thread ends with its last user while the next one begins. */
static void check_progress_thread(void)
{
    pthread_t threads[3];
    int failed = 0;

    setenv("DSCOMM_PROGRESS", "thread", 1);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, come_and_go, &failed);
    for (int i = 0; i < 3; i++) {
        void *result;

        pthread_join(threads[i], &result);
        failed += result != NULL;
    }
    is_int(failed, 0, "threads come and go, each with a progress thread");
    unsetenv("DSCOMM_PROGRESS");
}

static void many_worlds(rank_t *self)
{
    CHECK(self, !dscomm_barrier(self->world, NULL));
}

int main(void)
{
    ranks_use_modules();
    check_unknown_variable();
    dscomm_log_set_levels("error");
    check_refusals();
    check_attr();
    check_alone();
    check_environment();
    check_missing();
    check_disagreement();
    check_fork();
    check_fork_while_logging();
    check_progress_thread();
    for (int size = 1; size <= 8; size *= 2)
        ranks_run(size, 10000, many_worlds, "a world");
    return tap_done();
}
