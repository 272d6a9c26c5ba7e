/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of peers' processes on this host. A device tells of them only when it
 * has sent something often enough; the kernel does so at once. */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"
#include "backends/net/little.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BATCH 8 /* ends that are read at a time */

/* Returns a number that is equal on processes whose pids mean the same, and
 * that the user has not declared to be on different hosts; 0: unknown. */
static uint64_t host_number(void)
{
    const char *host = getenv("DSCOMM_HOST_ID");
    GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
    char *boot = NULL, space[64] = "";
    unsigned char digest[32];
    gsize size = sizeof digest;
    uint64_t number = 0;

    g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL);
    if (boot && readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0) {
        g_checksum_update(sum, (const guchar *)boot, -1);
        g_checksum_update(sum, (const guchar *)space, -1);
        g_checksum_update(sum, (const guchar *)(host ? host : ""), -1);
        g_checksum_get_digest(sum, digest, &size);
        number = get_64(digest);
    }
    g_checksum_free(sum);
    g_free(boot);
    return number;
}

static void ended(verbs_t *verbs, int peer)
{
    verbs_death_forget(verbs, &verbs->pairs[peer]);
    verbs_pair_fail(verbs, peer, DSCOMM_FAILURE_DIED, "its process has ended");
}

void verbs_deaths_open(verbs_t *verbs)
{
    verbs->own.host = host_number();
    verbs->own.pid = (uint32_t)getpid();
    verbs->deaths = epoll_create1(EPOLL_CLOEXEC);
}

void verbs_deaths_close(verbs_t *verbs)
{
    for (int p = 0; verbs->pairs && p < verbs->args.ranks; p++)
        verbs_death_forget(verbs, &verbs->pairs[p]);
    if (verbs->deaths >= 0)
        close(verbs->deaths);
}

void verbs_death_watch(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    struct epoll_event event = {.events = EPOLLIN, .data.fd = peer};

    if (verbs->deaths < 0 || !pair->address.host ||
        pair->address.host != verbs->own.host)
        return;
    pair->process = (int)syscall(SYS_pidfd_open, pair->address.pid, 0) + 1;
    if (!pair->process && errno == ESRCH)
        ended(verbs, peer);
    else if (pair->process &&
             epoll_ctl(verbs->deaths, EPOLL_CTL_ADD, pair->process - 1, &event))
        verbs_death_forget(verbs, pair);
}

void verbs_death_forget(const verbs_t *verbs, pair_t *pair)
{
    const int fd = pair->process - 1;

    if (fd < 0)
        return;
    /* A forked child may have it, too: closing alone would leave it there. */
    epoll_ctl(verbs->deaths, EPOLL_CTL_DEL, fd, NULL);
    close(fd);
    pair->process = 0;
}

void verbs_deaths_read(verbs_t *verbs)
{
    struct epoll_event events[BATCH];
    const int count =
        verbs->deaths < 0 ? 0 : epoll_wait(verbs->deaths, events, BATCH, 0);

    for (int i = 0; i < count; i++)
        ended(verbs, events[i].data.fd);
}
