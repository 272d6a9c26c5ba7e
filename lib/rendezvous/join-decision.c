/* SPDX-License-Identifier: BSD-3-Clause */
/* What rank 0 decides, as lines of text: "ok", backend, ranks, nodes,
 * oversubscribed, rank 0's pid, node and host; or "error", status, sentence. */
#include "config.h"

#include "lib/rendezvous/join-decision.h"

#include "lib/base/status.h"
#include "lib/rendezvous/roster.h"

#include <stdio.h>
#include <string.h>

enum { WORD, BACKEND, SIZE, NODES, OVERSUBSCRIBED, PID, NODE, HOST, LINES };

char *dscomm_priv_join_decision_write(const dscomm_join_decision_t *decision)
{
    char *nodes = dscomm_priv_nodes_write(&decision->nodes), *text;

    text = g_strdup_printf("ok\n%s\n%d\n%s\n%d\n%lld\n%s\n%s",
                           decision->module->name, decision->nodes.ranks, nodes,
                           decision->oversubscribed, (long long)decision->pid,
                           decision->node, decision->host);
    g_free(nodes);
    return text;
}

char *dscomm_priv_join_decision_write_failure(dscomm_status_t status,
                                              const char *sentence)
{
    return g_strdup_printf(ROSTER_FAILURE "%d\n%s", (int)status, sentence);
}

dscomm_status_t dscomm_priv_join_decision_put_failure(dscomm_store_t *store,
                                                      const char *key,
                                                      dscomm_status_t status)
{
    char *sentence = g_strdup(dscomm_last_error());
    char *text = dscomm_priv_join_decision_write_failure(status, sentence);

    dscomm_store_set(store, key, text, strlen(text));
    dscomm_priv_fail_with(status, sentence);
    g_free(text);
    g_free(sentence);
    return status;
}

static dscomm_status_t fail_nonsense(void)
{
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "what rank 0 published makes no sense; another program "
                       "uses the store");
}

/* A rank beyond those that rank 0 knows of is in no record that it read. */
static dscomm_status_t check_size(const dscomm_join_t *join, const char *size)
{
    char own[16], quoted[32];

    snprintf(own, sizeof own, "%d", join->size);
    if (!strcmp(size, own))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_MISMATCH,
                       "rank 0 was told of %s ranks, rank %d of %s; give all "
                       "the same world size",
                       dscomm_priv_quote(size, quoted, sizeof quoted),
                       join->rank, own);
}

static dscomm_status_t read_good(const dscomm_join_t *join, char **lines,
                                 dscomm_join_decision_t *decision)
{
    dscomm_status_t status = check_size(join, lines[SIZE]);
    gint64 pid = 0;

    if (!status)
        status = dscomm_priv_module_find(lines[BACKEND], &decision->module);
    decision->oversubscribed = strcmp(lines[OVERSUBSCRIBED], "1") == 0;
    if (!status && !decision->oversubscribed &&
        strcmp(lines[OVERSUBSCRIBED], "0"))
        status = fail_nonsense();
    if (!status &&
        !g_ascii_string_to_signed(lines[PID], 10, 1, G_MAXINT32, &pid, NULL))
        status = fail_nonsense();
    decision->pid = pid;
    g_strlcpy(decision->node, lines[NODE], sizeof decision->node);
    dscomm_priv_tidy(decision->node, sizeof decision->node);
    g_strlcpy(decision->host, lines[HOST], sizeof decision->host);
    if (!status &&
        dscomm_priv_nodes_read(lines[NODES], join->size, &decision->nodes))
        status = fail_nonsense();
    return status;
}

static dscomm_status_t read_failure(const char *text)
{
    char **lines = g_strsplit(text, "\n", 3), quoted[DSCOMM_ERROR_MAX];
    dscomm_status_t status;
    gint64 number;

    if (g_strv_length(lines) == 3 &&
        g_ascii_string_to_signed(lines[1], 10, -1000, -1, &number, NULL)) {
        dscomm_priv_quote(lines[2], quoted, sizeof quoted);
        status = dscomm_priv_fail_with((dscomm_status_t)number, quoted);
    } else {
        status = fail_nonsense();
    }
    g_strfreev(lines);
    return status;
}

dscomm_status_t
dscomm_priv_join_decision_read(const dscomm_join_t *join, const char *text,
                               dscomm_join_decision_t *ret_decision)
{
    dscomm_join_decision_t decision = {0};
    dscomm_status_t status;
    char **lines;

    if (g_str_has_prefix(text, ROSTER_FAILURE))
        return read_failure(text);
    lines = g_strsplit(text, "\n", LINES + 1);
    if (g_strv_length(lines) == LINES && !strcmp(lines[WORD], "ok"))
        status = read_good(join, lines, &decision);
    else
        status = fail_nonsense();
    g_strfreev(lines);
    if (!status)
        *ret_decision = decision;
    return status;
}
