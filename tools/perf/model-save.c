/* SPDX-License-Identifier: BSD-3-Clause */
/* The tuning file of dscomm perf --model: rules for numbers of ranks that were
 * not measured. What the file has already stays: it may come from dscomm tune,
 * which measures. */
#include "config.h"

#include "lib/base/tuning.h"
#include "tools/common/tuning.h"
#include "tools/perf/model-run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whether the backend has a collective of its own, which the model lacks. */
static bool is_native(const perf_prediction_t *p,
                      const perf_operation_t *operation)
{
    for (guint i = 0; i < p->trials->len; i++) {
        const perf_trial_t *trial = &g_array_index(p->trials, perf_trial_t, i);

        if (trial->operation == operation && isnan(trial->predicted))
            return true;
    }
    return false;
}

static void rule_add(GPtrArray *rules, const perf_prediction_t *p,
                     const perf_operation_t *operation, int ranks,
                     const perf_span_t *span)
{
    char *range = operation->coll == DSCOMM_COLL_BARRIER
                      ? g_strdup("")
                      : g_strdup_printf("%.0f-%.0f:", span->from, span->to);

    g_ptr_array_add(rules,
                    g_strdup_printf("%s@%s/%d:%s%s", operation->name,
                                    p->backend, ranks, range, span->algorithm));
    g_free(range);
}

static void operation_add(GPtrArray *rules, const perf_prediction_t *p,
                          const perf_operation_t *operation, int ranks)
{
    GArray *spans = perf_model_spans(p, operation, ranks, true);

    for (guint i = 0; i < spans->len; i++) {
        const perf_span_t *span = &g_array_index(spans, perf_span_t, i);

        if (span->algorithm)
            rule_add(rules, p, operation, ranks, span);
    }
    g_array_unref(spans);
}

/* Whether there is a rule of a collective for groups of so many ranks only. */
static bool rules_have(char *const *rules, const perf_prediction_t *p,
                       const perf_operation_t *operation, int ranks)
{
    for (; *rules; rules++)
        if (tool_tuning_rule_is_for(*rules, operation->name, p->backend, ranks))
            return true;
    return false;
}

static void count_add(GPtrArray *rules, const perf_prediction_t *p,
                      char *const *before, int ranks)
{
    for (size_t i = 0; p->options->operations[i]; i++) {
        const perf_operation_t *operation = p->options->operations[i];

        if (rules_have(before, p, operation, ranks))
            fprintf(stderr,
                    "dscomm perf: %s has rules of %s for %d ranks, which "
                    "stay\n",
                    p->options->model_save, operation->name, ranks);
        else if (!is_native(p, operation))
            operation_add(rules, p, operation, ranks);
    }
}

static void natives_warn(const perf_prediction_t *p)
{
    for (size_t i = 0; p->options->operations[i]; i++)
        if (is_native(p, p->options->operations[i]))
            fprintf(stderr,
                    "dscomm perf: backend %s has %s of its own, which the "
                    "model lacks; no rules are saved for it\n",
                    p->backend, p->options->operations[i]->name);
}

/* The settings of a file but for its rules. */
static void settings_keep(GPtrArray *settings, GKeyFile *file)
{
    char **names =
        file ? g_key_file_get_keys(file, DSCOMM_TUNING_SETTINGS, NULL, NULL)
             : NULL;

    for (char **name = names; name && *name; name++) {
        char *value =
            g_key_file_get_value(file, DSCOMM_TUNING_SETTINGS, *name, NULL);

        if (strcmp(*name, "DSCOMM_ALGORITHM") != 0)
            g_ptr_array_add(settings, g_strdup_printf("%s=%s", *name, value));
        g_free(value);
    }
    g_strfreev(names);
}

/* Returns "DSCOMM_ALGORITHM=...", or NULL if there are no rules. The first rule
 * that matches applies, so new ones come first: what the file has may be for
 * more groups. */
static char *rules_line(const perf_prediction_t *p, GKeyFile *file)
{
    GPtrArray *rules = g_ptr_array_new_with_free_func(g_free);
    char **before = tool_tuning_rules(file), *list, *line = NULL;

    for (guint k = 0; k < p->counts->len; k++)
        count_add(rules, p, before, g_array_index(p->counts, int, k));
    for (char **rule = before; *rule; rule++)
        g_ptr_array_add(rules, g_strdup(*rule));
    if (rules->len) {
        g_ptr_array_add(rules, NULL);
        list = g_strjoinv(",", (char **)rules->pdata);
        line = g_strdup_printf("DSCOMM_ALGORITHM=%s", list);
        g_free(list);
    }
    g_strfreev(before);
    g_ptr_array_free(rules, TRUE);
    return line;
}

int perf_model_save(const perf_prediction_t *p)
{
    const char *path = p->options->model_save;
    GKeyFile *file = tool_tuning_load(path);
    GPtrArray *settings = g_ptr_array_new_with_free_func(g_free);
    char *line = rules_line(p, file), *text;
    int status;

    natives_warn(p);
    if (line)
        g_ptr_array_add(settings, line);
    settings_keep(settings, file);
    g_ptr_array_add(settings, NULL);
    text = tool_tuning_text(
        "Predicted by dscomm perf --model " DSCOMM_VERSION_STRING
        ", or measured by dscomm tune.",
        (char **)settings->pdata);
    if (strlen(text) > DSCOMM_TUNING_MAX)
        status = tool_fail(TOOL_FAILED, "perf",
                           "--model-save %s: the rules need more than %d "
                           "bytes; give fewer numbers by --model-ranks",
                           path, DSCOMM_TUNING_MAX);
    else
        status = tool_tuning_write("perf", "--model-save", path, text);
    g_free(text);
    g_ptr_array_free(settings, TRUE);
    if (file)
        g_key_file_free(file);
    return status;
}
