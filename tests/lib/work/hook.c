/* SPDX-License-Identifier: BSD-3-Clause */
/* Hooks: their arguments, and when they are called. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>

static int begun, ended;
static dscomm_op_info_t last;
static dscomm_status_t last_status;
static uint64_t last_token;

static uint64_t on_begin(const dscomm_op_info_t *info, void *arg)
{
    last = *info;
    *(int *)arg += 1;
    return 1000 + (uint64_t)begun;
}

static void on_end(const dscomm_op_info_t *info, dscomm_status_t status,
                   uint64_t token, void *arg)
{
    (void)arg;
    last = *info;
    last_status = status;
    last_token = token;
    ended++;
}

static void is_last(int coll, int async, size_t count, size_t bytes,
                    const char *what)
{
    is_int(last.coll, coll, "%s: what it is", what);
    is_int(last.async, async, "%s: async", what);
    is_int((long long)last.count, (long long)count, "%s: count", what);
    is_int((long long)last.bytes, (long long)bytes, "%s: bytes", what);
}

static void blocking(dscomm_group_t *world)
{
    float x[2] = {1, 2}, y[2];

    dscomm_all_reduce(world, x, y, 2, DSCOMM_FLOAT32, DSCOMM_MAX, NULL);
    is_int(begun, 1, "begin is called once");
    is_int(ended, 1, "and so is end");
    is_last(DSCOMM_COLL_ALL_REDUCE, 0, 2, 8, "all_reduce");
    is_int(last.op, DSCOMM_MAX, "the operator");
    is_int(last.dtype, DSCOMM_FLOAT32, "the dtype");
    is_int(last.root, -1, "no root");
    is_int((long long)last.sequence, 1, "the number");
    ok(last.send == x && last.recv == y && last.group == world, "the rest");
    is_int(last_status, DSCOMM_OK, "the status");
    is_int((long long)last_token, 1001, "the token is what begin returned");
    dscomm_all_reduce(world, NULL, y, 2, DSCOMM_FLOAT32, DSCOMM_MAX, NULL);
    is_int(begun, 1, "a call that is refused is not seen");
}

static void messages(dscomm_group_t *world)
{
    dscomm_work_t *work, *send;
    int x = 1, y;

    begun = ended = 0;
    dscomm_irecv(world, &y, 1, DSCOMM_INT32, 0, 9, &work);
    is_int(begun, 1, "irecv begins");
    is_int(ended, 0, "and does not end before it is complete");
    dscomm_isend(world, &x, 1, DSCOMM_INT32, 0, 9, &send);
    is_int(begun, 2, "isend begins");
    is_last(DSCOMM_COLL_SEND, 1, 1, 4, "isend");
    is_int(last.tag, 9, "the tag");
    is_int(last.root, 0, "the peer");
    dscomm_work_wait(work, -1);
    is_int(ended, 2, "both end");
    is_last(DSCOMM_COLL_RECV, 1, 1, 4, "irecv");
    dscomm_work_free(work);
    dscomm_work_free(send);
    is_int(dscomm_recv(world, &y, 1, DSCOMM_INT32, 0, 1, NULL, NULL),
           DSCOMM_ERR_STATE, "a receive that would wait for ever");
    is_int(last_status, DSCOMM_ERR_STATE, "hooks see failures");
}

/* Tables of callers with older or newer headers. */
static void sizes(dscomm_group_t *world)
{
    static struct { /* its padding is zero */
        dscomm_hooks_t hooks;
        void *more;
    } newer = {{sizeof newer, NULL, on_end, NULL}, NULL};
    dscomm_hooks_t older = {offsetof(dscomm_hooks_t, end), NULL, on_end, NULL};
    dscomm_hooks_t none = {0, NULL, on_end, NULL};
    dscomm_hooks_t half = {offsetof(dscomm_hooks_t, end) + 4, NULL, on_end,
                           NULL};

    begun = ended = 0;
    is_int(dscomm_hooks_set(&newer.hooks), DSCOMM_OK, "a newer table");
    dscomm_barrier(world, NULL);
    is_int(ended, 1, "is called");
    dscomm_hooks_set(NULL);
    newer.more = world;
    is_int(dscomm_hooks_set(&newer.hooks), DSCOMM_ERR_INVALID,
           "a newer table with a member that is not known here");
    ok(strstr(dscomm_last_error(), "does not know") != NULL, "says so");
    is_int(dscomm_hooks_set(&older), DSCOMM_OK, "an older table");
    dscomm_barrier(world, NULL);
    is_int(ended, 1, "what lies behind it is not read");
    dscomm_hooks_set(NULL);
    is_int(dscomm_hooks_set(&none), DSCOMM_ERR_INVALID, "a table of no size");
    ok(strstr(dscomm_last_error(), "hooks.size is 0") != NULL, "says so");
    is_int(dscomm_hooks_set(&half), DSCOMM_ERR_INVALID, "a half member");
    ok(strstr(dscomm_last_error(), "set it to sizeof(dscomm_hooks_t)") != NULL,
       "says so");
}

int main(void)
{
    dscomm_hooks_t hooks = {sizeof hooks, on_begin, on_end, &begun};
    dscomm_hooks_t half = {sizeof half, NULL, on_end, NULL};
    dscomm_group_t *world;
    dscomm_work_t *work;
    int x = 1, y;

    if (dscomm_init(NULL, &world))
        bail("%s", dscomm_last_error());
    is_int(dscomm_hooks_set(&hooks), DSCOMM_OK, "set");
    is_int(dscomm_hooks_set(&hooks), DSCOMM_ERR_STATE, "only one table");
    blocking(world);
    messages(world);
    dscomm_irecv(world, &y, 1, DSCOMM_INT32, 0, 9, &work);
    begun = ended = 0;
    is_int(dscomm_hooks_set(NULL), DSCOMM_OK, "removed");
    dscomm_barrier(world, NULL);
    is_int(begun + ended, 0, "nothing is called then");
    dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 9);
    dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    is_int(ended, 1, "what began under the table ends under it");
    is_int(dscomm_hooks_set(&half), DSCOMM_OK, "a table without begin");
    dscomm_barrier(world, NULL);
    is_int(ended, 2, "ends all the same");
    dscomm_hooks_set(NULL);
    sizes(world);
    dscomm_finalize(world);
    return tap_done();
}
