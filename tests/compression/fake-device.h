/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that are threads of this process: the table of cuda.so, on a runtime
 * whose streams are threads. Device memory is mapped twice; a host access by a
 * device pointer ends the process. Work is done late, so that a result for
 * which nobody has waited is not there. */
#ifndef TESTS_COMPRESSION_FAKE_DEVICE_H
#define TESTS_COMPRESSION_FAKE_DEVICE_H

#include "compression/device/ops.h"

#include <stdatomic.h>

const dscomm_device_ops_t *fake_device_table(void);
/* 1 where it is a real one after all, see tests/gpu/real-device.c: nothing is
 * counted, and nothing fails on demand. */
extern const int fake_device_real;

/* The device on which this thread's memory is from here on; 0 before. */
void fake_device_choose(int device);
/* What a program does with its own memory there, and waits for. */
void *fake_device_alloc(size_t bytes);
void fake_device_free(void *memory);
void fake_device_write(void *to, const void *from, size_t bytes);
void fake_device_read(void *to, const void *from, size_t bytes);

/* A stream of the program's: what is put on it is done in order, and late. */
void *fake_device_stream_new(void);
void fake_device_stream_free(void *stream);
/* From and to the host, when it comes to it; from is copied at once. */
void fake_device_write_on(void *stream, void *to, const void *from,
                          size_t bytes);
void fake_device_read_on(void *stream, void *to, const void *from,
                         size_t bytes);
void fake_device_wait(void *stream);
/* 1: no result is written by unpack any more, until 0. */
void fake_device_hold(int hold);

/* The queue of that device stops before so many copies to the host, or from
 * what was mapped, were made, counted from here on, until this happens on
 * another device, be it before; or for a while. */
typedef enum {
    FAKE_UP, /* a copy from the host */
    FAKE_UNPACK, /* a result is decoded */
    FAKE_NEVER /* until it is asked */
} fake_event_t;
void fake_device_stop(int device, int copies, fake_event_t until);
/* 1 where it has happened since, and ended the stop; FAKE_NEVER: where nobody
 * asked for long. Ends and forgets it. */
int fake_device_met(void);

/* Backend "thread" takes this memory, in groups made while this is not 0, where
 * the program exports these two. */
#define FAKE_EXPORT __attribute__((visibility("default")))
extern FAKE_EXPORT int fake_device_aware;
/* Where the device itself finds what is at pointer. */
FAKE_EXPORT void *fake_device_shadow(const void *pointer);

/* Marks are found to be reached so many looks later than they are. */
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
/* Pieces of device memory, and mappings of other processes' pieces. */
int fake_device_pieces(void);
/* Those that were released while they were still mapped elsewhere. */
int fake_device_early(void);
/* 0: each rank, though a thread, maps the memory of others as processes do. */
extern int fake_device_one_process;
/* That thread's calls that map memory fail. */
extern _Thread_local int fake_device_unmappable;
/* The call of the runtime after so many fails, once; -1: none. Returns how many
 * were left before such a call: -1 if it has come. */
int fake_device_fail(int calls);
/* 1: there is no memory for the library any more, of either kind, until 0. */
void fake_device_full(int full);

/* The thread's context; that of a device. */
void *fake_context(void);
void fake_set_context(void *context);
void *fake_context_of(int device);
/* What became of contexts. */
#define FAKE_DEVICES 16
#define FAKE_INVALID_DEVICE 101 /* what CUDA says of one that is refused */
#define FAKE_ERROR 717 /* and of a failure on demand */
typedef struct {
    atomic_int made[FAKE_DEVICES]; /* 1: the device has one */
    atomic_int calls[FAKE_DEVICES]; /* made while that device was current */
    int refused; /* the device that cannot be chosen; -1: none */
} fake_account_t;
extern fake_account_t fake_account;

#endif
