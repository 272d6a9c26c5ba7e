/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's tables of TCP sockets, as the library reads them, agree with
 * fstat() and getsockname() for a connection of this process. */
#include "config.h"

#include "lib/base/socket-table.h"
#include "tests/tap.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    dscomm_priv_socket_end_t client, server;
    dscomm_priv_socket_row_t row; /* row of the client's socket */
    int rows; /* of it */
    unsigned long inode; /* of the server's */
} search_t;

static bool visit(const dscomm_priv_socket_row_t *row, void *arg)
{
    search_t *search = arg;

    if (dscomm_priv_socket_end_equal(&row->near, &search->client) &&
        dscomm_priv_socket_end_equal(&row->far, &search->server)) {
        search->row = *row;
        search->rows++;
    }
    if (dscomm_priv_socket_end_equal(&row->near, &search->server) &&
        dscomm_priv_socket_end_equal(&row->far, &search->client))
        search->inode = row->inode;
    return true;
}

static bool stop_at_once(const dscomm_priv_socket_row_t *row, void *arg)
{
    (void)row;
    ++*(int *)arg;
    return false;
}

static unsigned long inode_of(int fd)
{
    struct stat file;

    return fstat(fd, &file) ? 0 : file.st_ino;
}

/* name: getsockname() or getpeername(). */
static dscomm_priv_socket_end_t
end_of(int fd, int (*name)(int fd, struct sockaddr *address, socklen_t *length))
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    dscomm_priv_socket_end_t end;

    if (name(fd, (struct sockaddr *)&address, &length) ||
        !dscomm_priv_socket_end(&address, &end))
        bail("a socket without a name");
    return end;
}

/* Makes a socket that listens at any port of address; -1: there is no such
 * address. */
static int listen_at(const struct sockaddr *address, socklen_t length)
{
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int both = 0;

    if (fd < 0)
        return -1;
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both);
    if (!bind(fd, address, length) && !listen(fd, 1))
        return fd;
    close(fd);
    return -1;
}

static int connect_to(int listening)
{
    const struct sockaddr_in server = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)end_of(listening, getsockname).port),
    };
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (const struct sockaddr *)&server, sizeof server))
        bail("connect");
    return fd;
}

static void test_connection(const struct sockaddr *address, socklen_t length,
                            const char *about)
{
    const int listening = listen_at(address, length);
    search_t search = {.rows = 0};
    int fd, accepted, visits = 0;

    if (listening < 0) {
        skip("%s: no such address", about);
        return;
    }
    fd = connect_to(listening);
    search.client = end_of(fd, getsockname);
    search.server = end_of(fd, getpeername);
    dscomm_priv_socket_table(visit, &search);
    is_int(search.rows, 1, "%s: a connection is there once", about);
    ok(search.row.inode == inode_of(fd), "  with its inode");
    ok(search.row.user == geteuid(), "  its user");
    is_int((long)search.row.state, TCP_ESTABLISHED, "  and its state");
    is_int((long)search.inode, 0, "  the other end has no inode");
    accepted = accept(listening, NULL, NULL);
    dscomm_priv_socket_table(visit, &search);
    ok(search.inode == inode_of(accepted), "  until it is accepted");
    dscomm_priv_socket_table(stop_at_once, &visits);
    is_int(visits, 1, "  a visit that returns false is the last one");
    close(accepted);
    close(fd);
    close(listening);
}

int main(void)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET};
    const struct sockaddr_in6 both = {.sin6_family = AF_INET6};
    const struct sockaddr_storage other = {.ss_family = AF_UNIX};
    dscomm_priv_socket_end_t end;

    test_connection((const struct sockaddr *)&v4, sizeof v4, "IPv4");
    test_connection((const struct sockaddr *)&both, sizeof both, "both kinds");
    ok(!dscomm_priv_socket_end(&other, &end), "a Unix socket has no such end");
    return tap_done();
}
