/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of device functions: from cuda.so, which is loaded for the first
 * buffer in device memory, or from a test. */
#define _GNU_SOURCE
#include "config.h"

#include "compression/device/device.h"

#include <dlfcn.h>
#include <dscomm/codec.h>
#include <dscomm/dscomm.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#ifndef DSCOMM_MODULE_DIR
#define DSCOMM_MODULE_DIR "/usr/local/lib/" LIBDSCOMM_COMPRESSION_MODULE_FOLDER
#endif
#define FILE_NAME "cuda.so"
#define DEVICES_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int tried;
static const dscomm_device_ops_t *table;
static const dscomm_device_ops_t *foreign; /* a test's */
static char why[512] = "it was not looked for";
static dscomm_device_queue_t *queues[DEVICES_MAX];

/* Writes the path of the module: in this library's installed folder, found from
 * the library's own location, so that an installation may be moved; in a build,
 * in the library's folder. Otherwise in the configured folder. */
static void path_of_module(char *path, size_t size)
{
    const char *folder, *below;
    char file[PATH_MAX];
    Dl_info info;

    if (dladdr(path_of_module, &info) && info.dli_fname) {
        g_strlcpy(file, info.dli_fname, sizeof file);
        folder = dirname(file);
        below = g_str_has_suffix(folder, ".libs")
                    ? "."
                    : LIBDSCOMM_COMPRESSION_MODULE_FOLDER;
        g_snprintf(path, size, "%s/%s/" FILE_NAME, folder, below);
        if (!access(path, F_OK))
            return;
    }
    g_strlcpy(path, DSCOMM_MODULE_DIR "/" FILE_NAME, size);
}

/* Loads the module at path and returns its table; or NULL and the reason. The
 * module stays loaded, because its kernels are registered. */
static const dscomm_device_ops_t *cuda_module_load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const dscomm_device_ops_t *ops;
    dscomm_device_module_t entry;
    const char *reason;

    if (!handle) {
        g_snprintf(why, sizeof why, "%s", dlerror());
        return NULL;
    }
    *(void **)&entry = dlsym(handle, DSCOMM_DEVICE_SYMBOL);
    ops = entry ? entry(DSCOMM_DEVICE_ABI) : NULL;
    if (!ops || ops->abi != DSCOMM_DEVICE_ABI) {
        g_snprintf(why, sizeof why,
                   "%s is of another version; install it again", path);
        return NULL;
    }
    reason = ops->why();
    g_snprintf(why, sizeof why, "%s", reason ? reason : "");
    return reason ? NULL : ops;
}

const dscomm_device_ops_t *dscomm_priv_device_table(void)
{
    char path[PATH_MAX + 64];

    pthread_mutex_lock(&lock);
    if (!tried && !foreign) {
        tried = 1;
        path_of_module(path, sizeof path);
        table = cuda_module_load(path);
        dscomm_log(DSCOMM_LOG_INFO, "compression",
                   "buffers of a device are compressed %s%s",
                   table ? "there" : "in host memory: ", table ? "" : why);
    }
    pthread_mutex_unlock(&lock);
    return foreign ? foreign : table;
}

const char *dscomm_codec_device_problem(void)
{
    return dscomm_priv_device_table() ? NULL : why;
}

static const dscomm_device_ops_t *device_current(void)
{
    return foreign ? foreign : table;
}

void dscomm_priv_device_replace(const dscomm_device_ops_t *ops)
{
    for (int i = 0; i < DEVICES_MAX; i++) {
        if (queues[i])
            device_current()->close(queues[i]);
        queues[i] = NULL;
    }
    foreign = ops;
}

int dscomm_priv_device_holds(const void *buffer, int *ret_device)
{
    const dscomm_device_ops_t *ops;

    *ret_device = -1;
    if (foreign) {
        *ret_device = foreign->device(buffer);
        return *ret_device >= 0;
    }
    if (G_LIKELY(!dscomm_device_owns(buffer)))
        return 0;
    ops = dscomm_priv_device_table();
    if (ops)
        *ret_device = ops->device(buffer);
    return 1;
}

int dscomm_priv_device_current(void)
{
    const dscomm_device_ops_t *ops = foreign;

    if (!ops && dscomm_device_context())
        ops = dscomm_priv_device_table();
    return ops ? ops->current() : -1;
}

dscomm_status_t dscomm_priv_device_result(int code, const char *what)
{
    if (!code)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_IO, "%s: %s says %s", what,
                       device_current()->name, device_current()->text(code));
}

dscomm_status_t dscomm_priv_device_queue(int device,
                                         dscomm_device_queue_t **ret_queue)
{
    int code = 0;

    if (device < 0 || device >= DEVICES_MAX)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "device %d: there is room for %d devices", device,
                           DEVICES_MAX);
    pthread_mutex_lock(&lock);
    if (!queues[device])
        code = device_current()->open(device, &queues[device]);
    *ret_queue = queues[device];
    pthread_mutex_unlock(&lock);
    return dscomm_priv_device_result(code, "beginning with a device");
}
