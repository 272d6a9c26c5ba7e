/* SPDX-License-Identifier: BSD-3-Clause */
/* Which hosts are loopback by a file as /etc/hosts. */
#include "config.h"

#include "tests/tap.h"
#include "tools/run/loopback.h"

#include <glib/gstdio.h>
#include <unistd.h>

static const char hosts[] = "127.0.0.1\tlocalhost\n"
                            "# 127.0.0.2 commented\n"
                            "127.0.1.1  own.test own # as Debian has it\n"
                            "10.0.0.7 far.test\t both\n"
                            "127.0.0.1 both\n"
                            "::1 six\r\n"
                            "fe80::1%lo odd\n"
                            "\n"
                            "lonely\n"
                            "10.0.0.8 last";

static const struct {
    const char *host;
    int want;
} rows[] = {
    {"127.0.0.1", 1}, {"127.9.8.7", 1},   {"::1", 1},  {"10.0.0.1", 0},
    {"fd00::1", 0},   {"localhost", 1},   {"own", 1},  {"OWN.Test", 1},
    {"far.test", 0},  {"both", 0},        {"six", 1},  {"odd", 0},
    {"lonely", 0},    {"commented", 0},   {"last", 0}, {"elsewhere", 0},
    {"own.tes", 0},   {"127.0.1.1 x", 0}, {"", 0},
};

int main(void)
{
    char *name = NULL;
    int fd = g_file_open_tmp("hosts-XXXXXX", &name, NULL);

    if (fd < 0 || !g_file_set_contents(name, hosts, -1, NULL))
        bail("cannot write a file");
    close(fd);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        is_int(tool_host_is_loopback(name, rows[i].host), rows[i].want, "'%s'",
               rows[i].host);
    g_unlink(name);
    is_int(tool_host_is_loopback(name, "own"), 0, "no file");
    is_int(tool_host_is_loopback(name, "127.0.0.1"), 1, "no file, an address");
    g_free(name);
    return tap_done();
}
