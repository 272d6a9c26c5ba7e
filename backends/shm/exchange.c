/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that move data and reduce nothing: broadcast, all_gather, gather,
 * scatter, all_to_all, their _v forms, barrier.
 *
 * A sender copies its parts, piece by piece, into its ring; receivers copy them
 * out. A part is what one rank wants: one for all (broadcast, all_gather,
 * gather) or one for each (scatter, all_to_all). A buffer from dscomm_mem_alloc
 * is not copied in: receivers read it in place, and the sender waits until they
 * have.
 *
 * A sender copies its part for all, or its parts for the p - 1 others; a
 * receiver copies a part of each other sender, and its own one, unless it is in
 * place. A receiver awaits a flag of each sender a piece, of at most 64 KiB; a
 * buffer that is read in place has one piece. */
#include "config.h"

#include "backends/shm/steps.h"

#define CHUNK ((size_t)64 << 10) /* bytes of a piece, at most */
/* from this size on, reading in place is faster */
#define REFERENCE_MIN ((size_t)4096)

enum { ROOT = 1, OTHERS = 2, ALL = ROOT | OTHERS };
enum { STAGE_COUNTS, STAGE_DATA, STAGE_DRAIN };

typedef struct {
    unsigned char senders, receivers;
    bool each; /* one part for each rank */
    bool counts; /* only their owners know the lengths */
} shape_t;

static const shape_t shapes[DSCOMM_COLL_COUNT] = {
    [DSCOMM_COLL_BROADCAST] = {ROOT, OTHERS, false, false},
    [DSCOMM_COLL_ALL_GATHER] = {ALL, ALL, false, false},
    [DSCOMM_COLL_ALL_GATHER_V] = {ALL, ALL, false, false},
    [DSCOMM_COLL_GATHER] = {ALL, ROOT, false, false},
    [DSCOMM_COLL_GATHER_V] = {ALL, ROOT, false, true},
    [DSCOMM_COLL_SCATTER] = {ROOT, ALL, true, false},
    [DSCOMM_COLL_SCATTER_V] = {ROOT, ALL, true, true},
    [DSCOMM_COLL_ALL_TO_ALL] = {ALL, ALL, true, false},
    [DSCOMM_COLL_ALL_TO_ALL_V] = {ALL, ALL, true, true},
    [DSCOMM_COLL_BARRIER] = {ALL, ALL, false, false},
};

typedef struct {
    unsigned char *start;
    size_t bytes;
} part_t;

static inline const shape_t *shape_of(const shm_op_t *op)
{
    return &shapes[op->args->coll];
}

static inline bool takes_part(const shm_op_t *op, unsigned char who, int rank)
{
    return who & (rank == op->args->root ? ROOT : OTHERS);
}

/* The part that this rank sends to rank. */
static part_t part_out(const shm_op_t *op, int rank)
{
    const dscomm_coll_args_t *a = op->args;
    size_t n = a->count * a->element;

    if (a->send_counts)
        return (part_t){shm_at(a->send, a->send_displs[rank] * a->element),
                        a->send_counts[rank] * a->element};
    if (shape_of(op)->each)
        return (part_t){shm_at(a->send, (size_t)rank * n), n};
    return (part_t){shm_at(a->send, 0), n};
}

/* The part that this rank receives from rank. */
static part_t part_in(const shm_op_t *op, int rank)
{
    const dscomm_coll_args_t *a = op->args;
    size_t n = a->count * a->element;

    if (a->recv_counts)
        return (part_t){shm_at(a->recv, a->recv_displs[rank] * a->element),
                        a->recv_counts[rank] * a->element};
    if (shape_of(op)->senders == ROOT)
        return (part_t){a->recv, n};
    return (part_t){shm_at(a->recv, (size_t)rank * n), n};
}

/* The bytes of a part that belong to a piece. */
static inline size_t piece_bytes(const shm_op_t *op, size_t part, size_t piece)
{
    size_t from = piece * op->chunk;

    return from >= part ? 0 : part - from < op->chunk ? part - from : op->chunk;
}

/* Copies to the caller's memory. */
static inline void copy_to_user(const shm_op_t *op, void *to, const void *from,
                                size_t bytes)
{
    if (op->stream)
        shm_copy_stream(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* Whether the results of all ranks, of parts so long, do not fit into the
 * cache: then they had better not be read into it before they are written. */
static bool exchange_bypasses(const shm_t *shm, const shm_op_t *op,
                              size_t longest)
{
    const shape_t *shape = shape_of(op);
    const size_t ranks = (size_t)shm->ranks;
    const size_t senders = shape->senders == ROOT ? 1 : ranks;
    size_t receivers = shape->receivers == ROOT ? 1 : ranks;

    if (shape->receivers == OTHERS)
        receivers--;
    return longest * senders * receivers >= shm->cache;
}

static void copy_own_part(shm_t *shm, shm_op_t *op)
{
    const shape_t *shape = shape_of(op);
    part_t from, to;

    if (!takes_part(op, shape->senders, shm->rank) ||
        !takes_part(op, shape->receivers, shm->rank))
        return;
    from = part_out(op, shm->rank);
    to = part_in(op, shm->rank);
    if (!to.bytes || to.start == from.start)
        return;
    dscomm_phase(op->args, DSCOMM_PHASE_COPY_OUT);
    if (from.start + from.bytes <= to.start ||
        to.start + to.bytes <= from.start)
        copy_to_user(op, to.start, from.start, to.bytes);
    else
        memmove(to.start, from.start, to.bytes);
}

/* Cuts the operation into pieces, once its longest part is known. */
static void exchange_plan(shm_t *shm, shm_op_t *op, size_t longest)
{
    size_t parts = shape_of(op)->each ? (size_t)shm->ranks : 1;
    size_t most = shm->layout.ring_size / 8 / parts & ~(size_t)(SHM_LINE - 1);
    size_t chunk = CHUNK / (parts > 4 ? 4 : parts);

    op->data = shm->step;
    op->stream = exchange_bypasses(shm, op, longest);
    op->inlined = !shape_of(op)->counts && parts * longest <= SHM_INLINE;
    chunk = chunk < most ? chunk : most;
    chunk = chunk > SHM_LINE ? chunk : SHM_LINE;
    op->chunk = longest < chunk ? longest : chunk;
    op->pieces = longest ? (longest + op->chunk - 1) / op->chunk : 1;
    op->region = op->inlined ? 0 : parts * op->chunk;
}

/* The place of this rank's bytes of a piece: in its ring or its line. */
static inline unsigned char *piece_address(shm_t *shm, const shm_op_t *op,
                                           int rank, uint64_t step)
{
    return op->inlined ? shm_line(shm, rank, step)->byte
                       : shm_region(shm, rank, step);
}

static void put_parts(shm_t *shm, shm_op_t *op, uint64_t step)
{
    unsigned char *to = piece_address(shm, op, shm->rank, step);
    size_t from = op->published * op->chunk;

    dscomm_phase(op->args, DSCOMM_PHASE_COPY_IN);
    if (!shape_of(op)->each) {
        part_t part = part_out(op, shm->rank);

        shm_hand_over(shm, to, part.start + from,
                      piece_bytes(op, part.bytes, op->published));
        return;
    }
    for (int r = 0; r < shm->ranks; r++) {
        part_t part = part_out(op, r);
        size_t bytes = piece_bytes(op, part.bytes, op->published);

        if (r != shm->rank && bytes)
            shm_hand_over(shm, to + (size_t)r * op->chunk, part.start + from,
                          bytes);
    }
}

/* shm_reference() or shm_reference_look(). */
typedef uint64_t refer_t(shm_t *shm, const void *memory, size_t size,
                         bool one_way);

/* Returns the reference by which peers read this rank's send buffer in place,
 * or 0 if they must get it in pieces: it is small, its parts may have gaps
 * between them, or it cannot be read in place. */
static uint64_t reference_of(shm_t *shm, const shm_op_t *op, refer_t *refer)
{
    const dscomm_coll_args_t *a = op->args;
    size_t bytes =
        a->count * a->element * (shape_of(op)->each ? (size_t)shm->ranks : 1);

    if (op->inlined || shape_of(op)->counts || bytes < REFERENCE_MIN)
        return 0;
    return refer(shm, a->send, bytes,
                 shape_of(op)->senders != ALL ||
                     shape_of(op)->receivers != ALL);
}

/* Writes piece `published`, whose step was taken, and raises its flag. All
 * ranks raise the flag of the first piece, so that a mismatch is detected;
 * later ones only senders. */
static int exchange_put(shm_t *shm, shm_op_t *op)
{
    uint64_t step = op->taken;
    bool sends = takes_part(op, shape_of(op)->senders, shm->rank) && op->bytes;
    dscomm_status_t status;

    if (!shm_writable(shm, step))
        return SHM_AGAIN;
    if (!op->inlined && !op->published) {
        uint64_t reference = sends ? reference_of(shm, op, shm_reference) : 0;

        shm_line(shm, shm->rank, step)->word[WORD_REFERENCE] = reference;
        op->referenced = reference != 0;
    }
    if (sends && !op->referenced) {
        if (!op->inlined && (status = shm_ring_ready(shm)))
            return status;
        put_parts(shm, op, step);
    }
    shm_raise(shm, step);
    return SHM_DONE;
}

static int exchange_publish(shm_t *shm, shm_op_t *op)
{
    bool sends = takes_part(op, shape_of(op)->senders, shm->rank);

    while (op->published < op->pieces &&
           op->published - op->finished < SHM_LINES / 2) {
        if (!op->taken)
            op->taken = shm_take(shm, op->region);
        if (!op->published || (sends && !op->referenced)) {
            int result = exchange_put(shm, op);

            if (result != SHM_DONE)
                return result;
        }
        op->taken = 0;
        op->published++;
        shm->moves++;
    }
    return SHM_DONE;
}

static bool read_in_place(const shm_op_t *op, int rank)
{
    return op->references[rank / 64] >> (rank % 64) & 1;
}

/* Copies a peer's whole part from the peer's buffer. */
static int get_reference(shm_t *shm, shm_op_t *op, int rank, uint64_t reference)
{
    part_t part = part_in(op, rank);
    size_t skip = shape_of(op)->each ? (size_t)shm->rank * part.bytes : 0;
    dscomm_status_t status;

    dscomm_phase(op->args, DSCOMM_PHASE_COPY_OUT);
    status = shm_reference_read(shm, rank, reference, skip, part.start,
                                part.bytes, op->stream);
    if (status)
        return status;
    op->references[rank / 64] |= (uint64_t)1 << (rank % 64);
    return SHM_DONE;
}

static int exchange_get(shm_t *shm, shm_op_t *op, int rank)
{
    uint64_t step = op->data + op->finished;
    part_t part = part_in(op, rank);
    size_t bytes = piece_bytes(op, part.bytes, op->finished);
    const unsigned char *from;

    if (read_in_place(op, rank))
        return SHM_DONE;
    if (op->finished && !bytes)
        return SHM_DONE;
    if (!shm_raised(shm, rank, step))
        return SHM_AGAIN;
    if (!op->finished && !op->inlined && bytes) {
        uint64_t reference = shm_line(shm, rank, step)->word[WORD_REFERENCE];

        if (reference)
            return get_reference(shm, op, rank, reference);
    }
    from = piece_address(shm, op, rank, step);
    if (shape_of(op)->each)
        from += (size_t)shm->rank * op->chunk;
    if (bytes) {
        dscomm_phase(op->args, DSCOMM_PHASE_COPY_OUT);
        copy_to_user(op, part.start + op->finished * op->chunk, from, bytes);
    }
    return SHM_DONE;
}

/* Reads piece `finished` from all ranks, beginning with the next rank. */
static int consume_piece(shm_t *shm, shm_op_t *op)
{
    const shape_t *shape = shape_of(op);

    for (; op->peer < shm->ranks - 1; op->peer++) {
        int rank = (shm->rank + 1 + op->peer) % shm->ranks;
        int result;

        if (!takes_part(op, shape->senders, rank))
            continue;
        result = exchange_get(shm, op, rank);
        if (result != SHM_DONE)
            return result;
        shm->moves++;
    }
    if (!op->finished && shape->senders == ALL && shape->receivers == ALL)
        shm_all_arrived(shm, op->data);
    op->peer = 0;
    return SHM_DONE;
}

static int exchange_consume(shm_t *shm, shm_op_t *op)
{
    bool receives = takes_part(op, shape_of(op)->receivers, shm->rank);

    while (op->finished < op->published) {
        if (receives) {
            int result = consume_piece(shm, op);

            if (result != SHM_DONE)
                return result;
        }
        op->finished++;
        if (op->finished % 4 == 0)
            shm_done(shm, op->data + op->finished);
    }
    return SHM_DONE;
}

/* Publishes lengths that only their owners know: every rank writes the lengths
 * that it sends to each rank into its ring, and the longest into its line. */
static int put_counts(shm_t *shm, shm_op_t *op)
{
    const shape_t *shape = shape_of(op);
    shm_line_t *line = shm_line(shm, shm->rank, op->first);
    dscomm_status_t status = shm_ring_ready(shm);
    uint64_t *counts = (uint64_t *)shm_region(shm, shm->rank, op->first);
    uint64_t longest = 0;

    if (status)
        return status;
    if (!shm_writable(shm, op->first))
        return SHM_AGAIN;
    for (int r = 0; r < shm->ranks; r++) {
        counts[r] = takes_part(op, shape->senders, shm->rank) &&
                            takes_part(op, shape->receivers, r)
                        ? part_out(op, r).bytes
                        : 0;
        longest = counts[r] > longest ? counts[r] : longest;
    }
    line->word[WORD_LONGEST] = longest;
    op->bytes = (size_t)longest;
    op->taken = 0;
    shm_raise(shm, op->first);
    return SHM_DONE;
}

static int fail_counts(shm_t *shm, const shm_op_t *op, int rank, uint64_t sent,
                       size_t expected)
{
    char what[160], who[DSCOMM_CREATION_RANK_MAX], own[sizeof who];
    dscomm_failure_t failure;

    dscomm_coll_describe(op->args, what, sizeof what);
    shm_blame(shm, DSCOMM_ERR_MISMATCH, DSCOMM_FAILURE_MISMATCH, rank,
              &failure);
    failure.coll = op->args->coll;
    failure.sequence = op->args->sequence;
    dscomm_backend_failure_detail(
        &failure,
        "%s: %s sends %llu bytes to %s, which expects %zu; the counts of "
        "both must agree",
        what, shm_rank_describe(shm, rank, who), (unsigned long long)sent,
        shm_rank_describe(shm, shm->rank, own), expected);
    dscomm_backend_mismatch_counts(shm->group, &failure);
    return shm_fail(shm, &failure);
}

/* Called when all lengths have arrived: compares them and finds the longest. */
static int get_counts(shm_t *shm, shm_op_t *op)
{
    const shape_t *shape = shape_of(op);
    bool receives = takes_part(op, shape->receivers, shm->rank);
    uint64_t longest = 0;

    for (int r = 0; r < shm->ranks; r++)
        if (!shm_raised(shm, r, op->first))
            return SHM_AGAIN;
    shm_all_arrived(shm, op->first);
    for (int r = 0; r < shm->ranks; r++) {
        uint64_t theirs = shm_line(shm, r, op->first)->word[WORD_LONGEST];
        const uint64_t *counts = (uint64_t *)shm_region(shm, r, op->first);

        longest = theirs > longest ? theirs : longest;
        if (receives && takes_part(op, shape->senders, r) &&
            counts[shm->rank] != part_in(op, r).bytes)
            return fail_counts(shm, op, r, counts[shm->rank],
                               part_in(op, r).bytes);
    }
    exchange_plan(shm, op, (size_t)longest);
    copy_own_part(shm, op);
    op->stage = STAGE_DATA;
    shm->moves++;
    return SHM_DONE;
}

static int exchange_advance(shm_t *shm, shm_op_t *op)
{
    int result;

    if (op->stage == STAGE_COUNTS) {
        result = op->taken ? put_counts(shm, op) : SHM_DONE;
        if (result == SHM_DONE)
            result = get_counts(shm, op);
        if (result != SHM_DONE)
            return result;
    }
    while (op->finished < op->pieces) {
        size_t finished = op->finished;

        if ((result = exchange_publish(shm, op)) < 0 ||
            (result = exchange_consume(shm, op)) < 0)
            return result;
        if (op->finished == finished)
            return SHM_AGAIN;
    }
    if (!op->referenced)
        return SHM_DONE;
    if (op->stage != STAGE_DRAIN)
        shm_done(shm, shm->step);
    op->stage = STAGE_DRAIN;
    return shm->floor >= shm->step || shm_floor_reached(shm, shm->step)
               ? SHM_DONE
               : SHM_AGAIN;
}

void shm_exchange_info(shm_t *shm, shm_op_t *op, dscomm_native_info_t *info)
{
    const shape_t *shape = shape_of(op);
    const uint64_t bytes = op->args->count * op->args->element;
    const uint64_t p = (uint64_t)shm->ranks;
    const uint64_t senders = shape->senders == ROOT ? 1 : p;
    const bool keeps =
        part_out(op, shm->rank).start == part_in(op, shm->rank).start;
    bool in_place;

    exchange_plan(shm, op, bytes);
    in_place = reference_of(shm, op, shm_reference_look) != 0;
    info->algorithm = in_place ? "read" : "pieces";
    info->steps = in_place ? 2 : 1;
    for (int r = 0; r < shm->ranks; r++) {
        const bool sends = takes_part(op, shape->senders, r);
        const bool receives = takes_part(op, shape->receivers, r);
        const uint64_t put = sends && !in_place ? shape->each ? p - 1 : 1 : 0;
        const uint64_t got = receives ? senders - sends : 0;
        const uint64_t own = sends && receives && !keeps;

        shm_info_add(info, got * bytes, 2 * (put + got + own) * bytes);
    }
}

int shm_exchange_begin(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    size_t longest = a->count * a->element;

    op->advance = exchange_advance;
    op->bytes = longest;
    if (shape_of(op)->counts) {
        op->stage = STAGE_COUNTS;
        op->taken = shm_take(shm, (size_t)shm->ranks * sizeof(uint64_t));
        return SHM_AGAIN;
    }
    if (a->recv_counts && a->coll == DSCOMM_COLL_ALL_GATHER_V)
        for (int r = 0; r < shm->ranks; r++)
            if (a->recv_counts[r] * a->element > longest)
                longest = a->recv_counts[r] * a->element;
    op->stage = STAGE_DATA;
    exchange_plan(shm, op, longest);
    copy_own_part(shm, op);
    return SHM_AGAIN;
}
