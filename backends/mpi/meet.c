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
#define TEXT_MAX 256
#define GRACE_MS 2000

/* The map, or a refusal: a map's beginning with status and a sentence behind
 * it. */
typedef struct {
    mpi_map_t *map; /* to be given to dscomm_store_free() */
    size_t size;
} verdict_t;

/* Whose ranks do not fit together; 0 where there can be a group. */
static int object(const mpi_card_t *const *cards, int rank, char *text,
                  size_t size)
{
    const mpi_card_t *card = cards[rank];

    if (strcmp(card->engine, cards[0]->engine))
        return snprintf(text, size,
                        "rank 0 uses %s and rank %d %s; set DSCOMM_MPI_LIBRARY",
                        cards[0]->engine, rank, card->engine);
    if (card->chunk != cards[0]->chunk)
        return snprintf(text, size,
                        "DSCOMM_MPI_CHUNK is %d for rank 0 and %d for rank %d; "
                        "give all ranks the same",
                        cards[0]->chunk, card->chunk, rank);
    return 0;
}

static dscomm_status_t decide(const dscomm_backend_args_t *args,
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

static dscomm_status_t refuse(const dscomm_backend_args_t *args,
                              dscomm_status_t why, const char *sentence,
                              verdict_t *ret_verdict)
{
    const size_t length = strlen(sentence);
    mpi_map_t *map = g_malloc0(sizeof *map + length);
    dscomm_status_t status;

    map->status = why;
    memcpy(map->mpi_ranks, sentence, length);
    status = decide(args, map, sizeof *map + length, ret_verdict);
    g_free(map);
    return status;
}

static void draw(mpi_map_t *map)
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

    draw(map);
    map->blocking = map->based = 1;
    for (int r = 0; r < args->ranks && !objects; r++) {
        map->mpi_ranks[r] = cards[r]->mpi_rank;
        map->blocking &= cards[r]->blocking;
        map->based &= cards[r]->based;
        objects = object(cards, r, text, sizeof text);
    }
    status = objects ? refuse(args, DSCOMM_ERR_NO_BACKEND, text, ret_verdict)
                     : decide(args, map, size, ret_verdict);
    g_free(map);
    return status;
}

/* All ranks' cards, to be freed. */
static dscomm_status_t read_cards(const dscomm_backend_args_t *args,
                                  void **cards)
{
    const size_t ranks = (size_t)args->ranks;
    char **keys = g_new0(char *, ranks + 1);
    size_t *sizes = g_new0(size_t, ranks);
    dscomm_status_t status;

    for (size_t r = 0; r < ranks; r++)
        keys[r] = g_strdup_printf("m/%zu", r);
    status = dscomm_store_multi_get(args->store, (const char *const *)keys,
                                    ranks, args->open_ms, cards, sizes);
    for (size_t r = 0; r < ranks && status == DSCOMM_OK; r++)
        if (sizes[r] != sizeof(mpi_card_t))
            status = dscomm_fail(DSCOMM_ERR_PROTOCOL,
                                 "group '%s': rank %zu has another version of "
                                 "backend mpi",
                                 args->name, r);
    g_free(sizes);
    g_strfreev(keys);
    return status;
}

/* The last one to come does so for all. */
static dscomm_status_t publish(const dscomm_backend_args_t *args,
                               verdict_t *ret_verdict)
{
    void **cards = g_new0(void *, (gsize)args->ranks);
    dscomm_status_t status = read_cards(args, cards);

    if (status == DSCOMM_OK)
        status = allow(args, (const mpi_card_t *const *)cards, ret_verdict);
    else
        status = refuse(args, status, dscomm_last_error(), ret_verdict);
    for (int r = 0; r < args->ranks; r++)
        dscomm_store_free(cards[r]);
    g_free(cards);
    return status;
}

/* The others did not come: which? */
static dscomm_status_t give_up(const dscomm_backend_args_t *args,
                               verdict_t *ret_verdict)
{
    GString *names = g_string_new(NULL);
    dscomm_status_t status;
    char *text;
    int named = 0;

    for (int r = 0; r < args->ranks && named < NAMES_MOST; r++) {
        char key[32];
        int present = 1;

        snprintf(key, sizeof key, "m/%d", r);
        if (dscomm_store_check(args->store, &(const char *){key}, 1,
                               &present) == DSCOMM_OK &&
            !present)
            g_string_append_printf(names, "%s%d", named++ ? ", " : " ", r);
    }
    text = g_strdup_printf("group '%s': %s%s of %d did not come within %d ms",
                           args->name,
                           named > 1 ? "ranks"
                           : named   ? "rank"
                                     : "the last",
                           names->str, args->ranks, args->timeout_ms);
    status = refuse(args, DSCOMM_ERR_TIMEOUT, text, ret_verdict);
    g_free(text);
    g_string_free(names, TRUE);
    return status;
}

static int time_left(int64_t end)
{
    return (int)(MAX(end - g_get_monotonic_time(), 0) / 1000);
}

/* The map. A rank that has failed here would leave the others in MPI, where
 * they wait for it without a deadline: so it asks once more. */
static dscomm_status_t await_map(const dscomm_backend_args_t *args, int64_t end,
                                 verdict_t *ret_verdict)
{
    dscomm_status_t status = DSCOMM_OK;
    void *value;

    for (int i = 0; i < 2; i++) {
        status = dscomm_store_get(args->store, "map", time_left(end), &value,
                                  &ret_verdict->size);
        if (status == DSCOMM_ERR_TIMEOUT)
            return give_up(args, ret_verdict);
        if (status == DSCOMM_OK) {
            ret_verdict->map = value;
            break;
        }
    }
    return status;
}

static dscomm_status_t meet(const dscomm_backend_args_t *args,
                            const mpi_card_t *card, int64_t end,
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
        return publish(args, ret_verdict);
    return await_map(args, end, ret_verdict);
}

static int is_refusal(const verdict_t *verdict)
{
    return verdict->size >= sizeof(mpi_map_t) && verdict->map->status < 0;
}

static dscomm_status_t check(const dscomm_backend_args_t *args,
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

/* There will be no group. Rank 0 may have the store, and so it stays a little,
 * until the others know why. */
static void see_off(const dscomm_backend_args_t *args)
{
    int64_t readers = 0;
    void *value;
    size_t size;

    if (dscomm_store_add(args->store, "read", 1, &readers) < 0)
        return;
    if (readers == args->ranks)
        dscomm_store_set(args->store, "all", "", 0);
    if (args->rank == 0 && dscomm_store_get(args->store, "all", GRACE_MS,
                                            &value, &size) == DSCOMM_OK)
        dscomm_store_free(value);
}

static dscomm_status_t decline(const dscomm_backend_args_t *args,
                               dscomm_status_t own, const char *why,
                               verdict_t *ret_verdict)
{
    char *sentence = g_strdup_printf("rank %d: %s", args->rank, why);
    dscomm_status_t status = refuse(args, own, sentence, ret_verdict);

    g_free(sentence);
    return status;
}

/* Where MPI has not come back in time, another rank may have said why. */
dscomm_status_t mpi_meet(const dscomm_backend_args_t *args, dscomm_status_t own,
                         const mpi_card_t *card, int64_t end,
                         mpi_map_t **ret_map)
{
    char *why = own < 0 ? g_strdup(dscomm_last_error()) : NULL;
    verdict_t verdict = {0};
    dscomm_status_t status = own < 0 ? decline(args, own, why, &verdict)
                                     : meet(args, card, end, &verdict);
    int told;

    if (status == DSCOMM_OK && is_refusal(&verdict))
        see_off(args);
    if (status == DSCOMM_OK)
        status = check(args, &verdict);
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
