/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend mpi: finds the engine for the MPI library, loads it when it is first
 * needed, and forwards all calls to it. So a program that does not use MPI
 * never loads one. */
#define _GNU_SOURCE
#include "config.h"

#include "backends/mpi/engine.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "mpi" /* of engines, beside this module */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* the engine's slots; size 0: not loaded yet */
static dscomm_backend_ops_t engine;

/* The folder of engines, to be freed. */
static char *find_folder(void)
{
    const char *given = dscomm_setting_text(&mpi_settings[MPI_SETTING_PATH]);
    char *parent, *folder = NULL;
    Dl_info info;

    if (given)
        return g_strdup(given);
    if (dladdr((void *)mpi_settings, &info) && info.dli_fname) {
        parent = g_path_get_dirname(info.dli_fname);
        folder = g_build_filename(parent, FOLDER, NULL);
        g_free(parent);
    }
    return folder ? folder : g_strdup(FOLDER);
}

/* The file of an engine, to be freed; NULL if there is none. */
static char *find_file(const char *name)
{
    char *folder = find_folder();
    char *file = g_strdup_printf("%s/%s.so", folder, name);

    g_free(folder);
    if (!g_file_test(file, G_FILE_TEST_EXISTS))
        g_clear_pointer(&file, g_free);
    return file;
}

static int family_exists(const char *name)
{
    char *file = find_file(name);

    g_free(file);
    return file != NULL;
}

static const char *first_family(void)
{
    for (int i = 0; i < MPI_FAMILIES; i++)
        if (family_exists(mpi_families[i]))
            return mpi_families[i];
    return NULL;
}

/* Lists the installed engines. Only loading an engine shows whether its MPI
 * library is installed. */
static const char *mpi_describe(void)
{
    GString *text = g_string_new(NULL);
    const char *found;

    for (int i = 0; i < MPI_FAMILIES; i++)
        if (family_exists(mpi_families[i]))
            g_string_append_printf(
                text, "%s%s",
                text->len ? ", " : "MPI libraries: ", mpi_families[i]);
    found =
        g_intern_string(text->len ? text->str : "no module for an MPI library");
    g_string_free(text, TRUE);
    return found;
}

/* Chooses the family. A process must not load two MPI libraries, because each
 * would use symbols of the other. */
static dscomm_status_t family_choose(const char **ret_name)
{
    const char *asked = dscomm_setting_text(&mpi_settings[MPI_SETTING_LIBRARY]);
    const char *loaded = mpi_family_loaded();
    const char *name = asked ? asked : loaded;

    if (asked && loaded && strcmp(asked, loaded))
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "mpi: DSCOMM_MPI_LIBRARY is %s, but this program "
                           "has loaded another MPI library, %s; unset it",
                           asked, loaded);
    if (!name)
        name = mpi_family_launched();
    if (!asked && !loaded && (!name || !family_exists(name)))
        name = first_family();
    *ret_name = name ? name : mpi_families[0];
    return DSCOMM_OK;
}

static dscomm_status_t engine_take(const char *name, const char *file,
                                   void *handle)
{
    const dscomm_mpi_engine_t *found = dlsym(handle, "dscomm_mpi_engine");

    if (!found || found->version != MPI_ENGINE_VERSION ||
        found->abi != DSCOMM_BACKEND_ABI || strcmp(found->name, name) ||
        found->ops->size != sizeof engine ||
        found->ops->request_size > MPI_REQUEST_BYTES)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "mpi: %s is not of this version of dscomm", file);
    engine = *found->ops;
    dscomm_log(DSCOMM_LOG_INFO, "mpi", "MPI library %s, by %s", name, file);
    return DSCOMM_OK;
}

/* Fails if this process may open no more files, which dlopen() would report as
 * any other error. */
static dscomm_status_t check_room(const char *file)
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC), error = errno;

    if (fd >= 0)
        close(fd);
    else if (error == EMFILE)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "mpi: %s: %s; raise the limit of open files "
                           "(ulimit -n)",
                           file, strerror(error));
    return DSCOMM_OK;
}

static dscomm_status_t family_load(const char *name)
{
    char *file = find_file(name), *folder = find_folder();
    dscomm_status_t status;
    void *handle;

    if (!file)
        status = dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                             "mpi: there is no module for %s in %s; install "
                             "it, or name another with DSCOMM_MPI_LIBRARY",
                             name, folder);
    else if ((status = check_room(file)) < 0)
        ;
    else if (!(handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)))
        status = dscomm_fail(DSCOMM_ERR_NO_BACKEND, "mpi: %s", dlerror());
    else
        status = engine_take(name, file, handle);
    g_free(folder);
    g_free(file);
    return status;
}

/* Loads any engine, if no family was requested by name: an engine may be
 * installed without its library. */
static dscomm_status_t load_any(const char *chosen)
{
    const int is_free =
        !dscomm_setting_text(&mpi_settings[MPI_SETTING_LIBRARY]) &&
        !mpi_family_loaded();
    dscomm_status_t status = family_load(chosen);
    char *why = g_strdup(dscomm_last_error());

    for (int i = 0;
         i < MPI_FAMILIES && status == DSCOMM_ERR_NO_BACKEND && is_free; i++) {
        if (!strcmp(mpi_families[i], chosen) || !family_exists(mpi_families[i]))
            continue;
        dscomm_log(DSCOMM_LOG_WARN, "mpi", "%s; trying %s", why,
                   mpi_families[i]);
        status = family_load(mpi_families[i]);
    }
    if (status < 0)
        dscomm_fail(status, "%s", why);
    g_free(why);
    return status;
}

static dscomm_status_t load_once(void)
{
    const char *name = NULL;
    dscomm_status_t status = DSCOMM_OK;

    pthread_mutex_lock(&lock);
    if (!engine.size) {
        status = family_choose(&name);
        if (status == DSCOMM_OK)
            status = load_any(name);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static dscomm_status_t mpi_open(const dscomm_backend_args_t *args,
                                void **ret_impl)
{
    dscomm_status_t status = load_once();
    mpi_map_t *map;

    if (status < 0)
        return mpi_meet(args, status, NULL, &map);
    return engine.open(args, ret_impl);
}

/* Replaces ops by the engine's slots. */
static void mpi_trim(void *impl, dscomm_backend_ops_t *ops)
{
    (void)impl;
    *ops = engine;
}

/* Only MPI's launcher knows whether MPI connects these hosts. */
static const char *mpi_usable(const char *const *hosts, int ranks)
{
    const char *asked = dscomm_setting_text(&mpi_settings[MPI_SETTING_LIBRARY]);
    const char *name = asked ? asked : first_family();

    (void)hosts;
    (void)ranks;
    if (!first_family())
        return "there is no module for an MPI library in the folder mpi beside "
               "mpi.so, or in DSCOMM_MPI_PATH";
    if (mpi_family_launched() || mpi_family_loaded())
        return NULL;
    return strcmp(name, "mpich") == 0 ? "no MPI has started the job; use its "
                                        "mpirun, or " MPI_SRUN_MPICH
                                      : "no MPI has started the job; use its "
                                        "mpirun, or " MPI_SRUN_OPENMPI;
}

/* Without MPI's blocking calls, both levels would be made of messages, and then
 * one level is faster (doc/performance.md). */
static const char *mpi_beneath(int oversubscribed)
{
    int64_t blocking = MPI_AUTO;
    const char *name = NULL;

    dscomm_setting_number(&mpi_settings[MPI_SETTING_BLOCKING], &blocking);
    if (!oversubscribed || blocking == MPI_YES)
        return NULL;
    if (blocking == MPI_AUTO &&
        (family_choose(&name) < 0 || mpi_family_blocks(name, oversubscribed)))
        return NULL;
    return "ranks outnumber processors, and there blocking calls of this MPI, "
           "of which levels between nodes would be made, are not used";
}

static dscomm_status_t mpi_bootstrap(dscomm_bootstrap_t *bootstrap)
{
    dscomm_status_t status = DSCOMM_OK;

    if (!bootstrap->data)
        return mpi_usable(NULL, 0) ? DSCOMM_ERR_UNSUPPORTED : DSCOMM_OK;
    status = load_once();
    return status < 0 ? status : engine.bootstrap(bootstrap);
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof(dscomm_backend_ops_t),
    .request_size = MPI_REQUEST_BYTES,
    .open = mpi_open,
    .trim = mpi_trim,
    .bootstrap = mpi_bootstrap,
    .describe = mpi_describe,
};

DSCOMM_BACKEND_EXPORT extern const dscomm_backend_t dscomm_backend_mpi;
const dscomm_backend_t dscomm_backend_mpi = {
    .abi = DSCOMM_BACKEND_ABI,
    .priority = 20,
    .name = "mpi",
    .ops = &ops,
    .settings = mpi_settings,
    .usable = mpi_usable,
    .beneath = mpi_beneath,
};
