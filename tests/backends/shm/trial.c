/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain or streaming stores for collectives: the choice by the times of calls,
 * which are simulated here. */
#include "tests/backends/shm/fixture.h"

#include "backends/shm/request.h"

#define RING ((uint64_t)4 << 20)
#define RANKS 3
#define TURNS 4
#define MS 1000000
#define KIB ((size_t)1 << 10)

/* Times with each kind of stores, and the right choice. While the rings still
 * have data of the other kind, a call takes `cold_ns`. */
static const struct {
    const char *what;
    size_t bytes;
    uint64_t plain_ns, stream_ns, cold_ns;
    unsigned timed; /* calls a turn */
    shm_store_t want;
} cases[] = {
    {"near on Zen 4, 4 KiB", 4 * KIB, 630, 960, 1900, 64, SHM_PLAIN},
    {"far on Zen 4, 4 KiB", 4 * KIB, 1960, 530, 2500, 64, SHM_STREAM},
    {"far on Zen 4, 64 KiB", 64 * KIB, 36000, 8100, 36000, 64, SHM_STREAM},
    {"near on Zen 4, 1 MiB", 1024 * KIB, 62000, 134000, 200000, 4, SHM_PLAIN},
    {"far on Sapphire Rapids, 64 KiB", 64 * KIB, 11100, 14800, 20000, 64,
     SHM_PLAIN},
    {"far on Sapphire Rapids, 16 MiB", 16384 * KIB, 2812000, 3702000, 3702000,
     4, SHM_PLAIN},
    {"equal", 256 * KIB, 5000, 5000, 5000, 16, SHM_PLAIN},
    {"4 % faster", 256 * KIB, 50000, 48000, 50000, 16, SHM_PLAIN},
    {"6 % faster", 256 * KIB, 50000, 47000, 50000, 16, SHM_STREAM},
};

/* Ranks that make the same calls, on one clock. */
typedef struct {
    shm_trial_t trial[RANKS];
    shm_span_t spans[RANKS][SHM_TRIAL_CALLS];
    uint64_t place, now_ns, ns[2];
    uint64_t changed; /* place at which the stores changed last */
    uint64_t step;
    shm_store_t store; /* of the last call */
    int calls, streamed, disagreed;
    int recorded; /* number of timed calls */
    int delayed; /* number of the timed call that is delayed, or -1 */
} job_t;

static void job_start(job_t *job)
{
    memset(job, 0, sizeof *job);
    job->now_ns = 1;
    job->delayed = -1;
}

/* Records a call: rank r begins r us after rank 0 and ends r ns after it. */
static void record(job_t *job, uint64_t ns)
{
    if (job->recorded == job->delayed)
        ns += 7 * (uint64_t)MS;
    job->recorded++;
    for (int r = 0; r < RANKS; r++) {
        const unsigned call =
            shm_trial_timed(&job->trial[r], job->place, job->step, RING);

        job->spans[r][call] =
            (shm_span_t){job->now_ns + (uint64_t)r * 1000,
                         (uint32_t)((uint64_t)(RANKS - 1 - r) * 1000 + ns -
                                    (uint64_t)(RANKS - 1 - r)),
                         false};
    }
}

/* Makes a call of a key, which takes `more_ns` longer than its case says. */
static void make_call(job_t *job, shm_key_t key, size_t c, uint64_t more_ns)
{
    bool timed = false;
    shm_store_t store;
    uint64_t ns;

    for (int r = 0; r < RANKS; r++) {
        const bool own = shm_trial_next(&job->trial[r], key, job->place, RING);

        job->disagreed += r && own != timed;
        job->disagreed += job->trial[r].store != job->trial[0].store;
        timed = own;
    }
    store = (shm_store_t)job->trial[0].store;
    if (store != job->store)
        job->changed = job->place;
    job->store = store;
    ns = store == SHM_PLAIN ? cases[c].plain_ns : cases[c].stream_ns;
    if (job->changed && job->place < job->changed + RING)
        ns = cases[c].cold_ns;
    job->place += key.bytes;
    job->step += 2;
    job->calls++;
    job->streamed += store == SHM_STREAM;
    if (timed)
        record(job, ns + more_ns);
    job->now_ns += ns + more_ns;
}

/* Every rank decides. Returns true if a trial has ended. */
static bool decide(job_t *job)
{
    const shm_span_t *spans[RANKS];

    if (job->trial[0].stage != SHM_TRIAL_WAIT)
        return false;
    for (int r = 0; r < RANKS; r++)
        spans[r] = job->spans[r];
    for (int r = 0; r < RANKS; r++)
        shm_trial_conclude(
            &job->trial[r],
            shm_trial_judge(spans, RANKS, job->trial[r].calls, job->ns),
            job->place);
    return true;
}

static shm_key_t key_of(size_t c)
{
    return (shm_key_t){cases[c].bytes, DSCOMM_COLL_ALL_REDUCE};
}

static void run_trial(job_t *job, size_t c)
{
    for (int i = 0; i < 100000 && !decide(job); i++)
        make_call(job, key_of(c), c, 0);
}

/* The number of calls of a turn: those that go round the rings, and the timed
 * ones. */
static int turn_calls(size_t c)
{
    return (int)((RING + cases[c].bytes - 1) / cases[c].bytes + cases[c].timed);
}

static void test_choices(void)
{
    for (size_t c = 0; c < G_N_ELEMENTS(cases); c++) {
        job_t job;

        job_start(&job);
        run_trial(&job, c);
        is_int(job.calls, TURNS * turn_calls(c), "%s: calls of the trial",
               cases[c].what);
        is_int(job.streamed, job.calls / 2, "%s: as many of each kind",
               cases[c].what);
        is_int(job.trial[0].choice, cases[c].want, "%s: the right stores",
               cases[c].what);
        is_int((long long)job.ns[SHM_PLAIN], (long long)cases[c].plain_ns,
               "%s: plain stores were timed on warm rings", cases[c].what);
        is_int((long long)job.ns[SHM_STREAM], (long long)cases[c].stream_ns,
               "%s: so were streaming ones", cases[c].what);
        is_int(job.disagreed, 0, "%s: all ranks try the same at once",
               cases[c].what);
    }
}

/* The choice is right whichever call is interrupted. */
static void test_interruptions(void)
{
    for (size_t c = 0; c < G_N_ELEMENTS(cases); c++) {
        int wrong = 0;

        for (unsigned i = 0; i < TURNS * cases[c].timed; i++) {
            job_t job;

            job_start(&job);
            job.delayed = (int)i;
            run_trial(&job, c);
            wrong += job.trial[0].choice != cases[c].want;
        }
        is_int(wrong, 0, "%s: one interruption changes no choice",
               cases[c].what);
    }
}

/* Judges spans of two ranks, with two calls a window. Plain and streaming calls
 * have the given times in the two halves of the trial. */
static shm_store_t judge(const uint64_t plain_ns[2],
                         const uint64_t stream_ns[2], uint64_t ns[2])
{
    static shm_span_t spans[2][TURNS * 8];
    const shm_span_t *const both[] = {spans[0], spans[1]};

    for (unsigned i = 0; i < TURNS * 8; i++) {
        const unsigned turn = i / 8;
        const uint64_t call_ns =
            turn % 2 ? stream_ns[turn / 2] : plain_ns[turn / 2];

        spans[0][i] = (shm_span_t){1000 * i + 1, 1, false};
        spans[1][i] = (shm_span_t){1000 * i + 2, (uint32_t)call_ns, false};
        if (!call_ns)
            spans[1][i].begin_ns = 0;
    }
    return shm_trial_judge(both, 2, 8, ns);
}

static void test_unclear(void)
{
    uint64_t ns[2];

    is_int(judge((uint64_t[]){100, 100}, (uint64_t[]){50, 60}, ns), SHM_STREAM,
           "streaming stores win both halves");
    is_int((long long)ns[SHM_STREAM], 50, "the shortest time is told");
    is_int(judge((uint64_t[]){100, 100}, (uint64_t[]){50, 100}, ns), SHM_PLAIN,
           "they win the first half only");
    is_int(judge((uint64_t[]){50, 100}, (uint64_t[]){50, 50}, ns), SHM_PLAIN,
           "they win the second half only");
    is_int(judge((uint64_t[]){100, 0}, (uint64_t[]){50, 50}, ns), SHM_PLAIN,
           "a rank has no times of a plain turn");
    is_int(judge((uint64_t[]){0, 0}, (uint64_t[]){50, 50}, ns), SHM_PLAIN,
           "nor of any");
    ok(ns[SHM_PLAIN] == UINT64_MAX, "then there is no time of plain stores");
    is_int(judge((uint64_t[]){90, 90}, (uint64_t[]){0, 0}, ns), SHM_PLAIN,
           "a rank has no times of streaming turns");
    ok(ns[SHM_STREAM] == UINT64_MAX, "then there is no time of streaming ones");
}

/* The root of a broadcast runs ahead of its receiver, which finds all data
 * there: with plain stores the root takes longer, if lines are far. */
static void test_ahead(void)
{
    static shm_span_t spans[2][TURNS * 4];
    const shm_span_t *const both[] = {spans[0], spans[1]};
    uint64_t ns[2];

    for (unsigned i = 0; i < TURNS * 4; i++) {
        const bool stream = i / 4 % 2;

        spans[0][i] = (shm_span_t){1000 * i + 1, stream ? 3800 : 25000, true};
        spans[1][i] = (shm_span_t){90000 + 10 * i, stream ? 3700 : 3900, false};
    }
    is_int(shm_trial_judge(both, 2, 4, ns), SHM_STREAM,
           "the time of a root that runs ahead counts");
    is_int((long long)ns[SHM_PLAIN], 25000, "with plain stores");
    is_int((long long)ns[SHM_STREAM], 3800, "and with streaming ones");
}

/* Two sizes alternate: only calls of one are compared. */
static void test_keys(void)
{
    const shm_key_t other = {32 * KIB, DSCOMM_COLL_BROADCAST};
    job_t job;

    job_start(&job);
    for (int i = 0; i < 100000 && !decide(&job); i++) {
        make_call(&job, key_of(2), 2, 0);
        make_call(&job, other, 2, 90 * MS);
    }
    is_int((long long)job.ns[SHM_PLAIN], (long long)cases[2].plain_ns,
           "calls of one key are compared");
    is_int(job.trial[0].choice, SHM_STREAM, "rightly");
}

/* A key that is no longer called is replaced by one that is. */
static void test_lost_key(void)
{
    const shm_key_t lost = {100 * KIB, DSCOMM_COLL_BROADCAST};
    job_t job;

    job_start(&job);
    make_call(&job, lost, 2, 0);
    run_trial(&job, 2);
    ok(job.calls < 1000, "another key is compared in the end");
    is_int(job.trial[0].choice, SHM_STREAM, "rightly");
}

/* A rank moves from a distant processor to a near one. */
static void test_again(void)
{
    job_t job;
    uint64_t length, begun;
    int untimed = 0;

    job_start(&job);
    run_trial(&job, 1);
    length = begun = job.place;
    job.calls = job.streamed = 0;
    for (; job.trial[0].stage == SHM_TRIAL_REST && job.calls < 1000000;
         untimed++)
        make_call(&job, key_of(0), 0, 0);
    is_int((long long)(job.place - cases[0].bytes - begun),
           (long long)(64 * length),
           "the next trial begins after 64 times the "
           "bytes of the last one");
    is_int(job.streamed, job.calls - 1, "until then the choice stays");
    is_int(job.recorded, (long long)(TURNS * cases[1].timed),
           "and no call is timed");
    run_trial(&job, 0);
    is_int(job.trial[0].choice, SHM_PLAIN, "then it changes");
}

static const struct {
    const char *what;
    int coll;
    size_t bytes;
    int class;
} rows[] = {
    {"a short one", DSCOMM_COLL_ALL_REDUCE, 1023, 0},
    {"1 KiB", DSCOMM_COLL_ALL_REDUCE, 1024, 1},
    {"64 KiB", DSCOMM_COLL_ALL_GATHER, 65536, 2},
    {"1 MiB less one", DSCOMM_COLL_REDUCE_SCATTER, 1048575, 3},
    {"16 MiB", DSCOMM_COLL_ALL_TO_ALL, 16777216, 4},
    {"one whose counts differ", DSCOMM_COLL_ALL_GATHER_V, 65536, 0},
};

static void test_classes(shm_t *shm)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const dscomm_coll_args_t args = {
            .coll = rows[i].coll, .count = rows[i].bytes, .element = 1};
        shm_op_t op = {.args = &args};

        shm->trying = true;
        shm_trial_begin(shm, &op);
        is_int(op.class, rows[i].class, "%s: its class", rows[i].what);
        ok(!op.begin_ns, "%s: no clock is read at first", rows[i].what);
        op.class = 0;
        shm->trying = false;
        shm_trial_begin(shm, &op);
        is_int(op.class, 0, "%s: not tried where a setting says which",
               rows[i].what);
    }
    memset(shm->trial, 0, sizeof shm->trial);
}

/* Makes one call on all ranks; their rings and steps are advanced here. */
static void call_all(shm_t **shms, const dscomm_coll_args_t *args,
                     size_t region, bool referenced)
{
    for (int r = 0; r < RANKS; r++) {
        shm_op_t op = {.args = args, .first = shms[r]->step};

        shm_trial_begin(shms[r], &op);
        shms[r]->step += 2;
        shms[r]->place += region;
        op.region = region;
        op.referenced = referenced && r == 1;
        shm_trial_end(shms[r], &op);
    }
}

/* Shortens the times of streaming calls in the segment, because the real times
 * are not predictable. */
static void set_times(shm_t **shms, int class)
{
    for (int r = 0; r < RANKS; r++)
        for (unsigned i = 0; i < SHM_TRIAL_CALLS; i++)
            shms[r]->own->trial[class][i] =
                (shm_span_t){1, i / 64 % 2 ? 99 : 199, false};
}

static int ranks_that_stream(shm_t **shms, int class)
{
    int count = 0;

    for (int r = 0; r < RANKS; r++)
        count += shms[r]->trial[class].choice == SHM_STREAM;
    return count;
}

static int run_to_wait(shm_t **shms, const dscomm_coll_args_t *args,
                       bool referenced)
{
    int calls = 0;

    do
        call_all(shms, args, 64 * KIB, referenced);
    while (calls++ < 10000 && shms[0]->trial[2].stage != SHM_TRIAL_WAIT);
    return calls;
}

static void test_group(shm_t **shms)
{
    const dscomm_coll_args_t args = {
        .coll = DSCOMM_COLL_ALL_REDUCE, .count = 64 * KIB, .element = 1};
    const shm_span_t *span = &shms[2]->own->trial[2][5];
    int calls;

    for (int r = 0; r < RANKS; r++)
        shms[r]->trying = true;
    is_int(run_to_wait(shms, &args, false), TURNS * turn_calls(2),
           "a group has called enough");
    ok(span->begin_ns && !span->ahead, "its ranks have left their times");
    set_times(shms, 2);
    for (calls = 0; calls < 10000 && !shms[0]->trial[2].chosen; calls++)
        call_all(shms, &args, 64 * KIB, false);
    is_int(calls, SHM_LINES / 2 + 1,
           "when steps show that all have, a choice is made");
    is_int(ranks_that_stream(shms, 2), RANKS, "by every rank the same");
    call_all(shms, &args, 64 * KIB, false);
    is_int(shms[1]->store, SHM_STREAM, "the next call is made by it");
    is_int(shms[1]->trial[3].store, SHM_PLAIN, "other classes keep theirs");
}

/* Rank 1 is the root of a broadcast, or of a reduce. */
static void test_only_sends(shm_t **shms)
{
    static const struct {
        const char *what;
        int coll;
        bool root, other;
    } kinds[] = {
        {"broadcast", DSCOMM_COLL_BROADCAST, true, false},
        {"scatter", DSCOMM_COLL_SCATTER, true, false},
        {"reduce", DSCOMM_COLL_REDUCE, false, true},
        {"gather", DSCOMM_COLL_GATHER, false, true},
        {"all_gather", DSCOMM_COLL_ALL_GATHER, false, false},
    };

    for (size_t c = 0; c < G_N_ELEMENTS(kinds); c++) {
        const dscomm_coll_args_t args = {
            .coll = kinds[c].coll, .root = 1, .count = 256 * KIB, .element = 1};

        for (int r = 0; r < RANKS; r++)
            memset(&shms[r]->trial[3], 0, sizeof shms[r]->trial[3]);
        for (int i = 0; i < 17; i++)
            call_all(shms, &args, 256 * KIB, false);
        is_int(shms[1]->own->trial[3][0].ahead, kinds[c].root,
               "%s: does its root only send?", kinds[c].what);
        is_int(shms[0]->own->trial[3][0].ahead, kinds[c].other,
               "  and the others?");
    }
}

/* Rank 1's buffer is read in place. */
static void test_referenced(shm_t **shms)
{
    const dscomm_coll_args_t args = {
        .coll = DSCOMM_COLL_ALL_GATHER, .count = 64 * KIB, .element = 1};

    for (int r = 0; r < RANKS; r++)
        shms[r]->trial[2].next = 0;
    run_to_wait(shms, &args, true);
    ok(!shms[1]->own->trial[2][5].begin_ns, "no time of a buffer not copied");
    for (int i = 0; i < SHM_LINES; i++)
        call_all(shms, &args, 64 * KIB, true);
    is_int(ranks_that_stream(shms, 2), RANKS, "without times the choice stays");
}

static void test_words(void)
{
    shm_t shm = {.ranks = 2};
    char text[128] = "", few[10] = "";

    shm_tuning(&shm, text, sizeof text);
    is_str(text, "", "nothing was chosen yet");
    shm.trial[1].chosen = shm.trial[2].chosen = true;
    shm.trial[2].choice = SHM_STREAM;
    shm_tuning(&shm, text, sizeof text);
    is_str(text, "stores of 1K to 16K plain, 16K to 128K streaming",
           "what was chosen");
    shm_tuning(&shm, few, sizeof few);
    is_str(few, "stores of", "as much as there is room for");
}

int main(void)
{
    shm_t *shms[RANKS];

    test_choices();
    test_interruptions();
    test_unclear();
    test_ahead();
    test_keys();
    test_lost_key();
    test_again();
    fixture_open(shms, RANKS);
    for (int r = 0; r < RANKS; r++)
        shms[r]->sources = g_new0(const void *, RANKS);
    test_classes(shms[0]);
    test_group(shms);
    test_referenced(shms);
    test_only_sends(shms);
    for (int r = 0; r < RANKS; r++)
        g_free(shms[r]->sources);
    fixture_close(shms, RANKS);
    test_words();
    return tap_done();
}
