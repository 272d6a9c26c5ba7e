/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a world are members of a roster. Each writes its record; rank 0
 * reads all records, the other ranks read rank 0's. Rank 0 publishes its
 * decision: the backend, or a failure in the same words for all ranks. While
 * ranks wait, they check whether others have ended. */
#include "config.h"

#include "lib/rendezvous/join.h"

#include "lib/base/clock.h"
#include "lib/base/process.h"
#include "lib/base/status.h"
#include "lib/rendezvous/roster.h"
#include "lib/store/store.h"

#include <glib.h>
#include <string.h>

/* Interval of checks for new records, and of the store: first, longest. */
#define FIRST_LOOK_MS 50
#define MOST_LOOK_MS 500
/* The largest number of records that one check reads, so that its time does not
 * grow with the world. */
#define LOOK_MOST 1024

/* The token's last field is random; leave it out of messages. */
static char *process_of(const char *token)
{
    const char *comma = strrchr(token, ',');
    char *name = g_strndup(token, comma ? (gsize)(comma - token) : 64);

    dscomm_priv_tidy(name, strlen(name) + 1);
    return name;
}

/* Two processes claim this rank. Rank 0 publishes that to all ranks, unless
 * they have met before. */
static dscomm_status_t fail_doubled(const dscomm_attempt_t *attempt,
                                    const char *other, const char *token)
{
    char *first = process_of(other), *second = process_of(token);
    dscomm_status_t status = dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "rank %d of %d is claimed by two processes, %s and %s: give each "
        "process its own rank, and each job its own port; a file:// store "
        "left by an earlier run must be removed, and an earlier program of "
        "the job must have finalized its world",
        attempt->join->rank, attempt->join->size, first, second);

    g_free(first);
    g_free(second);
    return dscomm_priv_join_decision_put_failure(
        attempt->roster.store, DSCOMM_JOIN_WRONG, status, NULL, 0);
}

/* Claims this rank for this process; fails if another process has claimed it.
 */
static dscomm_status_t rank_claim(const dscomm_attempt_t *attempt)
{
    char *other;
    dscomm_status_t status = dscomm_priv_roster_claim(
        &attempt->roster, attempt->token, NULL, &other);

    if (status < 0 || !other)
        return status;
    if (!strcmp(attempt->before, other))
        status = dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                             "rank 0 serves the store still in which rank %d "
                             "has failed to meet the others; repeat the call "
                             "on rank 0 too",
                             attempt->join->rank);
    else
        status = fail_doubled(attempt, other, attempt->token);
    g_free(other);
    return status;
}

static dscomm_status_t join_put_record(const dscomm_attempt_t *attempt)
{
    dscomm_record_t record;
    dscomm_status_t status;
    char *text;

    dscomm_priv_record_own(attempt->join, &record);
    text = dscomm_priv_record_write(&record);
    if (text)
        status = dscomm_priv_roster_put(&attempt->roster, text);
    else
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "no memory for what rank %d tells the others",
                             attempt->join->rank);
    g_free(text);
    dscomm_priv_record_clear(&record);
    return status;
}

static dscomm_status_t check_alive(const dscomm_attempt_t *attempt,
                                   const dscomm_record_t *record, int rank)
{
    const char *url = attempt->join->url;

    return dscomm_priv_record_check_alive(
        record, rank, !url || g_str_has_prefix(url, "file://"));
}

static dscomm_status_t join_read_record(const void *value, size_t size,
                                        int rank, dscomm_record_t *record)
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

/* The record of rank; record->node is NULL if it is not there yet. */
static dscomm_status_t get_record(const dscomm_attempt_t *attempt, int rank,
                                  dscomm_record_t *record)
{
    char key[ROSTER_KEY_MAX];
    void *value;
    size_t size;
    dscomm_status_t status = dscomm_priv_roster_fetch(
        attempt->roster.store,
        dscomm_priv_roster_key(&attempt->roster, rank, key), &value, &size);

    if (status < 0 || !value)
        return status;
    status = join_read_record(value, size, rank, record);
    if (status == DSCOMM_OK && rank == 0)
        dscomm_priv_processes_note(attempt->processes, 0, value, size);
    dscomm_store_free(value);
    return status;
}

/* State of rank 0 while it waits for records. */
typedef struct {
    const dscomm_attempt_t *attempt;
    dscomm_record_t *records; /* of each rank; those not seen yet are empty */
    int next; /* to look at */
    int refused; /* ranks whose secret differs, if that ends the watch */
} watch_t;

/* OK if rank's record agrees with rank 0's. A rank with another world size
 * would make all ranks wait for ranks that do not exist. */
static dscomm_status_t check_record(const watch_t *watch, int rank)
{
    const dscomm_record_t *records = watch->records;
    dscomm_status_t status = DSCOMM_OK;

    if (records[0].node && records[rank].node)
        status = dscomm_priv_record_compare(&records[0], &records[rank], rank);
    if (status == DSCOMM_OK && records[rank].node)
        status = check_alive(watch->attempt, &records[rank], rank);
    return status;
}

/* Looks at the next of the records that have come so far, until the deadline:
 * afterwards the store must still say which ranks are missing. */
static dscomm_status_t look_at_records(watch_t *watch)
{
    const int size = watch->attempt->join->size, count = MIN(size, LOOK_MOST);
    const int64_t deadline = watch->attempt->roster.deadline;
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0;
         i < count && status == DSCOMM_OK && dscomm_priv_clock() < deadline;
         i++) {
        const int rank = watch->next;

        if (!watch->records[rank].node)
            status = get_record(watch->attempt, rank, &watch->records[rank]);
        if (status == DSCOMM_OK)
            status = check_record(watch, rank);
        watch->next = (rank + 1) % size;
    }
    return status;
}

/* Reads why the start-up must fail, as another rank has found. */
static dscomm_status_t read_wrong(const dscomm_attempt_t *attempt)
{
    dscomm_join_decision_t decision;
    void *value;
    size_t size;
    dscomm_status_t status =
        dscomm_store_get(attempt->roster.store, DSCOMM_JOIN_WRONG,
                         DSCOMM_TIMEOUT_DEFAULT, &value, &size);

    if (status < 0)
        return status;
    if (g_str_has_prefix(value, ROSTER_FAILURE))
        status =
            dscomm_priv_join_decision_read(attempt->join, value, &decision);
    dscomm_store_free(value);
    return status;
}

/* The failure of a rank that has ended; if the start-up must fail for another
 * reason, that reason, because the rank may have ended for it. */
static dscomm_status_t join_find_cause(const dscomm_attempt_t *attempt,
                                       dscomm_status_t status)
{
    const char *key = DSCOMM_JOIN_WRONG;
    dscomm_status_t cause = DSCOMM_OK;
    int present = 0;

    if (status != DSCOMM_ERR_PEER_FAILED)
        return status;
    dscomm_priv_fail_hold();
    dscomm_store_check(attempt->roster.store, &key, 1, &present);
    dscomm_priv_fail_release();
    if (present)
        cause = read_wrong(attempt);
    return cause < 0 ? cause : status;
}

/* Fails if the last will of a rank was carried out: waiting for it until the
 * deadline is useless. */
static dscomm_status_t check_died(const dscomm_attempt_t *attempt, int count)
{
    const int rank = dscomm_priv_processes_died(attempt->processes, count,
                                                attempt->join->rank);
    char who[DSCOMM_PROCESS_MAX];

    if (rank < 0)
        return DSCOMM_OK;
    return dscomm_fail(
        DSCOMM_ERR_PEER_FAILED,
        "%s ended before all had come: see its own output; or its host cannot "
        "be reached any more",
        dscomm_priv_processes_describe(attempt->processes, rank, who));
}

/* Fails if the start-up must fail, or if one of the first count ranks has died;
 * by one request. */
static dscomm_status_t join_look_in_store(const dscomm_attempt_t *attempt,
                                          int count)
{
    dscomm_priv_look_t looks[] = {
        {.store = attempt->roster.store, .key = DSCOMM_JOIN_WRONG},
        dscomm_priv_processes_key(attempt->roster.store),
    };
    dscomm_status_t status = dscomm_priv_store_look(looks, G_N_ELEMENTS(looks));

    if (status < 0)
        return status;
    if (looks[0].present)
        status = read_wrong(attempt);
    dscomm_priv_processes_read(attempt->processes, &looks[1]);
    return status == DSCOMM_OK ? check_died(attempt, count) : status;
}

dscomm_status_t dscomm_priv_missing_ranks(dscomm_store_t *store,
                                          const char *prefix, int size,
                                          int timeout_ms, int *ret_came)
{
    char *names;
    dscomm_status_t status = dscomm_priv_roster_missing(
        store, prefix, size, "rank", &names, ret_came);

    if (status < 0 || *ret_came == size)
        return status;
    if (names)
        status =
            dscomm_fail(DSCOMM_ERR_TIMEOUT, "%s did not come within %.1f s",
                        names, timeout_ms / 1000.0);
    else
        status = dscomm_fail(DSCOMM_ERR_TIMEOUT,
                             "not all %d ranks came within %.1f s", size,
                             timeout_ms / 1000.0);
    g_free(names);
    return status;
}

/* Who serves the store. */
static const char *server_of(const dscomm_attempt_t *attempt)
{
    return dscomm_priv_join_serves(attempt->join) ? "rank 0" : "the launcher";
}

/* OK if all ranks have come, else an error that names the missing ranks:
 * ERR_MISMATCH if the store has refused ranks with another secret, which may be
 * those. *ret_came: the number of ranks known to be there. */
static dscomm_status_t join_name_missing(const dscomm_attempt_t *attempt,
                                         int *ret_came)
{
    const dscomm_join_t *join = attempt->join;
    char missing[DSCOMM_ERROR_MAX], refused[DSCOMM_ERROR_MAX];
    dscomm_status_t status =
        dscomm_priv_missing_ranks(attempt->roster.store, attempt->roster.record,
                                  join->size, join->timeout_ms, ret_came);

    if (status != DSCOMM_ERR_TIMEOUT || !join->url)
        return status;
    g_strlcpy(missing, dscomm_last_error(), sizeof missing);
    if (!dscomm_priv_roster_refused(attempt->base, attempt->world,
                                    server_of(attempt), false))
        return dscomm_fail(status,
                           "%s; the ranks meet at %s: check that each was "
                           "started, was given this address, and can reach it",
                           missing, join->url);
    g_strlcpy(refused, dscomm_last_error(), sizeof refused);
    return dscomm_fail(DSCOMM_ERR_MISMATCH, "%s; %s", missing, refused);
}

/* Rank 0's checks while it waits. */
static dscomm_status_t join_watch(void *arg)
{
    watch_t *watch = arg;
    const dscomm_attempt_t *attempt = watch->attempt;
    dscomm_status_t status = look_at_records(watch);

    if (status == DSCOMM_OK)
        status = join_look_in_store(attempt, attempt->join->size);
    if (status == DSCOMM_OK)
        watch->refused = dscomm_priv_roster_refused(
            attempt->base, attempt->world, server_of(attempt), true);
    return watch->refused ? DSCOMM_ERR_MISMATCH : status;
}

static dscomm_status_t join_take_record(void *arg, int rank, const void *value,
                                        size_t size)
{
    watch_t *watch = arg;
    dscomm_record_t *record = &watch->records[rank];
    dscomm_status_t status;

    dscomm_priv_record_clear(record);
    status = join_read_record(value, size, rank, record);
    return status == DSCOMM_OK ? check_record(watch, rank) : status;
}

static dscomm_status_t get_records(const dscomm_attempt_t *attempt,
                                   dscomm_record_t *records, int *ret_came)
{
    const int size = attempt->join->size;
    watch_t watch = {.attempt = attempt, .records = records};
    dscomm_roster_wait_t wait = {FIRST_LOOK_MS, MOST_LOOK_MS, join_watch,
                                 &watch};
    dscomm_status_t status =
        dscomm_priv_roster_collect(&attempt->roster, &wait, join_take_record);

    if (status == DSCOMM_ERR_TIMEOUT) {
        dscomm_status_t named = join_name_missing(attempt, ret_came);

        return named < 0 ? named : status;
    }
    *ret_came = MAX(size - watch.refused, 1);
    return status;
}

/* Adds this rank to the sentence if it lacks memory, because all ranks get that
 * sentence. */
static dscomm_status_t join_name_lack(const dscomm_attempt_t *attempt,
                                      dscomm_status_t status)
{
    char text[DSCOMM_ERROR_MAX];

    if (status != DSCOMM_ERR_NO_MEMORY)
        return status;
    g_strlcpy(text, dscomm_last_error(), sizeof text);
    return dscomm_fail(status, "rank %d of %d: %s", attempt->join->rank,
                       attempt->join->size, text);
}

static dscomm_status_t join_lead(const dscomm_attempt_t *attempt,
                                 dscomm_join_decision_t *ret_decision)
{
    const int size = attempt->join->size;
    dscomm_record_t *records = g_try_new0(dscomm_record_t, (gsize)size);
    dscomm_join_decision_t decision = {0};
    int came = size;
    dscomm_status_t status;

    if (records)
        status = join_find_cause(attempt, get_records(attempt, records, &came));
    else
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "no memory for the records of %d ranks", size);
    if (status == DSCOMM_OK)
        status = dscomm_priv_decide(records, size, &decision);
    if (status == DSCOMM_OK) {
        char *text;

        strcpy(decision.standby_text, DSCOMM_STANDBY_NONE);
        if (dscomm_priv_join_serves(attempt->join))
            decision.standby =
                dscomm_priv_standby_make(records, size, decision.standby_text);
        text = dscomm_priv_join_decision_write(&decision);
        status = dscomm_priv_roster_publish(&attempt->roster, text, 0);
        g_free(text);
    } else {
        status = join_name_lack(attempt, status);
        /* neither late or refused ranks nor a dead one will read it */
        dscomm_priv_join_decision_put_failure(
            attempt->roster.store, attempt->roster.decision, status,
            attempt->roster.read,
            came - 1 - (status == DSCOMM_ERR_PEER_FAILED));
    }
    for (int i = 0; records && i < size; i++)
        dscomm_priv_record_clear(&records[i]);
    g_free(records);
    if (status == DSCOMM_OK)
        *ret_decision = decision;
    else
        dscomm_priv_join_decision_clear(&decision);
    return status;
}

/* Applies rank 0's decision. The text also tells who rank 0 is, so the store is
 * no longer needed and may have ended with rank 0. */
static dscomm_status_t decision_apply(const dscomm_attempt_t *attempt,
                                      const char *text,
                                      dscomm_join_decision_t *ret_decision)
{
    dscomm_status_t status;

    dscomm_priv_roster_failed(&attempt->roster, text);
    status = dscomm_priv_join_decision_read(attempt->join, text, ret_decision);
    if (status < 0)
        return status;
    dscomm_priv_processes_add(attempt->processes, 0, ret_decision->pid,
                              ret_decision->node, ret_decision->host);
    ret_decision->standby =
        dscomm_priv_standby_join(ret_decision->pid, ret_decision->standby_text);
    return DSCOMM_OK;
}

/* Fails if the store does not have this rank's record: then the client has
 * connected anew, to the server of the next world. */
static dscomm_status_t check_own_record(const dscomm_attempt_t *attempt)
{
    char name[ROSTER_KEY_MAX];
    const char *key =
        dscomm_priv_roster_key(&attempt->roster, attempt->join->rank, name);
    int present = 0;
    dscomm_status_t status =
        dscomm_store_check(attempt->roster.store, &key, 1, &present);

    if (status == DSCOMM_OK && !present)
        return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                           "the store lost the record of rank %d; its server "
                           "was started anew",
                           attempt->join->rank);
    return status;
}

/* Fails if rank 0's process has ended. */
static dscomm_status_t check_leader(const dscomm_attempt_t *attempt,
                                    dscomm_record_t *leader)
{
    dscomm_status_t status = DSCOMM_OK;

    if (!leader->node)
        status = get_record(attempt, 0, leader);
    return status == DSCOMM_OK && leader->node ? check_alive(attempt, leader, 0)
                                               : status;
}

/* If rank 0 serves the store, a lost connection to it means that rank 0 has
 * ended. */
static dscomm_status_t check_lost(dscomm_attempt_t *attempt,
                                  const dscomm_record_t *leader,
                                  dscomm_status_t status)
{
    if ((status != DSCOMM_ERR_PEER_FAILED && status != DSCOMM_ERR_IO) ||
        !leader->node || !dscomm_priv_join_serves(attempt->join))
        return status;
    attempt->final = 1;
    return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                       "rank 0 (pid %lld on %s) ended before all had come: see "
                       "its own output; or its host cannot be reached any more",
                       (long long)leader->pid, leader->node);
}

/* State of another rank while it waits for the decision. */
typedef struct {
    const dscomm_attempt_t *attempt;
    dscomm_record_t leader; /* rank 0's; empty: not seen yet */
} follower_t;

/* Fails if the decision cannot come any more. */
static dscomm_status_t look_at_leader(void *arg)
{
    follower_t *follower = arg;
    const dscomm_attempt_t *attempt = follower->attempt;
    dscomm_status_t status = check_own_record(attempt);

    if (status == DSCOMM_OK)
        status =
            join_find_cause(attempt, check_leader(attempt, &follower->leader));
    if (status == DSCOMM_OK && !dscomm_priv_join_serves(attempt->join))
        status = join_look_in_store(attempt, 1);
    return status;
}

/* Waits for rank 0's decision. Rank 0's record is read before, because a store
 * that rank 0 serves ends with it. */
static dscomm_status_t await_decision(follower_t *follower, void **ret_value,
                                      size_t *ret_size)
{
    const dscomm_attempt_t *attempt = follower->attempt;
    const int64_t end = attempt->roster.deadline + ROSTER_GRACE_MS * NS_PER_MS;
    dscomm_roster_wait_t wait = {FIRST_LOOK_MS, MOST_LOOK_MS, look_at_leader,
                                 follower};
    dscomm_status_t status = DSCOMM_OK;

    if (dscomm_priv_join_serves(attempt->join))
        status = get_record(attempt, 0, &follower->leader);
    if (status < 0)
        return status;
    return dscomm_priv_roster_await_decision(&attempt->roster, end, &wait,
                                             ret_value, ret_size);
}

/* Explains why rank 0's decision did not come in time. */
static dscomm_status_t join_explain_late(dscomm_attempt_t *attempt,
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
                           attempt->join->size, (long long)leader->pid,
                           leader->node, how,
                           attempt->join->timeout_ms / 1000.0);
    g_strlcpy(why, dscomm_last_error(), sizeof why);
    named = join_name_missing(attempt, &came);
    if (named < 0 && came)
        return check_lost(attempt, leader, named);
    return dscomm_priv_fail_with(status, why);
}

static dscomm_status_t join_follow(dscomm_attempt_t *attempt,
                                   dscomm_join_decision_t *ret_decision)
{
    void *value = NULL;
    size_t size;
    follower_t follower = {.attempt = attempt};
    dscomm_record_t *leader = &follower.leader;
    dscomm_status_t status = await_decision(&follower, &value, &size);

    status = check_lost(attempt, leader, status);
    /* A failure in a store that outlives rank 0 may be that of an earlier run;
     * rank 0 of this one ends after the others have read it. */
    if (status == DSCOMM_OK && !dscomm_priv_join_serves(attempt->join) &&
        g_str_has_prefix(value, ROSTER_FAILURE))
        status = check_leader(attempt, leader);
    if (status == DSCOMM_OK)
        status = decision_apply(attempt, value, ret_decision);
    else if (status == DSCOMM_ERR_TIMEOUT)
        status = join_explain_late(attempt, leader, status);
    attempt->final |= value != NULL;
    dscomm_priv_record_clear(leader);
    dscomm_store_free(value);
    return status;
}

dscomm_roster_t dscomm_priv_join_roster(dscomm_store_t *store, int rank,
                                        int size, int64_t deadline)
{
    return (dscomm_roster_t){store, rank,      size,  deadline,
                             "r/",  "summary", "seen"};
}

dscomm_status_t dscomm_priv_join(dscomm_attempt_t *attempt,
                                 dscomm_join_decision_t *ret_decision)
{
    const int rank = attempt->join->rank;
    dscomm_status_t status = rank_claim(attempt);

    if (status == DSCOMM_OK)
        status = dscomm_priv_processes_leave_will(attempt->roster.store, rank);
    if (status == DSCOMM_OK)
        status = join_put_record(attempt);
    if (status == DSCOMM_OK)
        status = rank ? join_follow(attempt, ret_decision)
                      : join_lead(attempt, ret_decision);
    return status;
}
