/* SPDX-License-Identifier: BSD-3-Clause */
/* Worlds: their groups, and the list of live worlds. */
#include "config.h"

#include "lib/group/world.h"

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static dscomm_world_t *live;

#define FREED_MAX 256 /* the number is documented in group.h */
/* Freed groups, linked by world_next, oldest first. */
static dscomm_group_t *freed, **freed_end = &freed;
static int freed_count;

dscomm_world_t *dscomm_priv_world_new(int size)
{
    dscomm_world_t *world = g_new0(dscomm_world_t, 1);

    world->size = size;
    pthread_mutex_init(&world->lock, NULL);
    return world;
}

void dscomm_priv_world_free(dscomm_world_t *world)
{
    pthread_mutex_destroy(&world->lock);
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
    group->life.world_next = world->groups;
    world->groups = group;
    pthread_mutex_unlock(&world->lock);
}

void dscomm_priv_world_delist(dscomm_group_t *group)
{
    dscomm_world_t *world = group->identity.world;
    dscomm_group_t **link;

    pthread_mutex_lock(&world->lock);
    for (link = &world->groups; *link; link = &(*link)->life.world_next) {
        if (*link == group) {
            *link = group->life.world_next;
            break;
        }
    }
    pthread_mutex_unlock(&world->lock);
}

void dscomm_priv_world_defer_free(dscomm_group_t *group)
{
    dscomm_group_t *oldest = NULL;

    group->life.world_next = NULL;
    pthread_mutex_lock(&live_lock);
    *freed_end = group;
    freed_end = &group->life.world_next;
    if (++freed_count > FREED_MAX) {
        oldest = freed;
        freed = oldest->life.world_next;
        freed_count--;
    }
    pthread_mutex_unlock(&live_lock);
    g_free(oldest);
}

void dscomm_priv_world_publish(dscomm_world_t *world)
{
    pthread_mutex_lock(&live_lock);
    world->next = live;
    live = world;
    pthread_mutex_unlock(&live_lock);
}

dscomm_world_t *dscomm_priv_world_withdraw(const dscomm_group_t *group)
{
    dscomm_world_t **link, *world = NULL;

    pthread_mutex_lock(&live_lock);
    for (link = &live; *link; link = &(*link)->next) {
        if ((*link)->group == group) {
            world = *link;
            *link = world->next;
            break;
        }
    }
    pthread_mutex_unlock(&live_lock);
    return world;
}

void dscomm_priv_world_forked(void)
{
    pthread_mutex_init(&live_lock, NULL);
}
