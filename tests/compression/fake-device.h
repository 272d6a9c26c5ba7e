/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that are threads of this process: the table of cuda.so, on a runtime
 * whose streams are threads. Device memory is mapped twice; an access by the
 * host through a device pointer ends the process. Work is delayed, so that a
 * result is not there unless somebody has waited for it. */
#ifndef TESTS_COMPRESSION_FAKE_DEVICE_H
#define TESTS_COMPRESSION_FAKE_DEVICE_H

#include "compression/device/ops.h"

#include <stdatomic.h>

const dscomm_device_ops_t *fake_device_table(void);
/* 1 if the device is a real one, see tests/gpu/real-device.c: then nothing is
 * counted, and nothing fails on demand. */
extern const int fake_device_real;

/* Sets the device on which this thread allocates memory from now on; at first
 * device 0. */
void fake_device_choose(int device);
/* A program's own operations on device memory; they wait. */
void *fake_device_alloc(size_t bytes);
void fake_device_free(void *memory);
void fake_device_write(void *to, const void *from, size_t bytes);
void fake_device_read(void *to, const void *from, size_t bytes);

/* A stream of the program: tasks run in order, and delayed. */
void *fake_device_stream_new(void);
void fake_device_stream_free(void *stream);
/* Copies from and to the host, as tasks of the stream; from is copied at
 * once. */
void fake_device_write_on(void *stream, void *to, const void *from,
                          size_t bytes);
void fake_device_read_on(void *stream, void *to, const void *from,
                         size_t bytes);
void fake_device_wait(void *stream);
/* 1: unpack writes no results until it is set to 0. */
void fake_device_hold(int hold);

/* Stops the queue of a device before its copy number `copies` (from now on) to
 * the host, or from mapped memory, until this event happens on another device,
 * or has happened; FAKE_NEVER: until released. */
typedef enum {
    FAKE_UP, /* a copy from the host */
    FAKE_UNPACK, /* a result is decoded */
    FAKE_NEVER /* until fake_device_met() is called */
} fake_event_t;
void fake_device_stop(int device, int copies, fake_event_t until);
/* Returns 1 if the event has happened and ended the stop; for FAKE_NEVER, if
 * nothing waited for long. Ends the stop. */
int fake_device_met(void);

/* Backend "thread" accepts device memory in groups made while this is not 0, if
 * the program exports these two symbols. */
#define FAKE_EXPORT __attribute__((visibility("default")))
extern FAKE_EXPORT int fake_device_aware;
/* Returns the address by which the device itself accesses pointer. */
FAKE_EXPORT void *fake_device_shadow(const void *pointer);

/* Marks are reported as reached only after so many more queries. */
void fake_device_late(int looks);

/* What was counted since it was asked for last. */
typedef enum {
    FAKE_MARKS, /* that were set */
    FAKE_LAUNCHES, /* starts of kernels for many jobs */
    FAKE_COPIED, /* bytes that went for the library from and to the host */
    FAKE_READ, /* bytes that were read of memory that was mapped again */
    FAKE_REFUSED, /* pieces of memory, while the device was full */
    FAKE_COUNTS
} fake_count_t;
size_t fake_device_counted(fake_count_t what);
/* Number of pieces of device memory, and of mappings of other processes'
 * pieces. */
int fake_device_pieces(void);
/* Number of pieces that were released while still mapped elsewhere. */
int fake_device_early(void);
/* 0: each rank, though a thread, maps the memory of others as processes do. */
extern int fake_device_one_process;
/* Calls of this thread that map memory fail. */
extern _Thread_local int fake_device_unmappable;
/* Makes one call of the runtime fail: the one after so many others; -1: none.
 * Returns how many calls were left before an earlier such call; -1 if it was
 * made. */
int fake_device_fail(int calls);
/* 1: allocations of the library, of either kind, fail until this is set to
 * 0. */
void fake_device_full(int full);

/* The thread's current context; and that of a device. */
void *fake_context(void);
void fake_set_context(void *context);
void *fake_context_of(int device);
/* Observations about contexts. */
#define FAKE_DEVICES 16
#define FAKE_INVALID_DEVICE 101 /* CUDA's code if a device is refused */
#define FAKE_ERROR 717 /* the code of a failure on demand */
typedef struct {
    atomic_int made[FAKE_DEVICES]; /* 1: the device has a context */
    /* calls made while that device was current */
    atomic_int calls[FAKE_DEVICES];
    int refused; /* the device that cannot be made current; -1: none */
} fake_counts_t;
extern fake_counts_t fake_counts;

#endif
