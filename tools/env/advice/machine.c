/* SPDX-License-Identifier: BSD-3-Clause */
/* The properties of a machine that matter to an mpirun, read below the root of
 * a question: RDMA devices, from Linux's files; and the IPv4 network, from its
 * routing table, because names of interfaces differ between hosts, and their
 * network is the same. */
#include "config.h"

#include "tools/env/advice/rules.h"

#include <arpa/inet.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

char *tool_root_file(const char *root, const char *path)
{
    char *name = g_strconcat(root, "/", path, NULL);
    char *text = NULL;

    g_file_get_contents(name, &text, NULL, NULL);
    g_free(name);
    return text;
}

/* Returns whether a file in a device's folder contains mark; file is a glob. */
static bool device_has(const char *device, const char *file, const char *mark)
{
    char *pattern = g_build_filename(device, file, NULL), *text;
    bool has = false;
    glob_t files = {0};

    glob(pattern, 0, NULL, &files);
    for (size_t i = 0; i < files.gl_pathc && !has; i++) {
        if (g_file_get_contents(files.gl_pathv[i], &text, NULL, NULL)) {
            has = strstr(text, mark) != NULL;
            g_free(text);
        }
    }
    globfree(&files);
    g_free(pattern);
    return has;
}

/* HPE's Slingshot has a device class of its own, and no ports. */
static bool is_slingshot(const char *device)
{
    return strstr(device, "/sys/class/cxi/") != NULL;
}

/* Returns the group [device DRIVER] of the rules, or NULL if UCX supports the
 * device. The driver's name is the kernel's, or that of the device, as always
 * for Slingshot. */
static const char *device_group(const advice_state_t *state, const char *device)
{
    char *link = g_build_filename(device, "device/driver", NULL);
    char *target = is_slingshot(device) ? NULL : g_file_read_link(link, NULL);
    char *name = g_path_get_basename(target ? target : device);
    const char *found = NULL;

    for (guint i = 0; i < state->rules->len && !found; i++) {
        const advice_rule_t *rule = g_ptr_array_index(state->rules, i);

        if (strcmp(rule->kind, "device") == 0 &&
            g_str_has_prefix(name, rule->name))
            found = rule->group;
    }
    g_free(name);
    g_free(target);
    g_free(link);
    return found;
}

/* Returns why UCX does not support a device, or NULL. */
static const char *device_problem(advice_state_t *state, const char *device)
{
    const char *group = device_group(state, device);
    const char *mtl;

    if (!is_slingshot(device) && !device_has(device, "ports/*/state", "ACTIVE"))
        return "has no active port";
    tool_advice_set_fact(state, "device", true);
    if (device_has(device, "node_type", "RNIC"))
        return "is iWARP, which UCX does not drive";
    if (!group)
        return NULL;
    if (!*tool_advice_fact(state, "fabric")) {
        mtl = tool_advice_rules_get(state, group, "mtl");
        tool_advice_set(state, "fabric", "%s", strrchr(device, '/') + 1);
        tool_advice_set(state, "mtl", "%s", mtl ? mtl : "");
    }
    return tool_advice_rules_get(state, group, "why");
}

/* Reads the devices of a class, until one is found that UCX supports. */
static void devices_read(advice_state_t *state, const char *class)
{
    char *pattern =
        g_strdup_printf("%s/sys/class/%s/*", state->question->root, class);
    glob_t devices = {0};

    glob(pattern, 0, NULL, &devices);
    for (size_t i = 0; i < devices.gl_pathc; i++) {
        const char *name = strrchr(devices.gl_pathv[i], '/') + 1;
        const char *problem = device_problem(state, devices.gl_pathv[i]);

        if (problem && !*tool_advice_fact(state, "no_rdma"))
            tool_advice_set(state, "no_rdma", "%s %s", name, problem);
        if (!problem) {
            tool_advice_set(state, "rdma", "%s", name);
            break;
        }
    }
    globfree(&devices);
    g_free(pattern);
}

void tool_advice_devices(advice_state_t *state)
{
    static const char *const facts[] = {"rdma", "no_rdma", "fabric", "mtl",
                                        "device"};

    for (size_t i = 0; i < G_N_ELEMENTS(facts); i++)
        tool_advice_set_fact(state, facts[i], false);
    devices_read(state, "infiniband");
    devices_read(state, "cxi");
}

typedef struct {
    char interface[32];
    unsigned destination, gateway, mask;
} route_t;

/* Returns whether the address of route is in the network of item,
 * "10.0.0.0/8". */
static bool route_is_in(const route_t *route, const char *item)
{
    char **words = g_strsplit(item, "/", 2);
    struct in_addr network;
    gint64 bits = words[1] ? g_ascii_strtoll(words[1], NULL, 10) : -1;
    guint32 mask;

    if (bits < 0 || bits > 32 || inet_pton(AF_INET, words[0], &network) != 1) {
        g_strfreev(words);
        return false;
    }
    g_strfreev(words);
    mask = bits ? htonl(0xffffffffu << (32 - bits)) : 0;
    return ((route->destination ^ network.s_addr) & mask) == 0;
}

static bool route_fits(const route_t *route, const char *item, bool exact)
{
    if (strchr(item, '/'))
        return route_is_in(route, item);
    if (exact)
        return strcmp(route->interface, item) == 0;
    return *item && g_str_has_prefix(route->interface, item);
}

/* Whether an interface matches, as for DSCOMM_SOCKET_IFNAME: prefixes of
 * names, or networks, separated by commas; "^" excludes, "=" requires whole
 * names. */
static bool route_is_wanted(const route_t *route, const char *wanted)
{
    bool exclude = *wanted == '^', exact, found = false;
    char **items;

    wanted += exclude;
    exact = *wanted == '=';
    items = g_strsplit(wanted + exact, ",", -1);
    for (int i = 0; items[i]; i++)
        found = found || route_fits(route, items[i], exact);
    g_strfreev(items);
    return found != exclude;
}

static bool route_parse(const char *line, route_t *route)
{
    return sscanf(line, "%31s %8x %8x %*x %*d %*d %*d %8x", route->interface,
                  &route->destination, &route->gateway, &route->mask) == 4;
}

/* Whether a route is to the network of an interface: not the default route, a
 * single host, or link-local addresses, 169.254. */
static bool route_is_network(const route_t *route)
{
    return route->destination && route->mask && !route->gateway &&
           route->mask != 0xffffffffu &&
           (ntohl(route->destination) >> 16) != 0xa9fe;
}

static void route_set(advice_state_t *state, const route_t *route)
{
    struct in_addr address = {.s_addr = route->destination};
    char text[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &address, text, sizeof text);
    tool_advice_set(state, "subnet", "%s/%d", text,
                    __builtin_popcount(route->mask));
    tool_advice_set(state, "interface", "%s", route->interface);
}

/* The rank of a route: higher is better, 0 is unusable. */
static int route_rank(const advice_state_t *state, const route_t *route,
                      const char *wanted, const char *by_default)
{
    bool inner = tool_advice_matches(state, "@inner", route->interface);

    if (wanted ? !route_is_wanted(route, wanted) : inner)
        return 0;
    return 1 + !inner + (strcmp(route->interface, by_default) == 0);
}

void tool_advice_network(advice_state_t *state)
{
    const char *own =
        tool_advice_variable(state->question, "DSCOMM_SOCKET_IFNAME");
    const char *wanted =
        own ? own : tool_advice_variable(state->question, "NCCL_SOCKET_IFNAME");
    char *text = tool_root_file(state->question->root, "proc/net/route");
    char **lines = g_strsplit(text ? text : "", "\n", -1);
    char by_default[32] = "";
    int rank, best = 0, networks = 0;
    route_t route;

    tool_advice_set(state, "wanted", "%s", wanted ? wanted : "");
    tool_advice_set_fact(state, "subnet", false);
    tool_advice_set_fact(state, "interface", false);
    for (int i = 0; lines[i] && !*by_default; i++) {
        if (route_parse(lines[i], &route) && !route.destination && !route.mask)
            g_strlcpy(by_default, route.interface, sizeof by_default);
    }
    for (int i = 0; lines[i]; i++) {
        if (!route_parse(lines[i], &route) || !route_is_network(&route))
            continue;
        networks++;
        rank = route_rank(state, &route, wanted, by_default);
        if (rank > best)
            route_set(state, &route);
        best = MAX(best, rank);
    }
    tool_advice_set_fact(state, "choice", networks > 1);
    g_strfreev(lines);
    g_free(text);
}
