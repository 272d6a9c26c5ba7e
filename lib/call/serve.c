/* SPDX-License-Identifier: BSD-3-Clause */
/* Serving puts and gets of other ranks: each is a work that nobody waits for.
 */
#include "config.h"
#include "lib/call/access.h"

#include "lib/base/status.h"
#include "lib/group/failure.h"
#include "lib/work/pending.h"

/* Receives what is asked. */
static dscomm_status_t serve_start(dscomm_work_t *work)
{
    dscomm_status_t status = dscomm_priv_access_new(work);

    if (status == DSCOMM_OK)
        status = dscomm_priv_access_post(
            work, ACCESS_ASK,
            (dscomm_message_t){.recv = &dscomm_priv_access_of(work)->asked,
                               .bytes = sizeof(asked_t),
                               .tag = TAG_ASK,
                               .taken = work->call.access.taken});
    return status;
}

/* Starts a message; without it the peer would wait, so the group ends if that
 * fails. */
static void serve_post(dscomm_work_t *work, int which, dscomm_message_t message)
{
    dscomm_status_t status = dscomm_priv_access_post(work, which, message);

    if (status >= 0)
        return;
    status = dscomm_priv_group_give_up(work->group, status);
    dscomm_priv_access_cancel(work, status);
    work->request.status = status;
}

/* True if an older access of the same rank has not been answered. */
static bool serve_must_wait(const dscomm_work_t *work)
{
    for (const dscomm_work_t *w = work->group->works.pending; w != work;
         w = w->next)
        if (w->kind == work->kind &&
            w->call.access.peer == work->call.access.peer &&
            !dscomm_priv_access_of(w)->posted[ACCESS_ANSWER])
            return true;
    return false;
}

static void serve_answer(dscomm_work_t *work)
{
    access_t *access = dscomm_priv_access_of(work);
    dscomm_group_t *group = work->group;
    const bool found = work->call.access.mem != NULL;

    access->answer.status =
        found ? 0
              : (int64_t)GUINT64_TO_LE((uint64_t)(int64_t)DSCOMM_ERR_INVALID);
    if (!work->call.access.gets)
        group->memory.puts[group->size + work->call.access.peer]++;
    serve_post(work, ACCESS_ANSWER,
               (dscomm_message_t){.send = &access->answer,
                                  .bytes = sizeof(answer_t),
                                  .tag = TAG_ANSWERED});
    if (work->call.access.gets && found &&
        work->request.status == DSCOMM_IN_PROGRESS)
        serve_post(work, ACCESS_DATA,
                   (dscomm_message_t){.send = work->call.access.data,
                                      .bytes = work->call.access.bytes,
                                      .tag = TAG_GET_DATA});
}

/* Reads what is asked, and receives the data of a put; if there is no such
 * memory, nowhere. */
static void serve_read(dscomm_work_t *work)
{
    const asked_t *asked = &dscomm_priv_access_of(work)->asked;
    const uint64_t offset = GUINT64_FROM_LE(asked->offset);
    const uint64_t bytes = GUINT64_FROM_LE(asked->bytes);
    dscomm_mem_t *mem = dscomm_priv_mem_find(
        work->group, GUINT64_FROM_LE(asked->id), offset, bytes);

    work->call.access.gets = asked->gets != 0;
    /* Messages do not reach a device: the key is damaged. */
    if (mem && !mem->on_device) {
        mem->served++;
        work->call.access.mem = mem;
        work->call.access.data = mem->address + offset;
        work->call.access.bytes = (size_t)bytes;
    }
    if (work->call.access.gets)
        serve_answer(work);
    else
        serve_post(work, ACCESS_DATA,
                   (dscomm_message_t){.recv = work->call.access.data,
                                      .bytes = work->call.access.bytes,
                                      .tag = TAG_PUT_DATA});
}

static void serve_advance(dscomm_work_t *work)
{
    const access_t *access = dscomm_priv_access_of(work);
    const dscomm_status_t status = dscomm_priv_access_status(work);

    if (status != DSCOMM_OK)
        work->request.status = status;
    else if (!access->posted[ACCESS_DATA] && !access->posted[ACCESS_ANSWER]) {
        if (!serve_must_wait(work))
            serve_read(work);
    } else if (!access->posted[ACCESS_ANSWER]) {
        serve_answer(work);
    } else {
        work->request.status = DSCOMM_OK;
    }
}

static void serve_end(dscomm_work_t *work)
{
    if (work->call.access.mem)
        work->call.access.mem->served--;
}

static const dscomm_work_kind_t serve_kind = {
    .start = serve_start,
    .advance = serve_advance,
    .cancel = dscomm_priv_access_cancel,
    .end = serve_end,
};

static dscomm_status_t serve_take(dscomm_group_t *group, int peer, void *taken)
{
    const dscomm_call_t call = {
        .type = CALL_ACCESS,
        .internal = 1,
        .access = {.served = true, .peer = peer, .taken = taken},
    };
    dscomm_work_t *work;
    dscomm_status_t status =
        dscomm_priv_work_new(group, &serve_kind, &call, &work);

    if (status < 0)
        return status;
    work->zombie = 1;
    status = dscomm_priv_work_launch(work);
    if (status < 0)
        dscomm_priv_work_discard(work);
    return status;
}

/* Takes all that source, a rank or DSCOMM_ANY_SOURCE, asks for. */
static unsigned serve_source(dscomm_group_t *group, int source)
{
    const dscomm_message_t wanted = {.peer = source, .tag = TAG_ASK};
    dscomm_request_t found;
    dscomm_status_t status;
    unsigned count = 0;
    void *taken;

    while (group->ops.probe(group->impl, &wanted, &found, &taken)) {
        status = serve_take(group, found.source, taken);
        if (status < 0) {
            dscomm_priv_group_give_up(group, status);
            break;
        }
        count++;
    }
    return count;
}

static unsigned serve(dscomm_group_t *group)
{
    unsigned count = 0;

    if (group->ops.status(group->impl, NULL) != DSCOMM_OK)
        return 0;
    if (group->capabilities & DSCOMM_CAP_ANY_SOURCE)
        return serve_source(group, DSCOMM_ANY_SOURCE);
    for (int r = 0; r < group->size; r++)
        count += serve_source(group, r);
    return count;
}

void dscomm_priv_serve_begin(dscomm_group_t *group)
{
    group->works.serve = serve;
    dscomm_priv_access_begin(group);
    dscomm_priv_pending_add(group, false);
}
