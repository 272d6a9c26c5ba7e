/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of dscomm perf compared with the simulations in doc/scaling.md,
 * which SimGrid made of the library's own schedules. The bounds are those that
 * the page names. */
#include "config.h"

#include "tests/tap.h"
#include "tools/perf/model.h"

#include <dscomm/dscomm.h>
#include <math.h>
#include <string.h>

/* tests/bench/scaling.sh: links of 100 Gbit/s, whose bandwidth SimGrid divides
 * by 1.05 if data flows both ways; 1 us between hosts, 20 GB/s and 0.3 us
 * inside; 10 GB/s by the processor. */
#define COST(alpha, beta)                                                      \
    {                                                                          \
        .pieces = {{(alpha), (beta)}}, .split = INFINITY                       \
    }
#define LINK(alpha, beta)                                                      \
    {                                                                          \
        COST(alpha, beta), COST(alpha, beta), 0                                \
    }

static const perf_model_t parameters = {
    .near = LINK(0.3e-6, 1 / 20e9),
    .far = LINK(1e-6, 1.05 / 12.5e9),
    .gamma = 1 / 10e9,
    .delta = 1 / 10e9,
};

/* Cells of an algorithm, and percent of error: of half of them at most median,
 * of all at most worst. */
static struct {
    const char *name;
    guint cells;
    double median, worst;
    GArray *errors;
} algorithms[] = {
    {"ring", 17, 1, 3, NULL},
    {"recursive_doubling", 17, 1, 15, NULL},
    {"halving_doubling", 27, 3, 25, NULL},
    {"two_level", 6, 8, 13, NULL},
    {"two_level:ring", 8, 2, 10, NULL},
    {"two_level:halving_doubling", 10, 8, 10, NULL},
};

/* The rows, those whose fastest algorithm was found, and the percent by which
 * the one found elsewhere is slower than the fastest at most. */
#define ROWS 27
#define FOUND 24
#define SLOWER 10
static int rows, found;
static double slower;

static double predict(const char *name, int hosts, int local, double bytes)
{
    const int ranks = hosts * local;
    const perf_layout_t all = {.ranks = ranks, .local = local, .rails = 1};
    const perf_layout_t host = {.ranks = local, .local = local, .rails = 1};
    const perf_layout_t rail = {.ranks = hosts, .local = 1, .rails = local};

    if (!g_str_has_prefix(name, "two_level:"))
        return perf_model_time(&parameters, DSCOMM_COLL_ALL_REDUCE, name, &all,
                               bytes);
    return perf_model_time(&parameters, DSCOMM_COLL_REDUCE_SCATTER, "pairwise",
                           &host, bytes) +
           perf_model_time(&parameters, DSCOMM_COLL_ALL_REDUCE,
                           name + strlen("two_level:"), &rail, bytes / local) +
           perf_model_time(&parameters, DSCOMM_COLL_ALL_GATHER, "ring", &host,
                           bytes);
}

/* "16 KiB" */
static double read_bytes(const char *text)
{
    const char *unit = strchr(text, ' ');

    return g_ascii_strtod(text, NULL) *
           (unit && g_str_has_prefix(unit, " MiB") ? 1048576 : 1024);
}

/* A figure as the page writes it, "2,082". */
static double read_figure(const char *text)
{
    char **parts = g_strsplit(text, ",", -1);
    char *digits = g_strjoinv(NULL, parts);
    const double figure = g_ascii_strtod(digits, NULL);

    g_free(digits);
    g_strfreev(parts);
    return figure;
}

/* Returns the predicted time. */
static double cell(const char *name, int hosts, int local, double bytes,
                   double simulated)
{
    const double time = predict(name, hosts, local, bytes) * 1e6;
    const double error = 100 * (time / simulated - 1);
    size_t i = 0;

    printf("# %d hosts of %d, %.0f KiB, %s: %.1f, simulated %.1f: %+.1f %%\n",
           hosts, local, bytes / 1024, name, time, simulated, error);
    while (i < G_N_ELEMENTS(algorithms) && strcmp(algorithms[i].name, name))
        i++;
    if (ok(i < G_N_ELEMENTS(algorithms) && isfinite(error), "%s is known",
           name))
        g_array_append_val(algorithms[i].errors, error);
    return time;
}

/* One line of a table; the first one names the columns. */
static void read_row(char **titles, char **words, int local, double bytes)
{
    double fastest = INFINITY, predicted = INFINITY, chosen = 0;

    for (guint i = 2; words[i] && titles[i]; i++) {
        const double simulated = read_figure(words[i]);
        double time;

        if (strcmp(titles[i], "bytes") == 0)
            bytes = read_bytes(words[i]);
        if (strcmp(titles[i], "bytes") == 0 || !*words[i])
            continue;
        time = cell(titles[i], (int)read_figure(words[1]), local, bytes,
                    simulated);
        fastest = MIN(fastest, simulated);
        if (time < predicted) {
            predicted = time;
            chosen = simulated;
        }
    }
    rows++;
    found += chosen <= fastest;
    slower = MAX(slower, 100 * (chosen / fastest - 1));
}

static void read_page(char **lines)
{
    char **titles = NULL;
    int local = 0;
    double bytes = 0;

    for (; *lines; lines++) {
        char **words = g_strsplit(*lines, "|", -1);

        for (char **word = words; *word; word++)
            g_strstrip(*word);
        if (g_str_has_suffix(*lines, " on each host:")) {
            local = strstr(*lines, "four ranks") ? 4 : 1;
            bytes = read_bytes(*lines);
        } else if (g_str_has_prefix(*lines, "| hosts |")) {
            g_strfreev(titles);
            titles = g_steal_pointer(&words);
        } else if (titles && g_strv_length(words) == g_strv_length(titles) &&
                   g_ascii_isdigit(*words[1])) {
            read_row(titles, words, local, bytes);
        }
        g_strfreev(words);
    }
    g_strfreev(titles);
}

static int by_size(const void *a, const void *b)
{
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return x < y ? -1 : x > y;
}

static void check(size_t i)
{
    const GArray *errors = algorithms[i].errors;
    const double *values = (const double *)(const void *)errors->data;
    double median, worst;

    if (!is_int(errors->len, algorithms[i].cells, "%s: cells",
                algorithms[i].name) ||
        !errors->len)
        return;
    qsort(errors->data, errors->len, sizeof(double), by_size);
    median = fabs(values[errors->len / 2]);
    worst = fabs(values[errors->len - 1]);
    ok(median <= algorithms[i].median, "%s: median error %.1f %%",
       algorithms[i].name, median);
    ok(worst <= algorithms[i].worst, "%s: worst error %.1f %%",
       algorithms[i].name, worst);
}

int main(void)
{
    const char *source = g_getenv("abs_top_srcdir");
    char *path =
        g_build_filename(source ? source : ".", "doc", "scaling.md", NULL);
    char *text = NULL, **lines;

    for (size_t i = 0; i < G_N_ELEMENTS(algorithms); i++)
        algorithms[i].errors = g_array_new(FALSE, FALSE, sizeof(double));
    if (ok(g_file_get_contents(path, &text, NULL, NULL), "the page is there")) {
        lines = g_strsplit(text, "\n", -1);
        read_page(lines);
        g_strfreev(lines);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(algorithms); i++) {
        check(i);
        g_array_free(algorithms[i].errors, TRUE);
    }
    is_int(rows, ROWS, "rows");
    is_int(found, FOUND, "rows whose fastest algorithm is predicted");
    ok(slower <= SLOWER, "elsewhere the predicted one is %.1f %% slower",
       slower);
    g_free(text);
    g_free(path);
    return tap_done();
}
