/* SPDX-License-Identifier: BSD-3-Clause */
/* Cancelling a message. A rank keeps a promise that it has made to a peer: if a
 * sender was allowed to send, it will send, so the receiver must receive and
 * discard the bytes. */
#include "config.h"

#include "backends/shm/p2p.h"

#include <glib.h>

/* Removes a large message of this rank to itself that no receive has
 * matched. */
static void forget_self(shm_p2p_t *p2p, const shm_request_t *request)
{
    for (shm_early_t **link = &p2p->early; *link; link = &(*link)->next) {
        shm_early_t *early = *link;

        if (early->self != request)
            continue;
        *link = early->next;
        if (p2p->early_tail == &early->next)
            p2p->early_tail = link;
        shm_early_free(early);
        return;
    }
}

/* The sender has no answer yet, or needs none, and nothing has arrived: its
 * message becomes the oldest one for the next receive. */
static void put_back(shm_t *shm, const shm_request_t *request)
{
    shm_p2p_t *p2p = shm->p2p;
    shm_early_t *early = g_try_new0(shm_early_t, 1);

    if (!early) {
        shm_early_fail(shm, request->head.source);
        return;
    }
    early->source = request->head.source;
    early->tag = request->head.tag;
    early->bytes = request->p2p.total;
    early->id = request->p2p.id;
    early->reference = request->p2p.reference;
    early->large = true;
    early->ahead = request->p2p.ahead;
    early->next = p2p->early;
    if (!p2p->early)
        p2p->early_tail = &early->next;
    p2p->early = early;
}

/* The sender has begun to send: the rest of its chunks must be read from the
 * ring. */
static void request_drain(shm_t *shm, int source, shm_request_t *request)
{
    shm_list_t *list = &shm_pair(shm, source)->arriving;
    shm_request_t **link = &list->head;
    shm_request_t *rest;

    while (*link && *link != request)
        link = &(*link)->next;
    if (!*link)
        return;
    rest = g_try_new(shm_request_t, 1);
    if (!rest) {
        shm_list_remove(list, request);
        shm_unwant(shm, source);
        shm_early_fail(shm, source);
        return;
    }
    *rest = *request;
    rest->kind = SHM_DRAIN;
    rest->p2p.message.recv = NULL;
    rest->p2p.message.bytes = 0;
    *link = rest;
    if (list->tail == request)
        list->tail = rest;
}

void shm_drains_free(shm_pair_t *pair)
{
    while (pair->arriving.head) {
        shm_request_t *request = pair->arriving.head;

        pair->arriving.head = request->next;
        if (request->kind == SHM_DRAIN)
            g_free(request);
    }
}

int shm_withdraw(void *impl, dscomm_request_t *request)
{
    shm_t *shm = impl;
    shm_request_t *own = (shm_request_t *)request;

    if (!shm_list_remove(&shm->p2p->posted, own))
        return 0;
    shm_unwant_source(shm, own->p2p.message.peer);
    return 1;
}

int shm_matched(void *impl, const dscomm_request_t *request)
{
    const shm_t *shm = impl;
    const shm_request_t *posted = shm->p2p->posted.head;

    while (posted && &posted->head != request)
        posted = posted->next;
    return !posted;
}

void shm_p2p_cancel(shm_t *shm, shm_request_t *request)
{
    shm_p2p_t *p2p = shm->p2p;

    if (request->kind == SHM_SEND && request->p2p.reference)
        shm_single_void(shm);
    if (shm_list_remove(&p2p->posted, request))
        shm_unwant_source(shm, request->p2p.message.peer);
    for (int r = 0; r < shm->ranks; r++) {
        shm_pair_t *pair = &p2p->pairs[r];
        bool unanswered = shm_list_remove(&pair->frames, request);

        if (request->kind == SHM_RECV && request->p2p.ahead &&
            !request->p2p.moved)
            unanswered = shm_list_remove(&pair->arriving, request);
        if (unanswered && request->kind == SHM_RECV)
            put_back(shm, request);
        if (unanswered || shm_list_remove(&pair->waiting, request) ||
            shm_list_remove(&pair->sending, request))
            shm_unwant(shm, r);
        request_drain(shm, r, request);
    }
    forget_self(p2p, request);
}
