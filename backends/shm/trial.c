/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the stores of collectives by trying both kinds. The time of a cache
 * line between two caches is not enough to decide. If the caches are far apart,
 * streaming stores are several times faster on one processor and a quarter
 * slower on another.
 *
 * A trial runs before a collective, when enough bytes have gone through the
 * rings. Each rank has a partner half the ranks away. Both put pieces into
 * their rings, by streaming stores, then by plain ones, and copy the partner's
 * pieces out. The pieces lie one behind the other, as those of collectives do:
 * a place that is written again soon is still in the reader's cache, and slow.
 * The median of the pieces is the time of a kind, so that interruptions do not
 * matter. Streaming stores must be clearly faster; on the processors where they
 * are of use at all, they take a third of the time. All ranks use them if one
 * pair of ranks needs them.
 *
 * Ranks move between processors, so that the trial is repeated. A piece of far
 * ranks takes 45 us by plain stores, so that a trial takes half a millisecond
 * at most, and a tenth of one if they are near. */
#include "config.h"

#include "backends/shm/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <glib.h>

#define PIECE ((size_t)64 << 10)
#define PIECES SHM_TRIAL_PIECES
/* bytes of a ring before the first trial, and between two */
#define FIRST ((uint64_t)64 << 10)
#define PERIOD ((uint64_t)256 << 20)
/* Streaming stores must take less than CLEARLY of the time, in percent. */
#define CLEARLY 75

enum { STAGE_TOUCH, STAGE_PIECES, STAGE_VERDICT };

static const char *const store_names[] = {
    [SHM_PLAIN] = "plain", [SHM_STREAM] = "streaming"};

static int compare_ns(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

shm_store_t shm_trial_judge(uint64_t ns[2][PIECES], uint64_t ret_ns[2])
{
    for (int store = 0; store < 2; store++) {
        qsort(ns[store], PIECES, sizeof **ns, compare_ns);
        ret_ns[store] = ns[store][PIECES / 2];
    }
    return ret_ns[SHM_STREAM] < ret_ns[SHM_PLAIN] * CLEARLY / 100 ? SHM_STREAM
                                                                  : SHM_PLAIN;
}

int shm_trial_partner(int rank, int ranks)
{
    const int half = ranks / 2;

    if (rank < half)
        return rank + half;
    return rank < 2 * half ? rank - half : -1;
}

static void tried_begin(shm_t *shm)
{
    const size_t most =
        (size_t)shm->layout.ring_size / 8 & ~(size_t)(SHM_LINE - 1);

    shm_trial_free(shm); /* of a collective that was cancelled */
    shm->tried = (shm_tried_t){.piece = MIN(PIECE, most)};
    shm->tried.source = g_try_malloc(2 * shm->tried.piece);
    if (shm->tried.source) {
        memset(shm->tried.source, 0x3f, 2 * shm->tried.piece);
        shm->tried.sink = shm->tried.source + shm->tried.piece;
    }
}

void shm_trial_free(shm_t *shm)
{
    g_clear_pointer(&shm->tried.source, g_free);
}

/* The kind of stores for a piece. */
static shm_store_t piece_store(size_t piece)
{
    return piece < PIECES ? SHM_STREAM : SHM_PLAIN;
}

/* Maps the pages of the pieces, so that no piece has to; write: this rank's. */
static void pages_touch(const shm_t *shm, int ring, bool write)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint64_t at = shm->place % shm->layout.ring_size;
    const uint64_t end =
        MIN(at + 2 * PIECES * shm->tried.piece, shm->layout.ring_size);
    volatile unsigned char *bytes = shm_ring(shm, ring);

    for (uint64_t i = at; i < end; i += page) {
        const unsigned char byte = bytes[i];

        if (write)
            bytes[i] = byte;
    }
}

/* Meets the partner, whose ring has memory then. */
static int trial_touch(shm_t *shm, shm_op_t *op)
{
    const int partner = shm_trial_partner(shm->rank, shm->ranks);
    dscomm_status_t status;

    if (!op->published) {
        if (!op->taken)
            op->taken = shm_take(shm, 0);
        if (!shm_writable(shm, op->taken))
            return SHM_AGAIN;
        if ((status = shm_ring_ready(shm)))
            return status;
        pages_touch(shm, shm->rank, true);
        shm_raise(shm, op->taken);
        op->data = op->taken + 1;
        op->taken = 0;
        op->published++;
        shm->moves++;
    }
    if (partner >= 0) {
        if (!shm_raised(shm, partner, op->data - 1))
            return SHM_AGAIN;
        pages_touch(shm, partner, false);
    }
    op->published = 0;
    op->stage = STAGE_PIECES;
    shm->moves++;
    return SHM_DONE;
}

static int piece_put(shm_t *shm, shm_op_t *op)
{
    shm_tried_t *tried = &shm->tried;
    dscomm_status_t status;

    if (!op->taken)
        op->taken = shm_take(shm, tried->piece);
    if (!shm_writable(shm, op->taken))
        return SHM_AGAIN;
    if ((status = shm_ring_ready(shm)))
        return status;
    tried->begin_ns = (uint64_t)shm_now_ns();
    if (tried->source) {
        shm->store = (uint8_t)piece_store(op->published);
        shm_hand_over(shm, shm_region(shm, shm->rank, op->taken), tried->source,
                      tried->piece);
    }
    shm_raise(shm, op->taken);
    op->taken = 0;
    op->published++;
    shm->moves++;
    return SHM_DONE;
}

static int piece_get(shm_t *shm, shm_op_t *op)
{
    const int partner = shm_trial_partner(shm->rank, shm->ranks);
    const uint64_t step = op->data + op->finished;
    shm_tried_t *tried = &shm->tried;

    if (partner >= 0) {
        if (!shm_raised(shm, partner, step))
            return SHM_AGAIN;
        shm_path_look(&shm->path[partner], &shm_control(shm, partner)->done);
        if (tried->sink)
            memcpy(tried->sink, shm_region(shm, partner, step), tried->piece);
        tried->ns[piece_store(op->finished)][op->finished % PIECES] =
            (uint64_t)shm_now_ns() - tried->begin_ns;
    }
    op->finished++;
    shm_done(shm, step + 1);
    shm->moves++;
    return SHM_DONE;
}

/* Puts this rank's verdict into its line. */
static int verdict_put(shm_t *shm, shm_op_t *op)
{
    if (!op->taken)
        op->taken = shm_take(shm, 0);
    if (!shm_writable(shm, op->taken))
        return SHM_AGAIN;
    shm->trial.choice = (uint8_t)shm_trial_judge(shm->tried.ns, shm->trial.ns);
    shm_line(shm, shm->rank, op->taken)->word[0] = shm->trial.choice;
    op->data = op->taken;
    op->taken = 0;
    op->stage = STAGE_VERDICT;
    shm_raise(shm, op->data);
    shm->moves++;
    return SHM_DONE;
}

static void choice_log(const shm_t *shm, const shm_trial_t *before)
{
    const shm_trial_t *trial = &shm->trial;
    const bool news = !before->chosen || before->choice != trial->choice;

    dscomm_log(news ? DSCOMM_LOG_INFO : DSCOMM_LOG_DEBUG, "shm",
               "group '%s': payloads go by %s stores; 64 KiB take %.1f us by "
               "plain ones, %.1f by streaming ones",
               shm->name, store_names[trial->choice],
               (double)trial->ns[SHM_PLAIN] / 1e3,
               (double)trial->ns[SHM_STREAM] / 1e3);
}

/* Decides by the verdicts of all ranks, and begins the collective. */
static int trial_end(shm_t *shm, shm_op_t *op, const shm_trial_t *before)
{
    const int partner = shm_trial_partner(shm->rank, shm->ranks);

    for (; op->peer < shm->ranks; op->peer++)
        if (!shm_raised(shm, op->peer, op->data))
            return SHM_AGAIN;
    shm_all_arrived(shm, op->data);
    for (int r = 0; r < shm->ranks; r++)
        if (shm_line(shm, r, op->data)->word[0] == SHM_STREAM)
            shm->trial.choice = SHM_STREAM;
    shm_done(shm, op->data + 1);
    shm->trial.chosen = true;
    shm->trial.plain = shm->trial.choice == SHM_PLAIN && partner >= 0 &&
                       shm_path_is_far(&shm->path[partner]);
    shm->trial.next = shm->place + PERIOD;
    shm->store = shm->trial.choice;
    choice_log(shm, before);
    shm_trial_free(shm);
    op->published = op->finished = 0;
    op->peer = op->stage = 0;
    op->first = op->data = shm->step;
    shm->moves++;
    return op->begin(shm, op);
}

static int trial_advance(shm_t *shm, shm_op_t *op)
{
    const shm_trial_t before = shm->trial;
    int result;

    if (op->stage == STAGE_TOUCH && (result = trial_touch(shm, op)) != SHM_DONE)
        return result;
    while (op->finished < 2 * PIECES) {
        if (op->published == op->finished &&
            (result = piece_put(shm, op)) != SHM_DONE)
            return result;
        if ((result = piece_get(shm, op)) != SHM_DONE)
            return result;
    }
    if (op->stage == STAGE_PIECES &&
        (result = verdict_put(shm, op)) != SHM_DONE)
        return result;
    return trial_end(shm, op, &before);
}

bool shm_trial_due(const shm_t *shm)
{
    return shm->trying && shm->place >= shm->trial.next;
}

int shm_trial_begin(shm_t *shm, shm_op_t *op)
{
    tried_begin(shm);
    dscomm_phase(op->args, DSCOMM_PHASE_OTHER);
    op->advance = trial_advance;
    return SHM_AGAIN;
}

void shm_trial_init(shm_t *shm, const shm_t *parent)
{
    if (parent)
        shm->trial = parent->trial;
    shm->trial.next = FIRST;
    shm->store = shm->trial.choice;
}

void shm_tuning(void *impl, char *text, size_t size)
{
    const shm_trial_t *trial = &((const shm_t *)impl)->trial;

    if (trial->chosen)
        snprintf(text, size,
                 "%s stores (64 KiB: plain %.1f us, streaming %.1f us)",
                 store_names[trial->choice], (double)trial->ns[SHM_PLAIN] / 1e3,
                 (double)trial->ns[SHM_STREAM] / 1e3);
}
