/* SPDX-License-Identifier: BSD-3-Clause */
/* A campaign of kills or stops: a random rank is hit at a random moment of
 * start-up, of making groups, of a collective or of the end. Every survivor
 * must name that rank in time, and must not say of any other rank that it died.
 *
 *     campaign.t [kill|stop [ROUNDS [SEED [SETUP|all [PHASE|all]]]]]
 *
 * Without arguments: a few rounds of each, from a fixed seed. At the end the
 * latencies from the signal to the sentence are printed. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <regex.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#define RANKS 4
#define SAMPLES_MAX 65536
#define INIT_MS 5000 /* the deadline of start-up, and of a stop */
#define NOTICE_MS 2000 /* a survivor must have returned by then */

typedef struct {
    const char *name;
    const char *variables[3][2];
} setup_t;

static const setup_t setups[] = {
    {"natives", {{"DSCOMM_BACKEND", "shm"}}},
    {"schedules", {{"DSCOMM_BACKEND", "shm"}, {"DSCOMM_SHM_NATIVE", "0"}}},
    {"two_level",
     {{"DSCOMM_BACKEND", "two_level"}, {"DSCOMM_TWO_LEVEL_BETWEEN", "shm"}}},
};

typedef dscomm_status_t (*turn_t)(dscomm_group_t *world, int rank, int ranks);

/* kind: what the latency counts for. */
enum { CREATION, COLLECTIVE, KINDS };

typedef struct {
    const char *name;
    turn_t turn;
    int kind;
    unsigned window_us; /* the signal comes within this time after the start */
} phase_t;

static float in[20000], out[20000 * RANKS];

static dscomm_status_t turn_barrier(dscomm_group_t *world, int rank, int ranks)
{
    (void)rank;
    (void)ranks;
    return dscomm_barrier(world, NULL);
}

static dscomm_status_t turn_new(dscomm_group_t *world, int rank, int ranks)
{
    int list[RANKS];
    dscomm_group_t *group = NULL;
    dscomm_status_t status;

    (void)rank;
    /* The leader of the new group is the last rank. */
    for (int i = 0; i < ranks; i++)
        list[i] = ranks - 1 - i;
    status = dscomm_group_new(world, list, ranks, NULL, &group);
    if (status == DSCOMM_OK)
        dscomm_group_free(group);
    return status;
}

static dscomm_status_t turn_split(dscomm_group_t *world, int rank, int ranks)
{
    dscomm_group_t *group = NULL;
    dscomm_status_t status;

    (void)ranks;
    status = dscomm_group_split(world, rank / 2, 0, NULL, &group);
    if (status == DSCOMM_OK)
        dscomm_group_free(group);
    return status;
}

static dscomm_status_t turn_mesh(dscomm_group_t *world, int rank, int ranks)
{
    const int dims[2] = {2, ranks / 2};
    dscomm_group_t *groups[2];
    dscomm_status_t status = dscomm_group_mesh(world, dims, 2, groups);

    (void)rank;
    if (status < 0)
        return status;
    dscomm_group_free(groups[0]);
    dscomm_group_free(groups[1]);
    return DSCOMM_OK;
}

static dscomm_status_t turn_collective(dscomm_group_t *world, int rank,
                                       int ranks)
{
    static unsigned number;
    dscomm_status_t status;

    (void)rank;
    (void)ranks;
    switch (number++ % 3) {
    case 0:
        status = dscomm_all_reduce(world, in, out, 4, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, NULL);
        break;
    case 1:
        status = dscomm_all_reduce(world, in, out, 20000, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, NULL);
        break;
    default:
        status = dscomm_all_to_all(world, in, out, 5000, DSCOMM_FLOAT32, NULL);
    }
    return status;
}

static const phase_t phases[] = {
    {"init", turn_barrier, CREATION, 20000},
    {"new", turn_new, CREATION, 20000},
    {"split", turn_split, CREATION, 20000},
    {"mesh", turn_mesh, CREATION, 20000},
    {"collective", turn_collective, COLLECTIVE, 20000},
    {"finalize", NULL, COLLECTIVE, 4000},
};

typedef struct {
    const setup_t *setup;
    const phase_t *phase;
} scene_t;

static int is_phase(const phase_t *phase, const char *name)
{
    return strcmp(phase->name, name) == 0;
}

static void set_up(const scene_t *scene, int rank)
{
    for (int i = 0; i < 3 && scene->setup->variables[i][0]; i++)
        setenv(scene->setup->variables[i][0], scene->setup->variables[i][1], 1);
    if (strcmp(scene->setup->name, "two_level") == 0)
        setenv("DSCOMM_HOST_ID", rank < RANKS / 2 ? "a" : "b", 1);
}

/* Turns until something fails, or the end alone. */
static void play(job_rank_t *me)
{
    const scene_t *scene = me->arg;
    const int early = is_phase(scene->phase, "init");
    dscomm_status_t status = DSCOMM_OK;

    set_up(scene, me->rank);
    if (early)
        me->report->loops = 1;
    if (job_init(me) < 0)
        return;
    if (!scene->phase->turn)
        dscomm_barrier(me->world, NULL);
    me->report->loops = 2;
    me->started = job_now_ms();
    while (scene->phase->turn && status == DSCOMM_OK) {
        me->started = job_now_ms();
        status = scene->phase->turn(me->world, me->rank, me->ranks);
    }
    if (scene->phase->turn)
        job_report(me, status);
    status = dscomm_finalize(me->world);
    if (!scene->phase->turn)
        job_report(me, status);
}

/* Statistics of the results. */

static double samples[KINDS][SAMPLES_MAX];
/* unknown: ranks that were killed before others knew them */
static int counts[KINDS], unknown;

static void note(int kind, double ms)
{
    if (counts[kind] < SAMPLES_MAX)
        samples[kind][counts[kind]++] = ms;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_latencies(void)
{
    static const char *const names[] = {"creation", "collectives"};

    for (int k = 0; k < KINDS; k++) {
        const int n = counts[k];

        if (!n)
            continue;
        qsort(samples[k], (size_t)n, sizeof samples[k][0], compare);
        printf("# %s: %d survivors told, after ms: p50 %.1f, p90 %.1f, p99 "
               "%.1f, most %.1f\n",
               names[k], n, samples[k][n / 2], samples[k][n * 9 / 10],
               samples[k][n * 99 / 100], samples[k][n - 1]);
    }
    if (unknown)
        printf("# start-up: %d ranks were killed before the others could know "
               "their process\n",
               unknown);
}

/* Returns whether the sentence says of any other rank that it died. */
static int blames_other(const char *sentence, int victim)
{
    static const char *const pattern =
        "rank ([0-9]+) \\(pid [0-9]+[^)]*\\)( of group '[^']*')? (died|ended)";
    regmatch_t match[2];
    regex_t regex;
    int other = 0;

    if (regcomp(&regex, pattern, REG_EXTENDED))
        bail("the pattern is wrong");
    for (const char *at = sentence; !regexec(&regex, at, 2, match, 0);
         at += match[0].rm_eo)
        other |= atoi(at + match[1].rm_so) != victim;
    regfree(&regex);
    return other;
}

static int names(const char *sentence, int rank, pid_t pid)
{
    char text[48];

    snprintf(text, sizeof text, "rank %d (pid %d", rank, (int)pid);
    return strstr(sentence, text) != NULL;
}

/* Returns whether the victim was killed before its record was in the store;
 * then it counts as a rank that never came. */
static int never_came(const job_report_t *report, int victim)
{
    char text[32];

    snprintf(text, sizeof text, "rank %d of ", victim);
    return report->status == DSCOMM_ERR_TIMEOUT &&
           (strstr(report->sentence, text) != NULL || victim == 0);
}

static int survivor_passed(const job_t *job, const scene_t *scene, int rank,
                           int victim, pid_t pid, double when)
{
    const job_report_t *report = &job->reports[rank];
    const double ms = report->at_ms - when;
    int passed = report->ended && job_exited(job, rank);

    if (passed && is_phase(scene->phase, "finalize") &&
        report->status == DSCOMM_OK)
        return report->took_ms < job_slowly(NOTICE_MS);
    if (passed && is_phase(scene->phase, "init") &&
        never_came(report, victim)) {
        unknown++;
        return 1;
    }
    note(scene->phase->kind, ms);
    return passed && report->status == DSCOMM_ERR_PEER_FAILED &&
           names(report->sentence, victim, pid) &&
           !blames_other(report->sentence, victim) &&
           ms < job_slowly(NOTICE_MS);
}

/* Returns whether a survivor left the world because its new group timed out,
 * while others still wait there in a collective. */
static int left_early(const job_report_t *report)
{
    return report->status == DSCOMM_ERR_MISMATCH &&
           strstr(report->sentence, "called dscomm_finalize()") != NULL;
}

static int stop_passed(const job_t *job, const scene_t *scene, int rank,
                       double when)
{
    const job_report_t *report = &job->reports[rank];

    if (report->ended && report->status < 0)
        note(scene->phase->kind, report->at_ms - when);
    return report->ended && job_exited(job, rank) &&
           (report->status == DSCOMM_OK ||
            report->status == DSCOMM_ERR_TIMEOUT ||
            report->status == DSCOMM_ERR_PEER_FAILED || left_early(report)) &&
           report->took_ms < job->timeout_ms + job_slowly(NOTICE_MS);
}

/* The program's own random numbers, because rand() differs between C
 * libraries. */
static uint64_t state;

static unsigned draw(unsigned limit)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(state >> 33) % limit;
}

/* Waits until all other ranks have given up, while the victim is stopped. */
static void await_survivors(const job_t *job, int victim)
{
    const double end = job_now_ms() + job_slowly(3 * INIT_MS);

    for (int r = 0; r < RANKS; r++)
        while (r != victim && !job->reports[r].ended && job_now_ms() < end)
            job_sleep_ms(10);
}

static void run(const scene_t *scene, int stop, unsigned seed)
{
    job_t job;
    int passed, victim;
    double when;
    pid_t pid;

    state = seed;
    draw(1);
    job_make(&job, RANKS, INIT_MS, play, (void *)(uintptr_t)scene);
    job_use_tcp(&job);
    victim = (int)draw(RANKS);
    job_start(&job);
    passed = job_wait_loops(&job, is_phase(scene->phase, "init") ? 1 : 2);
    usleep(draw(scene->phase->window_us));
    pid = job.pids[victim];
    when = job_now_ms();
    kill(pid, stop ? SIGSTOP : SIGKILL);
    if (stop) {
        await_survivors(&job, victim);
        kill(pid, SIGCONT);
    }
    passed &= job_join(&job, 2 * INIT_MS);
    for (int r = 0; r < RANKS; r++)
        if (r != victim)
            passed &= stop ? stop_passed(&job, scene, r, when)
                           : survivor_passed(&job, scene, r, victim, pid, when);
    if (!ok(passed, "%s of rank %d, %s, %s, seed %u", stop ? "stop" : "kill",
            victim, scene->setup->name, scene->phase->name, seed)) {
        printf("# pid %d\n", (int)pid);
        for (int r = 0; r < RANKS; r++)
            printf("# rank %d after %.0f ms\n", r, job.reports[r].at_ms - when);
        job_show(&job);
    }
    job_end(&job, scene->phase->name);
}

static int chosen(const char *name, const char *choice)
{
    return !choice || strcmp(choice, "all") == 0 || strcmp(choice, name) == 0;
}

int main(int argc, char **argv)
{
    const int stop = argc > 1 && strcmp(argv[1], "stop") == 0;
    const int rounds = argc > 2 ? atoi(argv[2]) : 2;
    unsigned seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 4711;

    for (int i = 0; i < rounds; i++)
        for (size_t s = 0; s < sizeof setups / sizeof setups[0]; s++)
            for (size_t p = 0; p < sizeof phases / sizeof phases[0]; p++) {
                const scene_t scene = {&setups[s], &phases[p]};

                if (chosen(setups[s].name, argc > 4 ? argv[4] : NULL) &&
                    chosen(phases[p].name, argc > 5 ? argv[5] : NULL))
                    run(&scene, stop, seed);
                seed++;
            }
    print_latencies();
    return job_done();
}
