/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing network interfaces, in NCCL's syntax and by networks; and listening
 * on them. */
#include "config.h"

#include "lib/store/tcp/listen.h"

#include "lib/base/process.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool is_in_network(const network_t *network,
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

/* The interfaces that are up and, unless choice is NULL, chosen. */
static dscomm_status_t list_interfaces(const char *choice, GArray *list)
{
    struct ifaddrs *all;

    if (getifaddrs(&all))
        return errno == EMFILE
                   ? dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                                 "list the network interfaces: %s; allow more "
                                 "descriptors (ulimit -n)",
                                 strerror(errno))
                   : dscomm_fail(DSCOMM_ERR_IO,
                                 "list the network interfaces: %s",
                                 strerror(errno));
    for (struct ifaddrs *next = all; next; next = next->ifa_next) {
        const struct sockaddr *address = next->ifa_addr;
        dscomm_interface_t row = {.length = 0};

        if (!is_of_use(next) ||
            (choice &&
             !dscomm_priv_interface_matches(choice, next->ifa_name, address)))
            continue;
        row.length = address->sa_family == AF_INET
                         ? sizeof(struct sockaddr_in)
                         : sizeof(struct sockaddr_in6);
        g_strlcpy(row.name, next->ifa_name, sizeof row.name);
        memcpy(&row.address, address, row.length);
        g_array_append_val(list, row);
    }
    freeifaddrs(all);
    return DSCOMM_OK;
}

/* Fails with the list of the interfaces that there are. */
static dscomm_status_t fail_none(const char *variable, const char *choice,
                                 GArray *list)
{
    GString *there = g_string_new(NULL);
    char quoted[80], name[SOCKET_NAME_MAX], *colon;
    dscomm_status_t status = list_interfaces(NULL, list);

    for (guint i = 0; i < list->len; i++) {
        dscomm_interface_t *row = &g_array_index(list, dscomm_interface_t, i);

        dscomm_priv_address_name((struct sockaddr *)&row->address, row->length,
                                 name);
        colon = strrchr(name, ':'); /* before the port, which is 0 */
        if (colon)
            *colon = '\0';
        g_string_append_printf(there, "%s%s %s", there->len ? ", " : "",
                               row->name, name);
    }
    if (!status)
        status = dscomm_fail(
            DSCOMM_ERR_ENVIRONMENT,
            "%s='%s' chooses no interface that is up and has more than a "
            "link-local address; there are: %s",
            variable, dscomm_priv_quote(choice, quoted, sizeof quoted),
            there->len ? there->str : "none");
    g_string_free(there, TRUE);
    return status;
}

dscomm_status_t dscomm_priv_interfaces(const char *variable, const char *choice,
                                       GArray **ret_interfaces)
{
    GArray *list = g_array_new(false, false, sizeof(dscomm_interface_t));
    dscomm_status_t status = list_interfaces(choice, list);

    if (!status && choice && !list->len)
        status = fail_none(variable, choice, list);
    if (status) {
        g_array_unref(list);
        return status;
    }
    g_array_sort(list, interface_compare);
    *ret_interfaces = list;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_interfaces_chosen(GArray **ret_interfaces,
                                              bool *ret_chosen)
{
    const char *variable, *choice = dscomm_priv_interface_choice(&variable);
    dscomm_status_t status =
        dscomm_priv_interfaces(variable, choice, ret_interfaces);

    *ret_chosen = choice && status == DSCOMM_OK;
    if (status == DSCOMM_OK || !choice || !g_str_has_prefix(variable, "NCCL_"))
        return status;
    dscomm_log(DSCOMM_LOG_WARN, "core", "%s", dscomm_last_error());
    return dscomm_priv_interfaces(variable, NULL, ret_interfaces);
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

/* Without a choice, the loopback serves only where nothing else does. */
static bool interface_serves(const dscomm_interface_t *row, bool chosen,
                             bool others)
{
    return chosen || !others ||
           !dscomm_priv_address_is_loopback(
               (const struct sockaddr *)&row->address);
}

dscomm_status_t dscomm_backend_interfaces(
    int (*visit)(void *arg, const struct sockaddr *address, unsigned length),
    void *arg)
{
    GArray *list;
    bool chosen, others = false;
    dscomm_status_t status = dscomm_priv_interfaces_chosen(&list, &chosen);

    if (status < 0)
        return status;
    for (guint i = 0; i < list->len; i++)
        others = others || !dscomm_priv_address_is_loopback(
                               (const struct sockaddr *)&g_array_index(
                                   list, dscomm_interface_t, i)
                                   .address);
    for (guint i = 0; i < list->len; i++) {
        const dscomm_interface_t *row =
            &g_array_index(list, dscomm_interface_t, i);

        if (interface_serves(row, chosen, others) &&
            !visit(arg, (const struct sockaddr *)&row->address, row->length))
            break;
    }
    g_array_unref(list);
    return DSCOMM_OK;
}

/* Listening */

void dscomm_priv_listen_close(dscomm_priv_listen_t *listening)
{
    for (int i = 0; i < listening->count; i++) {
        if (!listening->adopted) /* a forked child may have a copy */
            shutdown(listening->fds[i], SHUT_RDWR);
        dscomm_priv_fd_close(listening->fds[i]);
    }
    listening->count = 0;
}

/* True if the server listens at address already. Addresses repeat: /etc/hosts
 * may list one twice, and a setting may name what a host name resolves to. */
static bool is_bound(const dscomm_priv_listen_t *listening,
                     const struct sockaddr *address, socklen_t length)
{
    for (int i = 0; i < listening->count; i++) {
        struct sockaddr_storage bound;
        socklen_t got = sizeof bound;

        if (getsockname(listening->fds[i], (struct sockaddr *)&bound, &got) ==
                0 &&
            got == length && memcmp(&bound, address, length) == 0)
            return true;
    }
    return false;
}

/* Adds a socket for address unless there are LISTEN_MAX. Its port is that of
 * the first socket. Returns 0 or an errno. */
static int listen_add(dscomm_priv_listen_t *listening,
                      const struct sockaddr *wanted, socklen_t length,
                      bool dual)
{
    struct sockaddr_storage own;
    struct sockaddr *address = (struct sockaddr *)&own;
    int on = 1, only = !dual, problem, fd;

    memcpy(&own, wanted, length);
    dscomm_priv_address_set_port(address, listening->port);
    if (listening->count == LISTEN_MAX || is_bound(listening, address, length))
        return 0;
    fd = socket(wanted->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                IPPROTO_TCP);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    if (bind(fd, address, length) != 0 || listen(fd, SOMAXCONN) != 0) {
        problem = errno;
        close(fd);
        return problem;
    }
    listening->port = dscomm_priv_socket_port(fd);
    listening->fds[listening->count++] = fd;
    return 0;
}

/* Listens on all interfaces, by one socket for both families; by IPv4 only if
 * IPv6 is off. */
static int listen_add_all(dscomm_priv_listen_t *listening)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_ANY)}};
    int problem =
        listen_add(listening, (struct sockaddr *)&v6, sizeof v6, true);

    if (problem && problem != EADDRINUSE)
        problem =
            listen_add(listening, (struct sockaddr *)&v4, sizeof v4, false);
    return problem;
}

/* True for a loopback address other than 127.0.0.1. */
static bool is_own_name(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;

    return dscomm_priv_address_is_loopback(address) &&
           !(address->sa_family == AF_INET &&
             v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
}

/* Listens on the loopback: on 127.0.0.1, which must be free, and on the
 * loopback addresses of the host's name, such as 127.0.1.1, to which ranks on
 * this machine may connect. */
static int add_loopback(dscomm_priv_listen_t *listening,
                        const struct addrinfo *list)
{
    struct sockaddr_in usual = {.sin_family = AF_INET,
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int problem =
        listen_add(listening, (struct sockaddr *)&usual, sizeof usual, 0);

    for (; list && !problem && listening->count < LISTEN_MAX / 2;
         list = list->ai_next) {
        if (is_own_name(list->ai_addr))
            problem = listen_add(listening, list->ai_addr, list->ai_addrlen, 0);
        if (problem == EADDRNOTAVAIL || problem == EAFNOSUPPORT)
            problem = 0;
    }
    return problem;
}

/* Returned in place of an errno; dscomm_last_error() has the cause. */
#define CAUSE_KNOWN (-1)

/* Listens on the loopback and on the interfaces that choice, the value of
 * variable, selects. CAUSE_KNOWN: choice is malformed, or selects none. The
 * kernel may list an address that cannot be bound yet, such as a new IPv6 one,
 * so one success is enough. */
static int add_choice(dscomm_priv_listen_t *listening, const char *variable,
                      const char *choice, const struct addrinfo *host)
{
    int problem, absent = 0, before;
    GArray *rows;

    if (dscomm_priv_interface_check(variable, choice) ||
        dscomm_priv_interfaces(variable, choice, &rows))
        return CAUSE_KNOWN;
    problem = add_loopback(listening, host);
    before = listening->count;
    for (guint i = 0; i < rows->len && !problem; i++) {
        dscomm_interface_t *row = &g_array_index(rows, dscomm_interface_t, i);
        struct sockaddr *address = (struct sockaddr *)&row->address;

        if (!dscomm_priv_address_is_loopback(address))
            problem = listen_add(listening, address, row->length, false);
        if (problem == EADDRNOTAVAIL) {
            absent = problem;
            problem = 0;
        }
    }
    g_array_unref(rows);
    return problem || listening->count > before ? problem : absent;
}

/* Listens on the interfaces of DSCOMM_SOCKET_IFNAME; a mistake in it is an
 * error. Without it, on those of NCCL_SOCKET_IFNAME; a mistake there is only a
 * warning, because it was not written for dscomm. Otherwise on all interfaces
 * if all is true, else returns ENODEV. */
static int add_interfaces_chosen(dscomm_priv_listen_t *listening,
                                 const struct addrinfo *host, bool all)
{
    const char *variable, *choice = dscomm_priv_interface_choice(&variable);
    int problem =
        choice ? add_choice(listening, variable, choice, host) : ENODEV;

    if (problem == CAUSE_KNOWN && g_str_has_prefix(variable, "NCCL_")) {
        dscomm_log(DSCOMM_LOG_WARN, "store", "%s", dscomm_last_error());
        problem = ENODEV;
    }
    return problem == ENODEV && all ? listen_add_all(listening) : problem;
}

/* True for an address and for a name of the loopback: the server then listens
 * on the loopback if host leads there. */
static bool may_be_loopback(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET, host, &address) == 1 ||
           inet_pton(AF_INET6, host, &address) == 1 ||
           g_ascii_strcasecmp(host, "localhost") == 0 ||
           g_str_has_prefix(host, "localhost.") ||
           g_str_has_prefix(host, "ip6-localhost");
}

/* True for "::", by which a socket accepts both families. */
static bool is_any_v6(const struct sockaddr *address)
{
    const struct sockaddr_in6 *v6 = (const void *)address;

    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

/* Binds every address of list that this machine has. An address in use is an
 * error if the caller has given the port; otherwise it is skipped. */
static int listen_add_list(dscomm_priv_listen_t *listening,
                           struct addrinfo *list, bool loopback_is_fine)
{
    bool chosen = listening->port != 0;
    int problem = EADDRNOTAVAIL;

    for (struct addrinfo *next = list; next; next = next->ai_next) {
        int one;

        if (!loopback_is_fine && dscomm_priv_address_is_loopback(next->ai_addr))
            continue;
        one = listen_add(listening, next->ai_addr, next->ai_addrlen,
                         is_any_v6(next->ai_addr));
        if (one == EADDRINUSE && chosen)
            return one;
        if (one && one != EADDRNOTAVAIL && one != EAFNOSUPPORT)
            problem = one;
    }
    return listening->count ? 0 : problem;
}

static dscomm_status_t fail_listen(const dscomm_priv_place_t *place,
                                   int problem)
{
    const int port = place->port;
    char shown[64];

    dscomm_priv_quote(place->host, shown, sizeof shown);
    if (problem == EADDRINUSE && place->ports > 1)
        return dscomm_fail(
            DSCOMM_ERR_IO,
            "serve the store on %s: ports %d to %d, which the job's identity "
            "led to, are in use; set MASTER_PORT to a free one",
            shown, port, port + place->ports - 1);
    if (problem == EADDRINUSE)
        return dscomm_fail(
            DSCOMM_ERR_IO,
            "serve the store on %s: port %d is in use; end the process that "
            "has it (ss -ltnp), or choose another port",
            shown, port);
    if (problem == EACCES)
        return dscomm_fail(DSCOMM_ERR_IO,
                           "serve the store on %s: port %d is reserved; "
                           "choose one from 1024 on",
                           shown, port);
    if (problem == CAUSE_KNOWN)
        return DSCOMM_ERR_ENVIRONMENT;
    if (problem == EADDRNOTAVAIL)
        return dscomm_fail(
            DSCOMM_ERR_ENVIRONMENT,
            "serve the store on %s: that leads to no address of this machine "
            "that other machines reach; give one (MASTER_ADDR, or --master of "
            "dscomm run), or the interfaces to serve on (DSCOMM_STORE_LISTEN), "
            "or a secret of the job (DSCOMM_JOB_SECRET)",
            shown);
    return dscomm_fail(DSCOMM_ERR_IO, "serve the store on %s, port %d: %s",
                       shown, port, strerror(problem));
}

static bool is_all(const char *host)
{
    return strcmp(host, "*") == 0;
}

static bool has_loopback(const struct addrinfo *list)
{
    for (; list; list = list->ai_next)
        if (dscomm_priv_address_is_loopback(list->ai_addr))
            return true;
    return false;
}

/* Listens for a host that has no address here that other machines can reach. */
static int add_unnamed(dscomm_priv_listen_t *listening,
                       const dscomm_priv_place_t *place,
                       const struct addrinfo *list)
{
    int problem = add_interfaces_chosen(listening, list, place->guarded);
    const char *variable;
    char shown[64];

    if (!problem && !has_loopback(list) &&
        !dscomm_priv_interface_choice(&variable))
        dscomm_log(DSCOMM_LOG_WARN, "store",
                   "%s is no address of this machine; if others do not reach "
                   "this machine by it, they will not find the store",
                   dscomm_priv_quote(place->host, shown, sizeof shown));
    if (problem == ENODEV)
        problem = has_loopback(list) && !place->remote
                      ? add_loopback(listening, list)
                      : EADDRNOTAVAIL;
    return problem;
}

/* Listens on the addresses to which the host's name resolves. */
static int listen_add_named(dscomm_priv_listen_t *listening,
                            const dscomm_priv_place_t *place,
                            struct addrinfo *list)
{
    const char *host = place->host;
    int problem;

    if (is_all(host))
        return add_interfaces_chosen(listening, NULL, true);
    problem = listen_add_list(listening, list, may_be_loopback(host));
    return problem == EADDRNOTAVAIL ? add_unnamed(listening, place, list)
                                    : problem;
}

/* Listens on the addresses of the host's name, and on the interfaces of
 * DSCOMM_STORE_LISTEN. */
static int add_widened(dscomm_priv_listen_t *listening, const char *choice,
                       struct addrinfo *list)
{
    int problem;

    if (is_all(choice))
        return listen_add_all(listening);
    problem = listen_add_list(listening, list, false);
    if (problem && problem != EADDRNOTAVAIL)
        return problem;
    return add_choice(listening,
                      dscomm_priv_setting(SETTING_STORE_LISTEN)->name, choice,
                      list);
}

/* Opens all sockets on one port, or none. */
static int try_port(const dscomm_priv_place_t *place, struct addrinfo *list,
                    dscomm_priv_listen_t *listening)
{
    const char *choice = dscomm_priv_setting_text(SETTING_STORE_LISTEN);
    int problem = choice ? add_widened(listening, choice, list)
                         : listen_add_named(listening, place, list);

    if (problem)
        dscomm_priv_listen_close(listening);
    return problem;
}

dscomm_status_t dscomm_priv_listen(const dscomm_priv_place_t *place,
                                   dscomm_priv_deadline_t deadline,
                                   dscomm_priv_listen_t *ret_listen)
{
    dscomm_priv_listen_t listening;
    int problem = EADDRINUSE;
    dscomm_status_t status = DSCOMM_OK;
    struct addrinfo *list = NULL;
    bool again;

    if (!is_all(place->host))
        status = dscomm_priv_resolve(place->host, place->port, deadline, &list,
                                     &again);
    if (status)
        return status;
    for (int i = 0; i < place->ports && problem == EADDRINUSE; i++) {
        listening = (dscomm_priv_listen_t){.port = place->port + i};
        problem = try_port(place, list, &listening);
    }
    if (list)
        freeaddrinfo(list);
    if (problem)
        return fail_listen(place, problem);
    *ret_listen = listening;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_listen_adopt(int fd, int port,
                                         dscomm_priv_listen_t *ret_listen)
{
    int listens = 0, has = dscomm_priv_socket_port(fd), own;
    socklen_t length = sizeof listens;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 ||
        !listens || !has)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store listen_fd %d is no listening TCP socket", fd);
    if (port && port != has)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store listen_fd %d listens on port %d, but the "
                           "address says %d",
                           fd, has, port);
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return dscomm_fail(DSCOMM_ERR_IO, "store listen_fd %d: %s", fd,
                           strerror(errno));
    fcntl(own, F_SETFL, fcntl(own, F_GETFL) | O_NONBLOCK);
    ret_listen->fds[0] = own;
    ret_listen->count = 1;
    ret_listen->port = has;
    ret_listen->adopted = true;
    return DSCOMM_OK;
}

/* Returns a loopback address by which this process reaches a socket of all
 * interfaces; NULL for other sockets. A socket of both families is reached by
 * IPv4, because IPv6 may be off even on the loopback. */
static const char *loopback_of(int fd, const struct sockaddr *address)
{
    int only = 0;
    socklen_t length = sizeof only;

    if (address->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)address)
                           ->sin_addr.s_addr == htonl(INADDR_ANY)
                   ? "127.0.0.1"
                   : NULL;
    if (!is_any_v6(address))
        return NULL;
    getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length);
    return only ? "::1" : "127.0.0.1";
}

const char *dscomm_priv_listen_host(const dscomm_priv_listen_t *listening,
                                    char *buffer)
{
    struct sockaddr_storage storage;
    struct sockaddr *address = (struct sockaddr *)&storage;
    socklen_t length = sizeof storage;
    const char *loopback = "127.0.0.1";

    if (getsockname(listening->fds[0], address, &length) == 0)
        loopback = loopback_of(listening->fds[0], address);
    if (loopback || getnameinfo(address, length, buffer, LISTEN_HOST_MAX, NULL,
                                0, NI_NUMERICHOST) != 0)
        g_strlcpy(buffer, loopback ? loopback : "127.0.0.1", LISTEN_HOST_MAX);
    return buffer;
}

/* True if other machines can reach the server; *ret_name, of SOCKET_NAME_MAX
 * bytes, is then an address that they use. */
static bool is_public(const dscomm_priv_listen_t *listening, char *ret_name)
{
    for (int i = 0; i < listening->count; i++) {
        struct sockaddr_storage storage;
        struct sockaddr *address = (struct sockaddr *)&storage;
        socklen_t length = sizeof storage;

        if (getsockname(listening->fds[i], address, &length) != 0 ||
            dscomm_priv_address_is_loopback(address))
            continue;
        dscomm_priv_address_name(address, length, ret_name);
        return true;
    }
    return false;
}

void dscomm_priv_listen_warn(const dscomm_priv_listen_t *listening)
{
    static gint warned;
    char name[SOCKET_NAME_MAX];

    if (is_public(listening, name) &&
        g_atomic_int_compare_and_exchange(&warned, 0, 1))
        dscomm_log(DSCOMM_LOG_WARN, "store",
                   "everyone who reaches %s may use the job's store, since the "
                   "job has no secret: set DSCOMM_JOB_SECRET or "
                   "DSCOMM_JOB_SECRET_FILE, or trust that network (see "
                   "dscomm-security(7))",
                   name);
}
