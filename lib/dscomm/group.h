/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: ordered sets of ranks, each with its own sequence of operations.
 *
 * Different groups may be used by different threads at the same time; one group
 * is used by one thread at a time ("MT: group"). Functions that only read
 * constant data are "MT: safe".
 *
 * A handle must not be used after dscomm_group_free(), or dscomm_finalize() of
 * its world. To detect such mistakes, a process remembers its last 256 freed
 * groups: calls on them, and on their registered memory, return ERR_INVALID
 * with a sentence, and queries of rank, size, name, backend, time-out and
 * capabilities still work. Older handles are undefined. */
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
    /* 1: only the listed ranks call dscomm_group_new(), which is collective
     * over them alone, like MPI_Comm_create_group(). All callers must pass the
     * same list, in the same order, and the same backend, and must have passed
     * that list equally often, counting failed calls; otherwise the call ends
     * with ERR_TIMEOUT, or with ERR_PEER_FAILED if the others gave up before.
     */
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
 * ordered by (key, rank in parent). A rank with DSCOMM_NO_COLOR joins no group
 * and gets NULL and OK. Collective over parent. attr may be NULL; ranks of one
 * color must give the same backend, otherwise all get ERR_MISMATCH. MT: parent.
 */
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

/* Makes a group of the survivors of a group that has failed: the ranks that
 * call, in their old order. Collective over them; each rank calls after one of
 * its calls has failed. Ranks whose processes have ended, and the culprit that
 * the failure names if it left, are not waited for; a culprit that was silent,
 * for a second at most; other ranks that do not call within the time-out are
 * left out. If a rank dies meanwhile, the others begin again without it. The
 * new group shares nothing with the old one, which must still be freed; its
 * works have ended with its failure, which stays readable. attr may be NULL;
 * its members_only must be 0; its name defaults to the old name, "/shrunk#" and
 * a number. A group shrinks once: if the new group fails, that one shrinks. All
 * survivors get the same result, except those with ERR_TIMEOUT: this rank is
 * left out, because it was judged dead or called too late. ERR_STATE while the
 * group works. MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_shrink(dscomm_group_t *group,
                                               const dscomm_group_attr_t *attr,
                                               dscomm_group_t **ret_group);

/* Frees a group made by the calls above; group may be NULL. Local, and does not
 * wait: works that are still incomplete end with ERR_ABORTED on this rank. The
 * world is freed by dscomm_finalize() only (ERR_STATE). MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_free(dscomm_group_t *group);

/* Ends the group on all its ranks: calls that wait now and all later calls,
 * also those that need no peer, return ERR_ABORTED, and their sentence names
 * the rank that aborted and the reason. Works can still be queried and freed,
 * memory can be freed (dscomm_mem_free()), and the queries below work; the
 * group must still be freed. reason may be NULL. MT: safe, from any thread. */
DSCOMM_API dscomm_status_t dscomm_group_abort(dscomm_group_t *group,
                                              const char *reason);

/* OK while the group works; otherwise the status with which it was revoked, and
 * its sentence in dscomm_last_error(). dscomm_group_failure() gives the failure
 * as data. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_group_status(const dscomm_group_t *group);

/* This rank's number in the group, the number of ranks; -1 for NULL. MT:
 * safe. */
DSCOMM_API int dscomm_group_rank(const dscomm_group_t *group);
DSCOMM_API int dscomm_group_size(const dscomm_group_t *group);
/* This rank's number among the group's ranks on its node; the number of these
 * ranks; the number of the node among the group's nodes, from 0. The world's
 * numbers are the launcher's if they agree with what the ranks found out about
 * their hosts; otherwise ranks that can share memory form a node, and are
 * numbered by rank. Other groups keep these orders. -1 for NULL. MT: safe. */
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

/* Returns a descriptor for poll(2), always the same one. It becomes readable
 * when a work of the group completes or the group fails. Read its 8 bytes to
 * make it unreadable (eventfd(2), non-blocking); then test works by
 * dscomm_work_test() and the group by dscomm_group_status(). In this order
 * nothing is lost: a later completion makes it readable again. Works of
 * blocking calls do not count. From the first call on, a thread of the library
 * makes progress for the process, as with DSCOMM_PROGRESS=thread, and checks
 * the deadlines of works. A failure while no work is incomplete is signalled
 * within 0.1 s after the backend detects it. The group owns the descriptor and
 * closes it when it is freed. ERR_UNSUPPORTED with DSCOMM_CAP_CALLER_PROGRESS.
 * MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_fd(dscomm_group_t *group, int *ret_fd);

/* Number of collectives that this rank has started on the group. After the same
 * collective it is equal on all ranks. MT: group. */
DSCOMM_API uint64_t dscomm_group_sequence(const dscomm_group_t *group);

/* Number of the group in this process, from 1. No other group of the process
 * has it, also after this one was freed, unlike its address. Other ranks may
 * number differently. 0 for NULL. MT: safe. */
DSCOMM_API uint64_t dscomm_group_number(const dscomm_group_t *group);
/* Text that is equal on all ranks of the group, and that no other group of the
 * world has, also after this one was freed: "w" for a world, else the parent's
 * and what was added to it. With dscomm_group_sequence() it tells which
 * collectives of several ranks are one. It has at most 511 bytes and lives as
 * long as the group. "" for NULL. MT: safe. */
DSCOMM_API const char *dscomm_group_id(const dscomm_group_t *group);

/* Capabilities of the group's backend. */
#define DSCOMM_CAP_NATIVE_COLLECTIVES ((uint64_t)1 << 0)
#define DSCOMM_CAP_ANY_SOURCE ((uint64_t)1 << 1)
#define DSCOMM_CAP_ZERO_COPY ((uint64_t)1 << 2) /* dscomm_mem_alloc() pays */
#define DSCOMM_CAP_DEVICE_MEMORY ((uint64_t)1 << 3)
#define DSCOMM_CAP_DEATH_DETECTION ((uint64_t)1 << 4)
#define DSCOMM_CAP_MISMATCH_DETECTION ((uint64_t)1 << 5)
/* Blocking collectives are the transport's own. They match no call with a work,
 * so all ranks must make a call in the same form; and neither a time-out nor an
 * abort can interrupt one that waits. */
#define DSCOMM_CAP_SEPARATE_MATCHING ((uint64_t)1 << 6)
/* Collectives by operators of dscomm_op_create(). */
#define DSCOMM_CAP_USER_OPS ((uint64_t)1 << 7)
/* Only the program's own calls make progress: no thread of the library does, so
 * dscomm_group_fd() is refused. */
#define DSCOMM_CAP_CALLER_PROGRESS ((uint64_t)1 << 8)
/* The capabilities of the group's backend: an or of DSCOMM_CAP_*; 0 for NULL.
 * MT: safe. */
DSCOMM_API uint64_t dscomm_group_capabilities(const dscomm_group_t *group);

/* Sets the stream (CUstream, cudaStream_t) for the group's next calls with
 * device buffers. The host waits for what is on the stream before each such
 * call. The results are complete when the call, or the wait for its work,
 * returns. NULL, the initial value, is the default stream. The stream must live
 * as long as calls made with it. ERR_UNSUPPORTED if the process has not loaded
 * CUDA. MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_set_stream(dscomm_group_t *group,
                                                   void *stream);

/* Attaches value to the group, for a library on top of this one. key is an
 * address that the library owns; a value under the same key is replaced. When
 * the group is freed, or its world is left, also in a forked child, end is
 * called once with value. Works have ended then, but the group's communication
 * still exists; end may free other groups. end may be NULL. value NULL removes
 * the old value without calling end. MT: group. */
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
