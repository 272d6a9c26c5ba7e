/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store-waiters.h"

#include <string.h>

typedef dscomm_priv_waiters_t waiters_t;
typedef dscomm_priv_session_t session_t;

static void unref_bytes(gpointer bytes)
{
    g_bytes_unref(bytes);
}

static void unref_set(gpointer set)
{
    g_hash_table_unref(set);
}

void dscomm_priv_waiters_init(waiters_t *waiters)
{
    for (int kind = 0; kind < WAITERS_KINDS; kind++)
        waiters->of[kind] = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                                  unref_bytes, unref_set);
}

void dscomm_priv_waiters_clear(waiters_t *waiters)
{
    for (int kind = 0; kind < WAITERS_KINDS; kind++)
        g_hash_table_unref(waiters->of[kind]);
}

/* A copy for session alone. It is no larger than the request, which had
 * room. */
static GBytes *copy_key(GBytes *key, const session_t *session)
{
    gsize size;
    const void *data = g_bytes_get_data(key, &size);
    void *own = g_malloc(size + 1);

    memcpy(own, data, size);
    return dscomm_priv_budget_take(session->under_way, own, size,
                                   size + SESSION_NOTE_COST);
}

void dscomm_priv_waiters_add(waiters_t *waiters, waiters_kind_t kind,
                             GBytes *key, session_t *session)
{
    GHashTable *set = g_hash_table_lookup(waiters->of[kind], key);

    if (set && g_hash_table_contains(set, session))
        return;
    key = copy_key(key, session);
    if (!set) {
        set = g_hash_table_new(NULL, NULL);
        g_hash_table_insert(waiters->of[kind], g_bytes_ref(key), set);
    }
    g_hash_table_add(set, session);
    g_ptr_array_add(session->waits, key);
    session->missing++;
}

static void remove_key(GHashTable *of, GBytes *key, session_t *session)
{
    GHashTable *set = g_hash_table_lookup(of, key);

    if (!set)
        return;
    g_hash_table_remove(set, session);
    if (!g_hash_table_size(set))
        g_hash_table_remove(of, key);
}

void dscomm_priv_waiters_remove(waiters_t *waiters, session_t *session)
{
    for (int kind = 0; kind < WAITERS_KINDS; kind++)
        for (guint i = 0; i < session->waits->len; i++)
            remove_key(waiters->of[kind], session->waits->pdata[i], session);
    g_ptr_array_set_size(session->waits, 0);
    session->waiting = FALSE;
    session->missing = 0;
}

void dscomm_priv_waiters_answer(session_t *session)
{
    uint8_t answer = WIRE_STOP_WAITING;

    session->waiting = FALSE;
    dscomm_priv_session_answer(session, &answer, 1);
}

/* One key less for session to wait for. */
static void key_came(waiters_t *waiters, session_t *session)
{
    if (--session->missing)
        return;
    dscomm_priv_waiters_remove(waiters, session);
    dscomm_priv_waiters_answer(session);
}

void dscomm_priv_waiters_wake(waiters_t *waiters, waiters_kind_t kind,
                              GBytes *key)
{
    GHashTable *set = g_hash_table_lookup(waiters->of[kind], key);
    GHashTableIter iter;
    gpointer session;

    if (!set)
        return;
    g_hash_table_ref(set);
    g_hash_table_remove(waiters->of[kind], key);
    g_hash_table_iter_init(&iter, set);
    while (g_hash_table_iter_next(&iter, &session, NULL))
        key_came(waiters, session);
    g_hash_table_unref(set);
}

void dscomm_priv_waiters_wake_one(waiters_t *waiters, GBytes *key)
{
    GHashTable *of = waiters->of[WAITERS_KEY];
    GHashTable *set = g_hash_table_lookup(of, key);
    GHashTableIter iter;
    gpointer session;

    if (!set)
        return;
    g_hash_table_iter_init(&iter, set);
    if (!g_hash_table_iter_next(&iter, &session, NULL))
        return;
    remove_key(of, key, session);
    key_came(waiters, session);
}
