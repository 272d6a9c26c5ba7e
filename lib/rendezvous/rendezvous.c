/* SPDX-License-Identifier: BSD-3-Clause */
/* The store of a rendezvous. A process opens it once for all worlds that meet
 * there; each world has keys of its own. Its server closes it last. */
#include "config.h"

#include "lib/rendezvous/rendezvous.h"

#include "lib/base/clock.h"
#include "lib/base/node.h"
#include "lib/base/process.h"
#include "lib/base/status.h"
#include "lib/rendezvous/join.h"
#include "lib/rendezvous/roster.h"
#include "lib/store/store.h"
#include "lib/store/tcp/connect.h"
#include "lib/store/tcp/listen.h"

#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RETRY_US 20000
/* Longest time to open a store of a launcher, or at an address that may be
 * another machine's. */
#define DOUBTFUL_MS 30000
/* Time for which rank 0 serves a failed world's store after its own end. */
#define FAILED_STORE_MS 500
#define FAILED_STORE_LOOK_US 1000
/* Between the end of the final barrier and the last leave message. */
#define LEAVE_MESSAGE_MS STORE_READERS_MS
#define BATCH 1024 /* keys in one request */
/* Interval of rank 0's checks for missing leave messages: first, longest. */
#define LOOK_MS 50
#define LOOK_MOST_MS 100
/* Between the first and the last rank's exit of a program. */
#define LEAVE_MS 1000
/* Longest time after the deadline of a start-up: rank 0 publishes who is
 * missing, and the others read it. */
#define LAST_WORDS_MS (ROSTER_GRACE_MS + 500)

/* A place where worlds of this process meet other ranks. It is kept after its
 * store was closed, because it counts the worlds. */
typedef struct dscomm_point {
    char *url;
    int rank;
    /* fork generation: a forked child starts with a new list */
    unsigned generation;
    pthread_mutex_t lock;
    dscomm_store_t *store; /* open while there are users */
    unsigned users;
    unsigned count; /* number of worlds so far: world n of all ranks is the same
                       one */
    unsigned before; /* worlds of processes that were this rank before */
    char *key; /* in a launcher's store: where they are counted */
    /* token of the last call that failed, or "" */
    char failed[ROSTER_TOKEN_MAX];
    struct dscomm_point *next;
} point_t;

static pthread_mutex_t points_lock = PTHREAD_MUTEX_INITIALIZER;
static point_t *points;

static point_t *find_point(const char *url, int rank)
{
    point_t *point;

    pthread_mutex_lock(&points_lock);
    for (point = points; point; point = point->next)
        if (point->rank == rank && !strcmp(point->url, url) &&
            point->generation == dscomm_priv_generation())
            break;
    if (!point) {
        point = g_new0(point_t, 1);
        point->url = g_strdup(url);
        point->rank = rank;
        point->generation = dscomm_priv_generation();
        pthread_mutex_init(&point->lock, NULL);
        point->next = points;
        points = point;
    }
    pthread_mutex_unlock(&points_lock);
    return point;
}

void dscomm_priv_rendezvous_forked(void)
{
    pthread_mutex_init(&points_lock, NULL);
}

static int is_tcp(const char *url)
{
    return g_str_has_prefix(url, "tcp:");
}

/* Explains why the store has not opened in time. */
static dscomm_status_t store_explain_late(const dscomm_join_t *join,
                                          dscomm_address_check_t address)
{
    char why[DSCOMM_ERROR_MAX];

    if (address != DSCOMM_ADDRESS_FINE)
        return dscomm_priv_address_check_fail(join);
    snprintf(why, sizeof why, "%s", dscomm_last_error());
    if (!join->serve)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "the launcher's store does not answer, and no rank "
                           "serves one, since TORCHELASTIC_USE_AGENT_STORE is "
                           "True; unset that where it is left over: %s",
                           why);
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "rank 0 of %d did not come within %.1f s: %s%s",
                       join->size, join->timeout_ms / 1000.0, why,
                       join->local_size == join->size
                           ? " (the launcher says that all ranks are on this "
                             "node)"
                           : "");
}

/* Describes this rank for the reports of a server that refuses it. number: of
 * the world, among those of this process at this place. */
static void store_name_rank(const dscomm_join_t *join, unsigned number,
                            dscomm_priv_rank_t *rank)
{
    char node[DSCOMM_NODE_MAX];

    dscomm_priv_node_name(node);
    memset(rank, 0, sizeof *rank);
    g_snprintf(rank->world, sizeof rank->world, "%d %u %s %s", join->size,
               number, join->run_id, join->job);
    dscomm_priv_tidy(rank->world, sizeof rank->world);
    g_snprintf(rank->name, sizeof rank->name, "rank %d of %d (pid %ld on %s)",
               join->rank, join->size, (long)getpid(), node);
}

static dscomm_status_t open_once(const point_t *point,
                                 const dscomm_join_t *join, int64_t deadline,
                                 dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    char *text = dscomm_priv_host_text(join);
    dscomm_priv_rank_t rank;
    const dscomm_priv_job_t job = {
        .name = *join->job ? join->job : NULL,
        .ports = MAX(join->ports, 1),
        .remote = join->local_size >= 1 && join->local_size < join->size,
        .secret = *join->secret ? join->secret : NULL,
        .munge = join->munge,
        .ranks = join->size,
        .key = "/" DSCOMM_HOST_KEY,
        .text = text,
        .rank = &rank,
    };
    const dscomm_priv_job_t guest = {.ports = 1, .rank = &rank};
    const int served = dscomm_priv_join_serves(join);
    dscomm_address_check_t address = DSCOMM_ADDRESS_FINE;
    dscomm_status_t status;

    store_name_rank(join, point->count + 1, &rank);
    if (served && join->rank)
        address = dscomm_priv_address_check(join, deadline);
    attr.timeout_ms = MAX(dscomm_priv_clock_left(deadline), 1);
    if (address == DSCOMM_ADDRESS_DOUBTFUL ||
        (is_tcp(join->url) && !join->serve))
        attr.timeout_ms = MIN(attr.timeout_ms, DOUBTFUL_MS);
    attr.serve = served && join->rank == 0;
    attr.world_size = is_tcp(join->url) ? 0 : join->size;
    if (address == DSCOMM_ADDRESS_WRONG)
        status = dscomm_priv_address_check_fail(join);
    else
        status = dscomm_priv_store_open(join->url, &attr,
                                        served ? &job : &guest, ret_store);
    g_free(text);
    if (status == DSCOMM_ERR_TIMEOUT && is_tcp(join->url) && !attr.serve)
        status = store_explain_late(join, address);
    if (status == DSCOMM_ERR_IO && attr.serve)
        status = dscomm_priv_host_taken(join, status);
    return status;
}

/* Opens the store. A file:// store whose worlds have ended is removed by their
 * last rank, so opening it is tried again for LEAVE_MS, or longer if this
 * process has met others there before. */
static dscomm_status_t rendezvous_open_store(const point_t *point,
                                             const dscomm_join_t *join,
                                             int64_t deadline,
                                             dscomm_store_t **ret_store)
{
    dscomm_status_t status = open_once(point, join, deadline, ret_store);

    if (!point->count)
        deadline = MIN(deadline,
                       dscomm_priv_clock_after(dscomm_priv_clock(), LEAVE_MS));
    while (status == DSCOMM_ERR_STATE && !is_tcp(join->url) &&
           dscomm_priv_clock() < deadline) {
        g_usleep(RETRY_US);
        status = open_once(point, join, deadline, ret_store);
    }
    return status;
}

/* Reads how many worlds earlier processes of this rank have left. A launcher's
 * store outlives them, so that several programs of a job can meet there, one
 * after the other. */
static dscomm_status_t count_before(point_t *point, const dscomm_join_t *join)
{
    int64_t left = 0;
    dscomm_status_t status = DSCOMM_OK;

    if (join->serve || point->key || !is_tcp(join->url))
        return DSCOMM_OK;
    point->key = g_strdup_printf("dscomm/%s/left/%d", join->run_id, join->rank);
    status = dscomm_store_add(point->store, point->key, 0, &left);
    point->before = (unsigned)left;
    if (status < 0)
        g_clear_pointer(&point->key, g_free);
    return status;
}

/* Limits requests to the deadline and the time in which ranks read a failure
 * that rank 0 publishes at the deadline. */
static void rendezvous_limit_store(dscomm_store_t *store, int64_t deadline)
{
    dscomm_priv_store_limit(store, deadline,
                            deadline + LAST_WORDS_MS * NS_PER_MS);
}

static void limit_none(dscomm_store_t *store)
{
    dscomm_priv_store_limit(store, INT64_MAX, INT64_MAX);
}

/* 1 if rank 0 serves the store, and is another rank. */
static bool is_by_rank_0(const dscomm_join_t *join)
{
    return dscomm_priv_join_serves(join) && join->rank;
}

static dscomm_status_t use_store(point_t *point, const dscomm_join_t *join,
                                 int64_t deadline)
{
    dscomm_status_t status = DSCOMM_OK;

    if (point->users)
        return DSCOMM_OK;
    if (!point->store)
        status = rendezvous_open_store(point, join, deadline, &point->store);
    if (status < 0)
        return status;
    rendezvous_limit_store(point->store, deadline);
    status =
        dscomm_priv_host_meet(join, point->store, point->count + 1, deadline);
    if (status == DSCOMM_OK)
        status = count_before(point, join);
    limit_none(point->store);
    status =
        dscomm_priv_stopped_store(point->store, is_by_rank_0(join), "", status);
    if (status < 0)
        dscomm_store_close(g_steal_pointer(&point->store));
    return status;
}

void dscomm_priv_rendezvous_use(const dscomm_join_t *join,
                                dscomm_store_t *store)
{
    point_t *point = find_point(join->url, join->rank);

    pthread_mutex_lock(&point->lock);
    point->store = store;
    pthread_mutex_unlock(&point->lock);
}

/* Enters the point, and returns the number of this world there. A failed world
 * is not counted if its store has ended with it. */
static dscomm_status_t enter_point(const dscomm_join_t *join, int64_t deadline,
                                   dscomm_meeting_t *meeting,
                                   dscomm_store_t **ret_store,
                                   unsigned *ret_number)
{
    point_t *point = find_point(join->url, join->rank);
    dscomm_status_t status;

    pthread_mutex_lock(&point->lock);
    status = use_store(point, join, deadline);
    if (status == DSCOMM_OK) {
        point->users++;
        *ret_number = point->before + ++point->count;
        *ret_store = point->store;
        meeting->point = point;
    }
    pthread_mutex_unlock(&point->lock);
    return status;
}

/* Leaves the point. forget: the world is not counted, unless the store stays
 * open for another world: its keys are still there. */
static void leave_point(point_t *point, int forget)
{
    pthread_mutex_lock(&point->lock);
    if (--point->users == 0) {
        point->count -= forget != 0;
        dscomm_store_close(point->store);
        point->store = NULL;
    }
    pthread_mutex_unlock(&point->lock);
}

/* Numbers the world in a store of the user's, by a counter there. */
static dscomm_status_t enter_store(const dscomm_join_t *join, int64_t deadline,
                                   unsigned *ret_number)
{
    char *key = g_strdup_printf("%s/worlds/%d", join->run_id, join->rank);
    int64_t number = 0;
    dscomm_store_t *view;
    dscomm_status_t status = dscomm_store_prefix(join->store, "dscomm", &view);

    if (status == DSCOMM_OK) {
        rendezvous_limit_store(view, deadline);
        status = dscomm_store_add(view, key, 1, &number);
        status = dscomm_priv_stopped_store(view, false, "", status);
        dscomm_store_close(view);
    }
    g_free(key);
    *ret_number = (unsigned)number;
    return status;
}

static dscomm_status_t rendezvous_enter(const dscomm_join_t *join,
                                        int64_t deadline,
                                        dscomm_meeting_t *meeting)
{
    dscomm_store_t *store = join->store;
    unsigned number = 0;
    char *prefix;
    dscomm_status_t status;

    if (store)
        status = enter_store(join, deadline, &number);
    else
        status = enter_point(join, deadline, meeting, &store, &number);
    if (status < 0)
        return status;
    prefix = g_strdup_printf("dscomm/%s/%u", join->run_id, number);
    status = dscomm_store_prefix(store, prefix, &meeting->store);
    g_free(prefix);
    if (status < 0 && meeting->point)
        leave_point(meeting->point, 1);
    return status;
}

/* 1 if another attempt may succeed: the server may have been an older world's,
 * or a failed attempt's, that was about to end. A decision of rank 0 is final.
 */
static int try_again(const dscomm_join_t *join, dscomm_status_t status,
                     int final, int64_t deadline)
{
    if (final || !dscomm_priv_join_serves(join) || !join->rank ||
        dscomm_priv_clock() >= deadline)
        return 0;
    return status == DSCOMM_ERR_IO || status == DSCOMM_ERR_PEER_FAILED;
}

static dscomm_status_t rendezvous_meet(const dscomm_join_t *join,
                                       const char *token, int64_t deadline,
                                       dscomm_meeting_t *meeting,
                                       int *ret_final,
                                       dscomm_join_decision_t *ret_decision)
{
    dscomm_status_t status = rendezvous_enter(join, deadline, meeting);
    point_t *point = meeting->point;
    char before[ROSTER_TOKEN_MAX] = "";
    unsigned count = 0;
    dscomm_priv_rank_t rank;
    dscomm_attempt_t attempt = {
        .join = join,
        .roster = dscomm_priv_join_roster(meeting->store, join->rank,
                                          join->size, deadline),
        .world = rank.world,
        .token = token,
        .before = before,
        .processes = meeting->processes,
    };

    if (status < 0)
        return status;
    if (point) {
        pthread_mutex_lock(&point->lock);
        g_strlcpy(before, point->failed, sizeof before);
        count = point->count;
        pthread_mutex_unlock(&point->lock);
    }
    store_name_rank(join, count, &rank);
    status = dscomm_store_prefix(point ? point->store : join->store, "",
                                 &attempt.base);
    rendezvous_limit_store(meeting->store, deadline);
    if (status == DSCOMM_OK) {
        rendezvous_limit_store(attempt.base, deadline);
        status = dscomm_priv_join(&attempt, ret_decision);
    }
    *ret_final = attempt.final;
    dscomm_store_close(attempt.base);
    limit_none(meeting->store);
    status = dscomm_priv_stopped_store(meeting->store, is_by_rank_0(join), "",
                                       status);
    if (status < 0) {
        dscomm_priv_processes_withdraw_will(meeting->store);
        dscomm_store_close(g_steal_pointer(&meeting->store));
        if (meeting->point)
            leave_point(g_steal_pointer(&meeting->point),
                        join->serve && is_tcp(join->url));
    }
    return status;
}

/* Loads the modules before the rendezvous: no rank waits for that, and the
 * library has no threads yet. The rank's record tells why a module cannot be
 * loaded. */
static void load_modules(const dscomm_join_t *join)
{
    const dscomm_module_t *module;

    if (!dscomm_priv_has_levels(join->backend)) {
        dscomm_priv_module_find(join->backend, &module);
        return;
    }
    for (size_t i = 0; dscomm_priv_module_get(i); i++)
        ;
}

/* Keeps the token of a failed call for the next one. */
static void token_keep(const dscomm_join_t *join, const char *token)
{
    point_t *point;

    if (!join->url)
        return;
    point = find_point(join->url, join->rank);
    pthread_mutex_lock(&point->lock);
    g_strlcpy(point->failed, token, sizeof point->failed);
    pthread_mutex_unlock(&point->lock);
}

dscomm_status_t dscomm_priv_rendezvous(const dscomm_join_t *join,
                                       dscomm_meeting_t *ret_meeting,
                                       const dscomm_module_t **ret_module)
{
    int64_t deadline = dscomm_priv_clock_after(
        join->began ? join->began : dscomm_priv_clock(), join->timeout_ms);
    dscomm_meeting_t meeting = {.rank = join->rank, .size = join->size};
    dscomm_join_decision_t decision = {0};
    char token[ROSTER_TOKEN_MAX];
    int final = 0;
    dscomm_status_t status = dscomm_priv_interface_validate();

    load_modules(join);
    dscomm_priv_roster_token(NULL, token);
    meeting.serves = dscomm_priv_join_serves(join);
    meeting.processes = dscomm_priv_processes_new(join->size);
    if (!meeting.processes && !status)
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %d ranks",
                             join->size);
    while (!status) {
        status =
            rendezvous_meet(join, token, deadline, &meeting, &final, &decision);
        if (status == DSCOMM_OK || !try_again(join, status, final, deadline))
            break;
        status = DSCOMM_OK;
        g_usleep(RETRY_US);
    }
    if (status < 0) {
        dscomm_priv_processes_free(meeting.processes);
        token_keep(join, token);
        return status;
    }
    meeting.nodes = decision.nodes;
    meeting.hosts = decision.hosts;
    g_strlcpy(meeting.id, decision.world, sizeof meeting.id);
    g_strlcpy(meeting.between, decision.between, sizeof meeting.between);
    if (is_by_rank_0(join))
        meeting.server_pid = dscomm_priv_processes_pid(meeting.processes, 0);
    meeting.oversubscribed = decision.oversubscribed;
    meeting.has_standby =
        strcmp(decision.standby_text, DSCOMM_STANDBY_NONE) != 0;
    meeting.standby = decision.standby;
    *ret_meeting = meeting;
    *ret_module = decision.module;
    return DSCOMM_OK;
}

/* Counts this rank as left. The last of the ranks 1 and up sets "empty", for
 * which rank 0 waits. */
static void leave_announce(const dscomm_meeting_t *meeting)
{
    int64_t left = 0;
    char key[32];

    snprintf(key, sizeof key, "left/%d", meeting->rank);
    if (dscomm_store_set(meeting->store, key, "", 0) == DSCOMM_OK &&
        dscomm_store_add(meeting->store, "left", 1, &left) == DSCOMM_OK &&
        left == meeting->size - 1)
        dscomm_store_set(meeting->store, "empty", "", 0);
}

/* Key number i of the world in a store that outlives it; the one that counts
 * the ranks that have left is the last. */
static const char *leave_key(const dscomm_roster_t *roster, int i,
                             char key[ROSTER_KEY_MAX])
{
    if (i < roster->count)
        return dscomm_priv_roster_claim_key(i, key);
    if (i < 2 * roster->count)
        return dscomm_priv_roster_key(roster, i - roster->count, key);
    return i == 2 * roster->count ? roster->decision : "left";
}

/* Counts this rank as left. The last rank deletes the world's keys; if any rank
 * does not leave in order, they stay. */
static void leave_delete(const dscomm_roster_t *roster)
{
    const int all = 2 * roster->count + 2;
    char names[BATCH][ROSTER_KEY_MAX];
    const char *keys[BATCH];
    int64_t left = 0;
    dscomm_status_t status = dscomm_store_add(roster->store, "left", 1, &left);

    if (status < 0 || left < roster->count)
        return;
    for (int first = 0; first < all && !status; first += BATCH) {
        const int count = MIN(all - first, BATCH);

        for (int i = 0; i < count; i++)
            keys[i] = leave_key(roster, first + i, names[i]);
        status = dscomm_priv_store_delete(roster->store, keys, (size_t)count);
    }
}

/* Counts, in a launcher's store, that this rank has left its world: the next
 * program of the job waits for that. */
static void count_left(point_t *point, int64_t deadline, int64_t most)
{
    int64_t left = 0;
    dscomm_status_t status;

    dscomm_priv_store_limit(point->store, deadline, most);
    status = dscomm_store_add(point->store, point->key, 1, &left);
    status = dscomm_priv_stopped_store(point->store, false, "", status);
    if (status < 0)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "dscomm_finalize: the store does not know that this rank "
                   "has left, so another program of this job may wait until "
                   "its time-out: "
                   "%s",
                   dscomm_last_error());
    limit_none(point->store);
}

/* A rank that leaves. */
typedef struct {
    char key[24]; /* that says that it has left */
    bool ended; /* its process has ended, or is not connected to the store */
} leaver_t;

/* Looks, by one request, which ranks have left, and whose last will was carried
 * out. The ends of processes are read before, because a rank may have left just
 * before its end. */
static dscomm_status_t look_who_left(const dscomm_meeting_t *meeting,
                                     leaver_t *leavers,
                                     dscomm_priv_look_t *looks)
{
    const bool alone = dscomm_priv_store_clients(meeting->store) == 0;
    dscomm_status_t status;

    dscomm_priv_processes_learn(meeting->processes, meeting->store, NULL,
                                meeting->size);
    looks[0] = dscomm_priv_processes_key(meeting->store);
    for (int i = 1; i < meeting->size; i++) {
        leavers[i].ended =
            alone || dscomm_priv_processes_ended(meeting->processes, i);
        snprintf(leavers[i].key, sizeof leavers[i].key, "left/%d", i);
        looks[i].store = meeting->store;
        looks[i].key = leavers[i].key;
    }
    status = dscomm_priv_store_look(looks, (size_t)meeting->size);
    if (status == DSCOMM_OK)
        dscomm_priv_processes_read(meeting->processes, &looks[0]);
    return status;
}

#define AND_MORE ", ..."

/* Adds rank to a list of ranks, or AND_MORE, once, if there is no room. */
static void add_name(char *names, size_t size, int rank)
{
    const size_t length = strlen(names);
    char name[16];

    snprintf(name, sizeof name, "%s%d", length ? ", " : "", rank);
    if (length + strlen(name) + sizeof AND_MORE <= size)
        strcpy(names + length, name);
    else if (!g_str_has_suffix(names, AND_MORE))
        strcpy(names + length, AND_MORE);
}

/* Writes the ranks without a leave message to names. 1: none of them will send
 * one, because their processes have ended or are not connected to the store. */
static int find_silent(const dscomm_meeting_t *meeting, char *names,
                       size_t size)
{
    leaver_t *leavers = g_try_new0(leaver_t, (gsize)meeting->size);
    dscomm_priv_look_t *looks =
        g_try_new0(dscomm_priv_look_t, (gsize)meeting->size);
    const bool known =
        leavers && looks && look_who_left(meeting, leavers, looks) == DSCOMM_OK;
    int living = !known;

    names[0] = '\0';
    for (int i = 1; known && i < meeting->size; i++) {
        if (looks[i].present)
            continue;
        living += !leavers[i].ended;
        add_name(names, size, i);
    }
    g_free(looks);
    g_free(leavers);
    return !living;
}

/* Rank 0, which serves the store, waits until all other ranks have left. Dead
 * ranks, and ranks that failed, send no leave message. */
static void leave_await(const dscomm_meeting_t *meeting, int64_t deadline)
{
    char names[256] = ""; /* as many ranks as have room in it */
    int slice = LOOK_MS, left;
    void *value;
    size_t size;
    dscomm_status_t status;

    do {
        left = dscomm_priv_clock_left(deadline);
        status = dscomm_store_get(meeting->store, "empty",
                                  MAX(MIN(left, slice), 1), &value, &size);
        slice = MIN(2 * slice, LOOK_MOST_MS);
    } while (status == DSCOMM_ERR_TIMEOUT &&
             !find_silent(meeting, names, sizeof names) &&
             dscomm_priv_clock() < deadline);
    if (status == DSCOMM_OK)
        dscomm_store_free(value);
    else if (names[0])
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "rank%s %s did not leave in dscomm_finalize: dead, "
                   "or failed there; see what it has written",
                   strchr(names, ',') ? "s" : "", names);
}

/* A rank that is still making the world, which has failed, reads the failure
 * from the store. So the store remains until all have left it, for a while. */
static void leave_await_failed(const dscomm_meeting_t *meeting,
                               int64_t deadline)
{
    const int64_t most =
        dscomm_priv_clock_after(dscomm_priv_clock(), FAILED_STORE_MS);

    while (dscomm_priv_store_clients(meeting->store) > 0 &&
           dscomm_priv_clock() < MIN(deadline, most))
        g_usleep(FAILED_STORE_LOOK_US);
}

void dscomm_priv_rendezvous_leave(dscomm_meeting_t *meeting, int orderly,
                                  int64_t deadline)
{
    const int64_t most =
        dscomm_priv_clock_after(dscomm_priv_clock(), LEAVE_MESSAGE_MS);

    dscomm_priv_nodes_clear(&meeting->nodes);
    dscomm_priv_nodes_clear(&meeting->hosts);
    dscomm_store_close(meeting->standby);
    meeting->standby = NULL;
    if (!meeting->store)
        return;
    deadline = MIN(deadline, most);
    dscomm_priv_store_limit(meeting->store, deadline, most);
    if (orderly && meeting->serves && meeting->rank) {
        leave_announce(meeting);
    } else if (orderly && meeting->serves) {
        leave_await(meeting, deadline);
    } else if (orderly && (!meeting->point || meeting->point->key)) {
        /* The store is a launcher's or the user's, and outlives the world. A
         * file is removed by its last user. */
        const dscomm_roster_t roster = dscomm_priv_join_roster(
            meeting->store, meeting->rank, meeting->size, deadline);

        leave_delete(&roster);
    }
    dscomm_priv_processes_withdraw_will(meeting->store);
    if (!orderly && meeting->serves && !meeting->rank)
        leave_await_failed(meeting, deadline);
    dscomm_store_close(meeting->store);
    meeting->store = NULL;
    if (!meeting->point)
        return;
    if (orderly && meeting->point->key)
        count_left(meeting->point, deadline, most);
    leave_point(meeting->point, 0);
    meeting->point = NULL;
}
