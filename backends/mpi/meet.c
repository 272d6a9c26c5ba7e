/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a group meet in its store before they make a communicator, since
 * MPI waits for ever for those that do not come, and tells nothing of those
 * that are not its own. They agree on whether there is a group by one key,
 * which is written once: by the last one to come, or by any that cannot take
 * part or does not want to wait any longer. So none is left alone in MPI. */
#include "config.h"

#include "backends/mpi/engine.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define NAMES_MOST 8
#define TEXT_MAX 512

/* The map, or a refusal: a map's beginning with status and a sentence behind
 * it. */
typedef struct {
    mpi_map_t *map; /* to be given to dscomm_store_free() */
    size_t size;
} verdict_t;

/* Whose ranks do not fit together; 0 where there can be a group. */
static int object(const dscomm_backend_args_t *args,
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

static dscomm_status_t records_decide(const dscomm_backend_args_t *args,
                                      const mpi_map_t *map, size_t size,
                                      verdict_t *ret_verdict)
{
    void *value;
    dscomm_status_t status = dscomm_store_compare_set(
        args->store, "map", "", 0, map, size, &value, &ret_verdict->size);

    if (status == DSCOMM_OK)
        ret_verdict->map = value;
    return status;
}

static dscomm_status_t record_refuse(const dscomm_backend_args_t *args,
                                     dscomm_status_t why, const char *sentence,
                                     verdict_t *ret_verdict)
{
    const size_t length = strlen(sentence);
    mpi_map_t *map = g_malloc0(sizeof *map + length);
    dscomm_status_t status;

    map->status = why;
    memcpy(map->mpi_ranks, sentence, length);
    status = records_decide(args, map, sizeof *map + length, ret_verdict);
    g_free(map);
    return status;
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

static dscomm_status_t allow(const dscomm_backend_args_t *args,
                             const mpi_card_t *const *cards,
                             verdict_t *ret_verdict)
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
        objects = object(args, cards, r, text, sizeof text);
    }
    status = objects
                 ? record_refuse(args, DSCOMM_ERR_NO_BACKEND, text, ret_verdict)
                 : records_decide(args, map, size, ret_verdict);
    g_free(map);
    return status;
}

/* All ranks' cards, to be freed. */
static dscomm_status_t read_cards(const dscomm_backend_args_t *args,
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
                DSCOMM_ERR_PROTOCOL,
                "group '%s': %s has another version of "
                "backend mpi",
                args->name, dscomm_backend_creation_rank(args, (int)r, who));
    g_free(sizes);
    g_strfreev(keys);
    return status;
}

/* The last one to come does so for all. */
static dscomm_status_t record_publish(const dscomm_backend_args_t *args,
                                      verdict_t *ret_verdict)
{
    void **cards = g_new0(void *, (gsize)args->ranks);
    dscomm_status_t status = read_cards(args, cards);

    if (status == DSCOMM_OK)
        status = allow(args, (const mpi_card_t *const *)cards, ret_verdict);
    else
        status = record_refuse(args, status, dscomm_last_error(), ret_verdict);
    for (int r = 0; r < args->ranks; r++)
        dscomm_store_free(cards[r]);
    g_free(cards);
    return status;
}

/* "rank 0 (pid 811 on b), rank 2 (pid 813 on b)": those that have not come, to
 * be freed; "" if all have. */
static char *missing_ranks_name(const dscomm_backend_args_t *args)
{
    GString *names = g_string_new(NULL);
    int named = 0;

    for (int r = 0; r < args->ranks && named < NAMES_MOST; r++) {
        char key[32], who[DSCOMM_CREATION_RANK_MAX];
        int present = 1;

        snprintf(key, sizeof key, "m/%d", r);
        if (dscomm_store_check(args->store, &(const char *){key}, 1,
                               &present) == DSCOMM_OK &&
            !present)
            g_string_append_printf(names, "%s%s", named++ ? ", " : "",
                                   dscomm_backend_creation_rank(args, r, who));
    }
    return g_string_free(names, FALSE);
}

/* Those that are missing, at the deadline. */
static dscomm_status_t meeting_fail_missing(const dscomm_backend_args_t *args)
{
    char *names = missing_ranks_name(args);
    dscomm_status_t status =
        dscomm_fail(DSCOMM_ERR_TIMEOUT,
                    "group '%s': %s of %d did not come within %.1f s; did all "
                    "reach the same call?",
                    args->name, *names ? names : "the last", args->ranks,
                    args->open_ms / 1000.0);

    g_free(names);
    return status;
}

/* The map. Whoever cannot wait any longer refuses, and so learns whether the
 * map was there before: then the others are in MPI already. */
static dscomm_status_t await_map(const dscomm_backend_args_t *args,
                                 verdict_t *ret_verdict)
{
    const char *key = "map";
    char *why;
    void *value;
    dscomm_status_t status = dscomm_backend_creation_get(
        args, &key, 1, args->open_ms, &value, &ret_verdict->size);

    if (status == DSCOMM_OK) {
        ret_verdict->map = value;
        return status;
    }
    if (status == DSCOMM_ERR_TIMEOUT)
        status = meeting_fail_missing(args);
    status = dscomm_backend_creation_fail(args, status);
    why = g_strdup(dscomm_last_error());
    status = record_refuse(args, status, why, ret_verdict);
    g_free(why);
    return status;
}

static dscomm_status_t ranks_meet(const dscomm_backend_args_t *args,
                                  const mpi_card_t *card,
                                  verdict_t *ret_verdict)
{
    dscomm_status_t status;
    int64_t here = 0;
    char key[32];

    snprintf(key, sizeof key, "m/%d", args->rank);
    status = dscomm_store_set(args->store, key, card, sizeof *card);
    if (status == DSCOMM_OK)
        status = dscomm_store_add(args->store, "here", 1, &here);
    if (status < 0)
        return status;
    if (here == args->ranks)
        return record_publish(args, ret_verdict);
    return await_map(args, ret_verdict);
}

static int is_refusal(const verdict_t *verdict)
{
    return verdict->size >= sizeof(mpi_map_t) && verdict->map->status < 0;
}

static dscomm_status_t records_check(const dscomm_backend_args_t *args,
                                     const verdict_t *verdict)
{
    const size_t ranks = (size_t)args->ranks * sizeof(int32_t);
    const mpi_map_t *map = verdict->map;

    if (is_refusal(verdict))
        return dscomm_fail((dscomm_status_t)map->status, "%.*s",
                           (int)(verdict->size - sizeof *map),
                           (const char *)map->mpi_ranks);
    if (verdict->size == sizeof *map + ranks)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "group '%s': the ranks' map has %zu bytes, not %zu",
                       args->name, verdict->size, sizeof *map + ranks);
}

/* Refuses for this rank's reason; a death is everybody's. */
static dscomm_status_t decline(const dscomm_backend_args_t *args,
                               dscomm_status_t own, const char *why,
                               verdict_t *ret_verdict)
{
    char who[DSCOMM_CREATION_RANK_MAX];
    char *sentence;
    dscomm_status_t status;

    if (own == DSCOMM_ERR_PEER_FAILED)
        return record_refuse(args, own, why, ret_verdict);
    sentence = g_strdup_printf(
        "%s: %s", dscomm_backend_creation_rank(args, args->rank, who), why);
    status = record_refuse(args, own, sentence, ret_verdict);
    g_free(sentence);
    return status;
}

/* Where MPI has not come back in time, another rank may have said why. */
dscomm_status_t mpi_meet(const dscomm_backend_args_t *args, dscomm_status_t own,
                         const mpi_card_t *card, mpi_map_t **ret_map)
{
    char *why = own < 0 ? g_strdup(dscomm_last_error()) : NULL;
    verdict_t verdict = {0};
    dscomm_status_t status = own < 0 ? decline(args, own, why, &verdict)
                                     : ranks_meet(args, card, &verdict);
    int told;

    if (status == DSCOMM_OK)
        status = records_check(args, &verdict);
    told = own == DSCOMM_ERR_TIMEOUT && is_refusal(&verdict) &&
           status != DSCOMM_ERR_TIMEOUT;
    if (own < 0 && !told)
        status = dscomm_fail(own, "%s", why);
    g_free(why);
    if (status == DSCOMM_OK)
        *ret_map = verdict.map;
    else
        dscomm_store_free(verdict.map);
    return status;
}
