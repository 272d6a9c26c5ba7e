/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's table of TCP sockets gives the number of the server's socket,
 * and the process that has it open is the server. */
#include "config.h"

#include "lib/store/tcp/stopped-server.h"

#include "lib/rendezvous/stopped.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An IPv6 address as /proc/net/tcp6 has it, four words in hexadecimal. IPv4
 * addresses are mapped: a socket for both kinds has them so. */
#define ADDRESS_HEX 32
#define MAPPED "0000000000000000FFFF0000"
#define STATE_LISTEN 0x0A

/* Sockets of the server. */
typedef struct {
    char address[ADDRESS_HEX + 1];
    unsigned port;
    bool here; /* the address is this machine's */
    unsigned long accepted, listening; /* their numbers, or 0 */
} sockets_t;

static bool sockets_init(sockets_t *sockets,
                         const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    uint32_t words[4];

    memset(sockets, 0, sizeof *sockets);
    sockets->port = ntohs(v4->sin_port); /* at the same place in both */
    if (address->ss_family == AF_INET) {
        snprintf(sockets->address, sizeof sockets->address, MAPPED "%08X",
                 v4->sin_addr.s_addr);
        return true;
    }
    if (address->ss_family != AF_INET6)
        return false;
    memcpy(words, &v6->sin6_addr, sizeof words);
    snprintf(sockets->address, sizeof sockets->address, "%08X%08X%08X%08X",
             words[0], words[1], words[2], words[3]);
    return true;
}

/* All zeros, mapped or not: a socket that listens on all interfaces. */
static bool is_any(const char *address)
{
    return strspn(address + strlen(MAPPED), "0") == 8 &&
           (strspn(address, "0") == ADDRESS_HEX ||
            !strncmp(address, MAPPED, strlen(MAPPED)));
}

/* Any connection to the server's address shows that it is here, also one that a
 * stopped server has not accepted, which has no number. */
static void note_socket(sockets_t *sockets, const char *address, unsigned state,
                        unsigned long number)
{
    const bool same = !strcmp(address, sockets->address);

    if (state == STATE_LISTEN) {
        if (same || (is_any(address) && !sockets->listening))
            sockets->listening = number;
    } else if (same) {
        sockets->here = true;
        if (number)
            sockets->accepted = number;
    }
}

static void read_table(sockets_t *sockets, const char *path)
{
    char line[512], own[ADDRESS_HEX + 1];
    FILE *table = fopen(path, "re");

    while (table && fgets(line, sizeof line, table)) {
        char address[sizeof MAPPED + ADDRESS_HEX];
        unsigned port, state;
        unsigned long number;

        if (sscanf(line, " %*d: %32[0-9A-F]:%x %*s %x %*s %*s %*s %*u %*d %lu",
                   own, &port, &state, &number) != 4 ||
            port != sockets->port)
            continue;
        snprintf(address, sizeof address, "%s%s",
                 strlen(own) < ADDRESS_HEX ? MAPPED : "", own);
        if (strlen(address) == ADDRESS_HEX)
            note_socket(sockets, address, state, number);
    }
    if (table)
        fclose(table);
}

/* Does the process have the socket open, as far as this one may know? */
static bool has_socket(const char *pid, unsigned long number)
{
    char path[300], link[64], wanted[64];
    struct dirent *entry;
    bool found = false;
    DIR *folder;

    snprintf(wanted, sizeof wanted, "socket:[%lu]", number);
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

/* The stopped process that has the socket open, or 0. Few processes are
 * stopped, so their states are read first. */
static long find_stopped(unsigned long number, const char **ret_how)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    long found = 0;

    while (folder && !found && (entry = readdir(folder))) {
        const long pid = strtol(entry->d_name, NULL, 10);

        if (pid <= 0)
            continue;
        *ret_how = dscomm_priv_process_stopped(pid);
        if (*ret_how && has_socket(entry->d_name, number))
            found = pid;
    }
    if (folder)
        closedir(folder);
    return found;
}

void dscomm_priv_stopped_server(const char *peer,
                                const struct sockaddr_storage *address,
                                bool by_rank_0, char *text, size_t size)
{
    const char *how = NULL;
    sockets_t sockets;
    long pid = 0;

    if (sockets_init(&sockets, address)) {
        read_table(&sockets, "/proc/self/net/tcp");
        read_table(&sockets, "/proc/self/net/tcp6");
        if (sockets.here && (sockets.accepted || sockets.listening))
            pid = find_stopped(
                sockets.accepted ? sockets.accepted : sockets.listening, &how);
    }
    if (!pid)
        snprintf(text, size, "the store at %s does not answer", peer);
    else if (by_rank_0)
        snprintf(text, size,
                 "the store at %s does not answer: rank 0 (pid %ld), which "
                 "serves it, is stopped%s",
                 peer, pid, how);
    else
        snprintf(text, size,
                 "the store at %s does not answer: its server (pid %ld) is "
                 "stopped%s",
                 peer, pid, how);
}
