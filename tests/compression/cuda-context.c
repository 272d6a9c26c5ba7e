/* SPDX-License-Identifier: BSD-3-Clause */
/* What cuda.c does to a thread: work goes to the queue's device alone, the
 * thread's context is afterwards what it was, be it none, and an error is told
 * of once. */
#include "config.h"

#include "tests/tap.h"

#define CUDA_RUNTIME "tests/compression/fake-runtime.h"
#include "compression/cuda/cuda.c"

/* Starting a kernel tells of any error that was not taken. */
#define START(name)                                                            \
    int dscomm_priv_cuda_##name(const dscomm_cuda_grid_t *grid,                \
                                const dscomm_device_##name##_t *args,          \
                                size_t jobs)                                   \
    {                                                                          \
        fake_call(0, grid, args, jobs);                                        \
        return (int)cudaGetLastError();                                        \
    }
#define START_ONE(name)                                                        \
    int dscomm_priv_cuda_##name(const dscomm_cuda_grid_t *grid,                \
                                const dscomm_device_##name##_t *args)          \
    {                                                                          \
        fake_call(0, grid, args);                                              \
        return (int)cudaGetLastError();                                        \
    }

START(worker)
START(server)
START(unpack)
START_ONE(materialise)
START_ONE(take_back)

/* Number at of the table's calls; what it said. */
static int call(dscomm_device_queue_t *queue, int at)
{
    const dscomm_device_ops_t *ops = dscomm_device_cuda(DSCOMM_DEVICE_ABI);
    dscomm_device_worker_t work = {0};
    dscomm_device_server_t serve = {0};
    dscomm_device_unpack_t show = {0};
    dscomm_device_materialise_t make = {0};
    dscomm_device_take_back_t take = {0};
    dscomm_device_card_t card = {0};
    void *memory, *event = NULL;
    int is_there;

    switch (at) {
    case 0:
        return ops->sync(queue);
    case 1:
        return ops->follow(queue, NULL);
    case 2:
        return ops->lead(queue, NULL);
    case 3:
        return ops->alloc(queue, 4, 0, &memory);
    case 4:
        return ops->alloc(queue, 4, 1, &memory);
    case 5:
        return ops->copy(queue, NULL, 0, NULL, 0, 4, 1);
    case 6:
        return ops->copy(queue, NULL, 0, NULL, 0, 4, 2);
    case 7:
        return ops->clear(queue, NULL, 4);
    case 8:
        return ops->worker(queue, &work, 1);
    case 9:
        return ops->server(queue, &serve, 1);
    case 10:
        return ops->unpack(queue, &show, 1);
    case 11:
        return ops->materialise(queue, &make);
    case 12:
        return ops->take_back(queue, &take);
    case 13:
        return ops->mark(queue, &event);
    case 14:
        return ops->reached(queue, &event, &is_there);
    case 15:
        return ops->lend(queue, NULL, &card);
    case 16:
        return ops->map(queue, &card, &memory);
    default:
        return -1;
    }
}
#define CALLS 17

/* The thread's context is context before and after; calls on device 2. */
static void with_context(void *context, const char *what)
{
    const dscomm_device_ops_t *ops = dscomm_device_cuda(DSCOMM_DEVICE_ABI);
    dscomm_device_queue_t *queue = NULL;
    int kept, failed = 0;

    fake = (fake_runtime_t){.refused = -1};
    fake_current = context;
    is_int(ops->open(2, &queue), 0, "%s: a queue", what);
    kept = fake_current == context;
    for (int i = 0; i < CALLS; i++) {
        failed += call(queue, i) != 0;
        kept &= fake_current == context;
    }
    ops->release(queue, 0, NULL);
    ops->release(queue, 1, NULL);
    kept &= fake_current == context;
    ops->unmap(queue, NULL);
    kept &= fake_current == context;
    ops->unmark(queue, NULL);
    kept &= fake_current == context;
    ops->close(queue);
    is_int(failed, 0, "%s: all calls go well", what);
    ok(kept && fake_current == context, "%s: it stays", what);
    ok(fake.calls[2] > CALLS && !fake.calls[0] && !fake.calls[1] &&
           !fake.calls[3],
       "%s: all is done on the queue's device", what);
    ok(!fake.made[0] && !fake.made[1] && !fake.made[3],
       "%s: no other device gets a context", what);
}

/* A device that is no longer to be had. */
static void refused(void)
{
    const dscomm_device_ops_t *ops = dscomm_device_cuda(DSCOMM_DEVICE_ABI);
    dscomm_device_queue_t *queue = NULL, *none = NULL;
    int told = 0, before;

    fake = (fake_runtime_t){.refused = 3};
    fake_current = &fake_contexts[1];
    is_int(ops->open(3, &none), cudaErrorInvalidDevice, "no such device");
    ok(!none, "and no queue");
    ops->open(2, &queue);
    before = fake.calls[2];
    fake.refused = 2;
    for (int i = 0; i < CALLS; i++)
        told += call(queue, i) == cudaErrorInvalidDevice;
    is_int(told, CALLS, "all calls tell of a device that is gone");
    ok(!fake.calls[1] && fake.calls[2] == before, "nothing is done elsewhere");
    ok(fake_current == &fake_contexts[1], "the thread's context stays");
    ops->release(queue, 0, NULL);
    ops->close(queue);
    is_int(fake.last, 0, "nothing is left for another call to tell");
}

static void told_once(void)
{
    const dscomm_device_ops_t *ops = dscomm_device_cuda(DSCOMM_DEVICE_ABI);
    dscomm_device_worker_t work = {0};
    dscomm_device_queue_t *queue = NULL;

    fake = (fake_runtime_t){.refused = -1};
    ops->open(2, &queue);
    for (int i = 0; i < CALLS; i++) {
        fake.fails = 1;
        is_int(call(queue, i), cudaErrorUnknown, "call %d fails", i);
        fake.fails = 0;
        is_int(ops->worker(queue, &work, 1), 0, "the kernel after it does not");
    }
    ops->close(queue);
}

/* A mark that the queue has not come to is no failure, then or later. */
static void not_yet(void)
{
    const dscomm_device_ops_t *ops = dscomm_device_cuda(DSCOMM_DEVICE_ABI);
    dscomm_device_worker_t work = {0};
    dscomm_device_queue_t *queue = NULL;
    int is_there = 1;

    fake = (fake_runtime_t){.refused = -1, .late = 1};
    ops->open(2, &queue);
    is_int(ops->reached(queue, NULL, &is_there), 0, "a mark is looked at");
    is_int(is_there, 0, "it is not reached");
    is_int(ops->worker(queue, &work, 1), 0, "the kernel after it goes well");
    fake.late = 0;
    is_int(ops->reached(queue, NULL, &is_there), 0, "it is looked at again");
    is_int(is_there, 1, "it is reached");
    ok(ops->idle(queue) == ops->idle(queue), "there is one idle stream");
    ops->close(queue);
}

/* What one lends is what another maps; it says whose it is. */
static void lent(void)
{
    const dscomm_device_ops_t *ops = dscomm_device_cuda(DSCOMM_DEVICE_ABI);
    dscomm_device_card_t card = {0};
    dscomm_device_queue_t *queue = NULL;
    void *memory = NULL;

    fake = (fake_runtime_t){.refused = -1};
    fake_current = &fake_contexts[1];
    is_int(ops->current(), 1, "the thread's device");
    ops->open(2, &queue);
    is_int(ops->lend(queue, NULL, &card), 0, "memory is lent");
    ok(card.process == (uint64_t)getpid(), "its process is on the card");
    is_int(ops->map(queue, &card, &memory), 0, "it is mapped");
    ok(memory == fake_contexts + 7, "by the handle on the card");
    fake.fails = 1;
    memory = NULL;
    ok(ops->map(queue, &card, &memory) && !memory, "or there is nothing");
    ops->close(queue);
}

int main(void)
{
    char own;

    with_context(NULL, "no context");
    with_context(&fake_contexts[1], "that of another device");
    with_context(&fake_contexts[2], "that of the device");
    with_context(&own, "one of the program's own");
    refused();
    told_once();
    not_yet();
    lent();
    return tap_done();
}
