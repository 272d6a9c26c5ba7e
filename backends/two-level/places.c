/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks are together on a node. */
#include "config.h"

#include "backends/two-level/two-level.h"

#include <stdio.h>
#include <string.h>

#define KEY_MAX 32

/* Nodes and what follows from them, of hosts. */
static void lay_out(two_t *two)
{
    int *node_of_host = g_new(int, (gsize)two->ranks), sum = 0;

    for (int r = 0; r < two->ranks; r++) {
        int before = 0;

        while (two->host[before] != two->host[r])
            before++;
        if (before == r)
            node_of_host[r] = two->nodes++;
        two->node[r] = node_of_host[before];
        two->local[r] = two->size[two->node[r]]++;
    }
    two->is_even = two->is_sorted = 1;
    for (int n = 0; n < two->nodes; n++) {
        two->first[n] = sum;
        sum += two->size[n];
        two->is_even &= two->size[n] == two->size[0];
    }
    for (int r = 0; r < two->ranks; r++) {
        two->order[two->first[two->node[r]] + two->local[r]] = r;
        two->is_sorted &= two->first[two->node[r]] + two->local[r] == r;
    }
    g_free(node_of_host);
}

/* The parent has all of these ranks. */
static void inherit(two_t *two, const two_t *parent)
{
    for (int r = 0; r < two->ranks; r++) {
        int p = 0;

        while (parent->world_ranks[p] != two->world_ranks[r])
            p++;
        two->host[r] = parent->host[p];
    }
}

static void number_hosts(two_t *two, void *const *texts, const size_t *sizes)
{
    for (int r = 0; r < two->ranks; r++) {
        int same = 0;

        while (sizes[same] != sizes[r] ||
               memcmp(texts[same], texts[r], sizes[r]))
            same++;
        two->host[r] = same;
    }
}

/* What a rank tells: its host, and the settings that all must have alike; a
 * line each. */
static char *describe_self(const two_t *two)
{
    char host[DSCOMM_HOST_MAX];

    dscomm_backend_host(host);
    return g_strdup_printf(
        "%s\n%s %s %d %zu", host,
        dscomm_setting_text(&two_settings[TWO_SETTING_INSIDE]),
        dscomm_setting_text(&two_settings[TWO_SETTING_BETWEEN]), two->direct,
        two->slice);
}

/* From the last line on; texts are not terminated. */
static int same_settings(const char *text, size_t size, const char *own)
{
    const char *mine = strrchr(own, '\n');
    size_t length = strlen(mine);

    return size >= length && !memcmp(text + size - length, mine, length);
}

static dscomm_status_t compare(const two_t *two, void *const *texts,
                               const size_t *sizes, const char *own)
{
    for (int r = 0; r < two->ranks; r++)
        if (!same_settings(texts[r], sizes[r], own))
            return dscomm_fail(DSCOMM_ERR_MISMATCH,
                               "group '%s': ranks %d and %d have different "
                               "settings DSCOMM_TWO_LEVEL_...; give all ranks "
                               "the same",
                               two->name, two->rank, r);
    return DSCOMM_OK;
}

static dscomm_status_t exchange(two_t *two, const dscomm_backend_args_t *args)
{
    const size_t ranks = (size_t)two->ranks;
    char *own = describe_self(two), key[KEY_MAX];
    char(*names)[KEY_MAX] = g_malloc_n(ranks, sizeof *names);
    const char **keys = g_new(const char *, ranks);
    void **texts = g_new(void *, ranks);
    size_t *sizes = g_new(size_t, ranks);
    dscomm_status_t status;

    for (size_t r = 0; r < ranks; r++) {
        snprintf(names[r], sizeof names[r], "host%zu", r);
        keys[r] = names[r];
    }
    snprintf(key, sizeof key, "host%d", two->rank);
    status = dscomm_store_set(args->store, key, own, strlen(own));
    if (!status)
        status = dscomm_backend_creation_get(args, keys, ranks, args->open_ms,
                                             texts, sizes);
    if (!status) {
        status = compare(two, texts, sizes, own);
        number_hosts(two, texts, sizes);
        for (size_t r = 0; r < ranks; r++)
            dscomm_store_free(texts[r]);
    }
    g_free(sizes);
    g_free(texts);
    g_free(keys);
    g_free(names);
    g_free(own);
    return status;
}

dscomm_status_t two_places_find(two_t *two, const dscomm_backend_args_t *args,
                                const two_t *parent)
{
    const gsize ranks = (gsize)two->ranks;
    dscomm_status_t status = DSCOMM_OK;

    two->host = g_new0(int, ranks);
    two->node = g_new0(int, ranks);
    two->local = g_new0(int, ranks);
    two->size = g_new0(int, ranks);
    two->first = g_new0(int, ranks);
    two->order = g_new0(int, ranks);
    if (parent)
        inherit(two, parent);
    else
        status = exchange(two, args);
    if (!status)
        lay_out(two);
    return status;
}

void two_places_free(two_t *two)
{
    g_free(two->host);
    g_free(two->node);
    g_free(two->local);
    g_free(two->size);
    g_free(two->first);
    g_free(two->order);
}
