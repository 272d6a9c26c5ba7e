/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses processors for a rank: those near its device, a share of a NUMA node
 * or socket, a core, or a share of a list. Ranks get whole cores, and no two
 * ranks of a node share one. */
#ifndef ENV_PLACEMENT_H
#define ENV_PLACEMENT_H

#include "env/affinity.h"
#include "env/place-rule.h"
#include "env/topology.h"

typedef struct {
    const dscomm_topology_t *topology; /* NULL: unknown */
    const dscomm_place_rule_t *rule;
    /* With rule GPU: PCI addresses of the ranks' devices; local rank r uses
     * number r modulo their number; NULL at the end. NULL: the GPUs that
     * CUDA_VISIBLE_DEVICES shows. */
    const char *const *devices;
    const char *visible; /* CUDA_VISIBLE_DEVICES, or NULL */
    int local_rank, local_size;
} dscomm_place_question_t;

typedef struct {
    int local_rank; /* of the question */
    bool bind; /* false: leave the process where it is */
    bool kept; /* because it is bound already, or nothing is to be bound */
    hwloc_bitmap_t processors; /* empty unless bind */
    int cores; /* their number */
    int node; /* the NUMA node of all of them; -1: several, or unknown */
    char *device; /* PCI address, or NULL */
    char *nic; /* name of the nearest NIC; NULL: unknown */
    char *why;
    char *warning; /* or NULL */
} dscomm_placement_t;

/* To be freed with dscomm_priv_placement_free(). A NIC is found only if the
 * topology has devices. */
dscomm_placement_t *dscomm_priv_place(const dscomm_place_question_t *question);
void dscomm_priv_placement_free(dscomm_placement_t *placement);

/* Converts a placement that binds; the mask is for g_free(). On a machine with
 * one NUMA node, no node is preferred. */
dscomm_affinity_t
dscomm_priv_placement_affinity(const dscomm_placement_t *placement,
                               const dscomm_topology_t *topology);

/* Binds all threads of this process, and sets OMP_NUM_THREADS to the number of
 * cores, unless it is set, or there are other threads, which may be reading the
 * environment. Does nothing if the topology is another machine's. 0, or an
 * errno: it is not bound. *ret_memory: an errno if no
 * NUMA node is preferred, because the system refuses it; else 0. */
int dscomm_priv_placement_apply(const dscomm_placement_t *placement,
                                const dscomm_topology_t *topology,
                                int *ret_memory);

#endif
