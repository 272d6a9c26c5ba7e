/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain or streaming stores for collectives: the choice by the times of pieces,
 * and trials before collectives. */
#include "tests/backends/shm/fixture.h"

#include "backends/shm/copy.h"
#include "backends/shm/request.h"

#define BYTES ((size_t)48 << 10)
#define RING "512K"
#define CALLS 12 /* fill it once */
#define RANKS_MOST 5
#define TURNS 100000

/* The times of a piece by each kind of stores, and the right choice. */
static const struct {
    const char *what;
    uint64_t plain_ns, stream_ns;
    shm_store_t want;
} cases[] = {
    {"near on Zen 4", 3800, 12100, SHM_PLAIN},
    {"far on Zen 4", 36000, 8100, SHM_STREAM},
    {"far on Sapphire Rapids", 11100, 14800, SHM_PLAIN},
    {"equal", 5000, 5000, SHM_PLAIN},
    {"24 % faster", 50000, 38000, SHM_PLAIN},
    {"26 % faster", 50000, 37000, SHM_STREAM},
};

/* Single copies take base_ns, and so many ns a KiB; a piece that goes one way
 * takes half the time of plain stores. */
static void tried_fill(shm_tried_t *tried, uint64_t plain_ns,
                       uint64_t stream_ns, uint64_t base_ns, uint64_t kib_ns)
{
    const uint64_t ns[SHM_TRIAL_WAYS] = {stream_ns, plain_ns,
                                         base_ns + 64 * kib_ns,
                                         base_ns + 4 * kib_ns, plain_ns / 2};

    *tried = (shm_tried_t){.piece = 65536, .ways = SHM_TRIAL_WAYS};
    for (int way = 0; way < SHM_TRIAL_WAYS; way++)
        for (int i = 0; i < SHM_TRIAL_PIECES; i++)
            tried->ns[way][i] = ns[way];
}

static void test_judge(void)
{
    for (size_t c = 0; c < G_N_ELEMENTS(cases); c++) {
        int wrong = 0;

        /* any four pieces in a row are interrupted */
        for (int first = 0; first < 2 * SHM_TRIAL_PIECES; first++) {
            shm_trial_t trial = {0};
            shm_tried_t tried;

            tried_fill(&tried, cases[c].plain_ns, cases[c].stream_ns, 1000,
                       1000);
            for (int i = first; i < first + 4; i++)
                tried.ns[i / SHM_TRIAL_PIECES][i % SHM_TRIAL_PIECES] += 7000000;
            shm_trial_judge(&tried, &trial);
            wrong += trial.choice != cases[c].want ||
                     trial.ns[SHM_PLAIN] != cases[c].plain_ns ||
                     trial.ns[SHM_STREAM] != cases[c].stream_ns ||
                     trial.single || trial.single_one_way;
        }
        is_int(wrong, 0, "%s: the right choice, also if interrupted",
               cases[c].what);
    }
}

/* Sizes at which the lines of both kinds meet: rings take 100 ns a KiB, and 50
 * one way, of which a single copy must save a quarter. */
static void test_single(void)
{
    static const struct {
        uint64_t base_ns, kib_ns;
        size_t want_kib, one_way_kib;
    } rows[] = {{1000, 100, 0, 0},   {1000, 80, 0, 0}, {1000, 40, 32, 0},
                {400, 40, 16, 0},    {10, 40, 16, 0},  {5000, 40, 256, 0},
                {1000, 74, 1024, 0}, {2000, 74, 0, 0}, {1000, 20, 32, 64}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        shm_trial_t trial;
        shm_tried_t tried;

        tried_fill(&tried, 6400, 20000, rows[i].base_ns, rows[i].kib_ns);
        shm_trial_judge(&tried, &trial);
        is_int((long long)trial.single, (long long)rows[i].want_kib << 10,
               "a single copy of %llu ns and %llu a KiB",
               (unsigned long long)rows[i].base_ns,
               (unsigned long long)rows[i].kib_ns);
        is_int((long long)trial.single_one_way,
               (long long)rows[i].one_way_kib << 10, "and one way");
        tried.ways = 2;
        shm_trial_judge(&tried, &trial);
        ok(!trial.single && !trial.single_one_way, "which is not tried");
    }
}

static void test_partners(void)
{
    for (int ranks = 2; ranks <= 9; ranks++) {
        int alone = 0, wrong = 0;

        for (int r = 0; r < ranks; r++) {
            const int partner = shm_trial_partner(r, ranks);

            alone += partner < 0;
            wrong += partner >= 0 && (partner == r || partner >= ranks ||
                                      shm_trial_partner(partner, ranks) != r);
        }
        ok(!wrong && alone == ranks % 2, "%d ranks are pairs", ranks);
    }
}

/* All ranks begin an all_gather of BYTES, of which rank r has bytes r + seed.
 */
static unsigned char in[RANKS_MOST][BYTES], out[RANKS_MOST][RANKS_MOST][BYTES];
static shm_request_t requests[RANKS_MOST];

static void gather_begin(shm_t **shms, int ranks, int seed)
{
    static uint64_t sequence;

    sequence++;
    for (int r = 0; r < ranks; r++) {
        const dscomm_coll_args_t args = {.coll = DSCOMM_COLL_ALL_GATHER,
                                         .send = in[r],
                                         .recv = out[r],
                                         .count = BYTES,
                                         .element = 1,
                                         .op = -1,
                                         .sequence = sequence,
                                         .fingerprint = 77};

        memset(in[r], r + seed, BYTES);
        memset(out[r], 0xee, sizeof out[r]);
        memset(&requests[r], 0, sizeof requests[r]);
        if (shm_start(shms[r], &args, &requests[r].head))
            bail("%s", dscomm_last_error());
    }
}

static bool gather_end(shm_t **shms, int ranks, int seed)
{
    bool right = true, busy = true;

    for (int i = 0; busy && i < TURNS; i++) {
        busy = false;
        for (int r = 0; r < ranks; r++) {
            shm_collective_progress(shms[r]);
            busy = busy || requests[r].head.status == DSCOMM_IN_PROGRESS;
        }
    }
    for (int r = 0; r < ranks; r++)
        for (int from = 0; from < ranks; from++)
            for (size_t b = 0; b < BYTES; b += 1021)
                right = right && out[r][from][b] == (from + seed) % 256;
    return right && !busy;
}

static void group_open(shm_t **shms, int ranks, bool trying)
{
    fixture_open(shms, ranks);
    for (int r = 0; r < ranks; r++) {
        shms[r]->guessing = true;
        shms[r]->trying = trying;
        shms[r]->cache = (size_t)32 << 20;
        shms[r]->native = true;
        shm_trial_init(shms[r], NULL);
    }
}

/* far: a rank measures that streaming stores are faster. */
static void test_group(int ranks, bool far)
{
    shm_t *shms[RANKS_MOST];
    bool right = true, chosen = true, equal = true;
    uint64_t next;

    group_open(shms, ranks, true);
    for (int i = 0; i < CALLS + 2; i++) {
        gather_begin(shms, ranks, i);
        for (int turn = 0; shms[0]->tried.source && turn < TURNS; turn++) {
            /* Every piece but the last one was tried. */
            for (int k = 0; far && k < 2; k++)
                for (int p = 0; p < SHM_TRIAL_PIECES; p++)
                    shms[0]->tried.ns[k][p] = k ? 1000000 : 10;
            for (int r = 0; r < ranks; r++)
                shm_collective_progress(shms[r]);
        }
        right = gather_end(shms, ranks, i) && right;
    }
    next = shms[0]->trial.next;
    for (int r = 0; r < ranks; r++) {
        chosen = chosen && shms[r]->trial.chosen;
        equal = equal && shms[r]->trial.choice == shms[0]->trial.choice &&
                shms[r]->store == shms[0]->store && shms[r]->trial.next == next;
    }
    ok(right, "%d ranks: collectives with a trial have the right results",
       ranks);
    ok(chosen && equal, "%d ranks: all have the same choice", ranks);
    if (far)
        is_int(shms[0]->store, SHM_STREAM,
               "%d ranks: one rank that is far is enough", ranks);
    ok(next > shms[0]->place + ((uint64_t)200 << 20),
       "%d ranks: the next trial is far away", ranks);
    for (int r = 0; r < ranks; r++)
        shms[r]->trial.next = shms[r]->place;
    gather_begin(shms, ranks, 200);
    right = gather_end(shms, ranks, 200);
    ok(right && shms[0]->trial.next > next, "%d ranks: it is repeated", ranks);
    fixture_close(shms, ranks);
}

/* Single copies are tried with bytes that the partner has written for each, as
 * the collectives find them. Both ranks are this process, which may read
 * itself. */
static void test_single_pieces(void)
{
    bool seen[256] = {false};
    shm_t *shms[2];
    int others = 0;

    group_open(shms, 2, true);
    for (int r = 0; r < 2; r++) {
        shms[r]->peers->pids[0] = shms[r]->peers->pids[1] = getpid();
        shms[r]->asks_single = shms[r]->own->reads = true;
        shms[r]->trial.next = 0;
    }
    gather_begin(shms, 2, 3);
    for (int turn = 0; turn < TURNS && shms[turn % 2]->tried.source; turn++) {
        seen[shms[turn % 2]->tried.sink[0]] = true;
        shm_collective_progress(shms[turn % 2]);
    }
    ok(gather_end(shms, 2, 3), "a trial of single copies ends");
    for (int i = 0; i < 256; i++)
        others += seen[i] && i != 0x3f;
    if (shms[0]->tried.refused)
        skip("this process may not read its own memory");
    else
        ok(others >= 2 * SHM_TRIAL_PIECES - 1,
           "each single copy is of new bytes: %d of them", others);
    fixture_close(shms, 2);
}

/* Ranks that share a processor try nothing. */
static void test_none(void)
{
    char text[128] = "";
    shm_t *shms[2];
    bool right = true;

    group_open(shms, 2, false);
    for (int i = 0; i < 20; i++) {
        gather_begin(shms, 2, i);
        right = gather_end(shms, 2, i) && right;
    }
    ok(right && !shms[0]->trial.chosen, "without trials: the right results");
    shm_tuning(shms[0], text, sizeof text);
    is_str(text, "", "and nothing to tell");
    fixture_close(shms, 2);
}

/* A trial that ends with its collective leaves no memory behind. */
static void test_cancelled(void)
{
    shm_t *shms[2];

    group_open(shms, 2, true);
    for (int i = 0; shms[0]->place < shms[0]->layout.ring_size; i++) {
        gather_begin(shms, 2, i);
        gather_end(shms, 2, i);
    }
    gather_begin(shms, 2, 2);
    for (int r = 0; r < 2; r++)
        shm_collective_cancel(shms[r], &requests[r]);
    ok(shms[0]->tried.source != NULL, "a collective is cancelled in a trial");
    for (int r = 0; r < 2; r++)
        shm_trial_free(shms[r]);
    ok(!shms[0]->tried.source, "its memory is freed with the group");
    fixture_close(shms, 2);
}

static void test_words(void)
{
    shm_t shm = {.trial = {.chosen = true,
                           .choice = SHM_STREAM,
                           .ns = {[SHM_PLAIN] = 36049, [SHM_STREAM] = 8100}}};
    static shm_control_t control; /* of a rank that may read no others */
    char text[160], few[8];

    shm_tuning(&shm, text, sizeof text);
    is_str(text, "streaming stores (a piece: plain 36.0 us, streaming 8.1 us)",
           "the choice in words");
    shm.asks_single = true;
    shm_tuning(&shm, text, sizeof text);
    ok(g_str_has_suffix(text, ", never read in place: that is no faster"),
       "single copies were tried: %s", text);
    shm.ranks = 1;
    shm.base = (unsigned char *)&control;
    shm_tuning(&shm, text, sizeof text);
    ok(g_str_has_suffix(text, ", never read in place: the kernel forbids it"),
       "single copies could not be tried: %s", text);
    shm.trial.single = 65536;
    shm_tuning(&shm, text, sizeof text);
    ok(g_str_has_suffix(text, "64 KiB on, one way from 0 (0: never)"),
       "single copies were chosen: %s", text);
    shm_tuning(&shm, few, sizeof few);
    is_str(few, "streami", "in little room");
}

/* Without trials the stores follow the distance of most ranks. */
static void test_guess(void)
{
    static const struct {
        unsigned ns[3]; /* until a line of each other rank is here */
        shm_store_t want;
    } rows[] = {{{150, 150, 20}, SHM_STREAM},
                {{20, 150, 20}, SHM_PLAIN},
                {{150, 150, 150}, SHM_STREAM},
                {{20, 20, 20}, SHM_PLAIN}};
    shm_t *shms[4];

    fixture_open(shms, 4);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (int r = 1; r < 4; r++) {
            shm_path_init(&shms[0]->path[r], -1);
            shms[0]->path[r].left = 0; /* no measurement */
            shm_path_learn(&shms[0]->path[r], rows[i].ns[r - 1]);
        }
        for (int turn = 0; turn < 100; turn++)
            shm_trial_guess(shms[0]);
        is_int(shms[0]->store, rows[i].want, "lines of %u, %u and %u ns",
               rows[i].ns[0], rows[i].ns[1], rows[i].ns[2]);
    }
    fixture_close(shms, 4);
}

/* Messages follow the distance, unless it was found not to matter. */
static void test_messages(void)
{
    shm_trial_t trial = {.chosen = true, .choice = SHM_PLAIN};
    _Atomic uint64_t word = 1;
    shm_path_t path;

    shm_path_init(&path, -1);
    path.trial = &trial;
    path.left = 0;
    shm_path_learn(&path, 150);
    is_int(shm_path_store(&path, &word, BYTES), SHM_STREAM,
           "messages to far ranks are streamed");
    trial.plain = true;
    is_int(shm_path_store(&path, &word, BYTES), SHM_PLAIN,
           "but not if plain stores were faster over that distance");
}

int main(void)
{
    g_setenv("DSCOMM_SHM_RING", RING, TRUE);
    test_judge();
    test_single();
    test_partners();
    for (int ranks = 2; ranks <= RANKS_MOST; ranks++) {
        test_group(ranks, false);
        test_group(ranks, true);
    }
    test_single_pieces();
    test_none();
    test_guess();
    test_cancelled();
    test_words();
    test_messages();
    return tap_done();
}
