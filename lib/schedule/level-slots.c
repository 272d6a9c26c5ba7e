/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels: the slots that concern all of them. */
#include "config.h"

#include "lib/schedule/levels.h"

#include "lib/base/status.h"
#include "lib/group/world.h"
#include "lib/schedule/level-sentence.h"

#define LOOK_EVERY 64 /* calls of progress between two of LEVEL_RAIL */

uint64_t dscomm_priv_level_capabilities(const dscomm_level_t *level)
{
    if (!level->impl || !level->ops.capabilities)
        return 0;
    return level->ops.capabilities(level->impl);
}

/* LEVEL_RAIL need not be told: LEVEL_NETWORK has its ranks, and nothing more is
 * started. */
static void revoke_others(dscomm_levels_t *levels, int first,
                          dscomm_status_t status, const char *sentence)
{
    for (int i = 0; i < LEVEL_RAIL; i++) {
        const dscomm_level_t *level = &levels->level[i];

        if (i == first || !level->impl)
            continue;
        level->ops.revoke(level->impl, status, sentence);
        level->ops.status(level->impl, NULL, 0); /* may tell others at once */
    }
}

static bool end_with(dscomm_levels_t *levels, int first)
{
    int none = 0;

    return atomic_compare_exchange_strong(&levels->ended, &none, first + 1);
}

static dscomm_status_t level_status(const dscomm_levels_t *levels, int which,
                                    char *text, size_t size)
{
    const dscomm_level_t *level = &levels->level[which];
    dscomm_status_t status = level->ops.status(level->impl, text, size);

    if (status < 0 && text)
        dscomm_priv_level_sentence(levels, level, text, size);
    return status;
}

void dscomm_priv_levels_revoke(void *impl, dscomm_status_t status,
                               const char *sentence)
{
    dscomm_levels_t *levels = impl;

    if (end_with(levels, LEVEL_NETWORK))
        revoke_others(levels, LEVEL_COUNT, status, sentence);
}

/* A level that was revoked revokes the others. All are asked, also when the
 * group has ended: one that has to tell other ranks of it may do so then. */
dscomm_status_t dscomm_priv_levels_status(void *impl, char *text, size_t size)
{
    dscomm_levels_t *levels = impl;
    char why[DSCOMM_ERROR_MAX];
    int ended;

    for (int i = 0; i < LEVEL_COUNT; i++) {
        dscomm_level_t *level = &levels->level[i];
        dscomm_status_t status =
            level->impl ? level->ops.status(level->impl, NULL, 0) : DSCOMM_OK;

        if (status == DSCOMM_OK || !end_with(levels, i))
            continue;
        level_status(levels, i, why, sizeof why);
        revoke_others(levels, i, status, why);
    }
    ended = atomic_load_explicit(&levels->ended, memory_order_acquire);
    return ended ? level_status(levels, ended - 1, text, size) : DSCOMM_OK;
}

dscomm_status_t dscomm_priv_levels_check(dscomm_levels_t *levels)
{
    char text[DSCOMM_ERROR_MAX];
    dscomm_status_t status = dscomm_priv_levels_status(levels, NULL, 0);

    if (status == DSCOMM_OK)
        return DSCOMM_OK;
    status = dscomm_priv_levels_status(levels, text, sizeof text);
    return dscomm_priv_fail_with(status, text);
}

dscomm_status_t dscomm_priv_levels_give_up(dscomm_levels_t *levels,
                                           dscomm_status_t status)
{
    char text[DSCOMM_ERROR_MAX];
    dscomm_status_t ended;

    g_strlcpy(text, dscomm_last_error(), sizeof text);
    dscomm_priv_levels_revoke(levels, status, text);
    ended = dscomm_priv_levels_check(levels);
    /* Another thread may be about to say why the group has ended. */
    return ended < 0 ? ended : dscomm_priv_fail_with(status, text);
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

/* What holds for the group if it does so for each of its levels. */
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
           (levels->blocking ? DSCOMM_CAP_BLOCKING_APART : 0) |
           (levels->composes ? all & DSCOMM_CAP_NATIVE_COLLECTIVES : 0);
}

/* LEVEL_RAIL has no messages, but a peer's death may show there. */
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
    return completed;
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
    char text[DSCOMM_ERROR_MAX];
    dscomm_status_t status;

    args->sequence = ++level->sequence;
    pthread_mutex_lock(&level->lock);
    status = level->ops.run(level->impl, args);
    pthread_mutex_unlock(&level->lock);
    if (status == DSCOMM_OK)
        return DSCOMM_OK;
    g_strlcpy(text, dscomm_last_error(), sizeof text);
    dscomm_priv_level_sentence(levels, level, text, sizeof text);
    dscomm_priv_fail_with(status, text);
    return dscomm_priv_levels_give_up(levels, status);
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

/* The world's last barrier still needs LEVEL_RAIL, which leans on LEVEL_NETWORK
 * and so is no world itself. */
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
