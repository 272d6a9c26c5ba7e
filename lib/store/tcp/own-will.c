/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store/tcp/own-will.h"

#include "lib/base/process-fd.h"
#include "lib/base/status.h"
#include "lib/store/tcp/handshake.h"

#include <stdlib.h>
#include <string.h>

/* Time for withdrawing a will, in ms, while another thread uses the connection
 * or tells the server of wills, and for the server's answer. */
#define WITHDRAW_MS 100

struct dscomm_priv_own_will {
    struct dscomm_priv_own_will *next;
    bool withdrawn; /* and the server may not know it yet */
    bool sent; /* that it is withdrawn is in the request under way */
    size_t size; /* of the value, which follows the key */
    char key[];
};

typedef dscomm_priv_link_t link_t;
typedef dscomm_priv_own_will_t will_t;

static will_t *will_find(const link_t *first, const char *key)
{
    will_t *will = first->wills;

    while (will && (will->withdrawn || strcmp(will->key, key)))
        will = will->next;
    return will;
}

/* FALSE: no memory. The first one names the client. */
static bool will_add(link_t *first, const char *key, dscomm_priv_data_t value)
{
    const size_t length = strlen(key) + 1;
    will_t *will = malloc(sizeof *will + length + value.size);

    if (!will)
        return false;
    *will = (will_t){.next = first->wills, .size = value.size};
    memcpy(will->key, key, length);
    memcpy(will->key + length, value.data, value.size);
    if (!*first->client)
        dscomm_priv_wire_name(first->client, WIRE_NAMED_BY_CLIENT);
    first->wills = will;
    return true;
}

static void put_will(const link_t *first, const will_t *will,
                     dscomm_priv_buffer_t *request)
{
    dscomm_priv_put_u8(request, WIRE_WILL);
    dscomm_priv_buffer_put(request, first->client, sizeof first->client);
    dscomm_priv_put_key(request, will->key);
    dscomm_priv_put_bytes(request, will->key + strlen(will->key) + 1,
                          will->withdrawn ? 0 : will->size);
}

static void put_withdrawn(link_t *first, dscomm_priv_buffer_t *request)
{
    for (will_t *will = first->wills; will; will = will->next) {
        will->sent = will->withdrawn;
        if (will->withdrawn)
            put_will(first, will, request);
    }
}

/* The requests that withdraw wills, then those that give all others if given is
 * TRUE: a key may have both. */
static void put_wills(link_t *first, bool given, dscomm_priv_buffer_t *request)
{
    pthread_mutex_lock(&first->lock);
    put_withdrawn(first, request);
    for (will_t *will = first->wills; will && given; will = will->next)
        if (!will->withdrawn)
            put_will(first, will, request);
    pthread_mutex_unlock(&first->lock);
}

/* The server has got what put_wills() has made. */
static void forget_withdrawn(link_t *first)
{
    will_t **at = &first->wills, *will;

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

/* Sends what put_wills() makes, and waits until the server has done it. */
static dscomm_status_t tell(link_t *link, bool given,
                            dscomm_priv_deadline_t deadline)
{
    const uint32_t nonce = 0x3B1CF02D;
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;

    put_wills(link->first, given, &request);
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
        forget_withdrawn(link->first);
    return status;
}

dscomm_status_t dscomm_priv_own_wills_bind(link_t *link,
                                           dscomm_priv_deadline_t deadline)
{
    dscomm_priv_gate_t *turn = &link->first->turn;
    dscomm_status_t status = dscomm_priv_gate_enter(turn, deadline);

    if (status)
        return status;
    status = tell(link, true, deadline);
    dscomm_priv_gate_leave(turn);
    if (!status && link->parked >= 0) {
        dscomm_priv_fd_close(link->parked);
        link->parked = -1;
    }
    return status;
}

/* Notes the will, of which the server is to be told. False: no memory. */
static bool will_note(link_t *first, const char *key, dscomm_priv_data_t value)
{
    bool noted;

    pthread_mutex_lock(&first->lock);
    noted = will_find(first, key) || will_add(first, key, value);
    pthread_mutex_unlock(&first->lock);
    return noted;
}

/* The connection, on which nothing was sent, stays. */
static dscomm_status_t leave_without(link_t *link)
{
    dscomm_priv_link_leave(link, DSCOMM_OK);
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a last will");
}

dscomm_status_t dscomm_priv_own_will_give(link_t *first, const char *key,
                                          dscomm_priv_data_t value,
                                          dscomm_priv_deadline_t deadline)
{
    link_t *link = first;
    dscomm_status_t status = dscomm_priv_link_enter(&link, FALSE, deadline);

    if (status)
        return status;
    if (link->server[0] != WIRE_NAMED_ITSELF)
        return dscomm_priv_link_leave(link, DSCOMM_OK);
    if (!will_note(first, key, value))
        return leave_without(link);
    link->binds = true;
    status = dscomm_priv_own_wills_bind(link, dscomm_priv_grace(deadline));
    if (status == DSCOMM_ERR_PEER_FAILED) /* the next connection is bound */
        status = dscomm_priv_link_renew(link, deadline);
    return dscomm_priv_link_leave(link, status);
}

/* TRUE where there is one to be withdrawn. */
static bool note_withdrawn(link_t *first, const char *key)
{
    bool any = false;

    pthread_mutex_lock(&first->lock);
    for (will_t *will = first->wills; will; will = will->next)
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
        status = tell(link, false, deadline);
    if (status)
        dscomm_priv_link_disconnect(link);
    dscomm_priv_gate_leave(turn);
    return status;
}

/* Any connection can withdraw the wills of the client, but none is made for
 * that. */
void dscomm_priv_own_will_withdraw(link_t *first, const char *key)
{
    dscomm_priv_deadline_t deadline = dscomm_priv_deadline(WITHDRAW_MS);
    char before[DSCOMM_ERROR_MAX];
    link_t *link;

    if (!note_withdrawn(first, key))
        return;
    link = dscomm_priv_link_choose(first, FALSE);
    if (!link)
        return;
    g_strlcpy(before, dscomm_last_error(), sizeof before);
    deadline.end = deadline.at;
    if (dscomm_priv_gate_enter(&link->gate, deadline) == DSCOMM_OK) {
        dscomm_priv_own_wills_flush(link, deadline, deadline);
        dscomm_priv_gate_leave(&link->gate);
    }
    dscomm_priv_fail_with(DSCOMM_ERR_TIMEOUT, before);
    dscomm_priv_link_release(link);
}

bool dscomm_priv_own_wills_settled(link_t *first)
{
    bool settled = true;

    pthread_mutex_lock(&first->lock);
    for (will_t *will = first->wills; will; will = will->next)
        settled = settled && !will->withdrawn;
    pthread_mutex_unlock(&first->lock);
    return settled;
}

void dscomm_priv_own_wills_free(link_t *first)
{
    while (first->wills) {
        will_t *will = first->wills;

        first->wills = will->next;
        free(will);
    }
}
