/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: ordered sets of ranks, each with its own sequence of operations.
 *
 * Different groups may be used by different threads at the same time; one group
 * is used by one thread at a time ("MT: group"). The functions that only read
 * what never changes are "MT: safe".
 *
 * A handle must not be used after dscomm_group_free(), or dscomm_finalize() of
 * its world. To find such mistakes, the last 256 groups that a process gave up
 * are remembered: calls on them return ERR_INVALID and say so, and questions
 * about rank, size, name, backend, time-out and capabilities are answered as
 * before. Nothing is promised for older ones. */
#ifndef DSCOMM_GROUP_H
#define DSCOMM_GROUP_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dscomm_group_attr {
    size_t size;
    const char *backend; /* NULL = the parent's */
    const char *name; /* NULL = the parent's name, a slash, a number */
    int timeout_ms; /* 0 = the parent's */
    /* 1: only the ranks listed call dscomm_group_new(), which is collective
     * over them alone, as MPI_Comm_create_group() is; not for the others. They
     * meet by the list and the backend: whoever gives other ones, or another
     * order, or has asked for these more often, failed calls included, does not
     * meet them (ERR_TIMEOUT, or ERR_PEER_FAILED where they gave up before). */
    int members_only;
} dscomm_group_attr_t;
#define DSCOMM_GROUP_ATTR_INIT                                                 \
    {                                                                          \
        sizeof(dscomm_group_attr_t), NULL, NULL, 0, 0                          \
    }
/* Sets the size bytes at attr to the defaults, as DSCOMM_GROUP_ATTR_INIT does,
 * for callers in languages that have no macros. size: of the structure that
 * the caller knows. ERR_INVALID if attr is NULL, or if size is smaller than a
 * size_t or larger than 4096. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_group_attr_init(dscomm_group_attr_t *attr,
                                                  size_t size);

/* Makes a group of count of parent's ranks, in the order given, which must be
 * the same on all callers and without duplicates. Collective over parent: every
 * rank of it calls, with the same list; a rank that is not listed gets NULL and
 * OK. With attr.members_only, collective over those that are listed. attr may
 * be NULL. MT: parent. */
DSCOMM_API dscomm_status_t dscomm_group_new(dscomm_group_t *parent,
                                            const int *ranks, int count,
                                            const dscomm_group_attr_t *attr,
                                            dscomm_group_t **ret_group);

/* Splits parent into one group per color >= 0; within a group, ranks are
 * ordered by (key, rank in parent). DSCOMM_NO_COLOR joins none and gets NULL
 * and OK. Collective over parent. attr may be NULL; ranks of one color ask for
 * the same backend, else all get ERR_MISMATCH. MT: parent. */
DSCOMM_API dscomm_status_t dscomm_group_split(dscomm_group_t *parent, int color,
                                              int key,
                                              const dscomm_group_attr_t *attr,
                                              dscomm_group_t **ret_group);

/* Lays parent's ranks out as an n-dimensional mesh, row-major (the last
 * dimension varies fastest), and gives this rank its group along each
 * dimension: ret_groups[d] holds the ranks whose other coordinates equal this
 * rank's, in order of coordinate d. The product of dims must be parent's size.
 * A dimension of -1 (one at most) is computed. Collective over parent. MT:
 * parent. */
DSCOMM_API dscomm_status_t dscomm_group_mesh(dscomm_group_t *parent,
                                             const int *dims, int ndims,
                                             dscomm_group_t **ret_groups);

/* Frees a group made by the calls above; NULL is fine. Local; waits for
 * nothing: works that are still outstanding end with ERR_ABORTED on this rank.
 * Not for the world, which dscomm_finalize() frees (ERR_STATE). MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_free(dscomm_group_t *group);

/* Ends everything on the group, here and on its other ranks: calls that wait
 * now and all later ones return ERR_ABORTED and say who aborted and why, those
 * too that would need no peer. Works can still be asked and freed, memory given
 * back (dscomm_mem_free()), and the questions below are
 * answered; the group must still be freed. reason may be NULL. MT: safe, from
 * any thread. */
DSCOMM_API dscomm_status_t dscomm_group_abort(dscomm_group_t *group,
                                              const char *reason);

/* OK while the group works; else the status with which it was revoked, and the
 * sentence in dscomm_last_error(); dscomm_group_failure() gives it as data. MT:
 * safe. */
DSCOMM_API dscomm_status_t dscomm_group_status(const dscomm_group_t *group);

/* This rank's number in the group, the number of ranks; -1 for NULL. MT:
 * safe. */
DSCOMM_API int dscomm_group_rank(const dscomm_group_t *group);
DSCOMM_API int dscomm_group_size(const dscomm_group_t *group);
/* This rank's number among the group's ranks on its node; how many these are;
 * the number of the node among the group's nodes, from 0. Those of the world
 * are the launcher's where they agree with what ranks found out about their
 * hosts when they met; else ranks that can share memory are one node, and
 * counted by rank. Those of other groups are in the same orders. -1 for NULL.
 * MT: safe. */
DSCOMM_API int dscomm_group_local_rank(const dscomm_group_t *group);
DSCOMM_API int dscomm_group_local_size(const dscomm_group_t *group);
DSCOMM_API int dscomm_group_node_rank(const dscomm_group_t *group);
/* Names of the group and of its backend; live as long as the group. MT:
 * safe. */
DSCOMM_API const char *dscomm_group_name(const dscomm_group_t *group);
DSCOMM_API const char *dscomm_group_backend(const dscomm_group_t *group);
/* The group's default deadline. MT: safe. */
DSCOMM_API int dscomm_group_timeout(const dscomm_group_t *group);

/* World rank of the group's rank, and back; ERR_INVALID for a rank out of
 * range, ERR_NOT_FOUND for a world rank that is not in the group. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_group_to_global(const dscomm_group_t *group,
                                                  int rank, int *ret_rank);
DSCOMM_API dscomm_status_t dscomm_group_from_global(const dscomm_group_t *group,
                                                    int rank, int *ret_rank);

/* A descriptor for poll(2) and its like, the same one at each call: readable
 * since a work of the group has become complete, or since the group has failed.
 * Reading its 8 bytes makes it unreadable (eventfd(2), non-blocking); then look
 * at works by dscomm_work_test(), and at the group by dscomm_group_status().
 * Without that order, or between the two, nothing is lost: what becomes
 * complete later makes it readable again. Works of blocking calls do not count.
 * From the first call on a thread of the library makes progress for the
 * process, as with DSCOMM_PROGRESS=thread, and lets the deadlines of works
 * pass. A failure that comes while no work is outstanding is told within 0.1 s
 * after the backend knows. The group owns the descriptor and closes it when it
 * is freed. ERR_UNSUPPORTED with DSCOMM_CAP_CALLER_PROGRESS. MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_fd(dscomm_group_t *group, int *ret_fd);

/* Number of collectives started on the group; equal on all ranks between two of
 * them. MT: group. */
DSCOMM_API uint64_t dscomm_group_sequence(const dscomm_group_t *group);

/* What the group's backend does itself. */
#define DSCOMM_CAP_NATIVE_COLLECTIVES ((uint64_t)1 << 0)
#define DSCOMM_CAP_ANY_SOURCE ((uint64_t)1 << 1)
#define DSCOMM_CAP_ZERO_COPY ((uint64_t)1 << 2) /* dscomm_mem_alloc() pays */
#define DSCOMM_CAP_DEVICE_MEMORY ((uint64_t)1 << 3)
#define DSCOMM_CAP_DEATH_DETECTION ((uint64_t)1 << 4)
#define DSCOMM_CAP_MISMATCH_DETECTION ((uint64_t)1 << 5)
/* Blocking collectives are the transport's own: they match no call with a work,
 * so that all ranks must make a call in the same form, and neither time-out nor
 * abort ends one that waits. */
#define DSCOMM_CAP_SEPARATE_MATCHING ((uint64_t)1 << 6)
/* Collectives by operators of dscomm_op_create(). */
#define DSCOMM_CAP_USER_OPS ((uint64_t)1 << 7)
/* Only the program's own calls make progress: no thread of the library does, so
 * dscomm_group_fd() is refused. */
#define DSCOMM_CAP_CALLER_PROGRESS ((uint64_t)1 << 8)
/* Or of DSCOMM_CAP_*; 0 for NULL. MT: safe. */
DSCOMM_API uint64_t dscomm_group_capabilities(const dscomm_group_t *group);

/* The stream (CUstream, cudaStream_t) on which the group's next calls with
 * buffers of a device are ordered: each comes after what is on it then, for
 * which the host waits, and its results are there when it, or the wait for its
 * work, returns. NULL is the default stream, and where a group begins. The
 * stream must live as long as calls made with it. ERR_UNSUPPORTED where the
 * process has not loaded CUDA. MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_set_stream(dscomm_group_t *group,
                                                   void *stream);

/* For libraries on top of this one: keeps value with the group, under key, an
 * address that is the caller's own, in place of what was there. When the group
 * is freed, its works have ended and its communication is still there, end gets
 * value, once; it may free other groups. In a forked child and where a world is
 * left, too. end may be NULL, and so may value, which takes away what was there
 * without a call. MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_attach(dscomm_group_t *group,
                                               const void *key, void *value,
                                               void (*end)(void *value));
/* The value under key, or NULL. MT: group. */
DSCOMM_API void *dscomm_group_attached(const dscomm_group_t *group,
                                       const void *key);

#ifdef __cplusplus
}
#endif

#endif
