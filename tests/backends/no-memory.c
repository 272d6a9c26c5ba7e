/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that runs out: the k-th request for memory within one phase of a job
 * of two ranks fails, on rank 1 or on rank 0, which serves the store. Calls may
 * fail then; no process may end by a signal, none may hang, and the job can be
 * left in good order.
 *
 *   no-memory.t                      a sample, some of it thinned out
 *   no-memory.t all [PART PARTS]     every k, or a part of them
 *   no-memory.t PHASE                every k of a phase
 *   no-memory.t PHASE RANK K         one, and a backtrace of the request
 *
 * The functions here stand in the place of libc's, for the libraries as well.
 */
#define _GNU_SOURCE
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <dlfcn.h>
#include <dscomm/compression.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 2
/* A sanitizer calls them before it is ready to watch them. */
#define VISIBLE                                                                \
    __attribute__((visibility("default"), no_sanitize("address", "undefine"    \
                                                                 "d")))

/* Requests of this process while it is armed, and the one that fails. */
static atomic_int armed;
static atomic_long requests;
static long failing;
static int shows_trace;

static void *(*real_malloc)(size_t size);
static void *(*real_calloc)(size_t count, size_t size);
static void *(*real_realloc)(void *old, size_t size);
static void *(*real_aligned)(size_t alignment, size_t size);
static int (*real_memalign)(void **ret, size_t alignment, size_t size);

static void show_trace(void)
{
    void *frames[32];
    int armed_before = atomic_exchange(&armed, 0);

    backtrace_symbols_fd(frames, backtrace(frames, 32), STDOUT_FILENO);
    atomic_store(&armed, armed_before);
}

__attribute__((no_sanitize("address", "undefined"))) static int fails(void)
{
    if (!atomic_load(&armed) || atomic_fetch_add(&requests, 1) + 1 != failing)
        return 0;
    if (shows_trace)
        show_trace();
    errno = ENOMEM;
    return 1;
}

/* The dynamic loader may ask for memory before its own function is found. */
static void *look_up(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        abort();
    return found;
}

VISIBLE void *malloc(size_t size)
{
    if (!real_malloc)
        *(void **)&real_malloc = look_up("malloc");
    return fails() ? NULL : real_malloc(size);
}

VISIBLE void *calloc(size_t count, size_t size)
{
    static char early[4096];
    static size_t taken;
    static int looking;

    if (!real_calloc && looking) {
        void *memory = early + taken;

        taken += (count * size + 15) & ~(size_t)15;
        return taken <= sizeof early ? memory : NULL;
    }
    if (!real_calloc) {
        looking = 1;
        *(void **)&real_calloc = look_up("calloc");
    }
    return fails() ? NULL : real_calloc(count, size);
}

VISIBLE void *realloc(void *old, size_t size)
{
    if (!real_realloc)
        *(void **)&real_realloc = look_up("realloc");
    return fails() ? NULL : real_realloc(old, size);
}

VISIBLE void *aligned_alloc(size_t alignment, size_t size)
{
    if (!real_aligned)
        *(void **)&real_aligned = look_up("aligned_alloc");
    return fails() ? NULL : real_aligned(alignment, size);
}

VISIBLE int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (!real_memalign)
        *(void **)&real_memalign = look_up("posix_memalign");
    return fails() ? ENOMEM : real_memalign(ret, alignment, size);
}

VISIBLE void *mmap(void *at, size_t size, int access, int flags, int fd,
                   off_t offset)
{
    return fails()
               ? MAP_FAILED
               : (void *)syscall(SYS_mmap, at, size, access, flags, fd, offset);
}

/* What one k asks for. */
typedef struct {
    int phase, victim;
    long k;
} trial_t;

static const trial_t *trial;
static int own_rank;

static void arm(int phase)
{
    if (phase != trial->phase || own_rank != trial->victim)
        return;
    failing = trial->k;
    atomic_store(&armed, 1);
}

static void disarm(void)
{
    atomic_store(&armed, 0);
}

/* Phases */

#define COUNT 3000

static float in[COUNT * RANKS], out[COUNT * RANKS];

static dscomm_status_t call_all(dscomm_group_t *group)
{
    static size_t counts[RANKS] = {5, 7}, displs[RANKS] = {0, 9};
    const int other = 1 - dscomm_group_rank(group);
    dscomm_status_t status = dscomm_all_reduce(
        group, in, out, COUNT, DSCOMM_FLOAT32, DSCOMM_SUM, NULL);

    (void)other;
    if (!status)
        status = dscomm_all_reduce(group, in, out, 3, DSCOMM_BFLOAT16,
                                   DSCOMM_AVG, NULL);
    if (!status)
        status = dscomm_broadcast(group, out, COUNT, DSCOMM_FLOAT32, 0, NULL);
    if (!status)
        status = dscomm_reduce(group, in, out, COUNT, DSCOMM_FLOAT32,
                               DSCOMM_MAX, 1, NULL);
    if (!status)
        status = dscomm_all_gather(group, in, out, COUNT, DSCOMM_FLOAT32, NULL);
    if (!status)
        status = dscomm_reduce_scatter(group, in, out, COUNT, DSCOMM_FLOAT32,
                                       DSCOMM_SUM, NULL);
    if (!status)
        status = dscomm_gather(group, in, out, COUNT, DSCOMM_FLOAT32, 0, NULL);
    if (!status)
        status = dscomm_scatter(group, in, out, COUNT, DSCOMM_FLOAT32, 0, NULL);
    if (!status)
        status = dscomm_all_to_all(group, in, out, COUNT, DSCOMM_FLOAT32, NULL);
    if (!status)
        status =
            dscomm_all_gather_v(group, in, counts[dscomm_group_rank(group)],
                                out, counts, displs, DSCOMM_FLOAT32, NULL);
    if (!status)
        status = dscomm_barrier(group, NULL);
    return status;
}

static dscomm_status_t collectives(dscomm_group_t *world)
{
    return call_all(world);
}

static dscomm_status_t groups(dscomm_group_t *world)
{
    static const int ranks[RANKS] = {0, 1};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *split = NULL, *apart = NULL;
    dscomm_status_t status =
        dscomm_group_split(world, 0, dscomm_group_rank(world), NULL, &split);

    attr.members_only = 1;
    if (!status)
        status = dscomm_group_new(world, ranks, RANKS, &attr, &apart);
    if (!status)
        status = dscomm_barrier(apart, NULL);
    dscomm_group_free(apart);
    dscomm_group_free(split);
    return status;
}

static dscomm_status_t works(dscomm_group_t *world)
{
    dscomm_work_t *all[20] = {NULL};
    dscomm_status_t status = DSCOMM_OK, ended;
    size_t index;

    for (int i = 0; i < 20 && !status; i++)
        status = dscomm_all_reduce(world, in + i, out + i, 1, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, &all[i]);
    if (!status)
        status = dscomm_work_wait_any(all, 20, DSCOMM_TIMEOUT_DEFAULT, &index);
    ended = dscomm_work_wait_all(all, 20, DSCOMM_TIMEOUT_DEFAULT);
    for (int i = 0; i < 20; i++)
        dscomm_work_free(all[i]);
    return status ? status : ended;
}

static dscomm_status_t messages(dscomm_group_t *world)
{
    const int other = 1 - dscomm_group_rank(world);
    dscomm_work_t *all[8] = {NULL};
    dscomm_status_t status = DSCOMM_OK, ended;

    for (int i = 0; i < 4 && !status; i++)
        status = dscomm_isend(world, in, i % 2 ? COUNT : 1, DSCOMM_FLOAT32,
                              other, i, &all[i]);
    for (int i = 3; i >= 0 && !status; i--)
        status =
            dscomm_irecv(world, out + i * 10, i % 2 ? COUNT : 1, DSCOMM_FLOAT32,
                         i == 2 ? DSCOMM_ANY_SOURCE : other, i, &all[4 + i]);
    if (status)
        dscomm_group_abort(world, "no memory");
    ended = dscomm_work_wait_all(all, 8, DSCOMM_TIMEOUT_DEFAULT);
    for (int i = 0; i < 8; i++)
        dscomm_work_free(all[i]);
    return status ? status : ended;
}

static dscomm_status_t coalesce(dscomm_group_t *world)
{
    dscomm_work_t *work = NULL;
    dscomm_status_t status = dscomm_coalesce_begin(world);

    for (int i = 0; i < 5 && !status; i++)
        status = dscomm_all_reduce(world, in + i * 40, out + i * 40, 17,
                                   DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
    if (!status)
        status = dscomm_coalesce_end(world, &work);
    if (!status)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    return status;
}

static dscomm_status_t blobs(dscomm_group_t *world)
{
    size_t size = 0, sizes[RANKS];
    void *blob = NULL, *all = NULL;
    dscomm_status_t status =
        dscomm_broadcast_blob(world, "blob", 4, 0, &blob, &size);

    if (!status)
        status = dscomm_all_gather_blob(world, "some", 4, &all, sizes);
    dscomm_blob_free(blob);
    dscomm_blob_free(all);
    if (!status)
        status = dscomm_monitored_barrier(world, DSCOMM_TIMEOUT_DEFAULT);
    return status;
}

static dscomm_status_t memory(dscomm_group_t *world)
{
    void *heap = NULL;
    dscomm_status_t status = dscomm_mem_alloc(world, 10000, &heap);

    if (!status)
        status = dscomm_mem_register(world, in, sizeof in);
    if (!status)
        status = dscomm_mem_deregister(world, in);
    dscomm_mem_free(world, heap);
    return status;
}

static dscomm_status_t use_store(const char *url, int serves)
{
    static const char *const keys[] = {"a", "b"};
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL, *view = NULL;
    dscomm_status_t status;
    void *values[2] = {NULL}, *value = NULL;
    size_t sizes[2];
    int64_t number;
    int yes;

    attr.serve = serves;
    attr.timeout_ms = 3000;
    status = dscomm_store_open(url, &attr, &store);
    if (!status)
        status = dscomm_store_prefix(store, "p", &view);
    if (!status)
        status = dscomm_store_set(view, "a", in, 6000);
    if (!status)
        status = dscomm_store_append(view, "b", "x", 1);
    if (!status)
        status = dscomm_store_add(view, "n", 1, &number);
    if (!status)
        status =
            dscomm_store_compare_set(view, "c", "", 0, "y", 1, &value, sizes);
    dscomm_store_free(value);
    value = NULL;
    if (!status)
        status = dscomm_store_get(view, "a", 1000, &value, sizes);
    dscomm_store_free(value);
    if (!status)
        status = dscomm_store_multi_get(view, keys, 2, 1000, values, sizes);
    for (int i = 0; i < 2; i++)
        dscomm_store_free(values[i]);
    if (!status)
        status = dscomm_store_check(view, keys, 2, &yes);
    if (!status)
        status = dscomm_store_delete(view, "a", &yes);
    if (!status)
        status = dscomm_store_num_keys(view, &number);
    dscomm_store_close(view);
    dscomm_store_close(store);
    return status;
}

/* Of a store that rank 0 serves. */
static const char *rendezvous;

static dscomm_status_t store_client(dscomm_group_t *world)
{
    dscomm_status_t status = DSCOMM_OK;

    if (dscomm_group_rank(world))
        status = use_store(rendezvous, 0);
    return status;
}

static dscomm_status_t stores(dscomm_group_t *world)
{
    char url[64];
    dscomm_status_t status = use_store("memory://", 0);

    (void)world;
    snprintf(url, sizeof url, "file:///tmp/dscomm-no-memory.%d", (int)getpid());
    if (!status)
        status = use_store(url, 0);
    unlink(url + strlen("file://"));
    return status ? status : use_store("tcp://127.0.0.1:0", 1);
}

static dscomm_status_t compress(dscomm_group_t *world)
{
    dscomm_onebit_t *onebit = NULL;
    dscomm_work_t *work = NULL;
    dscomm_status_t status = dscomm_onebit_create(world, COUNT, NULL, &onebit);

    if (!status)
        status = dscomm_onebit_all_reduce(onebit, out, DSCOMM_FLOAT32, NULL);
    if (!status)
        status = dscomm_onebit_all_reduce(onebit, out, DSCOMM_FLOAT32, &work);
    if (!status)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    dscomm_onebit_free(onebit);
    return status;
}

/* Failures have sentences, which are memory, too. */
static dscomm_status_t failures(dscomm_group_t *world)
{
    dscomm_group_t *group = NULL;
    dscomm_work_t *work = NULL;
    dscomm_status_t status =
        dscomm_group_split(world, 0, dscomm_group_rank(world), NULL, &group);

    if (status)
        return status;
    dscomm_all_reduce(group, in, out, 3, DSCOMM_FLOAT32, DSCOMM_SUM, &work);
    dscomm_group_abort(group, "enough");
    dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    dscomm_barrier(group, NULL);
    dscomm_group_free(group);
    status =
        dscomm_group_split(world, 0, dscomm_group_rank(world), NULL, &group);
    if (status)
        return status;
    dscomm_all_reduce(group, in, out, dscomm_group_rank(world) ? 3 : 4,
                      DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
    dscomm_group_free(group);
    return DSCOMM_OK;
}

enum { START_UP, END = -1 };

static const struct {
    const char *name;
    dscomm_status_t (*run)(dscomm_group_t *world);
    const char *algorithms; /* DSCOMM_ALGORITHM */
    int step; /* of k, in a sample; 0: GLib ends the process, see dscomm(7) */
    int first; /* victim; rank 0 also serves the store */
} phases[] = {
    {"start-up", NULL, NULL, 0, 0},
    {"groups", groups, NULL, 0, 0},
    {"collectives", collectives, NULL, 1, 0},
    {"schedules", collectives, "all_reduce:ring,all_gather:ring", 1, 0},
    {"works", works, NULL, 1, 0},
    {"works of schedules", works, "all_reduce:ring", 1, 0},
    {"messages", messages, NULL, 1, 0},
    {"coalescing", coalesce, NULL, 1, 0},
    {"blobs", blobs, NULL, 1, 0},
    {"memory", memory, NULL, 1, 0},
    {"store client", store_client, NULL, 1, 1},
    {"stores", stores, NULL, 0, 0},
    {"compression", compress, NULL, 0, 0},
    {"failures", failures, NULL, 0, 0},
    {"finalize", NULL, NULL, 1, 1},
};

#define PHASES ((int)(sizeof phases / sizeof phases[0]))

static void run_rank(job_rank_t *me)
{
    const double started = job_now_ms();
    const int phase = trial->phase;
    dscomm_group_t *world = NULL;
    dscomm_status_t status;
    void *frame;

    backtrace(&frame, 1); /* loads what it needs */
    own_rank = me->rank;
    rendezvous = me->rendezvous;
    if (phases[phase].algorithms)
        setenv("DSCOMM_ALGORITHM", phases[phase].algorithms, 1);
    arm(START_UP);
    status = job_init(me, &world);
    disarm();
    if (!status && phases[phase].run) {
        arm(phase);
        status = phases[phase].run(world);
        disarm();
        if (status)
            dscomm_group_abort(world, "a phase failed");
    }
    me->report->other_status = status;
    arm(PHASES - 1);
    status = dscomm_finalize(world);
    disarm();
    me->report->value = atomic_load(&requests) >= trial->k;
    job_tell(me, status, started);
}

/* Did the trial go as it must? *ret_reached: there are k requests. Where there
 * are not, all is well on all ranks. */
static int run_trial(const trial_t *one, int *ret_reached)
{
    int passed;
    job_t job;

    trial = one;
    job_make(&job, RANKS, job_slowly(4000), run_rank, NULL);
    job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, 12000);
    *ret_reached =
        !job.reports[one->victim].ended || job.reports[one->victim].value != 0;
    for (int r = 0; r < RANKS; r++) {
        passed &= job_exited(&job, r) && job.reports[r].ended;
        passed &= *ret_reached ||
                  (!job.reports[r].status && !job.reports[r].other_status);
    }
    if (!passed) {
        printf("# phase %s, k %ld of rank %d\n", phases[one->phase].name,
               one->k, one->victim);
        job_show(&job);
    }
    job_end(&job, "no memory");
    return passed;
}

static void run_phase(int phase, int victim, int step, long first)
{
    long failed = 0, tried = -1;
    int reached = 1;

    for (long k = first; reached; k += step) {
        const trial_t one = {phase, victim, k};

        failed += !run_trial(&one, &reached);
        tried++;
    }
    ok(!failed, "%s, rank %d: %ld requests failed, %ld with harm",
       phases[phase].name, victim, tried, failed);
}

static void look_up_all(void)
{
    free(malloc(1));
    free(calloc(1, 1));
    free(realloc(NULL, 1));
    *(void **)&real_aligned = look_up("aligned_alloc");
    *(void **)&real_memalign = look_up("posix_memalign");
}

static int find_phase(const char *name)
{
    for (int i = 0; i < PHASES; i++)
        if (!strcmp(phases[i].name, name))
            return i;
    bail("no phase '%s'", name);
}

int main(int argc, char **argv)
{
    const int all = argc > 1 && !strcmp(argv[1], "all");
    const int part = argc > 3 ? atoi(argv[2]) : 0;
    const int parts = argc > 3 ? atoi(argv[3]) : 1;
    int reached;

    look_up_all();
    if (argc > 3 && !all) {
        const trial_t one = {find_phase(argv[1]), atoi(argv[2]), atol(argv[3])};

        shows_trace = 1;
        ok(run_trial(&one, &reached), "one request");
        return tap_done();
    }
    for (int i = 0; i < PHASES; i++)
        for (int victim = phases[i].first; victim < RANKS; victim++) {
            if (argc < 2 || all ? !phases[i].step : find_phase(argv[1]) != i)
                continue;
            run_phase(i, victim, argc > 1 ? parts : phases[i].step, 1 + part);
        }
    return tap_done();
}
