/* SPDX-License-Identifier: BSD-3-Clause */
/* A campaign of failures: in each run one rank is harmed at a random moment,
 * while all repeat one operation. Every other rank must return before its
 * deadline, with a failure record that names the rank that was harmed.
 *
 *   campaign [-n RUNS] [-s SEED] [-f FAULT] [-o OPERATION] [LAUNCHER...]
 *
 * The environment selects the backend. A run is drawn from its seed, which is
 * one greater than that of the run before; -f and -o then fix a part of it. -n
 * 1 with the seed of a run repeats it.
 *
 * A request of a rank fails in the faults malloc, mmap, memfd and sendmsg,
 * which are not drawn but given by -f. The seed then is the request's number in
 * start-up and the first collective: from 0 on, the first of rank 0, the first
 * of rank 2, the second of rank 0, and so on. The runs end when both ranks make
 * fewer requests.
 *
 * LAUNCHER is a command, such as mpirun with its options, that starts a program
 * as so many ranks; without one the ranks are forked, and must leave no
 * descriptor open. The result is a line for each fault, with the numbers of
 * runs and of harms, after a comment for each harm. */
#include "config.h"

#include "tests/backends/campaign.h"
#include "tests/descriptors.h"
#include "tests/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#define RANKS CAMPAIGN_RANKS
#define TIMEOUT_MS 5000
/* In many runs a request fails before the rank is known, so that the others
 * wait until the time-out. */
#define TIMEOUT_REQUEST_MS 1500
#define TIMEOUT_LAUNCHED_MS 3000 /* MPI_Init_thread() of four ranks is slow */
#define WINDOW_US 20000 /* a signal comes within this time after the start */
#define WINDOW_LATE_US 4000
#define TURNS_MAX 20 /* turns before a rank harms itself */
#define TURNS_AFTER 4
#define MANY 256 /* descriptors that suffice */

/* Faults */

static dscomm_status_t commit_exit(const scene_t *scene, dscomm_group_t *world)
{
    (void)scene, (void)world;
    _exit(0);
}

static dscomm_status_t commit_op(const scene_t *scene, dscomm_group_t *world)
{
    float in[4] = {0}, out[4];

    if (scene->operation->coll == DSCOMM_COLL_BARRIER)
        return dscomm_all_reduce(world, in, out, 4, DSCOMM_FLOAT32, DSCOMM_SUM,
                                 NULL);
    return dscomm_barrier(world, NULL);
}

static dscomm_status_t commit_call(const scene_t *scene, dscomm_group_t *world,
                                   const campaign_call_t *call)
{
    return campaign_turn(scene->operation, world, call);
}

static dscomm_status_t commit_count(const scene_t *scene, dscomm_group_t *world)
{
    campaign_call_t call = scene->call;

    call.count++;
    return commit_call(scene, world, &call);
}

static dscomm_status_t commit_dtype(const scene_t *scene, dscomm_group_t *world)
{
    campaign_call_t call = scene->call;

    call.dtype = DSCOMM_INT32;
    return commit_call(scene, world, &call);
}

static dscomm_status_t commit_root(const scene_t *scene, dscomm_group_t *world)
{
    campaign_call_t call = scene->call;

    call.root = (call.root + 1) % RANKS;
    return commit_call(scene, world, &call);
}

static dscomm_status_t commit_reduction(const scene_t *scene,
                                        dscomm_group_t *world)
{
    campaign_call_t call = scene->call;

    call.op = DSCOMM_MAX;
    return commit_call(scene, world, &call);
}

/* From now on the rank gets so many descriptors and no more. */
static void limit_descriptors(int spare)
{
    struct rlimit limit;
    int next;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    next = dup(STDIN_FILENO);
    close(next);
    limit.rlim_cur = (rlim_t)(next + spare);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static dscomm_status_t commit_descriptors(const scene_t *scene,
                                          dscomm_group_t *world)
{
    limit_descriptors(scene->spare);
    return campaign_turn(scene->operation, world, &scene->call);
}

static const fault_t faults[] = {
    {"kill", DIES, 0, 0, SIGKILL, NULL, 0},
    {"stop", STOPS, 0, 0, SIGSTOP, NULL, 0},
    {"exit", DIES, 0, CAMPAIGN_EARLY, 0, commit_exit, 0},
    {"collective", DIFFERS, CAMPAIGN_COLLECTIVE, 0, 0, commit_op, 0},
    {"count", DIFFERS, CAMPAIGN_COUNTED, 0, 0, commit_count, 0},
    {"dtype", DIFFERS, CAMPAIGN_COUNTED, 0, 0, commit_dtype, 0},
    {"reduction", DIFFERS, CAMPAIGN_REDUCES, 0, 0, commit_reduction, 0},
    {"root", DIFFERS, CAMPAIGN_ROOTED, 0, 0, commit_root, 0},
    {"descriptors", LACKS, 0, 0, 0, commit_descriptors, 0},
    /* not drawn: the seed selects the request */
    {"malloc", FAILS, CAMPAIGN_EARLY, 0, 0, NULL, CAMPAIGN_MALLOC},
    {"mmap", FAILS, CAMPAIGN_EARLY, 0, 0, NULL, CAMPAIGN_MMAP},
    {"memfd", FAILS, CAMPAIGN_EARLY, 0, 0, NULL, CAMPAIGN_MEMFD},
    {"sendmsg", FAILS, CAMPAIGN_EARLY, 0, 0, NULL, CAMPAIGN_SENDMSG},
};

#define FAULTS (sizeof faults / sizeof faults[0])
#define DRAWN (FAULTS - 4)

/* The scene */

/* The program's own random numbers, because rand() differs between C
 * libraries. */
static uint64_t state;

static unsigned draw(unsigned limit)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(state >> 33) % limit;
}

static int fits(const fault_t *fault, const campaign_operation_t *operation)
{
    return (operation->traits & fault->needs) == fault->needs &&
           !(operation->traits & fault->excludes);
}

static const fault_t *find_fault(const char *name)
{
    for (size_t i = 0; name && i < FAULTS; i++)
        if (!strcmp(faults[i].name, name))
            return &faults[i];
    return NULL;
}

static const campaign_operation_t *find_operation(const char *name)
{
    for (int i = 0; name && i < campaign_operations_count; i++)
        if (!strcmp(campaign_operations[i].name, name))
            return &campaign_operations[i];
    return NULL;
}

/* Draws a pair that fits. A name that is NULL is drawn. */
static void draw_pair(scene_t *scene, const char *fault, const char *operation)
{
    const fault_t *wanted = find_fault(fault);
    const campaign_operation_t *named = find_operation(operation);

    if ((fault && !wanted) || (operation && !named) ||
        (wanted && named && !fits(wanted, named)))
        bail("no such fault and operation");
    do {
        const unsigned i = draw((unsigned)campaign_operations_count);

        scene->fault = wanted ? wanted : &faults[draw(DRAWN)];
        scene->operation = named ? named : &campaign_operations[i];
    } while (!fits(scene->fault, scene->operation));
}

static scene_t draw_scene(unsigned seed, const char *fault,
                          const char *operation)
{
    scene_t scene = {.seed = seed};
    unsigned window_us;

    state = seed;
    draw(1);
    draw_pair(&scene, fault, operation);
    state = UINT64_C(1) << 32 | seed; /* the rest does not depend on names */
    draw(1);
    window_us =
        scene.operation->traits & CAMPAIGN_LATE ? WINDOW_LATE_US : WINDOW_US;
    scene.victim = (int)draw(RANKS);
    scene.turn = (int)draw(TURNS_MAX);
    scene.delay_us = draw(window_us);
    scene.resumes = (int)draw(2);
    scene.spare = (int)draw(4);
    scene.call = (campaign_call_t){campaign_counts[draw(CAMPAIGN_COUNTS)],
                                   DSCOMM_FLOAT32, DSCOMM_SUM, (int)draw(RANKS),
                                   (int)draw(2)};
    if (scene.fault->kind == FAILS) {
        scene.victim = seed % 2 ? RANKS / 2 : 0;
        scene.k = (long)(seed / 2) + 1;
        scene.turn = 0;
    }
    return scene;
}

/* The ranks */

/* After a fault that ends no rank there are so many turns. If calls differ, the
 * next ones are barriers, because ranks that have not waited for the victim
 * must learn of it. */
static dscomm_status_t take_turn(const scene_t *scene, job_rank_t *me, int turn)
{
    if (scene->fault->commit && turn == scene->turn &&
        me->rank == scene->victim)
        return scene->fault->commit(scene, me->world);
    if (scene->fault->kind == DIFFERS && turn > scene->turn)
        return dscomm_barrier(me->world, NULL);
    return campaign_turn(scene->operation, me->world, &scene->call);
}

static int is_victim(const scene_t *scene, const job_rank_t *me,
                     fault_kind_t kind)
{
    return scene->fault->kind == kind && me->rank == scene->victim;
}

/* The first turn of the victim is over: no request fails any more. */
static void request_end(const scene_t *scene, const job_rank_t *me)
{
    if (!is_victim(scene, me, FAILS))
        return;
    if (campaign_inject_disarm())
        me->report->value |= REACHED;
    if (campaign_inject_within())
        me->report->value |= WITHIN;
}

static dscomm_status_t take_turns(const scene_t *scene, job_rank_t *me)
{
    const int ends = scene->fault->kind != DIES && scene->fault->kind != STOPS;
    dscomm_status_t status = DSCOMM_OK;

    for (int turn = 0; status == DSCOMM_OK; turn++) {
        if (ends && turn > scene->turn + TURNS_AFTER)
            break;
        me->started = job_now_ms();
        status = take_turn(scene, me, turn);
        request_end(scene, me);
    }
    return status;
}

/* Returns how the operation, or the end of the job, has ended. */
static dscomm_status_t play_joined(const scene_t *scene, job_rank_t *me)
{
    dscomm_status_t status = DSCOMM_OK;

    if (!campaign_has(scene, CAMPAIGN_LATE))
        me->report->loops = 2;
    if (!campaign_has(scene, CAMPAIGN_LATE) || !scene->fault->signal)
        status = take_turns(scene, me);
    else
        dscomm_barrier(me->world, NULL);
    if (!campaign_has(scene, CAMPAIGN_LATE) || status)
        job_report(me, status);
    job_report_failure(me);
    me->report->loops = 2;
    me->started = status ? me->started : job_now_ms();
    me->report->other_status = dscomm_finalize(me->world);
    return status ? status : (dscomm_status_t)me->report->other_status;
}

static void play(job_rank_t *me)
{
    const scene_t *scene = me->arg;
    const int before = descriptors_count();
    dscomm_status_t status;

    if (campaign_has(scene, CAMPAIGN_EARLY))
        me->report->loops = 1;
    if (campaign_has(scene, CAMPAIGN_EARLY) && is_victim(scene, me, LACKS))
        limit_descriptors(scene->spare * 4);
    if (is_victim(scene, me, FAILS))
        campaign_inject_arm(scene->fault->request, scene->k);
    if (job_init(me) == DSCOMM_OK) {
        status = play_joined(scene, me);
        if (campaign_has(scene, CAMPAIGN_LATE))
            job_report(me, status);
    }
    request_end(scene, me);
    limit_descriptors(MANY); /* counting needs one */
    if (descriptors_count() != before)
        me->report->value |= LEAKED;
    me->report->value |= LEFT;
}

/* A run */

/* Waits until all other ranks have given up, while the victim is stopped. */
static void await_survivors(const job_t *job, int victim)
{
    const double end = job_now_ms() + job->timeout_ms + job_slowly(10000);

    for (int r = 0; r < RANKS; r++)
        while (r != victim && !job->reports[r].ended && job_now_ms() < end)
            job_sleep_ms(10);
}

/* The victim may have ended by itself, because another rank timed out. */
static void harm(const scene_t *scene, const job_t *job)
{
    const pid_t pid = job->reports[scene->victim].pid;

    usleep(scene->delay_us);
    if (!pid || (kill(pid, scene->fault->signal) < 0 && errno != ESRCH))
        bail("no signal: %s", strerror(errno));
    if (scene->fault->signal != SIGSTOP)
        return;
    await_survivors(job, scene->victim);
    kill(pid, scene->resumes ? SIGCONT : SIGKILL);
}

typedef struct {
    unsigned runs, seed;
    const char *fault, *operation;
    char *const *launcher; /* ends with NULL; NULL: ranks are forked */
    const char *program;
} options_t;

static void start(job_t *job, const scene_t *scene, const options_t *options)
{
    char seed[16], ranks[8];
    char *args[] = {(char *)"-n",
                    ranks,
                    (char *)options->program,
                    (char *)"-s",
                    seed,
                    (char *)"-f",
                    (char *)scene->fault->name,
                    (char *)"-o",
                    (char *)scene->operation->name,
                    NULL};

    snprintf(seed, sizeof seed, "%u", scene->seed);
    snprintf(ranks, sizeof ranks, "%d", RANKS);
    if (options->launcher)
        job_launch(job, options->launcher, args);
    else
        job_start(job);
}

/* Prints what was wrong, and how to do it again. */
static void show(const scene_t *scene, const job_t *job, int rank,
                 const char *wrong, const options_t *options)
{
    printf("# harm: %s of rank %d in %s: rank %d: %s; repeat: campaign -n 1 "
           "-s %u%s%s%s%s%s\n",
           scene->fault->name, scene->victim, scene->operation->name, rank,
           wrong, scene->seed, options->fault ? " -f " : "",
           options->fault ? options->fault : "",
           options->operation ? " -o " : "",
           options->operation ? options->operation : "",
           options->launcher ? " LAUNCHER" : "");
    for (int r = 0; r < job->ranks; r++) {
        const dscomm_failure_t *failure = &job->reports[r].failure;

        if (failure->size)
            printf("# rank %d: record %s, kind %d, rank %d, pid %lld, host "
                   "%s\n",
                   r, dscomm_status_name(failure->status), failure->kind,
                   failure->rank, (long long)failure->pid, failure->host);
    }
    job_show(job);
}

/* Returns whether the victim has made enough requests. One that has not ended
 * in order has. */
static int has_reached(const scene_t *scene, const job_t *job)
{
    const int64_t value = job->reports[scene->victim].value;

    return scene->fault->kind != FAILS || !(value & LEFT) || value & REACHED;
}

static int timeout_ms(const scene_t *scene)
{
    if (scene->fault->kind != FAILS)
        return job_slowly(TIMEOUT_MS);
    return job_slowly(scene->launched ? TIMEOUT_LAUNCHED_MS
                                      : TIMEOUT_REQUEST_MS);
}

/* Returns whether there was no harm. *ret_within: for how many ranks MPI
 * alone is to blame. */
static int run(const scene_t *scene, const options_t *options, int *ret_reached,
               int *ret_within)
{
    const char *wrong = NULL;
    const int before = job_leftovers();
    job_t job;
    int rank = -1;

    job_make(&job, RANKS, timeout_ms(scene), play, (void *)(uintptr_t)scene);
    job_use_tcp(&job);
    start(&job, scene, options);
    if (!job_wait_loops(&job, campaign_has(scene, CAMPAIGN_EARLY) ? 1 : 2) &&
        scene->fault->signal)
        wrong = "the ranks have not started";
    else if (scene->fault->signal)
        harm(scene, &job);
    if (!job_join(&job, 4 * TIMEOUT_MS))
        wrong = "ranks were left";
    for (int r = 0; r < RANKS && !wrong; r++)
        wrong = campaign_judge(scene, &job, rank = r, ret_within);
    if (wrong)
        show(scene, &job, rank, wrong, options);
    *ret_reached = has_reached(scene, &job);
    job_end(&job, scene->operation->name);
    if (!wrong && job_leftovers() != before)
        printf("# harm: something is left, seed %u\n", scene->seed);
    return !wrong && job_leftovers() == before;
}

static options_t read_options(int argc, char **argv)
{
    options_t options = {.runs = 36, .seed = 1, .program = argv[0]};
    int option;

    /* '+' stops at the launcher, which has options of its own. */
    while ((option = getopt(argc, argv, "+n:s:f:o:")) != -1)
        switch (option) {
        case 'n':
            options.runs = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 's':
            options.seed = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'f':
            options.fault = optarg;
            break;
        case 'o':
            options.operation = optarg;
            break;
        default:
            bail("see the head of campaign.c");
        }
    if (argv[optind])
        options.launcher = argv + optind;
    return options;
}

int main(int argc, char **argv)
{
    const options_t options = read_options(argc, argv);
    unsigned runs[FAULTS] = {0}, harms[FAULTS] = {0}, withins[FAULTS] = {0};
    scene_t scene = draw_scene(options.seed, options.fault, options.operation);
    int reached = 1, idle = 0; /* idle: runs in sequence without k requests */

    campaign_inject_prepare();
    job_serve(play, &scene);
    for (unsigned i = 0; i < options.runs && idle < 2; i++) {
        int within = 0;

        scene = draw_scene(options.seed + i, options.fault, options.operation);
        scene.launched = options.launcher != NULL;
        runs[scene.fault - faults]++;
        if (!run(&scene, &options, &reached, &within))
            harms[scene.fault - faults]++;
        else if (within)
            withins[scene.fault - faults]++;
        idle = reached ? 0 : idle + 1;
    }
    for (size_t i = 0; i < FAULTS; i++)
        if (runs[i])
            ok(!harms[i],
               "%s: %u runs, %u with harm, %u failed within MPI, "
               "seeds from %u",
               faults[i].name, runs[i], harms[i], withins[i], options.seed);
    return job_done();
}
