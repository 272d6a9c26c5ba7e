/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm topo: the devices of a machine, and how each pair is connected. */
#include "config.h"

#include "tools/common/tool.h"
#include "tools/topo/machine.h"
#include "tools/topo/matrix.h"
#include "tools/topo/nccl.h"
#include "tools/topo/nvml.h"
#include "tools/topo/output.h"
#include "tools/topo/p2p/p2p.h"
#include "tools/topo/picture.h"

#include <string.h>

#define INPUT_MOST ((gsize)64 << 20) /* bytes of a file */

/* The forms of a tree but pictures. */
static void (*const appends[TOPO_FORMAT_PICTURE])(const topo_tree_t *tree,
                                                  GString *text) = {
    [TOPO_FORMAT_TEXT] = topo_text,
    [TOPO_FORMAT_JSON] = topo_json,
    [TOPO_FORMAT_DOT] = topo_dot,
    [TOPO_FORMAT_NCCL] = topo_nccl_write,
};

typedef struct {
    const char *command; /* of which this is the main program */
    char *input, *output, *format;
    gboolean json, p2p;
    topo_p2p_t copies; /* with p2p */
} options_t;

/* Reads hwloc's or NCCL's XML. */
static topo_tree_t *tree_read(const char *path, char **ret_problem)
{
    GError *error = NULL;
    topo_tree_t *tree = NULL;
    char *text = NULL;
    gsize length = 0;

    if (!g_file_get_contents(path, &text, &length, &error)) {
        *ret_problem = g_strdup(error->message);
        g_error_free(error);
    } else if (length > INPUT_MOST) {
        *ret_problem = g_strdup_printf("%s: it is larger than 64 MiB", path);
    } else if (strlen(text) != length) {
        *ret_problem = g_strdup_printf("%s: it is no XML", path);
    } else if (topo_is_nccl(text)) {
        tree = topo_nccl_read(path, text, ret_problem);
    } else {
        tree = topo_machine(path, ret_problem);
    }
    g_free(text);
    return tree;
}

static topo_tree_t *tree_of(const options_t *options, char **ret_problem)
{
    topo_tree_t *tree = options->input ? tree_read(options->input, ret_problem)
                                       : topo_machine(NULL, ret_problem);

    if (tree && !options->input)
        topo_nvml_add(tree);
    return tree;
}

static int tree_write(const options_t *options, topo_format_t format,
                      const topo_tree_t *tree)
{
    GString *text = g_string_new(NULL);
    int status;

    appends[format](tree, text);
    status = topo_output_write(options->command, "--output", options->output,
                               text->str);
    g_string_free(text, TRUE);
    return status;
}

static int topo_show(const options_t *options, topo_format_t format)
{
    char *problem = NULL;
    topo_tree_t *tree = tree_of(options, &problem);
    int status = TOOL_OK;

    if (tree && format == TOPO_FORMAT_PICTURE)
        problem = topo_picture(tree, options->output);
    else if (tree)
        status = tree_write(options, format, tree);
    if (problem)
        status = tool_fail(TOOL_FAILED, options->command, "%s", problem);
    g_free(problem);
    topo_tree_free(tree);
    return status;
}

/* Returns what is wrong with the options, or NULL. */
static const char *options_problem(const options_t *o)
{
    const topo_p2p_t *c = &o->copies;

    if (o->p2p)
        return o->input && (c->host || c->ranks)
                   ? "--input gives the paths between devices: it cannot be "
                     "used with --host and --ranks"
                   : NULL;
    if (c->host || c->ranks || c->backend || c->trace ||
        c->rank_count != TOPO_NOT_GIVEN || c->tensors != TOPO_NOT_GIVEN ||
        c->iterations != TOPO_NOT_GIVEN || c->warmups != TOPO_NOT_GIVEN ||
        c->most != TOPO_NOT_GIVEN || c->elements != TOPO_NOT_GIVEN)
        return "options of copies need --p2p";
    return NULL;
}

static int copies_show(options_t *options, char **words)
{
    topo_p2p_t *copies = &options->copies;
    char *problem = NULL;
    topo_tree_t *tree = NULL;
    int status;

    copies->command = options->command;
    copies->output = options->output;
    copies->format = options->format;
    if (!copies->host && !copies->ranks)
        tree = tree_of(options, &problem);
    copies->tree = tree;
    status = problem ? tool_fail(TOOL_FAILED, options->command, "%s", problem)
                     : topo_p2p(copies, words);
    g_free(problem);
    topo_tree_free(tree);
    return status;
}

static int topo_run(options_t *options, char **words)
{
    const char *problem = options_problem(options);
    topo_format_t format;

    if (problem)
        return tool_fail(TOOL_USAGE, options->command, "%s", problem);
    if (options->json && options->format && strcmp(options->format, "json"))
        return tool_fail(TOOL_USAGE, options->command,
                         "--json and --format %s exclude each other",
                         options->format);
    if (options->json && !options->format)
        options->format = g_strdup("json");
    if (!g_strcmp0(options->output, "-"))
        g_clear_pointer(&options->output, g_free);
    if (options->p2p)
        return copies_show(options, words);
    format = topo_format_find(options->format, options->output);
    if (format < TOPO_FORMATS)
        return topo_show(options, format);
    return options->format
               ? tool_fail(TOOL_USAGE, options->command,
                           "--format must be text, json, dot or nccl, not '%s'",
                           options->format)
               : tool_fail(TOOL_USAGE, options->command,
                           "--output %s: a picture's name ends in .svg or .png",
                           options->output);
}

/* Removes --pairs. */
static void pairs_remove(int *argc, char **argv)
{
    int count = 0;

    for (int i = 0; i < *argc; i++)
        if (strcmp(argv[i], "--pairs") != 0)
            argv[count++] = argv[i];
    argv[count] = NULL;
    *argc = count;
}

/* pairs: only copies between ranks, of which only the options are known. */
static int topo_main(int argc, char **argv, bool pairs)
{
    options_t options = {.command = argv[0],
                         .p2p = pairs,
                         .copies = {.ranks = pairs,
                                    .rank_count = TOPO_NOT_GIVEN,
                                    .tensors = TOPO_NOT_GIVEN,
                                    .iterations = TOPO_NOT_GIVEN,
                                    .warmups = TOPO_NOT_GIVEN,
                                    .most = TOPO_NOT_GIVEN,
                                    .elements = TOPO_NOT_GIVEN}};
    topo_p2p_t *copies = &options.copies;
    char **words = g_strdupv(argv);
    /* Those that pairs of ranks do not have, and the others. */
    const GOptionEntry alone[] = {
        {"input", 'i', 0, G_OPTION_ARG_FILENAME, &options.input,
         "The machine is that of a file: XML of hwloc (lstopo) or NCCL",
         "FILE"},
        {"p2p", 0, 0, G_OPTION_ARG_NONE, &options.p2p,
         "Measure copies between each pair of devices", NULL},
        {"host", 0, 0, G_OPTION_ARG_NONE, &copies->host,
         "With --p2p: between cores, and between NUMA nodes", NULL},
        {"ranks", 0, 0, G_OPTION_ARG_NONE, &copies->ranks,
         "With --p2p: between ranks", NULL},
        {"most", 0, 0, G_OPTION_ARG_INT, &copies->most,
         "With --host: so many cores at most, evenly chosen; 16", "N"},
    };
    const GOptionEntry common[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
         "Write to a file; its name's end chooses the format", "FILE"},
        {"format", 'f', 0, G_OPTION_ARG_STRING, &options.format,
         "text, json, dot or nccl; with --p2p text or json", "NAME"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options.json, "As --format=json",
         NULL},
        {"nranks", 'n', 0, G_OPTION_ARG_INT, &copies->rank_count,
         "Of ranks: start so many", "N"},
        {"backend", 0, 0, G_OPTION_ARG_STRING, &copies->backend,
         "Of ranks: use this backend", "NAME"},
        {"tensors", 0, 0, G_OPTION_ARG_INT, &copies->tensors,
         "Copy so many tensors; 10", "N"},
        {"elements", 0, 0, G_OPTION_ARG_INT64, &copies->elements,
         "Of so many float32 each; 10000000, without devices 1000000", "N"},
        {"iters", 0, 0, G_OPTION_ARG_INT, &copies->iterations,
         "Measured copies for each rate; 20", "N"},
        {"warmup_iters", 'w', 0, G_OPTION_ARG_INT, &copies->warmups,
         "Copies before a rate; 2", "N"},
        {"trace", 0, 0, G_OPTION_ARG_FILENAME, &copies->trace,
         "Also write a trace for Chrome and Perfetto", "FILE"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    GOptionEntry entries[G_N_ELEMENTS(alone) + G_N_ELEMENTS(common)];
    const gsize before = pairs ? 0 : G_N_ELEMENTS(alone);
    int status = TOOL_USAGE;

    memcpy(entries, alone, before * sizeof *alone);
    memcpy(entries + before, common, sizeof common);
    if (pairs)
        pairs_remove(&argc, argv);
    if (tool_parse(&argc, &argv, entries, NULL,
                   pairs ? "Measures copies between each pair of ranks."
                         : "Shows GPUs and NICs, how each pair is connected, "
                           "and what copies between them take.",
                   false, NULL))
        status = argc > 1 ? tool_fail(TOOL_USAGE, options.command,
                                      "unexpected argument '%s'", argv[1])
                          : topo_run(&options, words);
    g_strfreev(words);
    g_free(options.input);
    g_free(options.output);
    g_free(options.format);
    g_free(copies->backend);
    g_free(copies->trace);
    return status;
}

int tool_topo(int argc, char **argv)
{
    return topo_main(argc, argv, false);
}

int tool_topo_pairs(int argc, char **argv)
{
    return topo_main(argc, argv, true);
}
