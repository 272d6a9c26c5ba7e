/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of processes with another secret, and whether the kernel says that
 * they are of this user. */
#include "config.h"

#include "lib/store/tcp/refused.h"

#include "lib/base/status.h"
#include "lib/store/tcp/socket-owner.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UID_UNMAPPED 65534 /* of users that this namespace does not know */

typedef dscomm_priv_refused_t refused_t;

void dscomm_priv_refused_init(refused_t *refused, const char *world,
                              bool guarded, bool quiet)
{
    *refused = (refused_t){.guarded = guarded, .quiet = quiet};
    g_strlcpy(refused->world, world, sizeof refused->world);
}

/* Who is at the other end */

/* Looks for the socket with these ends. */
typedef struct {
    dscomm_priv_socket_end_t near, far;
    bool own_user; /* it is there, and of this user */
} lookup_t;

static bool look_at(const dscomm_priv_socket_row_t *row, void *arg)
{
    lookup_t *lookup = arg;

    if (row->state != TCP_ESTABLISHED ||
        !dscomm_priv_socket_end_equal(&row->near, &lookup->near) ||
        !dscomm_priv_socket_end_equal(&row->far, &lookup->far))
        return true;
    lookup->own_user = row->user == geteuid() && row->user != UID_UNMAPPED;
    return false;
}

static bool is_loopback(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

/* Prepares to look for the other end of fd; false: it is on another machine,
 * since the kernel gives both ends of a connection here one address, or two of
 * the loopback network. */
static bool lookup_init(lookup_t *lookup, int fd)
{
    struct sockaddr_storage peer, own;
    socklen_t peer_length = sizeof peer, own_length = sizeof own;

    if (getpeername(fd, (struct sockaddr *)&peer, &peer_length) ||
        getsockname(fd, (struct sockaddr *)&own, &own_length) ||
        !dscomm_priv_socket_end(&peer, &lookup->near) ||
        !dscomm_priv_socket_end(&own, &lookup->far))
        return false;
    return IN6_ARE_ADDR_EQUAL(&lookup->near.address, &lookup->far.address) ||
           (is_loopback(&lookup->near.address) &&
            is_loopback(&lookup->far.address));
}

/* Reports */

/* Whether rank, on the connection fd, is of the server's world and this user. A
 * lookup takes longer the more connections this machine has, so there are few;
 * ranks on other machines need none. */
static bool is_member(refused_t *refused, int fd,
                      const dscomm_priv_rank_t *rank)
{
    lookup_t lookup = {.own_user = false};

    if ((*refused->world && strcmp(rank->world, refused->world)) ||
        !lookup_init(&lookup, fd) || refused->lookups == REFUSED_LOOKUPS_MAX)
        return false;
    refused->lookups++;
    dscomm_priv_socket_table(look_at, &lookup);
    return lookup.own_user;
}

/* There is room for all members, and for some strangers. */
static void refused_keep(refused_t *refused, bool member, const char *peer,
                         const dscomm_priv_rank_t *rank)
{
    const size_t length = strlen(refused->kept);

    if (!member && refused->strangers++ >= REFUSED_KEPT_MAX)
        return;
    snprintf(refused->kept + length, sizeof refused->kept - length,
             "%d\t%s\t%s\t%s\n", member, rank->world, peer, rank->name);
}

/* Whether rank looks for its job's server among several ports, and has found
 * this one. A world ends with its job's name. */
static bool is_of_other_job(const refused_t *refused,
                            const dscomm_priv_rank_t *rank)
{
    const char *own = strrchr(refused->world, ' ');
    const char *other = strrchr(rank->world, ' ');

    return own && other && own[1] && strcmp(own, other) != 0;
}

void dscomm_priv_refused_note(refused_t *refused, int fd, const char *peer,
                              const dscomm_priv_rank_t *rank)
{
    dscomm_priv_rank_t said = *rank;

    dscomm_priv_tidy(said.name, sizeof said.name);
    dscomm_priv_tidy(said.world, sizeof said.world);
    if (is_of_other_job(refused, &said))
        return;
    refused_keep(refused, is_member(refused, fd, &said), peer, &said);
    if (refused->count++ == 0 && !refused->quiet)
        dscomm_log(DSCOMM_LOG_WARN, "store",
                   "%s, which says that it is %s, leaves, since its job secret "
                   "differs; give all processes of the job the same "
                   "DSCOMM_JOB_SECRET or DSCOMM_JOB_SECRET_FILE, or none of "
                   "them one",
                   peer, said.name);
}

char *dscomm_priv_refused_text(const refused_t *refused)
{
    return g_strdup_printf("%u %d\n%s", refused->count, refused->guarded,
                           refused->kept);
}
