/* SPDX-License-Identifier: BSD-3-Clause */
/* Watching the nodes of a job, see nodes.h. One thread polls the store: has
 * the job ended, does it start again, is every node alive? Posts of the main
 * thread wake it, and its events wake the main thread. */
#include "config.h"

#include "lib/base/thread.h"
#include "lib/rendezvous/roster.h"
#include "tools/common/sample.h"
#include "tools/common/tool.h"
#include "tools/run/nodes.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define REPORT_MS 1000
#define TEXT_MAX 4096
/* After the last request of dscomm top, samples are written for so long. */
#define SAMPLED_US (5 * G_USEC_PER_SEC)

typedef enum {
    POST_END,
    POST_RESTART,
    POST_DONE,
    POST_READY,
    POST_LEAVE
} post_kind_t;

typedef struct {
    post_kind_t kind;
    char *text; /* text in the form of the store */
} post_t;

/* From one thread to the other. */
typedef struct {
    pthread_mutex_t lock;
    GQueue items;
    int fd; /* an eventfd, readable if there are items; -1: errno */
} queue_t;

struct tool_nodes {
    int count, own;
    int restarts_max;
    char **hosts;
    char *url;
    bool elastic; /* a lost node leads to a restart, as long as there is one */
    /* The guard reports that this process was killed. Its URL is "" if there is
     * nothing to report, because this node has not joined or may end. */
    const tool_guard_t *guard;
    gint64 silence_us;
    dscomm_store_t *joined; /* the server of node 0 */
    dscomm_store_t *store; /* the thread's */
    bool watching; /* the thread exists */
    pthread_t thread;
    queue_t posts, events; /* to the thread, and from it */
    /* used by the thread only: */
    int attempt;
    /* the main thread was notified, and is not ready yet */
    bool restarting;
    bool waiting; /* waits for the other nodes to be ready */
    /* over: nothing to check any more; ended: the store has the end */
    bool over, ended;
    gint64 next_beat;
    int64_t *beats; /* node 0: the heartbeats of each node, */
    gint64 *changed_us; /* and the times of their last changes */
    int lost; /* on node 0: number of nodes that will send no leave message */
    const dscomm_recorder_t *recorder; /* of this node's ranks */
    int64_t requests; /* of dscomm top, as far as the heartbeats show them */
    gint64 requested_us; /* time of the last one */
    gint64 next_sample;
    GArray *samples; /* the last ones, or NULL, */
    gint64 sampled_us; /* and their time */
};

dscomm_status_t tool_nodes_set_once(dscomm_store_t *store, const char *key,
                                    const char *text)
{
    return dscomm_store_compare_set(store, key, "", 0, text, strlen(text), NULL,
                                    NULL);
}

static void queue_init(queue_t *queue)
{
    pthread_mutex_init(&queue->lock, NULL);
    g_queue_init(&queue->items);
    queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static void queue_push(queue_t *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    g_queue_push_tail(&queue->items, item);
    pthread_mutex_unlock(&queue->lock);
    eventfd_write(queue->fd, 1);
}

/* The first item, or NULL. */
static void *queue_pop(queue_t *queue)
{
    eventfd_t count;
    void *item;

    eventfd_read(queue->fd, &count);
    pthread_mutex_lock(&queue->lock);
    item = g_queue_pop_head(&queue->items);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

tool_nodes_t *tool_nodes_new(const tool_job_t *job, const tool_place_t *place,
                             const char *url)
{
    tool_nodes_t *n = g_new0(tool_nodes_t, 1);

    n->count = place->nodes;
    n->own = place->node_rank;
    n->restarts_max = job->max_restarts;
    n->silence_us = place->silence_us;
    n->url = g_strdup(url);
    n->elastic = place->least > 0;
    n->attempt = job->attempt;
    n->guard = &job->guard;
    n->recorder = &job->recorder;
    n->beats = g_new0(int64_t, n->count);
    n->changed_us = g_new0(gint64, n->count);
    queue_init(&n->posts);
    queue_init(&n->events);
    if (n->posts.fd >= 0 && n->events.fd >= 0)
        return n;
    tool_fail(TOOL_INTERNAL, job->command,
              "cannot have a descriptor for events of other nodes: %s",
              g_strerror(errno));
    tool_nodes_leave(n);
    return NULL;
}

void tool_nodes_plan(tool_nodes_t *n, char *const *hosts, dscomm_store_t *store)
{
    n->hosts = g_strdupv((char **)hosts);
    n->joined = store;
}

/* Events, to the main thread */

static void emit(tool_nodes_t *n, tool_nodes_kind_t kind, int node, int status,
                 const char *text)
{
    tool_nodes_event_t *event = g_new0(tool_nodes_event_t, 1);

    event->kind = kind;
    event->node = node;
    event->status = status;
    event->text = g_strdup(text);
    queue_push(&n->events, event);
}

int tool_nodes_fd(const tool_nodes_t *n)
{
    return n->events.fd;
}

tool_nodes_event_t *tool_nodes_next(tool_nodes_t *n)
{
    return queue_pop(&n->events);
}

void tool_nodes_event_free(tool_nodes_event_t *event)
{
    g_free(event->text);
    g_free(event);
}

const char *tool_nodes_host(const tool_nodes_t *n, int node)
{
    return node >= 0 && node < n->count ? n->hosts[node] : "unknown";
}

/* Values in the store: "NODE STATUS TEXT" */

static char *write_text(int node, int status, const char *text)
{
    return g_strdup_printf("%d %d %s", node, status, text);
}

static void emit_text(tool_nodes_t *n, tool_nodes_kind_t kind, const char *text)
{
    char *end, *rest;
    gint64 node = g_ascii_strtoll(text, &end, 10);
    gint64 status = g_ascii_strtoll(end, &rest, 10);

    if (end == text || rest == end || node < -1 || node >= n->count ||
        status < 0 || status > 255)
        emit(n, kind, -1, TOOL_INTERNAL,
             "what the nodes' store says makes no sense; has a "
             "stranger written there?");
    else
        emit(n, kind, (int)node, (int)status, g_strchug(rest));
}

/* Posts, to the thread */

static void post(tool_nodes_t *n, post_kind_t kind, char *text)
{
    post_t *p = g_new0(post_t, 1);

    p->kind = kind;
    p->text = text;
    queue_push(&n->posts, p);
}

void tool_nodes_end(tool_nodes_t *n, int status, const char *text)
{
    post(n, POST_END, write_text(n->own, status, text));
}

void tool_nodes_restart(tool_nodes_t *n, const char *text)
{
    post(n, POST_RESTART, write_text(n->own, TOOL_OK, text));
}

void tool_nodes_done(tool_nodes_t *n)
{
    post(n, POST_DONE, NULL);
}

void tool_nodes_ready(tool_nodes_t *n)
{
    post(n, POST_READY, NULL);
}

static void post_free(post_t *p)
{
    g_free(p->text);
    g_free(p);
}

/* Adds by to the counter "WHAT/NUMBER". */
static dscomm_status_t count_up(const tool_nodes_t *n, const char *what,
                                int number, int by, int64_t *ret_sum)
{
    char *key = g_strdup_printf("%s/%d", what, number);
    dscomm_status_t status = dscomm_store_add(n->store, key, by, ret_sum);

    g_free(key);
    return status;
}

static dscomm_status_t write_end(tool_nodes_t *n, const char *text)
{
    return tool_nodes_set_once(n->store, TOOL_NODES_OVER, text);
}

static dscomm_status_t write_restart(tool_nodes_t *n, const char *text)
{
    char *key = g_strdup_printf("restart/%d", n->attempt);
    dscomm_status_t status = tool_nodes_set_once(n->store, key, text);

    g_free(key);
    return status;
}

/* The last node that is done ends the job. */
static dscomm_status_t write_done(tool_nodes_t *n, const char *text)
{
    int64_t done = 0;
    dscomm_status_t status = count_up(n, "done", n->attempt, 1, &done);

    (void)text;
    return status == DSCOMM_OK && done >= n->count ? write_end(n, "-1 0 ")
                                                   : status;
}

static dscomm_status_t write_ready(tool_nodes_t *n, const char *text)
{
    int64_t ready;

    (void)text;
    n->restarting = false;
    n->waiting = true;
    return count_up(n, "ready", ++n->attempt, 1, &ready);
}

/* Sends what is to be said; *ret_leave = this node leaves after that. */
static dscomm_status_t send_posts(tool_nodes_t *n, bool *ret_leave)
{
    static dscomm_status_t (*const handlers[])(tool_nodes_t *, const char *) = {
        [POST_END] = write_end,
        [POST_RESTART] = write_restart,
        [POST_DONE] = write_done,
        [POST_READY] = write_ready,
    };
    dscomm_status_t status = DSCOMM_OK;
    post_t *p;

    while ((p = queue_pop(&n->posts))) {
        if (p->kind == POST_LEAVE)
            *ret_leave = true;
        else if (status == DSCOMM_OK && !n->over)
            status = handlers[p->kind](n, p->text);
        post_free(p);
    }
    return status;
}

/* Looking */

/* *ret_text is the value of key, or NULL. */
static dscomm_status_t fetch(tool_nodes_t *n, const char *key, char **ret_text)
{
    void *value;
    size_t size;
    dscomm_status_t status =
        dscomm_priv_roster_fetch(n->store, key, &value, &size);

    *ret_text = value ? g_strndup(value, MIN(size, TEXT_MAX)) : NULL;
    dscomm_store_free(value);
    return status;
}

static dscomm_status_t look_for_end(tool_nodes_t *n)
{
    char *text;
    dscomm_status_t status = fetch(n, TOOL_NODES_OVER, &text);

    if (status < 0 || !text)
        return status;
    n->over = n->ended = true;
    dscomm_store_add(n->store, TOOL_NODES_READ, 1, NULL);
    emit_text(n, TOOL_NODES_END, text);
    g_free(text);
    return DSCOMM_OK;
}

static dscomm_status_t look_for_restart(tool_nodes_t *n)
{
    char *key, *text;
    dscomm_status_t status;

    if (n->restarting || n->waiting || n->attempt >= n->restarts_max)
        return DSCOMM_OK;
    key = g_strdup_printf("restart/%d", n->attempt);
    status = fetch(n, key, &text);
    g_free(key);
    if (status < 0 || !text)
        return status;
    n->restarting = true;
    emit_text(n, TOOL_NODES_RESTART, text);
    g_free(text);
    return DSCOMM_OK;
}

static dscomm_status_t look_for_start(tool_nodes_t *n)
{
    int64_t ready = 0;
    dscomm_status_t status;

    if (!n->waiting)
        return DSCOMM_OK;
    status = count_up(n, "ready", n->attempt, 0, &ready);
    if (status < 0 || ready < n->count)
        return status;
    n->waiting = false;
    emit(n, TOOL_NODES_START, -1, TOOL_OK, "");
    return DSCOMM_OK;
}

/* Whether the job goes on without a node that is lost. */
static bool outlives(const tool_nodes_t *n)
{
    return n->elastic && n->attempt < n->restarts_max;
}

static dscomm_status_t declare_lost(tool_nodes_t *n, int node)
{
    char *what = g_strdup_printf(
        "nothing was heard of it for %g s: its machine, its network or its "
        "dscomm run is gone",
        (double)n->silence_us / G_USEC_PER_SEC);
    char *text = write_text(node, TOOL_INTERNAL, what);
    dscomm_status_t status =
        outlives(n) ? write_restart(n, text) : write_end(n, text);

    n->lost++;
    g_free(text);
    g_free(what);
    return status;
}

/* Notes the sum of dscomm top's requests that the heartbeats show. */
static void note_requests(tool_nodes_t *n, int64_t requests)
{
    if (requests != n->requests)
        n->requested_us = g_get_monotonic_time();
    n->requests = requests;
}

/* Node 0 checks the heartbeats of the others. */
static dscomm_status_t look_at_beats(tool_nodes_t *n)
{
    dscomm_status_t status = DSCOMM_OK;
    int64_t requests = 0;

    for (int i = 1; i < n->count && status == DSCOMM_OK; i++) {
        gint64 now = g_get_monotonic_time();
        int64_t count = 0;
        status = count_up(n, TOOL_NODES_BEAT, i, 0, &count);
        requests += count / TOOL_NODES_REQUEST;
        count %= TOOL_NODES_REQUEST;
        if (count != n->beats[i] || !n->changed_us[i])
            n->changed_us[i] = now;
        n->beats[i] = count;
        if (status == DSCOMM_OK && now - n->changed_us[i] > n->silence_us)
            return declare_lost(n, i);
    }
    if (status == DSCOMM_OK)
        note_requests(n, requests);
    return status;
}

static dscomm_status_t show_life(tool_nodes_t *n)
{
    gint64 now = g_get_monotonic_time();
    dscomm_status_t status;
    int64_t count = 0;

    if (now < n->next_beat)
        return DSCOMM_OK;
    n->next_beat = now + tool_nodes_beat_us(n->count, n->silence_us);
    if (n->own == 0)
        return look_at_beats(n);
    status = count_up(n, TOOL_NODES_BEAT, n->own, 1, &count);
    if (status == DSCOMM_OK)
        note_requests(n, count / TOOL_NODES_REQUEST);
    return status;
}

/* Writes what this node's ranks do into the store. */
static dscomm_status_t write_samples(tool_nodes_t *n, gint64 now)
{
    GArray *samples =
        sample_take(n->recorder, n->samples,
                    (double)(now - n->sampled_us) / G_USEC_PER_SEC);
    char *text = samples_print(samples);
    char *key = g_strdup_printf(TOOL_NODES_SAMPLES "/%d", n->own);
    dscomm_status_t status =
        dscomm_store_set(n->store, key, text, strlen(text));

    g_free(key);
    g_free(text);
    g_clear_pointer(&n->samples, g_array_unref);
    n->samples = samples;
    n->sampled_us = now;
    return status;
}

/* Writes samples while a dscomm top asks for them. A failure does not end the
 * job: if the store is gone, the next heartbeat finds that. */
static dscomm_status_t show_samples(tool_nodes_t *n)
{
    const gint64 now = g_get_monotonic_time();

    if (!n->requests || now - n->requested_us >= SAMPLED_US ||
        now < n->next_sample || !n->recorder->memory)
        return DSCOMM_OK;
    n->next_sample = now + tool_nodes_beat_us(n->count, n->silence_us);
    if (write_samples(n, now) < 0)
        dscomm_log(DSCOMM_LOG_DEBUG, "tools", "samples are not shown: %s",
                   dscomm_last_error());
    return DSCOMM_OK;
}

static dscomm_status_t look_around(tool_nodes_t *n)
{
    static dscomm_status_t (*const looks[])(tool_nodes_t *) = {
        look_for_end, look_for_restart, look_for_start, show_life,
        show_samples};
    dscomm_status_t status = DSCOMM_OK;

    for (size_t i = 0; i < G_N_ELEMENTS(looks); i++)
        if (status == DSCOMM_OK && !n->over)
            status = looks[i](n);
    return status;
}

/* Ends the job because node 0 cannot reach its own store; for any other node,
 * losing the store means losing node 0. */
static void lose_store(tool_nodes_t *n)
{
    char *text;

    n->over = true;
    if (n->own > 0) {
        emit(n, TOOL_NODES_END, 0, TOOL_INTERNAL, dscomm_last_error());
        return;
    }
    text = g_strdup_printf("node 0 does not reach the store that it serves "
                           "itself: %s; give all nodes a --master that leads "
                           "to it",
                           dscomm_last_error());
    emit(n, TOOL_NODES_END, -1, TOOL_INTERNAL, text);
    g_free(text);
}

static void *watch(void *arg)
{
    tool_nodes_t *n = arg;
    struct pollfd posts = {n->posts.fd, POLLIN, 0};
    bool leave = false;

    while (!leave) {
        poll(&posts, 1, (int)(tool_nodes_tick_us(n->count) / 1000));
        if (send_posts(n, &leave) < 0 || look_around(n) < 0)
            lose_store(n);
    }
    return NULL;
}

/* Without a thread this node can only leave. */
static void end_unwatched(tool_nodes_t *n, int error)
{
    char *text = g_strdup_printf("dscomm run cannot start a thread: %s",
                                 g_strerror(error));

    emit(n, TOOL_NODES_END, -1, TOOL_INTERNAL, text);
    g_free(text);
}

/* Lets the guard report the end of this process, if it is killed. */
static void guard_arm(const tool_nodes_t *n)
{
    if (outlives(n))
        g_snprintf(n->guard->key, TOOL_GUARD_TEXT, "restart/%d", n->attempt);
    else
        g_strlcpy(n->guard->key, TOOL_NODES_OVER, TOOL_GUARD_TEXT);
    g_snprintf(n->guard->text, TOOL_GUARD_TEXT,
               "%d %d dscomm run (pid %d) was killed", n->own, TOOL_INTERNAL,
               (int)getpid());
    g_strlcpy(n->guard->url, n->url, PATH_MAX);
}

void tool_nodes_watch(tool_nodes_t *n)
{
    int error;

    if (n->own > 0)
        guard_arm(n);
    if (tool_nodes_open(n->url, 0, (int)(n->silence_us / 1000), NULL,
                        &n->store) < 0) {
        lose_store(n);
        return;
    }
    error = dscomm_priv_thread_start(&n->thread, NULL, watch, n);
    n->watching = error == 0;
    if (error)
        end_unwatched(n, error);
}

void tool_nodes_leave(tool_nodes_t *n)
{
    tool_nodes_event_t *event;
    post_t *p;

    if (!n)
        return;
    *n->guard->url = '\0';
    post(n, POST_LEAVE, NULL);
    if (n->watching)
        pthread_join(n->thread, NULL);
    if (n->own == 0 && n->ended)
        dscomm_priv_roster_await_readers(n->store, TOOL_NODES_READ,
                                         n->count - n->lost);
    dscomm_store_close(n->store);
    dscomm_store_close(n->joined);
    while ((p = queue_pop(&n->posts)))
        post_free(p);
    while ((event = queue_pop(&n->events)))
        tool_nodes_event_free(event);
    close(n->posts.fd);
    close(n->events.fd);
    g_strfreev(n->hosts);
    g_free(n->url);
    g_free(n->beats);
    g_free(n->changed_us);
    g_clear_pointer(&n->samples, g_array_unref);
    pthread_mutex_destroy(&n->posts.lock);
    pthread_mutex_destroy(&n->events.lock);
    g_free(n);
}

void tool_nodes_report_killed(const char *url, const char *key,
                              const char *text)
{
    dscomm_store_t *store;

    if (tool_nodes_open(url, 0, REPORT_MS, NULL, &store) < 0)
        return;
    tool_nodes_set_once(store, key, text);
    dscomm_store_close(store);
}
