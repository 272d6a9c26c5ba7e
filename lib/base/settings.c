/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's settings, and the functions that read and check any table of
 * settings. */
#include "config.h"

#include "lib/base/settings.h"

#include "lib/base/log.h"
#include "lib/base/nearest.h"
#include "lib/base/status.h"
#include "lib/base/tuning.h"

#include <glib.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "DSCOMM_"
#define BLANKS " \t"
#define BOOL_WORDS "0|1|no|yes|off|on|false|true" /* each other is true */

static const dscomm_setting_t settings[SETTING_COUNT + 1] = {
    [SETTING_BACKEND] = {"DSCOMM_BACKEND", DSCOMM_SETTING_STRING, "auto", 0, 0,
                         NULL, "Backend of the world: auto, or its name."},
    [SETTING_BACKEND_PATH] = {"DSCOMM_BACKEND_PATH", DSCOMM_SETTING_STRING,
                              NULL, 0, 0, "path",
                              "Folder to load backends from, instead of the "
                              "installed one."},
    [SETTING_INIT_METHOD] = {"DSCOMM_INIT_METHOD", DSCOMM_SETTING_STRING,
                             "env://", 0, 0, "path",
                             "Where ranks meet: env://, tcp://HOST:PORT or "
                             "file:///PATH."},
    [SETTING_TIMEOUT] = {"DSCOMM_TIMEOUT", DSCOMM_SETTING_MSEC, "1800", 1,
                         INT_MAX, NULL,
                         "Default deadline of start-up and of every "
                         "operation."},
    [SETTING_LOG] = {"DSCOMM_LOG", DSCOMM_SETTING_STRING, "warn", 0, 0,
                     "LEVEL or DOMAIN:LEVEL, comma separated",
                     "What goes to stderr: error, warn, info, debug or "
                     "trace."},
    [SETTING_CPU] = {"DSCOMM_CPU", DSCOMM_SETTING_ENUM, "auto", 0, 0,
                     "auto|c|avx2|avx512|neon",
                     "Best instruction set that kernels may use."},
    [SETTING_BIND] = {"DSCOMM_BIND", DSCOMM_SETTING_STRING, "none", 0, 0,
                      "[force:]numa, core, socket, gpu, none or a list as "
                      "0-3,8",
                      "Processors to which dscomm_init() binds each rank: its "
                      "share of those of an object."},
    [SETTING_CUDA_IPC] = {"DSCOMM_CUDA_IPC", DSCOMM_SETTING_ENUM, "yes", 0, 0,
                          "yes|no",
                          "Whether compressed data are read in the device "
                          "memory of other processes."},
    [SETTING_ALGORITHM] =
        {"DSCOMM_ALGORITHM", DSCOMM_SETTING_STRING | DSCOMM_SETTING_TUNABLE,
         NULL, 0, 0, "COLLECTIVE[@WHERE]:[FROM-TO:]ALGORITHM, comma separated",
         "Algorithms of collectives, instead of what the "
         "library chooses."},
    [SETTING_TUNING_FILE] = {"DSCOMM_TUNING_FILE", DSCOMM_SETTING_STRING, NULL,
                             0, 0, "path",
                             "File of dscomm tune, whose values replace the "
                             "defaults on machines like the one it was made "
                             "on."},
    [SETTING_PROGRESS] = {"DSCOMM_PROGRESS", DSCOMM_SETTING_ENUM, "caller", 0,
                          0, "caller|thread",
                          "Who advances started operations: whoever waits, or "
                          "a thread."},
    [SETTING_WATCHDOG] = {"DSCOMM_WATCHDOG", DSCOMM_SETTING_BOOL, "1", 0, 0,
                          NULL,
                          "Whether a thread watches the deadlines of works for "
                          "which nobody waits."},
    [SETTING_RANK] = {"DSCOMM_RANK", DSCOMM_SETTING_INT, NULL, 0,
                      DSCOMM_RANKS_MAX - 1, NULL,
                      "Rank in the world; overrides the launcher's."},
    [SETTING_WORLD_SIZE] = {"DSCOMM_WORLD_SIZE", DSCOMM_SETTING_INT, NULL, 1,
                            DSCOMM_RANKS_MAX, NULL,
                            "Ranks in the world; goes with DSCOMM_RANK."},
    [SETTING_LOCAL_RANK] = {"DSCOMM_LOCAL_RANK", DSCOMM_SETTING_INT, NULL, 0,
                            DSCOMM_RANKS_MAX - 1, NULL,
                            "Rank among those of this node."},
    [SETTING_LOCAL_SIZE] = {"DSCOMM_LOCAL_SIZE", DSCOMM_SETTING_INT, NULL, 1,
                            DSCOMM_RANKS_MAX, NULL, "Ranks on this node."},
    [SETTING_NODE_RANK] = {"DSCOMM_NODE_RANK", DSCOMM_SETTING_INT, NULL, 0,
                           DSCOMM_RANKS_MAX - 1, NULL, "Number of this node."},
    [SETTING_MASTER_ADDR] = {"DSCOMM_MASTER_ADDR", DSCOMM_SETTING_STRING, NULL,
                             0, 0, NULL,
                             "Host of rank 0's store; overrides "
                             "MASTER_ADDR."},
    [SETTING_MASTER_PORT] = {"DSCOMM_MASTER_PORT", DSCOMM_SETTING_INT, NULL, 1,
                             65535, NULL,
                             "Port of rank 0's store; overrides "
                             "MASTER_PORT."},
    [SETTING_SOCKET_IFNAME] = {"DSCOMM_SOCKET_IFNAME", DSCOMM_SETTING_STRING,
                               NULL, 0, 0,
                               "[^][=]NAME or NETWORK, comma separated",
                               "Network interfaces to serve on, by the "
                               "beginning of their names or by network."},
    [SETTING_STORE_LISTEN] = {"DSCOMM_STORE_LISTEN", DSCOMM_SETTING_STRING,
                              NULL, 0, 0,
                              "* or [^][=]NAME or NETWORK, comma separated",
                              "Network interfaces on which a store listens "
                              "besides the address that was named."},
    [SETTING_JOB_SECRET] = {"DSCOMM_JOB_SECRET", DSCOMM_SETTING_STRING, NULL, 0,
                            0, "16 to 1024 characters",
                            "What processes must know to use the job's store; "
                            "the same on all ranks."},
    [SETTING_JOB_SECRET_FILE] = {"DSCOMM_JOB_SECRET_FILE",
                                 DSCOMM_SETTING_STRING, NULL, 0, 0, "path",
                                 "File that holds the job's secret, closed to "
                                 "other users."},
    [SETTING_LAUNCHER] = {"DSCOMM_LAUNCHER", DSCOMM_SETTING_STRING, "auto", 0,
                          0, "auto, or a name that dscomm env --explain lists",
                          "Source of rank and world size, instead of the "
                          "first that is there."},
    [SETTING_HOST_ID] = {"DSCOMM_HOST_ID", DSCOMM_SETTING_STRING, NULL, 0, 0,
                         NULL,
                         "Name of the machine by which ranks find out whether "
                         "they share one."},
    [SETTING_LEVEL_INSIDE] = {"DSCOMM_TWO_LEVEL_INSIDE", DSCOMM_SETTING_STRING,
                              "shm", 0, 0, NULL, "Backend inside each node."},
    [SETTING_LEVEL_BETWEEN] = {"DSCOMM_TWO_LEVEL_BETWEEN",
                               DSCOMM_SETTING_STRING, "auto", 0, 0, NULL,
                               "Backend between nodes: auto, or its name."},
    [SETTING_LEVEL_ANY_SOURCE] =
        {"DSCOMM_TWO_LEVEL_ANY_SOURCE", DSCOMM_SETTING_BOOL, "1", 0, 1, NULL,
         "Receives from any source, where the backend between nodes has them; "
         "0 = none, but messages inside a node go by its own backend."},
    [SETTING_LEVEL_SLICE] =
        {"DSCOMM_TWO_LEVEL_SLICE", DSCOMM_SETTING_BYTES, NULL, 0,
         (int64_t)1 << 40, NULL,
         "Bytes from which all ranks of a node share an all_reduce between "
         "nodes that have equally many ranks; below, the first does it. Unset: "
         "32K where all ranks have a processor, else none do."},
    [SETTING_PROFILE] = {"DSCOMM_PROFILE", DSCOMM_SETTING_STRING, NULL, 0, 0,
                         "path",
                         "What a profiler writes when the program leaves its "
                         "world: summary, json:FILE and others."},
    [SETTING_PROFILER_PLUGIN] = {"DSCOMM_PROFILER_PLUGIN",
                                 DSCOMM_SETTING_STRING, NULL, 0, 0, "path",
                                 "File of another profiler than "
                                 "libdscomm-profiler."},
    [SETTING_DUMP] = {"DSCOMM_DUMP", DSCOMM_SETTING_STRING, NULL, 0, 0, "path",
                      "Folder for dumps of the flight recorder when a group "
                      "fails; unset: none are written."},
    [SETTING_DUMP_SIGNAL] = {"DSCOMM_DUMP_SIGNAL", DSCOMM_SETTING_ENUM, "none",
                             0, 0, "none|hup|quit|usr1|usr2",
                             "Signal on which a rank writes a dump to "
                             "DSCOMM_DUMP and goes on."},
    [SETTING_RECORDER] = {"DSCOMM_RECORDER", DSCOMM_SETTING_STRING, NULL, 0, 0,
                          "PID:FD",
                          "Memory of the flight recorder, of a process of the "
                          "same user; set by dscomm run."},
};

const dscomm_setting_t *dscomm_priv_setting(int index)
{
    g_assert(index >= 0 && index < SETTING_COUNT);
    return &settings[index];
}

/* Reads digits at *text and moves *text after them. Returns -1 if there are
 * none or the number exceeds INT64_MAX. */
static int read_digits(const char **text, int64_t *ret_value)
{
    const char *start = *text;
    int64_t value = 0;

    for (; g_ascii_isdigit(**text); (*text)++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, **text - '0', &value))
            return -1;
    }
    if (*text == start)
        return -1;
    *ret_value = value;
    return 0;
}

/* Reads a number by read, with blanks around it. */
static int parse_number(const char *text,
                        int (*read)(const char **text, int64_t *ret_value),
                        int64_t *ret_value)
{
    int64_t value;

    text += strspn(text, BLANKS);
    if (read(&text, &value) || text[strspn(text, BLANKS)])
        return -1;
    *ret_value = value;
    return 0;
}

int dscomm_priv_parse_decimal(const char *text, int64_t *ret_value)
{
    return parse_number(text, read_digits, ret_value);
}

static int read_int(const char **text, int64_t *ret_value)
{
    const int negative = **text == '-';

    *text += negative;
    if (read_digits(text, ret_value))
        return -1;
    if (negative)
        *ret_value = -*ret_value;
    return 0;
}

static int read_bytes(const char **text, int64_t *ret_value)
{
    static const char units[] = "KMGT";
    const char *unit;

    if (read_digits(text, ret_value))
        return -1;
    unit = **text ? strchr(units, g_ascii_toupper(**text)) : NULL;
    *text += unit != NULL;
    return unit && __builtin_mul_overflow(*ret_value,
                                          INT64_C(1) << 10 * (unit - units + 1),
                                          ret_value)
               ? -1
               : 0;
}

/* Reads seconds as milliseconds; digits beyond the third decimal are
 * ignored. */
static int read_msec(const char **text, int64_t *ret_value)
{
    if (read_digits(text, ret_value) ||
        __builtin_mul_overflow(*ret_value, 1000, ret_value))
        return -1;
    if (**text != '.')
        return 0;
    if (!g_ascii_isdigit(*++*text))
        return -1;
    for (int weight = 100; g_ascii_isdigit(**text); weight /= 10, (*text)++)
        if (__builtin_add_overflow(*ret_value, (**text - '0') * weight,
                                   ret_value))
            return -1;
    return 0;
}

static int parse_enum(const char *words, const char *text, int64_t *ret_value)
{
    size_t length = strlen(text);
    int64_t index = 0;

    for (const char *word = words; word; index++) {
        size_t end = strcspn(word, "|");

        if (end == length && g_ascii_strncasecmp(word, text, end) == 0) {
            *ret_value = index;
            return 0;
        }
        word = word[end] ? word + end + 1 : NULL;
    }
    return -1;
}

dscomm_setting_type_t dscomm_priv_setting_type(const dscomm_setting_t *row)
{
    return (dscomm_setting_type_t)(row->type & ~DSCOMM_SETTING_TUNABLE);
}

int dscomm_priv_setting_try(const dscomm_setting_t *row, const char *text,
                            int64_t *ret_value)
{
    static int (*const readers[])(const char **text, int64_t *ret_value) = {
        [DSCOMM_SETTING_INT] = read_int,
        [DSCOMM_SETTING_BYTES] = read_bytes,
        [DSCOMM_SETTING_MSEC] = read_msec,
    };
    const dscomm_setting_type_t type = dscomm_priv_setting_type(row);
    int64_t value;

    if (type == DSCOMM_SETTING_ENUM)
        return parse_enum(row->words, text, ret_value);
    if (type == DSCOMM_SETTING_BOOL) {
        if (parse_enum(BOOL_WORDS, text, &value))
            return -1;
        *ret_value = value % 2;
        return 0;
    }
    if ((unsigned)type >= G_N_ELEMENTS(readers) ||
        parse_number(text, readers[type], &value) || value < row->min ||
        value > row->max)
        return -1;
    *ret_value = value;
    return 0;
}

/* Returns "a|b|c" as "a, b or c". */
static char *list_words(const char *words)
{
    gchar **list = g_strsplit(words, "|", -1);
    GString *text = g_string_new(NULL);

    for (guint i = 0; list[i]; i++) {
        if (i)
            g_string_append(text, list[i + 1] ? ", " : " or ");
        g_string_append(text, list[i]);
    }
    g_strfreev(list);
    return g_string_free(text, FALSE);
}

static char *setting_describe(const dscomm_setting_t *row)
{
    switch (dscomm_priv_setting_type(row)) {
    case DSCOMM_SETTING_BOOL:
        return list_words(BOOL_WORDS);
    case DSCOMM_SETTING_ENUM:
        return list_words(row->words);
    case DSCOMM_SETTING_INT:
        return g_strdup_printf("%" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                               (gint64)row->min, (gint64)row->max);
    case DSCOMM_SETTING_BYTES:
        return g_strdup_printf("%" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                               " bytes, with K, M, G or T for powers of 1024",
                               (gint64)row->min, (gint64)row->max);
    case DSCOMM_SETTING_MSEC:
        return g_strdup_printf("%" G_GINT64_FORMAT ".%03d to %" G_GINT64_FORMAT
                               ".%03d seconds",
                               (gint64)row->min / 1000, (int)(row->min % 1000),
                               (gint64)row->max / 1000, (int)(row->max % 1000));
    case DSCOMM_SETTING_STRING:
        break;
    }
    return g_strdup(row->words ? row->words : "text");
}

const char *dscomm_priv_setting_accepted(const dscomm_setting_t *row)
{
    char *text = setting_describe(row);
    const char *interned = g_intern_string(text);

    g_free(text);
    return interned;
}

dscomm_status_t dscomm_priv_setting_parse(const dscomm_setting_t *row,
                                          const char *text, int64_t *ret_value)
{
    char quoted[96];

    if (dscomm_priv_setting_try(row, text, ret_value) == 0)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "%s='%s' is not accepted; set it to %s, or unset it",
                       row->name,
                       dscomm_priv_quote(text, quoted, sizeof quoted),
                       dscomm_priv_setting_accepted(row));
}

const char *dscomm_priv_setting_environment(const dscomm_setting_t *row)
{
    const bool opens = dscomm_priv_setting_type(row) == DSCOMM_SETTING_STRING &&
                       (g_strcmp0(row->words, "path") == 0 ||
                        g_strcmp0(row->words, "PID:FD") == 0);
    const char *text = opens ? secure_getenv(row->name) : getenv(row->name);

    return text && *text ? text : NULL;
}

static const char *tuning_file(void)
{
    return dscomm_priv_setting_environment(&settings[SETTING_TUNING_FILE]);
}

const char *dscomm_priv_setting_value(const dscomm_setting_t *row)
{
    const char *text = dscomm_priv_setting_environment(row), *file;

    if (text || !(row->type & DSCOMM_SETTING_TUNABLE))
        return text;
    file = tuning_file();
    return file ? dscomm_priv_tuning_value(file, row->name) : NULL;
}

const char *dscomm_priv_setting_file(const dscomm_setting_t *row)
{
    if (dscomm_priv_setting_environment(row) || !dscomm_priv_setting_value(row))
        return NULL;
    return tuning_file();
}

dscomm_status_t dscomm_setting_number(const dscomm_setting_t *row,
                                      int64_t *ret_value)
{
    const char *text = dscomm_priv_setting_value(row);

    if (dscomm_priv_setting_type(row) == DSCOMM_SETTING_STRING)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "setting %s is text and has no number", row->name);
    if (!text)
        text = row->default_value;
    if (text)
        return dscomm_priv_setting_parse(row, text, ret_value);
    *ret_value = -1;
    return DSCOMM_OK;
}

const char *dscomm_setting_text(const dscomm_setting_t *row)
{
    const char *text = dscomm_priv_setting_value(row);

    return text ? text : row->default_value;
}

dscomm_status_t dscomm_priv_setting_number(int index, int64_t *ret_value)
{
    return dscomm_setting_number(dscomm_priv_setting(index), ret_value);
}

const char *dscomm_priv_setting_text(int index)
{
    return dscomm_setting_text(dscomm_priv_setting(index));
}

dscomm_status_t dscomm_priv_settings_validate(void)
{
    for (const dscomm_setting_t *row = settings; row->name; row++) {
        int64_t value;
        dscomm_status_t status = DSCOMM_OK;

        if (dscomm_priv_setting_type(row) != DSCOMM_SETTING_STRING)
            status = dscomm_setting_number(row, &value);
        if (status != DSCOMM_OK)
            return status;
    }
    return dscomm_priv_log_check();
}

const char *dscomm_priv_setting_nearest(const char *name,
                                        const dscomm_setting_t *const *tables,
                                        size_t count)
{
    dscomm_nearest_t search = dscomm_priv_nearest_begin(name, strlen(PREFIX));

    for (size_t i = 0; i < count; i++)
        for (const dscomm_setting_t *row = tables[i]; row->name; row++)
            dscomm_priv_nearest_try(&search, row->name);
    return search.nearest;
}

static int setting_is_known(const char *name,
                            const dscomm_setting_t *const *tables, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (const dscomm_setting_t *row = tables[i]; row->name; row++) {
            if (strcmp(row->name, name) == 0)
                return 1;
        }
    }
    return 0;
}

static void setting_warn_unknown(const char *name,
                                 const dscomm_setting_t *const *tables,
                                 size_t count)
{
    const char *nearest = dscomm_priv_setting_nearest(name, tables, count);
    char quoted[96];

    dscomm_priv_quote(name, quoted, sizeof quoted);
    if (nearest)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "%s is no setting and has no effect; is %s meant?", quoted,
                   nearest);
    else
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "%s is no setting and has no effect; `dscomm info "
                   "--settings` lists those there are",
                   quoted);
}

#define KNOWN_MAX 128 /* bytes; all known names are shorter */

/* Returns a permanent copy of a name, one for each name; NULL without
 * memory. */
static const char *name_intern(const char *name, size_t length)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct interned {
        struct interned *next;
        char name[];
    } * all;
    struct interned *one;

    pthread_mutex_lock(&lock);
    for (one = all; one; one = one->next)
        if (!strncmp(one->name, name, length) && !one->name[length])
            break;
    if (!one && (one = g_try_malloc0(sizeof *one + length + 1)) != NULL) {
        memcpy(one->name, name, length);
        one->next = all;
        all = one;
    }
    pthread_mutex_unlock(&lock);
    return one ? one->name : NULL;
}

/* Returns the name in an entry of the environment, if it begins with DSCOMM_
 * and is in no table. */
static const char *unknown_name(const char *entry,
                                const dscomm_setting_t *const *tables,
                                size_t count)
{
    const size_t length = strcspn(entry, "=");
    char name[KNOWN_MAX];

    if (!g_str_has_prefix(entry, PREFIX))
        return NULL;
    g_strlcpy(name, entry, MIN(length + 1, sizeof name));
    if (length < sizeof name && setting_is_known(name, tables, count))
        return NULL;
    return name_intern(entry, length);
}

const char *dscomm_priv_settings_unknown(char *const *environment,
                                         const dscomm_setting_t *const *tables,
                                         size_t count, size_t index)
{
    for (; environment && *environment; environment++) {
        const char *name = unknown_name(*environment, tables, count);

        if (name && index-- == 0)
            return name;
    }
    return NULL;
}

void dscomm_priv_settings_check(char *const *environment,
                                const dscomm_setting_t *const *tables,
                                size_t count)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;

    if (!environment || atomic_flag_test_and_set(&done))
        return;
    for (; *environment; environment++) {
        const char *name = unknown_name(*environment, tables, count);

        if (name)
            setting_warn_unknown(name, tables, count);
    }
}
