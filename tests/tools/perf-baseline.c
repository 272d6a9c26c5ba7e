/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON of dscomm perf has the documented form, and dscomm perf reads it as
 * a baseline. */
#include "config.h"

#include "tests/tap.h"
#include "tools/common/save.h"
#include "tools/perf/baseline.h"
#include "tools/perf/operations.h"

#include <json-glib/json-glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;

static char *in_folder(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

/* Runs dscomm perf with these arguments; *ret_out is its output. */
static int run(const char *arguments, char **ret_out)
{
    char *command = g_strdup_printf("'%s/tools/dscomm' perf %s",
                                    getenv("abs_top_builddir"), arguments);
    GError *error = NULL;
    int status = -1;
    gchar *words[] = {(char *)"/bin/sh", (char *)"-c", command, NULL};

    if (!g_spawn_sync(NULL, words, NULL, 0, NULL, NULL, ret_out, NULL, &status,
                      &error))
        bail("%s", error->message);
    g_free(command);
    return status;
}

static JsonObject *row(JsonObject *root, guint index)
{
    return json_array_get_object_element(
        json_object_get_array_member(root, "rows"), index);
}

static void check_row(JsonObject *root, guint index, int bytes, int count)
{
    JsonObject *r = row(root, index);
    JsonObject *out = json_object_get_object_member(r, "out_of_place");
    double time = json_object_get_double_member(out, "time_us");
    double algbw = json_object_get_double_member(out, "algbw_gbs");

    is_str(json_object_get_string_member(r, "operation"), "all_gather", "op");
    is_int((int)json_object_get_int_member(r, "bytes"), bytes, "bytes");
    is_int((int)json_object_get_int_member(r, "count"), count, "count");
    is_str(json_object_get_string_member(r, "type"), "float32", "type");
    is_int((int)json_object_get_int_member(out, "wrong"), 0, "wrong");
    ok(time > 0 && json_object_get_double_member(out, "min_us") <= time &&
           json_object_get_double_member(out, "p99_us") >= time,
       "times are in order");
    ok(algbw > 0.9 * bytes / time / 1e3 - 1e-4 &&
           algbw < 1.1 * bytes / time / 1e3 + 1e-4,
       "algbw %g is bytes over time", algbw);
}

static void test_json(void)
{
    JsonParser *parser = json_parser_new();
    GError *error = NULL;
    char *out = NULL;

    is_int(run("-n 2 all_gather -b 64 -e 1K -f 16 -t 0.002 --json", &out), 0,
           "status");
    ok(json_parser_load_from_data(parser, out, -1, &error), "JSON: %s",
       error ? error->message : "well-formed");
    JsonObject *root = json_node_get_object(json_parser_get_root(parser));
    is_str(json_object_get_string_member(root, "format"), "dscomm-perf",
           "format");
    is_str(json_object_get_string_member(root, "backend"), "shm", "backend");
    is_int(
        (int)json_array_get_length(json_object_get_array_member(root, "ranks")),
        2, "ranks");
    is_int(
        (int)json_array_get_length(json_object_get_array_member(root, "rows")),
        2, "rows");
    check_row(root, 0, 64, 8);
    check_row(root, 1, 1024, 128);
    is_int((int)json_object_get_int_member(root, "wrong"), 0, "wrong in all");
    g_object_unref(parser);
    g_free(out);
}

static void test_round_trip(void)
{
    const perf_operation_t *operation = perf_operation_find("all_reduce");
    perf_row_t r = {.operation = operation,
                    .bytes = 64,
                    .dtype = DSCOMM_FLOAT32,
                    .op = DSCOMM_SUM,
                    .root = -1};
    char *path = in_folder("baseline.json"), *out = NULL, *text = NULL;
    char *arguments = g_strdup_printf(
        "-n 2 all_reduce barrier -b 64 -e 64 -t 0.002 --json --save '%s'",
        path);
    perf_baseline_t *baseline = NULL;
    char rounded[G_ASCII_DTOSTR_BUF_SIZE];

    is_int(run(arguments, &out), 0, "--save: status");
    ok(g_file_get_contents(path, &text, NULL, NULL), "--save: a file");
    is_str(text, out, "--save: the same as --json");
    is_int(perf_baseline_load(path, 2, &baseline), TOOL_OK, "it can be read");
    is_int(perf_baseline_ranks(baseline), 2, "ranks");
    is_str(perf_baseline_backend(baseline), "shm", "backend");
    ok(!perf_baseline_option(baseline, "async"), "not async");
    double time = perf_baseline_time(baseline, &r, PERF_OUT_OF_PLACE);
    ok(time > 0, "a time out of place");
    ok(perf_baseline_time(baseline, &r, PERF_IN_PLACE) > 0, "and in place");
    char *digits = g_strdup_printf("\"time_us\" : %.17g", time);
    ok(strstr(text, digits) != NULL, "it is that of the file");
    g_ascii_formatd(rounded, sizeof rounded, "%.4f", time);
    ok(g_ascii_strtod(rounded, NULL) == time, "of four decimals");
    r.bytes = 65;
    ok(perf_baseline_time(baseline, &r, PERF_IN_PLACE) == 0, "other bytes");
    r.bytes = 64;
    r.op = DSCOMM_MAX;
    ok(perf_baseline_time(baseline, &r, PERF_IN_PLACE) == 0, "other operator");
    r.operation = perf_operation_find("barrier");
    r.bytes = 0;
    ok(perf_baseline_time(baseline, &r, PERF_OUT_OF_PLACE) > 0, "a barrier");
    ok(perf_baseline_time(baseline, &r, PERF_IN_PLACE) == 0, "has one place");
    perf_baseline_free(baseline);
    g_free(digits);
    g_free(arguments);
    g_free(path);
    g_free(text);
    g_free(out);
}

/* A time in the file is twice this run's: the speedup is about 2. */
static void test_ratio(void)
{
    static const char text[] =
        "{\"format\": \"dscomm-perf\", \"format_version\": 1, "
        "\"backend\": \"shm\", \"ranks\": [{}, {}], \"rows\": ["
        "{\"operation\": \"barrier\", \"bytes\": 0, \"type\": \"float32\","
        " \"redop\": \"none\", \"root\": -1,"
        " \"out_of_place\": {\"time_us\": 1e6}}]}";
    char *path = in_folder("old.json"), *out = NULL;
    char *arguments =
        g_strdup_printf("-n 2 barrier -t 0.002 --json --against '%s'", path);
    JsonParser *parser = json_parser_new();

    g_file_set_contents(path, text, -1, NULL);
    is_int(run(arguments, &out), 0, "--against: status");
    ok(json_parser_load_from_data(parser, out, -1, NULL), "JSON");
    JsonObject *figure = json_object_get_object_member(
        row(json_node_get_object(json_parser_get_root(parser)), 0),
        "out_of_place");
    double time = json_object_get_double_member(figure, "time_us");
    double speedup = json_object_get_double_member(figure, "speedup");
    ok(time * speedup > 0.99e6 && time * speedup < 1.01e6,
       "speedup %g is the old time over the new one", speedup);
    g_object_unref(parser);
    g_free(arguments);
    g_free(path);
    g_free(out);
}

#define ROW(us)                                                                \
    "{\"operation\": \"barrier\", \"bytes\": 0, \"type\": \"float32\","        \
    " \"redop\": \"none\", \"root\": -1,"                                      \
    " \"out_of_place\": {\"time_us\": " us "}}"
#define REPORT(ranks, us)                                                      \
    "{\"format\": \"dscomm-perf\", \"format_version\": 1,"                     \
    " \"ranks\": [" ranks "], \"rows\": [" ROW(us) "]}"

/* The run with the same number of ranks is the baseline. */
static void test_sweep(void)
{
    static const char text[] =
        "{\"format\": \"dscomm-perf-sweep\", \"format_version\": 1, "
        "\"reports\": [" REPORT("{}, {}", "20") ", " REPORT("{}, {}, {}",
                                                            "30") "]}";
    const perf_row_t barrier = {.operation = perf_operation_find("barrier"),
                                .dtype = DSCOMM_FLOAT32,
                                .op = DSCOMM_SUM,
                                .root = -1};
    perf_baseline_t *baseline = NULL;
    char *path = in_folder("sweep.json");

    g_file_set_contents(path, text, -1, NULL);
    for (int ranks = 2; ranks <= 3; ranks++) {
        is_int(perf_baseline_load(path, ranks, &baseline), TOOL_OK,
               "a sweep, %d ranks", ranks);
        is_int(perf_baseline_ranks(baseline), ranks, "its ranks");
        is_int((int)perf_baseline_time(baseline, &barrier, PERF_OUT_OF_PLACE),
               10 * ranks, "its time");
        perf_baseline_free(baseline);
    }
    baseline = NULL;
    is_int(perf_baseline_load(path, 4, &baseline), TOOL_FAILED,
           "a sweep without 4 ranks");
    ok(!baseline, "is no baseline");
    g_free(path);
}

static void test_bad_files(void)
{
    static const char *const texts[] = {
        "",
        "no JSON",
        "[]",
        "17",
        "null",
        "{}",
        "{\"format\": \"other\"}",
        "{\"format\": \"dscomm-perf\"}",
        "{\"format\": \"dscomm-perf\", \"format_version\": 2}",
        "{\"format\": \"dscomm-perf\", \"format_version\": 1, \"rows\": 3, "
        "\"ranks\": []}",
        "{\"format\": \"dscomm-perf\", \"format_version\": 1, \"rows\": [1], "
        "\"ranks\": []}",
        "{\"format\": \"dscomm-perf\", \"format_version\": 1, \"rows\": [",
        "{\"format\": \"dscomm-perf-sweep\"}",
        "{\"format\": \"dscomm-perf-sweep\", \"reports\": []}",
        "{\"format\": \"dscomm-perf-sweep\", \"reports\": [7, \"x\", null]}",
        "{\"format\": \"dscomm-perf-sweep\", \"reports\": [{\"ranks\": [1, "
        "2]}]}",
    };
    perf_baseline_t *baseline = NULL;
    char *path = in_folder("bad.json");

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_file_set_contents(path, texts[i], -1, NULL);
        is_int(perf_baseline_load(path, 2, &baseline), TOOL_FAILED, "%s",
               texts[i]);
    }
    unlink(path);
    is_int(perf_baseline_load(path, 2, &baseline), TOOL_FAILED, "no file");
    ok(baseline == NULL, "nothing was written");
    g_free(path);
}

static void test_save(void)
{
    char *path = in_folder("saved"), *text = NULL;
    struct stat status;
    tool_save_t *save = tool_save_new(path);

    ok(access(path, F_OK) != 0, "no file before its end");
    is_int(tool_save_end(save, "first"), 0, "kept");
    ok(g_file_get_contents(path, &text, NULL, NULL), "a file");
    is_str(text, "first", "all of it");
    save = tool_save_new(path);
    is_int(tool_save_end(save, NULL), 0, "given up");
    g_free(text);
    ok(g_file_get_contents(path, &text, NULL, NULL), "still a file");
    is_str(text, "first", "the former one");
    ok(tool_save_new("/no/such/folder/file") == NULL, "no folder");
    if (stat("/dev/full", &status) == 0 && S_ISCHR(status.st_mode)) {
        save = tool_save_new("/dev/full");
        ok(tool_save_end(save, "text") != 0, "a full disk");
        ok(stat("/dev/full", &status) == 0 && S_ISCHR(status.st_mode),
           "a device stays one");
    } else {
        skip("no /dev/full");
    }
    unlink(path);
    g_free(text);
    g_free(path);
}

int main(void)
{
    folder = g_dir_make_tmp("dscomm-perf-XXXXXX", NULL);
    if (!folder || !getenv("abs_top_builddir"))
        bail("no folder to work in; run me with make check");
    test_json();
    test_round_trip();
    test_ratio();
    test_sweep();
    test_bad_files();
    test_save();
    char *command = g_strdup_printf("rm -rf '%s'", folder);
    is_int(system(command), 0, "removed");
    g_free(command);
    g_free(folder);
    return tap_done();
}
