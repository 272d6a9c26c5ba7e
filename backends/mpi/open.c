/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a group's communicator. The ranks meet in the store before, since MPI
 * waits for ever for those that do not come, and tells nothing of those that
 * are not its own. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <dscomm/env.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MOST 8

/* What a rank says of itself: where it is in MPI_COMM_WORLD, or why it cannot
 * take part. */
typedef struct {
    char engine[16], problem[TEXT_MAX];
    int32_t mpi_rank, blocking, chunk;
} card_t;

/* What the last one to come says of all: their ranks follow. */
typedef struct {
    int32_t status, blocking;
    char problem[TEXT_MAX];
    int32_t mpi_ranks[];
} map_t;

static int wants_blocking(int multiple, int crowded)
{
    int64_t value = MPI_AUTO;

    if (dscomm_setting_number(&mpi_settings[MPI_SETTING_BLOCKING], &value) < 0)
        return -1;
    if (value == MPI_AUTO)
        return multiple && mpi_family_blocks(ENGINE_NAME, crowded);
    return value == MPI_YES;
}

dscomm_status_t engine_check_world(const char *group, int ranks)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    mpi_wiring_t wiring = {group, "", text, ranks, 0};
    dscomm_env_attr_t attr = DSCOMM_ENV_ATTR_INIT;
    dscomm_env_t *env = NULL;
    dscomm_status_t status;
    int length;

    MPI_Comm_size(MPI_COMM_WORLD, &wiring.mpi_ranks);
    if (wiring.mpi_ranks >= wiring.ranks)
        return DSCOMM_OK;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    attr.tolerate = 1;
    if (dscomm_env_discover(&attr, &env) == DSCOMM_OK)
        wiring.source = dscomm_env_source(env);
    status = mpi_check_wiring(&wiring);
    dscomm_env_free(env);
    return status;
}

static dscomm_status_t prepare(const dscomm_backend_args_t *args,
                               engine_t *engine, card_t *card)
{
    int64_t chunk = 0, aware;
    int multiple = 0;
    dscomm_status_t status = engine_library_open(args->timeout_ms, &multiple);

    snprintf(card->engine, sizeof card->engine, "%s", ENGINE_NAME);
    if (status == DSCOMM_OK)
        status = engine_check_world(args->name, args->ranks);
    if (status == DSCOMM_OK)
        status =
            dscomm_setting_number(&mpi_settings[MPI_SETTING_CHUNK], &chunk);
    if (status == DSCOMM_OK)
        status = dscomm_setting_number(&mpi_settings[MPI_SETTING_CUDA_AWARE],
                                       &aware);
    if (status == DSCOMM_OK &&
        (card->blocking = wants_blocking(multiple, args->crowded)) < 0)
        status = DSCOMM_ERR_ENVIRONMENT;
    if (status < 0) {
        snprintf(card->problem, sizeof card->problem, "%s",
                 dscomm_last_error());
        return status;
    }
    engine->chunk = (size_t)chunk;
    card->chunk = (int32_t)chunk;
    engine->lock = multiple ? &engine->own_lock : &engine_library_lock;
    MPI_Comm_rank(MPI_COMM_WORLD, &card->mpi_rank);
    return DSCOMM_OK;
}

/* Why there can be no group with this rank; 0 where there can. */
static int object(const card_t *const *cards, int rank, char *text, size_t size)
{
    const card_t *card = cards[rank];

    if (*card->problem)
        return snprintf(text, size, "rank %d: %.450s", rank, card->problem);
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

static void write_map(const card_t *const *cards, int ranks, map_t *map)
{
    map->blocking = 1;
    for (int r = 0; r < ranks && !map->status; r++) {
        map->mpi_ranks[r] = cards[r]->mpi_rank;
        map->blocking &= cards[r]->blocking;
        if (object(cards, r, map->problem, sizeof map->problem))
            map->status = DSCOMM_ERR_NO_BACKEND;
    }
}

/* The last one to come does so for all. */
static dscomm_status_t publish(const dscomm_backend_args_t *args)
{
    const size_t ranks = (size_t)args->ranks;
    const size_t bytes = sizeof(map_t) + ranks * sizeof(int32_t);
    char **keys = g_new0(char *, ranks + 1);
    void **cards = g_new0(void *, ranks);
    size_t *sizes = g_new0(size_t, ranks);
    map_t *map = g_malloc0(bytes);
    dscomm_status_t status;

    for (size_t r = 0; r < ranks; r++)
        keys[r] = g_strdup_printf("m/%zu", r);
    status = dscomm_store_multi_get(args->store, (const char *const *)keys,
                                    ranks, args->timeout_ms, cards, sizes);
    for (size_t r = 0; r < ranks && status == DSCOMM_OK; r++)
        if (sizes[r] != sizeof(card_t))
            status = dscomm_fail(DSCOMM_ERR_PROTOCOL,
                                 "group '%s': rank %zu has another version of "
                                 "backend mpi",
                                 args->name, r);
    if (status == DSCOMM_OK) {
        write_map((const card_t *const *)cards, args->ranks, map);
        status = dscomm_store_set(args->store, "map", map, bytes);
    }
    for (size_t r = 0; r < ranks; r++)
        dscomm_store_free(cards[r]);
    g_free(map);
    g_free(sizes);
    g_free(cards);
    g_strfreev(keys);
    return status;
}

/* The others did not come: which? */
static dscomm_status_t name_missing(const dscomm_backend_args_t *args)
{
    GString *names = g_string_new(NULL);
    int named = 0;

    for (int r = 0; r < args->ranks && named < NAMES_MOST; r++) {
        char key[32];
        int present = 1;

        snprintf(key, sizeof key, "m/%d", r);
        if (dscomm_store_check(args->store, &(const char *){key}, 1,
                               &present) == DSCOMM_OK &&
            !present)
            g_string_append_printf(names, "%s%d", named++ ? ", " : "", r);
    }
    dscomm_fail(DSCOMM_ERR_TIMEOUT,
                "group '%s': rank%s %s of %d did not come within %d ms",
                args->name, named > 1 ? "s" : "", names->str, args->ranks,
                args->timeout_ms);
    g_string_free(names, TRUE);
    return DSCOMM_ERR_TIMEOUT;
}

/* The map, to be given to dscomm_store_free(). */
static dscomm_status_t meet(const dscomm_backend_args_t *args,
                            const card_t *card, map_t **ret_map)
{
    const size_t bytes = sizeof(map_t) + (size_t)args->ranks * sizeof(int32_t);
    dscomm_status_t status;
    int64_t here = 0;
    void *value;
    size_t size;
    char key[32];

    snprintf(key, sizeof key, "m/%d", args->rank);
    status = dscomm_store_set(args->store, key, card, sizeof *card);
    if (status == DSCOMM_OK)
        status = dscomm_store_add(args->store, "here", 1, &here);
    if (status == DSCOMM_OK && here == args->ranks)
        status = publish(args);
    if (status < 0)
        return status;
    status =
        dscomm_store_get(args->store, "map", args->timeout_ms, &value, &size);
    if (status == DSCOMM_ERR_TIMEOUT)
        return name_missing(args);
    if (status < 0)
        return status;
    *ret_map = value;
    if (size == bytes)
        return DSCOMM_OK;
    dscomm_store_free(value);
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "group '%s': the ranks' map has %zu bytes, not %zu",
                       args->name, size, bytes);
}

/* There will be no group. Rank 0 may have the store, and so it stays until the
 * others know why. */
static void see_off(const dscomm_backend_args_t *args)
{
    int64_t readers = 0;
    void *value;
    size_t size;

    if (dscomm_store_add(args->store, "read", 1, &readers) < 0)
        return;
    if (readers == args->ranks)
        dscomm_store_set(args->store, "all", "", 0);
    if (args->rank == 0 &&
        dscomm_store_get(args->store, "all", args->timeout_ms, &value, &size) ==
            DSCOMM_OK)
        dscomm_store_free(value);
}

static int tag_of(const char *id)
{
    return (int)(g_str_hash(id) & 0x7fff);
}

static dscomm_status_t make_comm(const dscomm_backend_args_t *args,
                                 const map_t *map, engine_t *engine)
{
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    int code;

    engine_errors_hold();
    code = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS)
        code = MPI_Group_incl(world, args->ranks, map->mpi_ranks, &group);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_create_group(MPI_COMM_WORLD, group, tag_of(args->id),
                                     &engine->comm);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(engine->comm, MPI_ERRORS_RETURN);
    if (group != MPI_GROUP_NULL)
        MPI_Group_free(&group);
    if (world != MPI_GROUP_NULL)
        MPI_Group_free(&world);
    engine_errors_release();
    return code == MPI_SUCCESS
               ? DSCOMM_OK
               : engine_fail(engine, code, "MPI_Comm_create_group");
}

static void destroy(engine_t *engine)
{
    pthread_mutex_destroy(&engine->own_lock);
    g_free(engine);
}

static dscomm_status_t join(const dscomm_backend_args_t *args, engine_t *engine)
{
    card_t card = {0};
    map_t *map = NULL;
    dscomm_status_t own = prepare(args, engine, &card);
    dscomm_status_t status = meet(args, &card, &map);

    if (map && map->status < 0)
        see_off(args);
    if (own < 0)
        status = dscomm_fail(own, "%s", card.problem);
    else if (status == DSCOMM_OK && map->status < 0)
        status = dscomm_fail((dscomm_status_t)map->status, "%s", map->problem);
    if (status == DSCOMM_OK) {
        pthread_mutex_t *lock =
            engine->lock == &engine->own_lock ? NULL : engine->lock;

        engine->blocking = map->blocking;
        if (lock)
            pthread_mutex_lock(lock);
        status = make_comm(args, map, engine);
        if (lock)
            pthread_mutex_unlock(lock);
    }
    dscomm_store_free(map);
    return status;
}

dscomm_status_t engine_open(const dscomm_backend_args_t *args, void **ret_impl)
{
    engine_t *engine = g_new0(engine_t, 1);
    dscomm_status_t status;

    engine->comm = MPI_COMM_NULL;
    engine->opener = pthread_self();
    engine->name = args->name;
    engine->mark = g_str_hash(args->id);
    engine->group = args->group;
    engine->rank = args->rank;
    engine->ranks = args->ranks;
    engine->timeout_ms = args->timeout_ms;
    pthread_mutex_init(&engine->own_lock, NULL);
    status = join(args, engine);
    if (status < 0) {
        destroy(engine);
        return status;
    }
    engine_message_setup(engine);
    engine_library_enlist(engine);
    if (args->rank == 0)
        dscomm_log(DSCOMM_LOG_INFO, "mpi",
                   "group '%s': blocking collectives are %s", args->name,
                   engine->blocking ? "MPI's own, where it has them"
                                    : "schedules over messages");
    *ret_impl = engine;
    return DSCOMM_OK;
}

void engine_quiesce(void *impl)
{
    engine_t *engine = impl;
    int ranks = 0;

    if (engine_library_alive() &&
        MPI_Comm_size(MPI_COMM_WORLD, &ranks) == MPI_SUCCESS)
        engine->met_all = ranks == engine->ranks;
}

/* Where a group has failed, a rank may be dead, or for ever in a call that
 * nobody else will make: MPI_Finalize() would wait for it. But not where all
 * ranks have met at the end. */
static void judge(const engine_t *engine)
{
    if (engine->met_all)
        engine_library_spoil(0);
    else if (engine->revoked && engine->revoked != DSCOMM_ERR_STATE)
        engine_library_spoil(1);
}

/* MPI calls the end of a communicator collective, but its libraries just forget
 * it, and MPICH gives its number to the next one. So one in which messages may
 * still be on their way is kept. */
void engine_close(void *impl)
{
    engine_t *engine = impl;
    int clean;

    pthread_mutex_lock(engine->lock);
    engine_poll(engine);
    clean = !engine->revoked && !engine->strayed &&
            TAILQ_EMPTY(&engine->owed) && TAILQ_EMPTY(&engine->arrivals) &&
            !engine->active.count;
    engine_message_clear(engine);
    engine_active_clear(engine);
    if (engine_library_alive() && clean)
        MPI_Comm_free(&engine->comm);
    pthread_mutex_unlock(engine->lock);
    judge(engine);
    engine_library_delist(engine);
    destroy(engine);
}
