/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing interfaces by name and network, NCCL's rules, and the interfaces of
 * this machine. */
#include "config.h"

#include "lib/store/tcp/listen.h"
#include "tests/tap.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <dscomm/log.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage storage = {.ss_family = AF_INET};
    void *bytes = &((struct sockaddr_in *)&storage)->sin_addr;

    if (strchr(text, ':')) {
        storage.ss_family = AF_INET6;
        bytes = &((struct sockaddr_in6 *)&storage)->sin6_addr;
    }
    if (inet_pton(storage.ss_family, text, bytes) != 1)
        bail("%s is no address", text);
    return storage;
}

/* As NCCL's documentation says: prefixes; ^ excludes; = requires whole
 * names. */
static void check_matches(void)
{
    static const struct {
        const char *choice, *name, *address;
        int want;
    } rows[] = {
        {"eth", "eth0", "10.0.0.1", 1},
        {"eth", "ib0", "10.0.0.1", 0},
        {"eth1", "eth10", "10.0.0.1", 1},
        {"=eth1", "eth10", "10.0.0.1", 0},
        {"=eth1", "eth1", "10.0.0.1", 1},
        {"^docker,lo", "eth0", "10.0.0.1", 1},
        {"^docker,lo", "lo", "127.0.0.1", 0},
        {"^docker,lo", "docker0", "172.17.0.1", 0},
        {"^=lo", "lo1", "10.0.0.1", 1},
        {"^=lo", "lo", "127.0.0.1", 0},
        {"ib,eth0", "eth0", "10.0.0.1", 1},
        {" ib , eth0 ", "eth0", "10.0.0.1", 1},
        {"10.0.0.0/8", "eth0", "10.255.3.4", 1},
        {"10.0.0.0/8", "eth0", "11.0.0.1", 0},
        {"10.0.0.0/9", "eth0", "10.127.255.255", 1},
        {"10.0.0.0/9", "eth0", "10.128.0.0", 0},
        {"10.1.2.3", "eth0", "10.1.2.3", 1},
        {"10.1.2.3", "eth0", "10.1.2.4", 0},
        {"10.1.2.3/32", "eth0", "10.1.2.3", 1},
        {"0.0.0.0/0", "eth0", "192.168.1.1", 1},
        {"0.0.0.0/0", "eth0", "fd00::1", 0},
        {"fd00::/8", "eth0", "fd12::1", 1},
        {"fd00::/8", "eth0", "fe12::1", 0},
        {"fd00:0:0:8000::/49", "eth0", "fd00:0:0:8001::1", 1},
        {"fd00:0:0:8000::/49", "eth0", "fd00:0:0:1::1", 0},
        {"^192.168.0.0/16", "eth0", "192.168.7.7", 0},
        {"^192.168.0.0/16", "eth0", "10.0.0.1", 1},
        {"eth9,192.168.0.0/16", "wlan0", "192.168.7.7", 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sockaddr_storage address = address_of(rows[i].address);

        is_int(dscomm_priv_interface_matches(rows[i].choice, rows[i].name,
                                             (struct sockaddr *)&address),
               rows[i].want, "'%s' and %s %s", rows[i].choice, rows[i].name,
               rows[i].address);
    }
}

static void check_refused(void)
{
    static const char *const texts[] = {
        "^",           "=",          "eth0,,ib0", ",",
        "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0/8",
        "10.0.0.0/-1", "^=",         "eth0/8",    "10.0.0.0/8 x"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        is_int(dscomm_priv_interface_check("DSCOMM_SOCKET_IFNAME", texts[i]),
               DSCOMM_ERR_ENVIRONMENT, "'%s' is refused", texts[i]);
        ok(strstr(dscomm_last_error(), "DSCOMM_SOCKET_IFNAME") != NULL, "  %s",
           dscomm_last_error());
    }
    is_int(dscomm_priv_interface_check("X", "^docker,lo,10.0.0.0/8"), 0,
           "a good one is not");
}

static int nameless;

typedef int name_t(const struct sockaddr *address, socklen_t length, char *host,
                   socklen_t host_size, char *service, socklen_t service_size,
                   int flags);

/* Replaces libc's function: it may fail, as without memory. */
int getnameinfo(const struct sockaddr *restrict address, socklen_t length,
                char *restrict host, socklen_t host_size,
                char *restrict service, socklen_t service_size, int flags)
{
    name_t *real = (name_t *)(uintptr_t)dlsym(RTLD_NEXT, "getnameinfo");

    if (nameless)
        return EAI_MEMORY;
    return real(address, length, host, host_size, service, service_size, flags);
}

/* The sentence lists the existing interfaces, with or without an address. */
static void check_none(void)
{
    GArray *list;

    for (nameless = 0; nameless < 2; nameless++) {
        is_int(dscomm_priv_interfaces("X", "=nosuch", &list),
               DSCOMM_ERR_ENVIRONMENT, "no interface is called so");
        ok(strstr(dscomm_last_error(), "there are: ") != NULL, "  %s",
           dscomm_last_error());
    }
    nameless = 0;
}

/* Every machine has a loopback interface. */
static void check_machine(void)
{
    const char *variable;
    GArray *list;

    unsetenv("NCCL_SOCKET_IFNAME");
    unsetenv("DSCOMM_SOCKET_IFNAME");
    ok(!dscomm_priv_interface_choice(&variable), "nothing is chosen");
    is_int(dscomm_priv_interface_validate(), 0, "which is fine");
    if (is_int(dscomm_priv_interfaces("X", "127.0.0.0/8", &list), 0,
               "there is a loopback")) {
        const dscomm_interface_t *row =
            &g_array_index(list, dscomm_interface_t, 0);

        ok(list->len >= 1 && !strncmp(row->name, "lo", 2), "its name is %s",
           row->name);
        g_array_unref(list);
    }
    setenv("NCCL_SOCKET_IFNAME", "=nosuch0", 1);
    dscomm_log_set_levels("error");
    is_int(dscomm_priv_interface_validate(), 0, "NCCL's is not ours to fail");
    setenv("DSCOMM_SOCKET_IFNAME", "=nosuch0", 1);
    is_int(dscomm_priv_interface_validate(), DSCOMM_ERR_ENVIRONMENT,
           "our own is");
    ok(strstr(dscomm_last_error(), "127.0.0.1") != NULL,
       "and tells what there is: %s", dscomm_last_error());
    is_str(dscomm_priv_interface_choice(&variable), "=nosuch0", "it is first");
    is_str(variable, "DSCOMM_SOCKET_IFNAME", "by its name");
    setenv("DSCOMM_SOCKET_IFNAME", "lo", 1);
    is_int(dscomm_priv_interface_validate(), 0, "lo is there");
}

int main(void)
{
    check_matches();
    check_refused();
    check_machine();
    check_none();
    return tap_done();
}
