/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows and formats of a profile whose times are known. Bandwidths are those of
 * nccl-tests' doc/PERFORMANCE.md, worked out by hand. */
#include "config.h"

#include "profiler/profiler.h"
#include "profiler/trace.h"
#include "tests/tap.h"

static bool has_words(const char *text, const char *words)
{
    char **lines = g_strsplit(text, "\n", -1);
    bool found = false;

    for (char **line = lines; *line && !found; line++) {
        char **parts = g_strsplit_set(*line, " ", -1);
        GString *line_words = g_string_new("");

        for (char **part = parts; *part; part++)
            if (**part)
                g_string_append_printf(line_words, "%s%s",
                                       line_words->len ? " " : "", *part);
        found = strstr(line_words->str, words) != NULL;
        g_string_free(line_words, TRUE);
        g_strfreev(parts);
    }
    g_strfreev(lines);
    return found;
}

/* Adds count operations of ns each. */
static void add(dscomm_profile_t *profile, int coll, const char *group,
                int size, uint64_t bytes, uint64_t count, int64_t ns)
{
    const profile_bucket_t bucket = {histogram_bucket(ns), count};
    profile_entry_t entry = {
        .kind = ROW_SIZE,
        .coll = coll,
        .group_size = size,
        .op = dscomm_coll_name((dscomm_coll_t)coll),
        .group = group,
        .site = "",
        .value = bytes,
        .ranks = 1,
        .order = g_hash_table_size(profile->entries) + 1,
        .count = count,
        .bytes = bytes * count,
        .total_ns = ns * (int64_t)count,
        .waited_ns = ns,
        .min_ns = ns,
        .max_ns = ns,
        .histogram = g_array_new(FALSE, FALSE, sizeof bucket),
    };

    g_array_append_val(entry.histogram, bucket);
    dscomm_priv_profile_add(profile, &entry);
    g_array_unref(entry.histogram);
}

static dscomm_profile_t *profile_new(void)
{
    dscomm_profile_t *profile = dscomm_priv_profile_new(1);

    profile->ranks = 1;
    return profile;
}

/* 4,000,000 bytes in 1 ms among 4 ranks: algbw 4 GB/s, and busbw so much. */
static void bandwidths(void)
{
    static const struct {
        int coll;
        double algbw, busbw;
    } cases[] = {
        {DSCOMM_COLL_ALL_REDUCE, 4e9, 6e9},
        {DSCOMM_COLL_ALL_GATHER, 4e9, 3e9},
        {DSCOMM_COLL_REDUCE_SCATTER, 4e9, 3e9},
        {DSCOMM_COLL_ALL_TO_ALL, 4e9, 3e9},
        {DSCOMM_COLL_GATHER, 4e9, 3e9},
        {DSCOMM_COLL_SCATTER, 4e9, 3e9},
        {DSCOMM_COLL_BROADCAST, 4e9, 4e9},
        {DSCOMM_COLL_REDUCE, 4e9, 4e9},
        {DSCOMM_COLL_SEND, 4e9, 4e9},
        {DSCOMM_COLL_RECV, 4e9, 4e9},
        {DSCOMM_COLL_ALL_TO_ALL_V, 4e9, 3e9},
        {DSCOMM_COLL_ALL_GATHER_V, 0, 0},
        {DSCOMM_COLL_BARRIER, 0, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        dscomm_profile_t *profile = profile_new();
        dscomm_profile_row_t row = {.size = sizeof row};

        add(profile, cases[i].coll, "world", 4, 4000000, 2, 1000000);
        dscomm_priv_profile_finish(profile);
        dscomm_profile_row(profile, DSCOMM_PROFILE_BY_SIZE, 0, &row);
        ok(row.algbw == cases[i].algbw && row.busbw == cases[i].busbw,
           "%s: %g, %g", row.op, row.algbw, row.busbw);
        dscomm_profile_free(profile);
    }
}

static void percentiles(void)
{
    dscomm_profile_t *profile = profile_new();
    dscomm_profile_row_t row = {.size = sizeof row};

    for (int64_t ns = 100; ns >= 1; ns--)
        add(profile, DSCOMM_COLL_SEND, "world", 2, 8, 1, ns);
    dscomm_priv_profile_finish(profile);
    dscomm_profile_row(profile, DSCOMM_PROFILE_BY_SIZE, 0, &row);
    is_int((long long)row.count, 100, "operations of 1 to 100 ns");
    is_int(row.min_ns, 1, "min");
    is_int(row.p50_ns, 50, "p50");
    is_int(row.p99_ns, 99, "p99");
    is_int(row.max_ns, 100, "max");
    is_int(row.total_ns, 5050, "total");
    is_int(row.mean_ns, 50, "mean");
    is_int(dscomm_profile_row(profile, DSCOMM_PROFILE_BY_SIZE, 1, &row),
           DSCOMM_ERR_NOT_FOUND, "one row");
    dscomm_profile_free(profile);
}

/* By Python: round(bytes / 1024 ** i, 2), as DeepSpeed does */
static void sizes(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0B"},
        {1, "1.0 B"},
        {1023, "1023.0 B"},
        {1024, "1.0 KB"},
        {1536, "1.5 KB"},
        {711835402, "678.86 MB"},
        {UINT64_C(1) << 40, "1.0 TB"},
    };
    char text[32];

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        dscomm_priv_size_text(cases[i].bytes, text, sizeof text);
        is_str(text, cases[i].text, "%s", cases[i].text);
    }
}

static dscomm_profile_t *example(void)
{
    dscomm_profile_t *profile = profile_new();

    add(profile, DSCOMM_COLL_ALL_REDUCE, "world", 4, 4000000, 2, 1000000);
    add(profile, DSCOMM_COLL_ALL_REDUCE, "a \"b\", c", 2, 4000000, 2, 3000000);
    add(profile, DSCOMM_COLL_ALL_REDUCE, "world", 4, 8192, 1, 1000000);
    add(profile, DSCOMM_COLL_REDUCE_SCATTER, "world", 2, 81920, 1, 1000000);
    dscomm_priv_profile_finish(profile);
    return profile;
}

/* Two groups are one line, because DeepSpeed knows none: 16,000,000 bytes in 8
 * ms are 16 Gbit/s, and on the bus 8e6 * 1.5 + 8e6 * 1 bytes, 20 Gbit/s. */
static void deepspeed(void)
{
    static const char want[] =
        "Comm. Op            Message Size        Count               "
        "Total Latency(ms)   Avg Latency(ms)     tput_avg (Gbps)     "
        "busbw_avg (Gbps)    \n"
        "all_reduce\n"
        "                    8.0 KB              1                   "
        "1.00                1.00                0.07                "
        "0.10                \n"
        "                    3.81 MB             4                   "
        "8.00                2.00                16.00               "
        "20.00               \n"
        "reduce_scatter\n"
        "                    80.0 KB             1                   "
        "1.00                1.00                0.66                "
        "0.33                \n";
    dscomm_profile_t *profile = example();
    GString *text = g_string_new(NULL);

    dscomm_priv_write_deepspeed(profile, text);
    is_str(text->str, want, "DeepSpeed's table");
    g_string_free(text, TRUE);
    dscomm_profile_free(profile);
}

/* Rank 0's operations in the order in which they were first used, then those of
 * other ranks alone. */
static void first_use(void)
{
    static const int colls[2][4] = {
        {DSCOMM_COLL_BARRIER, DSCOMM_COLL_ALL_REDUCE, DSCOMM_COLL_BROADCAST,
         DSCOMM_COLL_BARRIER},
        {DSCOMM_COLL_BROADCAST, DSCOMM_COLL_RECV, DSCOMM_COLL_BARRIER,
         DSCOMM_COLL_ALL_GATHER}};
    dscomm_profile_t *all = dscomm_priv_profile_new(2);
    GString *text = g_string_new(NULL), *names = g_string_new(NULL);
    char **lines;

    for (int rank = 0; rank < 2; rank++) {
        dscomm_profile_t *one = profile_new();
        GByteArray *packed;

        for (int i = 0; i < 4; i++)
            add(one, colls[rank][i], "world", 2, (uint64_t)(16 - i), 1, 1);
        packed = dscomm_priv_profile_pack(one, SIZE_MAX);
        dscomm_priv_profile_unpack(all, packed->data, packed->len);
        g_byte_array_unref(packed);
        dscomm_profile_free(one);
    }
    dscomm_priv_profile_finish(all);
    dscomm_priv_write_deepspeed(all, text);
    lines = g_strsplit(text->str, "\n", -1);
    for (char **line = lines + 1; *line; line++)
        if (**line && **line != ' ')
            g_string_append_printf(names, "%s ", *line);
    is_str(names->str, "barrier all_reduce broadcast recv all_gather ",
           "operations are in the order of their first use");
    g_strfreev(lines);
    g_string_free(names, TRUE);
    g_string_free(text, TRUE);
    dscomm_profile_free(all);
}

static void csv(void)
{
    static const char want[] =
        "by,op,group,group_size,site,peer,bytes,bytes_most,ranks,count,failed,"
        "total_bytes,total_ns,waited_ns,min_ns,mean_ns,p50_ns,p99_ns,max_ns,"
        "algbw,busbw,codec,sent_bytes,plain_bytes,saved_bytes,phase,device_"
        "count,device_ns\n"
        "sizes,all_reduce,\"a \"\"b\"\", c\",2,,-1,4000000,4000000,1,2,0,"
        "8000000,6000000,3000000,3000000,3000000,3000000,3000000,3000000,"
        "1.33333e+09,1.33333e+09,,0,0,0,,0,0\n";
    dscomm_profile_t *profile = example();
    GString *text = g_string_new(NULL);

    dscomm_priv_write_csv(profile, text);
    g_string_truncate(text, MIN(text->len, sizeof want - 1));
    is_str(text->str, want, "CSV, its head and the first row");
    g_string_truncate(text, 0);
    dscomm_priv_write_json(profile, text);
    ok(strstr(text->str, "\"group\": \"a \\\"b\\\", c\"") != NULL,
       "a text in JSON");
    g_string_truncate(text, 0);
    dscomm_priv_write_prometheus(profile, text);
    ok(strstr(text->str,
              "\ndscomm_operation_seconds_sum{op=\"all_reduce\",group=\"a "
              "\\\"b\\\", c\",group_size=\"2\",bytes_most=\"4194303\"} "
              "0.006000000\n") != NULL,
       "a sample for Prometheus");
    g_string_free(text, TRUE);
    dscomm_profile_free(profile);
}

static void invalid_names(void)
{
    dscomm_profile_t *profile = profile_new();
    GString *text = g_string_new(NULL);

    add(profile, DSCOMM_COLL_SEND, "half \xc3", 2, 8, 1, 1);
    dscomm_priv_profile_finish(profile);
    dscomm_priv_write_csv(profile, text);
    ok(g_utf8_validate(text->str, -1, NULL) && strstr(text->str, ",half "),
       "CSV is UTF-8, whatever names are");
    g_string_truncate(text, 0);
    dscomm_priv_write_prometheus(profile, text);
    ok(g_utf8_validate(text->str, -1, NULL) && strstr(text->str, "\"half "),
       "so are the samples for Prometheus");
    g_string_free(text, TRUE);
    dscomm_profile_free(profile);
}

/* Names that would move the cursor or begin a line. */
static void control_characters(void)
{
    dscomm_profile_t *profile = profile_new();
    GString *text = g_string_new(NULL);

    add(profile, DSCOMM_COLL_SEND, "a\nb\x1b[2Jc\xc2\x9b\xff \xc3\xa9", 2, 8, 1,
        1);
    dscomm_priv_profile_finish(profile);
    dscomm_priv_write_summary(profile, text);
    ok(strstr(text->str, "  a?b?[2Jc??? \xc3\xa9 (2)  ") != NULL,
       "the summary has no control characters: %s", text->str);
    g_string_free(text, TRUE);
    dscomm_profile_free(profile);
}

/* Callers have waited for coalesced works together. */
static void unknown_wait(void)
{
    dscomm_profile_t *profile = profile_new();
    GString *text = g_string_new(NULL);
    profile_entry_t entry = {
        .kind = ROW_SIZE,
        .coll = DSCOMM_COLL_BARRIER,
        .group_size = 2,
        .op = "barrier",
        .group = "world",
        .site = "",
        .ranks = 1,
        .count = 2,
        .total_ns = 15390000,
        .min_ns = INT64_MAX,
        .histogram = g_array_new(FALSE, FALSE, sizeof(profile_bucket_t)),
    };

    dscomm_priv_profile_add(profile, &entry);
    dscomm_priv_profile_finish(profile);
    dscomm_priv_write_summary(profile, text);
    ok(has_words(text->str, "barrier world (2) 0B 2 0 15.39 - 7695.00"),
       "a wait that is not known is no time");
    g_array_unref(entry.histogram);
    g_string_free(text, TRUE);
    dscomm_profile_free(profile);
}

/* Adds an operation of a trace, in a group of 2 at place group. */
static void add_event(trace_t *trace, int coll, int64_t begin_ns,
                      int64_t end_ns, uint64_t sequence, int peer)
{
    const event_t event = {
        .begin_ns = begin_ns,
        .end_ns = end_ns,
        .sequence = sequence,
        .bytes = 8,
        .op = coll == DSCOMM_COLL_ALL_REDUCE ? DSCOMM_SUM : -1,
        .peer = peer,
        .tag = peer < 0 ? -1 : 5,
        .text = 1,
        .status = DSCOMM_OK,
        .kind = EVENT_OPERATION,
        .coll = (uint8_t)coll,
        .dtype = DSCOMM_FLOAT32,
    };

    g_array_append_val(trace->events, event);
}

static trace_t *add_trace(dscomm_profile_t *profile, int rank)
{
    static const event_thread_t thread = {812, "a \"thread\""};
    const trace_group_t group = {
        g_string_chunk_insert_const(profile->texts, "w"),
        g_string_chunk_insert_const(profile->texts, "\t\"\\\xff"), 2, rank};
    trace_t *trace = dscomm_priv_trace_add(profile);

    trace->rank = rank;
    trace->pid = 100 + rank;
    trace->host = g_string_chunk_insert_const(profile->texts, "node");
    g_array_append_val(trace->groups, group);
    g_ptr_array_add(trace->texts,
                    (gpointer)g_string_chunk_insert_const(profile->texts, ""));
    g_ptr_array_add(trace->texts, (gpointer)g_string_chunk_insert_const(
                                      profile->texts, "step"));
    g_array_append_val(trace->threads, thread);
    return trace;
}

/* Rank 0 is held in #1 from 100 to 400, in #2 from 1000 to the end of its own
 * operation at 1100, and not in #3, of which rank 1 has no event. Rank 1 is
 * held in #4 by 50. The message takes from 2000 to 2090. */
static GByteArray *pack_rank(int rank)
{
    static const struct {
        int coll;
        int64_t begin_ns, end_ns;
        uint64_t sequence;
        int peer;
    } events[2][6] = {
        {{DSCOMM_COLL_ALL_REDUCE, 100, 500, 1, -1},
         {DSCOMM_COLL_BROADCAST, 1000, 1100, 2, 0},
         {DSCOMM_COLL_BARRIER, 1200, 1300, 3, -1},
         {DSCOMM_COLL_ALL_REDUCE, 1450, 1500, 4, -1},
         {DSCOMM_COLL_SEND, 2000, 2010, 1, 1},
         {DSCOMM_COLL_RECV, 2020, 2030, 2, -1}},
        {{DSCOMM_COLL_ALL_REDUCE, 400, 500, 1, -1},
         {DSCOMM_COLL_BROADCAST, 1180, 1190, 2, 0},
         {DSCOMM_COLL_ALL_REDUCE, 1400, 1500, 4, -1},
         {DSCOMM_COLL_RECV, 1900, 2090, 1, 0},
         {DSCOMM_COLL_ALL_REDUCE, 3000, 3001, 5, -1},
         {DSCOMM_COLL_REDUCE, 3002, 3003, 6, 1}},
    };
    dscomm_profile_t *profile = profile_new();
    trace_t *trace = add_trace(profile, rank);
    GByteArray *packed;

    for (size_t i = 0; i < 6; i++)
        add_event(trace, events[rank][i].coll, events[rank][i].begin_ns,
                  events[rank][i].end_ns, events[rank][i].sequence,
                  events[rank][i].peer);
    dscomm_priv_profile_finish(profile);
    packed = dscomm_priv_profile_pack(profile, SIZE_MAX);
    dscomm_profile_free(profile);
    return packed;
}

static void stragglers(void)
{
    dscomm_profile_straggler_t row = {.size = sizeof row};
    dscomm_profile_arrival_t arrival = {.size = sizeof arrival};
    dscomm_profile_t *all = dscomm_priv_profile_new(2);
    dscomm_profile_info_t info = {.size = sizeof info};

    for (int i = 0; i < 2; i++) {
        GByteArray *packed = pack_rank(i);

        ok(dscomm_priv_profile_unpack(all, packed->data, packed->len),
           "the events of rank %d are read", i);
        g_byte_array_unref(packed);
    }
    dscomm_priv_profile_finish(all);
    dscomm_profile_info(all, &info);
    is_int((long long)info.events, 12, "all events");
    is_int(dscomm_profile_straggler(all, 0, &row), DSCOMM_OK, "the first row");
    ok(row.rank == 1 && row.pid == 101 && !strcmp(row.host, "node"),
       "is of rank 1");
    ok(row.collectives == 3 && row.last == 2, "which was last twice in three");
    ok(row.late_ns == 400 && row.late_most_ns == 300 &&
           row.others_waited_ns == 400 && row.waited_ns == 50,
       "by 300 and 100, and held by 50");
    ok(row.waited_for == 0 && row.waited_for_ns == 50, "for rank 0");
    dscomm_profile_straggler(all, 1, &row);
    ok(row.rank == 0 && row.last == 1 && row.late_ns == 50 &&
           row.waited_ns == 400 && row.waited_for == 1,
       "then rank 0");
    is_int(dscomm_profile_straggler(all, 2, &row), DSCOMM_ERR_NOT_FOUND,
           "no more");
    dscomm_profile_arrival(all, 0, &arrival);
    ok(arrival.sequence == 1 && arrival.last == 1 && arrival.late_ns == 300 &&
           !strcmp(arrival.op, "all_reduce") && !strcmp(arrival.group_id, "w"),
       "the collective with the longest wait");
    is_int(dscomm_profile_arrival(all, 3, &arrival), DSCOMM_ERR_NOT_FOUND,
           "those that one rank has do not count");
    ok(trace_link(profile_trace(all, 0), 4)->flow > 0 &&
           trace_link(profile_trace(all, 0), 4)->flow ==
               trace_link(profile_trace(all, 1), 3)->flow,
       "send and receive are one message");
    ok(!trace_link(profile_trace(all, 0), 2)->flow &&
           !trace_link(profile_trace(all, 0), 5)->flow,
       "what is on one rank alone stays alone");
    is_int(dscomm_profile_arrival(NULL, 0, &arrival), DSCOMM_ERR_INVALID,
           "no profile");
    dscomm_profile_free(all);
}

/* An all_reduce of 8 bytes takes 400,000 and 100,000 ns, another one 60,000
 * and 120,000; that of rank 1 alone does not count, nor does a message. */
static void breakdown(void)
{
    static const char want[] =
        "_______________________________\n"
        "Breakdown with straggler effect\n"
        "-------------------------------\n"
        "Comm. Op            Message Size        Count               "
        "Total comm lat(ms)  Total straggler(ms) Avg comm lat(ms)    "
        "Avg straggler(ms)   \n"
        "all_reduce\n"
        "                    8.0 B               4                   "
        "0.32                0.36                0.08                "
        "0.09                \n";
    static const int64_t ends[2][2] = {{500000, 1060000}, {500000, 1120000}};
    dscomm_profile_t *all = dscomm_priv_profile_new(2);
    GString *text = g_string_new(NULL);
    const char *found;

    for (int rank = 0; rank < 2; rank++) {
        dscomm_profile_t *one = profile_new();
        trace_t *trace = add_trace(one, rank);
        GByteArray *packed;

        g_ptr_array_index(trace->texts, 1) = g_ptr_array_index(trace->texts, 0);
        add(one, DSCOMM_COLL_SEND, "\t\"\\\xff", 2, 8, 1, 1);
        add(one, DSCOMM_COLL_ALL_REDUCE, "\t\"\\\xff", 2, 8, 2, 1);
        add_event(trace, DSCOMM_COLL_ALL_REDUCE, rank ? 400000 : 100000,
                  ends[rank][0], 1, -1);
        add_event(trace, DSCOMM_COLL_ALL_REDUCE, 1000000, ends[rank][1], 2, -1);
        add_event(trace, DSCOMM_COLL_ALL_REDUCE, 2000000, 3000000,
                  3 + (uint64_t)rank, -1);
        add_event(trace, DSCOMM_COLL_SEND, 4000000, 4000001, 1, 1 - rank);
        packed = dscomm_priv_profile_pack(one, SIZE_MAX);
        dscomm_priv_profile_unpack(all, packed->data, packed->len);
        g_byte_array_unref(packed);
        dscomm_profile_free(one);
    }
    dscomm_priv_profile_finish(all);
    dscomm_priv_write_deepspeed(all, text);
    found = strstr(text->str, "\n___");
    is_str(found ? found + 1 : "", want, "DeepSpeed's breakdown");
    g_string_free(text, TRUE);
    dscomm_profile_free(all);
}

/* An operation of 1 s: 1/5 each is copied in and reduced, the rest unknown. */
static void phases(void)
{
    static const char path[] = "formats-phases.json";
    dscomm_profile_t *one = profile_new(), *all = dscomm_priv_profile_new(1);
    trace_t *trace = add_trace(one, 0);
    GByteArray *packed;
    event_t *event;
    char *text = NULL;

    add_event(trace, DSCOMM_COLL_BARRIER, 0, 1000, 1, -1);
    add_event(trace, DSCOMM_COLL_ALL_REDUCE, 2000, 1000002000, 2, -1);
    event = &g_array_index(trace->events, event_t, 1);
    event->has_phases = 1;
    event->phases =
        (uint64_t)(UINT16_MAX / 5) << 16 * (DSCOMM_PHASE_COPY_IN - 1) |
        (uint64_t)(UINT16_MAX / 5) << 16 * (DSCOMM_PHASE_REDUCE - 1);
    packed = dscomm_priv_profile_pack(one, SIZE_MAX);
    ok(dscomm_priv_profile_unpack(all, packed->data, packed->len),
       "events with phases are read");
    dscomm_priv_profile_finish(all);
    dscomm_profile_write(all, DSCOMM_PROFILE_TRACE, path);
    g_file_get_contents(path, &text, NULL, NULL);
    remove(path);
    ok(text &&
           strstr(text, ",\"site\":\"step\",\"copy_in_us\":200000.000,"
                        "\"reduce_us\":200000.000,\"other_us\":600000.000}"),
       "a trace has them: %s", text);
    ok(text && strstr(text, "\"site\":\"step\"}"),
       "but none of what was not timed");
    g_free(text);
    g_byte_array_unref(packed);
    dscomm_profile_free(one);
    dscomm_profile_free(all);
}

/* Whatever another rank sends is read or refused, and can be written. */
static void damaged(GByteArray *packed, GByteArray *good)
{
    for (guint i = 0; i < packed->len; i++)
        for (int bit = 0; bit < 8; bit++) {
            dscomm_profile_t *all = dscomm_priv_profile_new(2);

            packed->data[i] ^= (guint8)(1 << bit);
            dscomm_priv_profile_unpack(all, good->data, good->len);
            dscomm_priv_profile_unpack(all, packed->data, packed->len);
            packed->data[i] ^= (guint8)(1 << bit);
            dscomm_priv_profile_finish(all);
            dscomm_profile_write(all, DSCOMM_PROFILE_TRACE, "/dev/null");
            dscomm_profile_free(all);
        }
    ok(1, "damaged profiles do no harm");
}

static void bounded(void)
{
    dscomm_profile_t *one = profile_new(), *all = dscomm_priv_profile_new(1);
    trace_t *trace = add_trace(one, 0);
    dscomm_profile_info_t info = {.size = sizeof info};
    GByteArray *packed;

    for (int i = 0; i < 1000; i++)
        add_event(trace, DSCOMM_COLL_BARRIER, 100 * i, 100 * i + 50,
                  (uint64_t)i, -1);
    packed = dscomm_priv_profile_pack(one, 4096);
    ok(packed->len <= 4096, "a part is as small as wanted");
    dscomm_priv_profile_unpack(all, packed->data, packed->len);
    dscomm_priv_profile_finish(all);
    dscomm_profile_info(all, &info);
    ok(info.events > 50 && info.events + info.events_dropped == 1000,
       "what has no room is counted");
    trace = g_ptr_array_index(all->traces, 0);
    is_int((long long)trace_event(trace, trace->events->len - 1)->sequence, 999,
           "the last events are there");
    g_byte_array_unref(packed);
    dscomm_profile_free(one);
    dscomm_profile_free(all);
}

/* Rows with the shortest times, and events whose texts have no room, are left
 * out and counted. */
static void bounded_rows(void)
{
    dscomm_profile_t *one = profile_new(), *all = dscomm_priv_profile_new(1);
    trace_t *trace = add_trace(one, 0);
    dscomm_profile_info_t info = {.size = sizeof info};
    dscomm_profile_row_t row = {.size = sizeof row};
    uint64_t count = 0;
    GByteArray *packed;
    char name[200];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 1; i <= 500; i++) {
        add(one, DSCOMM_COLL_SEND, name, 2, (uint64_t)i, 2, 100 * i);
        g_ptr_array_add(trace->texts, (gpointer)g_string_chunk_insert_const(
                                          one->texts, name));
    }
    for (int i = 0; i < 10; i++)
        add_event(trace, DSCOMM_COLL_BARRIER, 100 * i, 100 * i + 50,
                  (uint64_t)i, -1);
    packed = dscomm_priv_profile_pack(one, 65536);
    ok(packed->len <= 65536, "rows and texts are bounded, too");
    ok(dscomm_priv_profile_unpack(all, packed->data, packed->len),
       "what is left is read");
    dscomm_priv_profile_finish(all);
    dscomm_profile_info(all, &info);
    for (size_t i = 0;
         dscomm_priv_profile_get(all, DSCOMM_PROFILE_BY_SIZE, i, &row); i++)
        count += row.count;
    ok(count > 100 && count + info.dropped == 1000,
       "each operation is there or counted as dropped");
    is_int((long long)row.bytes, 500, "the longest ones are there");
    ok(!info.events && info.events_dropped == 10, "the events are dropped");
    g_byte_array_unref(packed);
    dscomm_profile_free(one);
    dscomm_profile_free(all);
}

/* Two compressed calls of 20000 bytes by 3 ranks, of which this one has sent
 * 945 bytes each time instead of 26666; and one that has cost bytes. */
static dscomm_profile_t *compressed(void)
{
    dscomm_profile_t *profile = profile_new();
    profile_entry_t entry = {
        .kind = ROW_CODEC,
        .coll = DSCOMM_COLL_ALL_REDUCE,
        .group_size = 3,
        .op = "all_reduce",
        .group = "world",
        .site = "onebit",
        .value = 20000,
        .ranks = 1,
        .count = 2,
        .bytes = 40000,
        .sent = 1890,
        .plain = 53332,
        .total_ns = 80000,
        .min_ns = 40000,
        .max_ns = 40000,
        .histogram = g_array_new(FALSE, FALSE, sizeof(profile_bucket_t)),
    };

    dscomm_priv_profile_add(profile, &entry);
    entry.value = 4;
    entry.count = 1;
    entry.bytes = 4;
    entry.sent = 80;
    entry.plain = 5;
    dscomm_priv_profile_add(profile, &entry);
    g_array_unref(entry.histogram);
    return profile;
}

static void codecs(void)
{
    dscomm_profile_t *profile = compressed(), *read = profile_new();
    GByteArray *packed = dscomm_priv_profile_pack(profile, SIZE_MAX);
    dscomm_profile_row_t row = {.size = sizeof row};
    GString *text = g_string_new(NULL);

    ok(dscomm_priv_profile_unpack(read, packed->data, packed->len), "packed");
    dscomm_priv_profile_finish(read);
    is_int(dscomm_profile_row(read, DSCOMM_PROFILE_BY_CODEC, 1, &row),
           DSCOMM_OK, "rows by codec");
    ok(!strcmp(row.op, "all_reduce") && !strcmp(row.codec, "onebit") &&
           !*row.site && row.bytes == 20000 && row.bytes_most == 20000 &&
           row.count == 2 && row.total_bytes == 40000,
       "what was compressed");
    ok(row.sent_bytes == 1890 && row.plain_bytes == 53332 &&
           row.saved_bytes == 51442,
       "and what that has saved");
    ok(row.algbw == 5e8, "bandwidth of the data, 40000 bytes in 80 us");
    dscomm_profile_row(read, DSCOMM_PROFILE_BY_CODEC, 0, &row);
    is_int(row.saved_bytes, -75, "short buffers cost bytes");
    is_int(dscomm_profile_row(read, DSCOMM_PROFILE_BY_SIZE, 0, &row),
           DSCOMM_ERR_NOT_FOUND, "these are no rows by size");
    dscomm_priv_write_summary(read, text);
    ok(has_words(text->str, "1.85 KB 52.08 KB 50.24 KB 96.5") &&
           has_words(text->str, "80.0 B 5.0 B -75.0 B -1500.0"),
       "the summary has both");
    g_string_truncate(text, 0);
    dscomm_priv_write_csv(read, text);
    ok(strstr(text->str, ",onebit,80,5,-75,,0,0\n") != NULL, "so has CSV");
    g_string_truncate(text, 0);
    dscomm_priv_write_json(read, text);
    ok(strstr(text->str,
              "\"codec\": \"onebit\", \"sent_bytes\": 80, "
              "\"plain_bytes\": 5, \"saved_bytes\": -75, \"phase\": \"\", ") !=
           NULL,
       "and JSON");
    g_string_truncate(text, 0);
    dscomm_priv_write_prometheus(read, text);
    ok(strstr(text->str,
              "\ndscomm_compressed_sent_bytes_total{op=\"all_reduce\","
              "group=\"world\",group_size=\"3\",codec=\"onebit\","
              "bytes_most=\"20000\"} 1890\n") != NULL &&
           strstr(text->str, "\"20000\"} 53332\n") != NULL,
       "and Prometheus");
    g_string_free(text, TRUE);
    g_byte_array_unref(packed);
    dscomm_profile_free(read);
    dscomm_profile_free(profile);
}

/* A profile of two ranks, of which each has sent the example. */
static void merge(void)
{
    dscomm_profile_row_t row = {.size = sizeof row};
    dscomm_profile_t *one = example(), *all = dscomm_priv_profile_new(3);
    GByteArray *packed = dscomm_priv_profile_pack(one, SIZE_MAX);
    dscomm_profile_info_t info = {.size = sizeof info};
    int refused = 1;

    for (guint size = 0; size < packed->len; size++)
        refused &= !dscomm_priv_profile_unpack(all, packed->data, size);
    ok(refused, "each part of a packed profile is refused");
    for (int i = 0; i < 2; i++)
        ok(dscomm_priv_profile_unpack(all, packed->data, packed->len),
           "the whole is read");
    dscomm_priv_profile_miss(all, 2);
    dscomm_priv_profile_finish(all);
    dscomm_profile_row(all, DSCOMM_PROFILE_BY_SIZE, 1, &row);
    ok(row.count == 2 && row.ranks == 2 && row.bytes == 8192 &&
           row.total_ns == 2000000 && row.group_size == 4,
       "counts are sums");
    dscomm_profile_info(all, &info);
    ok(info.ranks == 2 && info.world_size == 3, "of two ranks in three");
    is_str(info.missing, "2", "and one is missing");
    dscomm_profile_free(all);
    damaged(packed, packed);
    g_byte_array_unref(packed);
    dscomm_profile_free(one);
}

int main(void)
{
    GByteArray *packed, *good;
    dscomm_profile_t *all;
    int refused = 0;

    bandwidths();
    percentiles();
    sizes();
    deepspeed();
    first_use();
    csv();
    invalid_names();
    control_characters();
    unknown_wait();
    codecs();
    merge();
    stragglers();
    breakdown();
    phases();
    bounded();
    bounded_rows();
    packed = pack_rank(0);
    good = pack_rank(1);
    for (guint size = 0; size < packed->len; size++) {
        all = dscomm_priv_profile_new(1);
        refused += !dscomm_priv_profile_unpack(all, packed->data, size);
        dscomm_profile_free(all);
    }
    is_int(refused, (int)packed->len, "each part with events is refused");
    damaged(packed, good);
    g_byte_array_unref(packed);
    g_byte_array_unref(good);
    return tap_done();
}
