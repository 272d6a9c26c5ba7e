/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of nodes: lines of text, the first of which names the format. */
#include "config.h"

#include "tools/run/nodes-record.h"
#include "tools/common/tool.h"

#include <string.h>
#include <unistd.h>

#define FORMAT "dscomm-run 1"
#define RECORD_MAX 1024

enum { LINE_FORMAT, LINE_NODES, LINE_RANKS, LINE_RESTARTS, LINE_PID };
enum { LINE_ID = LINE_PID + 1, LINE_HOST, LINES };

char *tool_nodes_record_write(const tool_nodes_record_t *record)
{
    return g_strdup_printf("%s\n%d\n%d\n%d\n%d\n%s\n%s", FORMAT, record->nodes,
                           record->ranks, record->restarts, (int)getpid(),
                           record->id, record->host);
}

static gboolean read_number(const char *line, int *ret_number)
{
    gint64 number;

    if (!g_ascii_string_to_signed(line, 10, 0, G_MAXINT32, &number, NULL))
        return FALSE;
    *ret_number = (int)number;
    return TRUE;
}

static gboolean read_lines(char **lines, tool_nodes_record_t *record)
{
    int pid;

    if (g_strv_length(lines) != LINES || strcmp(lines[LINE_FORMAT], FORMAT) ||
        !read_number(lines[LINE_NODES], &record->nodes) ||
        !read_number(lines[LINE_RANKS], &record->ranks) ||
        !read_number(lines[LINE_RESTARTS], &record->restarts) ||
        !read_number(lines[LINE_PID], &pid))
        return FALSE;
    record->id = tool_printable(lines[LINE_ID]);
    record->host = tool_printable(lines[LINE_HOST]);
    return TRUE;
}

gboolean tool_nodes_record_read(const char *text, size_t size,
                                tool_nodes_record_t *ret_record)
{
    tool_nodes_record_t record = {0};
    gboolean fine;
    char **lines;

    if (size > RECORD_MAX || strlen(text) != size)
        return FALSE;
    lines = g_strsplit(text, "\n", LINES + 1);
    fine = read_lines(lines, &record);
    g_strfreev(lines);
    if (fine)
        *ret_record = record;
    return fine;
}

void tool_nodes_record_clear(tool_nodes_record_t *record)
{
    g_free(record->id);
    g_free(record->host);
}

static char *contradict(const char *first, int node,
                        const tool_nodes_record_t *own, const char *other)
{
    return g_strdup_printf("node 0 has %s, node %d (%s) %s; give all nodes of "
                           "a job the same, and each job its own port",
                           first, node, own->host, other);
}

char *tool_nodes_record_compare(const tool_nodes_record_t *first, int node,
                                const tool_nodes_record_t *own)
{
    const struct {
        const char *option;
        int first, own;
    } numbers[] = {{"--nnodes", first->nodes, own->nodes},
                   {"--max-restarts", first->restarts, own->restarts}};
    char texts[2][128];

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (numbers[i].first == numbers[i].own)
            continue;
        g_snprintf(texts[0], sizeof texts[0], "%s %d", numbers[i].option,
                   numbers[i].first);
        g_snprintf(texts[1], sizeof texts[1], "%d", numbers[i].own);
        return contradict(texts[0], node, own, texts[1]);
    }
    if (strcmp(first->id, own->id) == 0)
        return NULL;
    g_snprintf(texts[0], sizeof texts[0],
               *first->id ? "--rdzv-id '%s'" : "no --rdzv-id", first->id);
    g_snprintf(texts[1], sizeof texts[1], *own->id ? "'%s'" : "none", own->id);
    return contradict(texts[0], node, own, texts[1]);
}
