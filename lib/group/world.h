/* SPDX-License-Identifier: BSD-3-Clause */
/* The world: what all groups of one dscomm_init() share. The list of live
 * worlds lets a second dscomm_finalize() of a world fail. */
#ifndef LIB_WORLD_H
#define LIB_WORLD_H

#include "lib/group/group.h"
#include "lib/recorder/recorder.h"
#include "lib/rendezvous/rendezvous.h"

typedef struct dscomm_world {
    dscomm_group_t *group; /* of all ranks */
    dscomm_meeting_t meeting; /* the store and how the ranks met */
    int size;
    dscomm_recorder_t recorder; /* the slot of all its groups */
    GArray *rules; /* dscomm_choice_t from DSCOMM_ALGORITHM */
    /* lib/call/profile.c; NULL: no profiler plugin */
    struct dscomm_profile_session *profile;
    pthread_mutex_t lock; /* protects groups */
    /* groups whose memory is not freed yet, youngest first */
    LIST_HEAD(, dscomm_group) groups;
    SLIST_ENTRY(dscomm_world) in_live;
    SLIST_ENTRY(dscomm_world) in_dumped; /* dump-signal.c */
    bool is_dumped; /* whether it is in that list */
} dscomm_world_t;

dscomm_world_t *dscomm_priv_world_new(int size);
void dscomm_priv_world_free(dscomm_world_t *world);

/* A group is in the world's list from its creation until its memory is freed.
 */
void dscomm_priv_world_enlist(dscomm_group_t *group);
void dscomm_priv_world_delist(dscomm_group_t *group);
/* Takes over a group whose contents are freed. The structure is freed after
 * FREED_MAX more groups. */
void dscomm_priv_world_defer_free(dscomm_group_t *group);

/* publish adds world to the live worlds; withdraw removes and returns the world
 * of group, or returns NULL if group is no live world. */
void dscomm_priv_world_publish(dscomm_world_t *world);
dscomm_world_t *dscomm_priv_world_withdraw(const dscomm_group_t *group);

/* Find memory for the world's flight recorder: the first before the rendezvous,
 * the second after it, before the first group is made. */
void dscomm_priv_world_record_prepare(dscomm_world_t *world);
void dscomm_priv_world_record(dscomm_world_t *world, int rank);
/* Records why a group has ended, and dumps the recorder then. */
extern const dscomm_group_part_t dscomm_priv_recorder_part;
/* Dumps the recorder of a group that goes on to DSCOMM_DUMP, if that is set.
 * Ranks of one machine that give the same name write one dump. */
void dscomm_priv_group_dump(dscomm_group_t *group, const char *name);

/* Watches the blocking collectives of a group whose backend cannot end them,
 * until the group is closed. */
void dscomm_priv_overdue_watch(dscomm_group_t *group);
extern const dscomm_group_part_t dscomm_priv_overdue_part;

/* Between both, a thread dumps the world's flight recorder to DSCOMM_DUMP
 * whenever the process gets DSCOMM_DUMP_SIGNAL. Both do nothing unless that is
 * set; the second may be called without the first. */
void dscomm_priv_world_dump_begin(dscomm_world_t *world);
void dscomm_priv_world_dump_end(dscomm_world_t *world);

/* In a forked child: initialise the locks. */
void dscomm_priv_world_forked(void);
void dscomm_priv_world_dump_forked(void);
void dscomm_priv_overdue_forked(void);

#endif
