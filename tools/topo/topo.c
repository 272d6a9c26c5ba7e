/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm topo: the devices of a machine, and how each pair is connected. */
#include "config.h"

#include "tools/common/save.h"
#include "tools/common/tool.h"
#include "tools/topo/machine.h"
#include "tools/topo/matrix.h"
#include "tools/topo/nccl.h"
#include "tools/topo/nvml.h"
#include "tools/topo/picture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define INPUT_MOST ((gsize)64 << 20) /* bytes of a file */

/* The forms of a tree; ends: of a file's name that asks for it. */
static const struct {
    const char *name, *ends;
    void (*append)(const topo_tree_t *tree, GString *text);
} formats[] = {
    {"text", ".txt", topo_text},       {"json", ".json", topo_json},
    {"dot", ".dot", topo_dot},         {"svg", ".svg", topo_svg},
    {"nccl", ".xml", topo_nccl_write},
};

typedef struct {
    char *input, *output, *format;
    gboolean json;
} options_t;

static int refuse(const char *format, const char *word)
{
    return tool_fail(TOOL_USAGE, "topo", format, word);
}

/* Returns an index into formats, or -1. */
static int format_find(const options_t *options)
{
    for (guint i = 0; i < G_N_ELEMENTS(formats); i++)
        if (options->format
                ? !strcmp(options->format, formats[i].name)
                : options->output &&
                      g_str_has_suffix(options->output, formats[i].ends))
            return (int)i;
    return options->format ? -1 : 0;
}

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
    } else if (length > INPUT_MOST || strlen(text) != length) {
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

static int text_write(const options_t *options, const char *text)
{
    tool_save_t *save;
    int error;

    if (!options->output) {
        fputs(text, stdout);
        return TOOL_OK;
    }
    save = tool_save_new(options->output);
    error = save ? tool_save_end(save, text) : errno;
    return error ? tool_fail(TOOL_FAILED, "topo", "--output %s: %s",
                             options->output, g_strerror(error))
                 : TOOL_OK;
}

static int topo_show(const options_t *options, int format)
{
    char *problem = NULL;
    topo_tree_t *tree = tree_of(options, &problem);
    GString *text;
    int status;

    if (!tree) {
        status = tool_fail(TOOL_FAILED, "topo", "%s", problem);
        g_free(problem);
        return status;
    }
    text = g_string_new(NULL);
    formats[format].append(tree, text);
    status = text_write(options, text->str);
    g_string_free(text, TRUE);
    topo_tree_free(tree);
    return status;
}

int tool_topo(int argc, char **argv)
{
    options_t options = {0};
    const GOptionEntry entries[] = {
        {"input", 'i', 0, G_OPTION_ARG_FILENAME, &options.input,
         "The machine is that of a file: XML of hwloc (lstopo) or NCCL",
         "FILE"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
         "Write to a file; its name's end chooses the format", "FILE"},
        {"format", 'f', 0, G_OPTION_ARG_STRING, &options.format,
         "text, json, dot, svg or nccl", "NAME"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options.json, "As --format=json",
         NULL},
        {NULL},
    };
    int format, status = TOOL_USAGE;

    if (!tool_parse(&argc, &argv, entries, NULL,
                    "Shows GPUs and NICs, and how each pair is connected.",
                    false, NULL))
        goto out;
    if (options.json && !options.format)
        options.format = g_strdup("json");
    format = format_find(&options);
    if (argc > 1)
        status = refuse("unexpected argument '%s'", argv[1]);
    else if (format < 0)
        status = refuse("--format must be text, json, dot, svg or nccl, not "
                        "'%s'",
                        options.format);
    else
        status = topo_show(&options, format);
out:
    g_free(options.input);
    g_free(options.output);
    g_free(options.format);
    return status;
}
