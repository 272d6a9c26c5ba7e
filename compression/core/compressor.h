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

/* Memory of devices that the group's ranks read of each other, see window.h. */
typedef struct {
    dscomm_window_t *newest; /* NULL: there is none */
    int device; /* whose memory they are */
    uint32_t pages; /* of all that there were */
    uint32_t from; /* the first one that all ranks have */
    size_t demand; /* bytes: what all compressors would have at once */
    int refused; /* there will be none, for this reason */
    int abandoned; /* a device may use them until the process ends */
    char why[256];
    pthread_mutex_t lock; /* of the windows, and of what is taken of them */
} dscomm_windows_t;

/* The device did not have so many bytes; left calls do not ask for as much. */
typedef struct {
    size_t bytes;
    unsigned left, pause;
} dscomm_shortage_t;

/* A group of the compressors' own, so that their messages match nobody
 * else's. */
typedef struct {
    dscomm_group_t *parent; /* NULL once it was freed */
    dscomm_group_t *group; /* NULL then, and where the parent has one rank */
    int rank, ranks;
    pid_t process; /* that has made it */
    int compressors; /* that use it */
    int tags; /* given out */
    int timeout_ms; /* of the parent that was freed */
    int logged; /* ways of a device's rows, a bit each */
    dscomm_windows_t windows;
    pthread_mutex_t lock; /* of calls on group that do not wait */
    pthread_mutex_t idle_lock; /* with it held nothing is called */
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
    float *server; /* of this rank's part; scratch without feedback */
    uint8_t *mask; /* or NULL */
    size_t block; /* bytes of an encoded block that is whole */
    size_t row; /* bytes of an encoded part: header, code, filling */
    uint32_t signature; /* of all that must be the same on all ranks */
    uint32_t mask_hash; /* part of it; 0 without a mask */
    int tag; /* of its results: the next one */
    uint32_t calls;
    gint busy; /* a call is outstanding */
    int lost; /* one failed: errors are neither those before nor after it */
    dscomm_device_side_t *side; /* the errors on a device, or NULL */
    dscomm_shortage_t shortage; /* of memory for these */
    void *stream; /* of the program, or NULL: the default one */
};

/* What stands at the beginning of an encoded part. */
typedef struct {
    float scale;
    uint32_t signature;
    uint32_t call; /* number, on the compressor */
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

/* The bytes that count elements from the first of a block on become. */
size_t dscomm_priv_code_bytes(const dscomm_compressor_t *c, size_t count);

/* The bytes of whole blocks and of rows; ERR_INVALID where the codec's make no
 * sense. */
dscomm_status_t dscomm_priv_size_rows(dscomm_compressor_t *c);
/* The signature of what rows of c carry if its buffer is of dtype. */
uint32_t dscomm_priv_row_signature(const dscomm_compressor_t *c,
                                   dscomm_dtype_t dtype);

/* FNV-1a, from seed on. */
uint32_t dscomm_priv_hash(const void *bytes, size_t count, uint32_t seed);
#define DSCOMM_HASH_SEED UINT32_C(2166136261)

/* OK and idle, or a sentence; name is the public call's. */
dscomm_status_t dscomm_priv_compressor_idle(const dscomm_compressor_t *c,
                                            const char *name);

/* The same for one whose errors mean something, in state.c. */
dscomm_status_t dscomm_priv_compressor_known(const dscomm_compressor_t *c,
                                             const char *name);

/* Fails with ERR_NO_MEMORY, and ends group: the other ranks would wait. */
dscomm_status_t dscomm_priv_channel_fail(dscomm_group_t *group);
/* The channel of group, made if there is none; collective in that case. */
dscomm_status_t dscomm_priv_channel_take(dscomm_group_t *group,
                                         dscomm_channel_t **ret_channel);
void dscomm_priv_channel_give(dscomm_channel_t *channel);
/* OK while there is nothing against a call; a failure, and the sentence. */
dscomm_status_t dscomm_priv_channel_status(const dscomm_channel_t *channel);
/* 1 in a process forked since it was made, where its locks may be held by
 * threads that are not there. */
int dscomm_priv_channel_is_inherited(const dscomm_channel_t *channel);
/* The time-out of its group, in milliseconds, be that over or not. */
int dscomm_priv_channel_timeout(const dscomm_channel_t *channel);
/* The key by which it is attached to its group. */
extern const char dscomm_priv_channel_key;
/* That of group, if there is one. */
dscomm_channel_t *dscomm_priv_channel_of(dscomm_group_t *group);

/* One call on n compressors of one channel, checked; name is the public
 * call's. */
dscomm_status_t dscomm_priv_exchange(const char *name,
                                     dscomm_compressor_t *const *compressors,
                                     void *const *buffers, size_t n,
                                     dscomm_dtype_t dtype,
                                     dscomm_work_t **ret_work);
void dscomm_priv_exchange_free(dscomm_exchange_t *x);

#endif
