/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing network interfaces: NCCL's syntax, and networks besides names. */
#include "config.h"

#include "lib/store/tcp/interface.h"

#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/store/tcp/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int family; /* 0: not a network */
    uint8_t bytes[16];
    unsigned bits; /* length of the prefix */
} network_t;

typedef struct {
    int exclude, exact;
    char **items;
} choice_t;

static void read_choice(const char *text, choice_t *choice)
{
    choice->exclude = *text == '^';
    text += choice->exclude;
    choice->exact = *text == '=';
    text += choice->exact;
    choice->items = g_strsplit(text, ",", -1);
    for (char **item = choice->items; *item; item++)
        g_strstrip(*item);
}

/* Reads an item of the list: 0 if it is a network, -1 if it is the name of an
 * interface, 1 if it is neither. */
static int read_network(const char *item, network_t *network)
{
    const char *slash = strchr(item, '/');
    char *host = g_strndup(item, slash ? (gsize)(slash - item) : strlen(item));
    guint64 bits;
    int result = slash ? 1 : -1;

    *network = (network_t){0};
    if (inet_pton(AF_INET, host, network->bytes) == 1)
        network->family = AF_INET;
    else if (inet_pton(AF_INET6, host, network->bytes) == 1)
        network->family = AF_INET6;
    g_free(host);
    if (!network->family)
        return result;
    network->bits = network->family == AF_INET ? 32 : 128;
    if (slash) {
        if (!g_ascii_string_to_unsigned(slash + 1, 10, 0, network->bits, &bits,
                                        NULL))
            return 1;
        network->bits = (unsigned)bits;
    }
    return 0;
}

static int is_in_network(const network_t *network,
                         const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    const unsigned whole = network->bits / 8, rest = network->bits % 8;
    const uint8_t mask = (uint8_t)(0xff00u >> rest);
    const uint8_t *bytes;

    if (address->sa_family != network->family)
        return 0;
    bytes = network->family == AF_INET ? (const uint8_t *)&v4->sin_addr
                                       : (const uint8_t *)&v6->sin6_addr;
    if (memcmp(bytes, network->bytes, whole))
        return 0;
    return !rest || !((bytes[whole] ^ network->bytes[whole]) & mask);
}

static int matches_item(const choice_t *choice, const char *item,
                        const char *name, const struct sockaddr *address)
{
    network_t network;
    int kind = read_network(item, &network);

    if (kind >= 0)
        return kind == 0 && is_in_network(&network, address);
    return choice->exact ? !strcmp(name, item)
                         : *item && g_str_has_prefix(name, item);
}

int dscomm_priv_interface_matches(const char *text, const char *name,
                                  const struct sockaddr *address)
{
    choice_t choice;
    int found = 0;

    read_choice(text, &choice);
    for (char **item = choice.items; *item && !found; item++)
        found = matches_item(&choice, *item, name, address);
    g_strfreev(choice.items);
    return found != choice.exclude;
}

/* Returns the number, from 1, of the first malformed item, or 0. */
static int find_bad(char *const *items)
{
    network_t network;

    if (!*items)
        return 1;
    for (int i = 0; items[i]; i++)
        if (!*items[i] || read_network(items[i], &network) > 0)
            return i + 1;
    return 0;
}

dscomm_status_t dscomm_priv_interface_check(const char *variable,
                                            const char *text)
{
    choice_t choice;
    char quoted[80];
    int bad;

    read_choice(text, &choice);
    bad = find_bad(choice.items);
    g_strfreev(choice.items);
    if (!bad)
        return DSCOMM_OK;
    return dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "%s='%s': item %d is neither the name of an interface nor a network; "
        "give names or networks as 10.0.0.0/8, comma separated, '^' before all "
        "of them to leave them out",
        variable, dscomm_priv_quote(text, quoted, sizeof quoted), bad);
}

const char *dscomm_priv_interface_choice(const char **ret_variable)
{
    const char *own = dscomm_priv_setting_text(SETTING_SOCKET_IFNAME);
    const char *other = getenv("NCCL_SOCKET_IFNAME");

    if (own && *own) {
        *ret_variable = "DSCOMM_SOCKET_IFNAME";
        return own;
    }
    *ret_variable = "NCCL_SOCKET_IFNAME";
    /* NCCL ignores values of one character */
    return other && other[0] && other[1] ? other : NULL;
}

/* Order of preference; smaller is better. */
static int rank_name(const char *name)
{
    static const struct {
        const char *prefix;
        int rank;
    } rows[] = {{"ib", 0}, {"docker", 2}, {"veth", 2}, {"lo", 3}, {"virbr", 4}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (g_str_has_prefix(name, rows[i].prefix))
            return rows[i].rank;
    return 1;
}

static gint interface_compare(gconstpointer a, gconstpointer b)
{
    const dscomm_interface_t *first = a, *second = b;

    return rank_name(first->name) - rank_name(second->name);
}

/* True if the interface is up and its address needs no scope. */
static int is_of_use(const struct ifaddrs *entry)
{
    const struct sockaddr_in6 *v6 = (const void *)entry->ifa_addr;
    const unsigned wanted = IFF_UP | IFF_RUNNING;

    if (!v6 || (entry->ifa_flags & wanted) != wanted)
        return 0;
    return v6->sin6_family == AF_INET ||
           (v6->sin6_family == AF_INET6 &&
            !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr));
}

static socklen_t address_length(const struct sockaddr *address)
{
    return address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                         : sizeof(struct sockaddr_in6);
}

static void interface_add(GArray *list, const struct ifaddrs *entry)
{
    dscomm_interface_t row = {.length = address_length(entry->ifa_addr)};

    g_strlcpy(row.name, entry->ifa_name, sizeof row.name);
    memcpy(&row.address, entry->ifa_addr, row.length);
    g_array_append_val(list, row);
}

static dscomm_status_t fail_none(const char *variable, const char *choice,
                                 const struct ifaddrs *all)
{
    GString *there = g_string_new(NULL);
    char quoted[80], name[SOCKET_NAME_MAX], *colon;

    for (; all; all = all->ifa_next) {
        if (!is_of_use(all))
            continue;
        dscomm_priv_address_name(all->ifa_addr, address_length(all->ifa_addr),
                                 name);
        colon = strrchr(name, ':'); /* before the port, which is 0 */
        if (colon)
            *colon = '\0';
        g_string_append_printf(there, "%s%s %s", there->len ? ", " : "",
                               all->ifa_name, name);
    }
    dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                "%s='%s' chooses no interface that is up; there are: %s",
                variable, dscomm_priv_quote(choice, quoted, sizeof quoted),
                there->len ? there->str : "none");
    g_string_free(there, TRUE);
    return DSCOMM_ERR_ENVIRONMENT;
}

dscomm_status_t dscomm_priv_interfaces(const char *variable, const char *choice,
                                       GArray **ret_interfaces)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(dscomm_interface_t));
    dscomm_status_t status = DSCOMM_OK;
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all))
        status = dscomm_fail(DSCOMM_ERR_IO, "list the network interfaces: %s",
                             strerror(errno));
    for (struct ifaddrs *next = all; next; next = next->ifa_next)
        if (is_of_use(next) &&
            (!choice || dscomm_priv_interface_matches(choice, next->ifa_name,
                                                      next->ifa_addr)))
            interface_add(list, next);
    if (!status && choice && !list->len)
        status = fail_none(variable, choice, all);
    if (all)
        freeifaddrs(all);
    if (status) {
        g_array_unref(list);
        return status;
    }
    g_array_sort(list, interface_compare);
    *ret_interfaces = list;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_interface_validate(void)
{
    const char *variable, *choice = dscomm_priv_interface_choice(&variable);
    GArray *list = NULL;
    dscomm_status_t status;

    if (!choice || strcmp(variable, "DSCOMM_SOCKET_IFNAME"))
        return DSCOMM_OK;
    status = dscomm_priv_interface_check(variable, choice);
    if (!status)
        status = dscomm_priv_interfaces(variable, choice, &list);
    if (list)
        g_array_unref(list);
    return status;
}
