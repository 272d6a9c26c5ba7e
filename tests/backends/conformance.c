/* SPDX-License-Identifier: BSD-3-Clause */
/* The conformance suite: runs as N ranks under any launcher, and checks a
 * backend against the public headers. Arguments name areas; without arguments
 * all areas run. */
#include "config.h"

#include "tests/backends/conform.h"
#include "tests/tap.h"

#include <pthread.h>
#include <time.h>

#define SENTENCES_MAX 6

conform_t my;

static dscomm_group_t *outcomes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int failures;
static const char *skipped;

static const conform_area_t *const areas[] = {
    &conform_access,   &conform_collectives, &conform_reductions,
    &conform_numbers,  &conform_variants,    &conform_p2p,
    &conform_matching, &conform_groups,      &conform_works,
    &conform_memory,   &conform_coalescing,  &conform_blobs,
    &conform_hooks,    &conform_threads,     &conform_arguments,
    &conform_stress,   &conform_crowd,       &conform_aborted,
    &conform_receives, &conform_operators,   &conform_events,
    &conform_failures,
};

static void complain(const char *text, const char *sentence)
{
    pthread_mutex_lock(&lock);
    if (++failures <= SENTENCES_MAX)
        fprintf(stderr, "# rank %d of %d: %s%s%s\n", my.rank, my.ranks, text,
                *sentence ? ": " : "", sentence);
    pthread_mutex_unlock(&lock);
}

int check(int cond, const char *format, ...)
{
    char text[512];
    va_list args;

    if (cond)
        return 1;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    complain(text, "");
    return 0;
}

int check_status(dscomm_status_t got, dscomm_status_t want, const char *format,
                 ...)
{
    char text[512];
    va_list args;
    size_t length;

    if (got == want)
        return 1;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    length = strlen(text);
    snprintf(text + length, sizeof text - length, " is %s, want %s",
             dscomm_status_name(got), dscomm_status_name(want));
    complain(text, got < 0 ? dscomm_last_error() : "");
    return 0;
}

int check_sentence(const char *text, const char *what)
{
    const char *sentence = dscomm_last_error();

    return check(strstr(sentence, text) != NULL,
                 "%s: the sentence lacks \"%s\": \"%s\"", what, text, sentence);
}

void conform_skip(const char *reason)
{
    skipped = reason;
}

size_t conform_scale(size_t count)
{
    return my.ranks > 8 && count > 5000 ? 5000 : count;
}

void conform_pause(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

double conform_now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

void conform_finish(dscomm_work_t **works, size_t count)
{
    CHECK_OK(dscomm_work_wait_all(works, count, DSCOMM_TIMEOUT_DEFAULT));
    for (size_t i = 0; i < count; i++)
        dscomm_work_free(works[i]);
}

#define NOTICE_TAG 77

void conform_notify(int rank)
{
    CHECK_OK(dscomm_send(my.world, NULL, 0, DSCOMM_INT32, rank, NOTICE_TAG));
}

void conform_await(int rank)
{
    CHECK_OK(dscomm_recv(my.world, NULL, 0, DSCOMM_INT32, rank, NOTICE_TAG,
                         NULL, NULL));
}

int conform_agree(int outcome)
{
    int32_t mine = outcome, all = 0;
    dscomm_status_t status = dscomm_all_reduce(outcomes, &mine, &all, 1,
                                               DSCOMM_INT32, DSCOMM_MIN, NULL);

    if (status < 0)
        bail("rank %d: outcomes cannot be collected: %s", my.rank,
             dscomm_last_error());
    return all;
}

dscomm_group_t *conform_group_within(int *timeout_ms)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL;
    dscomm_status_t status;

    for (;;) {
        attr.timeout_ms = *timeout_ms;
        status = dscomm_group_split(my.group, 0, 0, &attr, &group);
        if (conform_agree(status != DSCOMM_ERR_TIMEOUT) || *timeout_ms > 5000)
            break;
        dscomm_group_free(group);
        group = NULL;
        *timeout_ms *= 4;
    }
    check_status(status, DSCOMM_OK, "a group with a deadline of %d ms",
                 *timeout_ms);
    return group;
}

/* test, or one case. */
static void run_test(const conform_area_t *area, const conform_test_t *test,
                     const conform_case_t *one)
{
    const char *name = one ? one->name : test->name;
    dscomm_status_t status;
    int all;

    failures = 0;
    skipped = NULL;
    status = dscomm_group_split(my.world, 0, 0, NULL, &my.group);
    if (status < 0)
        bail("rank %d: no group for the next test: %s", my.rank,
             dscomm_last_error());
    if (one)
        one->run(one->arg);
    else
        test->run();
    all = conform_agree(failures == 0);
    if (my.rank == 0 && skipped && all)
        skip("%s: %s: %s", area->name, name, skipped);
    else if (my.rank == 0)
        ok(all, "%s: %s", area->name, name);
    dscomm_group_free(my.group);
    my.group = NULL;
}

static void run_area(const conform_area_t *area)
{
    for (const conform_case_t *one = area->cases; one && one->name; one++)
        run_test(area, NULL, one);
    for (const conform_test_t *test = area->tests; test->name; test++)
        run_test(area, test, NULL);
}

/* Fails on one rank on purpose: the wrapper checks that the failure is
 * detected. */
static void fail_on_last_rank(void)
{
    check(my.rank != my.ranks - 1, "rank %d fails on purpose", my.rank);
}

static const conform_test_t must_fail_tests[] = {
    {"one rank fails on purpose", fail_on_last_rank}, {NULL, NULL}};
static const conform_area_t must_fail = {"must_fail", NULL, must_fail_tests};

static void run_named(const char *name)
{
    if (strcmp(name, must_fail.name) == 0) {
        run_area(&must_fail);
        return;
    }
    for (size_t i = 0; i < CONFORM_LENGTH(areas); i++) {
        if (strcmp(areas[i]->name, name) == 0) {
            run_area(areas[i]);
            return;
        }
    }
    bail("there is no area \"%s\"", name);
}

static void start(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

    if (!getenv("DSCOMM_TIMEOUT"))
        attr.timeout_ms = 20000;
    if (dscomm_init(&attr, &my.world) < 0)
        bail("dscomm_init: %s", dscomm_last_error());
    my.rank = dscomm_group_rank(my.world);
    my.ranks = dscomm_group_size(my.world);
    if (dscomm_group_split(my.world, 0, 0, NULL, &outcomes) < 0)
        bail("dscomm_group_split: %s", dscomm_last_error());
    if (my.rank == 0)
        printf("# backend %s, %d ranks\n", dscomm_group_backend(my.world),
               my.ranks);
}

static int finish(void)
{
    dscomm_status_t status;

    status = dscomm_group_free(outcomes);
    if (status == DSCOMM_OK)
        status = dscomm_finalize(my.world);
    if (status < 0)
        fprintf(stderr, "# rank %d: end: %s\n", my.rank, dscomm_last_error());
    if (my.rank == 0)
        ok(status == DSCOMM_OK, "the world ends in order");
    return (my.rank == 0 && tap_done() != 0) || status < 0;
}

int main(int argc, char **argv)
{
    start();
    for (int i = 1; i < argc; i++)
        run_named(argv[i]);
    for (size_t i = 0; argc == 1 && i < CONFORM_LENGTH(areas); i++)
        run_area(areas[i]);
    return finish();
}
