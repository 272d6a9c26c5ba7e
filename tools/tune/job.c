/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of dscomm perf, see job.h. A job for each candidate: rules are read when
 * a job starts, and a job that fails or hangs takes nothing with it. */
#include "config.h"

#include "tools/tune/job.h"

#include "tools/common/json.h"
#include "tools/tune/times.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

/* The deadline of the jobs' operations, in seconds, unless the user has one: a
 * candidate that hangs is left out then. */
#define DEADLINE "20"

/* In the job: it ends with this process. */
static void job_setup(gpointer unused)
{
    (void)unused;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

static char **job_environment(const tune_candidate_t *candidate)
{
    char **environment = g_get_environ();

    environment = g_environ_unsetenv(environment, "DSCOMM_TUNING_FILE");
    environment = g_environ_unsetenv(environment, "DSCOMM_PROFILE");
    environment =
        g_environ_setenv(environment, "DSCOMM_TIMEOUT", DEADLINE, TRUE);
    if (candidate->name)
        environment = g_environ_setenv(environment, candidate->name,
                                       candidate->value, TRUE);
    for (char **one = candidate->environment; one && *one; one++) {
        char **words = g_strsplit(*one, "=", 2);

        environment = g_environ_setenv(environment, words[0], words[1], TRUE);
        g_strfreev(words);
    }
    return environment;
}

/* Begins the command line of a job; the strings are to be freed. */
static GPtrArray *argv_new(const tune_options_t *options)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    char *self = g_file_read_link("/proc/self/exe", NULL);

    g_ptr_array_add(argv, self ? self : g_strdup("dscomm"));
    g_ptr_array_add(argv, g_strdup("perf"));
    g_ptr_array_add(argv, g_strdup_printf("--ranks=%d", options->ranks));
    g_ptr_array_add(argv, g_strdup("--json"));
    g_ptr_array_add(argv, g_strdup("--no-roof"));
    g_ptr_array_add(argv, g_strdup("--check=0"));
    if (options->backend)
        g_ptr_array_add(argv,
                        g_strdup_printf("--backend=%s", options->backend));
    return argv;
}

/* Returns the last line of what a job has written to stderr, or how it ended;
 * frees errors. */
static char *job_problem(char *errors, int status)
{
    GError *error = NULL;
    char *line = strrchr(g_strchomp(errors), '\n'), *problem;

    line = g_strdup(line ? line + 1 : errors);
    g_free(errors);
    if (*line)
        return line;
    g_free(line);
    g_spawn_check_exit_status(status, &error);
    problem = g_strdup(error ? error->message : "it has failed");
    g_clear_error(&error);
    return problem;
}

/* Runs a job; frees argv. Returns its output, or NULL and why. */
static char *job_run(GPtrArray *argv, const tune_candidate_t *candidate,
                     char **ret_problem)
{
    char **environment = job_environment(candidate), *output = NULL,
         *errors = NULL;
    GError *error = NULL;
    int status = 0;

    g_ptr_array_add(argv, NULL);
    if (!g_spawn_sync(NULL, (char **)argv->pdata, environment, G_SPAWN_DEFAULT,
                      job_setup, NULL, &output, &errors, &status, &error)) {
        *ret_problem = g_strdup(error->message);
        g_error_free(error);
    } else if (status) {
        *ret_problem = job_problem(g_steal_pointer(&errors), status);
        g_clear_pointer(&output, g_free);
    }
    g_free(errors);
    g_strfreev(environment);
    g_ptr_array_free(argv, TRUE);
    return output;
}

static void row_take(JsonNode *node, tune_row_fn row, void *arg)
{
    static const char *const places[] = {"out_of_place", "in_place"};
    const int operation =
        tune_operation_find(tool_json_get_text(node, "operation"));
    const gsize bytes = (gsize)tool_json_get_number(node, "bytes");
    double time = 0;

    if (operation < 0 || (!bytes && tune_operation_is_sized(operation)))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
        time += tool_json_get_number(tool_json_get(node, places[i]), "time_us");
    row(operation, tune_class_of(bytes), tool_json_get_text(node, "algorithm"),
        time, arg);
}

/* Parses the output of a job; frees it. */
static JsonParser *output_parse(char *output, char **ret_problem)
{
    JsonParser *parser = json_parser_new();
    GError *error = NULL;

    if (!json_parser_load_from_data(parser, output, -1, &error)) {
        *ret_problem = g_strdup(error->message);
        g_error_free(error);
        g_clear_object(&parser);
    }
    g_free(output);
    return parser;
}

int tune_job_measure(const tune_options_t *options,
                     const tune_candidate_t *candidate, double seconds,
                     tune_row_fn row, void *arg, char **ret_problem)
{
    GPtrArray *argv = argv_new(options);
    JsonParser *parser;
    JsonArray *rows;
    char *output;

    g_ptr_array_add(argv, g_strdup_printf("--time=%f", seconds));
    g_ptr_array_add(argv, g_strdup_printf("--minbytes=%" G_GSIZE_FORMAT,
                                          tune_class_size(candidate->first)));
    g_ptr_array_add(argv, g_strdup_printf("--maxbytes=%" G_GSIZE_FORMAT,
                                          tune_class_size(candidate->last)));
    g_ptr_array_add(argv, g_strdup_printf("--stepfactor=%d", TUNE_FACTOR));
    for (int i = 0; i < TUNE_OPERATIONS; i++)
        if (candidate->operations[i])
            g_ptr_array_add(argv, g_strdup(tune_operations[i]));
    output = job_run(argv, candidate, ret_problem);
    parser = output ? output_parse(output, ret_problem) : NULL;
    if (!parser)
        return TOOL_FAILED;
    rows = tool_json_get_array(json_parser_get_root(parser), "rows");
    for (guint i = 0; rows && i < json_array_get_length(rows); i++)
        row_take(json_array_get_element(rows, i), row, arg);
    g_object_unref(parser);
    return TOOL_OK;
}

int tune_job_backend(const tune_options_t *options, char **ret_backend,
                     char **ret_problem)
{
    tune_candidate_t *none = tune_candidate_new(NULL, NULL);
    GPtrArray *argv = argv_new(options);
    JsonParser *parser;
    char *output;

    g_ptr_array_add(argv, g_strdup("--iters=1"));
    g_ptr_array_add(argv, g_strdup("barrier"));
    output = job_run(argv, none, ret_problem);
    tune_candidate_free(none);
    parser = output ? output_parse(output, ret_problem) : NULL;
    if (!parser)
        return TOOL_FAILED;
    *ret_backend =
        g_strdup(tool_json_get_text(json_parser_get_root(parser), "backend"));
    g_object_unref(parser);
    return TOOL_OK;
}
