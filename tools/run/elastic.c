/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of an elastic job, whose number may change from attempt to attempt.
 * Each node has a slot, a number that no other one gets. Before each attempt
 * the nodes show that they wait for it, by counters in node 0's store. Node 0
 * plans the attempt with those that have come, and numbers them anew in the
 * order of their slots. A node that is not in the plan waits for the next one.
 */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/base/node.h"
#include "lib/rendezvous/roster.h"
#include "tools/common/tool.h"
#include "tools/run/nodes-record.h"
#include "tools/run/nodes.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Time until a node prints for which nodes it waits. */
#define NOTICE_US (5 * G_USEC_PER_SEC)
/* Limit of slots: nodes that come again have new ones. */
#define SLOTS_MAX 65536
#define KEY_MAX 32
#define SLOTS_KEY "slots" /* number of slots besides node 0's */
#define PLAN_KEY "plan"

/* A slot, as node 0 sees it. */
typedef struct {
    int ranks; /* 0: the record has not come */
    char *host;
    int64_t count; /* signs of life while the node waited */
    gint64 changed_us; /* when that changed last; 0: the node does not wait */
} slot_t;

struct tool_elastic {
    tool_job_t *job;
    const tool_place_t *place;
    tool_place_t round; /* this node's place in the attempt */
    char *url, *host;
    tool_record_t own;
    dscomm_store_t *base, *store; /* base: on node 0 */
    int64_t slot; /* own; 0 is node 0's */
    int attempt; /* the last one with this node; -1: none */
    int skipped; /* the last one without it, which it has printed; -1: none */
    GArray *slots; /* on node 0: all but its own, which is the first */
    char *note; /* on node 0: the first stranger's note */
};

/* Ends the job, with a sentence on stderr. */
static int fail_job(const tool_elastic_t *e, int status, const char *why)
{
    char *text =
        g_strdup_printf("%d %d %s", MAX(e->round.node_rank, 0), status, why);

    tool_nodes_set_once(e->store, TOOL_NODES_OVER, text);
    g_free(text);
    return tool_fail(status, e->job->command, "%s", why);
}

static int fail_store(const tool_elastic_t *e)
{
    return tool_fail(TOOL_INTERNAL, e->job->command, "%s%s",
                     e->slot ? "node 0 is gone, which serves the job's store: "
                             : "the nodes' store: ",
                     dscomm_last_error());
}

/* *ret_text is the value of key, or NULL; for g_free(). */
static dscomm_status_t fetch(const tool_elastic_t *e, const char *key,
                             char **ret_text)
{
    void *value;
    size_t size;
    dscomm_status_t status =
        dscomm_priv_roster_fetch(e->store, key, &value, &size);

    *ret_text = value ? g_strndup(value, size) : NULL;
    dscomm_store_free(value);
    return status;
}

/* Adds by to the counter of slot; *ret_count = the sum. */
static dscomm_status_t count_life(const tool_elastic_t *e, int64_t slot, int by,
                                  int64_t *ret_count)
{
    char key[KEY_MAX];

    g_snprintf(key, sizeof key, "alive/%d", (int)slot);
    return dscomm_store_add(e->store, key, by, ret_count);
}

/* Coming */

static dscomm_status_t put_own_record(tool_elastic_t *e)
{
    char key[KEY_MAX], *text = tool_record_write(&e->own);
    dscomm_status_t status;

    g_snprintf(key, sizeof key, "node/%d", (int)e->slot);
    status = text ? dscomm_store_set(e->store, key, text, strlen(text))
                  : dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a record");
    g_free(text);
    return status;
}

/* Node 0 serves the store. */
static int serve(tool_elastic_t *e, int64_t deadline)
{
    dscomm_status_t status = tool_nodes_open(
        e->url, 1, dscomm_priv_clock_left(deadline), &e->base, &e->store);

    if (status < 0)
        return tool_fail(TOOL_INTERNAL, e->job->command,
                         "node 0 cannot serve the job's store: %s",
                         dscomm_last_error());
    status = dscomm_store_set(e->store, TOOL_NODES_RUN, e->job->run_id,
                              strlen(e->job->run_id));
    if (status == DSCOMM_OK)
        status = put_own_record(e);
    return status == DSCOMM_OK ? TOOL_OK : fail_store(e);
}

/* Compares this node's record with that of node 0, which comes first. */
static int compare_first(const tool_elastic_t *e, int64_t deadline)
{
    tool_record_t first;
    char *memory, *wrong;
    void *value;
    size_t size;
    int status = TOOL_OK;

    if (dscomm_store_get(e->store, "node/0", dscomm_priv_clock_left(deadline),
                         &value, &size) < 0)
        return tool_fail(TOOL_INTERNAL, e->job->command,
                         "a store answers at %s, but node 0 does not come "
                         "there: another program may have that port: %s",
                         e->url, dscomm_last_error());
    if (tool_record_read(0, value, size, &first, &memory) == DSCOMM_OK)
        wrong = tool_record_compare(&first, -1, &e->own);
    else
        wrong = g_strdup(dscomm_last_error());
    if (wrong)
        status = tool_record_refuse(e->store, e->job->command, wrong);
    g_free(wrong);
    g_free(memory);
    dscomm_store_free(value);
    return status;
}

static int come(tool_elastic_t *e, int64_t deadline)
{
    int status;

    if (tool_nodes_await_store(e->job, e->url, deadline, &e->store) < 0)
        return tool_fail(TOOL_INTERNAL, e->job->command,
                         "node 0 did not come: %s", dscomm_last_error());
    status = compare_first(e, deadline);
    if (status != TOOL_OK)
        return status;
    if (dscomm_store_add(e->store, SLOTS_KEY, 1, &e->slot) < 0 ||
        put_own_record(e) < 0)
        return fail_store(e);
    return TOOL_OK;
}

int tool_elastic_open(tool_job_t *job, const tool_place_t *place,
                      tool_elastic_t **ret_elastic)
{
    const int64_t deadline = dscomm_priv_clock() + place->join_us * 1000;
    tool_elastic_t *e = g_new0(tool_elastic_t, 1);
    char name[DSCOMM_NODE_MAX];

    *ret_elastic = e;
    e->job = job;
    e->place = place;
    e->round = *place;
    e->attempt = e->skipped = -1;
    e->slots = g_array_new(false, true, sizeof(slot_t));
    e->url = tool_nodes_url(place->host, place->port);
    dscomm_priv_node_name(name);
    e->host = tool_printable(name);
    e->own = tool_record_own(job, place, e->host);
    tool_record_name_program(&e->own);
    return place->node_rank == 0 ? serve(e, deadline) : come(e, deadline);
}

/* Waiting */

/* Returns the signal that ended the wait, or 0. The first time, signals still
 * have their default actions. */
static int pause_once(const tool_elastic_t *e)
{
    const int ms = (int)(tool_nodes_tick_us(e->place->nodes) / 1000);
    struct pollfd signals = {e->job->signal_fd, POLLIN, 0};
    struct signalfd_siginfo info;

    poll(&signals, 1, ms);
    while (e->job->signal_fd >= 0 &&
           read(e->job->signal_fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM ||
            info.ssi_signo == SIGHUP || info.ssi_signo == SIGQUIT)
            return (int)info.ssi_signo;
    return 0;
}

/* Ends the job on node 0; another node leaves it. */
static int end_by_signal(const tool_elastic_t *e, int signal)
{
    char *why = g_strdup_printf("dscomm run was told to end by signal %d (%s)",
                                signal, g_strsignal(signal));
    const int status = e->slot
                           ? tool_fail(128 + signal, e->job->command, "%s", why)
                           : fail_job(e, 128 + signal, why);

    e->job->end_signal = signal;
    g_free(why);
    return status;
}

/* Waits a little. TOOL_OK, or this node has ended the job or left it. */
static int wait_more(const tool_elastic_t *e)
{
    const int signal = pause_once(e);

    if (signal)
        return end_by_signal(e, signal);
    if (e->job->deadline && g_get_monotonic_time() >= e->job->deadline)
        return fail_job(e, TOOL_TIMED_OUT,
                        "the time of --timeout passed while the nodes met "
                        "for a restart");
    return TOOL_OK;
}

/* The job has ended with text, "NODE STATUS TEXT". */
static int quote_end(const tool_elastic_t *e, const char *text)
{
    char *end, *rest;
    const gint64 node = g_ascii_strtoll(text, &end, 10);
    const gint64 status = g_ascii_strtoll(end, &rest, 10);

    dscomm_store_add(e->store, TOOL_NODES_READ, 1, NULL);
    if (end == text || rest == end || status < 0 || status > 255)
        return tool_fail(TOOL_INTERNAL, e->job->command,
                         "what the nodes' store says makes no sense; has a "
                         "stranger written there?");
    rest = g_strchug(rest);
    if (!*rest)
        return tool_fail((int)status, e->job->command,
                         "the job has ended without this node");
    return tool_fail((int)status, e->job->command, "node %d: %s", (int)node,
                     rest);
}

/* Looks whether the job has ended. */
static int look_for_end(const tool_elastic_t *e, bool *ret_ended)
{
    char *text;
    int status = TOOL_OK;

    *ret_ended = true;
    if (fetch(e, TOOL_NODES_OVER, &text) < 0)
        return fail_store(e);
    *ret_ended = text != NULL;
    if (text)
        status = quote_end(e, text);
    g_free(text);
    return status;
}

/* The plan: number of the attempt, run id, and "SLOT RANKS HOST" of each node,
 * a line each. */

typedef struct {
    char **lines;
    int nodes;
    int own; /* number of this node; -1: it is not in the plan */
    int attempt;
    char **hosts;
    int *counts;
} plan_t;

static void plan_free(plan_t *p)
{
    g_strfreev(p->lines);
    g_strfreev(p->hosts);
    g_free(p->counts);
}

static bool plan_read_node(const tool_elastic_t *e, plan_t *p, int node)
{
    char *count, *host;
    const gint64 slot = g_ascii_strtoll(p->lines[2 + node], &count, 10);
    const gint64 ranks = g_ascii_strtoll(count, &host, 10);

    if (ranks < 1 || ranks > TOOL_RANKS_MAX || *host != ' ')
        return false;
    if (slot == e->slot)
        p->own = node;
    p->counts[node] = (int)ranks;
    p->hosts[node] = tool_printable(host + 1);
    return true;
}

static bool plan_read(const tool_elastic_t *e, const char *text, plan_t *p)
{
    char *end;
    bool valid = true;

    *p = (plan_t){.lines = g_strsplit(text, "\n", TOOL_NODES_MAX + 3),
                  .own = -1};
    p->nodes = (int)g_strv_length(p->lines) - 2;
    if (p->nodes < 1 || p->nodes > TOOL_NODES_MAX || !tool_is_id(p->lines[1]))
        return false;
    p->attempt = (int)g_ascii_strtoll(p->lines[0], &end, 10);
    p->hosts = g_new0(char *, p->nodes + 1);
    p->counts = g_new0(int, p->nodes);
    for (int i = 0; i < p->nodes && valid; i++)
        valid = plan_read_node(e, p, i);
    return valid && !*end && p->attempt >= 0;
}

/* This node takes part in the attempt. */
static int plan_take(tool_elastic_t *e, const plan_t *p,
                     tool_nodes_t **ret_nodes)
{
    tool_job_t *job = e->job;

    job->attempt = e->attempt = p->attempt;
    job->nodes = e->round.nodes = p->nodes;
    job->node_rank = e->round.node_rank = p->own;
    job->address = e->place->host;
    job->port = e->place->port;
    g_strlcpy(job->run_id, p->lines[1], sizeof(job->run_id));
    job->first_rank = job->world = 0;
    for (int i = 0; i < p->nodes; i++) {
        if (i < p->own)
            job->first_rank += p->counts[i];
        job->world += p->counts[i];
    }
    *ret_nodes = tool_nodes_new(job, &e->round, e->url);
    if (!*ret_nodes)
        return fail_job(e, TOOL_INTERNAL, "its ranks could not be started");
    tool_nodes_plan(*ret_nodes, p->hosts, NULL);
    return TOOL_OK;
}

/* Node 0 */

static dscomm_status_t look_for_record(const tool_elastic_t *e, int slot,
                                       slot_t *s)
{
    tool_record_t record;
    char key[KEY_MAX], *text, *memory = NULL;
    dscomm_status_t status;

    g_snprintf(key, sizeof key, "node/%d", slot);
    status = fetch(e, key, &text);
    if (status == DSCOMM_OK && text)
        status = tool_record_read(slot, text, strlen(text), &record, &memory);
    if (status == DSCOMM_OK && text) {
        s->ranks = (int)record.ranks;
        s->host = tool_printable(record.host);
    }
    g_free(memory);
    g_free(text);
    return status;
}

/* Looks which nodes wait. first: signs of life from before do not count. */
static dscomm_status_t look_at_slots(tool_elastic_t *e, bool first)
{
    const gint64 now = g_get_monotonic_time();
    int64_t count = 0;
    dscomm_status_t status = dscomm_store_add(e->store, SLOTS_KEY, 0, &count);

    if (status == DSCOMM_OK && (count < 0 || count > SLOTS_MAX))
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "more than %d nodes have come in all; start the job "
                           "anew",
                           SLOTS_MAX);
    if (status == DSCOMM_OK)
        g_array_set_size(e->slots, (guint)count);
    for (guint i = 0; i < e->slots->len && status == DSCOMM_OK; i++) {
        slot_t *s = &g_array_index(e->slots, slot_t, i);
        const int64_t before = s->count;

        if (!s->ranks)
            status = look_for_record(e, (int)i + 1, s);
        if (status == DSCOMM_OK)
            status = count_life(e, i + 1, 0, &s->count);
        if (first)
            s->changed_us = 0;
        else if (s->count != before)
            s->changed_us = now;
    }
    return status;
}

/* Whether the node of slot i waits. */
static bool is_waiting(const tool_elastic_t *e, guint i)
{
    const slot_t *s = &g_array_index(e->slots, slot_t, i);

    return s->ranks && s->changed_us &&
           g_get_monotonic_time() - s->changed_us <= e->place->silence_us;
}

/* Number of nodes that have come, with this one. */
static int count_waiting(const tool_elastic_t *e)
{
    int count = 1;

    for (guint i = 0; i < e->slots->len; i++)
        count += is_waiting(e, i);
    return count;
}

static char *write_plan(const tool_elastic_t *e)
{
    GString *plan = g_string_new(NULL);
    int left = e->place->nodes - 1;

    g_string_printf(plan, "%d\n%s\n0 %d %s", e->attempt + 1, e->job->run_id,
                    e->job->ranks, e->host);
    for (guint i = 0; i < e->slots->len && left > 0; i++) {
        const slot_t *s = &g_array_index(e->slots, slot_t, i);

        if (!is_waiting(e, i))
            continue;
        g_string_append_printf(plan, "\n%d %d %s", (int)i + 1, s->ranks,
                               s->host);
        left--;
    }
    return g_string_free(plan, FALSE);
}

/* Ends the job: too few nodes have come. */
static int fail_late(tool_elastic_t *e, int came)
{
    const char *why = "check that dscomm run was started on the other nodes, "
                      "and that each can reach this address";
    char *text;
    int status;

    if (dscomm_priv_roster_refused(e->base, g_get_prgname(), "node 0", false))
        why = dscomm_last_error();
    else if (e->note)
        why = e->note;
    else if (tool_host_is_loopback(e->place->host))
        why = "the address of --master is loopback here, where only this "
              "machine can reach it: see /etc/hosts, or give another address";
    text = g_strdup_printf("%d of at least %d nodes came to %s within %g s; %s",
                           came, e->place->least, e->url + strlen("tcp://"),
                           (double)e->place->join_us / G_USEC_PER_SEC, why);
    status = fail_job(e, TOOL_INTERNAL, text);
    g_free(text);
    return status;
}

/* Waits until enough nodes have come, and then for further ones, or until the
 * job has ended. */
static int gather(tool_elastic_t *e, bool *ret_ended)
{
    const gint64 start = g_get_monotonic_time();
    gint64 notice = start + NOTICE_US, enough = 0;
    bool first = true;
    int status;

    for (;; first = false) {
        const gint64 now = g_get_monotonic_time();
        int came;

        status = look_for_end(e, ret_ended);
        if (status != TOOL_OK || *ret_ended)
            return status;
        if (look_at_slots(e, first) < 0)
            return fail_job(e, TOOL_INTERNAL, dscomm_last_error());
        tool_record_quote_stranger(e->store, e->job->command, &e->note);
        came = count_waiting(e);
        enough = came < e->place->least ? 0 : enough ? enough : now;
        if (came >= e->place->nodes ||
            (enough && now - enough >= e->place->last_call_us))
            return TOOL_OK;
        if (!enough && now - start >= e->place->join_us)
            return fail_late(e, came);
        if (!enough && notice && now >= notice) {
            tool_fail(0, e->job->command,
                      "waiting for nodes: %d of at least %d have come", came,
                      e->place->least);
            notice = 0;
        }
        status = wait_more(e);
        if (status != TOOL_OK)
            return status;
    }
}

static int lead(tool_elastic_t *e, tool_nodes_t **ret_nodes)
{
    bool ended;
    int status = gather(e, &ended);
    char *text;
    plan_t plan;

    if (status != TOOL_OK || ended)
        return status;
    text = write_plan(e);
    if (!plan_read(e, text, &plan))
        status = fail_job(e, TOOL_INTERNAL, "the plan of the nodes is broken");
    else if (dscomm_store_set(e->store, PLAN_KEY, text, strlen(text)) < 0)
        status = fail_store(e);
    if (status == TOOL_OK)
        status = plan_take(e, &plan, ret_nodes);
    plan_free(&plan);
    g_free(text);
    return status;
}

/* The others */

/* Looks for a plan with this node. *ret_nodes stays NULL if there is none. */
static int look_for_plan(tool_elastic_t *e, tool_nodes_t **ret_nodes)
{
    int status = TOOL_OK;
    plan_t p;
    char *text;

    if (fetch(e, PLAN_KEY, &text) < 0)
        return fail_store(e);
    if (!text)
        return TOOL_OK;
    if (!plan_read(e, text, &p)) {
        status = tool_fail(TOOL_INTERNAL, e->job->command,
                           "the plan of node 0 makes no sense; give all nodes "
                           "the same version of dscomm");
    } else if (p.attempt > e->attempt && p.own >= 0) {
        status = plan_take(e, &p, ret_nodes);
    } else if (p.attempt > e->attempt && p.attempt > e->skipped) {
        e->skipped = p.attempt;
        tool_fail(0, e->job->command,
                  "the job runs on %d node%s without this one, which joins at "
                  "the next restart",
                  p.nodes, p.nodes == 1 ? "" : "s");
    }
    plan_free(&p);
    g_free(text);
    return status;
}

static int follow(tool_elastic_t *e, tool_nodes_t **ret_nodes)
{
    const gint64 deadline = g_get_monotonic_time() + e->place->join_us +
                            e->place->last_call_us + e->place->silence_us;
    bool ended = false;
    int status = TOOL_OK;

    while (status == TOOL_OK && !*ret_nodes && !ended) {
        if (count_life(e, e->slot, 1, NULL) < 0)
            return fail_store(e);
        status = look_for_end(e, &ended);
        if (status == TOOL_OK && !ended)
            status = look_for_plan(e, ret_nodes);
        if (status != TOOL_OK || *ret_nodes || ended)
            break;
        if (e->attempt < 0 && e->skipped < 0 &&
            g_get_monotonic_time() >= deadline)
            return tool_fail(TOOL_INTERNAL, e->job->command,
                             "node 0 came, but does not start the job; give "
                             "all nodes the same --join-timeout and "
                             "--last-call");
        status = wait_more(e);
    }
    return status;
}

int tool_elastic_join(tool_elastic_t *e, tool_nodes_t **ret_nodes)
{
    *ret_nodes = NULL;
    return e->slot ? follow(e, ret_nodes) : lead(e, ret_nodes);
}

void tool_elastic_close(tool_elastic_t *e)
{
    if (!e)
        return;
    /* nodes that wait look for the end at each tick */
    if (!e->slot && e->store && e->slots->len > 0)
        g_usleep((gulong)(3 * tool_nodes_tick_us(e->place->nodes)));
    dscomm_store_close(e->store);
    dscomm_store_close(e->base);
    for (guint i = 0; i < e->slots->len; i++)
        g_free(g_array_index(e->slots, slot_t, i).host);
    g_array_free(e->slots, true);
    g_free(e->note);
    g_free(e->url);
    g_free(e->host);
    g_free(e);
}
