/* SPDX-License-Identifier: BSD-3-Clause */
/* The compressor, and the channel that all compressors of a group share. */
#ifndef COMPRESSION_COMPRESSOR_H
#define COMPRESSION_COMPRESSOR_H

#include <dscomm/codec.h>
#include <dscomm/compression.h>

#include <glib.h>
#include <pthread.h>
#include <sys/types.h>

typedef struct dscomm_exchange dscomm_exchange_t;
typedef struct dscomm_device_side dscomm_device_side_t;
typedef struct dscomm_window dscomm_window_t;

/* Device memory of this group's ranks that they read directly from each other,
 * see window.h. */
typedef struct {
    dscomm_window_t *newest; /* NULL: there is none */
    int device; /* the device that has the memory */
    uint32_t pages; /* number of pages of all windows so far */
    uint32_t from; /* the first page that all ranks have */
    size_t demand; /* bytes that calls of all compressors at once would need */
    int refused; /* no window can be made, for the reason in why */
    int abandoned; /* a device may use the windows until the process ends */
    char why[256];
    pthread_mutex_t lock; /* protects the windows and their slots */
} dscomm_windows_t;

/* The device had no memory for so many bytes; the next `left` calls do not
 * request as much. */
typedef struct {
    size_t bytes;
    unsigned left, pause;
} dscomm_shortage_t;

/* A channel: the compressors' own group, whose messages match no others. */
typedef struct {
    dscomm_group_t *parent; /* NULL once it was freed */
    dscomm_group_t *group; /* NULL if the parent was freed, or has one rank */
    int rank, ranks;
    uint32_t identity; /* hash of the parent's id, the same on all its ranks */
    pid_t process; /* the process that has made the channel */
    int compressors; /* number of compressors that use it */
    int tags; /* number of tags in use */
    /* time-out of the parent, kept for the time after it was freed */
    int timeout_ms;
    int logged; /* a bit for each way of rows (way_t) that was logged */
    dscomm_windows_t windows;
    pthread_mutex_t lock; /* held during non-blocking calls on group */
    /* no other lock is taken and nothing is called while it is held */
    pthread_mutex_t idle_lock;
    dscomm_exchange_t *idle;
} dscomm_channel_t;

struct dscomm_compressor {
    dscomm_channel_t *channel;
    const dscomm_codec_t *codec;
    dscomm_codec_args_t args;
    dscomm_geometry_t geometry;
    dscomm_op_t op;
    int feedback;
    size_t count, padded, chunk; /* as in dscomm_compressor_info_t */
    float *worker; /* padded elements; NULL without feedback */
    float *server; /* errors of this rank's part; without feedback, scratch */
    /* Worker and server errors as they were before the last call, of a
     * recoverable compressor; else NULL. */
    float *kept;
    int recoverable;
    size_t asked; /* the attribute padded */
    uint8_t *mask; /* or NULL */
    size_t block; /* bytes of an encoded whole block */
    size_t row; /* bytes of an encoded part (row): header, codes, padding */
    uint32_t signature; /* hash of everything that must be equal on all ranks */
    /* hash of the mask, part of signature; 0 without a mask */
    uint32_t mask_hash;
    int tag; /* tag of its next results */
    uint32_t calls;
    gint busy; /* a call is outstanding */
    /* a call failed, so the errors are neither the old nor the new ones */
    int lost;
    dscomm_device_side_t *side; /* the device's copy of the errors, or NULL */
    dscomm_shortage_t shortage; /* shortage of device memory for the errors */
    void *stream; /* the program's stream; NULL: the default stream */
};

/* The header of a row, which is an encoded part. */
typedef struct {
    float scale;
    uint32_t signature;
    uint32_t call; /* number of the call, counted for each compressor */
    uint32_t phase; /* 0: to be reduced, 1: reduced */
} dscomm_row_header_t;

static inline size_t dscomm_priv_round_up(size_t count, size_t unit)
{
    return (count / unit + (count % unit != 0)) * unit;
}

/* The number of elements of part number part. */
static inline size_t dscomm_priv_part_count(const dscomm_compressor_t *c,
                                            int part)
{
    size_t before = (size_t)part * c->chunk;

    return before >= c->padded ? 0 : MIN(c->chunk, c->padded - before);
}

/* The bytes of the codes of count elements that begin with a block. */
size_t dscomm_priv_code_bytes(const dscomm_compressor_t *c, size_t count);

/* Computes the bytes of whole blocks and of rows; ERR_INVALID if the codec's
 * sizes are invalid. */
dscomm_status_t dscomm_priv_size_rows(dscomm_compressor_t *c);
/* The signature of rows of c for buffers of dtype. */
uint32_t dscomm_priv_row_signature(const dscomm_compressor_t *c,
                                   dscomm_dtype_t dtype);

/* The bytes that this rank sends in one call: to each other rank that rank's
 * part of the buffer, and the result of its own part. */
size_t dscomm_priv_wire_bytes(const dscomm_compressor_t *c);

/* The hash FNV-1a, continued from seed. */
uint32_t dscomm_priv_hash(const void *bytes, size_t count, uint32_t seed);
#define DSCOMM_HASH_SEED UINT32_C(2166136261)

/* OK if c is valid and idle; else a failure. name is the public call's. */
dscomm_status_t dscomm_priv_compressor_idle(const dscomm_compressor_t *c,
                                            const char *name);

/* As above; fails also if the errors are lost. In state.c. */
dscomm_status_t dscomm_priv_compressor_known(const dscomm_compressor_t *c,
                                             const char *name);

/* The calls of c that are complete on this rank. */
static inline uint32_t dscomm_priv_calls_complete(const dscomm_compressor_t *c)
{
    return c->calls - (c->lost ? 1 : 0);
}

/* The compressor of an earlier group whose errors a rank brings along. */
typedef struct {
    uint64_t chunk, padded;
    int32_t ranks, rank; /* of the earlier group; rank -1: there is none */
    uint32_t group; /* identity of the earlier group's channel */
    int32_t tag; /* number of the compressor in that group */
    uint32_t complete; /* calls */
    uint32_t unused;
} dscomm_origin_t;

/* In inherit.c. The origin of what old, which may be NULL, has. */
dscomm_origin_t dscomm_priv_origin(const dscomm_compressor_t *old);
/* Collective over group: gives c, whose errors are zero, the errors of the
 * ranks' old compressors. origins: of all ranks of group. */
dscomm_status_t dscomm_priv_errors_inherit(const char *name,
                                           dscomm_compressor_t *c,
                                           dscomm_compressor_t *old,
                                           dscomm_group_t *group,
                                           const dscomm_origin_t *origins);

/* Fails with ERR_NO_MEMORY, and ends group, because the other ranks would
 * wait. */
dscomm_status_t dscomm_priv_channel_fail(dscomm_group_t *group);
/* take returns the channel of group; if there is none, it makes one, which is
 * collective. give returns it when a compressor is freed. */
dscomm_status_t dscomm_priv_channel_take(dscomm_group_t *group,
                                         dscomm_channel_t **ret_channel);
void dscomm_priv_channel_give(dscomm_channel_t *channel);
/* OK if calls are possible; else the failure, with its sentence. */
dscomm_status_t dscomm_priv_channel_status(const dscomm_channel_t *channel);
/* 1 in a process that was forked after the channel was made: threads that do
 * not exist here may hold its locks. */
int dscomm_priv_channel_is_inherited(const dscomm_channel_t *channel);
/* The time-out of its group, in milliseconds; also after the group was
 * freed. */
int dscomm_priv_channel_timeout(const dscomm_channel_t *channel);
/* The key by which it is attached to its group. */
extern const char dscomm_priv_channel_key;
/* The channel of group, or NULL. */
dscomm_channel_t *dscomm_priv_channel_of(dscomm_group_t *group);

/* Runs one call on n compressors of one channel; arguments were checked. name
 * is the public call's. */
dscomm_status_t dscomm_priv_exchange(const char *name,
                                     dscomm_compressor_t *const *compressors,
                                     void *const *buffers, size_t n,
                                     dscomm_dtype_t dtype,
                                     dscomm_work_t **ret_work);
void dscomm_priv_exchange_free(dscomm_exchange_t *x);

#endif
