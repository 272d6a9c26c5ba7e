/* SPDX-License-Identifier: BSD-3-Clause */
/* Too few file descriptors, too little memory, or a full /dev/shm lead to a
 * status and a sentence, never to a signal, and no rank waits for ever. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/backends/sandbox.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3
#define COUNT 100000

typedef struct {
    const char *name;
    int resource;
    rlim_t limit;
    int victims; /* 0: all ranks have the limit; else only rank 1 */
    int must_run; /* the limit does not concern the library */
} limit_t;

/* Joins, moves a few sizes, leaves. */
static void work(job_rank_t *me)
{
    static float in[COUNT], out[COUNT];
    static const size_t counts[] = {1, 100, COUNT};
    dscomm_status_t status = DSCOMM_OK, last;
    void *memory = NULL;

    if (job_init(me) < 0)
        return;
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_all_reduce(me->world, in, out, counts[i],
                                   DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
    if (status == DSCOMM_OK)
        me->report->other_status =
            dscomm_mem_alloc(me->world, 1 << 20, &memory);
    if (memory)
        memset(memory, 1, 1 << 20);
    job_report(me, status);
    last = dscomm_finalize(me->world);
    if (status == DSCOMM_OK && last < 0)
        job_report(me, last);
}

/* Returns what is in use: open descriptors, or mapped address space. The limit
 * is added to that. */
static rlim_t in_use(int resource)
{
    unsigned long pages = 0;
    FILE *file;
    int fd;

    if (resource == RLIMIT_NOFILE) {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        close(fd);
        return (rlim_t)fd;
    }
    if (resource != RLIMIT_AS)
        return 0;
    file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void work_limited(job_rank_t *me)
{
    const limit_t *l = me->arg;
    rlim_t value = in_use(l->resource) + l->limit;
    struct rlimit before, limit;

    getrlimit(l->resource, &before);
    limit = before;
    limit.rlim_cur = value;
    if (!l->victims || me->rank == 1)
        setrlimit(l->resource, &limit);
    work(me);
    /* The limit ends here, because a sanitizer needs resources at exit. */
    setrlimit(l->resource, &before);
}

/* Returns whether every rank ended by itself, and whether a failure has a
 * reason. */
static int ended_well(const job_t *job)
{
    int passed = 1;

    for (int r = 0; r < job->ranks; r++) {
        const job_report_t *report = &job->reports[r];

        passed &= job_exited(job, r) && report->ended &&
                  (report->status == DSCOMM_OK ||
                   (report->status < 0 && report->sentence[0]));
        if (job->statuses[r] > 0 && WIFSIGNALED(job->statuses[r]))
            printf("# rank %d: killed by signal %d\n", r,
                   WTERMSIG(job->statuses[r]));
    }
    return passed;
}

static void run_limit(const limit_t *l)
{
    job_t job;
    int passed;

    passed =
        job_run(&job, RANKS, job_slowly(1200), work_limited, (void *)l, 8000) &&
        ended_well(&job);
    if (l->must_run)
        passed &= job_all(&job, DSCOMM_OK);
    job_ok(&job, passed, "%s, %llu more than in use, %s%s", l->name,
           (unsigned long long)l->limit, l->victims ? "one rank" : "all ranks",
           job_all(&job, DSCOMM_OK) ? ": works" : ": is told");
}

static void test_limits(void)
{
    static const limit_t limits[] = {
        {"open files", RLIMIT_NOFILE, 0, 1, 0},
        {"open files", RLIMIT_NOFILE, 1, 0, 0},
        {"open files", RLIMIT_NOFILE, 2, 1, 0},
        {"open files", RLIMIT_NOFILE, 4, 1, 0},
        {"open files", RLIMIT_NOFILE, 6, 0, 0},
        {"open files", RLIMIT_NOFILE, 9, 0, 0},
        {"open files", RLIMIT_NOFILE, 64, 0, 1},
        {"locked memory", RLIMIT_MEMLOCK, 0, 0, 1},
        {"address space", RLIMIT_AS, 1 << 16, 1, 0},
        {"address space", RLIMIT_AS, 1 << 20, 0, 0},
        {"address space", RLIMIT_AS, 1 << 22, 1, 0},
        {"address space", RLIMIT_AS, 1 << 24, 0, 0},
        {"file size", RLIMIT_FSIZE, 0, 0, 0},
        {"file size", RLIMIT_FSIZE, 1 << 16, 1, 0},
        {"file size", RLIMIT_FSIZE, 1 << 20, 0, 0},
        {"core dumps", RLIMIT_CORE, 0, 0, 1},
    };
    const char *sanitizer = getenv("SANITIZER_FLAGS");

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].resource == RLIMIT_AS && sanitizer &&
            strstr(sanitizer, "sanitize"))
            skip("address space: a sanitizer maps terabytes");
        else
            run_limit(&limits[i]);
}

typedef struct {
    int victim; /* the rank that has the limit */
    int limit; /* descriptors beyond those that are open already */
    int splits; /* the limit begins after init */
} named_t;

/* Joins, then splits until something fails. */
static void split_limited(job_rank_t *me)
{
    const named_t *n = me->arg;
    struct rlimit before, limit;
    dscomm_group_t *group;
    dscomm_status_t status = DSCOMM_OK;

    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = in_use(RLIMIT_NOFILE) + (rlim_t)n->limit;
    if (me->rank == n->victim && !n->splits)
        setrlimit(RLIMIT_NOFILE, &limit);
    if (job_init(me) == DSCOMM_OK) {
        limit.rlim_cur = in_use(RLIMIT_NOFILE) + (rlim_t)n->limit;
        if (me->rank == n->victim && n->splits)
            setrlimit(RLIMIT_NOFILE, &limit);
        for (int i = 0; i < n->splits && status == DSCOMM_OK; i++)
            status = dscomm_group_split(me->world, 0, 0, NULL, &group);
        job_report(me, status);
        dscomm_finalize(me->world);
    }
    setrlimit(RLIMIT_NOFILE, &before);
}

/* All ranks say soon that the victim failed, for lack of descriptors. */
static void run_named(const named_t *n)
{
    char rank[16];
    job_t job;
    int passed;

    snprintf(rank, sizeof rank, "rank %d", n->victim);
    passed = job_run(&job, RANKS, job_slowly(5000), split_limited, (void *)n,
                     12000) &&
             ended_well(&job);
    passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_NO_MEMORY, 2500, rank,
                           "ulimit -n", NULL);
    for (int r = 0; r < RANKS; r++)
        passed &= job_count(&job, r, "(pid ") == 1; /* and not again */
    job_ok(&job, passed, "%s may open %d files more in %s: all name it", rank,
           n->limit, n->splits ? "a split" : "init");
}

/* Uses a file:// store, which takes two descriptors while it is open. The rest
 * is for the flight recorder, the socket, the rank's own pidfd, the segment and
 * the pidfds of two others. */
static void test_named_limits(void)
{
    static const named_t named[] = {
        {0, 4, 0}, {0, 5, 0}, {0, 6, 0}, {1, 4, 0}, {1, 5, 0}, {1, 6, 0},
        {2, 4, 0}, {2, 5, 0}, {0, 0, 9}, {0, 1, 9}, {0, 2, 9}, {0, 3, 9},
        {1, 0, 9}, {1, 1, 9}, {1, 2, 9}, {2, 0, 9}, {2, 1, 9}, {2, 3, 9},
    };

    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        run_named(&named[i]);
}

/* Uses a /dev/shm of 64 KiB, or a read-only one, in a mount namespace. */
static void run_small_shm(const char *name, const char *options)
{
    job_t job;
    int passed;

    if (mount("dscomm-test", "/dev/shm", "tmpfs",
              options[0] == 'r' ? MS_RDONLY : 0, "size=64k") < 0) {
        skip("%s: mount: %s", name, strerror(errno));
        return;
    }
    passed = job_run(&job, RANKS, job_slowly(3000), work, NULL, 10000) &&
             ended_well(&job);
    job_ok(&job, passed, "%s: %s", name,
           job_all(&job, DSCOMM_OK) ? "works" : "is told");
    umount("/dev/shm");
}

/* Keeps later mounts in this namespace. In a chroot, / is not a mount point. */
static int hide_mounts(void)
{
    if (unshare(CLONE_NEWNS) < 0)
        return -1;
    if (!mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return 0;
    return mount("none", "/dev/shm", NULL, MS_PRIVATE, NULL);
}

static void test_small_shm(void)
{
    if (hide_mounts() < 0) {
        skip("/dev/shm of 64 KiB: no mount namespace: %s", strerror(errno));
        return;
    }
    run_small_shm("/dev/shm of 64 KiB", "w");
    run_small_shm("/dev/shm that is read-only", "r");
}

#define MESH_RANKS 4

/* Rank 2 gets no more descriptors. Ranks 1 and 3 make the first group of their
 * meshes, and wait for ranks 0 and 2 in the second. */
static void make_mesh(job_rank_t *me)
{
    static const int dims[] = {2, 2};
    dscomm_group_t *groups[2];
    struct rlimit before, limit;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = in_use(RLIMIT_NOFILE);
    if (me->rank == 2)
        setrlimit(RLIMIT_NOFILE, &limit);
    me->started = job_now_ms();
    status = dscomm_group_mesh(me->world, dims, 2, groups);
    setrlimit(RLIMIT_NOFILE, &before);
    job_leave(me, status);
}

/* All learn of it long before their deadline. */
static void test_mesh(void)
{
    const int timeout = job_slowly(60000);
    int passed;
    job_t job;

    job_make(&job, MESH_RANKS, timeout, make_mesh, NULL);
    job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, timeout / 2) &&
             job_reported(&job, JOB_ALL, DSCOMM_ERR_NO_MEMORY, timeout / 4,
                          "rank 2 (", "open files", NULL);
    job_ok(&job, passed, "a mesh in which one rank has no descriptor");
}

/* Filters system calls on rank 1 only, or on all ranks. */
static void work_sandboxed(job_rank_t *me)
{
    if (!*(int *)me->arg || me->rank == 1)
        me->report->value =
            sandbox_filter(SYS_membarrier, SECCOMP_RET_ERRNO | ENOSYS) ? errno
                                                                       : 0;
    work(me);
}

static void test_sandbox(void)
{
    for (int victims = 0; victims < 2; victims++) {
        job_t job;
        int passed;

        passed = job_run(&job, RANKS, 0, work_sandboxed, &victims, 15000) &&
                 job_all(&job, DSCOMM_OK);
        if (!job_unfiltered(&job, 1))
            job_ok(&job, passed, "%s without membarrier",
                   victims ? "rank 1" : "all ranks");
    }
}

int main(void)
{
    const char *preload = getenv("LD_PRELOAD");

    if (preload && strstr(preload, "vgpreload"))
        skip_all("valgrind has limits of its own");
    test_limits();
    test_named_limits();
    test_mesh();
    test_sandbox();
    test_small_shm();
    return job_done();
}
