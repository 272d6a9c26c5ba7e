/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of nodes, see nodes-record.h. */
#include "config.h"

#include "tools/run/nodes-record.h"

#include "lib/rendezvous/roster.h"
#include "tools/common/tool.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define RECORD_MAX 1024
/* Key of the first stranger's note. */
#define NOTE_KEY "stranger"
#define NOTE_MAX 1024
/* Bytes of "MIN:MAX". */
#define RANGE_MAX 32

tool_record_t tool_record_own(const tool_job_t *job, const tool_place_t *place,
                              const char *host)
{
    return (tool_record_t){place->least, place->nodes,
                           job->ranks,   job->max_restarts,
                           getpid(),     place->id ? place->id : "",
                           host};
}

static dscomm_roster_lines_t record_lines(tool_record_t *r)
{
    return (dscomm_roster_lines_t){
        "dscomm-run 2",
        RECORD_MAX,
        {&r->least, &r->nodes, &r->ranks, &r->restarts, &r->pid},
        {&r->id, &r->host},
    };
}

char *tool_record_write(tool_record_t *record)
{
    const dscomm_roster_lines_t lines = record_lines(record);

    return dscomm_priv_roster_write(&lines);
}

dscomm_status_t tool_record_read(int node, const char *text, size_t size,
                                 tool_record_t *record, char **ret_memory)
{
    const dscomm_roster_lines_t lines = record_lines(record);

    if (dscomm_priv_roster_read(&lines, text, size, ret_memory) == 0 &&
        record->ranks >= 1 && record->ranks <= TOOL_RANKS_MAX)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "what node %d says of itself makes no sense: give all "
                       "nodes the same version of dscomm",
                       node);
}

/* Writes the numbers of nodes as after --nnodes: "2" or "1:4". */
static const char *write_range(const tool_record_t *r, char text[RANGE_MAX])
{
    if (r->least)
        g_snprintf(text, RANGE_MAX, "%d:%d", (int)r->least, (int)r->nodes);
    else
        g_snprintf(text, RANGE_MAX, "%d", (int)r->nodes);
    return text;
}

/* Writes how the records differ, as "--nnodes 2" and "3". false: they do not.
 */
static bool find_difference(const tool_record_t *first,
                            const tool_record_t *own, char a[128], char b[128])
{
    char range[RANGE_MAX];

    if (first->nodes != own->nodes || first->least != own->least) {
        g_snprintf(a, 128, "--nnodes %s", write_range(first, range));
        write_range(own, b);
    } else if (first->restarts != own->restarts) {
        g_snprintf(a, 128, "--max-restarts %d", (int)first->restarts);
        g_snprintf(b, 128, "%d", (int)own->restarts);
    } else if (strcmp(first->id, own->id)) {
        g_snprintf(a, 128, *first->id ? "--rdzv-id '%s'" : "no --rdzv-id",
                   first->id);
        g_snprintf(b, 128, *own->id ? "'%s'" : "none", own->id);
    } else {
        return false;
    }
    return true;
}

char *tool_record_compare(const tool_record_t *first, int node,
                          const tool_record_t *own)
{
    char a[128], b[128], name[32] = "this node";

    if (!find_difference(first, own, a, b))
        return NULL;
    if (node >= 0)
        g_snprintf(name, sizeof name, "node %d", node);
    return g_strdup_printf("node 0 has %s, %s (%s) %s; give all nodes of "
                           "a job the same, and each job its own port",
                           a, name, own->host, b);
}

int tool_record_refuse(dscomm_store_t *store, const char *command,
                       const char *why)
{
    dscomm_store_compare_set(store, NOTE_KEY, "", 0, why,
                             MIN(strlen(why), NOTE_MAX), NULL, NULL);
    return tool_fail(TOOL_INTERNAL, command, "%s", why);
}

void tool_record_quote_stranger(dscomm_store_t *store, const char *command,
                                char **note)
{
    void *value;
    size_t size;
    char *text;

    if (*note || dscomm_priv_roster_fetch(store, NOTE_KEY, &value, &size) < 0 ||
        !value)
        return;
    text = g_strndup(value, MIN(size, NOTE_MAX));
    dscomm_store_free(value);
    *note = tool_printable(text);
    g_free(text);
    tool_fail(0, command, "refused a node of another job: %s", *note);
}

void tool_record_name_program(const tool_record_t *own)
{
    char range[RANGE_MAX];
    char *name = g_strdup_printf("dscomm run --nnodes %s --max-restarts %d%s%s",
                                 write_range(own, range), (int)own->restarts,
                                 *own->id ? " --rdzv-id " : "", own->id);

    g_set_prgname(name);
    g_free(name);
}

static bool is_named(const struct hostent *entry, const char *host)
{
    bool found = !g_ascii_strcasecmp(entry->h_name, host);

    for (char **name = entry->h_aliases; *name && !found; name++)
        found = !g_ascii_strcasecmp(*name, host);
    return found;
}

bool tool_host_is_loopback(const char *host)
{
    const struct hostent *entry;
    struct in_addr v4;
    struct in6_addr v6;
    bool found = false;

    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    if (inet_pton(AF_INET, host, &v4) != 1) {
        sethostent(1);
        while (!found && (entry = gethostent()) != NULL)
            found = entry->h_addrtype == AF_INET && is_named(entry, host);
        v4.s_addr = 0;
        if (found)
            memcpy(&v4, entry->h_addr_list[0], sizeof v4);
        endhostent();
    }
    return ntohl(v4.s_addr) >> 24 == 127;
}
