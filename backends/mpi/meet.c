/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a group meet in its store before they make a communicator,
 * because MPI would wait for missing ranks for ever, and cannot tell which ones
 * are missing. The decision whether there will be a group is one key of the
 * store, which is written only once: by the last rank to arrive, or by a rank
 * that cannot take part or has reached its deadline. So either all ranks call
 * MPI to make the communicator, or none does. */
#include "config.h"

#include "backends/mpi/engine.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define NAMES_MOST 8
#define TEXT_MAX 512

/* The decision: the map of all ranks; or a refusal, which has the map's first
 * members with a status, followed by a packed failure. */
typedef struct {
    mpi_map_t *map; /* to be given to dscomm_store_free() */
    size_t size;
} decision_t;

/* Returns 0 if rank's card is compatible with rank 0's; else writes the reason
 * to text and returns its length. */
static int card_object(const dscomm_backend_args_t *args,
                       const mpi_card_t *const *cards, int rank, char *text,
                       size_t size)
{
    const mpi_card_t *card = cards[rank];
    char first[DSCOMM_CREATION_RANK_MAX], other[DSCOMM_CREATION_RANK_MAX];

    dscomm_backend_creation_rank(args, 0, first);
    dscomm_backend_creation_rank(args, rank, other);
    if (strcmp(card->engine, cards[0]->engine))
        return snprintf(text, size,
                        "%s uses %s and %s %s; set "
                        "DSCOMM_MPI_LIBRARY",
                        first, cards[0]->engine, other, card->engine);
    if (card->chunk != cards[0]->chunk)
        return snprintf(text, size,
                        "DSCOMM_MPI_CHUNK is %d for %s and %d for %s; give all "
                        "ranks the same",
                        cards[0]->chunk, first, card->chunk, other);
    return 0;
}

static dscomm_status_t decision_store(const dscomm_backend_args_t *args,
                                      const mpi_map_t *map, size_t size,
                                      decision_t *ret_decision)
{
    void *value;
    dscomm_status_t status = dscomm_store_compare_set(
        args->store, "map", "", 0, map, size, &value, &ret_decision->size);

    if (status == DSCOMM_OK)
        ret_decision->map = value;
    return status;
}

static dscomm_status_t decision_refuse(const dscomm_backend_args_t *args,
                                       const dscomm_failure_t *why,
                                       decision_t *ret_decision)
{
    mpi_map_t *map = g_malloc0(sizeof *map + DSCOMM_FAILURE_PACKED);
    const size_t bytes = dscomm_backend_failure_pack(why, map->mpi_ranks);
    dscomm_status_t status;

    map->status = why->status;
    status = decision_store(args, map, sizeof *map + bytes, ret_decision);
    g_free(map);
    /* after the deadline the store may not answer in time */
    return status == DSCOMM_ERR_TIMEOUT ? dscomm_backend_fail(why) : status;
}

/* The same for this thread's last failure, which has status `why`. */
static dscomm_status_t decision_refuse_last(const dscomm_backend_args_t *args,
                                            dscomm_status_t why,
                                            decision_t *ret_decision)
{
    dscomm_failure_t failure;

    dscomm_backend_failure_last(args->group, why, &failure);
    return decision_refuse(args, &failure, ret_decision);
}

static void map_draw(mpi_map_t *map)
{
    uint32_t numbers[2];

    if (getrandom(numbers, sizeof numbers, GRND_NONBLOCK) != sizeof numbers)
        for (int i = 0; i < 2; i++)
            numbers[i] = g_random_int();
    map->tag = numbers[0];
    map->mark = numbers[1];
}

static dscomm_status_t decision_make(const dscomm_backend_args_t *args,
                                     const mpi_card_t *const *cards,
                                     decision_t *ret_decision)
{
    const size_t size =
        sizeof(mpi_map_t) + (size_t)args->ranks * sizeof(int32_t);
    mpi_map_t *map = g_malloc0(size);
    char text[TEXT_MAX];
    dscomm_status_t status;
    int objects = 0;

    map_draw(map);
    map->blocking = map->based = 1;
    for (int r = 0; r < args->ranks && !objects; r++) {
        map->mpi_ranks[r] = cards[r]->mpi_rank;
        map->blocking &= cards[r]->blocking;
        map->based &= cards[r]->based;
        objects = card_object(args, cards, r, text, sizeof text);
    }
    status = objects ? decision_refuse_last(
                           args, dscomm_fail(DSCOMM_ERR_NO_BACKEND, "%s", text),
                           ret_decision)
                     : decision_store(args, map, size, ret_decision);
    g_free(map);
    return status;
}

/* Reads the cards of all ranks; the caller frees them. */
static dscomm_status_t cards_read(const dscomm_backend_args_t *args,
                                  void **cards)
{
    const size_t ranks = (size_t)args->ranks;
    char **keys = g_new0(char *, ranks + 1), who[DSCOMM_CREATION_RANK_MAX];
    size_t *sizes = g_new0(size_t, ranks);
    dscomm_status_t status;

    for (size_t r = 0; r < ranks; r++)
        keys[r] = g_strdup_printf("m/%zu", r);
    status = dscomm_backend_creation_get(args, (const char *const *)keys, ranks,
                                         args->open_ms, cards, sizes);
    for (size_t r = 0; r < ranks && status == DSCOMM_OK; r++)
        if (sizes[r] != sizeof(mpi_card_t))
            status = dscomm_fail(
                DSCOMM_ERR_PROTOCOL, "%s has another version of backend mpi",
                dscomm_backend_creation_rank(args, (int)r, who));
    g_free(sizes);
    g_strfreev(keys);
    return status;
}

/* Returns the other ranks that are missing, "rank 0 (pid 811 on b), rank 2 (pid
 * 813 on b)", or "" if none is missing; the caller frees it. */
static char *missing_ranks_name(const dscomm_backend_args_t *args)
{
    GString *names = g_string_new(NULL);
    int named = 0;

    for (int r = 0; r < args->ranks && named < NAMES_MOST; r++) {
        char key[32], who[DSCOMM_CREATION_RANK_MAX];
        int present = 1;

        snprintf(key, sizeof key, "m/%d", r);
        if (r != args->rank &&
            dscomm_store_check(args->store, &(const char *){key}, 1,
                               &present) == DSCOMM_OK &&
            !present)
            g_string_append_printf(names, "%s%s", named++ ? ", " : "",
                                   dscomm_backend_creation_rank(args, r, who));
    }
    return g_string_free(names, FALSE);
}

/* Returns the rank that came last, if all have left their cards, or -1. */
static int last_rank_find(const dscomm_backend_args_t *args)
{
    int last = -1;

    for (int r = 0; r < args->ranks && last < 0; r++) {
        char key[32];
        size_t size;
        void *card;

        snprintf(key, sizeof key, "m/%d", r);
        if (dscomm_store_get(args->store, key, 0, &card, &size) < 0)
            break;
        if (size == sizeof(mpi_card_t) &&
            ((const mpi_card_t *)card)->number == args->ranks)
            last = r;
        dscomm_store_free(card);
    }
    return last;
}

/* Fails at the deadline, with the missing ranks; if none is missing, with the
 * last one, which has not decided. */
static dscomm_status_t meeting_fail_missing(const dscomm_backend_args_t *args)
{
    char *names = missing_ranks_name(args), who[DSCOMM_CREATION_RANK_MAX];
    const int last = *names ? -1 : last_rank_find(args);
    dscomm_status_t status;

    if (last >= 0)
        status =
            dscomm_fail(DSCOMM_ERR_TIMEOUT,
                        "%s, the last of %d ranks to come, has not gone on "
                        "within %.1f s; it stands still",
                        dscomm_backend_creation_rank(args, last, who),
                        args->ranks, args->open_ms / 1000.0);
    else
        status = dscomm_fail(
            DSCOMM_ERR_TIMEOUT,
            "%s of %d did not come within %.1f s; did all reach the "
            "same call?",
            *names ? names : "the last", args->ranks, args->open_ms / 1000.0);
    g_free(names);
    return status;
}

/* The last rank to arrive decides for all. */
static dscomm_status_t decision_publish(const dscomm_backend_args_t *args,
                                        decision_t *ret_decision)
{
    void **cards = g_new0(void *, (gsize)args->ranks);
    dscomm_status_t status = cards_read(args, cards);

    if (status == DSCOMM_ERR_TIMEOUT)
        status = meeting_fail_missing(args);
    if (status == DSCOMM_OK)
        status =
            decision_make(args, (const mpi_card_t *const *)cards, ret_decision);
    else
        status = decision_refuse_last(args, status, ret_decision);
    for (int r = 0; r < args->ranks; r++)
        dscomm_store_free(cards[r]);
    g_free(cards);
    return status;
}

/* Waits for the decision. At the deadline this rank tries to write a refusal.
 * If the map was written before, the map stays the decision, because other
 * ranks may be in MPI already. */
static dscomm_status_t decision_await(const dscomm_backend_args_t *args,
                                      decision_t *ret_decision)
{
    const char *key = "map";
    void *value;
    dscomm_status_t status = dscomm_backend_creation_get(
        args, &key, 1, args->open_ms, &value, &ret_decision->size);

    if (status == DSCOMM_OK) {
        ret_decision->map = value;
        return status;
    }
    if (status == DSCOMM_ERR_TIMEOUT)
        status = meeting_fail_missing(args);
    return decision_refuse_last(
        args, dscomm_backend_creation_fail(args, status), ret_decision);
}

/* The number is in the card, so that other ranks know the last one even if it
 * does not go on. */
static dscomm_status_t cards_exchange(const dscomm_backend_args_t *args,
                                      const mpi_card_t *card,
                                      decision_t *ret_decision)
{
    mpi_card_t numbered = *card;
    dscomm_status_t status;
    int64_t here = 0;
    char key[32];

    snprintf(key, sizeof key, "m/%d", args->rank);
    status = dscomm_store_add(args->store, "here", 1, &here);
    numbered.number = (int32_t)here;
    if (status == DSCOMM_OK)
        status = dscomm_store_set(args->store, key, &numbered, sizeof numbered);
    if (status < 0)
        return status;
    if (here == args->ranks)
        return decision_publish(args, ret_decision);
    return decision_await(args, ret_decision);
}

static int decision_is_refusal(const decision_t *decision)
{
    return decision->size >= sizeof(mpi_map_t) && decision->map->status < 0;
}

static dscomm_status_t decision_check(const dscomm_backend_args_t *args,
                                      const decision_t *decision)
{
    const size_t ranks = (size_t)args->ranks * sizeof(int32_t);
    const mpi_map_t *map = decision->map;
    dscomm_failure_t failure;

    if (decision_is_refusal(decision) &&
        dscomm_backend_failure_unpack(map->mpi_ranks,
                                      decision->size - sizeof *map, &failure))
        return dscomm_backend_fail(&failure);
    if (!decision_is_refusal(decision) && decision->size == sizeof *map + ranks)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "the ranks' map has %zu bytes, not %zu", decision->size,
                       sizeof *map + ranks);
}

/* Refuses for a reason of this rank. The record names the rank, unless the
 * reason is a death, which all ranks see. */
static dscomm_status_t decision_decline(const dscomm_backend_args_t *args,
                                        const dscomm_failure_t *why,
                                        decision_t *ret_decision)
{
    dscomm_failure_t failure = *why;

    if (why->status != DSCOMM_ERR_PEER_FAILED && why->rank < 0) {
        dscomm_backend_failure(
            args->group, why->status, DSCOMM_FAILURE_RESOURCE,
            args->world_ranks[args->rank], getpid(), &failure);
        g_strlcpy(failure.detail, why->detail, sizeof failure.detail);
    }
    return decision_refuse(args, &failure, ret_decision);
}

/* If initialising MPI timed out on this rank (own), another rank's refusal may
 * have the cause; its sentence is then kept. */
dscomm_status_t mpi_meet(const dscomm_backend_args_t *args, dscomm_status_t own,
                         const mpi_card_t *card, mpi_map_t **ret_map)
{
    decision_t decision = {0};
    dscomm_failure_t why;
    dscomm_status_t status;
    int refused;

    if (own < 0) {
        dscomm_backend_failure_last(args->group, own, &why);
        status = decision_decline(args, &why, &decision);
    } else {
        status = cards_exchange(args, card, &decision);
    }
    if (status == DSCOMM_OK)
        status = decision_check(args, &decision);
    refused = own == DSCOMM_ERR_TIMEOUT && decision_is_refusal(&decision) &&
              status != DSCOMM_ERR_TIMEOUT;
    if (own < 0 && !refused)
        status = dscomm_backend_fail(&why);
    if (status == DSCOMM_OK)
        *ret_map = decision.map;
    else
        dscomm_store_free(decision.map);
    return status;
}
