/* SPDX-License-Identifier: BSD-3-Clause */
/* Which algorithm serves: the table of defaults, and DSCOMM_ALGORITHM. */
#include "config.h"

#include "lib/schedule/choice.h"
#include "tests/tap.h"

#include <limits.h>
#include <string.h>

#define RANKS_MOST 64
#define K *UINT64_C(1024)
#define END UINT64_MAX

static size_t counts[RANKS_MOST];

static int is_reduction(int coll)
{
    return coll == DSCOMM_COLL_REDUCE || coll == DSCOMM_COLL_ALL_REDUCE ||
           coll == DSCOMM_COLL_REDUCE_SCATTER ||
           coll == DSCOMM_COLL_REDUCE_SCATTER_V;
}

static dscomm_coll_args_t make_args(int coll, int dtype, int op, size_t count)
{
    dscomm_coll_args_t args = {
        .coll = coll,
        .dtype = dtype,
        .op = is_reduction(coll) ? op : -1,
        .count = count,
        .element = dscomm_dtype_size((dscomm_dtype_t)dtype),
    };

    if (coll == DSCOMM_COLL_ALL_GATHER_V ||
        coll == DSCOMM_COLL_REDUCE_SCATTER_V) {
        for (int r = 0; r < RANKS_MOST; r++)
            counts[r] = count;
        args.recv_counts = counts;
    }
    return args;
}

static int serves(const dscomm_coll_args_t *args, int ranks)
{
    const dscomm_algorithm_t *algorithm =
        dscomm_priv_choice_default(args, ranks, NULL);

    if (algorithm && algorithm->name && algorithm->coll == args->coll &&
        (!algorithm->fits || algorithm->fits(args, ranks, NULL)))
        return 1;
    printf("# %s of %zu %s, operator %d, %d ranks: %s\n",
           dscomm_coll_name((dscomm_coll_t)args->coll), args->count,
           dscomm_dtype_name((dscomm_dtype_t)args->dtype), args->op, ranks,
           algorithm && algorithm->name ? algorithm->name : "nothing");
    return 0;
}

static int try_sizes(int coll, int dtype, int op)
{
    int right = 1;

    for (int ranks = 2; ranks <= RANKS_MOST; ranks++)
        for (size_t count = 0; count <= (size_t)1 << 26;
             count = count ? count * 4 : 1) {
            dscomm_coll_args_t args = make_args(coll, dtype, op, count);

            right &= serves(&args, ranks);
        }
    return right;
}

static void test_defaults(void)
{
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++) {
        int right = 1;

        for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++)
            for (int op = 0; op < DSCOMM_OP_COUNT; op++)
                if (dscomm_op_applies((dscomm_op_t)op, (dscomm_dtype_t)dtype) &&
                    (is_reduction(coll) || !op))
                    right &= try_sizes(coll, dtype, op);
        ok(right, "every %s has a default that fits",
           dscomm_coll_name((dscomm_coll_t)coll));
    }
}

/* The same algorithm twice would hide a row; an unknown name would be NULL. */
static void test_table(void)
{
    const dscomm_choice_t *row;
    size_t count = 0, wrong = 0;

    for (; (row = dscomm_priv_choice_row(count)); count++)
        wrong += !row->algorithm || row->algorithm->coll != row->coll ||
                 row->from >= row->to || row->ranks < 2 ||
                 row->least > row->ranks;
    ok(count > DSCOMM_COLL_SEND / 2, "the table has %zu rows", count);
    is_int((long long)wrong, 0, "each names an algorithm of its collective");
    for (const dscomm_algorithm_t *a = dscomm_priv_algorithms; a->name; a++)
        for (const dscomm_algorithm_t *b = a + 1; b->name; b++)
            wrong += a->coll == b->coll && !strcmp(a->name, b->name);
    is_int((long long)wrong, 0, "no two algorithms have the same name");
    is_int(dscomm_priv_algorithm_number(&dscomm_priv_algorithms[3]), 3,
           "an algorithm's number is its row");
}

/* Reductions whose partial results must not be of the same dtype; see
 * collective.h. */
static void test_foldable(void)
{
    static const struct {
        int dtype, op, want;
    } rows[] = {
        {DSCOMM_FLOAT32, DSCOMM_SUM, 1},
        {DSCOMM_FLOAT64, DSCOMM_AVG, 1},
        {DSCOMM_INT8, DSCOMM_SUM, 1},
        {DSCOMM_INT8, DSCOMM_AVG, 0},
        {DSCOMM_UINT32, DSCOMM_AVG, 0},
        {DSCOMM_INT64, DSCOMM_AVG, 1},
        {DSCOMM_FLOAT16, DSCOMM_SUM, 0},
        {DSCOMM_BFLOAT16, DSCOMM_PRODUCT, 0},
        {DSCOMM_BFLOAT16, DSCOMM_MAX, 1},
        {DSCOMM_FLOAT8_E4M3, DSCOMM_AVG, 0},
        {DSCOMM_FLOAT8_E5M2, DSCOMM_MIN, 1},
        {DSCOMM_BOOL, DSCOMM_BXOR, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dscomm_coll_args_t args = {.dtype = rows[i].dtype, .op = rows[i].op};

        is_int(dscomm_priv_foldable(&args), rows[i].want, "%s of %s folds",
               dscomm_op_name((dscomm_op_t)rows[i].op),
               dscomm_dtype_name((dscomm_dtype_t)rows[i].dtype));
    }
}

/* Sizes by which algorithms are chosen: the longest buffer of a rank. */
static void test_bytes(void)
{
    static const struct {
        int coll;
        /* expected bytes, for 10 elements of 4 bytes and 3 ranks */
        uint64_t want;
    } rows[] = {
        {DSCOMM_COLL_BROADCAST, 40},       {DSCOMM_COLL_REDUCE, 40},
        {DSCOMM_COLL_ALL_REDUCE, 40},      {DSCOMM_COLL_ALL_GATHER, 120},
        {DSCOMM_COLL_REDUCE_SCATTER, 120}, {DSCOMM_COLL_GATHER, 120},
        {DSCOMM_COLL_SCATTER, 120},        {DSCOMM_COLL_ALL_TO_ALL, 120},
        {DSCOMM_COLL_ALL_GATHER_V, 120},   {DSCOMM_COLL_REDUCE_SCATTER_V, 120},
        {DSCOMM_COLL_GATHER_V, 0},         {DSCOMM_COLL_SCATTER_V, 0},
        {DSCOMM_COLL_ALL_TO_ALL_V, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dscomm_coll_args_t args =
            make_args(rows[i].coll, DSCOMM_FLOAT32, DSCOMM_SUM, 10);

        is_int((long long)dscomm_priv_choice_bytes(&args, 3),
               (long long)rows[i].want, "bytes of %s",
               dscomm_coll_name((dscomm_coll_t)rows[i].coll));
    }
}

/* Reads the first rule of text. */
static void test_syntax(void)
{
    static const struct {
        const char *text;
        unsigned rules;
        int coll;
        uint64_t from, to;
        const char *algorithm; /* NULL: native */
    } rows[] = {
        {"all_reduce:ring", 1, DSCOMM_COLL_ALL_REDUCE, 0, END, "ring"},
        {"all_reduce:64K-1M:ring", 1, DSCOMM_COLL_ALL_REDUCE, 64 K, 1024 K,
         "ring"},
        {"broadcast:-4K:knomial", 1, DSCOMM_COLL_BROADCAST, 0, 4 K, "knomial"},
        {"broadcast:4096-:chain", 1, DSCOMM_COLL_BROADCAST, 4 K, END, "chain"},
        {"barrier:7-7:linear", 1, DSCOMM_COLL_BARRIER, 7, 7, "linear"},
        {"gather_v:-:linear", 1, DSCOMM_COLL_GATHER_V, 0, END, "linear"},
        {"all_reduce:native", 1, DSCOMM_COLL_ALL_REDUCE, 0, END, NULL},
        {"all_reduce:1m-2m:native", 1, DSCOMM_COLL_ALL_REDUCE, 1024 K, 2048 K,
         NULL},
        {"all_reduce : 64K - 1M : ring", 1, DSCOMM_COLL_ALL_REDUCE, 64 K,
         1024 K, "ring"},
        {"barrier: - 7 :\tlinear", 1, DSCOMM_COLL_BARRIER, 0, 7, "linear"},
        {" reduce:chain , ,all_reduce:tree,", 2, DSCOMM_COLL_REDUCE, 0, END,
         "chain"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        GArray *rules = NULL;
        const dscomm_choice_t *rule;

        if (!ok(!dscomm_priv_choices_read(rows[i].text, &rules) &&
                    rules->len == rows[i].rules,
                "'%s' is understood", rows[i].text))
            continue;
        rule = &g_array_index(rules, dscomm_choice_t, 0);
        ok(rule->coll == rows[i].coll && rule->from == rows[i].from &&
               rule->to == rows[i].to && rule->ranks == INT_MAX,
           "  with the right collective and bytes");
        is_str(rule->algorithm ? rule->algorithm->name : NULL,
               rows[i].algorithm, "  and algorithm");
        g_array_free(rules, TRUE);
    }
}

static void test_nothing(void)
{
    static const char *const texts[] = {NULL, "", " ", ",", " , ,"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        GArray *rules = NULL;

        if (ok(!dscomm_priv_choices_read(texts[i], &rules) && !rules->len,
               "'%s' makes no rules", texts[i] ? texts[i] : "(NULL)"))
            g_array_free(rules, TRUE);
    }
}

#define NO_RULE                                                                \
    "write COLLECTIVE[@WHERE]:[FROM-TO:]ALGORITHM, such as "                   \
    "all_reduce:64K-1M:ring"

#define NO_RANKS "write RANKS or FROM-TO, such as 4 or 2-8"

#define NO_RANGE                                                               \
    "write FROM-TO in whole numbers with K, M, G or T, such as 64K-1M"

static void test_refusals(void)
{
    static const struct {
        const char *text, *quoted, *why;
    } rows[] = {
        {"ring", "'ring' is no rule", NO_RULE},
        {"foo:ring", "'foo' is no collective; there are broadcast, reduce, ",
         "barrier"},
        {"send:linear", "'send' is no collective", "all_reduce"},
        {":ring", "'' is no collective", "all_reduce"},
        {"all_reduce:64K:ring", "'64K' is no range", NO_RANGE},
        {"all_reduce:2M-1M:ring", "'2M-1M' is no range", NO_RANGE},
        {"all_reduce:1x-2:ring", "'1x-2' is no range", NO_RANGE},
        {"all_reduce:1-2-3:ring", "'1-2-3' is no range", NO_RANGE},
        {"all_reduce::ring", "'' is no range", NO_RANGE},
        {"all_reduce:1.5M-:ring", "'1.5M-' is no range", NO_RANGE},
        {"all_reduce: 0.5K - 1K :ring", "'0.5K - 1K' is no range", NO_RANGE},
        {"all_reduce:1 2-3:ring", "'1 2-3' is no range", NO_RANGE},
        {"all_reduce:99999999999999999999-:ring", "is no range", NO_RANGE},
        {"all_reduce:", "'' is no algorithm of all_reduce", "native, "},
        {"all_reduce:Rung", "'Rung' is no algorithm of all_reduce", "ring"},
        {"all_reduce:1-2:ring:x", "'ring:x' is no algorithm of all_reduce",
         "there are native, "},
        {"barrier:ring", "'ring' is no algorithm of barrier",
         "there are native, dissemination, linear"},
        {"all_reduce:ring,x", "'x' is no rule", NO_RULE},
        {"all_reduce@:ring", "'' is no number of ranks", NO_RANKS},
        {"all_reduce@0:ring", "'0' is no number of ranks", NO_RANKS},
        {"all_reduce@8-4:ring", "'8-4' is no number of ranks", NO_RANKS},
        {"all_reduce@4x:ring", "'4x' is no number of ranks", NO_RANKS},
        {"all_reduce@shm/:ring", "'' is no number of ranks", NO_RANKS},
        {"all_reduce@shm/x:ring", "'x' is no number of ranks", NO_RANKS},
        {"all_reduce@4/shm:ring", "'shm' is no number of ranks", NO_RANKS},
        {"all_reduce@/4:ring", "'' is no backend", "such as @shm/4"},
        {"@shm:ring", "'' is no collective", "all_reduce"},
        {"all_reduce:ring\n", "", NULL},
        {"All_Reduce:64k-1m:RING,barrier:Native", "", NULL}, /* any case */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        GArray *rules = NULL;
        dscomm_status_t status = dscomm_priv_choices_read(rows[i].text, &rules);
        const char *text = dscomm_last_error();

        if (!rows[i].why) { /* blanks around words, and case, do not matter */
            if (is_int(status, DSCOMM_OK, "what is no harm"))
                g_array_free(rules, TRUE);
            continue;
        }
        is_int(status, DSCOMM_ERR_ENVIRONMENT, "'%s' is refused", rows[i].text);
        ok(!rules, "  and nothing is returned");
        ok(strstr(text, "DSCOMM_ALGORITHM: ") == text &&
               strstr(text, rows[i].quoted) && strstr(text, rows[i].why),
           "  says: %s", text);
    }
}

static const char *name_of(const GArray *rules, int dtype, size_t count,
                           int ranks)
{
    dscomm_coll_args_t args =
        make_args(DSCOMM_COLL_ALL_REDUCE, dtype, DSCOMM_SUM, count);
    const dscomm_choice_t *rule =
        dscomm_priv_choice_rule(rules, &args, ranks, "shm", NULL);

    if (!rule)
        return "none";
    return rule->algorithm ? rule->algorithm->name : "native";
}

/* Rules for certain groups: the backend, and the number of ranks. */
static void test_where(void)
{
    static const char text[] =
        "all_reduce@shm/4:ring, all_reduce @ tcp / 2-3 :tree,"
        "all_reduce@8-:pairwise,all_reduce@TCP:linear";
    static const struct {
        const char *backend;
        int ranks;
        const char *want;
    } rows[] = {{"shm", 4, "ring"},     {"shm", 3, "none"},
                {"shm", 5, "none"},     {"tcp", 4, "linear"},
                {"tcp", 2, "tree"},     {"tcp", 3, "tree"},
                {"tcp", 1, "linear"},   {"shm", 7, "none"},
                {"shm", 8, "pairwise"}, {"mpi", 1048576, "pairwise"},
                {"tcp", 9, "pairwise"}, {"shmx", 4, "none"},
                {NULL, 4, "ring"},      {NULL, 5, "linear"}};
    dscomm_coll_args_t args =
        make_args(DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, DSCOMM_SUM, 64);
    GArray *rules;

    if (dscomm_priv_choices_read(text, &rules))
        bail("%s", dscomm_last_error());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const dscomm_choice_t *rule = dscomm_priv_choice_rule(
            rules, &args, rows[i].ranks, rows[i].backend, NULL);

        is_str(rule ? rule->algorithm->name : "none", rows[i].want,
               "%d ranks of %s", rows[i].ranks,
               rows[i].backend ? rows[i].backend : "any");
    }
    g_array_free(rules, TRUE);
}

/* The first rule that matches and fits is used. */
static void test_rules(void)
{
    static const char text[] = "all_reduce:1K-2K:tree,all_reduce:4K-:ring,"
                               "all_reduce:8K-:linear,all_reduce:-16:native";
    static const struct {
        int dtype;
        size_t count;
        const char *want;
    } rows[] = {{DSCOMM_INT8, 1023, "none"},     {DSCOMM_INT8, 1024, "tree"},
                {DSCOMM_INT8, 2048, "tree"},     {DSCOMM_INT8, 2049, "none"},
                {DSCOMM_INT8, 16, "native"},     {DSCOMM_INT8, 17, "none"},
                {DSCOMM_FLOAT32, 256, "tree"},   {DSCOMM_FLOAT32, 4096, "ring"},
                {DSCOMM_FLOAT16, 512, "none"},   {DSCOMM_FLOAT16, 2048, "none"},
                {DSCOMM_FLOAT16, 8192, "linear"}};
    GArray *rules = NULL;
    dscomm_coll_args_t half =
        make_args(DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT16, DSCOMM_SUM, 512);
    dscomm_coll_args_t gather =
        make_args(DSCOMM_COLL_ALL_GATHER, DSCOMM_INT8, -1, 512);

    if (!is_int(dscomm_priv_choices_read(text, &rules), DSCOMM_OK, "%s", text))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        is_str(name_of(rules, rows[i].dtype, rows[i].count, 4), rows[i].want,
               "%zu of %s", rows[i].count,
               dscomm_dtype_name((dscomm_dtype_t)rows[i].dtype));
    ok(!dscomm_priv_choice_rule(rules, &gather, 4, "shm", NULL),
       "rules of other collectives do not matter");
    ok(serves(&half, 4), "where no rule fits a default serves");
    g_array_free(rules, TRUE);
    is_str(name_of(NULL, DSCOMM_INT8, 1, 2), "none", "no rules, no rule");
}

/* Two levels are used if there are several ranks on several nodes, and enough
 * of them. */
static void test_levels(void)
{
    static const struct {
        int coll, dtype, ranks;
        size_t count;
        int want;
    } rows[] = {
        {DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, 6, 1, 1},
        {DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, 4, 1, 0},
        {DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, 16, 512 K, 1},
        {DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, 16, (512 K) + 1, 0},
        {DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, 17, 4 K, 1},
        {DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, 17, (4 K) + 1, 0},
        {DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT16, 6, 1, 0},
        {DSCOMM_COLL_BROADCAST, DSCOMM_FLOAT16, 6, 1, 1},
        {DSCOMM_COLL_BROADCAST, DSCOMM_INT8, 4, 255 K, 0},
        {DSCOMM_COLL_BROADCAST, DSCOMM_INT8, 4, 256 K, 1},
        {DSCOMM_COLL_ALL_GATHER, DSCOMM_INT8, 8, 8 K, 1},
        {DSCOMM_COLL_ALL_GATHER, DSCOMM_INT8, 8, 9 K, 0},
        {DSCOMM_COLL_REDUCE_SCATTER, DSCOMM_INT8, 8, 8 K, 1},
        {DSCOMM_COLL_REDUCE, DSCOMM_INT8, 5, 1, 1},
        {DSCOMM_COLL_BARRIER, DSCOMM_INT8, 5, 0, 1},
        {DSCOMM_COLL_GATHER, DSCOMM_INT8, 64, 1, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const dscomm_coll_args_t args =
            make_args(rows[i].coll, rows[i].dtype, DSCOMM_SUM, rows[i].count);
        const int ranks = rows[i].ranks;
        const dscomm_nodes_t nodes = {.ranks = ranks, .count = 2};
        const char *name =
            dscomm_priv_choice_default(&args, ranks, &nodes)->name;

        is_int(!strcmp(name, "two_level"), rows[i].want,
               "%s of %zu %s, %d ranks on several nodes: %s",
               dscomm_coll_name((dscomm_coll_t)args.coll), args.count,
               dscomm_dtype_name((dscomm_dtype_t)args.dtype), ranks, name);
        name = dscomm_priv_choice_default(&args, ranks, NULL)->name;
        ok(strcmp(name, "two_level"), "  and on one: %s", name);
    }
}

/* Nodes with one rank have no level of their own. */
static void test_sparse_levels(void)
{
    static const struct {
        int ranks, nodes, want;
    } rows[] = {{6, 3, 1},   {7, 3, 1},   {7, 4, 0},
                {64, 63, 0}, {64, 32, 1}, {8, 8, 0}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const dscomm_nodes_t nodes = {.ranks = rows[i].ranks,
                                      .count = rows[i].nodes};
        const dscomm_coll_args_t calls[] = {
            make_args(DSCOMM_COLL_BARRIER, DSCOMM_INT8, -1, 0),
            make_args(DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, DSCOMM_SUM, 64)};

        for (size_t c = 0; c < 2; c++) {
            const char *name =
                dscomm_priv_choice_default(&calls[c], rows[i].ranks, &nodes)
                    ->name;

            is_int(!strcmp(name, "two_level"), rows[i].want,
                   "%s of %d ranks on %d nodes: %s",
                   dscomm_coll_name(calls[c].coll), rows[i].ranks,
                   rows[i].nodes, name);
        }
    }
}

/* Some choices depend on the number of ranks. */
static void test_ranks(void)
{
    GArray *rules = NULL;
    dscomm_coll_args_t args =
        make_args(DSCOMM_COLL_ALL_GATHER, DSCOMM_INT8, -1, 8);

    if (!is_int(
            dscomm_priv_choices_read("all_gather:recursive_doubling", &rules),
            DSCOMM_OK, "a rule that fits powers of two"))
        return;
    for (int ranks = 2; ranks <= 9; ranks++)
        is_int(dscomm_priv_choice_rule(rules, &args, ranks, "shm", NULL) !=
                   NULL,
               ranks == 2 || ranks == 4 || ranks == 8, "%d ranks", ranks);
    g_array_free(rules, TRUE);
}

/* Between nodes, fewer messages are worth more bytes, and halving and doubling
 * is good for powers of two. The measurements are in doc/performance.md. */
static void test_far_ranks(void)
{
    static const struct {
        int ranks, nodes;
        size_t bytes;
        const char *algorithm;
    } rows[] = {
        {2, 0, 64 K, "pairwise"},
        {2, 2, 64 K, "linear"},
        {2, 2, 128 K, "recursive_doubling"},
        {2, 2, 1024 K, "recursive_doubling"},
        {2, 2, 2048 K, "halving_doubling"},
        {3, 3, 64 K, "recursive_doubling"},
        {3, 3, 384 K, "pairwise"},
        {4, 0, 64 K, "pairwise"},
        {4, 0, 1024 K, "pairwise"},
        {4, 2, 8 K, "recursive_doubling"},
        {4, 2, 64 K, "halving_doubling"},
        {4, 2, 1024 K, "halving_doubling"},
        {4, 4, 64 K, "recursive_doubling"},
        {8, 4, 8 K, "two_level"},
        {8, 4, 64 K, "halving_doubling"},
        {4, 4, 384 K, "halving_doubling"},
        {4, 4, 1024 K, "halving_doubling"},
        {6, 2, 1024 K, "pairwise"},
        {8, 4, 1024 K, "halving_doubling"},
        {8, 8, 384 K, "halving_doubling"},
        {8, 8, 1024 K, "halving_doubling"},
        {16, 4, 1024 K, "halving_doubling"},
        {16, 16, 1024 K, "pairwise"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const dscomm_nodes_t nodes = {.ranks = rows[i].ranks,
                                      .count = rows[i].nodes};
        const dscomm_coll_args_t args = make_args(
            DSCOMM_COLL_ALL_REDUCE, DSCOMM_INT8, DSCOMM_SUM, rows[i].bytes);

        is_str(dscomm_priv_choice_default(&args, rows[i].ranks,
                                          rows[i].nodes ? &nodes : NULL)
                   ->name,
               rows[i].algorithm,
               "all_reduce of %zu bytes, %d ranks on %d nodes", rows[i].bytes,
               rows[i].ranks, MAX(rows[i].nodes, 1));
    }
}

int main(void)
{
    test_table();
    test_defaults();
    test_foldable();
    test_bytes();
    test_syntax();
    test_nothing();
    test_refusals();
    test_where();
    test_rules();
    test_levels();
    test_sparse_levels();
    test_far_ranks();
    test_ranks();
    return tap_done();
}
