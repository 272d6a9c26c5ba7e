/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env`: the rank of this process, for people and programs, and advice
 * on mpirun. */
#include "config.h"

#include "tools/common/tool.h"
#include "tools/env/env.h"
#include "tools/env/mpirun.h"
#include "tools/env/place.h"

#include <dscomm/status.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define NOT_SAID G_MININT
#define RANKS_MOST 4096 /* of a node, for --place */

typedef struct {
    gboolean json, export, exec, explain, mpirun, place;
    int nodes, ranks_per_node; /* or NOT_SAID */
    char *mpirun_path, *bind, *devices, *input;
} options_t;

/* Writes text in one piece, so that lines of ranks that share a pipe do not
 * mix. Frees text. */
static int text_print(GString *text)
{
    size_t left = text->len;
    char *line = g_string_free(text, false), *at = line;
    int status = TOOL_OK;

    while (left && status == TOOL_OK) {
        ssize_t written = write(STDOUT_FILENO, at, left);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            status = tool_fail(TOOL_FAILED, "env", "cannot write: %s",
                               g_strerror(errno));
            continue;
        }
        at += written;
        left -= (size_t)written;
    }
    g_free(line);
    return status;
}

/* Reports wrong use; with JSON as an object. */
static G_GNUC_PRINTF(2, 3) int refuse(const options_t *options,
                                      const char *format, ...)
{
    GString *text = g_string_new(NULL);
    va_list args;
    char *problem;

    va_start(args, format);
    problem = g_strdup_vprintf(format, args);
    va_end(args);
    if (options->json)
        tool_env_mpirun_error(problem, text);
    else
        tool_fail(0, "env", "%s", problem);
    text_print(text);
    g_free(problem);
    return TOOL_USAGE;
}

static int env_show(const dscomm_env_t *env, const options_t *options)
{
    GString *text = g_string_new(NULL);
    int status;

    if (options->json)
        tool_env_print_json(env, options->explain, text);
    else
        tool_env_print(env, options->explain, text);
    status = text_print(text);
    if (status == TOOL_OK && dscomm_env_status(env) < 0)
        status = options->json
                     ? TOOL_FAILED
                     : tool_fail(TOOL_FAILED, "env", "%s", dscomm_last_error());
    return status;
}

/* Exports the values. Warnings, which the table would contain, go to stderr. */
static int env_export(const dscomm_env_t *env)
{
    const char *warning;

    for (size_t i = 0; (warning = dscomm_env_warning(env, i)); i++)
        tool_fail(0, "env", "%s", warning);
    if (dscomm_env_export(env) < 0)
        return tool_fail(TOOL_FAILED, "env", "%s", dscomm_last_error());
    return TOOL_OK;
}

static int print_exports(const dscomm_env_t *env)
{
    int status = env_export(env);
    GString *text;

    if (status != TOOL_OK)
        return status;
    text = g_string_new(NULL);
    tool_env_print_exports(text);
    return text_print(text);
}

/* Prints text; the status of what made it comes first. */
static int text_print_after(int status, GString *text)
{
    int printed = text_print(text);

    return status == TOOL_OK ? printed : status;
}

static tool_env_place_t place_of(const options_t *options)
{
    return (tool_env_place_t){
        .bind = options->bind,
        .devices = options->devices,
        .input = options->input,
        .ranks = MAX(options->ranks_per_node, 0),
        .json = options->json,
    };
}

static int show_placement(const dscomm_env_t *env, const options_t *options)
{
    const tool_env_place_t place = place_of(options);
    GString *text = g_string_new(NULL);

    return text_print_after(tool_env_place(env, &place, text), text);
}

static int env_execute(const dscomm_env_t *env, const options_t *options,
                       char **argv)
{
    const tool_env_place_t place = place_of(options);
    int status = env_export(env);

    if (status == TOOL_OK && options->place)
        status = tool_env_bind(env, &place);
    if (status != TOOL_OK)
        return status;
    execvp(argv[0], argv);
    return tool_fail(errno == ENOENT ? TOOL_NOT_FOUND : TOOL_NOT_EXECUTABLE,
                     "env", "cannot execute '%s': %s", argv[0],
                     g_strerror(errno));
}

static int env_advise(const options_t *options, char **argv)
{
    const tool_env_mpirun_t asked = {
        .program = options->mpirun_path,
        .nodes = MAX(options->nodes, 0),
        .ranks_per_node = MAX(options->ranks_per_node, 0),
        .json = options->json,
        .given = argv,
    };
    GString *text = g_string_new(NULL);

    return text_print_after(tool_env_mpirun(&asked, text), text);
}

/* Returns 0 for a number that was not given; a given 0 is an error. */
static int number_given(int number)
{
    return number == NOT_SAID ? 0 : number == 0 ? -1 : number;
}

static int env_check_options(const options_t *o, char **argv)
{
    const struct {
        bool broken;
        const char *sentence;
    } rules[] = {
        {o->mpirun && (o->export || o->exec || o->explain || o->place),
         "--mpirun goes with --json, --nodes, --ranks-per-node and "
         "--mpirun-path only"},
        {!o->mpirun && (o->nodes != NOT_SAID || o->mpirun_path),
         "--nodes and --mpirun-path go with --mpirun"},
        {!o->mpirun && !o->place && o->ranks_per_node != NOT_SAID,
         "--ranks-per-node goes with --mpirun or --place"},
        {o->place && (o->export || o->explain),
         "--place goes with neither --export nor --explain"},
        {!o->place && (o->bind || o->devices || o->input),
         "--bind, --device and --input go with --place"},
        {o->place && o->ranks_per_node != NOT_SAID &&
             (o->ranks_per_node < 1 || o->ranks_per_node > RANKS_MOST),
         "--ranks-per-node must be 1 to 4096"},
        {o->exec && (o->input || o->ranks_per_node != NOT_SAID),
         "--exec binds this rank on this machine, and goes with neither "
         "--input "
         "nor --ranks-per-node"},
        {o->json + o->export + o->exec > 1,
         "--json, --export and --exec exclude each other"},
        {o->explain && (o->export || o->exec),
         "--explain goes with neither --export nor --exec"},
        {o->exec && !argv[0], "which program? Usage: dscomm env --exec PROGRAM "
                              "[ARGUMENT...]"},
    };
    char *problem = NULL;
    int status = TOOL_OK;

    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++)
        if (rules[i].broken)
            return refuse(o, "%s", rules[i].sentence);
    if (!o->mpirun && !o->exec && argv[0])
        return refuse(o, "unexpected argument '%s'; --exec runs a program",
                      argv[0]);
    if (o->mpirun)
        problem = tool_advice_check(number_given(o->nodes),
                                    number_given(o->ranks_per_node));
    if (problem)
        status = refuse(o, "%s", problem);
    g_free(problem);
    return status;
}

static int env_run(const options_t *options, char **argv)
{
    dscomm_env_attr_t attr = DSCOMM_ENV_ATTR_INIT;
    dscomm_env_t *env;
    int status;

    attr.tolerate = 1;
    if (dscomm_env_discover(&attr, &env) < 0)
        return tool_fail(TOOL_FAILED, "env", "%s", dscomm_last_error());
    if (options->exec)
        status = env_execute(env, options, argv);
    else if (options->export)
        status = print_exports(env);
    else if (options->place)
        status = show_placement(env, options);
    else
        status = env_show(env, options);
    dscomm_env_free(env);
    return status;
}

/* Whether --json is given, also if options before it are wrong. */
static bool wants_json(char *const *argv)
{
    static const char *const valued[] = {
        "--bind",           "--device",      "--input", "--nodes",
        "--ranks-per-node", "--mpirun-path", NULL};

    while (*++argv && **argv == '-' && strcmp(*argv, "--") != 0) {
        if (strcmp(*argv, "--json") == 0)
            return true;
        if (g_strv_contains(valued, *argv) && !*++argv)
            return false;
    }
    return false;
}

static bool env_parse(int *argc, char ***argv, options_t *o, char **ret_problem)
{
    const GOptionEntry entries[] = {
        {"explain", 0, 0, G_OPTION_ARG_NONE, &o->explain,
         "Tell of each source why it was taken or not", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o->json,
         "Print it as JSON, one line", NULL},
        {"export", 0, 0, G_OPTION_ARG_NONE, &o->export,
         "Print commands for eval \"$(dscomm env --export)\"", NULL},
        {"exec", 0, 0, G_OPTION_ARG_NONE, &o->exec,
         "Run PROGRAM with RANK, WORLD_SIZE, ... set", NULL},
        {"place", 0, 0, G_OPTION_ARG_NONE, &o->place,
         "Print on which processors this rank should run, and the nearest NIC; "
         "with --exec, bind to them",
         NULL},
        {"bind", 0, 0, G_OPTION_ARG_STRING, &o->bind,
         "With --place: to a share of this, as DSCOMM_BIND (numa, core, "
         "socket, gpu, 0-3,8; force:numa)",
         "OBJECT"},
        {"device", 0, 0, G_OPTION_ARG_STRING, &o->devices,
         "With --place: near this device, or the node's devices in the order "
         "of its ranks",
         "PCI[,PCI...]"},
        {"input", 0, 0, G_OPTION_ARG_FILENAME, &o->input,
         "With --place: the machine is that of a file of hwloc's XML (lstopo)",
         "FILE"},
        {"mpirun", 0, 0, G_OPTION_ARG_NONE, &o->mpirun,
         "Print how to start a job with the installed mpirun, and why", NULL},
        {"nodes", 0, 0, G_OPTION_ARG_INT, &o->nodes,
         "With --mpirun: on so many nodes", "N"},
        {"ranks-per-node", 0, 0, G_OPTION_ARG_INT, &o->ranks_per_node,
         "With --mpirun: so many ranks on each; with --place: show all of so "
         "many",
         "K"},
        {"mpirun-path", 0, 0, G_OPTION_ARG_FILENAME, &o->mpirun_path,
         "With --mpirun: this one instead of those in PATH", "PROG"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };

    return tool_parse(
        argc, argv, entries, "[PROGRAM [ARGUMENT...]]",
        "With --exec, PROGRAM is searched in PATH and takes this process's "
        "place. With --mpirun, old arguments of mpirun may follow \"--\", and "
        "are judged.",
        true, ret_problem);
}

int tool_env(int argc, char **argv)
{
    options_t o = {.nodes = NOT_SAID, .ranks_per_node = NOT_SAID};
    bool json = wants_json(argv);
    char *problem = NULL;
    int status;

    if (!env_parse(&argc, &argv, &o, &problem)) {
        o.json = json;
        status = refuse(&o, "%s", problem);
        g_free(problem);
        return status;
    }
    argv++;
    if (argv[0] && strcmp(argv[0], "--") == 0)
        argv++;
    status = env_check_options(&o, argv);
    if (status == TOOL_OK)
        status = o.mpirun ? env_advise(&o, argv) : env_run(&o, argv);
    g_free(o.bind);
    g_free(o.devices);
    g_free(o.input);
    g_free(o.mpirun_path);
    return status;
}
