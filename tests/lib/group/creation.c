/* SPDX-License-Identifier: BSD-3-Clause */
/* The time for opening a group: one deadline, however many levels the backend
 * opens and however often it waits. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/group/creation.h"
#include "lib/group/failure.h"
#include "lib/group/group.h"
#include "lib/group/published.h"
#include "lib/group/world.h"
#include "lib/rendezvous/processes.h"
#include "lib/rendezvous/record.h"
#include "lib/schedule/levels.h"
#include "tests/port.h"
#include "tests/tap.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPEN_MS 60000
#define LEVEL_MS 300 /* time that a level takes to open */
#define RANKS 3

static int given_ms[2]; /* time that each level was given */
static int levels; /* that were opened */

static dscomm_status_t open_slowly(const dscomm_backend_args_t *args,
                                   void **ret_impl)
{
    if (levels < 2)
        given_ms[levels] = args->open_ms;
    *ret_impl = &levels;
    levels++;
    usleep(LEVEL_MS * 1000);
    return DSCOMM_OK;
}

static void close_level(void *impl)
{
    (void)impl;
}

/* Replaces the function that loads modules. */
dscomm_status_t __wrap_dscomm_priv_module_find(const char *name,
                                               const dscomm_module_t **module);

dscomm_status_t __wrap_dscomm_priv_module_find(const char *name,
                                               const dscomm_module_t **module)
{
    static dscomm_module_t slow;

    (void)name;
    slow = *dscomm_priv_module_self();
    slow.ops.open = open_slowly;
    slow.ops.close = close_level;
    *module = &slow;
    return DSCOMM_OK;
}

static dscomm_world_t world;
static int ranks[] = {0, 1, 2};
static char group_name[] = "g";
static dscomm_group_t group = {
    .size = RANKS,
    .identity = {.world = &world, .world_ranks = ranks, .name = group_name}};
static dscomm_creation_t creation;
static dscomm_backend_args_t args = {.size = sizeof args,
                                     .group = &group,
                                     .name = group_name,
                                     .id = "g",
                                     .ranks = RANKS,
                                     .world_ranks = ranks,
                                     .open_ms = OPEN_MS};

/* The other ranks, one of which is on another host, have come before. */
static void open_levels(int open_ms)
{
    static int node[] = {0, 0, 1}, local[] = {0, 1, 0};
    int64_t count;
    void *impl;

    world.meeting.hosts = (dscomm_nodes_t){RANKS, 2, node, local};
    g_strlcpy(world.meeting.between, "slow", sizeof world.meeting.between);
    levels = 0;
    if (dscomm_store_open("memory://", NULL, &args.store) < 0 ||
        dscomm_store_add(args.store, "levels/came", RANKS - 1, &count) < 0)
        bail("no store");
    dscomm_priv_creation_begin(&creation, &group, NULL, open_ms);
    if (dscomm_priv_levels_open(&args, &impl) < 0)
        bail("no levels: %s", dscomm_last_error());
    dscomm_priv_levels_close(impl);
    dscomm_store_close(args.store);
    g_clear_pointer(&group.works.request, g_free);
}

static void test_levels(void)
{
    open_levels(OPEN_MS);
    is_int(levels, 2, "two levels");
    ok(given_ms[0] <= OPEN_MS, "the first has no more than the group");
    ok(given_ms[1] <= given_ms[0] - LEVEL_MS, "the second has what is left");
    open_levels(0);
    ok(!given_ms[0] && !given_ms[1], "none has time if the group has none");
}

static void test_get(void)
{
    const char *key = "nobody sets it";
    const int64_t begun = dscomm_priv_clock();
    void *value;
    size_t size;

    if (dscomm_store_open("memory://", NULL, &args.store) < 0)
        bail("no store");
    dscomm_priv_creation_begin(&creation, &group, NULL, 0);
    is_int(dscomm_backend_creation_get(&args, &key, 1, OPEN_MS, &value, &size),
           DSCOMM_ERR_TIMEOUT, "a wait of a group whose time is over");
    ok(dscomm_priv_clock() - begun < OPEN_MS / 2 * NS_PER_MS,
       "it ends with that time");
    dscomm_store_close(args.store);
}

/* The name "g" is a letter of the sentence, too. */
static void test_name(void)
{
    const dscomm_status_t status = DSCOMM_ERR_PROTOCOL;
    dscomm_failure_t failure;

    dscomm_priv_creation_begin(&creation, &group, NULL, OPEN_MS);
    dscomm_fail(status, "nothing has come");
    dscomm_backend_failure_last(&group, status, &failure);
    is_str(failure.detail, "group 'g': nothing has come",
           "a failure while a group is made begins with the group");
    dscomm_backend_fail(&failure);
    dscomm_backend_failure_last(&group, status, &failure);
    is_str(failure.detail, "group 'g': nothing has come", "and says it once");
    group.life.creation = NULL;
    dscomm_fail(status, "nothing has come");
    dscomm_backend_failure_last(&group, status, &failure);
    is_str(failure.detail, "nothing has come", "later it does not");
}

/* The store's server is on another host, so only the connection shows that it
 * has ended. */
static void test_server_lost(void)
{
    static int node[] = {0, 1, 1}, local[] = {0, 0, 1};
    dscomm_meeting_t *meeting = &world.meeting;
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_failure_t failure;
    dscomm_store_t *server;
    dscomm_status_t status;
    char url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port_find_free(1));
    attr.serve = 1;
    if (dscomm_store_open(url, &attr, &server) < 0 ||
        dscomm_store_open(url, NULL, &args.store) < 0)
        bail("no store: %s", dscomm_last_error());
    world.size = RANKS;
    meeting->rank = 1;
    meeting->serves = 1;
    meeting->nodes = (dscomm_nodes_t){RANKS, 2, node, local};
    meeting->store = group.life.base = group.life.store = args.store;
    meeting->processes = dscomm_priv_processes_new(RANKS);
    dscomm_priv_processes_add(meeting->processes, 0, 4711, "far", "far");
    dscomm_priv_creation_begin(&creation, &group, NULL, OPEN_MS);
    creation.next_ns = 0; /* the next check looks */
    dscomm_store_close(server);
    status = dscomm_backend_creation_check(&args);
    is_int(status, DSCOMM_ERR_PEER_FAILED, "the store's server ends elsewhere");
    dscomm_backend_failure_last(&group, status, &failure);
    is_int(failure.kind, DSCOMM_FAILURE_DIED, "that is a death");
    ok(failure.rank == 0 && failure.pid == 4711 && !strcmp(failure.host, "far"),
       "of rank 0");
    dscomm_store_close(args.store);
    dscomm_priv_processes_free(meeting->processes);
    memset(meeting, 0, sizeof *meeting);
    group.life.base = group.life.store = NULL;
    group.life.creation = NULL;
}

static dscomm_failure_t revoked; /* the failure of the parent */

static dscomm_status_t parent_status(void *impl, dscomm_failure_t *ret_failure)
{
    (void)impl;
    if (ret_failure)
        *ret_failure = revoked;
    return revoked.status;
}

static void parent_revoke(void *impl, const dscomm_failure_t *failure)
{
    (void)impl;
    revoked = *failure;
}

/* Rank 1 has ended because it found, while it made another group of the parent,
 * that rank 2 had died. */
static void test_found_elsewhere(void)
{
    static int node[RANKS], local[] = {0, 1, 2};
    dscomm_group_t parent = {
        .size = RANKS,
        .ops = {.status = parent_status, .revoke = parent_revoke},
        .identity = group.identity};
    dscomm_meeting_t *meeting = &world.meeting;
    const pid_t pid = fork();
    dscomm_failure_t failure;
    char *machine = dscomm_priv_record_machine();
    dscomm_status_t status;

    while (pid == 0 && !prctl(PR_SET_PDEATHSIG, SIGKILL))
        pause();
    if (pid < 0 || dscomm_store_open("memory://", NULL, &args.store) < 0 ||
        dscomm_store_prefix(args.store, "g/parent", &parent.life.store) < 0)
        bail("no process or no store");
    world.size = RANKS;
    meeting->nodes = (dscomm_nodes_t){RANKS, 1, node, local};
    meeting->store = group.life.base = group.life.store = parent.life.base =
        args.store;
    meeting->processes = dscomm_priv_processes_new(RANKS);
    dscomm_priv_processes_add(meeting->processes, 1, pid, "here", machine);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    dscomm_backend_failure(&parent, DSCOMM_ERR_PEER_FAILED, DSCOMM_FAILURE_DIED,
                           2, 0, &failure);
    dscomm_priv_failure_publish(parent.life.store, &failure);
    dscomm_priv_creation_begin(&creation, &group, &parent, OPEN_MS);
    creation.next_ns = 0;
    creation.learned = 1;
    status = dscomm_backend_creation_check(&args);
    is_int(status, DSCOMM_ERR_PEER_FAILED,
           "a rank has ended that had found a death in another group");
    is_int(revoked.rank, 2, "the parent's culprit is the rank that had died");
    g_free(machine);
    dscomm_store_close(parent.life.store);
    dscomm_store_close(args.store);
    dscomm_priv_processes_free(meeting->processes);
    memset(meeting, 0, sizeof *meeting);
    group.life.base = group.life.store = NULL;
    group.life.creation = NULL;
}

static int publish(dscomm_status_t status, int rank)
{
    dscomm_failure_t failure;

    dscomm_backend_failure(&group, status, DSCOMM_FAILURE_SILENT, rank, 0,
                           &failure);
    if (dscomm_priv_failure_publish(args.store, &failure) < 0)
        bail("no publication: %s", dscomm_last_error());
    return failure.rank;
}

/* The first failure that names a culprit is that of all. */
static void test_publish(void)
{
    if (dscomm_store_open("memory://", NULL, &args.store) < 0)
        bail("no store");
    is_int(publish(DSCOMM_ERR_TIMEOUT, -1), -1, "a time-out names nobody");
    is_int(publish(DSCOMM_ERR_TIMEOUT, 2), 2, "another names rank 2");
    is_int(publish(DSCOMM_ERR_TIMEOUT, -1), 2, "that replaces the first");
    is_int(publish(DSCOMM_ERR_TIMEOUT, 1), 2, "and a third does not");
    is_int(publish(DSCOMM_ERR_PEER_FAILED, 1), 2, "nor a death");
    dscomm_store_close(args.store);
}

/* Replace the functions that communicate with other ranks, and the one that
 * opens levels. */
dscomm_status_t __wrap_dscomm_priv_agree(dscomm_group_t *parent, int root,
                                         uint64_t hash, const char *what,
                                         const char *remedy);
dscomm_status_t __wrap_dscomm_priv_group_attr(dscomm_group_t *parent,
                                              const char *name,
                                              const dscomm_group_attr_t *attr,
                                              dscomm_group_attr_t *ret_attr);
dscomm_status_t __wrap_dscomm_priv_group_open(const dscomm_group_plan_t *plan,
                                              dscomm_group_t **ret_group);

dscomm_status_t __wrap_dscomm_priv_agree(dscomm_group_t *parent, int root,
                                         uint64_t hash, const char *what,
                                         const char *remedy)
{
    (void)parent, (void)root, (void)hash, (void)what, (void)remedy;
    return DSCOMM_OK;
}

dscomm_status_t __wrap_dscomm_priv_group_attr(dscomm_group_t *parent,
                                              const char *name,
                                              const dscomm_group_attr_t *attr,
                                              dscomm_group_attr_t *ret_attr)
{
    (void)parent, (void)name, (void)attr;
    *ret_attr = (dscomm_group_attr_t)DSCOMM_GROUP_ATTR_INIT;
    ret_attr->timeout_ms = OPEN_MS;
    return DSCOMM_OK;
}

#define DIMS 3

static int64_t deadlines[DIMS];
static int opened;

dscomm_status_t __wrap_dscomm_priv_group_open(const dscomm_group_plan_t *plan,
                                              dscomm_group_t **ret_group)
{
    deadlines[opened++] = plan->deadline;
    *ret_group = NULL;
    usleep(1000);
    return DSCOMM_OK;
}

static void test_mesh(void)
{
    static const int dims[DIMS] = {2, 2, 2};
    static char whole[] = "p";
    size_t scratch[16] = {0};
    dscomm_group_t parent = {.identity.name = whole,
                             .identity.id = whole,
                             .size = 8,
                             .scratch = scratch};
    dscomm_group_t *groups[DIMS];

    is_int(dscomm_group_mesh(&parent, dims, DIMS, groups), DSCOMM_OK, "a mesh");
    is_int(opened, DIMS, "a group is opened along each dimension");
    is_int(deadlines[1], deadlines[0],
           "the second has the first one's deadline");
    is_int(deadlines[2], deadlines[0], "and so has the third");
}

int main(void)
{
    test_levels();
    test_get();
    test_name();
    test_server_lost();
    test_found_elsewhere();
    test_publish();
    test_mesh();
    return tap_done();
}
