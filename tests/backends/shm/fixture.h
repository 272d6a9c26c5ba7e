/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of shm in one process: several shm_t on one segment. */
#ifndef TESTS_SHM_FIXTURE_H
#define TESTS_SHM_FIXTURE_H

#include "config.h"

#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "backends/shm/shm.h"
#include "lib/group/group.h"
#include "tests/tap.h"

static inline shm_t *fixture_rank(int rank, int ranks,
                                  const shm_layout_t *layout, int fd)
{
    static char name[] = "test";
    static int world_ranks[] = {0};
    static dscomm_group_t group = {.identity.name = name,
                                   .identity.world_ranks = world_ranks};
    shm_t *shm = g_new0(shm_t, 1);

    shm->group = &group;
    shm->peers = shm_peers_new(ranks);
    shm->peer = g_new0(int, (gsize)ranks);
    shm->world_ranks = g_new0(int, (gsize)ranks);
    for (int r = 0; r < ranks; r++)
        shm->peer[r] = shm->world_ranks[r] = r;
    shm->rank = rank;
    shm->ranks = ranks;
    shm->layout = *layout;
    shm->fd = dup(fd);
    shm->name = g_strdup("test");
    shm->path = g_new0(shm_path_t, (gsize)ranks);
    if (shm_segment_map(shm))
        bail("cannot map: %s", dscomm_last_error());
    shm_p2p_new(shm);
    return shm;
}

/* Returns the status of a message between the first two ranks. */
static inline int fixture_message(shm_t **shms, const dscomm_request_t *request)
{
    for (int i = 0; i < 10000 && request->status == DSCOMM_IN_PROGRESS; i++) {
        shm_p2p_progress(shms[0]);
        shm_p2p_progress(shms[1]);
    }
    return request->status;
}

/* Makes one mapping of a new segment for each rank. */
static inline void fixture_open(shm_t **shms, int ranks)
{
    shm_layout_t layout;
    int fd = -1;

    if (shm_layout_make(ranks, &layout) ||
        shm_segment_create("test", &layout, &fd))
        bail("cannot make a segment: %s", dscomm_last_error());
    for (int r = 0; r < ranks; r++)
        shms[r] = fixture_rank(r, ranks, &layout, fd);
    close(fd);
}

static inline void fixture_close(shm_t **shms, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        shm_pages_free(shms[r]);
        shm_p2p_free(shms[r]);
        shm_heap_free(shms[r]);
        shm_segment_unmap(shms[r]);
        close(shms[r]->fd);
        shm_peers_free(shms[r]->peers);
        g_free(shms[r]->peer);
        g_free(shms[r]->world_ranks);
        g_free(shms[r]->path);
        g_free(shms[r]->name);
        g_free(shms[r]);
    }
}

#endif
