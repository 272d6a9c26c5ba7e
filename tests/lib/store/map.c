/* SPDX-License-Identifier: BSD-3-Clause */
/* The maps of the store, compared with an array of the expected contents. */
#include "tests/tap.h"

#include "lib/store/table.h"

#include <stdlib.h>

#define KEYS 1000

typedef struct {
    dscomm_priv_node_t node;
    int number, seen;
} item_t;

static dscomm_priv_budget_t budget = {0, 1 << 20};
static dscomm_priv_map_t map;
static item_t *items[KEYS]; /* NULL: not in the map */

/* Keys that differ in length, in one byte, or after a zero byte. */
static dscomm_priv_data_t key_of(int number, char *text)
{
    memset(text, 0, 16);
    snprintf(text + number % 3, 13, "%d", number);
    return (dscomm_priv_data_t){text, (size_t)(8 + number % 5)};
}

static void add(int number)
{
    char text[16];
    dscomm_priv_data_t key = key_of(number, text);

    items[number] = calloc(1, sizeof *items[0]);
    items[number]->number = number;
    items[number]->node.key =
        dscomm_priv_budget_copy(&budget, key.data, key.size);
    dscomm_priv_map_add(&map, &items[number]->node);
}

static void item_free(dscomm_priv_node_t *node)
{
    dscomm_priv_bytes_unref(node->key);
    free(node);
}

static int wrong_finds(void)
{
    int wrong = 0;
    char text[16];

    for (int i = 0; i < KEYS; i++)
        wrong += dscomm_priv_map_find(&map, key_of(i, text)) != items[i];
    return wrong;
}

static int wrong_steps(void)
{
    int wrong = 0, count = 0;
    item_t *item = NULL;

    while ((item = dscomm_priv_map_next(&map, (dscomm_priv_node_t *)item)) !=
           NULL) {
        wrong += item != items[item->number] || item->seen++;
        count++;
    }
    for (int i = 0; i < KEYS; i++)
        if (items[i])
            items[i]->seen = 0;
    return wrong + abs(count - (int)map.count);
}

static void check(const char *about)
{
    is_int(wrong_finds(), 0, "%s: each key is found, or not there", about);
    is_int(wrong_steps(), 0, "%s: all are gone through once", about);
}

int main(void)
{
    check("an empty map");
    for (int i = 0; i < KEYS; i += 2)
        add(i);
    check("every other key");
    for (int i = 0; i < KEYS; i += 4) {
        dscomm_priv_map_remove(&map, &items[i]->node);
        item_free(&items[i]->node);
        items[i] = NULL;
    }
    for (int i = 1; i < KEYS; i += 2)
        add(i);
    check("some removed, others added");
    is_int((long long)map.count, 3 * KEYS / 4, "they are counted");
    dscomm_priv_map_clear(&map, item_free);
    memset(items, 0, sizeof items);
    check("cleared");
    is_int((long long)budget.used, 0, "no key is left");
    return tap_done();
}
