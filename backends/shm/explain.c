/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about ranks that are late. */
#include "config.h"

#include "backends/shm/p2p.h"

#include <stdio.h>
#include <string.h>

#define NAMED 8 /* ranks listed in one sentence */

/* Appends as snprintf does, never beyond size. */
static size_t text_append(char *text, size_t size, size_t used,
                          const char *word)
{
    int n = snprintf(text + used, size - used, "%s%s", used ? ", " : "", word);

    return n < 0 || (size_t)n >= size - used ? size - 1 : used + (size_t)n;
}

/* Returns which of two late ranks is more likely the culprit: one that is
 * stopped, or the one that is further behind, because the other may wait for
 * it. suspect -1: none. */
static int likelier(const shm_t *shm, int suspect, int rank)
{
    if (suspect < 0)
        return rank;
    if (shm_peers_stopped(shm, suspect) != shm_peers_stopped(shm, rank))
        return shm_peers_stopped(shm, suspect) ? suspect : rank;
    return shm_last_sequence(shm, rank) < shm_last_sequence(shm, suspect)
               ? rank
               : suspect;
}

/* Lists ranks that have not begun operation sequence, with their state;
 * returns the likely culprit, or -1. */
static int list_late(const shm_t *shm, uint64_t sequence, char *text,
                     size_t size)
{
    char word[96];
    size_t used = 0;
    int late = 0, suspect = -1;

    text[0] = 0;
    for (int r = 0; r < shm->ranks; r++) {
        if (shm_last_sequence(shm, r) >= sequence)
            continue;
        suspect = likelier(shm, suspect, r);
        if (late++ < NAMED)
            used = text_append(text, size, used,
                               shm_peers_describe(shm, r, word, sizeof word));
    }
    if (late > NAMED) {
        snprintf(word, sizeof word, "and %d more", late - NAMED);
        text_append(text, size, used, word);
    }
    return suspect;
}

/* The progress of a rank in the current operation: steps whose flags it has
 * raised, plus steps that it has read. */
static uint64_t rank_reached(const shm_t *shm, int rank)
{
    uint64_t raised = shm->op_step;

    for (uint64_t step = shm->op_step; step < shm->step; step++) {
        uint64_t flag = atomic_load_explicit(
            &shm_control(shm, rank)->line[step % SHM_LINES].flag,
            memory_order_acquire);

        if (flag == (step << 32 | shm->op_chain))
            raised = step + 1;
    }
    return ((raised - shm->op_step) << 32) +
           (atomic_load(&shm_control(shm, rank)->done) > shm->op_step
                ? atomic_load(&shm_control(shm, rank)->done) - shm->op_step
                : 0);
}

/* True if the rank has read all steps of the current operation that this rank
 * knows of. It needs nothing more then, and no other rank waits for it. */
static bool rank_is_through(const shm_t *shm, int rank)
{
    return atomic_load(&shm_control(shm, rank)->done) >= shm->step;
}

/* All ranks have begun it: lists those with the least progress, unless all
 * have the same, and those that are stopped in it: a stopped root may be ahead
 * of the ranks that wait for it. Returns the likely culprit, or -1. */
static int explain_begun(const shm_t *shm, const char *what, char *text,
                         size_t size)
{
    char word[96], list[320] = "";
    uint64_t least = UINT64_MAX, most = 0;
    size_t used = 0;
    int suspect = -1;

    for (int r = 0; r < shm->ranks; r++) {
        uint64_t at = rank_reached(shm, r);

        least = at < least ? at : least;
        most = at > most ? at : most;
    }
    for (int r = 0; r < shm->ranks; r++) {
        if ((least == most || rank_reached(shm, r) > least) &&
            (rank_is_through(shm, r) || !shm_peers_stopped(shm, r)))
            continue;
        used = text_append(list, sizeof list, used,
                           shm_peers_describe(shm, r, word, sizeof word));
        suspect = likelier(shm, suspect, r);
    }
    snprintf(text, size,
             "all ranks began %s of group '%s', but %s did not finish", what,
             shm->name, list[0] ? list : "some of them");
    return suspect;
}

/* Writes the message that this rank waits for, if there is one; returns the
 * rank it waits for, or -1. */
static int explain_messages(const shm_t *shm, char *text, size_t size)
{
    const shm_request_t *receive = shm->p2p->posted.head;
    char who[96] = "any rank";

    if (receive) {
        if (receive->p2p.message.peer >= 0)
            shm_peers_describe(shm, receive->p2p.message.peer, who, sizeof who);
        snprintf(text, size,
                 "rank %d of group '%s' still waits for a message with tag %d "
                 "from %s",
                 shm_number(shm, shm->rank), shm->name,
                 receive->p2p.message.tag, who);
        return receive->p2p.message.peer;
    }
    for (int r = 0; r < shm->ranks; r++) {
        const shm_pair_t *pair = &shm->p2p->pairs[r];

        if (!pair->interest)
            continue;
        snprintf(
            text, size,
            "rank %d of group '%s' still waits for %s to take or to send a "
            "message",
            shm_number(shm, shm->rank), shm->name,
            shm_peers_describe(shm, r, who, sizeof who));
        return r;
    }
    snprintf(text, size, "rank %d of group '%s' waits for nothing",
             shm_number(shm, shm->rank), shm->name);
    return -1;
}

int shm_explain(void *impl, const dscomm_request_t *request, char *text,
                size_t size)
{
    const shm_t *shm = impl;
    char what[160], list[320];
    int late;

    if (request && request->status == DSCOMM_ERR_PEER_FAILED) {
        shm_left_describe(shm, request->source, text, size);
        return request->source;
    }
    if (!shm->op_step)
        return explain_messages(shm, text, size);
    dscomm_coll_describe(shm_call(shm), what, sizeof what);
    late = list_late(shm, shm->op_args->sequence, list, sizeof list);
    if (late < 0)
        return explain_begun(shm, what, text, size);
    snprintf(text, size, "%s of group '%s' still waits for %s", what, shm->name,
             list);
    return late;
}
