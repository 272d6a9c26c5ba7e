/* SPDX-License-Identifier: BSD-3-Clause */
/* Early receives: one for the header of each rank for which no step has posted
 * a receive. */
#include "config.h"
#include "lib/schedule/early.h"
#include "lib/base/process.h"

#include <stdlib.h>
#include <string.h>

/* CONSUMED: a step has taken the receive. The receive is not cancelled and
 * posted anew, because that could lose a message that is arriving. */
enum { IDLE, POSTED, RECEIVED, CONSUMED };

typedef struct {
    int state;
    dscomm_request_t *request;
    char *message;
} early_receive_t;

struct dscomm_early {
    early_receive_t *receives; /* one for each rank */
    char *memory;
};

/* True if the step has begun or ended. */
static int step_begun(const dscomm_run_t *run, uint32_t chain, uint32_t step)
{
    const dscomm_run_slot_t *slot = &run->slots[chain % run->schedule->window];

    /* before its first chain, the slot's chain is negative */
    if ((int32_t)slot->chain < 0 || chain > slot->chain)
        return 0;
    return chain < slot->chain || step < slot->next;
}

/* Marks the ranks whose header a step has received or waits for; NULL: no
 * memory. */
static uint8_t *find_received(const dscomm_run_t *run)
{
    const dscomm_schedule_t *schedule = run->schedule;
    uint8_t *received = calloc((size_t)schedule->ranks, sizeof *received);

    if (!received)
        return NULL;
    received[schedule->rank] = 1;
    for (uint32_t chain = 0; chain < schedule->nchains; chain++)
        for (uint32_t i = schedule->chains[chain];
             i < schedule->chains[chain + 1]; i++) {
            const dscomm_step_t *step = &schedule->steps[i];

            if (step->has_header && step->kind == STEP_RECV &&
                step_begun(run, chain, i))
                received[step->peer] = 1;
        }
    return received;
}

static void early_post(dscomm_run_t *run, int peer)
{
    early_receive_t *receive = &run->early->receives[peer];
    dscomm_message_t message = {
        .recv = receive->message,
        .bytes = dscomm_priv_run_room(run),
        .peer = peer,
        .tag = dscomm_priv_run_tag(run, 0),
        .early = run->port.ops->expect != NULL,
    };

    receive->request->status = DSCOMM_IN_PROGRESS;
    if (run->port.ops->irecv(run->port.impl, &message, receive->request) >= 0)
        receive->state = POSTED;
}

static dscomm_early_t *early_new(size_t ranks, size_t room)
{
    dscomm_early_t *early = calloc(1, sizeof *early);
    void *memory = NULL;

    if (early)
        early->receives = calloc(ranks, sizeof *early->receives);
    if (!early || !early->receives ||
        posix_memalign(&memory, 64, ranks * room)) {
        if (early)
            free(early->receives);
        free(early);
        return NULL;
    }
    early->memory = memory;
    return early;
}

void dscomm_priv_early_begin(dscomm_run_t *run)
{
    const size_t ranks = (size_t)run->schedule->ranks;
    const size_t size = dscomm_priv_port_request_size(&run->port);
    const size_t room = (size + dscomm_priv_run_room(run) + 63) & ~(size_t)63;
    uint8_t *received;

    if (run->early || run->status != DSCOMM_IN_PROGRESS)
        return;
    received = find_received(run);
    if (received)
        run->early = early_new(ranks, room);
    for (size_t r = 0; r < ranks && run->early; r++) {
        char *own = run->early->memory + r * room;

        run->early->receives[r].request = memset(own, 0, size);
        run->early->receives[r].message = own + size;
        if (!received[r])
            early_post(run, (int)r);
    }
    free(received);
}

bool dscomm_priv_early_arrived(dscomm_run_t *run, int peer)
{
    early_receive_t *receive = &run->early->receives[peer];

    if (receive->state != POSTED ||
        receive->request->status == DSCOMM_IN_PROGRESS)
        return false;
    receive->state = RECEIVED;
    return true;
}

bool dscomm_priv_early_header(const dscomm_run_t *run, int peer,
                              dscomm_header_t *ret_header)
{
    const early_receive_t *receive = &run->early->receives[peer];

    return receive->request->status >= 0 &&
           dscomm_priv_header_get(receive->message, receive->request->bytes,
                                  ret_header);
}

/* Returns 1 if the backend may still write to the receive's memory. After OK
 * nothing is on its way: the run has received all messages sent to it. */
static int early_close(dscomm_run_t *run, early_receive_t *receive)
{
    if (receive->state == POSTED &&
        receive->request->status == DSCOMM_IN_PROGRESS) {
        receive->request->never_sent = run->status == DSCOMM_OK;
        run->port.ops->cancel(run->port.impl, receive->request);
    }
    receive->state = IDLE;
    return receive->request->held;
}

dscomm_request_t *dscomm_priv_early_take(dscomm_run_t *run,
                                         const dscomm_step_t *step)
{
    early_receive_t *receive =
        run->early ? &run->early->receives[step->peer] : NULL;

    if (!receive || receive->state == IDLE)
        return NULL;
    receive->state = CONSUMED;
    return receive->request;
}

int dscomm_priv_early_give(dscomm_run_t *run, const dscomm_step_t *step,
                           const dscomm_request_t *request)
{
    early_receive_t *receive =
        run->early ? &run->early->receives[step->peer] : NULL;

    if (!receive || receive->request != request)
        return 0;
    memcpy(run->base[AT_SCRATCH] + step->stage, receive->message,
           MIN(request->bytes, dscomm_priv_run_room(run)));
    receive->state = IDLE;
    return 1;
}

void dscomm_priv_early_end(dscomm_run_t *run)
{
    dscomm_early_t *early = run->early;
    int held = 0;

    if (!early)
        return;
    for (int r = 0; r < run->schedule->ranks; r++)
        held |= early_close(run, &early->receives[r]);
    dscomm_priv_buffer_free(early->memory, held);
    free(early->receives);
    free(early);
    run->early = NULL;
}
