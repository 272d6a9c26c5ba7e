/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store/tcp/will.h"

typedef dscomm_priv_bytes_t bytes_t;
typedef dscomm_priv_data_t data_t;

typedef struct will {
    struct will *next;
    bytes_t *key, *value;
} will_t;

typedef struct {
    dscomm_priv_node_t node; /* its name */
    will_t *wills;
    int count; /* of them */
    unsigned connections;
    gint64 due; /* in the queue of that name */
    GQueue *queue; /* due or kept of all wills, or NULL: it is connected */
    GList link; /* in queue */
    bool counted; /* in clients of all wills */
} client_t;

struct dscomm_priv_wills {
    dscomm_priv_map_t of; /* of client_t, by name */
    GQueue due; /* of client_t without connections, the next one first */
    GQueue kept; /* of client_t whose wills are carried out, the oldest first */
    int clients; /* that are connected and have a will */
    dscomm_priv_table_t *table;
    dscomm_priv_waiters_t *waiters;
};

typedef dscomm_priv_wills_t wills_t;

static void will_free(will_t *will)
{
    dscomm_priv_bytes_unref(will->value);
    dscomm_priv_bytes_unref(will->key);
    g_free(will);
}

static void client_free(dscomm_priv_node_t *node)
{
    client_t *client = (client_t *)node;

    while (client->wills) {
        will_t *will = client->wills;

        client->wills = will->next;
        will_free(will);
    }
    dscomm_priv_bytes_unref(client->node.key);
    g_free(client);
}

wills_t *dscomm_priv_wills_new(dscomm_priv_table_t *table,
                               dscomm_priv_waiters_t *waiters)
{
    wills_t *wills = g_try_new0(wills_t, 1);

    if (!wills)
        return NULL;
    wills->table = table;
    wills->waiters = waiters;
    return wills;
}

void dscomm_priv_wills_free(wills_t *wills)
{
    if (wills)
        dscomm_priv_map_clear(&wills->of, client_free);
    g_free(wills);
}

static client_t *client_add(wills_t *wills, bytes_t *name)
{
    client_t *client = g_try_new0(client_t, 1);

    if (!client)
        return NULL;
    client->node.key = dscomm_priv_bytes_ref(name);
    client->link.data = client;
    dscomm_priv_map_add(&wills->of, &client->node);
    return client;
}

static void client_count(wills_t *wills, client_t *client)
{
    const bool counts = client->connections && client->wills;

    wills->clients += counts - client->counted;
    client->counted = counts;
}

static void client_move(client_t *client, GQueue *queue)
{
    if (client->queue)
        g_queue_unlink(client->queue, &client->link);
    if (queue)
        g_queue_push_tail_link(queue, &client->link);
    client->queue = queue;
}

static void client_remove(wills_t *wills, client_t *client)
{
    client_move(client, NULL);
    wills->clients -= client->counted;
    dscomm_priv_map_remove(&wills->of, &client->node);
    client_free(&client->node);
}

/* A will for which the store has no room is lost, as any other key. */
static void will_carry_out(wills_t *wills, const will_t *will)
{
    const data_t key = will->key->data;

    if (!dscomm_priv_table_append(wills->table, key, will->value->data))
        dscomm_priv_waiters_wake(wills->waiters, WAITERS_KEY, key);
}

static void will_retract(wills_t *wills, const will_t *will)
{
    dscomm_priv_table_cut(wills->table, will->key->data, will->value->data);
}

void dscomm_priv_wills_leave(wills_t *wills, bytes_t **slot, bool ended)
{
    client_t *client =
        *slot ? dscomm_priv_map_find(&wills->of, (*slot)->data) : NULL;

    dscomm_priv_bytes_unref(*slot);
    *slot = NULL;
    if (!client || !client->connections)
        return;
    client->connections--;
    client_count(wills, client);
    if (client->connections)
        return;
    client->due = g_get_monotonic_time() + (gint64)WILL_GRACE_MS * 1000;
    if (ended && client->wills)
        client_move(client, &wills->due);
    else
        client_remove(wills, client);
}

bool dscomm_priv_wills_join(wills_t *wills, bytes_t **slot, bytes_t *name)
{
    client_t *client;

    if (*slot && dscomm_priv_data_equal((*slot)->data, name->data))
        return true;
    dscomm_priv_wills_leave(wills, slot, false);
    client = dscomm_priv_map_find(&wills->of, name->data);
    if (!client)
        client = client_add(wills, name);
    if (!client)
        return false;
    for (will_t *will = client->wills; will && client->queue == &wills->kept;
         will = will->next)
        will_retract(wills, will);
    client_move(client, NULL);
    client->connections++;
    client_count(wills, client);
    *slot = dscomm_priv_bytes_ref(name);
    return true;
}

/* The link to the will for key, or to the end of the list. */
static will_t **client_find(client_t *client, data_t key)
{
    will_t **at = &client->wills;

    while (*at && !dscomm_priv_data_equal((*at)->key->data, key))
        at = &(*at)->next;
    return at;
}

dscomm_status_t dscomm_priv_wills_give(wills_t *wills, data_t name,
                                       bytes_t *key, bytes_t *value)
{
    client_t *client = dscomm_priv_map_find(&wills->of, name);
    will_t **at = client ? client_find(client, key->data) : NULL;

    if (!at)
        return DSCOMM_ERR_INVALID;
    if (*at)
        return DSCOMM_OK;
    if (client->count >= WILL_COUNT_MAX)
        return DSCOMM_ERR_INVALID;
    if (!(*at = g_try_new0(will_t, 1)))
        return DSCOMM_ERR_NO_MEMORY;
    (*at)->key = dscomm_priv_bytes_ref(key);
    (*at)->value = dscomm_priv_bytes_ref(value);
    client->count++;
    client_count(wills, client);
    return DSCOMM_OK;
}

static void client_withdraw(wills_t *wills, client_t *client, will_t **at)
{
    will_t *will = *at;

    if (client->queue == &wills->kept)
        will_retract(wills, will);
    *at = will->next;
    will_free(will);
    client->count--;
    client_count(wills, client);
}

void dscomm_priv_wills_withdraw(wills_t *wills, data_t name, data_t key)
{
    client_t *client = dscomm_priv_map_find(&wills->of, name);

    if (!client)
        return;
    while (!key.size && client->wills)
        client_withdraw(wills, client, &client->wills);
    if (key.size && *client_find(client, key))
        client_withdraw(wills, client, client_find(client, key));
    if (!client->wills && !client->connections)
        client_remove(wills, client);
}

int dscomm_priv_wills_clients(const wills_t *wills)
{
    return wills->clients;
}

gint64 dscomm_priv_wills_due(const wills_t *wills)
{
    const client_t *client = g_queue_peek_head((GQueue *)&wills->due);

    return client ? client->due : 0;
}

void dscomm_priv_wills_carry_out(wills_t *wills, gint64 now)
{
    client_t *client;

    while ((client = g_queue_peek_head(&wills->due)) && client->due <= now) {
        client_move(client, &wills->kept);
        for (will_t *will = client->wills; will; will = will->next)
            will_carry_out(wills, will);
    }
    while (wills->kept.length > WILL_KEPT_MAX)
        client_remove(wills, g_queue_peek_head(&wills->kept));
}
