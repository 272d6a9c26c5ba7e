/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm_init() with DSCOMM_BIND: which processors this process has after it. A
 * process is bound once, so each case is a child. Needs two processors. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static int first, last; /* processors that may be used */

/* A case ends with the first that is not so. */
#define REQUIRE(condition_)                                                    \
    do {                                                                       \
        if (!(condition_)) {                                                   \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition_);   \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static cpu_set_t own_set(void)
{
    cpu_set_t set;

    REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
    return set;
}

/* Whether this thread may use this processor and no other one. */
static bool is_on(int processor)
{
    cpu_set_t set = own_set();

    return CPU_COUNT(&set) == 1 && CPU_ISSET(processor, &set);
}

static void bind_thread(int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
}

static void set_bind(const char *prefix, int processor)
{
    char text[32];

    snprintf(text, sizeof text, "%s%d", prefix, processor);
    setenv("DSCOMM_BIND", text, 1);
}

static dscomm_status_t init_world(void)
{
    dscomm_group_t *world;
    dscomm_status_t status = dscomm_init(NULL, &world);

    if (status == DSCOMM_OK)
        REQUIRE(dscomm_finalize(world) == DSCOMM_OK);
    return status;
}

static void bind_to_list(void)
{
    cpu_set_t set = own_set();

    /* the launcher of this test may have bound it */
    set_bind(CPU_COUNT(&set) == sysconf(_SC_NPROCESSORS_ONLN) ? "" : "force:",
             last);
    REQUIRE(init_world() == DSCOMM_OK);
    REQUIRE(is_on(last));
    REQUIRE(getenv("OMP_NUM_THREADS") &&
            strcmp(getenv("OMP_NUM_THREADS"), "1") == 0);
}

static void keep_threads_of_openmp(void)
{
    setenv("OMP_NUM_THREADS", "7", 1);
    set_bind("force:", last);
    REQUIRE(init_world() == DSCOMM_OK);
    REQUIRE(is_on(last));
    REQUIRE(strcmp(getenv("OMP_NUM_THREADS"), "7") == 0);
}

static void bind_once(void)
{
    set_bind("force:", last);
    REQUIRE(init_world() == DSCOMM_OK);
    set_bind("force:", first);
    REQUIRE(init_world() == DSCOMM_OK);
    REQUIRE(is_on(last));
}

static void stay_unbound(void)
{
    const cpu_set_t before = own_set();
    cpu_set_t after;

    REQUIRE(init_world() == DSCOMM_OK);
    setenv("DSCOMM_BIND", "none", 1);
    REQUIRE(init_world() == DSCOMM_OK);
    after = own_set();
    REQUIRE(CPU_EQUAL(&before, &after));
    REQUIRE(!getenv("OMP_NUM_THREADS"));
}

static void keep_launchers(void)
{
    bind_thread(first);
    setenv("DSCOMM_BIND", "numa", 1);
    REQUIRE(init_world() == DSCOMM_OK);
    REQUIRE(is_on(first));
}

static void change_launchers(void)
{
    cpu_set_t set = own_set();

    bind_thread(first);
    set_bind("force:", last); /* outside the mask, which is kept */
    REQUIRE(init_world() == DSCOMM_OK);
    REQUIRE(is_on(first));
    REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
}

static void refuse_value(void)
{
    setenv("DSCOMM_BIND", "0-3,2", 1);
    REQUIRE(init_world() == DSCOMM_ERR_ENVIRONMENT);
    REQUIRE(strstr(dscomm_last_error(), "DSCOMM_BIND='0-3,2': a list"));
    /* a later world may still be bound */
    set_bind("force:", last);
    REQUIRE(init_world() == DSCOMM_OK);
    REQUIRE(is_on(last));
}

/* A rank of an unknown node goes on unbound. */
static void not_know_local_rank(void)
{
    const cpu_set_t before = own_set();
    cpu_set_t after;
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;

    attr.has_rank = 1;
    attr.rank = 0;
    attr.world_size = 2;
    attr.init_method = "tcp://127.0.0.1:1";
    attr.timeout_ms = 100;
    setenv("DSCOMM_BIND", "core", 1);
    REQUIRE(dscomm_init(&attr, &world) < 0);
    after = own_set();
    REQUIRE(CPU_EQUAL(&before, &after));
}

static pthread_barrier_t bound;
static bool is_moved, is_left;

static void *wait_moved(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&bound);
    pthread_barrier_wait(&bound);
    is_moved = is_on(last);
    return NULL;
}

static void *wait_left(void *arg)
{
    bind_thread(first);
    (void)arg;
    pthread_barrier_wait(&bound);
    pthread_barrier_wait(&bound);
    is_left = is_on(first);
    return NULL;
}

static void bind_threads(void)
{
    pthread_t moved, left;

    pthread_barrier_init(&bound, NULL, 3);
    REQUIRE(pthread_create(&moved, NULL, wait_moved, NULL) == 0);
    REQUIRE(pthread_create(&left, NULL, wait_left, NULL) == 0);
    pthread_barrier_wait(&bound);
    set_bind("force:", last);
    REQUIRE(init_world() == DSCOMM_OK);
    pthread_barrier_wait(&bound);
    pthread_join(moved, NULL);
    pthread_join(left, NULL);
    REQUIRE(is_on(last) && is_moved && is_left);
    REQUIRE(!getenv("OMP_NUM_THREADS"));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"a list", bind_to_list},
    {"OMP_NUM_THREADS that is set", keep_threads_of_openmp},
    {"the second world does not bind again", bind_once},
    {"unset, and none", stay_unbound},
    {"a launcher's mask is kept", keep_launchers},
    {"force: stays within the launcher's mask", change_launchers},
    {"a malformed list", refuse_value},
    {"an unknown local rank", not_know_local_rank},
    {"threads with the same mask only, and no variable beside them",
     bind_threads},
};

static bool case_passes(void (*run)(void))
{
    const pid_t child = fork();
    int status = 1;

    if (child == 0) {
        run();
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    cpu_set_t set = own_set();

    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET(i, &set))
            first = i;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            last = i;
    unsetenv("OMP_NUM_THREADS");
    unsetenv("DSCOMM_BIND");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (first == last)
            skip("%s: one processor", cases[i].name);
        else
            ok(case_passes(cases[i].run), "%s", cases[i].name);
    }
    return tap_done();
}
