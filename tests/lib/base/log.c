/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lines are logged, where they go, and their form. The environment is
 * read once, so each case runs in a child. */
#include "config.h"

#include "lib/base/log.h"

#include <dscomm/backend.h>
#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/base/child.h"

/* For each domain the last level that is logged: core, shm, mpi. */
static const struct {
    const char *levels;
    int core, shm, mpi;
} accepted[] = {
    {"error", 0, 0, 0},
    {"warn", 1, 1, 1},
    {"info", 2, 2, 2},
    {"debug", 3, 3, 3},
    {"trace", 4, 4, 4},
    {"INFO", 2, 2, 2},
    {" info ", 2, 2, 2},
    {"shm:debug", 1, 3, 1},
    {"warn,shm:debug", 1, 3, 1},
    {"shm:debug,error", 0, 3, 0},
    {"trace, shm:error", 4, 0, 4},
    {"info,shm:debug,mpi:error", 2, 3, 0},
    {"shm:debug,shm:info", 1, 2, 1},
    {"error,debug", 3, 3, 3},
    {"other-one_2:trace", 1, 1, 1},
};

/* Expected in the sentence. */
static const struct {
    const char *levels, *wrong;
} refused[] = {
    {"", "''"},
    {"verbose", "'verbose'"},
    {"2", "'2'"},
    {"warn,", "''"},
    {",warn", "''"},
    {"warn,,info", "''"},
    {"shm:", "'shm:'"},
    {":debug", "':debug'"},
    {"shm:loud", "'shm:loud'"},
    {"shm:mpi:info", "'shm:mpi:info'"},
    {"s hm:info", "'s hm:info'"},
    {"warn;shm:info", "'warn;shm:info'"},
    {"info,wran,noise", "'wran'"},
    {"a234567890123456789012345678901x:info",
     "'a234567890123456789012345678901x:info'"},
    {"warn\n", NULL}, /* blanks around a word do not matter */
};

typedef struct {
    int count, level;
    char domain[32], message[2048];
} caught_t;

static void catch_line(dscomm_log_level_t level, const char *domain,
                       const char *message, void *arg)
{
    caught_t *caught = arg;

    caught->count++;
    caught->level = (int)level;
    g_strlcpy(caught->domain, domain, sizeof caught->domain);
    g_strlcpy(caught->message, message, sizeof caught->message);
}

static int last_that_passes(const char *domain, caught_t *caught)
{
    int last = -1;

    for (int level = -1; level < 6; level++) {
        caught->count = 0;
        dscomm_log((dscomm_log_level_t)level, domain, "x");
        if (caught->count)
            last = level;
    }
    return last;
}

static void test_levels(void)
{
    caught_t caught = {0};

    dscomm_log_set_handler(catch_line, &caught);
    for (size_t i = 0; i < G_N_ELEMENTS(accepted); i++) {
        const char *levels = accepted[i].levels;

        is_int(dscomm_log_set_levels(levels), DSCOMM_OK, "'%s'", levels);
        is_int(last_that_passes("core", &caught), accepted[i].core,
               "'%s': core", levels);
        is_int(last_that_passes("shm", &caught), accepted[i].shm, "'%s': shm",
               levels);
        is_int(last_that_passes("mpi", &caught), accepted[i].mpi, "'%s': mpi",
               levels);
    }
    dscomm_log_set_handler(NULL, NULL);
}

static void test_refused(void)
{
    caught_t caught = {0};
    GString *many = g_string_new("warn");

    dscomm_log_set_levels("info");
    dscomm_log_set_handler(catch_line, &caught);
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        dscomm_status_t status = dscomm_log_set_levels(refused[i].levels);

        if (!refused[i].wrong) {
            is_int(status, DSCOMM_OK, "case %zu is accepted", i);
            dscomm_log_set_levels("info");
            continue;
        }
        is_int(status, DSCOMM_ERR_INVALID, "'%s' is refused",
               refused[i].levels);
        ok(strstr(dscomm_last_error(), refused[i].wrong) != NULL,
           "the sentence names %s", refused[i].wrong);
        is_int(last_that_passes("shm", &caught), 2, "nothing changes");
    }
    is_int(dscomm_log_set_levels(NULL), DSCOMM_ERR_INVALID, "NULL is refused");
    for (int i = 0; i < 32; i++)
        g_string_append_printf(many, ",d%d:info", i);
    is_int(dscomm_log_set_levels(many->str), DSCOMM_OK, "32 domains");
    g_string_append(many, ",d32:info");
    is_int(dscomm_log_set_levels(many->str), DSCOMM_ERR_INVALID, "33 domains");
    g_string_free(many, TRUE);
    dscomm_log_set_handler(NULL, NULL);
}

static void test_handler(void)
{
    caught_t caught = {0};
    char wide[4096];

    dscomm_log_set_levels("info");
    dscomm_log_set_handler(catch_line, &caught);
    errno = 5;
    dscomm_log(DSCOMM_LOG_INFO, "shm", "lid %d\nnext", 7);
    is_int(errno, 5, "errno is left alone");
    is_int(caught.count, 1, "one line");
    is_int(caught.level, DSCOMM_LOG_INFO, "its level");
    is_str(caught.domain, "shm", "its domain");
    is_str(caught.message, "lid 7 next", "its message, without a newline");
    memset(wide, 'x', sizeof wide);
    for (size_t i = 1001; i + 3 < sizeof wide; i += 3)
        memcpy(wide + i, "\xe2\x82\xac", 3);
    wide[sizeof wide - 1] = '\0';
    dscomm_log(DSCOMM_LOG_INFO, "shm", "%s", wide);
    ok(strlen(caught.message) > 1000 && strlen(caught.message) < 1100 &&
           g_utf8_validate(caught.message, -1, NULL),
       "a long message is cut between characters");
    dscomm_log_set_handler(NULL, NULL);
}

typedef struct {
    const char *environment[4];
    int given_rank;
    const char *want;
} written_t;

static const written_t written[] = {
    {{NULL}, -1, "dscomm: warn: shm: text 1\n"},
    {{"DSCOMM_LOG="}, -1, "dscomm: warn: shm: text 1\n"},
    {{"DSCOMM_LOG=error"}, -1, ""},
    {{"DSCOMM_LOG=error,shm:info"},
     -1,
     "dscomm: warn: shm: text 1\ndscomm: info: shm: text 2\n"},
    {{"DSCOMM_LOG=loud"}, -1, "dscomm: warn: shm: text 1\nrefused"},
    {{"RANK=3"}, -1, "dscomm[3]: warn: shm: text 1\n"},
    {{"RANK=3", "DSCOMM_RANK=4"}, -1, "dscomm[4]: warn: shm: text 1\n"},
    {{"RANK=x", NULL}, -1, "dscomm: warn: shm: text 1\n"},
    {{"RANK=-1", NULL}, -1, "dscomm: warn: shm: text 1\n"},
    {{"RANK=3", NULL}, 12, "dscomm[12]: warn: shm: text 1\n"},
};

/* Logs a line of each level to shm. */
static int write_lines(const void *arg, int out)
{
    const written_t *row = arg;

    dup2(out, STDERR_FILENO);
    for (int i = 0; row->environment[i]; i++)
        putenv((char *)row->environment[i]);
    if (row->given_rank >= 0)
        dscomm_priv_log_rank(row->given_rank);
    dscomm_log(DSCOMM_LOG_WARN, "shm", "text %d", 1);
    dscomm_log(DSCOMM_LOG_INFO, "shm", "text %d", 2);
    return dscomm_priv_log_check() == DSCOMM_OK ? 0 : 3;
}

static void test_stderr(void)
{
    unsetenv("DSCOMM_LOG");
    unsetenv("DSCOMM_RANK");
    unsetenv("RANK");
    for (size_t i = 0; i < G_N_ELEMENTS(written); i++) {
        char text[4096] = "";
        int status;

        child_read(write_lines, &written[i], text, 4000, &status);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
            strcat(text, "refused");
        is_str(text, written[i].want, "written in case %zu", i);
    }
}

/* A domain of NULL has the level of domains that are not listed. */
static void test_no_domain(void)
{
    caught_t caught = {0};

    dscomm_log_set_handler(catch_line, &caught);
    dscomm_log_set_levels("info,shm:debug");
    dscomm_log(DSCOMM_LOG_INFO, NULL, "a line");
    dscomm_log(DSCOMM_LOG_DEBUG, NULL, "another line");
    is_int(caught.count, 1, "a line without a domain");
    is_str(caught.domain, "unknown", "  has one for the handler");
    is_str(caught.message, "a line", "  and its message");
    dscomm_log_set_handler(NULL, NULL);
}

static void *log_much(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        dscomm_log(DSCOMM_LOG_INFO, "shm", "line %d", i);
        if (i % 100 == 0)
            dscomm_log_set_levels(arg);
    }
    return NULL;
}

static void count_line(dscomm_log_level_t level, const char *domain,
                       const char *message, void *arg)
{
    (void)level, (void)domain;
    if (g_str_has_prefix(message, "line "))
        g_atomic_int_inc((gint *)arg);
}

static void test_threads(void)
{
    pthread_t threads[4];
    gint lines = 0;

    dscomm_log_set_handler(count_line, &lines);
    dscomm_log_set_levels("info");
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        if (pthread_create(&threads[i], NULL, log_much, (char *)"info"))
            bail("cannot start a thread");
    }
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_join(threads[i], NULL);
    is_int(lines, 4000, "no line of four threads is lost");
    dscomm_log_set_handler(NULL, NULL);
}

int main(void)
{
    test_stderr(); /* runs first, because its children read their environment */
    test_levels();
    test_refused();
    test_handler();
    test_no_domain();
    test_threads();
    return tap_done();
}
