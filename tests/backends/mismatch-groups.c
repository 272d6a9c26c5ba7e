/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that make groups with different calls or arguments, or do not call at
 * all: the failure on all ranks names ranks, processes and public calls. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

#define RANKS 3

typedef dscomm_status_t call_t(dscomm_group_t *parent);

/* The call of the odd rank, and that of the others. */
typedef struct {
    const char *name;
    call_t *odd, *theirs;
    int odd_rank; /* in the world */
    int reversed; /* the parent has all ranks in reverse order */
    int timeout_ms; /* of the job */
    dscomm_status_t status;
    /* Expected words: about the odd rank, and about the first other one. */
    const char *odd_words, *words;
} case_t;

static dscomm_status_t make_new(dscomm_group_t *parent, int last,
                                const char *backend)
{
    const int ranks[] = {0, last};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group;

    attr.backend = backend;
    return dscomm_group_new(parent, ranks, 2, &attr, &group);
}

static dscomm_status_t new_01(dscomm_group_t *parent)
{
    return make_new(parent, 1, NULL);
}

static dscomm_status_t new_02(dscomm_group_t *parent)
{
    return make_new(parent, 2, NULL);
}

static dscomm_status_t new_self(dscomm_group_t *parent)
{
    return make_new(parent, 1, "self");
}

static dscomm_status_t make_split(dscomm_group_t *parent, const char *backend)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group;

    attr.backend = backend;
    return dscomm_group_split(parent, 4, 5, &attr, &group);
}

static dscomm_status_t split(dscomm_group_t *parent)
{
    return make_split(parent, NULL);
}

static dscomm_status_t split_self(dscomm_group_t *parent)
{
    return make_split(parent, "self");
}

static dscomm_status_t mesh_31(dscomm_group_t *parent)
{
    const int dims[] = {3, -1};
    dscomm_group_t *groups[2];

    return dscomm_group_mesh(parent, dims, 2, groups);
}

static dscomm_status_t mesh_13(dscomm_group_t *parent)
{
    const int dims[] = {1, 3};
    dscomm_group_t *groups[2];

    return dscomm_group_mesh(parent, dims, 2, groups);
}

static dscomm_status_t reduce(dscomm_group_t *parent)
{
    int32_t in = 1, out;

    return dscomm_all_reduce(parent, &in, &out, 1, DSCOMM_INT32, DSCOMM_SUM,
                             NULL);
}

/* Makes no call until the group has ended. */
static dscomm_status_t stay_away(dscomm_group_t *parent)
{
    dscomm_status_t status;

    while (!(status = dscomm_group_status(parent)))
        job_sleep_ms(1);
    return status;
}

static const case_t cases[] = {
    {"another list", new_02, new_01, 2, 0, 0, DSCOMM_ERR_MISMATCH,
     "called dscomm_group_new(ranks {0,2}, count 2, backend ",
     " and 1 other called dscomm_group_new(ranks {0,1}, count 2, backend "},
    {"another list in a group that is not the world", new_02, new_01, 2, 1, 0,
     DSCOMM_ERR_MISMATCH,
     "called dscomm_group_new(ranks {0,2}, count 2, backend ",
     " and 1 other called dscomm_group_new(ranks {0,1}, count 2, backend "},
    {"another backend", new_self, new_01, 0, 0, 0, DSCOMM_ERR_MISMATCH,
     "called dscomm_group_new(ranks {0,1}, count 2, backend self)",
     " and 1 other called dscomm_group_new(ranks {0,1}, count 2, backend "},
    {"another mesh", mesh_13, mesh_31, 1, 0, 0, DSCOMM_ERR_MISMATCH,
     "called dscomm_group_mesh(1 x 3)",
     " and 1 other called dscomm_group_mesh(3 x 1)"},
    {"another backend for the same color", split_self, split, 2, 0, 0,
     DSCOMM_ERR_MISMATCH,
     "called dscomm_group_split(color 4, key 5, backend self)",
     "called dscomm_group_split(color 4, key 5, backend "},
    {"a split instead", split, new_01, 1, 0, 0, DSCOMM_ERR_MISMATCH,
     "dscomm_group_split() #", "dscomm_group_new() #"},
    {"a mesh instead", mesh_13, split, 2, 0, 0, DSCOMM_ERR_MISMATCH,
     "dscomm_group_mesh() #", "dscomm_group_split() #"},
    {"a collective instead", reduce, mesh_31, 1, 0, 0, DSCOMM_ERR_MISMATCH,
     "all_reduce(count 1, int32, sum) #", "dscomm_group_mesh() #"},
    {"a rank that does not come", stay_away, new_01, 1, 0, 4000,
     DSCOMM_ERR_TIMEOUT, "rank 1 (pid ", "dscomm_group_new() #"},
};

/* Returns whether the ranks agreed on the mismatch, because only arguments
 * differ: the parent then goes on. */
static int is_agreed(const case_t *c)
{
    return c->odd_words[0] == 'c';
}

static void run_rank(job_rank_t *me)
{
    const case_t *c = me->arg;
    static const int reversed[] = {2, 1, 0};
    dscomm_group_t *parent;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    parent = me->world;
    if (c->reversed)
        dscomm_group_new(me->world, reversed, RANKS, NULL, &parent);
    me->started = job_now_ms();
    status = (me->rank == c->odd_rank ? c->odd : c->theirs)(parent);
    if (status == DSCOMM_OK)
        status = dscomm_barrier(parent, NULL);
    job_report(me, status);
    me->report->other_status =
        is_agreed(c) ? dscomm_barrier(parent, NULL) : DSCOMM_OK;
    dscomm_finalize(me->world);
}

/* Writes the rank with its process, as in sentences. */
static const char *write_rank(const job_t *job, const case_t *c, int rank,
                              char text[64])
{
    const int number = c->reversed ? RANKS - 1 - rank : rank;

    if (number == rank)
        snprintf(text, 64, "rank %d (pid %d", rank, (int)job->pids[rank]);
    else
        snprintf(text, 64, "rank %d (rank %d of the world, pid %d", number,
                 rank, (int)job->pids[rank]);
    return text;
}

/* Checks that all ranks have the same sentence, which names both processes. */
static int reported_alike(const job_t *job, const case_t *c, const pid_t *pids)
{
    const int first = c->reversed ? RANKS - 1 : 0, other_way = c->reversed;
    char odd[64], other[64];
    job_t named = *job;
    int passed = 1;

    memcpy(named.pids, pids, sizeof named.pids);
    write_rank(&named, c, c->odd_rank, odd);
    write_rank(&named, c,
               first != c->odd_rank ? first
               : other_way          ? first - 1
                                    : first + 1,
               other);
    for (int r = 0; r < RANKS; r++) {
        passed &= !strcmp(job->reports[r].sentence, job->reports[0].sentence);
        passed &= job_sentence_has(job, r, odd);
        passed &= job_sentence_has(job, r, other);
        passed &= job->reports[r].other_status == DSCOMM_OK;
    }
    return passed;
}

/* Checks that each sentence of a mismatch with another call names the process
 * of the odd rank, and that of another rank. */
static int reported_processes(const job_t *job, const case_t *c,
                              const pid_t *pids)
{
    char odd[64];
    job_t named = *job;
    int passed = 1;

    memcpy(named.pids, pids, sizeof named.pids);
    write_rank(&named, c, c->odd_rank, odd);
    for (int r = 0; r < RANKS; r++) {
        passed &= job_sentence_has(job, r, odd);
        passed &= job_count(job, r, "(pid ") == 2;
    }
    return passed;
}

static void run_case(const case_t *c, const char *how)
{
    pid_t pids[JOB_RANKS_MAX];
    job_t job;
    int passed;

    job_make(&job, RANKS, job_slowly(c->timeout_ms ? c->timeout_ms : 5000),
             run_rank, (void *)c);
    job_start(&job);
    memcpy(pids, job.pids, sizeof pids);
    passed = job_join(&job, 8000 + c->timeout_ms);
    passed &= job_reported(&job, JOB_ALL, c->status, 4000 + c->timeout_ms,
                           c->odd_words, c->words, NULL);
    for (int r = 0; r < RANKS; r++) {
        passed &= !strstr(job.reports[r].sentence, "all_gather");
        passed &= !strstr(job.reports[r].sentence, "'world': group 'world'");
    }
    if (is_agreed(c))
        passed &= reported_alike(&job, c, pids);
    else if (c->status == DSCOMM_ERR_MISMATCH)
        passed &= reported_processes(&job, c, pids);
    job_ok(&job, passed, "%s, %s", c->name, how);
}

int main(void)
{
    static const char *const ways[][2] = {{"1", "native"}, {"0", "schedules"}};

    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        setenv("DSCOMM_SHM_NATIVE", ways[w][0], 1);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            run_case(&cases[i], ways[w][1]);
    }
    return job_done();
}
