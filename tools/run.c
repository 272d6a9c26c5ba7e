/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm run`: the command line. */
#include "config.h"

#include "tools/job.h"
#include "tools/tool.h"

#include <string.h>

#define RANKS_MAX 4096

typedef struct {
    int ranks;
    double timeout, grace; /* seconds */
    gboolean tag_output;
    char **argv;
} options_t;

static const char description[] =
    "PROGRAM is searched in PATH and gets ARGUMENTS. The exit status is that "
    "of the\n"
    "first rank that fails (128 + N for signal N), after which the others are\n"
    "ended; 0 if none fails; 124 after --timeout; 125 if dscomm itself fails;\n"
    "126 if PROGRAM cannot be executed, 127 if it is not found; 2 for wrong "
    "use.";

static int check_options(const options_t *options)
{
    if (options->ranks < 1 || options->ranks > RANKS_MAX)
        return tool_fail(TOOL_USAGE, "run",
                         "give the number of ranks, 1 to %d, with -n",
                         RANKS_MAX);
    if (!(options->timeout >= 0 && options->timeout <= 1e9))
        return tool_fail(TOOL_USAGE, "run",
                         "--timeout must be 0 to 1000000000 seconds");
    if (!(options->grace >= 0 && options->grace <= 1e9))
        return tool_fail(TOOL_USAGE, "run",
                         "--grace must be 0 to 1000000000 seconds");
    if (!options->argv[0])
        return tool_fail(TOOL_USAGE, "run",
                         "which program? Usage: dscomm run -n N PROGRAM "
                         "[ARGUMENTS]");
    return TOOL_OK;
}

/* GOption knows "-n 4" and "--ranks=4", people write "-n4" as well. */
static void split_ranks(char **argv)
{
    static const char *const with_value[] = {"-n", "--ranks", "--timeout",
                                             "--grace", NULL};

    for (int i = 1; argv[i] && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--") == 0)
            return;
        if (g_strv_contains(with_value, argv[i]) && argv[i + 1])
            i++;
        if (!g_str_has_prefix(argv[i], "-n") || !g_ascii_isdigit(argv[i][2]))
            continue;
        char *word = g_strdup_printf("--ranks=%s", argv[i] + 2);
        argv[i] = (char *)g_intern_string(word);
        g_free(word);
    }
}

static int read_options(int argc, char **argv, options_t *ret_options)
{
    options_t o = {.grace = 5};
    const GOptionEntry entries[] = {
        {"ranks", 'n', 0, G_OPTION_ARG_INT, &o.ranks,
         "Start N ranks (required)", "N"},
        {"tag-output", 0, 0, G_OPTION_ARG_NONE, &o.tag_output,
         "Put \"[rank]: \" before every line of output", NULL},
        {"timeout", 0, 0, G_OPTION_ARG_DOUBLE, &o.timeout,
         "End all ranks after S seconds; 0 = never", "S"},
        {"grace", 0, 0, G_OPTION_ARG_DOUBLE, &o.grace,
         "Time from SIGTERM to SIGKILL (5 seconds)", "S"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };

    split_ranks(argv);
    if (!tool_parse(&argc, &argv, entries, "PROGRAM [ARGUMENT...]",
                    description))
        return TOOL_USAGE;
    o.argv = argv + 1;
    if (o.argv[0] && strcmp(o.argv[0], "--") == 0)
        o.argv++;
    int status = check_options(&o);
    if (status == TOOL_OK)
        *ret_options = o;
    return status;
}

/* Only 0 becomes 0, which may mean "never". */
static gint64 to_us(double seconds)
{
    gint64 us = (gint64)(seconds * G_USEC_PER_SEC);

    return seconds > 0 ? MAX(us, 1) : 0;
}

int tool_run(int argc, char **argv)
{
    options_t options;
    int status = read_options(argc, argv, &options);

    if (status != TOOL_OK)
        return status;
    const tool_limits_t limits = {
        .timeout_us = to_us(options.timeout),
        .grace_us = to_us(options.grace),
        .tag_output = options.tag_output,
    };
    return tool_job_run("run", options.argv, options.ranks, &limits);
}
