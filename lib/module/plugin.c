/* SPDX-License-Identifier: BSD-3-Clause */
/* The loader of the profiler plugin. */
#include "config.h"

#include "lib/module/plugin.h"

#include "lib/base/settings.h"
#include "lib/module/module.h"

#include <dlfcn.h>
#include <glib.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

/* The size of a valid table is below this. */
#define TABLE_MAX 65536

/* The path of libdscomm-profiler, in the folder of libdscomm; in a build, in
 * that of its own. */
static char *path_of_profiler(void)
{
    char path[PATH_MAX];
    char *folder, *file;
    Dl_info info;

    if (!dladdr((void *)path_of_profiler, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, path))
        return g_strdup(LIBDSCOMM_PROFILER_FILE);
    folder = g_path_get_dirname(path);
    if (g_str_has_suffix(folder, "/.libs"))
        file = g_build_filename(folder, "../../profiler/.libs",
                                LIBDSCOMM_PROFILER_FILE, NULL);
    else
        file = g_build_filename(folder, LIBDSCOMM_PROFILER_FILE, NULL);
    g_free(folder);
    return file;
}

/* Returns NULL if the table is complete, else what is wrong (to be freed). */
static char *plugin_check(const dscomm_profiler_plugin_t *plugin)
{
    const size_t least =
        offsetof(dscomm_profiler_plugin_t, close) + sizeof plugin->close;

    if (!plugin)
        return g_strdup_printf("it does not know plugin abi %d",
                               DSCOMM_PROFILER_PLUGIN_ABI);
    if (plugin->size < least || plugin->size > TABLE_MAX)
        return g_strdup_printf("its table has %zu bytes, at least %zu are "
                               "needed",
                               plugin->size, least);
    if (!plugin->open || !plugin->close)
        return g_strdup("it has no function open or close");
    return NULL;
}

/* Returns NULL and *ret_plugin, or what is wrong (to be freed). */
static char *plugin_load(const char *path,
                         const dscomm_profiler_plugin_t **ret_plugin)
{
    char *why = dscomm_priv_check_shared_object(path);
    dscomm_profiler_plugin_entry_t entry;
    const dscomm_profiler_plugin_t *plugin;
    void *handle;

    if (why)
        return why;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *error = dlerror();

        return g_strdup(error ? error : "dlopen failed");
    }
    why = dscomm_priv_module_check_library(handle);
    if (why)
        return why;
    *(void **)&entry = dlsym(handle, DSCOMM_PROFILER_PLUGIN_SYMBOL);
    if (!entry)
        return g_strdup("it has no symbol " DSCOMM_PROFILER_PLUGIN_SYMBOL);
    plugin = entry(DSCOMM_PROFILER_PLUGIN_ABI);
    why = plugin_check(plugin);
    if (!why)
        *ret_plugin = plugin;
    return why;
}

dscomm_status_t
dscomm_priv_plugin_load(const dscomm_profiler_plugin_t **ret_plugin)
{
    const char *named = dscomm_priv_setting_text(SETTING_PROFILER_PLUGIN);
    char *path = named ? g_strdup(named) : path_of_profiler();
    char *why = plugin_load(path, ret_plugin);
    dscomm_status_t status = DSCOMM_OK;

    if (why)
        status = dscomm_fail(
            DSCOMM_ERR_ENVIRONMENT,
            "DSCOMM_PROFILE is set, but the profiler %s cannot be loaded: %s; "
            "%s",
            path, why,
            named ? "correct DSCOMM_PROFILER_PLUGIN, or unset it"
                  : "install libdscomm-profiler, or name a plugin by "
                    "DSCOMM_PROFILER_PLUGIN");
    g_free(why);
    g_free(path);
    return status;
}
