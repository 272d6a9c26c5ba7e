/* SPDX-License-Identifier: BSD-3-Clause */
/* Hooks: their arguments, and when they are called. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <time.h>
#include <unistd.h>

static int begun, ended;
static dscomm_op_info_t last;
static dscomm_status_t last_status;
static uint64_t last_token;

/* Calls of the hook waited, the time that it was told, and the operation. */
static int waits;
static int64_t waited_ns;
static dscomm_op_info_t waited_for;

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

static void on_waited(const dscomm_op_info_t *info, int64_t nanoseconds,
                      uint64_t token, void *arg)
{
    (void)arg;
    waited_for = *info;
    waited_ns = nanoseconds;
    last_token = token;
    waits++;
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
    int x = 1, y, z[3];

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
    dscomm_irecv(world, z, 3, DSCOMM_INT32, DSCOMM_ANY_SOURCE, 9, &work);
    is_int(last.root, -1, "a receive from any source has no peer yet");
    is_int((long long)last.bytes, 12, "and the size of its buffer");
    dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 9);
    dscomm_work_wait(work, -1);
    is_last(DSCOMM_COLL_RECV, 1, 3, 4, "irecv of a shorter message");
    is_int(last.root, 0, "the rank that has sent");
    dscomm_work_free(work);
    dscomm_irecv(world, z, 3, DSCOMM_INT32, 0, DSCOMM_ANY_TAG, &work);
    is_int(last.tag, -1, "a receive of any tag has none yet");
    dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 9);
    dscomm_work_wait(work, -1);
    is_last(DSCOMM_COLL_RECV, 1, 3, 4, "irecv of any tag");
    is_int(last.tag, 9, "the tag of the message");
    dscomm_work_free(work);
    is_int(dscomm_recv(world, &y, 1, DSCOMM_INT32, 0, 1, NULL, NULL),
           DSCOMM_ERR_STATE, "a receive that would wait for ever");
    is_int(last_status, DSCOMM_ERR_STATE, "hooks see failures");
}

/* The hook waited is called once, when the work's result is returned, with the
 * time of all calls that waited; not if there was none, nor for blocking
 * operations. */
static void waiting(dscomm_group_t *world)
{
    dscomm_hooks_t hooks = {.size = sizeof hooks,
                            .begin = on_begin,
                            .arg = &begun,
                            .waited = on_waited};
    dscomm_work_t *work;
    uint64_t token;
    size_t index;
    int x = 1, y;

    dscomm_hooks_set(&hooks);
    dscomm_irecv(world, &y, 1, DSCOMM_INT32, 0, 3, &work);
    is_int(dscomm_work_test(work), DSCOMM_IN_PROGRESS, "a test");
    is_int(dscomm_work_wait(work, 1), DSCOMM_IN_PROGRESS, "a wait of 1 ms");
    is_int(waits, 0, "are waits whose end is open");
    token = 1000 + (uint64_t)begun;
    dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 3);
    is_int(dscomm_work_wait_any(&work, 1, -1, &index), DSCOMM_OK, "any");
    is_int(waits, 1, "ends them");
    ok(waited_ns >= 1000000, "and tells their whole time");
    ok(waited_for.coll == DSCOMM_COLL_RECV && waited_for.tag == 3 &&
           waited_for.group == world && waited_for.bytes == 4,
       "for the receive");
    ok(last_token == token, "with its token");
    dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    dscomm_barrier(world, NULL);
    is_int(waits, 1, "a complete work, a blocking call: no wait");
    dscomm_hooks_set(NULL);
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t ended_ns; /* the time at which on_late_end() began */

/* Keeps the caller in its wait for 20 ms after the end. */
static void on_late_end(const dscomm_op_info_t *info, dscomm_status_t status,
                        uint64_t token, void *arg)
{
    (void)status, (void)token, (void)arg;
    if (info->coll != DSCOMM_COLL_RECV)
        return;
    ended_ns = now_ns();
    usleep(20000);
}

/* A wait for a work counts until its end, however late the caller notices. */
static void waiting_until_end(dscomm_group_t *world)
{
    dscomm_hooks_t hooks = {
        .size = sizeof hooks, .end = on_late_end, .waited = on_waited};
    dscomm_work_t *work, *send;
    int64_t began_ns;
    int x = 1, y;

    waits = 0;
    dscomm_hooks_set(&hooks);
    dscomm_irecv(world, &y, 1, DSCOMM_INT32, 0, 4, &work);
    dscomm_isend(world, &x, 1, DSCOMM_INT32, 0, 4, &send);
    began_ns = now_ns();
    is_int(dscomm_work_wait(work, -1), DSCOMM_OK, "a wait that ends late");
    ok(waits == 1 && waited_ns <= ended_ns - began_ns,
       "counts until the end: %lld ns of %lld", (long long)waited_ns,
       (long long)(ended_ns - began_ns));
    dscomm_work_free(work);
    dscomm_work_free(send);
    dscomm_hooks_set(NULL);
}

/* Hooks do not see operations that the library makes for a new group. */
static void library(dscomm_group_t *world)
{
    dscomm_hooks_t hooks = {
        .size = sizeof hooks, .begin = on_begin, .end = on_end, .arg = &begun};
    const int ranks[] = {0};
    dscomm_group_t *group;

    begun = ended = 0;
    dscomm_hooks_set(&hooks);
    is_int(dscomm_group_split(world, 0, 0, NULL, &group), DSCOMM_OK, "split");
    dscomm_group_free(group);
    is_int(dscomm_group_new(world, ranks, 1, NULL, &group), DSCOMM_OK, "new");
    dscomm_group_free(group);
    is_int(begun + ended, 0, "the library's own collectives are not seen");
    dscomm_hooks_set(NULL);
}

static const int64_t *last_phases;
static int64_t phases_ns;

static void on_phases(const dscomm_op_info_t *info, dscomm_status_t status,
                      uint64_t token, void *arg)
{
    (void)status, (void)token, (void)arg;
    last_phases = info->phases;
    phases_ns = 0;
    for (int i = 0; info->phases && i < DSCOMM_PHASE_COUNT; i++)
        phases_ns += info->phases[i];
}

/* Only a table that wants phases gets them. */
static void phases(dscomm_group_t *world)
{
    dscomm_hooks_t hooks = {.size = sizeof hooks, .end = on_phases};
    int x = 1, y;

    dscomm_hooks_set(&hooks);
    last_phases = &phases_ns;
    dscomm_barrier(world, NULL);
    ok(!last_phases, "no phases unless they are wanted");
    dscomm_hooks_set(NULL);
    hooks.flags = DSCOMM_HOOKS_PHASES;
    is_int(dscomm_hooks_set(&hooks), DSCOMM_OK, "a table that wants phases");
    dscomm_all_reduce(world, &x, &y, 1, DSCOMM_INT32, DSCOMM_SUM, NULL);
    ok(last_phases && phases_ns > 0, "gets those of a collective");
    dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 5);
    ok(!last_phases, "not of a message");
    dscomm_recv(world, &y, 1, DSCOMM_INT32, 0, 5, NULL, NULL);
    dscomm_hooks_set(NULL);
    hooks.flags = 6;
    is_int(dscomm_hooks_set(&hooks), DSCOMM_ERR_INVALID, "an unknown flag");
    ok(strstr(dscomm_last_error(), "it knows DSCOMM_HOOKS_PHASES") != NULL,
       "says so");
}

/* Tables of callers with older or newer headers. */
static void sizes(dscomm_group_t *world)
{
    static struct { /* its padding is zero */
        dscomm_hooks_t hooks;
        void *more;
    } newer = {{.size = sizeof newer, .end = on_end}, NULL};
    dscomm_hooks_t older = {.size = offsetof(dscomm_hooks_t, end),
                            .end = on_end};
    dscomm_hooks_t none = {.end = on_end};
    dscomm_hooks_t half = {.size = offsetof(dscomm_hooks_t, end) + 4,
                           .end = on_end};

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

static dscomm_note_t last_note;
static int noted;

static void on_note(const dscomm_note_t *note, void *arg)
{
    last_note = *note;
    noted += arg == &noted;
}

/* Notes of other libraries reach the table that wants them. */
static void notes(dscomm_group_t *world)
{
    dscomm_hooks_t hooks = {
        .size = sizeof hooks, .arg = &noted, .note = on_note};
    dscomm_note_t note = {.size = sizeof note,
                          .group = world,
                          .coll = DSCOMM_COLL_ALL_REDUCE,
                          .codec = "onebit",
                          .sent_bytes = 7};

    is_int(dscomm_hook_note(&note), DSCOMM_OK, "a note that nobody wants");
    dscomm_hooks_set(&hooks);
    is_int(dscomm_hook_note(&note), DSCOMM_OK, "one that somebody does");
    ok(noted == 1 && last_note.group == world && last_note.sent_bytes == 7 &&
           last_note.plain_bytes == 0,
       "arrives");
    note.plain_bytes = 9;
    note.size = offsetof(dscomm_note_t, plain_bytes);
    is_int(dscomm_hook_note(&note), DSCOMM_OK, "an older note");
    ok(noted == 2 && last_note.plain_bytes == 0 &&
           last_note.size == sizeof last_note,
       "has zeros for the rest");
    note.size = sizeof note;
    note.coll = DSCOMM_COLL_COUNT;
    is_int(dscomm_hook_note(&note), DSCOMM_ERR_INVALID, "no operation");
    note.coll = DSCOMM_COLL_SEND;
    note.codec = NULL;
    is_int(dscomm_hook_note(&note), DSCOMM_ERR_INVALID, "no codec");
    is_int(dscomm_hook_note(NULL), DSCOMM_ERR_INVALID, "no note");
    ok(strstr(dscomm_last_error(), "dscomm_hook_note: note") != NULL,
       "is named");
    is_int(noted, 2, "these do not arrive");
    dscomm_hooks_set(NULL);
}

int main(void)
{
    dscomm_hooks_t hooks = {
        .size = sizeof hooks, .begin = on_begin, .end = on_end, .arg = &begun};
    dscomm_hooks_t half = {.size = sizeof half, .end = on_end};
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
    phases(world);
    notes(world);
    waiting(world);
    waiting_until_end(world);
    library(world);
    dscomm_finalize(world);
    return tap_done();
}
