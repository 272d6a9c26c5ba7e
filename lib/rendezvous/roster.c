/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/rendezvous/roster.h"

#include "lib/base/clock.h"
#include "lib/base/node.h"
#include "lib/base/random.h"
#include "lib/store/tcp/secret.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Records that one request waits for. */
#define BATCH 1024
/* Number of missing members that a sentence names, and time for finding
 * them. */
#define NAMES_MAX 32
#define MISSING_MS 500
/* Number of further addresses of refused processes that a sentence names. */
#define OTHERS_MAX 3
#define READERS_PAUSE_US 2000

/* Appends a line to text; cut off if there is no room. */
static void line_put(char *text, size_t most, const char *line)
{
    g_strlcat(text, "\n", most + 1);
    g_strlcat(text, line, most + 1);
}

char *dscomm_priv_roster_write(const dscomm_roster_lines_t *lines)
{
    char *text = g_try_malloc(lines->most + 1), number[24];

    if (!text)
        return NULL;
    g_strlcpy(text, lines->format, lines->most + 1);
    for (int i = 0; lines->numbers[i]; i++) {
        snprintf(number, sizeof number, "%lld", (long long)*lines->numbers[i]);
        line_put(text, lines->most, number);
    }
    for (int i = 0; lines->strings[i]; i++)
        line_put(text, lines->most, *lines->strings[i]);
    return text;
}

static bool number_read(const char *text, int64_t *ret_number)
{
    const size_t sign = text && *text == '-';
    const size_t digits = text ? strspn(text + sign, "0123456789") : 0;

    if (!digits || digits > 10 || text[sign + digits])
        return false;
    *ret_number = strtoll(text, NULL, 10);
    return *ret_number >= -1 && *ret_number <= INT32_MAX;
}

/* Splits text into its lines. */
static bool lines_read(const dscomm_roster_lines_t *lines, char *text)
{
    bool good = !strcmp(strsep(&text, "\n"), lines->format);

    for (int i = 0; good && lines->numbers[i]; i++)
        good = number_read(strsep(&text, "\n"), lines->numbers[i]);
    for (int i = 0; good && lines->strings[i]; i++)
        good = (*lines->strings[i] = strsep(&text, "\n")) != NULL;
    return good && !text;
}

int dscomm_priv_roster_read(const dscomm_roster_lines_t *lines,
                            const char *text, size_t size, char **ret_memory)
{
    *ret_memory = NULL;
    if (size > lines->most || memchr(text, '\0', size))
        return -1;
    *ret_memory = strndup(text, size);
    if (!*ret_memory)
        return 1;
    if (lines_read(lines, *ret_memory))
        return 0;
    g_clear_pointer(ret_memory, g_free);
    return -1;
}

void dscomm_priv_roster_token(const char *space, char token[ROSTER_TOKEN_MAX])
{
    char node[DSCOMM_NODE_MAX];
    uint64_t number = 0;

    dscomm_priv_node_name(node);
    if (!dscomm_priv_random(&number, sizeof number))
        number = (uint64_t)dscomm_priv_clock();
    snprintf(token, ROSTER_TOKEN_MAX, "pid %ld on %s, %s%s%016llx",
             (long)getpid(), node, space ? space : "", space ? ", " : "",
             (unsigned long long)number);
}

const char *dscomm_priv_roster_claim_key(int member, char key[ROSTER_KEY_MAX])
{
    snprintf(key, ROSTER_KEY_MAX, "claim/%d", member);
    return key;
}

dscomm_status_t
dscomm_priv_roster_claim(const dscomm_roster_t *roster, const char *token,
                         bool (*replaces)(const char *other, const char *token),
                         char **ret_other)
{
    char key[ROSTER_KEY_MAX], *other = g_strdup("");
    dscomm_status_t status;
    bool own, again;

    dscomm_priv_roster_claim_key(roster->own, key);
    do {
        void *value;
        size_t size;

        status =
            dscomm_store_compare_set(roster->store, key, other, strlen(other),
                                     token, strlen(token), &value, &size);
        g_free(other);
        if (status < 0)
            return status;
        other = g_strndup(value, size);
        dscomm_store_free(value);
        own = !strcmp(other, token);
        again =
            !own && replaces && strlen(other) == size && replaces(other, token);
    } while (again);
    if (own)
        g_clear_pointer(&other, g_free);
    *ret_other = other;
    return DSCOMM_OK;
}

const char *dscomm_priv_roster_key(const dscomm_roster_t *roster, int member,
                                   char key[ROSTER_KEY_MAX])
{
    snprintf(key, ROSTER_KEY_MAX, "%s%d", roster->record, member);
    return key;
}

dscomm_status_t dscomm_priv_roster_put(const dscomm_roster_t *roster,
                                       const char *record)
{
    char key[ROSTER_KEY_MAX];

    return dscomm_store_set(roster->store,
                            dscomm_priv_roster_key(roster, roster->own, key),
                            record, strlen(record));
}

dscomm_status_t dscomm_priv_roster_fetch(dscomm_store_t *store, const char *key,
                                         void **ret_value, size_t *ret_size)
{
    int present = 0;
    dscomm_status_t status = dscomm_store_check(store, &key, 1, &present);

    *ret_value = NULL;
    if (status == DSCOMM_OK && present)
        status = dscomm_store_get(store, key, DSCOMM_TIMEOUT_DEFAULT, ret_value,
                                  ret_size);
    return status;
}

/* Waits until end for keys, and calls wait->look from time to time. */
static dscomm_status_t await_keys(const dscomm_roster_t *roster,
                                  const char *const *keys, size_t count,
                                  int64_t end, dscomm_roster_wait_t *wait,
                                  void **values, size_t *sizes)
{
    for (;;) {
        const int left = dscomm_priv_clock_left(end);
        dscomm_status_t status =
            dscomm_store_multi_get(roster->store, keys, count,
                                   MIN(left, wait->slice_ms), values, sizes);

        if (status != DSCOMM_ERR_TIMEOUT || left <= wait->slice_ms)
            return status;
        status = wait->look(wait->arg);
        if (status < 0)
            return status;
        wait->slice_ms = MIN(2 * wait->slice_ms, wait->most_ms);
    }
}

dscomm_status_t dscomm_priv_roster_collect(
    const dscomm_roster_t *roster, dscomm_roster_wait_t *wait,
    dscomm_status_t (*take)(void *arg, int member, const void *value,
                            size_t size))
{
    char names[BATCH][ROSTER_KEY_MAX];
    const char *keys[BATCH];
    void *values[BATCH];
    size_t sizes[BATCH];
    dscomm_status_t status = DSCOMM_OK;

    for (int first = 0; first < roster->count && !status; first += BATCH) {
        const int count = MIN(roster->count - first, BATCH);

        for (int i = 0; i < count; i++)
            keys[i] = dscomm_priv_roster_key(roster, first + i, names[i]);
        status = await_keys(roster, keys, (size_t)count, roster->deadline, wait,
                            values, sizes);
        if (status < 0)
            return status;
        for (int i = 0; i < count; i++) {
            if (!status)
                status = take(wait->arg, first + i, values[i], sizes[i]);
            dscomm_store_free(values[i]);
        }
    }
    return status;
}

dscomm_status_t dscomm_priv_roster_missing(dscomm_store_t *store,
                                           const char *prefix, int members,
                                           const char *noun, char **ret_names,
                                           int *ret_came)
{
    const int64_t end =
        dscomm_priv_clock_after(dscomm_priv_clock(), MISSING_MS);
    GString *numbers = g_string_new(NULL);
    int missing = 0, came = 0;
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < members && dscomm_priv_clock() < end; i++) {
        char name[ROSTER_KEY_MAX];
        const char *key = name;
        int present = 0;

        snprintf(name, sizeof name, "%s%d", prefix, i);
        status = dscomm_store_check(store, &key, 1, &present);
        if (status < 0)
            break;
        came += present;
        if (!present && missing++ < NAMES_MAX)
            g_string_append_printf(numbers, "%s%d", missing > 1 ? ", " : "", i);
    }
    *ret_names = NULL;
    if (status == DSCOMM_ERR_TIMEOUT && missing)
        status = DSCOMM_OK;
    if (status == DSCOMM_OK && missing)
        *ret_names = g_strdup_printf(
            "%s%s %s%s of %d%s", noun, missing > 1 ? "s" : "", numbers->str,
            missing > NAMES_MAX ? " and others" : "", members,
            missing <= NAMES_MAX && missing + came < members
                ? " (the others were not all checked)"
                : "");
    *ret_came = came;
    g_string_free(numbers, TRUE);
    return status;
}

/* Reports of refused processes */

enum { REPORT_VOUCHED, REPORT_WORLD, REPORT_PEER, REPORT_PROCESS };
enum { REPORT_FIELDS = REPORT_PROCESS + 1 };

/* Returns the first report that a member of world has certainly sent; unless
 * certain is set, or else the first report. NULL: there is none. */
static char **report_find(char **lines, const char *world, bool certain)
{
    char **first = NULL;

    for (int i = 0; lines[i]; i++) {
        char **fields = g_strsplit(lines[i], "\t", REPORT_FIELDS);
        const bool fits = g_strv_length(fields) == REPORT_FIELDS;
        const bool member = fits && !strcmp(fields[REPORT_VOUCHED], "1") &&
                            !strcmp(fields[REPORT_WORLD], world);

        if (member || (fits && !certain && !first)) {
            g_strfreev(first);
            first = g_steal_pointer(&fields);
        }
        g_strfreev(fields);
        if (member)
            break;
    }
    return first;
}

/* "; others came from ADDRESS, ADDRESS", or "". */
static char *report_others(char **lines, const char *peer)
{
    GString *text = g_string_new(NULL);

    for (int i = 0, count = 0; lines[i] && count < OTHERS_MAX; i++) {
        char **fields = g_strsplit(lines[i], "\t", REPORT_FIELDS);

        if (g_strv_length(fields) == REPORT_FIELDS &&
            strcmp(fields[REPORT_PEER], peer) != 0)
            g_string_append_printf(text, "%s%s",
                                   count++ ? ", " : "; others came from ",
                                   fields[REPORT_PEER]);
        g_strfreev(fields);
    }
    return g_string_free(text, FALSE);
}

static void report_fail(char **lines, char **fields, const char *server,
                        unsigned count, int guarded)
{
    char *others = report_others(lines, fields[REPORT_PEER]);

    dscomm_fail(
        DSCOMM_ERR_MISMATCH,
        "%u connection%s refused at %s's store, %sfrom %s, which says that it "
        "is %s: it has %s %s%s%s; give all processes of the job the same "
        "DSCOMM_JOB_SECRET or DSCOMM_JOB_SECRET_FILE, or none of them one",
        count, count > 1 ? "s were" : " was", server, count > 1 ? "one " : "",
        fields[REPORT_PEER], fields[REPORT_PROCESS],
        guarded ? "another job secret than" : "a job secret, and", server,
        guarded ? ", or none" : " has none", others);
    g_free(others);
}

int dscomm_priv_roster_refused(dscomm_store_t *store, const char *world,
                               const char *server, bool certain)
{
    char **lines, **fields = NULL;
    unsigned count = 0;
    int guarded = 0;
    void *value;
    size_t size;

    if (dscomm_priv_roster_fetch(store, REFUSED_KEY, &value, &size) < 0 ||
        !value)
        return 0;
    lines = g_strsplit(value, "\n", -1);
    dscomm_store_free(value);
    if (lines[0] && sscanf(lines[0], "%u %d", &count, &guarded) == 2)
        fields = report_find(lines + 1, world, certain);
    if (fields)
        report_fail(lines + 1, fields, server, count, guarded);
    else
        count = 0;
    g_strfreev(fields);
    g_strfreev(lines);
    return (int)MIN(count, G_MAXINT);
}

void dscomm_priv_roster_await_readers(dscomm_store_t *store, const char *key,
                                      int readers)
{
    const int64_t end =
        dscomm_priv_clock_after(dscomm_priv_clock(), 2 * ROSTER_GRACE_MS);
    int64_t seen = 0;

    while (dscomm_priv_clock() < end) {
        if (dscomm_store_add(store, key, 0, &seen) < 0 || seen >= readers)
            return;
        g_usleep(READERS_PAUSE_US);
    }
}

dscomm_status_t dscomm_priv_roster_publish(const dscomm_roster_t *roster,
                                           const char *decision, int readers)
{
    const dscomm_status_t status = dscomm_store_set(
        roster->store, roster->decision, decision, strlen(decision));

    if (status == DSCOMM_OK && g_str_has_prefix(decision, ROSTER_FAILURE))
        dscomm_priv_roster_await_readers(roster->store, roster->read, readers);
    return status;
}

dscomm_status_t dscomm_priv_roster_await_decision(const dscomm_roster_t *roster,
                                                  int64_t end,
                                                  dscomm_roster_wait_t *wait,
                                                  void **ret_value,
                                                  size_t *ret_size)
{
    return await_keys(roster, &roster->decision, 1, end, wait, ret_value,
                      ret_size);
}

bool dscomm_priv_roster_failed(const dscomm_roster_t *roster,
                               const char *decision)
{
    int64_t count;

    if (!g_str_has_prefix(decision, ROSTER_FAILURE))
        return false;
    dscomm_store_add(roster->store, roster->read, 1, &count);
    return true;
}
