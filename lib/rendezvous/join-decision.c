/* SPDX-License-Identifier: BSD-3-Clause */
/* What rank 0 decides, as lines of text: "ok", backend, ranks, nodes,
 * crowded, rank 0's pid, node and host; or "error", status, sentence. */
#include "config.h"

#include "lib/rendezvous/roster.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

enum { WORD, BACKEND, SIZE, NODES, CROWDED, PID, NODE, HOST, LINES };

char *dscomm_priv_verdict_write(const dscomm_verdict_t *verdict)
{
    char *nodes = dscomm_priv_nodes_write(&verdict->nodes), *text;

    text = g_strdup_printf("ok\n%s\n%d\n%s\n%d\n%lld\n%s\n%s",
                           verdict->module->name, verdict->nodes.ranks, nodes,
                           verdict->crowded, (long long)verdict->pid,
                           verdict->node, verdict->host);
    g_free(nodes);
    return text;
}

char *dscomm_priv_verdict_write_failure(dscomm_status_t status,
                                        const char *sentence)
{
    return g_strdup_printf("error\n%d\n%s", (int)status, sentence);
}

static dscomm_status_t nonsense(void)
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
                                 dscomm_verdict_t *verdict)
{
    dscomm_status_t status = check_size(join, lines[SIZE]);
    gint64 pid = 0;

    if (!status)
        status = dscomm_priv_module_find(lines[BACKEND], &verdict->module);
    verdict->crowded = strcmp(lines[CROWDED], "1") == 0;
    if (!status && !verdict->crowded && strcmp(lines[CROWDED], "0"))
        status = nonsense();
    if (!status &&
        !g_ascii_string_to_signed(lines[PID], 10, 1, G_MAXINT32, &pid, NULL))
        status = nonsense();
    verdict->pid = pid;
    g_strlcpy(verdict->node, lines[NODE], sizeof verdict->node);
    dscomm_priv_tidy(verdict->node, sizeof verdict->node);
    g_strlcpy(verdict->host, lines[HOST], sizeof verdict->host);
    if (!status &&
        dscomm_priv_nodes_read(lines[NODES], join->size, &verdict->nodes))
        status = nonsense();
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
        status = nonsense();
    }
    g_strfreev(lines);
    return status;
}

dscomm_status_t dscomm_priv_verdict_read(const dscomm_join_t *join,
                                         const char *text,
                                         dscomm_verdict_t *ret_verdict)
{
    dscomm_verdict_t verdict = {0};
    dscomm_status_t status;
    char **lines;

    if (g_str_has_prefix(text, "error\n"))
        return read_failure(text);
    lines = g_strsplit(text, "\n", LINES + 1);
    if (g_strv_length(lines) == LINES && !strcmp(lines[WORD], "ok"))
        status = read_good(join, lines, &verdict);
    else
        status = nonsense();
    g_strfreev(lines);
    if (!status)
        *ret_verdict = verdict;
    return status;
}
