/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of a device for codec onebit: a table that the module cuda.so
 * fills in, or a host in tests. Plain C and C++.
 *
 * State: an error e is kept as (c, s): the value c that was encoded, and the
 * scale s. If c >= 0, or is -0 or NaN, then e = c - s, else e = c + s; e is
 * computed when it is next read. (e, 0) represents the same error.
 *
 * Rows are those of the exchange: a header of 16 bytes, of which a device reads
 * and writes only the scale at its beginning, and one bit for each element, the
 * first one in the highest bit of its byte. Rows begin at multiples of 16 bytes
 * and have room for whole words of 32 bits. All memory is device memory unless
 * a comment says otherwise. Functions return 0, or a code that text() explains.
 * They do not wait, except open, sync, and functions that release something:
 * these may wait for all work of the device. */
#ifndef COMPRESSION_DEVICE_OPS_H
#define COMPRESSION_DEVICE_OPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value of the table's first member; a module with another value is
 * refused. */
#define DSCOMM_DEVICE_ABI 4
/* Bytes before the bits of a row. */
#define DSCOMM_DEVICE_HEADER 16
/* Most jobs of one kind that one kernel does. */
#define DSCOMM_DEVICE_TOGETHER 16

typedef enum {
    DSCOMM_DEVICE_FLOAT32 = 0,
    DSCOMM_DEVICE_FLOAT16 = 1,
    DSCOMM_DEVICE_BFLOAT16 = 2
} dscomm_device_format_t;

/* Rows for several ranks, stride bytes apart. Row r has the bits of elements [r
 * * chunk, r * chunk + chunk), as far as they exist. */
typedef struct {
    char *first;
    size_t stride, ranks, chunk;
} dscomm_device_rows_t;

/* Encodes with the worker error e = (c, s), see above: u = x + e. Writes the
 * bits of u to rows, and the new errors (u, scale) to next and ret_s. Writes
 * the scale to all rows, also to those without elements. next may be c. */
typedef struct {
    dscomm_device_format_t format;
    const void *x; /* count elements; the elements up to padded are zeros */
    size_t count, padded;
    const float *c, *s;
    float *next, *ret_s;
    dscomm_device_rows_t rows;
} dscomm_device_worker_t;

/* u = e + the sum of factor * decoded row over all rows, in their order, for
 * count elements. Encodes u as above. Row r begins at rows.first + r * stride;
 * ret_row may be one of the rows. */
typedef struct {
    dscomm_device_rows_t rows;
    float factor;
    size_t count;
    float *c, *s;
    char *ret_row;
} dscomm_device_server_t;

/* Decodes the first count elements of the buffer from all rows, as far as they
 * are elements [from, to) of their row; from is a multiple of 1024. */
typedef struct {
    dscomm_device_format_t format;
    dscomm_device_rows_t rows;
    size_t count, from, to;
    void *ret_x;
} dscomm_device_unpack_t;

/* Sets c = e and s = 0. */
typedef struct {
    float *c, *s;
    size_t count;
} dscomm_device_materialise_t;

/* Sets e = e + decoded row - x; s is 0. */
typedef struct {
    dscomm_device_format_t format;
    const void *x;
    size_t count;
    const char *row;
    float *c;
} dscomm_device_take_back_t;

/* A description by which another process can map the memory. */
typedef struct {
    uint64_t process; /* the owner, which cannot map its own memory again */
    unsigned char handle[64];
} dscomm_device_card_t;

typedef struct dscomm_device_queue dscomm_device_queue_t;

typedef struct {
    uint32_t abi;
    const char *name;
    /* Returns why no device can be used, as static text; NULL if one can. */
    const char *(*why)(void);
    const char *(*text)(int code);
    /* Returns the device that owns the memory at pointer, if the host cannot
     * access that; else -1. */
    int (*device)(const void *pointer);
    /* The thread's current device. */
    int (*current)(void);
    /* A queue: work on a device, in order. */
    int (*open)(int device, dscomm_device_queue_t **ret_queue);
    void (*close)(dscomm_device_queue_t *queue); /* after sync */
    int (*sync)(dscomm_device_queue_t *queue);
    /* follow: later work on the queue waits for the work that is on stream now,
     * a stream of the program on that device. lead: later work on stream waits
     * for the work that is on the queue now. NULL: the default stream. */
    int (*follow)(dscomm_device_queue_t *queue, void *stream);
    int (*lead)(dscomm_device_queue_t *queue, void *stream);
    /* A stream on which nothing is ever enqueued, for calls that need not
     * wait. */
    void *(*idle)(dscomm_device_queue_t *queue);
    /* mark records an event at the end of the queue, and makes the event if
     * *event is NULL; reached tells whether the queue has got there; unmark
     * frees the event. */
    int (*mark)(dscomm_device_queue_t *queue, void **event);
    int (*reached)(dscomm_device_queue_t *queue, void *event, int *ret_reached);
    void (*unmark)(dscomm_device_queue_t *queue, void *event);
    /* Allocates memory: of the device, which is zero for later work on the
     * queue; or of the host, with undefined contents. */
    int (*alloc)(dscomm_device_queue_t *queue, size_t bytes, int on_host,
                 void **ret_memory);
    void (*release)(dscomm_device_queue_t *queue, int on_host, void *memory);
    /* Share device memory of alloc() with other processes of the node: the
     * owner lends it, others map it, and unmap it before the owner releases
     * it. */
    int (*lend)(dscomm_device_queue_t *queue, void *memory,
                dscomm_device_card_t *ret_card);
    int (*map)(dscomm_device_queue_t *queue, const dscomm_device_card_t *card,
               void **ret_memory);
    void (*unmap)(dscomm_device_queue_t *queue, void *memory);
    /* Copies rows pieces of so many bytes, from or to the device or within it.
     * Host memory must be from alloc(), otherwise the copy may block. */
    int (*copy)(dscomm_device_queue_t *queue, void *to, size_t to_stride,
                const void *from, size_t from_stride, size_t bytes,
                size_t rows);
    int (*clear)(dscomm_device_queue_t *queue, void *memory, size_t bytes);
    /* The next three do any number of independent jobs. */
    int (*worker)(dscomm_device_queue_t *queue,
                  const dscomm_device_worker_t *args, size_t jobs);
    int (*server)(dscomm_device_queue_t *queue,
                  const dscomm_device_server_t *args, size_t jobs);
    int (*unpack)(dscomm_device_queue_t *queue,
                  const dscomm_device_unpack_t *args, size_t jobs);
    int (*materialise)(dscomm_device_queue_t *queue,
                       const dscomm_device_materialise_t *args);
    int (*take_back)(dscomm_device_queue_t *queue,
                     const dscomm_device_take_back_t *args);
} dscomm_device_ops_t;

/* The type of the only symbol of cuda.so. Returns the table, or NULL if its ABI
 * is another one. */
typedef const dscomm_device_ops_t *(*dscomm_device_module_t)(uint32_t abi);
#define DSCOMM_DEVICE_SYMBOL "dscomm_device_cuda"

#ifdef __cplusplus
}
#endif

#endif
