/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressed all-reduce with error feedback, on any backend.
 *
 * A compressor belongs to one buffer of one group. The error that compression
 * makes in one call is added to the buffer of the next, so that over many calls
 * nothing is lost. This error is the compressor's state. Each rank has a worker
 * error, for the whole buffer, and a server error, for the part of the buffer
 * that it reduces for all ranks.
 *
 * One call, with n ranks: each rank adds its worker error to the buffer,
 * encodes the sum and sends part j to rank j. Rank j decodes the parts that it
 * receives, sums them in the order of ranks, adds its server error, encodes the
 * result and sends it to all. All ranks decode the same bytes, so all get the
 * same bits. Arithmetic is in float32 whatever the buffer's dtype. The
 * algorithm is that of 1-bit Adam (arXiv:2102.02888, section 4.2), as in
 * DeepSpeed's compressed_allreduce.
 *
 * Codec "onebit" sends one bit for each element: 1 unless the element is less
 * than zero, so 1 also for -0 and NaN. Each encoding has one scale, the root of
 * the mean square, which is finite if the elements are. If an element on any
 * rank is NaN or infinite, or exceeds float32 after its error was added, the
 * whole result is not finite, on all ranks. In the native geometry the result
 * is then NaN, also if the sum of all scales exceeds float32; the errors stay
 * as before the call, except for rounding, so that later calls are not
 * affected. In DeepSpeed's geometry the result is NaN or infinite, and so are
 * the errors. With other codecs only the elements of the same block are
 * affected, and errors that are not finite become zero.
 *
 * A buffer may be in the memory of a CUDA device. Codec "onebit" computes there
 * if the module cuda.so can be loaded, the dtype is not float64, there is no
 * mask, and errors are kept. Its results are those of hosts to the last bit,
 * except for the order of one sum in float64; the errors stay on the device,
 * and only encoded data goes through host memory. In all other cases a copy in
 * host memory is used. Calls wait for earlier work on the default stream, and
 * for the device, unless dscomm_compressor_set_stream() has set a stream;
 * dscomm_group_set_stream() does not affect them.
 *
 * A compressor follows the thread rule of its group. After the group was freed,
 * calls that communicate return ERR_STATE; the others still work. */
#ifndef DSCOMM_COMPRESSION_H
#define DSCOMM_COMPRESSION_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dscomm_compressor dscomm_compressor_t;

/* The division of a buffer into the ranks' parts. */
typedef enum {
    /* Parts of whole 1024-element tiles; no padding. */
    DSCOMM_GEOMETRY_NATIVE = 0,
    /* DeepSpeed's: the buffer is padded with zeros, which keep errors like
     * elements and so affect the scale. Codec "onebit" only. The bits are
     * DeepSpeed's if its norm is exact and its sum is in the order of ranks;
     * see dscomm_compressor(3). */
    DSCOMM_GEOMETRY_DEEPSPEED = 1
} dscomm_geometry_t;

/* Whether errors are kept. */
typedef enum {
    DSCOMM_FEEDBACK_CODEC = 0, /* as the codec's default says */
    DSCOMM_FEEDBACK_ON = 1,
    DSCOMM_FEEDBACK_OFF = 2
} dscomm_feedback_t;

/* Zero is the default of all members but the size. */
typedef struct dscomm_compressor_attr {
    size_t size;
    const char *codec; /* NULL: "onebit"; see dscomm/codec.h */
    dscomm_geometry_t geometry;
    int sum; /* 1: the sum of all ranks' buffers; 0: their mean */
    dscomm_feedback_t feedback;
    /* For DSCOMM_GEOMETRY_DEEPSPEED: elements with padding, a multiple of 8
     * times the number of ranks. 0: the smallest multiple of n * lcm(n, 8) for
     * n ranks, as in DeepSpeed's optimizers. */
    size_t padded;
    double parameter; /* of the codec; 0: the codec's default */
    /* 1: keeps a copy of the errors from before each call, so that
     * dscomm_compressor_rebind() can return to them if the call fails. Costs
     * memory and time for the copy; such a compressor works in host memory. */
    int recoverable;
} dscomm_compressor_attr_t;
#define DSCOMM_COMPRESSOR_ATTR_INIT                                            \
    {                                                                          \
        sizeof(dscomm_compressor_attr_t), NULL, DSCOMM_GEOMETRY_NATIVE, 0,     \
            DSCOMM_FEEDBACK_CODEC, 0, 0, 0                                     \
    }
/* Sets the size bytes at attr to the defaults, as DSCOMM_COMPRESSOR_ATTR_INIT
 * does, for callers in languages that have no macros. size: of the structure
 * that the caller knows. ERR_INVALID if attr is NULL, or if size is smaller
 * than a size_t or larger than 4096. MT: safe. */
DSCOMM_API dscomm_status_t
dscomm_compressor_attr_init(dscomm_compressor_attr_t *attr, size_t size);

/* Makes a compressor for buffers of count elements, which may be 0. attr may be
 * NULL. Collective over group; all ranks must give the same arguments,
 * otherwise ERR_MISMATCH. ERR_NOT_FOUND: there is no such codec. ERR_STATE: a
 * call of a compressor of this group has failed. If one rank cannot make it,
 * all ranks fail with the same status and a sentence that names that rank. MT:
 * group. */
DSCOMM_API dscomm_status_t dscomm_compressor_create(
    dscomm_group_t *group, size_t count, const dscomm_compressor_attr_t *attr,
    dscomm_compressor_t **ret_compressor);
/* The same with codec "onebit", whatever codec attr names. MT: group. */
DSCOMM_API dscomm_status_t dscomm_onebit_create(
    dscomm_group_t *group, size_t count, const dscomm_compressor_attr_t *attr,
    dscomm_compressor_t **ret_compressor);

/* Frees a compressor; before or after its group was freed. Local. NULL is fine;
 * in a forked child the call does nothing. ERR_STATE while a call is
 * outstanding. Memory that a device still uses after the group's time-out stays
 * allocated until the process ends. MT: group. */
DSCOMM_API dscomm_status_t
dscomm_compressor_free(dscomm_compressor_t *compressor);

/* Reduces buffer, which has the compressor's count of elements, over all ranks,
 * in place. dtype: float16, bfloat16, float32 or float64. With ret_work the
 * call returns when this rank's part is encoded, and the work goes on like
 * other works of the group; without, it returns when the result is there. All
 * ranks must call it for the same compressors in the same order with the same
 * dtype, otherwise ERR_MISMATCH. A failure ends the communication of all
 * present and later compressors of the group. If a call had begun, the state of
 * its compressors is lost: saving it or getting the errors returns ERR_STATE
 * until they are loaded or reset. To go on, move the compressors to another
 * group by dscomm_compressor_rebind(). ERR_STATE while an earlier call of the
 * compressor is outstanding. MT: group. */
DSCOMM_API dscomm_status_t
dscomm_compressor_all_reduce(dscomm_compressor_t *compressor, void *buffer,
                             dscomm_dtype_t dtype, dscomm_work_t **ret_work);

/* The same for several compressors of one group at once: each keeps its own
 * scale and errors, and the data for one rank is sent together. buffers[i]
 * belongs to compressors[i]. No compressor may be in the list twice. MT:
 * group. */
DSCOMM_API dscomm_status_t dscomm_compressor_all_reduce_many(
    dscomm_compressor_t *const *compressors, void *const *buffers, size_t n,
    dscomm_dtype_t dtype, dscomm_work_t **ret_work);

/* Sets all errors to zero. ERR_STATE while a call is outstanding, as for all
 * calls below. MT: group. */
DSCOMM_API dscomm_status_t
dscomm_compressor_reset(dscomm_compressor_t *compressor);

/* Excludes elements i with mask[i] == 0: they count as zero, their result is
 * zero, and they keep no error; an error that they have, or that is loaded, is
 * cleared. mask has as many entries as the buffer has elements, is copied, and
 * must be the same on all ranks, otherwise the next call returns ERR_MISMATCH.
 * NULL removes the mask. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_set_mask(
    dscomm_compressor_t *compressor, const uint8_t *mask);

/* Sets the stream of a device (cudaStream_t, CUstream) on which calls with
 * buffers in its memory are ordered, as in NCCL. A call runs after the work
 * that is on the stream before it. Work that is enqueued after the call, or
 * after the wait for its work, sees the result, and the call itself does not
 * wait for it. NULL, the initial value: the default stream, and calls wait. The
 * stream stays set until another one is, or until the compressor is freed. MT:
 * group. */
DSCOMM_API dscomm_status_t
dscomm_compressor_set_stream(dscomm_compressor_t *compressor, void *stream);

typedef struct dscomm_compressor_info {
    size_t size;
    const char *codec; /* static */
    dscomm_geometry_t geometry;
    dscomm_op_t op;
    size_t count; /* elements of the buffer */
    size_t padded; /* elements of the worker error; native: count */
    size_t chunk; /* elements of a rank's part; the last parts may be shorter */
    /* elements of this rank's part, and so of the server error */
    size_t server;
    /* Bytes that this rank sends in one call, if other ranks do not read them
     * in device memory. */
    size_t wire_bytes;
    /* size of the state that dscomm_compressor_save() writes */
    size_t state_bytes;
    /* Calls of all_reduce that count as complete, modulo 2^32; after
     * dscomm_compressor_rebind() the same on all ranks. */
    uint32_t calls;
} dscomm_compressor_info_t;

/* Fills in as many members of *ret_info as fit into its size, which the caller
 * sets. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_compressor_info(
    const dscomm_compressor_t *compressor, dscomm_compressor_info_t *ret_info);

/* Gives access to the errors themselves, to read or to overwrite; the
 * compressor owns them. dscomm_compressor_info() tells their counts.
 * *ret_worker is NULL if no errors are kept. After a call on a device the
 * errors are first copied to the host. The pointers are valid, and changes
 * count, until the next call; then get them again. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_errors(
    dscomm_compressor_t *compressor, float **ret_worker, float **ret_server);

/* Moves a compressor to another group, such as dscomm_group_shrink() makes,
 * with its attributes, mask, stream and errors. Collective over group. Each
 * rank of it gives the compressor that it had on the same earlier group; a rank
 * that was not there calls dscomm_compressor_create() with the same arguments.
 *
 * A worker error stays on its rank. Server errors belong to elements: each
 * moves to the rank that serves its element now. Those of ranks that are gone
 * are lost, and become zero, and so do those of padding that is new. If the
 * last call failed on a rank, and is complete on another one, it counts as
 * complete, and the errors are those after it. If it is complete nowhere, the
 * errors return to those before it, or, unless recoverable was set, become
 * zero on that rank. dscomm_compressor_info() tells which calls are complete.
 *
 * ERR_MISMATCH: the compressors differ, or come of different groups. On failure
 * the compressor stays as it was. MT: group, both groups. */
DSCOMM_API dscomm_status_t dscomm_compressor_rebind(
    dscomm_compressor_t *compressor, dscomm_group_t *group);

/* save writes the state to memory, of at least state_bytes; load reads it from
 * there. Further bytes of memory are not used. The format is the same on all
 * machines, and ends with a SHA-256. load returns ERR_PROTOCOL, and the
 * compressor stays as it was, if the state is damaged, has errors although none
 * are kept, or belongs to another codec, geometry, operator, count, number of
 * ranks or rank. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_save(
    const dscomm_compressor_t *compressor, void *memory, size_t bytes);
DSCOMM_API dscomm_status_t dscomm_compressor_load(
    dscomm_compressor_t *compressor, const void *memory, size_t bytes);
/* The same with a file of this rank's own. It is replaced as a whole or not at
 * all; a symbolic link is replaced by the file. ERR_IO with the system's
 * reason. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_save_file(
    const dscomm_compressor_t *compressor, const char *path);
DSCOMM_API dscomm_status_t
dscomm_compressor_load_file(dscomm_compressor_t *compressor, const char *path);

#ifdef __cplusplus
}
#endif

#endif
