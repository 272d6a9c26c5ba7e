/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm info --json, read by a JSON parser. */
#include "config.h"

#include <dscomm/info.h>
#include <dscomm/version.h>
#include <json-glib/json-glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

/* Returns the parsed output of `dscomm info --json OPTION`; options ends with
 * NULL. */
static JsonParser *query(const char *option)
{
    char *program =
        g_build_filename(g_getenv("abs_top_builddir"), "tools", "dscomm", NULL);
    char *argv[] = {program, (char *)"info", (char *)"--json", (char *)option,
                    NULL};
    JsonParser *parser = json_parser_new();
    char *text = NULL, *errors = NULL;
    int status = -1;
    GError *error = NULL;

    g_spawn_sync(NULL, argv, NULL, 0, NULL, NULL, &text, &errors, &status,
                 NULL);
    is_int(status, 0, "info --json %s", option ? option : "");
    is_str(errors, "", "is silent on standard error");
    ok(text && g_utf8_validate(text, -1, NULL), "and UTF-8");
    if (!json_parser_load_from_data(parser, text ? text : "", -1, &error) ||
        !JSON_NODE_HOLDS_OBJECT(json_parser_get_root(parser)))
        bail("no JSON object: %s", error ? error->message : text);
    g_free(text);
    g_free(errors);
    g_free(program);
    return parser;
}

static JsonObject *root_of(JsonParser *parser)
{
    return json_node_get_object(json_parser_get_root(parser));
}

/* Returns the member as text; "null" if it is null, NULL if it does not
 * exist. */
static const char *text_of(JsonObject *object, const char *name)
{
    JsonNode *node = object ? json_object_get_member(object, name) : NULL;

    if (node && JSON_NODE_HOLDS_NULL(node))
        return "null";
    return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node)
                                               : NULL;
}

/* Returns the object in array whose member "name" is name. */
static JsonObject *find(JsonObject *root, const char *array, const char *name)
{
    JsonArray *list = json_object_get_array_member(root, array);

    for (guint i = 0; list && i < json_array_get_length(list); i++) {
        JsonObject *object = json_array_get_object_element(list, i);
        if (g_strcmp0(text_of(object, "name"), name) == 0)
            return object;
    }
    return NULL;
}

static const char *or_null(const char *text)
{
    return text ? text : "null";
}

static void check_settings(JsonObject *root)
{
    dscomm_setting_info_t info = {.size = sizeof info};
    size_t count = 0;

    for (; dscomm_setting_info(count, &info) == DSCOMM_OK; count++) {
        JsonObject *setting = find(root, "settings", info.name);
        const char *value = info.value ? info.value : info.default_value;

        is_str(text_of(setting, "type"), info.type, "%s: type", info.name);
        is_str(text_of(setting, "default"), or_null(info.default_value),
               "%s: default", info.name);
        is_str(text_of(setting, "value"), or_null(value), "%s: value",
               info.name);
        is_str(text_of(setting, "accepted"), info.accepted, "%s: accepted",
               info.name);
        is_str(text_of(setting, "help"), info.help, "%s: help", info.name);
        is_str(text_of(setting, "origin"),
               info.origin          ? info.origin
               : info.default_value ? "default"
                                    : "null",
               "%s: origin", info.name);
    }
    is_int(
        json_array_get_length(json_object_get_array_member(root, "settings")),
        (int)count, "all settings, and no more");
}

static void check_build(JsonObject *root)
{
    JsonObject *build = json_object_get_object_member(root, "build");
    const char *name, *value;

    is_str(text_of(build, "version"), DSCOMM_VERSION_STRING, "version");
    for (size_t i = 0; dscomm_build_info(i, &name, &value) == DSCOMM_OK; i++) {
        char *member = g_strdelimit(g_strdup(name), " ", '_');
        is_str(text_of(build, member), value, "%s", member);
        g_free(member);
    }
    ok(json_object_get_array_member(build, "cpu_features") != NULL,
       "cpu_features");
    ok(json_object_get_array_member(build, "kernels") != NULL, "kernels");
}

static void check_backends(JsonObject *root, const char *folder)
{
    JsonObject *self = find(root, "backends", "self");
    JsonObject *broken = find(root, "backends", "broken");
    char *path = g_build_filename(folder, "broken.so", NULL);

    is_str(text_of(root, "backend_directory"), folder, "the folder");
    ok(self && json_object_get_boolean_member(self, "usable"), "self: usable");
    is_str(text_of(self, "path"), "null", "self: built in");
    is_str(text_of(self, "why"), "null", "self: nothing wrong");
    is_str(text_of(self, "detail"), "null", "self: nothing to find here");
    ok(self &&
           json_object_get_int_member_with_default(self, "priority", -1) >= 0,
       "self: priority");
    ok(broken && !json_object_get_boolean_member(broken, "usable"),
       "a broken module: not usable");
    is_str(text_of(broken, "path"), path, "its path");
    is_str(text_of(broken, "priority"), "null", "no priority");
    ok(strlen(or_null(text_of(broken, "why"))) > 4, "why");
    g_free(path);
}

/* Returns element index of an array that is a member of object. */
static JsonObject *element(JsonObject *object, const char *array, guint index)
{
    JsonArray *list = json_object_get_array_member(object, array);

    if (!list || json_array_get_length(list) <= index)
        bail("no element %u of %s", index, array);
    return json_array_get_object_element(list, index);
}

static guint length(JsonObject *object, const char *array)
{
    return json_array_get_length(json_object_get_array_member(object, array));
}

/* The devices of tests/lib/modules/lister.c. */
static void check_devices(void)
{
    JsonParser *parser = query("--devices");
    JsonObject *backend = element(root_of(parser), "devices", 0);
    JsonObject *one = element(backend, "devices", 0);
    JsonObject *down = element(one, "ports", 0),
               *port = element(one, "ports", 1);
    JsonObject *two = element(backend, "devices", 1);

    is_int(length(root_of(parser), "devices"), 1, "a backend with devices");
    is_str(text_of(backend, "backend"), "lister", "its name");
    is_str(text_of(backend, "why"), "null", "nothing is wrong");
    is_int(length(backend, "devices"), 2, "two devices");
    is_str(text_of(one, "name"), "one", "the first one");
    is_str(text_of(one, "pci"), "0000:17:00.0", "a fact that is a text");
    is_str(text_of(one, "numa_node"), "null", "one that is unknown");
    ok(json_object_get_boolean_member(one, "chosen"), "it is chosen");
    is_str(text_of(one, "why"), "null", "nothing is wrong with it");
    is_int(length(one, "ports"), 2, "its ports");
    is_str(text_of(down, "why"), "it is down", "the reason for one");
    is_int(length(down, "gids"), 2, "which has two GIDs");
    is_int(json_object_get_int_member(port, "mtu"), 4096, "a whole number");
    ok(json_object_get_double_member(port, "rate") == 2.5, "another number");
    ok(json_object_get_boolean_member(element(port, "gids", 0), "chosen"),
       "the GID that is chosen");
    ok(!json_object_get_boolean_member(two, "chosen"), "the second device");
    is_str(text_of(two, "why"), "it cannot be opened", "is refused");
    ok(!json_object_has_member(two, "ports"), "and has no ports");
    g_object_unref(parser);
}

static void check_no_devices(void)
{
    JsonParser *parser;
    JsonObject *backend;

    g_setenv("FAKE_LISTER", "none", TRUE);
    parser = query("--devices");
    backend = element(root_of(parser), "devices", 0);
    is_int(length(backend, "devices"), 0, "no devices");
    is_str(text_of(backend, "why"), "there is no device", "with the reason");
    g_object_unref(parser);
    g_unsetenv("FAKE_LISTER");
}

static void check_unknown(JsonObject *root)
{
    is_str(text_of(find(root, "unknown", "DSCOMM_BACKND"), "nearest"),
           "DSCOMM_BACKEND", "an unknown variable and the nearest");
    is_str(text_of(find(root, "unknown", "DSCOMM_XYZZY"), "nearest"), "null",
           "and none");
    is_int(json_array_get_length(json_object_get_array_member(root, "unknown")),
           2, "no more are unknown");
}

/* Returns the choice of all_reduce for so many bytes. */
static JsonObject *choice_at(JsonObject *algorithms, const char *dtype,
                             gint64 bytes)
{
    JsonObject *coll = find(algorithms, "collectives", "all_reduce");
    JsonArray *list = json_object_get_array_member(coll, "choices");

    for (guint i = 0; i < json_array_get_length(list); i++) {
        JsonObject *choice = json_array_get_object_element(list, i);

        if (!g_strcmp0(text_of(choice, "dtype"), dtype) &&
            json_object_get_int_member(choice, "from") <= bytes &&
            (json_object_get_null_member(choice, "to") ||
             json_object_get_int_member(choice, "to") >= bytes))
            return choice;
    }
    return NULL;
}

static void check_algorithms(JsonObject *root)
{
    JsonObject *algorithms = json_object_get_object_member(root, "algorithms");
    JsonObject *gather = find(algorithms, "collectives", "gather_v");
    JsonArray *list = json_object_get_array_member(gather, "choices");
    JsonObject *narrow = choice_at(algorithms, "bfloat16", 1000000);
    dscomm_choice_info_t info = {.size = sizeof info};

    dscomm_choice_info(8, 1, DSCOMM_COLL_ALL_REDUCE, DSCOMM_BFLOAT16,
                       DSCOMM_SUM, 1000000, &info);
    is_int(json_object_get_int_member(algorithms, "ranks"), 8, "8 ranks");
    is_int(json_object_get_int_member(algorithms, "nodes"), 1, "on a node");
    is_str(text_of(choice_at(algorithms, "float32", 65535), "by_setting"),
           "null", "what is not set");
    is_str(text_of(choice_at(algorithms, "float32", 65536), "by_setting"),
           "ring", "what is");
    is_str(text_of(narrow, "by_setting"), "null", "and for whom not");
    is_str(text_of(narrow, "passed_over"), "ring", "which is told");
    ok(strstr(text_of(narrow, "why"), "it needs a type") != NULL,
       "with the reason");
    is_str(text_of(choice_at(algorithms, "float32", 1000000), "passed_over"),
           "null", "and not of others");
    is_str(text_of(narrow, "by_default"), info.by_default, "the default");
    is_int(json_array_get_length(list), 1, "one choice of gather_v");
    list = json_object_get_array_member(gather, "available");
    is_str(json_array_get_string_element(list, 0), "linear",
           "the algorithm of gather_v");
}

static void check_parts(const char *option, const char *members)
{
    JsonParser *parser = query(option);
    GList *names = json_object_get_members(root_of(parser));
    GString *text = g_string_new(NULL);

    for (GList *at = names; at; at = at->next)
        g_string_append_printf(text, "%s ", (const char *)at->data);
    is_str(text->str, members, "its members");
    g_string_free(text, TRUE);
    g_list_free(names);
    g_object_unref(parser);
}

int main(void)
{
    char *folder = g_dir_make_tmp("dscomm-XXXXXX", NULL);
    char *path = g_build_filename(folder, "broken.so", NULL);
    char *lister, *copy;
    JsonParser *parser;
    JsonObject *setting;

    if (!g_file_set_contents(path, "no module", -1, NULL))
        bail("cannot write %s", path);
    /* These settings are unknown if their modules are not found. */
    g_unsetenv("DSCOMM_SHM_NATIVE");
    g_unsetenv("DSCOMM_MPI_PATH");
    g_setenv("DSCOMM_BACKEND_PATH", folder, TRUE);
    g_setenv("DSCOMM_TIMEOUT", "5", TRUE);
    g_setenv("DSCOMM_BACKND", "shm", TRUE);
    g_setenv("DSCOMM_XYZZY", "", TRUE);
    g_setenv("DSCOMM_ALGORITHM", "all_reduce:64K-:ring", TRUE);
    parser = query(NULL);
    check_build(root_of(parser));
    check_backends(root_of(parser), folder);
    check_algorithms(root_of(parser));
    check_settings(root_of(parser));
    check_unknown(root_of(parser));
    setting = find(root_of(parser), "settings", "DSCOMM_TIMEOUT");
    is_str(text_of(setting, "value"), "5", "what the environment says");
    g_object_unref(parser);

    check_parts("--build", "build ");
    check_parts("--backends", "backend_directory backends ");
    check_parts("--devices", "devices ");
    check_parts("--codecs", "codecs device_codecs device_problem ");
    check_parts("--algorithms", "algorithms ");
    check_parts("--settings", "settings unknown ");

    g_setenv("DSCOMM_BACKEND", "\"\\\033\t\377", TRUE);
    parser = query(NULL);
    setting = find(root_of(parser), "settings", "DSCOMM_BACKEND");
    is_str(text_of(setting, "value"), "\"\\\033\t\357\277\275",
           "a value with bytes that JSON does not have");
    g_object_unref(parser);
    lister = g_build_filename(g_getenv("abs_top_builddir"), "tests", "lib",
                              "modules", ".libs", "lister.so", NULL);
    copy = g_build_filename(folder, "lister.so", NULL);
    if (symlink(lister, copy) < 0)
        bail("cannot make %s", copy);
    check_devices();
    check_no_devices();
    remove(copy);
    g_free(copy);
    g_free(lister);
    remove(path);
    remove(folder);
    g_free(path);
    g_free(folder);
    return tap_done();
}
