/* SPDX-License-Identifier: BSD-3-Clause */
/* Information on algorithms: the table, and which algorithm serves a call. */
#include "config.h"

#include "lib/base/attr.h"
#include "lib/base/op.h"
#include "lib/base/settings.h"
#include "lib/call/dispatch.h"

#include <dscomm/info.h>

static const char *algorithm_name(const dscomm_algorithm_t *algorithm)
{
    return algorithm ? algorithm->name : "native";
}

static size_t count_algorithms(void)
{
    size_t count = 0;

    while (dscomm_priv_algorithms[count].name)
        count++;
    return count;
}

dscomm_status_t dscomm_algorithm_info(size_t index,
                                      dscomm_algorithm_info_t *info)
{
    const char *name = "dscomm_algorithm_info";
    dscomm_algorithm_info_t full;

    if (dscomm_priv_info_check(name, "info", info ? &info->size : NULL) < 0)
        return DSCOMM_ERR_INVALID;
    if (index >= count_algorithms())
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "%s: no algorithm %zu; there are %zu", name, index,
                           count_algorithms());
    full.coll = dscomm_priv_algorithms[index].coll;
    full.name = dscomm_priv_algorithms[index].name;
    full.power_of_two =
        dscomm_priv_algorithm_needs_power(&dscomm_priv_algorithms[index]);
    full.two_levels =
        dscomm_priv_algorithm_needs_levels(&dscomm_priv_algorithms[index]);
    dscomm_priv_info_copy(&full, sizeof full, info);
    return DSCOMM_OK;
}

/* Describes the call in question, as far as the choice depends on it. The
 * caller must drop args->user. */
static dscomm_status_t make_args(const char *name, dscomm_coll_t coll,
                                 dscomm_dtype_t dtype, dscomm_op_t op,
                                 dscomm_coll_args_t *ret_args)
{
    const int reduces = dscomm_priv_coll((int)coll)->reduces;

    if ((unsigned)coll >= DSCOMM_COLL_SEND)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %d is no collective", name,
                           (int)coll);
    if ((unsigned)dtype >= DSCOMM_DTYPE_COUNT)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %d is no dtype", name,
                           (int)dtype);
    if (reduces && !dscomm_op_applies(op, dtype))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: operator %s does not apply to %s", name,
                           dscomm_op_name(op), dscomm_dtype_name(dtype));
    *ret_args = (dscomm_coll_args_t){.coll = (int)coll,
                                     .dtype = (int)dtype,
                                     .op = reduces ? (int)op : -1,
                                     .root = -1,
                                     .element = dscomm_priv_element_of(dtype)};
    if (ret_args->op >= DSCOMM_OP_COUNT)
        return dscomm_priv_op_take(op, name, "", 0, ret_args);
    return DSCOMM_OK;
}

static dscomm_status_t check_place(const char *name, int ranks, int nodes)
{
    if (ranks < 2)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: ranks is %d; only 2 and more need an algorithm",
                           name, ranks);
    if (nodes < 1 || nodes > ranks)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: nodes is %d; %d ranks are on 1 to %d of them",
                           name, nodes, ranks, ranks);
    return DSCOMM_OK;
}

static dscomm_choice_info_t choice_describe(const dscomm_choice_span_t *span,
                                            const dscomm_nodes_t *nodes)
{
    const dscomm_algorithm_t *passed =
        span->passed ? span->passed->algorithm : NULL;

    return (dscomm_choice_info_t){
        .from = span->from,
        .to = span->to,
        .by_default = span->algorithm->name,
        .by_setting = span->rule ? algorithm_name(span->rule->algorithm) : NULL,
        .passed_over = passed ? passed->name : NULL,
        .why = passed ? dscomm_priv_algorithm_unfit(passed, nodes) : NULL,
    };
}

dscomm_status_t dscomm_choice_info(int ranks, int nodes, dscomm_coll_t coll,
                                   dscomm_dtype_t dtype, dscomm_op_t op,
                                   uint64_t bytes, dscomm_choice_info_t *info)
{
    const char *name = "dscomm_choice_info";
    const dscomm_nodes_t several = {.ranks = ranks, .count = nodes};
    const dscomm_nodes_t *passed = nodes > 1 ? &several : NULL;
    dscomm_choice_info_t full;
    dscomm_choice_span_t span;
    dscomm_coll_args_t args;
    dscomm_status_t status;
    GArray *rules;

    if (dscomm_priv_info_check(name, "info", info ? &info->size : NULL) < 0)
        return DSCOMM_ERR_INVALID;
    status = check_place(name, ranks, nodes);
    if (status == DSCOMM_OK)
        status = make_args(name, coll, dtype, op, &args);
    if (status < 0)
        return status;
    status = dscomm_priv_choices_read(
        dscomm_priv_setting_text(SETTING_ALGORITHM), &rules);
    if (status == DSCOMM_OK)
        dscomm_priv_choice_span(rules, &args, ranks, passed, bytes, &span);
    dscomm_priv_op_drop(args.user);
    if (status < 0)
        return status;
    full = choice_describe(&span, passed);
    dscomm_priv_info_copy(&full, sizeof full, info);
    g_array_free(rules, TRUE);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_group_algorithm(dscomm_group_t *group,
                                       dscomm_coll_t coll, dscomm_dtype_t dtype,
                                       dscomm_op_t op, size_t count, int async,
                                       const char **ret_name)
{
    const char *name = "dscomm_group_algorithm";
    dscomm_coll_args_t args;
    dscomm_status_t status = dscomm_priv_group_alive(group, name);

    if (status < 0)
        return status;
    if (!ret_name)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: ret_name is NULL", name);
    status = make_args(name, coll, dtype, op, &args);
    if (status < 0)
        return status;
    args.count = count;
    *ret_name =
        algorithm_name(dscomm_priv_dispatch_peek(group, &args, async != 0));
    dscomm_priv_op_drop(args.user);
    return DSCOMM_OK;
}

/* Checks a call as far as a backend that describes it relies on that. */
static dscomm_status_t check_call(const char *name, const dscomm_group_t *group,
                                  const dscomm_coll_args_t *args)
{
    const size_t most = SIZE_MAX / 16 / args->element / (size_t)group->size /
                        (size_t)group->size;

    if (args->count > most)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: count is %zu; costs of more than %zu elements "
                           "cannot be counted",
                           name, args->count, most);
    if (dscomm_priv_coll(args->coll)->rooted &&
        (args->root < 0 || args->root >= group->size))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: root is %d; the ranks are 0 to %d", name,
                           args->root, group->size - 1);
    return DSCOMM_OK;
}

/* Has the backend describe a call that it runs. */
static dscomm_status_t native_describe(const char *name, dscomm_group_t *group,
                                       const dscomm_coll_args_t *args,
                                       dscomm_native_info_t *full)
{
    const char *coll = dscomm_coll_name((dscomm_coll_t)args->coll);
    dscomm_status_t status = DSCOMM_ERR_UNSUPPORTED;

    if (dscomm_priv_dispatch_peek(group, args, 0))
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s: an algorithm of the library runs this %s", name,
                           coll);
    if (group->ops.native_info &&
        !dscomm_priv_coll_has(args->coll, SHAPE_COUNTS)) {
        pthread_mutex_lock(&group->works.lock);
        status = group->ops.native_info(group->impl, args, full);
        pthread_mutex_unlock(&group->works.lock);
    }
    if (status < 0)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s: backend %s does not tell how it runs this %s",
                           name, group->module->name, coll);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_group_native_info(dscomm_group_t *group,
                                         dscomm_coll_t coll, const void *send,
                                         void *recv, size_t count,
                                         dscomm_dtype_t dtype, dscomm_op_t op,
                                         int root, dscomm_native_info_t *info)
{
    const char *name = "dscomm_group_native_info";
    dscomm_native_info_t full = {.size = sizeof full};
    dscomm_coll_args_t args;
    dscomm_status_t status = dscomm_priv_group_alive(group, name);

    if (status < 0)
        return status;
    if (dscomm_priv_info_check(name, "info", info ? &info->size : NULL) < 0)
        return DSCOMM_ERR_INVALID;
    status = make_args(name, coll, dtype, op, &args);
    if (status < 0)
        return status;
    args.send = send;
    args.recv = recv;
    args.count = count;
    if (dscomm_priv_coll(args.coll)->rooted)
        args.root = root;
    status = check_call(name, group, &args);
    if (status == DSCOMM_OK)
        status = native_describe(name, group, &args, &full);
    dscomm_priv_op_drop(args.user);
    if (status == DSCOMM_OK)
        dscomm_priv_info_copy(&full, sizeof full, info);
    return status;
}

dscomm_status_t dscomm_group_tuning(dscomm_group_t *group, char *text,
                                    size_t size)
{
    const char *name = "dscomm_group_tuning";
    dscomm_status_t status = dscomm_priv_group_alive(group, name);

    if (status < 0)
        return status;
    if (!text || !size)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: there is no room for text",
                           name);
    *text = '\0';
    pthread_mutex_lock(&group->works.lock);
    if (group->ops.tuning)
        group->ops.tuning(group->impl, text, size);
    pthread_mutex_unlock(&group->works.lock);
    return DSCOMM_OK;
}
