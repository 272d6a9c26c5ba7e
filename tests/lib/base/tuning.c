/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuning files: what they give, what is refused, and who has precedence. */
#include "config.h"

#include "lib/base/machine.h"
#include "lib/base/settings.h"
#include "lib/base/tuning-check.h"
#include "lib/base/tuning.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"

#define VARIABLE "DSCOMM_TUNING_FILE"
#define TUNABLE(type) (DSCOMM_SETTING_##type | DSCOMM_SETTING_TUNABLE)

/* The table of a backend. */
static const dscomm_setting_t rows[] = {
    {"DSCOMM_X_RING", TUNABLE(BYTES), "64K", 0, 1 << 20, NULL, "Ring."},
    {"DSCOMM_X_KIND", TUNABLE(ENUM), "auto", 0, 0, "auto|yes|no", "Kind."},
    {"DSCOMM_X_FAST", TUNABLE(BOOL), "0", 0, 0, NULL, "Fast."},
    {"DSCOMM_X_WAIT", TUNABLE(MSEC), "1.5", 1, 10000, NULL, "Wait."},
    {"DSCOMM_X_DEVICE", DSCOMM_SETTING_INT, "0", 0, 9, NULL, "Device."},
    {NULL, 0, NULL, 0, 0, NULL, NULL},
};

static char folder[] = "/tmp/tuning.XXXXXX";

/* Stands for glibc's function, to be as in a set-uid program. */
static bool secure;
char *secure_getenv(const char *name);
char *secure_getenv(const char *name)
{
    return secure ? NULL : getenv(name);
}

/* The group of this machine, to be freed; the fact changed, if not NULL, has
 * another value. */
static char *machine_group(const char *format, const char *changed)
{
    dscomm_machine_fact_t facts[DSCOMM_MACHINE_FACTS];
    GString *text = g_string_new("[machine]\n");

    if (format)
        g_string_append_printf(text, "format=%s\n", format);
    dscomm_priv_machine_read("", facts);
    for (int i = 0; i < DSCOMM_MACHINE_FACTS; i++)
        g_string_append_printf(text, "%s=%s\n", facts[i].name,
                               g_strcmp0(facts[i].name, changed) == 0
                                   ? "something else"
                                   : facts[i].value);
    return g_string_free(text, FALSE);
}

/* Writes a file and names it in the environment; returns its path, to be
 * freed. */
static char *file_name(const char *text, gssize length)
{
    static int number;
    char *path = g_strdup_printf("%s/%d", folder, number++);

    if (!g_file_set_contents(path, text, length, NULL))
        bail("cannot write %s", path);
    g_setenv(VARIABLE, path, TRUE);
    return path;
}

/* Does the same for this machine and these lines of settings. */
static char *settings_name(const char *lines)
{
    char *machine = machine_group("1", NULL);
    char *text = g_strconcat(machine, "\n[settings]\n", lines, NULL);
    char *path = file_name(text, -1);

    g_free(text);
    g_free(machine);
    return path;
}

static dscomm_status_t check(void)
{
    const dscomm_setting_t *const tables[] = {dscomm_priv_setting(0), rows};

    return dscomm_priv_tuning_check(tables, 2);
}

static void is_refused(const char *path, const char *words, const char *what)
{
    is_int(check(), DSCOMM_ERR_ENVIRONMENT, "%s is refused", what);
    ok(strstr(dscomm_last_error(), path) && strstr(dscomm_last_error(), words),
       "  the file is named, and why: %s", dscomm_last_error());
}

static void is_number(int row, int64_t want, const char *what)
{
    int64_t value = -77;

    is_int(dscomm_setting_number(&rows[row], &value), DSCOMM_OK, "%s", what);
    is_int(value, want, "  has the number");
}

static void test_values(void)
{
    char *path = settings_name("# a comment\n"
                               "DSCOMM_X_RING=128K\nDSCOMM_X_KIND = No\n"
                               "DSCOMM_X_FAST=\nDSCOMM_X_WAIT=0.25\n"
                               "DSCOMM_ALGORITHM=all_reduce:ring\n");

    is_int(check(), DSCOMM_OK, "a file is accepted");
    is_number(0, 131072, "a size");
    is_number(1, 2, "a word");
    is_number(2, 0, "an empty value counts as unset");
    is_number(3, 250, "a time");
    is_str(dscomm_priv_setting_text(SETTING_ALGORITHM), "all_reduce:ring",
           "a text of the core's");
    is_str(dscomm_priv_setting_file(&rows[0]), path, "the file is known");
    is_str(dscomm_priv_setting_file(&rows[2]), NULL, "that gives nothing");

    g_setenv("DSCOMM_X_RING", "1K", TRUE);
    is_number(0, 1024, "the environment has precedence");
    is_str(dscomm_priv_setting_file(&rows[0]), NULL, "and no file gives it");
    g_setenv("DSCOMM_X_RING", "", TRUE);
    is_number(0, 131072, "an empty variable counts as unset");
    g_unsetenv("DSCOMM_X_RING");

    g_unsetenv(VARIABLE);
    is_int(check(), DSCOMM_OK, "without a file");
    is_number(0, 65536, "the default");
    g_setenv(VARIABLE, path, TRUE);
    is_number(0, 131072, "and again with it");
    if (!g_file_set_contents(path, "", 0, NULL))
        bail("cannot write %s", path);
    is_number(0, 131072, "a file is read once");

    secure = true;
    is_int(check(), DSCOMM_OK, "a set-uid program");
    is_number(0, 65536, "has the default");
    secure = false;
    g_free(path);
}

/* A row that may not be tuned is not looked up, whatever the check says. */
static void test_forbidden(void)
{
    char *path = settings_name("DSCOMM_X_DEVICE=3\n");

    is_number(4, 0, "a setting that may not be tuned keeps its default");
    is_refused(path, "DSCOMM_X_DEVICE cannot be set by a file", "its key");
    g_free(path);
}

static void test_settings(void)
{
    static const struct {
        const char *lines, *words;
    } bad[] = {
        {"DSCOMM_X_RING=2M\n",
         "DSCOMM_X_RING='2M' is not accepted; set it to 0 to 1048576 bytes"},
        {"DSCOMM_X_RING=1\nDSCOMM_X_KIND=maybe\n",
         "'maybe' is not accepted; set it to auto, yes or no, or remove"},
        {"DSCOMM_X_WAIT=-1\n", "'-1' is not accepted"},
        {"DSCOMM_X_RNG=1\n",
         "DSCOMM_X_RNG is no setting of this library or of its backends; is "
         "DSCOMM_X_RING meant?; remove the line"},
        {"ring=1\n", "ring is no setting"},
        {"DSCOMM_BACKEND_PATH=/tmp\n", "DSCOMM_BACKEND_PATH cannot be set"},
        {"DSCOMM_INIT_METHOD=file:///x\n", "DSCOMM_INIT_METHOD cannot be"},
        {"DSCOMM_RANK=0\n", "DSCOMM_RANK cannot be set by a file"},
        {"DSCOMM_JOB_SECRET=aaaaaaaaaaaaaaaa\n", "DSCOMM_JOB_SECRET cannot"},
        {"DSCOMM_LOG=debug\n", "DSCOMM_LOG cannot be set by a file"},
        {"DSCOMM_PROFILE=summary\n", "DSCOMM_PROFILE cannot be set"},
        {"DSCOMM_PROFILER_PLUGIN=/x.so\n", "DSCOMM_PROFILER_PLUGIN cannot be"},
        {"DSCOMM_DUMP=/tmp\n", "DSCOMM_DUMP cannot be set by a file"},
        {"DSCOMM_TUNING_FILE=/tmp/x\n", "DSCOMM_TUNING_FILE cannot be set"},
        {"DSCOMM_TIMEOUT=1\n", "DSCOMM_TIMEOUT cannot be set by a file"},
        {"DSCOMM_X_RING=1\\q\n", "value that cannot be interpreted"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        char *path = settings_name(bad[i].lines);

        is_refused(path, bad[i].words, bad[i].lines);
        g_free(path);
    }
}

/* Every setting of the core that a file may give. */
static void test_tunable(void)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        is_int(!!(dscomm_priv_setting(i)->type & DSCOMM_SETTING_TUNABLE),
               i == SETTING_ALGORITHM, "%s: may be tuned",
               dscomm_priv_setting(i)->name);
}

static void test_machine(void)
{
    static const char *const facts[] = {"processor", "processors", "cache",
                                        "numa_nodes"};
    char *machine, *path;

    for (size_t i = 0; i < G_N_ELEMENTS(facts); i++) {
        char *words = g_strdup_printf("another machine: its %s is 'something "
                                      "else', here it is '",
                                      facts[i]);

        machine = machine_group("1", facts[i]);
        path = file_name(machine, -1);
        is_refused(path, words, facts[i]);
        ok(strstr(dscomm_last_error(), "run `dscomm tune` here, or unset "
                                       "DSCOMM_TUNING_FILE") != NULL,
           "  and what to do");
        g_free(machine);
        g_free(path);
        g_free(words);
    }
    machine = machine_group("2", NULL);
    path = file_name(machine, -1);
    is_refused(path, "has format 2, and this libdscomm reads format 1", "2");
    g_free(machine);
    g_free(path);
    machine = machine_group(NULL, NULL);
    path = file_name(machine, -1);
    is_refused(path, "does not tell its format in [machine]", "no format");
    g_free(machine);
    g_free(path);
    path = file_name("[machine]\nformat=1\nprocessor=x\n", -1);
    is_refused(path, "another machine: its processor is 'x'", "a part");
    g_free(path);
    path = file_name("[machine]\nformat=1\n", -1);
    is_refused(path, "does not tell the machine's processor", "less");
    g_free(path);
    machine = machine_group("1", NULL);
    path = file_name(machine, -1);
    is_int(check(), DSCOMM_OK, "a file without settings is accepted");
    g_free(machine);
    g_free(path);
}

static void test_malformed(void)
{
    static const struct {
        const char *what, *text;
        int length; /* -1: to the final 0 */
        const char *words;
    } bad[] = {
        {"an empty file", "", -1, "does not tell its format"},
        {"no key file", "hello\n", -1, "is malformed: "},
        {"a key without a group", "format=1\n", -1, "is malformed: "},
        {"an open group", "[machine\n", -1, "is malformed: "},
        {"Latin-1", "[machine]\nformat=\xe9\n", -1, "is not UTF-8"},
        {"a zero byte", "[machine]\nformat=\0001\n", 20, "is not UTF-8"},
        {"another group", "[machine]\nformat=1\n[rules]\na=b\n", -1,
         "has a group [rules]; there are only [machine] and [settings]"},
        {"a group with a bell", "[machine]\n[a\002]\n", -1, "is malformed: "},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        char *path = file_name(bad[i].text, bad[i].length);

        is_refused(path, bad[i].words, bad[i].what);
        g_free(path);
    }
}

static void test_files(void)
{
    char *long_text = g_strnfill(DSCOMM_TUNING_MAX + 1, '#');
    char *path = file_name(long_text, -1);

    is_refused(path, "has more than 32768 bytes", "a file that is too long");
    g_free(path);
    g_setenv(VARIABLE, "/no/such/file", TRUE);
    is_refused("/no/such/file",
               "cannot be read: No such file or directory; "
               "write one with `dscomm tune`, or unset",
               "a file that does not exist");
    g_setenv(VARIABLE, folder, TRUE);
    is_refused(folder, "is a directory", "a folder");
    g_setenv(VARIABLE, "/dev/zero", TRUE);
    is_refused("/dev/zero", "is no regular file", "a device");
    path = g_strdup_printf("%s/fifo", folder);
    if (mkfifo(path, 0600))
        bail("no FIFO");
    g_setenv(VARIABLE, path, TRUE);
    is_refused(path, "is no regular file", "a FIFO without a writer");
    g_free(path);
    path = settings_name("DSCOMM_X_RING=128K\n");
    if (g_chmod(path, 0) || access(path, R_OK) == 0) {
        skip("a file that may not be read: root may");
    } else {
        is_refused(path, "Permission denied", "a file that may not be read");
    }
    g_free(path);
    g_free(long_text);
}

static void *thread_main(void *arg)
{
    int64_t *value = arg;

    dscomm_setting_number(&rows[0], value);
    return NULL;
}

static void test_threads(void)
{
    char *path = settings_name("DSCOMM_X_RING=77\n");
    int64_t values[8] = {0}, right = 0;
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, thread_main, &values[i]))
            bail("no thread");
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        right += values[i] == 77;
    }
    is_int(right, 8, "threads that are first at the same time");
    g_free(path);
}

int main(void)
{
    char *remove;

    if (!mkdtemp(folder))
        bail("no folder");
    test_values();
    test_forbidden();
    test_settings();
    test_tunable();
    test_machine();
    test_malformed();
    test_files();
    test_threads();
    remove = g_strdup_printf("rm -rf %s", folder);
    is_int(system(remove), 0, "the end");
    g_free(remove);
    return tap_done();
}
