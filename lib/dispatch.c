/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path of a collective. */
#include "config.h"
#include "lib/dispatch.h"
#include "lib/coalesce.h"
#include "lib/work.h"

/* The schedules over send and recv, by which the core can run what a backend
 * does not, would be chosen here. */
static dscomm_status_t unsupported(dscomm_group_t *group,
                                   const dscomm_coll_args_t *args,
                                   const char *kind)
{
    const char *name = dscomm_coll_name((dscomm_coll_t)args->coll);
    const char *backend = group->module->name;

    if (args->op < 0)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s on group '%s': backend %s has no native %s%s; "
                           "choose another backend",
                           name, group->name, backend, kind, name);
    return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                       "%s on group '%s': backend %s has no native %s%s of %s "
                       "with operator %s; choose another backend",
                       name, group->name, backend, kind, name,
                       dscomm_dtype_name((dscomm_dtype_t)args->dtype),
                       dscomm_op_name((dscomm_op_t)args->op));
}

static int is_native(dscomm_group_t *group, const dscomm_coll_args_t *args)
{
    if (group->capabilities & DSCOMM_CAP_NATIVE_COLLECTIVES)
        return 1;
    return group->ops.native && group->ops.native(group->impl, args);
}

/* Nothing is started that the backend cannot finish. */
static dscomm_status_t check_native(dscomm_group_t *group,
                                    const dscomm_coll_args_t *args, int async)
{
    int native = 0;

    if (group->ops.run || group->ops.start) {
        pthread_mutex_lock(&group->lock);
        native = is_native(group, args);
        pthread_mutex_unlock(&group->lock);
    }
    if (!native)
        return unsupported(group, args, "");
    if (async && !group->ops.start)
        return unsupported(group, args, "non-blocking ");
    return DSCOMM_OK;
}

static dscomm_status_t run(dscomm_group_t *group, dscomm_call_t *call)
{
    dscomm_hook_span_t span = dscomm_priv_hook_begin(group, call);
    dscomm_status_t status;

    status = group->ops.run(group->impl, &call->coll);
    dscomm_priv_hook_end(group, call, span, status);
    return status;
}

/* A blocking call starts after the works before it. Without a start slot it can
 * only be run, which is right while all pending works are messages: those make
 * progress in run. */
static dscomm_status_t block(dscomm_group_t *group, dscomm_call_t *call)
{
    dscomm_status_t status;

    if (!dscomm_priv_group_is(group, GROUP_PENDING) && group->ops.run)
        return run(group, call);
    if (group->ops.start)
        return dscomm_priv_work_block(group, call, NULL);
    pthread_mutex_lock(&group->lock);
    status = run(group, call);
    group->unscanned = 1;
    pthread_mutex_unlock(&group->lock);
    return status;
}

dscomm_status_t dscomm_priv_dispatch_slow(dscomm_group_t *group,
                                          dscomm_coll_args_t *args,
                                          dscomm_work_t **ret_work)
{
    const char *name = dscomm_coll_name((dscomm_coll_t)args->coll);
    dscomm_call_t call = {.kind = CALL_COLLECTIVE, .async = ret_work != NULL};
    dscomm_status_t status = dscomm_priv_group_usable(group, name);
    int coalescing;

    if (status < 0)
        return status;
    coalescing = dscomm_priv_group_is(group, GROUP_COALESCING) != 0;
    if (coalescing && ret_work)
        return dscomm_priv_coalesce_refuse(group, name);
    status = check_native(group, args, coalescing || ret_work);
    if (status < 0)
        return status;
    call.coll = *args;
    if (coalescing)
        return dscomm_priv_coalesce_record(group, &call);
    call.coll.sequence = ++group->sequence;
    if (ret_work)
        return dscomm_priv_work_start(group, &call, ret_work);
    return block(group, &call);
}
