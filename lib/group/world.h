/* SPDX-License-Identifier: BSD-3-Clause */
/* The world: what all groups of one dscomm_init() share, and the list of live
 * worlds that tells a second dscomm_finalize() from a first one. */
#ifndef LIB_WORLD_H
#define LIB_WORLD_H

#include "lib/group/group.h"
#include "lib/rendezvous/rendezvous.h"

typedef struct dscomm_world {
    dscomm_group_t *group; /* of all ranks */
    dscomm_meeting_t meeting; /* store and what belongs to it */
    int size;
    GArray *rules; /* dscomm_choice_t: the user's */
    pthread_mutex_t lock; /* guards groups */
    dscomm_group_t *groups; /* whose memory is not freed yet, youngest first */
    struct dscomm_world *next;
} dscomm_world_t;

dscomm_world_t *dscomm_priv_world_new(int size);
void dscomm_priv_world_free(dscomm_world_t *world);

/* Every group of world is listed from its making until its memory is freed. */
void dscomm_priv_world_enlist(dscomm_group_t *group);
void dscomm_priv_world_delist(dscomm_group_t *group);
/* Takes over a group whose contents are freed; frees the struct when many more
 * have come. */
void dscomm_priv_world_defer_free(dscomm_group_t *group);

/* Puts world among the live ones; takes the world that group is out again, or
 * returns NULL where group is no live world. */
void dscomm_priv_world_publish(dscomm_world_t *world);
dscomm_world_t *dscomm_priv_world_withdraw(const dscomm_group_t *group);

/* In a forked child: its lock is new. */
void dscomm_priv_world_forked(void);

#endif
