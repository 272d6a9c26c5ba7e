/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of their own for puts, one in each direction in which a pair has
 * some. A receive may be given up, because its group has ended, while the peer
 * writes there: its device then refuses the put, which ends the connection of
 * the put. That must not end the pair, which other groups need.
 *
 * The writer asks for the connection when it has the first put, and the other
 * rank answers, by parts in the stream of frames: 12 bytes, u32 what, u32 queue
 * pair, or 0 if there is none, u32 sequence number of the first packet.
 *
 * The refusal is a packet that is not repeated. If the network loses it, the
 * device of the writer gets no answer, and the pair ends in spite of all. */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"
#include "backends/net/little.h"

#include <errno.h>
#include <string.h>

enum { TELLS_WRITER = 1, TELLS_TARGET };

void verbs_tell_pack(pair_t *pair, char *to)
{
    writes_t *writes = &pair->writes;
    const bool asks = writes->ask_due;
    const struct ibv_qp *qp = asks ? writes->qp : writes->target;
    unsigned char *bytes = (unsigned char *)to;

    put_32(bytes, asks ? TELLS_WRITER : TELLS_TARGET);
    put_32(bytes + 4, qp ? qp->qp_num : 0);
    put_32(bytes + 8, asks ? writes->psn : 0);
    *(asks ? &writes->ask_due : &writes->answer_due) = false;
}

/* Lets the engine post the frame of an op, which is in no list, as any other
 * one. */
static void put_refuse(verbs_t *verbs, op_t *op)
{
    dscomm_wire_frame_t *frame = op->frame;

    verbs->pairs[op->peer].flying -= op->bytes;
    verbs_region_drop(op->region);
    SLIST_INSERT_HEAD(&verbs->puts, op, in_free);
    frame->pinned = 0;
    frame->done = 0;
    verbs->calls->refused(verbs->args.arg, frame);
}

/* Refuses the puts that wait and have that key; all: any key. */
static void waiting_refuse(verbs_t *verbs, writes_t *writes, uint32_t rkey,
                           bool all)
{
    op_t *op = TAILQ_FIRST(&writes->waiting), *next;

    for (; op; op = next) {
        next = TAILQ_NEXT(op, in_pair);
        if (!all && op->rkey != rkey)
            continue;
        TAILQ_REMOVE(&writes->waiting, op, in_pair);
        put_refuse(verbs, op);
    }
}

static void writes_give_up(verbs_t *verbs, writes_t *writes)
{
    writes->state = WRITES_ABSENT;
    waiting_refuse(verbs, writes, 0, true);
}

void verbs_writes_open(verbs_t *verbs, int peer)
{
    writes_t *writes = &verbs->pairs[peer].writes;

    writes->qp = verbs_qp_make(verbs, WRITE_DEPTH, 0);
    if (!writes->qp) {
        dscomm_log(DSCOMM_LOG_WARN, "ibverbs",
                   "no queue pair for long messages to rank %d: %s%s; they are "
                   "copied",
                   peer, strerror(errno), verbs_remedy(errno));
        writes_give_up(verbs, writes);
        return;
    }
    writes->psn = g_random_int() & 0xffffff;
    writes->state = WRITES_ASKED;
    writes->ask_due = true;
}

/* The queue pair that the peer's last one wrote to has no use. What it has
 * received may still be among the completions. */
static void target_retire(verbs_t *verbs, writes_t *writes)
{
    if (writes->target)
        g_ptr_array_add(verbs->retired, writes->target);
    writes->target = NULL;
}

/* Makes the queue pair to which the peer's writes. */
static void target_open(verbs_t *verbs, int peer, uint32_t qpn, uint32_t psn)
{
    writes_t *writes = &verbs->pairs[peer].writes;
    int error;

    target_retire(verbs, writes);
    writes->target = verbs_qp_make(verbs, 1, IBV_ACCESS_REMOTE_WRITE);
    if (writes->target)
        error = verbs_qp_join(verbs, peer, writes->target, false, qpn, psn, 0);
    else
        error = errno;
    if (writes->target && error)
        ibv_destroy_qp(writes->target);
    if (error) {
        writes->target = NULL;
        dscomm_log(DSCOMM_LOG_WARN, "ibverbs",
                   "no queue pair for long messages from rank %d: %s; they are "
                   "copied",
                   peer, strerror(error));
    } else {
        g_hash_table_insert(verbs->by_qpn,
                            GUINT_TO_POINTER(writes->target->qp_num),
                            GINT_TO_POINTER(peer + 1));
    }
    writes->answer_due = true;
}

bool verbs_told(verbs_t *verbs, int peer, const char *from, size_t bytes)
{
    const unsigned char *tell = (const unsigned char *)from;
    writes_t *writes = &verbs->pairs[peer].writes;
    uint32_t what, qpn, psn;

    if (bytes != TELL_BYTES)
        return false;
    what = get_32(tell);
    qpn = get_32(tell + 4);
    psn = get_32(tell + 8);
    if (qpn >> 24 || psn >> 24)
        return false;
    if (what == TELLS_WRITER && qpn && !writes->answer_due) {
        target_open(verbs, peer, qpn, psn);
        return true;
    }
    if (what != TELLS_TARGET || writes->state != WRITES_ASKED ||
        writes->ask_due)
        return false;
    if (qpn &&
        !verbs_qp_join(verbs, peer, writes->qp, true, qpn, 0, writes->psn))
        writes->state = WRITES_UP;
    else
        writes_give_up(verbs, writes);
    if (writes->state != WRITES_UP)
        dscomm_log(DSCOMM_LOG_WARN, "ibverbs",
                   "no connection for long messages to rank %d: %s; they are "
                   "copied",
                   peer, qpn ? "it cannot be set up" : "that rank has none");
    return true;
}

bool verbs_writes_end(pair_t *pair, enum ibv_wc_status status)
{
    writes_t *writes = &pair->writes;

    if (pair->failed || pair->state != PAIR_UP)
        return false;
    if (writes->state == WRITES_UP && status == IBV_WC_REM_ACCESS_ERR)
        writes->state = WRITES_ENDING;
    return writes->state == WRITES_ENDING;
}

/* All puts have a completion of their own. A put that is refused has changed
 * nothing that the peer still uses, and those after it nothing at all. */
void verbs_put_completed(verbs_t *verbs, op_t *op, bool succeeded)
{
    pair_t *pair = &verbs->pairs[op->peer];
    writes_t *writes = &pair->writes;
    const uint32_t rkey = op->rkey;
    const bool refused = writes->state == WRITES_ENDING && !pair->failed &&
                         pair->state == PAIR_UP;

    TAILQ_REMOVE(&writes->flying, op, in_pair);
    writes->posted--;
    if (succeeded)
        pair->sent_ns = verbs_now();
    if (succeeded || !refused) {
        verbs_put_end(verbs, op, succeeded);
    } else {
        pair->window++;
        put_refuse(verbs, op);
        waiting_refuse(verbs, writes, rkey, false);
    }
    if (!refused || writes->posted)
        return;
    ibv_destroy_qp(writes->qp);
    writes->qp = NULL;
    writes->state = WRITES_NONE;
}

bool verbs_writes_shed(verbs_t *verbs)
{
    bool found = false;

    for (int p = 0; p < verbs->args.ranks; p++) {
        writes_t *writes = &verbs->pairs[p].writes;

        if (writes->state != WRITES_UP || writes->posted)
            continue;
        found = true;
        ibv_destroy_qp(writes->qp);
        writes->qp = NULL;
        writes->state = WRITES_NONE;
    }
    return found;
}

void verbs_retired_destroy(verbs_t *verbs)
{
    for (guint i = 0; i < verbs->retired->len; i++) {
        struct ibv_qp *qp = g_ptr_array_index(verbs->retired, i);

        g_hash_table_remove(verbs->by_qpn, GUINT_TO_POINTER(qp->qp_num));
        ibv_destroy_qp(qp);
    }
    g_ptr_array_set_size(verbs->retired, 0);
}

void verbs_writes_close(verbs_t *verbs, pair_t *pair)
{
    target_retire(verbs, &pair->writes);
    if (pair->writes.qp)
        ibv_destroy_qp(pair->writes.qp);
    pair->writes.qp = NULL;
    pair->writes.state = WRITES_ABSENT;
}
