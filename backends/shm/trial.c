/* SPDX-License-Identifier: BSD-3-Clause */
/* By which stores are collectives faster? What a line costs between two caches
 * does not tell: where lines are far, streaming is several times faster on one
 * processor and a quarter slower on another. So both are tried, for each class
 * of sizes: the first call of a key (what is called, on how much) warms up, the
 * next ones take turns, and the shorter of the shortest times wins. All ranks
 * count the same calls, so they take turns together. Only calls that wait for
 * all ranks are timed: in others the time of the readers does not show. A
 * trial costs what the slower stores take longer in a few calls, and is
 * repeated now and then, since ranks move from processor to processor. */
#include "config.h"

#include "backends/shm/copy.h"

#include <stdio.h>

#define REST 2048 /* calls from one trial to the next */
/* Calls of other keys after which the key is changed. */
#define OTHERS_MOST 32

/* Bytes from which each class begins, and how often it tries each kind: long
 * calls vary less and cost more. */
static const struct {
    size_t from;
    unsigned rounds;
    const char *name;
} classes[SHM_CLASSES] = {
    {(size_t)1 << 10, 4, "1K to 16K"},
    {(size_t)16 << 10, 4, "16K to 128K"},
    {(size_t)128 << 10, 3, "128K to 1M"},
    {(size_t)1 << 20, 2, "1M and more"},
};

static const char *const names[] = {
    [SHM_PLAIN] = "plain", [SHM_STREAM] = "streaming"};

static shm_store_t turn_of(const shm_trial_t *trial)
{
    if (!trial->made)
        return (shm_store_t)trial->store;
    return trial->made % 2 ? SHM_PLAIN : SHM_STREAM;
}

shm_store_t shm_trial_next(shm_trial_t *trial, uint32_t key, bool *ret_timed)
{
    *ret_timed = false;
    if (trial->rest) {
        trial->rest--;
        return (shm_store_t)trial->store;
    }
    if (trial->made && key != trial->key) {
        if (++trial->others < OTHERS_MOST)
            return (shm_store_t)trial->store;
        trial->made = 0;
    }
    if (!trial->made) {
        trial->key = key;
        trial->others = 0;
        trial->best_ns[SHM_PLAIN] = trial->best_ns[SHM_STREAM] = UINT64_MAX;
    }
    *ret_timed = true;
    return turn_of(trial);
}

/* Equal times are for plain stores, which leave memory alone. */
bool shm_trial_note(shm_trial_t *trial, uint64_t ns, unsigned rounds)
{
    uint64_t *best = &trial->best_ns[turn_of(trial)];

    if (trial->made && ns < *best)
        *best = ns;
    if (++trial->made <= 2 * rounds)
        return false;
    trial->store =
        trial->best_ns[SHM_STREAM] <
                trial->best_ns[SHM_PLAIN] - trial->best_ns[SHM_PLAIN] / 16
            ? SHM_STREAM
            : SHM_PLAIN;
    trial->chosen = true;
    trial->made = 0;
    trial->rest = REST;
    return true;
}

/* -1 where the payload is too short to matter. */
static int class_of(const dscomm_coll_args_t *args)
{
    const size_t bytes = args->count * args->element;
    int class = SHM_CLASSES - 1;

    while (class >= 0 && bytes < classes[class].from)
        class --;
    return class;
}

void shm_trial_begin(shm_t *shm, const dscomm_coll_args_t *args)
{
    const int class = class_of(args);

    shm->store = class < 0 ? SHM_PLAIN : shm->trial[class].store;
}

static bool waits_for_all(const dscomm_coll_args_t *args)
{
    return args->coll == DSCOMM_COLL_ALL_REDUCE ||
           args->coll == DSCOMM_COLL_ALL_GATHER ||
           args->coll == DSCOMM_COLL_REDUCE_SCATTER ||
           args->coll == DSCOMM_COLL_ALL_TO_ALL;
}

int shm_trial_start(shm_t *shm, const dscomm_coll_args_t *args)
{
    const int class = class_of(args);
    bool timed;

    if (class < 0 || !shm->trying || !waits_for_all(args))
        return -1;
    shm->store = shm_trial_next(&shm->trial[class], args->fingerprint, &timed);
    return timed ? class : -1;
}

/* Two ranks are a pair: what holds for their collectives holds for messages. */
static void tell_paths(shm_t *shm, const shm_trial_t *trial)
{
    for (int r = 0; shm->ranks == 2 && r < 2; r++) {
        shm->path[r].store = trial->store;
        shm->path[r].left = 0;
    }
}

/* Only a first choice, or another one, is news. */
void shm_trial_end(shm_t *shm, int class, uint64_t ns)
{
    shm_trial_t *trial = &shm->trial[class];
    const shm_trial_t before = *trial;

    if (!shm_trial_note(trial, ns, classes[class].rounds))
        return;
    tell_paths(shm, trial);
    dscomm_log(before.chosen && before.store == trial->store ? DSCOMM_LOG_DEBUG
                                                             : DSCOMM_LOG_INFO,
               "shm",
               "group '%s': payloads of %s go by %s stores (plain %.1f us, "
               "stream %.1f us)",
               shm->name, classes[class].name, names[trial->store],
               (double)trial->best_ns[SHM_PLAIN] / 1e3,
               (double)trial->best_ns[SHM_STREAM] / 1e3);
}

void shm_tuning(void *impl, char *text, size_t size)
{
    const shm_t *shm = impl;
    size_t used = 0;

    for (int c = 0; c < SHM_CLASSES && used < size; c++)
        if (shm->trial[c].chosen)
            used += (size_t)snprintf(
                text + used, size - used, "%s%s %s", used ? ", " : "stores of ",
                classes[c].name, names[shm->trial[c].store]);
}
