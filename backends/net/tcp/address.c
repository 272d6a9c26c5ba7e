/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: those at which this rank listens, and those of peers. Text:
 *
 *     1                    version
 *     HOST                 identity of the host and its network namespace
 *     NAME                 of an abstract Unix socket, or "-"
 *     10.0.0.1 4711        an address and its port, best first; and so on
 */
#include "config.h"

#include "backends/net/tcp/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESS_VERSION "1"
#define PLACES_MAX 64
/* Leading bits that an address of IPv4 shares with those of its network, at
 * least: networks of more than 65,536 hosts are rare. */
#define NETWORK_BITS 16

const char *tcp_remedy(int error)
{
    switch (error) {
    case EMFILE:
        return "allow more descriptors (ulimit -n)";
    case ENFILE:
        return "allow more open files (sysctl fs.file-max)";
    case EADDRINUSE:
    case EADDRNOTAVAIL:
        return "allow more local ports (sysctl net.ipv4.ip_local_port_range)";
    case ENOBUFS:
    case ENOMEM:
        return "free some memory";
    default:
        return NULL;
    }
}

const char *tcp_place_text(const place_t *place, char text[PLACE_TEXT])
{
    const address_t *address = &place->address;
    char host[INET6_ADDRSTRLEN] = "";

    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host);
        snprintf(text, PLACE_TEXT, "%s:%d", host,
                 (int)ntohs(address->v4.sin_port));
    } else if (address->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host);
        snprintf(text, PLACE_TEXT, "[%s]:%d", host,
                 (int)ntohs(address->v6.sin6_port));
    } else {
        snprintf(text, PLACE_TEXT, "a Unix socket");
    }
    return text;
}

void tcp_late_text(const place_t *place, char *text, size_t size)
{
    char at[PLACE_TEXT];

    snprintf(text, size,
             "its host accepts connections to %s, but its process does not "
             "answer: it computes, is stopped or hangs",
             tcp_place_text(place, at));
}

static void set_port(address_t *address, int port)
{
    if (address->any.sa_family == AF_INET)
        address->v4.sin_port = htons((uint16_t)port);
    else
        address->v6.sin6_port = htons((uint16_t)port);
}

static int get_port(const address_t *address)
{
    return address->any.sa_family == AF_INET ? ntohs(address->v4.sin_port)
                                             : ntohs(address->v6.sin6_port);
}

/* A listening socket at address, which gets its port; -1 and errno. */
static int listen_at(address_t *address, socklen_t length)
{
    const int fd = socket(address->any.sa_family,
                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1, error;

    if (fd < 0)
        return -1;
    if (address->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (!bind(fd, &address->any, length) && !listen(fd, SOMAXCONN) &&
        !getsockname(fd, &address->any, &length))
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Listens at one address of this host: called for each interface. */
static int interface_add(void *arg, const struct sockaddr *given,
                         unsigned length)
{
    tcp_t *tcp = arg;
    place_t place = {.length = length};
    char host[INET6_ADDRSTRLEN] = "";
    int fd;

    if (tcp->listener_count == G_N_ELEMENTS(tcp->listeners))
        return 0;
    memcpy(&place.address, given, length);
    set_port(&place.address, 0);
    fd = listen_at(&place.address, length);
    if (fd < 0) {
        tcp->listen_error = errno;
        dscomm_log(DSCOMM_LOG_INFO, "tcp", "cannot listen: %s",
                   strerror(tcp->listen_error));
        return 1;
    }
    tcp->listeners[tcp->listener_count++] = fd;
    if (given->sa_family == AF_INET)
        inet_ntop(AF_INET, &place.address.v4.sin_addr, host, sizeof host);
    else
        inet_ntop(AF_INET6, &place.address.v6.sin6_addr, host, sizeof host);
    g_ptr_array_add(tcp->addresses,
                    g_strdup_printf("%s %d", host, get_port(&place.address)));
    return 1;
}

static void unix_address(const char *name, place_t *place)
{
    struct sockaddr_un *un = &place->address.un;

    *place = (place_t){0};
    un->sun_family = AF_UNIX;
    g_strlcpy(un->sun_path + 1, name, sizeof un->sun_path - 1);
    place->length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

void tcp_listen_unix(tcp_t *tcp)
{
    unsigned char random[8];
    place_t place;

    if (getrandom(random, sizeof random, 0) != sizeof random)
        return;
    snprintf(tcp->unix_name, sizeof tcp->unix_name,
             "dscomm-%d-%02x%02x%02x%02x%02x%02x%02x%02x", (int)getpid(),
             random[0], random[1], random[2], random[3], random[4], random[5],
             random[6], random[7]);
    unix_address(tcp->unix_name, &place);
    tcp->unix_listener =
        socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (tcp->unix_listener < 0)
        return;
    if (bind(tcp->unix_listener, &place.address.any, place.length) ||
        listen(tcp->unix_listener, SOMAXCONN)) {
        close(tcp->unix_listener);
        tcp->unix_listener = -1;
    }
}

/* Equal on processes that reach each other's abstract Unix sockets, and that
 * the user has not declared to be on different hosts. */
static char *host_identity(void)
{
    const char *host = getenv("DSCOMM_HOST_ID");
    char *boot = NULL, *text, space[64] = "";

    g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL);
    if (readlink("/proc/self/ns/net", space, sizeof space - 1) < 0)
        snprintf(space, sizeof space, "%d", (int)getpid());
    text = g_strdup_printf("%s %s %s", boot ? g_strchomp(boot) : "", space,
                           host ? host : "");
    g_strdelimit(text, "\n", ' ');
    text[MIN(strlen(text), 255)] = '\0';
    g_free(boot);
    return text;
}

dscomm_status_t tcp_listen(tcp_t *tcp)
{
    dscomm_status_t status = dscomm_backend_interfaces(interface_add, tcp);
    const char *remedy = tcp_remedy(tcp->listen_error);

    tcp->host = host_identity();
    if (status < 0)
        return status;
    if (!tcp->listener_count)
        return dscomm_fail(DSCOMM_ERR_IO,
                           "backend tcp cannot listen on any address of this "
                           "host: %s; %s",
                           tcp->listen_error ? strerror(tcp->listen_error)
                                             : "it has none",
                           remedy ? remedy
                                  : "bring an interface up, or choose one by "
                                    "DSCOMM_SOCKET_IFNAME");
    return DSCOMM_OK;
}

size_t tcp_address(void *wire, void *buffer)
{
    const tcp_t *tcp = wire;
    GString *text = g_string_new(ADDRESS_VERSION);
    size_t bytes;

    g_string_append_printf(text, "\n%s\n%s", tcp->host,
                           tcp->unix_listener < 0 ? "-" : tcp->unix_name);
    for (guint i = 0; i < tcp->addresses->len; i++)
        g_string_append_printf(text, "\n%s",
                               (char *)g_ptr_array_index(tcp->addresses, i));
    bytes = MIN(text->len, DSCOMM_WIRE_ADDRESS_MAX);
    memcpy(buffer, text->str, bytes);
    g_string_free(text, TRUE);
    return bytes;
}

/* Reads "10.0.0.1 4711". */
static bool place_read(const char *line, place_t *ret_place)
{
    const char *blank = strchr(line, ' ');
    char *host = blank ? g_strndup(line, (gsize)(blank - line)) : NULL;
    address_t *address = &ret_place->address;
    guint64 port;

    *ret_place = (place_t){0};
    if (host && inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
        address->any.sa_family = AF_INET;
        ret_place->length = sizeof address->v4;
    } else if (host && inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1) {
        address->any.sa_family = AF_INET6;
        ret_place->length = sizeof address->v6;
    }
    g_free(host);
    if (!ret_place->length ||
        !g_ascii_string_to_unsigned(blank + 1, 10, 1, 65535, &port, NULL))
        return false;
    set_port(address, (int)port);
    return true;
}

/* The bytes of an address, and their number. */
static const unsigned char *address_bytes(const place_t *place,
                                          unsigned *ret_count)
{
    const address_t *address = &place->address;

    *ret_count = address->any.sa_family == AF_INET ? 4 : 16;
    return address->any.sa_family == AF_INET
               ? (const unsigned char *)&address->v4.sin_addr
               : (const unsigned char *)&address->v6.sin6_addr;
}

static bool host_equal(const place_t *one, const place_t *other)
{
    unsigned count;
    const unsigned char *a = address_bytes(one, &count);
    const unsigned char *b = address_bytes(other, &count);

    return one->address.any.sa_family == other->address.any.sa_family &&
           memcmp(a, b, count) == 0;
}

bool tcp_place_is_own(const tcp_t *tcp, const place_t *place)
{
    place_t own;

    for (guint i = 0; i < tcp->addresses->len; i++)
        if (place_read(g_ptr_array_index(tcp->addresses, i), &own) &&
            host_equal(&own, place))
            return true;
    return false;
}

/* The number of leading bits that are equal: addresses of one network come
 * first. */
static unsigned common_bits(const place_t *place, const place_t *mine)
{
    const unsigned char *a, *b;
    unsigned bytes, i = 0;

    if (mine->address.any.sa_family != place->address.any.sa_family)
        return 0;
    a = address_bytes(place, &bytes);
    b = address_bytes(mine, &bytes);
    while (i < bytes && a[i] == b[i])
        i++;
    if (i == bytes)
        return 0; /* this host has that address itself, as a bridge may */
    return 8 * i + (unsigned)__builtin_clz((unsigned)(a[i] ^ b[i])) - 24 + 1;
}

/* The address of this host that has the most leading bits of place; returns
 * their number, 0 if there is none. */
static unsigned place_nearest(const tcp_t *tcp, const place_t *place,
                              place_t *ret_mine)
{
    unsigned most = 0;
    place_t mine;

    for (guint i = 0; i < tcp->addresses->len; i++) {
        unsigned bits;

        if (!place_read(g_ptr_array_index(tcp->addresses, i), &mine))
            continue;
        bits = common_bits(place, &mine);
        if (bits > most) {
            most = bits;
            *ret_mine = mine;
        }
    }
    return most;
}

/* IPv4 has 32 bits, IPv6 128. If both lead to a network of this host, IPv4
 * comes first: Linux drops a host's addresses of IPv6, and with them its
 * connections, when the link is down for a moment. */
static unsigned place_rank(const tcp_t *tcp, const place_t *place)
{
    place_t mine;
    const unsigned most = place_nearest(tcp, place, &mine);

    if (place->address.any.sa_family != AF_INET)
        return most;
    return 4 * most + (most >= NETWORK_BITS ? 128 : 0);
}

/* Sorts the places so that those of a network of this host come first. */
static void places_sort(const tcp_t *tcp, pair_t *pair)
{
    for (unsigned i = 1; i < pair->place_count; i++) {
        const place_t place = pair->places[i];
        const unsigned rank = place_rank(tcp, &place);
        unsigned k = i;

        while (k > 0 && place_rank(tcp, &pair->places[k - 1]) < rank) {
            pair->places[k] = pair->places[k - 1];
            k--;
        }
        pair->places[k] = place;
    }
}

dscomm_status_t tcp_places(const tcp_t *tcp, const void *address, size_t bytes,
                           pair_t *pair)
{
    char *text = g_strndup(address, bytes);
    char **lines = g_strsplit(text, "\n", PLACES_MAX);
    const guint count = g_strv_length(lines);
    bool fine = count >= 3 && strcmp(lines[0], ADDRESS_VERSION) == 0;
    const bool same_host = fine && strcmp(lines[1], tcp->host) == 0;

    pair->elsewhere = !same_host;
    pair->places = g_new0(place_t, count + 1);
    pair->place_count = 0;
    if (same_host && tcp->unix_listener >= 0 && strcmp(lines[2], "-"))
        unix_address(lines[2], &pair->places[pair->place_count++]);
    else
        for (guint i = 3; i < count && fine; i++)
            fine = place_read(lines[i], &pair->places[pair->place_count++]);
    if (fine)
        places_sort(tcp, pair);
    g_strfreev(lines);
    g_free(text);
    if (fine && pair->place_count)
        return DSCOMM_OK;
    g_clear_pointer(&pair->places, g_free);
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "its address in the store is malformed");
}

/* Finds the interface that has a lane's address of this host. */
static void lane_find_interface(lane_t *lane)
{
    struct ifaddrs *all, *one;
    place_t place;

    *lane->interface = '\0';
    if (!lane->from.length || getifaddrs(&all))
        return;
    for (one = all; one; one = one->ifa_next) {
        const int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;

        if (family != AF_INET && family != AF_INET6)
            continue;
        place.length = family == AF_INET ? sizeof place.address.v4
                                         : sizeof place.address.v6;
        memcpy(&place.address, one->ifa_addr, place.length);
        if (host_equal(&place, &lane->from))
            g_strlcpy(lane->interface, one->ifa_name, sizeof lane->interface);
    }
    freeifaddrs(all);
}

/* Adds the lane to place from the nearest address of this host, unless another
 * lane has its interface. */
static unsigned lane_add(const tcp_t *tcp, const place_t *place,
                         lane_t lanes[CONNECTIONS_MAX], unsigned count)
{
    lane_t lane = {.to = *place};

    if (!place_nearest(tcp, place, &lane.from))
        return count;
    lane_find_interface(&lane);
    for (unsigned l = 0; l < count; l++)
        if (host_equal(&lanes[l].from, &lane.from) ||
            (*lane.interface && !strcmp(lanes[l].interface, lane.interface)))
            return count;
    set_port(&lane.from.address, 0);
    lanes[count] = lane;
    return count + 1;
}

/* The lane of the main connection. A peer that has connected from a port of its
 * own listens at another one. */
static bool lane_main(const pair_t *pair, lane_t *lane)
{
    const conn_t *conn = pair->main;

    *lane = (lane_t){.to = conn->place};
    lane->from.length = sizeof lane->from.address;
    if (conn->unix_socket ||
        getsockname(conn->fd, &lane->from.address.any, &lane->from.length))
        lane->from = (place_t){0};
    else
        set_port(&lane->from.address, 0);
    lane_find_interface(lane);
    if (conn->outgoing)
        return true;
    for (unsigned p = 0; p < pair->place_count; p++)
        if (conn->unix_socket || host_equal(&pair->places[p], &conn->place)) {
            lane->to = pair->places[p];
            return true;
        }
    return false;
}

unsigned tcp_lanes(const tcp_t *tcp, const pair_t *pair,
                   lane_t lanes[CONNECTIONS_MAX])
{
    unsigned count = 1;

    if (!lane_main(pair, &lanes[0]))
        return 0;
    if (!tcp->side_by_side || pair->main->unix_socket)
        return count;
    for (unsigned p = 0; p < pair->place_count; p++)
        if (count < CONNECTIONS_MAX)
            count = lane_add(tcp, &pair->places[p], lanes, count);
    return count;
}
