/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings: memory of a rank to which one peer's device writes short parts. A part
 * ends where its place in the ring ends, with 8 bytes, which the device writes
 * last: from the lowest bit on, u16 bytes of frames, u16 number of the part,
 * u16 what verbs_back_give() has returned, u16 lap around the ring, from 1 on.
 *
 * Nothing wakes a rank that sleeps when its memory is written. So a sender that
 * was silent for QUIET_NS sends the next part to a slot, and until then the
 * receiver sleeps for NAP_US only.
 *
 * A ring that is polled stays so until the end of the wire. */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRAILER sizeof(uint64_t)
/* Short parts of a peer after which its ring is polled. */
#define WARM_PARTS 16
#define MS (INT64_C(1000000))
#define QUIET_NS (4 * MS)
/* The clocks that are read tick every few milliseconds. */
#define WARM_NS (4 * QUIET_NS)
#define NAP_US 50

void verbs_ring_close(pair_t *pair)
{
    if (pair->rings.region)
        ibv_dereg_mr(pair->rings.region);
    free(pair->rings.memory);
    pair->rings.region = NULL;
    pair->rings.memory = NULL;
}

void verbs_ring_open(verbs_t *verbs, pair_t *pair)
{
    const size_t bytes = RING_SLOTS * RING_SLOT_BYTES;
    rings_t *rings = &pair->rings;
    void *memory = NULL;

    if (verbs->ring_mode == RINGS_NO)
        return;
    if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), bytes))
        return;
    rings->memory = memset(memory, 0, bytes);
    rings->region = verbs_regions_register(verbs->regions, rings->memory, bytes,
                                           IBV_ACCESS_LOCAL_WRITE |
                                               IBV_ACCESS_REMOTE_WRITE);
    if (!rings->region)
        verbs_ring_close(pair);
}

/* True if the device writes the bytes of a part in order. */
static bool device_keeps_order(struct ibv_qp *qp)
{
#ifdef HAVE_IBV_QUERY_QP_DATA_IN_ORDER
    return ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) == 1;
#else
    (void)qp;
    return false;
#endif
}

void verbs_ring_join(const verbs_t *verbs, pair_t *pair, uint64_t remote,
                     uint32_t rkey)
{
    if (verbs->ring_mode != RINGS_YES && !device_keeps_order(pair->qp))
        verbs_ring_close(pair); /* the peer was told, but never uses it */
    pair->rings.remote = remote;
    pair->rings.rkey = rkey;
    pair->rings.room = RING_SLOTS;
}

/* Writes to memory have no order among themselves, but a part to a slot comes
 * after them. */
bool verbs_ring_fits(const pair_t *pair)
{
    const rings_t *rings = &pair->rings;

    return rings->is_polled && rings->room && !pair->has_written &&
           pair->queue.bytes <= RING_BYTES &&
           verbs_now() - rings->sent_ns <= QUIET_NS;
}

/* Returns the length of a part with so many bytes of frames. */
static size_t part_length(size_t bytes)
{
    return (bytes + TRAILER - 1) / TRAILER * TRAILER + TRAILER;
}

size_t verbs_ring_pack(pair_t *pair, char *slot, size_t bytes,
                       struct ibv_send_wr *wr)
{
    rings_t *rings = &pair->rings;
    const size_t length = part_length(bytes);
    const uint64_t lap = rings->sent / RING_SLOTS % UINT16_MAX + 1;
    const uint64_t trailer =
        GUINT64_TO_LE(bytes | (uint64_t)pair->next_sent << 16 |
                      (uint64_t)verbs_back_give(pair) << 32 | lap << 48);

    memcpy(slot + length - TRAILER, &trailer, TRAILER);
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.rkey = rings->rkey;
    wr->wr.rdma.remote_addr = rings->remote +
                              (rings->sent % RING_SLOTS + 1) * RING_SLOT_BYTES -
                              length;
    rings->sent++;
    rings->room--;
    pair->next_sent++;
    return length;
}

bool verbs_ring_take(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    rings_t *rings = &pair->rings;
    const char *end =
        rings->memory + (rings->taken % RING_SLOTS + 1) * RING_SLOT_BYTES;
    const uint64_t lap = rings->taken / RING_SLOTS % UINT16_MAX + 1;
    const uint64_t trailer = GUINT64_FROM_LE(__atomic_load_n(
        (const uint64_t *)(const void *)(end - TRAILER), __ATOMIC_ACQUIRE));
    const size_t bytes = trailer & UINT16_MAX;
    bool used;

    if (trailer >> 48 != lap || (uint16_t)(trailer >> 16) != pair->next_came ||
        pair->broken)
        return false;
    if (!bytes || bytes > RING_BYTES) {
        verbs_part_use(verbs, peer, NULL, 0, BACK_NONSENSE);
        return false;
    }
    rings->taken++;
    pair->next_came++;
    used = verbs_part_use(verbs, peer, end - part_length(bytes), bytes,
                          (uint16_t)(trailer >> 32));
    rings->owed++; /* not while it is read: the peer may write there then */
    return used;
}

bool verbs_rings_poll(verbs_t *verbs)
{
    bool any = false;

    for (unsigned i = 0; i < verbs->polled_count; i++) {
        const int peer = verbs->polled[i];
        bool some = false;

        while (verbs->pairs[peer].state == PAIR_UP &&
               verbs_ring_take(verbs, peer))
            some = true;
        if (some)
            verbs_send(verbs, peer);
        any |= some;
    }
    if (any)
        verbs->ring_ns = verbs_now();
    return any;
}

void verbs_ring_warm(verbs_t *verbs, int peer, size_t bytes)
{
    rings_t *rings = &verbs->pairs[peer].rings;

    if (rings->polled)
        verbs->ring_ns = verbs_now();
    if (rings->polled || !rings->memory || bytes > RING_BYTES ||
        verbs->polled_count == RINGS_POLLED ||
        ++rings->short_parts < WARM_PARTS)
        return;
    rings->polled = true;
    verbs->polled[verbs->polled_count++] = peer;
}

unsigned verbs_ring_sleep(const verbs_t *verbs, unsigned most_us)
{
    return verbs->polled_count && verbs_now() - verbs->ring_ns < WARM_NS
               ? MIN(most_us, NAP_US)
               : most_us;
}
