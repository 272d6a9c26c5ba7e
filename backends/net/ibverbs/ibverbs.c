/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend ibverbs: the message engine over RDMA devices. */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MS (INT64_C(1000000))
#define TIMERS_MS 5
/* A failure that comes so soon after the port was down may follow from that. */
#define PORT_NS (INT64_C(60000) * MS)
#define BATCH 16 /* completions that are read at a time */
#define BATCHES 8 /* in one poll */
#define DRAINS 64 /* times that all of these are read before a pair is lost */
/* Longest message that is sent without a request for it. */
#define EAGER ((size_t)16 << 10)
/* Events of the CQ that are acknowledged together, as each acknowledgement
 * takes a lock. */
#define ACKS 64
/* Polls that have found something in a ring, after which the completions are
 * read. */
#define RING_POLLS 8

const dscomm_setting_t verbs_settings[] = {
    [SETTING_NAME] =
        {"DSCOMM_IBV_NAME", DSCOMM_SETTING_STRING, NULL, 0, 0,
         "the name of an RDMA device, such as mlx5_0",
         "RDMA device; by default TORCH_GLOO_IBV_NAME, or of those "
         "with a usable port the nearest one."},
    [SETTING_PORT] = {"DSCOMM_IBV_PORT", DSCOMM_SETTING_INT, NULL, 1, 254, NULL,
                      "Port of the RDMA device; by default "
                      "TORCH_GLOO_IBV_PORT, or the first usable one."},
    [SETTING_INDEX] = {"DSCOMM_IBV_INDEX", DSCOMM_SETTING_INT, NULL, 0, 255,
                       NULL,
                       "GID of the port; by default TORCH_GLOO_IBV_INDEX, or "
                       "the one that suits best: RoCE v2 with an address of "
                       "IPv4."},
    [SETTING_SERVICE_LEVEL] = {"DSCOMM_IBV_SL", DSCOMM_SETTING_INT, "0", 0, 15,
                               NULL, "Service level of RDMA connections."},
    [SETTING_TRAFFIC_CLASS] = {"DSCOMM_IBV_TC", DSCOMM_SETTING_INT, "0", 0, 255,
                               NULL,
                               "Traffic class of RDMA connections on RoCE."},
    [SETTING_PKEY] = {"DSCOMM_IBV_PKEY", DSCOMM_SETTING_INT, "0", 0, 127, NULL,
                      "Index of the partition key of RDMA connections."},
    [SETTING_TIMEOUT] = {"DSCOMM_IBV_TIMEOUT", DSCOMM_SETTING_INT, "18", 1, 31,
                         NULL,
                         "Time after which an RDMA device sends a packet "
                         "again: 4.096 us times 2 to the power of this."},
    [SETTING_RETRIES] = {"DSCOMM_IBV_RETRY", DSCOMM_SETTING_INT, "6", 0, 7,
                         NULL,
                         "Times that an RDMA device sends a packet again "
                         "before the connection fails; Soft-RoCE takes 7 as "
                         "without end."},
    [SETTING_RING] = {"DSCOMM_IBV_RING", DSCOMM_SETTING_ENUM, "auto", 0, 0,
                      "auto|no|yes",
                      "Whether short messages of a few peers are polled for in "
                      "memory; auto: if the device says that it writes data in "
                      "order."},
    {.name = NULL},
};

int64_t verbs_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void verbs_pair_fail(verbs_t *verbs, int peer, dscomm_failure_kind_t kind,
                     const char *format, ...)
{
    pair_t *pair = &verbs->pairs[peer];
    va_list args;

    if (pair->failed || pair->state == PAIR_LOST)
        return;
    pair->failed = true;
    pair->why_kind = kind;
    va_start(args, format);
    vsnprintf(pair->why, sizeof pair->why, format, args);
    va_end(args);
    verbs->failed++;
}

/* The pair of this rank with itself stands for what this rank lacks. */
void verbs_lack(verbs_t *verbs, const char *what, int error)
{
    verbs_pair_fail(verbs, verbs->args.rank, DSCOMM_FAILURE_RESOURCE,
                    "%s of its device %s: %s%s", what,
                    ibv_get_device_name(verbs->context->device),
                    error ? strerror(abs(error)) : "it has failed",
                    verbs_remedy(abs(error)));
}

/* Loses the pairs that have failed. What the device still has of them comes
 * back as completions. */
static void failed_lose(verbs_t *verbs)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    verbs->failed = 0;
    /* What this rank lacks comes first: it is the cause of the others. */
    for (int i = 0; i < verbs->args.ranks; i++) {
        const int p = (verbs->args.rank + i) % verbs->args.ranks;
        pair_t *pair = &verbs->pairs[p];

        if (pair->failed && pair->state != PAIR_LOST) {
            if (pair->state == PAIR_ASKING)
                verbs->asking--;
            pair->state = PAIR_LOST;
            verbs_death_forget(verbs, pair);
            if (pair->qp)
                ibv_modify_qp(pair->qp, &attr, IBV_QP_STATE);
            if (pair->writes.qp)
                ibv_modify_qp(pair->writes.qp, &attr, IBV_QP_STATE);
            if (pair->writes.target)
                ibv_modify_qp(pair->writes.target, &attr, IBV_QP_STATE);
            verbs->calls->lost(verbs->args.arg, p, pair->why_kind, pair->why);
        }
        if (pair->state == PAIR_LOST)
            verbs_frames_drop(verbs, pair);
    }
}

/* Events of the device. Those of a connection for puts are left to its
 * completions. */

static void event_handle(verbs_t *verbs, const struct ibv_async_event *event)
{
    const char *text = ibv_event_type_str(event->event_type);
    int peer;

    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        peer =
            GPOINTER_TO_INT(g_hash_table_lookup(
                verbs->by_qpn, GUINT_TO_POINTER(event->element.qp->qp_num))) -
            1;
        if (peer >= 0 && verbs->pairs[peer].qp == event->element.qp)
            verbs_pair_fail(verbs, peer, DSCOMM_FAILURE_DIED,
                            "its connection has failed: %s%s", text,
                            event->event_type == IBV_EVENT_QP_ACCESS_ERR
                                ? "; it has used memory of this rank that is "
                                  "not registered"
                                : "");
        return;
    case IBV_EVENT_PORT_ERR:
        if (!verbs->port_down)
            dscomm_log(DSCOMM_LOG_WARN, "ibverbs",
                       "port %d of %s is down: its connections fail if it "
                       "stays so",
                       verbs->port_number,
                       ibv_get_device_name(verbs->context->device));
        verbs->port_down = true;
        return;
    case IBV_EVENT_PORT_ACTIVE:
        if (verbs->port_down)
            verbs->port_ns = verbs_now();
        verbs->port_down = false;
        return;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        verbs->is_down = true;
        verbs_lack(verbs, text, 0);
        return;
    default:
        return;
    }
}

static void events_read(verbs_t *verbs)
{
    struct pollfd file = {.fd = verbs->context->async_fd, .events = POLLIN};
    struct ibv_async_event event;

    while (poll(&file, 1, 0) == 1 && (file.revents & POLLIN) &&
           !ibv_get_async_event(verbs->context, &event)) {
        event_handle(verbs, &event);
        ibv_ack_async_event(&event);
    }
}

/* Returns whether a failure is of this rank's device alone. What the peer has
 * sent may be too long or without a right; memory of the program may have been
 * unmapped; and the memory of a get that was given up is taken from the device.
 */
static bool failure_is_own(const op_t *op, enum ibv_wc_status status)
{
    if (op->kind == OP_ACCESS && !op->slot && !op->region)
        return false;
    switch (status) {
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
        return op->kind != OP_PART;
    case IBV_WC_LOC_PROT_ERR:
        return op->slot != NULL;
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
        return true;
    default:
        return false;
    }
}

/* Returns what a status of a completion says of the peer; NULL: nothing. */
static const char *status_text(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return "its device does not answer: its process has died, its host is "
               "down, or the network is cut";
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return "it has no room for what this rank sends";
    case IBV_WC_REM_ACCESS_ERR:
        return "its device refuses access to its memory";
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ABORT_ERR:
        return "its device has ended the connection";
    default:
        return NULL;
    }
}

static void op_failed(verbs_t *verbs, int peer, const op_t *op,
                      const struct ibv_wc *wc)
{
    const char *text = status_text(wc->status);
    const bool silent = wc->status == IBV_WC_RETRY_EXC_ERR;
    char gid[GID_TEXT], down[64] = "";

    events_read(verbs);
    if (verbs->port_down ||
        (verbs->port_ns && verbs_now() - verbs->port_ns < PORT_NS))
        snprintf(down, sizeof down, "; port %d of this rank's device %s down",
                 verbs->port_number, verbs->port_down ? "is" : "was");
    if (failure_is_own(op, wc->status))
        verbs_pair_fail(verbs, verbs->args.rank, DSCOMM_FAILURE_RESOURCE,
                        "its device %s says '%s' of the connection to %s%s",
                        ibv_get_device_name(verbs->context->device),
                        ibv_wc_status_str(wc->status),
                        verbs_gid_text(&verbs->pairs[peer].address.gid, gid),
                        down);
    verbs_pair_fail(verbs, peer,
                    silent || verbs->port_down ? DSCOMM_FAILURE_SILENT
                                               : DSCOMM_FAILURE_DIED,
                    "connection to %s: %s%s%s%s",
                    verbs_gid_text(&verbs->pairs[peer].address.gid, gid),
                    text ? text : "the device says '",
                    text ? "" : ibv_wc_status_str(wc->status), text ? "" : "'",
                    down);
}

/* A put or get of the program was refused. The device of the peer ends the
 * connection. */
static void access_refused(verbs_t *verbs, int peer)
{
    char gid[GID_TEXT];

    verbs_pair_fail(verbs, peer, DSCOMM_FAILURE_PROTOCOL,
                    "the device at %s refuses access for its put or get: the "
                    "memory is not registered any more, or the key is damaged",
                    verbs_gid_text(&verbs->pairs[peer].address.gid, gid));
}

/* Handles a completion. Only its id and status are valid if it has failed. */
static void complete(verbs_t *verbs, const struct ibv_wc *wc)
{
    op_t *op = (op_t *)(uintptr_t)wc->wr_id;
    const bool failed = wc->status != IBV_WC_SUCCESS;
    int peer;

    switch (op->kind) {
    case OP_PUT:
        peer = op->peer;
        if (failed && !verbs_writes_end(&verbs->pairs[peer], wc->status))
            op_failed(verbs, peer, op, wc);
        verbs_put_completed(verbs, op, !failed);
        verbs_send(verbs, peer);
        return;
    case OP_SEND:
    case OP_ACCESS:
        peer = op->peer;
        if (op->kind == OP_ACCESS && wc->status == IBV_WC_REM_ACCESS_ERR)
            access_refused(verbs, peer);
        else if (failed)
            op_failed(verbs, peer, op, wc);
        verbs_ops_ended(verbs, op, !failed);
        verbs_send(verbs, peer);
        return;
    case OP_GREET:
        SLIST_INSERT_HEAD(&verbs->greets, op, in_free);
        if (failed)
            verbs_greeter_mend(verbs);
        return;
    case OP_HELLO:
        if (failed)
            verbs_lack(verbs, "the queue pair of datagrams", EIO);
        else
            verbs_hello(verbs, op, wc->byte_len);
        return;
    case OP_PART:
        peer = GPOINTER_TO_INT(g_hash_table_lookup(
                   verbs->by_qpn, GUINT_TO_POINTER(wc->qp_num))) -
               1;
        if (peer < 0 || failed) {
            if (peer >= 0 && verbs->pairs[peer].qp->qp_num == wc->qp_num)
                op_failed(verbs, peer, op, wc);
            verbs_slot_post(verbs, op);
            return;
        }
        verbs_pair_up(verbs, peer);
        if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
            verbs_written(verbs, peer, op, wc->byte_len, be32toh(wc->imm_data));
        else
            verbs_part(verbs, peer, op, wc->byte_len, be32toh(wc->imm_data));
        return;
    }
}

/* Pairs that found no free op have perhaps no completion of their own, after
 * which they would be looked at. Each is the first one in turn. */
static void starved_send(verbs_t *verbs)
{
    const int ranks = verbs->args.ranks;

    verbs->starved = false;
    verbs->starved_first = (verbs->starved_first + 1) % ranks;
    for (int p = 0; p < ranks; p++)
        verbs_send(verbs, (verbs->starved_first + p) % ranks);
}

static void timers(verbs_t *verbs)
{
    const int64_t now = verbs_now();

    if (now - verbs->timers_ns < TIMERS_MS * MS)
        return;
    verbs->timers_ns = now;
    events_read(verbs);
    verbs_deaths_read(verbs);
    verbs_greet_again(verbs, now);
    for (int p = 0; verbs->open && p < verbs->args.ranks; p++)
        verbs_probe(verbs, p, now);
}

/* Reads the events of the CQ, of which one is enough. */
static void channel_read(verbs_t *verbs)
{
    struct pollfd file = {.fd = verbs->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    uint64_t count;

    while (read(verbs->wake, &count, sizeof count) > 0)
        continue;
    while (poll(&file, 1, 0) == 1 && (file.revents & POLLIN) &&
           !ibv_get_cq_event(verbs->channel, &cq, &context)) {
        verbs->armed = false;
        verbs->acks++;
    }
    if (verbs->acks >= ACKS) {
        ibv_ack_cq_events(verbs->cq, verbs->acks);
        verbs->acks = 0;
    }
}

/* Returns whether there may be more. */
static bool cq_read(verbs_t *verbs)
{
    struct ibv_wc wcs[BATCH];
    int count = BATCH;

    for (int i = 0; i < BATCHES && count == BATCH; i++) {
        count = ibv_poll_cq(verbs->cq, BATCH, wcs);
        for (int c = 0; c < count; c++)
            complete(verbs, &wcs[c]);
    }
    if (count < 0 && !verbs->is_down) {
        verbs->is_down = true;
        verbs_lack(verbs, "the completions", EIO);
    }
    return count == BATCH;
}

/* A completion that comes before the arming does not make the channel readable,
 * so the CQ is read after it. */
static void verbs_poll(void *wire)
{
    verbs_t *verbs = wire;
    const bool found = verbs_rings_poll(verbs);

    verbs->ring_polls += found;
    if (found && verbs->ring_polls % RING_POLLS && !verbs->failed &&
        !verbs->wants_event)
        return;
    if (verbs->wants_event) {
        verbs->wants_event = false;
        channel_read(verbs);
        verbs_deaths_read(verbs);
        if (!verbs->armed)
            verbs->armed = !ibv_req_notify_cq(verbs->cq, 0);
    }
    if (cq_read(verbs))
        verbs->armed = false; /* no wait sleeps before what is left is read */
    else if (verbs->retired->len)
        verbs_retired_destroy(verbs);
    timers(verbs);
    if (verbs->starved)
        starved_send(verbs);
    if (!verbs->failed)
        return;
    /* A peer may have sent something before its end. */
    for (int i = 0; i < DRAINS && cq_read(verbs); i++)
        continue;
    verbs_rings_poll(verbs);
    failed_lose(verbs);
}

/* Called without the lock: sleeps only if the poll before it has armed the CQ.
 * The device's threads of progress, if any, need no call. */
static void verbs_wait(void *wire, unsigned timeout_us)
{
    verbs_t *verbs = wire;
    struct pollfd files[] = {
        {.fd = verbs->channel->fd, .events = POLLIN},
        {.fd = verbs->wake, .events = POLLIN},
        {.fd = verbs->deaths, .events = POLLIN},
        {.fd = verbs->context->async_fd, .events = POLLIN}};
    const unsigned us = verbs_ring_sleep(verbs, timeout_us);
    const struct timespec timeout = {us / 1000000, us % 1000000 * 1000L};
    const bool armed = verbs->armed;

    verbs->wants_event = true;
    if (armed)
        ppoll(files, G_N_ELEMENTS(files), &timeout, NULL);
}

static void verbs_wake(void *wire)
{
    const verbs_t *verbs = wire;
    const uint64_t one = 1;

    if (write(verbs->wake, &one, sizeof one) < 0)
        return; /* it is readable already */
}

static size_t verbs_unsent(void *wire)
{
    verbs_t *verbs = wire;
    size_t bytes = 0;

    for (int p = 0; p < verbs->args.ranks; p++)
        if (verbs->pairs[p].state != PAIR_LOST) {
            verbs_signal(verbs, p);
            bytes += verbs->pairs[p].queue.bytes + verbs->pairs[p].flying;
        }
    return bytes;
}

static void verbs_describe(void *wire, int peer, char *text, size_t size)
{
    const verbs_t *verbs = wire;
    const pair_t *pair = &verbs->pairs[peer];
    char gid[GID_TEXT];

    if (pair->state == PAIR_UP)
        snprintf(text, size, "at %s", verbs_gid_text(&pair->address.gid, gid));
    else if (pair->state == PAIR_ASKING)
        snprintf(text, size, "whose device at %s has not answered",
                 verbs_gid_text(&pair->address.gid, gid));
}

static unsigned verbs_depth(void *wire)
{
    (void)wire;
    return 2;
}

static size_t verbs_eager(void *wire, int peer)
{
    (void)wire;
    (void)peer;
    return EAGER;
}

/* Opening and closing. */

static void verbs_close(void *wire)
{
    verbs_t *verbs = wire;

    for (int p = 0; verbs->pairs && p < verbs->args.ranks; p++) {
        pair_t *pair = &verbs->pairs[p];

        if (pair->qp)
            ibv_destroy_qp(pair->qp);
        verbs_writes_close(verbs, pair);
        if (pair->ah)
            ibv_destroy_ah(pair->ah);
        verbs_ring_close(pair);
        verbs_ops_drop(verbs, pair);
        verbs_frames_drop(verbs, pair);
    }
    verbs_retired_destroy(verbs);
    while (!SLIST_EMPTY(&verbs->puts)) {
        op_t *op = SLIST_FIRST(&verbs->puts);

        SLIST_REMOVE_HEAD(&verbs->puts, in_free);
        g_free(op);
    }
    if (verbs->ud)
        ibv_destroy_qp(verbs->ud);
    if (verbs->srq)
        ibv_destroy_srq(verbs->srq);
    if (verbs->cq) {
        ibv_ack_cq_events(verbs->cq, verbs->acks);
        ibv_destroy_cq(verbs->cq);
    }
    if (verbs->channel)
        ibv_destroy_comp_channel(verbs->channel);
    verbs_slots_free(verbs);
    verbs_regions_free(verbs->regions);
    if (verbs->pd)
        ibv_dealloc_pd(verbs->pd);
    if (verbs->context)
        ibv_close_device(verbs->context);
    if (verbs->wake >= 0)
        close(verbs->wake);
    verbs_deaths_close(verbs);
    g_hash_table_unref(verbs->by_qpn);
    g_ptr_array_unref(verbs->retired);
    g_free(verbs->pairs);
    g_free(verbs);
}

static dscomm_status_t lacks(const char *what, int error)
{
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no %s: %s%s", what,
                       strerror(error), verbs_remedy(error));
}

static dscomm_status_t queues_open(verbs_t *verbs)
{
    const uint64_t receives =
        (uint64_t)(verbs->args.ranks - 1) * (WINDOW + SPARE);
    struct ibv_srq_init_attr srq = {.attr = {.max_sge = 1}};

    verbs->srq_room =
        (unsigned)CLAMP(receives, 1, (uint64_t)verbs->device.max_srq_wr);
    srq.attr.max_wr = verbs->srq_room;
    verbs->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (verbs->wake < 0)
        return lacks("event descriptor", errno);
    verbs->pd = ibv_alloc_pd(verbs->context);
    if (!verbs->pd)
        return lacks("protection domain", errno);
    verbs->regions = verbs_regions_new(verbs->pd);
    verbs->channel = ibv_create_comp_channel(verbs->context);
    if (!verbs->channel)
        return lacks("completion channel", errno);
    verbs->cq = ibv_create_cq(
        verbs->context,
        MIN(verbs_completions(verbs->args.ranks - 1), verbs->device.max_cqe),
        NULL, verbs->channel, 0);
    if (!verbs->cq)
        return lacks("completion queue", errno);
    verbs->srq = ibv_create_srq(verbs->pd, &srq);
    if (!verbs->srq)
        return lacks("shared receive queue", errno);
    if (verbs_slots_add(verbs, &verbs->sends, OP_SEND, SENDS, SLOT_BYTES))
        return lacks("registered memory", errno);
    verbs->free_sends = SENDS;
    return verbs_greeter_open(verbs);
}

static dscomm_status_t verbs_wire_open(const dscomm_wire_args_t *args,
                                       void **ret_wire)
{
    verbs_t *verbs = g_new0(verbs_t, 1);
    char gid[GID_TEXT];
    dscomm_status_t status;

    verbs->args = *args;
    verbs->calls = args->calls;
    verbs->wake = -1;
    verbs_deaths_open(verbs);
    verbs->max_inline = UINT_MAX;
    verbs->by_qpn = g_hash_table_new(NULL, NULL);
    verbs->memories = g_ptr_array_new();
    verbs->retired = g_ptr_array_new();
    verbs->pairs = g_try_new0(pair_t, (gsize)args->ranks);
    for (int p = 0; verbs->pairs && p < args->ranks; p++) {
        verbs->pairs[p].queue.last = &verbs->pairs[p].queue.first;
        TAILQ_INIT(&verbs->pairs[p].accesses);
        TAILQ_INIT(&verbs->pairs[p].writes.waiting);
        TAILQ_INIT(&verbs->pairs[p].writes.flying);
        TAILQ_INIT(&verbs->pairs[p].flying_ops);
        verbs->pairs[p].window = WINDOW;
    }
    status = verbs->pairs ? verbs_device_open(verbs)
                          : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                                        "no memory for %d ranks", args->ranks);
    if (status == DSCOMM_OK)
        status = queues_open(verbs);
    if (status == DSCOMM_OK)
        dscomm_log(DSCOMM_LOG_INFO, "ibverbs", "device %s, port %d, GID %d, %s",
                   ibv_get_device_name(verbs->context->device),
                   verbs->port_number, verbs->gid_index,
                   verbs_gid_text(&verbs->own.gid, gid));
    if (status < 0) {
        verbs_close(verbs);
        return status;
    }
    *ret_wire = verbs;
    return DSCOMM_OK;
}

const dscomm_wire_ops_t verbs_wire = {
    .size = sizeof verbs_wire,
    .name = "ibverbs",
    .open = verbs_wire_open,
    .close = verbs_close,
    .address = verbs_address,
    .connect = verbs_connect,
    .post = verbs_post,
    .poll = verbs_poll,
    .wait = verbs_wait,
    .wake = verbs_wake,
    .unsent = verbs_unsent,
    .describe = verbs_describe,
    .depth = verbs_depth,
    .eager = verbs_eager,
    .expose = verbs_expose,
    .conceal = verbs_conceal,
    .put = verbs_put,
    .stop = verbs_stop,
    .expose_device = verbs_expose_device,
    .devices = verbs_devices,
};

DSCOMM_WIRE_SLOTS(slots, verbs_wire);

DSCOMM_BACKEND_EXPORT const dscomm_backend_t dscomm_backend_ibverbs = {
    .abi = DSCOMM_BACKEND_ABI,
    .priority = 30,
    .name = "ibverbs",
    .ops = &slots,
    .settings = verbs_settings,
    .usable = verbs_usable,
    .advisable = verbs_advisable,
};
