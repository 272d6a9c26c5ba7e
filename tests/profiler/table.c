/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables: threads that add to the same rows lose nothing, and what has no
 * room is refused. */
#include "config.h"

#include "profiler/profile.h"
#include "profiler/table.h"
#include "tests/tap.h"

#include <pthread.h>

#define THREADS 4
#define ADDS 20000
#define SIZES 37

static table_t table;

/* Adds operations of SIZES sizes, in an order of its own. */
static void *run(void *arg)
{
    const unsigned thread = *(unsigned *)arg;

    for (unsigned i = 0; i < ADDS; i++) {
        const uint64_t bytes = (i * (2 * thread + 1)) % SIZES;
        row_t *row = dscomm_priv_table_size(&table, (row_key_t){0}, bytes);

        if (row)
            dscomm_priv_row_add(row, bytes, (int64_t)(i % 100 + 1));
    }
    return NULL;
}

static void threads(void)
{
    dscomm_profile_row_t row = {.size = sizeof row};
    dscomm_profile_t *profile = dscomm_priv_profile_new(1);
    unsigned numbers[THREADS];
    pthread_t ids[THREADS];
    uint64_t count = 0;
    int64_t total = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&ids[i], NULL, run, &numbers[i]))
            bail("no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    profile->ranks = 1;
    dscomm_priv_profile_add_table(profile, &table);
    dscomm_priv_profile_finish(profile);
    for (size_t i = 0;
         dscomm_priv_profile_get(profile, DSCOMM_PROFILE_BY_SIZE, i, &row);
         i++) {
        count += row.count;
        total += row.total_ns;
        if (row.ranks != 1)
            ok(0, "a row of %d ranks", row.ranks);
    }
    is_int((long long)count, THREADS * ADDS, "all operations");
    /* 1 to 100, ADDS / 100 times on each thread */
    is_int(total, INT64_C(5050) * (ADDS / 100) * THREADS, "all times");
    is_int(profile->views[DSCOMM_PROFILE_BY_SIZE]->len, SIZES,
           "a row for each size");
    dscomm_profile_free(profile);
}

/* Adds to whatever table there is, until the others have ended. */
static void *late_run(void *arg)
{
    atomic_bool *ended = arg;
    unsigned thread = 1;

    while (!atomic_load(ended))
        run(&thread);
    return NULL;
}

/* A table is emptied while another thread adds to it. */
static void used_again(void)
{
    dscomm_profile_t *profile = dscomm_priv_profile_new(1);
    row_t *row = dscomm_priv_table_size(&table, (row_key_t){0}, 1);
    atomic_bool ended = false;
    int failed = 0;
    pthread_t late;

    if (pthread_create(&late, NULL, late_run, &ended))
        bail("no thread");
    for (int i = 0; i < 200; i++)
        failed += !dscomm_priv_table_init(&table);
    atomic_store(&ended, true);
    pthread_join(late, NULL);
    dscomm_priv_row_add(row, 1, 1);
    is_int(failed, 0, "a table is used again while a thread adds to it");
    dscomm_priv_table_init(&table);
    dscomm_priv_profile_add_table(profile, &table);
    is_int((long long)g_hash_table_size(profile->entries), 0,
           "and is empty then");
    dscomm_profile_free(profile);
}

static void bounds(void)
{
    unsigned sizes = 0, classes = 0, ranges = 0;

    for (uint64_t bytes = 0; bytes < 2000; bytes++) {
        row_t *row = dscomm_priv_table_row(
            &table, (row_key_t){.kind = ROW_SIZE, .value = bytes});

        sizes += row != NULL;
    }
    is_int(sizes, TABLE_SIZES, "rows of one size");
    for (unsigned site = 0; site < 2000; site++)
        classes +=
            dscomm_priv_table_row(
                &table, (row_key_t){.kind = ROW_CLASS, .site = site}) != NULL;
    is_int(classes, TABLE_HISTOGRAMS - TABLE_SIZES, "then rows of classes");
    ranges += dscomm_priv_table_row(
                  &table, (row_key_t){.kind = ROW_RANGE, .value = 1}) != NULL;
    is_int(ranges, 0, "then none with a histogram");
    ok(dscomm_priv_table_row(&table,
                             (row_key_t){.kind = ROW_PEER, .value = 1}) != NULL,
       "but those of peers");
    dscomm_priv_table_reset(&table, NULL);
    ok(dscomm_priv_table_row(&table,
                             (row_key_t){.kind = ROW_SIZE, .value = 5}) != NULL,
       "rows stay after a reset");
}

static void classes(void)
{
    static const struct {
        uint64_t bytes, first, last;
    } cases[] = {
        {0, 0, 0},
        {1, 1, 1},
        {2, 2, 3},
        {3, 2, 3},
        {1023, 512, 1023},
        {1024, 1024, 2047},
        {UINT64_MAX, UINT64_C(1) << 63, UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned c = size_class(cases[i].bytes);

        ok(class_first(c) == cases[i].first && class_last(c) == cases[i].last,
           "the class of %llu", (unsigned long long)cases[i].bytes);
    }
}

int main(void)
{
    if (!dscomm_priv_table_init(&table))
        bail("no memory");
    threads();
    used_again();
    bounds();
    classes();
    return tap_done();
}
