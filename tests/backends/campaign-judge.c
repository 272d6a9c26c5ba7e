/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge of a campaign's runs. A function returns what is wrong with a
 * survivor, or NULL. */
#include "config.h"

#include "tests/backends/campaign.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOTICE_MS 2000 /* a survivor must have returned by then */

static int promises(const job_t *job, uint64_t capability)
{
    for (int r = 0; r < job->ranks; r++)
        if (job->reports[r].ready &&
            !(job->reports[r].capabilities & capability))
            return 0;
    return 1;
}

/* An MPI ends a rank that lacks something, or that reads a message of a rank
 * which has ended. */
static int was_ended(const scene_t *scene, const job_t *job, int rank)
{
    return scene->launched && job->statuses[rank] > 0;
}

static int names(const job_report_t *report, int rank)
{
    char text[32], other[32];

    snprintf(text, sizeof text, "rank %d ", rank);
    snprintf(other, sizeof other, "rank %d,", rank);
    return strstr(report->sentence, text) || strstr(report->sentence, other);
}

/* The record names the victim, if the group has one. A group that is being made
 * has none; then the sentence does. */
static const char *judge_culprit(const scene_t *scene, const job_t *job,
                                 const job_report_t *report,
                                 dscomm_failure_kind_t kind)
{
    const dscomm_failure_t *failure = &report->failure;
    const int culprit = failure->rank;
    char host[DSCOMM_FAILURE_HOST_MAX] = "";

    if (!failure->size)
        return names(report, scene->victim) ||
                       campaign_has(scene, CAMPAIGN_CHAINED)
                   ? NULL
                   : "the sentence names another rank";
    gethostname(host, 65);
    if (failure->kind != kind || failure->status != report->status)
        return "another kind or status of failure";
    if (culprit >= 0 && kind == DSCOMM_FAILURE_SILENT &&
        campaign_has(scene, CAMPAIGN_CHAINED))
        return NULL;
    if (culprit < 0 ||
        (culprit != scene->victim && !was_ended(scene, job, culprit)))
        return "another culprit";
    if (failure->pid ? failure->pid != job->reports[culprit].pid
                     : kind == DSCOMM_FAILURE_DIED)
        return "another process";
    return !failure->pid || !strcmp(failure->host, host) ? NULL
                                                         : "another host";
}

/* Before a rank's record is in the store, it counts as one that never came. If
 * that is rank 0, which serves the store, the others miss any rank. */
static int never_came(const scene_t *scene, const job_report_t *report)
{
    if (!campaign_has(scene, CAMPAIGN_EARLY))
        return 0;
    if (scene->victim == 0 && report->status == DSCOMM_ERR_PROTOCOL)
        return scene->fault->kind == LACKS;
    return report->status == DSCOMM_ERR_TIMEOUT &&
           (scene->victim == 0 || names(report, scene->victim));
}

/* If a group is being made, a survivor whose own part has failed may leave
 * while others still wait in a collective. */
static int left_early(const scene_t *scene, const job_report_t *report)
{
    return campaign_has(scene, CAMPAIGN_CREATES) &&
           (report->status == DSCOMM_ERR_MISMATCH ||
            report->status == DSCOMM_ERR_PEER_FAILED);
}

static const char *judge_silence(const scene_t *scene, const job_t *job,
                                 const job_report_t *report)
{
    if (report->status == DSCOMM_ERR_TIMEOUT)
        return judge_culprit(scene, job, report, DSCOMM_FAILURE_SILENT);
    if (report->status == DSCOMM_ERR_PEER_FAILED)
        return judge_culprit(scene, job, report, DSCOMM_FAILURE_DIED);
    return "another status";
}

static const char *judge_death(const scene_t *scene, const job_t *job,
                               const job_report_t *report)
{
    if ((report->status == DSCOMM_OK && campaign_has(scene, CAMPAIGN_LATE)) ||
        never_came(scene, report))
        return NULL;
    if (!promises(job, DSCOMM_CAP_DEATH_DETECTION))
        return judge_silence(scene, job, report);
    return report->status == DSCOMM_ERR_PEER_FAILED
               ? judge_culprit(scene, job, report, DSCOMM_FAILURE_DIED)
               : "another status";
}

static const char *judge_stop(const scene_t *scene, const job_t *job,
                              const job_report_t *report)
{
    if ((report->status == DSCOMM_OK &&
         campaign_has(scene, CAMPAIGN_LATE | CAMPAIGN_EARLY)) ||
        never_came(scene, report) || left_early(scene, report))
        return NULL;
    return judge_silence(scene, job, report);
}

static const char *judge_difference(const scene_t *scene, const job_t *job,
                                    const job_report_t *report)
{
    if (report->status == DSCOMM_ERR_MISMATCH)
        return judge_culprit(scene, job, report, DSCOMM_FAILURE_MISMATCH);
    return promises(job, DSCOMM_CAP_MISMATCH_DETECTION) ? "another status"
                                                        : NULL;
}

/* An operation that needs no descriptor goes on. At start-up a rank without a
 * descriptor for the store cannot tell; rank 0 then serves none. */
static const char *judge_lack(const scene_t *scene, const job_t *job,
                              const job_report_t *report)
{
    (void)job;
    if (report->status == DSCOMM_OK || never_came(scene, report) ||
        left_early(scene, report))
        return NULL;
    if (report->status == DSCOMM_ERR_TIMEOUT)
        return "a time-out";
    return names(report, scene->victim) ||
                   (report->failure.size &&
                    report->failure.rank == scene->victim)
               ? NULL
               : "nothing names the rank";
}

/* GLib ends a process that has no memory, in the phases in which that is
 * allowed (HACKING.md). */
static int was_aborted(const scene_t *scene, const job_t *job)
{
    const int status = job->statuses[scene->victim];

    return scene->fault->request == CAMPAIGN_MALLOC && WIFSIGNALED(status) &&
           (WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGTRAP);
}

static const char *judge_request(const scene_t *scene, const job_t *job,
                                 const job_report_t *report)
{
    return was_aborted(scene, job) ? judge_death(scene, job, report)
                                   : judge_lack(scene, job, report);
}

/* If a request of MPI's own fails, some versions wait for ever in all ranks, so
 * that no rank can know which one it was. A survivor then names MPI's call. */
static int hung_within(const scene_t *scene, const job_t *job,
                       const job_report_t *report)
{
    return scene->launched && scene->fault->kind == FAILS &&
           job->reports[scene->victim].value & WITHIN &&
           report->status == DSCOMM_ERR_TIMEOUT &&
           strstr(report->sentence, "MPI_") &&
           strstr(report->sentence, "() has not come back within ");
}

static const char *(*const judges[])(const scene_t *scene, const job_t *job,
                                     const job_report_t *report) = {
    [DIES] = judge_death, [STOPS] = judge_stop,    [DIFFERS] = judge_difference,
    [LACKS] = judge_lack, [FAILS] = judge_request,
};

/* The time in which a survivor must return, from the start of its call. */
static int limit_ms(const scene_t *scene, const job_t *job)
{
    const int late = scene->fault->kind == STOPS ||
                     campaign_has(scene, CAMPAIGN_EARLY) ||
                     !promises(job, DSCOMM_CAP_DEATH_DETECTION);

    return job_slowly(NOTICE_MS) + (late ? job->timeout_ms : 0);
}

/* mpiexec of MPICH, Hydra, asserts if it loses a proxy, and a proxy ends if a
 * rank dies while it passes on a barrier, as of MPI_Finalize(). Both end the
 * ranks that are left, by SIGKILL or before their status is known. */
static bool was_launcher_lost(const scene_t *scene, const job_t *job, int rank)
{
    const int status = job->statuses[rank];

    return scene->launched &&
           (scene->fault->kind == DIES || scene->fault->kind == STOPS) &&
           (status == -1 ||
            (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) &&
           job_log_has(job, "assert (!closed) failed");
}

const char *campaign_judge(const scene_t *scene, const job_t *job, int rank,
                           int *within)
{
    const job_report_t *report = &job->reports[rank];
    const fault_kind_t kind = scene->fault->kind;
    const char *wrong;

    /* The victim of a mismatch or a lack learns the same. */
    if (rank == scene->victim && (kind == DIES || kind == STOPS))
        return NULL;
    if (was_ended(scene, job, rank)) {
        printf("# %s of rank %d in %s, seed %u: a library has ended rank %d\n",
               scene->fault->name, scene->victim, scene->operation->name,
               scene->seed, rank);
        return NULL;
    }
    if (rank == scene->victim && was_aborted(scene, job))
        return NULL;
    if (!report->ended || !(report->value & LEFT))
        return "it has not ended in order";
    if (!job_exited(job, rank)) {
        if (!was_launcher_lost(scene, job, rank))
            return "it has not ended in order";
        ++*within;
    }
    if (!scene->launched && report->value & LEAKED)
        return "descriptors are left";
    if (report->took_ms > limit_ms(scene, job))
        return "too late";
    if (rank == scene->victim && (kind == LACKS || kind == FAILS))
        return NULL;
    wrong = judges[kind](scene, job, report);
    if (!wrong || !hung_within(scene, job, report))
        return wrong;
    ++*within;
    return NULL;
}
