/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder. Each rank of a node writes its operations into a slot of
 * its own: the last RECORDER_CALLS of all its groups. The slots of a node lie
 * in one file in memory, which dscomm run makes, or else the node's first rank.
 * So a record outlives its process as long as any process of the node has the
 * memory. The file grows by a slot where all have owners; a rank maps its own
 * alone, a reader all of them. A rank that cannot have a slot there writes to
 * memory of its own.
 *
 * Several threads may write, on different groups: each call takes the next
 * entry. No lock is used. A reader may come at any time, and knows by the
 * entry's serial number whether it has read one call. */
#ifndef LIB_RECORDER_H
#define LIB_RECORDER_H

#include "lib/base/ticks.h"

#include <dscomm/backend.h>
#include <dscomm/failure.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RECORDER_CALLS 1024 /* entries of a slot */
#define RECORDER_GROUPS 64 /* the last groups of a slot */
#define RECORDER_DETAILS 64 /* the last calls that have a detail */
/* Ranks whose counts a detail has: the first ones. They take 64 KiB of a slot.
 */
#define RECORDER_COUNTS 64
#define RECORDER_COUNTS_SHOWN 8 /* of these, in the text of a call */

/* Blocking calls of fewer bytes get RECORDER_ENDED in place of the time of
 * their end, because reading the counter takes 10 ns, as long as all else that
 * the recorder does. */
#define RECORDER_TIMED_BYTES 4096
#define RECORDER_ENDED 1

/* The words of an entry; two or more numbers share the last three. */
enum {
    WORD_SERIAL, /* of the call in its slot, from 1; 0: being written */
    WORD_SEQUENCE,
    WORD_CALLED, /* ticks */
    WORD_ENDED, /* ticks, or RECORDER_ENDED; 0: not ended */
    WORD_COUNT,
    WORD_PEER, /* fingerprint; root or peer */
    WORD_GROUP, /* number of the group in the slot; tag */
    WORD_WHAT, /* coll, dtype, op, flags; number of its detail; status */
    WORDS
};

typedef struct {
    _Alignas(64) _Atomic uint64_t word[WORDS];
} dscomm_recorder_entry_t;

enum {
    RECORDED_ASYNC = 1 << 0, /* the caller got a work */
    /* no call of the program: the library's own message, or a custom work */
    RECORDED_INTERNAL = 1 << 1,
    RECORDED_STARTED = 1 << 2, /* the backend or a schedule has begun it */
};

/* A work of dscomm_work_create(), beside the operations of dscomm_coll_t. It
 * has no sequence number. */
#define RECORDED_CUSTOM 100

/* A side table for what exceeds an entry: the counts of a _v call, and the text
 * of a user's operator. */
typedef struct {
    _Atomic uint64_t serial; /* of its call */
    uint64_t ncounts, sum; /* of counts that are equal on all ranks */
    uint64_t counts[RECORDER_COUNTS]; /* of what is received */
    uint64_t send_counts[RECORDER_COUNTS];
    char op[DSCOMM_OP_TEXT];
} dscomm_recorder_detail_t;

typedef struct {
    _Atomic uint32_t number; /* 0: unused, or being written */
    int32_t rank, size; /* of the group */
    char name[64], id[96], backend[20]; /* cut off if they are longer */
} dscomm_recorder_group_t;

/* The record of one rank of one world. A process that reads it must not trust
 * it: another one may write anything. */
typedef struct {
    _Atomic int64_t owner; /* the pid that writes; 0: none does */
    _Atomic int64_t pid; /* of the last owner; 0: never used */
    int32_t rank, size; /* in the world */
    uint32_t is_counted; /* the owner's dscomm_priv_ticks_counted */
    dscomm_moment_t opened;
    char world[24]; /* identity of the world, equal on all its ranks */
    _Alignas(64) _Atomic uint64_t calls; /* serial of the last call */
    _Alignas(64) _Atomic uint32_t groups; /* number of the last group */
    _Atomic uint32_t details; /* number of the last detail */
    _Atomic uint32_t has_failed; /* 1: being written, 2: failure is valid */
    dscomm_failure_t failure; /* the first of any group */
    char sentence[512]; /* of that */
    dscomm_recorder_group_t group[RECORDER_GROUPS];
    dscomm_recorder_detail_t detail[RECORDER_DETAILS];
    _Alignas(4096) dscomm_recorder_entry_t entry[RECORDER_CALLS];
} dscomm_recorder_slot_t;

#define RECORDER_MAGIC "dscommfr"
#define RECORDER_VERSION 5
#define RECORDER_SLOTS_MAX 16384
#define RECORDER_ID 17 /* bytes of an identity, with the final 0 */

/* The memory of a node. */
typedef struct {
    char magic[8]; /* RECORDER_MAGIC */
    uint32_t version;
    _Atomic uint32_t dumps; /* failures for which it was written to a file */
    uint64_t slot_bytes; /* sizeof(dscomm_recorder_slot_t) */
    /* ns since 1970 when it was last written because of a signal; 0: never */
    _Atomic int64_t signalled_ns;
    char id[RECORDER_ID]; /* random */
    char job[108]; /* run id of dscomm run, or the maker's pid */
    _Alignas(4096) dscomm_recorder_slot_t slot[]; /* as many as it has room */
} dscomm_recorder_memory_t;

/* A process's view of the memory. */
typedef struct {
    dscomm_recorder_memory_t *memory; /* NULL: none */
    uint32_t slots; /* that are mapped with it */
    int fd;
    dscomm_recorder_slot_t *slot; /* this rank's; NULL: none */
    uint32_t number; /* of that */
} dscomm_recorder_t;
#define DSCOMM_RECORDER_INIT                                                   \
    {                                                                          \
        NULL, 0, -1, NULL, 0                                                   \
    }

/* The access that a process has to the memory. A rank writes its own slot. */
typedef enum { RECORDER_READ, RECORDER_WRITE } dscomm_recorder_access_t;

/* memory.c. Functions that return NULL have succeeded; else they return a
 * static sentence, or one about errno in a buffer of the thread. */

/* The slot of worlds that cannot share memory. */
extern dscomm_recorder_slot_t dscomm_priv_recorder_spare;

/* Makes memory without slots. */
const char *dscomm_priv_recorder_create(const char *job,
                                        dscomm_recorder_t *ret_recorder);
/* Opens the memory that process pid has as descriptor fd, without its slots.
 * Only memory of the same user is accepted. */
const char *dscomm_priv_recorder_open(int64_t pid, int fd,
                                      dscomm_recorder_access_t access,
                                      dscomm_recorder_t *ret_recorder);
/* Finds the memory in process pid by its name, and opens it. */
const char *dscomm_priv_recorder_find(int64_t pid,
                                      dscomm_recorder_access_t access,
                                      dscomm_recorder_t *ret_recorder);
/* Maps all slots that recorder's memory has now. To write there, recorder must
 * be writable too. ret_view is closed like recorder, which must stay open as
 * long. */
const char *dscomm_priv_recorder_view(const dscomm_recorder_t *recorder,
                                      dscomm_recorder_access_t access,
                                      dscomm_recorder_t *ret_view);
/* Takes a slot for this rank: the preferred one, or the first that no living
 * process has. world: its identity. */
const char *dscomm_priv_recorder_claim(dscomm_recorder_t *recorder,
                                       int preferred, const char *world,
                                       int rank, int size);
/* Gives the slot back, but leaves its contents, and unmaps the memory. Does
 * nothing in a forked child, which is not the slot's owner, but unmapping. */
void dscomm_priv_recorder_close(dscomm_recorder_t *recorder);

/* Adds a group, and returns its number in the slot. */
uint32_t dscomm_priv_recorder_group(dscomm_recorder_slot_t *slot,
                                    const char *name, const char *id, int rank,
                                    int size, const char *backend);
/* Keeps the slot's first failure, with its sentence. */
void dscomm_priv_recorder_fail(dscomm_recorder_slot_t *slot,
                               const dscomm_failure_t *failure,
                               const char *sentence);
/* Adds the detail of args to the call with this serial; returns the detail's
 * number. ranks: of the group. */
uint32_t dscomm_priv_recorder_detail(dscomm_recorder_slot_t *slot,
                                     uint64_t serial,
                                     const dscomm_coll_args_t *args, int ranks);

/* read.c */

/* A call, as it was read. */
typedef struct {
    uint64_t serial, sequence, called, ended, count;
    uint32_t fingerprint, group;
    int peer, tag; /* peer: or root */
    int coll, dtype, op;
    unsigned flags; /* RECORDED_* */
    unsigned detail; /* 0: none */
    int status;
} dscomm_recorded_t;

/* Reads the call with this serial; false if it is no longer there, or is being
 * written. */
bool dscomm_priv_recorder_read(const dscomm_recorder_slot_t *slot,
                               uint64_t serial, dscomm_recorded_t *ret_call);
/* Reads the detail of call; false if there is none any more. */
bool dscomm_priv_recorder_read_detail(const dscomm_recorder_slot_t *slot,
                                      const dscomm_recorded_t *call,
                                      dscomm_recorder_detail_t *ret_detail);
/* Reads the group with that number; false if it is no longer there. */
bool dscomm_priv_recorder_read_group(const dscomm_recorder_slot_t *slot,
                                     uint32_t number,
                                     dscomm_recorder_group_t *ret_group);
/* "all_reduce", "recv" or "custom"; static. */
const char *dscomm_priv_recorder_operation(int coll);
/* Describes a collective, as dscomm_coll_describe() does, with the counts of a
 * _v call: "all_gather_v(counts 5, 12, 5, sum 22, int32) #7"; or a message:
 * "recv from rank 1 with tag 5"; or "custom work". Returns text. */
const char *dscomm_priv_recorder_describe(const dscomm_recorder_slot_t *slot,
                                          const dscomm_recorded_t *call,
                                          char *text, size_t size);

/* Writing. All are called by the thread that makes the call. */

static inline void dscomm_priv_recorder_store(dscomm_recorder_entry_t *entry,
                                              int word, uint64_t value)
{
    atomic_store_explicit(&entry->word[word], value, memory_order_relaxed);
}

static inline dscomm_recorder_entry_t *
dscomm_priv_recorder_entry(dscomm_recorder_slot_t *slot, uint64_t serial)
{
    return &slot->entry[serial % RECORDER_CALLS];
}

/* Takes the next entry; returns its serial. */
static inline uint64_t dscomm_priv_recorder_take(dscomm_recorder_slot_t *slot)
{
    const uint64_t serial =
        atomic_fetch_add_explicit(&slot->calls, 1, memory_order_relaxed) + 1;

    dscomm_priv_recorder_store(dscomm_priv_recorder_entry(slot, serial),
                               WORD_SERIAL, 0);
    atomic_thread_fence(memory_order_release);
    return serial;
}

static inline uint64_t dscomm_priv_recorder_pair(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

static inline uint64_t dscomm_priv_recorder_what(int coll, int dtype, int op,
                                                 unsigned flags,
                                                 uint32_t detail)
{
    return (uint64_t)(uint8_t)coll | (uint64_t)(uint8_t)dtype << 8 |
           (uint64_t)(uint8_t)op << 16 | (uint64_t)(uint8_t)flags << 24 |
           (uint64_t)(uint16_t)detail << 32;
}

static inline void dscomm_priv_recorder_publish(dscomm_recorder_entry_t *entry,
                                                uint64_t serial)
{
    atomic_store_explicit(&entry->word[WORD_SERIAL], serial,
                          memory_order_release);
}

/* Records that a collective was called; returns its serial, for the end. group:
 * its number in the slot; ranks: of the group. */
static inline uint64_t
dscomm_priv_recorder_collective(dscomm_recorder_slot_t *slot, uint32_t group,
                                int ranks, const dscomm_coll_args_t *args,
                                unsigned flags)
{
    const uint64_t serial = dscomm_priv_recorder_take(slot);
    dscomm_recorder_entry_t *entry = dscomm_priv_recorder_entry(slot, serial);
    uint32_t detail = 0;

    /* one test of three pointers, because most calls have none */
    if (__builtin_expect(((uintptr_t)args->recv_counts |
                          (uintptr_t)args->send_counts |
                          (uintptr_t)args->user) != 0,
                         false))
        detail = dscomm_priv_recorder_detail(slot, serial, args, ranks);
    dscomm_priv_recorder_store(entry, WORD_SEQUENCE, args->sequence);
    dscomm_priv_recorder_store(entry, WORD_CALLED, dscomm_priv_ticks());
    dscomm_priv_recorder_store(entry, WORD_ENDED, 0);
    dscomm_priv_recorder_store(entry, WORD_COUNT, args->count);
    dscomm_priv_recorder_store(
        entry, WORD_PEER,
        dscomm_priv_recorder_pair(args->fingerprint, (uint32_t)args->root));
    dscomm_priv_recorder_store(entry, WORD_GROUP,
                               dscomm_priv_recorder_pair(group, UINT32_MAX));
    dscomm_priv_recorder_store(entry, WORD_WHAT,
                               dscomm_priv_recorder_what(args->coll,
                                                         args->dtype, args->op,
                                                         flags, detail));
    dscomm_priv_recorder_publish(entry, serial);
    return serial;
}

/* The same for a message; sequence counts messages. */
static inline uint64_t
dscomm_priv_recorder_message(dscomm_recorder_slot_t *slot, uint32_t group,
                             int coll, const dscomm_message_t *message,
                             int dtype, size_t count, uint64_t sequence,
                             unsigned flags)
{
    const uint64_t serial = dscomm_priv_recorder_take(slot);
    dscomm_recorder_entry_t *entry = dscomm_priv_recorder_entry(slot, serial);

    dscomm_priv_recorder_store(entry, WORD_SEQUENCE, sequence);
    dscomm_priv_recorder_store(entry, WORD_CALLED, dscomm_priv_ticks());
    dscomm_priv_recorder_store(entry, WORD_ENDED, 0);
    dscomm_priv_recorder_store(entry, WORD_COUNT, count);
    dscomm_priv_recorder_store(
        entry, WORD_PEER,
        dscomm_priv_recorder_pair(0, (uint32_t)message->peer));
    dscomm_priv_recorder_store(
        entry, WORD_GROUP,
        dscomm_priv_recorder_pair(group, (uint32_t)message->tag));
    dscomm_priv_recorder_store(
        entry, WORD_WHAT, dscomm_priv_recorder_what(coll, dtype, -1, flags, 0));
    dscomm_priv_recorder_publish(entry, serial);
    return serial;
}

/* Changes a call that is still there: sets the bits what, and the end unless
 * that is 0. Both become visible in this order. */
void dscomm_priv_recorder_change(dscomm_recorder_slot_t *slot, uint64_t serial,
                                 uint64_t what, uint64_t ended);

#define RECORDED_STATUS_SHIFT 48

/* Records the end of a blocking call of so many bytes. */
static inline void dscomm_priv_recorder_end(dscomm_recorder_slot_t *slot,
                                            uint64_t serial, size_t bytes,
                                            dscomm_status_t status)
{
    dscomm_recorder_entry_t *entry = dscomm_priv_recorder_entry(slot, serial);

    if (__builtin_expect(bytes >= RECORDER_TIMED_BYTES || status < 0, false))
        dscomm_priv_recorder_change(
            slot, serial, (uint64_t)(uint8_t)status << RECORDED_STATUS_SHIFT,
            dscomm_priv_ticks());
    else if (atomic_load_explicit(&entry->word[WORD_SERIAL],
                                  memory_order_relaxed) == serial)
        dscomm_priv_recorder_store(entry, WORD_ENDED, RECORDER_ENDED);
}

#endif
