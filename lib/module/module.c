/* SPDX-License-Identifier: BSD-3-Clause */
/* The module loader: finds modules, and checks a module before it is used. It
 * knows no transport by name, except self and two_level, which are built in. */
#include "config.h"

#include "lib/device/device.h"
#include "lib/module/module.h"

#include "lib/base/log.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifndef DSCOMM_BACKEND_DIR
#define DSCOMM_BACKEND_DIR "/usr/local/lib/" LIBDSCOMM_MODULE_FOLDER "/backends"
#endif

#define SYMBOL_PREFIX "dscomm_backend_"
/* The size of a valid table is below this. */
#define OPS_MAX 65536

extern const dscomm_backend_t dscomm_backend_self;

static const dscomm_backend_t two_level = {
    .abi = DSCOMM_BACKEND_ABI,
    .priority = 60,
    .name = "two_level",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GPtrArray *modules; /* dscomm_module_t, self first; never freed */
static char *directory; /* colon list of folders; never freed */
/* the folders that cannot be read, and why; never freed */
static GString *unreadable;

/* Returns the folder "dscomm-0/backends" beside libdscomm.so.0, if it
 * exists. */
static char *beside_library(void)
{
    char path[PATH_MAX];
    char *parent, *folder;
    Dl_info info;

    if (!dladdr((void *)dscomm_backend_directory, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, path))
        return NULL;
    parent = g_path_get_dirname(path);
    folder =
        g_build_filename(parent, LIBDSCOMM_MODULE_FOLDER, "backends", NULL);
    g_free(parent);
    if (g_file_test(folder, G_FILE_TEST_IS_DIR))
        return folder;
    g_free(folder);
    return NULL;
}

static void find_directory(void)
{
    const char *path = dscomm_priv_setting_text(SETTING_BACKEND_PATH);

    directory = path ? g_strdup(path) : beside_library();
    if (!directory)
        directory = g_strdup(DSCOMM_BACKEND_DIR);
}

static dscomm_module_t *module_find(const char *name)
{
    if (!strcmp(name, "hierarchical"))
        name = "two_level";
    for (guint i = 0; i < modules->len; i++) {
        dscomm_module_t *module = g_ptr_array_index(modules, i);

        if (!strcmp(module->name, name))
            return module;
    }
    return NULL;
}

static void module_add(const char *name, const char *path)
{
    dscomm_module_t *module;

    if (module_find(name)) {
        dscomm_log(DSCOMM_LOG_DEBUG, "core",
                   "%s is left out: an earlier backend has its name", path);
        return;
    }
    module = g_new0(dscomm_module_t, 1);
    module->name = g_strdup(name);
    module->path = g_strdup(path);
    g_ptr_array_add(modules, module);
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int is_identifier(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") ==
                        strlen(name);
}

static void note_unreadable(const char *folder, int problem)
{
    const char *remedy = problem == EMFILE || problem == ENFILE
                             ? "allow more open files, see ulimit -n"
                             : "set DSCOMM_BACKEND_PATH to a folder of modules";

    g_string_append_printf(unreadable, "; %s cannot be read: %s (%s)", folder,
                           strerror(problem), remedy);
    dscomm_log(DSCOMM_LOG_INFO, "core", "no backend modules in %s: %s", folder,
               strerror(problem));
}

/* Lists the names of the modules, without ".so". */
static GPtrArray *list_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    GPtrArray *files = g_ptr_array_new_with_free_func(g_free);
    struct dirent *entry;

    if (!dir) {
        note_unreadable(folder, errno);
        return files;
    }
    while ((entry = readdir(dir)))
        if (g_str_has_suffix(entry->d_name, ".so"))
            g_ptr_array_add(
                files, g_strndup(entry->d_name, strlen(entry->d_name) - 3));
    closedir(dir);
    return files;
}

static void module_refuse_name(const char *name, const char *folder)
{
    char quoted[128];

    dscomm_log(DSCOMM_LOG_INFO, "core",
               "backend module '%s.so' in %s is refused: its name may have "
               "letters, digits and _ only",
               dscomm_priv_quote(name, quoted, sizeof quoted), folder);
}

/* Adds modules in the order of their names, so that every scan gives the same
 * list. */
static void scan_folder(const char *folder)
{
    GPtrArray *files = list_folder(folder);

    g_ptr_array_sort(files, compare_names);
    for (guint i = 0; i < files->len; i++) {
        const char *name = g_ptr_array_index(files, i);
        char *path = g_strdup_printf("%s/%s.so", folder, name);

        if (is_identifier(name))
            module_add(name, path);
        else
            module_refuse_name(name, folder);
        g_free(path);
    }
    g_ptr_array_free(files, TRUE);
}

static void take_ops(dscomm_module_t *module)
{
    const dscomm_backend_ops_t *ops = module->backend->ops;

    memcpy(&module->ops, ops, MIN(ops->size, sizeof module->ops));
    module->ops.size = sizeof module->ops;
}

static void module_add_builtin(const dscomm_backend_t *backend)
{
    dscomm_module_t *module;

    module_add(backend->name, NULL);
    module = module_find(backend->name);
    module->backend = backend;
    if (backend->ops)
        take_ops(module);
}

static void folder_scan(void)
{
    char **folders;

    if (modules)
        return;
    modules = g_ptr_array_new();
    unreadable = g_string_new(NULL);
    module_add_builtin(&dscomm_backend_self);
    module_add_builtin(&two_level);
    find_directory();
    folders = g_strsplit(directory, ":", -1);
    for (char **folder = folders; *folder; folder++)
        if (**folder)
            scan_folder(*folder);
    g_strfreev(folders);
}

static bool has_trim(const dscomm_backend_ops_t *ops)
{
    return ops->size >=
               offsetof(dscomm_backend_ops_t, trim) + sizeof ops->trim &&
           ops->trim;
}

static bool ops_are_complete(const dscomm_backend_ops_t *ops)
{
    return ops->close && ops->isend && ops->irecv && ops->cancel &&
           ops->progress && ops->revoke && ops->status;
}

/* Returns NULL, or a text that says what the module lacks (to be freed). */
static char *check_ops(const dscomm_backend_ops_t *ops)
{
    const size_t required = offsetof(dscomm_backend_ops_t, capabilities);

    if (!ops)
        return g_strdup("it has no table of operations");
    if (ops->size < required || ops->size > OPS_MAX)
        return g_strdup_printf("its table of operations has %zu bytes, this "
                               "libdscomm needs at least %zu",
                               ops->size, required);
    if (ops->request_size < sizeof(dscomm_request_t))
        return g_strdup_printf("its requests have %zu bytes, at least %zu are "
                               "needed",
                               ops->request_size, sizeof(dscomm_request_t));
    if (!ops->open || (!has_trim(ops) && !ops_are_complete(ops)))
        return g_strdup("a required operation is missing");
    return NULL;
}

dscomm_status_t dscomm_priv_module_trim(const dscomm_module_t *module,
                                        void *impl, dscomm_backend_ops_t *ops)
{
    if (ops->trim)
        ops->trim(impl, ops);
    if (ops_are_complete(ops))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                       "backend %s does not work: its slot trim leaves a "
                       "required slot empty; report this to its author",
                       module->name);
}

static char *module_check_backend(const dscomm_module_t *module,
                                  const dscomm_backend_t *backend)
{
    if (backend->abi != DSCOMM_BACKEND_ABI)
        return g_strdup_printf("it was built for backend abi %u, this "
                               "libdscomm has %u",
                               backend->abi, DSCOMM_BACKEND_ABI);
    if (!backend->name || strcmp(backend->name, module->name))
        return g_strdup_printf("it calls itself '%s', but its file says '%s'",
                               backend->name ? backend->name : "",
                               module->name);
    return check_ops(backend->ops);
}

/* Finds the module's symbol, which must be the module's own and not of a
 * library that it needs. */
static char *find_backend(const dscomm_module_t *module, void *handle,
                          const dscomm_backend_t **ret_backend)
{
    char *symbol = g_strconcat(SYMBOL_PREFIX, module->name, NULL);
    void *address = dlsym(handle, symbol);
    char own[PATH_MAX], found[PATH_MAX], *why = NULL;
    Dl_info info;

    if (!address)
        why = g_strdup_printf("it has no symbol %s", symbol);
    else if (!dladdr(address, &info) || !realpath(info.dli_fname, found) ||
             !realpath(module->path, own) || strcmp(own, found))
        why =
            g_strdup_printf("its symbol %s belongs to another library", symbol);
    else
        *ret_backend = address;
    g_free(symbol);
    return why;
}

char *dscomm_priv_module_check_library(void *handle)
{
    void *theirs = dlsym(handle, "dscomm_backend_directory");
    Dl_info other, own;

    if (!theirs || !dladdr(theirs, &other) ||
        !dladdr((void *)dscomm_priv_module_check_library, &own) ||
        other.dli_fbase == own.dli_fbase)
        return NULL;
    return g_strdup_printf("it uses the libdscomm in %s, but this program the "
                           "one in %s; link the program with the former",
                           other.dli_fname, own.dli_fname);
}

static char *module_load(dscomm_module_t *module)
{
    const dscomm_backend_t *backend = NULL;
    char *why = dscomm_priv_check_shared_object(module->path);
    const char *error;
    void *handle;

    if (why)
        return why;
    handle = dlopen(module->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        error = dlerror();
        return g_strdup(error ? error : "dlopen failed");
    }
    dscomm_priv_device_anchor(handle);
    why = dscomm_priv_module_check_library(handle);
    if (!why)
        why = find_backend(module, handle, &backend);
    if (!why)
        why = module_check_backend(module, backend);
    if (!why) {
        module->backend = backend;
        take_ops(module);
    }
    return why;
}

static void module_try(dscomm_module_t *module)
{
    if (module->backend || module->why)
        return;
    module->why = module_load(module);
    if (module->why)
        dscomm_log(DSCOMM_LOG_INFO, "core", "backend module %s is refused: %s",
                   module->path, module->why);
}

static dscomm_status_t module_not_found(const char *name)
{
    GString *names = g_string_new(NULL);
    char quoted[64];
    dscomm_status_t status;

    for (guint i = 0; i < modules->len; i++) {
        const dscomm_module_t *module = g_ptr_array_index(modules, i);

        g_string_append_printf(names, "%s%s", i ? ", " : "", module->name);
    }
    status = dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                         "there is no backend '%s' in %s; found: %s%s",
                         dscomm_priv_quote(name, quoted, sizeof quoted),
                         directory, names->str, unreadable->str);
    g_string_free(names, TRUE);
    return status;
}

dscomm_status_t dscomm_priv_module_find(const char *name,
                                        const dscomm_module_t **ret_module)
{
    dscomm_module_t *module;
    dscomm_status_t status = DSCOMM_OK;

    pthread_mutex_lock(&lock);
    folder_scan();
    module = module_find(name);
    if (module)
        module_try(module);
    if (!module)
        status = module_not_found(name);
    else if (!module->backend)
        status = dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                             "backend module %s is refused: %s", module->path,
                             module->why);
    else
        *ret_module = module;
    pthread_mutex_unlock(&lock);
    return status;
}

bool dscomm_priv_has_levels(const char *backend)
{
    return !strcmp(backend, "auto") || !strcmp(backend, two_level.name) ||
           !strcmp(backend, "hierarchical");
}

void dscomm_priv_module_set_levels(const dscomm_backend_ops_t *ops)
{
    pthread_mutex_lock(&lock);
    folder_scan();
    module_find(two_level.name)->ops = *ops;
    pthread_mutex_unlock(&lock);
}

void dscomm_priv_module_opened(const dscomm_module_t *module)
{
    dscomm_module_t *own = (dscomm_module_t *)module;

    pthread_mutex_lock(&lock);
    if (module->path && !own->opened)
        dscomm_priv_device_anchor_rest();
    own->opened = 1;
    pthread_mutex_unlock(&lock);
}

const dscomm_module_t *dscomm_priv_module_get(size_t index)
{
    dscomm_module_t *module = NULL;

    pthread_mutex_lock(&lock);
    folder_scan();
    if (index < modules->len) {
        module = g_ptr_array_index(modules, (guint)index);
        module_try(module);
    }
    pthread_mutex_unlock(&lock);
    return module;
}

const dscomm_module_t *dscomm_priv_module_self(void)
{
    return dscomm_priv_module_get(0);
}

const dscomm_setting_t *dscomm_priv_backend_settings(size_t index)
{
    const dscomm_module_t *module;

    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++) {
        if (!module->backend || !module->backend->settings)
            continue;
        if (index-- == 0)
            return module->backend->settings;
    }
    return NULL;
}

size_t dscomm_priv_setting_tables(
    const dscomm_setting_t *ret_tables[DSCOMM_TABLES_MAX])
{
    size_t count = 1;

    ret_tables[0] = dscomm_priv_setting(0);
    while (count < DSCOMM_TABLES_MAX &&
           (ret_tables[count] = dscomm_priv_backend_settings(count - 1)))
        count++;
    return count;
}

const char *dscomm_backend_directory(void)
{
    pthread_mutex_lock(&lock);
    folder_scan();
    pthread_mutex_unlock(&lock);
    return directory;
}

const char *dscomm_priv_module_unreadable(void)
{
    pthread_mutex_lock(&lock);
    folder_scan();
    pthread_mutex_unlock(&lock);
    return unreadable->str;
}

void dscomm_priv_module_forked(void)
{
    pthread_mutex_init(&lock, NULL);
}
