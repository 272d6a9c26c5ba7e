/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm info`: how the library was built, what it can load, and its
 * settings. */
#include "config.h"

#include "tools/common/tool.h"
#include "tools/info/info.h"

#include <dscomm/codec.h>
#include <dscomm/info.h>
#include <stdio.h>
#include <string.h>

static void print_build(void)
{
    const char *name, *value;

    printf("Build:\n");
    for (size_t i = 0; dscomm_build_info(i, &name, &value) == DSCOMM_OK; i++)
        printf("  %-16s %s\n", name, value);
    const char *features = dscomm_cpu_features();
    printf("  %-16s %s\n", "cpu features",
           *features ? features : "none beyond the baseline");
    printf("  %-16s %s\n", "kernels in use", dscomm_kernels());
}

static void print_backends(void)
{
    dscomm_backend_info_t info = {.size = sizeof(info)};

    printf("Backends, in %s:\n", dscomm_backend_directory());
    for (size_t i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++) {
        printf("  %-16s ", info.name);
        if (info.usable)
            printf("priority %d, ", info.priority);
        printf("%s\n", info.path ? info.path : "built in");
        if (info.detail)
            printf("  %-16s %s\n", "", info.detail);
        if (!info.usable)
            printf("  %-16s not usable: %s\n", "", info.why);
    }
}

static void print_codecs(void)
{
    char **names = g_strsplit(dscomm_codec_names(), " ", -1);
    const char *problem = dscomm_codec_device_problem();

    printf("Codecs:\n");
    for (char **name = names; *name; name++) {
        const dscomm_codec_t *codec = dscomm_codec_find(*name);

        printf("  %-16s %s error feedback", *name,
               codec->feedback ? "with" : "without");
        if (codec->parameter_most > 0)
            printf(", parameter %g", codec->parameter);
        printf("\n");
    }
    printf("  %-16s %s%s\n", "on CUDA devices", problem ? "no: " : "onebit",
           problem ? problem : "");
    g_strfreev(names);
}

/* "enum: a or b"; only the accepted values if they name the type. */
static void print_accepted(const dscomm_setting_info_t *info)
{
    const char *accepted = info->accepted ? info->accepted : "";

    if (!strstr(accepted, info->type))
        printf("%s%s", info->type, *accepted ? ": " : "");
    printf("%s", accepted);
}

static void print_value(const char *value)
{
    char *printable = tool_printable(value);

    printf("=%s", printable);
    g_free(printable);
}

static void print_settings(void)
{
    dscomm_setting_info_t info = {.size = sizeof(info)};

    printf("Settings:\n");
    for (size_t i = 0; dscomm_setting_info(i, &info) == DSCOMM_OK; i++) {
        printf("  %s", info.name);
        if (info.value)
            print_value(info.value);
        printf("\n      %s\n      ", info.help);
        print_accepted(&info);
        printf("; default: %s\n",
               info.default_value ? info.default_value : "none");
    }
}

static void warn_unknown(void)
{
    const char *name, *nearest;

    for (size_t i = 0; dscomm_setting_unknown(i, &name, &nearest) == DSCOMM_OK;
         i++) {
        tool_fail(0, "info", "%s is no setting and has no effect%s%s%s", name,
                  nearest ? "; is " : "", nearest ? nearest : "",
                  nearest ? " meant?" : "");
    }
}

/* Warns of values that dscomm_init() refuses; the library reads some settings
 * earlier, and ignores wrong values there. */
static void warn_refused(void)
{
    dscomm_setting_info_t info = {.size = sizeof(info)};

    for (size_t i = 0; dscomm_setting_info(i, &info) == DSCOMM_OK; i++)
        if (info.refused)
            tool_fail(0, "info",
                      "%s='%s' is not accepted; set it to %s, or unset it",
                      info.name, info.value, info.accepted);
}

static void info_print(const tool_info_parts_t *parts)
{
    const char *gap = "";

    if (parts->build) {
        print_build();
        gap = "\n";
    }
    if (parts->backends) {
        printf("%s", gap);
        print_backends();
        gap = "\n";
    }
    if (parts->codecs) {
        printf("%s", gap);
        print_codecs();
        gap = "\n";
    }
    if (parts->ranks) {
        printf("%s", gap);
        tool_info_print_algorithms(parts->ranks, parts->nodes);
        gap = "\n";
    }
    if (parts->settings) {
        printf("%s", gap);
        print_settings();
    }
}

int tool_info(int argc, char **argv)
{
    tool_info_parts_t parts = {.nodes = 1};
    gboolean json = FALSE, algorithms = FALSE, known;
    int ranks = 8;
    const GOptionEntry entries[] = {
        {"build", 0, 0, G_OPTION_ARG_NONE, &parts.build,
         "Version, build choices and processor features", NULL},
        {"backends", 0, 0, G_OPTION_ARG_NONE, &parts.backends,
         "Modules found, and why others were refused", NULL},
        {"codecs", 0, 0, G_OPTION_ARG_NONE, &parts.codecs,
         "What compresses, and whether CUDA devices do", NULL},
        {"algorithms", 0, 0, G_OPTION_ARG_NONE, &algorithms,
         "What carries out collectives, by bytes", NULL},
        {"ranks", 'n', 0, G_OPTION_ARG_INT, &ranks,
         "How many ranks to show algorithms for (default: 8)", "RANKS"},
        {"nodes", 0, 0, G_OPTION_ARG_INT, &parts.nodes,
         "On how many nodes they are (default: 1)", "NODES"},
        {"settings", 0, 0, G_OPTION_ARG_NONE, &parts.settings,
         "DSCOMM_* variables: meaning, default, and value now", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "Print it as JSON", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };

    if (!tool_parse(&argc, &argv, entries, NULL,
                    "Without --build, --backends, --codecs, --algorithms and "
                    "--settings, all parts are shown.",
                    TRUE, NULL))
        return TOOL_USAGE;
    if (argc > 1)
        return tool_fail(TOOL_USAGE, "info", "unexpected argument '%s'",
                         argv[1]);
    if (ranks < 2)
        return tool_fail(TOOL_USAGE, "info",
                         "--ranks is %d; only 2 and more need an algorithm",
                         ranks);
    if (parts.nodes < 1 || parts.nodes > ranks)
        return tool_fail(TOOL_USAGE, "info",
                         "--nodes is %d; %d ranks are on 1 to %d nodes",
                         parts.nodes, ranks, ranks);
    if (!parts.build && !parts.backends && !parts.codecs && !parts.settings &&
        !algorithms)
        parts.build = parts.backends = parts.codecs = parts.settings =
            algorithms = TRUE;
    known = !algorithms || tool_info_algorithms_known();
    parts.ranks = algorithms && known ? ranks : 0;
    if (!known)
        tool_fail(TOOL_FAILED, "info", "%s", dscomm_last_error());
    if (json)
        tool_info_print_json(&parts);
    else
        info_print(&parts);
    if ((parts.settings || parts.build) && !json)
        warn_refused();
    if (parts.settings && !json)
        warn_unknown();
    return known ? TOOL_OK : TOOL_FAILED;
}
