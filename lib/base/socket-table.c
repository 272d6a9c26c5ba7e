/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/base/socket-table.h"

#include "lib/base/process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 512 /* longer than a line of tcp6 */
#define HEX "%32[0-9A-F]" /* an address, in groups of 8 digits */
#define HEX_BYTES 33
#define WORDS 4 /* of an IPv6 address, in network byte order */

typedef dscomm_priv_socket_end_t socket_end_t;
typedef dscomm_priv_socket_row_t socket_row_t;

static void end_map(socket_end_t *end, uint32_t address, unsigned port)
{
    *end = (socket_end_t){.port = port};
    end->address.s6_addr32[2] = htonl(0xffff);
    end->address.s6_addr32[3] = address;
}

bool dscomm_priv_socket_end(const struct sockaddr_storage *address,
                            socket_end_t *ret_end)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->ss_family == AF_INET)
        end_map(ret_end, v4->sin_addr.s_addr, ntohs(v4->sin_port));
    else if (address->ss_family == AF_INET6)
        *ret_end = (socket_end_t){v6->sin6_addr, ntohs(v6->sin6_port)};
    return address->ss_family == AF_INET || address->ss_family == AF_INET6;
}

bool dscomm_priv_socket_end_equal(const socket_end_t *a, const socket_end_t *b)
{
    return a->port == b->port && IN6_ARE_ADDR_EQUAL(&a->address, &b->address);
}

/* Reads an address. The kernel prints each 32-bit word in this machine's byte
 * order. */
static bool end_parse(socket_end_t *end, const char *hex, unsigned port)
{
    uint32_t words[WORDS] = {0};
    const int count =
        sscanf(hex, "%8x%8x%8x%8x", &words[0], &words[1], &words[2], &words[3]);

    end_map(end, words[0], port);
    if (count == WORDS)
        memcpy(&end->address, words, sizeof end->address);
    return count == WORDS || count == 1;
}

static bool row_parse(socket_row_t *row, const char *line)
{
    char near[HEX_BYTES], far[HEX_BYTES];
    unsigned near_port, far_port;

    return sscanf(line,
                  " %*d: " HEX ":%x " HEX ":%x %x %*x:%*x %*x:%*x %*x %u %*d "
                  "%lu",
                  near, &near_port, far, &far_port, &row->state, &row->user,
                  &row->inode) == 7 &&
           end_parse(&row->near, near, near_port) &&
           end_parse(&row->far, far, far_port);
}

static bool visit_file(const char *path,
                       bool (*visit)(const socket_row_t *row, void *arg),
                       void *arg)
{
    FILE *file = fopen(path, "re");
    char line[LINE_BYTES];
    bool goes_on = true;
    socket_row_t row;

    while (file && goes_on && fgets(line, sizeof line, file))
        goes_on = !row_parse(&row, line) || visit(&row, arg);
    if (file)
        fclose(file);
    return goes_on;
}

void dscomm_priv_socket_table(bool (*visit)(const socket_row_t *row, void *arg),
                              void *arg)
{
    if (visit_file("/proc/self/net/tcp", visit, arg))
        visit_file("/proc/self/net/tcp6", visit, arg);
}

/* A server's sockets in the tables. The process that has one of their inodes
 * open is the server. */
typedef struct {
    socket_end_t end;
    bool here; /* the server is on this machine */
    unsigned long accepted, listening; /* inodes, or 0 */
} sockets_t;

/* True for a socket that listens on all interfaces. */
static bool is_any(const struct in6_addr *address)
{
    return IN6_IS_ADDR_UNSPECIFIED(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && !address->s6_addr32[3]);
}

/* A connection to the server's address shows that the server is on this
 * machine. A connection without an inode has not been accepted, because the
 * server is stopped. */
static bool note_socket(const socket_row_t *row, void *arg)
{
    sockets_t *sockets = arg;
    const bool same = dscomm_priv_socket_end_equal(&row->near, &sockets->end);

    if (row->near.port != sockets->end.port)
        return true;
    if (row->state == TCP_LISTEN) {
        if (same || (is_any(&row->near.address) && !sockets->listening))
            sockets->listening = row->inode;
    } else if (same) {
        sockets->here = true;
        if (row->inode)
            sockets->accepted = row->inode;
    }
    return true;
}

/* True if the process has the socket open, and this process may see that. */
static bool has_socket(const char *pid, unsigned long inode)
{
    char path[300], link[64], wanted[64];
    struct dirent *entry;
    bool found = false;
    DIR *folder;

    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    folder = opendir(path);
    while (folder && !found && (entry = readdir(folder))) {
        const ssize_t length =
            readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);

        link[length > 0 ? length : 0] = '\0';
        found = !strcmp(link, wanted);
    }
    if (folder)
        closedir(folder);
    return found;
}

/* Finds the stopped process that has the socket open, or 0. Few processes are
 * stopped, so the state of a process is read before its files. */
static long find_stopped(unsigned long inode, const char **ret_how)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    long found = 0;

    while (folder && !found && (entry = readdir(folder))) {
        const long pid = strtol(entry->d_name, NULL, 10);

        if (pid <= 0)
            continue;
        *ret_how = dscomm_priv_process_stopped(pid);
        if (*ret_how && has_socket(entry->d_name, inode))
            found = pid;
    }
    if (folder)
        closedir(folder);
    return found;
}

long dscomm_priv_socket_stopped(const struct sockaddr_storage *address,
                                const char **ret_how)
{
    sockets_t sockets = {.here = false};

    if (!dscomm_priv_socket_end(address, &sockets.end))
        return 0;
    dscomm_priv_socket_table(note_socket, &sockets);
    if (!sockets.accepted)
        sockets.accepted = sockets.listening;
    return sockets.here && sockets.accepted
               ? find_stopped(sockets.accepted, ret_how)
               : 0;
}
