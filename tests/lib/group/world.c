/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of freed groups: every call refuses them, without reading freed
 * memory (which the address sanitizer and valgrind would report). */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <string.h>

static int32_t in[4], out[4];
static const size_t counts[1] = {1};

static dscomm_status_t collective(dscomm_group_t *g, int coll,
                                  dscomm_work_t **w)
{
    const dscomm_dtype_t type = DSCOMM_INT32;

    switch (coll) {
    case DSCOMM_COLL_BROADCAST:
        return dscomm_broadcast(g, in, 1, type, 0, w);
    case DSCOMM_COLL_REDUCE:
        return dscomm_reduce(g, in, out, 1, type, DSCOMM_SUM, 0, w);
    case DSCOMM_COLL_ALL_REDUCE:
        return dscomm_all_reduce(g, in, out, 1, type, DSCOMM_SUM, w);
    case DSCOMM_COLL_ALL_GATHER:
        return dscomm_all_gather(g, in, out, 1, type, w);
    case DSCOMM_COLL_ALL_GATHER_V:
        return dscomm_all_gather_v(g, in, 1, out, counts, NULL, type, w);
    case DSCOMM_COLL_REDUCE_SCATTER:
        return dscomm_reduce_scatter(g, in, out, 1, type, DSCOMM_SUM, w);
    case DSCOMM_COLL_REDUCE_SCATTER_V:
        return dscomm_reduce_scatter_v(g, in, out, counts, type, DSCOMM_SUM, w);
    case DSCOMM_COLL_GATHER:
        return dscomm_gather(g, in, out, 1, type, 0, w);
    case DSCOMM_COLL_GATHER_V:
        return dscomm_gather_v(g, in, 1, out, counts, NULL, type, 0, w);
    case DSCOMM_COLL_SCATTER:
        return dscomm_scatter(g, in, out, 1, type, 0, w);
    case DSCOMM_COLL_SCATTER_V:
        return dscomm_scatter_v(g, in, counts, NULL, out, 1, type, 0, w);
    case DSCOMM_COLL_ALL_TO_ALL:
        return dscomm_all_to_all(g, in, out, 1, type, w);
    case DSCOMM_COLL_ALL_TO_ALL_V:
        return dscomm_all_to_all_v(g, in, counts, NULL, out, counts, NULL, type,
                                   w);
    default:
        return dscomm_barrier(g, w);
    }
}

static void check_one(dscomm_status_t status, const char *what,
                      const char *call)
{
    if (!is_int(status, DSCOMM_ERR_INVALID, "%s: %s", what, call) ||
        !strstr(dscomm_last_error(), "finalized or freed"))
        ok(0, "%s: %s says so: %s", what, call, dscomm_last_error());
}

#define GONE(call) check_one(call, what, #call)

static void check_collectives(dscomm_group_t *g, const char *what)
{
    dscomm_work_t *work;

    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++) {
        const char *name = dscomm_coll_name((dscomm_coll_t)coll);

        check_one(collective(g, coll, NULL), what, name);
        check_one(collective(g, coll, &work), what, name);
    }
    GONE(dscomm_all_reduce(g, NULL, NULL, 0, DSCOMM_INT8, DSCOMM_MAX, NULL));
    GONE(dscomm_all_reduce(g, in, in, 1, DSCOMM_INT8, DSCOMM_MAX, NULL));
}

static void check_others(dscomm_group_t *g, const char *what)
{
    dscomm_work_t *work;
    dscomm_group_t *child;
    void *blob, *memory;
    int rank = 0;
    size_t size;

    GONE(dscomm_send(g, in, 1, DSCOMM_INT32, 0, 0));
    GONE(dscomm_recv(g, in, 1, DSCOMM_INT32, 0, 0, &rank, &size));
    GONE(dscomm_isend(g, in, 1, DSCOMM_INT32, 0, 0, &work));
    GONE(dscomm_irecv(g, in, 1, DSCOMM_INT32, 0, 0, &work));
    GONE(dscomm_monitored_barrier(g, 100));
    GONE(dscomm_broadcast_blob(g, in, 4, 0, &blob, &size));
    GONE(dscomm_all_gather_blob(g, in, 4, &blob, &size));
    GONE(dscomm_coalesce_begin(g));
    GONE(dscomm_coalesce_end(g, NULL));
    GONE(dscomm_group_new(g, &rank, 1, NULL, &child));
    GONE(dscomm_group_split(g, 0, 0, NULL, &child));
    GONE(dscomm_group_mesh(g, &(int){1}, 1, &child));
    GONE(dscomm_group_free(g));
    GONE(dscomm_group_abort(g, "too late"));
    GONE(dscomm_group_status(g));
    GONE(dscomm_group_to_global(g, 0, &rank));
    GONE(dscomm_group_from_global(g, 0, &rank));
    GONE(dscomm_group_set_stream(g, NULL));
    GONE(dscomm_mem_alloc(g, 1, &memory));
    GONE(dscomm_mem_free(g, in));
    is_int(dscomm_finalize(g), DSCOMM_ERR_STATE, "%s: finalize", what);
}

/* Queries of constant properties still work. */
static void check_questions(dscomm_group_t *g, const char *what,
                            const char *name)
{
    is_int(dscomm_group_rank(g), 0, "%s: rank", what);
    is_int(dscomm_group_size(g), 1, "%s: size", what);
    is_str(dscomm_group_name(g), name, "%s: name", what);
    is_str(dscomm_group_backend(g), "self", "%s: backend", what);
    is_int(dscomm_group_timeout(g), 5000, "%s: time-out", what);
    ok(dscomm_group_capabilities(g) != 0, "%s: capabilities", what);
    dscomm_group_sequence(g);
}

static void check_gone(dscomm_group_t *g, const char *what, const char *name)
{
    check_collectives(g, what);
    check_others(g, what);
    check_questions(g, what, name);
}

static dscomm_group_t *new_world(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;

    attr.timeout_ms = 5000;
    attr.name = "earth";
    if (dscomm_init(&attr, &world) < 0)
        bail("%s", dscomm_last_error());
    return world;
}

static dscomm_group_t *new_child(dscomm_group_t *parent, const char *name)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *child;

    attr.name = name;
    if (dscomm_group_split(parent, 0, 0, &attr, &child) < 0)
        bail("%s", dscomm_last_error());
    return child;
}

static void test_freed(void)
{
    dscomm_group_t *world = new_world();
    dscomm_group_t *freed = new_child(world, "freed");
    dscomm_group_t *child = new_child(freed, "its child");
    dscomm_group_t *busy = new_child(world, "busy");
    dscomm_work_t *work;
    int32_t data;

    is_int(dscomm_irecv(busy, &data, 1, DSCOMM_INT32, 0, 0, &work), DSCOMM_OK,
           "a work that will not end");
    is_int(dscomm_group_free(busy), DSCOMM_OK, "free its group");
    check_gone(busy, "freed, a work is left", "busy");
    is_int(dscomm_work_test(work), DSCOMM_ERR_ABORTED, "the work has ended");
    dscomm_work_free(work);
    check_gone(busy, "freed, the work as well", "busy");
    is_int(dscomm_group_free(freed), DSCOMM_OK, "free a group");
    check_gone(freed, "freed, a child is left", "freed");
    is_int(dscomm_barrier(child, NULL), DSCOMM_OK, "the child works");
    is_int(dscomm_finalize(world), DSCOMM_OK, "finalize");
    check_gone(world, "finalized", "earth");
    check_gone(freed, "freed, then finalized", "freed");
    check_gone(child, "finalized with its world", "its child");
}

/* A new world is not taken for an old one, and the last 256 freed groups are
 * remembered. */
static void test_many(void)
{
    enum { MANY = 600, KNOWN = 256 };
    static dscomm_group_t *gone[MANY];
    dscomm_group_t *world = new_world();
    int refused = 0;

    for (int i = 0; i < MANY; i++) {
        gone[i] = new_child(world, "brief");
        dscomm_group_free(gone[i]);
    }
    for (int i = MANY - KNOWN; i < MANY; i++)
        refused += dscomm_barrier(gone[i], NULL) == DSCOMM_ERR_INVALID;
    is_int(refused, KNOWN, "the last groups that were freed are known");
    is_int(dscomm_barrier(world, NULL), DSCOMM_OK, "the world lives");
    dscomm_finalize(world);
}

int main(void)
{
    test_freed();
    test_many();
    return tap_done();
}
