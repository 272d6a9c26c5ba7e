/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank is the culprit if ranks call different collectives, and what the
 * sentence says. */
#include "tests/backends/shm/fixture.h"

#include "backends/shm/steps.h"

#define RANKS_MAX 12

static const dscomm_coll_args_t gather = {.coll = DSCOMM_COLL_ALL_GATHER,
                                          .dtype = DSCOMM_INT8,
                                          .op = -1,
                                          .root = -1,
                                          .count = 3,
                                          .fingerprint = 1};
static const dscomm_coll_args_t barrier = {
    .coll = DSCOMM_COLL_BARRIER, .op = -1, .root = -1, .fingerprint = 2};

/* A rank begins its own collective, which has one step. */
static void call(shm_t *shm, const dscomm_coll_args_t *args, uint64_t sequence)
{
    static dscomm_coll_args_t copies[RANKS_MAX];
    dscomm_coll_args_t *copy = &copies[shm->rank];

    *copy = *args;
    copy->sequence = sequence;
    if (!shm->step)
        shm->step = 1;
    shm_begin(shm, copy);
    if (args->recv_counts)
        shm_counts_publish(shm, copy);
    shm_raise(shm, shm_take(shm, 0));
}

static const char *mismatch_sentence(shm_t **shms, int rank)
{
    return shm_mismatch(shms[rank]) == DSCOMM_ERR_MISMATCH ? dscomm_last_error()
                                                           : "no mismatch";
}

static int begins_with(const char *text, const char *words)
{
    int same = !strncmp(text, words, strlen(words));

    if (!same)
        printf("# not \"%s\" but \"%s\"\n", words, text);
    return same;
}

/* The call of each of some ranks: 'g', 'b', or '-' for none yet. */
static void test_votes(void)
{
    static const struct {
        const char *calls;
        int rank; /* that looks */
        const char *text;
    } cases[] = {
        {"ggg", 0, "no mismatch"},
        {"gb", 0,
         "group 'test': rank 0 called all_gather(count 3, int8) #1, but rank 1 "
         "called barrier() #1;"},
        {"gb-", 1, "group 'test': rank 1 called barrier() #1, but rank 0 "},
        {"bgg", 0,
         "group 'test': rank 0 called barrier() #1, but rank 1 and 1 other "
         "called all_gather(count 3, int8) #1; all ranks must"},
        {"bgg", 2,
         "group 'test': rank 0 called barrier() #1, but rank 1 and 1 other "},
        {"gbbg", 1, "group 'test': rank 1 called barrier() #1, but rank 0 "},
        {"g-ggb-", 2,
         "group 'test': rank 4 called barrier() #1, but rank 0 and 2 others "},
        {"ggggggggggbg", 3,
         "group 'test': rank 10 called barrier() #1, but rank 0 and 10 "
         "others called all_gather"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        int ranks = (int)strlen(cases[i].calls);
        shm_t *shms[RANKS_MAX];

        fixture_open(shms, ranks);
        for (int r = 0; r < ranks; r++)
            if (cases[i].calls[r] != '-')
                call(shms[r], cases[i].calls[r] == 'g' ? &gather : &barrier, 1);
        ok(begins_with(mismatch_sentence(shms, cases[i].rank), cases[i].text),
           "calls %s, seen by rank %d", cases[i].calls, cases[i].rank);
        fixture_close(shms, ranks);
    }
}

/* A difference in counts beyond the first eight shows only in the sum. */
static void test_counts(void)
{
    const size_t ours[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const size_t theirs[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 20};
    dscomm_coll_args_t args = {.coll = DSCOMM_COLL_REDUCE_SCATTER_V,
                               .dtype = DSCOMM_FLOAT32,
                               .op = DSCOMM_SUM,
                               .root = -1};
    shm_t *shms[10];

    fixture_open(shms, 10);
    for (int r = 0; r < 10; r++) {
        args.recv_counts = r == 9 ? theirs : ours;
        args.fingerprint = r == 9;
        call(shms[r], &args, 1);
    }
    ok(begins_with(
           mismatch_sentence(shms, 0),
           "group 'test': rank 9 called reduce_scatter_v(counts 1, 2, 3, 4, 5, "
           "6, 7, 8 ..., sum 65, float32, sum) #1, but rank 0 and 8 others "
           "called reduce_scatter_v(counts 1, 2, 3, 4, 5, 6, 7, 8 "
           "..., sum 55, float32, sum) #1; all ranks must"),
       "counts of ten ranks");
    fixture_close(shms, 10);
}

/* The counts of an older call are not taken for those of a later one. */
static void test_other_counts(void)
{
    const size_t counts[] = {4, 5};
    dscomm_coll_args_t args = {.coll = DSCOMM_COLL_ALL_GATHER_V,
                               .dtype = DSCOMM_INT8,
                               .op = -1,
                               .root = -1,
                               .count = 4,
                               .recv_counts = counts};
    shm_t *shms[2];

    fixture_open(shms, 2);
    for (int r = 0; r < 2; r++) {
        call(shms[r], &args, 1);
        call(shms[r], r ? &gather : &barrier, 2);
    }
    ok(begins_with(mismatch_sentence(shms, 0),
                   "group 'test': rank 0 called barrier() #2, "
                   "but rank 1 called all_gather(count 3,"),
       "the call after one with counts");
    fixture_close(shms, 2);
}

/* The calls since then are equal; the first one that differs is reported while
 * it is still recorded. */
static void test_long_ago(void)
{
    for (int later = SHM_RECORDS - 1; later <= SHM_RECORDS; later++) {
        shm_t *shms[2];

        fixture_open(shms, 2);
        for (int r = 0; r < 2; r++) {
            call(shms[r], r ? &gather : &barrier, 1);
            for (int i = 0; i < later; i++)
                call(shms[r], &gather, (uint64_t)i + 2);
        }
        ok(begins_with(mismatch_sentence(shms, 1),
                       later < SHM_RECORDS
                           ? "group 'test': rank 1 called all_gather(count 3, "
                             "int8) #1, but rank 0 called barrier() #1;"
                           : "group 'test': before all_gather(count 3, int8) "
                             "#65, more than 64 calls ago, rank 1 and "
                             "rank 0 called different collectives;"),
           "a difference %d calls ago", later);
        fixture_close(shms, 2);
    }
}

int main(void)
{
    test_votes();
    test_counts();
    test_other_counts();
    test_long_ago();
    return tap_done();
}
