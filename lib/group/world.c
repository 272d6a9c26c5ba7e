/* SPDX-License-Identifier: BSD-3-Clause */
/* Worlds: their groups, and the list of live worlds. */
#include "config.h"

#include "lib/group/world.h"

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static SLIST_HEAD(, dscomm_world) live;

#define FREED_MAX 256 /* the number is documented in group.h */
/* Freed groups, oldest first. */
static STAILQ_HEAD(, dscomm_group) freed = STAILQ_HEAD_INITIALIZER(freed);
static int freed_count;

dscomm_world_t *dscomm_priv_world_new(int size)
{
    dscomm_world_t *world = g_new0(dscomm_world_t, 1);

    world->size = size;
    world->recorder = (dscomm_recorder_t)DSCOMM_RECORDER_INIT;
    pthread_mutex_init(&world->lock, NULL);
    return world;
}

void dscomm_priv_world_free(dscomm_world_t *world)
{
    dscomm_priv_world_dump_end(world);
    pthread_mutex_destroy(&world->lock);
    dscomm_priv_recorder_close(&world->recorder);
    dscomm_priv_nodes_clear(&world->meeting.nodes);
    dscomm_priv_nodes_clear(&world->meeting.hosts);
    dscomm_priv_processes_free(world->meeting.processes);
    if (world->rules)
        g_array_free(world->rules, TRUE);
    g_free(world);
}

void dscomm_priv_world_enlist(dscomm_group_t *group)
{
    dscomm_world_t *world = group->identity.world;

    pthread_mutex_lock(&world->lock);
    LIST_INSERT_HEAD(&world->groups, group, life.in_world);
    pthread_mutex_unlock(&world->lock);
}

void dscomm_priv_world_delist(dscomm_group_t *group)
{
    dscomm_world_t *world = group->identity.world;

    pthread_mutex_lock(&world->lock);
    LIST_REMOVE(group, life.in_world);
    pthread_mutex_unlock(&world->lock);
}

void dscomm_priv_world_defer_free(dscomm_group_t *group)
{
    dscomm_group_t *oldest = NULL;

    pthread_mutex_lock(&live_lock);
    STAILQ_INSERT_TAIL(&freed, group, life.in_freed);
    if (++freed_count > FREED_MAX) {
        oldest = STAILQ_FIRST(&freed);
        STAILQ_REMOVE_HEAD(&freed, life.in_freed);
        freed_count--;
    }
    pthread_mutex_unlock(&live_lock);
    if (oldest)
        dscomm_priv_group_parts_call(oldest, PART_FORGET);
    g_free(oldest);
}

void dscomm_priv_world_publish(dscomm_world_t *world)
{
    pthread_mutex_lock(&live_lock);
    SLIST_INSERT_HEAD(&live, world, in_live);
    pthread_mutex_unlock(&live_lock);
}

dscomm_world_t *dscomm_priv_world_withdraw(const dscomm_group_t *group)
{
    dscomm_world_t *world;

    pthread_mutex_lock(&live_lock);
    SLIST_FOREACH (world, &live, in_live)
        if (world->group == group)
            break;
    if (world)
        SLIST_REMOVE(&live, world, dscomm_world, in_live);
    pthread_mutex_unlock(&live_lock);
    return world;
}

void dscomm_priv_world_forked(void)
{
    pthread_mutex_init(&live_lock, NULL);
}
