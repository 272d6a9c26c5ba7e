/* SPDX-License-Identifier: BSD-3-Clause */
/* Which network to use, from Linux's table of IPv4 routes. Interfaces have
 * other names on other hosts; their network is the same. */
#include "config.h"

#include "tools/env/advice/machine.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char interface[32];
    unsigned destination, gateway, mask;
} route_t;

/* Interfaces that lead to no other host. */
static const char *const inner[] = {
    "lo",  "docker", "virbr",   "veth", "br-",
    "cni", "podman", "flannel", "cali", "lxc",
};

static gboolean is_inner(const char *interface)
{
    for (size_t i = 0; i < G_N_ELEMENTS(inner); i++) {
        if (g_str_has_prefix(interface, inner[i]))
            return TRUE;
    }
    return FALSE;
}

/* Whether the address of route is in the network of item, "10.0.0.0/8". */
static gboolean is_in(const route_t *route, const char *item)
{
    char **words = g_strsplit(item, "/", 2);
    struct in_addr network;
    gint64 bits = words[1] ? g_ascii_strtoll(words[1], NULL, 10) : -1;
    guint32 mask;

    if (bits < 0 || bits > 32 || inet_pton(AF_INET, words[0], &network) != 1) {
        g_strfreev(words);
        return FALSE;
    }
    g_strfreev(words);
    mask = bits ? htonl(0xffffffffu << (32 - bits)) : 0;
    return ((route->destination ^ network.s_addr) & mask) == 0;
}

static gboolean fits(const route_t *route, const char *item, gboolean exact)
{
    if (strchr(item, '/'))
        return is_in(route, item);
    if (exact)
        return strcmp(route->interface, item) == 0;
    return *item && g_str_has_prefix(route->interface, item);
}

/* As of DSCOMM_SOCKET_IFNAME: beginnings of names and networks with commas
 * between, "^" excludes, "=" wants whole names. */
static gboolean is_wanted(const route_t *route, const char *wanted)
{
    gboolean exclude = *wanted == '^', exact, found = FALSE;
    char **items;

    wanted += exclude;
    exact = *wanted == '=';
    items = g_strsplit(wanted + exact, ",", -1);
    for (int i = 0; items[i]; i++)
        found = found || fits(route, items[i], exact);
    g_strfreev(items);
    return found != exclude;
}

static gboolean parse(const char *line, route_t *route)
{
    return sscanf(line, "%31s %8x %8x %*x %*d %*d %*d %8x", route->interface,
                  &route->destination, &route->gateway, &route->mask) == 4;
}

/* The network of a host's own interface; the default and a single host are
 * none, nor is that of addresses given by chance, 169.254. */
static gboolean is_network(const route_t *route)
{
    return route->destination && route->mask && !route->gateway &&
           route->mask != 0xffffffffu &&
           (ntohl(route->destination) >> 16) != 0xa9fe;
}

static char *subnet(const route_t *route)
{
    struct in_addr address = {.s_addr = route->destination};
    char text[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &address, text, sizeof text);
    return g_strdup_printf("%s/%d", text, __builtin_popcount(route->mask));
}

/* Of two the better has more; 0 is not to be used. */
static int rank(const route_t *route, const char *wanted,
                const char *by_default)
{
    if (wanted ? !is_wanted(route, wanted) : is_inner(route->interface))
        return 0;
    return 1 + !is_inner(route->interface) +
           (strcmp(route->interface, by_default) == 0);
}

static void choose(char **lines, const char *wanted, const char *by_default,
                   tool_advice_machine_t *machine)
{
    route_t route;
    int best = 0, networks = 0;

    for (int i = 0; lines[i]; i++) {
        int here;

        if (!parse(lines[i], &route) || !is_network(&route))
            continue;
        networks++;
        here = rank(&route, wanted, by_default);
        if (here <= best)
            continue;
        best = here;
        g_free(machine->interface);
        g_free(machine->subnet);
        machine->interface = g_strdup(route.interface);
        machine->subnet = subnet(&route);
    }
    machine->choice = networks > 1;
}

void tool_advice_machine_network(const char *root, const char *wanted,
                                 tool_advice_machine_t *machine)
{
    char *text = tool_root_file(root, "proc/net/route");
    char **lines = g_strsplit(text ? text : "", "\n", -1);
    char by_default[32] = "";
    route_t route;

    for (int i = 0; lines[i] && !*by_default; i++) {
        if (parse(lines[i], &route) && !route.destination && !route.mask)
            g_strlcpy(by_default, route.interface, sizeof by_default);
    }
    choose(lines, wanted, by_default, machine);
    g_strfreev(lines);
    g_free(text);
}
