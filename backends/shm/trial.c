/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the stores of collectives: each group tries plain and streaming
 * stores for each size class, and keeps the faster ones. The time of a cache
 * line between two caches is not enough to decide. If the caches are far apart,
 * streaming stores are several times faster on one processor and a quarter
 * slower on another.
 *
 * A trial has four turns: plain, streaming, plain, streaming. A turn first goes
 * once round the rings without timing, because streaming stores leave the rings
 * out of the caches and plain ones leave them there. The timed calls all have
 * one key (kind and size). The time of a call is counted from the beginning of
 * the last rank to the end of the last rank, so that early ranks do not count.
 * An exception is a rank that only sends, such as the root of a broadcast: it
 * runs ahead, and receivers then find data that was stored long before. So its
 * whole time counts. One call may be very short, so the calls of a turn are
 * divided into windows, and the second shortest window is the time of the turn.
 * Streaming stores are chosen only if they are clearly faster in both halves of
 * the trial; so after interruptions plain stores are chosen.
 *
 * All ranks count the same calls and bytes, so they change turns together. Each
 * rank stores its times in its control block. The steps after the trial show
 * when all ranks have done so; then every rank decides by the times of all, and
 * so decides the same. Ranks move between processors, so a trial is repeated
 * after 64 times its own traffic. */
#include "config.h"

#include "backends/shm/copy.h"
#include "backends/shm/request.h"

#include <stdio.h>

/* traffic between two trials, in multiples of a trial's traffic */
#define REST 64
/* number of other calls after which a key is given up */
#define AWAY_MOST 256
/* Bytes of the timed calls of a turn: the size of the ring, because the root of
 * a broadcast waits each time that the ring is full; but the number of calls
 * has limits. */
#define TIMED_BYTES ((size_t)4 << 20)
/* windows of a turn; also the least number of its calls */
#define WINDOWS 4
/* streaming stores must save at least 1 / CLEARLY of the time */
#define CLEARLY 20

static const char *const class_names[SHM_CLASSES] = {
    "less than 1K", "1K to 16K", "16K to 128K", "128K to 1M", "1M and more"};

static const char *const store_names[] = {
    [SHM_PLAIN] = "plain", [SHM_STREAM] = "streaming"};

static shm_store_t turn_store(unsigned turn)
{
    return turn % 2 ? SHM_STREAM : SHM_PLAIN;
}

static uint8_t timed_calls(size_t bytes)
{
    size_t calls = WINDOWS;

    while (calls < SHM_TRIAL_TIMED && calls * bytes < TIMED_BYTES)
        calls *= 2;
    return (uint8_t)calls;
}

static void trial_start(shm_trial_t *trial, shm_key_t key, uint64_t place,
                        uint64_t ring)
{
    trial->stage = SHM_TRIAL_TURNS;
    trial->turn = trial->timed = 0;
    trial->away = 0;
    trial->key = key;
    trial->calls = timed_calls(key.bytes);
    trial->begun = place;
    trial->next = place + ring;
    trial->store = turn_store(0);
}

bool shm_trial_next(shm_trial_t *trial, shm_key_t key, uint64_t place,
                    uint64_t ring)
{
    if (trial->stage == SHM_TRIAL_REST && place >= trial->next)
        trial_start(trial, key, place, ring);
    if (trial->stage != SHM_TRIAL_TURNS)
        return false;
    if (key.bytes != trial->key.bytes || key.coll != trial->key.coll) {
        if (++trial->away > AWAY_MOST)
            trial_start(trial, key, place, ring);
        return false;
    }
    trial->away = 0;
    return place >= trial->next;
}

unsigned shm_trial_timed(shm_trial_t *trial, uint64_t place, uint64_t step,
                         uint64_t ring)
{
    const unsigned call = trial->turn * trial->calls + trial->timed;

    if (++trial->timed < trial->calls)
        return call;
    trial->timed = 0;
    trial->next = place + ring;
    if (++trial->turn < SHM_TRIAL_TURN_COUNT) {
        trial->store = turn_store(trial->turn);
    } else {
        trial->stage = SHM_TRIAL_WAIT;
        trial->store = trial->choice;
        trial->step = step;
    }
    return call;
}

/* Returns the time of a call; UINT64_MAX if a rank has not timed it. */
static uint64_t call_ns(const shm_span_t *const *spans, int ranks,
                        unsigned call)
{
    uint64_t begin_ns = 0, end_ns = 0, ahead_ns = 0;

    for (int r = 0; r < ranks; r++) {
        const shm_span_t span = spans[r][call];
        const uint64_t own_end_ns = span.begin_ns + span.ns;

        if (!span.begin_ns)
            return UINT64_MAX;
        begin_ns = span.begin_ns > begin_ns ? span.begin_ns : begin_ns;
        end_ns = own_end_ns > end_ns ? own_end_ns : end_ns;
        if (span.ahead && span.ns > ahead_ns)
            ahead_ns = span.ns;
    }
    return end_ns - begin_ns > ahead_ns ? end_ns - begin_ns : ahead_ns;
}

/* Returns the time of `size` calls from number `first` on; UINT64_MAX if one of
 * them does not count. */
static uint64_t window_ns(const shm_span_t *const *spans, int ranks,
                          unsigned first, unsigned size)
{
    uint64_t sum_ns = 0;

    for (unsigned i = 0; i < size; i++) {
        const uint64_t ns = call_ns(spans, ranks, first + i);

        if (ns == UINT64_MAX)
            return ns;
        sum_ns += ns;
    }
    return sum_ns / size;
}

/* Returns the time of a turn: its second shortest window, which is neither an
 * outlier nor interrupted; UINT64_MAX if too few windows count. */
static uint64_t turn_ns(const shm_span_t *const *spans, int ranks,
                        unsigned calls, unsigned turn)
{
    const unsigned size = calls / WINDOWS;
    uint64_t shortest_ns = UINT64_MAX, second_ns = UINT64_MAX;

    for (unsigned w = 0; w < WINDOWS; w++) {
        const uint64_t ns =
            window_ns(spans, ranks, turn * calls + w * size, size);

        if (ns < shortest_ns) {
            second_ns = shortest_ns;
            shortest_ns = ns;
        } else if (ns < second_ns) {
            second_ns = ns;
        }
    }
    return second_ns;
}

shm_store_t shm_trial_judge(const shm_span_t *const *spans, int ranks,
                            unsigned calls, uint64_t ret_ns[2])
{
    bool faster = true;

    ret_ns[SHM_PLAIN] = ret_ns[SHM_STREAM] = UINT64_MAX;
    for (unsigned turn = 0; turn < SHM_TRIAL_TURN_COUNT; turn += 2) {
        const uint64_t plain = turn_ns(spans, ranks, calls, turn);
        const uint64_t stream = turn_ns(spans, ranks, calls, turn + 1);

        faster =
            faster && plain != UINT64_MAX && stream < plain - plain / CLEARLY;
        if (plain < ret_ns[SHM_PLAIN])
            ret_ns[SHM_PLAIN] = plain;
        if (stream < ret_ns[SHM_STREAM])
            ret_ns[SHM_STREAM] = stream;
    }
    return faster ? SHM_STREAM : SHM_PLAIN;
}

void shm_trial_conclude(shm_trial_t *trial, shm_store_t choice, uint64_t place)
{
    trial->stage = SHM_TRIAL_REST;
    trial->choice = trial->store = (uint8_t)choice;
    trial->next = place + REST * (place - trial->begun);
}

static void log_choice(const shm_t *shm, int class, const shm_trial_t *before,
                       const uint64_t ns[2])
{
    const shm_trial_t *trial = &shm->trial[class];
    const bool news = !before->chosen || before->choice != trial->choice;

    dscomm_log(news ? DSCOMM_LOG_INFO : DSCOMM_LOG_DEBUG, "shm",
               "group '%s': payloads of %s go by %s stores (plain %.1f us, "
               "streaming %.1f us)",
               shm->name, class_names[class], store_names[trial->choice],
               (double)ns[SHM_PLAIN] / 1e3, (double)ns[SHM_STREAM] / 1e3);
}

/* Ends a trial. If no call of a kind counts, the choice stays. */
static void trial_end(shm_t *shm, int class)
{
    shm_trial_t *trial = &shm->trial[class];
    const shm_trial_t before = *trial;
    shm_store_t choice;
    uint64_t ns[2];

    for (int r = 0; r < shm->ranks; r++)
        shm->sources[r] = shm_control(shm, r)->trial[class];
    choice = shm_trial_judge((const shm_span_t *const *)shm->sources,
                             shm->ranks, trial->calls, ns);
    if (ns[SHM_PLAIN] == UINT64_MAX || ns[SHM_STREAM] == UINT64_MAX) {
        shm_trial_conclude(trial, (shm_store_t)trial->choice, shm->place);
        return;
    }
    shm_trial_conclude(trial, choice, shm->place);
    trial->chosen = true;
    log_choice(shm, class, &before, ns);
}

/* False for the _v forms, because their counts, and so their classes, differ
 * between ranks. */
static bool is_tried(const shm_t *shm, const dscomm_coll_args_t *args)
{
    return shm->trying && args->coll != DSCOMM_COLL_ALL_GATHER_V &&
           args->coll != DSCOMM_COLL_REDUCE_SCATTER_V &&
           args->coll != DSCOMM_COLL_GATHER_V &&
           args->coll != DSCOMM_COLL_SCATTER_V &&
           args->coll != DSCOMM_COLL_ALL_TO_ALL_V;
}

void shm_trial_begin(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *args = op->args;
    const size_t bytes = args->count * args->element;
    const int class = shm_class(bytes);
    shm_trial_t *trial = &shm->trial[class];

    if (class && is_tried(shm, args)) {
        op->class = class;
        if (shm_trial_next(trial, (shm_key_t){bytes, args->coll}, shm->place,
                           shm->layout.ring_size))
            op->begin_ns = (uint64_t)shm_now_ns();
    }
    shm->store = trial->store;
}

static bool only_sends(const shm_t *shm, const dscomm_coll_args_t *args)
{
    const bool root = args->root == shm->rank;

    if (args->coll == DSCOMM_COLL_BROADCAST ||
        args->coll == DSCOMM_COLL_SCATTER)
        return root;
    return !root && (args->coll == DSCOMM_COLL_GATHER ||
                     args->coll == DSCOMM_COLL_REDUCE);
}

/* Records the span of a call. A buffer that was read in place was not copied,
 * so its call does not count. */
static void record_span(shm_t *shm, const shm_op_t *op)
{
    shm_trial_t *trial = &shm->trial[op->class];
    const unsigned call =
        shm_trial_timed(trial, shm->place, shm->step, shm->layout.ring_size);
    const uint64_t ns = (uint64_t)shm_now_ns() - op->begin_ns;
    const bool copied = op->region && !op->referenced;

    shm->own->trial[op->class][call] = (shm_span_t){
        .begin_ns = copied ? op->begin_ns : 0,
        .ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX,
        .ahead = only_sends(shm, op->args),
    };
}

/* True if all ranks have recorded their times. Each rank has waited for a line
 * of op->first, which others reuse only after all ranks have read the step that
 * is SHM_LINES earlier. */
static bool all_recorded(const shm_trial_t *trial, const shm_op_t *op)
{
    return trial->stage == SHM_TRIAL_WAIT &&
           op->first >= trial->step + SHM_LINES - 1;
}

void shm_trial_end(shm_t *shm, const shm_op_t *op)
{
    if (op->begin_ns)
        record_span(shm, op);
    else if (all_recorded(&shm->trial[op->class], op))
        trial_end(shm, op->class);
}

void shm_tuning(void *impl, char *text, size_t size)
{
    const shm_t *shm = impl;
    size_t used = 0;

    for (int c = 0; c < SHM_CLASSES && used < size; c++)
        if (shm->trial[c].chosen)
            used += (size_t)snprintf(text + used, size - used, "%s%s %s",
                                     used ? ", " : "stores of ", class_names[c],
                                     store_names[shm->trial[c].choice]);
}
