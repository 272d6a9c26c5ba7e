/* SPDX-License-Identifier: BSD-3-Clause */
/* Works that are messages, see receive.h. */
#include "config.h"
#include "lib/call/receive.h"
#include "lib/base/attr.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/work/pending.h"
#include "lib/work/progress.h"

#include <stdio.h>

dscomm_status_t
dscomm_priv_message_info_check(const dscomm_message_info_t *info,
                               const char *name)
{
    return info ? dscomm_priv_info_check(name, "ret_info", &info->size)
                : DSCOMM_OK;
}

void dscomm_priv_message_info_fill(dscomm_message_info_t *ret_info,
                                   dscomm_status_t status,
                                   const dscomm_request_t *request)
{
    dscomm_message_info_t info = {
        .status = status,
        .source = request->source,
        .tag = request->tag,
        .bytes = request->bytes,
    };

    if (ret_info)
        dscomm_priv_info_copy(&info, sizeof info, ret_info);
}

/* Called with the group's lock held: ends work with status, unless a message
 * has begun to arrive. */
static bool receive_withdraw(dscomm_work_t *work, dscomm_status_t status,
                             const char *why)
{
    dscomm_group_t *group = work->group;
    char what[128], text[DSCOMM_ERROR_MAX];

    if (work->request.status != DSCOMM_IN_PROGRESS ||
        !group->ops.withdraw(group->impl, &work->request))
        return false;
    dscomm_priv_work_describe(work, what, sizeof what);
    snprintf(text, sizeof text, "%s of group '%s' (rank %d of %d) %s", what,
             group->identity.name, group->rank, group->size, why);
    dscomm_priv_work_retire(work, status, text);
    return true;
}

/* If a message has begun to arrive, the group's deadline holds from now on, so
 * that a stalled sender is noticed. */
int dscomm_priv_receive_expire(dscomm_work_t *work, int64_t now)
{
    const dscomm_group_t *group = work->group;

    if (group->ops.matched && group->ops.matched(group->impl, &work->request)) {
        work->call.deadline_ns = 0;
        return 0;
    }
    if (now < work->call.deadline_ns)
        return 0;
    if (receive_withdraw(work, DSCOMM_ERR_TIMEOUT,
                         "got no message before its own deadline; the group "
                         "goes on"))
        return 1;
    work->call.deadline_ns = 0;
    return 0;
}

static dscomm_status_t receive_start(dscomm_work_t *work)
{
    const dscomm_group_t *group = work->group;
    const dscomm_message_t *message = &work->call.p2p.message;

    if (work->call.p2p.receive)
        return group->ops.irecv(group->impl, message, &work->request);
    return group->ops.isend(group->impl, message, &work->request);
}

const dscomm_work_kind_t dscomm_priv_message_kind = {
    .start = receive_start,
    .expire = dscomm_priv_receive_expire,
};

static dscomm_status_t receive_check_backend(const dscomm_group_t *group,
                                             const char *name)
{
    if (group->ops.withdraw)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                       "%s on group '%s': backend %s cannot take back a "
                       "receive; wait for it",
                       name, group->identity.name, group->module->name);
}

dscomm_status_t dscomm_priv_receive_deadline(const dscomm_group_t *group,
                                             const char *name, int timeout_ms,
                                             int64_t *ret_deadline_ns)
{
    dscomm_status_t status = DSCOMM_OK;

    if (timeout_ms < DSCOMM_TIMEOUT_NONE)
        return dscomm_priv_invalid(group, name,
                                   "timeout_ms is %d; give "
                                   "milliseconds, 0, DSCOMM_TIMEOUT_DEFAULT or "
                                   "DSCOMM_TIMEOUT_NONE",
                                   timeout_ms);
    if (timeout_ms == DSCOMM_TIMEOUT_DEFAULT)
        timeout_ms = group->timeout_ms;
    if (timeout_ms != DSCOMM_TIMEOUT_NONE)
        status = receive_check_backend(group, name);
    *ret_deadline_ns = dscomm_priv_clock_after(dscomm_priv_clock(), timeout_ms);
    return status;
}

static dscomm_status_t work_check(const dscomm_work_t *work, const char *name)
{
    if (!work)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: work is NULL", name);
    if (dscomm_priv_group_forked(work->group))
        return dscomm_priv_group_usable(work->group, name);
    return DSCOMM_OK;
}

/* OK, or the reason why work cannot be withdrawn. */
static dscomm_status_t receive_check_work(const dscomm_work_t *work,
                                          const char *name)
{
    const dscomm_status_t status = work_check(work, name);

    if (status < 0)
        return status;
    if (!dscomm_priv_receive_is(work))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s on group '%s': the work is no receive; only "
                           "one that dscomm_irecv started can be taken back",
                           name, work->group->identity.name);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_work_cancel(dscomm_work_t *work)
{
    const char *name = "dscomm_work_cancel";
    dscomm_status_t status = receive_check_work(work, name);
    dscomm_group_t *group;

    if (status < 0 || dscomm_priv_work_done(work))
        return status;
    group = work->group;
    status = receive_check_backend(group, name);
    if (status < 0)
        return status;
    pthread_mutex_lock(&group->works.lock);
    dscomm_priv_progress(group);
    if (!dscomm_priv_work_done(work))
        receive_withdraw(work, DSCOMM_ERR_CANCELLED, "was cancelled");
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->works.lock);
    return DSCOMM_OK;
}

/* Checks the time-out of a work that is no receive. */
static dscomm_status_t timeout_check(const dscomm_work_t *work,
                                     const char *name, int timeout_ms)
{
    const dscomm_group_t *group = work->group;

    if (work->call.type == CALL_CUSTOM)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s on group '%s': a work of dscomm_work_create() "
                           "has no deadline; let its advance end it in time",
                           name, group->identity.name);
    if (timeout_ms > 0 || timeout_ms == DSCOMM_TIMEOUT_DEFAULT)
        return DSCOMM_OK;
    return dscomm_priv_invalid(group, name,
                               "timeout_ms is %d; give milliseconds or "
                               "DSCOMM_TIMEOUT_DEFAULT for a work that is no "
                               "receive",
                               timeout_ms);
}

dscomm_status_t dscomm_work_set_timeout(dscomm_work_t *work, int timeout_ms)
{
    const char *name = "dscomm_work_set_timeout";
    int64_t deadline_ns = 0;
    dscomm_status_t status = work_check(work, name);

    if (status < 0)
        return status;
    if (dscomm_priv_receive_is(work))
        status = dscomm_priv_receive_deadline(work->group, name, timeout_ms,
                                              &deadline_ns);
    else
        status = timeout_check(work, name, timeout_ms);
    if (status < 0)
        return status;
    pthread_mutex_lock(&work->group->works.lock);
    if (dscomm_priv_receive_is(work))
        work->call.deadline_ns = deadline_ns;
    else
        work->timeout_ms = MAX(timeout_ms, 0);
    pthread_mutex_unlock(&work->group->works.lock);
    if (timeout_ms >= 0)
        dscomm_priv_pending_watch(dscomm_priv_clock_after(0, timeout_ms));
    return DSCOMM_OK;
}

dscomm_status_t dscomm_work_received_at(const dscomm_work_t *work, size_t index,
                                        dscomm_message_info_t *ret_info)
{
    const char *name = "dscomm_work_received_at";
    size_t receives;

    if (!work || !ret_info)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s is NULL", name,
                           work ? "ret_info" : "work");
    if (dscomm_priv_message_info_check(ret_info, name) < 0)
        return DSCOMM_ERR_INVALID;
    if (!dscomm_priv_work_done((dscomm_work_t *)work))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s: the work is not complete; wait for it first",
                           name);
    receives = dscomm_priv_receive_is(work) ? 1 : work->children.receives;
    if (index >= receives)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: the work has %zu receive%s; there is no number "
                           "%zu",
                           name, receives, receives == 1 ? "" : "s", index);
    if (work->children.received)
        dscomm_priv_info_copy(&work->children.received[index], sizeof *ret_info,
                              ret_info);
    else
        dscomm_priv_message_info_fill(
            ret_info, atomic_load_explicit(&work->status, memory_order_acquire),
            &work->request);
    return DSCOMM_OK;
}
