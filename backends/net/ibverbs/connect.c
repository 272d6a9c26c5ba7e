/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, when they are needed. A rank that wants one sends the peer a
 * hello, a datagram with the number of its queue pair and the first packet's
 * sequence number, until it hears that the peer has these. The peer, which may
 * want the same at that time, answers with its own. A hello is authenticated
 * with the secret of the job.
 *
 *   0  "dscm", u16 version, u16 flags
 *   8  u32 from, u32 to
 *  16  u32 queue pair, u32 sequence number
 *  24  u32 queue pair of the receiver that the sender knows; 0: none
 *  28  u32 rkey of the sender's ring; 0: it has none
 *  32  u64 address of that
 *  40  HMAC-SHA256 of bytes 0 to 39 */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"
#include "backends/net/little.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS (INT64_C(1000000))
#define HELLO_SIGNED 40
#define HELLO_BYTES (HELLO_SIGNED + 32)
#define HELLO_VERSION 3
#define HELLO_IS_UP 1 /* the sender can send frames: no answer is needed */
/* The device puts a header (GRH) before a datagram. */
#define GRH_BYTES 40
#define HELLOS 64 /* datagrams that may wait for a poll */
#define DATAGRAM_MOST 4096 /* bytes of those of strangers */
#define GREETS 16 /* datagrams that may be on their way */
/* Pauses between two hellos: the first one, and the longest one. */
#define GREET_MS 20
#define GREET_MOST_MS 1000
/* Seconds after which a peer that does not answer is logged. */
#define WARN_S 10
#define QKEY 0x6473636dU

#define ADDRESS_BYTES 44
#define ADDRESS_VERSION 4

/* Addresses: "DSIB", u8 version, u8 link layer, u8 MTU, u8 reads that are
 * served at a time, u16 LID, u16 0, u32 UD queue pair, 16 bytes GID, u32 pid,
 * u64 host. */

size_t verbs_address(void *wire, void *buffer)
{
    const verbs_t *verbs = wire;
    unsigned char *to = buffer;

    memset(to, 0, ADDRESS_BYTES);
    memcpy(to, "DSIB", 4);
    to[4] = ADDRESS_VERSION;
    to[5] = verbs->own.link_layer;
    to[6] = verbs->own.mtu;
    to[7] = verbs->own.reads;
    put_16(to + 8, verbs->own.lid);
    put_32(to + 12, verbs->own.qpn);
    memcpy(to + 16, verbs->own.gid.raw, 16);
    put_32(to + 32, verbs->own.pid);
    put_64(to + 36, verbs->own.host);
    return ADDRESS_BYTES;
}

static dscomm_status_t address_read(const verbs_t *verbs, int peer,
                                    const void *address, size_t bytes,
                                    address_t *ret_address)
{
    const unsigned char *from = address;

    if (bytes < 5 || memcmp(from, "DSIB", 4))
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "rank %d has published no address of backend "
                           "ibverbs",
                           peer);
    if (from[4] != ADDRESS_VERSION || bytes != ADDRESS_BYTES)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "rank %d has an address of version %d of backend "
                           "ibverbs, and this rank has version %d; use the "
                           "same dscomm for all ranks",
                           peer, from[4], ADDRESS_VERSION);
    *ret_address = (address_t){.link_layer = from[5],
                               .mtu = from[6],
                               .reads = from[7],
                               .lid = get_16(from + 8),
                               .qpn = get_32(from + 12),
                               .pid = get_32(from + 32),
                               .host = get_64(from + 36)};
    memcpy(ret_address->gid.raw, from + 16, 16);
    if (ret_address->mtu < IBV_MTU_256 || ret_address->mtu > IBV_MTU_4096 ||
        ret_address->qpn >> 24)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "the address that rank %d has published is damaged",
                           peer);
    if (ret_address->link_layer != verbs->own.link_layer)
        return dscomm_fail(
            DSCOMM_ERR_ENVIRONMENT,
            "rank %d has an RDMA device on %s, and this rank "
            "has one on %s; choose devices of one network with "
            "DSCOMM_IBV_NAME",
            peer,
            ret_address->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
                                                               : "InfiniBand",
            verbs->own.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
                                                             : "InfiniBand");
    return DSCOMM_OK;
}

/* The way to an address. */
static struct ibv_ah_attr way(const verbs_t *verbs, const address_t *address)
{
    struct ibv_ah_attr attr = {
        .dlid = address->lid,
        .sl = verbs->path.service_level,
        .port_num = verbs->port_number,
        .is_global = verbs->own.link_layer == IBV_LINK_LAYER_ETHERNET ||
                     (verbs->port.flags & IBV_QPF_GRH_REQUIRED) ||
                     !address->lid ||
                     address->gid.global.subnet_prefix !=
                         verbs->own.gid.global.subnet_prefix,
    };

    if (attr.is_global) {
        attr.grh.dgid = address->gid;
        attr.grh.sgid_index = (uint8_t)verbs->gid_index;
        attr.grh.hop_limit = verbs->path.hop_limit;
        attr.grh.traffic_class = verbs->path.traffic_class;
    }
    return attr;
}

/* Datagrams. */

static void hello_sign(const verbs_t *verbs, const unsigned char *hello,
                       unsigned char *digest)
{
    GHmac *hmac = g_hmac_new(G_CHECKSUM_SHA256, verbs->args.secret, 32);
    gsize size = HELLO_BYTES - HELLO_SIGNED;

    g_hmac_update(hmac, hello, HELLO_SIGNED);
    g_hmac_get_digest(hmac, digest, &size);
    g_hmac_unref(hmac);
}

/* Sends the peer a hello; one that is lost is sent again by a timer. */
static void greet(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    op_t *op = SLIST_FIRST(&verbs->greets);
    unsigned char *hello;
    struct ibv_sge part;
    struct ibv_send_wr *bad, wr = {.sg_list = &part,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};

    if (!op || !pair->ah || !pair->qp)
        return;
    hello = (unsigned char *)op->slot;
    memset(hello, 0, HELLO_BYTES);
    memcpy(hello, "dscm", 4);
    put_16(hello + 4, HELLO_VERSION);
    put_16(hello + 6, pair->state == PAIR_UP ? HELLO_IS_UP : 0);
    put_32(hello + 8, (uint32_t)verbs->args.rank);
    put_32(hello + 12, (uint32_t)peer);
    put_32(hello + 16, pair->qp->qp_num);
    put_32(hello + 20, pair->psn);
    put_32(hello + 24, pair->peer_qpn);
    if (pair->rings.region) {
        put_32(hello + 28, pair->rings.region->rkey);
        put_64(hello + 32, (uintptr_t)pair->rings.memory);
    }
    hello_sign(verbs, hello, hello + HELLO_SIGNED);
    part = (struct ibv_sge){
        .addr = (uintptr_t)op->slot, .length = HELLO_BYTES, .lkey = op->lkey};
    wr.wr_id = (uintptr_t)op;
    wr.wr.ud.ah = pair->ah;
    wr.wr.ud.remote_qpn = pair->address.qpn;
    wr.wr.ud.remote_qkey = QKEY;
    if (!ibv_post_send(verbs->ud, &wr, &bad))
        SLIST_REMOVE_HEAD(&verbs->greets, in_free);
}

/* Lets a datagram come. */
static void hello_post(const verbs_t *verbs, op_t *op)
{
    struct ibv_sge part = {.addr = (uintptr_t)op->slot,
                           .length = GRH_BYTES + DATAGRAM_MOST,
                           .lkey = op->lkey};
    struct ibv_recv_wr *bad,
        wr = {.wr_id = (uintptr_t)op, .sg_list = &part, .num_sge = 1};

    ibv_post_recv(verbs->ud, &wr, &bad);
}

dscomm_status_t verbs_greeter_open(verbs_t *verbs)
{
    struct ibv_qp_init_attr make = {
        .send_cq = verbs->cq,
        .recv_cq = verbs->cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = GREETS,
                .max_recv_wr = HELLOS,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = verbs->path.pkey_index,
                               .port_num = verbs->port_number,
                               .qkey = QKEY};
    struct ops receives = SLIST_HEAD_INITIALIZER(receives);
    const char *what = "queue pair of datagrams";
    op_t *op;
    int error;

    verbs->ud = ibv_create_qp(verbs->pd, &make);
    error = verbs->ud ? 0 : errno;
    if (!error)
        error = ibv_modify_qp(verbs->ud, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                  IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    if (!error)
        error = ibv_modify_qp(verbs->ud, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    if (!error)
        error = ibv_modify_qp(verbs->ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (!error && (verbs_slots_add(verbs, &receives, OP_HELLO, HELLOS,
                                   GRH_BYTES + DATAGRAM_MOST) ||
                   verbs_slots_add(verbs, &verbs->greets, OP_GREET, GREETS,
                                   HELLO_BYTES))) {
        error = errno;
        what = "memory for datagrams";
    }
    if (error)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no %s: %s%s", what,
                           strerror(error), verbs_remedy(error));
    while ((op = SLIST_FIRST(&receives)) != NULL) {
        SLIST_REMOVE_HEAD(&receives, in_free);
        hello_post(verbs, op);
    }
    verbs->own.qpn = verbs->ud->qp_num;
    return DSCOMM_OK;
}

void verbs_greeter_mend(verbs_t *verbs)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

    if (ibv_modify_qp(verbs->ud, &attr, IBV_QP_STATE))
        verbs_lack(verbs, "the queue pair of datagrams", EIO);
}

/* Pairs. */

int verbs_completions(int pairs)
{
    return pairs * (WINDOW + SPARE + SEND_DEPTH + WRITE_DEPTH) + HELLOS +
           GREETS;
}

/* Makes room for the completions and receives of one more pair; an errno. */
static int pair_room(verbs_t *verbs)
{
    const int needed = verbs_completions((int)verbs->open + 1);
    struct ops slots = SLIST_HEAD_INITIALIZER(slots);
    op_t *op;

    if (needed > verbs->cq->cqe || verbs->srq_room < WINDOW + SPARE)
        return ENOSPC;
    if (verbs_slots_add(verbs, &slots, OP_PART, WINDOW + SPARE, SLOT_BYTES))
        return errno;
    verbs->srq_room -= WINDOW + SPARE;
    while ((op = SLIST_FIRST(&slots)) != NULL) {
        SLIST_REMOVE_HEAD(&slots, in_free);
        verbs_slot_post(verbs, op);
    }
    return 0;
}

static struct ibv_qp *qp_new(const verbs_t *verbs, unsigned depth,
                             unsigned inline_bytes, int access)
{
    struct ibv_qp_init_attr make = {
        .send_cq = verbs->cq,
        .recv_cq = verbs->cq,
        .srq = verbs->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = depth,
                .max_send_sge = 1,
                .max_inline_data = inline_bytes},
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = verbs->path.pkey_index,
                               .port_num = verbs->port_number,
                               .qp_access_flags = (unsigned)access};
    struct ibv_qp *qp = ibv_create_qp(verbs->pd, &make);
    int error = 0;

    if (qp)
        error = ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                  IBV_QP_ACCESS_FLAGS);
    if (!error)
        return qp;
    ibv_destroy_qp(qp);
    errno = error;
    return NULL;
}

struct ibv_qp *verbs_qp_make(verbs_t *verbs, unsigned depth, int access)
{
    return qp_new(verbs, depth, 0, access);
}

/* Makes a queue pair whose work requests carry as many bytes themselves as the
 * device allows, of some numbers that help. Memory is another matter: see
 * regions. A peer may also write nothing, which shows that this rank lives. */
static struct ibv_qp *qp_make(verbs_t *verbs)
{
    static const unsigned inlines[] = {256, 64, 0};
    struct ibv_qp *qp = NULL;

    for (size_t i = 0; !qp && i < G_N_ELEMENTS(inlines); i++) {
        if (inlines[i] > verbs->max_inline)
            continue;
        qp = qp_new(verbs, SEND_DEPTH, inlines[i],
                    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
        if (qp)
            verbs->max_inline = inlines[i];
    }
    return qp;
}

/* Makes the queue pair of a pair; false: this rank lacks something, and the
 * pair has failed. */
static bool pair_open(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    int error;

    if (pair->qp)
        return true;
    error = pair_room(verbs);
    if (!error) {
        verbs_ring_open(verbs, pair);
        pair->qp = qp_make(verbs);
        if (!pair->qp && verbs_writes_shed(verbs))
            pair->qp = qp_make(verbs);
        error = pair->qp ? 0 : errno;
    }
    if (error) {
        verbs_lack(verbs, "a connection needs a queue pair", error);
        return false;
    }
    verbs->open++;
    pair->psn = g_random_int() & 0xffffff;
    g_hash_table_insert(verbs->by_qpn, GUINT_TO_POINTER(pair->qp->qp_num),
                        GINT_TO_POINTER(peer + 1));
    return true;
}

int verbs_qp_join(verbs_t *verbs, int peer, struct ibv_qp *qp, bool sends,
                  uint32_t qpn, uint32_t rq_psn, uint32_t sq_psn)
{
    const pair_t *pair = &verbs->pairs[peer];
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = MIN(verbs->own.mtu, pair->address.mtu),
        .dest_qp_num = qpn,
        .rq_psn = rq_psn,
        .min_rnr_timer = 12,
        .ah_attr = way(verbs, &pair->address),
        .timeout = verbs->path.timeout,
        .retry_cnt = verbs->path.retries,
        .rnr_retry = 7,
        .sq_psn = sq_psn,
    };
    int error;

    if (qp == pair->qp) { /* others have no reads */
        attr.max_dest_rd_atomic = verbs->own.reads;
        attr.max_rd_atomic = (uint8_t)MIN(
            MAX(verbs->device.max_qp_init_rd_atom, 0), pair->address.reads);
    }
    error = ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV |
                              IBV_QP_MAX_DEST_RD_ATOMIC);

    if (error || !sends)
        return error;
    attr.qp_state = IBV_QPS_RTS;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Connects the queue pair with the peer's, which it now knows. */
static void pair_join(verbs_t *verbs, int peer, uint32_t qpn, uint32_t psn)
{
    pair_t *pair = &verbs->pairs[peer];
    const int error =
        verbs_qp_join(verbs, peer, pair->qp, true, qpn, psn, pair->psn);

    if (error)
        verbs_pair_fail(verbs, peer, DSCOMM_FAILURE_RESOURCE,
                        "its connection cannot be set up: %s; see the GIDs of "
                        "both ranks with ibv_devinfo -v",
                        strerror(error));
    else
        pair->peer_qpn = qpn;
}

void verbs_pair_up(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];

    if (pair->state != PAIR_ASKING || !pair->peer_qpn)
        return;
    pair->state = PAIR_UP;
    pair->sent_ns = verbs_now();
    verbs->asking--;
    verbs_send(verbs, peer);
}

dscomm_status_t verbs_connect(void *wire, int peer, const void *address,
                              size_t bytes)
{
    verbs_t *verbs = wire;
    pair_t *pair = &verbs->pairs[peer];
    struct ibv_ah_attr attr;
    char text[GID_TEXT];
    dscomm_status_t status;

    if (pair->has_address || pair->state == PAIR_LOST)
        return DSCOMM_OK;
    status = address_read(verbs, peer, address, bytes, &pair->address);
    if (status < 0)
        return status;
    attr = way(verbs, &pair->address);
    pair->ah = ibv_create_ah(verbs->pd, &attr);
    if (!pair->ah)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "no way from GID %d of this rank to rank %d at %s: "
                           "%s; choose GIDs of one network with "
                           "DSCOMM_IBV_INDEX",
                           verbs->gid_index, peer,
                           verbs_gid_text(&pair->address.gid, text),
                           strerror(errno));
    pair->has_address = true;
    verbs_death_watch(verbs, peer);
    pair->state = PAIR_ASKING;
    pair->end_ns = verbs_now() + verbs->args.timeout_ms * MS;
    pair->pause_ns = GREET_MS * MS;
    pair->greet_ns = verbs_now() + pair->pause_ns;
    verbs->asking++;
    if (pair_open(verbs, peer))
        greet(verbs, peer);
    return DSCOMM_OK;
}

void verbs_greet_again(verbs_t *verbs, int64_t now)
{
    char text[GID_TEXT];
    int silent_s;

    for (int p = 0; verbs->asking && p < verbs->args.ranks; p++) {
        pair_t *pair = &verbs->pairs[p];

        if (pair->state != PAIR_ASKING || pair->failed || now < pair->greet_ns)
            continue;
        if (now >= pair->end_ns) {
            verbs_pair_fail(
                verbs, p, DSCOMM_FAILURE_SILENT,
                "its device at %s does not answer; see whether "
                "both hosts reach each other with ibv_rc_pingpong, or "
                "name another backend, such as tcp",
                verbs_gid_text(&pair->address.gid, text));
            continue;
        }
        silent_s = verbs->args.timeout_ms / 1000 -
                   (int)((pair->end_ns - now) / (1000 * MS));
        if (silent_s >= WARN_S && !verbs->warned_silent) {
            dscomm_log(DSCOMM_LOG_WARN, "ibverbs",
                       "rank %d, whose device is at %s, has not answered for "
                       "%d s; unless it is busy, see whether both hosts reach "
                       "each other with ibv_rc_pingpong, or name another "
                       "backend, such as tcp; other ranks are not reported",
                       p, verbs_gid_text(&pair->address.gid, text), silent_s);
            verbs->warned_silent = true;
        }
        greet(verbs, p);
        pair->greet_ns = now + pair->pause_ns;
        pair->pause_ns = MIN(2 * pair->pause_ns, GREET_MOST_MS * MS);
    }
}

/* Why a hello is not one for this rank; NULL: it is. */
static const char *hello_refused(const verbs_t *verbs,
                                 const unsigned char *hello, size_t bytes)
{
    unsigned char digest[HELLO_BYTES - HELLO_SIGNED], different = 0;
    const uint32_t from = bytes == HELLO_BYTES ? get_32(hello + 8) : 0;

    if (bytes != HELLO_BYTES || memcmp(hello, "dscm", 4))
        return "it speaks another protocol";
    if (get_16(hello + 4) != HELLO_VERSION)
        return "it has another version";
    hello_sign(verbs, hello, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        different |= digest[i] ^ hello[HELLO_SIGNED + i];
    if (different)
        return "it does not know the secret of the job";
    if (get_32(hello + 12) != (uint32_t)verbs->args.rank ||
        from >= (uint32_t)verbs->args.ranks ||
        from == (uint32_t)verbs->args.rank || get_32(hello + 16) >> 24 ||
        !get_32(hello + 16) || get_32(hello + 20) >> 24)
        return "it is for another rank";
    return NULL;
}

/* Takes a hello of a peer, and answers it. */
static void hello_take(verbs_t *verbs, const unsigned char *hello)
{
    const int peer = (int)get_32(hello + 8);
    pair_t *pair = &verbs->pairs[peer];

    if (pair->state == PAIR_NONE)
        verbs->calls->opened(verbs->args.arg, peer); /* calls connect */
    if (pair->state == PAIR_NONE) /* it could not */
        verbs_pair_fail(verbs, peer, DSCOMM_FAILURE_RESOURCE, "%s",
                        dscomm_last_error());
    if (!pair->qp || pair->failed || pair->state == PAIR_LOST)
        return;
    if (!pair->peer_qpn) {
        pair_join(verbs, peer, get_32(hello + 16), get_32(hello + 20));
        verbs_ring_join(verbs, pair, get_64(hello + 32), get_32(hello + 28));
    }
    if (pair->failed || pair->peer_qpn != get_32(hello + 16))
        return;
    if (get_32(hello + 24) == pair->qp->qp_num)
        verbs_pair_up(verbs, peer);
    if (!(get_16(hello + 6) & HELLO_IS_UP))
        greet(verbs, peer);
}

void verbs_hello(verbs_t *verbs, op_t *op, size_t bytes)
{
    const unsigned char *hello = (const unsigned char *)op->slot + GRH_BYTES;
    const char *refused =
        hello_refused(verbs, hello, bytes < GRH_BYTES ? 0 : bytes - GRH_BYTES);

    if (refused) {
        dscomm_log(verbs->warned ? DSCOMM_LOG_DEBUG : DSCOMM_LOG_WARN,
                   "ibverbs", "ignored a datagram: %s%s", refused,
                   verbs->warned ? "" : "; further ones are not reported");
        verbs->warned = true;
    } else {
        hello_take(verbs, hello);
    }
    hello_post(verbs, op);
}
