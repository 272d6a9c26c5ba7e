/* SPDX-License-Identifier: BSD-3-Clause */
/* See campaign.h. The requests are those of the whole process: the library's,
 * and those of the libraries that it uses. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/backends/campaign.h"
#include "tests/backends/frames.h"
#include "tests/backends/inject-memory.h"
#include "tests/backends/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define FRAMES_MAX 64

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
static atomic_int within; /* MPI has made the one that failed */

/* Libraries that make requests for others. UCX's libucm takes the place of
 * mmap() for the whole process. */
static const char *const between[] = {"libc.",     "libglib-",  "libucm.",
                                      "libevent",  "libhwloc.", "libgcc_s.",
                                      "ld-linux-", NULL};
static const char *const of_mpi[] = {
    "libmpi.", "libmpich.", "libopen-pal.", "libopen-rte.", "mca_", "libpmix.",
    "libucp.", "libuct.",   "libucs.",      "libfabric.",   NULL};

INJECT_UNWATCHED static int begins(const char *path, const char *const *names)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

    for (; *names; names++)
        if (!strncmp(name, *names, strlen(*names)))
            return 1;
    return 0;
}

INJECT_UNWATCHED int campaign_inject_is_mpi(const char *const *paths)
{
    while (*paths && begins(*paths, between))
        paths++;
    return *paths && begins(*paths, of_mpi);
}

/* Whether MPI calls. The innermost frames are this program's, but for a
 * sanitizer's that takes the place of backtrace(). */
INJECT_UNWATCHED static int is_called_by_mpi(void)
{
    void *frames[FRAMES_MAX];
    const char *paths[FRAMES_MAX + 1] = {NULL};
    const int depth = frames_get(frames, FRAMES_MAX);
    Dl_info own, info;
    int count = 0, begun = 0;

    if (!dladdr((void *)is_called_by_mpi, &own))
        return 0;
    for (int i = 0; i < depth; i++) {
        const int known = dladdr(frames[i], &info);

        if (!count && known && info.dli_fbase == own.dli_fbase)
            begun = 1;
        else if (begun)
            paths[count++] = known ? info.dli_fname : "?";
    }
    return campaign_inject_is_mpi(paths);
}

INJECT_UNWATCHED static int fails(campaign_request_t request)
{
    if (!atomic_load(&armed) || request != wanted ||
        atomic_fetch_add(&made, 1) + 1 != failing)
        return 0;
    atomic_store(&within, is_called_by_mpi());
    return 1;
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
    void *frame;

    inject_memory_prepare();
    frames_get(&frame, 1); /* may allocate memory the first time */
    inject_look_up();
}

void campaign_inject_arm(campaign_request_t request, long k)
{
    wanted = request;
    failing = k;
    atomic_store(&made, 0);
    atomic_store(&within, 0);
    atomic_store(&armed, 1);
}

int campaign_inject_disarm(void)
{
    atomic_store(&armed, 0);
    return atomic_load(&made) >= failing;
}

int campaign_inject_within(void)
{
    return atomic_load(&within);
}
