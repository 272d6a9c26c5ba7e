/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a group's communicator after the ranks have met. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <dscomm/env.h>
#include <stdio.h>
#include <string.h>

/* After a failure of MPI: how long to look for a dead rank, and the pause
 * between two looks. */
#define LOST_MS 1000
#define PAUSE_US (10 * 1000)

/* A communicator of all ranks that carries only the messages of
 * MPI_Comm_create_group(). In Open MPI a program's receive from any source on
 * MPI_COMM_WORLD would take these. */
static MPI_Comm base;
static atomic_int based;
static pthread_mutex_t base_lock = PTHREAD_MUTEX_INITIALIZER;

/* True if this rank wants MPI's blocking calls. If MPI allows only one thread
 * at a time, nothing else could make progress during such a call. */
static int wants_blocking(int multiple, int oversubscribed)
{
    int64_t value = MPI_AUTO;

    if (dscomm_setting_number(&mpi_settings[MPI_SETTING_BLOCKING], &value) < 0)
        return -1;
    if (value == MPI_AUTO)
        value =
            mpi_family_blocks(ENGINE_NAME, oversubscribed) ? MPI_YES : MPI_NO;
    return multiple && value == MPI_YES;
}

dscomm_status_t engine_check_world(int ranks)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    mpi_wiring_t wiring = {"", text, ranks, 0};
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

static dscomm_status_t engine_prepare(const dscomm_backend_args_t *args,
                                      engine_t *engine, mpi_card_t *card)
{
    int64_t chunk = 0, aware;
    int level = 0, multiple;
    dscomm_status_t status = engine_library_open(args, args->open_ms, &level);

    multiple = level == MPI_THREAD_MULTIPLE;
    if (status == DSCOMM_OK) {
        engine->funneled = level < MPI_THREAD_SERIALIZED;
        engine->lock = multiple ? &engine->own_lock : &engine_library_lock;
        pthread_mutex_lock(engine->lock);
        status = engine_check_world(args->ranks);
        MPI_Comm_rank(MPI_COMM_WORLD, &card->mpi_rank);
        pthread_mutex_unlock(engine->lock);
    }
    if (status == DSCOMM_OK)
        status =
            dscomm_setting_number(&mpi_settings[MPI_SETTING_CHUNK], &chunk);
    if (status == DSCOMM_OK)
        status = dscomm_setting_number(&mpi_settings[MPI_SETTING_CUDA_AWARE],
                                       &aware);
    if (status == DSCOMM_OK &&
        (card->blocking = wants_blocking(multiple, args->oversubscribed)) < 0)
        status = DSCOMM_ERR_ENVIRONMENT;
    if (status < 0)
        return status;
    card->based = atomic_load(&based);
    engine->chunk = (size_t)chunk;
    card->chunk = (int32_t)chunk;
    return DSCOMM_OK;
}

/* For a group of all ranks, which have met. If two such groups are made at the
 * same time, each rank gets here for one of them, and makes both.
 * MPI_Comm_dup() would copy the attributes that the program has attached. */
static int make_base(MPI_Group world)
{
    int code = MPI_SUCCESS;

    pthread_mutex_lock(&base_lock);
    if (!atomic_load(&based))
        code = MPI_Comm_create(MPI_COMM_WORLD, world, &base);
    if (code == MPI_SUCCESS && !atomic_load(&based))
        code = MPI_Comm_set_errhandler(base, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        atomic_store(&based, 1);
    pthread_mutex_unlock(&base_lock);
    return code;
}

/* Makes a communicator, in a thread that may outlive the opening of its group:
 * MPI waits also for ranks that have died after they met. */
typedef struct {
    engine_latch_t latch;
    atomic_int users; /* the thread, and the caller that waits for it */
    int ranks, code;
    MPI_Comm comm;
    mpi_map_t *map;
} maker_t;

static maker_t *maker_new(int ranks, const mpi_map_t *map)
{
    const size_t size = sizeof *map + (size_t)ranks * sizeof(int32_t);
    maker_t *maker = g_new0(maker_t, 1);

    engine_latch_init(&maker->latch);
    atomic_init(&maker->users, 2);
    maker->ranks = ranks;
    maker->comm = MPI_COMM_NULL;
    maker->map = g_malloc(size);
    memcpy(maker->map, map, size);
    return maker;
}

static void maker_drop(maker_t *maker)
{
    if (atomic_fetch_sub(&maker->users, 1) != 1)
        return;
    pthread_mutex_destroy(&maker->latch.lock);
    pthread_cond_destroy(&maker->latch.changed);
    g_free(maker->map);
    g_free(maker);
}

static int maker_create(maker_t *maker, MPI_Group world)
{
    const mpi_map_t *map = maker->map;
    const int tag = (int)(map->tag % (uint32_t)engine_tag_bound());
    MPI_Group group = MPI_GROUP_NULL;
    int ranks = 0, code, has_base = map->based;

    code = MPI_Group_size(world, &ranks);
    if (code == MPI_SUCCESS && ranks == maker->ranks) {
        code = make_base(world);
        has_base = 1;
    }
    if (code == MPI_SUCCESS)
        code = MPI_Group_incl(world, maker->ranks, map->mpi_ranks, &group);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_create_group(has_base ? base : MPI_COMM_WORLD, group,
                                     tag, &maker->comm);
    if (group != MPI_GROUP_NULL)
        MPI_Group_free(&group);
    return code;
}

static void *maker_run(void *arg)
{
    maker_t *maker = arg;
    MPI_Group world = MPI_GROUP_NULL;

    engine_errors_hold();
    maker->code = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (maker->code == MPI_SUCCESS)
        maker->code = maker_create(maker, world);
    if (maker->code == MPI_SUCCESS)
        maker->code = MPI_Comm_set_errhandler(maker->comm, MPI_ERRORS_RETURN);
    if (world != MPI_GROUP_NULL)
        MPI_Group_free(&world);
    engine_errors_release();
    engine_library_enter(-1);
    engine_latch_set(&maker->latch);
    maker_drop(maker);
    return NULL;
}

/* on_own_thread: allowed only if any thread may call MPI. */
static void maker_start(maker_t *maker, bool on_own_thread)
{
    pthread_t thread;

    engine_library_enter(1);
    if (on_own_thread && engine_thread_start(maker_run, maker, &thread) == 0)
        pthread_detach(thread);
    else
        maker_run(maker);
}

static dscomm_status_t
maker_await(maker_t *maker, const dscomm_backend_args_t *args, int64_t end_ns)
{
    const int done = engine_latch_await(&maker->latch, args, end_ns);

    if (done)
        return done < 0 ? (dscomm_status_t)done : DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "MPI_Comm_create_group() has not come back within %.1f "
                       "s, although all ranks had met: one of them stands "
                       "still, or MPI cannot reach it",
                       args->open_ms / 1000.0);
}

/* Looks for a death after MPI has failed: MPI may see it a little earlier than
 * the watch of processes. */
static dscomm_status_t find_death(const dscomm_backend_args_t *args)
{
    const int64_t end_ns = mpi_now_ns() + LOST_MS * NS_PER_MS;
    dscomm_status_t status = dscomm_backend_creation_check(args);

    while (status == DSCOMM_OK && mpi_now_ns() < end_ns) {
        g_usleep(PAUSE_US);
        status = dscomm_backend_creation_check(args);
    }
    return status;
}

static dscomm_status_t make_comm(const dscomm_backend_args_t *args,
                                 const mpi_map_t *map, int64_t end_ns,
                                 engine_t *engine)
{
    maker_t *maker = maker_new(args->ranks, map);
    dscomm_status_t status;

    maker_start(maker, engine->lock == &engine->own_lock);
    status = maker_await(maker, args, end_ns);
    if (status == DSCOMM_OK && maker->code == MPI_SUCCESS)
        engine->comm = maker->comm;
    else if (status == DSCOMM_OK)
        status = find_death(args);
    if (status == DSCOMM_OK && maker->code != MPI_SUCCESS)
        status = engine_fail_as(engine, DSCOMM_ERR_NO_MEMORY, maker->code,
                                "MPI_Comm_create_group");
    maker_drop(maker);
    return status;
}

static void engine_destroy(engine_t *engine)
{
    pthread_mutex_destroy(&engine->own_lock);
    g_free(engine);
}

static dscomm_status_t engine_join(const dscomm_backend_args_t *args,
                                   engine_t *engine)
{
    const int64_t end_ns = mpi_now_ns() + args->open_ms * NS_PER_MS;
    mpi_card_t card = {.engine = ENGINE_NAME};
    mpi_map_t *map = NULL;
    dscomm_status_t status = engine_prepare(args, engine, &card);

    status = mpi_meet(args, status, &card, &map);
    if (status == DSCOMM_OK) {
        engine->blocking = map->blocking;
        engine->mark = map->mark;
        pthread_mutex_lock(engine->lock);
        status = make_comm(args, map, end_ns, engine);
        if (status == DSCOMM_OK)
            engine_message_setup(engine);
        pthread_mutex_unlock(engine->lock);
    }
    dscomm_store_free(map);
    return status;
}

/* Notes whether MPI_Finalize() is safe after opening. A rank that did not join
 * a group may never call it. If all ranks have joined, all are alive. */
static void judge_opening(const engine_t *engine, dscomm_status_t status)
{
    int ranks = 0;

    if (status == DSCOMM_OK) {
        pthread_mutex_lock(engine->lock);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        pthread_mutex_unlock(engine->lock);
    }
    if (ranks == engine->ranks)
        engine_library_set_unsafe(0);
    if (status == DSCOMM_ERR_TIMEOUT || status == DSCOMM_ERR_PEER_FAILED ||
        status == DSCOMM_ERR_IO || status == DSCOMM_ERR_NO_MEMORY)
        engine_library_set_unsafe(1);
}

/* 1: this process goes on without a rank that has died, or did not answer. */
static atomic_int rank_lost;

/* Notes a group of survivors: no group is its parent although it is no world,
 * and a group that has lost a rank is still there. */
static void note_survivors(const dscomm_backend_args_t *args)
{
    if (!args->parent && !args->world && engine_library_lost_rank())
        rank_lost = 1;
}

dscomm_status_t engine_open(const dscomm_backend_args_t *args, void **ret_impl)
{
    engine_t *engine = g_new0(engine_t, 1);
    dscomm_status_t status;

    engine->comm = MPI_COMM_NULL;
    engine->poll = engine_poll;
    engine->opener = pthread_self();
    engine->name = args->name;
    engine->group = args->group;
    engine->rank = args->rank;
    engine->ranks = args->ranks;
    engine->world_ranks = args->world_ranks;
    engine->timeout_ms = args->timeout_ms;
    pthread_mutex_init(&engine->own_lock, NULL);
    status = engine_join(args, engine);
    if (engine->lock) /* else MPI is not initialised */
        judge_opening(engine, status);
    if (status < 0) {
        engine_destroy(engine);
        return status;
    }
    note_survivors(args);
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

    pthread_mutex_lock(engine->lock);
    if (engine_library_alive() &&
        MPI_Comm_size(MPI_COMM_WORLD, &ranks) == MPI_SUCCESS)
        engine->met_all = ranks == engine->ranks;
    pthread_mutex_unlock(engine->lock);
}

/* Notes at the end of a group whether MPI_Finalize() is safe. After a failure a
 * rank may be dead, or stay for ever in a call that no other rank makes;
 * MPI_Finalize() would wait for it. This does not apply if all ranks have met
 * at the end. */
static void engine_judge(const engine_t *engine)
{
    if (engine->met_all)
        engine_library_set_unsafe(0);
    else if (engine->ending.status && engine->ending.status != DSCOMM_ERR_STATE)
        engine_library_set_unsafe(1);
}

/* Groups that ended with messages under way. MPICH 4.2 over UCX aborts the
 * process in MPI_Finalize() if nobody has received a message, and in any call
 * that reads a message of a process that has ended. So when all ranks have met
 * for the last time, each receives these messages and discards them. */
static TAILQ_HEAD(, engine) unclean = TAILQ_HEAD_INITIALIZER(unclean);
/* Groups that were closed after a death. No call touches them; the list only
 * keeps what they own reachable, because MPI may still write there. */
static TAILQ_HEAD(, engine) abandoned = TAILQ_HEAD_INITIALIZER(abandoned);
static pthread_mutex_t unclean_lock = PTHREAD_MUTEX_INITIALIZER;

/* How long the last meeting waits for them, in ms; usually a few ms. */
#define DRAIN_MS 2000

/* The number of messages that are still under way. */
static int unclean_poll(void)
{
    engine_t *engine;
    int left = 0;

    pthread_mutex_lock(&unclean_lock);
    TAILQ_FOREACH (engine, &unclean, link) {
        pthread_mutex_lock(engine->lock);
        engine_poll(engine);
        engine_message_discard(engine);
        engine_test(engine);
        left += engine->active.count;
        pthread_mutex_unlock(engine->lock);
    }
    pthread_mutex_unlock(&unclean_lock);
    return left;
}

static void unclean_drain(void)
{
    const int64_t end_ns = mpi_now_ns() + DRAIN_MS * NS_PER_MS;
    int left = unclean_poll();

    while (left && mpi_now_ns() < end_ns) {
        g_usleep(100);
        left = unclean_poll();
    }
    engine_library_strand(left > 0);
}

static void unclean_add(engine_t *engine)
{
    engine->closed = 1;
    engine->name = "";
    pthread_mutex_lock(&unclean_lock);
    TAILQ_INSERT_TAIL(&unclean, engine, link);
    pthread_mutex_unlock(&unclean_lock);
    engine_library_strand(true);
}

/* Closes a group without a call of MPI. MPI still owns the messages of the
 * group that failed, also those between survivors, and cannot give up their
 * buffers, which the program may have freed by now: Open MPI 4.1 crashes in
 * calls that make progress with them. MPI is not finalised then. */
static void engine_abandon(engine_t *engine)
{
    engine_library_set_unsafe(1);
    engine_library_delist(engine);
    engine->closed = 1;
    engine->name = "";
    pthread_mutex_lock(&unclean_lock);
    TAILQ_INSERT_TAIL(&abandoned, engine, link);
    pthread_mutex_unlock(&unclean_lock);
}

/* Freeing a communicator is collective by the standard, but if only some ranks
 * do it, Open MPI 4.1 and MPICH 4.0 just forget it, and MPICH reuses its
 * number. So a communicator with messages that may still be under way is kept.
 */
void engine_close(void *impl)
{
    engine_t *engine = impl;
    const int met_all = engine->met_all;
    int clean, kept;

    if (rank_lost) {
        engine_abandon(engine);
        return;
    }
    pthread_mutex_lock(engine->lock);
    engine_poll(engine);
    clean = !engine->ending.status && !engine->strayed &&
            TAILQ_EMPTY(&engine->owed) && TAILQ_EMPTY(&engine->arrivals) &&
            !engine->active.count;
    kept = !clean && engine_library_alive() && engine_must_receive();
    engine_message_discard(engine);
    if (!kept) {
        engine_message_clear(engine);
        engine_active_clear(engine);
    }
    if (engine_library_alive() && clean)
        MPI_Comm_free(&engine->comm);
    pthread_mutex_unlock(engine->lock);
    engine_judge(engine);
    engine_library_delist(engine);
    if (kept)
        unclean_add(engine);
    else
        engine_destroy(engine);
    if (met_all && engine_must_receive() && engine_library_alive())
        unclean_drain();
}
