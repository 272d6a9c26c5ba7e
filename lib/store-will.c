/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store-will.h"

typedef struct {
    dscomm_priv_node_t node; /* the client */
    dscomm_priv_bytes_t *key, *value;
    unsigned connections;
    gint64 due; /* 0: the client is connected */
    GList link; /* in due of all wills */
} will_t;

struct dscomm_priv_wills {
    dscomm_priv_map_t of; /* of will_t, by client */
    GQueue due; /* of will_t without connections, the next one first */
};

typedef dscomm_priv_wills_t wills_t;

static void will_free(dscomm_priv_node_t *node)
{
    will_t *will = (will_t *)node;

    dscomm_priv_bytes_unref(will->value);
    dscomm_priv_bytes_unref(will->key);
    dscomm_priv_bytes_unref(will->node.key);
    g_free(will);
}

wills_t *dscomm_priv_wills_new(void)
{
    return g_try_new0(wills_t, 1);
}

void dscomm_priv_wills_free(wills_t *wills)
{
    if (wills)
        dscomm_priv_map_clear(&wills->of, will_free);
    g_free(wills);
}

static will_t *will_add(wills_t *wills, dscomm_priv_bytes_t *client,
                        dscomm_priv_bytes_t *key, dscomm_priv_bytes_t *value)
{
    will_t *will = g_try_new0(will_t, 1);

    if (!will)
        return NULL;
    will->node.key = dscomm_priv_bytes_ref(client);
    will->key = dscomm_priv_bytes_ref(key);
    will->value = dscomm_priv_bytes_ref(value);
    will->link.data = will;
    dscomm_priv_map_add(&wills->of, &will->node);
    return will;
}

/* The client is connected, or the will ends. */
static void will_keep(wills_t *wills, will_t *will)
{
    if (will->due)
        g_queue_unlink(&wills->due, &will->link);
    will->due = 0;
}

static void will_remove(wills_t *wills, will_t *will)
{
    will_keep(wills, will);
    dscomm_priv_map_remove(&wills->of, &will->node);
    will_free(&will->node);
}

bool dscomm_priv_wills_join(wills_t *wills, dscomm_priv_bytes_t *client,
                            dscomm_priv_bytes_t *key,
                            dscomm_priv_bytes_t *value)
{
    will_t *will = dscomm_priv_map_find(&wills->of, client->data);

    if (!will)
        will = will_add(wills, client, key, value);
    if (!will)
        return false;
    will_keep(wills, will);
    will->connections++;
    return true;
}

void dscomm_priv_wills_leave(wills_t *wills, dscomm_priv_data_t client,
                             bool ended)
{
    will_t *will = dscomm_priv_map_find(&wills->of, client);

    if (!will || will->due || --will->connections)
        return;
    if (!ended) {
        will_remove(wills, will);
        return;
    }
    will->due = g_get_monotonic_time() + (gint64)WILL_GRACE_MS * 1000;
    g_queue_push_tail_link(&wills->due, &will->link);
}

void dscomm_priv_wills_withdraw(wills_t *wills, dscomm_priv_data_t client)
{
    will_t *will = dscomm_priv_map_find(&wills->of, client);

    if (will)
        will_remove(wills, will);
}

gint64 dscomm_priv_wills_due(const wills_t *wills)
{
    const will_t *will = g_queue_peek_head((GQueue *)&wills->due);

    return will ? will->due : 0;
}

bool dscomm_priv_wills_take(wills_t *wills, gint64 now,
                            dscomm_priv_bytes_t **ret_key,
                            dscomm_priv_bytes_t **ret_value)
{
    will_t *will = g_queue_peek_head(&wills->due);

    if (!will || will->due > now)
        return false;
    *ret_key = dscomm_priv_bytes_ref(will->key);
    *ret_value = dscomm_priv_bytes_ref(will->value);
    will_remove(wills, will);
    return true;
}
