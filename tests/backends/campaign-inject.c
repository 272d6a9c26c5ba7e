/* SPDX-License-Identifier: BSD-3-Clause */
/* See campaign.h. The requests are those of the whole process: the library's,
 * and those of the libraries that it uses. */
#include "config.h"

#include "tests/backends/campaign.h"
#include "tests/backends/inject-memory.h"
#include "tests/backends/inject.h"

#include <errno.h>
#include <stdatomic.h>

static const struct {
    campaign_request_t request;
    int error;
} calls[INJECT_CALLS] = {
    [INJECT_MMAP] = {CAMPAIGN_MMAP, ENOMEM},
    [INJECT_MEMFD_CREATE] = {CAMPAIGN_MEMFD, EMFILE},
    [INJECT_SENDMSG] = {CAMPAIGN_SENDMSG, ENOBUFS},
    [INJECT_SENDMSG_INET] = {CAMPAIGN_SENDMSG, ENOBUFS},
};

/* The request that fails. Written before armed is. */
static campaign_request_t wanted;
static long failing;
static atomic_int armed;
static atomic_long made;

INJECT_UNWATCHED static int fails(campaign_request_t request)
{
    return atomic_load(&armed) && request == wanted &&
           atomic_fetch_add(&made, 1) + 1 == failing;
}

INJECT_UNWATCHED int inject_memory_fails(void)
{
    return fails(CAMPAIGN_MALLOC);
}

INJECT_UNWATCHED int inject_error(inject_call_t call)
{
    return calls[call].error && fails(calls[call].request) ? calls[call].error
                                                           : 0;
}

INJECT_UNWATCHED size_t inject_part(size_t size)
{
    return size;
}

void campaign_inject_prepare(void)
{
    inject_memory_prepare();
    inject_look_up();
}

void campaign_inject_arm(campaign_request_t request, long k)
{
    wanted = request;
    failing = k;
    atomic_store(&armed, 1);
}

int campaign_inject_disarm(void)
{
    atomic_store(&armed, 0);
    return atomic_load(&made) >= failing;
}
