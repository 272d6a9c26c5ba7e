/* SPDX-License-Identifier: BSD-3-Clause */
/* The true local rank, see local-rank.h. */
#include "config.h"

#include "env/local-rank.h"

#include <glib.h>
#include <string.h>

int dscomm_priv_true_local_rank(const dscomm_env_t *env)
{
    const int local = dscomm_env_local_rank(env);
    const int size = dscomm_env_local_size(env);
    const int node = dscomm_env_node_rank(env);
    const char *nodes = g_getenv("GROUP_WORLD_SIZE");
    gint64 own = dscomm_env_rank(env) - (gint64)MAX(node, 0) * size;

    if (strcmp(dscomm_env_source(env), "torchrun") != 0 || local != 0 ||
        size < 1 || dscomm_env_world_size(env) % size != 0 ||
        (nodes && g_ascii_strtoll(nodes, NULL, 10) * size !=
                      dscomm_env_world_size(env)) ||
        (node < 0 && size != dscomm_env_world_size(env)) || own < 0 ||
        own >= size)
        return local;
    return (int)own;
}
