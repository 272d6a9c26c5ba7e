/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a schedule. */
#include "config.h"
#include "lib/schedule/run.h"
#include "lib/base/clock.h"
#include "lib/base/process.h"
#include "lib/base/status.h"
#include "lib/schedule/algorithm.h"
#include "lib/schedule/early.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t dscomm_priv_run_bytes(const dscomm_schedule_t *schedule,
                             const dscomm_port_t *port)
{
    return sizeof(dscomm_run_t) + schedule->scratch +
           schedule->most_messages * (dscomm_priv_port_request_size(port) +
                                      sizeof(dscomm_run_message_t));
}

/* Makes all requests idle. */
static void free_requests(dscomm_run_t *run)
{
    run->nmessages = 0;
    run->nidle = run->schedule->most_messages;
    for (uint32_t i = 0; i < run->nidle; i++)
        run->idle[i] = (void *)(run->requests +
                                i * dscomm_priv_port_request_size(&run->port));
}

/* Allocates memory that begins on a cache line; untouched pages cost nothing.
 */
static void *run_allocate(size_t bytes)
{
    void *memory;

    return posix_memalign(&memory, 64, MAX(bytes, 64)) ? NULL : memory;
}

static int allocate_all(dscomm_run_t *run)
{
    const dscomm_schedule_t *schedule = run->schedule;
    size_t count = schedule->most_messages, most = schedule->most_sources;
    size_t size = dscomm_priv_port_request_size(&run->port);

    run->slots = g_try_new0(dscomm_run_slot_t, schedule->window);
    run->messages = g_try_new0(dscomm_run_message_t, count + 1);
    run->idle = g_try_new0(dscomm_request_t *, count + 1);
    run->pointers = g_try_new0(const void *, most + 1);
    run->factors = g_try_new0(double, most + 1);
    run->requests = run_allocate(count * size);
    run->base[AT_SCRATCH] = run_allocate(schedule->scratch);
    return run->slots && run->messages && run->idle && run->pointers &&
           run->factors && run->requests && run->base[AT_SCRATCH];
}

dscomm_run_t *dscomm_priv_run_new(const dscomm_schedule_t *schedule,
                                  const dscomm_port_t *port)
{
    dscomm_run_t *run = calloc(1, sizeof *run);

    if (!run)
        return NULL;
    run->schedule = schedule;
    run->port = *port;
    if (!allocate_all(run)) {
        dscomm_priv_run_free(run);
        return NULL;
    }
    free_requests(run);
    return run;
}

void dscomm_priv_run_free(dscomm_run_t *run)
{
    if (!run)
        return;
    g_free(run->slots);
    g_free(run->messages);
    g_free(run->idle);
    g_free(run->pointers);
    g_free(run->factors);
    free(run->requests);
    dscomm_priv_buffer_free(run->base[AT_SCRATCH], run->held);
    free(run);
}

static const char *call_name(const dscomm_run_t *run)
{
    return dscomm_coll_name((dscomm_coll_t)run->args.coll);
}

static int world_rank(const dscomm_run_t *run, int rank)
{
    const int *world_ranks = run->port.world_ranks;

    return world_ranks ? world_ranks[rank] : rank;
}

static const char *run_describe_rank(const dscomm_run_t *run, int rank,
                                     char text[DSCOMM_CREATION_RANK_MAX])
{
    return dscomm_backend_rank(run->port.group, world_rank(run, rank), 0, text);
}

/* Returns the kind of failure of a message while the group goes on. */
static dscomm_failure_kind_t run_failure_kind(dscomm_status_t status)
{
    return status == DSCOMM_ERR_MISMATCH      ? DSCOMM_FAILURE_MISMATCH
           : status == DSCOMM_ERR_PEER_FAILED ? DSCOMM_FAILURE_LEFT
                                              : DSCOMM_FAILURE_PROTOCOL;
}

/* Notes the first failure of the run. rank is the culprit. */
G_GNUC_PRINTF(4, 5)
static void run_fail(dscomm_run_t *run, dscomm_status_t status, int rank,
                     const char *format, ...)
{
    dscomm_failure_t *failure = &run->failure;
    va_list list;

    if (run->status != DSCOMM_IN_PROGRESS)
        return;
    dscomm_backend_failure(run->port.group, status, run_failure_kind(status),
                           world_rank(run, rank), 0, failure);
    g_strlcpy(failure->group, run->port.name, sizeof failure->group);
    failure->coll = run->args.coll;
    failure->sequence = run->args.sequence;
    va_start(list, format);
    vsnprintf(failure->detail, sizeof failure->detail, format, list);
    va_end(list);
    run->status = status;
}

/* The base may be NULL if nothing is read or written. */
static void *run_address(const dscomm_run_t *run, const dscomm_place_t *place)
{
    return (void *)((uintptr_t)run->base[place->at] + place->offset);
}

static void run_reduce(dscomm_run_t *run, const dscomm_step_t *step)
{
    const dscomm_schedule_t *schedule = run->schedule;
    const dscomm_place_t *sources = schedule->sources + step->source;
    const double *known =
        (const void *)(run->base[AT_SCRATCH] + schedule->factors);
    dscomm_reduce_fn kernel = step->final ? schedule->final : schedule->partial;

    dscomm_phase(&run->args, DSCOMM_PHASE_REDUCE);
    run->factors[0] = schedule->ranks;
    for (uint32_t i = 0; i < step->nsources; i++) {
        run->pointers[i] = run_address(run, &sources[i]);
        if (schedule->factors)
            run->factors[i] =
                sources[i].owner < 0 ? 1.0 : known[sources[i].owner];
    }
    if (run->args.user) {
        dscomm_reduce_user(&run->args, run_address(run, &step->place),
                           run->pointers, step->nsources, step->bytes);
        return;
    }
    kernel(run_address(run, &step->place), run->pointers, step->nsources,
           step->bytes, run->factors);
}

static void run_copy(dscomm_run_t *run, const dscomm_step_t *step)
{
    const dscomm_place_t *from = &run->schedule->sources[step->source];
    char *dest = run_address(run, &step->place);
    const char *source = run_address(run, from);

    if (dest == source)
        return;
    dscomm_phase(&run->args, step->place.at == AT_SCRATCH
                                 ? DSCOMM_PHASE_COPY_IN
                                 : DSCOMM_PHASE_COPY_OUT);
    memcpy(dest, source, step->bytes);
}

/* Describes a difference between calls whose texts are equal. */
static const char *hidden_difference(const dscomm_header_t *header)
{
    return header->op == DSCOMM_OP_USER
               ? " with another operator, or other counts"
               : " with other counts";
}

/* Fails with the difference between another rank's header and this rank's. */
static void refuse_header(dscomm_run_t *run, const dscomm_step_t *step,
                          const dscomm_header_t *theirs)
{
    const dscomm_header_t *ours = &run->schedule->header;
    char peer[DSCOMM_CREATION_RANK_MAX], own[DSCOMM_CREATION_RANK_MAX];
    char here[128], there[128];

    dscomm_priv_header_describe(ours, run->args.sequence, here, sizeof here);
    dscomm_priv_header_describe(theirs, run->args.sequence, there,
                                sizeof there);
    run->differs =
        theirs->chain != run->chain || theirs->fingerprint != ours->fingerprint;
    run->earlier =
        dscomm_priv_chain_before(theirs->chain, theirs->fingerprint) !=
        dscomm_priv_chain_before(run->chain, ours->fingerprint);
    run_describe_rank(run, step->peer, peer);
    run_describe_rank(run, run->schedule->rank, own);
    if (theirs->fingerprint != ours->fingerprint)
        run_fail(
            run, DSCOMM_ERR_MISMATCH, step->peer,
            "%s called %s, %s called %s%s; all ranks must make the same calls "
            "in the same order",
            peer, there, own, here,
            strcmp(here, there) ? "" : hidden_difference(ours));
    else if (theirs->chain != run->chain)
        run_fail(
            run, DSCOMM_ERR_MISMATCH, step->peer,
            "before %s, %s and %s have made different calls; all ranks must "
            "make the same calls in the same order",
            here, peer, own);
    else if (theirs->algorithm != ours->algorithm)
        run_fail(
            run, DSCOMM_ERR_MISMATCH, step->peer,
            "%s: %s and %s use different algorithms; give all ranks the same "
            "DSCOMM_ALGORITHM",
            here, peer, own);
    else
        run_fail(
            run, DSCOMM_ERR_MISMATCH, step->peer,
            "%s: %s sends %llu bytes to %s, which expects %llu; the counts of "
            "the two must agree",
            here, peer, (unsigned long long)theirs->total, own,
            (unsigned long long)step->total);
}

/* Fails if the header of peer, theirs, is of another call. */
static void run_compare(dscomm_run_t *run, int peer,
                        const dscomm_header_t *theirs)
{
    const dscomm_header_t *ours = &run->schedule->header;
    const dscomm_step_t step = {.peer = peer};

    if (theirs->fingerprint != ours->fingerprint ||
        theirs->chain != run->chain || theirs->algorithm != ours->algorithm)
        refuse_header(run, &step, theirs);
}

/* Fails because a message has not the expected length. */
static void refuse_length(dscomm_run_t *run, const dscomm_step_t *step,
                          size_t bytes)
{
    char peer[DSCOMM_CREATION_RANK_MAX], own[DSCOMM_CREATION_RANK_MAX];

    run->differs = 1;
    run_fail(
        run, DSCOMM_ERR_MISMATCH, step->peer,
        "%s #%llu: %s sent %zu bytes where %s expects %zu; the ranks disagree "
        "on counts or on the algorithm",
        call_name(run), (unsigned long long)run->args.sequence,
        run_describe_rank(run, step->peer, peer), bytes,
        run_describe_rank(run, run->schedule->rank, own), step->bytes);
}

/* Handles a message of unexpected length. If the sender's header is still due,
 * it shows more, so the round waits for it. */
static void run_suspect_length(dscomm_run_t *run, const dscomm_step_t *step,
                               size_t bytes)
{
    for (uint32_t i = 0; i < run->nmessages; i++) {
        const dscomm_step_t *other = run->messages[i].step;

        if (other->has_header && other->kind == STEP_RECV &&
            other->peer == step->peer) {
            run->suspect = step;
            run->suspect_bytes = bytes;
            return;
        }
    }
    refuse_length(run, step, bytes);
}

static void check_header(dscomm_run_t *run, const dscomm_step_t *step,
                         size_t bytes)
{
    const dscomm_header_t *ours = &run->schedule->header;
    const char *stage = run->base[AT_SCRATCH] + step->stage;
    dscomm_header_t theirs;
    size_t head = dscomm_priv_header_get(stage, bytes, &theirs);

    if (!head) {
        run_fail(
            run, DSCOMM_ERR_PROTOCOL, step->peer,
            "%s #%llu of group '%s': %zu bytes have come where a header of %d "
            "or more is due; the rank may have another version of libdscomm",
            call_name(run), (unsigned long long)run->args.sequence,
            run->port.name, bytes, HEADER_PACKED);
        return;
    }
    if (theirs.fingerprint != ours->fingerprint || theirs.chain != run->chain ||
        theirs.algorithm != ours->algorithm || theirs.total != step->total ||
        bytes != head + step->bytes) {
        run->differing++;
        if (run->status == DSCOMM_IN_PROGRESS)
            refuse_header(run, step, &theirs);
    } else if (run->suspect && run->suspect->peer == step->peer) {
        refuse_length(run, run->suspect, run->suspect_bytes);
    } else {
        run->agreed++;
    }
    if (run->status == DSCOMM_IN_PROGRESS && step->bytes) {
        dscomm_phase(&run->args, DSCOMM_PHASE_COPY_OUT);
        memcpy(run_address(run, &step->place), stage + head, step->bytes);
    }
}

static void refuse_request(dscomm_run_t *run, const dscomm_step_t *step,
                           const dscomm_request_t *request)
{
    const dscomm_port_t *port = &run->port;
    char why[256] = "";

    if (request->status == DSCOMM_ERR_PEER_FAILED && port->ops->explain)
        port->ops->explain(port->impl, request, why, sizeof why);
    run_fail(run, request->status, step->peer,
             "%s #%llu of group '%s': the message %s rank %d failed: %s",
             call_name(run), (unsigned long long)run->args.sequence, port->name,
             step->kind == STEP_SEND ? "to" : "from", step->peer,
             *why ? why : dscomm_strerror(request->status));
}

/* Handles the end of a message. */
static void run_complete(dscomm_run_t *run, const dscomm_step_t *step,
                         const dscomm_request_t *request)
{
    if (request->status < 0 && request->status != DSCOMM_ERR_TRUNCATED)
        refuse_request(run, step, request);
    else if (step->kind == STEP_SEND)
        return;
    else if (step->has_header)
        check_header(run, step, request->bytes);
    else if (run->status == DSCOMM_IN_PROGRESS &&
             (request->status || request->bytes != step->bytes))
        run_suspect_length(run, step, request->bytes);
}

/* Writes header and message to step's stage; returns the bytes of both. */
static size_t put_header(const dscomm_run_t *run, const dscomm_step_t *step)
{
    char *stage = run->base[AT_SCRATCH] + step->stage;
    dscomm_header_t header = run->schedule->header;
    size_t head;

    header.total = step->total;
    header.chain = run->chain;
    head = dscomm_priv_header_put(stage, &header);
    if (step->bytes)
        memcpy(stage + head, run_address(run, &step->place), step->bytes);
    return head + step->bytes;
}

static dscomm_message_t make_message(const dscomm_run_t *run,
                                     const dscomm_step_t *step, uint32_t chain)
{
    char *data = run_address(run, &step->place);
    size_t bytes = step->bytes;
    uint32_t field = 1 + chain % run->schedule->window;
    dscomm_message_t message = {.peer = step->peer};

    if (step->has_header) {
        message.followed = !step->bytes && step->total;
        field = 0;
        bytes = step->kind == STEP_SEND ? put_header(run, step)
                                        : dscomm_priv_run_room(run);
        data = run->base[AT_SCRATCH] + step->stage;
    }
    message.bytes = bytes;
    message.tag = dscomm_priv_run_tag(run, field);
    if (step->kind == STEP_SEND)
        message.send = data;
    else
        message.recv = data;
    return message;
}

/* Starts a message with the last idle request. */
static dscomm_status_t run_start_message(dscomm_run_t *run,
                                         const dscomm_step_t *step,
                                         const dscomm_run_slot_t *slot)
{
    const dscomm_backend_ops_t *ops = run->port.ops;
    dscomm_request_t *request = run->idle[run->nidle - 1];
    dscomm_message_t message = make_message(run, step, slot->chain);

    memset(request, 0, sizeof *request);
    request->status = DSCOMM_IN_PROGRESS;
    return step->kind == STEP_SEND
               ? ops->isend(run->port.impl, &message, request)
               : ops->irecv(run->port.impl, &message, request);
}

/* Adds a started message to those under way. */
static void run_follow(dscomm_run_t *run, const dscomm_step_t *step,
                       dscomm_run_slot_t *slot, dscomm_request_t *request)
{
    run->messages[run->nmessages++] =
        (dscomm_run_message_t){step, slot, request};
    slot->outstanding++;
}

/* Receives step's message by its early receive; 0 if it has none. */
static int run_take_early(dscomm_run_t *run, const dscomm_step_t *step,
                          dscomm_run_slot_t *slot)
{
    dscomm_request_t *request = step->has_header && step->kind == STEP_RECV
                                    ? dscomm_priv_early_take(run, step)
                                    : NULL;

    if (!request)
        return 0;
    if (request->status == DSCOMM_IN_PROGRESS) {
        if (run->port.ops->expect)
            run->port.ops->expect(run->port.impl, request);
        run_follow(run, step, slot, request);
    } else {
        dscomm_priv_early_give(run, step, request);
        run_complete(run, step, request);
    }
    return 1;
}

static void run_post(dscomm_run_t *run, const dscomm_step_t *step,
                     dscomm_run_slot_t *slot)
{
    dscomm_request_t *request = run->idle[run->nidle - 1];
    dscomm_status_t status;

    if (run->early && run_take_early(run, step, slot))
        return;
    if (step->kind == STEP_SEND)
        dscomm_phase(&run->args, DSCOMM_PHASE_COPY_IN);
    status = run_start_message(run, step, slot);
    if (status < 0 && run->status != DSCOMM_IN_PROGRESS)
        return; /* the first failure counts */
    if (status < 0) {
        run->status = status;
        dscomm_backend_failure_last(run->port.group, status, &run->failure);
    } else if (request->status != DSCOMM_IN_PROGRESS) {
        run_complete(run, step, request);
        slot->outstanding += run->suspect == step;
    } else {
        run->nidle--;
        run_follow(run, step, slot, request);
    }
}

static void run_execute(dscomm_run_t *run, const dscomm_step_t *step,
                        dscomm_run_slot_t *slot)
{
    if (step->kind == STEP_COPY)
        run_copy(run, step);
    else if (step->kind == STEP_REDUCE)
        run_reduce(run, step);
    else
        run_post(run, step, slot);
}

/* Goes to the slot's next chain; 0 if there is none. */
static int next_chain(dscomm_run_t *run, dscomm_run_slot_t *slot,
                      uint32_t chain)
{
    const dscomm_schedule_t *schedule = run->schedule;

    if (chain >= schedule->nchains)
        return 0;
    slot->chain = chain;
    slot->next = schedule->chains[chain];
    slot->end = schedule->chains[chain + 1];
    return 1;
}

/* True after a failure by one pair's counts: the other messages of the round
 * are still started, because their headers show who of the pair is wrong. */
static bool run_compares(const dscomm_run_t *run)
{
    return run->differing && !run->differs &&
           run->status == DSCOMM_ERR_MISMATCH;
}

/* Runs rounds until one must wait. */
static void slot_proceed(dscomm_run_t *run, dscomm_run_slot_t *slot)
{
    while (!slot->outstanding) {
        const dscomm_step_t *step;

        while (slot->next == slot->end) {
            if (!next_chain(run, slot, slot->chain + run->schedule->window)) {
                if (--run->open == 0)
                    run->status = DSCOMM_OK;
                return;
            }
        }
        do {
            step = &run->schedule->steps[slot->next++];
            if (run->status == DSCOMM_IN_PROGRESS)
                run_execute(run, step, slot);
            else if (step->kind == STEP_SEND || step->kind == STEP_RECV)
                run_post(run, step, slot);
            if (run->status != DSCOMM_IN_PROGRESS && !run_compares(run))
                return;
        } while (!step->last);
        if (run->status != DSCOMM_IN_PROGRESS)
            return;
    }
}

/* Compares the headers that have come; returns how many are still to come. */
static uint32_t headers_take(dscomm_run_t *run)
{
    uint32_t due = 0;

    for (uint32_t i = 0; i < run->nmessages;) {
        const dscomm_run_message_t message = run->messages[i];
        const bool is_header =
            message.step->kind == STEP_RECV && message.step->has_header;

        if (!is_header || message.request->status == DSCOMM_IN_PROGRESS) {
            due += is_header;
            i++;
            continue;
        }
        run->messages[i] = run->messages[--run->nmessages];
        dscomm_priv_early_give(run, message.step, message.request);
        run_complete(run, message.step, message.request);
    }
    return due;
}

void dscomm_priv_run_compare_rest(dscomm_run_t *run, int64_t end)
{
    const dscomm_port_t *port = &run->port;

    while (headers_take(run) &&
           port->ops->status(port->impl, NULL) == DSCOMM_OK &&
           dscomm_priv_clock() < end)
        if (!port->ops->progress(port->impl))
            g_usleep(100);
}

/* Prepares run for args. */
static void run_prepare(dscomm_run_t *run, const dscomm_coll_args_t *args)
{
    const dscomm_schedule_t *schedule = run->schedule;
    uintptr_t send = (uintptr_t)args->send;

    run->args = *args;
    run->base[AT_SEND] = (char *)send;
    run->base[AT_RECV] = args->recv;
    run->status = DSCOMM_IN_PROGRESS;
    run->differs = 0;
    run->earlier = false;
    run->nmessages = 0;
    run->suspect = NULL;
    run->agreed = run->differing = 0;
    run->nidle = schedule->most_messages;
    run->open = schedule->window;
    if (schedule->factors)
        memcpy(run->base[AT_SCRATCH] + schedule->factors +
                   (size_t)schedule->rank * sizeof(double),
               &args->factor, sizeof(double));
    for (uint32_t i = 0; i < schedule->window; i++) {
        run->slots[i].outstanding = 0;
        run->slots[i].next = run->slots[i].end = 0;
        run->slots[i].chain = i - schedule->window;
    }
}

void dscomm_priv_run_start(dscomm_run_t *run, const dscomm_coll_args_t *args)
{
    run_prepare(run, args);
    for (uint32_t i = 0; i < run->schedule->window; i++)
        if (run->status == DSCOMM_IN_PROGRESS)
            slot_proceed(run, &run->slots[i]);
    dscomm_phase(&run->args, DSCOMM_PHASE_WAIT);
}

/* Sends or receives step's message by the slots of blocking calls; false: its
 * request must be started, which goes on with it. */
static bool run_message_now(dscomm_run_t *run, const dscomm_step_t *step,
                            unsigned polls)
{
    const dscomm_backend_ops_t *ops = run->port.ops;
    dscomm_request_t *request = run->idle[run->nidle - 1];
    const dscomm_message_t message = make_message(run, step, 0);

    if (step->kind == STEP_SEND)
        return ops->send_now(run->port.impl, &message);
    if (!ops->recv_now(run->port.impl, &message, request, polls))
        return false;
    run_complete(run, step, request);
    return true;
}

/* Carries out the next round, whose receives wait, so they come last. Returns
 * false, with the messages that are left under way, if one did not come soon
 * or failed. */
static bool slot_now(dscomm_run_t *run, dscomm_run_slot_t *slot, unsigned polls)
{
    const dscomm_step_t *first = &run->schedule->steps[slot->next], *step;
    bool now = true;

    for (step = first;; step++) {
        if (step->kind == STEP_SEND)
            now = now && run_message_now(run, step, 0);
        if (step->kind != STEP_RECV && (step->kind != STEP_SEND || !now))
            run_execute(run, step, slot);
        if (run->status != DSCOMM_IN_PROGRESS)
            return false;
        slot->next++;
        if (step->last)
            break;
    }
    for (const dscomm_step_t *end = step + 1; first < end; first++) {
        if (first->kind != STEP_RECV)
            continue;
        now = now && run_message_now(run, first, polls);
        if (!now)
            run_post(run, first, slot);
        now = now && run->status == DSCOMM_IN_PROGRESS;
        if (run->status != DSCOMM_IN_PROGRESS && !run_compares(run))
            break;
    }
    return now;
}

void dscomm_priv_run_now(dscomm_run_t *run, const dscomm_coll_args_t *args,
                         unsigned polls)
{
    dscomm_run_slot_t *slot = &run->slots[0];

    if (run->schedule->nchains != 1) {
        dscomm_priv_run_start(run, args);
        return;
    }
    run_prepare(run, args);
    next_chain(run, slot, 0);
    while (slot->next != slot->end && slot_now(run, slot, polls))
        ;
    if (run->status == DSCOMM_IN_PROGRESS)
        slot_proceed(run, slot);
}

/* Compares headers that came before their step; equal ones wait for it. Returns
 * the number of headers that came. */
static unsigned run_advance_early(dscomm_run_t *run)
{
    dscomm_header_t theirs;
    unsigned arrived = 0;

    for (int r = 0; r < run->schedule->ranks; r++) {
        if (!dscomm_priv_early_arrived(run, r))
            continue;
        arrived++;
        if (dscomm_priv_early_header(run, r, &theirs))
            run_compare(run, r, &theirs);
    }
    return arrived;
}

unsigned dscomm_priv_run_advance(dscomm_run_t *run)
{
    unsigned arrived = run->early ? run_advance_early(run) : 0;

    for (uint32_t i = 0;
         i < run->nmessages && run->status == DSCOMM_IN_PROGRESS;) {
        dscomm_run_message_t message = run->messages[i];

        if (message.request->status == DSCOMM_IN_PROGRESS) {
            i++;
            continue;
        }
        arrived++;
        run->messages[i] = run->messages[--run->nmessages];
        if (!dscomm_priv_early_give(run, message.step, message.request))
            run->idle[run->nidle++] = message.request;
        run_complete(run, message.step, message.request);
        if (run->status == DSCOMM_IN_PROGRESS && run->suspect != message.step &&
            --message.slot->outstanding == 0)
            slot_proceed(run, message.slot);
    }
    if (run->early && run->status == DSCOMM_OK)
        dscomm_priv_early_end(run);
    dscomm_phase(&run->args, DSCOMM_PHASE_WAIT);
    return arrived;
}

void dscomm_priv_run_cancel(dscomm_run_t *run, dscomm_status_t status)
{
    for (uint32_t i = 0; i < run->nmessages; i++) {
        dscomm_request_t *request = run->messages[i].request;

        if (request->status == DSCOMM_IN_PROGRESS)
            run->port.ops->cancel(run->port.impl, request);
        run->held |= request->held;
    }
    free_requests(run);
    dscomm_priv_early_end(run);
    if (run->status == DSCOMM_IN_PROGRESS)
        run->status = status;
}
