/* SPDX-License-Identifier: BSD-3-Clause */
/* User operators: their table, refusals, and calls of their function. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/backend.h>
#include <dscomm/dscomm.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 1024 /* limit of operators, as in op.h */

static int calls;
static bool straight = true;

/* Composes maps x -> a x + b modulo 2^8, represented as a << 8 | b; not
 * commutative. */
static void compose(void *left, const void *right, size_t count,
                    dscomm_dtype_t dtype, void *arg)
{
    uint16_t *f = left;
    const uint16_t *g = right;

    calls++;
    straight &= dtype == DSCOMM_UINT16 && arg == &calls && left != right &&
                (uintptr_t)left % 2 == 0 && (uintptr_t)right % 2 == 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t a = f[i] >> 8, b = (uint8_t)f[i];
        const uint8_t c = g[i] >> 8, d = (uint8_t)g[i];

        f[i] = (uint16_t)((uint8_t)(c * a) << 8 | (uint8_t)(c * b + d));
    }
}

static void check_attr(void)
{
    static const struct {
        const char *name;
        int commutative;
        uint32_t dtypes;
        const char *words;
    } rows[] = {
        {"", 0, 0, "attr.name is empty"},
        {"thirty-two bytes are one too many", 0, 0, "longer than 31"},
        {"sum", 0, 0, "built-in"},
        {"mine", 2, 0, "attr.commutative"},
        {"mine", 0, 1u << 15, "attr.dtypes"},
    };
    dscomm_op_attr_t attr = DSCOMM_OP_ATTR_INIT, same;
    dscomm_op_t op = DSCOMM_MAX;

    is_int(dscomm_op_attr_init(&same, sizeof same), DSCOMM_OK, "attr_init");
    ok(!memcmp(&attr, &same, sizeof attr), "gives what the macro does");
    /* Modules are compiled with this value. */
    is_int(DSCOMM_OP_USER, 126, "DSCOMM_OP_USER");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        attr.name = rows[i].name;
        attr.commutative = rows[i].commutative;
        attr.dtypes = rows[i].dtypes;
        is_int(dscomm_op_create(compose, &attr, &op), DSCOMM_ERR_INVALID,
               "refused: %s", rows[i].words);
        ok(strstr(dscomm_last_error(), rows[i].words) != NULL, "says so: %s",
           dscomm_last_error());
    }
    is_int(dscomm_op_create(NULL, NULL, &op), DSCOMM_ERR_INVALID,
           "no function");
    is_int(dscomm_op_create(compose, NULL, NULL), DSCOMM_ERR_INVALID,
           "no result");
    is_int(op, DSCOMM_MAX, "the result was not written");
}

static void check_defaults(void)
{
    dscomm_op_t op, again;

    is_int(dscomm_op_create(compose, NULL, &op), DSCOMM_OK, "no attributes");
    is_str(dscomm_op_name(op), "user", "its name");
    for (int d = 0; d < DSCOMM_DTYPE_COUNT; d++)
        if (!dscomm_op_applies(op, (dscomm_dtype_t)d))
            ok(0, "applies to %s", dscomm_dtype_name((dscomm_dtype_t)d));
    is_int(dscomm_op_applies(op, (dscomm_dtype_t)15), 0, "not to dtype 15");
    is_int(dscomm_op_free(op), DSCOMM_OK, "freed");
    is_int(dscomm_op_free(op), DSCOMM_ERR_INVALID, "not twice");
    is_int(dscomm_op_free(DSCOMM_SUM), DSCOMM_ERR_INVALID, "not a built-in");
    is_str(dscomm_op_name(op), "invalid", "no name any more");
    is_int(dscomm_op_create(compose, NULL, &again), DSCOMM_OK, "another one");
    ok(again != op, "has another handle");
    is_int(dscomm_op_free(op), DSCOMM_ERR_INVALID, "the old one stays freed");
    is_int(dscomm_op_free(again), DSCOMM_OK, "the new one does not");
}

static void check_limit(void)
{
    static dscomm_op_t ops[MOST];
    dscomm_op_t more;
    int made = 0, doubled = 0, freed = 0;

    for (int i = 0; i < MOST; i++)
        made += dscomm_op_create(compose, NULL, &ops[i]) == DSCOMM_OK;
    is_int(made, MOST, "as many operators as there may be");
    is_int(dscomm_op_create(compose, NULL, &more), DSCOMM_ERR_NO_MEMORY,
           "one more");
    for (int i = 1; i < MOST; i++)
        doubled += ops[i] == ops[i - 1];
    is_int(doubled, 0, "their handles differ");
    for (int i = 0; i < MOST; i++)
        freed += dscomm_op_free(ops[i]) == DSCOMM_OK;
    is_int(freed, MOST, "all are freed");
    is_int(dscomm_op_create(compose, NULL, &more), DSCOMM_OK, "room again");
    dscomm_op_free(more);
}

/* Sources of any alignment, with the result over one of them, over several
 * chunks. wanted is the effect of the composed maps on 0 and 1. */
static void check_fold(dscomm_coll_args_t *args, size_t nsources, size_t count,
                       size_t offset, size_t over)
{
    enum { ROOM = 10000, SOURCES = 4 };
    static char memory[SOURCES][2 * ROOM + 8];
    static uint8_t at_0[ROOM], at_1[ROOM];
    const void *sources[SOURCES];
    char *dest = memory[over] + offset;
    size_t wrong = 0;

    memset(at_0, 0, sizeof at_0);
    memset(at_1, 1, sizeof at_1);
    for (size_t s = 0; s < nsources; s++) {
        sources[s] = memory[s] + offset;
        for (size_t i = 0; i < count; i++) {
            const uint16_t map = (uint16_t)((i * 7919 + s * 104729) % 65521);

            memcpy(memory[s] + offset + 2 * i, &map, 2);
            at_0[i] = (uint8_t)((map >> 8) * at_0[i] + map);
            at_1[i] = (uint8_t)((map >> 8) * at_1[i] + map);
        }
    }
    dscomm_reduce_user(args, dest, sources, nsources, count);
    for (size_t i = 0; i < count; i++) {
        uint16_t got;

        memcpy(&got, dest + 2 * i, 2);
        wrong +=
            got >> 8 != (uint8_t)(at_1[i] - at_0[i]) || (uint8_t)got != at_0[i];
    }
    is_int((long long)wrong, 0,
           "%zu sources, %zu elements, offset %zu, over %zu", nsources, count,
           offset, over);
}

static void check_folds(void)
{
    const dscomm_user_op_t user = {
        .size = sizeof user, .function = compose, .arg = &calls};
    dscomm_coll_args_t args = {.dtype = DSCOMM_UINT16,
                               .element = 2,
                               .op = DSCOMM_OP_USER,
                               .user = &user};
    static const size_t counts[] = {0, 1, 2047, 2048, 2049, 9999};

    for (size_t n = 1; n <= 4; n++)
        for (size_t c = 0; c < 6; c++)
            check_fold(&args, n, counts[c], c % 2, (n + c) % n);
    ok(straight, "the function gets its arg, and buffers apart and in line");
    calls = 0;
    check_fold(&args, 1, 100, 0, 0);
    is_int(calls, 0, "one source calls nothing");
}

/* A child has its parent's operators, and locks that are free. */
static void check_fork(void)
{
    dscomm_op_t op, other;
    int status = -1;
    pid_t child;

    dscomm_op_create(compose, NULL, &op);
    child = fork();
    if (child == 0)
        _exit(dscomm_op_create(compose, NULL, &other) || dscomm_op_free(op));
    waitpid(child, &status, 0);
    is_int(status, 0, "made and freed in a forked child");
    is_int(dscomm_op_free(op), DSCOMM_OK, "the parent's is there");
}

int main(void)
{
    check_attr();
    check_defaults();
    check_limit();
    check_folds();
    check_fork();
    return tap_done();
}
