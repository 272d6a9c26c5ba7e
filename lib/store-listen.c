/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets: which addresses a server takes. */
#include "config.h"

#include "lib/store-socket.h"

#include "lib/interface.h"
#include "lib/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void dscomm_priv_listen_close(dscomm_priv_listen_t *listening)
{
    for (int i = 0; i < listening->count; i++) {
        if (!listening->adopted) /* a forked child may have it as well */
            shutdown(listening->fds[i], SHUT_RDWR);
        close(listening->fds[i]);
    }
    listening->count = 0;
}

static void set_port(struct sockaddr *address, int port)
{
    if (address->sa_family == AF_INET)
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
}

/* Adds a socket for address, on the port of the first one where there is one.
 * Returns 0 or an errno. */
static int add(dscomm_priv_listen_t *listening, const struct sockaddr *wanted,
               socklen_t length, gboolean dual)
{
    struct sockaddr_storage own;
    struct sockaddr *address = (struct sockaddr *)&own;
    int fd = socket(wanted->sa_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    int on = 1, only = !dual, problem;

    if (fd < 0)
        return errno;
    memcpy(&own, wanted, length);
    set_port(address, listening->port);
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

/* All interfaces: one socket for both families, or IPv4 where IPv6 is off. */
static int add_all(dscomm_priv_listen_t *listening)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_ANY)}};
    int problem = add(listening, (struct sockaddr *)&v6, sizeof v6, TRUE);

    if (problem && problem != EADDRINUSE)
        problem = add(listening, (struct sockaddr *)&v4, sizeof v4, FALSE);
    return problem;
}

/* A file of hosts may give a name the same address twice. */
static gboolean is_repeated(const struct addrinfo *list,
                            const struct addrinfo *address)
{
    for (; list != address; list = list->ai_next) {
        if (list->ai_addrlen == address->ai_addrlen &&
            memcmp(list->ai_addr, address->ai_addr, list->ai_addrlen) == 0)
            return TRUE;
    }
    return FALSE;
}

/* One of loopback that is not the usual one. */
static gboolean is_own_name(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;

    return dscomm_priv_address_is_loopback(address) &&
           !(address->sa_family == AF_INET &&
             v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
}

/* The ways to oneself: the usual one, which must be free, and what the host's
 * name leads to, as 127.0.1.1, where this machine's other ranks come. */
static int add_loopback(dscomm_priv_listen_t *listening,
                        const struct addrinfo *list)
{
    struct sockaddr_in usual = {.sin_family = AF_INET,
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int problem = add(listening, (struct sockaddr *)&usual, sizeof usual, 0);
    const struct addrinfo *next = list;

    for (; next && !problem && listening->count < LISTEN_MAX / 2;
         next = next->ai_next) {
        if (is_own_name(next->ai_addr) && !is_repeated(list, next))
            problem = add(listening, next->ai_addr, next->ai_addrlen, 0);
        if (problem == EADDRNOTAVAIL || problem == EAFNOSUPPORT)
            problem = 0;
    }
    return problem;
}

/* An address that the kernel lists may be none that it gives yet, as one of
 * IPv6 that is new: one that works is enough. */
static int add_interfaces(dscomm_priv_listen_t *listening, const GArray *list)
{
    const int before = listening->count;
    int problem = 0, absent = 0;

    for (guint i = 0; i < list->len && !problem; i++) {
        dscomm_interface_t *row = &g_array_index(list, dscomm_interface_t, i);
        struct sockaddr *address = (struct sockaddr *)&row->address;

        if (listening->count < LISTEN_MAX &&
            !dscomm_priv_address_is_loopback(address))
            problem = add(listening, address, row->length, FALSE);
        if (problem == EADDRNOTAVAIL) {
            absent = problem;
            problem = 0;
        }
    }
    return problem || listening->count > before ? problem : absent;
}

/* What the environment chooses, behind the ways to oneself. */
static int add_chosen(dscomm_priv_listen_t *listening,
                      const struct addrinfo *host)
{
    const char *variable, *choice = dscomm_priv_interface_choice(&variable);
    GArray *list;
    int problem;

    if (!choice)
        return add_all(listening);
    if (dscomm_priv_interfaces(variable, choice, &list)) {
        dscomm_log(DSCOMM_LOG_WARN, "store", "%s", dscomm_last_error());
        return add_all(listening);
    }
    problem = add_loopback(listening, host);
    if (!problem)
        problem = add_interfaces(listening, list);
    g_array_unref(list);
    return problem;
}

static gboolean is_literal(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET, host, &address) == 1 ||
           inet_pton(AF_INET6, host, &address) == 1;
}

static gboolean is_local_name(const char *host)
{
    return g_ascii_strcasecmp(host, "localhost") == 0 ||
           g_str_has_prefix(host, "localhost.") ||
           g_str_has_prefix(host, "ip6-localhost");
}

/* "::" stands for both families. */
static gboolean is_any_v6(const struct sockaddr *address)
{
    const struct sockaddr_in6 *v6 = (const void *)address;

    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

/* Binds every address of the list that is this machine's. Of several, one in
 * use is an error only where the port was asked for. */
static int add_list(dscomm_priv_listen_t *listening, struct addrinfo *list,
                    gboolean loopback_is_fine)
{
    gboolean chosen = listening->port != 0;
    int problem = EADDRNOTAVAIL;

    for (struct addrinfo *next = list; next; next = next->ai_next) {
        int one;

        if (listening->count == LISTEN_MAX)
            break;
        if (is_repeated(list, next) ||
            (!loopback_is_fine &&
             dscomm_priv_address_is_loopback(next->ai_addr)))
            continue;
        one = add(listening, next->ai_addr, next->ai_addrlen,
                  is_any_v6(next->ai_addr));
        if (one == EADDRINUSE && chosen)
            return one;
        if (one && one != EADDRNOTAVAIL && one != EAFNOSUPPORT)
            problem = one;
    }
    return listening->count ? 0 : problem;
}

static dscomm_status_t fail_listen(const char *host, int port, int ports,
                                   int problem)
{
    char shown[64];

    dscomm_priv_quote(host, shown, sizeof shown);
    if (problem == EADDRINUSE && ports > 1)
        return dscomm_fail(
            DSCOMM_ERR_IO,
            "serve the store on %s: ports %d to %d, which the job's identity "
            "led to, are in use; set MASTER_PORT to a free one",
            shown, port, port + ports - 1);
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
    return dscomm_fail(DSCOMM_ERR_IO, "serve the store on %s, port %d: %s",
                       shown, port, g_strerror(problem));
}

/* "*" stands for all interfaces, or those that the environment chooses. */
static gboolean is_all(const char *host)
{
    return strcmp(host, "*") == 0;
}

/* One port, with all sockets or none. */
static int try_port(const char *host, struct addrinfo *list,
                    dscomm_priv_listen_t *listening)
{
    char shown[64];
    int problem = is_all(host)
                      ? add_chosen(listening, NULL)
                      : add_list(listening, list,
                                 is_literal(host) || is_local_name(host));

    if (problem == EADDRNOTAVAIL && !is_all(host)) {
        dscomm_log(DSCOMM_LOG_INFO, "store",
                   "'%s' leads to no address of this machine that others "
                   "reach: serving on its interfaces",
                   dscomm_priv_quote(host, shown, sizeof shown));
        problem = add_chosen(listening, list);
    }
    if (problem)
        dscomm_priv_listen_close(listening);
    return problem;
}

dscomm_status_t dscomm_priv_listen_first(const char *host, int port, int ports,
                                         dscomm_priv_deadline_t deadline,
                                         dscomm_priv_listen_t *ret_listen)
{
    dscomm_priv_listen_t listening;
    int problem = EADDRINUSE;
    dscomm_status_t status = DSCOMM_OK;
    struct addrinfo *list = NULL;
    gboolean again;

    if (!is_all(host))
        status = dscomm_priv_resolve(host, port, deadline, &list, &again);
    if (status)
        return status;
    for (int i = 0; i < ports && problem == EADDRINUSE; i++) {
        listening = (dscomm_priv_listen_t){.port = port + i};
        problem = try_port(host, list, &listening);
    }
    if (list)
        freeaddrinfo(list);
    if (problem)
        return fail_listen(host, port, ports, problem);
    *ret_listen = listening;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_listen(const char *host, int port,
                                   dscomm_priv_deadline_t deadline,
                                   dscomm_priv_listen_t *ret_listen)
{
    return dscomm_priv_listen_first(host, port, 1, deadline, ret_listen);
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
                           g_strerror(errno));
    fcntl(own, F_SETFL, fcntl(own, F_GETFL) | O_NONBLOCK);
    ret_listen->fds[0] = own;
    ret_listen->count = 1;
    ret_listen->port = has;
    ret_listen->adopted = TRUE;
    return DSCOMM_OK;
}

/* All interfaces of either family; IPv6 may be switched off even for the
 * loopback, IPv4 is not where a socket takes both. */
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
