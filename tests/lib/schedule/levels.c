/* SPDX-License-Identifier: BSD-3-Clause */
/* A group with levels: by which level a message goes, how the end of one level
 * ends all, and the steps of blocking calls. The levels' backends are fakes
 * that record their calls. */
#include "config.h"

#include "lib/group/group.h"
#include "lib/schedule/hierarchical.h"
#include "lib/schedule/levels.h"
#include "tests/tap.h"

#include <string.h>

#define RANKS 5
#define CALLS 8

/* One level's impl. */
typedef struct {
    dscomm_status_t status;
    dscomm_failure_t failure;
    const char *called; /* the last message slot that was called */
    int peer;
    dscomm_coll_args_t runs[CALLS];
    int count; /* of runs */
} fake_t;

static fake_t fakes[LEVEL_COUNT];
static char group_name[] = "g";
static int world_ranks[RANKS];
static dscomm_group_t group = {.identity.name = group_name,
                               .identity.world_ranks = world_ranks};
static dscomm_levels_t levels;
static int node[RANKS], local[RANKS];

static dscomm_status_t fake_isend(void *impl, const dscomm_message_t *message,
                                  dscomm_request_t *request)
{
    fake_t *fake = impl;

    (void)request;
    fake->called = "isend";
    fake->peer = message->peer;
    return fake->status < 0 ? dscomm_backend_fail(&fake->failure) : DSCOMM_OK;
}

static dscomm_status_t fake_irecv(void *impl, const dscomm_message_t *message,
                                  dscomm_request_t *request)
{
    fake_t *fake = impl;

    (void)request;
    fake->called = "irecv";
    fake->peer = message->peer;
    return DSCOMM_OK;
}

static void fake_cancel(void *impl, dscomm_request_t *request)
{
    (void)request;
    ((fake_t *)impl)->called = "cancel";
}

static int fake_probe(void *impl, const dscomm_message_t *wanted,
                      dscomm_request_t *found, void **ret_taken)
{
    (void)ret_taken;
    ((fake_t *)impl)->called = "probe";
    found->source = wanted->peer >= 0 ? wanted->peer : 4;
    return 1;
}

static void fake_revoke(void *impl, const dscomm_failure_t *failure)
{
    fake_t *fake = impl;

    if (fake->status < 0)
        return;
    fake->status = failure->status;
    fake->failure = *failure;
}

static dscomm_status_t fake_status(void *impl, dscomm_failure_t *ret_failure)
{
    const fake_t *fake = impl;

    if (ret_failure)
        *ret_failure = fake->failure;
    return fake->status;
}

static dscomm_status_t fake_run(void *impl, const dscomm_coll_args_t *args)
{
    fake_t *fake = impl;

    if (fake->count < CALLS)
        fake->runs[fake->count++] = *args;
    return fake->status < 0 ? dscomm_backend_fail(&fake->failure) : DSCOMM_OK;
}

static dscomm_failure_t fail_with(dscomm_status_t status, const char *detail)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;

    failure.status = status;
    failure.kind = DSCOMM_FAILURE_SILENT;
    dscomm_backend_failure_detail(&failure, "%s", detail);
    return failure;
}

/* Ends a level's backend by itself. */
static void fake_end(int which, dscomm_status_t status, const char *detail)
{
    fakes[which] =
        (fake_t){.status = status, .failure = fail_with(status, detail)};
}

/* hosts: a letter for each rank. */
static void begin(const char *hosts, int rank)
{
    const int ranks = (int)strlen(hosts);

    memset(fakes, 0, sizeof fakes);
    memset(&levels, 0, sizeof levels);
    levels.group = &group;
    levels.rank = rank;
    levels.ranks = ranks;
    levels.level_at = sizeof(dscomm_request_t);
    levels.slice = SIZE_MAX;
    levels.hosts = (dscomm_nodes_t){ranks, 0, node, local};
    for (int r = 0; r < ranks; r++) {
        node[r] = hosts[r] - 'a';
        levels.hosts.count = MAX(levels.hosts.count, node[r] + 1);
    }
    if (!dscomm_priv_layout_init(&levels.hosts, ranks, &levels.layout))
        bail("no memory");
    for (int i = 0; i < LEVEL_COUNT; i++) {
        dscomm_level_t *level = &levels.level[i];

        level->impl = &fakes[i];
        level->ops = (dscomm_backend_ops_t){.isend = fake_isend,
                                            .irecv = fake_irecv,
                                            .cancel = fake_cancel,
                                            .probe = fake_probe,
                                            .revoke = fake_revoke,
                                            .status = fake_status,
                                            .run = fake_run};
        pthread_mutex_init(&level->lock, NULL);
    }
}

static void end(void)
{
    dscomm_priv_layout_clear(&levels.layout);
    for (int i = 0; i < 2; i++)
        g_clear_pointer(&levels.rooms[i].bytes, g_free);
}

/* Checks the level by which a message goes to peer, and peer's number there. */
static void check_route(int peer, int tag, int which, int number,
                        const char *what)
{
    const dscomm_message_t message = {.peer = peer, .tag = tag};
    char memory[sizeof(dscomm_request_t) + sizeof(void *)];
    dscomm_request_t *request = (void *)memory;

    memset(fakes, 0, sizeof fakes);
    dscomm_priv_levels_irecv(&levels, &message, request);
    ok(fakes[which].called && fakes[which].peer == number,
       "%s: the level and the number", what);
    dscomm_priv_levels_cancel(&levels, request);
    is_str(fakes[which].called, "cancel", "%s: the request knows it", what);
}

static void test_messages(void)
{
    const dscomm_message_t wanted = {.peer = 3, .tag = 1};
    const dscomm_message_t any = {.peer = DSCOMM_ANY_SOURCE, .tag = 1};
    dscomm_request_t found;

    begin("abaab", 0);
    check_route(3, 1, LEVEL_NETWORK, 3, "user's, in the node");
    check_route(4, 1, LEVEL_NETWORK, 4, "user's, elsewhere");
    check_route(3, DSCOMM_TAG_COLLECTIVE, LEVEL_NODE, 2, "own, in the node");
    check_route(4, DSCOMM_TAG_COLLECTIVE, LEVEL_NETWORK, 4, "own, elsewhere");
    dscomm_priv_levels_probe(&levels, &any, &found, NULL);
    is_int(found.source, 4, "a probe of any source");
    levels.direct = true;
    check_route(3, 1, LEVEL_NODE, 2, "user's, direct");
    dscomm_priv_levels_probe(&levels, &wanted, &found, NULL);
    is_int(found.source, 3, "a probe has the number in the group");
    end();
}

static void test_end(void)
{
    const dscomm_message_t message = {.peer = 1, .tag = 1};
    char memory[sizeof(dscomm_request_t) + sizeof(void *)];
    const dscomm_failure_t enough = fail_with(DSCOMM_ERR_ABORTED, "enough");
    dscomm_failure_t failure;

    begin("aab", 0);
    is_int(dscomm_priv_levels_status(&levels, NULL), DSCOMM_OK, "no end");
    fake_end(LEVEL_NODE, DSCOMM_ERR_PEER_FAILED, "it died");
    is_int(dscomm_priv_levels_status(&levels, &failure), DSCOMM_ERR_PEER_FAILED,
           "the end of one level");
    is_int(fakes[LEVEL_NETWORK].status, DSCOMM_ERR_PEER_FAILED,
           "is that of the other");
    is_str(fakes[LEVEL_NETWORK].failure.detail, "it died", "with its record");
    is_int(fakes[LEVEL_RAIL].status, DSCOMM_OK, "the rail needs none");
    dscomm_priv_levels_revoke(&levels, &enough);
    is_int(dscomm_priv_levels_status(&levels, &failure), DSCOMM_ERR_PEER_FAILED,
           "the first end counts");
    is_str(failure.detail, "it died", "and its record");
    end();
    begin("aab", 0);
    dscomm_priv_levels_revoke(&levels, &enough);
    ok(fakes[LEVEL_NODE].status == DSCOMM_ERR_ABORTED &&
           fakes[LEVEL_NETWORK].status == DSCOMM_ERR_ABORTED,
       "both levels are revoked");
    is_int(dscomm_priv_levels_isend(&levels, &message, (void *)memory),
           DSCOMM_ERR_ABORTED, "no message after it");
    end();
}

/* Another thread has begun to end the group, and has not stored the reason
 * yet. */
static void test_race(void)
{
    begin("aab", 0);
    atomic_store(&levels.ended, 1 + LEVEL_NETWORK);
    dscomm_fail(DSCOMM_ERR_IO, "no room");
    is_int(dscomm_priv_levels_give_up(&levels, DSCOMM_ERR_IO), DSCOMM_ERR_IO,
           "a failure is one before the other thread has said why");
    is_str(dscomm_last_error(), "no room", "with its own sentence");
    end();
}

static dscomm_status_t run(int coll, int root, size_t count)
{
    static float input[64], output[64];
    const dscomm_coll_args_t args = {
        .coll = coll,
        .dtype = DSCOMM_FLOAT32,
        .op = coll == DSCOMM_COLL_BROADCAST ? -1 : DSCOMM_SUM,
        .root = root,
        .count = count,
        .element = sizeof(float),
        .send = input,
        .recv = output,
        .factor = 1.0,
        .sequence = 7};

    return dscomm_priv_hierarchical_run(&levels, &args);
}

static bool did(int which, int index, int coll, int root, size_t count)
{
    const dscomm_coll_args_t *args = &fakes[which].runs[index];

    return index < fakes[which].count && args->coll == coll &&
           args->root == root && args->count == count;
}

static void test_leaders(void)
{
    begin("aabbb", 1);
    is_int(run(DSCOMM_COLL_ALL_REDUCE, -1, 64), DSCOMM_OK, "all_reduce");
    ok(did(LEVEL_NODE, 0, DSCOMM_COLL_REDUCE, 0, 64) &&
           did(LEVEL_NODE, 1, DSCOMM_COLL_BROADCAST, 0, 64),
       "a node reduces to its leader, which broadcasts");
    is_int(fakes[LEVEL_RAIL].count, 0, "the others have no rail");
    end();
    begin("aabbb", 2);
    run(DSCOMM_COLL_ALL_REDUCE, -1, 64);
    ok(did(LEVEL_RAIL, 0, DSCOMM_COLL_ALL_REDUCE, -1, 64), "leaders have");
    end();
    begin("aabbb", 2);
    run(DSCOMM_COLL_REDUCE, 3, 64);
    ok(did(LEVEL_RAIL, 0, DSCOMM_COLL_REDUCE, 1, 64) &&
           did(LEVEL_NODE, 1, DSCOMM_COLL_SCATTER_V, 0, 0),
       "a leader hands over to the root beside it");
    end();
    begin("aabbb", 3);
    run(DSCOMM_COLL_BROADCAST, 3, 64);
    ok(did(LEVEL_NODE, 0, DSCOMM_COLL_BROADCAST, 1, 64) &&
           fakes[LEVEL_NODE].count == 1 && fakes[LEVEL_RAIL].count == 0,
       "a root beside the leader broadcasts once, in its node");
    end();
    begin("abab", 3);
    run(DSCOMM_COLL_BROADCAST, 2, 64);
    ok(did(LEVEL_RAIL, 0, DSCOMM_COLL_BROADCAST, 0, 64) &&
           did(LEVEL_NODE, 0, DSCOMM_COLL_BROADCAST, 1, 64),
       "in even nodes the root's rail serves");
    end();
}

static void test_rails(void)
{
    begin("abab", 2);
    levels.slice = 0;
    is_int(run(DSCOMM_COLL_ALL_REDUCE, -1, 7), DSCOMM_OK, "on rails");
    ok(did(LEVEL_NODE, 0, DSCOMM_COLL_REDUCE_SCATTER_V, -1, 3) &&
           did(LEVEL_RAIL, 0, DSCOMM_COLL_ALL_REDUCE, -1, 3) &&
           did(LEVEL_NODE, 1, DSCOMM_COLL_ALL_GATHER_V, -1, 3),
       "each rank has its slice");
    end();
    begin("abab", 2);
    fake_end(LEVEL_RAIL, DSCOMM_ERR_TIMEOUT, "nobody came");
    is_int(run(DSCOMM_COLL_ALL_REDUCE, -1, 7), DSCOMM_OK, "by its leader");
    fakes[LEVEL_NODE].count = 0;
    levels.slice = 0;
    is_int(run(DSCOMM_COLL_ALL_REDUCE, -1, 7), DSCOMM_ERR_TIMEOUT,
           "a step that fails");
    is_int(fakes[LEVEL_NODE].count, 1, "is the last one");
    is_int(fakes[LEVEL_NODE].status, DSCOMM_ERR_TIMEOUT,
           "and ends the group for all levels");
    end();
}

int main(void)
{
    test_messages();
    test_end();
    test_race();
    test_leaders();
    test_rails();
    return tap_done();
}
