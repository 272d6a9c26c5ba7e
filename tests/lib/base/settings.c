/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of each type of setting, the core's table, and misspelt names. */
#include "config.h"

#include "lib/base/settings.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define BOOL DSCOMM_SETTING_BOOL
#define INT DSCOMM_SETTING_INT
#define BYTES DSCOMM_SETTING_BYTES
#define MSEC DSCOMM_SETTING_MSEC
#define ENUM DSCOMM_SETTING_ENUM
#define STRING DSCOMM_SETTING_STRING

#define REFUSED (-77) /* where a number is expected: none is written */

static const struct {
    dscomm_setting_type_t type;
    int64_t min, max;
    const char *text;
    int64_t want; /* REFUSED: the text is */
} parsed[] = {
    {BOOL, 0, 0, "0", 0},
    {BOOL, 0, 0, "1", 1},
    {BOOL, 0, 0, "no", 0},
    {BOOL, 0, 0, "yes", 1},
    {BOOL, 0, 0, "off", 0},
    {BOOL, 0, 0, "On", 1},
    {BOOL, 0, 0, "FALSE", 0},
    {BOOL, 0, 0, "True", 1},
    {INT, 0, 10, "0", 0},
    {INT, 0, 10, "10", 10},
    {INT, 0, 10, " 3 ", 3},
    {INT, 0, 10, "\t3", 3},
    {INT, 0, 10, "007", 7},
    {INT, 0, 10, "-0", 0},
    {INT, -5, 10, "-5", -5},
    {INT, INT64_MIN, INT64_MAX, "9223372036854775807", INT64_MAX},
    {INT, INT64_MIN, INT64_MAX, "-9223372036854775807", -INT64_MAX},
    {BYTES, 0, INT64_MAX, "0", 0},
    {BYTES, 0, INT64_MAX, "100", 100},
    {BYTES, 0, INT64_MAX, "64K", 65536},
    {BYTES, 0, INT64_MAX, "64k", 65536},
    {BYTES, 0, INT64_MAX, "4M", 4194304},
    {BYTES, 0, INT64_MAX, "1G", 1073741824},
    {BYTES, 0, INT64_MAX, "2T", INT64_C(2199023255552)},
    {BYTES, 0, INT64_MAX, " 1K ", 1024},
    {BYTES, 0, INT64_MAX, "8388607T", INT64_C(9223370937343148032)},
    {MSEC, 1, 1000000, "1", 1000},
    {MSEC, 1, 1000000, "1.5", 1500},
    {MSEC, 1, 1000000, "0.001", 1},
    {MSEC, 1, 1000000, "0.0019", 1},
    {MSEC, 1, 1000000, "1.25 ", 1250},
    {MSEC, 1, 1000000, "000.100", 100},
    {MSEC, 1, 1000000, "1000", 1000000},
    {ENUM, 0, 0, "one", 0},
    {ENUM, 0, 0, "two", 1},
    {ENUM, 0, 0, "Twofold", 2},
    {BOOL, 0, 0, "2", REFUSED},
    {BOOL, 0, 0, "y", REFUSED},
    {BOOL, 0, 0, " 1", REFUSED},
    {BOOL, 0, 0, "01", REFUSED},
    {INT, 0, 10, "11", REFUSED},
    {INT, 0, 10, "-1", REFUSED},
    {INT, 0, 10, "abc", REFUSED},
    {INT, 0, 10, "1 2", REFUSED},
    {INT, 0, 10, "0x1", REFUSED},
    {INT, 0, 10, "1.0", REFUSED},
    {INT, 0, 10, "1e1", REFUSED},
    {INT, 0, 10, "+1", REFUSED},
    {INT, 0, 10, "--1", REFUSED},
    {INT, -5, 10, "- 1", REFUSED},
    {INT, 0, 10, "-", REFUSED},
    {INT, 0, 10, " ", REFUSED},
    {INT, 0, 10, "1\n", REFUSED},
    {INT, 0, 10, "\xd9\xa1", REFUSED}, /* Arabic digit one */
    {INT, 0, INT64_MAX, "9223372036854775808", REFUSED},
    {INT, 0, INT64_MAX, "99999999999999999999", REFUSED},
    {INT, INT64_MIN, 0, "-99999999999999999999", REFUSED},
    {BYTES, 0, INT64_MAX, "K", REFUSED},
    {BYTES, 0, INT64_MAX, "1KB", REFUSED},
    {BYTES, 0, INT64_MAX, "1 K", REFUSED},
    {BYTES, 0, INT64_MAX, "1P", REFUSED},
    {BYTES, 0, INT64_MAX, "1.5M", REFUSED},
    {BYTES, 0, INT64_MAX, "-1", REFUSED},
    {BYTES, 0, INT64_MAX, "8388608T", REFUSED},
    {BYTES, 0, INT64_MAX, "9223372036854775807K", REFUSED},
    {BYTES, 1024, 2048, "1023", REFUSED},
    {BYTES, 1024, 2048, "3K", REFUSED},
    {MSEC, 1, 1000000, "0", REFUSED},
    {MSEC, 1, 1000000, "0.0009", REFUSED},
    {MSEC, 1, 1000000, "1000.001", REFUSED},
    {MSEC, 1, 1000000, "-1", REFUSED},
    {MSEC, 1, 1000000, ".", REFUSED},
    {MSEC, 1, 1000000, ".5", REFUSED},
    {MSEC, 1, 1000000, "5.", REFUSED},
    {MSEC, 1, 1000000, "1.5.5", REFUSED},
    {MSEC, 1, 1000000, "1e3", REFUSED},
    {MSEC, 1, 1000000, "1,5", REFUSED},
    {MSEC, 1, 1000000, "10s", REFUSED},
    {MSEC, 1, 1000000, "inf", REFUSED},
    {MSEC, 1, 1000000, "nan", REFUSED},
    {MSEC, 1, INT64_MAX,
     "9223372036854775"
     ".808",
     REFUSED},
    {MSEC, 1, INT64_MAX, "9223372036854775807", REFUSED},
    {ENUM, 0, 0, "three", REFUSED},
    {ENUM, 0, 0, "tw", REFUSED},
    {ENUM, 0, 0, "one|two", REFUSED},
    {ENUM, 0, 0, " one", REFUSED},
    {ENUM, 0, 0, "|", REFUSED},
    {ENUM, 0, 0, "0", REFUSED},
    {STRING, 0, 0, "1", REFUSED},
};

static dscomm_setting_t row_of(dscomm_setting_type_t type, int64_t min,
                               int64_t max)
{
    return (dscomm_setting_t){"DSCOMM_TEST_ROW",
                              type,
                              NULL,
                              min,
                              max,
                              type == ENUM ? "one|two|twofold" : NULL,
                              "Help."};
}

static void test_parse(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(parsed); i++) {
        const int refuses = parsed[i].want == REFUSED;
        dscomm_setting_t row =
            row_of(parsed[i].type, parsed[i].min, parsed[i].max);
        int64_t value = REFUSED;

        is_int(dscomm_priv_setting_parse(&row, parsed[i].text, &value),
               refuses ? DSCOMM_ERR_ENVIRONMENT : DSCOMM_OK, "type %d %s '%s'",
               parsed[i].type, refuses ? "refuses" : "takes", parsed[i].text);
        is_int(value, parsed[i].want,
               refuses ? "nothing is written" : "its value");
    }
}

static const struct {
    dscomm_setting_t row;
    const char *text, *want;
} sentences[] = {
    {{"DSCOMM_X", INT, NULL, 1, 65535, NULL, ""},
     "70000",
     "DSCOMM_X='70000' is not accepted; set it to 1 to 65535, or unset it"},
    {{"DSCOMM_X", ENUM, NULL, 0, 0, "a|b|c", ""},
     "d",
     "DSCOMM_X='d' is not accepted; set it to a, b or c, or unset it"},
    {{"DSCOMM_X", ENUM, NULL, 0, 0, "only", ""},
     "d",
     "DSCOMM_X='d' is not accepted; set it to only, or unset it"},
    {{"DSCOMM_X", MSEC, NULL, 1, 2500, NULL, ""},
     "3",
     "DSCOMM_X='3' is not accepted; set it to 0.001 to 2.500 seconds, or "
     "unset it"},
    {{"DSCOMM_X", BYTES, NULL, 0, 4096, NULL, ""},
     "5K",
     "DSCOMM_X='5K' is not accepted; set it to 0 to 4096 bytes, with K, M, G "
     "or T for powers of 1024, or unset it"},
    {{"DSCOMM_X", BOOL, NULL, 0, 0, NULL, ""},
     "a\nb",
     "DSCOMM_X='a b' is not accepted; set it to 0, 1, no, yes, off, on, false "
     "or true, or unset it"},
};

static void test_sentences(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sentences); i++) {
        int64_t value;

        dscomm_priv_setting_parse(&sentences[i].row, sentences[i].text, &value);
        is_str(dscomm_last_error(), sentences[i].want, "sentence %zu", i);
    }
    ok(dscomm_priv_setting_accepted(&sentences[0].row) ==
           dscomm_priv_setting_accepted(&sentences[0].row),
       "what is accepted is static text");
}

static void test_table(void)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const dscomm_setting_t *row = dscomm_priv_setting(i);
        int64_t value;

        ok(row->name && g_str_has_prefix(row->name, "DSCOMM_"),
           "row %d has a name", i);
        ok(row->help && g_str_has_suffix(row->help, "."), "%s has help",
           row->name);
        if (row->default_value && row->type != STRING)
            is_int(dscomm_priv_setting_parse(row, row->default_value, &value),
                   DSCOMM_OK, "%s: its default is accepted", row->name);
        for (int j = 0; j < i; j++)
            ok(strcmp(row->name, dscomm_priv_setting(j)->name) != 0,
               "%s occurs once", row->name);
    }
    ok(!dscomm_priv_setting(0)[SETTING_COUNT].name, "the table ends");
}

static const struct {
    int index;
    const char *name, *text; /* NULL: unset */
    int64_t want;
} numbers[] = {
    {SETTING_TIMEOUT, "DSCOMM_TIMEOUT", NULL, 1800000},
    {SETTING_TIMEOUT, "DSCOMM_TIMEOUT", "", 1800000},
    {SETTING_TIMEOUT, "DSCOMM_TIMEOUT", "0.25", 250},
    {SETTING_TIMEOUT, "DSCOMM_TIMEOUT", "2147483.647", 2147483647},
    {SETTING_TIMEOUT, "DSCOMM_TIMEOUT", "2147483.648", REFUSED},
    {SETTING_TIMEOUT, "DSCOMM_TIMEOUT", "0", REFUSED},
    {SETTING_TIMEOUT, "DSCOMM_TIMEOUT", "soon", REFUSED},
    {SETTING_CPU, "DSCOMM_CPU", NULL, 0},
    {SETTING_CPU, "DSCOMM_CPU", "c", 1},
    {SETTING_CPU, "DSCOMM_CPU", "avx2", 2},
    {SETTING_CPU, "DSCOMM_CPU", "avx512", 3},
    {SETTING_CPU, "DSCOMM_CPU", "neon", 4},
    {SETTING_CPU, "DSCOMM_CPU", "avx1024", REFUSED},
    {SETTING_CUDA_IPC, "DSCOMM_CUDA_IPC", NULL, 0},
    {SETTING_CUDA_IPC, "DSCOMM_CUDA_IPC", "no", 1},
    {SETTING_CUDA_IPC, "DSCOMM_CUDA_IPC", "auto", REFUSED},
    {SETTING_PROGRESS, "DSCOMM_PROGRESS", NULL, 0},
    {SETTING_PROGRESS, "DSCOMM_PROGRESS", "thread", 1},
    {SETTING_RANK, "DSCOMM_RANK", NULL, -1},
    {SETTING_RANK, "DSCOMM_RANK", "0", 0},
    {SETTING_RANK, "DSCOMM_RANK", "1048576", REFUSED},
    {SETTING_WORLD_SIZE, "DSCOMM_WORLD_SIZE", "1048576", 1048576},
    {SETTING_WORLD_SIZE, "DSCOMM_WORLD_SIZE", "1048577", REFUSED},
    {SETTING_WORLD_SIZE, "DSCOMM_WORLD_SIZE", "0", REFUSED},
    {SETTING_LOCAL_RANK, "DSCOMM_LOCAL_RANK", "-1", REFUSED},
    {SETTING_LOCAL_SIZE, "DSCOMM_LOCAL_SIZE", "0", REFUSED},
    {SETTING_NODE_RANK, "DSCOMM_NODE_RANK", "3", 3},
    {SETTING_MASTER_PORT, "DSCOMM_MASTER_PORT", "65535", 65535},
    {SETTING_MASTER_PORT, "DSCOMM_MASTER_PORT", "65536", REFUSED},
    {SETTING_MASTER_PORT, "DSCOMM_MASTER_PORT", "0", REFUSED},
};

static const struct {
    int index;
    const char *name, *text, *want;
} texts[] = {
    {SETTING_BACKEND, "DSCOMM_BACKEND", NULL, "auto"},
    {SETTING_BACKEND, "DSCOMM_BACKEND", "", "auto"},
    {SETTING_BACKEND, "DSCOMM_BACKEND", "shm", "shm"},
    {SETTING_BACKEND_PATH, "DSCOMM_BACKEND_PATH", NULL, NULL},
    {SETTING_BACKEND_PATH, "DSCOMM_BACKEND_PATH", "/x y", "/x y"},
    {SETTING_INIT_METHOD, "DSCOMM_INIT_METHOD", NULL, "env://"},
    {SETTING_LOG, "DSCOMM_LOG", NULL, "warn"},
    {SETTING_MASTER_ADDR, "DSCOMM_MASTER_ADDR", NULL, NULL},
    {SETTING_HOST_ID, "DSCOMM_HOST_ID", NULL, NULL},
    {SETTING_HOST_ID, "DSCOMM_HOST_ID", "a", "a"},
};

static void put(const char *name, const char *text)
{
    if (text)
        setenv(name, text, 1);
    else
        unsetenv(name);
}

static void clear_environment(void)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        unsetenv(dscomm_priv_setting(i)->name);
}

static void test_environment(void)
{
    clear_environment();
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        const char *text = numbers[i].text ? numbers[i].text : "(unset)";
        int refuses = numbers[i].want == REFUSED;
        int64_t value = REFUSED;

        put(numbers[i].name, numbers[i].text);
        is_int(dscomm_priv_setting_number(numbers[i].index, &value),
               refuses ? DSCOMM_ERR_ENVIRONMENT : DSCOMM_OK, "%s=%s",
               numbers[i].name, text);
        is_int(value, numbers[i].want, "its number");
        is_int(dscomm_priv_settings_validate(),
               refuses ? DSCOMM_ERR_ENVIRONMENT : DSCOMM_OK,
               "validated with the table");
        put(numbers[i].name, NULL);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        put(texts[i].name, texts[i].text);
        is_str(dscomm_priv_setting_text(texts[i].index), texts[i].want, "%s",
               texts[i].name);
        put(texts[i].name, NULL);
    }
}

static void test_validate(void)
{
    int64_t value = REFUSED;

    setenv("DSCOMM_LOG", "loud", 1);
    is_int(dscomm_priv_settings_validate(), DSCOMM_ERR_ENVIRONMENT,
           "DSCOMM_LOG is validated");
    ok(strstr(dscomm_last_error(), "DSCOMM_LOG: 'loud'") != NULL,
       "and its word named");
    unsetenv("DSCOMM_LOG");
    is_int(dscomm_priv_setting_number(SETTING_LOG, &value), DSCOMM_ERR_INVALID,
           "text has no number");
    is_int(value, REFUSED, "and none is written");
}

static const dscomm_setting_t shm[] = {
    {"DSCOMM_SHM_RING", BYTES, "64K", 0, 65536, NULL, "Ring."},
    {NULL, BOOL, NULL, 0, 0, NULL, NULL},
};

static const struct {
    const char *name, *want;
} nearest[] = {
    {"DSCOMM_BACKND", "DSCOMM_BACKEND"},
    {"DSCOMM_BACKENDS", "DSCOMM_BACKEND"},
    {"DSCOMM_BACKENDPATH", "DSCOMM_BACKEND_PATH"},
    {"DSCOMM_TIMEOUT_S", "DSCOMM_TIMEOUT"},
    {"DSCOMM_TIEMOUT", "DSCOMM_TIMEOUT"},
    {"DSCOMM_WORLDSIZE", "DSCOMM_WORLD_SIZE"},
    {"DSCOMM_LOGS", "DSCOMM_LOG"},
    {"DSCOMM_SHM_RNG", "DSCOMM_SHM_RING"},
    {"DSCOMM_MASTER_ADDRESS", "DSCOMM_MASTER_ADDR"},
    {"DSCOMM_COMPLETELY_DIFFERENT", NULL},
    {"DSCOMM_Z", NULL},
    {"DSCOMM_", NULL},
};

static void count_line(dscomm_log_level_t level, const char *domain,
                       const char *message, void *arg)
{
    (void)domain;
    if (level == DSCOMM_LOG_WARN)
        g_string_append_printf(arg, "%s\n", message);
}

static void test_unknown(void)
{
    const dscomm_setting_t *const tables[] = {dscomm_priv_setting(0), shm};
    char *environment[] = {(char *)"DSCOMM_RANK=0",
                           (char *)"DSCOMM_SHM_RING=1K",
                           (char *)"DSCOMM_BACKND=shm",
                           (char *)"NOT_DSCOMM_X=1",
                           (char *)"DSCOMM_XYZZY=1",
                           (char *)"DSCOMM_LOGG",
                           (char *)"dscomm_log=1",
                           (char *)"DSCOMM=1",
                           NULL};
    GString *lines = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(nearest); i++)
        is_str(dscomm_priv_setting_nearest(nearest[i].name, tables, 2),
               nearest[i].want, "nearest to %s", nearest[i].name);
    dscomm_log_set_levels("warn");
    dscomm_log_set_handler(count_line, lines);
    dscomm_priv_settings_check(NULL, tables, 2);
    dscomm_priv_settings_check(environment, tables, 2);
    is_str(lines->str,
           "DSCOMM_BACKND is no setting and has no effect; is DSCOMM_BACKEND "
           "meant?\n"
           "DSCOMM_XYZZY is no setting and has no effect; `dscomm info "
           "--settings` lists those there are\n"
           "DSCOMM_LOGG is no setting and has no effect; is DSCOMM_LOG "
           "meant?\n",
           "unknown settings are warned about");
    g_string_truncate(lines, 0);
    dscomm_priv_settings_check(environment, tables, 2);
    is_str(lines->str, "", "once a process");
    dscomm_log_set_handler(NULL, NULL);
    g_string_free(lines, TRUE);
}

static void test_long_name(void)
{
    const dscomm_setting_t *const tables[] = {dscomm_priv_setting(0)};
    char name[5000];

    for (int length = 60; length < 70; length++) {
        memset(name, 'X', sizeof name);
        memcpy(name, "DSCOMM_", 7);
        name[length] = '\0';
        is_str(dscomm_priv_setting_nearest(name, tables, 1), NULL,
               "a name of %d bytes", length);
    }
}

int main(void)
{
    test_parse();
    test_sentences();
    test_table();
    test_environment();
    test_validate();
    test_unknown();
    test_long_name();
    return tap_done();
}
