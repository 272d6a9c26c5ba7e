/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks share a node: the launchers' numbers compared with the hosts, the
 * text form, and numbers in groups. Expected values were computed by hand. */
#include "config.h"

#include "lib/rendezvous/nodes.h"
#include "tests/tap.h"

#include <string.h>

#define RANKS 5

typedef struct {
    const char *what;
    dscomm_locality_t localities[RANKS]; /* of those with a host */
    const char *nodes; /* NODE:LOCAL+RANKS of ranks in a row */
    const char *warning; /* words of it; "" if there is none */
} row_t;

static const row_t rows[] = {
    {"one host, nothing told",
     {{"a 1", -1, -1, -1}, {"a 1", -1, -1, -1}, {"a 1", -1, -1, -1}},
     "0:0+3",
     ""},
    {"two hosts, all agrees",
     {{"a 1", 0, 2, 0}, {"a 1", 1, 2, 0}, {"b 1", 0, 2, 1}, {"b 1", 1, 2, 1}},
     "0:0+2,1:0+2",
     ""},
    {"round robin",
     {{"a 1", 0, 2, 0}, {"b 1", 0, 2, 1}, {"a 1", 1, 2, 0}, {"b 1", 1, 2, 1}},
     "0:0+1,1:0+1,0:1+1,1:1+1",
     ""},
    {"the launcher's order on a node, and of nodes, is kept",
     {{"a 1", 1, 2, 1}, {"a 1", 0, 2, 1}, {"b 1", 0, 1, 0}},
     "1:1+1,1:0+1,0:0+1",
     ""},
    {"uneven, node ranks unknown",
     {{"a 1", 0, 2, -1}, {"a 1", 1, 2, -1}, {"b 1", 0, 1, -1}},
     "0:0+2,1:0+1",
     ""},
    {"LOCAL_RANK alone",
     {{"a 1", 1, -1, -1}, {"a 1", 0, -1, -1}},
     "0:1+1,0:0+1",
     ""},
    {"T26 virtual local ranks: all 0 of 4",
     {{"a 1", 0, 4, 0}, {"a 1", 0, 4, 0}, {"a 1", 0, 4, 0}, {"a 1", 0, 4, 0}},
     "0:0+4",
     "not all with a number of their own"},
    {"a launcher's two nodes are one host",
     {{"a 1", 0, 2, 0}, {"a 1", 1, 2, 0}, {"a 1", 0, 2, 1}, {"a 1", 1, 2, 1}},
     "0:0+4",
     "rank 0 is local rank 0 of 2, but its host has 4 ranks of this job"},
    {"a launcher's node is two machines",
     {{"a 1", 0, 2, 0}, {"b 1", 1, 2, 0}},
     "0:0+1,1:0+1",
     "rank 0 is local rank 0 of 2, but its host has 1 rank of this job"},
    {"one of two nodes is wrong, the other stays",
     {{"a 1", 0, 1, 0}, {"a 1", 0, 1, 1}, {"b 1", 1, 2, 2}, {"b 1", 0, 2, 2}},
     "0:0+2,1:1+1,1:0+1",
     "rank 0 is local rank 0 of 1, but its host has 2 ranks"},
    {"containers of one machine, which the launcher counts as a node",
     {{"a 1", 0, 3, 0}, {"a 2", 1, 3, 0}, {"a 3", 2, 3, 0}},
     "0:0+3",
     ""},
    {"containers of one machine, which the launcher counts as nodes",
     {{"a 1", 0, 1, 0}, {"a 2", 0, 1, 1}},
     "0:0+1,1:0+1",
     ""},
    {"some were told, some not",
     {{"a 1", 1, 2, -1}, {"a 1", -1, -1, -1}},
     "0:0+2",
     "rank 0 is local rank 1 of 2"},
    {"numbers out of range",
     {{"a 1", 7, 2, 9}, {"a 1", 1, 2, 9}},
     "0:0+2",
     "rank 0 is local rank 7 of 2"},
    {"only the size was told, wrongly",
     {{"a 1", -1, 3, -1}, {"a 1", -1, 3, -1}},
     "0:0+2",
     "rank 0 is one of 3, but its host has 2 ranks"},
    {"node ranks that do not fit are counted by first rank",
     {{"a 1", 0, 1, 1}, {"b 1", 0, 1, 1}, {"c 1", 0, 1, 0}},
     "0:0+1,1:0+1,2:0+1",
     ""},
};

static void check_row(const row_t *row)
{
    GString *warning = g_string_new(NULL);
    dscomm_nodes_t nodes, again = {0};
    char *texts[2];
    int ranks = 0;

    while (row->localities[ranks].host)
        ranks++;
    dscomm_priv_nodes_find(row->localities, ranks, &nodes, warning);
    texts[0] = dscomm_priv_nodes_write(&nodes);
    is_str(texts[0], row->nodes, "%s", row->what);
    ok(*row->warning ? strstr(warning->str, row->warning) != NULL
                     : !warning->len,
       "  warning: %s", warning->str);
    is_int(dscomm_priv_nodes_read(texts[0], ranks, &again), 0,
           "  is read again");
    texts[1] = dscomm_priv_nodes_write(&again);
    ok(!strcmp(texts[0], texts[1]) && nodes.count == again.count,
       "  as it was");
    for (int i = 0; i < 2; i++)
        g_free(texts[i]);
    dscomm_priv_nodes_clear(&nodes);
    dscomm_priv_nodes_clear(&again);
    g_string_free(warning, TRUE);
}

/* Texts for four ranks. */
static void check_texts(void)
{
    static const struct {
        const char *text;
        int good;
    } texts[] = {
        {"0:0+4", 1},
        {"0:0+2,1:0+2", 1},
        {"1:1+1,1:0+1,0:0+2", 1},
        {"0:0+1,1:0+1,0:1+1,1:1+1", 1},
        {"", 0},
        {"0:0+3", 0},
        {"0:0+5", 0},
        {"0:0+4,", 0},
        {"0:0+4,0:4+1", 0},
        {"0:0+2,2:0+2", 0}, /* no node 1 */
        {"0:0+2,0:1+2", 0}, /* a number twice */
        {"0:1+2,1:0+2", 0}, /* no number 0 */
        {"4:0+4", 0},
        {"-1:0+4", 0},
        {"0:-1+4", 0},
        {"0:0+0,0:0+4", 0},
        {"0:0", 0},
        {"0:+4", 0},
        {":0+4", 0},
        {"0:0+99999999999999999999", 0},
        {"99999999999:0+4", 0},
        {"0:0+2;1:0+2", 0},
        {" 0:0+4", 0},
    };
    dscomm_nodes_t nodes;

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        const int good = dscomm_priv_nodes_read(texts[i].text, 4, &nodes) == 0;

        is_int(good, texts[i].good, "'%s' is %s", texts[i].text,
               texts[i].good ? "fine" : "refused");
        if (good)
            dscomm_priv_nodes_clear(&nodes);
    }
}

static void check_place(const dscomm_nodes_t *nodes, const int *members,
                        int count, int self, int local, int size, int node)
{
    dscomm_nodes_t within;
    int got[3];

    dscomm_priv_nodes_within(nodes, members, count, &within);
    dscomm_priv_nodes_place(nodes, members, &within, self, &got[0], &got[1],
                            &got[2]);
    dscomm_priv_nodes_clear(&within);
    ok(got[0] == local && got[1] == size && got[2] == node,
       "rank %d of %d ranks: local rank %d of %d on node %d", self, count,
       got[0], got[1], got[2]);
}

/* Ranks 0 to 5 have local ranks 0, 1 and 2 on nodes 0 and 1 alternately; but on
 * node 1 the launcher counts down. */
static void check_groups(void)
{
    static const int all[] = {0, 1, 2, 3, 4, 5}, some[] = {5, 3, 4};
    dscomm_nodes_t nodes;

    if (dscomm_priv_nodes_read("0:0+1,1:2+1,0:1+1,1:1+1,0:2+1,1:0+1", 6,
                               &nodes))
        bail("a text is not read");
    check_place(&nodes, all, 6, 1, 2, 3, 1);
    check_place(&nodes, all, 6, 4, 2, 3, 0);
    check_place(&nodes, some, 3, 0, 0, 2, 1);
    check_place(&nodes, some, 3, 1, 1, 2, 1);
    check_place(&nodes, some, 3, 2, 0, 1, 0);
    check_place(&nodes, &all[1], 1, 0, 0, 1, 0);
    dscomm_priv_nodes_clear(&nodes);
    dscomm_priv_nodes_one(1, &nodes);
    check_place(&nodes, all, 1, 0, 0, 1, 0);
    dscomm_priv_nodes_clear(&nodes);
}

/* Members become the ranks, in their order; nodes are numbered by their first
 * member. */
static void check_within(void)
{
    static const struct {
        int count, members[6];
        const char *want;
    } groups[] = {
        {6, {0, 1, 2, 3, 4, 5}, "0:0+2,1:0+2,0:2+1,2:0+1"},
        {6, {5, 4, 3, 2, 1, 0}, "0:0+1,1:0+1,2:0+2,1:1+2"},
        {3, {2, 5, 3}, "0:0+1,1:0+1,0:1+1"},
        {2, {4, 0}, "0:0+2"},
        {1, {5}, "0:0+1"},
    };
    dscomm_nodes_t nodes, got;

    if (dscomm_priv_nodes_read("2:1+2,0:0+2,2:0+1,1:0+1", 6, &nodes))
        bail("a text is not read");
    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
        char *text;

        dscomm_priv_nodes_within(&nodes, groups[i].members, groups[i].count,
                                 &got);
        text = dscomm_priv_nodes_write(&got);
        is_str(text, groups[i].want, "nodes of group %zu", i);
        g_free(text);
        dscomm_priv_nodes_clear(&got);
    }
    dscomm_priv_nodes_clear(&nodes);
}

int main(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        check_row(&rows[i]);
    check_texts();
    check_groups();
    check_within();
    return tap_done();
}
