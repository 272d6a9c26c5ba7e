/* SPDX-License-Identifier: BSD-3-Clause */
/* See diagnosis.h. Accounts lie in the store under the rank's number in the
 * world: a later one, of whatever group, replaces it. */
#include "config.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/history.h"
#include "lib/base/clock.h"
#include "lib/rendezvous/processes.h"
#include "lib/rendezvous/stopped.h"
#include "lib/store/store.h"
#include "lib/group/world.h"

#include <stdio.h>
#include <string.h>

#define ASKED 64 /* ranks, besides those that are waited for */
#define NAMED 8 /* ranks listed in one sentence */
#define CALL_MS 200 /* of one message to the store */
#define ALL_MS 500 /* of one diagnosis */
#define GRACE_MS 250 /* for accounts that others are about to write */

/* Of the group only that is used which never changes. */
struct dscomm_diagnosis {
    dscomm_group_t *group;
    dscomm_store_t *store;
    uint64_t sequence; /* of the collective */
    int64_t deadline;
    int broken; /* the store does not answer */
    int nwaits, *waits; /* ranks that this one waits for */
    dscomm_account_t *accounts; /* of all ranks */
    char own[ACCOUNT_MAX]; /* this rank's account, as text */
};

static int listed(const dscomm_diagnosis_t *diagnosis, int rank)
{
    for (int i = 0; i < diagnosis->nwaits; i++)
        if (diagnosis->waits[i] == rank)
            return 1;
    return 0;
}

/* Whom a backend's own collective waits for is not known here. */
static void list_others(dscomm_diagnosis_t *diagnosis)
{
    for (int r = 0; r < MIN(diagnosis->group->size, ASKED); r++)
        if (r != diagnosis->group->rank)
            diagnosis->waits[diagnosis->nwaits++] = r;
}

static void list_waits(dscomm_diagnosis_t *diagnosis, const dscomm_work_t *work)
{
    int peer;

    for (uint32_t i = 0; (peer = work->kind->peer(work, i)) >= 0; i++)
        if (!listed(diagnosis, peer))
            diagnosis->waits[diagnosis->nwaits++] = peer;
}

static void key_of(const dscomm_diagnosis_t *diagnosis, int rank, char key[16])
{
    snprintf(key, 16, "%d", diagnosis->group->identity.world_ranks[rank]);
}

static void publish(dscomm_diagnosis_t *diagnosis)
{
    char key[16];

    key_of(diagnosis, diagnosis->group->rank, key);
    diagnosis->deadline = dscomm_priv_clock_after(dscomm_priv_clock(), ALL_MS);
    dscomm_priv_store_limit_diagnosis(diagnosis->store, ALL_MS);
    diagnosis->broken = dscomm_store_set(diagnosis->store, key, diagnosis->own,
                                         strlen(diagnosis->own)) < 0;
}

static void ask(dscomm_diagnosis_t *diagnosis, int rank)
{
    dscomm_account_t *account = &diagnosis->accounts[rank];
    char key[16];
    const char *keys = key;
    void *value;
    size_t size;
    int present = 0;

    if (diagnosis->broken || account->known ||
        dscomm_priv_clock() > diagnosis->deadline)
        return;
    key_of(diagnosis, rank, key);
    diagnosis->broken =
        dscomm_store_check(diagnosis->store, &keys, 1, &present) < 0;
    if (diagnosis->broken || !present)
        return;
    diagnosis->broken =
        dscomm_store_get(diagnosis->store, key, CALL_MS, &value, &size) < 0;
    if (diagnosis->broken)
        return;
    dscomm_priv_account_read(value, diagnosis->group->identity.id, account);
    dscomm_store_free(value);
}

static void ask_all(dscomm_diagnosis_t *diagnosis)
{
    for (int i = 0; i < diagnosis->nwaits; i++)
        ask(diagnosis, diagnosis->waits[i]);
    for (int r = 0; r < MIN(diagnosis->group->size, ASKED); r++)
        ask(diagnosis, r);
}

static int all_known(const dscomm_diagnosis_t *diagnosis)
{
    for (int r = 0; r < MIN(diagnosis->group->size, ASKED); r++)
        if (!diagnosis->accounts[r].known)
            return 0;
    return 1;
}

static dscomm_diagnosis_t *diagnosis_open(dscomm_group_t *group,
                                          uint64_t sequence)
{
    dscomm_store_t *base = group->identity.world->meeting.store, *store;
    dscomm_diagnosis_t *diagnosis;

    if (!base || dscomm_store_prefix(base, "calls", &store) < 0)
        return NULL;
    diagnosis = g_try_new0(dscomm_diagnosis_t, 1);
    if (!diagnosis) {
        dscomm_store_close(store);
        return NULL;
    }
    dscomm_priv_group_hold(group);
    diagnosis->group = group;
    diagnosis->store = store;
    diagnosis->sequence = sequence;
    diagnosis->waits = g_try_new(int, (gsize)group->size);
    diagnosis->accounts = g_try_new0(dscomm_account_t, (gsize)group->size);
    if (diagnosis->waits && diagnosis->accounts)
        return diagnosis;
    dscomm_priv_diagnosis_free(diagnosis);
    return NULL;
}

dscomm_diagnosis_t *dscomm_priv_diagnosis_new(const dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;
    dscomm_diagnosis_t *diagnosis =
        diagnosis_open(group, work->call.coll.sequence);

    if (!diagnosis)
        return NULL;
    if (work->kind->peer)
        list_waits(diagnosis, work);
    else
        list_others(diagnosis);
    dscomm_priv_account_write(group->schedules.history, group->identity.id,
                              diagnosis->waits, diagnosis->nwaits,
                              diagnosis->own);
    dscomm_priv_account_read(diagnosis->own, group->identity.id,
                             &diagnosis->accounts[group->rank]);
    return diagnosis;
}

void dscomm_priv_diagnosis_free(dscomm_diagnosis_t *diagnosis)
{
    if (!diagnosis)
        return;
    dscomm_store_close(diagnosis->store);
    dscomm_priv_group_release(diagnosis->group);
    g_free(diagnosis->waits);
    g_free(diagnosis->accounts);
    g_free(diagnosis);
}

static const dscomm_account_call_t *call_of(const dscomm_diagnosis_t *diagnosis,
                                            int rank, uint64_t sequence)
{
    return dscomm_priv_account_call(&diagnosis->accounts[rank], sequence);
}

static int agree(const dscomm_diagnosis_t *diagnosis, int a, int b,
                 uint64_t sequence)
{
    const dscomm_account_call_t *one = call_of(diagnosis, a, sequence);
    const dscomm_account_call_t *other = call_of(diagnosis, b, sequence);

    return one && other && one->fingerprint == other->fingerprint;
}

/* Do more than half of at least three agree with rank? */
static int has_majority(const dscomm_diagnosis_t *diagnosis, int rank,
                        uint64_t sequence)
{
    int known = 0, alike = 0;

    for (int r = 0; r < diagnosis->group->size; r++) {
        known += call_of(diagnosis, r, sequence) != NULL;
        alike += agree(diagnosis, rank, r, sequence);
    }
    return known > 2 && 2 * alike > known;
}

/* "0, 2", as a sentence lists ranks. */
typedef struct {
    char text[NAMED * 12 + 8];
    int count;
} ranks_t;

/* Appends ", RANK", or ", ..." where enough were named. */
static void append_rank(ranks_t *list, int rank)
{
    char one[16] = "...";

    if (++list->count > NAMED + 1)
        return;
    if (list->count > 1)
        g_strlcat(list->text, ", ", sizeof list->text);
    if (list->count <= NAMED)
        snprintf(one, sizeof one, "%d", rank);
    g_strlcat(list->text, one, sizeof list->text);
}

/* rank, and who agrees with it where they are more than half. */
static void list_alike(const dscomm_diagnosis_t *diagnosis, int rank,
                       uint64_t sequence, ranks_t *list)
{
    const int many = has_majority(diagnosis, rank, sequence);

    for (int r = 0; r < diagnosis->group->size; r++)
        if (r == rank || (many && agree(diagnosis, rank, r, sequence)))
            append_rank(list, r);
}

/* The odd one comes first, if it is known which one that is. */
static void explain(const dscomm_diagnosis_t *diagnosis, int rank,
                    uint64_t sequence, char *ret_text, size_t size)
{
    const int own = diagnosis->group->rank;
    int mine_is_odd = has_majority(diagnosis, rank, sequence) ||
                      !has_majority(diagnosis, own, sequence);
    int odd = mine_is_odd ? own : rank, other = mine_is_odd ? rank : own;
    ranks_t others = {0};

    list_alike(diagnosis, other, sequence, &others);
    snprintf(
        ret_text, size,
        "group '%s': rank %d called %s, but rank%s %s called %s; all "
        "ranks must call the same collectives in the same order with matching "
        "arguments",
        diagnosis->group->identity.name, odd,
        call_of(diagnosis, odd, sequence)->text, others.count > 1 ? "s" : "",
        others.text, call_of(diagnosis, other, sequence)->text);
}

/* ERR_MISMATCH and why, or OK: the oldest call that was not the same counts. */
static dscomm_status_t compare(const dscomm_diagnosis_t *diagnosis,
                               char *ret_text, size_t size)
{
    const dscomm_account_t *own = &diagnosis->accounts[diagnosis->group->rank];
    uint64_t first = 0;
    int rank = -1;

    for (int r = 0; r < diagnosis->group->size; r++) {
        uint64_t sequence =
            dscomm_priv_account_difference(own, &diagnosis->accounts[r]);

        if (sequence && (!first || sequence < first)) {
            first = sequence;
            rank = r;
        }
    }
    if (!first)
        return DSCOMM_OK;
    explain(diagnosis, rank, first, ret_text, size);
    return DSCOMM_ERR_MISMATCH;
}

/* Once something is wrong, it is worth a moment to hear from all. */
static dscomm_status_t judge(dscomm_diagnosis_t *diagnosis, char *ret_text,
                             size_t size)
{
    int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), GRACE_MS);

    for (;;) {
        ask_all(diagnosis);
        if (all_known(diagnosis) || diagnosis->broken ||
            dscomm_priv_clock() > end)
            return compare(diagnosis, ret_text, size);
        g_usleep(5000);
    }
}

dscomm_status_t dscomm_priv_diagnosis_look(dscomm_diagnosis_t *diagnosis,
                                           char *ret_text, size_t size)
{
    publish(diagnosis);
    for (int i = 0; i < diagnosis->nwaits; i++)
        ask(diagnosis, diagnosis->waits[i]);
    if (compare(diagnosis, ret_text, size) == DSCOMM_OK)
        return DSCOMM_OK;
    return judge(diagnosis, ret_text, size);
}

dscomm_status_t dscomm_priv_diagnosis_mismatch(dscomm_diagnosis_t *diagnosis,
                                               char *ret_text, size_t size)
{
    publish(diagnosis);
    return judge(diagnosis, ret_text, size);
}

/* Does rank, as far as it tells, wait in this collective or a later one? */
static int has_come(const dscomm_diagnosis_t *diagnosis, int rank)
{
    return diagnosis->accounts[rank].last >= diagnosis->sequence;
}

/* Someone who waits, in this collective or in one that was started after it,
 * waits for rank, which has not come to either. */
static int is_late(const dscomm_diagnosis_t *diagnosis, int rank)
{
    if (has_come(diagnosis, rank))
        return 0;
    if (listed(diagnosis, rank))
        return 1;
    for (int r = 0; r < diagnosis->group->size; r++)
        if (has_come(diagnosis, r) &&
            dscomm_priv_account_waits(&diagnosis->accounts[r], rank))
            return 1;
    return 0;
}

#define LATE_MAX 240 /* bytes of a list of late ranks */

/* The late ranks with their processes; returns how many. */
static int list_late(const dscomm_diagnosis_t *diagnosis, char list[LATE_MAX])
{
    const dscomm_group_t *group = diagnosis->group;
    const dscomm_meeting_t *meeting = &group->identity.world->meeting;
    char who[DSCOMM_PROCESS_MAX];
    int late = 0, full = 0;

    *list = '\0';
    dscomm_priv_processes_learn(meeting->processes, meeting->store,
                                group->identity.world_ranks,
                                MIN(group->size, ASKED));
    for (int r = 0; r < group->size; r++) {
        if (!is_late(diagnosis, r) || full)
            continue;
        late++;
        dscomm_priv_processes_member(meeting->processes, r,
                                     group->identity.world_ranks[r], who);
        full = late > NAMED ||
               strlen(list) + strlen(who) + sizeof ", , ..." > LATE_MAX;
        g_strlcat(list, late > 1 ? ", " : "", LATE_MAX);
        g_strlcat(list, full ? "..." : who, LATE_MAX);
    }
    return late;
}

static void name_late(const dscomm_diagnosis_t *diagnosis, char *ret_text,
                      size_t size)
{
    char list[LATE_MAX];
    const int late = list_late(diagnosis, list);

    if (late)
        snprintf(ret_text, size, "%s %s not made this call, or stand%s still",
                 list, late > 1 ? "have" : "has", late > 1 ? "" : "s");
}

/* Among those that are waited for. */
static void append_stopped(const dscomm_diagnosis_t *diagnosis, char *ret_text,
                           size_t size)
{
    const dscomm_group_t *group = diagnosis->group;
    int *ranks = g_try_new(int, (gsize)group->size), count = 0;

    for (int r = 0; ranks && r < group->size; r++)
        if (listed(diagnosis, r) || is_late(diagnosis, r))
            ranks[count++] = group->identity.world_ranks[r];
    dscomm_priv_stopped_append(&group->identity.world->meeting, ranks, count,
                               ret_text, size);
    g_free(ranks);
}

dscomm_status_t dscomm_priv_diagnosis_timeout(dscomm_diagnosis_t *diagnosis,
                                              char *ret_text, size_t size)
{
    dscomm_status_t status;

    publish(diagnosis);
    ask_all(diagnosis);
    status = compare(diagnosis, ret_text, size);
    if (status < 0)
        return status;
    if (!diagnosis->broken)
        name_late(diagnosis, ret_text, size);
    append_stopped(diagnosis, ret_text, size);
    return status;
}

/* The backend's view of rank. */
static int has_begun(dscomm_group_t *group, int rank, uint64_t sequence,
                     char *text, size_t size)
{
    int begun;

    if (!group->ops.begun)
        return 0;
    pthread_mutex_lock(&group->works.lock);
    begun = group->ops.begun(group->impl, rank, sequence, text, size);
    pthread_mutex_unlock(&group->works.lock);
    return begun;
}

/* 1 where rank has called the collective of the diagnosis, or a later one: text
 * gets which. */
static int find_call(dscomm_diagnosis_t *diagnosis, int rank, char *text,
                     size_t size)
{
    const dscomm_account_t *account = &diagnosis->accounts[rank];
    const dscomm_account_call_t *call;

    if (has_begun(diagnosis->group, rank, diagnosis->sequence, text, size))
        return 1;
    ask(diagnosis, rank);
    if (!has_come(diagnosis, rank))
        return 0;
    call = call_of(diagnosis, rank, diagnosis->sequence);
    if (!call)
        call = call_of(diagnosis, rank, account->last);
    g_strlcpy(text, call->text, size);
    return 1;
}

dscomm_status_t dscomm_priv_diagnosis_barrier(dscomm_group_t *group,
                                              const int *ranks, int count,
                                              int64_t end, char *ret_text,
                                              size_t size)
{
    const int64_t now = dscomm_priv_clock();
    dscomm_diagnosis_t *diagnosis = diagnosis_open(group, group->sequence + 1);
    dscomm_status_t status = DSCOMM_OK;
    char call[200];

    if (!diagnosis)
        return DSCOMM_OK;
    diagnosis->deadline = MIN(end, dscomm_priv_clock_after(now, CALL_MS));
    dscomm_priv_store_limit_diagnosis(
        diagnosis->store, dscomm_priv_clock_left(diagnosis->deadline));
    for (int i = 0; i < MIN(count, ASKED) && status == DSCOMM_OK; i++) {
        if (!find_call(diagnosis, ranks[i], call, sizeof call))
            continue;
        snprintf(ret_text, size,
                 "group '%s': rank %d called %s, but rank %d called "
                 "dscomm_monitored_barrier; all ranks must call the same "
                 "collectives in the same order with matching arguments",
                 group->identity.name, ranks[i], call, group->rank);
        status = DSCOMM_ERR_MISMATCH;
    }
    dscomm_priv_diagnosis_free(diagnosis);
    return status;
}
