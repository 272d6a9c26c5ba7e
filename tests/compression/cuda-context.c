/* SPDX-License-Identifier: BSD-3-Clause */
/* The effects of cuda.c on a thread: work goes only to the queue's device; the
 * thread's context is restored, also if there was none; each error is reported
 * once. */
#include "config.h"

#include "tests/compression/fake-device.h"
#include "tests/tap.h"

#include <string.h>
#include <unistd.h>

#define COUNT 8

/* A queue of device 2, and the arguments of its calls. */
typedef struct {
    dscomm_device_queue_t *queue;
    void *memory, *event;
    dscomm_device_card_t card;
} use_t;

static const dscomm_device_ops_t *ops;

static use_t use_begin(void)
{
    use_t use = {0};
    int failed = ops->open(2, &use.queue);

    if (!failed)
        failed = ops->alloc(use.queue, COUNT, 0, &use.memory) ||
                 ops->lend(use.queue, use.memory, &use.card) ||
                 ops->mark(use.queue, &use.event) || ops->sync(use.queue);
    is_int(failed, 0, "a queue");
    return use;
}

static void use_end(use_t *use)
{
    ops->unmark(use->queue, use->event);
    ops->release(use->queue, 0, use->memory);
    ops->close(use->queue);
}

/* Calls that allocate memory or an event, and free it. */
static int call_and_undo(const use_t *use, int at)
{
    void *got = NULL;
    int code = at == 0   ? ops->mark(use->queue, &got)
               : at == 1 ? ops->map(use->queue, &use->card, &got)
                         : ops->alloc(use->queue, 4, at == 2, &got);

    if (got && at == 0)
        ops->unmark(use->queue, got);
    else if (got && at == 1)
        ops->unmap(use->queue, got);
    else if (got)
        ops->release(use->queue, at == 2, got);
    return code;
}

/* Calls that start kernels, on host memory. */
static int call_kernel(const use_t *use, int at)
{
    static char row[32];
    static float x[COUNT], c[COUNT], s;
    const dscomm_device_rows_t rows = {row, sizeof row, 1, COUNT};
    const dscomm_device_worker_t work = {0,  x, COUNT, COUNT, c,
                                         &s, c, &s,    rows};
    const dscomm_device_server_t serve = {rows, 1, COUNT, c, &s, row};
    const dscomm_device_unpack_t show = {0, rows, COUNT, 0, COUNT, x};
    const dscomm_device_materialise_t make = {c, &s, COUNT};
    const dscomm_device_take_back_t take = {0, x, COUNT, row, c};

    return at == 0   ? ops->worker(use->queue, &work, 1)
           : at == 1 ? ops->server(use->queue, &serve, 1)
           : at == 2 ? ops->unpack(use->queue, &show, 1)
           : at == 3 ? ops->materialise(use->queue, &make)
                     : ops->take_back(use->queue, &take);
}

/* Makes call number `at` of the table and returns its result. */
#define CALLS 17
static int call(const use_t *use, int at)
{
    static char from[8], to[8];
    dscomm_device_card_t card;
    int is_reached;

    switch (at) {
    case 0:
        return ops->sync(use->queue);
    case 1:
        return ops->follow(use->queue, NULL);
    case 2:
        return ops->lead(use->queue, NULL);
    case 3:
        return ops->copy(use->queue, to, 0, from, 0, 4, 1);
    case 4:
        return ops->copy(use->queue, to, 4, from, 4, 4, 2);
    case 5:
        return ops->clear(use->queue, to, 4);
    case 6:
        return ops->reached(use->queue, use->event, &is_reached);
    case 7:
        return ops->lend(use->queue, use->memory, &card);
    default:
        return at < 12 ? call_and_undo(use, at - 8) : call_kernel(use, at - 12);
    }
}

static void forget(void)
{
    memset(&fake_account, 0, sizeof fake_account);
    fake_account.refused = -1;
}

/* The thread's current context is the same before and after each call. */
static void with_context(void *context, const char *what)
{
    int kept, failed = 0;
    use_t use;

    forget();
    fake_set_context(context);
    use = use_begin();
    kept = fake_context() == context;
    for (int i = 0; i < CALLS; i++) {
        failed += call(&use, i) != 0;
        kept &= fake_context() == context;
    }
    use_end(&use);
    is_int(failed, 0, "%s: all calls succeed", what);
    ok(kept && fake_context() == context, "%s: it is restored", what);
    ok(fake_account.calls[2] > CALLS && !fake_account.calls[0] &&
           !fake_account.calls[1] && !fake_account.calls[3],
       "%s: all work is on the queue's device", what);
    ok(!fake_account.made[0] && !fake_account.made[1] && !fake_account.made[3],
       "%s: no other device gets a context", what);
}

/* A device that can no longer be used. */
static void refused(void)
{
    dscomm_device_queue_t *none = NULL;
    int reported = 0, before;
    use_t use;

    forget();
    fake_account.refused = 3;
    fake_set_context(fake_context_of(1));
    is_int(ops->open(3, &none), FAKE_INVALID_DEVICE, "no such device");
    ok(!none, "and no queue");
    use = use_begin();
    before = fake_account.calls[2];
    fake_account.refused = 2;
    for (int i = 0; i < CALLS; i++)
        reported += call(&use, i) == FAKE_INVALID_DEVICE;
    is_int(reported, CALLS, "all calls report a device that is gone");
    ops->release(use.queue, 0, NULL);
    ok(!fake_account.calls[1] && fake_account.calls[2] == before,
       "nothing is done elsewhere");
    ok(fake_context() == fake_context_of(1), "the thread's context is kept");
    fake_account.refused = -1;
    is_int(call_kernel(&use, 0), 0, "no error is left for another call");
    use_end(&use);
}

static void reported_once(void)
{
    use_t use;

    forget();
    use = use_begin();
    for (int i = 0; i < CALLS; i++) {
        fake_device_fail(0);
        is_int(call(&use, i), FAKE_ERROR, "call %d fails", i);
        is_int(call_kernel(&use, 0), 0, "the kernel after it does not");
    }
    use_end(&use);
}

/* An event that the queue has not reached is not a failure, neither then nor
 * later. */
static void not_yet(void)
{
    int is_reached = 1;
    use_t use;

    forget();
    use = use_begin();
    fake_device_late(1);
    ops->mark(use.queue, &use.event);
    ops->sync(use.queue);
    fake_device_late(0);
    is_int(ops->reached(use.queue, use.event, &is_reached), 0, "it is queried");
    is_int(is_reached, 0, "it is not reached");
    is_int(call_kernel(&use, 0), 0, "the kernel after it succeeds");
    is_int(ops->reached(use.queue, use.event, &is_reached), 0, "once more");
    is_int(is_reached, 1, "it is reached");
    ok(ops->idle(use.queue) == ops->idle(use.queue), "one idle stream");
    use_end(&use);
}

/* Memory that one process lends can be mapped by another one. */
static void lent(void)
{
    void *mapped = NULL;
    char byte = 7;
    use_t use;

    forget();
    fake_set_context(fake_context_of(1));
    is_int(ops->current(), 1, "the thread's device");
    use = use_begin();
    ok(use.card.process == (uint64_t)getpid(), "the card has the process");
    is_int(ops->map(use.queue, &use.card, &mapped), 0, "it is mapped");
    fake_device_write(use.memory, &byte, 1);
    byte = 0;
    fake_device_read(&byte, mapped, 1);
    ok(mapped != use.memory && byte == 7, "by the handle on the card");
    ops->unmap(use.queue, mapped);
    mapped = NULL;
    fake_device_fail(0);
    ok(ops->map(use.queue, &use.card, &mapped) && !mapped, "or is NULL");
    use_end(&use);
    is_int(fake_device_pieces(), 0, "all memory is free");
}

int main(void)
{
    char own;

    ops = fake_device_table();
    with_context(NULL, "no context");
    with_context(fake_context_of(1), "that of another device");
    with_context(fake_context_of(2), "that of the device");
    with_context(&own, "one of the program's own");
    refused();
    reported_once();
    not_yet();
    lent();
    return tap_done();
}
