/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's information on itself: settings and build choices. */
#include "config.h"

#include "lib/base/settings.h"

#include <dscomm/info.h>
#include <dscomm/version.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

static const struct {
    const char *name, *type, *default_value, *accepted;
} settings[] = {
    {"DSCOMM_BACKEND", "text", "auto", "text"},
    {"DSCOMM_BACKEND_PATH", "text", NULL, "path"},
    {"DSCOMM_TIMEOUT", "seconds", "1800", "0.001 to 2147483.647 seconds"},
    {"DSCOMM_CPU", "enum", "auto", "auto, c, avx2, avx512 or neon"},
    {"DSCOMM_PROGRESS", "enum", "caller", "caller or thread"},
    {"DSCOMM_WORLD_SIZE", "integer", NULL, "1 to 1048576"},
    {"DSCOMM_MASTER_PORT", "integer", NULL, "1 to 65535"},
};

/* Returns the setting with that name, or 0. */
static int find(const char *name, dscomm_setting_info_t *info)
{
    for (size_t i = 0;; i++) {
        info->size = sizeof *info;
        if (dscomm_setting_info(i, info) != DSCOMM_OK)
            return 0;
        if (strcmp(info->name, name) == 0)
            return 1;
    }
}

static void test_settings(void)
{
    dscomm_setting_info_t info;

    for (size_t i = 0; i < G_N_ELEMENTS(settings); i++) {
        const char *name = settings[i].name;

        if (!ok(find(name, &info), "%s is listed", name))
            continue;
        is_str(info.type, settings[i].type, "%s: type", name);
        is_str(info.default_value, settings[i].default_value, "%s: default",
               name);
        is_str(info.accepted, settings[i].accepted, "%s: accepted", name);
        ok(info.help && *info.help, "%s: help", name);
    }
    setenv("DSCOMM_TIMEOUT", "nonsense", 1);
    find("DSCOMM_TIMEOUT", &info);
    is_str(info.value, "nonsense", "the value is what the environment says");
    setenv("DSCOMM_TIMEOUT", "", 1);
    find("DSCOMM_TIMEOUT", &info);
    is_str(info.value, NULL, "which may be nothing");
    unsetenv("DSCOMM_TIMEOUT");
    ok(!find("DSCOMM_NO_SUCH_THING", &info), "nothing else is listed");
}

/* The core's rows come first; the list ends, and each name occurs once. */
static void test_list(void)
{
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    dscomm_setting_info_t info = {.size = sizeof info};
    size_t count = 0;

    while (count < 1000 && dscomm_setting_info(count, &info) == DSCOMM_OK) {
        if (count < SETTING_COUNT)
            is_str(info.name, dscomm_priv_setting((int)count)->name,
                   "setting %zu", count);
        ok(g_hash_table_add(names, (gpointer)info.name), "%s occurs once",
           info.name);
        count++;
    }
    ok(count >= SETTING_COUNT && count < 1000, "the list ends");
    is_int(dscomm_setting_info(count, &info), DSCOMM_ERR_NOT_FOUND,
           "nothing follows its end");
    is_int(dscomm_setting_info((size_t)-1, &info), DSCOMM_ERR_NOT_FOUND,
           "nor far behind it");
    g_hash_table_destroy(names);
}

/* Structures of callers with fewer, or more, members. */
static void test_sizes(void)
{
    struct {
        dscomm_setting_info_t info;
        char more[16], guard;
    } newer = {.info = {.size = sizeof newer.info + sizeof newer.more}};
    dscomm_setting_info_t older = {
        .size = offsetof(dscomm_setting_info_t, default_value), .value = "x"};
    char zeros[sizeof newer.more] = "";
    dscomm_backend_info_t backend;

    memset(newer.more, 'x', sizeof newer.more);
    newer.guard = 'g';
    is_int(dscomm_setting_info(0, &newer.info), DSCOMM_OK, "newer caller");
    ok(memcmp(newer.more, zeros, sizeof zeros) == 0, "its members are zero");
    is_int(newer.guard, 'g', "what follows is untouched");
    is_int((long long)newer.info.size,
           (long long)(sizeof newer.info + sizeof newer.more),
           "size is as it was");
    is_int(dscomm_setting_info(0, &older), DSCOMM_OK, "older caller");
    is_str(older.name, "DSCOMM_BACKEND", "gets the name");
    is_str(older.default_value, NULL, "but not what it does not know");
    is_str(older.value, "x", "nor what follows");
    older.size = 0;
    is_int(dscomm_setting_info(0, &older), DSCOMM_ERR_INVALID, "no size");
    older.size = (size_t)1 << (4 * sizeof(size_t));
    is_int(dscomm_setting_info(0, &older), DSCOMM_ERR_INVALID, "any size");
    is_int(dscomm_setting_info(0, NULL), DSCOMM_ERR_INVALID, "no info");
    backend.size = older.size;
    is_int(dscomm_backend_info(0, &backend), DSCOMM_ERR_INVALID,
           "a backend's, too");
    is_int(dscomm_backend_info(0, NULL), DSCOMM_ERR_INVALID, "or none");
}

/* The environment has entries that no shell would set. */
static void test_unknown(void)
{
    char *kept[] = {(char *)"DSCOMM_RANK=0", (char *)"DSCOMM_RANC",
                    (char *)"PATH=/bin", (char *)"DSCOMM_\033X=1", NULL};
    char **before = environ;
    const char *name = NULL, *nearest = NULL;

    environ = kept;
    is_int(dscomm_setting_unknown(0, &name, &nearest), DSCOMM_OK, "unknown");
    is_str(name, "DSCOMM_RANC", "its name");
    is_str(nearest, "DSCOMM_RANK", "the nearest");
    is_int(dscomm_setting_unknown(1, &name, &nearest), DSCOMM_OK, "another");
    is_str(name, "DSCOMM_\033X", "its name");
    is_int(dscomm_setting_unknown(2, &name, &nearest), DSCOMM_ERR_NOT_FOUND,
           "no more");
    environ = NULL;
    is_int(dscomm_setting_unknown(0, &name, &nearest), DSCOMM_ERR_NOT_FOUND,
           "no environment");
    environ = before;
    is_int(dscomm_setting_unknown(0, NULL, &nearest), DSCOMM_ERR_INVALID,
           "no name");
    is_int(dscomm_setting_unknown(0, &name, NULL), DSCOMM_ERR_INVALID,
           "no nearest");
}

static void test_build(void)
{
    const char *name, *value;
    size_t count = 0;

    for (; dscomm_build_info(count, &name, &value) == DSCOMM_OK; count++) {
        ok(*name && *value, "%s is %s", name, value);
        ok(!strchr(value, '/'), "no path in it");
        if (strcmp(name, "version") == 0)
            is_str(value, PACKAGE_VERSION, "the package's version");
    }
    ok(count > 3, "there are choices");
    is_int(dscomm_version(), 1000, "0.1.0 as a number");
    is_str(dscomm_version_string(), PACKAGE_VERSION, "and as text");
    is_int(dscomm_build_info(count, &name, &value), DSCOMM_ERR_NOT_FOUND,
           "nothing follows the last");
    is_int(dscomm_build_info(0, NULL, &value), DSCOMM_ERR_INVALID, "no name");
    is_int(dscomm_build_info(0, &name, NULL), DSCOMM_ERR_INVALID, "no value");
}

int main(void)
{
    test_settings();
    test_list();
    test_sizes();
    test_unknown();
    test_build();
    return tap_done();
}
