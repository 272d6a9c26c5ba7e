/* SPDX-License-Identifier: BSD-3-Clause */
/* Notices: how ranks notify each other that the group has ended. */
#include "config.h"

#include "backends/mpi/impl.h"

/* A notice: a rank's message to the others that the group has ended. mark: a
 * late notice may be from an earlier group, because MPICH reuses the number of
 * its communicator. */
typedef struct {
    uint32_t mark;
    unsigned char failure[DSCOMM_FAILURE_PACKED];
} notice_t;

static int notice_send(engine_t *engine, int rank, const void *buffer,
                       int bytes, MPI_Request *request)
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
    notice->mark = engine->mark;
    dscomm_backend_failure_pack(&engine->ending.failure, notice->failure);
    request = g_new0(engine_request_t, 1);
    request->kind = ENGINE_SEND;
    request->orphan = 1;
    request->stage = notice;
    request->parts = 1; /* until all are posted */
    for (int r = 0; r < engine->ranks; r++) {
        MPI_Request handle;

        if (r != engine->rank &&
            notice_send(engine, r, notice, sizeof *notice, &handle) == 0) {
            request->parts++;
            engine_add(engine, handle, request);
        }
    }
    if (--request->parts == 0) {
        g_free(notice);
        g_free(request);
    }
}

void engine_notified(engine_t *engine, int source, MPI_Message *message,
                     size_t bytes)
{
    dscomm_failure_t failure;
    notice_t notice = {0};

    if (bytes != sizeof notice ||
        MPI_Mrecv(&notice, sizeof notice, MPI_BYTE, message,
                  MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        !dscomm_backend_failure_unpack(notice.failure, sizeof notice.failure,
                                       &failure)) {
        engine_revoke_sender(engine, source, "a notice");
        return;
    }
    if (notice.mark == engine->mark)
        ending_mark(&engine->ending, &failure);
}
