/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain or streaming stores for collectives: what is chosen from the times of
 * calls, which are made up here. */
#include "tests/backends/shm/fixture.h"

#define ROUNDS 3
#define TRIAL (1 + 2 * ROUNDS) /* calls */
#define MS 1000000

/* Times by each kind of stores, and the right choice. */
static const struct {
    const char *what;
    unsigned plain_ns, stream_ns;
    shm_store_t want;
} cases[] = {
    {"near, 4 KiB", 460, 1000, SHM_PLAIN},
    {"far on Zen 4, 64 KiB", 36000, 8100, SHM_STREAM},
    {"far on Sapphire Rapids, 64 KiB", 11100, 14800, SHM_PLAIN},
    {"far on Sapphire Rapids, 16 MiB", 2812000, 3702000, SHM_PLAIN},
    {"equal", 5000, 5000, SHM_PLAIN},
    {"hardly different", 5000, 4900, SHM_PLAIN},
};

/* A call of the program: its time depends on the stores alone, but for what is
 * added. Returns the stores; *ret_over: it ended a trial. */
static shm_store_t make_call(shm_trial_t *trial, uint32_t key, size_t c,
                             uint64_t more_ns, bool *ret_over)
{
    bool timed;
    const shm_store_t store = shm_trial_next(trial, key, &timed);
    const uint64_t ns =
        store == SHM_PLAIN ? cases[c].plain_ns : cases[c].stream_ns;

    *ret_over = timed && shm_trial_note(trial, ns + more_ns, ROUNDS);
    return store;
}

/* The first call, and one more of each kind, are interrupted. */
static void test_choices(void)
{
    for (size_t c = 0; c < G_N_ELEMENTS(cases); c++) {
        shm_trial_t trial = {0};
        bool over = false;
        int calls = 0, streamed = 0;

        for (; calls < 100 && !over; calls++)
            streamed += make_call(&trial, 1, c, calls < 3 ? 20 * MS : 0,
                                  &over) == SHM_STREAM;
        is_int(calls, TRIAL, "%s: calls of the trial", cases[c].what);
        is_int(streamed, ROUNDS, "%s: as many of each kind", cases[c].what);
        is_int(make_call(&trial, 1, c, 0, &over), cases[c].want,
               "%s: the right stores", cases[c].what);
    }
}

/* Two kinds of calls take turns: only one of them is compared, so the choice is
 * not between their lengths. */
static void test_keys(void)
{
    shm_trial_t trial = {0};
    bool over = false, other;
    int calls = 0;

    for (; calls < 100 && !over; calls++) {
        make_call(&trial, 1, 1, 0, &over);
        if (!over)
            make_call(&trial, 2, 1, 90 * MS, &other);
    }
    is_int(calls, TRIAL, "calls of one key are compared");
    is_int(trial.store, SHM_STREAM, "rightly");
}

/* A key that does not come back makes room for one that does. */
static void test_lost_key(void)
{
    shm_trial_t trial = {0};
    bool over = false;
    int calls = 0;

    make_call(&trial, 1, 1, 0, &over);
    for (; calls < 100 && !over; calls++)
        make_call(&trial, 2, 1, 0, &over);
    ok(over && calls < 50, "another key is compared in the end");
    is_int(trial.store, SHM_STREAM, "rightly");
}

/* A rank moves from a far processor to a near one. */
static void test_again(void)
{
    shm_trial_t trial = {0};
    bool over = false;
    int calls = 0, streamed = 0;

    while (!over)
        make_call(&trial, 1, 1, 0, &over);
    for (over = false; calls < 10000 && !over; calls++)
        streamed += make_call(&trial, 1, 0, 0, &over) == SHM_STREAM;
    ok(over && calls > 1000, "the next trial comes after %d calls", calls);
    ok(streamed > 1000, "until then the choice stays");
    is_int(trial.store, SHM_PLAIN, "then it changes");
}

/* Which calls are timed, and what they copy with. */
static void test_calls(void)
{
    static const struct {
        const char *what;
        int coll;
        size_t bytes;
        int class;
    } rows[] = {
        {"a short one", DSCOMM_COLL_ALL_REDUCE, 1023, -1},
        {"1 KiB", DSCOMM_COLL_ALL_REDUCE, 1024, 0},
        {"64 KiB", DSCOMM_COLL_ALL_GATHER, 65536, 1},
        {"1 MiB less one", DSCOMM_COLL_REDUCE_SCATTER, 1048575, 2},
        {"16 MiB", DSCOMM_COLL_ALL_TO_ALL, 16777216, 3},
        {"one that waits for root alone", DSCOMM_COLL_BROADCAST, 65536, -1},
    };
    shm_t shm = {.ranks = 3, .trying = true};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        dscomm_coll_args_t args = {
            .coll = rows[i].coll, .count = rows[i].bytes, .element = 1};

        is_int(shm_trial_start(&shm, &args), rows[i].class, "%s", rows[i].what);
    }
    shm.trial[1].store = SHM_STREAM;
    shm_trial_begin(&shm, &(dscomm_coll_args_t){.count = 10000, .element = 8});
    is_int(shm.store, SHM_STREAM, "a class keeps its own choice");
    shm_trial_begin(&shm, &(dscomm_coll_args_t){.count = 1000, .element = 8});
    is_int(shm.store, SHM_PLAIN, "and leaves the others theirs");
    shm.trying = false;
    is_int(shm_trial_start(&shm,
                           &(dscomm_coll_args_t){.coll = DSCOMM_COLL_ALL_REDUCE,
                                                 .count = 10000,
                                                 .element = 8}),
           -1, "nothing is tried where the setting says which");
}

static void test_words(void)
{
    shm_t shm = {.ranks = 2};
    char text[128] = "", few[10] = "";

    shm_tuning(&shm, text, sizeof text);
    is_str(text, "", "nothing was chosen yet");
    shm.trial[0].chosen = shm.trial[1].chosen = true;
    shm.trial[1].store = SHM_STREAM;
    shm_tuning(&shm, text, sizeof text);
    is_str(text, "stores of 1K to 16K plain, 16K to 128K streaming",
           "what was chosen");
    shm_tuning(&shm, few, sizeof few);
    is_str(few, "stores of", "as much as there is room for");
}

int main(void)
{
    test_choices();
    test_keys();
    test_lost_key();
    test_again();
    test_calls();
    test_words();
    return tap_done();
}
