/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and values in memory. Byte strings count in a budget, which limits the
 * memory of clients' data. Maps and queues report a lack of memory, where
 * GLib's end the process. A table of keys and values implements ADD, APPEND and
 * COMPARE_SET for every kind of store and for the server. There are no locks
 * here: the owner has them. */
#ifndef LIB_STORE_TABLE_H
#define LIB_STORE_TABLE_H

#include "lib/store/store.h"

/* Byte strings */

typedef struct {
    size_t used, most;
} dscomm_priv_budget_t;

/* A byte string with a reference count. It counts in its budget until it is
 * freed; the budget must live longer. */
typedef struct {
    dscomm_priv_data_t data;
    dscomm_priv_budget_t *budget;
    size_t cost; /* bytes that it counts in the budget */
    void *taken; /* memory for g_free(); NULL: own is used */
    unsigned refs;
    size_t room; /* bytes of own */
    uint8_t own[];
} dscomm_priv_bytes_t;

/* Bytes that a copy in a table counts in the budget besides its contents. */
#define BUDGET_COPY_COST ((size_t)256)

bool dscomm_priv_budget_has_room(const dscomm_priv_budget_t *budget,
                                 size_t more);

/* These return a first reference, or NULL after dscomm_fail(). */

/* Copies size bytes, and counts cost in the budget even if that is full. If
 * data is NULL, the caller fills own. */
dscomm_priv_bytes_t *dscomm_priv_bytes_new(dscomm_priv_budget_t *budget,
                                           const void *data, size_t size,
                                           size_t cost);
/* The same without a copy: takes over data, which g_free() will free. On
 * failure the caller keeps it. */
dscomm_priv_bytes_t *dscomm_priv_bytes_take(dscomm_priv_budget_t *budget,
                                            void *data, size_t size,
                                            size_t cost);
/* A copy of size bytes that fails if the budget has no room; data as above. */
dscomm_priv_bytes_t *dscomm_priv_budget_copy(dscomm_priv_budget_t *budget,
                                             const void *data, size_t size);

dscomm_priv_bytes_t *dscomm_priv_bytes_ref(dscomm_priv_bytes_t *bytes);
/* bytes may be NULL. */
void dscomm_priv_bytes_unref(dscomm_priv_bytes_t *bytes);

dscomm_priv_data_t dscomm_priv_data_text(const char *text);
bool dscomm_priv_data_equal(dscomm_priv_data_t a, dscomm_priv_data_t b);

/* Replaces *held by now bytes in the budget. */
void dscomm_priv_budget_hold(dscomm_priv_budget_t *budget, size_t *held,
                             size_t now);

/* Fails with ERR_NO_MEMORY: the store is full. */
dscomm_status_t dscomm_priv_budget_fail(const dscomm_priv_budget_t *budget,
                                        size_t more);

/* Maps, lists and queues. A map links nodes that its user allocates. A GQueue
 * allocates nothing if only links are pushed (g_queue_push_tail_link()). */

/* The first member of each node of a map. */
typedef struct dscomm_priv_node {
    struct dscomm_priv_node *next; /* in its chain */
    dscomm_priv_bytes_t *key; /* the owner's reference */
    uint32_t hash;
} dscomm_priv_node_t;

#define MAP_FIRST 16 /* chains of a small map; a power of two */

/* A hash map; all zero is an empty one. */
typedef struct {
    dscomm_priv_node_t *first[MAP_FIRST];
    dscomm_priv_node_t **grown; /* used in place of first; or NULL */
    size_t room; /* chains of grown, a power of two */
    size_t count;
} dscomm_priv_map_t;

/* Returns the node of key, or NULL. */
void *dscomm_priv_map_find(const dscomm_priv_map_t *map,
                           dscomm_priv_data_t key);
/* Adds node, whose key is set and not yet in the map. Cannot fail: if there is
 * no memory for more chains, the chains get longer. */
void dscomm_priv_map_add(dscomm_priv_map_t *map, dscomm_priv_node_t *node);
void dscomm_priv_map_remove(dscomm_priv_map_t *map, dscomm_priv_node_t *node);
/* Returns the node after node, in no particular order; NULL gives the first. */
void *dscomm_priv_map_next(const dscomm_priv_map_t *map,
                           const dscomm_priv_node_t *node);
/* Removes all nodes and calls free_node for each. */
void dscomm_priv_map_clear(dscomm_priv_map_t *map,
                           void (*free_node)(dscomm_priv_node_t *node));

/* All entries of one key: sessions that wait, or the values of a queue. */
typedef struct {
    dscomm_priv_node_t node;
    GQueue items; /* the list's user allocates the links */
} dscomm_priv_list_t;

/* Returns the list of key, and makes it if there is none; the list then has a
 * reference to key. NULL: no memory. */
dscomm_priv_list_t *dscomm_priv_list_ensure(dscomm_priv_map_t *map,
                                            dscomm_priv_bytes_t *key);
/* Removes list from map and frees it if it is empty. */
void dscomm_priv_list_end_if_empty(dscomm_priv_map_t *map,
                                   dscomm_priv_list_t *list);
/* Frees an empty list, for dscomm_priv_map_clear(). */
void dscomm_priv_list_free(dscomm_priv_node_t *list);

/* Queues of byte strings. On success push takes over the reference. */
bool dscomm_priv_queue_push(GQueue *queue, dscomm_priv_bytes_t *bytes);
/* Removes and returns the first byte string, with its reference; NULL: the
 * queue is empty. */
dscomm_priv_bytes_t *dscomm_priv_queue_pop(GQueue *queue);
void dscomm_priv_queue_clear(GQueue *queue);

/* Tables */

/* Keys and values; all zero but the budget's limit is an empty one. */
typedef struct {
    dscomm_priv_map_t pairs; /* the nodes are keys; values in table.c */
    dscomm_priv_budget_t budget; /* of the values, which the caller makes */
} dscomm_priv_table_t;

/* Frees the pairs. */
void dscomm_priv_table_clear(dscomm_priv_table_t *table);

/* Returns the value, which the table owns, or NULL. */
dscomm_priv_bytes_t *dscomm_priv_table_get(const dscomm_priv_table_t *table,
                                           dscomm_priv_data_t key);
/* Stores a copy of key and a reference to value. ERR_NO_MEMORY if the table is
 * full. */
dscomm_status_t dscomm_priv_table_set(dscomm_priv_table_t *table,
                                      dscomm_priv_data_t key,
                                      dscomm_priv_bytes_t *value);
bool dscomm_priv_table_remove(dscomm_priv_table_t *table,
                              dscomm_priv_data_t key);

/* The rules of ADD and APPEND for a key with the given value, or with old bytes
 * of value. value is NULL if there is no such key. ERR_INVALID: value is not a
 * decimal number, the sum overflows, or the new value would be too long. */
dscomm_status_t dscomm_priv_value_sum(dscomm_priv_data_t key,
                                      const dscomm_priv_data_t *value,
                                      int64_t delta, int64_t *ret_sum);
dscomm_status_t dscomm_priv_value_check_append(dscomm_priv_data_t key,
                                               size_t old, size_t more);

/* These return the value that a command would store, with a reference for the
 * caller, and do not store it. ERR_NO_MEMORY: no room for it. */

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

/* Appends data to the value of key. The value grows in place, unless somebody
 * else has a reference to it. */
dscomm_status_t dscomm_priv_table_append(dscomm_priv_table_t *table,
                                         dscomm_priv_data_t key,
                                         dscomm_priv_data_t data);
/* Removes part from the value of key, from the first line that begins with it.
 * Removes the key if nothing is left. Does nothing if there is no such line, or
 * no memory. */
void dscomm_priv_table_cut(dscomm_priv_table_t *table, dscomm_priv_data_t key,
                           dscomm_priv_data_t part);

/* True if COMPARE_SET stores the desired value; the answer is then that value.
 * Otherwise the answer is *ret_value, which the table owns, or expected if
 * *ret_value is NULL: there is no such key, and none is made. */
bool dscomm_priv_table_compare(const dscomm_priv_table_t *table,
                               dscomm_priv_data_t key,
                               dscomm_priv_data_t expected,
                               dscomm_priv_bytes_t **ret_value);

#endif
