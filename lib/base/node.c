/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/base/node.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

void dscomm_priv_node_name(char node[DSCOMM_NODE_MAX])
{
    if (gethostname(node, DSCOMM_NODE_MAX) || !*node)
        g_strlcpy(node, "unknown", DSCOMM_NODE_MAX);
    node[DSCOMM_NODE_MAX - 1] = '\0';
}

/* Reads the beginning of a small file, without blanks at its ends; "" if it
 * cannot be read. Returns 0 or the error. */
static int line_read(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    const int error = got < 0 ? errno : 0;

    text[MAX(got, 0)] = '\0';
    g_strstrip(text);
    if (fd >= 0)
        close(fd);
    return error;
}

/* True if the error holds for all processes of the machine and stays, rather
 * than for this process now. */
static bool is_lasting(int error)
{
    return !error || error == ENOENT || error == ENOTDIR || error == EACCES ||
           error == EPERM;
}

int dscomm_priv_node_machine(char *text, size_t size)
{
    const int error = line_read(BOOT_ID, text, size);
    char node[DSCOMM_NODE_MAX];

    if (*text)
        return 0;
    dscomm_priv_node_name(node);
    g_strlcpy(text, node, size);
    return is_lasting(error) ? 0 : error;
}
