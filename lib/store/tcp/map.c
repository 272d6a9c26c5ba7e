/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store/tcp/map.h"

#include "lib/base/random.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef dscomm_priv_map_t map_t;
typedef dscomm_priv_node_t node_t;

static uint32_t seed = 2166136261u;

/* Where the system gives no random numbers it stays as FNV-1a has it. */
static void draw_seed(void)
{
    uint32_t drawn;

    if (dscomm_priv_random(&drawn, sizeof drawn))
        seed = drawn;
}

/* FNV-1a, with a seed of the process: strangers choose keys, and shall not
 * choose those of one chain. */
static uint32_t hash_of(dscomm_priv_data_t key)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *bytes = key.data;
    uint32_t hash;

    pthread_once(&once, draw_seed);
    hash = seed;

    for (size_t i = 0; i < key.size; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

static size_t map_room(const map_t *map)
{
    return map->grown ? map->room : MAP_FIRST;
}

static node_t **map_chain(const map_t *map, uint32_t hash)
{
    node_t *const *chains = map->grown ? map->grown : map->first;

    return (node_t **)&chains[hash & (map_room(map) - 1)];
}

static void map_link(map_t *map, node_t *node)
{
    node_t **chain = map_chain(map, node->hash);

    node->next = *chain;
    *chain = node;
}

static void map_grow(map_t *map)
{
    const size_t room = 2 * map_room(map);
    node_t **chains = calloc(room, sizeof *chains);
    map_t old = *map;

    if (!chains)
        return;
    map->grown = chains;
    map->room = room;
    for (size_t i = 0; i < map_room(&old); i++) {
        node_t *next;

        for (node_t *node = *map_chain(&old, (uint32_t)i); node; node = next) {
            next = node->next;
            map_link(map, node);
        }
    }
    free(old.grown);
}

void *dscomm_priv_map_find(const map_t *map, dscomm_priv_data_t key)
{
    const uint32_t hash = hash_of(key);
    node_t *node = *map_chain(map, hash);

    while (node && (node->hash != hash ||
                    !dscomm_priv_data_equal(node->key->data, key)))
        node = node->next;
    return node;
}

void dscomm_priv_map_add(map_t *map, node_t *node)
{
    if (map->count >= map_room(map))
        map_grow(map);
    node->hash = hash_of(node->key->data);
    map_link(map, node);
    map->count++;
}

void dscomm_priv_map_remove(map_t *map, node_t *node)
{
    node_t **at = map_chain(map, node->hash);

    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    map->count--;
}

void *dscomm_priv_map_next(const map_t *map, const node_t *node)
{
    size_t i = 0;

    if (node && node->next)
        return node->next;
    if (node)
        i = (node->hash & (map_room(map) - 1)) + 1;
    for (; i < map_room(map); i++)
        if (*map_chain(map, (uint32_t)i))
            return *map_chain(map, (uint32_t)i);
    return NULL;
}

void dscomm_priv_map_clear(map_t *map, void (*free_node)(node_t *node))
{
    for (size_t i = 0; i < map_room(map); i++) {
        node_t *next;

        for (node_t *node = *map_chain(map, (uint32_t)i); node; node = next) {
            next = node->next;
            free_node(node);
        }
    }
    free(map->grown);
    memset(map, 0, sizeof *map);
}

void dscomm_priv_list_free(node_t *node)
{
    dscomm_priv_bytes_unref(node->key);
    free(node);
}

dscomm_priv_list_t *dscomm_priv_list_ensure(map_t *map,
                                            dscomm_priv_bytes_t *key)
{
    dscomm_priv_list_t *list = dscomm_priv_map_find(map, key->data);

    if (!list && (list = calloc(1, sizeof *list)) != NULL) {
        list->node.key = dscomm_priv_bytes_ref(key);
        dscomm_priv_map_add(map, &list->node);
    }
    return list;
}

void dscomm_priv_list_end_if_empty(map_t *map, dscomm_priv_list_t *list)
{
    if (list->items.length)
        return;
    dscomm_priv_map_remove(map, &list->node);
    dscomm_priv_list_free(&list->node);
}

bool dscomm_priv_queue_push(GQueue *queue, dscomm_priv_bytes_t *bytes)
{
    GList *link = calloc(1, sizeof *link);

    if (!link)
        return false;
    link->data = bytes;
    g_queue_push_tail_link(queue, link);
    return true;
}

dscomm_priv_bytes_t *dscomm_priv_queue_pop(GQueue *queue)
{
    GList *link = g_queue_pop_head_link(queue);
    dscomm_priv_bytes_t *bytes = link ? link->data : NULL;

    free(link);
    return bytes;
}

void dscomm_priv_queue_clear(GQueue *queue)
{
    dscomm_priv_bytes_t *bytes;

    while ((bytes = dscomm_priv_queue_pop(queue)) != NULL)
        dscomm_priv_bytes_unref(bytes);
}
