/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop transport, inside one thread. */
#include "config.h"

#include "tests/lib/schedule/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A message in transit. */
typedef struct parcel {
    struct parcel *next;
    int source, dest, tag;
    size_t bytes;
    const char *data; /* the sender's buffer, or copy */
    char *copy;
    dscomm_request_t *request; /* the sender's request; NULL: it is complete */
    int lost, slow;
} parcel_t;

/* A posted receive. */
typedef struct posted {
    struct posted *next;
    dscomm_message_t message;
    dscomm_request_t *request;
} posted_t;

typedef struct {
    loop_t *loop;
    int rank;
    posted_t *posted; /* oldest first */
    parcel_t *arrived; /* messages without a receive, oldest first */
    unsigned started, completed;
    /* what send_now or recv_now has left to isend or irecv; peer -1: nothing */
    dscomm_message_t left_send, left_recv;
} rank_t;

struct loop {
    loop_plan_t plan;
    uint64_t state;
    parcel_t *way; /* oldest first */
    rank_t *rank;
};

/* xorshift64* */
unsigned loop_random(loop_t *loop, unsigned limit)
{
    loop->state ^= loop->state >> 12;
    loop->state ^= loop->state << 25;
    loop->state ^= loop->state >> 27;
    return (unsigned)((loop->state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) %
           limit;
}

loop_t *loop_new(const loop_plan_t *plan)
{
    loop_t *loop = calloc(1, sizeof *loop);

    loop->plan = *plan;
    loop->state = plan->seed * 2 + 1;
    loop->rank = calloc((size_t)plan->ranks, sizeof *loop->rank);
    for (int r = 0; r < plan->ranks; r++) {
        loop->rank[r].loop = loop;
        loop->rank[r].rank = r;
        loop->rank[r].left_send.peer = loop->rank[r].left_recv.peer = -1;
    }
    return loop;
}

static void free_parcels(parcel_t *parcel)
{
    while (parcel) {
        parcel_t *next = parcel->next;

        free(parcel->copy);
        free(parcel);
        parcel = next;
    }
}

void loop_free(loop_t *loop)
{
    for (int r = 0; r < loop->plan.ranks; r++) {
        free_parcels(loop->rank[r].arrived);
        while (loop->rank[r].posted) {
            posted_t *posted = loop->rank[r].posted;

            loop->rank[r].posted = posted->next;
            free(posted);
        }
    }
    free_parcels(loop->way);
    free(loop->rank);
    free(loop);
}

void *loop_impl(loop_t *loop, int rank)
{
    return &loop->rank[rank];
}

unsigned loop_started(const loop_t *loop, int rank)
{
    return loop->rank[rank].started;
}

static int has_fault(const loop_t *loop, int rank, int fault)
{
    return loop->plan.fault == fault && loop->plan.culprit == rank &&
           loop->rank[rank].started > loop->plan.after;
}

int loop_is_dead(const loop_t *loop, int rank)
{
    return has_fault(loop, rank, LOOP_DEAD);
}

static void finish(rank_t *self, dscomm_request_t *request,
                   dscomm_status_t status)
{
    self->completed++;
    request->status = status;
}

/* Gives the message to the receive. */
static void hand_over(rank_t *dest, const dscomm_message_t *message,
                      dscomm_request_t *request, parcel_t *parcel)
{
    size_t bytes =
        parcel->bytes < message->bytes ? parcel->bytes : message->bytes;

    if (bytes)
        memcpy(message->recv, parcel->data, bytes);
    request->source = parcel->source;
    request->tag = parcel->tag;
    request->bytes = parcel->bytes;
    if (parcel->request)
        finish(&dest->loop->rank[parcel->source], parcel->request, DSCOMM_OK);
    finish(dest, request,
           parcel->bytes > message->bytes ? DSCOMM_ERR_TRUNCATED : DSCOMM_OK);
    free(parcel->copy);
    free(parcel);
}

/* Ends the program if message is not what was left. */
static void take_left(dscomm_message_t *left, const dscomm_message_t *message)
{
    if (left->peer >= 0 &&
        (left->peer != message->peer || left->tag != message->tag ||
         left->send != message->send || left->recv != message->recv)) {
        fprintf(stderr, "another message was left to isend or irecv\n");
        abort();
    }
    left->peer = -1;
}

static dscomm_status_t loop_isend(void *impl, const dscomm_message_t *message,
                                  dscomm_request_t *request)
{
    rank_t *self = impl;
    loop_t *loop = self->loop;
    parcel_t *parcel = calloc(1, sizeof *parcel), **end = &loop->way;

    take_left(&self->left_send, message);
    self->started++;
    parcel->source = self->rank;
    parcel->dest = message->peer;
    parcel->tag = message->tag;
    parcel->bytes = message->bytes;
    parcel->data = message->send;
    parcel->lost = has_fault(loop, self->rank, LOOP_DEAD) ||
                   has_fault(loop, self->rank, LOOP_SILENT);
    parcel->slow = has_fault(loop, self->rank, LOOP_SLOW);
    if (loop->plan.eager) {
        parcel->data = parcel->copy = malloc(message->bytes + 1);
        if (message->bytes)
            memcpy(parcel->copy, message->send, message->bytes);
        finish(self, request, DSCOMM_OK);
    } else {
        parcel->request = request;
    }
    while (*end)
        end = &(*end)->next;
    *end = parcel;
    return DSCOMM_OK;
}

static dscomm_status_t loop_irecv(void *impl, const dscomm_message_t *message,
                                  dscomm_request_t *request)
{
    rank_t *self = impl;
    posted_t *posted, **end = &self->posted;

    take_left(&self->left_recv, message);
    self->started++;
    for (parcel_t **link = &self->arrived; *link; link = &(*link)->next) {
        parcel_t *parcel = *link;

        if (parcel->source == message->peer && parcel->tag == message->tag) {
            *link = parcel->next;
            hand_over(self, message, request, parcel);
            return DSCOMM_OK;
        }
    }
    posted = calloc(1, sizeof *posted);
    posted->message = *message;
    posted->request = request;
    while (*end)
        end = &(*end)->next;
    *end = posted;
    return DSCOMM_OK;
}

/* Sends half of the eager messages. */
static int loop_send_now(void *impl, const dscomm_message_t *message)
{
    rank_t *self = impl;
    dscomm_request_t request;

    take_left(&self->left_send, message);
    if (!self->loop->plan.eager || loop_random(self->loop, 2)) {
        self->left_send = *message;
        return 0;
    }
    loop_isend(self, message, &request);
    return 1;
}

/* Each poll delivers a message, of any ranks. */
static int loop_recv_now(void *impl, const dscomm_message_t *message,
                         dscomm_request_t *head, unsigned polls)
{
    rank_t *self = impl;

    take_left(&self->left_recv, message);
    for (;;) {
        for (parcel_t *p = self->arrived; p; p = p->next)
            if (p->source == message->peer && p->tag == message->tag) {
                loop_irecv(self, message, head);
                return 1;
            }
        if (!polls-- || !loop_step(self->loop))
            break;
    }
    self->left_recv = *message;
    return 0;
}

/* Drops messages to rank that will not be received any more; request NULL:
 * those to a dead rank. */
static void drop_arrived(rank_t *self, const dscomm_request_t *request)
{
    const loop_plan_t *plan = &self->loop->plan;

    for (int r = 0; r < plan->ranks; r++) {
        parcel_t **link = &self->loop->rank[r].arrived;

        while (*link) {
            parcel_t *parcel = *link;

            if (parcel->source != self->rank || !parcel->request ||
                (request ? parcel->request != request : r != plan->culprit)) {
                link = &parcel->next;
                continue;
            }
            if (!request)
                finish(self, parcel->request, DSCOMM_ERR_PEER_FAILED);
            *link = parcel->next;
            free(parcel->copy);
            free(parcel);
        }
    }
}

static void loop_cancel(void *impl, dscomm_request_t *request)
{
    rank_t *self = impl;

    for (posted_t **link = &self->posted; *link; link = &(*link)->next)
        if ((*link)->request == request) {
            posted_t *posted = *link;

            *link = posted->next;
            free(posted);
            return;
        }
    for (parcel_t *p = self->loop->way; p; p = p->next)
        if (p->request == request)
            p->request = NULL, p->lost = 1;
    drop_arrived(self, request);
}

/* Fails the requests that wait for a dead rank. */
static void fail_posted(rank_t *self)
{
    int dead = self->loop->plan.culprit;
    posted_t **link = &self->posted;

    if (self->rank == dead || !has_fault(self->loop, dead, LOOP_DEAD))
        return;
    while (*link) {
        posted_t *posted = *link;

        if (posted->message.peer != dead) {
            link = &posted->next;
            continue;
        }
        *link = posted->next;
        finish(self, posted->request, DSCOMM_ERR_PEER_FAILED);
        free(posted);
    }
    for (parcel_t *p = self->loop->way; p; p = p->next)
        if (p->source == self->rank && p->dest == dead && p->request) {
            finish(self, p->request, DSCOMM_ERR_PEER_FAILED);
            p->request = NULL;
            p->lost = 1;
        }
    drop_arrived(self, NULL);
}

static unsigned loop_progress(void *impl)
{
    rank_t *self = impl;
    unsigned completed;

    fail_posted(self);
    completed = self->completed;
    self->completed = 0;
    return completed;
}

static void loop_revoke(void *impl, const dscomm_failure_t *failure)
{
    (void)impl, (void)failure;
}

static dscomm_status_t loop_status(void *impl, dscomm_failure_t *ret_failure)
{
    (void)impl, (void)ret_failure;
    return DSCOMM_OK;
}

const dscomm_backend_ops_t *loop_ops(void)
{
    static const dscomm_backend_ops_t ops = {
        .size = sizeof ops,
        .request_size = sizeof(dscomm_request_t),
        .isend = loop_isend,
        .irecv = loop_irecv,
        .cancel = loop_cancel,
        .progress = loop_progress,
        .send_now = loop_send_now,
        .recv_now = loop_recv_now,
        .revoke = loop_revoke,
        .status = loop_status,
    };

    return &ops;
}

static int may_come(const parcel_t *parcel, int slow)
{
    return !parcel->lost && parcel->slow == slow;
}

/* Returns the first message between the same ranks with the same tag as a
 * randomly chosen one; slow messages only if there are no others. */
static parcel_t **choose(loop_t *loop, int slow)
{
    parcel_t **link, *random;
    unsigned count = 0;

    for (parcel_t *p = loop->way; p; p = p->next)
        count += (unsigned)may_come(p, slow);
    if (!count)
        return NULL;
    count = loop_random(loop, count);
    for (random = loop->way; count || !may_come(random, slow);
         random = random->next)
        count -= (unsigned)may_come(random, slow);
    for (link = &loop->way; *link != random; link = &(*link)->next)
        if (may_come(*link, slow) && (*link)->source == random->source &&
            (*link)->dest == random->dest && (*link)->tag == random->tag)
            break;
    return link;
}

int loop_step(loop_t *loop)
{
    parcel_t **link = choose(loop, 0), *parcel, **end;
    rank_t *dest;

    if (!link)
        link = choose(loop, 1);
    if (!link)
        return 0;
    parcel = *link;
    *link = parcel->next;
    parcel->next = NULL;
    dest = &loop->rank[parcel->dest];
    for (posted_t **p = &dest->posted; *p; p = &(*p)->next) {
        posted_t *posted = *p;

        if (posted->message.peer != parcel->source ||
            posted->message.tag != parcel->tag)
            continue;
        *p = posted->next;
        hand_over(dest, &posted->message, posted->request, parcel);
        free(posted);
        return 1;
    }
    for (end = &dest->arrived; *end; end = &(*end)->next)
        ;
    *end = parcel;
    return 1;
}

/* Messages and receives under way: of requests, or all that will come. */
static int count(const loop_t *loop, int requests)
{
    int n = 0;

    for (const parcel_t *p = loop->way; p; p = p->next)
        n += requests ? p->request != NULL : !p->lost;
    for (int r = 0; r < loop->plan.ranks; r++) {
        for (const parcel_t *p = loop->rank[r].arrived; p; p = p->next)
            n += !requests || p->request;
        for (const posted_t *p = loop->rank[r].posted; p; p = p->next)
            n++;
    }
    return n;
}

int loop_pending(const loop_t *loop)
{
    return count(loop, 0);
}

int loop_requests(const loop_t *loop)
{
    return count(loop, 1);
}
