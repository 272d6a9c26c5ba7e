/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of a group with levels that concern all levels. */
#include "config.h"

#include "lib/schedule/levels.h"

#include "lib/base/clock.h"
#include "lib/group/failure.h"
#include "lib/group/world.h"

#include <sched.h>

#define IDLE_NS (5 * (int64_t)1000000) /* before a wait sleeps */
#define NAP_US 200U
#define LOOK_EVERY 64 /* calls of progress between two for LEVEL_RAIL */

uint64_t dscomm_priv_level_capabilities(const dscomm_level_t *level)
{
    if (!level->impl || !level->ops.capabilities)
        return 0;
    return level->ops.capabilities(level->impl);
}

/* Revokes the other levels. LEVEL_RAIL needs no revocation: LEVEL_NETWORK has
 * its ranks, and nothing more is started. */
static void revoke_others(dscomm_levels_t *levels, int first,
                          const dscomm_failure_t *failure)
{
    for (int i = 0; i < LEVEL_RAIL; i++) {
        const dscomm_level_t *level = &levels->level[i];

        if (i == first || !level->impl)
            continue;
        level->ops.revoke(level->impl, failure);
        /* may notify other ranks at once */
        level->ops.status(level->impl, NULL);
    }
}

static bool end_with(dscomm_levels_t *levels, int first)
{
    int none = 0;

    return atomic_compare_exchange_strong(&levels->ended, &none, first + 1);
}

/* Returns the group's status. A level that was revoked revokes the others. All
 * levels are polled even after the end, because a level may then send its
 * notices. */
dscomm_status_t dscomm_priv_levels_status(void *impl,
                                          dscomm_failure_t *ret_failure)
{
    dscomm_levels_t *levels = impl;
    const dscomm_level_t *level;
    dscomm_failure_t failure;
    int ended;

    for (int i = 0; i < LEVEL_COUNT; i++) {
        level = &levels->level[i];
        if (!level->impl || level->ops.status(level->impl, NULL) == DSCOMM_OK ||
            !end_with(levels, i))
            continue;
        level->ops.status(level->impl, &failure);
        revoke_others(levels, i, &failure);
    }
    ended = atomic_load_explicit(&levels->ended, memory_order_acquire);
    level = &levels->level[ended ? ended - 1 : 0];
    return ended ? level->ops.status(level->impl, ret_failure) : DSCOMM_OK;
}

/* The failure of a level that another rank has revoked is the cause of this
 * one, for example if that rank has left since. */
void dscomm_priv_levels_revoke(void *impl, const dscomm_failure_t *failure)
{
    dscomm_levels_t *levels = impl;

    if (dscomm_priv_levels_status(levels, NULL) == DSCOMM_OK &&
        end_with(levels, LEVEL_NETWORK))
        revoke_others(levels, LEVEL_COUNT, failure);
}

dscomm_status_t dscomm_priv_levels_check(dscomm_levels_t *levels)
{
    dscomm_failure_t failure;

    if (dscomm_priv_levels_status(levels, NULL) == DSCOMM_OK)
        return DSCOMM_OK;
    dscomm_priv_levels_status(levels, &failure);
    return dscomm_backend_fail(&failure);
}

dscomm_status_t dscomm_priv_levels_give_up(dscomm_levels_t *levels,
                                           dscomm_status_t status)
{
    dscomm_failure_t failure;
    dscomm_status_t ended;

    dscomm_backend_failure_last(levels->group, status, &failure);
    dscomm_priv_levels_revoke(levels, &failure);
    ended = dscomm_priv_levels_check(levels);
    /* Another thread may be storing the group's failure. */
    return ended < 0 ? ended : dscomm_backend_fail(&failure);
}

void dscomm_priv_levels_trim(void *impl, dscomm_backend_ops_t *ops)
{
    const dscomm_levels_t *levels = impl;

    for (int i = 0; i < LEVEL_RAIL; i++) {
        const dscomm_level_t *level = &levels->level[i];

        if (level->impl && !level->ops.withdraw)
            ops->withdraw = NULL;
        if (level->impl && !level->ops.probe)
            ops->probe = NULL;
    }
    if (!levels->blocking)
        ops->run = NULL;
}

/* Returns the capabilities that all levels have. */
uint64_t dscomm_priv_levels_capabilities(void *impl)
{
    const uint64_t noticed =
        DSCOMM_CAP_DEATH_DETECTION | DSCOMM_CAP_MISMATCH_DETECTION;
    const dscomm_levels_t *levels = impl;
    const dscomm_level_t *node = &levels->level[LEVEL_NODE];
    const uint64_t all =
        dscomm_priv_level_capabilities(&levels->level[LEVEL_NETWORK]);
    const uint64_t own = dscomm_priv_level_capabilities(node);

    return (all & (node->impl ? own : noticed) & noticed) |
           (own & DSCOMM_CAP_ZERO_COPY) | (all & DSCOMM_CAP_CALLER_PROGRESS) |
           (levels->direct ? 0 : all & DSCOMM_CAP_ANY_SOURCE) |
           (levels->blocking ? DSCOMM_CAP_SEPARATE_MATCHING : 0) |
           (levels->composes ? all & DSCOMM_CAP_NATIVE_COLLECTIVES : 0);
}

/* LEVEL_RAIL carries no messages, but it may detect a peer's death. */
unsigned dscomm_priv_levels_progress(void *impl)
{
    dscomm_levels_t *levels = impl;
    const int count = ++levels->ticks % LOOK_EVERY ? LEVEL_RAIL : LEVEL_COUNT;
    unsigned completed = 0;

    for (int i = 0; i < count; i++) {
        const dscomm_level_t *level = &levels->level[i];

        if (level->impl)
            completed += level->ops.progress(level->impl);
    }
    if (completed)
        levels->idle_ns = 0;
    return completed;
}

/* A thread can sleep for one level only. In a long wait it sleeps for the
 * network, and looks at the node every NAP_US. */
void dscomm_priv_levels_wait(void *impl, unsigned timeout_us)
{
    dscomm_levels_t *levels = impl;
    const dscomm_level_t *network = &levels->level[LEVEL_NETWORK];
    const int64_t now = dscomm_priv_clock();

    if (!levels->idle_ns)
        levels->idle_ns = now;
    if (network->ops.wait && now - levels->idle_ns >= IDLE_NS)
        network->ops.wait(network->impl, MIN(timeout_us, NAP_US));
    else
        sched_yield();
}

int dscomm_priv_levels_turn(void *arg)
{
    dscomm_levels_t *levels = arg;
    int moved = 0;

    for (int i = 0; i < LEVEL_COUNT; i++) {
        dscomm_level_t *level = &levels->level[i];

        if (!level->impl || pthread_mutex_trylock(&level->lock))
            continue;
        moved |= level->ops.progress(level->impl) > 0;
        pthread_mutex_unlock(&level->lock);
    }
    return moved;
}

dscomm_status_t dscomm_priv_level_run(dscomm_levels_t *levels,
                                      dscomm_level_t *level,
                                      dscomm_coll_args_t *args)
{
    dscomm_status_t status;

    args->sequence = ++level->sequence;
    pthread_mutex_lock(&level->lock);
    status = level->ops.run(level->impl, args);
    pthread_mutex_unlock(&level->lock);
    return status < 0 ? dscomm_priv_levels_give_up(levels, status) : status;
}

static const dscomm_level_t *memory_level(const dscomm_levels_t *levels)
{
    return &levels->level[levels->level[LEVEL_NODE].impl ? LEVEL_NODE
                                                         : LEVEL_NETWORK];
}

dscomm_status_t dscomm_priv_levels_mem_alloc(void *impl, size_t size,
                                             void **ret_memory)
{
    const dscomm_level_t *level = memory_level(impl);

    if (!level->ops.mem_alloc)
        return DSCOMM_ERR_UNSUPPORTED;
    return level->ops.mem_alloc(level->impl, size, ret_memory);
}

dscomm_status_t dscomm_priv_levels_mem_free(void *impl, void *memory)
{
    const dscomm_level_t *level = memory_level(impl);

    return level->ops.mem_free(level->impl, memory);
}

void dscomm_priv_levels_quiesce(void *impl)
{
    dscomm_levels_t *levels = impl;

    for (int i = 0; i < LEVEL_COUNT; i++) {
        const dscomm_level_t *level = &levels->level[i];

        if (level->impl && level->ops.quiesce)
            level->ops.quiesce(level->impl);
    }
}

/* The world's last barrier still uses LEVEL_RAIL. That level has LEVEL_NETWORK
 * as its parent, so its backend does not treat it as a world. */
void dscomm_priv_levels_leave(void *impl)
{
    dscomm_levels_t *levels = impl;
    const dscomm_group_t *group = levels->group;
    const int count =
        group == group->identity.world->group ? LEVEL_RAIL : LEVEL_COUNT;

    for (int i = 0; i < count; i++) {
        const dscomm_level_t *level = &levels->level[i];

        if (level->impl && level->ops.leave)
            level->ops.leave(level->impl);
    }
}
