/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of collective works, see collective.h. */
#include "config.h"
#include "lib/schedule/collective.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/group/failure.h"
#include "lib/schedule/algorithm.h"
#include "lib/schedule/cache.h"
#include "lib/schedule/early.h"
#include "lib/work/pending.h"

#include <string.h>

/* Time for which the headers of a failed collective are waited for. */
#define HEADER_MS 200
/* Bytes of each rank up to which a blocking call tries to run without a work */
#define NOW_MOST ((size_t)4 << 10)

typedef dscomm_status_t (*diagnose_t)(dscomm_diagnosis_t *diagnosis,
                                      dscomm_failure_t *ret_failure);

/* Calls diagnose and returns its result. The group's lock is released
 * meanwhile, so other threads can use the group, and work may be freed
 * afterwards. */
static dscomm_status_t schedule_diagnose(const dscomm_work_t *work,
                                         diagnose_t diagnose,
                                         dscomm_failure_t *ret_failure)
{
    dscomm_group_t *group = work->group;
    dscomm_diagnosis_t *diagnosis = dscomm_priv_diagnosis_new(work);
    dscomm_status_t status;

    if (!diagnosis)
        return DSCOMM_OK;
    dscomm_priv_pending_add(group, false);
    pthread_mutex_unlock(&group->works.lock);
    status = diagnose(diagnosis, ret_failure);
    dscomm_priv_diagnosis_free(diagnosis);
    pthread_mutex_lock(&group->works.lock);
    return status;
}

static dscomm_status_t collective_look(dscomm_work_t *work,
                                       dscomm_failure_t *ret_failure)
{
    return schedule_diagnose(work, dscomm_priv_diagnosis_look, ret_failure);
}

static dscomm_status_t native_start(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;

    return group->ops.start(group->impl, &work->call.coll, &work->request);
}

/* Improves the record of a mismatch of counts. Ranks of other machines show
 * what they have called by the headers of their messages alone. */
static void counts_explain(dscomm_work_t *work, dscomm_failure_t *failure)
{
    dscomm_group_t *group = work->group;
    dscomm_messages_seen_t seen = {0};

    if (dscomm_priv_group_nodes(group) &&
        (failure->coll == DSCOMM_COLL_GATHER_V ||
         failure->coll == DSCOMM_COLL_ALL_TO_ALL_V)) {
        dscomm_priv_run_compare_rest(
            work->run, dscomm_priv_clock_after(dscomm_priv_clock(), HEADER_MS));
        seen.agree = work->run->agreed;
        seen.differ = MAX(work->run->differing - 1, 0);
        group->works.unscanned = 1;
    }
    dscomm_priv_mismatch_counts(group, &seen, failure);
}

/* Makes the failure record of a run. If a header showed another call, the
 * diagnosis may name the culprit better. */
static void schedule_explain(dscomm_work_t *work, dscomm_failure_t *ret_failure)
{
    dscomm_run_t *run = work->run;
    dscomm_diagnosis_t *diagnosis =
        run->differs ? dscomm_priv_diagnosis_new(work) : NULL;
    dscomm_status_t status = DSCOMM_OK;

    if (diagnosis)
        status = dscomm_priv_diagnosis_mismatch(
            diagnosis, run->earlier ? run->failure.group_rank : -1,
            ret_failure);
    dscomm_priv_diagnosis_free(diagnosis);
    if (status < 0)
        return;
    *ret_failure = run->failure;
    if (ret_failure->kind == DSCOMM_FAILURE_MISMATCH)
        counts_explain(work, ret_failure);
}

static void schedule_cancel(dscomm_work_t *work, dscomm_status_t status)
{
    dscomm_priv_run_cancel(work->run, status);
    work->request.held = work->run->held;
    work->group->works.held |= work->run->held;
}

/* Revokes the group, because peers wait for this failed schedule. If the group
 * had ended before, that failure is the cause of this one. */
static void schedule_fail(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;
    dscomm_run_t *run = work->run;
    dscomm_failure_t failure;
    dscomm_status_t status;

    schedule_explain(work, &failure);
    dscomm_priv_group_revoke(group, &failure);
    dscomm_priv_works_interrupt(group);
    if (!work->pending) /* it fails in its start */
        dscomm_priv_group_interrupt(group, &work->call.coll);
    status = dscomm_priv_group_revoked(group, &failure);
    if (status < 0)
        run->status = status;
    schedule_cancel(work, run->status);
    dscomm_priv_work_explain(work, &failure);
}

/* Copies the result of an ended schedule to the request, as a native collective
 * would. */
static void schedule_settle(dscomm_work_t *work)
{
    if (work->run->status < 0)
        schedule_fail(work);
    work->request.status = work->run->status;
}

static dscomm_run_t *take_run(dscomm_group_t *group, const dscomm_call_t *call)
{
    if (!group->schedules.cache)
        group->schedules.cache = dscomm_priv_cache_new(
            &(dscomm_port_t){&group->ops, group->impl, group->identity.name,
                             group, group->identity.world_ranks},
            group->rank, group->size, dscomm_priv_group_nodes(group));
    if (!group->schedules.cache)
        return NULL;
    return dscomm_priv_cache_take(group->schedules.cache, call->algorithm,
                                  &call->coll);
}

/* Adds the call to the chain of the group's calls, whose hash run sends. */
static void run_number(dscomm_run_t *run, dscomm_group_t *group,
                       const dscomm_call_t *call)
{
    group->schedules.chain =
        dscomm_priv_chain_after(group->schedules.chain, call->coll.fingerprint);
    run->chain = group->schedules.chain;
}

bool dscomm_priv_collective_now(dscomm_group_t *group,
                                const dscomm_call_t *call)
{
    const dscomm_coll_args_t *args = &call->coll;
    dscomm_run_t *run;

    if (!group->ops.send_now || !group->ops.recv_now || args->send_counts ||
        args->recv_counts || args->count * args->element > NOW_MOST)
        return false;
    run = take_run(group, call);
    if (!run)
        return false;
    run_number(run, group, call);
    dscomm_priv_run_now(run, args, (unsigned)dscomm_priv_work_spins(group));
    if (run->status == DSCOMM_OK)
        dscomm_priv_cache_give(group->schedules.cache, run);
    else
        group->schedules.begun = run;
    return run->status == DSCOMM_OK;
}

static dscomm_status_t schedule_start(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;
    const dscomm_call_t *call = &work->call;
    const bool begun = group->schedules.begun != NULL;

    work->run = begun ? g_steal_pointer(&group->schedules.begun)
                      : take_run(group, call);
    if (!work->run) {
        dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                    "%s of group '%s': rank %d has no memory for %s",
                    dscomm_coll_name((dscomm_coll_t)call->coll.coll),
                    group->identity.name, group->rank, call->algorithm->name);
        return dscomm_priv_group_give_up(group, DSCOMM_ERR_NO_MEMORY);
    }
    dscomm_priv_works_scheduled(group, 1);
    group->works.wait_last = group->works.stalled = 0;
    group->works.looks = 0;
    if (!begun) {
        run_number(work->run, group, call);
        dscomm_priv_run_start(work->run, &call->coll);
    }
    schedule_settle(work);
    return DSCOMM_OK;
}

static void schedule_advance(dscomm_work_t *work)
{
    work->group->works.completed += dscomm_priv_run_advance(work->run);
    if (work->run->status != DSCOMM_IN_PROGRESS)
        schedule_settle(work);
}

static void schedule_release(dscomm_work_t *work)
{
    if (work->run)
        dscomm_priv_cache_give(work->group->schedules.cache, work->run);
    work->run = NULL;
}

static void schedule_end(dscomm_work_t *work)
{
    schedule_release(work);
    dscomm_priv_works_scheduled(work->group, -1);
}

static int schedule_peer(const dscomm_work_t *work, uint32_t index)
{
    const dscomm_run_t *run = work->run;

    return index < run->nmessages ? run->messages[index].step->peer : -1;
}

static void schedule_post_early(dscomm_work_t *work)
{
    dscomm_priv_early_begin(work->run);
}

static void detail_append(dscomm_failure_t *failure, const char *text)
{
    char *before = g_strdup(failure->detail);

    dscomm_backend_failure_detail(failure, "%s; %s", before, text);
    g_free(before);
}

/* The reports may not show who is late: the store may be gone, and a rank that
 * ended in this collective has reported nothing. A rank that is the only one to
 * be waited for is the culprit then. */
static dscomm_status_t schedule_overdue(dscomm_work_t *work,
                                        dscomm_failure_t *ret_failure)
{
    const bool far = dscomm_priv_group_nodes(work->group) != NULL;
    char where[DSCOMM_FAILURE_DETAIL_MAX] = "";
    dscomm_status_t status;
    int peer = -1;

    dscomm_priv_group_accuse(work->group, dscomm_priv_run_awaited(work->run),
                             ret_failure);
    dscomm_priv_run_explain(work->run, ret_failure->detail,
                            sizeof ret_failure->detail);
    if (far)
        peer = dscomm_priv_run_describe_peer(work->run, where, sizeof where);
    status =
        schedule_diagnose(work, dscomm_priv_diagnosis_timeout, ret_failure);
    if (status == DSCOMM_OK && *where && ret_failure->group_rank == peer)
        detail_append(ret_failure, where);
    return status;
}

static const dscomm_work_kind_t native_kind = {.start = native_start};

static const dscomm_work_kind_t schedule_kind = {
    .start = schedule_start,
    .advance = schedule_advance,
    .cancel = schedule_cancel,
    .end = schedule_end,
    .release = schedule_release,
    .peer = schedule_peer,
    .post_early = schedule_post_early,
    .look = collective_look,
    .overdue = schedule_overdue,
};

const dscomm_work_kind_t *dscomm_priv_collective_kind(const dscomm_call_t *call)
{
    return call->algorithm ? &schedule_kind : &native_kind;
}
