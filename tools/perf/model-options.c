/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of the model, see model-run.h. */
#include "config.h"

#include "tools/common/tuning.h"
#include "tools/perf/model-run.h"

#include <math.h>
#include <string.h>

#define RANKS_MAX 1048576

bool perf_model_is_asked(const perf_options_t *o)
{
    return o->model || o->model_parameters || o->model_ranks || o->model_save;
}

bool perf_model_has(const perf_operation_t *operation)
{
    const char *name;
    int coll;

    for (size_t i = 0; (name = perf_model_algorithm(i, &coll)); i++)
        if (coll == operation->coll && !(operation->flags & PERF_UNEVEN))
            return true;
    return false;
}

static int check_operations(const perf_options_t *o)
{
    for (size_t i = 0; o->operations[i]; i++)
        if (!perf_model_has(o->operations[i]))
            return tool_fail(TOOL_USAGE, "perf",
                             "--model: %s is not in the model; collectives of "
                             "equal parts are, and barrier",
                             o->operations[i]->name);
    return TOOL_OK;
}

static int check_types(const perf_options_t *o)
{
    for (int i = 0; i < DSCOMM_DTYPE_COUNT; i++)
        if (o->dtypes[i] != (i == DSCOMM_FLOAT32))
            return tool_fail(TOOL_USAGE, "perf",
                             "--model and -d exclude each other: the model is "
                             "of float32");
    for (int i = 0; i < DSCOMM_OP_COUNT; i++)
        if (o->ops[i] != (i == DSCOMM_SUM))
            return tool_fail(TOOL_USAGE, "perf",
                             "--model and -o exclude each other: the model is "
                             "of sums");
    return TOOL_OK;
}

/* The parameters by their names. */
typedef struct {
    double alpha, beta, gap, near_alpha, near_beta, gamma, delta, local;
} given_t;

static const struct {
    const char *name;
    size_t offset;
    double max;
} parameters[] = {
    {"alpha", offsetof(given_t, alpha), 1},
    {"beta", offsetof(given_t, beta), 1},
    {"gap", offsetof(given_t, gap), 1},
    {"near_alpha", offsetof(given_t, near_alpha), 1},
    {"near_beta", offsetof(given_t, near_beta), 1},
    {"gamma", offsetof(given_t, gamma), 1},
    {"delta", offsetof(given_t, delta), 1},
    {"local", offsetof(given_t, local), RANKS_MAX},
};

static double *given_member(given_t *given, size_t i)
{
    return (double *)(void *)((char *)given + parameters[i].offset);
}

/* Reads "beta=84e-12". */
static int read_parameter(const char *word, given_t *given)
{
    const char *equals = strchr(word, '=');
    size_t i = 0;
    double number;
    char *end;

    while (equals && i < G_N_ELEMENTS(parameters) &&
           (strncmp(word, parameters[i].name, (size_t)(equals - word)) != 0 ||
            parameters[i].name[equals - word]))
        i++;
    if (!equals || i == G_N_ELEMENTS(parameters))
        return tool_fail(TOOL_USAGE, "perf",
                         "--model-parameters: '%s' is no parameter; there are "
                         "alpha, beta, gap, near_alpha, near_beta, gamma and "
                         "delta, in seconds, and local, such as alpha=1e-6",
                         word);
    number = g_ascii_strtod(equals + 1, &end);
    if (!strchr(".0123456789", equals[1]) || end == equals + 1 || *end ||
        !(number <= parameters[i].max) ||
        (parameters[i].max > 1 && (number < 1 || number != floor(number))))
        return tool_fail(
            TOOL_USAGE, "perf", "--model-parameters: %s must be a %s, not '%s'",
            parameters[i].name,
            parameters[i].max > 1 ? "whole number of ranks from 1 on"
                                  : "number of seconds from 0 to 1",
            equals + 1);
    *given_member(given, i) = number;
    return TOOL_OK;
}

static perf_link_t link_given(double alpha, double beta, double gap)
{
    const perf_cost_t cost = {.pieces = {{alpha, beta}}, .split = INFINITY};

    return (perf_link_t){.one_way = cost, .both_ways = cost, .gap = gap};
}

/* Sets the model; what was not given follows from what was. */
static void set_given(perf_prediction_t *p, const given_t *g)
{
    const double near_alpha = isnan(g->near_alpha) ? g->alpha : g->near_alpha;
    const double near_beta = isnan(g->near_beta) ? g->beta : g->near_beta;

    p->model.far =
        link_given(g->alpha, g->beta, isnan(g->gap) ? g->alpha : g->gap);
    p->model.near =
        link_given(near_alpha, near_beta, isnan(g->gap) ? near_alpha : g->gap);
    p->model.gamma = g->gamma;
    p->model.delta = isnan(g->delta) ? g->gamma : g->delta;
    p->local = (int)g->local;
}

static int read_parameters(perf_prediction_t *p)
{
    given_t given = {.alpha = NAN,
                     .beta = NAN,
                     .gap = NAN,
                     .near_alpha = NAN,
                     .near_beta = NAN,
                     .delta = NAN,
                     .local = 1};
    char **words = g_strsplit(p->options->model_parameters, ",", -1);
    int status = TOOL_OK;

    for (char **word = words; *word && status == TOOL_OK; word++)
        status = read_parameter(g_strstrip(*word), &given);
    g_strfreev(words);
    if (status == TOOL_OK && (isnan(given.alpha) || isnan(given.beta)))
        status = tool_fail(TOOL_USAGE, "perf",
                           "--model-parameters needs alpha and beta at least, "
                           "such as alpha=1e-6,beta=84e-12");
    if (status == TOOL_OK)
        set_given(p, &given);
    return status;
}

/* Adds a number of ranks, once. */
static void count_add(GArray *counts, int ranks)
{
    for (guint i = 0; i < counts->len; i++)
        if (g_array_index(counts, int, i) == ranks)
            return;
    g_array_append_val(counts, ranks);
}

static int read_count(const char *word, GArray *counts)
{
    guint64 ranks;

    if (!g_ascii_string_to_unsigned(word, 10, 2, RANKS_MAX, &ranks, NULL))
        return tool_fail(TOOL_USAGE, "perf",
                         "--model-ranks: '%s' is no number of ranks from 2 to "
                         "%d; write such as 16,64,256",
                         word, RANKS_MAX);
    count_add(counts, (int)ranks);
    return TOOL_OK;
}

int perf_model_read(perf_prediction_t *p)
{
    const char *list = p->options->model_ranks;
    char **words = g_strsplit(list ? list : "16,64,256,1024", ",", -1);
    int status = TOOL_OK;

    p->counts = g_array_new(FALSE, FALSE, sizeof(int));
    if (!list && p->ranks > 1)
        count_add(p->counts, p->ranks);
    for (char **word = words; *word && status == TOOL_OK; word++)
        status = read_count(g_strstrip(*word), p->counts);
    g_strfreev(words);
    if (status == TOOL_OK && !p->counts->len)
        status = read_count("", p->counts);
    if (status == TOOL_OK && p->options->model_parameters)
        status = read_parameters(p);
    return status;
}

static bool is_backend(const char *name)
{
    dscomm_backend_info_t info = {.size = sizeof info};

    for (size_t i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++)
        if (g_ascii_strcasecmp(info.name, name) == 0)
            return true;
    return false;
}

static int check_save(const perf_options_t *o)
{
    if (!o->model_save)
        return TOOL_OK;
    if (!*o->model_save)
        return tool_fail(TOOL_USAGE, "perf",
                         "--model-save needs a file's name");
    if (!o->model_parameters)
        return TOOL_OK;
    if (!o->backend || strcmp(o->backend, "auto") == 0)
        return tool_fail(TOOL_USAGE, "perf",
                         "--model-save: rules are for one backend; name it "
                         "by --backend");
    if (!is_backend(o->backend))
        return tool_fail(TOOL_USAGE, "perf",
                         "--model-save: there is no backend '%s'; dscomm info "
                         "lists them",
                         o->backend);
    return TOOL_OK;
}

int perf_model_check(perf_options_t *o)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {
        {"--compress", o->compress != NULL},
        {"-m", o->aggregate > 1},
        {"--overlap", o->overlap},
        {"--async", o->async},
        {"--csv", o->csv},
        {"--save", o->save != NULL},
        {"--against", o->against != NULL},
        {"-r", o->root != 0},
        {"--compare", o->compare},
        {"--plot", o->plot != NULL},
        {"--accelerator", o->accelerator != NULL},
        {"several numbers of ranks", o->sweep || o->part},
        {"-n", o->model_parameters && o->ranks},
    };
    perf_prediction_t p = {.options = o};
    int status;

    o->model = TRUE;
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (others[i].given)
            return tool_fail(TOOL_USAGE, "perf", "%s and %s exclude each other",
                             o->model_parameters ? "--model-parameters"
                                                 : "--model",
                             others[i].name);
    status = check_save(o);
    if (status == TOOL_OK)
        status = check_types(o);
    if (status == TOOL_OK)
        status = check_operations(o);
    if (status == TOOL_OK)
        status = perf_model_read(&p);
    if (p.counts)
        g_array_unref(p.counts);
    if (status == TOOL_OK && o->model_save)
        status = tool_tuning_check("perf", "--model-save", o->model_save);
    return status;
}
