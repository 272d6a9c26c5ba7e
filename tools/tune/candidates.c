/* SPDX-License-Identifier: BSD-3-Clause */
/* Candidates, see candidates.h. */
#include "config.h"

#include "tools/tune/candidates.h"
#include "tools/tune/times.h"

#include <dscomm/info.h>
#include <string.h>

const char *const tune_operations[TUNE_OPERATIONS + 1] = {
    "broadcast",      "reduce",  "all_reduce", "all_gather",
    "reduce_scatter", "gather",  "scatter",    "all_to_all",
    "barrier",        "latency", "sendrecv",   NULL,
};

/* The settings of backends, with other values than the default, and what
 * depends on them. Only rows of DSCOMM_SETTING_TUNABLE. */
static const struct {
    const char *backend, *name, *values, *operations;
    gsize first, last; /* classes */
} settings[] = {
    {"shm", "DSCOMM_SHM_RING", "1M 2M 8M", "all_reduce all_gather all_to_all",
     3, 5},
    {"shm", "DSCOMM_SHM_CHANNEL", "1M 8M", "latency sendrecv", 3, 5},
    {"shm", "DSCOMM_SHM_STORE", "plain stream",
     "all_reduce all_gather sendrecv", 3, 5},
    {"shm", "DSCOMM_SHM_SINGLE_COPY", "no yes",
     "broadcast all_gather all_to_all sendrecv", 3, 5},
    {"tcp", "DSCOMM_TCP_CONNECTIONS", "2 4", "all_reduce sendrecv", 4, 5},
    {"tcp", "DSCOMM_TCP_ZEROCOPY", "0", "all_reduce sendrecv", 4, 5},
};

int tune_operation_find(const char *name)
{
    for (int i = 0; name && i < TUNE_OPERATIONS; i++)
        if (!strcmp(tune_operations[i], name))
            return i;
    return -1;
}

bool tune_operation_is_sized(int operation)
{
    return strcmp(tune_operations[operation], "barrier") != 0;
}

tune_candidate_t *tune_candidate_new(const char *name, const char *value)
{
    tune_candidate_t *candidate = g_new0(tune_candidate_t, 1);

    candidate->name = g_strdup(name);
    candidate->value = g_strdup(value);
    candidate->first = TUNE_CLASSES - 1;
    return candidate;
}

void tune_candidate_free(gpointer candidate)
{
    tune_candidate_t *c = candidate;

    g_free(c->name);
    g_free(c->value);
    g_strfreev(c->environment);
    g_free(c);
}

/* Lets candidate measure what other does, too. */
static void candidate_widen(tune_candidate_t *candidate,
                            const tune_candidate_t *other)
{
    for (int i = 0; i < TUNE_OPERATIONS; i++)
        candidate->operations[i] |= other->operations[i];
    candidate->first = MIN(candidate->first, other->first);
    candidate->last = MAX(candidate->last, other->last);
}

static bool setting_is_given(const char *name)
{
    const char *value = g_getenv(name);

    return value && *value;
}

static GPtrArray *candidates_new(void)
{
    GPtrArray *candidates = g_ptr_array_new_with_free_func(tune_candidate_free);

    g_ptr_array_add(candidates, tune_candidate_new(NULL, NULL));
    return candidates;
}

static void candidates_add(GPtrArray *candidates, tune_candidate_t *candidate)
{
    candidate_widen(candidates->pdata[0], candidate);
    g_ptr_array_add(candidates, candidate);
}

/* Adds a candidate for each value of row number row. */
static void add_setting(GPtrArray *candidates, size_t row)
{
    char **values = g_strsplit(settings[row].values, " ", -1);
    char **operations = g_strsplit(settings[row].operations, " ", -1);

    for (char **value = values; *value; value++) {
        tune_candidate_t *candidate =
            tune_candidate_new(settings[row].name, *value);

        candidate->first = settings[row].first;
        candidate->last = settings[row].last;
        for (char **operation = operations; *operation; operation++)
            candidate->operations[tune_operation_find(*operation)] = true;
        candidates_add(candidates, candidate);
    }
    g_strfreev(values);
    g_strfreev(operations);
}

GPtrArray *tune_candidates_settings(const char *backend)
{
    GPtrArray *candidates = candidates_new();

    for (size_t i = 0; i < G_N_ELEMENTS(settings); i++)
        if (!strcmp(settings[i].backend, backend) &&
            !setting_is_given(settings[i].name))
            add_setting(candidates, i);
    return candidates;
}

/* Returns algorithm number index of a collective that so many ranks of one node
 * can use, or NULL. */
static const char *find_algorithm(const char *collective, int ranks, int index)
{
    dscomm_algorithm_info_t info = {.size = sizeof info};

    for (size_t i = 0; dscomm_algorithm_info(i, &info) == DSCOMM_OK; i++)
        if (!strcmp(dscomm_coll_name((dscomm_coll_t)info.coll), collective) &&
            (!info.power_of_two || !(ranks & (ranks - 1))) &&
            !info.two_levels && index-- == 0)
            return info.name;
    return NULL;
}

/* Returns a candidate with algorithm number index of each collective that has
 * so many; NULL if none has. */
static tune_candidate_t *algorithms_new(int ranks, int index)
{
    tune_candidate_t *candidate = tune_candidate_new("DSCOMM_ALGORITHM", NULL);
    GString *rules = g_string_new(NULL);

    candidate->first = 0;
    candidate->last = TUNE_CLASSES - 1;
    for (int i = 0; i < TUNE_OPERATIONS; i++) {
        const char *name = find_algorithm(tune_operations[i], ranks, index);

        if (!name)
            continue;
        candidate->operations[i] = true;
        candidate->algorithms[i] = name;
        g_string_append_printf(rules, "%s%s:%s", rules->len ? "," : "",
                               tune_operations[i], name);
    }
    candidate->value = g_string_free(rules, FALSE);
    if (*candidate->value)
        return candidate;
    tune_candidate_free(candidate);
    return NULL;
}

GPtrArray *tune_candidates_algorithms(int ranks)
{
    GPtrArray *candidates = candidates_new();
    tune_candidate_t *candidate;

    if (setting_is_given("DSCOMM_ALGORITHM"))
        return candidates;
    for (int i = 0; (candidate = algorithms_new(ranks, i)); i++)
        candidates_add(candidates, candidate);
    return candidates;
}
