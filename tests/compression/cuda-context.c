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

/* Makes call number `at` of the table and returns its result. Kernels work on
 * host memory; a call that allocates memory or an event frees it again. */
enum { MARK = 8, MAP, ALLOC_HOST, ALLOC, KERNEL, CALLS = KERNEL + 5 };
static int call(const use_t *use, int at)
{
    static char from[8], to[8], row[32];
    static float x[COUNT], c[COUNT], s;
    const dscomm_device_rows_t rows = {row, sizeof row, 1, COUNT};
    const dscomm_device_worker_t work = {0,  x, COUNT, COUNT, c,
                                         &s, c, &s,    rows};
    const dscomm_device_server_t serve = {rows, 1, COUNT, c, &s, row};
    const dscomm_device_unpack_t show = {0, rows, COUNT, 0, COUNT, x};
    const dscomm_device_materialise_t make = {c, &s, COUNT};
    const dscomm_device_take_back_t take = {0, x, COUNT, row, c};
    dscomm_device_queue_t *queue = use->queue;
    dscomm_device_card_t card;
    void *got = NULL;
    int is_reached;
    int code = at == 0            ? ops->sync(queue)
               : at == 1          ? ops->follow(queue, NULL)
               : at == 2          ? ops->lead(queue, NULL)
               : at == 3          ? ops->copy(queue, to, 0, from, 0, 4, 1)
               : at == 4          ? ops->copy(queue, to, 4, from, 4, 4, 2)
               : at == 5          ? ops->clear(queue, to, 4)
               : at == 6          ? ops->reached(queue, use->event, &is_reached)
               : at == 7          ? ops->lend(queue, use->memory, &card)
               : at == MARK       ? ops->mark(queue, &got)
               : at == MAP        ? ops->map(queue, &use->card, &got)
               : at < KERNEL      ? ops->alloc(queue, 4, at == ALLOC_HOST, &got)
               : at == KERNEL     ? ops->worker(queue, &work, 1)
               : at == KERNEL + 1 ? ops->server(queue, &serve, 1)
               : at == KERNEL + 2 ? ops->unpack(queue, &show, 1)
               : at == KERNEL + 3 ? ops->materialise(queue, &make)
                                  : ops->take_back(queue, &take);

    if (got && at == MARK)
        ops->unmark(queue, got);
    else if (got && at == MAP)
        ops->unmap(queue, got);
    else if (got)
        ops->release(queue, at == ALLOC_HOST, got);
    return code;
}

static void forget(void)
{
    memset(&fake_counts, 0, sizeof fake_counts);
    fake_counts.refused = -1;
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
    ok(fake_counts.calls[2] > CALLS && !fake_counts.calls[0] &&
           !fake_counts.calls[1] && !fake_counts.calls[3],
       "%s: all work is on the queue's device", what);
    ok(!fake_counts.made[0] && !fake_counts.made[1] && !fake_counts.made[3],
       "%s: no other device gets a context", what);
}

/* A device that can no longer be used. */
static void refused(void)
{
    dscomm_device_queue_t *none = NULL;
    int reported = 0, before;
    use_t use;

    forget();
    fake_counts.refused = 3;
    fake_set_context(fake_context_of(1));
    is_int(ops->open(3, &none), FAKE_INVALID_DEVICE, "no such device");
    ok(!none, "and no queue");
    use = use_begin();
    before = fake_counts.calls[2];
    fake_counts.refused = 2;
    for (int i = 0; i < CALLS; i++)
        reported += call(&use, i) == FAKE_INVALID_DEVICE;
    is_int(reported, CALLS, "all calls report a device that is gone");
    ops->release(use.queue, 0, NULL);
    ok(!fake_counts.calls[1] && fake_counts.calls[2] == before,
       "nothing is done elsewhere");
    ok(fake_context() == fake_context_of(1), "the thread's context is kept");
    fake_counts.refused = -1;
    is_int(call(&use, KERNEL), 0, "no error is left for another call");
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
        is_int(call(&use, KERNEL), 0, "the kernel after it does not");
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
    is_int(call(&use, KERNEL), 0, "the kernel after it succeeds");
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
