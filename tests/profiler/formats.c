/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows and formats of a profile whose times are known. Bandwidths are those of
 * nccl-tests' doc/PERFORMANCE.md, worked out by hand. */
#include "config.h"

#include "profiler/profile.h"
#include "profiler/profiler.h"
#include "tests/tap.h"

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

static void csv(void)
{
    static const char want[] =
        "by,op,group,group_size,site,peer,bytes,bytes_most,ranks,count,failed,"
        "total_bytes,total_ns,waited_ns,min_ns,mean_ns,p50_ns,p99_ns,max_ns,"
        "algbw,busbw\n"
        "sizes,all_reduce,\"a \"\"b\"\", c\",2,,-1,4000000,4000000,1,2,0,"
        "8000000,6000000,3000000,3000000,3000000,3000000,3000000,3000000,"
        "1.33333e+09,1.33333e+09\n";
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
    /* Whatever another rank sends is read or refused. */
    for (guint i = 0; i < packed->len; i++) {
        all = dscomm_priv_profile_new(1);
        packed->data[i] ^= (guint8)(1 << i % 8);
        dscomm_priv_profile_unpack(all, packed->data, packed->len);
        packed->data[i] ^= (guint8)(1 << i % 8);
        dscomm_priv_profile_finish(all);
        dscomm_profile_free(all);
    }
    ok(1, "damaged profiles do no harm");
    g_byte_array_unref(packed);
    dscomm_profile_free(one);
}

int main(void)
{
    bandwidths();
    percentiles();
    sizes();
    deepspeed();
    csv();
    merge();
    return tap_done();
}
