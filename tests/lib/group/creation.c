/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that a backend has to open a group: one deadline, however many
 * levels the backend opens and however often it waits. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/group/creation.h"
#include "lib/group/group.h"
#include "tests/tap.h"

#include <unistd.h>

#define OPEN_MS 60000
#define LEVEL_MS 300 /* that a level takes to open */

static int given_ms; /* what the latest level had */

static dscomm_status_t open_slowly(const dscomm_backend_args_t *args,
                                   void **ret_impl)
{
    given_ms = args->open_ms;
    *ret_impl = NULL;
    usleep(LEVEL_MS * 1000);
    return DSCOMM_OK;
}

static void close_level(void *impl)
{
    (void)impl;
}

/* In place of the one that loads modules. */
dscomm_status_t __wrap_dscomm_priv_module_find(const char *name,
                                               const dscomm_module_t **module);

dscomm_status_t __wrap_dscomm_priv_module_find(const char *name,
                                               const dscomm_module_t **module)
{
    static dscomm_module_t slow;

    (void)name;
    slow.ops.open = open_slowly;
    slow.ops.close = close_level;
    *module = &slow;
    return DSCOMM_OK;
}

static dscomm_group_t group;
static dscomm_creation_t creation;
static const int ranks[] = {0, 1};
static dscomm_backend_args_t args = {.size = sizeof args,
                                     .group = &group,
                                     .name = "g",
                                     .id = "g",
                                     .ranks = 2,
                                     .world_ranks = ranks,
                                     .open_ms = OPEN_MS};

static int open_level(const char *part)
{
    const dscomm_inner_plan_t plan = {.backend = "slow",
                                      .name = "g",
                                      .part = part,
                                      .ranks = ranks,
                                      .count = 2};
    dscomm_inner_t *inner;

    if (dscomm_inner_open(&args, &plan, &inner) < 0)
        bail("no level");
    dscomm_inner_close(inner);
    return given_ms;
}

static void test_levels(void)
{
    int first, second, third;

    dscomm_priv_creation_begin(&creation, &group, NULL, OPEN_MS);
    first = open_level("a");
    second = open_level("b");
    third = open_level("c");
    ok(first <= OPEN_MS, "the first level has no more than the group");
    ok(second <= first - LEVEL_MS, "the second has what is left");
    ok(third <= second - LEVEL_MS, "and so has the third");
}

static void test_get(void)
{
    const char *key = "nobody sets it";
    const int64_t begun = dscomm_priv_clock();
    void *value;
    size_t size;

    dscomm_priv_creation_begin(&creation, &group, NULL, 0);
    is_int(dscomm_backend_creation_get(&args, &key, 1, OPEN_MS, &value, &size),
           DSCOMM_ERR_TIMEOUT, "a wait of a group whose time is over");
    ok(dscomm_priv_clock() - begun < OPEN_MS / 2 * NS_PER_MS,
       "it ends with that time");
    is_int(open_level("d"), 0, "a level has no time then");
}

/* In place of those that talk with other ranks, and of the one that opens. */
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
    static char name[] = "p";
    size_t scratch[16] = {0};
    dscomm_group_t parent = {.identity.name = name,
                             .identity.id = name,
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
    if (dscomm_store_open("memory://", NULL, &args.store) < 0)
        bail("no store");
    test_levels();
    test_get();
    test_mesh();
    dscomm_store_close(args.store);
    return tap_done();
}
