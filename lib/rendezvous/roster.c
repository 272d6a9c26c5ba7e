/* SPDX-License-Identifier: BSD-3-Clause */
/* Every rank puts a record of itself into the store; rank 0 reads all of them
 * and puts its verdict there: the backend, or what is wrong, in the same words
 * for everyone. */
#include "config.h"

#include "lib/rendezvous/roster.h"

#include "lib/rendezvous/missing.h"
#include "lib/base/clock.h"
#include "lib/base/process.h"
#include "lib/base/status.h"
#include "lib/rendezvous/stopped.h"
#include "lib/store/store.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between looks at what has come, and whether the store is still the same. */
#define FIRST_LOOK_MS 50
#define MOST_LOOK_MS 500
/* Records that are waited for, or looked at, in one go: what that costs does
 * not grow with the world, and no deadline slips. */
#define BATCH 1024

typedef struct {
    const dscomm_join_t *join;
    dscomm_store_t *store;
    const char *token, *before;
    int64_t deadline;
    int *final; /* set where another attempt ends no better */
    dscomm_processes_t *processes;
} roster_t;

/* Tokens end with a number of their own, which tells nobody anything. */
static char *process_of(const char *token)
{
    const char *comma = strrchr(token, ',');
    char *name = g_strndup(token, comma ? (gsize)(comma - token) : 64);

    dscomm_priv_tidy(name, strlen(name) + 1);
    return name;
}

/* Stores text, which it frees; NULL: there was no memory for it. */
static dscomm_status_t put(const roster_t *roster, const char *key, char *text)
{
    dscomm_status_t status =
        text ? dscomm_store_set(roster->store, key, text, strlen(text))
             : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for what rank %d tells the others",
                           roster->join->rank);

    g_free(text);
    return status;
}

/* All are told by rank 0, unless they have met before. */
static dscomm_status_t fail_doubled(const roster_t *roster, const char *other,
                                    const char *token)
{
    char *first = process_of(other), *second = process_of(token);
    dscomm_status_t status = dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "rank %d of %d is claimed by two processes, %s and %s: give each "
        "process its own rank, and each job its own port; a file:// store "
        "left by an earlier run must be removed, and an earlier program of "
        "the job must have finalized its world",
        roster->join->rank, roster->join->size, first, second);

    g_free(first);
    g_free(second);
    first = g_strdup(dscomm_last_error());
    put(roster, DSCOMM_ROSTER_WRONG,
        dscomm_priv_verdict_write_failure(status, first));
    dscomm_priv_fail_with(status, first);
    g_free(first);
    return status;
}

static int is_text(const char *text, const void *value, size_t size)
{
    return size == strlen(text) && !memcmp(value, text, size);
}

/* Who is this rank? The first process that says so, and nobody else. */
static dscomm_status_t claim(const roster_t *roster)
{
    const char *token = roster->token;
    char key[32];
    void *value;
    size_t size;
    dscomm_status_t status;

    snprintf(key, sizeof key, "claim/%d", roster->join->rank);
    status = dscomm_store_compare_set(roster->store, key, "", 0, token,
                                      strlen(token), &value, &size);
    if (status < 0)
        return status;
    if (is_text(roster->before, value, size))
        status = dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                             "rank 0 serves the store still in which rank %d "
                             "has failed to meet the others; repeat the call "
                             "on rank 0 too",
                             roster->join->rank);
    else if (!is_text(token, value, size))
        status = fail_doubled(roster, value, token);
    dscomm_store_free(value);
    return status;
}

static dscomm_status_t register_self(const roster_t *roster)
{
    dscomm_record_t record;
    dscomm_status_t status;
    char key[32];

    dscomm_priv_record_own(roster->join, &record);
    snprintf(key, sizeof key, "r/%d", roster->join->rank);
    status = put(roster, key, dscomm_priv_record_write(&record));
    dscomm_priv_record_clear(&record);
    return status;
}

static dscomm_status_t check_alive(const roster_t *roster,
                                   const dscomm_record_t *record, int rank)
{
    const char *url = roster->join->url;

    return dscomm_priv_record_check_alive(
        record, rank, !url || g_str_has_prefix(url, "file://"));
}

static dscomm_status_t read_record(const void *value, size_t size, int rank,
                                   dscomm_record_t *record)
{
    const int problem = dscomm_priv_record_read(value, size, record);

    if (problem > 0)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for the record of rank %d", rank);
    if (problem)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "the record of rank %d makes no sense: it has "
                           "another version of libdscomm, or another program "
                           "uses the store",
                           rank);
    return DSCOMM_OK;
}

/* That of rank, if it is there. */
static dscomm_status_t get_record(const roster_t *roster, const char *key,
                                  int rank, dscomm_record_t *record,
                                  int *ret_present)
{
    int present = 0;
    void *value;
    size_t size;
    dscomm_status_t status =
        dscomm_store_check(roster->store, &key, 1, &present);

    if (status == DSCOMM_OK && present) {
        status = dscomm_store_get(roster->store, key, DSCOMM_TIMEOUT_DEFAULT,
                                  &value, &size);
        if (status < 0)
            return status;
        status = read_record(value, size, rank, record);
        if (status == DSCOMM_OK && rank == 0)
            dscomm_priv_processes_note(roster->processes, 0, value, size);
        dscomm_store_free(value);
    }
    *ret_present = present;
    return status;
}

/* Rank 0, while it waits for the others. */
typedef struct {
    const roster_t *roster;
    dscomm_record_t *records; /* of each rank; those not seen yet are empty */
    int next; /* to look at */
    int slice; /* until the next look, in ms */
    int refused; /* ranks whose secret differs, if that ends the watch */
} watch_t;

/* Whether a record fits this rank's own, the first one. A rank that is told
 * otherwise would make all wait for ranks that do not exist. */
static dscomm_status_t check_record(const watch_t *watch, int rank)
{
    const dscomm_record_t *records = watch->records;
    dscomm_status_t status = DSCOMM_OK;

    if (records[0].node && records[rank].node)
        status = dscomm_priv_record_compare(&records[0], &records[rank], rank);
    if (status == DSCOMM_OK && records[rank].node)
        status = check_alive(watch->roster, &records[rank], rank);
    return status;
}

/* At the next of those that have come so far. */
static dscomm_status_t look_at_records(watch_t *watch)
{
    const int size = watch->roster->join->size, count = MIN(size, BATCH);
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < count && status == DSCOMM_OK; i++) {
        const int rank = watch->next;
        int present = 0;
        char key[32];

        snprintf(key, sizeof key, "r/%d", rank);
        if (!watch->records[rank].node)
            status = get_record(watch->roster, key, rank, &watch->records[rank],
                                &present);
        if (status == DSCOMM_OK)
            status = check_record(watch, rank);
        watch->next = (rank + 1) % size;
    }
    return status;
}

/* Why this world can never meet, as somebody has found. */
static dscomm_status_t read_wrong(const roster_t *roster)
{
    dscomm_verdict_t verdict;
    void *value;
    size_t size;
    dscomm_status_t status =
        dscomm_store_get(roster->store, DSCOMM_ROSTER_WRONG,
                         DSCOMM_TIMEOUT_DEFAULT, &value, &size);

    if (status < 0)
        return status;
    if (g_str_has_prefix(value, "error\n"))
        status = dscomm_priv_verdict_read(roster->join, value, &verdict);
    dscomm_store_free(value);
    return status;
}

/* A rank that has ended may have been told that the world can never meet: that
 * is the cause then. */
static dscomm_status_t find_cause(const roster_t *roster,
                                  dscomm_status_t status)
{
    const char *key = DSCOMM_ROSTER_WRONG;
    char why[DSCOMM_ERROR_MAX];
    int present = 0;

    if (status != DSCOMM_ERR_PEER_FAILED)
        return status;
    g_strlcpy(why, dscomm_last_error(), sizeof why);
    if (dscomm_store_check(roster->store, &key, 1, &present) == DSCOMM_OK &&
        present) {
        dscomm_status_t cause = read_wrong(roster);

        if (cause < 0)
            return cause;
    }
    return dscomm_priv_fail_with(status, why);
}

/* A rank whose last will was carried out is missed by no deadline. */
static dscomm_status_t check_died(const roster_t *roster, int count)
{
    const int rank = dscomm_priv_processes_died(roster->processes, count,
                                                roster->join->rank);
    char who[DSCOMM_PROCESS_MAX];

    if (rank < 0)
        return DSCOMM_OK;
    return dscomm_fail(
        DSCOMM_ERR_PEER_FAILED,
        "%s ended before all had come: see its own output; or its host cannot "
        "be reached any more",
        dscomm_priv_processes_describe(roster->processes, rank, who));
}

/* Whether the world can never meet, or one of the first count ranks has died;
 * by one request. */
static dscomm_status_t look_in_store(const roster_t *roster, int count)
{
    dscomm_priv_look_t looks[] = {
        {.store = roster->store, .key = DSCOMM_ROSTER_WRONG},
        dscomm_priv_processes_key(roster->store),
    };
    dscomm_status_t status = dscomm_priv_store_look(looks, G_N_ELEMENTS(looks));

    if (status < 0)
        return status;
    if (looks[0].present)
        status = read_wrong(roster);
    dscomm_priv_processes_read(roster->processes, &looks[1]);
    return status == DSCOMM_OK ? check_died(roster, count) : status;
}

/* Those of some keys, as bytes; looks at times at those that have come. */
static dscomm_status_t await_batch(watch_t *watch, char **keys, int count,
                                   void **values, size_t *sizes)
{
    const roster_t *roster = watch->roster;
    dscomm_priv_refused_t *refused = dscomm_priv_store_refused(roster->store);
    dscomm_status_t status;

    for (;;) {
        int left = dscomm_priv_clock_left(roster->deadline);

        status = dscomm_store_multi_get(
            roster->store, (const char *const *)keys, (size_t)count,
            MIN(left, watch->slice), values, sizes);
        if (status != DSCOMM_ERR_TIMEOUT || left <= watch->slice)
            return status;
        status = look_at_records(watch);
        if (status == DSCOMM_OK)
            status = look_in_store(roster, roster->join->size);
        if (status == DSCOMM_OK)
            watch->refused = dscomm_priv_refused_fail(refused, false);
        if (watch->refused)
            status = DSCOMM_ERR_MISMATCH;
        if (status < 0)
            return status;
        watch->slice = MIN(2 * watch->slice, MOST_LOOK_MS);
    }
}

static dscomm_status_t get_batch(watch_t *watch, int first, int count)
{
    char texts[BATCH][16], *keys[BATCH];
    void *values[BATCH];
    size_t sizes[BATCH];
    dscomm_status_t status;

    for (int i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "r/%d", first + i);
        keys[i] = texts[i];
    }
    status = await_batch(watch, keys, count, values, sizes);
    if (status < 0)
        return status;
    for (int i = 0; i < count; i++) {
        dscomm_record_t *record = &watch->records[first + i];

        dscomm_priv_record_clear(record);
        if (status == DSCOMM_OK)
            status = read_record(values[i], sizes[i], first + i, record);
        if (status == DSCOMM_OK)
            status = check_record(watch, first + i);
        dscomm_store_free(values[i]);
    }
    return status;
}

static dscomm_status_t get_records(const roster_t *roster,
                                   dscomm_record_t *records, int *ret_came)
{
    const int size = roster->join->size;
    watch_t watch = {
        .roster = roster, .records = records, .slice = FIRST_LOOK_MS};
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < size && status == DSCOMM_OK; i += BATCH)
        status = get_batch(&watch, i, MIN(size - i, BATCH));
    if (status == DSCOMM_ERR_TIMEOUT) {
        dscomm_status_t named =
            dscomm_priv_absent_members(roster->join, roster->store, ret_came);

        return named < 0 ? named : status;
    }
    *ret_came = MAX(size - watch.refused, 1);
    return status;
}

/* The others must read why it failed before the store goes with this process.
 * Those that have not come by the deadline, or were refused, are not waited
 * for; where it fails before, they still come, all but a dead one. */
static void publish_failure(const roster_t *roster, dscomm_status_t status,
                            int came)
{
    const int readers = came - 1 - (status == DSCOMM_ERR_PEER_FAILED);
    char *sentence = g_strdup(dscomm_last_error());

    if (put(roster, "summary",
            dscomm_priv_verdict_write_failure(status, sentence)) == DSCOMM_OK)
        dscomm_priv_absent_linger(roster->store, "seen", readers);
    dscomm_priv_fail_with(status, sentence);
    g_free(sentence);
}

static dscomm_status_t lead(const roster_t *roster,
                            dscomm_verdict_t *ret_verdict)
{
    const int size = roster->join->size;
    dscomm_record_t *records = g_try_new0(dscomm_record_t, (gsize)size);
    dscomm_verdict_t verdict = {0};
    int came = size;
    dscomm_status_t status;

    if (records)
        status = find_cause(roster, get_records(roster, records, &came));
    else
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "no memory for the records of %d ranks", size);
    if (status == DSCOMM_OK)
        status = dscomm_priv_decide(records, size, &verdict);
    if (status == DSCOMM_OK)
        status = put(roster, "summary", dscomm_priv_verdict_write(&verdict));
    else
        publish_failure(roster, status, came);
    for (int i = 0; records && i < size; i++)
        dscomm_priv_record_clear(&records[i]);
    g_free(records);
    if (status == DSCOMM_OK) {
        dscomm_priv_refused_settle(dscomm_priv_store_refused(roster->store));
        *ret_verdict = verdict;
    } else {
        dscomm_priv_nodes_clear(&verdict.nodes);
    }
    return status;
}

/* Rank 0's decision, from its text. It tells who rank 0 is: the store need not
 * answer any more, and may have ended with rank 0. */
static dscomm_status_t obey(const roster_t *roster, const char *text,
                            dscomm_verdict_t *ret_verdict)
{
    int64_t seen;
    dscomm_status_t status;

    if (g_str_has_prefix(text, "error\n"))
        dscomm_store_add(roster->store, "seen", 1, &seen);
    status = dscomm_priv_verdict_read(roster->join, text, ret_verdict);
    if (status == DSCOMM_OK)
        dscomm_priv_processes_add(roster->processes, 0, ret_verdict->pid,
                                  ret_verdict->node, ret_verdict->host);
    return status;
}

/* A store that has lost this rank's record is not the one it was put in: the
 * client has connected again, to the next world's server. */
static dscomm_status_t check_own_record(const roster_t *roster)
{
    char name[32];
    const char *key = name;
    int present = 0;
    dscomm_status_t status;

    snprintf(name, sizeof name, "r/%d", roster->join->rank);
    status = dscomm_store_check(roster->store, &key, 1, &present);
    if (status == DSCOMM_OK && !present)
        return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                           "the store lost the record of rank %d; its server "
                           "was started anew",
                           roster->join->rank);
    return status;
}

/* Who waits for rank 0's verdict waits for its process. */
static dscomm_status_t check_leader(const roster_t *roster,
                                    dscomm_record_t *leader)
{
    int present = leader->node != NULL;
    dscomm_status_t status = DSCOMM_OK;

    if (!present)
        status = get_record(roster, "r/0", 0, leader, &present);
    return status == DSCOMM_OK && present ? check_alive(roster, leader, 0)
                                          : status;
}

/* Where rank 0 serves the store of this very world, the end of the one is the
 * end of the other. */
static dscomm_status_t check_lost(const roster_t *roster,
                                  const dscomm_record_t *leader,
                                  dscomm_status_t status)
{
    if ((status != DSCOMM_ERR_PEER_FAILED && status != DSCOMM_ERR_IO) ||
        !leader->node || !dscomm_priv_join_serves(roster->join))
        return status;
    *roster->final = 1;
    return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                       "rank 0 (pid %lld on %s) ended before all had come: see "
                       "its own output; or its host cannot be reached any more",
                       (long long)leader->pid, leader->node);
}

/* Rank 0's verdict, as text; looks at times whether it can still come. Who
 * rank 0 is, is read first: the store that it serves ends with it. */
static dscomm_status_t await_verdict(const roster_t *roster,
                                     dscomm_record_t *leader, void **ret_value,
                                     size_t *ret_size)
{
    int64_t end = roster->deadline + DSCOMM_ABSENT_GRACE_MS * NS_PER_MS;
    int slice = FIRST_LOOK_MS;
    dscomm_status_t status = DSCOMM_OK;
    int present;

    if (dscomm_priv_join_serves(roster->join))
        status = get_record(roster, "r/0", 0, leader, &present);
    if (status < 0)
        return status;
    for (;;) {
        int left = dscomm_priv_clock_left(end);

        status = dscomm_store_get(roster->store, "summary", MIN(left, slice),
                                  ret_value, ret_size);
        if (status != DSCOMM_ERR_TIMEOUT || left <= slice)
            return status;
        status = check_own_record(roster);
        if (status == DSCOMM_OK)
            status = find_cause(roster, check_leader(roster, leader));
        if (status == DSCOMM_OK && !dscomm_priv_join_serves(roster->join))
            status = look_in_store(roster, 1);
        if (status < 0)
            return status;
        slice = MIN(2 * slice, MOST_LOOK_MS);
    }
}

/* Why rank 0's decision did not come in time. */
static dscomm_status_t explain_late(const roster_t *roster,
                                    const dscomm_record_t *leader,
                                    dscomm_status_t status)
{
    const char *how = leader->node && dscomm_priv_record_here(leader)
                          ? dscomm_priv_process_stopped(leader->pid)
                          : NULL;
    char why[DSCOMM_ERROR_MAX];
    dscomm_status_t named;
    int came = 0;

    if (how)
        return dscomm_fail(status,
                           "rank 0 of %d (pid %lld on %s) is stopped%s: it did "
                           "not say within %.1f s who has come",
                           roster->join->size, (long long)leader->pid,
                           leader->node, how,
                           roster->join->timeout_ms / 1000.0);
    g_strlcpy(why, dscomm_last_error(), sizeof why);
    named = dscomm_priv_absent_members(roster->join, roster->store, &came);
    if (named < 0 && came)
        return check_lost(roster, leader, named);
    return dscomm_priv_fail_with(status, why);
}

static dscomm_status_t follow(const roster_t *roster,
                              dscomm_verdict_t *ret_verdict)
{
    void *value = NULL;
    size_t size;
    dscomm_record_t leader = {0};
    dscomm_status_t status = await_verdict(roster, &leader, &value, &size);

    status = check_lost(roster, &leader, status);
    /* A failure in a store that outlives rank 0 may be that of an earlier run;
     * rank 0 of this one ends after the others have read it. */
    if (status == DSCOMM_OK && !dscomm_priv_join_serves(roster->join) &&
        g_str_has_prefix(value, "error\n"))
        status = check_leader(roster, &leader);
    if (status == DSCOMM_OK)
        status = obey(roster, value, ret_verdict);
    else if (status == DSCOMM_ERR_TIMEOUT)
        status = explain_late(roster, &leader, status);
    *roster->final |= value != NULL;
    dscomm_priv_record_clear(&leader);
    dscomm_store_free(value);
    return status;
}

dscomm_status_t dscomm_priv_roster(const dscomm_join_t *join,
                                   dscomm_store_t *store, const char *token,
                                   const char *before, int64_t deadline,
                                   int *ret_final,
                                   dscomm_processes_t *processes,
                                   dscomm_verdict_t *ret_verdict)
{
    roster_t roster = {join,     store,     token,    before,
                       deadline, ret_final, processes};
    dscomm_status_t status = claim(&roster);

    if (status == DSCOMM_OK)
        status = dscomm_priv_processes_leave_will(store, join->rank);
    if (status == DSCOMM_OK)
        status = register_self(&roster);
    if (status == DSCOMM_OK)
        status = join->rank ? follow(&roster, ret_verdict)
                            : lead(&roster, ret_verdict);
    return status;
}
