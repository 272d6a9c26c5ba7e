/* SPDX-License-Identifier: BSD-3-Clause */
/* Which network to use, from Linux's table of IPv4 routes. Interfaces have
 * other names on other hosts; their network is the same. */
#include "config.h"

#include "tools/advice-machine.h"

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

/* NCCL's syntax: prefixes with commas between, "^" excludes, "=" is exact. */
static gboolean is_wanted(const char *interface, const char *wanted)
{
    gboolean exclude = *wanted == '^', exact, found = FALSE;
    char **words;

    wanted += exclude;
    exact = *wanted == '=';
    words = g_strsplit(wanted + exact, ",", -1);
    for (int i = 0; words[i]; i++)
        found = found ||
                (exact ? strcmp(interface, words[i]) == 0
                       : *words[i] && g_str_has_prefix(interface, words[i]));
    g_strfreev(words);
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

/* Of two, the better: the one that is wanted, then the default's. */
static int rank(const route_t *route, const char *wanted,
                const char *by_default)
{
    if (wanted)
        return is_wanted(route->interface, wanted) ? 3 : 0;
    if (is_inner(route->interface))
        return 0;
    return strcmp(route->interface, by_default) == 0 ? 2 : 1;
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
    char *text = tool_advice_machine_file(root, "proc/net/route");
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
