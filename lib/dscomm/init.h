/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining a job and leaving it. */
#ifndef DSCOMM_INIT_H
#define DSCOMM_INIT_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero or NULL means: discover it (from DSCOMM_*, then the launcher's
 * variables), or take the default. Attribute > environment > default. */
typedef struct dscomm_init_attr {
    size_t size;
    const char *backend; /* "auto", or a backend's name */
    const char *init_method; /* "env://", "tcp://HOST:PORT", "file:///PATH" */
    /* rendezvous through this store instead; must stay open until
     * dscomm_finalize() */
    dscomm_store_t *store;
    int has_rank; /* 1: rank and world_size below are given; else they are 0 */
    int rank;
    int world_size;
    int timeout_ms; /* default deadline of every operation */
    const char *name; /* of the world, in messages; "world" */
} dscomm_init_attr_t;
#define DSCOMM_INIT_ATTR_INIT                                                  \
    {                                                                          \
        sizeof(dscomm_init_attr_t), NULL, NULL, NULL, 0, 0, 0, 0, NULL         \
    }
/* Sets the size bytes at attr to the defaults, as DSCOMM_INIT_ATTR_INIT does,
 * for callers in languages that have no macros. size: of the structure that
 * the caller knows. ERR_INVALID if attr is NULL, or if size is smaller than a
 * size_t or larger than 4096. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_init_attr_init(dscomm_init_attr_t *attr,
                                                 size_t size);

/* Joins the job and returns its group of all ranks. Collective over the job:
 * returns when every rank has arrived, or with ERR_TIMEOUT and the missing
 * ranks' numbers. attr may be NULL. Without a launcher the world has one rank.
 * May be called several times (by two libraries in one process, say) if each
 * call has its own rendezvous: the n-th call of every rank makes the n-th
 * world, also over programs that a launcher's job runs one after the other. A
 * file:// path is of one job: the last rank to leave removes the file, and one
 * that a killed job left is refused with a sentence that says to remove it. MT:
 * safe, but the order of calls must be the same on all ranks. */
DSCOMM_API dscomm_status_t dscomm_init(const dscomm_init_attr_t *attr,
                                       dscomm_group_t **ret_world);

/* Leaves the job and frees the world, its remaining groups and works.
 * Collective: waits until this rank's earlier sends are delivered, and then for
 * all ranks to arrive, at most the world's time-out each. If a rank calls
 * another collective on the world instead, both get ERR_MISMATCH. A world that
 * was aborted or lost a peer is freed without waiting, and the call returns OK,
 * unless the world failed in a collective that this rank has not begun, or in
 * none that is known. Rank 0, if it serves the store, waits up to 500 ms for
 * the others, who may read the failure there. The handle is invalid afterwards,
 * whatever is returned (calls on it return ERR_INVALID, see group.h); a second
 * call with it returns ERR_STATE. world may be NULL. In a forked child the call
 * only frees memory. MT: world. */
DSCOMM_API dscomm_status_t dscomm_finalize(dscomm_group_t *world);

#ifdef __cplusplus
}
#endif

#endif
