/* SPDX-License-Identifier: BSD-3-Clause */
/* User operators, in every collective that reduces: results from another
 * computation, order, works, refusals. */
#include "config.h"

#include "tests/backends/conform.h"

#include <dscomm/backend.h>
#include <stdlib.h>
#include <string.h>

static const int colls[] = {
    DSCOMM_COLL_ALL_REDUCE,
    DSCOMM_COLL_REDUCE,
    DSCOMM_COLL_REDUCE_SCATTER,
    DSCOMM_COLL_REDUCE_SCATTER_V,
};

static const size_t counts[] = {0, 1, 3, 6, 17, 300, 9001};

/* Represents the map x -> a x + b modulo 2^32 as a << 32 | b. The composition
 * of two maps is such a map: associative, but not commutative. */
static uint64_t map_then(uint64_t first, uint64_t then)
{
    const uint32_t a = (uint32_t)(first >> 32), b = (uint32_t)first;
    const uint32_t c = (uint32_t)(then >> 32), d = (uint32_t)then;

    return (uint64_t)(c * a) << 32 | (uint32_t)(c * b + d);
}

/* arg: a number that every call must pass on */
static int told = 4711;
static _Atomic int strayed;

static void look_at_call(const void *left, const void *right,
                         dscomm_dtype_t dtype, const void *arg)
{
    if (arg != &told || (uintptr_t)left % dscomm_dtype_size(dtype) ||
        (uintptr_t)right % dscomm_dtype_size(dtype))
        strayed = 1;
}

static void compose(void *left, const void *right, size_t count,
                    dscomm_dtype_t dtype, void *arg)
{
    uint64_t *first = left;
    const uint64_t *then = right;

    look_at_call(left, right, dtype, arg);
    for (size_t i = 0; i < count; i++)
        first[i] = map_then(first[i], then[i]);
}

/* Keeps the pair of value and index with the larger value; of equal ones, the
 * one with the smaller index. */
static void find_largest(void *left, const void *right, size_t count,
                         dscomm_dtype_t dtype, void *arg)
{
    uint64_t *best = left;
    const uint64_t *other = right;

    look_at_call(left, right, dtype, arg);
    for (size_t i = 0; i < count; i++) {
        const uint32_t mine = best[i] >> 32, theirs = other[i] >> 32;

        if (theirs > mine ||
            (theirs == mine && (uint32_t)other[i] < (uint32_t)best[i]))
            best[i] = other[i];
    }
}

/* The input of rank at an index. */
static uint64_t map_input(int rank, size_t index)
{
    return mix((uint64_t)rank * 1000003 + index);
}

/* The composition of the maps of all ranks, computed from its effect on two
 * values. */
static uint64_t map_want(size_t index)
{
    uint32_t at_0 = 0, at_1 = 1;

    for (int r = 0; r < my.ranks; r++) {
        const uint64_t map = map_input(r, index);

        at_0 = (uint32_t)(map >> 32) * at_0 + (uint32_t)map;
        at_1 = (uint32_t)(map >> 32) * at_1 + (uint32_t)map;
    }
    return (uint64_t)(at_1 - at_0) << 32 | at_0;
}

static uint64_t pair_input(int rank, size_t index)
{
    return mix((uint64_t)rank * 7 + index) % 5 << 32 | (uint32_t)rank;
}

static uint64_t pair_want(size_t index)
{
    for (uint64_t value = 5; value-- > 0;)
        for (int r = 0; r < my.ranks; r++)
            if (pair_input(r, index) >> 32 == value)
                return value << 32 | (uint32_t)r;
    return UINT64_MAX;
}

typedef struct {
    const char *name;
    dscomm_op_fn function;
    int commutative;
    uint64_t (*input)(int rank, size_t index);
    uint64_t (*want)(size_t index);
} kind_t;

static const kind_t maps = {"compose", compose, 0, map_input, map_want};
static const kind_t pairs = {"largest", find_largest, 1, pair_input, pair_want};

static dscomm_op_t make_op(const kind_t *kind)
{
    dscomm_op_attr_t attr = DSCOMM_OP_ATTR_INIT;
    dscomm_op_t op = DSCOMM_SUM;

    attr.name = kind->name;
    attr.arg = &told;
    attr.commutative = kind->commutative;
    attr.dtypes = (uint32_t)1 << DSCOMM_UINT64;
    CHECK_OK(dscomm_op_create(kind->function, &attr, &op));
    return op;
}

/* A call, with its buffers. */
typedef struct {
    const kind_t *kind;
    dscomm_op_t op;
    int coll, root, in_place;
    size_t count, offset;

    size_t total, first; /* number of inputs; first element of the result */
    size_t results;
    size_t *parts;
    unsigned char *send, *recv;
} call_t;

static void call_begin(call_t *c)
{
    const size_t own = (size_t)my.rank, all = (size_t)my.ranks;

    c->total = c->results = c->count;
    c->first = 0;
    c->parts = calloc(all, sizeof *c->parts);
    if (c->coll == DSCOMM_COLL_REDUCE_SCATTER) {
        c->total = c->count * all;
        c->first = c->count * own;
    }
    for (size_t r = 0; r < all; r++)
        c->parts[r] = c->count + r;
    if (c->coll == DSCOMM_COLL_REDUCE_SCATTER_V) {
        c->total = c->count * all + all * (all - 1) / 2;
        c->first = c->count * own + own * (own - 1) / 2;
        c->results = c->parts[own];
    }
    if (c->coll == DSCOMM_COLL_REDUCE && my.rank != c->root)
        c->results = 0;
    c->send = malloc(c->total * 8 + c->offset + 8);
    c->recv = malloc(c->total * 8 + c->offset + 8);
    for (size_t i = 0; i < c->total; i++) {
        const uint64_t input = c->kind->input(my.rank, i);

        memcpy(c->send + c->offset + i * 8, &input, 8);
    }
}

static dscomm_status_t call_make(const call_t *c, dscomm_work_t **work)
{
    unsigned char *send = c->send + c->offset;
    unsigned char *recv =
        c->in_place ? send + c->first * 8 : c->recv + c->offset;

    switch (c->coll) {
    case DSCOMM_COLL_ALL_REDUCE:
        return dscomm_all_reduce(my.group, send, recv, c->count, DSCOMM_UINT64,
                                 c->op, work);
    case DSCOMM_COLL_REDUCE:
        return dscomm_reduce(my.group, send, recv, c->count, DSCOMM_UINT64,
                             c->op, c->root, work);
    case DSCOMM_COLL_REDUCE_SCATTER:
        return dscomm_reduce_scatter(my.group, send, recv, c->count,
                                     DSCOMM_UINT64, c->op, work);
    default:
        return dscomm_reduce_scatter_v(my.group, send, recv, c->parts,
                                       DSCOMM_UINT64, c->op, work);
    }
}

static void call_end(call_t *c)
{
    const unsigned char *recv =
        c->in_place ? c->send + c->offset + c->first * 8 : c->recv + c->offset;

    for (size_t i = 0; i < c->results; i++) {
        const uint64_t want = c->kind->want(c->first + i);
        uint64_t got;

        memcpy(&got, recv + i * 8, 8);
        if (!check(got == want,
                   "%s by %s, count %zu, in place %d: element %zu is %llx, "
                   "want %llx",
                   dscomm_coll_name((dscomm_coll_t)c->coll), c->kind->name,
                   c->count, c->in_place, i, (unsigned long long)got,
                   (unsigned long long)want))
            break;
    }
    free(c->parts);
    free(c->send);
    free(c->recv);
}

static call_t make_call(const kind_t *kind, dscomm_op_t op, size_t c, size_t i)
{
    return (call_t){.kind = kind,
                    .op = op,
                    .coll = colls[c],
                    .root = (int)(i + c) % my.ranks,
                    .in_place = (i + c) % 2 != 0,
                    .count = conform_scale(counts[i]),
                    .offset = i % 3 == 2 ? 3 : 0};
}

/* Handles are local: other ranks have made more operators. */
static void run_kind(const kind_t *kind)
{
    dscomm_op_t unused = make_op(&maps), op;

    if (my.rank % 2)
        make_op(&pairs);
    op = make_op(kind);
    for (size_t c = 0; c < CONFORM_LENGTH(colls); c++) {
        for (size_t i = 0; i < CONFORM_LENGTH(counts); i++) {
            call_t call = make_call(kind, op, c, i);

            call_begin(&call);
            CHECK_OK(call_make(&call, NULL));
            call_end(&call);
        }
    }
    check(!strayed, "a function got another arg, or buffers out of line");
    CHECK_OK(dscomm_op_free(op));
    CHECK_OK(dscomm_op_free(unused));
}

static void test_ordered(void)
{
    run_kind(&maps);
}

static void test_commutative(void)
{
    run_kind(&pairs);
}

/* Several works at a time; the operators are freed while the works run. */
static void test_works(void)
{
    enum { MANY = CONFORM_LENGTH(colls) * CONFORM_LENGTH(counts) };
    dscomm_work_t *works[MANY] = {NULL};
    dscomm_op_t ops[2] = {make_op(&maps), make_op(&pairs)};
    call_t calls[MANY];

    for (size_t i = 0; i < MANY; i++) {
        calls[i] =
            make_call(i % 3 ? &maps : &pairs, ops[i % 3 == 0],
                      i % CONFORM_LENGTH(colls), i / CONFORM_LENGTH(colls));
        call_begin(&calls[i]);
        CHECK_OK(call_make(&calls[i], &works[i]));
    }
    CHECK_OK(dscomm_op_free(ops[0]));
    CHECK_OK(dscomm_op_free(ops[1]));
    CHECK_OK(dscomm_work_wait_all(works, MANY, DSCOMM_TIMEOUT_DEFAULT));
    for (size_t i = 0; i < MANY; i++) {
        dscomm_work_free(works[i]);
        call_end(&calls[i]);
    }
}

static void test_coalesced(void)
{
    enum { MANY = 9 };
    dscomm_op_t op = make_op(&maps), other = make_op(&pairs);
    call_t calls[MANY];

    CHECK_OK(dscomm_coalesce_begin(my.group));
    for (size_t i = 0; i < MANY; i++) {
        const kind_t *kind = i % 4 ? &maps : &pairs;

        calls[i] = make_call(kind, kind == &maps ? op : other, i / 6, i % 3);
        call_begin(&calls[i]);
        CHECK_OK(call_make(&calls[i], NULL));
    }
    CHECK_OK(dscomm_op_free(op));
    CHECK_OK(dscomm_op_free(other));
    CHECK_OK(dscomm_coalesce_end(my.group, NULL));
    for (size_t i = 0; i < MANY; i++)
        call_end(&calls[i]);
}

#define REFUSED(op, dtype)                                                     \
    CHECK_FAILS(dscomm_all_reduce(my.group, in, out, 1, dtype, op, NULL),      \
                DSCOMM_ERR_INVALID)

static void test_refused(void)
{
    uint64_t in[1] = {0}, out[1] = {0};
    size_t parts[64] = {0};
    dscomm_op_t op = make_op(&maps);

    REFUSED(op, DSCOMM_FLOAT32);
    check_sentence("compose", "operator named");
    check_sentence("float32", "dtype named");
    REFUSED(op, (dscomm_dtype_t)15);
    CHECK_FAILS(
        dscomm_all_reduce(my.group, NULL, out, 1, DSCOMM_UINT64, op, NULL),
        DSCOMM_ERR_INVALID);
    CHECK_OK(dscomm_op_free(op));
    REFUSED(op, DSCOMM_UINT64);
    check_sentence("was freed", "why");
    CHECK_FAILS(dscomm_reduce(my.group, in, out, 1, DSCOMM_UINT64, op, 0, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(
        dscomm_reduce_scatter(my.group, in, out, 0, DSCOMM_UINT64, op, NULL),
        DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_reduce_scatter_v(my.group, in, out, parts, DSCOMM_UINT64,
                                        op, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_op_free(op), DSCOMM_ERR_INVALID);
    REFUSED((dscomm_op_t)DSCOMM_OP_COUNT, DSCOMM_UINT64);
    REFUSED((dscomm_op_t)DSCOMM_OP_USER, DSCOMM_UINT64);
    REFUSED((dscomm_op_t)-1, DSCOMM_UINT64);
    CHECK_OK(dscomm_barrier(my.group, NULL));
}

/* Makes a call with an operator that all ranks have. */
static void reduce_alike(void)
{
    const uint64_t in = 1;
    uint64_t out;
    dscomm_op_t op = make_op(&pairs);

    CHECK_OK(
        dscomm_all_reduce(my.group, &in, &out, 1, DSCOMM_UINT64, op, NULL));
    CHECK_OK(dscomm_op_free(op));
}

/* The last rank's operator differs: in its name, or only in commutativity. The
 * sentence on all ranks names both, and nothing of an earlier operator. */
static void run_mismatch(const kind_t *kind, const char *word)
{
    uint64_t in[400] = {0}, out[400];
    dscomm_op_t op;
    dscomm_status_t status;

    if (my.ranks == 1 || !(dscomm_group_capabilities(my.group) &
                           DSCOMM_CAP_MISMATCH_DETECTION)) {
        conform_skip("one rank, or nobody who would see it");
        return;
    }
    reduce_alike();
    op = make_op(my.rank == my.ranks - 1 ? kind : &maps);
    status = dscomm_all_reduce(my.group, in, out, 400, DSCOMM_UINT64, op, NULL);
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(my.group, NULL);
    check_status(status, DSCOMM_ERR_MISMATCH, "the call");
    check_sentence("compose in rank order", "what the others called");
    check_sentence(word, "what the last one called");
    CHECK_OK(dscomm_op_free(op));
}

static void test_other_name(void)
{
    run_mismatch(&pairs, "largest");
}

static void test_other_commutativity(void)
{
    static const kind_t loose = {"compose", compose, 1, map_input, map_want};

    run_mismatch(&loose, "uint64, compose)");
}

static int seen_op;

static uint64_t on_begin(const dscomm_op_info_t *info, void *arg)
{
    (void)arg;
    if (info->group == my.group)
        seen_op = info->op;
    return 0;
}

static void test_queries(void)
{
    const dscomm_hooks_t hooks = {.size = sizeof hooks, .begin = on_begin};
    dscomm_op_t op = make_op(&maps);
    const char *name = NULL;
    uint64_t in = 1, out;

    check(strcmp(dscomm_op_name(op), "compose") == 0, "its name is \"%s\"",
          dscomm_op_name(op));
    check(dscomm_op_applies(op, DSCOMM_UINT64), "applies to uint64");
    check(!dscomm_op_applies(op, DSCOMM_INT64), "does not apply to int64");
    CHECK_OK(dscomm_group_algorithm(my.group, DSCOMM_COLL_ALL_REDUCE,
                                    DSCOMM_UINT64, op, 5, 0, &name));
    check(name && *name, "an algorithm");
    CHECK_OK(dscomm_hooks_set(&hooks));
    CHECK_OK(
        dscomm_all_reduce(my.group, &in, &out, 1, DSCOMM_UINT64, op, NULL));
    CHECK_OK(dscomm_hooks_set(NULL));
    check(seen_op == (int)op, "hooks see %d, not %d", seen_op, (int)op);
    CHECK_OK(dscomm_op_free(op));
    check(strcmp(dscomm_op_name(op), "invalid") == 0, "its name when freed");
    check(!dscomm_op_applies(op, DSCOMM_UINT64), "applies when freed");
}

static const conform_test_t tests[] = {
    {"in rank order", test_ordered},
    {"commutative", test_commutative},
    {"works, whose operators are freed", test_works},
    {"coalesced", test_coalesced},
    {"what is refused", test_refused},
    {"name, types, hooks", test_queries},
    {"another name on one rank", test_other_name},
    {"another commutativity on one rank", test_other_commutativity},
    {NULL, NULL},
};
const conform_area_t conform_operators = {"operators", NULL, tests};
