/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes the library's build, the modules it can load, and its settings. The
 * result must be the same for two builds of one source with one tool chain: no
 * dates, no paths. */
#include "config.h"

#include "lib/base/attr.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/base/tuning-check.h"
#include "lib/module/module.h"

#include <dscomm/backend.h>
#include <dscomm/info.h>
#include <dscomm/version.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#if defined(__clang__)
#define COMPILER                                                               \
    "clang " G_STRINGIFY(__clang_major__) "." G_STRINGIFY(                     \
        __clang_minor__) "." G_STRINGIFY(__clang_patchlevel__)
#else
#define COMPILER                                                               \
    "gcc " G_STRINGIFY(__GNUC__) "." G_STRINGIFY(                              \
        __GNUC_MINOR__) "." G_STRINGIFY(__GNUC_PATCHLEVEL__)
#endif

#if defined(__x86_64__)
#define PROCESSOR "x86_64"
#elif defined(__i386__)
#define PROCESSOR "i386"
#elif defined(__aarch64__)
#define PROCESSOR "aarch64"
#elif defined(__powerpc64__)
#define PROCESSOR "powerpc64"
#elif defined(__riscv)
#define PROCESSOR "riscv"
#else
#define PROCESSOR "other"
#endif

#if defined(__GLIBC__)
#define LIBC "glibc " G_STRINGIFY(__GLIBC__) "." G_STRINGIFY(__GLIBC_MINOR__)
#else
#define LIBC "other"
#endif

#define GLIB                                                                   \
    G_STRINGIFY(GLIB_MAJOR_VERSION)                                            \
    "." G_STRINGIFY(GLIB_MINOR_VERSION) "." G_STRINGIFY(GLIB_MICRO_VERSION)

static const struct {
    const char *name, *value;
} choices[] = {
    {"version", DSCOMM_VERSION_STRING},
    {"backend abi", G_STRINGIFY(DSCOMM_BACKEND_ABI)},
    {"compiler", COMPILER},
    {"processor", PROCESSOR},
    {"bits", sizeof(void *) == 8 ? "64" : "32"},
    {"byte order", G_BYTE_ORDER == G_LITTLE_ENDIAN ? "little" : "big"},
    {"libc", LIBC},
    {"glib", GLIB},
#ifdef G_DISABLE_ASSERT
    {"assertions", "no"},
#else
    {"assertions", "yes"},
#endif
};

static const char *const type_names[] = {
    [DSCOMM_SETTING_BOOL] = "bool",   [DSCOMM_SETTING_INT] = "integer",
    [DSCOMM_SETTING_BYTES] = "bytes", [DSCOMM_SETTING_MSEC] = "seconds",
    [DSCOMM_SETTING_ENUM] = "enum",   [DSCOMM_SETTING_STRING] = "text",
};

int dscomm_version(void)
{
    return DSCOMM_VERSION;
}

const char *dscomm_version_string(void)
{
    return DSCOMM_VERSION_STRING;
}

dscomm_status_t dscomm_build_info(size_t index, const char **ret_name,
                                  const char **ret_value)
{
    if (!ret_name || !ret_value)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_build_info: ret_name and ret_value must not "
                           "be NULL");
    if (index >= G_N_ELEMENTS(choices))
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "dscomm_build_info: no choice %zu; there are %zu",
                           index, G_N_ELEMENTS(choices));
    *ret_name = choices[index].name;
    *ret_value = choices[index].value;
    return DSCOMM_OK;
}

/* Returns row index of the core's table followed by the backends' tables, or
 * NULL. */
static const dscomm_setting_t *find_row(size_t index)
{
    const dscomm_setting_t *table = dscomm_priv_setting(0);

    for (size_t next = 0; table; table = dscomm_priv_backend_settings(next++)) {
        for (; table->name; table++) {
            if (index-- == 0)
                return table;
        }
    }
    return NULL;
}

/* Returns what is wrong with the tuning file, interned, or NULL. */
static const char *tuning_problem(void)
{
    const dscomm_setting_t *tables[DSCOMM_TABLES_MAX];
    const size_t count = dscomm_priv_setting_tables(tables);

    return dscomm_priv_tuning_check(tables, count) < 0
               ? g_intern_string(dscomm_last_error())
               : NULL;
}

static const char *value_origin(const dscomm_setting_t *row)
{
    if (dscomm_priv_setting_environment(row))
        return "environment";
    return dscomm_priv_setting_file(row) ? "tuning file" : NULL;
}

dscomm_status_t dscomm_setting_info(size_t index, dscomm_setting_info_t *info)
{
    const char *name = "dscomm_setting_info";
    const dscomm_setting_t *row;
    dscomm_setting_info_t full;
    int64_t number;

    if (dscomm_priv_info_check(name, "info", info ? &info->size : NULL) < 0)
        return DSCOMM_ERR_INVALID;
    row = find_row(index);
    if (!row)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND, "%s: no setting %zu", name,
                           index);
    full.name = row->name;
    full.type = type_names[dscomm_priv_setting_type(row)];
    full.default_value = row->default_value;
    full.accepted = dscomm_priv_setting_accepted(row);
    full.help = row->help;
    full.value = dscomm_priv_setting_value(row);
    if (full.value && row == dscomm_priv_setting(SETTING_JOB_SECRET))
        full.value = "(hidden)";
    full.origin = value_origin(row);
    full.why = full.value && row == dscomm_priv_setting(SETTING_TUNING_FILE)
                   ? tuning_problem()
                   : NULL;
    full.refused =
        full.why ||
        (full.value && full.type != type_names[DSCOMM_SETTING_STRING] &&
         dscomm_priv_setting_try(row, full.value, &number) != 0);
    dscomm_priv_info_copy(&full, sizeof full, info);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_backend_info(size_t index, dscomm_backend_info_t *info)
{
    const char *name = "dscomm_backend_info";
    const dscomm_module_t *module;
    dscomm_backend_info_t full;

    if (dscomm_priv_info_check(name, "info", info ? &info->size : NULL) < 0)
        return DSCOMM_ERR_INVALID;
    module = dscomm_priv_module_get(index);
    if (!module)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND, "%s: no backend %zu", name,
                           index);
    full.name = module->name;
    full.path = module->path;
    full.priority = module->backend ? (int)module->backend->priority : 0;
    full.usable = module->backend != NULL;
    full.why = module->why;
    /* a backend of the core's gets its slots in dscomm_init(), and has nothing
     * to describe */
    full.detail =
        module->backend && module->backend->ops && module->ops.describe
            ? module->ops.describe()
            : NULL;
    dscomm_priv_info_copy(&full, sizeof full, info);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_backend_devices(
    size_t index, void (*visit)(void *arg, const dscomm_backend_device_t *item),
    void *arg)
{
    const char *name = "dscomm_backend_devices";
    const dscomm_module_t *module;

    if (!visit)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: visit must not be NULL",
                           name);
    module = dscomm_priv_module_get(index);
    if (!module)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND, "%s: no backend %zu", name,
                           index);
    if (!module->backend || !module->ops.devices)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s: backend %s does not list devices", name,
                           module->name);
    return module->ops.devices(visit, arg);
}

dscomm_status_t dscomm_setting_unknown(size_t index, const char **ret_name,
                                       const char **ret_nearest)
{
    const dscomm_setting_t *tables[DSCOMM_TABLES_MAX];
    size_t count;
    const char *name;

    if (!ret_name || !ret_nearest)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_setting_unknown: ret_name and ret_nearest "
                           "must not be NULL");
    count = dscomm_priv_setting_tables(tables);
    name = dscomm_priv_settings_unknown(environ, tables, count, index);
    if (!name)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "dscomm_setting_unknown: no unknown variable %zu",
                           index);
    *ret_name = name;
    *ret_nearest = dscomm_priv_setting_nearest(name, tables, count);
    return DSCOMM_OK;
}
