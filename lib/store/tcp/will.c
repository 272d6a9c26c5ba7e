/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store/tcp/will.h"

#include "lib/base/process-fd.h"

#include <stdlib.h>
#include <string.h>

/* The server's side */

typedef dscomm_priv_bytes_t bytes_t;
typedef dscomm_priv_data_t data_t;

typedef struct will {
    struct will *next;
    bytes_t *key, *value;
} will_t;

typedef struct {
    dscomm_priv_node_t node; /* its name */
    will_t *wills;
    int count; /* number of wills */
    unsigned connections;
    gint64 due; /* when they are carried out, if queue is due */
    GQueue *queue; /* due or kept of wills_t; NULL: connected */
    GList link; /* in queue */
    bool counted; /* counts in clients of wills_t */
} client_t;

struct dscomm_priv_wills {
    dscomm_priv_map_t of; /* of client_t, by name */
    GQueue due; /* client_t without connections, the next one first */
    GQueue kept; /* client_t whose wills were carried out, oldest first */
    int clients; /* number that are connected and have a will */
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

/* Appends a will's value to its key. If the store is full, the will is lost. */
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

/* Returns the link to the will for key, or to the end of the list. */
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

/* The client's side */

struct dscomm_priv_own_will {
    struct dscomm_priv_own_will *next;
    bool withdrawn; /* the server may not have got that yet */
    bool sent; /* the request under way withdraws it */
    size_t size; /* of the value, which follows the key */
    char key[];
};

typedef dscomm_priv_link_t link_t;
typedef dscomm_priv_own_will_t own_will_t;

static own_will_t *own_will_find(const link_t *first, const char *key)
{
    own_will_t *will = first->wills;

    while (will && (will->withdrawn || strcmp(will->key, key)))
        will = will->next;
    return will;
}

/* Adds a will. The first one makes the client's name. False: no memory. */
static bool own_will_add(link_t *first, const char *key,
                         dscomm_priv_data_t value)
{
    const size_t length = strlen(key) + 1;
    own_will_t *will = malloc(sizeof *will + length + value.size);

    if (!will)
        return false;
    *will = (own_will_t){.next = first->wills, .size = value.size};
    memcpy(will->key, key, length);
    memcpy(will->key + length, value.data, value.size);
    if (!*first->client)
        dscomm_priv_wire_name(first->client, WIRE_NAMED_BY_CLIENT);
    first->wills = will;
    return true;
}

static void own_will_put(const link_t *first, const own_will_t *will,
                         dscomm_priv_buffer_t *request)
{
    dscomm_priv_put_u8(request, WIRE_WILL);
    dscomm_priv_buffer_put(request, first->client, sizeof first->client);
    dscomm_priv_put_key(request, will->key);
    dscomm_priv_put_bytes(request, will->key + strlen(will->key) + 1,
                          will->withdrawn ? 0 : will->size);
}

/* Writes the requests that withdraw wills. If given is true, requests that give
 * all others follow; a key may have both. */
static void own_wills_put(link_t *first, bool given,
                          dscomm_priv_buffer_t *request)
{
    pthread_mutex_lock(&first->lock);
    for (own_will_t *will = first->wills; will; will = will->next) {
        will->sent = will->withdrawn;
        if (will->withdrawn)
            own_will_put(first, will, request);
    }
    for (own_will_t *will = first->wills; will && given; will = will->next)
        if (!will->withdrawn)
            own_will_put(first, will, request);
    pthread_mutex_unlock(&first->lock);
}

/* Forgets withdrawn wills, after the server has executed the requests. */
static void own_wills_forget(link_t *first)
{
    own_will_t **at = &first->wills, *will;

    pthread_mutex_lock(&first->lock);
    while ((will = *at)) {
        if (will->withdrawn && will->sent) {
            *at = will->next;
            free(will);
        } else {
            at = &will->next;
        }
    }
    pthread_mutex_unlock(&first->lock);
}

/* Sends the requests of own_wills_put() and waits until the server has executed
 * them. */
static dscomm_status_t own_wills_send(link_t *link, bool given,
                                      dscomm_priv_deadline_t deadline)
{
    const uint32_t nonce = 0x3B1CF02D;
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;

    deadline.end = deadline.at; /* no grace period here */
    own_wills_put(link->first, given, &request);
    if (!request.size && !request.bad)
        return DSCOMM_OK;
    dscomm_priv_put_u8(&request, WIRE_PING);
    dscomm_priv_put_u32(&request, nonce);
    status = dscomm_priv_link_send(link, &request, deadline);
    if (!status)
        status = dscomm_priv_link_echo(link, nonce, deadline);
    if (given)
        link->bound = !status;
    if (!status)
        own_wills_forget(link->first);
    return status;
}

dscomm_status_t dscomm_priv_own_wills_bind(link_t *link,
                                           dscomm_priv_deadline_t deadline)
{
    dscomm_priv_gate_t *turn = &link->first->turn;
    dscomm_status_t status = dscomm_priv_gate_enter(turn, deadline);

    if (status)
        return status;
    status = own_wills_send(link, true, deadline);
    dscomm_priv_gate_leave(turn);
    if (!status && link->old_fd >= 0) {
        dscomm_priv_fd_close(link->old_fd);
        link->old_fd = -1;
    }
    return status;
}

bool dscomm_priv_own_will_note(link_t *first, const char *key,
                               dscomm_priv_data_t value)
{
    bool noted;

    pthread_mutex_lock(&first->lock);
    noted = own_will_find(first, key) || own_will_add(first, key, value);
    pthread_mutex_unlock(&first->lock);
    return noted;
}

bool dscomm_priv_own_will_withdraw(link_t *first, const char *key)
{
    bool any = false;

    pthread_mutex_lock(&first->lock);
    for (own_will_t *will = first->wills; will; will = will->next)
        if (!key || !strcmp(will->key, key))
            any = will->withdrawn = true;
    pthread_mutex_unlock(&first->lock);
    return any;
}

dscomm_status_t dscomm_priv_own_wills_flush(link_t *link,
                                            dscomm_priv_deadline_t turn_until,
                                            dscomm_priv_deadline_t deadline)
{
    dscomm_priv_gate_t *turn = &link->first->turn;
    dscomm_status_t status = DSCOMM_ERR_PEER_FAILED;

    if (link->fd < 0 || dscomm_priv_own_wills_settled(link->first))
        return DSCOMM_OK;
    if (dscomm_priv_gate_enter(turn, turn_until))
        return DSCOMM_OK;
    if (!dscomm_priv_link_is_out_of_step(link))
        status = own_wills_send(link, false, deadline);
    if (status)
        dscomm_priv_link_disconnect(link);
    dscomm_priv_gate_leave(turn);
    return status;
}

bool dscomm_priv_own_wills_settled(link_t *first)
{
    bool settled = true;

    pthread_mutex_lock(&first->lock);
    for (own_will_t *will = first->wills; will; will = will->next)
        settled = settled && !will->withdrawn;
    pthread_mutex_unlock(&first->lock);
    return settled;
}

void dscomm_priv_own_wills_free(link_t *first)
{
    while (first->wills) {
        own_will_t *will = first->wills;

        first->wills = will->next;
        free(will);
    }
}
