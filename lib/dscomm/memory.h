/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a group: memory that its backend moves without copies, and memory
 * that other ranks may write and read, which takes no call of its owner. */
#ifndef DSCOMM_MEMORY_H
#define DSCOMM_MEMORY_H

#include <dscomm/status.h>
#include <dscomm/types.h>
#include <dscomm/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any memory works in every call; that of dscomm_mem_alloc(), and registered
 * memory with backend shm, is faster where dscomm_group_capabilities() has
 * DSCOMM_CAP_ZERO_COPY. */

/* Allocates size bytes, page aligned and zeroed, for buffers of operations on
 * group. Local. ERR_NO_MEMORY if the system has no more (pages are reserved at
 * once, not on first touch); ERR_ABORTED or another status if group has ended.
 * The memory stays valid until it or the group is freed. MT: group. */
DSCOMM_API dscomm_status_t dscomm_mem_alloc(dscomm_group_t *group, size_t size,
                                            void **ret_memory);

/* Frees memory that dscomm_mem_alloc() returned for this group. memory may be
 * NULL; any other pointer is ERR_INVALID. No operation may still use it. MT:
 * group. */
DSCOMM_API dscomm_status_t dscomm_mem_free(dscomm_group_t *group, void *memory);

/* One-sided communication. A rank registers memory and gives its key to others,
 * which then put data into that memory and get data out of it. Bytes are raw:
 * ranks agree on types and byte order. */

/* Registered memory. */
typedef struct dscomm_mem dscomm_mem_t;

/* Bytes of a key. It has no pointers and one byte order, so that it can be sent
 * and stored like any data. */
#define DSCOMM_MEM_KEY_BYTES 64

/* Lets the ranks of group that have the key put and get in the bytes from
 * address on, which must stay valid until the memory is deregistered or the
 * group freed, which frees *ret_mem. Local. Any memory of the host can be
 * registered, in parts and more than once; memory of a device only where the
 * backend reaches it, else ERR_UNSUPPORTED. During this call and
 * dscomm_mem_deregister() no other thread may write to it, and no work of any
 * group. With backend shm, calls that use it are as fast as with memory of
 * dscomm_mem_alloc(), but a child that fork(2) makes in between does not have a
 * copy; see dscomm_put(3). MT: group. */
DSCOMM_API dscomm_status_t dscomm_mem_register(dscomm_group_t *group,
                                               void *address, size_t bytes,
                                               dscomm_mem_t **ret_mem);

/* Writes the memory's key, of DSCOMM_MEM_KEY_BYTES. MT: group. */
DSCOMM_API dscomm_status_t dscomm_mem_key(const dscomm_mem_t *mem, void *key);

/* Ends the registration and frees mem, which may be NULL. If accesses are made
 * by messages, waits for what other ranks have begun to put or get, at most for
 * the group's time-out; ranks that use the key later get ERR_INVALID. If the
 * backend makes them, other ranks must have ended theirs; accesses of this rank
 * whose data is in it, on a device, are waited for. The memory stays
 * registered, and mem valid, with two statuses only: ERR_STATE if a work of
 * this rank that is under way uses the memory, ERR_NO_MEMORY if there is no
 * memory to do it. Another failure is that of the group: mem is gone, but what
 * was begun may use the memory until the group is freed. MT: group. */
DSCOMM_API dscomm_status_t dscomm_mem_deregister(dscomm_mem_t *mem);

/* Copies bytes from data to the memory that key tells, offset bytes behind its
 * address. data may be memory of a device that is registered with group.
 * Complete when the data are there and data may be reused. Where the
 * backend does not do it alone (see dscomm_put(3)), the owner's rank has to be
 * in a call of dscomm, or to have a progress thread, for it to go on.
 * ERR_INVALID if key is none of this group, or the range is not in that memory;
 * the group goes on. ret_work: NULL: returns when complete. MT: group. */
DSCOMM_API dscomm_status_t dscomm_put(dscomm_group_t *group, const void *data,
                                      size_t bytes, const void *key,
                                      size_t offset, dscomm_work_t **ret_work);

/* The same in the other direction: copies bytes out of that memory to data. MT:
 * group. */
DSCOMM_API dscomm_status_t dscomm_get(dscomm_group_t *group, void *data,
                                      size_t bytes, const void *key,
                                      size_t offset, dscomm_work_t **ret_work);

/* Sends rank a signal. It arrives when the data of all puts that this rank has
 * started to rank before are there. ret_work: NULL: returns when it is sent.
 * MT: group. */
DSCOMM_API dscomm_status_t dscomm_signal(dscomm_group_t *group, int rank,
                                         dscomm_work_t **ret_work);

/* Waits for one signal of rank, at most timeout_ms; DSCOMM_TIMEOUT_DEFAULT: the
 * group's time-out. When it has come, waits for the data of the puts before it,
 * at most the group's time-out. Each signal ends one wait. ERR_TIMEOUT if none
 * has come; the group goes on. MT: group. */
DSCOMM_API dscomm_status_t dscomm_signal_wait(dscomm_group_t *group, int rank,
                                              int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
