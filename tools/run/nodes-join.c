/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a job meet as members of a roster: each node writes a record of
 * itself, and node 0 publishes the plan, or a failure, which is the same on
 * all nodes. A node whose record contradicts that of node 0 belongs to another
 * job: it detects that itself, leaves a note, and does not join. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/base/node.h"
#include "lib/rendezvous/roster.h"
#include "tools/common/tool.h"
#include "tools/run/nodes-record.h"
#include "tools/run/nodes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Additional time that the other nodes wait for node 0's plan. */
#define GRACE_MS 2000
/* Time until a node prints for which nodes it waits. */
#define NOTICE_MS 5000
/* Time between looks for notes of strangers, and for records. */
#define LOOK_MS 500

typedef struct {
    tool_job_t *job;
    const tool_place_t *place;
    char *url;
    tool_record_t own;
    dscomm_roster_t roster;
    /* on node 0: the store in which its server reports refused processes */
    dscomm_store_t *base;
    /* on node 0: number of launchers with another secret, if that ends the
     * start */
    int refused;
    bool loopback; /* node 0: only this machine reaches its store */
    /* when to print for which nodes it waits; 0: it was printed */
    int64_t notice_at;
    char *note; /* on node 0: the first stranger's note */
    char **hosts; /* all nodes' */
    int *counts; /* and ranks */
} join_t;

static int join_fail(const join_t *j)
{
    return tool_fail(TOOL_INTERNAL, j->job->command, "the nodes' store: %s",
                     dscomm_last_error());
}

/* Whether other names an ended process of this host and pid namespace; mine is
 * the token of this process: "pid 7 on HOST, NAMESPACE, NUMBER". */
static bool is_dead(const char *other, const char *mine)
{
    const char *theirs = strstr(other, " on "), *own = strstr(mine, " on ");
    const size_t common = (size_t)(strrchr(own, ',') - own) + 1;
    const int pid = g_str_has_prefix(other, "pid ") ? atoi(other + 4) : 0;

    return theirs && pid > 0 && !strncmp(theirs, own, common) &&
           kill(pid, 0) < 0 && errno == ESRCH;
}

/* Claims this node's number. Fails if another node has it: mostly, two nodes
 * were given the same one. A node whose earlier process ended while it waited
 * may join again. */
static int claim(const join_t *j)
{
    char *space = g_file_read_link("/proc/self/ns/pid", NULL);
    char token[ROSTER_TOKEN_MAX], *other;
    dscomm_status_t status;

    dscomm_priv_roster_token(space ? space : "", token);
    g_free(space);
    status = dscomm_priv_roster_claim(&j->roster, token, is_dead, &other);
    if (status < 0)
        return join_fail(j);
    if (!other)
        return TOOL_OK;
    tool_fail(TOOL_INTERNAL, j->job->command,
              "node %d is there already (%.*s); give each node its own "
              "--node-rank, and each job its own port",
              j->place->node_rank, (int)strcspn(other, ","), other);
    g_free(other);
    return TOOL_INTERNAL;
}

static int put_own_record(join_t *j)
{
    char *text = tool_record_write(&j->own);
    dscomm_status_t status =
        text ? dscomm_priv_roster_put(&j->roster, text)
             : dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a record");

    g_free(text);
    return status < 0 ? join_fail(j) : TOOL_OK;
}

/* Node 0 */

/* Keeps the parts of a record that the plan needs. */
static dscomm_status_t take_record(void *arg, int node, const void *value,
                                   size_t size)
{
    join_t *j = arg;
    tool_record_t record;
    char *memory;
    dscomm_status_t status =
        tool_record_read(node, value, size, &record, &memory);

    if (status == DSCOMM_OK) {
        j->counts[node] = (int)record.ranks;
        g_free(j->hosts[node]);
        j->hosts[node] = tool_printable(record.host);
    }
    g_free(memory);
    return status;
}

/* After a while, prints for which nodes it waits. */
static void give_notice(join_t *j)
{
    int came;
    char *names;

    if (!j->notice_at || dscomm_priv_clock() < j->notice_at)
        return;
    j->notice_at = 0;
    dscomm_priv_roster_missing(j->roster.store, j->roster.record,
                               j->roster.count, "node", &names, &came);
    if (names)
        tool_fail(0, j->job->command, "waiting for %s", names);
    g_free(names);
}

/* Number of launchers that were refused because of another job secret; the
 * sentence is the last error. */
static int find_refused(const join_t *j, bool certain)
{
    return dscomm_priv_roster_refused(j->base, g_get_prgname(), "node 0",
                                      certain);
}

static dscomm_status_t look_around(void *arg)
{
    join_t *j = arg;

    tool_record_quote_stranger(j->roster.store, j->job->command, &j->note);
    give_notice(j);
    j->refused = find_refused(j, true);
    return j->refused ? DSCOMM_ERR_MISMATCH : DSCOMM_OK;
}

/* Fails with the missing nodes, and possible reasons. */
static char *explain_late(join_t *j, int *ret_came)
{
    const char *why = j->loopback
                          ? "the address of --master is loopback here, where "
                            "only this machine can reach it: see /etc/hosts, "
                            "or give another address"
                          : "check that dscomm run was started on every node, "
                            "each with its own --node-rank, and that each can "
                            "reach this address";
    char *names, *text;

    dscomm_priv_roster_missing(j->roster.store, j->roster.record,
                               j->roster.count, "node", &names, ret_came);
    tool_record_quote_stranger(j->roster.store, j->job->command, &j->note);
    if (find_refused(j, false))
        why = dscomm_last_error();
    else if (j->note)
        why = j->note;
    if (!names)
        names = g_strdup_printf("some of %d nodes", j->place->nodes);
    text = g_strdup_printf("%s did not come to %s within %g s; %s", names,
                           j->url + strlen("tcp://"),
                           (double)j->place->join_us / G_USEC_PER_SEC, why);
    g_free(names);
    return text;
}

/* Collects the records. Returns NULL, or what is wrong. */
static char *collect(join_t *j, int *ret_came)
{
    dscomm_roster_wait_t wait = {LOOK_MS, LOOK_MS, look_around, j};
    dscomm_status_t status =
        dscomm_priv_roster_collect(&j->roster, &wait, take_record);

    *ret_came = MAX(j->place->nodes - j->refused, 1);
    if (status == DSCOMM_ERR_TIMEOUT)
        return explain_late(j, ret_came);
    return status < 0 ? g_strdup(dscomm_last_error()) : NULL;
}

static char *write_plan(const join_t *j)
{
    GString *plan = g_string_new("ok\n");

    g_string_append(plan, j->job->run_id);
    for (int i = 0; i < j->place->nodes; i++)
        g_string_append_printf(plan, "\n%d %s", j->counts[i], j->hosts[i]);
    return g_string_free(plan, FALSE);
}

static int lead(join_t *j)
{
    int came, result = TOOL_OK;
    dscomm_status_t status;
    char *wrong, *plan;

    dscomm_store_set(j->roster.store, TOOL_NODES_RUN, j->job->run_id,
                     strlen(j->job->run_id));
    wrong = collect(j, &came);
    /* reads the records again: a node may have come a second time, with another
     * number of ranks */
    if (!wrong)
        wrong = collect(j, &came);
    if (wrong)
        result = tool_fail(TOOL_INTERNAL, j->job->command, "%s", wrong);
    plan = wrong ? g_strconcat(ROSTER_FAILURE, wrong, NULL) : write_plan(j);
    status = dscomm_priv_roster_publish(&j->roster, plan, came - 1);
    if (!wrong && status < 0)
        result = join_fail(j);
    g_free(plan);
    g_free(wrong);
    return result;
}

/* The others */

/* Compares this node's record with that of node 0, which comes first. */
static int compare_first(const join_t *j)
{
    tool_record_t first;
    char key[ROSTER_KEY_MAX], *memory, *wrong;
    void *value;
    size_t size;
    int status = TOOL_OK;

    if (dscomm_store_get(
            j->roster.store, dscomm_priv_roster_key(&j->roster, 0, key),
            dscomm_priv_clock_left(j->roster.deadline), &value, &size) < 0)
        return tool_fail(TOOL_INTERNAL, j->job->command,
                         "a store answers at %s, but node 0 does not come "
                         "there: another program may have that port: %s",
                         j->url, dscomm_last_error());
    if (tool_record_read(0, value, size, &first, &memory) == DSCOMM_OK)
        wrong = tool_record_compare(&first, j->place->node_rank, &j->own);
    else
        wrong = g_strdup(dscomm_last_error());
    if (wrong)
        status = tool_record_refuse(j->roster.store, j->job->command, wrong);
    g_free(wrong);
    g_free(memory);
    dscomm_store_free(value);
    return status;
}

static bool read_plan(join_t *j, char **lines)
{
    const int nodes = j->place->nodes;

    if ((int)g_strv_length(lines) != nodes + 2 || strcmp(lines[0], "ok") ||
        !tool_is_id(lines[1]))
        return false;
    g_strlcpy(j->job->run_id, lines[1], sizeof(j->job->run_id));
    for (int i = 0; i < nodes; i++) {
        char *host;
        const gint64 count = g_ascii_strtoll(lines[2 + i], &host, 10);

        if (*host != ' ' || count < 1 || count > TOOL_RANKS_MAX)
            return false;
        j->counts[i] = (int)count;
        j->hosts[i] = tool_printable(host + 1);
    }
    return true;
}

/* Fails because the plan was made with an earlier process of this node. Ends
 * the job, because all other nodes would wait for it. */
static int fail_replaced(const join_t *j, int planned)
{
    const int node = j->place->node_rank;
    char *why = g_strdup_printf("was started again with %d ranks, when the job "
                                "had begun with %d: start it with as many, or "
                                "the whole job anew",
                                (int)j->own.ranks, planned);
    char *end = g_strdup_printf("%d %d %s", node, TOOL_INTERNAL, why);
    int status;

    tool_nodes_set_once(j->roster.store, TOOL_NODES_OVER, end);
    status = tool_fail(TOOL_INTERNAL, j->job->command, "node %d %s", node, why);
    g_free(end);
    g_free(why);
    return status;
}

static int plan_apply(join_t *j, const char *plan)
{
    char **lines = g_strsplit(plan, "\n", j->place->nodes + 3);
    int status = TOOL_OK;

    if (dscomm_priv_roster_failed(&j->roster, plan)) {
        status = tool_fail(TOOL_INTERNAL, j->job->command, "%s",
                           lines[1] ? lines[1] : "");
    } else if (!read_plan(j, lines)) {
        status = tool_fail(TOOL_INTERNAL, j->job->command,
                           "the plan of node 0 is not one for %d nodes; give "
                           "all the same --nnodes and version of dscomm",
                           j->place->nodes);
    } else if (j->counts[j->place->node_rank] != j->own.ranks) {
        status = fail_replaced(j, j->counts[j->place->node_rank]);
    }
    g_strfreev(lines);
    return status;
}

static int plan_follow(join_t *j)
{
    const int64_t end = j->roster.deadline + GRACE_MS * NS_PER_MS;
    dscomm_roster_wait_t wait = {.slice_ms = G_MAXINT};
    void *value;
    size_t size;
    int status;

    if (dscomm_priv_roster_await_decision(&j->roster, end, &wait, &value,
                                          &size) < 0)
        return tool_fail(TOOL_INTERNAL, j->job->command,
                         "node 0 came, but is gone, or said nothing: %s",
                         dscomm_last_error());
    status = plan_apply(j, value);
    dscomm_store_free(value);
    return status;
}

/* Together */

dscomm_status_t tool_nodes_await_store(const tool_job_t *job, const char *url,
                                       int64_t deadline,
                                       dscomm_store_t **ret_store)
{
    const int left = dscomm_priv_clock_left(deadline);
    dscomm_status_t status =
        tool_nodes_open(url, 0, MIN(left, NOTICE_MS), NULL, ret_store);

    if (status != DSCOMM_ERR_TIMEOUT || left <= NOTICE_MS)
        return status;
    tool_fail(0, job->command, "waiting for node 0: %s", dscomm_last_error());
    return tool_nodes_open(url, 0, dscomm_priv_clock_left(deadline), NULL,
                           ret_store);
}

static int join_open_store(join_t *j)
{
    dscomm_status_t status;

    if (j->place->node_rank) {
        status = tool_nodes_await_store(j->job, j->url, j->roster.deadline,
                                        &j->roster.store);
        return status == DSCOMM_OK
                   ? TOOL_OK
                   : tool_fail(TOOL_INTERNAL, j->job->command,
                               "node 0 of %d did not come: %s", j->place->nodes,
                               dscomm_last_error());
    }
    status =
        tool_nodes_open(j->url, 1, dscomm_priv_clock_left(j->roster.deadline),
                        &j->base, &j->roster.store);
    if (status < 0)
        return tool_fail(TOOL_INTERNAL, j->job->command,
                         "node 0 cannot serve the job's store: %s",
                         dscomm_last_error());
    j->loopback = tool_host_is_loopback(j->place->host);
    return TOOL_OK;
}

static void take_plan(join_t *j)
{
    tool_job_t *job = j->job;

    job->nodes = j->place->nodes;
    job->node_rank = j->place->node_rank;
    job->address = j->place->host;
    job->port = j->place->port;
    job->first_rank = 0;
    job->world = 0;
    for (int i = 0; i < job->nodes; i++) {
        if (i < job->node_rank)
            job->first_rank += j->counts[i];
        job->world += j->counts[i];
    }
}

static int join(join_t *j)
{
    int status = join_open_store(j);

    if (status == TOOL_OK && j->place->node_rank)
        status = compare_first(j);
    if (status == TOOL_OK)
        status = claim(j);
    if (status == TOOL_OK)
        status = put_own_record(j);
    if (status == TOOL_OK)
        status = j->place->node_rank ? plan_follow(j) : lead(j);
    return status;
}

int tool_nodes_join(tool_job_t *job, const tool_place_t *place,
                    tool_nodes_t **ret_nodes)
{
    const int64_t now = dscomm_priv_clock();
    join_t j = {
        .job = job,
        .place = place,
        .roster = {.own = place->node_rank,
                   .count = place->nodes,
                   .deadline = now + place->join_us * 1000,
                   .record = "node/",
                   .decision = "plan",
                   .read = TOOL_NODES_READ},
        .notice_at = now + NOTICE_MS * NS_PER_MS,
    };
    char name[DSCOMM_NODE_MAX], *host;
    int status;

    j.url = tool_nodes_url(place->host, place->port);
    dscomm_priv_node_name(name);
    host = tool_printable(name);
    j.own = tool_record_own(job, place, host);
    tool_record_name_program(&j.own);
    j.hosts = g_new0(char *, place->nodes + 1);
    j.counts = g_new0(int, place->nodes);
    *ret_nodes = tool_nodes_new(job, place, j.url);
    status = *ret_nodes ? join(&j) : TOOL_INTERNAL;
    if (status == TOOL_OK) {
        take_plan(&j);
        tool_nodes_plan(*ret_nodes, j.hosts, j.roster.store);
    } else {
        dscomm_store_close(j.roster.store);
        tool_nodes_leave(*ret_nodes);
    }
    dscomm_store_close(j.base);
    for (int i = 0; i < place->nodes; i++)
        g_free(j.hosts[i]);
    g_free(j.hosts);
    g_free(j.counts);
    g_free(j.note);
    g_free(host);
    g_free(j.url);
    return status;
}
