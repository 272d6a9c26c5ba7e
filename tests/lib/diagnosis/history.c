/* SPDX-License-Identifier: BSD-3-Clause */
/* Call history and reports: written, read, compared. */
#include "config.h"

#include "lib/diagnosis/history.h"

#include "tests/tap.h"

static dscomm_coll_args_t make(uint64_t sequence, int coll, size_t count)
{
    return (dscomm_coll_args_t){
        .coll = coll,
        .dtype = DSCOMM_INT32,
        .op = coll == DSCOMM_COLL_ALL_REDUCE ? DSCOMM_SUM : -1,
        .root = -1,
        .count = count,
        .sequence = sequence,
        .fingerprint = (uint32_t)(coll * 1000 + (int)count)};
}

static dscomm_recorder_slot_t history, other;

#define GROUP 3 /* number of the group in the slots */

static void note(dscomm_recorder_slot_t *slot, uint64_t sequence, int coll,
                 size_t count)
{
    dscomm_coll_args_t args = make(sequence, coll, count);

    dscomm_priv_recorder_collective(slot, GROUP, 4, &args, 0);
    args = make(sequence + 100, coll, count);
    dscomm_priv_recorder_collective(slot, GROUP + 1, 4, &args, 0);
}

static const char *text_of(const dscomm_report_t *report, uint64_t sequence)
{
    const dscomm_call_seen_t *call = dscomm_priv_report_call(report, sequence);

    return call ? call->text : NULL;
}

static dscomm_report_t pass_on(const dscomm_recorder_slot_t *slot)
{
    const int waits[] = {3, 200};
    char text[REPORT_MAX];
    dscomm_report_t report = {0};

    dscomm_priv_report_write(slot, GROUP, "w.1", NULL, 0, waits, 2, text);

    is_int(dscomm_priv_report_read(text, "w.2", &report), -1,
           "another group's is none");
    ok(!report.known, "and leaves nothing");
    is_int(dscomm_priv_report_read(text, "w.1", &report), 0, "read");
    ok(report.known, "known");
    return report;
}

static void test_calls(void)
{
    dscomm_report_t a, b;

    a = pass_on(&history);
    is_int((long)a.last, 0, "nothing was called yet");
    for (uint64_t s = 1; s <= 11; s++) {
        note(&history, s, DSCOMM_COLL_ALL_REDUCE, 5);
        note(&other, s, DSCOMM_COLL_ALL_REDUCE, 5 + (s == 6 || s == 7));
    }
    a = pass_on(&history);
    b = pass_on(&other);
    is_int((long)a.last, 11, "the last");
    is_str(text_of(&a, 11), "all_reduce(count 5, int32, sum) #11", "as text");
    is_str(text_of(&a, 4), "all_reduce(count 5, int32, sum) #4", "the oldest");
    is_str(text_of(&a, 3), NULL, "older ones are gone");
    is_str(text_of(&a, 12), NULL, "newer ones are to come");
    ok(dscomm_priv_report_waits(&a, 3) && dscomm_priv_report_waits(&a, 200),
       "whom it waits for");
    ok(!dscomm_priv_report_waits(&a, 2) && !dscomm_priv_report_waits(&a, 999),
       "and whom not");
    is_int((long)dscomm_priv_report_difference(&a, &b), 6,
           "the first difference");
    is_int((long)dscomm_priv_report_difference(&b, &a), 6, "either way");
    is_int((long)dscomm_priv_report_difference(&a, &a), 0, "no difference");
    b.known = 0;
    is_int((long)dscomm_priv_report_difference(&a, &b), 0, "nothing known");
}

/* The current call is in the report, even if another group has made so many
 * calls meanwhile that the recorder has lost it. */
static void test_lost(void)
{
    static dscomm_recorder_slot_t slot;
    const dscomm_coll_args_t current = make(9, DSCOMM_COLL_ALL_REDUCE, 5);
    const uint64_t serial =
        dscomm_priv_recorder_collective(&slot, GROUP, 4, &current, 0);
    dscomm_coll_args_t args = make(1, DSCOMM_COLL_BARRIER, 0);
    char text[REPORT_MAX];
    dscomm_report_t report;

    dscomm_priv_report_write(&slot, GROUP, "w.1", &current, serial, NULL, 0,
                             text);
    ok(!dscomm_priv_report_read(text, "w.1", &report) && report.last == 9 &&
           !report.calls[1].sequence,
       "the current call, once");
    for (args.sequence = 1; args.sequence <= RECORDER_CALLS; args.sequence++)
        dscomm_priv_recorder_collective(&slot, GROUP + 1, 4, &args, 0);
    dscomm_priv_report_write(&slot, GROUP, "w.1", &current, serial, NULL, 0,
                             text);
    ok(!dscomm_priv_report_read(text, "w.1", &report) && report.last == 9,
       "and after many calls on another group");
    is_str(text_of(&report, 9), "all_reduce(count 5, int32, sum) #9",
           "with its arguments");
}

static void test_counts(void)
{
    const size_t counts[] = {5, 12, 0, 7},
                 many[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    dscomm_coll_args_t args = make(1, DSCOMM_COLL_ALL_GATHER_V, 5);
    dscomm_report_t report;

    args.recv_counts = counts;
    dscomm_priv_recorder_collective(&history, GROUP, 4, &args, 0);
    args = make(2, DSCOMM_COLL_REDUCE_SCATTER_V, 5);
    args.op = DSCOMM_MAX;
    args.recv_counts = many;
    dscomm_priv_recorder_collective(&history, GROUP, 12, &args, 0);
    report = pass_on(&history);
    is_str(text_of(&report, 1),
           "all_gather_v(counts 5, 12, 0, 7, sum 24, int32) #1", "counts");
    is_str(text_of(&report, 2),
           "reduce_scatter_v(counts 1, 2, 3, 4, 5, 6, 7, 8, ..., sum 78, "
           "int32, max) #2",
           "the first of many");
}

/* Reading a report is safe, whatever the store contains. */
static void test_foreign(void)
{
    static const char *const texts[] = {
        "",
        "w",
        "w\n",
        "w\n\n",
        "w\n1 x 2\n\n\n\n",
        "w\n\n99999999999999999999 zz",
        "w\n-1 -99999999999 4294967296\n1",
        "w\n\n1 1 a\033[1m\tb\n2 2",
        "w\n\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"};
    dscomm_report_t report;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        report = (dscomm_report_t){0};
        ok(dscomm_priv_report_read(texts[i], "w", &report) == 0 ||
               !report.known,
           "foreign text %zu", i);
    }
    report = (dscomm_report_t){0};
    dscomm_priv_report_read(texts[7], "w", &report);
    is_str(text_of(&report, 1), "a [1m b", "control characters are blanks");
}

int main(void)
{
    test_calls();
    test_counts();
    test_lost();
    test_foreign();
    return tap_done();
}
