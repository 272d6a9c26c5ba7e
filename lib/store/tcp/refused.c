/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks with another secret, and whether the kernel says that they are of this
 * user. */
#include "config.h"

#include "lib/store/tcp/refused.h"

#include "lib/base/status.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOKUPS_MAX 16 /* connections whose user is looked for */
#define LINE_MAX_BYTES 512 /* of /proc/net/tcp6, and more */
#define UID_UNMAPPED 65534 /* of users that this namespace does not know */
#define TCP_ESTABLISHED_STATE 1

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

/* The end of a connection, as /proc/net/tcp and, if v6, tcp6 have it. */
static bool write_end(const struct sockaddr_storage *address, bool v6,
                      char text[48])
{
    const struct sockaddr_in *in4 = (const void *)address;
    const struct sockaddr_in6 *in6 = (const void *)address;
    uint32_t words[4];

    if (address->ss_family == AF_INET && !v6) {
        g_snprintf(text, 48, "%08X:%04X", in4->sin_addr.s_addr,
                   ntohs(in4->sin_port));
        return true;
    }
    if (address->ss_family != AF_INET6)
        return false;
    memcpy(words, &in6->sin6_addr, sizeof words);
    if (v6)
        g_snprintf(text, 48, "%08X%08X%08X%08X:%04X", words[0], words[1],
                   words[2], words[3], ntohs(in6->sin6_port));
    else
        g_snprintf(text, 48, "%08X:%04X", words[3], ntohs(in6->sin6_port));
    return v6 || IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
}

/* The user of the socket of this machine whose two ends are these; false: there
 * is none. */
static bool find_user(const char *path, const char *ends, unsigned *ret_user)
{
    FILE *file = fopen(path, "re");
    char line[LINE_MAX_BYTES];
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, ends);
        unsigned state;

        found = at &&
                sscanf(at + strlen(ends), " %x %*x:%*x %*x:%*x %*x %u", &state,
                       ret_user) == 2 &&
                state == TCP_ESTABLISHED_STATE;
    }
    if (file)
        fclose(file);
    return found;
}

/* Whether the other end of fd is a socket of this user on this machine. */
static bool is_own_user(int fd)
{
    static const char *const paths[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    struct sockaddr_storage peer, own;
    socklen_t peer_length = sizeof peer, own_length = sizeof own;
    char ends[100], far[48], near[48];
    unsigned user;

    if (getpeername(fd, (struct sockaddr *)&peer, &peer_length) ||
        getsockname(fd, (struct sockaddr *)&own, &own_length))
        return false;
    for (int v6 = 0; v6 < 2; v6++) {
        if (!write_end(&peer, v6, far) || !write_end(&own, v6, near))
            continue;
        g_snprintf(ends, sizeof ends, " %s %s ", far, near);
        if (find_user(paths[v6], ends, &user))
            return user == geteuid() && user != UID_UNMAPPED;
    }
    return false;
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

void dscomm_priv_refused_note(refused_t *refused, int fd, const char *peer,
                              const dscomm_priv_rank_t *rank)
{
    dscomm_priv_rank_t said = *rank;
    bool member, first;

    said.name[sizeof said.name - 1] = said.world[sizeof said.world - 1] = '\0';
    pthread_mutex_lock(&refused->lock);
    member = !refused->settled && !refused->member &&
             refused->count < LOOKUPS_MAX && *refused->world &&
             !strcmp(said.world, refused->world) && is_own_user(fd);
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
