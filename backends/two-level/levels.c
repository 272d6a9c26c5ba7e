/* SPDX-License-Identifier: BSD-3-Clause */
/* The impls below a group. */
#include "config.h"

#include "backends/two-level/two-level.h"

#include <stdio.h>
#include <string.h>

#define NUMBERS_MOST 32

/* Keys of the store: all ranks agree twice, since those that have no rail need
 * to know how it went with those of others. */
typedef struct {
    const char *opened, *able, *verdict;
} keys_t;

static const keys_t first = {"opened", "able", "verdict"};
static const keys_t last = {"opened2", "able2", "verdict2"};

dscomm_request_t *two_request_take(two_level_t *level)
{
    dscomm_request_t *request =
        level->idle->len
            ? g_ptr_array_steal_index_fast(level->idle, level->idle->len - 1)
            : g_malloc0(level->ops->request_size);

    memset(request, 0, sizeof *request);
    request->status = DSCOMM_IN_PROGRESS;
    level->live++;
    return request;
}

void two_request_give(two_level_t *level, dscomm_request_t *request)
{
    level->live--;
    g_ptr_array_add(level->idle, request);
}

/* "world (ranks 0, 2)", the first of them: the numbers of the level's ranks are
 * others. To be freed. */
static char *describe(const two_t *two, const int *ranks, int count)
{
    GString *text = g_string_new(two->name);

    g_string_append(text, " (ranks");
    for (int i = 0; i < count && i < NUMBERS_MOST; i++)
        g_string_append_printf(text, "%s %d", i ? "," : "", ranks[i]);
    g_string_append_c(text, ')');
    return g_string_free(text, FALSE);
}

static dscomm_status_t open_level(two_t *two, const dscomm_backend_args_t *args,
                                  int which, dscomm_inner_plan_t *plan)
{
    const int setting =
        which == TWO_INSIDE ? TWO_SETTING_INSIDE : TWO_SETTING_BETWEEN;
    two_level_t *level = &two->levels[which];
    dscomm_status_t status;

    plan->backend = dscomm_setting_text(&two_settings[setting]);
    if (plan->count < two->ranks) {
        level->name = describe(two, plan->ranks, plan->count);
        level->count = plan->count;
        level->members = g_new(int, (gsize)plan->count);
        memcpy(level->members, plan->ranks, (gsize)plan->count * sizeof(int));
    }
    plan->name = level->name ? level->name : two->name;
    if (!strcmp(plan->backend, "two_level"))
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "%s is two_level itself; name a backend that can "
                           "serve there",
                           two_settings[setting].name);
    status = dscomm_inner_open(args, plan, &level->inner);
    if (status < 0)
        return status;
    level->ops = level->inner->ops;
    level->impl = level->inner->impl;
    level->idle = g_ptr_array_new_with_free_func(g_free);
    pthread_mutex_init(&level->lock, NULL);
    return DSCOMM_OK;
}

static void *impl_of(const two_t *parent, int which)
{
    return parent ? parent->levels[which].impl : NULL;
}

static dscomm_status_t open_flat(two_t *two, const dscomm_backend_args_t *args,
                                 const two_t *parent)
{
    int *ranks = g_new(int, (gsize)two->ranks);
    dscomm_inner_plan_t plan = {.part = "flat",
                                .ranks = ranks,
                                .count = two->ranks,
                                .parent = impl_of(parent, TWO_FLAT)};
    dscomm_status_t status;

    for (int r = 0; r < two->ranks; r++)
        ranks[r] = r;
    status = open_level(two, args, TWO_FLAT, &plan);
    g_free(ranks);
    return status;
}

static dscomm_status_t
open_inside(two_t *two, const dscomm_backend_args_t *args, const two_t *parent)
{
    const int node = two->node[two->rank];
    char part[32];
    dscomm_inner_plan_t plan = {.part = part,
                                .ranks = two->order + two->first[node],
                                .count = two->size[node],
                                .parent = impl_of(parent, TWO_INSIDE)};

    snprintf(part, sizeof part, "node%d", node);
    return open_level(two, args, TWO_INSIDE, &plan);
}

static dscomm_status_t open_rail(two_t *two, const dscomm_backend_args_t *args)
{
    const int local = two->local[two->rank];
    int *ranks = g_new(int, (gsize)two->nodes);
    char part[32];
    dscomm_inner_plan_t plan = {.part = part,
                                .ranks = ranks,
                                .count = two->nodes,
                                .parent = two->levels[TWO_FLAT].impl};
    dscomm_status_t status;

    for (int n = 0; n < two->nodes; n++)
        ranks[n] = two->order[two->first[n] + local];
    snprintf(part, sizeof part, "rail%d", local);
    status = open_level(two, args, TWO_RAIL, &plan);
    g_free(ranks);
    return status;
}

static int is_able(const two_t *two, const two_level_t *inside)
{
    return (two->apart ? inside->ops->run != NULL
                       : inside->ops->start != NULL) &&
           (two_level_capabilities(inside) & DSCOMM_CAP_NATIVE_COLLECTIVES);
}

/* The first verdict counts. */
static dscomm_status_t say(const dscomm_backend_args_t *args,
                           const keys_t *keys, const char *text)
{
    return dscomm_store_compare_set(args->store, keys->verdict, "", 0, text,
                                    strlen(text), NULL, NULL);
}

static dscomm_status_t vote(const two_t *two, const dscomm_backend_args_t *args,
                            const keys_t *keys)
{
    const two_level_t *inside = &two->levels[TWO_INSIDE];
    const int able = !inside->ops || is_able(two, inside);
    int64_t opened = 0, count = 0;
    dscomm_status_t status;

    status = dscomm_store_add(args->store, keys->able, able, &count);
    if (!status)
        status = dscomm_store_add(args->store, keys->opened, 1, &opened);
    if (!status && opened == two->ranks)
        status = dscomm_store_add(args->store, keys->able, 0, &count);
    if (!status && opened == two->ranks)
        status = say(args, keys, count == two->ranks ? "1" : "0");
    return status;
}

/* "-11 rank 2: why" */
static dscomm_status_t refuse(const two_t *two, const char *text, size_t size)
{
    char *copy = g_strndup(text, size), *why;
    const gint64 number = g_ascii_strtoll(copy, &why, 10);
    dscomm_status_t status =
        number < 0 && number > -1000 && *why
            ? dscomm_fail((dscomm_status_t)number, "group '%s':%s", two->name,
                          why)
            : dscomm_fail(DSCOMM_ERR_PROTOCOL,
                          "group '%s': the ranks' verdict makes no sense",
                          two->name);

    g_free(copy);
    return status;
}

/* How it went on this rank, own, is told to all; whoever comes last says
 * whether INSIDE is able on all nodes. */
static dscomm_status_t agree(two_t *two, const dscomm_backend_args_t *args,
                             const keys_t *keys, dscomm_status_t own)
{
    char *why = g_strdup(dscomm_last_error());
    char *text = g_strdup_printf("%d rank %d: %s", own, two->rank, why);
    dscomm_status_t status =
        own ? say(args, keys, text) : vote(two, args, keys);
    void *verdict;
    size_t size;

    if (!own && !status)
        status = dscomm_backend_creation_get(args, &keys->verdict, 1,
                                             args->open_ms, &verdict, &size);
    if (own)
        status = dscomm_fail(own, "%s", why);
    g_free(text);
    g_free(why);
    if (status)
        return status;
    two->able = size == 1 && *(char *)verdict == '1';
    if (size != 1)
        status = refuse(two, verdict, size);
    dscomm_store_free(verdict);
    return status;
}

static int is_apart(const two_level_t *level)
{
    return level->ops->run &&
           (two_level_capabilities(level) & DSCOMM_CAP_BLOCKING_APART);
}

dscomm_status_t two_levels_open(two_t *two, const dscomm_backend_args_t *args,
                                const two_t *parent)
{
    const int node = two->node[two->rank];
    dscomm_status_t status = DSCOMM_OK;

    if (two->nodes > 1)
        status = open_flat(two, args, parent);
    if (!status && two->size[node] > 1)
        status = open_inside(two, args, parent);
    if (two->nodes == 1 || two->nodes == two->ranks) {
        two->only = &two->levels[two->nodes == 1 ? TWO_INSIDE : TWO_FLAT];
        two->apart = !status && is_apart(two->only);
        return status;
    }
    two->apart = !status && is_apart(&two->levels[TWO_FLAT]);
    status = agree(two, args, &first, status);
    if (status)
        return status;
    if (two->is_even || two->local[two->rank] == 0)
        status = open_rail(two, args);
    return agree(two, args, &last, status);
}

void two_levels_close(two_t *two)
{
    for (int i = TWO_LEVELS - 1; i >= 0; i--) {
        two_level_t *level = &two->levels[i];

        dscomm_inner_close(level->inner);
        if (level->idle) {
            g_ptr_array_free(level->idle, TRUE);
            pthread_mutex_destroy(&level->lock);
        }
        g_free(level->members);
        g_free(level->name);
    }
}
