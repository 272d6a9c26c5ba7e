/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs of NVIDIA's driver, see nvidia.h. */
#include "config.h"

#include "env/nvidia.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "/proc/driver/nvidia/gpus"
#define MINOR "\nDevice Minor:"

/* The number of the device file; -1: the driver does not tell. */
static int minor_read(const char *root, const char *address)
{
    char *path = g_strdup_printf("%s" FOLDER "/%s/information", root, address);
    char *text = NULL;
    const char *at = NULL;
    int minor = -1;

    if (g_file_get_contents(path, &text, NULL, NULL))
        at = strstr(text, MINOR);
    if (at) {
        at += strlen(MINOR);
        at += strspn(at, " \t");
        if (g_ascii_isdigit(*at))
            minor = (int)g_ascii_strtoll(at, NULL, 10);
    }
    g_free(text);
    g_free(path);
    return minor;
}

/* access() asks the cgroup's list of devices, too, and, unlike open(), wakes no
 * GPU. */
static bool file_may_be_used(const char *root, const char *name)
{
    char *path = g_strconcat(root, "/dev/", name, NULL);
    const bool may = access(path, R_OK | W_OK) == 0;

    g_free(path);
    return may;
}

static bool gpu_may_be_used(const char *root, const char *address)
{
    const int minor = minor_read(root, address);
    char name[32];

    g_snprintf(name, sizeof name, "nvidia%d", minor);
    return minor < 0 || file_may_be_used(root, name);
}

GPtrArray *dscomm_priv_nvidia_gpus(const char *root)
{
    char *path = g_strconcat(root, FOLDER, NULL);
    GDir *folder =
        file_may_be_used(root, "nvidiactl") ? g_dir_open(path, 0, NULL) : NULL;
    GPtrArray *gpus = folder ? g_ptr_array_new_with_free_func(g_free) : NULL;
    const char *name;

    while (folder && (name = g_dir_read_name(folder)))
        if (gpu_may_be_used(root, name))
            g_ptr_array_add(gpus, g_strdup(name));
    if (folder)
        g_dir_close(folder);
    g_free(path);
    return gpus;
}
