/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening: a receive for the header of each rank that has none posted. */
#include "config.h"
#include "lib/schedule/early.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGE_MOST (HEADER_WHOLE + HEADER_MOST)

/* TAKEN: a step's receive, from its beginning on; to cancel it could lose a
 * message that is halfway here. */
enum { DEAF, OPEN, HEARD, TAKEN };

typedef struct {
    int state;
    dscomm_request_t *request;
    char *message;
} ear_t;

struct dscomm_ears {
    ear_t *ears; /* of each rank */
    char *memory;
};

/* A step that has been carried out, or is now. */
static int has_come(const dscomm_run_t *run, uint32_t chain, uint32_t step)
{
    const dscomm_run_slot_t *slot = &run->slots[chain % run->schedule->window];

    /* a slot that has not begun has a chain below 0 */
    if ((int32_t)slot->chain < 0 || chain > slot->chain)
        return 0;
    return chain < slot->chain || step < slot->next;
}

/* Ranks whose header has come, or has a receive; NULL: no memory. */
static uint8_t *find_greeted(const dscomm_run_t *run)
{
    const dscomm_schedule_t *schedule = run->schedule;
    uint8_t *greeted = calloc((size_t)schedule->ranks, sizeof *greeted);

    if (!greeted)
        return NULL;
    greeted[schedule->rank] = 1;
    for (uint32_t chain = 0; chain < schedule->nchains; chain++)
        for (uint32_t i = schedule->chains[chain];
             i < schedule->chains[chain + 1]; i++) {
            const dscomm_step_t *step = &schedule->steps[i];

            if (step->greets && step->kind == STEP_RECV &&
                has_come(run, chain, i))
                greeted[step->peer] = 1;
        }
    return greeted;
}

static void open_ear(dscomm_run_t *run, int peer)
{
    ear_t *ear = &run->ears->ears[peer];
    dscomm_message_t message = {
        .recv = ear->message,
        .bytes = MESSAGE_MOST,
        .peer = peer,
        .tag = dscomm_priv_run_header_tag(run),
    };

    ear->request->status = DSCOMM_IN_PROGRESS;
    if (run->port.ops->irecv(run->port.impl, &message, ear->request) >= 0)
        ear->state = OPEN;
}

static dscomm_ears_t *ears_new(size_t ranks, size_t room)
{
    dscomm_ears_t *ears = calloc(1, sizeof *ears);
    void *memory = NULL;

    if (ears)
        ears->ears = calloc(ranks, sizeof *ears->ears);
    if (!ears || !ears->ears || posix_memalign(&memory, 64, ranks * room)) {
        if (ears)
            free(ears->ears);
        free(ears);
        return NULL;
    }
    ears->memory = memset(memory, 0, ranks * room);
    return ears;
}

void dscomm_priv_run_listen(dscomm_run_t *run)
{
    const size_t ranks = (size_t)run->schedule->ranks;
    const size_t size = dscomm_priv_request_size(&run->port);
    const size_t room = (size + MESSAGE_MOST + 63) & ~(size_t)63;
    uint8_t *greeted;

    if (run->ears || run->status != DSCOMM_IN_PROGRESS)
        return;
    greeted = find_greeted(run);
    if (greeted)
        run->ears = ears_new(ranks, room);
    for (size_t r = 0; r < ranks && run->ears; r++) {
        char *own = run->ears->memory + r * room;

        run->ears->ears[r].request = (void *)own;
        run->ears->ears[r].message = own + size;
        if (!greeted[r])
            open_ear(run, (int)r);
    }
    free(greeted);
}

/* Of the same call, it waits for the step that takes it. */
static void hear(dscomm_run_t *run, int peer)
{
    const ear_t *ear = &run->ears->ears[peer];
    dscomm_header_t theirs;

    if (ear->request->status >= 0 &&
        dscomm_priv_header_get(ear->message, ear->request->bytes, &theirs))
        dscomm_priv_run_compare(run, peer, &theirs);
}

unsigned dscomm_priv_listen_advance(dscomm_run_t *run)
{
    unsigned heard = 0;

    for (int r = 0; r < run->schedule->ranks; r++) {
        ear_t *ear = &run->ears->ears[r];

        if (ear->state != OPEN || ear->request->status == DSCOMM_IN_PROGRESS)
            continue;
        ear->state = HEARD;
        heard++;
        hear(run, r);
    }
    return heard;
}

/* 1 where the backend may still write to it. A run that ended well has received
 * all that was sent for it. */
static int close_ear(dscomm_run_t *run, ear_t *ear)
{
    if (ear->state == OPEN && ear->request->status == DSCOMM_IN_PROGRESS) {
        ear->request->vain = run->status == DSCOMM_OK;
        run->port.ops->cancel(run->port.impl, ear->request);
    }
    ear->state = DEAF;
    return ear->request->held;
}

dscomm_request_t *dscomm_priv_listen_take(dscomm_run_t *run,
                                          const dscomm_step_t *step)
{
    ear_t *ear = run->ears ? &run->ears->ears[step->peer] : NULL;

    if (!ear || ear->state == DEAF)
        return NULL;
    ear->state = TAKEN;
    return ear->request;
}

int dscomm_priv_listen_give(dscomm_run_t *run, const dscomm_step_t *step,
                            const dscomm_request_t *request)
{
    ear_t *ear = run->ears ? &run->ears->ears[step->peer] : NULL;

    if (!ear || ear->request != request)
        return 0;
    memcpy(run->base[AT_SCRATCH] + step->stage, ear->message,
           MIN(request->bytes, MESSAGE_MOST));
    ear->state = DEAF;
    return 1;
}

void dscomm_priv_listen_end(dscomm_run_t *run)
{
    dscomm_ears_t *ears = run->ears;
    int held = 0;

    if (!ears)
        return;
    for (int r = 0; r < run->schedule->ranks; r++)
        held |= close_ear(run, &ears->ears[r]);
    if (!held)
        free(ears->memory);
    free(ears->ears);
    free(ears);
    run->ears = NULL;
}
