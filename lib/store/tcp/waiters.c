/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store/tcp/waiters.h"

typedef dscomm_priv_waiters_t waiters_t;
typedef dscomm_priv_session_t session_t;

/* A session that waits for a key. */
typedef struct {
    session_t *session;
    dscomm_priv_map_t *map; /* that has list */
    dscomm_priv_list_t *list; /* all that wait for the key */
    dscomm_priv_bytes_t *key; /* counts among the bytes under way */
    GList of_list, of_session; /* links of list->items and session->waits */
} wait_t;

void dscomm_priv_waiters_clear(waiters_t *waiters)
{
    for (int kind = 0; kind < WAITERS_KINDS; kind++)
        dscomm_priv_map_clear(&waiters->of[kind], dscomm_priv_list_free);
}

/* Whether session is in list, whose sessions wait for one key. A session adds
 * its waits in a row, so only the last in a list can be one of its own. */
static bool list_has(dscomm_priv_list_t *list, const session_t *session)
{
    const wait_t *last = list ? g_queue_peek_tail(&list->items) : NULL;

    return last && last->session == session;
}

bool dscomm_priv_waiters_add(waiters_t *waiters, waiters_kind_t kind,
                             dscomm_priv_data_t key, session_t *session)
{
    dscomm_priv_map_t *map = &waiters->of[kind];
    dscomm_priv_list_t *list = dscomm_priv_map_find(map, key);
    dscomm_priv_bytes_t *own;
    wait_t *wait;

    if (list_has(list, session))
        return true;
    /* no larger than the request, which had room */
    own = dscomm_priv_bytes_new(session->under_way, key.data, key.size,
                                key.size + SESSION_NOTE_COST);
    wait = own ? g_try_new0(wait_t, 1) : NULL;
    list = wait ? dscomm_priv_list_ensure(map, own) : NULL;
    if (!list) {
        g_free(wait);
        dscomm_priv_bytes_unref(own);
        return false;
    }
    *wait = (wait_t){session, map, list, own, {.data = wait}, {.data = wait}};
    g_queue_push_tail_link(&list->items, &wait->of_list);
    g_queue_push_tail_link(&session->waits, &wait->of_session);
    return true;
}

static void wait_end(wait_t *wait)
{
    g_queue_unlink(&wait->list->items, &wait->of_list);
    g_queue_unlink(&wait->session->waits, &wait->of_session);
    dscomm_priv_list_end_if_empty(wait->map, wait->list);
    dscomm_priv_bytes_unref(wait->key);
    g_free(wait);
}

void dscomm_priv_waiters_remove(session_t *session)
{
    while (session->waits.length)
        wait_end(g_queue_peek_head(&session->waits));
    session->waiting = FALSE;
}

void dscomm_priv_waiters_answer(session_t *session)
{
    uint8_t answer = WIRE_STOP_WAITING;

    session->waiting = FALSE;
    dscomm_priv_session_answer(session, &answer, 1);
}

/* The first session of list has one key less to wait for. */
static void list_wake_one(dscomm_priv_list_t *list)
{
    wait_t *wait = g_queue_peek_head(&list->items);
    session_t *session = wait->session;

    wait_end(wait);
    if (!session->waits.length)
        dscomm_priv_waiters_answer(session);
}

void dscomm_priv_waiters_wake(waiters_t *waiters, waiters_kind_t kind,
                              dscomm_priv_data_t key)
{
    dscomm_priv_list_t *list = dscomm_priv_map_find(&waiters->of[kind], key);

    /* the last one frees list */
    for (guint left = list ? list->items.length : 0; left; left--)
        list_wake_one(list);
}

void dscomm_priv_waiters_wake_one(waiters_t *waiters, dscomm_priv_data_t key)
{
    dscomm_priv_list_t *list =
        dscomm_priv_map_find(&waiters->of[WAITERS_KEY], key);

    if (list)
        list_wake_one(list);
}
