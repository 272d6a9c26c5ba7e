/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store/tcp/socket-table.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 512 /* more than a line of tcp6 has */
#define HEX "%32[0-9A-F]" /* an address, in words of 8 digits */
#define HEX_BYTES 33
#define WORDS 4 /* of an IPv6 address, in network byte order */

typedef dscomm_priv_socket_end_t socket_end_t;
typedef dscomm_priv_socket_row_t socket_row_t;

static void end_set(socket_end_t *end, const uint32_t words[WORDS],
                    unsigned port)
{
    memcpy(&end->address, words, sizeof end->address);
    end->port = port;
}

static void end_map(socket_end_t *end, uint32_t address, unsigned port)
{
    const uint32_t words[WORDS] = {0, 0, htonl(0xffff), address};

    end_set(end, words, port);
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

/* Each word is the number that this machine reads in the address's bytes. */
static bool end_parse(socket_end_t *end, const char *hex, unsigned port)
{
    unsigned words[WORDS];
    const int count =
        sscanf(hex, "%8x%8x%8x%8x", &words[0], &words[1], &words[2], &words[3]);

    if (count == WORDS)
        end_set(end, words, port);
    else if (count == 1)
        end_map(end, words[0], port);
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
