/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store-commands.h"

#include "lib/store-table.h"
#include "lib/store-waiters.h"
#include "lib/store-will.h"

#include "lib/status.h"

#include <string.h>

struct dscomm_priv_commands {
    dscomm_priv_table_t *table;
    GHashTable *queues; /* GBytes -> GQueue of GBytes, never empty */
    dscomm_priv_waiters_t waiters;
    dscomm_priv_wills_t *wills;
    gboolean full; /* and the log knows */
    char *secret; /* that clients must know, or NULL */
    bool refused; /* one that does not, and the log knows */
};

typedef dscomm_priv_commands_t commands_t;
typedef dscomm_priv_session_t session_t;

/* One request: its session, and its keys, values and integers. */
typedef struct {
    session_t *session;
    const uint8_t *data;
    const dscomm_priv_span_t *spans;
    size_t count;
    const char *problem; /* why the connection is to be closed */
} request_t;

static void unref_bytes(gpointer bytes)
{
    g_bytes_unref(bytes);
}

static void free_queue(gpointer queue)
{
    g_queue_free_full(queue, unref_bytes);
}

/* Nobody's keys, see store-wire.h. */
static const char *const own_keys[] = {WIRE_SERVER_KEY, WIRE_JOB_KEY};

static GBytes *own_key(size_t i)
{
    return g_bytes_new_static(own_keys[i], strlen(own_keys[i]));
}

static void set_own(commands_t *commands, size_t i, const void *data,
                    size_t size)
{
    GBytes *key = own_key(i), *value = g_bytes_new(data, size);

    dscomm_priv_table_set(commands->table, key, value);
    g_bytes_unref(value);
    g_bytes_unref(key);
}

static void name_server(commands_t *commands, const dscomm_priv_job_t *job)
{
    uint8_t name[WIRE_NAME_SIZE];

    dscomm_priv_wire_name(name, WIRE_NAMED_ITSELF);
    set_own(commands, 0, name, sizeof name);
    if (job && job->name)
        set_own(commands, 1, job->name, strlen(job->name));
}

commands_t *dscomm_priv_commands_new(size_t most, const dscomm_priv_job_t *job)
{
    commands_t *commands = g_new0(commands_t, 1);

    commands->table = dscomm_priv_table_new(most);
    commands->queues = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                             unref_bytes, free_queue);
    dscomm_priv_waiters_init(&commands->waiters);
    commands->wills = dscomm_priv_wills_new();
    commands->secret = job ? g_strdup(job->secret) : NULL;
    name_server(commands, job);
    return commands;
}

void dscomm_priv_commands_free(commands_t *commands)
{
    dscomm_priv_wills_free(commands->wills);
    dscomm_priv_waiters_clear(&commands->waiters);
    g_hash_table_unref(commands->queues);
    dscomm_priv_table_free(commands->table);
    dscomm_priv_secret_free(commands->secret);
    g_free(commands);
}

/* Who may use the keys */

void dscomm_priv_commands_refuse(commands_t *commands, session_t *session)
{
    if (!commands->refused)
        dscomm_log(DSCOMM_LOG_WARN, "store",
                   "refused %s, which does not prove that it knows the job's "
                   "secret; give it DSCOMM_JOB_SECRET if it is of this job, or "
                   "the job none if it uses PyTorch's TCPStore (dscomm run "
                   "--no-secret)",
                   session->peer);
    commands->refused = true;
    session->refused = true;
}

void dscomm_priv_commands_forget(commands_t *commands, session_t *session)
{
    dscomm_priv_waiters_remove(&commands->waiters, session);
}

static gboolean is_there(const commands_t *commands, GBytes *key)
{
    return dscomm_priv_table_get(commands->table, key) ||
           g_hash_table_contains(commands->queues, key);
}

/* Reading requests and writing answers */

static const uint8_t *span_data(const request_t *request, size_t i)
{
    return request->data + request->spans[i].offset;
}

/* A key or value of the request without a copy, for looking up and comparing
 * alone: its bytes live only as long as the request, so that it is neither
 * stored nor part of an answer. */
static GBytes *look(const request_t *request, size_t i)
{
    return g_bytes_new_static(span_data(request, i), request->spans[i].size);
}

/* There was no room for it. */
static void refuse(commands_t *commands, request_t *request)
{
    if (!commands->full)
        dscomm_log(DSCOMM_LOG_WARN, "store", "closing %s: %s",
                   request->session->peer, dscomm_last_error());
    commands->full = TRUE;
    request->problem = "the store is full";
}

/* A copy to be stored; NULL closes the connection. */
static GBytes *copy(commands_t *commands, request_t *request, size_t i)
{
    GBytes *bytes =
        dscomm_priv_budget_copy(dscomm_priv_table_budget(commands->table),
                                span_data(request, i), request->spans[i].size);

    if (!bytes)
        refuse(commands, request);
    return bytes;
}

static void store(commands_t *commands, request_t *request, GBytes *key,
                  GBytes *value)
{
    if (dscomm_priv_table_set(commands->table, key, value))
        refuse(commands, request);
    else
        dscomm_priv_waiters_wake(&commands->waiters, WAITERS_KEY, key);
}

static int64_t integer(const request_t *request, size_t i)
{
    int64_t value;

    memcpy(&value, span_data(request, i), sizeof value);
    return value;
}

static void answer_integer(const request_t *request, int64_t value)
{
    dscomm_priv_session_answer(request->session, &value, sizeof value);
}

static void answer_byte(const request_t *request, uint8_t value)
{
    dscomm_priv_session_answer(request->session, &value, sizeof value);
}

/* Answers a key or value of the request itself. */
static void answer_span(const request_t *request, size_t i)
{
    dscomm_priv_session_answer_copy(request->session, span_data(request, i),
                                    request->spans[i].size);
}

/* Commands */

static void run_validate(commands_t *commands, request_t *request)
{
    request->session->greeted = true;
    if (!commands->secret)
        request->session->validated = true;
}

/* The server proves first that it knows the secret, so that a client does not
 * give its keys to a stranger that has the port. */
static void run_challenge(commands_t *commands, request_t *request)
{
    session_t *session = request->session;
    uint8_t *own = session->nonces + SECRET_NONCE_SIZE;
    dscomm_priv_challenge_t answer = {0};

    if (commands->secret) {
        memcpy(session->nonces, span_data(request, 0), SECRET_NONCE_SIZE);
        if (!dscomm_priv_secret_nonce(own)) {
            request->problem = "the system gives no random numbers";
            return;
        }
        answer.guarded = 1;
        memcpy(answer.nonce, own, sizeof answer.nonce);
        dscomm_priv_secret_prove(commands->secret, SECRET_SERVER,
                                 session->nonces, answer.proof);
    }
    session->challenged = true;
    dscomm_priv_session_answer(session, &answer, sizeof answer);
}

/* One try for each challenge. */
static void run_proof(commands_t *commands, request_t *request)
{
    session_t *session = request->session;

    if (!commands->secret)
        return;
    if (session->challenged &&
        dscomm_priv_secret_check(commands->secret, SECRET_CLIENT,
                                 session->nonces, span_data(request, 0)))
        session->validated = true;
    else
        request->problem = "its proof of the job's secret is wrong";
    session->challenged = false;
}

/* SET and MULTI_SET */
static void run_set(commands_t *commands, request_t *request)
{
    for (size_t i = 0; i < request->count && !request->problem; i += 2) {
        GBytes *key = look(request, i);
        GBytes *value = copy(commands, request, i + 1);

        if (value) {
            store(commands, request, key, value);
            g_bytes_unref(value);
        }
        g_bytes_unref(key);
    }
}

static void run_compare_set(commands_t *commands, request_t *request)
{
    GBytes *key = look(request, 0), *expected = look(request, 1);
    GBytes *desired = copy(commands, request, 2), *answer;
    gboolean replace;

    if (desired) {
        answer = dscomm_priv_table_compare(commands->table, key, expected,
                                           desired, &replace);
        if (answer)
            dscomm_priv_session_answer_value(request->session, answer);
        else
            answer_span(request, 1);
        if (replace)
            store(commands, request, key, desired);
        if (answer)
            g_bytes_unref(answer);
        g_bytes_unref(desired);
    }
    g_bytes_unref(expected);
    g_bytes_unref(key);
}

/* GET and MULTI_GET */
static void run_get(commands_t *commands, request_t *request)
{
    for (size_t i = 0; i < request->count; i++) {
        GBytes *key = look(request, i);

        dscomm_priv_session_answer_value(
            request->session, dscomm_priv_table_get(commands->table, key));
        g_bytes_unref(key);
    }
}

/* FALSE: the value is no number, or the store is full. */
static gboolean add(commands_t *commands, request_t *request, int64_t delta,
                    GBytes *key, int64_t *ret_sum)
{
    dscomm_status_t status;
    GBytes *text;

    status = dscomm_priv_table_sum(commands->table, key, delta, ret_sum, &text);
    if (status == DSCOMM_ERR_NO_MEMORY) {
        refuse(commands, request);
    } else if (status) {
        request->problem = "it adds to what is no number";
    } else {
        store(commands, request, key, text);
        g_bytes_unref(text);
    }
    return !request->problem;
}

static void run_add(commands_t *commands, request_t *request)
{
    GBytes *key = look(request, 0);
    int64_t sum;

    if (add(commands, request, integer(request, 1), key, &sum))
        answer_integer(request, sum);
    g_bytes_unref(key);
}

static void run_check(commands_t *commands, request_t *request)
{
    gboolean ready = TRUE;

    for (size_t i = 0; i < request->count && ready; i++) {
        GBytes *key = look(request, i);

        ready = is_there(commands, key);
        g_bytes_unref(key);
    }
    answer_byte(request, ready ? WIRE_READY : WIRE_NOT_READY);
}

static gboolean may_wait(request_t *request)
{
    if (request->session->waiting)
        request->problem = "it waits twice at a time";
    return !request->session->waiting;
}

static void run_wait(commands_t *commands, request_t *request)
{
    session_t *session = request->session;

    if (!may_wait(request))
        return;
    for (size_t i = 0; i < request->count; i++) {
        GBytes *key = look(request, i);

        if (!is_there(commands, key))
            dscomm_priv_waiters_add(&commands->waiters, WAITERS_KEY, key,
                                    session);
        g_bytes_unref(key);
    }
    session->waiting = TRUE;
    if (!session->missing)
        dscomm_priv_waiters_answer(session);
}

static void run_cancel_wait(commands_t *commands, request_t *request)
{
    dscomm_priv_waiters_remove(&commands->waiters, request->session);
    answer_byte(request, WIRE_CANCELED);
}

static void run_num_keys(commands_t *commands, request_t *request)
{
    size_t count = dscomm_priv_table_count(commands->table);

    for (size_t i = 0; i < G_N_ELEMENTS(own_keys); i++) {
        GBytes *key = own_key(i);

        count -= dscomm_priv_table_get(commands->table, key) != NULL;
        g_bytes_unref(key);
    }
    answer_integer(request, (int64_t)count);
}

static void run_delete_key(commands_t *commands, request_t *request)
{
    GBytes *key = look(request, 0);

    answer_integer(request, dscomm_priv_table_remove(commands->table, key));
    g_bytes_unref(key);
}

static void run_append(commands_t *commands, request_t *request)
{
    GBytes *key = look(request, 0), *value;
    dscomm_status_t status;

    status = dscomm_priv_table_join(commands->table, key, span_data(request, 1),
                                    request->spans[1].size, &value);
    if (status == DSCOMM_ERR_INVALID) {
        request->problem = "it appends beyond what a value may have";
    } else if (status) {
        refuse(commands, request);
    } else {
        store(commands, request, key, value);
        g_bytes_unref(value);
    }
    g_bytes_unref(key);
}

/* Inverted, a client learns that it must prove that it knows the secret, and
 * torch's that it is not served. */
static void run_ping(commands_t *commands, request_t *request)
{
    uint32_t nonce;

    (void)commands;
    memcpy(&nonce, span_data(request, 0), sizeof nonce);
    if (!request->session->validated)
        nonce = ~nonce;
    dscomm_priv_session_answer(request->session, &nonce, sizeof nonce);
}

static void run_queue_push(commands_t *commands, request_t *request)
{
    GBytes *key = copy(commands, request, 0),
           *value = copy(commands, request, 1);
    GQueue *queue;

    if (key && value) {
        queue = g_hash_table_lookup(commands->queues, key);
        if (!queue) {
            queue = g_queue_new();
            g_hash_table_insert(commands->queues, g_bytes_ref(key), queue);
        }
        g_queue_push_tail(queue, g_bytes_ref(value));
        dscomm_priv_waiters_wake_one(&commands->waiters, key);
    }
    if (value)
        g_bytes_unref(value);
    if (key)
        g_bytes_unref(key);
}

static void run_queue_pop(commands_t *commands, request_t *request)
{
    GBytes *key = look(request, 0), *value;
    GQueue *queue = g_hash_table_lookup(commands->queues, key);

    answer_integer(request, queue ? (int64_t)g_queue_get_length(queue) : 0);
    if (queue) {
        value = g_queue_pop_head(queue);
        dscomm_priv_session_answer_value(request->session, value);
        g_bytes_unref(value);
        if (g_queue_is_empty(queue))
            g_hash_table_remove(commands->queues, key);
    }
    g_bytes_unref(key);
}

static void run_queue_len(commands_t *commands, request_t *request)
{
    GBytes *key = look(request, 0);
    GQueue *queue = g_hash_table_lookup(commands->queues, key);

    answer_integer(request, queue ? (int64_t)g_queue_get_length(queue) : 0);
    g_bytes_unref(key);
}

static void run_list_keys(commands_t *commands, request_t *request)
{
    GPtrArray *keys = dscomm_priv_table_keys(commands->table);
    guint at;

    for (size_t i = 0; i < G_N_ELEMENTS(own_keys); i++) {
        GBytes *own = own_key(i);

        if (g_ptr_array_find_with_equal_func(keys, own, g_bytes_equal, &at))
            g_ptr_array_remove_index_fast(keys, at);
        g_bytes_unref(own);
    }
    answer_integer(request, keys->len);
    for (guint i = 0; i < keys->len; i++)
        dscomm_priv_session_answer_value(request->session, keys->pdata[i]);
    g_ptr_array_unref(keys);
}

static void run_barrier(commands_t *commands, request_t *request)
{
    GBytes *key;
    int64_t sum;

    if (!may_wait(request))
        return;
    key = look(request, 0);
    if (add(commands, request, 1, key, &sum)) {
        request->session->waiting = TRUE;
        dscomm_priv_waiters_add(&commands->waiters, WAITERS_BARRIER, key,
                                request->session);
        if (sum >= integer(request, 1))
            dscomm_priv_waiters_wake(&commands->waiters, WAITERS_BARRIER, key);
    }
    g_bytes_unref(key);
}

/* Last wills */

void dscomm_priv_commands_part(commands_t *commands, session_t *session,
                               bool ended)
{
    if (session->client)
        dscomm_priv_wills_leave(commands->wills, session->client, ended);
    g_clear_pointer(&session->client, g_bytes_unref);
}

gint64 dscomm_priv_commands_due(const commands_t *commands)
{
    return dscomm_priv_wills_due(commands->wills);
}

/* A will for which the store has no room is lost, as any other key. */
void dscomm_priv_commands_carry_out(commands_t *commands, gint64 now)
{
    GBytes *key, *value, *joined;

    while (dscomm_priv_wills_take(commands->wills, now, &key, &value)) {
        gsize size;
        const void *data = g_bytes_get_data(value, &size);

        if (!dscomm_priv_table_join(commands->table, key, data, size,
                                    &joined)) {
            if (!dscomm_priv_table_set(commands->table, key, joined))
                dscomm_priv_waiters_wake(&commands->waiters, WAITERS_KEY, key);
            g_bytes_unref(joined);
        }
        g_bytes_unref(value);
        g_bytes_unref(key);
    }
}

static void give_will(commands_t *commands, request_t *request)
{
    GBytes *client = copy(commands, request, 0);
    GBytes *key = client ? copy(commands, request, 1) : NULL;
    GBytes *value = key ? copy(commands, request, 2) : NULL;

    dscomm_priv_commands_part(commands, request->session, false);
    if (value) {
        dscomm_priv_wills_join(commands->wills, client, key, value);
        request->session->client = g_bytes_ref(client);
        g_bytes_unref(value);
    }
    if (key)
        g_bytes_unref(key);
    if (client)
        g_bytes_unref(client);
}

static void run_will(commands_t *commands, request_t *request)
{
    const size_t size = request->spans[1].size + request->spans[2].size;
    GBytes *client;

    if (size > WIRE_WILL_MAX) {
        request->problem = "a will beyond its limit";
    } else if (request->spans[1].size) {
        give_will(commands, request);
    } else {
        client = look(request, 0);
        dscomm_priv_wills_withdraw(commands->wills, client);
        g_bytes_unref(client);
    }
}

static void (*const handlers[WIRE_COMMANDS])(commands_t *commands,
                                             request_t *request) = {
    [WIRE_VALIDATE] = run_validate,
    [WIRE_SET] = run_set,
    [WIRE_COMPARE_SET] = run_compare_set,
    [WIRE_GET] = run_get,
    [WIRE_ADD] = run_add,
    [WIRE_CHECK] = run_check,
    [WIRE_WAIT] = run_wait,
    [WIRE_GETNUMKEYS] = run_num_keys,
    [WIRE_DELETE_KEY] = run_delete_key,
    [WIRE_APPEND] = run_append,
    [WIRE_MULTI_GET] = run_get,
    [WIRE_MULTI_SET] = run_set,
    [WIRE_CANCEL_WAIT] = run_cancel_wait,
    [WIRE_PING] = run_ping,
    [WIRE_QUEUE_PUSH] = run_queue_push,
    [WIRE_QUEUE_POP] = run_queue_pop,
    [WIRE_QUEUE_LEN] = run_queue_len,
    [WIRE_LIST_KEYS] = run_list_keys,
    [WIRE_BARRIER] = run_barrier,
    [WIRE_CHALLENGE] = run_challenge,
    [WIRE_PROOF] = run_proof,
    [WIRE_WILL] = run_will,
};

gboolean dscomm_priv_commands_execute(commands_t *commands, session_t *session,
                                      const uint8_t *data,
                                      const char **ret_problem)
{
    request_t request = {
        .session = session,
        .data = data,
        .spans = (const dscomm_priv_span_t *)(void *)session->scan.spans->data,
        .count = session->scan.spans->len,
    };

    handlers[session->scan.command](commands, &request);
    if (!request.problem)
        return TRUE;
    *ret_problem = request.problem;
    return FALSE;
}
