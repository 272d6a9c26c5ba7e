/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of the other ranks: whether they are alive, and their state. */
#include "config.h"

#include "backends/shm/shm.h"
#include "lib/base/kernel.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

shm_peers_t *shm_peers_new(int count)
{
    const size_t each = sizeof(pid_t) + sizeof(int);
    shm_peers_t *peers = g_try_malloc0(sizeof *peers + (size_t)count * each);

    if (!peers)
        return NULL;
    peers->references = 1;
    peers->count = count;
    peers->fds = (int *)(peers->pids + count);
    for (int i = 0; i < count; i++)
        peers->fds[i] = -1;
    return peers;
}

void shm_peers_free(shm_peers_t *peers)
{
    if (!peers || atomic_fetch_sub(&peers->references, 1) != 1)
        return;
    for (int i = 0; i < peers->count; i++)
        if (peers->fds[i] >= 0)
            close(peers->fds[i]);
    g_free(peers);
}

/* Whether a process has ended before it left the group. */
static bool peer_is_dead(const shm_t *shm, int rank, const struct pollfd *entry)
{
    return entry->revents & POLLIN && shm_left(shm, rank) < SHM_LEFT;
}

bool shm_peers_ended(const shm_t *shm, int rank)
{
    struct pollfd one = {shm->peers->fds[shm->peer[rank]], POLLIN, 0};

    return poll(&one, 1, 0) > 0 && peer_is_dead(shm, rank, &one);
}

int shm_peers_dead(const shm_t *shm)
{
    struct pollfd polls[SHM_MAX_RANKS];

    for (int r = 0; r < shm->ranks; r++)
        polls[r] = (struct pollfd){shm->peers->fds[shm->peer[r]], POLLIN, 0};
    if (poll(polls, (nfds_t)shm->ranks, 0) <= 0)
        return -1;
    for (int r = 0; r < shm->ranks; r++)
        if (peer_is_dead(shm, r, &polls[r]))
            return r;
    return -1;
}

bool shm_peers_stopped(const shm_t *shm, int rank)
{
    const char state =
        dscomm_priv_process_state(shm->peers->pids[shm->peer[rank]]);

    return state == 'T' || state == 't';
}

const char *shm_peers_describe(const shm_t *shm, int rank, char *buffer,
                               size_t size)
{
    static const struct {
        char letter;
        const char *text;
    } states[] = {{'T', ", stopped by a signal"},
                  {'t', ", stopped by a debugger"},
                  {'Z', ", dead"},
                  {'X', ", dead"},
                  {'D', ", in uninterruptible sleep"},
                  {'R', ", running"},
                  {'S', ", sleeping"}};
    pid_t pid = shm->peers->pids[shm->peer[rank]];
    char letter = dscomm_priv_process_state(pid);
    const char *text = "";

    for (size_t i = 0; i < G_N_ELEMENTS(states); i++)
        if (states[i].letter == letter)
            text = states[i].text;
    snprintf(buffer, size, "rank %d (pid %ld%s)", shm_number(shm, rank),
             (long)pid, text);
    return buffer;
}
