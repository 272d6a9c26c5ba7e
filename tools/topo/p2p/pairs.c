/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of pairs, see pairs.h. */
#include "config.h"

#include "tools/topo/p2p/pairs.h"

#include <stdlib.h>
#include <time.h>

#define NOISE 0.1 /* interquartile range over median */

static const struct {
    const char *name, *words;
} modes[TOPO_MODES] = {
    [TOPO_ALONE] = {"alone", "one pair at a time"},
    [TOPO_STAGED] = {"staged", "one pair at a time, through the host"},
    [TOPO_BOTH] = {"both", "both directions of a pair at once, their sum"},
    [TOPO_TOGETHER] = {"together", "all at once, of each pair"},
};

topo_pairs_t *topo_pairs_new(const char *what, const char *how,
                             const char *hint, char **names,
                             const topo_copies_t *copies)
{
    topo_pairs_t *pairs = g_new0(topo_pairs_t, 1);
    GDateTime *now = g_date_time_new_now_utc();

    pairs->host = g_strdup(g_get_host_name());
    pairs->time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    g_date_time_unref(now);
    pairs->what = g_strdup(what);
    pairs->how = g_strdup(how);
    pairs->hint = hint;
    pairs->copies = *copies;
    pairs->names = names;
    pairs->count = g_strv_length(names);
    pairs->pairs = g_new0(topo_pair_t, (gsize)pairs->count * pairs->count);
    pairs->slices = g_array_new(FALSE, FALSE, sizeof(topo_slice_t));
    return pairs;
}

void topo_pairs_free(topo_pairs_t *pairs)
{
    if (!pairs)
        return;
    g_free(pairs->what);
    g_free(pairs->how);
    g_free(pairs->host);
    g_free(pairs->time);
    g_free(pairs->crowd);
    g_strfreev(pairs->names);
    g_free(pairs->pairs);
    g_array_unref(pairs->slices);
    g_free(pairs);
}

topo_pair_t *topo_pair(const topo_pairs_t *pairs, guint from, guint to)
{
    return &pairs->pairs[(gsize)from * pairs->count + to];
}

gsize topo_copies_bytes(const topo_copies_t *copies)
{
    return copies->tensors * copies->elements * sizeof(float);
}

double topo_pair_rate(const topo_pairs_t *pairs, guint from, guint to,
                      topo_mode_t mode)
{
    const double time = topo_pair(pairs, from, to)->times[mode];
    const double bytes = (double)topo_copies_bytes(&pairs->copies);

    return time > 0 ? bytes * (mode == TOPO_BOTH ? 2 : 1) / time / 1e3 : 0;
}

bool topo_pairs_have(const topo_pairs_t *pairs, topo_mode_t mode)
{
    for (guint i = 0; i < pairs->count * pairs->count; i++)
        if (pairs->pairs[i].times[mode] > 0)
            return true;
    return false;
}

char *topo_pairs_warning(const topo_pairs_t *pairs)
{
    guint figures = 0, noisy = 0;

    if (pairs->crowd)
        return g_strdup(pairs->crowd);
    for (guint i = 0; i < pairs->count * pairs->count; i++) {
        const topo_pair_t *pair = &pairs->pairs[i];

        figures += pair->latency > 0;
        noisy += pair->latency_spread > NOISE;
        for (topo_mode_t mode = TOPO_ALONE; mode < TOPO_MODES; mode++) {
            figures += pair->times[mode] > 0;
            noisy += pair->spreads[mode] > NOISE;
        }
    }
    return noisy ? g_strdup_printf("%u of %u figures spread by more than 10%%: "
                                   "the machine is noisy; end what else runs",
                                   noisy, figures)
                 : NULL;
}

void topo_slice_add(topo_pairs_t *pairs, guint from, guint to, topo_mode_t mode,
                    double start, double length)
{
    const topo_slice_t slice = {from, to, mode, start, length};

    if (pairs->copies.traced)
        g_array_append_val(pairs->slices, slice);
}

char topo_pattern(guint end)
{
    return (char)(end % 251 + 1);
}

gsize topo_wrong(const char *bytes, gsize count, guint from)
{
    const char want = topo_pattern(from);
    gsize wrong = 0;

    for (gsize i = 0; i < count; i++)
        wrong += bytes[i] != want;
    return wrong;
}

const char *topo_mode_name(topo_mode_t mode)
{
    return modes[mode].name;
}

const char *topo_mode_words(topo_mode_t mode)
{
    return modes[mode].words;
}

static int compare_times(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double topo_median(double *values, guint count, double *ret_spread)
{
    double median;

    if (!count)
        return 0;
    qsort(values, count, sizeof *values, compare_times);
    median = (values[count / 2] + values[(count - 1) / 2]) / 2;
    if (ret_spread)
        *ret_spread =
            median > 0
                ? (values[count - 1 - count / 4] - values[count / 4]) / median
                : 0;
    return median;
}

double topo_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}
