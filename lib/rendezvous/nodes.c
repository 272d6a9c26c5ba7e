/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes: groups ranks by host, compares that with the launcher's numbers, and
 * writes the result as short text. */
#include "config.h"

#include "lib/rendezvous/nodes.h"

#include <stdint.h>
#include <string.h>

/* A partition of the ranks into groups: group[rank], numbered by first rank,
 * and the number of ranks in each. */
typedef struct {
    int *group, *size;
    int count;
} view_t;

static void nodes_new(int ranks, dscomm_nodes_t *nodes)
{
    nodes->ranks = ranks;
    nodes->count = 0;
    nodes->node = g_new0(int, (gsize)ranks);
    nodes->local = g_new0(int, (gsize)ranks);
}

void dscomm_priv_nodes_clear(dscomm_nodes_t *nodes)
{
    g_free(nodes->node);
    g_free(nodes->local);
    *nodes = (dscomm_nodes_t){0};
}

/* Groups ranks by their whole host text, or, by machine, by its first word. */
static void view_new(const dscomm_locality_t *localities, int ranks,
                     int machines, view_t *view)
{
    GHashTable *groups =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    view->group = g_new0(int, (gsize)ranks);
    view->size = g_new0(int, (gsize)ranks);
    view->count = 0;
    for (int i = 0; i < ranks; i++) {
        const char *host = localities[i].host;
        char *name =
            machines ? g_strndup(host, strcspn(host, " ")) : g_strdup(host);
        gpointer group;

        if (!g_hash_table_lookup_extended(groups, name, NULL, &group)) {
            group = GINT_TO_POINTER(view->count++);
            g_hash_table_insert(groups, g_strdup(name), group);
        }
        g_free(name);
        view->group[i] = GPOINTER_TO_INT(group);
        view->size[view->group[i]]++;
    }
    g_hash_table_unref(groups);
}

static void view_clear(view_t *view)
{
    g_free(view->group);
    g_free(view->size);
}

/* 1 if the numbers are possible on a node of size ranks. local_size may be
 * missing: a user who sets variables by hand often sets LOCAL_RANK only. */
static int locality_fits(const dscomm_locality_t *locality, int size)
{
    return (locality->local_size < 1 || locality->local_size == size) &&
           locality->local_rank >= 0 && locality->local_rank < size;
}

/* 1 if numbers are given that may differ from those found by counting. */
static int locality_is_given(const dscomm_locality_t *locality, int size)
{
    return locality->local_rank >= 0 ||
           (locality->local_size >= 1 && locality->local_size != size);
}

/* Sets wrong[group] to 1 if the given local ranks are not 0 ... size - 1, each
 * once; returns the number of such groups. */
static int view_find_wrong(const dscomm_locality_t *localities, int ranks,
                           const view_t *view, uint8_t *wrong)
{
    int *first = g_new0(int, (gsize)view->count + 1), count = 0;
    uint8_t *taken = g_new0(uint8_t, (gsize)ranks);

    memset(wrong, 0, (size_t)view->count);
    for (int g = 0; g < view->count; g++)
        first[g + 1] = first[g] + view->size[g];
    for (int i = 0; i < ranks; i++) {
        const int g = view->group[i];
        uint8_t *mark;

        if (!locality_fits(&localities[i], view->size[g])) {
            wrong[g] = 1;
            continue;
        }
        mark = &taken[first[g] + localities[i].local_rank];
        wrong[g] |= *mark;
        *mark = 1;
    }
    for (int g = 0; g < view->count; g++)
        count += wrong[g];
    g_free(taken);
    g_free(first);
    return count;
}

/* Sets node[group] to the launcher's node rank, if all ranks of a group give
 * the same one and groups give different ones; else to the number of the
 * group. */
static int nodes_find_ranks(const dscomm_locality_t *localities, int ranks,
                            const view_t *view, int *node)
{
    uint8_t *taken = g_new0(uint8_t, (gsize)view->count);
    int good = 1;

    for (int g = 0; g < view->count; g++)
        node[g] = -1;
    for (int i = 0; i < ranks && good; i++) {
        int *own = &node[view->group[i]];
        const int given = localities[i].node_rank;

        good = given >= 0 && given < view->count &&
               (*own == given || (*own < 0 && !taken[given]));
        if (good) {
            *own = given;
            taken[given] = 1;
        }
    }
    g_free(taken);
    for (int g = 0; g < view->count && !good; g++)
        node[g] = g;
    return good;
}

static void locality_describe(const dscomm_locality_t *locality, int rank,
                              int size, GString *warning)
{
    g_string_append_printf(warning, "the launcher says that rank %d is ", rank);
    if (locality->local_rank >= 0)
        g_string_append_printf(warning, "local rank %d", locality->local_rank);
    else
        g_string_append(warning, "one");
    if (locality->local_size >= 1)
        g_string_append_printf(warning, " of %d", locality->local_size);
    g_string_append_printf(warning, ", but its host has %d rank%s of this job",
                           size, size > 1 ? "s" : "");
    if (locality_fits(locality, size))
        g_string_append(warning, ", not all with a number of their own");
    g_string_append(warning, "; local ranks are counted anew, by rank");
}

/* Writes a warning about the first rank whose given numbers are not used. */
static void nodes_warn(const dscomm_locality_t *localities, int ranks,
                       const view_t *view, const uint8_t *wrong,
                       GString *warning)
{
    for (int i = 0; i < ranks; i++) {
        const int g = view->group[i];

        if (!wrong[g] || !locality_is_given(&localities[i], view->size[g]))
            continue;
        locality_describe(&localities[i], i, view->size[g], warning);
        return;
    }
}

static void nodes_fill(const dscomm_locality_t *localities, const view_t *view,
                       const uint8_t *wrong, const int *node,
                       dscomm_nodes_t *nodes)
{
    int *next = g_new0(int, (gsize)view->count);

    nodes->count = view->count;
    for (int i = 0; i < nodes->ranks; i++) {
        const int g = view->group[i];

        nodes->node[i] = node[g];
        nodes->local[i] = wrong[g] ? next[g]++ : localities[i].local_rank;
    }
    g_free(next);
}

void dscomm_priv_nodes_find(const dscomm_locality_t *localities, int ranks,
                            dscomm_nodes_t *ret_nodes, GString *warning)
{
    uint8_t *wrong = g_new0(uint8_t, (gsize)ranks);
    int *node = g_new0(int, (gsize)ranks);
    /* the hosts; else the machines; else the hosts, with what is wrong */
    static const int machines[] = {0, 1, 0};
    view_t view;

    nodes_new(ranks, ret_nodes);
    for (size_t i = 0;; i++) {
        view_new(localities, ranks, machines[i], &view);
        if (!view_find_wrong(localities, ranks, &view, wrong) ||
            i + 1 == G_N_ELEMENTS(machines))
            break;
        view_clear(&view);
    }
    nodes_warn(localities, ranks, &view, wrong, warning);
    nodes_find_ranks(localities, ranks, &view, node);
    nodes_fill(localities, &view, wrong, node, ret_nodes);
    view_clear(&view);
    g_free(node);
    g_free(wrong);
}

void dscomm_priv_nodes_one(int ranks, dscomm_nodes_t *ret_nodes)
{
    nodes_new(ranks, ret_nodes);
    ret_nodes->count = 1;
    for (int i = 0; i < ranks; i++)
        ret_nodes->local[i] = i;
}

/* As text */

char *dscomm_priv_nodes_write(const dscomm_nodes_t *nodes)
{
    GString *text = g_string_new(NULL);

    for (int i = 0, run; i < nodes->ranks; i += run) {
        for (run = 1; i + run < nodes->ranks; run++)
            if (nodes->node[i + run] != nodes->node[i] ||
                nodes->local[i + run] != nodes->local[i] + run)
                break;
        g_string_append_printf(text, "%s%d:%d+%d", i ? "," : "", nodes->node[i],
                               nodes->local[i], run);
    }
    return g_string_free(text, FALSE);
}

/* Reads a number and the character after it, and moves *text past both. Returns
 * -1 if there is no number, or it exceeds most. */
static int runs_read_number(const char **text, char behind, int most)
{
    gint64 number = 0;
    const char *start = *text;

    for (; g_ascii_isdigit(**text); (*text)++) {
        number = number * 10 + (**text - '0');
        if (number > most)
            return -1;
    }
    if (*text == start || (behind && **text != behind))
        return -1;
    *text += behind != 0;
    return (int)number;
}

static int nodes_read_runs(const char *text, dscomm_nodes_t *nodes)
{
    for (int i = 0, run; i < nodes->ranks; i += run) {
        const int node = runs_read_number(&text, ':', nodes->ranks - 1);
        const int local =
            node < 0 ? -1 : runs_read_number(&text, '+', nodes->ranks - 1);

        run = local < 0 ? -1 : runs_read_number(&text, 0, nodes->ranks - i);
        if (run < 1)
            return -1;
        for (int k = 0; k < run; k++) {
            nodes->node[i + k] = node;
            nodes->local[i + k] = local + k;
        }
        nodes->count = MAX(nodes->count, node + 1);
        if (i + run < nodes->ranks && *text++ != ',')
            return -1;
    }
    return *text ? -1 : 0;
}

/* 1 if each node has ranks, and their local ranks are 0 ... size - 1. */
static int nodes_are_dense(const dscomm_nodes_t *nodes)
{
    int *size = g_new0(int, (gsize)nodes->count + 1);
    uint8_t *taken = g_new0(uint8_t, (gsize)MAX(nodes->ranks, 1));
    int good = 1;

    for (int i = 0; i < nodes->ranks; i++)
        size[nodes->node[i] + 1]++;
    for (int n = 0; n < nodes->count; n++) {
        good = good && size[n + 1];
        size[n + 1] += size[n];
    }
    for (int i = 0; i < nodes->ranks && good; i++) {
        const int at = size[nodes->node[i]] + nodes->local[i];

        good = at < size[nodes->node[i] + 1] && !taken[at];
        if (good)
            taken[at] = 1;
    }
    g_free(taken);
    g_free(size);
    return good;
}

int dscomm_priv_nodes_read(const char *text, int ranks,
                           dscomm_nodes_t *ret_nodes)
{
    dscomm_nodes_t nodes;

    nodes_new(ranks, &nodes);
    if (nodes_read_runs(text, &nodes) || !nodes_are_dense(&nodes)) {
        dscomm_priv_nodes_clear(&nodes);
        return -1;
    }
    *ret_nodes = nodes;
    return 0;
}

/* Groups */

void dscomm_priv_nodes_place(const dscomm_nodes_t *nodes, const int *members,
                             const dscomm_nodes_t *within, int self,
                             int *ret_local_rank, int *ret_local_size,
                             int *ret_node_rank)
{
    const int node = nodes->node[members[self]];
    const int local = nodes->local[members[self]];
    int rank = 0, size = 0, before = 0;

    for (int i = 0; i < within->ranks; i++) {
        const int other = nodes->node[members[i]];

        size += other == node;
        rank += other == node && nodes->local[members[i]] < local;
        before += other < node && within->local[i] == 0;
    }
    *ret_local_rank = rank;
    *ret_local_size = size;
    *ret_node_rank = before;
}

bool dscomm_priv_nodes_within(const dscomm_nodes_t *nodes, const int *members,
                              int count, dscomm_nodes_t *ret_nodes)
{
    int *number = g_try_new(int, (gsize)nodes->count);
    int *size = g_try_new0(int, (gsize)count);
    dscomm_nodes_t within = {.ranks = count,
                             .node = g_try_new(int, (gsize)count),
                             .local = g_try_new(int, (gsize)count)};
    const bool good = number && size && within.node && within.local;

    for (int n = 0; good && n < nodes->count; n++)
        number[n] = -1;
    for (int i = 0; good && i < count; i++) {
        int *own = &number[nodes->node[members[i]]];

        if (*own < 0)
            *own = within.count++;
        within.node[i] = *own;
        within.local[i] = size[*own]++;
    }
    g_free(size);
    g_free(number);
    if (!good)
        dscomm_priv_nodes_clear(&within);
    *ret_nodes = within;
    return good;
}
