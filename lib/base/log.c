/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels, domains and the handler of the log. */
#include "config.h"

#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/base/write-guard.h"

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024
#define DOMAIN_MAX 32
#define DOMAINS 32
#define RANK_UNKNOWN (-1)

typedef struct {
    int level; /* for domains that are not listed */
    int count;
    struct {
        char domain[DOMAIN_MAX];
        int level;
    } rows[DOMAINS];
} levels_t;

static const char *const level_names[] = {
    [DSCOMM_LOG_ERROR] = "error", [DSCOMM_LOG_WARN] = "warn",
    [DSCOMM_LOG_INFO] = "info",   [DSCOMM_LOG_DEBUG] = "debug",
    [DSCOMM_LOG_TRACE] = "trace",
};

/* The largest level of any domain, so that one comparison drops most lines.
 * Before DSCOMM_LOG has been read, no line is dropped. */
static atomic_int highest = INT_MAX;
static atomic_int known_rank = RANK_UNKNOWN;

/* Protects the variables of the next two lines. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static levels_t levels;
static int rank_given, looked_for_rank;

/* Held for reading while a handler runs, for writing while it is replaced. */
static pthread_rwlock_t handler_lock = PTHREAD_RWLOCK_INITIALIZER;
static dscomm_log_handler_t user_handler;
static void *user_arg;

static int level_from_name(const char *name)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(level_names); i++) {
        if (g_ascii_strcasecmp(name, level_names[i]) == 0)
            return i;
    }
    return -1;
}

static int is_domain(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return length && length < DOMAIN_MAX && !name[length];
}

static int *domain_level(levels_t *table, const char *domain)
{
    for (int i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].domain, domain) == 0)
            return &table->rows[i].level;
    }
    return NULL;
}

/* Reads one word, "LEVEL" or "DOMAIN:LEVEL"; -1 if it is neither. */
static int add_word(levels_t *table, char *word)
{
    char *colon = strchr(word, ':');
    int level = level_from_name(colon ? colon + 1 : word);
    int *known;

    if (level < 0)
        return -1;
    if (!colon) {
        table->level = level;
        return 0;
    }
    *colon = '\0';
    known = domain_level(table, word);
    if (!known) {
        if (!is_domain(word) || table->count == DOMAINS)
            return -1;
        known = &table->rows[table->count].level;
        strcpy(table->rows[table->count++].domain, word);
    }
    *known = level;
    return 0;
}

/* Copies the first invalid word to wrong; "" if a word is missing. */
static int parse_levels(const char *text, levels_t *ret_levels, char *wrong,
                        size_t size)
{
    levels_t table = {.level = DSCOMM_LOG_WARN};
    gchar **words = g_strsplit(text, ",", -1);
    int result = words[0] ? 0 : -1;

    wrong[0] = '\0';
    for (gchar **word = words; *word && result == 0; word++) {
        dscomm_priv_quote(g_strstrip(*word), wrong, size);
        result = add_word(&table, *word);
    }
    g_strfreev(words);
    if (result == 0)
        *ret_levels = table;
    return result;
}

static dscomm_status_t levels_refuse(dscomm_status_t status, const char *where,
                                     const char *wrong)
{
    return dscomm_fail(status,
                       "%s: '%s' is not understood; give LEVEL or "
                       "DOMAIN:LEVEL, comma separated (at most %d domains), "
                       "LEVEL being error, warn, info, debug or trace",
                       where, wrong, DOMAINS);
}

/* With lock held. */
static void install_levels(const levels_t *table)
{
    int top = table->level;

    for (int i = 0; i < table->count; i++)
        top = MAX(top, table->rows[i].level);
    levels = *table;
    atomic_store_explicit(&highest, top, memory_order_relaxed);
}

/* Called with lock held. dscomm_priv_log_check() reports an invalid DSCOMM_LOG.
 */
static void read_environment(void)
{
    const char *text = getenv("DSCOMM_LOG");
    levels_t table = {.level = DSCOMM_LOG_WARN};
    char wrong[64];

    if (text && *text)
        parse_levels(text, &table, wrong, sizeof wrong);
    install_levels(&table);
}

dscomm_status_t dscomm_priv_log_check(void)
{
    const char *text = getenv("DSCOMM_LOG");
    levels_t table;
    char wrong[64];

    if (!text || !*text || parse_levels(text, &table, wrong, sizeof wrong) == 0)
        return DSCOMM_OK;
    return levels_refuse(DSCOMM_ERR_ENVIRONMENT, "DSCOMM_LOG", wrong);
}

dscomm_status_t dscomm_log_set_levels(const char *text)
{
    levels_t table;
    char wrong[64] = "";

    if (!text || parse_levels(text, &table, wrong, sizeof wrong))
        return levels_refuse(DSCOMM_ERR_INVALID, "dscomm_log_set_levels",
                             wrong);
    pthread_mutex_lock(&lock);
    install_levels(&table);
    pthread_mutex_unlock(&lock);
    return DSCOMM_OK;
}

void dscomm_log_set_handler(dscomm_log_handler_t handler, void *arg)
{
    pthread_rwlock_wrlock(&handler_lock);
    user_handler = handler;
    user_arg = arg;
    pthread_rwlock_unlock(&handler_lock);
}

void dscomm_priv_log_rank(int rank)
{
    pthread_mutex_lock(&lock);
    if (!rank_given)
        atomic_store(&known_rank, rank);
    rank_given = looked_for_rank = 1;
    pthread_mutex_unlock(&lock);
}

/* With lock held. */
static void look_for_rank(void)
{
    static const char *const names[] = {"DSCOMM_RANK", "RANK"};

    for (size_t i = 0; i < G_N_ELEMENTS(names) && !looked_for_rank; i++) {
        const char *text = getenv(names[i]);
        guint64 rank;

        if (text &&
            g_ascii_string_to_unsigned(text, 10, 0, INT_MAX, &rank, NULL)) {
            atomic_store(&known_rank, (int)rank);
            looked_for_rank = 1;
        }
    }
    looked_for_rank = 1;
}

/* Writes the line by one write(), so that lines of several processes do not
 * mix. */
static void write_line(dscomm_log_level_t level, const char *domain,
                       const char *message)
{
    int rank = atomic_load(&known_rank);
    char who[32] = "", line[LINE_MAX_BYTES + 128];
    dscomm_write_guard_t guard;
    int length;
    ssize_t written;

    if (rank != RANK_UNKNOWN)
        snprintf(who, sizeof who, "[%d]", rank);
    length = snprintf(line, sizeof line, "dscomm%s: %s: %.*s: %s\n", who,
                      level_names[level], DOMAIN_MAX, domain, message);
    dscomm_priv_write_guard(&guard);
    do
        written = write(STDERR_FILENO, line, (size_t)length);
    while (written < 0 && errno == EINTR);
    dscomm_priv_write_unguard(&guard);
}

static int log_passes(dscomm_log_level_t level, const char *domain)
{
    const int *own;
    int result;

    pthread_mutex_lock(&lock);
    if (atomic_load(&highest) == INT_MAX)
        read_environment();
    look_for_rank();
    own = domain_level(&levels, domain);
    result = (int)level <= (own ? *own : levels.level);
    pthread_mutex_unlock(&lock);
    return result;
}

static void log_deliver(dscomm_log_level_t level, const char *domain,
                        const char *message)
{
    dscomm_log_handler_t handler;

    pthread_rwlock_rdlock(&handler_lock);
    handler = user_handler;
    if (handler)
        handler(level, domain, message, user_arg);
    pthread_rwlock_unlock(&handler_lock);
    if (!handler)
        write_line(level, domain, message);
}

static void __attribute__((noinline, format(printf, 3, 0)))
log_line(dscomm_log_level_t level, const char *domain, const char *format,
         va_list args)
{
    char message[LINE_MAX_BYTES + 1];

    if (vsnprintf(message, sizeof message, format, args) < 0)
        g_strlcpy(message, format, sizeof message);
    dscomm_priv_tidy(message, LINE_MAX_BYTES);
    log_deliver(level, domain, message);
}

void dscomm_log(dscomm_log_level_t level, const char *domain,
                const char *format, ...)
{
    int saved;
    va_list args;

    if ((int)level > atomic_load_explicit(&highest, memory_order_relaxed))
        return;
    if (!domain)
        domain = "unknown";
    saved = errno;
    if ((unsigned)level < G_N_ELEMENTS(level_names) &&
        log_passes(level, domain)) {
        errno = saved; /* for %m */
        va_start(args, format);
        log_line(level, domain, format, args);
        va_end(args);
    }
    errno = saved;
}

void dscomm_priv_log_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_rwlock_init(&handler_lock, NULL);
}
