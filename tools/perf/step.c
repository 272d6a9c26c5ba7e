/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps, see step.h. */
#include "config.h"

#include "tools/perf/measure.h"
#include "tools/perf/step.h"

perf_call_t perf_coalesced_call(const perf_call_t *call, int number)
{
    const size_t offset = (size_t)number * call->apart;
    perf_call_t one = *call;

    one.send = (char *)call->send + offset;
    one.recv = (char *)call->recv + offset;
    return one;
}

static dscomm_status_t start_coalesced(const perf_call_t *call,
                                       dscomm_work_t **ret_work)
{
    dscomm_status_t status = dscomm_coalesce_begin(call->group);

    for (int i = 0; i < call->aggregate && status == DSCOMM_OK; i++) {
        perf_call_t one = perf_coalesced_call(call, i);

        status = call->operation->run(&one, NULL);
    }
    if (status != DSCOMM_OK)
        return status;
    return dscomm_coalesce_end(call->group, ret_work);
}

static dscomm_status_t step_start(const perf_call_t *call,
                                  dscomm_work_t **ret_work)
{
    if (call->aggregate > 1)
        return start_coalesced(call, ret_work);
    return call->operation->run(call, ret_work);
}

static dscomm_status_t work_finish(dscomm_work_t *work)
{
    dscomm_status_t status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);

    dscomm_work_free(work);
    return status;
}

static dscomm_status_t step_async(const perf_call_t *call, dscomm_work_t **none)
{
    dscomm_work_t *work;
    dscomm_status_t status = step_start(call, &work);

    (void)none;
    return status == DSCOMM_OK ? work_finish(work) : status;
}

dscomm_status_t perf_step_overlap(const perf_call_t *call, dscomm_work_t **none)
{
    dscomm_work_t *work;
    dscomm_status_t status = step_start(call, &work);

    (void)none;
    if (status != DSCOMM_OK)
        return status;
    perf_compute(call->work);
    return work_finish(work);
}

dscomm_status_t perf_step_compute(const perf_call_t *call, dscomm_work_t **none)
{
    (void)none;
    perf_compute(call->work);
    return DSCOMM_OK;
}

perf_call_fn perf_step(const perf_options_t *options, const perf_call_t *call)
{
    if (options->async)
        return step_async;
    return call->aggregate > 1 ? start_coalesced : call->operation->run;
}

void perf_compute(double turns)
{
    volatile double result;
    double x = 1;

    for (gint64 i = 0; i < (gint64)turns; i++)
        x = x * 0.999999 + 0.5;
    result = x;
    (void)result;
}
