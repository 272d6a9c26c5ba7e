/* SPDX-License-Identifier: BSD-3-Clause */
/* A blocking collective as a work of MPI's that is waited for: with a deadline,
 * with an ear for the others, and so that other groups go on. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <sched.h>
#include <stdio.h>

#define SPINS 256

static void give_up(engine_t *engine, const dscomm_coll_args_t *args)
{
    char what[128], text[TEXT_MAX];

    dscomm_coll_describe(args, what, sizeof what);
    snprintf(text, sizeof text,
             "%s of group '%s' (rank %d of %d) made no progress for %d ms: MPI "
             "does not tell which rank is late",
             what, engine->name, engine->rank, engine->ranks,
             engine->timeout_ms);
    engine_revoke(engine, DSCOMM_ERR_TIMEOUT, text);
}

/* Until it is complete, or the group has ended. */
static void await(engine_t *engine, const dscomm_coll_args_t *args,
                  engine_request_t *request)
{
    int64_t deadline = 0, now;
    int spins = 0;

    while (request->head.status == DSCOMM_IN_PROGRESS &&
           engine_check(engine) == DSCOMM_OK) {
        if (engine_progress(engine))
            spins = 0;
        if (++spins < SPINS)
            continue;
        now = g_get_monotonic_time();
        if (spins == SPINS)
            deadline = now + (int64_t)engine->timeout_ms * 1000;
        else if (now >= deadline)
            give_up(engine, args);
        dscomm_backend_progress_others(engine->group);
        sched_yield();
    }
}

dscomm_status_t engine_run_polled(engine_t *engine,
                                  const dscomm_coll_args_t *args)
{
    engine_request_t request = {.head.status = DSCOMM_IN_PROGRESS};
    dscomm_status_t status = engine_start(engine, args, &request.head);

    if (status < 0)
        return status;
    await(engine, args, &request);
    if (request.head.status == DSCOMM_IN_PROGRESS)
        engine_cancel(engine, &request.head);
    else if (request.head.status == DSCOMM_OK)
        return DSCOMM_OK;
    return engine_check(engine);
}
