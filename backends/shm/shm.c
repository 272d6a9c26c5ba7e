/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory backend: opening and closing a group, and the module's
 * descriptor. */
#include "config.h"

#include "backends/shm/shm.h"

#include "backends/shm/copy.h"
#include "backends/shm/request.h"

#include <string.h>
#include <unistd.h>

#include <glib.h>

#define WATCH 64 /* fruitless calls of progress between reads of the clock */

#define SPIN_DEFAULT 2000 /* polls with a pause in between, 20 to 100 us */
/* polls for a message if ranks outnumber processors: the two ranks run at the
 * same time more often than all ranks do */
#define MESSAGE_SPIN 100

/* Words of DSCOMM_SHM_STORE, in order. */
enum { STORE_AUTO, STORE_PLAIN, STORE_STREAM };

static dscomm_status_t publish_self(shm_t *shm)
{
    int64_t native = 0, kind = 0, spin = 0;
    dscomm_status_t status =
        dscomm_setting_number(&shm_settings[SHM_SETTING_NATIVE], &native);

    if (!status)
        status = dscomm_setting_number(&shm_settings[SHM_SETTING_STORE], &kind);
    if (!status)
        status = dscomm_setting_number(&shm_settings[SHM_SETTING_SPIN], &spin);
    if (status)
        return status;
    if (spin < 0) {
        spin = shm->oversubscribed ? 0 : SPIN_DEFAULT;
        shm->message_spin = shm->oversubscribed ? MESSAGE_SPIN : 0;
    }
    shm->spin_limit = (unsigned)spin;
    shm->own->tries = kind == STORE_AUTO && spin;
    shm->own->native = shm->native = native;
    shm->own->pid = getpid();
    shm_single_publish(shm);
    return DSCOMM_OK;
}

static dscomm_status_t attach(shm_t *shm)
{
    dscomm_status_t status = shm_segment_map(shm);

    if (!status)
        status = publish_self(shm);
    if (!status)
        shm_wait_register(shm);
    return status;
}

/* Fails if ranks have different settings of DSCOMM_SHM_NATIVE: they would run
 * different implementations of a collective. */
static dscomm_status_t compare_native(const shm_t *shm)
{
    bool native = shm_control(shm, 0)->native;

    for (int r = 1; r < shm->ranks; r++)
        if (shm_control(shm, r)->native != native)
            return dscomm_fail(DSCOMM_ERR_MISMATCH,
                               "DSCOMM_SHM_NATIVE is %d on rank %d, %d on rank "
                               "%d; give all ranks the same",
                               native, shm_number(shm, 0), !native,
                               shm_number(shm, r));
    return DSCOMM_OK;
}

/* Returns the rank in a group whose index in the list of processes is peer. */
static int rank_of_peer(const shm_t *shm, int peer)
{
    int rank = 0;

    while (shm->peer[rank] != peer)
        rank++;
    return rank;
}

/* Chooses the stores by DSCOMM_SHM_STORE; if that is auto, by measuring,
 * starting with the results of the parent group. */
static dscomm_status_t choose_stores(shm_t *shm, const shm_t *parent)
{
    static const int stores[] = {[STORE_AUTO] = -1,
                                 [STORE_PLAIN] = SHM_PLAIN,
                                 [STORE_STREAM] = SHM_STREAM};
    int64_t kind = STORE_AUTO;
    dscomm_status_t status =
        dscomm_setting_number(&shm_settings[SHM_SETTING_STORE], &kind);

    for (int r = 0; !status && r < shm->ranks; r++) {
        if (kind == STORE_AUTO && parent)
            shm->path[r] = parent->path[rank_of_peer(parent, shm->peer[r])];
        else
            shm_path_init(&shm->path[r], stores[kind]);
        shm->path[r].trial = kind == STORE_AUTO ? &shm->trial : NULL;
    }
    shm->cache = shm_cache_bytes();
    shm->guessing = kind == STORE_AUTO;
    shm->trying = true;
    for (int r = 0; r < shm->ranks; r++)
        shm->trying = shm->trying && shm_control(shm, r)->tries;
    if (kind == STORE_AUTO)
        shm_trial_init(shm, parent);
    else
        shm->store = kind == STORE_STREAM ? SHM_STREAM : SHM_PLAIN;
    return status;
}

static dscomm_status_t tune(shm_t *shm, const dscomm_backend_args_t *args)
{
    const shm_t *parent = args->parent;
    dscomm_status_t status = compare_native(shm);

    if (status)
        return status;
    shm_wait_agree(shm);
    status = choose_stores(shm, parent);
    return status ? status : shm_single_look(shm);
}

static void shm_close(void *impl)
{
    shm_t *shm = impl;

    shm_trial_free(shm);
    shm_pages_free(shm);
    shm_heap_free(shm);
    shm_p2p_free(shm);
    if (shm->base) {
        shm_leave(shm, shm_left(shm, shm->rank) ? SHM_LEFT : SHM_FREED);
        shm_segment_unmap(shm);
    }
    if (shm->fd >= 0)
        close(shm->fd);
    shm_peers_free(shm->peers);
    g_free(shm->path);
    g_free(shm->factors);
    g_free(shm->sources);
    g_free(shm->peer);
    g_free(shm->world_ranks);
    g_free(shm->name);
    g_free(shm);
}

/* Makes the lists of ranks, the name and the queues; false: no memory */
static bool shm_fill(shm_t *shm, const dscomm_backend_args_t *args)
{
    gsize ranks = (gsize)args->ranks;

    shm->name = strdup(args->name);
    shm->world_ranks = g_try_new(int, ranks);
    shm->peer = g_try_new0(int, ranks);
    shm->sources = g_try_new0(const void *, ranks);
    shm->factors = g_try_new0(double, ranks);
    shm->path = g_try_new0(shm_path_t, ranks);
    if (!shm->name || !shm->world_ranks || !shm->peer || !shm->sources ||
        !shm->factors || !shm->path || !shm_p2p_new(shm))
        return false;
    memcpy(shm->world_ranks, args->world_ranks, ranks * sizeof(int));
    return true;
}

/* NULL: no memory. */
static shm_t *shm_new(const dscomm_backend_args_t *args)
{
    shm_t *shm = g_try_new0(shm_t, 1);

    if (!shm)
        return NULL;
    shm->rank = args->rank;
    shm->ranks = args->ranks;
    shm->group = args->group;
    shm->world = args->world;
    shm->timeout_ms = args->timeout_ms;
    shm->oversubscribed = args->oversubscribed;
    shm->fd = -1;
    shm->step = shm->floor = shm->tail = 1;
    shm->advance_collectives = shm_collective_progress;
    shm->advance_messages = shm_p2p_progress;
    for (int d = 0; d < DSCOMM_DTYPE_COUNT; d++)
        for (int o = 0; o < DSCOMM_OP_COUNT; o++)
            shm->kernels[d][o] =
                dscomm_reduce_kernel((dscomm_dtype_t)d, (dscomm_op_t)o);
    if (shm_fill(shm, args))
        return shm;
    shm_close(shm);
    return NULL;
}

static dscomm_status_t shm_open(const dscomm_backend_args_t *args,
                                void **ret_impl)
{
    dscomm_failure_t failure;
    dscomm_status_t status;
    shm_t *shm;

    if (args->ranks > SHM_MAX_RANKS)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "it has %d ranks; backend shm takes at most %d",
                           args->ranks, SHM_MAX_RANKS);
    shm = shm_new(args);
    if (!shm)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory");
    status = shm_connect(shm, args, attach);
    if (!status)
        status = tune(shm, args);
    if (status) {
        /* Other ranks may have made the group already: notifies them of the
         * reason why it ends. */
        dscomm_backend_failure_last(shm->group, status, &failure);
        if (shm->base)
            shm_revoke(shm, &failure);
        shm_close(shm);
        return status;
    }
    *ret_impl = shm;
    return DSCOMM_OK;
}

static void shm_quiesce(void *impl)
{
    shm_leave(impl, SHM_LEFT);
}

static void shm_begin_to_leave(void *impl)
{
    shm_leave(impl, SHM_LEAVING);
}

static unsigned shm_progress(void *impl)
{
    shm_t *shm = impl;
    unsigned advanced;

    shm_collective_progress(shm);
    shm_p2p_progress(shm);
    advanced = shm->completed;
    shm->completed = 0;
    if (!advanced && shm->moves != shm->moves_seen)
        advanced = 1;
    shm->moves_seen = shm->moves;
    if (advanced)
        shm->fruitless = 0;
    else if (++shm->fruitless % WATCH == 0)
        shm_watch(shm);
    return advanced;
}

/* Kernels before 5.3 have no pidfds, and some sandboxes forbid them. */
static bool sees_deaths(const shm_t *shm)
{
    for (int r = 0; r < shm->ranks; r++)
        if (r != shm->rank && shm->peers->fds[shm->peer[r]] < 0)
            return false;
    return true;
}

static uint64_t shm_capabilities(void *impl)
{
    const shm_t *shm = impl;

    return DSCOMM_CAP_ANY_SOURCE | DSCOMM_CAP_MISMATCH_DETECTION |
           (shm->native ? DSCOMM_CAP_NATIVE_COLLECTIVES | DSCOMM_CAP_USER_OPS
                        : 0) |
           (sees_deaths(shm) ? DSCOMM_CAP_DEATH_DETECTION : 0) |
           (shm->layout.heap_size ? DSCOMM_CAP_ZERO_COPY : 0);
}

static void shm_cancel(void *impl, dscomm_request_t *request)
{
    shm_t *shm = impl;
    shm_request_t *own = (shm_request_t *)request;

    if (own->kind == SHM_COLLECTIVE)
        shm_collective_cancel(shm, own);
    else
        shm_p2p_cancel(shm, own);
}

static const char *shm_usable(const char *const *hosts, int ranks)
{
    for (int r = 1; r < ranks; r++)
        if (strcmp(hosts[r], hosts[0]))
            return "the ranks do not all run on one host";
    return NULL;
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof(dscomm_backend_ops_t),
    .request_size = sizeof(shm_request_t),
    .open = shm_open,
    .close = shm_close,
    .isend = shm_isend,
    .irecv = shm_irecv,
    .cancel = shm_cancel,
    .progress = shm_progress,
    .revoke = shm_revoke,
    .status = shm_status,
    .capabilities = shm_capabilities,
    .native = shm_native,
    .run = shm_run,
    .start = shm_start,
    .send = shm_send,
    .recv = shm_recv,
    .wait = shm_wait_hint,
    .explain = shm_explain,
    .mem_alloc = shm_mem_alloc,
    .mem_free = shm_mem_free,
    .quiesce = shm_quiesce,
    .leave = shm_begin_to_leave,
    .withdraw = shm_withdraw,
    .tuning = shm_tuning,
    .describe = shm_describe,
    .matched = shm_matched,
    .probe = shm_probe,
    .begun = shm_begun,
    .mem_register = shm_mem_register,
    .mem_deregister = shm_mem_deregister,
    .put = shm_put,
    .get = shm_get,
    .native_info = shm_native_info,
};

DSCOMM_BACKEND_EXPORT extern const dscomm_backend_t dscomm_backend_shm;
const dscomm_backend_t dscomm_backend_shm = {
    .abi = DSCOMM_BACKEND_ABI,
    .priority = 100,
    .name = "shm",
    .ops = &ops,
    .settings = shm_settings,
    .usable = shm_usable,
};
