/* SPDX-License-Identifier: BSD-3-Clause */
/* The hook table of the process. */
#include "config.h"
#include "lib/base/attr.h"
#include "lib/base/clock.h"
#include "lib/base/process.h"
#include "lib/base/types.h"
#include "lib/work/work.h"

#include <dscomm/backend.h>
#include <pthread.h>

/* A table that was installed. Tables are never freed, because operations in
 * flight end with the table that they began with. Installing an equal table
 * again uses the old copy. */
typedef struct node {
    dscomm_hooks_t hooks;
    struct node *next;
} node_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static node_t *nodes;
static _Atomic(node_t *) current;

/* Returns the copy of hooks, and makes it if there is none; NULL: no memory. */
static node_t *hooks_intern(const dscomm_hooks_t *hooks)
{
    node_t *node;

    for (node = nodes; node; node = node->next)
        if (node->hooks.begin == hooks->begin &&
            node->hooks.end == hooks->end && node->hooks.arg == hooks->arg &&
            node->hooks.waited == hooks->waited &&
            node->hooks.note == hooks->note &&
            node->hooks.flags == hooks->flags &&
            node->hooks.device == hooks->device)
            return node;
    node = g_try_new0(node_t, 1);
    if (!node)
        return NULL;
    node->hooks = *hooks;
    node->next = nodes;
    nodes = node;
    return node;
}

static dscomm_status_t hooks_install(const dscomm_hooks_t *hooks)
{
    node_t *node;

    if (atomic_load(&current))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "dscomm_hooks_set: another hook table is "
                           "installed; remove it first with NULL");
    node = hooks_intern(hooks);
    if (!node)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "dscomm_hooks_set: no memory");
    atomic_store(&current, node);
    atomic_fetch_or(&dscomm_priv_attention, DSCOMM_ATTENTION_HOOKS);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_hooks_set(const dscomm_hooks_t *hooks)
{
    dscomm_hooks_t own = {0};
    dscomm_status_t status = dscomm_priv_table_read(
        "dscomm_hooks_set: hooks", "set it to sizeof(dscomm_hooks_t)", hooks,
        sizeof own, &own);

    if (status < 0)
        return status;
    if (own.flags & ~DSCOMM_HOOKS_PHASES)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_hooks_set: hooks.flags has a bit that this "
                           "libdscomm does not know; it knows "
                           "DSCOMM_HOOKS_PHASES");
    dscomm_priv_device_times_report();
    pthread_mutex_lock(&lock);
    if (hooks) {
        status = hooks_install(&own);
    } else {
        atomic_fetch_and(&dscomm_priv_attention, ~DSCOMM_ATTENTION_HOOKS);
        atomic_store(&current, NULL);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

dscomm_status_t dscomm_hook_note(const dscomm_note_t *note)
{
    const node_t *node = atomic_load_explicit(&current, memory_order_acquire);
    dscomm_note_t own = {0};
    dscomm_status_t status = dscomm_priv_table_read(
        "dscomm_hook_note: note", "set it to sizeof(dscomm_note_t)", note,
        sizeof own, &own);

    if (status < 0)
        return status;
    if (!own.group || !own.codec || own.coll < 0 ||
        own.coll >= DSCOMM_COLL_COUNT)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_hook_note: note is NULL, has no group or no "
                           "codec, or its coll is %d, which is no "
                           "dscomm_coll_t",
                           own.coll);
    own.size = sizeof own;
    if (node && node->hooks.note)
        node->hooks.note(&own, node->hooks.arg);
    return DSCOMM_OK;
}

static void op_describe_collective(const dscomm_group_t *group,
                                   const dscomm_coll_args_t *args,
                                   dscomm_op_info_t *info)
{
    info->sequence = args->sequence;
    info->coll = args->coll;
    info->dtype = args->dtype;
    info->op = args->user ? args->user->handle : args->op;
    info->root = MAX(args->root, -1);
    info->tag = -1;
    info->count = args->count;
    info->bytes = args->count * args->element;
    if (dscomm_priv_coll_has(args->coll, SHAPE_ALL))
        info->bytes *= (size_t)group->size;
    info->send = args->send;
    info->recv = args->recv;
}

static void op_describe_message(const dscomm_call_t *call,
                                dscomm_op_info_t *info)
{
    const dscomm_message_t *message = &call->p2p.message;

    info->sequence = call->p2p.sequence;
    info->coll = call->p2p.receive ? DSCOMM_COLL_RECV : DSCOMM_COLL_SEND;
    info->dtype = call->p2p.dtype;
    info->op = -1;
    info->root = message->peer;
    info->tag = message->tag;
    info->count = call->p2p.count;
    info->bytes = message->bytes;
    info->send = message->send;
    info->recv = message->recv;
}

/* Replaces what a receive could have got by what it has got. */
static void op_describe_received(const dscomm_request_t *request,
                                 dscomm_op_info_t *info)
{
    info->bytes = request->bytes;
    if (info->root < 0)
        info->root = request->source;
    if (info->tag == DSCOMM_ANY_TAG)
        info->tag = request->tag;
}

static inline void op_describe_head(const dscomm_group_t *group, int async,
                                    dscomm_op_info_t *info)
{
    info->size = sizeof(*info);
    info->group = group;
    info->async = async;
    info->phases = NULL;
}

static void op_describe(const dscomm_group_t *group, const dscomm_call_t *call,
                        dscomm_op_info_t *info)
{
    op_describe_head(group, call->async, info);
    if (call->type == CALL_COLLECTIVE)
        op_describe_collective(group, &call->coll, info);
    else
        op_describe_message(call, info);
}

/* True for collectives of dscomm_group_new(), dscomm_finalize() and others. */
static inline bool args_are_librarys(const dscomm_coll_args_t *args)
{
    return args->root < -1;
}

/* The installed table; NULL: none. */
static inline const dscomm_hooks_t *hooks_now(void)
{
    const node_t *node = atomic_load_explicit(&current, memory_order_acquire);

    return node ? &node->hooks : NULL;
}

/* Returns the operation's token. */
static inline uint64_t hooks_begin(const dscomm_hooks_t *hooks,
                                   const dscomm_op_info_t *info)
{
    return hooks->begin ? hooks->begin(info, hooks->arg) : 0;
}

/* phases: of the operation, which end here; NULL: not timed. */
static inline void hooks_end(const dscomm_hooks_t *hooks,
                             dscomm_phases_t *phases, dscomm_op_info_t *info,
                             dscomm_status_t status, uint64_t token)
{
    if (phases) {
        dscomm_phase_switch(phases, DSCOMM_PHASE_OTHER);
        info->phases = phases->ns;
    }
    if (hooks && hooks->end)
        hooks->end(info, status, token, hooks->arg);
}

dscomm_hook_span_t dscomm_priv_hook_begin(const dscomm_group_t *group,
                                          const dscomm_call_t *call)
{
    dscomm_hook_span_t span = {.hooks = hooks_now()};
    dscomm_op_info_t info;

    if (call->type == CALL_COLLECTIVE && args_are_librarys(&call->coll))
        span.hooks = NULL;
    if (span.hooks && span.hooks->begin) {
        op_describe(group, call, &info);
        span.token = hooks_begin(span.hooks, &info);
    }
    return span;
}

dscomm_status_t dscomm_priv_hook_run(dscomm_group_t *group,
                                     dscomm_coll_args_t *args)
{
    const dscomm_hooks_t *hooks = hooks_now();
    dscomm_op_info_t info;
    dscomm_phases_t phases;
    dscomm_status_t status;
    uint64_t token;

    if (!hooks || args_are_librarys(args))
        return dscomm_priv_group_run(group, args);
    op_describe_head(group, 0, &info);
    op_describe_collective(group, args, &info);
    token = hooks_begin(hooks, &info);
    dscomm_priv_hook_phases(hooks, args, &phases);
    status = dscomm_priv_group_run(group, args);
    hooks_end(hooks, args->phases, &info, status, token);
    return status;
}

void dscomm_priv_hook_end(const dscomm_group_t *group,
                          const dscomm_call_t *call, dscomm_hook_span_t span,
                          dscomm_status_t status,
                          const dscomm_request_t *request)
{
    dscomm_op_info_t info;

    if (!call->time && (!span.hooks || !span.hooks->end))
        return;
    op_describe(group, call, &info);
    if (info.coll == DSCOMM_COLL_RECV && status == DSCOMM_OK)
        op_describe_received(request, &info);
    hooks_end(span.hooks,
              call->type == CALL_COLLECTIVE ? call->coll.phases : NULL, &info,
              status, span.token);
    if (G_UNLIKELY(call->time))
        dscomm_priv_device_time_end(group, call->time, span, &info);
}

bool dscomm_priv_hook_wants_device(void)
{
    const dscomm_hooks_t *hooks = hooks_now();

    return hooks && hooks->device;
}

void dscomm_phase_switch(dscomm_phases_t *phases, dscomm_phase_t phase)
{
    int64_t now_ns;

    if (phases->phase == (int)phase && phase == DSCOMM_PHASE_WAIT)
        return; /* many turns of one wait */
    now_ns = dscomm_priv_clock();
    phases->ns[phases->phase] += now_ns - phases->since_ns;
    phases->since_ns = now_ns;
    phases->phase = (int)phase;
}

void dscomm_priv_hook_waited(dscomm_work_t *work)
{
    const dscomm_hook_span_t span = work->span;
    dscomm_op_info_t info;

    work->span.waited_ns = 0;
    op_describe(work->group, &work->call, &info);
    if (info.coll == DSCOMM_COLL_RECV && work->status == DSCOMM_OK)
        op_describe_received(&work->request, &info);
    span.hooks->waited(&info, span.waited_ns, span.token, span.hooks->arg);
}

void dscomm_priv_hook_forked(void)
{
    pthread_mutex_init(&lock, NULL);
}
