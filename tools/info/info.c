/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm info`: how the library was built, what it can load, what carries out
 * each collective by bytes, and the settings; for people, and as JSON. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/common/tool.h"
#include "tools/info/devices.h"

#include <dscomm/codec.h>
#include <dscomm/info.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_WIDTH 17
#define BYTES_WIDTH 15
#define ALGORITHM_WIDTH 20

/* For which algorithms are shown. */
static struct {
    int ranks, nodes;
} job = {8, 1};

static bool coll_reduces(dscomm_coll_t coll)
{
    return coll == DSCOMM_COLL_REDUCE || coll == DSCOMM_COLL_ALL_REDUCE ||
           coll == DSCOMM_COLL_REDUCE_SCATTER ||
           coll == DSCOMM_COLL_REDUCE_SCATTER_V;
}

/* Returns "16K" if the size is a multiple of 1 KiB, in the form of
 * DSCOMM_ALGORITHM. */
static char *size_text(guint64 bytes)
{
    static const char units[] = {'\0', 'K', 'M', 'G', 'T'};
    guint unit = 0;

    while (bytes && bytes % 1024 == 0 && unit + 1 < G_N_ELEMENTS(units)) {
        bytes /= 1024;
        unit++;
    }
    return g_strdup_printf("%" G_GUINT64_FORMAT "%.1s", bytes, &units[unit]);
}

/* "64K-1M", "1048577-", "all". */
static char *range_text(guint64 from, guint64 to)
{
    char *first = size_text(from);
    char *last = to == G_MAXUINT64 ? g_strdup("") : size_text(to);
    char *text = from == 0 && to == G_MAXUINT64
                     ? g_strdup("all")
                     : g_strdup_printf("%s-%s", first, last);

    g_free(first);
    g_free(last);
    return text;
}

/* Returns the algorithm that is used, and the one without DSCOMM_ALGORITHM. */
static char *choice_text(const dscomm_choice_info_t *info)
{
    if (!info->by_setting)
        return g_strdup(info->by_default);
    if (strcmp(info->by_setting, "native") == 0)
        return g_strdup_printf("native, else %s", info->by_default);
    return g_strdup_printf("%s (default: %s)", info->by_setting,
                           info->by_default);
}

static bool choice_is_same(const dscomm_choice_info_t *a,
                           const dscomm_choice_info_t *b)
{
    return a->by_default == b->by_default && a->by_setting == b->by_setting;
}

/* Adds a note once. what: "" or " of SOMETHING". */
static void note_passed(const char *coll, const char *what,
                        const dscomm_choice_info_t *info, GPtrArray *notes)
{
    char *note;

    if (!info->passed_over)
        return;
    note = g_strdup_printf("%s:%s is passed over%s: %s", coll,
                           info->passed_over, what, info->why);
    if (g_ptr_array_find_with_equal_func(notes, note, g_str_equal, NULL))
        g_free(note);
    else
        g_ptr_array_add(notes, note);
}

/* Prints the row of a range of sizes; narrow: the choice for sums of bfloat16.
 */
static void print_row(const char *name, const dscomm_choice_info_t *info,
                      const dscomm_choice_info_t *narrow)
{
    char *range = range_text(info->from, MIN(info->to, narrow->to));
    char *choice = choice_text(info), *other = choice_text(narrow);

    printf("  %-*s %-*s ", NAME_WIDTH, name, BYTES_WIDTH, range);
    if (choice_is_same(info, narrow))
        printf("%s\n", choice);
    else
        printf("%-*s %s\n", ALGORITHM_WIDTH, choice, other);
    g_free(range);
    g_free(choice);
    g_free(other);
}

static void print_choices(dscomm_coll_t coll, GPtrArray *notes)
{
    const char *const full_name = dscomm_coll_name(coll);
    const char *name = full_name;
    dscomm_choice_info_t info = {.size = sizeof info}, narrow = info;
    guint64 from = 0;

    do {
        if (dscomm_choice_info(job.ranks, job.nodes, coll, DSCOMM_FLOAT32,
                               DSCOMM_SUM, from, &info) < 0 ||
            dscomm_choice_info(job.ranks, job.nodes, coll, DSCOMM_BFLOAT16,
                               DSCOMM_SUM, from, &narrow) < 0)
            return;
        info.from = from;
        print_row(name, &info, &narrow);
        note_passed(full_name, "", &info, notes);
        if (info.passed_over != narrow.passed_over)
            note_passed(full_name, " by sums of bfloat16", &narrow, notes);
        name = "";
        from = MIN(info.to, narrow.to) + 1;
    } while (from);
}

/* Whether an algorithm of coll can be used. */
static bool algorithm_fits(const dscomm_algorithm_info_t *info,
                           dscomm_coll_t coll)
{
    return info->coll == (int)coll &&
           (!info->power_of_two || !(job.ranks & (job.ranks - 1))) &&
           (!info->two_levels || (job.nodes > 1 && job.nodes < job.ranks));
}

static void print_available(dscomm_coll_t coll)
{
    dscomm_algorithm_info_t info = {.size = sizeof info};
    const char *before = "";

    printf("  %-*s ", NAME_WIDTH, dscomm_coll_name(coll));
    for (size_t i = 0; dscomm_algorithm_info(i, &info) == DSCOMM_OK; i++) {
        if (!algorithm_fits(&info, coll))
            continue;
        printf("%s%s", before, info.name);
        before = ", ";
    }
    printf("\n");
}

static const char *algorithm_setting(void)
{
    dscomm_setting_info_t info = {.size = sizeof info};

    for (size_t i = 0; dscomm_setting_info(i, &info) == DSCOMM_OK; i++)
        if (strcmp(info.name, "DSCOMM_ALGORITHM") == 0)
            return info.value;
    return NULL;
}

/* Whether DSCOMM_ALGORITHM is valid; if not, see dscomm_last_error(). */
static bool algorithms_known(void)
{
    dscomm_choice_info_t info = {.size = sizeof info};

    return dscomm_choice_info(2, 1, DSCOMM_COLL_BARRIER, DSCOMM_UINT8,
                              DSCOMM_SUM, 0, &info) == DSCOMM_OK;
}

/* Prints the setting, and the notes about its rules. */
static void print_setting(const GPtrArray *notes)
{
    const char *setting = algorithm_setting();
    char *printable;

    if (!setting)
        return;
    printable = tool_printable(setting);
    printf("  as DSCOMM_ALGORITHM=%s says\n", printable);
    g_free(printable);
    for (guint i = 0; i < notes->len; i++)
        printf("  %s\n", (const char *)notes->pdata[i]);
}

static void print_algorithms(void)
{
    GPtrArray *notes = g_ptr_array_new_with_free_func(g_free);
    char *place = job.nodes > 1 ? g_strdup_printf("%d ranks on %d nodes",
                                                  job.ranks, job.nodes)
                                : g_strdup_printf("%d ranks", job.ranks);

    printf("Algorithms, for %s, where the backend has none of its own:\n",
           place);
    printf("  %-*s %-*s %-*s %s\n", NAME_WIDTH, "", BYTES_WIDTH, "bytes",
           ALGORITHM_WIDTH, "algorithm", "sums of bfloat16");
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        print_choices((dscomm_coll_t)coll, notes);
    print_setting(notes);
    printf("\nAll algorithms for %s:\n", place);
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        print_available((dscomm_coll_t)coll);
    g_ptr_array_free(notes, TRUE);
    g_free(place);
}

/* Adds the words of text, which are separated by single spaces, as an array. */
static void add_words(JsonBuilder *builder, const char *name, const char *text)
{
    char **words = g_strsplit(text, " ", -1);

    tool_json_texts(builder, name, words);
    g_strfreev(words);
}

static void add_build(JsonBuilder *builder)
{
    const char *name, *value;

    tool_json_object(builder, "build");
    for (size_t i = 0; dscomm_build_info(i, &name, &value) == DSCOMM_OK; i++) {
        char *member = g_strdelimit(g_strdup(name), " ", '_');
        tool_json_text(builder, member, value);
        g_free(member);
    }
    add_words(builder, "cpu_features", dscomm_cpu_features());
    add_words(builder, "kernels", dscomm_kernels());
    json_builder_end_object(builder);
}

static void add_backend(JsonBuilder *builder, const dscomm_backend_info_t *info)
{
    tool_json_object(builder, NULL);
    tool_json_text(builder, "name", info->name);
    tool_json_text(builder, "path", info->path);
    tool_json_flag(builder, "usable", info->usable);
    if (info->usable)
        tool_json_number(builder, "priority", info->priority);
    else
        tool_json_text(builder, "priority", NULL);
    tool_json_text(builder, "why", info->why);
    tool_json_text(builder, "detail", info->detail);
    json_builder_end_object(builder);
}

static void add_backends(JsonBuilder *builder)
{
    dscomm_backend_info_t info = {.size = sizeof(info)};

    tool_json_text(builder, "backend_directory", dscomm_backend_directory());
    tool_json_array(builder, "backends");
    for (size_t i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++)
        add_backend(builder, &info);
    json_builder_end_array(builder);
}

static void add_codecs(JsonBuilder *builder)
{
    const char *problem = dscomm_codec_device_problem();

    add_words(builder, "codecs", dscomm_codec_names());
    add_words(builder, "device_codecs", problem ? "" : "onebit");
    tool_json_text(builder, "device_problem", problem);
}

static void add_available(JsonBuilder *builder, dscomm_coll_t coll)
{
    dscomm_algorithm_info_t info = {.size = sizeof(info)};

    tool_json_array(builder, "available");
    for (size_t i = 0; dscomm_algorithm_info(i, &info) == DSCOMM_OK; i++)
        if (algorithm_fits(&info, coll))
            tool_json_text(builder, NULL, info.name);
    json_builder_end_array(builder);
}

/* Adds a number; null if it exceeds what JSON's numbers can hold, as no buffer
 * does. */
static void add_bytes(JsonBuilder *builder, const char *name, uint64_t bytes)
{
    if (bytes > INT64_MAX)
        tool_json_text(builder, name, NULL);
    else
        tool_json_number(builder, name, (gint64)bytes);
}

static void add_choices(JsonBuilder *builder, dscomm_coll_t coll,
                        dscomm_dtype_t dtype)
{
    dscomm_choice_info_t info = {.size = sizeof(info)};
    uint64_t from = 0;

    do {
        if (dscomm_choice_info(job.ranks, job.nodes, coll, dtype, DSCOMM_SUM,
                               from, &info) < 0)
            return;
        tool_json_object(builder, NULL);
        add_bytes(builder, "from", info.from);
        add_bytes(builder, "to", info.to);
        tool_json_text(builder, "dtype",
                       coll_reduces(coll) ? dscomm_dtype_name(dtype) : NULL);
        tool_json_text(builder, "by_default", info.by_default);
        tool_json_text(builder, "by_setting", info.by_setting);
        tool_json_text(builder, "passed_over", info.passed_over);
        tool_json_text(builder, "why", info.why);
        json_builder_end_object(builder);
        from = info.to + 1;
    } while (from);
}

static void add_collective(JsonBuilder *builder, dscomm_coll_t coll)
{
    tool_json_object(builder, NULL);
    tool_json_text(builder, "name", dscomm_coll_name(coll));
    add_available(builder, coll);
    tool_json_array(builder, "choices");
    add_choices(builder, coll, DSCOMM_FLOAT32);
    if (coll_reduces(coll))
        add_choices(builder, coll, DSCOMM_BFLOAT16);
    json_builder_end_array(builder);
    json_builder_end_object(builder);
}

static void add_algorithms(JsonBuilder *builder)
{
    tool_json_object(builder, "algorithms");
    tool_json_number(builder, "ranks", job.ranks);
    tool_json_number(builder, "nodes", job.nodes);
    tool_json_text(builder, "setting", algorithm_setting());
    tool_json_array(builder, "collectives");
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        add_collective(builder, (dscomm_coll_t)coll);
    json_builder_end_array(builder);
    json_builder_end_object(builder);
}

static void add_setting(JsonBuilder *builder, const dscomm_setting_info_t *info)
{
    const char *value = info->value ? info->value : info->default_value;

    tool_json_object(builder, NULL);
    tool_json_text(builder, "name", info->name);
    tool_json_text(builder, "type", info->type);
    tool_json_text(builder, "accepted", info->accepted);
    tool_json_text(builder, "default", info->default_value);
    tool_json_text(builder, "value", value);
    tool_json_text(builder, "origin",
                   info->origin ? info->origin
                   : value      ? "default"
                                : NULL);
    tool_json_text(builder, "help", info->help);
    json_builder_end_object(builder);
}

static void add_unknown(JsonBuilder *builder)
{
    const char *name, *nearest;

    tool_json_array(builder, "unknown");
    for (size_t i = 0; dscomm_setting_unknown(i, &name, &nearest) == DSCOMM_OK;
         i++) {
        tool_json_object(builder, NULL);
        tool_json_text(builder, "name", name);
        tool_json_text(builder, "nearest", nearest);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void add_settings(JsonBuilder *builder)
{
    dscomm_setting_info_t info = {.size = sizeof(info)};

    tool_json_array(builder, "settings");
    for (size_t i = 0; dscomm_setting_info(i, &info) == DSCOMM_OK; i++)
        add_setting(builder, &info);
    json_builder_end_array(builder);
    add_unknown(builder);
}

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

/* Prints "enum: a or b"; only the accepted values if they already name the
 * type. */
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
        if (g_strcmp0(info.origin, "tuning file") == 0)
            printf(", from the tuning file");
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
         i++)
        tool_fail(0, "info", "%s is no setting and has no effect%s%s%s", name,
                  nearest ? "; is " : "", nearest ? nearest : "",
                  nearest ? " meant?" : "");
}

/* Warns about values that dscomm_init() refuses. The library reads some
 * settings before that call, and then ignores invalid values. */
static void warn_refused(void)
{
    dscomm_setting_info_t info = {.size = sizeof(info)};

    for (size_t i = 0; dscomm_setting_info(i, &info) == DSCOMM_OK; i++)
        if (info.why)
            tool_fail(0, "info", "%s", info.why);
        else if (info.refused)
            tool_fail(0, "info",
                      "%s='%s' is not accepted; set it to %s, or unset it",
                      info.name, info.value, info.accepted);
}

enum { BUILD, BACKENDS, DEVICES, CODECS, ALGORITHMS, SETTINGS, PARTS };

static const struct {
    const char *option, *help;
    void (*print)(void);
    void (*add)(JsonBuilder *builder); /* adds its members */
} parts[PARTS] = {
    [BUILD] = {"build", "Version, build choices and processor features",
               print_build, add_build},
    [BACKENDS] = {"backends", "Modules found, and why others were refused",
                  print_backends, add_backends},
    [DEVICES] = {"devices", "Network devices of backends, and which is chosen",
                 info_print_devices, info_add_devices},
    [CODECS] = {"codecs", "What compresses, and whether CUDA devices do",
                print_codecs, add_codecs},
    [ALGORITHMS] = {"algorithms", "What carries out collectives, by bytes",
                    print_algorithms, add_algorithms},
    [SETTINGS] = {"settings",
                  "DSCOMM_* variables: meaning, default, and value now",
                  print_settings, add_settings},
};

static void info_print(const gboolean *wanted)
{
    const char *gap = "";

    for (int i = 0; i < PARTS; i++) {
        if (!wanted[i])
            continue;
        printf("%s", gap);
        parts[i].print();
        gap = "\n";
    }
    if (wanted[SETTINGS] || wanted[ALGORITHMS] || wanted[BUILD])
        warn_refused();
    if (wanted[SETTINGS])
        warn_unknown();
}

/* One JSON object with the members of all parts. */
static void info_print_json(const gboolean *wanted)
{
    JsonBuilder *builder = json_builder_new();
    GString *text = g_string_new(NULL);

    tool_json_object(builder, NULL);
    for (int i = 0; i < PARTS; i++)
        if (wanted[i])
            parts[i].add(builder);
    json_builder_end_object(builder);
    tool_json_end(builder, TRUE, text);
    fputs(text->str, stdout);
    g_string_free(text, TRUE);
}

static bool info_parse(int *argc, char ***argv, gboolean *wanted,
                       gboolean *json)
{
    GOptionEntry entries[PARTS + 4] = {
        [PARTS] = {"ranks", 'n', 0, G_OPTION_ARG_INT, &job.ranks,
                   "How many ranks to show algorithms for (default: 8)",
                   "RANKS"},
        {"nodes", 0, 0, G_OPTION_ARG_INT, &job.nodes,
         "On how many nodes they are (default: 1)", "NODES"},
        {"json", 0, 0, G_OPTION_ARG_NONE, json, "Print it as JSON", NULL},
    };

    for (int i = 0; i < PARTS; i++)
        entries[i] = (GOptionEntry){
            parts[i].option, 0,   0, G_OPTION_ARG_NONE, &wanted[i],
            parts[i].help,   NULL};
    return tool_parse(argc, argv, entries, NULL,
                      "Without --build, --backends, --devices, --codecs, "
                      "--algorithms and --settings, all parts are shown.",
                      TRUE, NULL);
}

int tool_info(int argc, char **argv)
{
    gboolean wanted[PARTS] = {FALSE}, json = FALSE;
    bool any = false, known;

    if (!info_parse(&argc, &argv, wanted, &json))
        return TOOL_USAGE;
    if (argc > 1)
        return tool_fail(TOOL_USAGE, "info", "unexpected argument '%s'",
                         argv[1]);
    if (job.ranks < 2)
        return tool_fail(TOOL_USAGE, "info",
                         "--ranks is %d; only 2 and more need an algorithm",
                         job.ranks);
    if (job.nodes < 1 || job.nodes > job.ranks)
        return tool_fail(TOOL_USAGE, "info",
                         "--nodes is %d; %d ranks are on 1 to %d nodes",
                         job.nodes, job.ranks, job.ranks);
    for (int i = 0; i < PARTS; i++)
        any = any || wanted[i];
    for (int i = 0; i < PARTS; i++)
        wanted[i] = wanted[i] || !any;
    known = !wanted[ALGORITHMS] || algorithms_known();
    wanted[ALGORITHMS] = wanted[ALGORITHMS] && known;
    if (!known)
        tool_fail(TOOL_FAILED, "info", "%s", dscomm_last_error());
    (json ? info_print_json : info_print)(wanted);
    return known ? TOOL_OK : TOOL_FAILED;
}
