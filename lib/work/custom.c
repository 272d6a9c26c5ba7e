/* SPDX-License-Identifier: BSD-3-Clause */
/* Custom works, see dscomm_work_create(). */
#include "config.h"
#include "lib/base/attr.h"
#include "lib/base/status.h"
#include "lib/work/progress.h"

#include <string.h>

static void custom_advance(dscomm_work_t *work)
{
    dscomm_status_t status =
        work->call.custom.ops.advance(work->call.custom.state);

    if (status < 0)
        work->text = strdup(dscomm_last_error());
    work->request.status = status;
}

static dscomm_status_t custom_start(dscomm_work_t *work)
{
    work->group->works.custom++;
    dscomm_priv_progress_custom(1);
    custom_advance(work);
    return DSCOMM_OK;
}

static void custom_cancel(dscomm_work_t *work, dscomm_status_t status)
{
    work->call.custom.ops.cancel(work->call.custom.state, status);
}

static void custom_end(dscomm_work_t *work)
{
    work->group->works.custom--;
    dscomm_priv_progress_custom(-1);
}

static const dscomm_work_kind_t custom_kind = {
    .start = custom_start,
    .advance = custom_advance,
    .cancel = custom_cancel,
    .end = custom_end,
};

static dscomm_status_t read_ops(const dscomm_group_t *group,
                                const dscomm_work_ops_t *ops,
                                dscomm_work_ops_t *ret_ops)
{
    const char *name = "dscomm_work_create";
    dscomm_status_t status = dscomm_priv_table_read(
        "dscomm_work_create: ops", "set it to sizeof(dscomm_work_ops_t)", ops,
        sizeof *ret_ops, ret_ops);

    if (status == DSCOMM_OK && !(ret_ops->advance && ret_ops->cancel))
        return dscomm_priv_invalid(group, name,
                                   "%s is NULL; fill in size, "
                                   "advance and cancel",
                                   !ops                ? "ops"
                                   : !ret_ops->advance ? "ops.advance"
                                                       : "ops.cancel");
    return status;
}

dscomm_status_t dscomm_work_create(dscomm_group_t *group,
                                   const dscomm_work_ops_t *ops, void *state,
                                   dscomm_work_t **ret_work)
{
    const char *name = "dscomm_work_create";
    dscomm_call_t call = {.type = CALL_CUSTOM,
                          .async = 1,
                          .internal = 1,
                          .custom = {.state = state}};
    dscomm_status_t status = dscomm_priv_group_ready(group, name);

    if (status < 0)
        return status;
    if (!ret_work)
        return dscomm_priv_invalid(group, name, "ret_work is NULL");
    status = read_ops(group, ops, &call.custom.ops);
    return status < 0
               ? status
               : dscomm_priv_work_start(group, &custom_kind, &call, ret_work);
}
