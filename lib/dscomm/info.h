/* SPDX-License-Identifier: BSD-3-Clause */
/* Information on this library, as `dscomm info` prints it: how it was built,
 * what it can load, its settings. */
#ifndef DSCOMM_INFO_H
#define DSCOMM_INFO_H

#include <dscomm/hook.h>
#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One DSCOMM_* setting. Strings are static, except value, which lives until the
 * environment changes. */
typedef struct dscomm_setting_info {
    size_t size;
    const char *name; /* "DSCOMM_TIMEOUT" */
    /* "bool", "integer", "bytes", "seconds", "enum", "text" */
    const char *type;
    const char *default_value; /* as text; NULL = none */
    const char *accepted; /* range or list of words, as text */
    const char *help; /* one sentence */
    const char *value; /* the environment's or the tuning file's; or NULL */
    int refused; /* 1: value is not accepted */
    /* "environment" or "tuning file"; NULL: there is no value */
    const char *origin;
    const char *why; /* refused: a sentence, if there is more to say; or NULL */
} dscomm_setting_info_t;

/* Fills *info (whose size member is set) with setting index = 0, 1, ...;
 * ERR_NOT_FOUND beyond the last one. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_setting_info(size_t index,
                                               dscomm_setting_info_t *info);

/* DSCOMM_* variable index = 0, 1, ... of the environment that is not a setting,
 * and so has no effect; and the setting with the most similar name, or NULL;
 * static. ERR_NOT_FOUND after the last one. The name may hold any byte but '='.
 * Loads the modules on first use. MT: safe while nobody changes the
 * environment. */
DSCOMM_API dscomm_status_t dscomm_setting_unknown(size_t index,
                                                  const char **ret_name,
                                                  const char **ret_nearest);

/* One backend, built in or found as a module; strings live until the process
 * ends. */
typedef struct dscomm_backend_info {
    size_t size;
    const char *name; /* from the file's name if the module was refused */
    const char *path; /* NULL = built in */
    int priority; /* larger is tried first by "auto" */
    int usable; /* 0: cannot be used, see why */
    const char *why; /* NULL if usable */
    /* the module's findings here: "MPI libraries: openmpi, mpich"; or NULL */
    const char *detail;
} dscomm_backend_info_t;

/* Like dscomm_setting_info(), for backends. Loads the modules on first use. MT:
 * safe. */
DSCOMM_API dscomm_status_t dscomm_backend_info(size_t index,
                                               dscomm_backend_info_t *info);

/* A fact about a device of a backend. */
typedef struct dscomm_backend_fact {
    const char *name; /* "link_layer": lower-case letters, digits and _ */
    const char *value; /* NULL: unknown */
    /* NULL: value is a text; else it is a decimal number, of this unit:
     * "Gbit/s", or "" */
    const char *unit;
} dscomm_backend_fact_t;

/* A device that a backend finds on this machine, or a part of one. */
typedef struct dscomm_backend_device {
    size_t size;
    /* 0: a device; N: a part of the last one of level N-1. The parts of one
     * device or part have the same kind. */
    int level;
    const char *kind; /* "device", "port", "gid" */
    const char *name; /* "mlx5_0" */
    int chosen; /* 1: the backend would use it under the present settings */
    const char *why; /* why it cannot be used; NULL: nothing is wrong with it */
    const dscomm_backend_fact_t *facts;
    size_t fact_count;
} dscomm_backend_device_t;

/* Calls visit for each device of the backend with that index, as in
 * dscomm_backend_info(), and each part of one; what item points to is valid
 * during the call only. OK: the backend would use one; ERR_NOT_FOUND: no such
 * backend; ERR_UNSUPPORTED: it does not list devices; else
 * dscomm_last_error() says why it can use none. Loads the modules on first use,
 * and may open devices for a moment. MT: safe while nobody changes the
 * environment. */
DSCOMM_API dscomm_status_t dscomm_backend_devices(
    size_t index, void (*visit)(void *arg, const dscomm_backend_device_t *item),
    void *arg);

/* The folder from which modules are loaded; static. MT: safe. */
DSCOMM_API const char *dscomm_backend_directory(void);

/* One choice made when the library was built: name and value of index = 0, 1,
 * ...
 * ("compiler", "gcc 12.2.0"), ERR_NOT_FOUND beyond the last one; static. MT:
 * safe. */
DSCOMM_API dscomm_status_t dscomm_build_info(size_t index,
                                             const char **ret_name,
                                             const char **ret_value);

/* Names of the processor features found, except those that DSCOMM_CPU excludes,
 * separated by spaces ("avx2 f16c"). dscomm_kernels() names the kernels in use.
 * Static. MT: safe. */
DSCOMM_API const char *dscomm_cpu_features(void);

/* Names of the sets of reduction kernels in use, best first: a kernel that one
 * set lacks comes from the next ("avx2 c"); static. MT: safe. */
DSCOMM_API const char *dscomm_kernels(void);

/* One of the library's own algorithms, by which a backend's messages carry out
 * a collective; the string is static. */
typedef struct dscomm_algorithm_info {
    size_t size;
    int coll; /* dscomm_coll_t */
    const char *name; /* "ring" */
    int power_of_two; /* 1: needs a power of two of ranks */
    int two_levels; /* 1: needs several nodes, some with several ranks */
} dscomm_algorithm_info_t;

/* Like dscomm_setting_info(), for algorithms, in the order of coll. MT:
 * safe. */
DSCOMM_API dscomm_status_t dscomm_algorithm_info(size_t index,
                                                 dscomm_algorithm_info_t *info);

/* The algorithm for calls of certain sizes; strings are static. */
typedef struct dscomm_choice_info {
    size_t size;
    uint64_t from, to; /* the range with this choice, in bytes, both included */
    const char *by_default; /* used if the backend has none of its own */
    /* From DSCOMM_ALGORITHM, which has precedence: a name; "native", the
     * backend's own if it has one; or NULL. */
    const char *by_setting;
    /* An earlier rule of DSCOMM_ALGORITHM that cannot serve, and the reason; or
     * both NULL. */
    const char *passed_over, *why;
} dscomm_choice_info_t;

/* Fills *info (whose size member is set) for coll on so many ranks (2 or more)
 * on so many nodes (1 to ranks). bytes: of the longest buffer of one rank, so
 * of all blocks in all_gather or scatter; not used for gather_v, scatter_v and
 * all_to_all_v. op matters if coll reduces. UINT64_MAX means no limit.
 * ERR_ENVIRONMENT if DSCOMM_ALGORITHM is malformed. MT: safe while nobody
 * changes the environment. */
DSCOMM_API dscomm_status_t dscomm_choice_info(int ranks, int nodes,
                                              dscomm_coll_t coll,
                                              dscomm_dtype_t dtype,
                                              dscomm_op_t op, uint64_t bytes,
                                              dscomm_choice_info_t *info);

/* Returns what carries out a call on group: "native" for the backend, else the
 * name of an algorithm; static. count is the call's; for _v, that of every
 * rank. async: 1 for a call with a work. Local. MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_algorithm(
    dscomm_group_t *group, dscomm_coll_t coll, dscomm_dtype_t dtype,
    dscomm_op_t op, size_t count, int async, const char **ret_name);

/* How a backend carries out a collective of its own, and what that costs.
 * Bytes are counted as often as they are read or written, in caches too. */
typedef struct dscomm_native_info {
    size_t size;
    const char *algorithm; /* the backend's name for it, "parts"; static */
    int steps; /* waits for other ranks that follow each other, for one piece */
    uint64_t moved; /* bytes that ranks get from others, of all ranks */
    uint64_t memory; /* bytes that ranks read and write, of all ranks */
    uint64_t busiest; /* those of the rank that reads and writes most */
} dscomm_native_info_t;

/* Fills *info (whose size member is set) for a blocking call on group, whose
 * arguments these are; broadcast: send is the buffer, as recv; with a root,
 * both are as on the root. Holds if the other ranks' buffers are of the same
 * kind as this one's. ERR_UNSUPPORTED: the backend does not run the call, or
 * does not tell how; of _v it never does. Local. MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_native_info(
    dscomm_group_t *group, dscomm_coll_t coll, const void *send, void *recv,
    size_t count, dscomm_dtype_t dtype, dscomm_op_t op, int root,
    dscomm_native_info_t *info);

/* Describes what the group's backend has chosen by measurement on this rank
 * ("stores of 16K to 128K plain"); "" if nothing. Writes at most size bytes,
 * with a final 0. Local. MT: group. */
DSCOMM_API dscomm_status_t dscomm_group_tuning(dscomm_group_t *group,
                                               char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
