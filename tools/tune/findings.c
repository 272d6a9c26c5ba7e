/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings, see findings.h. */
#include "config.h"

#include "tools/tune/findings.h"

#include <string.h>

#define WORST 0.9 /* ratio of any figure that a setting may worsen */
#define FIGURES ((gsize)TUNE_OPERATIONS * TUNE_CLASSES)

static tune_finding_t *finding_at(const GArray *findings, guint index)
{
    return &g_array_index(findings, tune_finding_t, index);
}

/* Marks the figures that candidate measures. */
static void figures_mark(const tune_candidate_t *candidate, bool *figures)
{
    for (gsize i = 0; i < FIGURES; i++)
        figures[i] = candidate->operations[i / TUNE_CLASSES] &&
                     i % TUNE_CLASSES >= candidate->first &&
                     i % TUNE_CLASSES <= candidate->last;
    for (int i = 0; i < TUNE_OPERATIONS; i++)
        if (!tune_operation_is_sized(i))
            figures[i * TUNE_CLASSES] = candidate->operations[i];
}

/* Adds finding, or lets it replace a worse one about the same thing. */
static void findings_offer(GArray *findings, const tune_finding_t *finding)
{
    for (guint i = 0; i < findings->len; i++) {
        tune_finding_t *other = finding_at(findings, i);

        if (g_strcmp0(other->name, finding->name) ||
            other->operation != finding->operation ||
            other->size_class != finding->size_class)
            continue;
        if (finding->gain.ratio > other->gain.ratio)
            *other = *finding;
        return;
    }
    g_array_append_val(findings, *finding);
}

void tune_find_settings(const GPtrArray *candidates, const tune_times_t *times,
                        GArray *findings)
{
    for (guint i = 1; i < candidates->len; i++) {
        const tune_candidate_t *candidate = candidates->pdata[i];
        tune_finding_t finding = {.name = candidate->name,
                                  .value = candidate->value,
                                  .operation = -1};
        double worst;

        figures_mark(candidate, finding.figures);
        finding.gain = tune_gain_mean(times, i, finding.figures, &worst);
        if (tune_gain_is_clear(&finding.gain) && worst >= WORST)
            findings_offer(findings, &finding);
    }
}

void tune_find_algorithms(const GPtrArray *candidates,
                          const tune_times_t *times, GArray *findings)
{
    for (guint i = 1; i < candidates->len; i++) {
        const tune_candidate_t *candidate = candidates->pdata[i];

        for (gsize figure = 0; figure < FIGURES; figure++) {
            const int operation = (int)(figure / TUNE_CLASSES);
            tune_finding_t finding = {.operation = operation,
                                      .size_class = figure % TUNE_CLASSES,
                                      .algorithm =
                                          candidate->algorithms[operation],
                                      .gain = tune_gain(times, i, figure)};

            finding.figures[figure] = true;
            if (finding.algorithm && tune_gain_is_clear(&finding.gain))
                findings_offer(findings, &finding);
        }
    }
}

/* Takes figures from settings for which an algorithm was found, too: their
 * gain is not the setting's. */
static void figures_divide(GArray *findings)
{
    for (guint i = 0; i < findings->len; i++)
        for (guint other = 0; other < findings->len; other++) {
            tune_finding_t *finding = finding_at(findings, i);

            if (!finding->name || !finding_at(findings, other)->algorithm)
                continue;
            for (gsize figure = 0; figure < FIGURES; figure++)
                finding->figures[figure] =
                    finding->figures[figure] &&
                    !finding_at(findings, other)->figures[figure];
        }
}

guint tune_findings_confirm(const tune_times_t *times, GArray *findings)
{
    const guint before = findings->len;

    figures_divide(findings);
    for (guint i = before; i-- > 0;) {
        tune_finding_t *finding = finding_at(findings, i);
        double worst = 0;

        finding->gain = tune_gain_mean(times, 1, finding->figures, &worst);
        if (!tune_gain_is_clear(&finding->gain) || worst < WORST)
            g_array_remove_index(findings, i);
    }
    return before - findings->len;
}

char *tune_findings_rules(const GArray *findings, const char *backend,
                          int ranks)
{
    GString *rules = g_string_new(NULL);

    for (int operation = 0; operation < TUNE_OPERATIONS; operation++) {
        const char *algorithms[TUNE_CLASSES] = {NULL};

        for (guint i = 0; i < findings->len; i++) {
            const tune_finding_t *finding = finding_at(findings, i);

            if (finding->operation == operation)
                algorithms[finding->size_class] = finding->algorithm;
        }
        tune_rules_append(rules, tune_operations[operation], backend, ranks,
                          tune_operation_is_sized(operation), algorithms);
    }
    return g_string_free(rules, rules->len == 0);
}

/* Lets candidate measure what finding is about. */
static void candidate_widen(tune_candidate_t *candidate,
                            const tune_finding_t *finding)
{
    for (gsize i = 0; i < FIGURES; i++) {
        if (!finding->figures[i])
            continue;
        candidate->operations[i / TUNE_CLASSES] = true;
        candidate->first = MIN(candidate->first, i % TUNE_CLASSES);
        candidate->last = MAX(candidate->last, i % TUNE_CLASSES);
    }
}

tune_candidate_t *tune_findings_candidate(const GArray *findings,
                                          const char *backend, int ranks)
{
    char *rules = tune_findings_rules(findings, backend, ranks);
    tune_candidate_t *candidate =
        tune_candidate_new(rules ? "DSCOMM_ALGORITHM" : NULL, rules);
    GPtrArray *environment = g_ptr_array_new();

    for (guint i = 0; i < findings->len; i++) {
        const tune_finding_t *finding = finding_at(findings, i);

        candidate_widen(candidate, finding);
        if (finding->name)
            g_ptr_array_add(environment, g_strdup_printf("%s=%s", finding->name,
                                                         finding->value));
    }
    g_ptr_array_add(environment, NULL);
    candidate->environment = (char **)g_ptr_array_free(environment, FALSE);
    g_free(rules);
    return candidate;
}

void tune_findings_remark(const GArray *findings, bool is_short, char *text,
                          gsize size)
{
    const char *rest = findings->len
                           ? "what had fewer stays as it is by default"
                           : "nothing follows from fewer";

    *text = 0;
    if (is_short)
        g_snprintf(text, size,
                   "There was not time for %d rounds of everything, and %s: "
                   "give more with --time.",
                   TUNE_ROUNDS_MIN, rest);
    else if (!findings->len)
        g_strlcpy(text, "Nothing is clearly faster than the defaults.", size);
}
