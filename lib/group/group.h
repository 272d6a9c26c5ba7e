/* SPDX-License-Identifier: BSD-3-Clause */
/* The group. Its first members are those that every collective reads. */
#ifndef LIB_GROUP_H
#define LIB_GROUP_H

#include <dscomm/backend.h>
#include <dscomm/dscomm.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "lib/base/array.h"
#include "lib/base/process.h"
#include "lib/module/module.h"
#include "lib/recorder/recorder.h"
#include "lib/rendezvous/nodes.h"

struct dscomm_world;
typedef struct dscomm_schedule_cache dscomm_schedule_cache_t;

/* Bits of dscomm_group.state. Any of them sends an operation to the slow
 * path. */
enum {
    GROUP_REVOKED = 1 << 0, /* ended; the backend's status has the failure */
    GROUP_COALESCING = 1 << 1, /* calls are recorded */
    GROUP_PENDING = 1 << 2, /* works run: calls to the backend need the lock */
    GROUP_SLOW = 1 << 3, /* the backend has no slot run, or native must be
                            called before each call of run */
    GROUP_FREED = 1 << 4, /* the user freed it; later members are invalid */
    GROUP_SCHEDULED = 1 << 5, /* some pending works are schedules */
    GROUP_STATUS_READ = 1 << 6, /* the user has asked why the group ended */
};

/* Treatment of buffers in device memory: they are passed to the backend, or
 * replaced by copies in host memory. */
enum { GROUP_DEVICES_TAKEN = 1, GROUP_DEVICES_STAGED };

/* Coalesced all_reduces of adjoining buffers become one call, the extended
 * call. The first members show whether the next all_reduce can be added; parts,
 * fingerprint and bytes are those of the calls already added, which the
 * extended call gets at the end of the recording. */
typedef struct {
    struct dscomm_call *call; /* the extended call; NULL: none */
    const char *send, *recv; /* the ends of its buffers */
    size_t element; /* bytes of one element */
    size_t most_count, most; /* limits: elements of one call, bytes of all */
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    uint32_t parts;
    uint32_t fingerprint; /* including that of call */
    size_t bytes;
} dscomm_extension_t;

/* The group's identity; set while it is made, constant afterwards. */
typedef struct {
    struct dscomm_world *world;
    char *name, *id; /* part of the group's memory block */
    int *world_ranks; /* size entries: rank in the group to rank in the world */
    int *from_world; /* an entry for each rank of the world: its rank in the
                        group, or -1 */
    int local_rank, local_size, node_rank;
    dscomm_nodes_t nodes; /* of its ranks */
} dscomm_group_identity_t;

/* The lifetime of the group, and what lives as long as it does. */
typedef struct {
    atomic_int uses; /* the open handle and open children: keep impl open */
    atomic_int holds; /* the open impl and works not freed: keep the memory */
    dscomm_group_t *parent; /* this group's impl may use the parent's impl */
    struct dscomm_creation *creation; /* while open runs, see creation.h */
    dscomm_store_t *base; /* the world's store, or its standby store */
    dscomm_store_t *store; /* the group's part of base */
    uint64_t children, messages, barriers; /* counters for ids */
    unsigned shrink_rounds; /* that this rank has begun; shrink.c */
    SLIST_HEAD(, dscomm_list) lists; /* of members_only; group-new.c */
    LIST_ENTRY(dscomm_group) in_world; /* world->groups */
    STAILQ_ENTRY(dscomm_group) in_freed; /* see world.c */
    SLIST_HEAD(, dscomm_attachment) attachments;
} dscomm_group_life_t;

/* The blocking collective that overdue.c watches. */
typedef struct {
    LIST_ENTRY(dscomm_group) in_list;
    bool listed;
    bool reported; /* that it is overdue */
    _Atomic uint64_t running; /* its serial in the flight recorder, or 0 */
    uint64_t seen; /* running, at the last look */
    int64_t since_ns; /* when that was seen first */
} dscomm_group_overdue_t;

/* The oldest collective that was pending when this rank saw that the group had
 * ended. Set once, with works.lock held; is_set is stored last, because other
 * threads read it without the lock. */
typedef struct {
    atomic_bool is_set;
    int coll;
    uint64_t sequence;
    char text[160]; /* dscomm_coll_describe() */
} dscomm_interrupted_t;

/* Works, and the state of waits for them. */
typedef struct {
    pthread_mutex_t lock;
    struct dscomm_work *pending, *pending_tail; /* started, in order */
    struct dscomm_work *idle; /* free list */
    struct dscomm_work_slab *slabs; /* memory of works; work.c */
    size_t size; /* bytes of one work, with its request */
    dscomm_request_t *request; /* of a blocking receive */
    SLIST_HEAD(, dscomm_matched)
    matched; /* messages that probes have set aside */
    uint64_t completed; /* progress counter: retired works, messages, and parts
                           of messages */
    int unscanned; /* 1: a slot ran that may have completed requests */
    /* Of the current wait: the counter completed at the last reading of the
     * clock, and that time in ns (0: none yet). */
    uint64_t wait_seen;
    int64_t wait_last;
    /* ns: time waited without progress, over all waits since the last schedule
     * was started */
    int64_t stalled;
    unsigned looks; /* diagnoses made in that time */
    /* 1 while dscomm_priv_works_expire() runs. It may release the lock, so the
     * group must stay in the list and must not be closed. */
    int expiring;
    bool watched; /* the library's thread knows that the group has works */
    unsigned scheduled; /* dscomm_priv_works_scheduled() */
    unsigned custom; /* pending works of dscomm_work_create() */
    /* Starts what other ranks ask of this rank's memory; returns their number.
     * Called with the lock held, after each progress of the backend. NULL: they
     * can ask for nothing. */
    unsigned (*serve)(struct dscomm_group *group);
    int held; /* 1: after a cancel, the backend kept buffers of works */
    dscomm_interrupted_t interrupted;
    LIST_ENTRY(dscomm_group) in_list; /* of groups with works */
    atomic_int event; /* 1 + descriptor of dscomm_group_fd(); 0: none */
    LIST_ENTRY(dscomm_group) in_watched; /* the list of event.c */
} dscomm_group_works_t;

/* Collectives that the core runs over messages. */
typedef struct {
    const GArray *rules; /* the world's */
    uint32_t ruled; /* bit c: a rule may serve dscomm_coll_t c here */
    bool ruled_known;
    dscomm_schedule_cache_t *cache; /* NULL: no schedule was made yet */
    struct dscomm_run *begun; /* which the next work goes on with; or NULL */
    uint32_t chain; /* hash of the schedules' fingerprints, in their order */
    uint32_t logged; /* bit c: the choice for dscomm_coll_t c was logged */
} dscomm_group_schedules_t;

/* Calls that are being coalesced. */
typedef struct {
    dscomm_array_t calls; /* dscomm_call_t */
    size_t bytes; /* of the buffers of calls that can still be fused */
    guint last; /* 1 + index of the last collective; 0: none */
    dscomm_extension_t extension;
} dscomm_group_recording_t;

/* Memory known to transports or devices. */
typedef struct {
    SLIST_HEAD(, dscomm_area) allocated; /* memory.c */
    SLIST_HEAD(, dscomm_mem) registered; /* call/registered.c */
    uint64_t registrations; /* made so far */
    /* Puts by messages, of each rank: those begun to it, then those of its that
     * are in this rank's memory. NULL: none yet. */
    uint64_t *puts;
    uint64_t followed; /* the puts before the last signal that has come */
    uint64_t signals; /* of this rank to itself, not yet taken */
    int devices; /* GROUP_DEVICES_*; 0: not known yet */
    void *stream; /* of calls with buffers in device memory */
    struct dscomm_device_times *times; /* of these calls; device-time.c */
} dscomm_group_memory_t;

/* Locking. While GROUP_PENDING is set, other threads may make progress on the
 * group, so calls into the backend, the list of pending works and the free list
 * need works.lock. While it is clear, these belong to the thread that uses the
 * group; so a blocking collective needs no lock. Only a holder of the lock sets
 * or clears GROUP_PENDING. Order: a group's lock, then the list of groups in
 * progress.c, then another group's lock, by trylock only. */
struct dscomm_group {
    /* Every collective reads these. */
    atomic_uint state;
    unsigned generation; /* fork generation of the process that made it */
    void *impl;
    dscomm_status_t (*run)(void *impl, const dscomm_coll_args_t *args);
    /* 1: GROUP_SLOW is set only because native must be called before each call
     * of run, or because there are rules for some collectives */
    int queries_native;
    uint64_t sequence; /* of the last collective */
    uint64_t number; /* of the group in this process, from 1 */
    dscomm_recorder_slot_t *recorder; /* this rank's, of the world */
    uint32_t recorded_as; /* number of the group there */
    /* the largest count for which count elements of any dtype, times size, do
     * not overflow */
    size_t max_count;
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
    dscomm_group_overdue_t overdue;
};

/* bytes of an id, which is part of the store's keys */
#define DSCOMM_GROUP_ID_MAX 512

/* Describes a group that is to be made. ranks: count ranks of parent, or NULL
 * for all of the world; rank is this process's number among them. */
typedef struct {
    struct dscomm_world *world;
    dscomm_group_t *parent; /* NULL for a world */
    /* The parent has failed: the new group shares nothing with its impl, and
     * does not end with it. */
    bool after_failure;
    const dscomm_module_t *module;
    const char *name, *id;
    const int *ranks;
    int rank, count;
    int timeout_ms;
    /* of the call that makes the group, dscomm_priv_clock() */
    int64_t deadline;
} dscomm_group_plan_t;

/* When functions of a part are called. */
typedef enum {
    PART_REVOKED, /* once, when this rank sees that the group is revoked */
    PART_END, /* the user has freed the handle; the impl is still open */
    PART_CLOSE, /* the impl is about to be closed */
    PART_FREE, /* before the group's memory is freed; also if open failed */
    PART_FORGET, /* before its structure is, which may be long after */
    PART_EVENTS
} dscomm_part_event_t;

/* Functions of a higher room that keeps something with each group. Each may be
 * NULL. */
typedef struct {
    bool (*open)(dscomm_group_t *group); /* false: there is no memory */
    void (*on[PART_EVENTS])(dscomm_group_t *group);
} dscomm_group_part_t;

/* The parts of groups: static memory that ends with NULL. Their functions are
 * called in this order. dscomm_init() sets them before the first group is
 * made. */
extern const dscomm_group_part_t *const *dscomm_priv_group_parts;
void dscomm_priv_group_parts_call(dscomm_group_t *group,
                                  dscomm_part_event_t event);

dscomm_status_t dscomm_priv_group_open(const dscomm_group_plan_t *plan,
                                       dscomm_group_t **ret_group);
/* Called by a rank that will not open the group, in place of open: the others
 * would wait in the backend's open, so the failure is published in the store;
 * if that fails, the parent is revoked. Returns the failure's status. */
dscomm_status_t dscomm_priv_group_refuse(const dscomm_group_plan_t *plan,
                                         dscomm_failure_t *failure);

/* Returns the store in which the survivors of a group meet, and which groups
 * made of them use. NULL: there is none, or this rank could not open it. */
dscomm_store_t *dscomm_priv_group_base_after(const dscomm_group_t *failed);

/* Ends the handle. Pending works end with ERR_ABORTED. The impl is closed when
 * the last child that uses it is closed; the memory is freed with the last
 * work. */
void dscomm_priv_group_drop(dscomm_group_t *group);
/* Frees the group's memory at once. Works that still point at it become
 * invalid. */
void dscomm_priv_group_destroy(dscomm_group_t *group);
/* Returns zeroed memory for a call that all ranks make; free it by
 * dscomm_priv_buffer_drop(). Without memory it returns NULL and revokes the
 * group, because the other ranks would wait for this one. name is the public
 * call's. */
void *dscomm_priv_group_memory(dscomm_group_t *group, const char *name,
                               size_t count, size_t size);

/* Takes or drops a reference that keeps the group's memory. */
void dscomm_priv_group_hold(dscomm_group_t *group);
void dscomm_priv_group_release(dscomm_group_t *group);

/* Frees a buffer that the library allocated for a work, unless the backend may
 * still write to it. */
static inline void dscomm_priv_buffer_drop(const dscomm_group_t *group,
                                           void *memory)
{
    dscomm_priv_buffer_free(memory, group->works.held);
}

/* Fails with ERR_INVALID and "NAME on group 'GROUP': " before the rest of the
 * sentence. name is the public call's. */
dscomm_status_t dscomm_priv_invalid(const dscomm_group_t *group,
                                    const char *name, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* OK, or the reason why the handle is invalid: NULL or freed (ERR_INVALID), or
 * inherited by fork (ERR_STATE). name is the public call's. */
dscomm_status_t dscomm_priv_group_alive(const dscomm_group_t *group,
                                        const char *name);
/* OK, or the reason why no call can run on group: as above, or the group was
 * revoked. name is the public call's. */
dscomm_status_t dscomm_priv_group_usable(dscomm_group_t *group,
                                         const char *name);
/* As above; fails as well while calls are coalesced. */
dscomm_status_t dscomm_priv_group_ready(dscomm_group_t *group,
                                        const char *name);
/* Parts that end the attachments, see dscomm_group_attach(), and free the
 * memory of dscomm_mem_alloc(). */
extern const dscomm_group_part_t dscomm_priv_attachments_part;
extern const dscomm_group_part_t dscomm_priv_memory_part;

/* The bits of mask that are set in state; other bits if the process forked or
 * has hooks. */
static inline unsigned dscomm_priv_group_bits(const dscomm_group_t *group,
                                              unsigned mask)
{
    unsigned attention =
        atomic_load_explicit(&dscomm_priv_attention, memory_order_relaxed);
    unsigned state = atomic_load_explicit(&group->state, memory_order_acquire);

    return (state & mask) | (attention ^ group->generation);
}

/* Non-zero if an operation must take the slow path. */
static inline unsigned dscomm_priv_group_busy(const dscomm_group_t *group)
{
    return dscomm_priv_group_bits(group, ~0u);
}

/* Called before a call returns a failure of the backend: if that has revoked
 * the group, the parts learn it now, because the program may end next. Keeps
 * dscomm_last_error(). */
void dscomm_priv_group_failed(dscomm_group_t *group);

/* Runs a blocking collective that has its sequence by the backend's slot, and
 * records it. */
static inline dscomm_status_t
dscomm_priv_group_run(dscomm_group_t *group, const dscomm_coll_args_t *args)
{
    const uint64_t serial =
        dscomm_priv_recorder_collective(group->recorder, group->recorded_as,
                                        group->size, args, RECORDED_STARTED);
    dscomm_status_t status;

    atomic_store_explicit(&group->overdue.running, serial,
                          memory_order_relaxed);
    status = group->run(group->impl, args);
    atomic_store_explicit(&group->overdue.running, 0, memory_order_relaxed);
    dscomm_priv_recorder_end(group->recorder, serial,
                             args->count * args->element, status);
    if (G_UNLIKELY(status < 0))
        dscomm_priv_group_failed(group);
    return status;
}

/* The nodes of the group's ranks; NULL if all are on one. */
static inline const dscomm_nodes_t *
dscomm_priv_group_nodes(const dscomm_group_t *group)
{
    return group->identity.nodes.count > 1 ? &group->identity.nodes : NULL;
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
