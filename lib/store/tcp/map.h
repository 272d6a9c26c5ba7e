/* SPDX-License-Identifier: BSD-3-Clause */
/* Containers of the stores. GLib's end the process if there is no memory for
 * another element; these report it, or need none: a map links nodes that its
 * user allocates, and a GQueue that only takes links (g_queue_push_tail_link())
 * allocates nothing. No locks: the owner has them. */
#ifndef LIB_STORE_MAP_H
#define LIB_STORE_MAP_H

#include "lib/store/tcp/budget.h"

/* The first member of what a map holds. */
typedef struct dscomm_priv_node {
    struct dscomm_priv_node *next; /* in its chain */
    dscomm_priv_bytes_t *key; /* a reference of the node's owner */
    uint32_t hash;
} dscomm_priv_node_t;

#define MAP_FIRST 16 /* chains of a small map; a power of two */

/* All zero: empty. */
typedef struct {
    dscomm_priv_node_t *first[MAP_FIRST];
    dscomm_priv_node_t **grown; /* in place of first, or NULL */
    size_t room; /* chains of grown, a power of two */
    size_t count;
} dscomm_priv_map_t;

/* The node of key, or NULL. */
void *dscomm_priv_map_find(const dscomm_priv_map_t *map,
                           dscomm_priv_data_t key);
/* Adds node, of which key is set and in no other node of the map. Cannot fail:
 * without memory for more chains these get longer. */
void dscomm_priv_map_add(dscomm_priv_map_t *map, dscomm_priv_node_t *node);
void dscomm_priv_map_remove(dscomm_priv_map_t *map, dscomm_priv_node_t *node);
/* The node after node, in no particular order; the first after NULL. */
void *dscomm_priv_map_next(const dscomm_priv_map_t *map,
                           const dscomm_priv_node_t *node);
/* Removes all nodes, each of which free_node frees. */
void dscomm_priv_map_clear(dscomm_priv_map_t *map,
                           void (*free_node)(dscomm_priv_node_t *node));

/* All of one key, in a map: sessions that wait, or the values of a queue. */
typedef struct {
    dscomm_priv_node_t node;
    GQueue items; /* of links that the list's user allocates */
} dscomm_priv_list_t;

/* The list of key, with a reference to key if it is new; NULL: no memory. */
dscomm_priv_list_t *dscomm_priv_list_ensure(dscomm_priv_map_t *map,
                                            dscomm_priv_bytes_t *key);
/* Removes the list from map and frees it, if it is empty. */
void dscomm_priv_list_end_if_empty(dscomm_priv_map_t *map,
                                   dscomm_priv_list_t *list);
/* Frees an empty list, for dscomm_priv_map_clear(). */
void dscomm_priv_list_free(dscomm_priv_node_t *list);

/* Queues of bytes: push takes over the reference, if it succeeds. */
bool dscomm_priv_queue_push(GQueue *queue, dscomm_priv_bytes_t *bytes);
/* The first, with its reference; NULL: the queue is empty. */
dscomm_priv_bytes_t *dscomm_priv_queue_pop(GQueue *queue);
void dscomm_priv_queue_clear(GQueue *queue);

#endif
