/* SPDX-License-Identifier: BSD-3-Clause */
/* The loader of the profiler plugin, see dscomm/plugin.h. */
#ifndef LIB_PLUGIN_H
#define LIB_PLUGIN_H

#include <dscomm/plugin.h>

/* Loads the plugin that DSCOMM_PROFILER_PLUGIN names; if it is not set,
 * libdscomm-profiler, which lies beside libdscomm. ERR_ENVIRONMENT with the
 * reason if that is not possible. The plugin stays loaded. */
dscomm_status_t
dscomm_priv_plugin_load(const dscomm_profiler_plugin_t **ret_plugin);

#endif
