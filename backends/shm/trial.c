/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the stores of collectives by trying both kinds. The time of a cache
 * line between two caches is not enough to decide. If the caches are far apart,
 * streaming stores are several times faster on one processor and a quarter
 * slower on another.
 *
 * A trial runs before a collective, when the rings have been filled once. Until
 * then the time of a cache line decides. Each rank has a partner half the ranks
 * away. Both put pieces into their rings, by streaming stores, then by plain
 * ones, and copy the partner's pieces out. Before that, each writes to all
 * lines of its pieces, and reads its partner's: lines that the other rank has
 * never read are as fast by plain stores, and collectives with one root use no
 * ring but the root's. The pieces lie one behind the other,
 * as those of collectives do: a place that is written again soon is still in
 * the reader's cache, and slow. The median of the pieces is the time of a kind,
 * so that interruptions do not matter. Streaming stores must be clearly faster;
 * on the processors where they are of use at all, they take a third of the
 * time. All ranks use them if one pair of ranks needs them.
 *
 * Single copies (single.c) are tried by long and by short pieces, from which
 * the size follows from which on they are faster; and pieces that go one way
 * only, because then both ranks copy at the same time through a ring. Each
 * piece was written by its owner since it was last read, as programs write what
 * they send: a copy of bytes that are still in the reader's cache is faster
 * than anything that a collective does.
 *
 * Ranks move between processors, so that the trial is repeated. A piece of far
 * ranks takes 33 us by plain stores, so that a trial takes 0.7 ms, and 1.2 with
 * single copies; less if they are near. */
#include "config.h"

#include "backends/shm/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <glib.h>

#define PIECE ((size_t)64 << 10)
#define PIECES SHM_TRIAL_PIECES
/* bytes of a ring between two trials */
#define PERIOD ((uint64_t)512 << 20)
/* Streaming stores must take less than CLEARLY of the time, in percent. */
#define CLEARLY 75

/* Guesses that count, if there are no trials. */
#define FAR 16

/* bytes of the short pieces of single copies */
#define SHORT_PIECE ((size_t)4 << 10)
/* what is read in place is at least, and from at most this size on */
#define SINGLE_LEAST ((size_t)16 << 10)
#define SINGLE_MOST ((double)(1 << 20))
/* Single copies must take less than this part of the time, in percent. */
#define CLEARLY_SINGLE 75

enum { STAGE_TOUCH, STAGE_PIECES, STAGE_FOUND };
/* Words of a line of the trial. */
enum { WORD_STORE, WORD_SINGLE, WORD_ONE_WAY, WORD_SOURCE };

/* Ways that are tried, each by PIECES pieces. */
typedef enum {
    BY_STREAM,
    BY_PLAIN,
    BY_SINGLE,
    BY_SINGLE_SHORT,
    ONE_WAY /* by the faster stores, from the lower rank to the higher one */
} way_t;
G_STATIC_ASSERT(SHM_TRIAL_WAYS == ONE_WAY + 1);
/* Pieces from which single copies are made in turn: while one is read, its
 * owner writes the next one. */
#define SOURCES 2
/* pieces in a ring, those by single copies left out */
#define RING_PIECES (3 * PIECES)

static const char *const store_names[] = {
    [SHM_PLAIN] = "plain", [SHM_STREAM] = "streaming"};

int shm_trial_partner(int rank, int ranks)
{
    const int half = ranks / 2;

    if (rank < half)
        return rank + half;
    return rank < 2 * half ? rank - half : -1;
}

bool shm_trial_receives(int rank, int ranks)
{
    return rank >= ranks / 2 && shm_trial_partner(rank, ranks) >= 0;
}

static int compare_ns(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static uint64_t median_ns(uint64_t ns[PIECES])
{
    qsort(ns, PIECES, sizeof *ns, compare_ns);
    return ns[PIECES / 2];
}

/* The shortest payload that a single copy takes less time for than the rings,
 * from the times of a piece; 0: none. Both are taken to be lines over the
 * bytes, that of the rings through zero. */
static size_t single_least(double piece, double ring_ns, double single_ns,
                           double short_ns)
{
    const double slope = (single_ns - short_ns) / (piece - SHORT_PIECE);
    const double base = short_ns - slope * SHORT_PIECE;
    const double gain = ring_ns / piece * CLEARLY_SINGLE / 100 - slope;
    size_t least = SINGLE_LEAST;

    if (gain <= 0 || base / gain > SINGLE_MOST)
        return 0;
    while ((double)least < base / gain)
        least *= 2;
    return least;
}

void shm_trial_judge(const shm_tried_t *tried, shm_trial_t *ret_trial)
{
    uint64_t ns[SHM_TRIAL_WAYS];
    shm_tried_t sorted = *tried;

    for (int way = 0; way < SHM_TRIAL_WAYS; way++)
        ns[way] = median_ns(sorted.ns[way]);
    ret_trial->ns[SHM_PLAIN] = ns[BY_PLAIN];
    ret_trial->ns[SHM_STREAM] = ns[BY_STREAM];
    ret_trial->choice =
        ns[BY_STREAM] < ns[BY_PLAIN] * CLEARLY / 100 ? SHM_STREAM : SHM_PLAIN;
    ret_trial->single = ret_trial->single_one_way = 0;
    if (tried->ways <= BY_SINGLE || tried->refused)
        return;
    ret_trial->single = single_least(
        (double)tried->piece, (double)ret_trial->ns[ret_trial->choice],
        (double)ns[BY_SINGLE], (double)ns[BY_SINGLE_SHORT]);
    ret_trial->single_one_way =
        single_least((double)tried->piece, (double)ns[ONE_WAY],
                     (double)ns[BY_SINGLE], (double)ns[BY_SINGLE_SHORT]);
}

static bool is_single(way_t way)
{
    return way == BY_SINGLE || way == BY_SINGLE_SHORT;
}

/* Whether this rank puts data into its ring for a piece. */
static bool puts_data(const shm_t *shm, way_t way)
{
    return way == BY_STREAM || way == BY_PLAIN ||
           (way == ONE_WAY && !shm_trial_receives(shm->rank, shm->ranks));
}

/* The stores for a piece; those for all pieces that go one way are found before
 * the first one. */
static shm_store_t store_of(shm_t *shm, way_t way, size_t piece)
{
    shm_trial_t trial;

    if (way != ONE_WAY)
        return way == BY_STREAM ? SHM_STREAM : SHM_PLAIN;
    if (piece % PIECES == 0) {
        shm_trial_judge(&shm->tried, &trial);
        shm->tried.one_way = trial.choice;
    }
    return (shm_store_t)shm->tried.one_way;
}

static size_t piece_bytes(const shm_t *shm)
{
    return MIN(PIECE,
               (size_t)shm->layout.ring_size / 8 & ~(size_t)(SHM_LINE - 1));
}

static void tried_begin(shm_t *shm)
{
    shm_trial_free(shm); /* of a collective that was cancelled */
    shm->tried = (shm_tried_t){.piece = piece_bytes(shm), .ways = BY_SINGLE};
    shm->tried.source = g_try_malloc((SOURCES + 1) * shm->tried.piece);
    if (shm->tried.source) {
        memset(shm->tried.source, 0x3f, (SOURCES + 1) * shm->tried.piece);
        shm->tried.sink = shm->tried.source + SOURCES * shm->tried.piece;
    }
}

static size_t single_bytes(const shm_tried_t *tried, way_t way)
{
    return way == BY_SINGLE ? tried->piece : SHORT_PIECE;
}

/* The place of a single copy's source, from that of the first one on. */
static size_t single_offset(const shm_tried_t *tried, size_t piece)
{
    return piece % SOURCES * tried->piece;
}

void shm_trial_free(shm_t *shm)
{
    g_clear_pointer(&shm->tried.source, g_free);
}

/* Writes to each line of the pieces in this rank's ring, without a change, or
 * reads each one of another rank's. No piece has to map pages then, and each
 * is where collectives would find it: in the caches of both ranks. */
static void lines_touch(const shm_t *shm, int ring, bool write)
{
    const uint64_t size = shm->layout.ring_size;
    const uint64_t bytes = MIN(RING_PIECES * shm->tried.piece, size);
    uint64_t at = shm->place % size & ~(uint64_t)(SHM_LINE - 1);
    volatile unsigned char *place = shm_ring(shm, ring);

    for (uint64_t i = 0; i < bytes; i += SHM_LINE) {
        const unsigned char byte = place[at];

        if (write)
            place[at] = byte;
        at = at + SHM_LINE < size ? at + SHM_LINE : 0;
    }
}

/* Meets the partner, whose ring has memory then. */
static int trial_touch(shm_t *shm, shm_op_t *op)
{
    const int partner = shm_trial_partner(shm->rank, shm->ranks);
    shm_tried_t *tried = &shm->tried;
    bool reads = true;
    dscomm_status_t status;

    if (!op->published) {
        if (!op->taken)
            op->taken = shm_take(shm, 0);
        if (!shm_writable(shm, op->taken))
            return SHM_AGAIN;
        if ((status = shm_ring_ready(shm)))
            return status;
        lines_touch(shm, shm->rank, true);
        shm_line(shm, shm->rank, op->taken)->word[WORD_SOURCE] =
            shm->asks_single && shm->own->reads && tried->piece > SHORT_PIECE
                ? (uintptr_t)tried->source
                : 0;
        shm_raise(shm, op->taken);
        op->data = op->taken + 1;
        op->taken = 0;
        op->published++;
        shm->moves++;
    }
    for (; op->peer < shm->ranks; op->peer++)
        if (!shm_raised(shm, op->peer, op->data - 1))
            return SHM_AGAIN;
    for (int r = 0; r < shm->ranks; r++)
        reads = reads && shm_line(shm, r, op->data - 1)->word[WORD_SOURCE] != 0;
    if (reads)
        tried->ways = SHM_TRIAL_WAYS;
    if (partner >= 0) {
        tried->other = shm_line(shm, partner, op->data - 1)->word[WORD_SOURCE];
        lines_touch(shm, partner, false);
    }
    op->peer = 0;
    op->published = 0;
    op->stage = STAGE_PIECES;
    shm->moves++;
    return SHM_DONE;
}

static int piece_put(shm_t *shm, shm_op_t *op)
{
    shm_tried_t *tried = &shm->tried;
    const way_t way = (way_t)(op->published / PIECES);
    const bool single = is_single(way);

    if (!op->taken)
        op->taken = shm_take(shm, single ? 0 : tried->piece);
    if (!shm_writable(shm, op->taken))
        return SHM_AGAIN;
    /* Its owner has just written what is sent, and nobody has read it. */
    if (single)
        memset(tried->source + single_offset(tried, op->published),
               (int)op->published, single_bytes(tried, way));
    if (way != ONE_WAY)
        tried->begin_ns = (uint64_t)shm_now_ns();
    if (tried->source && puts_data(shm, way))
        shm_store_copy(store_of(shm, way, op->published),
                       shm_region(shm, shm->rank, op->taken), tried->source,
                       tried->piece);
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
    const way_t way = (way_t)(op->finished / PIECES);
    shm_tried_t *tried = &shm->tried;
    uint64_t now_ns;

    if (partner >= 0 &&
        (way != ONE_WAY || shm_trial_receives(shm->rank, shm->ranks))) {
        if (!shm_raised(shm, partner, step))
            return SHM_AGAIN;
        shm_path_look(&shm->path[partner], &shm_control(shm, partner)->done);
        if (is_single(way))
            tried->refused =
                shm_single_read(shm, partner, tried->sink,
                                tried->other +
                                    single_offset(tried, op->finished),
                                single_bytes(tried, way)) ||
                tried->refused;
        else if (tried->sink)
            memcpy(tried->sink, shm_region(shm, partner, step), tried->piece);
        now_ns = (uint64_t)shm_now_ns();
        tried->ns[way][op->finished % PIECES] = now_ns - tried->begin_ns;
        tried->begin_ns = now_ns; /* of the next piece, if it goes one way */
    }
    op->finished++;
    shm_done(shm, step + 1);
    shm->moves++;
    return SHM_DONE;
}

/* Puts what this rank has found into its line. */
static int found_put(shm_t *shm, shm_op_t *op)
{
    shm_trial_t *found = &shm->tried.found;

    if (!op->taken)
        op->taken = shm_take(shm, 0);
    if (!shm_writable(shm, op->taken))
        return SHM_AGAIN;
    shm_trial_judge(&shm->tried, found);
    shm_line(shm, shm->rank, op->taken)->word[WORD_STORE] = found->choice;
    /* A rank that has not measured agrees. */
    shm_line(shm, shm->rank, op->taken)->word[WORD_SINGLE] =
        shm_trial_partner(shm->rank, shm->ranks) < 0 ? 1 : found->single;
    shm_line(shm, shm->rank, op->taken)->word[WORD_ONE_WAY] =
        shm_trial_receives(shm->rank, shm->ranks) ? found->single_one_way : 1;
    op->data = op->taken;
    op->taken = 0;
    op->stage = STAGE_FOUND;
    shm_raise(shm, op->data);
    shm->moves++;
    return SHM_DONE;
}

static void choice_log(const shm_t *shm, const shm_trial_t *before)
{
    const shm_trial_t *trial = &shm->trial;
    const bool news = !before->chosen || before->choice != trial->choice;

    dscomm_log(news ? DSCOMM_LOG_INFO : DSCOMM_LOG_DEBUG, "shm",
               "group '%s': payloads go by %s stores; a piece takes %.1f us by "
               "plain ones, %.1f by streaming ones",
               shm->name, store_names[trial->choice],
               (double)trial->ns[SHM_PLAIN] / 1e3,
               (double)trial->ns[SHM_STREAM] / 1e3);
    if (before->single != trial->single ||
        before->single_one_way != trial->single_one_way)
        dscomm_log(DSCOMM_LOG_INFO, "shm",
                   "group '%s': payloads are read in place from %zu bytes on, "
                   "those that go one way from %zu on (0: never)",
                   shm->name, trial->single, trial->single_one_way);
}

/* The longest of the shortest payloads, unless a rank has none. */
static size_t single_of_all(const shm_t *shm, uint64_t step, int word)
{
    size_t least = 0;

    for (int r = 0; r < shm->ranks; r++) {
        const size_t one = shm_line(shm, r, step)->word[word];

        if (!one)
            return 0;
        least = MAX(least, one);
    }
    return least;
}

/* Decides by what all ranks have found, and begins the collective. */
static int trial_end(shm_t *shm, shm_op_t *op)
{
    const int partner = shm_trial_partner(shm->rank, shm->ranks);
    const shm_trial_t before = shm->trial;

    for (; op->peer < shm->ranks; op->peer++)
        if (!shm_raised(shm, op->peer, op->data))
            return SHM_AGAIN;
    shm_all_arrived(shm, op->data);
    shm->trial.choice = SHM_PLAIN;
    memcpy(shm->trial.ns, shm->tried.found.ns, sizeof shm->trial.ns);
    for (int r = 0; r < shm->ranks; r++)
        if (shm_line(shm, r, op->data)->word[WORD_STORE] == SHM_STREAM)
            shm->trial.choice = SHM_STREAM;
    if (shm->asks_single && shm->tried.ways > BY_SINGLE) {
        shm->trial.single = single_of_all(shm, op->data, WORD_SINGLE);
        shm->trial.single_one_way = single_of_all(shm, op->data, WORD_ONE_WAY);
    }
    shm_done(shm, op->data + 1);
    shm->trial.chosen = true;
    shm->trial.plain = shm->trial.choice == SHM_PLAIN && partner >= 0 &&
                       shm_path_is_far(&shm->path[partner]);
    shm->trial.next = shm->place + PERIOD;
    shm->store = shm->trial.choice;
    choice_log(shm, &before);
    shm_trial_free(shm);
    op->published = op->finished = 0;
    op->peer = op->stage = 0;
    op->first = op->data = shm->step;
    shm->moves++;
    return op->begin(shm, op);
}

static int trial_advance(shm_t *shm, shm_op_t *op)
{
    int result;

    if (op->stage == STAGE_TOUCH && (result = trial_touch(shm, op)) != SHM_DONE)
        return result;
    while (op->finished < shm->tried.ways * PIECES) {
        if (op->published == op->finished &&
            (result = piece_put(shm, op)) != SHM_DONE)
            return result;
        if ((result = piece_get(shm, op)) != SHM_DONE)
            return result;
    }
    if (op->stage == STAGE_PIECES && (result = found_put(shm, op)) != SHM_DONE)
        return result;
    return trial_end(shm, op);
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
    shm->trial.next = shm->layout.ring_size;
    shm->store = shm->trial.choice;
}

void shm_trial_guess(shm_t *shm)
{
    int peer = shm_trial_partner(shm->rank, shm->ranks);
    bool far;

    if (!shm->trying && shm->ranks > 1)
        peer = (shm->rank + 1 +
                (int)(shm->guesses++ % (unsigned)(shm->ranks - 1))) %
               shm->ranks;
    if (peer < 0)
        return;
    far = shm_path_store(&shm->path[peer], &shm_control(shm, peer)->done,
                         SHM_LOOK_MIN) == SHM_STREAM;
    shm->far = shm->trying ? far : CLAMP(shm->far + (far ? 1 : -1), -FAR, FAR);
    shm->store = shm->far > 0 ? SHM_STREAM : SHM_PLAIN;
}

/* Describes which payloads are read in place; "" if none may be. */
static void single_describe(shm_t *shm, char *text, size_t size)
{
    const shm_trial_t *trial = &shm->trial;

    *text = 0;
    if (trial->single || trial->single_one_way)
        snprintf(text, size,
                 ", read in place from %zu KiB on, one way from %zu (0: never)",
                 trial->single >> 10, trial->single_one_way >> 10);
    else if (shm->asks_single)
        snprintf(text, size, ", never read in place: %s",
                 shm_single_allowed(shm) ? "that is no faster"
                                         : "the kernel forbids it");
}

void shm_tuning(void *impl, char *text, size_t size)
{
    shm_t *shm = impl;
    const shm_trial_t *trial = &shm->trial;
    char single[96];

    if (!trial->chosen)
        return;
    single_describe(shm, single, sizeof single);
    snprintf(text, size,
             "%s stores (a piece: plain %.1f us, streaming %.1f us)%s",
             store_names[trial->choice], (double)trial->ns[SHM_PLAIN] / 1e3,
             (double)trial->ns[SHM_STREAM] / 1e3, single);
}
