/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes: grouping ranks by host, comparing with the launcher's numbers, and
 * telling the outcome in few bytes. */
#include "config.h"

#include "lib/rendezvous/nodes.h"

#include <stdint.h>
#include <string.h>

/* A way to see which ranks are together: group[rank], numbered by first rank,
 * and how many there are in each. */
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

/* By the whole host, or by its first word. */
static void view_new(const dscomm_seat_t *seats, int ranks, int machines,
                     view_t *view)
{
    GHashTable *groups =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    view->group = g_new0(int, (gsize)ranks);
    view->size = g_new0(int, (gsize)ranks);
    view->count = 0;
    for (int i = 0; i < ranks; i++) {
        const char *host = seats[i].host;
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

/* What a seat tells of its node fits a group of that many. The size alone may
 * be missing: nothing but LOCAL_RANK is often set by hand. */
static int fits(const dscomm_seat_t *seat, int size)
{
    return (seat->local_size < 1 || seat->local_size == size) &&
           seat->local_rank >= 0 && seat->local_rank < size;
}

/* It tells something at all that counting will not find by itself. */
static int tells(const dscomm_seat_t *seat, int size)
{
    return seat->local_rank >= 0 ||
           (seat->local_size >= 1 && seat->local_size != size);
}

/* wrong[group] becomes 1 where the numbers told are not 0 ... size - 1, each
 * once; returns how many groups that are. */
static int find_wrong(const dscomm_seat_t *seats, int ranks, const view_t *view,
                      uint8_t *wrong)
{
    int *first = g_new0(int, (gsize)view->count + 1), count = 0;
    uint8_t *taken = g_new0(uint8_t, (gsize)ranks);

    memset(wrong, 0, (size_t)view->count);
    for (int g = 0; g < view->count; g++)
        first[g + 1] = first[g] + view->size[g];
    for (int i = 0; i < ranks; i++) {
        const int g = view->group[i];
        uint8_t *mark;

        if (!fits(&seats[i], view->size[g])) {
            wrong[g] = 1;
            continue;
        }
        mark = &taken[first[g] + seats[i].local_rank];
        wrong[g] |= *mark;
        *mark = 1;
    }
    for (int g = 0; g < view->count; g++)
        count += wrong[g];
    g_free(taken);
    g_free(first);
    return count;
}

/* The launcher's numbers of nodes are kept where they are one for each group,
 * and different ones: node[group], or -1. */
static int find_node_ranks(const dscomm_seat_t *seats, int ranks,
                           const view_t *view, int *node)
{
    uint8_t *taken = g_new0(uint8_t, (gsize)view->count);
    int good = 1;

    for (int g = 0; g < view->count; g++)
        node[g] = -1;
    for (int i = 0; i < ranks && good; i++) {
        int *own = &node[view->group[i]];
        const int told = seats[i].node_rank;

        good = told >= 0 && told < view->count &&
               (*own == told || (*own < 0 && !taken[told]));
        if (good) {
            *own = told;
            taken[told] = 1;
        }
    }
    g_free(taken);
    for (int g = 0; g < view->count && !good; g++)
        node[g] = g;
    return good;
}

static void describe(const dscomm_seat_t *seat, int rank, int size,
                     GString *doubt)
{
    g_string_append_printf(doubt, "the launcher says that rank %d is ", rank);
    if (seat->local_rank >= 0)
        g_string_append_printf(doubt, "local rank %d", seat->local_rank);
    else
        g_string_append(doubt, "one");
    if (seat->local_size >= 1)
        g_string_append_printf(doubt, " of %d", seat->local_size);
    g_string_append_printf(doubt, ", but its host has %d rank%s of this job",
                           size, size > 1 ? "s" : "");
    if (fits(seat, size))
        g_string_append(doubt, ", not all with a number of their own");
    g_string_append(doubt, "; local ranks are counted anew, by rank");
}

/* The first rank whose group's numbers were told, and are wrong. */
static void tell_doubt(const dscomm_seat_t *seats, int ranks,
                       const view_t *view, const uint8_t *wrong, GString *doubt)
{
    for (int i = 0; i < ranks; i++) {
        const int g = view->group[i];

        if (!wrong[g] || !tells(&seats[i], view->size[g]))
            continue;
        describe(&seats[i], i, view->size[g], doubt);
        return;
    }
}

static void fill(const dscomm_seat_t *seats, const view_t *view,
                 const uint8_t *wrong, const int *node, dscomm_nodes_t *nodes)
{
    int *next = g_new0(int, (gsize)view->count);

    nodes->count = view->count;
    for (int i = 0; i < nodes->ranks; i++) {
        const int g = view->group[i];

        nodes->node[i] = node[g];
        nodes->local[i] = wrong[g] ? next[g]++ : seats[i].local_rank;
    }
    g_free(next);
}

void dscomm_priv_nodes_find(const dscomm_seat_t *seats, int ranks,
                            dscomm_nodes_t *ret_nodes, GString *doubt)
{
    uint8_t *wrong = g_new0(uint8_t, (gsize)ranks);
    int *node = g_new0(int, (gsize)ranks);
    view_t hosts, machines;
    const view_t *view = &hosts;

    nodes_new(ranks, ret_nodes);
    view_new(seats, ranks, 0, &hosts);
    view_new(seats, ranks, 1, &machines);
    if (find_wrong(seats, ranks, &hosts, wrong) &&
        !find_wrong(seats, ranks, &machines, wrong))
        view = &machines;
    else
        find_wrong(seats, ranks, &hosts, wrong);
    tell_doubt(seats, ranks, view, wrong, doubt);
    find_node_ranks(seats, ranks, view, node);
    fill(seats, view, wrong, node, ret_nodes);
    view_clear(&machines);
    view_clear(&hosts);
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

/* A number at *text and the character behind it, which *text passes; -1. */
static int read_number(const char **text, char behind, int most)
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

static int read_runs(const char *text, dscomm_nodes_t *nodes)
{
    for (int i = 0, run; i < nodes->ranks; i += run) {
        const int node = read_number(&text, ':', nodes->ranks - 1);
        const int local =
            node < 0 ? -1 : read_number(&text, '+', nodes->ranks - 1);

        run = local < 0 ? -1 : read_number(&text, 0, nodes->ranks - i);
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

/* Every node has ranks, and their numbers are 0 and on. */
static int are_dense(const dscomm_nodes_t *nodes)
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
    if (read_runs(text, &nodes) || !are_dense(&nodes)) {
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
