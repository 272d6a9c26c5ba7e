/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store-will.h"

typedef struct {
    GBytes *client, *key, *value;
    unsigned connections;
    gint64 due; /* 0: the client is connected */
} will_t;

struct dscomm_priv_wills {
    GHashTable *of; /* GBytes of the client -> will_t */
    GQueue due; /* of will_t without connections, the next one first */
};

typedef dscomm_priv_wills_t wills_t;

static void will_free(gpointer data)
{
    will_t *will = data;

    g_bytes_unref(will->value);
    g_bytes_unref(will->key);
    g_bytes_unref(will->client);
    g_free(will);
}

wills_t *dscomm_priv_wills_new(void)
{
    wills_t *wills = g_new0(wills_t, 1);

    wills->of =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, NULL, will_free);
    g_queue_init(&wills->due);
    return wills;
}

void dscomm_priv_wills_free(wills_t *wills)
{
    g_queue_clear(&wills->due);
    g_hash_table_unref(wills->of);
    g_free(wills);
}

static will_t *will_add(wills_t *wills, GBytes *client, GBytes *key,
                        GBytes *value)
{
    will_t *will = g_new0(will_t, 1);

    will->client = g_bytes_ref(client);
    will->key = g_bytes_ref(key);
    will->value = g_bytes_ref(value);
    g_hash_table_insert(wills->of, will->client, will);
    return will;
}

static void will_remove(wills_t *wills, will_t *will)
{
    if (will->due)
        g_queue_remove(&wills->due, will);
    g_hash_table_remove(wills->of, will->client);
}

void dscomm_priv_wills_join(wills_t *wills, GBytes *client, GBytes *key,
                            GBytes *value)
{
    will_t *will = g_hash_table_lookup(wills->of, client);

    if (!will)
        will = will_add(wills, client, key, value);
    if (will->due)
        g_queue_remove(&wills->due, will);
    will->due = 0;
    will->connections++;
}

void dscomm_priv_wills_leave(wills_t *wills, GBytes *client, bool ended)
{
    will_t *will = g_hash_table_lookup(wills->of, client);

    if (!will || will->due || --will->connections)
        return;
    if (!ended) {
        will_remove(wills, will);
        return;
    }
    will->due = g_get_monotonic_time() + (gint64)WILL_GRACE_MS * 1000;
    g_queue_push_tail(&wills->due, will);
}

void dscomm_priv_wills_withdraw(wills_t *wills, GBytes *client)
{
    will_t *will = g_hash_table_lookup(wills->of, client);

    if (will)
        will_remove(wills, will);
}

gint64 dscomm_priv_wills_due(const wills_t *wills)
{
    const will_t *will = g_queue_peek_head((GQueue *)&wills->due);

    return will ? will->due : 0;
}

bool dscomm_priv_wills_take(wills_t *wills, gint64 now, GBytes **ret_key,
                            GBytes **ret_value)
{
    will_t *will = g_queue_peek_head(&wills->due);

    if (!will || will->due > now)
        return false;
    *ret_key = g_bytes_ref(will->key);
    *ret_value = g_bytes_ref(will->value);
    will_remove(wills, will);
    return true;
}
