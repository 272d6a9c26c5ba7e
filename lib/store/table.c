/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store/table.h"

#include "lib/base/random.h"
#include "lib/base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Byte strings */

typedef dscomm_priv_bytes_t bytes_t;

bool dscomm_priv_budget_has_room(const dscomm_priv_budget_t *budget,
                                 size_t more)
{
    return budget->used <= budget->most && more <= budget->most - budget->used;
}

void dscomm_priv_budget_hold(dscomm_priv_budget_t *budget, size_t *held,
                             size_t now)
{
    budget->used += now - *held;
    *held = now;
}

dscomm_status_t dscomm_priv_budget_fail(const dscomm_priv_budget_t *budget,
                                        size_t more)
{
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                       "the store is full: %zu bytes more than the %zu that "
                       "its keys and values take would exceed %zu; delete "
                       "those that are no longer used",
                       more, budget->used, budget->most);
}

/* own: bytes of memory after the structure. */
static bytes_t *bytes_make(dscomm_priv_budget_t *budget, size_t size,
                           size_t cost, size_t own)
{
    bytes_t *bytes = g_try_malloc(sizeof *bytes + own);

    if (!bytes) {
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a value of %zu bytes",
                    size);
        return NULL;
    }
    *bytes = (bytes_t){{bytes->own, size}, budget, cost, NULL, 1, own};
    budget->used += cost;
    return bytes;
}

bytes_t *dscomm_priv_bytes_new(dscomm_priv_budget_t *budget, const void *data,
                               size_t size, size_t cost)
{
    bytes_t *bytes = bytes_make(budget, size, cost, size);

    if (bytes && data && size)
        memcpy(bytes->own, data, size);
    return bytes;
}

bytes_t *dscomm_priv_bytes_take(dscomm_priv_budget_t *budget, void *data,
                                size_t size, size_t cost)
{
    bytes_t *bytes = bytes_make(budget, size, cost, 0);

    if (bytes)
        bytes->data.data = bytes->taken = data;
    return bytes;
}

bytes_t *dscomm_priv_budget_copy(dscomm_priv_budget_t *budget, const void *data,
                                 size_t size)
{
    const size_t cost = size + BUDGET_COPY_COST;

    if (dscomm_priv_budget_has_room(budget, cost))
        return dscomm_priv_bytes_new(budget, data, size, cost);
    dscomm_priv_budget_fail(budget, cost);
    return NULL;
}

bytes_t *dscomm_priv_bytes_ref(bytes_t *bytes)
{
    bytes->refs++;
    return bytes;
}

void dscomm_priv_bytes_unref(bytes_t *bytes)
{
    if (!bytes || --bytes->refs)
        return;
    bytes->budget->used -= bytes->cost;
    g_free(bytes->taken);
    g_free(bytes);
}

dscomm_priv_data_t dscomm_priv_data_text(const char *text)
{
    return (dscomm_priv_data_t){text, strlen(text)};
}

bool dscomm_priv_data_equal(dscomm_priv_data_t a, dscomm_priv_data_t b)
{
    return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}

/* Maps, lists and queues */

typedef dscomm_priv_map_t map_t;
typedef dscomm_priv_node_t node_t;

static uint32_t seed = 2166136261u;

/* Without random numbers the seed stays that of FNV-1a. */
static void draw_seed(void)
{
    uint32_t drawn;

    if (dscomm_priv_random(&drawn, sizeof drawn))
        seed = drawn;
}

/* FNV-1a, with a random seed for each process. Clients choose keys; without the
 * seed they could choose many keys of one chain. */
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

/* Tables */

typedef struct {
    dscomm_priv_node_t node; /* the key */
    dscomm_priv_bytes_t *value;
} pair_t;

static void pair_free(dscomm_priv_node_t *node)
{
    pair_t *pair = (pair_t *)node;

    dscomm_priv_bytes_unref(pair->value);
    dscomm_priv_bytes_unref(pair->node.key);
    g_free(pair);
}

void dscomm_priv_table_clear(dscomm_priv_table_t *table)
{
    dscomm_priv_map_clear(&table->pairs, pair_free);
}

dscomm_priv_bytes_t *dscomm_priv_table_get(const dscomm_priv_table_t *table,
                                           dscomm_priv_data_t key)
{
    pair_t *pair = dscomm_priv_map_find(&table->pairs, key);

    return pair ? pair->value : NULL;
}

/* Adds a pair to the table, without a value. NULL after dscomm_fail(). */
static pair_t *pair_add(dscomm_priv_table_t *table, dscomm_priv_data_t key)
{
    dscomm_priv_bytes_t *own =
        dscomm_priv_budget_copy(&table->budget, key.data, key.size);
    pair_t *pair = own ? g_try_new0(pair_t, 1) : NULL;

    if (!pair) {
        if (own)
            dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for another key");
        dscomm_priv_bytes_unref(own);
        return NULL;
    }
    pair->node.key = own;
    dscomm_priv_map_add(&table->pairs, &pair->node);
    return pair;
}

dscomm_status_t dscomm_priv_table_set(dscomm_priv_table_t *table,
                                      dscomm_priv_data_t key,
                                      dscomm_priv_bytes_t *value)
{
    pair_t *pair = dscomm_priv_map_find(&table->pairs, key);

    if (!pair)
        pair = pair_add(table, key);
    if (!pair)
        return DSCOMM_ERR_NO_MEMORY;
    dscomm_priv_bytes_ref(value);
    dscomm_priv_bytes_unref(pair->value);
    pair->value = value;
    return DSCOMM_OK;
}

bool dscomm_priv_table_remove(dscomm_priv_table_t *table,
                              dscomm_priv_data_t key)
{
    pair_t *pair = dscomm_priv_map_find(&table->pairs, key);

    if (!pair)
        return false;
    dscomm_priv_map_remove(&table->pairs, &pair->node);
    pair_free(&pair->node);
    return true;
}

/* Reads value as one decimal number; false if it is not one. torch's stoll
 * would take "12 apples" for 12. GLib's function ends the process if there is
 * no memory for a locale. */
static bool number_of(dscomm_priv_data_t value, int64_t *ret_number)
{
    char text[24];
    size_t sign;

    if (!value.size || value.size >= sizeof text)
        return false;
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
    sign = *text == '-';
    if (value.size == sign ||
        sign + strspn(text + sign, "0123456789") != value.size)
        return false;
    errno = 0;
    *ret_number = strtoll(text, NULL, 10);
    return !errno;
}

static const char *quote(dscomm_priv_data_t bytes, size_t skip, char *buffer,
                         size_t room)
{
    char text[64] = "";
    size_t size;

    skip = MIN(skip, bytes.size);
    size = MIN(bytes.size - skip, sizeof text - 1);
    if (size)
        memcpy(text, (const char *)bytes.data + skip, size);
    return dscomm_priv_quote(text, buffer, room);
}

dscomm_status_t dscomm_priv_value_sum(dscomm_priv_data_t key,
                                      const dscomm_priv_data_t *value,
                                      int64_t delta, int64_t *ret_sum)
{
    char name[64], shown[32];
    int64_t old = 0;

    if (value && !number_of(*value, &old))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "add to key '%s': its value '%s' is no decimal "
                           "number of 64 bits",
                           quote(key, 1, name, sizeof name),
                           quote(*value, 0, shown, sizeof shown));
    if (__builtin_add_overflow(old, delta, ret_sum))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "add %" PRId64 " to key '%s': the sum with %" PRId64
                           " does not fit in 64 bits",
                           delta, quote(key, 1, name, sizeof name), old);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_table_sum(dscomm_priv_table_t *table,
                                      dscomm_priv_data_t key, int64_t delta,
                                      int64_t *ret_sum,
                                      dscomm_priv_bytes_t **ret_text)
{
    dscomm_priv_bytes_t *value = dscomm_priv_table_get(table, key), *made;
    int64_t sum;
    dscomm_status_t status =
        dscomm_priv_value_sum(key, value ? &value->data : NULL, delta, &sum);
    char text[24];

    if (status)
        return status;
    snprintf(text, sizeof text, "%" PRId64, sum);
    made = dscomm_priv_budget_copy(&table->budget, text, strlen(text));
    if (!made)
        return DSCOMM_ERR_NO_MEMORY;
    *ret_sum = sum;
    *ret_text = made;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_value_check_append(dscomm_priv_data_t key,
                                               size_t old, size_t more)
{
    char name[64];

    if (old + more <= DSCOMM_STORE_VALUE_MAX)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "append %zu bytes to the %zu of key '%s': a value has "
                       "at most %zu",
                       more, old, quote(key, 1, name, sizeof name),
                       DSCOMM_STORE_VALUE_MAX);
}

/* A copy of value, which may be NULL, with room for size bytes. */
static dscomm_priv_bytes_t *copy_into(dscomm_priv_table_t *table,
                                      const dscomm_priv_bytes_t *value,
                                      size_t size)
{
    dscomm_priv_bytes_t *copy =
        dscomm_priv_budget_copy(&table->budget, NULL, size);

    if (!copy)
        return NULL;
    copy->data.size = value ? MIN(value->data.size, size) : 0;
    if (copy->data.size)
        memcpy(copy->own, value->data.data, copy->data.size);
    return copy;
}

/* Only the bytes in use count in the budget, not the room after them. So a full
 * table holds as much as one whose values were set at once. The room is at most
 * as large as the bytes. */
static void value_resize(dscomm_priv_bytes_t *value, size_t size)
{
    value->data.size = size;
    dscomm_priv_budget_hold(value->budget, &value->cost,
                            size + BUDGET_COPY_COST);
}

static void put(dscomm_priv_bytes_t *value, dscomm_priv_data_t data)
{
    if (data.size)
        memcpy(value->own + value->data.size, data.data, data.size);
    value_resize(value, value->data.size + data.size);
}

dscomm_status_t dscomm_priv_table_join(dscomm_priv_table_t *table,
                                       dscomm_priv_data_t key,
                                       dscomm_priv_data_t data,
                                       dscomm_priv_bytes_t **ret_value)
{
    const dscomm_priv_bytes_t *value = dscomm_priv_table_get(table, key);
    const size_t old = value ? value->data.size : 0;
    dscomm_status_t status =
        dscomm_priv_value_check_append(key, old, data.size);
    dscomm_priv_bytes_t *joined;

    if (status)
        return status;
    joined = copy_into(table, value, old + data.size);
    if (!joined)
        return DSCOMM_ERR_NO_MEMORY;
    put(joined, data);
    *ret_value = joined;
    return DSCOMM_OK;
}

/* Stores value and drops the caller's reference. False after dscomm_fail(). */
static bool value_replace(dscomm_priv_table_t *table, dscomm_priv_data_t key,
                          dscomm_priv_bytes_t *value)
{
    const dscomm_status_t status = dscomm_priv_table_set(table, key, value);

    dscomm_priv_bytes_unref(value);
    return status == DSCOMM_OK;
}

/* Replaces the value of key by a copy with room for size bytes, or for 2 * size
 * if the table has room for that: n bytes that are appended one by one then
 * cost 2 n byte copies instead of n * n. value may be NULL. NULL after
 * dscomm_fail(). */
static dscomm_priv_bytes_t *value_grow(dscomm_priv_table_t *table,
                                       dscomm_priv_data_t key,
                                       const dscomm_priv_bytes_t *value,
                                       size_t size)
{
    const size_t twice = MIN(2 * size, DSCOMM_STORE_VALUE_MAX);
    const size_t cost = twice + 2 * BUDGET_COPY_COST + key.size;
    const bool ample =
        value && dscomm_priv_budget_has_room(&table->budget, cost);
    dscomm_priv_bytes_t *grown = copy_into(table, value, ample ? twice : size);

    return grown && value_replace(table, key, grown) ? grown : NULL;
}

dscomm_status_t dscomm_priv_table_append(dscomm_priv_table_t *table,
                                         dscomm_priv_data_t key,
                                         dscomm_priv_data_t data)
{
    dscomm_priv_bytes_t *value = dscomm_priv_table_get(table, key);
    const size_t old = value ? value->data.size : 0;
    const size_t size = old + data.size;
    dscomm_status_t status =
        dscomm_priv_value_check_append(key, old, data.size);

    if (status)
        return status;
    if (!value || value->refs > 1 || value->room < size)
        value = value_grow(table, key, value, size);
    else if (!dscomm_priv_budget_has_room(&table->budget, data.size))
        return dscomm_priv_budget_fail(&table->budget, data.size);
    if (!value)
        return DSCOMM_ERR_NO_MEMORY;
    put(value, data);
    return DSCOMM_OK;
}

/* Returns the first line of data that begins with part, or NULL. */
static const char *find_line(dscomm_priv_data_t data, dscomm_priv_data_t part)
{
    const char *at = data.data, *end = at + data.size;

    while (at && (size_t)(end - at) >= part.size) {
        if (!memcmp(at, part.data, part.size))
            return at;
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    return NULL;
}

void dscomm_priv_table_cut(dscomm_priv_table_t *table, dscomm_priv_data_t key,
                           dscomm_priv_data_t part)
{
    dscomm_priv_bytes_t *value = dscomm_priv_table_get(table, key);
    const char *at = value ? find_line(value->data, part) : NULL;
    size_t before, size;

    if (!at)
        return;
    before = (size_t)(at - (const char *)value->data.data);
    size = value->data.size - part.size;
    if (!size) {
        dscomm_priv_table_remove(table, key);
        return;
    }
    if (value->refs > 1) { /* the copy counts even if the budget is full */
        value = dscomm_priv_bytes_new(&table->budget, value->data.data,
                                      value->data.size,
                                      value->data.size + BUDGET_COPY_COST);
        if (!value || !value_replace(table, key, value))
            return;
    }
    memmove(value->own + before, value->own + before + part.size,
            size - before);
    value_resize(value, size);
}

bool dscomm_priv_table_compare(const dscomm_priv_table_t *table,
                               dscomm_priv_data_t key,
                               dscomm_priv_data_t expected,
                               dscomm_priv_bytes_t **ret_value)
{
    dscomm_priv_bytes_t *value = dscomm_priv_table_get(table, key);

    *ret_value = value;
    return value ? dscomm_priv_data_equal(value->data, expected)
                 : expected.size == 0;
}
