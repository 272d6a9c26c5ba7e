/* SPDX-License-Identifier: BSD-3-Clause */
/* The group: what a collective needs first, then everything else. */
#ifndef LIB_GROUP_H
#define LIB_GROUP_H

#include <dscomm/backend.h>
#include <dscomm/dscomm.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "lib/base/array.h"
#include "lib/module/module.h"
#include "lib/rendezvous/nodes.h"
#include "lib/base/process.h"

struct dscomm_world;
typedef struct dscomm_schedule_cache dscomm_schedule_cache_t;
typedef struct dscomm_history dscomm_history_t;

/* Bits of dscomm_group.state. Any of them sends an operation to the slow
 * path. */
enum {
    GROUP_REVOKED = 1 << 0, /* ended; the backend's status tells why */
    GROUP_COALESCING = 1 << 1, /* calls are recorded */
    GROUP_PENDING = 1 << 2, /* works run: calls to the backend need the lock */
    GROUP_SLOW = 1 << 3, /* no run slot, or it must be asked what it takes */
    GROUP_FREED = 1 << 4, /* by its user; what follows may be gone */
    GROUP_SCHEDULED = 1 << 5, /* some of the works are schedules */
};

/* How buffers of a device go to the backend. */
enum { GROUP_DEVICES_TAKEN = 1, GROUP_DEVICES_STAGED };

/* What an all_reduce must be to become a part of the one recorded before it,
 * and what has become so, of which that does not know yet. */
typedef struct {
    struct dscomm_call *call; /* that one; NULL: none can */
    const char *send, *recv; /* where its buffers end */
    size_t element; /* bytes */
    size_t most_count, most; /* elements of one, bytes of all */
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    uint32_t parts;
    uint32_t fingerprint; /* with that of call */
    size_t bytes;
} dscomm_extension_t;

/* Who the group is; set while it is made, constant afterwards. */
typedef struct {
    struct dscomm_world *world;
    char *name, *id; /* behind the group */
    int *world_ranks; /* size entries: group to world */
    int *from_world; /* world size entries: -1 where not a member */
    int local_rank, local_size, node_rank;
    dscomm_nodes_t nodes; /* of its ranks */
} dscomm_group_identity_t;

/* How long the group lives, and what lives as long as it does. */
typedef struct {
    atomic_int uses; /* open handle, and open children: keep impl open */
    atomic_int holds; /* open impl, and works not freed: keep this memory */
    dscomm_group_t *parent; /* whose impl this impl may lean on */
    struct dscomm_creation *creation; /* while open runs, see creation.h */
    dscomm_store_t *store;
    uint64_t children, messages, barriers; /* counters for ids */
    struct dscomm_list *lists; /* of members_only; group-new.c */
    dscomm_group_t *world_next; /* in world->groups */
    struct dscomm_attachment *attachments;
} dscomm_group_life_t;

/* Works, and those who wait for them. */
typedef struct {
    pthread_mutex_t lock;
    struct dscomm_work *pending, *pending_tail; /* started, in order */
    struct dscomm_work *idle; /* free list */
    struct dscomm_work_slab *slabs; /* memory of works; work.c */
    size_t size; /* bytes of one work */
    dscomm_request_t *request; /* of a blocking receive */
    struct dscomm_matched *matched; /* messages that probes have set aside */
    uint64_t completed; /* counts retired works, messages, and parts of them */
    int unscanned; /* a slot ran that may have completed requests */
    uint64_t wait_seen; /* completed at the latest look at the clock */
    int64_t wait_last; /* ns: that look; 0: none in this wait */
    /* ns: waited without progress, in this wait and others, since the latest
     * schedule was started */
    int64_t stalled;
    unsigned looks; /* diagnoses meanwhile */
    /* dscomm_priv_works_expire() runs, which may release the lock meanwhile:
     * the group stays in the list and is not closed. */
    int expiring;
    unsigned scheduled; /* works that are schedules */
    unsigned custom; /* works that are their callers' own */
    int held; /* the backend has not given back what works had, see cancel */
    dscomm_group_t *next, *prev; /* in the list of groups with works */
    int listed;
    atomic_int event; /* 1 + descriptor of dscomm_group_fd(); 0: none */
    dscomm_group_t *watch_next; /* in the list of event.c */
} dscomm_group_works_t;

/* Collectives that the core carries out by messages. */
typedef struct {
    const GArray *rules; /* the world's */
    dscomm_schedule_cache_t *cache; /* NULL: no schedule was made yet */
    dscomm_history_t *history; /* the latest calls, see notes */
    int notes; /* history has all collectives, not schedules alone */
    uint32_t chain; /* hash of the schedules' fingerprints, in their order */
    uint32_t logged; /* a bit for each collective: the log names its schedule */
} dscomm_group_schedules_t;

/* Calls that are being coalesced. */
typedef struct {
    dscomm_array_t calls; /* dscomm_call_t */
    size_t bytes; /* of calls that the next may join */
    guint last; /* the last collective's number, from 1 */
    dscomm_extension_t extension;
} dscomm_group_recording_t;

/* Memory that transports or devices know. */
typedef struct {
    struct dscomm_area *allocated; /* memory.c */
    int devices; /* GROUP_DEVICES_*; 0: not asked yet */
    void *stream; /* of calls with buffers of a device */
} dscomm_group_memory_t;

/* Locking. While GROUP_PENDING is set, other threads may make progress on the
 * group, so calls into the backend, the list of pending works and the free list
 * need works.lock. While it is clear they belong to the thread that uses the
 * group, which is how a blocking collective does without a lock. Only a holder
 * of the lock sets or clears it. Order: a group's lock, then the list of groups
 * in progress.c, then (only tried, never waited for) another group's lock. */
struct dscomm_group {
    /* Every collective reads these. */
    atomic_uint state;
    unsigned generation; /* of the process that made it */
    void *impl;
    dscomm_status_t (*run)(void *impl, const dscomm_coll_args_t *args);
    int asks; /* run may be called where native says yes, and nothing else */
    uint64_t sequence; /* of the last collective */
    size_t max_count; /* elements of any dtype, times size, are in range */
    int rank, size;
    int timeout_ms;
    uint64_t capabilities;
    dscomm_backend_ops_t ops;
    const dscomm_module_t *module;
    /* 2 * size entries, for one call: displacements of packed blocks; ranks */
    size_t *scratch;

    dscomm_group_works_t works;
    dscomm_group_schedules_t schedules;
    dscomm_group_recording_t recording;
    dscomm_group_memory_t memory;
    dscomm_group_identity_t identity;
    dscomm_group_life_t life;
};

#define DSCOMM_GROUP_ID_MAX 512 /* bytes of an id, which is part of keys */

/* Describes a group that is to be made. ranks: count ranks of parent, or NULL
 * for all of the world; rank is this process's number among them. */
typedef struct {
    struct dscomm_world *world;
    dscomm_group_t *parent; /* NULL for a world */
    const dscomm_module_t *module;
    const char *name, *id;
    const int *ranks;
    int rank, count;
    int timeout_ms;
    int64_t deadline; /* of opening it, dscomm_priv_clock() */
} dscomm_group_plan_t;

/* What a higher room keeps with each group. A function that is NULL has nothing
 * to do. */
typedef struct {
    bool (*open)(dscomm_group_t *group); /* false: there is no memory */
    void (*revoked)(dscomm_group_t *group); /* seen for the first time */
    /* The handle ends; the impl is still open. */
    void (*end)(dscomm_group_t *group);
    /* The impl is about to be closed. */
    void (*close)(dscomm_group_t *group);
    /* Nobody uses the group any more, which open may not have finished. */
    void (*free)(dscomm_group_t *group);
} dscomm_group_part_t;

/* The parts of groups, then NULL, in static memory; in this order their
 * functions are called. dscomm_init() sets them, before there is a group. */
void dscomm_priv_group_set_parts(const dscomm_group_part_t *const *parts);

dscomm_status_t dscomm_priv_group_open(const dscomm_group_plan_t *plan,
                                       dscomm_group_t **ret_group);

/* Ends the handle: pending works end with ERR_ABORTED, the impl is closed when
 * no child leans on it, the memory goes with the last work. */
void dscomm_priv_group_drop(dscomm_group_t *group);
/* Frees what is behind the handle, whatever still points at it. */
void dscomm_priv_group_destroy(dscomm_group_t *group);
/* Memory for a call that all ranks make, zeroed, for
 * dscomm_priv_buffer_drop(). NULL where there is none: the others would wait
 * for this rank, so the group ends. name is the public call's. */
void *dscomm_priv_group_memory(dscomm_group_t *group, const char *name,
                               size_t count, size_t size);

/* Adds or removes what keeps the memory. */
void dscomm_priv_group_hold(dscomm_group_t *group);
void dscomm_priv_group_release(dscomm_group_t *group);

/* Frees memory of the library's own that was part of a work, unless the backend
 * may still write to it. */
static inline void dscomm_priv_buffer_drop(const dscomm_group_t *group,
                                           void *memory)
{
    if (!group->works.held)
        g_free(memory);
}

/* OK, or why the handle stands for nothing: NULL or freed (ERR_INVALID),
 * forked (ERR_STATE). name is the public call's. */
dscomm_status_t dscomm_priv_group_alive(const dscomm_group_t *group,
                                        const char *name);
/* OK, or why nothing can run on group: NULL, forked, freed, revoked by any
 * rank. name is the public call's. */
dscomm_status_t dscomm_priv_group_usable(dscomm_group_t *group,
                                         const char *name);
/* As above, and not coalescing either. */
dscomm_status_t dscomm_priv_group_ready(dscomm_group_t *group,
                                        const char *name);
/* Ends the group for all ranks, unless that has happened before. Any thread. */
void dscomm_priv_group_revoke(dscomm_group_t *group, dscomm_status_t status,
                              const char *sentence);
/* The status with which the backend was revoked, its sentence to text; notes a
 * revocation in state. */
dscomm_status_t dscomm_priv_group_revoked(dscomm_group_t *group, char *text,
                                          size_t size);

/* What was attached, see dscomm_group_attach(), and memory that was handed
 * out. */
extern const dscomm_group_part_t dscomm_priv_attachments_part;
extern const dscomm_group_part_t dscomm_priv_memory_part;

/* Non-zero where an operation must take the slow path. */
static inline unsigned dscomm_priv_group_busy(const dscomm_group_t *group)
{
    unsigned attention =
        atomic_load_explicit(&dscomm_priv_attention, memory_order_relaxed);
    unsigned state = atomic_load_explicit(&group->state, memory_order_acquire);

    return state | (attention ^ group->generation);
}

/* Zero where a call may be recorded. */
static inline unsigned dscomm_priv_group_ended(const dscomm_group_t *group)
{
    unsigned attention =
        atomic_load_explicit(&dscomm_priv_attention, memory_order_relaxed);
    unsigned state = atomic_load_explicit(&group->state, memory_order_acquire);

    return (state & (GROUP_REVOKED | GROUP_FREED)) |
           (attention ^ group->generation);
}

/* The nodes of its ranks, or NULL where they have not two levels: all are on
 * one, or each has its own. */
static inline const dscomm_nodes_t *
dscomm_priv_group_levels(const dscomm_group_t *group)
{
    const int count = group->identity.nodes.count;

    return count > 1 && count < group->size ? &group->identity.nodes : NULL;
}

static inline int dscomm_priv_group_forked(const dscomm_group_t *group)
{
    return dscomm_priv_generation() != group->generation;
}

static inline void dscomm_priv_group_set(dscomm_group_t *group, unsigned bits)
{
    atomic_fetch_or_explicit(&group->state, bits, memory_order_acq_rel);
}

static inline void dscomm_priv_group_clear(dscomm_group_t *group, unsigned bits)
{
    atomic_fetch_and_explicit(&group->state, ~bits, memory_order_acq_rel);
}

static inline int dscomm_priv_group_is(const dscomm_group_t *group,
                                       unsigned bits)
{
    return atomic_load_explicit(&group->state, memory_order_acquire) & bits;
}

#endif
