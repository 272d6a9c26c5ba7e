/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm tune`: measures settings first, then algorithms with the settings
 * that were found, and then everything that was found beside the defaults once
 * more. The last figures decide what the file gets, because the best of many
 * candidates seems better than it is. */
#include "config.h"

#include "tools/common/tuning.h"
#include "tools/tune/findings.h"
#include "tools/tune/job.h"
#include "tools/tune/series.h"
#include "tools/tune/tune.h"

#include <dscomm/env.h>
#include <dscomm/version.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The parts of the time by whose ends settings, algorithms and everything are
 * measured, and the limits if that is too short for the least number of rounds.
 */
static const struct {
    double end, limit;
} parts[] = {{0.35, 0.5}, {0.75, 0.85}, {1, 1}};
enum { PART_SETTINGS, PART_ALGORITHMS, PART_AGAIN };

#define RANKS_MAX 4096
#define SUBJECT_WIDTH 62

typedef struct {
    const tune_options_t *options;
    char *backend;
    gint64 begin;
    GPtrArray *settings, *algorithms; /* candidates */
    GArray *findings;
    bool is_short; /* too few rounds fitted into the time */
} tune_t;

void tune_progress(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tool_progress(format, args);
    va_end(args);
}

/* Returns the moment after this fraction of the time. */
static gint64 part_end(const tune_t *tune, double fraction)
{
    return tune->begin + (gint64)(tune->options->seconds * fraction * 1e6);
}

static int measure_part(tune_t *tune, const char *what,
                        const GPtrArray *candidates, int part,
                        tune_times_t *ret_times)
{
    return tune_series_measure(
        tune->options, what, candidates, part_end(tune, parts[part].end),
        part_end(tune, parts[part].limit), ret_times, &tune->is_short);
}

static int measure_settings(tune_t *tune)
{
    tune_times_t times;
    int status;

    tune->settings = tune_candidates_settings(tune->backend);
    status =
        measure_part(tune, "settings", tune->settings, PART_SETTINGS, &times);
    if (status == TOOL_OK)
        tune_find_settings(tune->settings, &times, tune->findings);
    tune_times_clear(&times);
    return status;
}

static int measure_algorithms(tune_t *tune)
{
    tune_candidate_t *found = tune_findings_candidate(
        tune->findings, tune->backend, tune->options->ranks);
    tune_times_t times;
    int status;

    tune->algorithms = tune_candidates_algorithms(tune->options->ranks);
    for (guint i = 0; i < tune->algorithms->len; i++) {
        tune_candidate_t *candidate = tune->algorithms->pdata[i];

        candidate->environment = g_strdupv(found->environment);
    }
    tune_candidate_free(found);
    status = measure_part(tune, "algorithms", tune->algorithms, PART_ALGORITHMS,
                          &times);
    if (status == TOOL_OK)
        tune_find_algorithms(tune->algorithms, &times, tune->findings);
    tune_times_clear(&times);
    return status;
}

/* Measures everything that was found beside the defaults. */
static int measure_again(tune_t *tune, guint *ret_unconfirmed)
{
    GPtrArray *both = g_ptr_array_new_with_free_func(tune_candidate_free);
    tune_candidate_t *none = tune_candidate_new(NULL, NULL);
    tune_candidate_t *all = tune_findings_candidate(
        tune->findings, tune->backend, tune->options->ranks);
    tune_times_t times;
    int status;

    memcpy(none->operations, all->operations, sizeof all->operations);
    none->first = all->first;
    none->last = all->last;
    g_ptr_array_add(both, none);
    g_ptr_array_add(both, all);
    status = measure_part(tune, "once more", both, PART_AGAIN, &times);
    if (status == TOOL_OK)
        *ret_unconfirmed = tune_findings_confirm(&times, tune->findings);
    tune_times_clear(&times);
    g_ptr_array_free(both, TRUE);
    return status;
}

/* "DSCOMM_SHM_RING=2M", or "all_reduce, 512 to 4095 bytes: ring". */
static char *finding_subject(const tune_finding_t *finding)
{
    const char *operation;

    if (finding->name)
        return g_strdup_printf("%s=%s", finding->name, finding->value);
    operation = tune_operations[finding->operation];
    if (!tune_operation_is_sized(finding->operation))
        return g_strdup_printf("%s: %s", operation, finding->algorithm);
    return g_strdup_printf(
        "%s, %" G_GSIZE_FORMAT " to %" G_GSIZE_FORMAT " bytes: %s", operation,
        tune_class_from(finding->size_class),
        tune_class_to(finding->size_class), finding->algorithm);
}

static void print_findings(const tune_t *tune, guint unconfirmed)
{
    const GArray *findings = tune->findings;
    char remark[160];

    if (findings->len)
        printf("%-*s %10s %10s %6s\n", SUBJECT_WIDTH, "", "before", "after",
               "ratio");
    for (guint i = 0; i < findings->len; i++) {
        const tune_finding_t *finding =
            &g_array_index(findings, tune_finding_t, i);
        char *subject = finding_subject(finding);

        printf("%-*s %7.1f us %7.1f us %6.2f\n", SUBJECT_WIDTH, subject,
               finding->gain.before, finding->gain.after, finding->gain.ratio);
        g_free(subject);
    }
    if (unconfirmed)
        printf("%u that seemed faster at first %s not.\n", unconfirmed,
               unconfirmed == 1 ? "was" : "were");
    tune_findings_remark(findings, tune->is_short, remark, sizeof remark);
    if (*remark)
        printf("%s\n", remark);
}

/* Returns the lines of the file, to be freed. */
static char **settings_lines(const tune_t *tune)
{
    GPtrArray *lines = g_ptr_array_new();
    char *found = tune_findings_rules(tune->findings, tune->backend,
                                      tune->options->ranks);
    GString *rules = g_string_new(found);

    g_free(found);
    tool_tuning_keep(tune->options->output, tune->backend, tune->options->ranks,
                     rules);
    if (rules->len)
        g_ptr_array_add(lines,
                        g_strdup_printf("DSCOMM_ALGORITHM=%s", rules->str));
    for (guint i = 0; i < tune->findings->len; i++) {
        const tune_finding_t *finding =
            &g_array_index(tune->findings, tune_finding_t, i);

        if (finding->name)
            g_ptr_array_add(
                lines, g_strdup_printf("%s=%s", finding->name, finding->value));
    }
    g_ptr_array_add(lines, NULL);
    g_string_free(rules, TRUE);
    return (char **)g_ptr_array_free(lines, FALSE);
}

static int tune_write(const tune_t *tune)
{
    char **lines = settings_lines(tune);
    char *comment = g_strdup_printf(
        "Made by dscomm tune " DSCOMM_VERSION_STRING
        ", for %d ranks of backend %s on one node; see dscomm-tune(1).",
        tune->options->ranks, tune->backend);
    char *text = tool_tuning_text(comment, lines);
    int status =
        tool_tuning_write("tune", "--output", tune->options->output, text);

    if (status == TOOL_OK)
        printf("Written: %s; DSCOMM_TUNING_FILE=%s makes jobs on machines "
               "like this one use it.\n",
               tune->options->output, tune->options->output);
    g_free(comment);
    g_free(text);
    g_strfreev(lines);
    return status;
}

static int tune_run(tune_t *tune)
{
    guint unconfirmed = 0;
    int status = measure_settings(tune);

    if (status == TOOL_OK)
        status = measure_algorithms(tune);
    if (status == TOOL_OK && tune->findings->len)
        status = measure_again(tune, &unconfirmed);
    if (status != TOOL_OK)
        return status;
    print_findings(tune, unconfirmed);
    if (!tune->is_short || tune->findings->len ||
        !g_file_test(tune->options->output, G_FILE_TEST_IS_REGULAR))
        return tune_write(tune);
    printf("%s stays as it is.\n", tune->options->output);
    return TOOL_FAILED;
}

static int tune_begin(const tune_options_t *options)
{
    tune_t tune = {.options = options, .begin = g_get_monotonic_time()};
    char *problem = NULL;
    int status = tune_job_backend(options, &tune.backend, &problem);

    if (status != TOOL_OK) {
        tool_fail(0, "tune", "%s", problem);
        g_free(problem);
        return status;
    }
    printf("%d ranks of backend %s, %g seconds\n", options->ranks, tune.backend,
           options->seconds);
    fflush(stdout);
    tune.findings = g_array_new(FALSE, FALSE, sizeof(tune_finding_t));
    status = tune_run(&tune);
    g_array_free(tune.findings, TRUE);
    if (tune.settings)
        g_ptr_array_free(tune.settings, TRUE);
    if (tune.algorithms)
        g_ptr_array_free(tune.algorithms, TRUE);
    g_free(tune.backend);
    return status;
}

static int options_check(const tune_options_t *options, int argc, char **argv)
{
    if (argc > 1)
        return tool_fail(TOOL_USAGE, "tune", "unexpected argument '%s'",
                         argv[1]);
    if (options->ranks < 2 || options->ranks > RANKS_MAX)
        return tool_fail(TOOL_USAGE, "tune",
                         "--ranks must be from 2 to %d, not %d", RANKS_MAX,
                         options->ranks);
    if (!(options->seconds >= 1 && options->seconds <= 86400))
        return tool_fail(TOOL_USAGE, "tune",
                         "--time must be from 1 to 86400 seconds");
    if (!*options->output)
        return tool_fail(TOOL_USAGE, "tune", "--output needs a file's name");
    return TOOL_OK;
}

/* Refuses to be a rank of a launcher's job. */
static int launcher_check(void)
{
    dscomm_env_t *env;
    int ranks = 1;

    if (dscomm_env_discover(NULL, &env) == DSCOMM_OK) {
        ranks = dscomm_env_world_size(env);
        dscomm_env_free(env);
    }
    if (ranks <= 1)
        return TOOL_OK;
    return tool_fail(TOOL_USAGE, "tune",
                     "a launcher has started %d ranks, and dscomm tune starts "
                     "its own; run it without a launcher",
                     ranks);
}

static bool options_read(int *argc, char ***argv, tune_options_t *o)
{
    char *file = NULL;
    const GOptionEntry entries[] = {
        {"ranks", 'n', 0, G_OPTION_ARG_INT, &o->ranks,
         "Ranks of the job to tune for (the processors, at least 2)", "N"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &file,
         "File to write (dscomm.tuning)", "FILE"},
        {"time", 't', 0, G_OPTION_ARG_DOUBLE, &o->seconds,
         "Seconds for everything (60)", "S"},
        {"backend", 0, 0, G_OPTION_ARG_STRING, &o->backend, "Backend (auto)",
         "NAME"},
        {"machine", 0, 0, G_OPTION_ARG_NONE, &o->machine,
         "Print what a file says of this machine, and end", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };

    if (!tool_parse(argc, argv, entries, NULL,
                    "Tries algorithms and settings here, and writes those "
                    "that are clearly faster\nthan the defaults to a file "
                    "for DSCOMM_TUNING_FILE.",
                    false, NULL))
        return false;
    o->output = file ? file : g_strdup("dscomm.tuning");
    return true;
}

int tool_tune(int argc, char **argv)
{
    tune_options_t options = {
        .ranks = (int)CLAMP(g_get_num_processors(), 2, RANKS_MAX),
        .seconds = 60,
    };
    int status = TOOL_USAGE;

    if (!options_read(&argc, &argv, &options))
        return TOOL_USAGE;
    if (options.machine) {
        char *text = tool_tuning_machine();

        fputs(text, stdout);
        g_free(text);
        status = TOOL_OK;
    } else {
        status = options_check(&options, argc, argv);
        if (status == TOOL_OK)
            status = launcher_check();
        if (status == TOOL_OK)
            status = tool_tuning_check("tune", "--output", options.output);
        if (status == TOOL_OK)
            status = tune_begin(&options);
    }
    g_free(options.output);
    g_free(options.backend);
    return status;
}
