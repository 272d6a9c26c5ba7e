/* SPDX-License-Identifier: BSD-3-Clause */
/* The two-level backend: opening and closing a group, what concerns all its
 * levels, and the module's descriptor. */
#include "config.h"

#include "backends/two-level/two-level.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define SLICE_DEFAULT ((size_t)32 << 10)
#define LOOK_EVERY 64 /* calls of progress between looks at idle levels */

const dscomm_setting_t two_settings[] = {
    [TWO_SETTING_INSIDE] = {"DSCOMM_TWO_LEVEL_INSIDE", DSCOMM_SETTING_STRING,
                            "shm", 0, 0, NULL, "Backend inside each node."},
    [TWO_SETTING_BETWEEN] = {"DSCOMM_TWO_LEVEL_BETWEEN", DSCOMM_SETTING_STRING,
                             "mpi", 0, 0, NULL, "Backend between nodes."},
    [TWO_SETTING_ANY_SOURCE] =
        {"DSCOMM_TWO_LEVEL_ANY_SOURCE", DSCOMM_SETTING_BOOL, "1", 0, 1, NULL,
         "Receives from any source, where the backend between nodes has them; "
         "0 = none, but messages inside a node go by its own backend."},
    [TWO_SETTING_SLICE] =
        {"DSCOMM_TWO_LEVEL_SLICE", DSCOMM_SETTING_BYTES, NULL, 0,
         (int64_t)1 << 40, NULL,
         "Bytes from which all ranks of a node share an all_reduce between "
         "nodes that have equally many ranks; below, the first does it. Unset: "
         "32K where all ranks have a processor, else none do."},
    {0},
};

/* RAIL need not be told: FLAT has its ranks, and nothing more is started. */
void two_revoke(void *impl, dscomm_status_t status, const char *sentence)
{
    two_t *two = impl;

    if (!ending_mark(&two->ending, status, sentence))
        return;
    for (int i = 0; i < TWO_LEVELS; i++) {
        const two_level_t *level = &two->levels[i];

        if (!level->ops || i == TWO_RAIL)
            continue;
        level->ops->revoke(level->impl, status, two->ending.text);
        level->ops->status(level->impl, NULL, 0); /* may tell others at once */
    }
}

/* A level that was revoked revokes the others. All are asked, also when the
 * group has ended: one that has to tell other ranks of it may do so then. */
static void look_at_levels(two_t *two)
{
    char text[ENDING_MAX] = "";

    for (int i = 0; i < TWO_LEVELS; i++) {
        const two_level_t *level = &two->levels[i];
        int status = level->ops ? level->ops->status(level->impl, NULL, 0) : 0;

        if (!status || atomic_load(&two->ending.begun))
            continue;
        level->ops->status(level->impl, text, sizeof text);
        two_sentence(two, level, text, sizeof text);
        two_revoke(two, (dscomm_status_t)status, text);
    }
}

dscomm_status_t two_status(void *impl, char *text, size_t size)
{
    two_t *two = impl;

    look_at_levels(two);
    return ending_status(&two->ending, text, size);
}

dscomm_status_t two_check(two_t *two)
{
    look_at_levels(two);
    return ending_check(&two->ending);
}

static void two_close(void *impl)
{
    two_t *two = impl;

    two_levels_close(two);
    two_places_free(two);
    for (int i = 0; i < 2 && !two->held; i++)
        g_free(two->scratch[i].bytes);
    g_free(two->counts);
    g_free(two->displs);
    g_free(two->even);
    g_free(two->world_ranks);
    g_free(two->name);
    g_free(two);
}

static two_t *two_new(const dscomm_backend_args_t *args)
{
    const gsize ranks = (gsize)args->ranks;
    two_t *two = g_new0(two_t, 1);

    two->name = g_strdup(args->name);
    two->group = args->group;
    two->rank = args->rank;
    two->ranks = args->ranks;
    two->is_world = !args->parent;
    two->world_ranks = g_new(int, ranks);
    memcpy(two->world_ranks, args->world_ranks, ranks * sizeof(int));
    two->counts = g_new0(size_t, ranks);
    two->displs = g_new0(size_t, ranks);
    two->even = g_new0(size_t, ranks);
    return two;
}

/* All ranks come to the same slice. */
static dscomm_status_t read_settings(two_t *two, int oversubscribed)
{
    int64_t any_source, slice;
    dscomm_status_t status = dscomm_setting_number(
        &two_settings[TWO_SETTING_ANY_SOURCE], &any_source);

    if (!status)
        status =
            dscomm_setting_number(&two_settings[TWO_SETTING_SLICE], &slice);
    if (status)
        return status;
    two->direct = !any_source;
    two->slice = slice >= 0       ? (size_t)slice
                 : oversubscribed ? SIZE_MAX
                                  : SLICE_DEFAULT;
    return DSCOMM_OK;
}

uint64_t two_level_capabilities(const two_level_t *level)
{
    if (!level->ops || !level->ops->capabilities)
        return 0;
    return level->ops->capabilities(level->impl);
}

/* Levels that were opened are told where another rank may be in trouble: they
 * may have to leave alone what waits for all ranks. */
static dscomm_status_t give_up(two_t *two, const dscomm_backend_args_t *args,
                               dscomm_status_t status)
{
    char *why;

    status = dscomm_backend_creation_fail(args, status);
    why = g_strdup(dscomm_last_error());
    if (status == DSCOMM_ERR_TIMEOUT || status == DSCOMM_ERR_PEER_FAILED ||
        status == DSCOMM_ERR_IO || status == DSCOMM_ERR_NO_MEMORY)
        two_revoke(two, status, why);
    two_close(two);
    dscomm_fail(status, "%s", why);
    g_free(why);
    return status;
}

static dscomm_status_t two_open(const dscomm_backend_args_t *args,
                                void **ret_impl)
{
    two_t *two = two_new(args);
    dscomm_status_t status = read_settings(two, args->oversubscribed);

    if (!status)
        status = two_places_find(two, args, args->parent);
    if (!status)
        status = two_levels_open(two, args, args->parent);
    if (status)
        return give_up(two, args, status);
    if (!two->only && !(two_level_capabilities(&two->levels[TWO_FLAT]) &
                        DSCOMM_CAP_ANY_SOURCE))
        two->direct = 1;
    dscomm_log(DSCOMM_LOG_DEBUG, "two_level",
               "group '%s': %d ranks on %d nodes, %d on this one, %s",
               two->name, two->ranks, two->nodes,
               two->size[two->node[two->rank]],
               two->only   ? "one level"
               : two->able ? "collectives in two levels"
                           : "messages alone");
    *ret_impl = two;
    return DSCOMM_OK;
}

static void two_cancel(void *impl, dscomm_request_t *request)
{
    two_request_t *own = (two_request_t *)request;

    if (own->collective)
        two_collective_cancel(impl, own);
    else
        two_message_cancel(impl, own);
}

/* Levels with nothing under way are looked at now and then: a peer may have
 * died, or wait until this rank takes something in. */
static unsigned two_progress(void *impl)
{
    two_t *two = impl;
    const int all = two->messages || ++two->ticks % LOOK_EVERY == 0;
    unsigned completed = 0;

    for (int i = 0; i < TWO_LEVELS; i++)
        if (two->levels[i].ops && (all || two->levels[i].live))
            two->levels[i].ops->progress(two->levels[i].impl);
    if (two->messages)
        completed += two_messages_scan(two);
    return completed + two_collectives_advance(two);
}

/* What holds for the group where it does so for each of its levels. */
static uint64_t two_capabilities(void *impl)
{
    const uint64_t noticed =
        DSCOMM_CAP_DEATH_DETECTION | DSCOMM_CAP_MISMATCH_DETECTION;
    const uint64_t of_one = noticed | DSCOMM_CAP_NATIVE_COLLECTIVES |
                            DSCOMM_CAP_ANY_SOURCE | DSCOMM_CAP_ZERO_COPY |
                            DSCOMM_CAP_BLOCKING_APART |
                            DSCOMM_CAP_CALLER_PROGRESS;
    two_t *two = impl;
    const two_level_t *inside = &two->levels[TWO_INSIDE];
    uint64_t flat = two_level_capabilities(&two->levels[TWO_FLAT]);
    uint64_t own = two_level_capabilities(inside);

    if (two->only)
        return two_level_capabilities(two->only) & of_one;
    return (flat & (inside->ops ? own : noticed) & noticed) |
           (own & DSCOMM_CAP_ZERO_COPY) | (flat & DSCOMM_CAP_CALLER_PROGRESS) |
           (two->direct ? 0 : flat & DSCOMM_CAP_ANY_SOURCE) |
           (two->apart ? DSCOMM_CAP_BLOCKING_APART : 0) |
           (two->able ? flat & DSCOMM_CAP_NATIVE_COLLECTIVES : 0);
}

/* A level can be slept on where nothing else is waited for. Then the others are
 * looked at after each sleep: there are few calls of progress. */
static void two_wait(void *impl, unsigned timeout_us)
{
    two_t *two = impl;
    const two_level_t *level = two->only;

    two->ticks = LOOK_EVERY - 1;
    if (!level && two->plan.request && !two->messages)
        level = two->plan.steps[two->plan.at].level;
    if (level && level->ops->wait)
        level->ops->wait(level->impl, timeout_us);
    else
        sched_yield();
}

static void two_explain(void *impl, const dscomm_request_t *request, char *text,
                        size_t size)
{
    two_t *two = impl;
    const two_request_t *own = (const two_request_t *)request;
    const two_level_t *level = NULL;
    const dscomm_request_t *inner = NULL;

    if (own && own == two->failed) {
        snprintf(text, size, "%s", two->why);
    } else if (own && !own->collective) {
        level = own->level;
        inner = own->inner;
    } else if (two->plan.request && (!own || own == two->queue)) {
        level = two->plan.steps[two->plan.at].level;
        inner = own ? two->plan.request : NULL;
    }
    if (level)
        two_level_explain(two, level, inner, text, size);
}

static const two_level_t *memory_level(const two_t *two)
{
    if (two->levels[TWO_INSIDE].ops)
        return &two->levels[TWO_INSIDE];
    return &two->levels[TWO_FLAT];
}

static dscomm_status_t two_mem_alloc(void *impl, size_t size, void **ret_memory)
{
    const two_level_t *level = memory_level(impl);

    if (!level->ops->mem_alloc)
        return DSCOMM_ERR_UNSUPPORTED;
    return level->ops->mem_alloc(level->impl, size, ret_memory);
}

static dscomm_status_t two_mem_free(void *impl, void *memory)
{
    const two_level_t *level = memory_level(impl);

    return level->ops->mem_free(level->impl, memory);
}

static void two_quiesce(void *impl)
{
    two_t *two = impl;

    for (int i = 0; i < TWO_LEVELS; i++)
        if (two->levels[i].ops && two->levels[i].ops->quiesce)
            two->levels[i].ops->quiesce(two->levels[i].impl);
}

/* The world's last barrier still needs the rail, which leans on FLAT and so is
 * no world itself. */
static void two_leave(void *impl)
{
    two_t *two = impl;

    for (int i = 0; i < TWO_LEVELS; i++)
        if (two->levels[i].ops && two->levels[i].ops->leave &&
            !(two->is_world && i == TWO_RAIL))
            two->levels[i].ops->leave(two->levels[i].impl);
}

static const char *between(void)
{
    return dscomm_setting_text(&two_settings[TWO_SETTING_BETWEEN]);
}

/* Who asks for it by name may have hosts that only seem to be several. */
static const char *two_usable(const char *const *hosts, int ranks)
{
    (void)hosts;
    return dscomm_inner_usable(between(), NULL, ranks, 0);
}

static const char *two_advisable(const char *const *hosts, int ranks,
                                 int oversubscribed)
{
    GHashTable *seen = g_hash_table_new(g_str_hash, g_str_equal);
    int count;

    for (int r = 0; r < ranks; r++)
        g_hash_table_add(seen, (gpointer)hosts[r]);
    count = (int)g_hash_table_size(seen);
    g_hash_table_unref(seen);
    if (count == 1)
        return "all ranks run on one host";
    if (count == ranks)
        return "every rank has a host of its own";
    return dscomm_inner_usable(between(), hosts, ranks, oversubscribed);
}

static dscomm_status_t two_bootstrap(dscomm_bootstrap_t *bootstrap)
{
    return dscomm_inner_introduce(between(), bootstrap);
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof(dscomm_backend_ops_t),
    .request_size = sizeof(two_request_t),
    .open = two_open,
    .close = two_close,
    .isend = two_isend,
    .irecv = two_irecv,
    .cancel = two_cancel,
    .progress = two_progress,
    .revoke = two_revoke,
    .status = two_status,
    .capabilities = two_capabilities,
    .native = two_native,
    .run = two_run,
    .start = two_start,
    .send = two_send,
    .recv = two_recv,
    .wait = two_wait,
    .explain = two_explain,
    .mem_alloc = two_mem_alloc,
    .mem_free = two_mem_free,
    .quiesce = two_quiesce,
    .leave = two_leave,
    .trim = two_trim,
    .bootstrap = two_bootstrap,
    .withdraw = two_withdraw,
    .matched = two_matched,
    .probe = two_probe,
};

DSCOMM_BACKEND_EXPORT extern const dscomm_backend_t dscomm_backend_two_level;
const dscomm_backend_t dscomm_backend_two_level = {
    .abi = DSCOMM_BACKEND_ABI,
    .priority = 60,
    .name = "two_level",
    .ops = &ops,
    .settings = two_settings,
    .usable = two_usable,
    .advisable = two_advisable,
};
