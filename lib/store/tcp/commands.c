/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/store/tcp/commands.h"

#include "lib/base/random.h"
#include "lib/base/status.h"

#include <stdbool.h>
#include <string.h>

/* times that held-back requests are executed, so that all clients get a turn */
#define TURNS 4

typedef dscomm_priv_commands_t commands_t;
typedef dscomm_priv_session_t session_t;

typedef dscomm_priv_bytes_t bytes_t;
typedef dscomm_priv_data_t data_t;

/* One request: its session, and its keys, values and integers. */
typedef struct {
    session_t *session;
    const uint8_t *data;
    const dscomm_priv_span_t *spans;
    size_t count;
    const char *problem; /* reason to close the connection */
} request_t;

static void free_queue(dscomm_priv_node_t *node)
{
    dscomm_priv_queue_clear(&((dscomm_priv_list_t *)node)->items);
    dscomm_priv_list_free(node);
}

/* Keys that are no client's, see wire.h. */
static const char *const own_keys[] = {WIRE_SERVER_KEY, WIRE_JOB_KEY};

static dscomm_status_t set_own(commands_t *commands, const char *key,
                               const void *data, size_t size)
{
    bytes_t *value =
        dscomm_priv_budget_copy(&commands->table.budget, data, size);
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;

    if (value)
        status = dscomm_priv_table_set(&commands->table,
                                       dscomm_priv_data_text(key), value);
    dscomm_priv_bytes_unref(value);
    return status;
}

static dscomm_status_t name_server(commands_t *commands,
                                   const dscomm_priv_job_t *job)
{
    uint8_t name[WIRE_NAME_SIZE];
    dscomm_status_t status;

    dscomm_priv_wire_name(name, WIRE_NAMED_ITSELF);
    status = set_own(commands, WIRE_SERVER_KEY, name, sizeof name);
    if (!status && job->name)
        status = set_own(commands, WIRE_JOB_KEY, job->name, strlen(job->name));
    if (!status && job->key)
        status = set_own(commands, job->key, job->text, strlen(job->text));
    return status;
}

/* *ret_copy = a copy of text; NULL if there is none. False: no memory. */
static bool copy_text(const char *text, char **ret_copy)
{
    *ret_copy = text ? dscomm_priv_value(text, strlen(text)) : NULL;
    return *ret_copy || !text;
}

dscomm_status_t dscomm_priv_commands_init(commands_t *commands, size_t most,
                                          const dscomm_priv_job_t *job)
{
    static const dscomm_priv_job_t nobody;

    if (!job)
        job = &nobody;
    *commands = (commands_t){
        .table.budget.most = most,
        .wills = {.table = &commands->table, .waiters = &commands->waiters}};
    dscomm_priv_refused_init(
        &commands->reports, job->rank ? job->rank->world : "",
        job->secret != NULL,
        job->credential && *job->credential == WIRE_NO_CREDENTIAL);
    if (!copy_text(job->secret, &commands->secret) ||
        !copy_text(job->credential, &commands->credential))
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for the store's server");
    return name_server(commands, job);
}

void dscomm_priv_commands_clear(commands_t *commands)
{
    dscomm_priv_wills_clear(&commands->wills);
    dscomm_priv_waiters_clear(&commands->waiters);
    dscomm_priv_map_clear(&commands->queues, free_queue);
    dscomm_priv_table_clear(&commands->table);
    dscomm_priv_secret_free(commands->secret);
    g_free(commands->credential);
}

/* Access to the keys */

static void commands_refuse(commands_t *commands, session_t *session)
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

static bool is_there(const commands_t *commands, data_t key)
{
    return dscomm_priv_table_get(&commands->table, key) ||
           dscomm_priv_map_find(&commands->queues, key);
}

/* Reading requests and writing answers */

static const uint8_t *span_data(const request_t *request, size_t i)
{
    return request->data + request->spans[i].offset;
}

/* A key or value of the request, not copied, for lookups and comparisons. Its
 * bytes live only as long as the request, so it is neither stored nor put in an
 * answer. */
static data_t request_look(const request_t *request, size_t i)
{
    return (data_t){span_data(request, i), request->spans[i].size};
}

/* Refuses a request for which there is no room or no memory. */
static void request_refuse(commands_t *commands, request_t *request)
{
    if (!commands->full)
        dscomm_log(DSCOMM_LOG_WARN, "store", "closing %s: %s",
                   request->session->peer, dscomm_last_error());
    commands->full = true;
    request->problem = "no room or no memory for what it stores";
}

/* A copy to be stored. NULL: no room, and the connection will be closed. */
static bytes_t *request_copy(commands_t *commands, request_t *request, size_t i)
{
    bytes_t *bytes = dscomm_priv_budget_copy(
        &commands->table.budget, span_data(request, i), request->spans[i].size);

    if (!bytes)
        request_refuse(commands, request);
    return bytes;
}

static void store(commands_t *commands, request_t *request, data_t key,
                  bytes_t *value)
{
    if (dscomm_priv_table_set(&commands->table, key, value))
        request_refuse(commands, request);
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

/* Answers with a key or value of the request itself. */
static void answer_span(const request_t *request, size_t i)
{
    dscomm_priv_session_answer_copy(request->session, span_data(request, i),
                                    request->spans[i].size);
}

/* Commands */

static void run_validate(commands_t *commands, request_t *request)
{
    request->session->validate_received = true;
    if (!commands->secret)
        request->session->validated = true;
}

/* Answers with the server's own proof of the secret. The server proves it
 * first, so that a client gives no keys to a program that has taken the port.
 */
static void run_challenge(commands_t *commands, request_t *request)
{
    session_t *session = request->session;
    uint8_t *own = session->nonces + SECRET_NONCE_SIZE;
    dscomm_priv_challenge_t answer = {0};

    if (commands->secret) {
        memcpy(session->nonces, span_data(request, 0), SECRET_NONCE_SIZE);
        if (!dscomm_priv_random(own, SECRET_NONCE_SIZE)) {
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

/* Checks the client's proof: one attempt for each challenge. */
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

static void run_credential(commands_t *commands, request_t *request)
{
    const char *text = commands->credential ? commands->credential : "";

    dscomm_priv_session_answer_copy(request->session, text, strlen(text));
}

/* Notes a report of a refused process. If there is no memory, the report is
 * lost, and the sentence of those who wait is less precise. */
static void run_refused(commands_t *commands, request_t *request)
{
    const data_t key = dscomm_priv_data_text("/" REFUSED_KEY);
    char text[REFUSED_VALUE_MAX];
    dscomm_priv_rank_t rank;

    memcpy(&rank, span_data(request, 0), sizeof rank);
    dscomm_priv_refused_note(&commands->reports, request->session->fd,
                             request->session->peer, &rank);
    dscomm_priv_refused_text(&commands->reports, text);
    if (!set_own(commands, "/" REFUSED_KEY, text, strlen(text)))
        dscomm_priv_waiters_wake(&commands->waiters, WAITERS_KEY, key);
}

/* SET and MULTI_SET */
static void run_set(commands_t *commands, request_t *request)
{
    for (size_t i = 0; i < request->count && !request->problem; i += 2) {
        bytes_t *value = request_copy(commands, request, i + 1);

        if (value)
            store(commands, request, request_look(request, i), value);
        dscomm_priv_bytes_unref(value);
    }
}

static void run_compare_set(commands_t *commands, request_t *request)
{
    const data_t key = request_look(request, 0);
    bytes_t *desired = request_copy(commands, request, 2), *found;

    if (!desired)
        return;
    if (dscomm_priv_table_compare(&commands->table, key,
                                  request_look(request, 1), &found)) {
        dscomm_priv_session_answer_value(request->session, desired);
        store(commands, request, key, desired);
    } else if (found) {
        dscomm_priv_session_answer_value(request->session, found);
    } else {
        answer_span(request, 1);
    }
    dscomm_priv_bytes_unref(desired);
}

/* GET and MULTI_GET */
static void run_get(commands_t *commands, request_t *request)
{
    for (size_t i = 0; i < request->count; i++)
        dscomm_priv_session_answer_value(
            request->session,
            dscomm_priv_table_get(&commands->table, request_look(request, i)));
}

/* False if the value is not a number, or there is no room or no memory. */
static bool commands_add(commands_t *commands, request_t *request,
                         int64_t delta, data_t key, int64_t *ret_sum)
{
    dscomm_status_t status;
    bytes_t *text;

    status =
        dscomm_priv_table_sum(&commands->table, key, delta, ret_sum, &text);
    if (status == DSCOMM_ERR_NO_MEMORY) {
        request_refuse(commands, request);
    } else if (status) {
        request->problem = "it adds to what is no number";
    } else {
        store(commands, request, key, text);
        dscomm_priv_bytes_unref(text);
    }
    return !request->problem;
}

static void run_add(commands_t *commands, request_t *request)
{
    int64_t sum;

    if (commands_add(commands, request, integer(request, 1),
                     request_look(request, 0), &sum))
        answer_integer(request, sum);
}

static void run_check(commands_t *commands, request_t *request)
{
    bool ready = true;

    for (size_t i = 0; i < request->count && ready; i++)
        ready = is_there(commands, request_look(request, i));
    answer_byte(request, ready ? WIRE_READY : WIRE_NOT_READY);
}

static const char no_memory[] = "no memory for its request";

static bool may_wait(request_t *request)
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
        const data_t key = request_look(request, i);

        if (!is_there(commands, key) &&
            !dscomm_priv_waiters_add(&commands->waiters, WAITERS_KEY, key,
                                     session)) {
            request->problem = no_memory;
            return;
        }
    }
    session->waiting = true;
    if (!session->waits.length)
        dscomm_priv_waiters_answer(session);
}

static void run_cancel_wait(commands_t *commands, request_t *request)
{
    (void)commands;
    dscomm_priv_waiters_remove(request->session);
    answer_byte(request, WIRE_CANCELED);
}

/* Counts the keys of clients. */
static size_t count_keys(const commands_t *commands)
{
    size_t count = commands->table.pairs.count;

    for (size_t i = 0; i < G_N_ELEMENTS(own_keys); i++)
        if (dscomm_priv_table_get(&commands->table,
                                  dscomm_priv_data_text(own_keys[i])))
            count--;
    return count;
}

static void run_num_keys(commands_t *commands, request_t *request)
{
    answer_integer(request, (int64_t)count_keys(commands));
}

static void run_delete_key(commands_t *commands, request_t *request)
{
    answer_integer(request, dscomm_priv_table_remove(&commands->table,
                                                     request_look(request, 0)));
}

static void run_append(commands_t *commands, request_t *request)
{
    const data_t key = request_look(request, 0);
    const dscomm_status_t status = dscomm_priv_table_append(
        &commands->table, key, request_look(request, 1));

    if (status == DSCOMM_ERR_INVALID)
        request->problem = "it appends beyond what a value may have";
    else if (status)
        request_refuse(commands, request);
    else
        dscomm_priv_waiters_wake(&commands->waiters, WAITERS_KEY, key);
}

/* Inverts the nonce in the answer to a client that has not proved the secret.
 * Our client learns from it that it must, torch's that the server is not for
 * it. */
static void run_ping(commands_t *commands, request_t *request)
{
    uint32_t nonce;

    (void)commands;
    memcpy(&nonce, span_data(request, 0), sizeof nonce);
    if (!request->session->validated) {
        nonce = ~nonce;
        request->session->pinged = true;
    }
    dscomm_priv_session_answer(request->session, &nonce, sizeof nonce);
}

static void run_queue_push(commands_t *commands, request_t *request)
{
    bytes_t *key = request_copy(commands, request, 0),
            *value = request_copy(commands, request, 1);
    dscomm_priv_list_t *queue =
        key && value ? dscomm_priv_list_ensure(&commands->queues, key) : NULL;

    if (queue && dscomm_priv_queue_push(&queue->items, value)) {
        value = NULL;
        dscomm_priv_waiters_wake_one(&commands->waiters,
                                     request_look(request, 0));
    } else if (!request->problem) {
        request->problem = no_memory;
    }
    if (queue)
        dscomm_priv_list_end_if_empty(&commands->queues, queue);
    dscomm_priv_bytes_unref(value);
    dscomm_priv_bytes_unref(key);
}

static void answer_length(const request_t *request,
                          const dscomm_priv_list_t *queue)
{
    answer_integer(request, queue ? (int64_t)queue->items.length : 0);
}

static void run_queue_pop(commands_t *commands, request_t *request)
{
    dscomm_priv_list_t *queue =
        dscomm_priv_map_find(&commands->queues, request_look(request, 0));
    bytes_t *value;

    answer_length(request, queue);
    if (!queue)
        return;
    value = dscomm_priv_queue_pop(&queue->items);
    dscomm_priv_session_answer_value(request->session, value);
    dscomm_priv_bytes_unref(value);
    dscomm_priv_list_end_if_empty(&commands->queues, queue);
}

static void run_queue_len(commands_t *commands, request_t *request)
{
    answer_length(request, dscomm_priv_map_find(&commands->queues,
                                                request_look(request, 0)));
}

static bool key_is_own(data_t key)
{
    for (size_t i = 0; i < G_N_ELEMENTS(own_keys); i++)
        if (dscomm_priv_data_equal(key, dscomm_priv_data_text(own_keys[i])))
            return true;
    return false;
}

static void run_list_keys(commands_t *commands, request_t *request)
{
    const dscomm_priv_node_t *node = NULL;

    answer_integer(request, (int64_t)count_keys(commands));
    while ((node = dscomm_priv_map_next(&commands->table.pairs, node)))
        if (!key_is_own(node->key->data))
            dscomm_priv_session_answer_value(request->session, node->key);
}

static void run_barrier(commands_t *commands, request_t *request)
{
    const data_t key = request_look(request, 0);
    int64_t sum;

    if (!may_wait(request) || !commands_add(commands, request, 1, key, &sum))
        return;
    if (!dscomm_priv_waiters_add(&commands->waiters, WAITERS_BARRIER, key,
                                 request->session)) {
        request->problem = no_memory;
        return;
    }
    request->session->waiting = true;
    if (sum >= integer(request, 1))
        dscomm_priv_waiters_wake(&commands->waiters, WAITERS_BARRIER, key);
}

/* Last wills */

void dscomm_priv_commands_part(commands_t *commands, session_t *session,
                               bool ended)
{
    /* torch's client leaves after the answer to PING, and tries again */
    if (session->pinged && !session->more)
        commands_refuse(commands, session);
    dscomm_priv_waiters_remove(session);
    dscomm_priv_wills_leave(&commands->wills, &session->client, ended);
}

static void give_will(commands_t *commands, request_t *request)
{
    bytes_t *client = request_copy(commands, request, 0);
    bytes_t *key = client ? request_copy(commands, request, 1) : NULL;
    bytes_t *value = key ? request_copy(commands, request, 2) : NULL;
    dscomm_status_t status = DSCOMM_OK;

    if (value)
        status = dscomm_priv_wills_join(&commands->wills,
                                        &request->session->client, client)
                     ? dscomm_priv_wills_give(&commands->wills, client->data,
                                              key, value)
                     : DSCOMM_ERR_NO_MEMORY;
    if (status == DSCOMM_ERR_NO_MEMORY)
        request->problem = no_memory;
    else if (status)
        request->problem = "more wills than a client may have";
    dscomm_priv_bytes_unref(value);
    dscomm_priv_bytes_unref(key);
    dscomm_priv_bytes_unref(client);
}

static void run_will(commands_t *commands, request_t *request)
{
    const size_t size = request->spans[1].size + request->spans[2].size;

    if (size > WIRE_WILL_MAX)
        request->problem = "a will beyond its limit";
    else if (request->spans[1].size && request->spans[2].size)
        give_will(commands, request);
    else
        dscomm_priv_wills_withdraw(&commands->wills, request_look(request, 0),
                                   request_look(request, 1));
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
    [WIRE_CREDENTIAL] = run_credential,
    [WIRE_REFUSED] = run_refused,
};

/* Executes one request of the session, which begins at data. */
static const char *execute(commands_t *commands, session_t *session,
                           const uint8_t *data)
{
    request_t request = {
        .session = session,
        .data = data,
        .spans = session->scan.spans.data,
        .count = session->scan.spans.len,
    };

    if (session->scan.command != WIRE_VALIDATE &&
        session->scan.command != WIRE_PING)
        session->more = true;
    handlers[session->scan.command](commands, &request);
    return request.problem;
}

/* True if the session may send command now. VALIDATE must be first; if there is
 * a secret, commands on keys need its proof. */
static bool may_give(const session_t *session, int command)
{
    if (!session->validate_received)
        return command == WIRE_VALIDATE;
    return session->validated || command == WIRE_VALIDATE ||
           command == WIRE_PING || command == WIRE_CHALLENGE ||
           command == WIRE_PROOF || command == WIRE_CREDENTIAL ||
           command == WIRE_REFUSED;
}

/* Executes the requests that are complete, up to a session that is full. */
static bool execute_all(commands_t *commands, session_t *session,
                        const char **ret_problem)
{
    const dscomm_priv_buffer_t *in = &session->in;
    dscomm_priv_scan_t *scan = &session->scan;
    size_t done = 0;

    while (done < in->size && !dscomm_priv_session_is_full(session)) {
        const uint8_t *data = in->data + done;
        dscomm_priv_scan_result_t result =
            dscomm_priv_scan(scan, data, in->size - done);

        if (result == SCAN_BAD) {
            *ret_problem = scan->problem;
        } else if (scan->command >= 0 && !may_give(session, scan->command)) {
            if (session->validate_received) {
                commands_refuse(commands, session);
                done = in->size;
                break;
            }
            *ret_problem = "its first command is not VALIDATE";
        } else if (result == SCAN_MORE) {
            break;
        } else {
            *ret_problem = execute(commands, session, data);
        }
        if (*ret_problem)
            return false;
        done += scan->end;
        dscomm_priv_scan_next(scan);
    }
    return dscomm_priv_session_consume(session, done, ret_problem);
}

bool dscomm_priv_commands_read(commands_t *commands, session_t *session,
                               const char **ret_problem)
{
    *ret_problem = NULL;
    return dscomm_priv_session_receive(session, ret_problem) &&
           execute_all(commands, session, ret_problem);
}

bool dscomm_priv_commands_write(commands_t *commands, session_t *session,
                                const char **ret_problem)
{
    bool good = true, held = true;

    *ret_problem = NULL;
    for (int turn = 0; turn < TURNS && session->out_bytes && good && held;
         turn++) {
        held = dscomm_priv_session_is_full(session);
        good = dscomm_priv_session_send(session, ret_problem);
        held = held && !dscomm_priv_session_is_full(session);
        if (good && held)
            good = execute_all(commands, session, ret_problem);
    }
    return good;
}
