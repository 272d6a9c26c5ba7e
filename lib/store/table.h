/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and values in memory. Byte strings are counted in a budget, which limits
 * the memory that those of others take up. Maps and queues report that there is
 * no memory; GLib's end the process. A table of keys and values has the rules
 * of ADD, APPEND and COMPARE_SET, for every kind of store and for the server.
 * No locks: the owner has them. */
#ifndef LIB_STORE_TABLE_H
#define LIB_STORE_TABLE_H

#include "lib/store/store.h"

/* Byte strings */

typedef struct {
    size_t used, most;
} dscomm_priv_budget_t;

/* A byte string that is freed with its last reference, and counts in its budget
 * until then. The budget must live longer. */
typedef struct {
    dscomm_priv_data_t data;
    dscomm_priv_budget_t *budget;
    size_t cost; /* bytes of budget */
    void *taken; /* what g_free() frees, or NULL: the bytes are own */
    unsigned refs;
    size_t room; /* bytes of own */
    uint8_t own[];
} dscomm_priv_bytes_t;

/* What a copy takes besides its bytes, with its place in a table. */
#define BUDGET_COPY_COST ((size_t)256)

bool dscomm_priv_budget_has_room(const dscomm_priv_budget_t *budget,
                                 size_t more);

/* These return a first reference, or NULL after dscomm_fail(). */

/* size bytes, which count cost, room or not; data may be NULL: the caller fills
 * own. */
dscomm_priv_bytes_t *dscomm_priv_bytes_new(dscomm_priv_budget_t *budget,
                                           const void *data, size_t size,
                                           size_t cost);
/* The same, of memory that g_free() frees, and that it takes over if it
 * succeeds. */
dscomm_priv_bytes_t *dscomm_priv_bytes_take(dscomm_priv_budget_t *budget,
                                            void *data, size_t size,
                                            size_t cost);
/* The same, if the budget has room for them; data as above. */
dscomm_priv_bytes_t *dscomm_priv_budget_copy(dscomm_priv_budget_t *budget,
                                             const void *data, size_t size);

dscomm_priv_bytes_t *dscomm_priv_bytes_ref(dscomm_priv_bytes_t *bytes);
/* NULL is fine. */
void dscomm_priv_bytes_unref(dscomm_priv_bytes_t *bytes);

dscomm_priv_data_t dscomm_priv_data_text(const char *text);
bool dscomm_priv_data_equal(dscomm_priv_data_t a, dscomm_priv_data_t b);

/* Counts now bytes in place of *held. */
void dscomm_priv_budget_hold(dscomm_priv_budget_t *budget, size_t *held,
                             size_t now);

/* Fails with ERR_NO_MEMORY: a store is full. */
dscomm_status_t dscomm_priv_budget_fail(const dscomm_priv_budget_t *budget,
                                        size_t more);

/* Maps, lists and queues: a map links nodes that its user allocates, and a
 * GQueue that only takes links (g_queue_push_tail_link()) allocates nothing. */

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

/* Tables */

typedef struct dscomm_priv_table dscomm_priv_table_t;

/* most: bytes that it may hold. NULL after dscomm_fail(). */
dscomm_priv_table_t *dscomm_priv_table_new(size_t most);
void dscomm_priv_table_free(dscomm_priv_table_t *table);

/* Values that are to be stored are made with it. */
dscomm_priv_budget_t *dscomm_priv_table_budget(dscomm_priv_table_t *table);

/* The value, which the table owns, or NULL. */
dscomm_priv_bytes_t *dscomm_priv_table_get(const dscomm_priv_table_t *table,
                                           dscomm_priv_data_t key);
/* Copies key, and takes a reference to value. ERR_NO_MEMORY where the table is
 * full. */
dscomm_status_t dscomm_priv_table_set(dscomm_priv_table_t *table,
                                      dscomm_priv_data_t key,
                                      dscomm_priv_bytes_t *value);
bool dscomm_priv_table_remove(dscomm_priv_table_t *table,
                              dscomm_priv_data_t key);
size_t dscomm_priv_table_count(const dscomm_priv_table_t *table);
/* The next key, or NULL; *cursor is NULL before the first one. */
dscomm_priv_bytes_t *
dscomm_priv_table_next_key(const dscomm_priv_table_t *table,
                           const dscomm_priv_node_t **cursor);

/* The rules of ADD and APPEND, for a key whose value has value, or old bytes.
 * value NULL: the key is not there. ERR_INVALID: value is no decimal number, or
 * the sum overflows; the new value would be longer than a value may be. */
dscomm_status_t dscomm_priv_value_sum(dscomm_priv_data_t key,
                                      const dscomm_priv_data_t *value,
                                      int64_t delta, int64_t *ret_sum);
dscomm_status_t dscomm_priv_value_check_append(dscomm_priv_data_t key,
                                               size_t old, size_t more);

/* What a command would store, without storing it, with a reference for the
 * caller. ERR_NO_MEMORY where there is no room for it. */

/* The decimal text of value + delta. */
dscomm_status_t dscomm_priv_table_sum(dscomm_priv_table_t *table,
                                      dscomm_priv_data_t key, int64_t delta,
                                      int64_t *ret_sum,
                                      dscomm_priv_bytes_t **ret_text);
/* value and data joined. */
dscomm_status_t dscomm_priv_table_join(dscomm_priv_table_t *table,
                                       dscomm_priv_data_t key,
                                       dscomm_priv_data_t data,
                                       dscomm_priv_bytes_t **ret_value);

/* Appends data to the value of key, in its place unless somebody else has a
 * reference to the value. */
dscomm_status_t dscomm_priv_table_append(dscomm_priv_table_t *table,
                                         dscomm_priv_data_t key,
                                         dscomm_priv_data_t data);
/* Takes part out of the value of key, at the first line that begins with it; a
 * value without a rest is removed. Nothing where it is not there, or there is
 * no memory. */
void dscomm_priv_table_cut(dscomm_priv_table_t *table, dscomm_priv_data_t key,
                           dscomm_priv_data_t part);

/* Whether COMPARE_SET stores the desired value, which it then answers;
 * otherwise it answers *ret_value, which the table owns, or expected if that is
 * NULL: key has no value and gets none. */
bool dscomm_priv_table_compare(const dscomm_priv_table_t *table,
                               dscomm_priv_data_t key,
                               dscomm_priv_data_t expected,
                               dscomm_priv_bytes_t **ret_value);

#endif
