/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks tell each other that the group has ended. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <string.h>

/* A notice: the message by which a rank tells the others that the group has
 * ended. mark: a late notice may be of an earlier group, since MPICH gives the
 * number of its communicator to the next. */
typedef struct {
    int32_t status;
    uint32_t mark;
    char text[ENDING_MAX];
} notice_t;

static int notify(engine_t *engine, int rank, const void *buffer, int bytes,
                  MPI_Request *request)
{
    return MPI_Isend(buffer, bytes, MPI_BYTE, rank, WIRE_NOTICE(engine),
                     engine->comm, request) != MPI_SUCCESS;
}

void engine_notify(engine_t *engine)
{
    engine_request_t *request;
    notice_t *notice;

    if (!atomic_exchange(&engine->notify_due, 0) || !engine_library_alive() ||
        engine_reserve(engine, 0) < 0)
        return;
    notice = g_new0(notice_t, 1);
    notice->status = engine->ending.status;
    notice->mark = engine->mark;
    memcpy(notice->text, engine->ending.text, sizeof notice->text);
    request = g_new0(engine_request_t, 1);
    request->kind = ENGINE_SEND;
    request->orphan = 1;
    request->stage = notice;
    request->parts = 1; /* until all are posted */
    for (int r = 0; r < engine->ranks; r++) {
        MPI_Request handle;

        if (r != engine->rank &&
            notify(engine, r, notice, sizeof *notice, &handle) == 0) {
            request->parts++;
            engine_add(engine, handle, request);
        }
    }
    if (--request->parts == 0) {
        g_free(notice);
        g_free(request);
    }
}

void engine_notified(engine_t *engine, MPI_Message *message, size_t bytes)
{
    notice_t notice = {0};

    if (bytes != sizeof notice ||
        MPI_Mrecv(&notice, sizeof notice, MPI_BYTE, message,
                  MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        notice.status >= 0 || !memchr(notice.text, '\0', sizeof notice.text)) {
        engine_revoke(engine, DSCOMM_ERR_PROTOCOL,
                      "a rank has sent a notice that makes no sense");
        return;
    }
    if (notice.mark == engine->mark)
        ending_mark(&engine->ending, (dscomm_status_t)notice.status,
                    notice.text);
}
