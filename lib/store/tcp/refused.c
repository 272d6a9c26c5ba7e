/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks with another secret, and whether the kernel says that they are of this
 * user. */
#include "config.h"

#include "lib/store/tcp/refused.h"

#include "lib/base/status.h"
#include "lib/store/tcp/socket-table.h"

#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define LOOKUPS_MAX 16 /* connections whose user a server looks for */
#define UID_UNMAPPED 65534 /* of users that this namespace does not know */

typedef dscomm_priv_refused_t refused_t;

void dscomm_priv_refused_init(refused_t *refused, const char *world,
                              bool guarded)
{
    *refused = (refused_t){.guarded = guarded};
    g_strlcpy(refused->world, world, sizeof refused->world);
    pthread_mutex_init(&refused->lock, NULL);
}

void dscomm_priv_refused_clear(refused_t *refused)
{
    pthread_mutex_destroy(&refused->lock);
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

/* What is known of them */

static void keep(refused_t *refused, const char *peer,
                 const dscomm_priv_rank_t *rank)
{
    g_strlcpy(refused->peer, peer, sizeof refused->peer);
    dscomm_priv_quote(rank->name, refused->rank.name,
                      sizeof refused->rank.name);
    g_strlcpy(refused->rank.world, rank->world, sizeof refused->rank.world);
}

/* Whether rank, on the connection fd, is of the server's world and this user. A
 * lookup takes longer the more connections this machine has, so there are few;
 * ranks on other machines need none. */
static bool is_member(refused_t *refused, int fd,
                      const dscomm_priv_rank_t *rank)
{
    lookup_t lookup = {.own_user = false};

    if (!*refused->world || strcmp(rank->world, refused->world) ||
        !lookup_init(&lookup, fd) || refused->lookups == LOOKUPS_MAX)
        return false;
    refused->lookups++;
    dscomm_priv_socket_table(look_at, &lookup);
    return lookup.own_user;
}

void dscomm_priv_refused_note(refused_t *refused, int fd, const char *peer,
                              const dscomm_priv_rank_t *rank)
{
    dscomm_priv_rank_t said = *rank;
    bool member, first;

    said.name[sizeof said.name - 1] = said.world[sizeof said.world - 1] = '\0';
    pthread_mutex_lock(&refused->lock);
    member =
        !refused->settled && !refused->member && is_member(refused, fd, &said);
    first = !refused->settled && refused->count == 0;
    if (first || member)
        keep(refused, peer, &said);
    refused->member = refused->member || member;
    if (!refused->settled)
        refused->count++;
    pthread_mutex_unlock(&refused->lock);
    if (first)
        dscomm_log(DSCOMM_LOG_WARN, "store",
                   "%s, which says that it is %s, leaves, since its job secret "
                   "differs; give all processes of the job the same "
                   "DSCOMM_JOB_SECRET or DSCOMM_JOB_SECRET_FILE, or none of "
                   "them one",
                   peer, refused->rank.name);
}

int dscomm_priv_refused_fail(refused_t *refused, bool final)
{
    int count = 0;

    if (!refused)
        return 0;
    pthread_mutex_lock(&refused->lock);
    if (final || refused->member)
        count = (int)MIN(refused->count, (unsigned)G_MAXINT);
    if (count)
        dscomm_fail(
            DSCOMM_ERR_MISMATCH,
            "%d connection%s refused at rank 0's store, %sfrom %s, which says "
            "that it is %s: it has %s; give all processes of the job the same "
            "DSCOMM_JOB_SECRET or DSCOMM_JOB_SECRET_FILE, or none of them one",
            count, count > 1 ? "s were" : " was", count > 1 ? "one " : "",
            refused->peer, refused->rank.name,
            refused->guarded ? "another job secret than rank 0, or none"
                             : "a job secret, and rank 0 has none");
    pthread_mutex_unlock(&refused->lock);
    return count;
}

void dscomm_priv_refused_settle(refused_t *refused)
{
    if (!refused)
        return;
    pthread_mutex_lock(&refused->lock);
    refused->settled = true;
    refused->count = 0;
    refused->member = false;
    pthread_mutex_unlock(&refused->lock);
}
