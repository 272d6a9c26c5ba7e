/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/base/node.h"

#include <fcntl.h>
#include <glib.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

void dscomm_priv_node_name(char node[DSCOMM_NODE_MAX])
{
    if (gethostname(node, DSCOMM_NODE_MAX) || !*node)
        g_strlcpy(node, "unknown", DSCOMM_NODE_MAX);
    node[DSCOMM_NODE_MAX - 1] = '\0';
}

/* What a small file begins with, without blanks at its ends; "" if it cannot be
 * read. */
static void read_line(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);

    text[MAX(got, 0)] = '\0';
    g_strstrip(text);
    if (fd >= 0)
        close(fd);
}

void dscomm_priv_node_machine(char *text, size_t size)
{
    char node[DSCOMM_NODE_MAX];

    read_line(BOOT_ID, text, size);
    if (*text)
        return;
    dscomm_priv_node_name(node);
    g_strlcpy(text, node, size);
}
