/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device does for codec "onebit": a table that the module cuda.so fills,
 * and a host for tests. Plain C and C++.
 *
 * State: an error e is kept as (c, s), what was encoded and with which scale;
 * it is c - s for c >= 0, -0 and NaN, else c + s, and is formed when it is next
 * read. (e, 0) is the same error.
 *
 * Rows are those of the exchange: 16 bytes, of which a device reads and writes
 * the scale at the beginning alone, and a bit for each element, the first one
 * the highest of its byte. They begin at multiples of 16 bytes, and have room
 * for whole words of 32 bits. All memory is the device's where nothing else is
 * said. Functions return 0 or a number that text() explains; they do not wait,
 * but for open, sync, and what gives something back: that may wait for all
 * that the device does. */
#ifndef COMPRESSION_DEVICE_OPS_H
#define COMPRESSION_DEVICE_OPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first member of the table is this; a module with another is not used. */
#define DSCOMM_DEVICE_ABI 4
/* Bytes before the bits of a row. */
#define DSCOMM_DEVICE_HEADER 16
/* So many jobs of one kind are done together at most. */
#define DSCOMM_DEVICE_TOGETHER 16

typedef enum {
    DSCOMM_DEVICE_FLOAT32 = 0,
    DSCOMM_DEVICE_FLOAT16 = 1,
    DSCOMM_DEVICE_BFLOAT16 = 2
} dscomm_device_format_t;

/* Rows, one for each of so many ranks, that many bytes apart; row number r has
 * the bits of elements [r * chunk, r * chunk + chunk), as far as there are. */
typedef struct {
    char *first;
    size_t stride, ranks, chunk;
} dscomm_device_rows_t;

/* Encoding, with e the worker error (c, s), see above: u = x + e; writes the
 * bits of u to rows, and (u, scale) as the new errors to next and ret_s. The
 * scale goes to all rows, also to those without elements. next may be c. */
typedef struct {
    dscomm_device_format_t format;
    const void *x; /* count elements; those from there to padded are zeros */
    size_t count, padded;
    const float *c, *s;
    float *next, *ret_s;
    dscomm_device_rows_t rows;
} dscomm_device_worker_t;

/* u = e + the sum over all rows, in their order, of factor times what they say
 * of count elements; as above. Row r begins at rows.first + r * stride; ret_row
 * may be one of them. */
typedef struct {
    dscomm_device_rows_t rows;
    float factor;
    size_t count;
    float *c, *s;
    char *ret_row;
} dscomm_device_server_t;

/* Writes what all rows say of the first count elements, as far as these are
 * elements [from, to) of their row; from is a multiple of 1024. */
typedef struct {
    dscomm_device_format_t format;
    dscomm_device_rows_t rows;
    size_t count, from, to;
    void *ret_x;
} dscomm_device_unpack_t;

/* c = e and s = 0. */
typedef struct {
    float *c, *s;
    size_t count;
} dscomm_device_materialise_t;

/* e += what the row says, then e -= x; s is 0. */
typedef struct {
    dscomm_device_format_t format;
    const void *x;
    size_t count;
    const char *row;
    float *c;
} dscomm_device_take_back_t;

/* What a process needs to use another one's memory, as bytes. */
typedef struct {
    uint64_t process; /* whose it is, which needs none, and cannot have one */
    unsigned char handle[64];
} dscomm_device_card_t;

typedef struct dscomm_device_queue dscomm_device_queue_t;

typedef struct {
    uint32_t abi;
    const char *name;
    /* Why no device can be used, static; NULL where one can. */
    const char *(*why)(void);
    const char *(*text)(int code);
    /* The device whose memory, that the host cannot touch, is at pointer; -1:
     * none. */
    int (*device)(const void *pointer);
    /* The device that this thread works with. */
    int (*current)(void);
    /* Work on a device, one piece after the other. */
    int (*open)(int device, dscomm_device_queue_t **ret_queue);
    void (*close)(dscomm_device_queue_t *queue); /* after sync */
    int (*sync)(dscomm_device_queue_t *queue);
    /* What the queue gets from here on comes after what stream, one of the
     * program's on that device, has got so far; and what stream gets from here
     * on after what the queue has. NULL: the default stream. */
    int (*follow)(dscomm_device_queue_t *queue, void *stream);
    int (*lead)(dscomm_device_queue_t *queue, void *stream);
    /* A stream that nothing is ever put on, for calls that need not wait. */
    void *(*idle)(dscomm_device_queue_t *queue);
    /* Marks where the queue ends by an event, that is made where there is none
     * yet; tells whether the queue has come there; frees it. */
    int (*mark)(dscomm_device_queue_t *queue, void **event);
    int (*reached)(dscomm_device_queue_t *queue, void *event, int *ret_reached);
    void (*unmark)(dscomm_device_queue_t *queue, void *event);
    /* Memory of the device, which are zeros for what comes to the queue from
     * here on, or of the host, with anything in it. */
    int (*alloc)(dscomm_device_queue_t *queue, size_t bytes, int on_host,
                 void **ret_memory);
    void (*release)(dscomm_device_queue_t *queue, int on_host, void *memory);
    /* Memory of alloc(), of the device, for other processes of the node: lent
     * by one, mapped by others, which unmap it before it is released. */
    int (*lend)(dscomm_device_queue_t *queue, void *memory,
                dscomm_device_card_t *ret_card);
    int (*map)(dscomm_device_queue_t *queue, const dscomm_device_card_t *card,
               void **ret_memory);
    void (*unmap)(dscomm_device_queue_t *queue, void *memory);
    /* rows pieces of so many bytes, either way or on the device; the host's
     * memory is that of alloc(), else it may wait. */
    int (*copy)(dscomm_device_queue_t *queue, void *to, size_t to_stride,
                const void *from, size_t from_stride, size_t bytes,
                size_t rows);
    int (*clear)(dscomm_device_queue_t *queue, void *memory, size_t bytes);
    /* These three do any number of jobs, that have nothing to do with each
     * other. */
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

/* The one symbol of cuda.so: its table, or NULL where it has another ABI. */
typedef const dscomm_device_ops_t *(*dscomm_device_module_t)(uint32_t abi);
#define DSCOMM_DEVICE_SYMBOL "dscomm_device_cuda"

#ifdef __cplusplus
}
#endif

#endif
