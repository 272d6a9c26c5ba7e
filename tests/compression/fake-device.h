/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that are threads of this process: they fill the table that cuda.so
 * fills. Its memory is mapped twice, and the host that touches what it was
 * given for it dies. Work is done late, so that a result which nobody has
 * waited for is not there. */
#ifndef TESTS_COMPRESSION_FAKE_DEVICE_H
#define TESTS_COMPRESSION_FAKE_DEVICE_H

#include "compression/device/ops.h"

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
/* Marks that were set since this was asked last. */
int fake_device_marks(void);

/* Calls of the table that start kernels, since this was asked last. */
int fake_device_launches(void);
/* Bytes that were copied for the library from and to the host, since this was
 * asked last. */
size_t fake_device_copied(void);
/* Pieces of memory that are there, those that were mapped again too. */
int fake_device_pieces(void);
/* Those that were released while they were still mapped elsewhere. */
int fake_device_early(void);
/* 0: each rank, though a thread, maps the memory of others as processes do. */
extern int fake_device_one_process;
/* That thread's calls that map memory fail. */
extern _Thread_local int fake_device_unmappable;
/* Bytes that were read of memory that was mapped again, since this was asked
 * last. */
size_t fake_device_read_elsewhere(void);
/* The call of the table after so many fails, once; -1: none. Returns how many
 * were left before such a one: -1 where it has come. */
int fake_device_fail(int calls);
/* 1: there is no memory for the library any more, of either kind, until 0. */
void fake_device_full(int full);
/* Pieces that it was asked for meanwhile, since this was asked last. */
int fake_device_refused(void);

#endif
