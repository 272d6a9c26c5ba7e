/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract with profiler plugins, which DSCOMM_PROFILE loads into a program
 * that knows nothing of them. A plugin is a shared object with one function,
 * dscomm_profiler_plugin(). libdscomm-profiler is one; DSCOMM_PROFILER_PLUGIN
 * names another. dscomm-profiler(7) has an example. */
#ifndef DSCOMM_PLUGIN_H
#define DSCOMM_PLUGIN_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this contract; another one is not compatible. */
#define DSCOMM_PROFILER_PLUGIN_ABI 1

/* The data that one rank has collected. */
typedef struct dscomm_profiler_part {
    const void *data; /* NULL: the rank is missing: dead, or without memory */
    size_t size;
} dscomm_profiler_part_t;

/* The functions are called by the thread that calls dscomm_init() or
 * dscomm_finalize(). While one world of the process has the plugin, further
 * worlds are not reported to it. */
typedef struct dscomm_profiler_plugin {
    size_t size;
    const char *name;
    /* Called before the ranks meet, with the value of DSCOMM_PROFILE. The
     * status of a failure, whose sentence is that of dscomm_fail(), becomes
     * that of dscomm_init(). *ret_state is passed to the other functions. */
    dscomm_status_t (*open)(const char *settings, void **ret_state);
    /* Called when the ranks have met. May be NULL. */
    void (*begin)(void *state, dscomm_group_t *world);
    /* Called when the program leaves the world, which may have failed: returns
     * what rank 0 gets of this rank, bytes that live until close. The plugin
     * must remove its hooks now. May be NULL. */
    void (*collect)(void *state, dscomm_profiler_part_t *ret_part);
    /* Called on rank 0, after all other ranks that live have collected: parts
     * has an entry for each rank of the world. May be NULL. */
    void (*finish)(void *state, const dscomm_profiler_part_t *parts, int count);
    /* Frees state; called last, also if the ranks did not meet. */
    void (*close)(void *state);
    /* Called after begin, and again before collect if the world works, on all
     * ranks at about the same time, with a view of the job's store for what the
     * plugin's ranks must exchange. Calls on it end within seconds. Not
     * called in a world of one rank. May be NULL. */
    void (*meet)(void *state, dscomm_group_t *world, dscomm_store_t *store);
} dscomm_profiler_plugin_t;

/* The plugin's only exported function: its table, in static memory, or NULL if
 * it does not know this abi. */
typedef const dscomm_profiler_plugin_t *(*dscomm_profiler_plugin_entry_t)(
    unsigned abi);
#define DSCOMM_PROFILER_PLUGIN_SYMBOL "dscomm_profiler_plugin"

#ifdef __cplusplus
}
#endif

#endif
