/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressed all-reduce with error feedback, on any backend.
 *
 * A compressor belongs to one buffer of one group. What compression loses in
 * one call it adds to the buffer of the next, so that over many calls nothing
 * is lost: its state is that error, on this rank's side ("worker") and on the
 * side of the part of the buffer that this rank reduces for all ("server").
 *
 * One call, with n ranks: each rank adds its worker error to the buffer,
 * encodes it and sends part j to rank j; rank j decodes what it got, sums it in
 * the order of the ranks, adds its server error, encodes that and sends it to
 * all. All ranks decode the same bytes, so all get the same bits. Arithmetic is
 * in float32 whatever the buffer's dtype; the algorithm is that of 1-bit Adam
 * (arXiv:2102.02888, section 4.2), as in DeepSpeed's compressed_allreduce.
 *
 * With codec "onebit" an element becomes its sign and each side has one scale,
 * the root of the mean square, finite where the elements are: bit 1 for what is
 * not less than zero, so for -0 and NaN as well. A NaN or an infinity on any
 * rank, or an element that is beyond float32 with its error, makes the whole
 * result of all ranks not finite. In the native geometry the result is NaN,
 * also if the sum of all scales is beyond float32; the errors stay as before
 * the call, but for rounding, so that later calls are not affected. In
 * DeepSpeed's geometry the result is NaN or infinite, and so are the errors.
 * With other codecs only the elements of the same block are affected, and
 * errors that are not finite become zero.
 *
 * A buffer may be in the memory of a CUDA device. Codec "onebit" then works
 * there, on what is not float64, without a mask and with errors kept, where the
 * module cuda.so can be loaded: results are those of hosts to the last bit, but
 * for the order of one sum in float64, errors stay on the device, and what is
 * encoded alone goes through host memory. All else is done on a copy in host
 * memory. Calls come after what the default stream has under way, and wait for
 * the device, unless dscomm_compressor_set_stream() says otherwise;
 * dscomm_group_set_stream() does not reach them.
 *
 * A compressor follows the thread rule of its group. Once that was freed, calls
 * that communicate return ERR_STATE, and the others go on working. */
#ifndef DSCOMM_COMPRESSION_H
#define DSCOMM_COMPRESSION_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dscomm_compressor dscomm_compressor_t;

/* How a buffer is cut into the ranks' parts. */
typedef enum {
    /* Parts of whole 1024-element tiles; nothing is padded. */
    DSCOMM_GEOMETRY_NATIVE = 0,
    /* DeepSpeed's: padded with zeros that carry errors as elements do, and so
     * pull on the scale. Codec "onebit" only. Bits are DeepSpeed's where its
     * norm is exact and its sum in the order of ranks; see
     * dscomm_compressor(3). */
    DSCOMM_GEOMETRY_DEEPSPEED = 1
} dscomm_geometry_t;

/* Whether errors are kept. */
typedef enum {
    DSCOMM_FEEDBACK_CODEC = 0, /* as the codec does */
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
    /* DSCOMM_GEOMETRY_DEEPSPEED: elements with padding, a multiple of 8 times
     * the ranks; 0: the smallest multiple of n * lcm(n, 8) for n ranks, as
     * DeepSpeed's optimizers have it. */
    size_t padded;
    double parameter; /* of the codec; 0: its own */
} dscomm_compressor_attr_t;
#define DSCOMM_COMPRESSOR_ATTR_INIT                                            \
    {                                                                          \
        sizeof(dscomm_compressor_attr_t), NULL, DSCOMM_GEOMETRY_NATIVE, 0,     \
            DSCOMM_FEEDBACK_CODEC, 0, 0                                        \
    }
/* Sets the size bytes at attr to the defaults, as DSCOMM_COMPRESSOR_ATTR_INIT
 * does, for callers in languages that have no macros. size: of the structure
 * that the caller knows. ERR_INVALID if attr is NULL, or if size is smaller
 * than a size_t or larger than 4096. MT: safe. */
DSCOMM_API dscomm_status_t
dscomm_compressor_attr_init(dscomm_compressor_attr_t *attr, size_t size);

/* A compressor for buffers of count elements, which may be 0. attr may be NULL.
 * Collective over group, whose ranks give the same arguments, else
 * ERR_MISMATCH. ERR_NOT_FOUND: no such codec. ERR_STATE: a call of a compressor
 * of this group has failed. What one rank is refused, all are, with the same
 * status and a sentence that names it. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_create(
    dscomm_group_t *group, size_t count, const dscomm_compressor_attr_t *attr,
    dscomm_compressor_t **ret_compressor);
/* The same with codec "onebit", whatever attr says of the codec. MT: group. */
DSCOMM_API dscomm_status_t dscomm_onebit_create(
    dscomm_group_t *group, size_t count, const dscomm_compressor_attr_t *attr,
    dscomm_compressor_t **ret_compressor);

/* Local, before or after its group is freed. NULL is fine, and a forked child
 * does nothing. ERR_STATE while a call is outstanding. Memory that a device has
 * not ended to use within the group's time-out stays until the process ends.
 * MT: group. */
DSCOMM_API dscomm_status_t
dscomm_compressor_free(dscomm_compressor_t *compressor);

/* Reduces buffer, of the compressor's count of elements, over all ranks, in
 * place. dtype: float16, bfloat16, float32 or float64. With ret_work it returns
 * when its own part is encoded, and the work goes on as works of the group do;
 * without, when the result is there. All ranks call it for the same compressors
 * in the same order with the same dtype, else ERR_MISMATCH. A failure ends the
 * communication of all compressors that the group has or will have. Those of a
 * call that had begun have no state from then on: to save it or to ask for the
 * errors is ERR_STATE until they are loaded or reset; to go on, load what was
 * saved before into compressors of another group. ERR_STATE while an earlier
 * call of the compressor is outstanding. MT: group. */
DSCOMM_API dscomm_status_t
dscomm_compressor_all_reduce(dscomm_compressor_t *compressor, void *buffer,
                             dscomm_dtype_t dtype, dscomm_work_t **ret_work);

/* The same for several compressors of one group at a time: each keeps its own
 * scale and errors, and what goes to one rank goes together. buffers[i] is that
 * of compressors[i]. None stands there twice. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_all_reduce_many(
    dscomm_compressor_t *const *compressors, void *const *buffers, size_t n,
    dscomm_dtype_t dtype, dscomm_work_t **ret_work);

/* Forgets all errors. ERR_STATE while a call is outstanding, as for all below.
 * MT: group. */
DSCOMM_API dscomm_status_t
dscomm_compressor_reset(dscomm_compressor_t *compressor);

/* Elements i with mask[i] == 0 stay out of it: they count as zero, their result
 * is zero and they keep no error; one that they have, or that is loaded, is
 * cleared. mask has as many elements as the buffer, is copied, and is the same
 * on all ranks, else the next call is ERR_MISMATCH; NULL takes it away. MT:
 * group. */
DSCOMM_API dscomm_status_t dscomm_compressor_set_mask(
    dscomm_compressor_t *compressor, const uint8_t *mask);

/* The stream of a device (a cudaStream_t, CUstream) on which calls with buffers
 * there are ordered, as in NCCL: they come after what it has got before them,
 * and what it gets after them, or after the work's end, comes when the result
 * is there, for which the call does not wait then. NULL, as in the beginning:
 * the default stream, and calls do wait. It stays until another is set or the
 * compressor is freed. MT: group. */
DSCOMM_API dscomm_status_t
dscomm_compressor_set_stream(dscomm_compressor_t *compressor, void *stream);

typedef struct dscomm_compressor_info {
    size_t size;
    const char *codec; /* static */
    dscomm_geometry_t geometry;
    dscomm_op_t op;
    size_t count; /* elements of the buffer */
    size_t padded; /* elements of the worker error; native: count */
    size_t chunk; /* elements of a rank's part, but for the last ones */
    size_t server; /* elements of this rank's part: of the server error */
    /* That this rank sends in one call, where others do not read it in device
     * memory. */
    size_t wire_bytes;
    size_t state_bytes; /* that dscomm_compressor_save() writes */
} dscomm_compressor_info_t;

/* Fills as much of *ret_info as its size, which the caller sets, has room for.
 * MT: safe. */
DSCOMM_API dscomm_status_t dscomm_compressor_info(
    const dscomm_compressor_t *compressor, dscomm_compressor_info_t *ret_info);

/* The errors themselves, as many as info says, to look at or to overwrite; they
 * stay the compressor's. *ret_worker is NULL where no errors are kept. After a
 * call on a device they are brought from there, and what is written counts
 * until the next call; then ask again. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_errors(
    dscomm_compressor_t *compressor, float **ret_worker, float **ret_server);

/* Writes the state to memory of at least state_bytes, or reads it from such
 * memory: what stands behind them is left alone. The form is the same on all
 * machines, and ends with a SHA-256. What is damaged, or is that of another
 * codec, geometry, operator, count, number of ranks or rank, or has errors
 * where none are kept, is refused with ERR_PROTOCOL, and the compressor stays
 * as it was. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_save(
    const dscomm_compressor_t *compressor, void *memory, size_t bytes);
DSCOMM_API dscomm_status_t dscomm_compressor_load(
    dscomm_compressor_t *compressor, const void *memory, size_t bytes);
/* The same with a file of this rank's own, which is replaced as a whole or not
 * at all, and a symbolic link to it by the file. ERR_IO with the system's
 * reason. MT: group. */
DSCOMM_API dscomm_status_t dscomm_compressor_save_file(
    const dscomm_compressor_t *compressor, const char *path);
DSCOMM_API dscomm_status_t
dscomm_compressor_load_file(dscomm_compressor_t *compressor, const char *path);

#ifdef __cplusplus
}
#endif

#endif
