/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs that a process may use, by files as NVIDIA's driver has them. */
#include "config.h"

#include "env/nvidia.h"
#include "tests/tap.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdbool.h>

#define GPUS "proc/driver/nvidia/gpus/"
#define INFORMATION(minor)                                                     \
    "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 255\n"                     \
    "Bus Location: \t 0000:07:00.0\nDevice Minor: \t " minor                   \
    "\nGPU Excluded:\t No\n"

/* A machine of three GPUs, of which a container has two. */
static const struct {
    const char *path, *text;
} files[] = {
    {GPUS "0000:07:00.0/information", INFORMATION("2")},
    {GPUS "0000:0f:00.0/information", INFORMATION("0")},
    {GPUS "0000:87:00.0/information", INFORMATION("1")},
    {"dev/nvidia0", ""},
    {"dev/nvidia1", ""},
};

static char *root;

static char *path_of(const char *name)
{
    return g_build_filename(root, name, NULL);
}

static void file_write(const char *name, const char *text)
{
    char *path = path_of(name), *folder = g_path_get_dirname(path);

    if (g_mkdir_with_parents(folder, 0700) < 0 ||
        !g_file_set_contents(path, text, -1, NULL))
        bail("%s: %s", path, strerror(errno));
    g_free(folder);
    g_free(path);
}

static void entry_remove(const char *name)
{
    char *path = path_of(name);

    if (g_remove(path) < 0)
        bail("%s: %s", path, strerror(errno));
    g_free(path);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check(const char *want, const char *name)
{
    GPtrArray *gpus = dscomm_priv_nvidia_gpus(root);
    char *got = NULL;

    if (gpus) {
        g_ptr_array_sort(gpus, compare);
        g_ptr_array_add(gpus, NULL);
        got = g_strjoinv(",", (char **)gpus->pdata);
        g_ptr_array_unref(gpus);
    }
    is_str(got ? got : "unknown", want, "%s", name);
    g_free(got);
}

static void tree_remove(const char *path)
{
    GDir *folder = g_dir_open(path, 0, NULL);
    const char *name;

    while (folder && (name = g_dir_read_name(folder))) {
        char *child = g_build_filename(path, name, NULL);

        tree_remove(child);
        g_free(child);
    }
    if (folder)
        g_dir_close(folder);
    g_remove(path);
}

int main(void)
{
    root = g_dir_make_tmp("dscomm-nvidia-XXXXXX", NULL);
    if (!root)
        bail("no folder: %s", strerror(errno));
    check("unknown", "no driver");
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
        file_write(files[i].path, files[i].text);
    check("unknown", "a driver that has made no device files yet");
    file_write("dev/nvidiactl", "");
    check("0000:0f:00.0,0000:87:00.0", "a GPU without its device file");
    file_write(GPUS "0000:07:00.0/information", "Model: \t\t NVIDIA A100\n");
    check("0000:07:00.0,0000:0f:00.0,0000:87:00.0", "a GPU without a number");
    entry_remove(GPUS "0000:07:00.0/information");
    entry_remove(GPUS "0000:07:00.0");
    check("0000:0f:00.0,0000:87:00.0", "a GPU that the driver does not list");
    entry_remove("dev/nvidia0");
    entry_remove("dev/nvidia1");
    check("", "no GPU may be used");
    tree_remove(root);
    g_free(root);
    return tap_done();
}
