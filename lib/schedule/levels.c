/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing levels. */
#include "config.h"

#include "lib/schedule/levels.h"

#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/group/creation.h"
#include "lib/group/failure.h"
#include "lib/group/world.h"
#include "lib/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_DEFAULT ((size_t)32 << 10)
#define PART_MAX 32
#define ALIGNED(bytes) (((bytes) + 15) & ~(size_t)15)

/* Finds the module of a level of a group of this world. */
static dscomm_status_t find_module(const dscomm_world_t *world, int which,
                                   const dscomm_module_t **ret_module)
{
    const int setting =
        which == LEVEL_NODE ? SETTING_LEVEL_INSIDE : SETTING_LEVEL_BETWEEN;
    dscomm_status_t status = dscomm_priv_module_find(
        which == LEVEL_NODE ? dscomm_priv_setting_text(setting)
                            : world->meeting.between,
        ret_module);

    if (status == DSCOMM_OK &&
        (*ret_module)->ops.open == dscomm_priv_levels_open)
        status = dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                             "%s is two_level itself; name a backend that can "
                             "serve there",
                             dscomm_priv_setting(setting)->name);
    return status;
}

/* Returns the impl that serves as parent of a level's impl. */
static void *parent_impl(const dscomm_backend_args_t *args, int which)
{
    const dscomm_group_t *parent =
        args->parent ? args->group->life.creation->parent : NULL;
    const dscomm_levels_t *levels = args->parent;

    if (!parent || parent->ops.open != dscomm_priv_levels_open)
        return args->parent;
    return levels->level[which == LEVEL_RAIL ? LEVEL_NETWORK : which].impl;
}

static dscomm_status_t level_open_impl(const dscomm_backend_args_t *args,
                                       const dscomm_module_t *module,
                                       dscomm_backend_ops_t *ops,
                                       void **ret_impl)
{
    dscomm_status_t status = module->ops.open(args, ret_impl);

    if (status < 0)
        return status;
    dscomm_priv_module_opened(module);
    *ops = module->ops;
    return DSCOMM_OK;
}

static bool level_fill(dscomm_level_t *level, const dscomm_backend_args_t *args,
                       const char *part, const int *ranks, int count)
{
    const size_t bytes = (size_t)count * sizeof(int);

    level->count = count;
    level->members = g_try_malloc(2 * bytes);
    level->id = g_strdup_printf("%s.%s", args->id, part);
    if (!level->members)
        return false;
    level->world_ranks = level->members + count;
    memcpy(level->members, ranks, bytes);
    for (int i = 0; i < count; i++)
        level->world_ranks[i] = args->world_ranks[ranks[i]];
    return true;
}

/* Opens a level with count ranks of the group; this one has number self. */
static dscomm_status_t level_open(dscomm_levels_t *levels, int which,
                                  const dscomm_backend_args_t *args,
                                  const char *part, const int *ranks, int count,
                                  int self)
{
    dscomm_level_t *level = &levels->level[which];
    dscomm_backend_args_t own = *args;
    const dscomm_module_t *module;
    dscomm_status_t status =
        find_module(levels->group->identity.world, which, &module);

    pthread_mutex_init(&level->lock, NULL);
    level->opened = true;
    if (status == DSCOMM_OK && !level_fill(level, args, part, ranks, count))
        status =
            dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for its %s", part);
    if (status == DSCOMM_OK)
        status = dscomm_store_prefix(args->store, part, &level->store);
    if (status < 0)
        return status;
    own.size = sizeof own;
    own.parent = which == LEVEL_RAIL ? levels->level[LEVEL_NETWORK].impl
                                     : parent_impl(args, which);
    own.id = level->id;
    own.rank = self;
    own.ranks = count;
    own.world_ranks = level->world_ranks;
    own.store = level->store;
    own.open_ms = dscomm_priv_creation_left(args);
    status = level_open_impl(&own, module, &level->ops, &level->impl);
    dscomm_priv_store_limit(level->store, INT64_MAX, INT64_MAX);
    if (status == DSCOMM_OK)
        status = dscomm_priv_module_trim(module, level->impl, &level->ops);
    return status;
}

static void level_close(dscomm_level_t *level)
{
    if (!level->opened)
        return;
    if (level->impl)
        level->ops.close(level->impl);
    dscomm_store_close(level->store);
    pthread_mutex_destroy(&level->lock);
    g_free(level->members);
    g_free(level->id);
}

static dscomm_status_t open_node(dscomm_levels_t *levels,
                                 const dscomm_backend_args_t *args)
{
    const dscomm_layout_t *layout = &levels->layout;
    const int node = layout->node[levels->rank];
    char part[PART_MAX];

    if (layout->size[node] == 1)
        return DSCOMM_OK;
    snprintf(part, sizeof part, "node%d", node);
    return level_open(levels, LEVEL_NODE, args, part,
                      layout->order + layout->first[node], layout->size[node],
                      layout->local[levels->rank]);
}

static dscomm_status_t open_network(dscomm_levels_t *levels,
                                    const dscomm_backend_args_t *args)
{
    int *ranks = g_new(int, (gsize)levels->ranks);
    dscomm_status_t status;

    for (int r = 0; r < levels->ranks; r++)
        ranks[r] = r;
    status = level_open(levels, LEVEL_NETWORK, args, "network", ranks,
                        levels->ranks, levels->rank);
    g_free(ranks);
    return status;
}

static dscomm_status_t open_rail(dscomm_levels_t *levels,
                                 const dscomm_backend_args_t *args)
{
    const dscomm_layout_t *layout = &levels->layout;
    const int local = layout->local[levels->rank];
    int *ranks = g_new(int, (gsize)layout->nodes);
    char part[PART_MAX];
    dscomm_status_t status;

    for (int n = 0; n < layout->nodes; n++)
        ranks[n] = layout->order[layout->first[n] + local];
    snprintf(part, sizeof part, "rail%d", local);
    status = level_open(levels, LEVEL_RAIL, args, part, ranks, layout->nodes,
                        layout->node[levels->rank]);
    g_free(ranks);
    return status;
}

/* Fails because the result of levels_agree() did not come in time. */
static dscomm_status_t levels_missing(const dscomm_levels_t *levels,
                                      const dscomm_backend_args_t *args,
                                      const char *key)
{
    char **keys = g_new0(char *, (gsize)levels->ranks + 1);
    dscomm_status_t status;

    for (int r = 0; r < levels->ranks; r++)
        keys[r] = g_strdup_printf("%s/%d", key, r);
    status = dscomm_backend_creation_missing(args, (const char *const *)keys);
    g_strfreev(keys);
    return status;
}

/* Finds out whether all ranks agree. Every rank must call this, or the group
 * cannot be made. key is unique in the group. */
static dscomm_status_t levels_agree(const dscomm_levels_t *levels,
                                    const dscomm_backend_args_t *args,
                                    const char *key, bool yes, bool *ret_all)
{
    char text[4][PART_MAX];
    const char *result = text[2];
    int64_t came = 0, agreed = 0;
    dscomm_status_t status;
    void *value;
    size_t size;

    snprintf(text[0], PART_MAX, "%s/agreed", key);
    snprintf(text[1], PART_MAX, "%s/came", key);
    snprintf(text[2], PART_MAX, "%s/result", key);
    snprintf(text[3], PART_MAX, "%s/%d", key, levels->rank);
    status = dscomm_store_set(args->store, text[3], "", 0);
    if (status == DSCOMM_OK)
        status = dscomm_store_add(args->store, text[0], yes, &agreed);
    if (status == DSCOMM_OK)
        status = dscomm_store_add(args->store, text[1], 1, &came);
    if (status == DSCOMM_OK && came == levels->ranks)
        status = dscomm_store_add(args->store, text[0], 0, &agreed);
    if (status == DSCOMM_OK && came == levels->ranks)
        status = dscomm_store_set(args->store, result,
                                  agreed == came ? "1" : "0", 1);
    if (status == DSCOMM_OK)
        status = dscomm_backend_creation_get(args, &result, 1, args->open_ms,
                                             &value, &size);
    if (status == DSCOMM_ERR_TIMEOUT)
        status = levels_missing(levels, args, key);
    if (status < 0)
        return status;
    *ret_all = size == 1 && *(char *)value == '1';
    dscomm_store_free(value);
    return DSCOMM_OK;
}

/* True if blocking calls of the network match no others. */
static bool is_blocking(const dscomm_level_t *level)
{
    return level->ops.run && (dscomm_priv_level_capabilities(level) &
                              DSCOMM_CAP_SEPARATE_MATCHING);
}

static bool level_is_native(const dscomm_level_t *level)
{
    return level->ops.run && (dscomm_priv_level_capabilities(level) &
                              DSCOMM_CAP_NATIVE_COLLECTIVES);
}

/* Adds this rank as culprit to a failure of its settings or modules, for the
 * other ranks. */
static dscomm_status_t levels_name_rank(const dscomm_levels_t *levels,
                                        dscomm_status_t status)
{
    dscomm_failure_t failure, last;

    if (dscomm_priv_failure_last(status, &last) ||
        (status != DSCOMM_ERR_ENVIRONMENT && status != DSCOMM_ERR_NO_BACKEND &&
         status != DSCOMM_ERR_UNSUPPORTED))
        return status;
    dscomm_priv_group_blame(levels->group, status, last.kind, levels->rank,
                            NULL, &failure);
    dscomm_backend_failure_detail(&failure, "group '%s': %s",
                                  levels->group->identity.name, last.detail);
    return dscomm_backend_fail(&failure);
}

/* The ranks agree before they open LEVEL_RAIL, because that may wait for its
 * ranks without a deadline; and afterwards, because not all ranks have that
 * level. */
static dscomm_status_t open_levels(dscomm_levels_t *levels,
                                   const dscomm_backend_args_t *args)
{
    const dscomm_level_t *node = &levels->level[LEVEL_NODE];
    const dscomm_layout_t *layout = &levels->layout;
    dscomm_status_t status = open_network(levels, args);
    bool rails;

    if (status == DSCOMM_OK)
        status = open_node(levels, args);
    if (status < 0)
        return levels_name_rank(levels, status);
    levels->blocking = is_blocking(&levels->level[LEVEL_NETWORK]);
    status = levels_agree(
        levels, args, "levels",
        levels->blocking && (!node->impl || level_is_native(node)), &rails);
    if (status < 0 || !rails)
        return status;
    if (layout->even || layout->local[levels->rank] == 0)
        status = open_rail(levels, args);
    if (status < 0)
        return levels_name_rank(levels, status);
    return levels_agree(levels, args, "rails", true, &levels->composes);
}

/* Opens a group of one level, with that backend's impl and slots. */
static dscomm_status_t open_alone(const dscomm_backend_args_t *args, int which,
                                  void **ret_impl)
{
    dscomm_group_t *group = args->group;
    dscomm_backend_args_t own = *args;
    const dscomm_module_t *module;
    dscomm_status_t status = find_module(group->identity.world, which, &module);
    void *request = status < 0 ? NULL : g_try_malloc0(module->ops.request_size);

    if (status == DSCOMM_OK && !request)
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a request");
    own.parent = parent_impl(args, which);
    if (status == DSCOMM_OK)
        status = level_open_impl(&own, module, &group->ops, ret_impl);
    if (status == DSCOMM_OK) {
        g_free(group->works.request);
        group->works.request = request;
    } else {
        g_free(request);
    }
    return status;
}

/* Reads the settings of this rank. slice is the same on all ranks. */
static dscomm_status_t read_settings(dscomm_levels_t *levels,
                                     int oversubscribed)
{
    int64_t any_source, slice;
    dscomm_status_t status =
        dscomm_priv_setting_number(SETTING_LEVEL_ANY_SOURCE, &any_source);

    if (status == DSCOMM_OK)
        status = dscomm_priv_setting_number(SETTING_LEVEL_SLICE, &slice);
    if (status < 0)
        return status;
    levels->direct = !any_source;
    levels->slice = slice >= 0       ? (size_t)slice
                    : oversubscribed ? SIZE_MAX
                                     : SLICE_DEFAULT;
    return DSCOMM_OK;
}

/* Fails if another rank has other settings. The first rank publishes its own.
 */
static dscomm_status_t compare_settings(const dscomm_levels_t *levels,
                                        const dscomm_backend_args_t *args)
{
    char *own = g_strdup_printf("%d\n%s %s %d %zu", levels->rank,
                                dscomm_priv_setting_text(SETTING_LEVEL_INSIDE),
                                dscomm_priv_setting_text(SETTING_LEVEL_BETWEEN),
                                levels->direct, levels->slice);
    char *text = NULL;
    void *value = NULL;
    size_t size;
    dscomm_status_t status = dscomm_store_compare_set(
        args->store, "settings", "", 0, own, strlen(own), &value, &size);

    if (status == DSCOMM_OK) {
        text = g_strndup(value, size);
        if (g_strcmp0(strchr(text, '\n'), strchr(own, '\n')))
            status = dscomm_fail(DSCOMM_ERR_MISMATCH,
                                 "ranks %d and %d have different settings "
                                 "DSCOMM_TWO_LEVEL_...; give all ranks the "
                                 "same",
                                 args->rank, atoi(text));
        dscomm_store_free(value);
    }
    g_free(text);
    g_free(own);
    return status;
}

/* NULL: no memory. */
static dscomm_levels_t *levels_new(const dscomm_backend_args_t *args)
{
    const dscomm_group_t *group = args->group;
    dscomm_levels_t *levels = g_try_new0(dscomm_levels_t, 1);

    if (!levels)
        return NULL;
    levels->group = args->group;
    levels->rank = args->rank;
    levels->ranks = args->ranks;
    if (dscomm_priv_nodes_within(&group->identity.world->meeting.hosts,
                                 group->identity.world_ranks, group->size,
                                 &levels->hosts) &&
        dscomm_priv_layout_init(&levels->hosts, args->ranks, &levels->layout))
        return levels;
    dscomm_priv_levels_close(levels);
    return NULL;
}

void dscomm_priv_levels_close(void *impl)
{
    dscomm_levels_t *levels = impl;

    for (int i = LEVEL_COUNT - 1; i >= 0; i--)
        level_close(&levels->level[i]);
    dscomm_priv_layout_clear(&levels->layout);
    dscomm_priv_nodes_clear(&levels->hosts);
    for (int i = 0; i < LEVELS_ROOMS; i++)
        g_free(levels->rooms[i].bytes);
    g_free(levels);
}

/* Closes the levels after a failure. If another rank may have failed, the
 * levels are revoked first, so that closing them does not wait for all ranks.
 */
static dscomm_status_t levels_abandon(dscomm_levels_t *levels,
                                      const dscomm_backend_args_t *args,
                                      dscomm_status_t status)
{
    dscomm_failure_t failure;

    status = dscomm_backend_creation_fail(args, status);
    dscomm_backend_failure_last(args->group, status, &failure);
    if (status == DSCOMM_ERR_TIMEOUT || status == DSCOMM_ERR_PEER_FAILED ||
        status == DSCOMM_ERR_IO || status == DSCOMM_ERR_NO_MEMORY)
        dscomm_priv_levels_revoke(levels, &failure);
    dscomm_priv_levels_close(levels);
    return dscomm_backend_fail(&failure);
}

/* Sets the size of the group's requests: a request of a level's backend, and
 * after it the level. */
static dscomm_status_t set_request_size(dscomm_levels_t *levels)
{
    dscomm_group_t *group = levels->group;
    size_t size = 0;
    void *request;

    for (int i = 0; i < LEVEL_RAIL; i++)
        if (levels->level[i].impl)
            size = MAX(size, levels->level[i].ops.request_size);
    levels->level_at = ALIGNED(size);
    size = levels->level_at + sizeof(dscomm_level_t *);
    request = g_try_malloc0(size);
    if (!request)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a request");
    g_free(group->works.request);
    group->works.request = request;
    group->ops.request_size = size;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_levels_open(const dscomm_backend_args_t *args,
                                        void **ret_impl)
{
    dscomm_levels_t *levels = levels_new(args);
    const int nodes = levels ? levels->layout.nodes : 0;
    dscomm_status_t status;

    if (!levels)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for its levels");
    status = read_settings(levels, args->oversubscribed);
    if (status == DSCOMM_OK && !args->parent)
        status = compare_settings(levels, args);
    if (status == DSCOMM_OK && (nodes == 1 || nodes == args->ranks)) {
        dscomm_priv_levels_close(levels);
        return open_alone(args, nodes == 1 ? LEVEL_NODE : LEVEL_NETWORK,
                          ret_impl);
    }
    if (status == DSCOMM_OK)
        status = open_levels(levels, args);
    if (status == DSCOMM_OK)
        status = set_request_size(levels);
    if (status < 0)
        return levels_abandon(levels, args, status);
    if (!(dscomm_priv_level_capabilities(&levels->level[LEVEL_NETWORK]) &
          DSCOMM_CAP_ANY_SOURCE))
        levels->direct = true;
    dscomm_log(DSCOMM_LOG_DEBUG, "two_level",
               "group '%s': %d ranks on %d nodes, %d on this one, %s",
               args->name, args->ranks, nodes,
               levels->layout.size[levels->layout.node[args->rank]],
               levels->composes ? "collectives in two levels"
                                : "messages alone");
    *ret_impl = levels;
    return DSCOMM_OK;
}
