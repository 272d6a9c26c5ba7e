/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching messages with receives. */
#include "config.h"

#include "backends/shm/p2p.h"

#include <glib.h>

static bool shm_match(const dscomm_message_t *wanted, int source, int tag)
{
    return (wanted->peer == source || wanted->peer == DSCOMM_ANY_SOURCE) &&
           (wanted->tag == tag || (wanted->tag == DSCOMM_ANY_TAG && tag >= 0));
}

shm_request_t *shm_posted_take(shm_p2p_t *p2p, int source, int tag)
{
    shm_request_t *request = p2p->posted.head;

    while (request && !shm_match(&request->p2p.message, source, tag))
        request = request->next;
    if (request)
        shm_list_remove(&p2p->posted, request);
    return request;
}

shm_early_t *shm_early_find(const shm_p2p_t *p2p,
                            const dscomm_message_t *wanted)
{
    shm_early_t *early = p2p->early;

    if (wanted->taken)
        return wanted->taken;
    while (early &&
           (early->taken || !shm_match(wanted, early->source, early->tag)))
        early = early->next;
    return early;
}

shm_early_t *shm_early_take(shm_p2p_t *p2p, const dscomm_message_t *wanted)
{
    shm_early_t *early = shm_early_find(p2p, wanted);
    shm_early_t **link = &p2p->early;

    if (!early)
        return NULL;
    while (*link != early)
        link = &(*link)->next;
    *link = early->next;
    if (p2p->early_tail == &early->next)
        p2p->early_tail = link;
    return early;
}

shm_early_t *shm_early_add(shm_p2p_t *p2p, int source, int tag, size_t bytes)
{
    shm_early_t *early = g_try_malloc0(sizeof *early + bytes);

    if (!early)
        return NULL;
    early->source = source;
    early->tag = tag;
    *p2p->early_tail = early;
    p2p->early_tail = &early->next;
    return early;
}

void shm_early_free(shm_early_t *early)
{
    g_free(early->kept);
    g_free(early);
}

dscomm_status_t shm_early_fail(shm_t *shm, int source)
{
    shm_fail_resource(shm, DSCOMM_ERR_NO_MEMORY,
                      "no memory to keep a message of rank %d until it is "
                      "received",
                      shm_number(shm, source));
    return shm_revoke_last(shm, DSCOMM_ERR_NO_MEMORY);
}

void shm_completed(shm_t *shm, shm_request_t *request, dscomm_status_t status)
{
    shm->completed++;
    shm->moves++;
    request->head.status = status;
}

void shm_received(shm_t *shm, shm_request_t *request, int source, int tag,
                  uint64_t bytes)
{
    dscomm_status_t status = DSCOMM_OK;

    request->head.source = source;
    request->head.tag = tag;
    request->head.bytes = (size_t)bytes;
    if (bytes > request->p2p.message.bytes)
        status = dscomm_fail(DSCOMM_ERR_TRUNCATED,
                             "group '%s': a message of %llu bytes from rank %d "
                             "with tag %d met a receive of %zu bytes; the rest "
                             "is lost",
                             shm->name, (unsigned long long)bytes,
                             shm_number(shm, source), tag,
                             request->p2p.message.bytes);
    shm_completed(shm, request, status);
}
