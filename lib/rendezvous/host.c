/* SPDX-License-Identifier: BSD-3-Clause */
/* The store at the rendezvous: whether other machines can reach its host, and
 * which job's store answers there. Rank 0 first writes the job's name into its
 * store, because ranks of other jobs may come to the same port. */
#include "config.h"

#include "lib/rendezvous/rendezvous.h"

#include "lib/base/clock.h"
#include "lib/base/node.h"
#include "lib/base/status.h"
#include "lib/rendezvous/join-decision.h"
#include "lib/rendezvous/roster.h"
#include "lib/store/tcp/socket.h"

#include <arpa/inet.h>
#include <glib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The lines of DSCOMM_HOST_KEY: how many ranks, which run, and rank 0's
 * process. */
enum { HOST_SIZE, HOST_RUN, HOST_PROCESS, HOST_LINES };

/* Key in the store that dscomm run serves for one job: its TORCHELASTIC_RUN_ID.
 * Agents of torchrun may serve several jobs and do not set it. */
#define AGENT_KEY "dscomm-run/run"

/* Time allowed for probing a port that may not belong to a dscomm store, in ms.
 */
#define TAKEN_MS 500
/* Grace periods, in ms: how long rank 0 announces its store, and how long it
 * waits for late ranks. */
#define SOON_MS 1000
#define COME_MS 30000
/* Time between the exits of the first and the last rank of an earlier job, in
 * ms. */
#define LEAVE_MS 1000
#define PAUSE_US 50000

#define RUN_MAX 160
#define RUN_TEXT_MAX (RUN_MAX + 16)
#define PROCESS_MAX (DSCOMM_NODE_MAX + 32)

int dscomm_priv_join_serves(const dscomm_join_t *join)
{
    return !join->store && join->serve && g_str_has_prefix(join->url, "tcp:");
}

/* Its address */

/* Returns the host of the store, to be freed, or NULL. */
static char *host_of(const dscomm_join_t *join)
{
    char *host = NULL;
    int port;

    if (join->url && g_str_has_prefix(join->url, "tcp://") &&
        dscomm_priv_address_split(join->url + strlen("tcp://"), &host, &port))
        host = NULL;
    return host;
}

/* 1 for 127.0.1.1 and similar addresses, which Debian's /etc/hosts gives to the
 * machine's own name. */
static int address_is_own_name(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;

    return address->sa_family == AF_INET &&
           ntohl(v4->sin_addr.s_addr) != INADDR_LOOPBACK;
}

static dscomm_address_check_t addresses_judge(const struct addrinfo *list)
{
    dscomm_address_check_t address = DSCOMM_ADDRESS_WRONG;

    for (; list; list = list->ai_next) {
        if (!dscomm_priv_address_is_loopback(list->ai_addr))
            return DSCOMM_ADDRESS_FINE;
        if (!address_is_own_name(list->ai_addr))
            address = DSCOMM_ADDRESS_DOUBTFUL;
    }
    return address;
}

dscomm_address_check_t dscomm_priv_address_check(const dscomm_join_t *join,
                                                 int64_t deadline)
{
    dscomm_address_check_t address = DSCOMM_ADDRESS_FINE;
    struct addrinfo *list;
    bool again;
    char *host;

    if (!join->serve || join->local_size < 1 || join->local_size >= join->size)
        return DSCOMM_ADDRESS_FINE;
    host = host_of(join);
    if (host && !strchr(host, ',') &&
        !dscomm_priv_resolve(
            host, 0, dscomm_priv_deadline(dscomm_priv_clock_left(deadline)),
            &list, &again)) {
        address = addresses_judge(list);
        freeaddrinfo(list);
    }
    g_free(host);
    if (address == DSCOMM_ADDRESS_WRONG && join->node_rank <= 0)
        address = DSCOMM_ADDRESS_DOUBTFUL; /* it may be the machine itself */
    return address;
}

dscomm_status_t dscomm_priv_address_check_fail(const dscomm_join_t *join)
{
    char *host = host_of(join), shown[80];

    dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                "the launcher says that %d of %d ranks are on this node, but "
                "'%s', where rank 0 serves, resolves to loopback here, at "
                "which no other node answers; see /etc/hosts, or set "
                "MASTER_ADDR to an address that all nodes reach",
                join->local_size, join->size,
                dscomm_priv_quote(host ? host : "", shown, sizeof shown));
    g_free(host);
    return DSCOMM_ERR_ENVIRONMENT;
}

/* Its job */

/* Reads the lines of rank 0's key (g_strfreev()), or fails. */
static dscomm_status_t host_read(dscomm_store_t *store, int timeout_ms,
                                 char ***ret_lines)
{
    void *value;
    size_t size;
    char **lines;
    dscomm_status_t status =
        dscomm_store_get(store, DSCOMM_HOST_KEY, timeout_ms, &value, &size);

    if (status < 0)
        return status;
    lines = g_strsplit(value, "\n", HOST_LINES + 1);
    dscomm_store_free(value);
    for (int i = 0; lines[i]; i++)
        dscomm_priv_tidy(lines[i], strlen(lines[i]) + 1);
    if (g_strv_length(lines) == HOST_LINES) {
        *ret_lines = lines;
        return DSCOMM_OK;
    }
    g_strfreev(lines);
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "what rank 0 says of its store makes no sense: it has "
                       "another version of libdscomm, or another program uses "
                       "the store");
}

/* Stores in *ret_there whether dscomm run serves the store, and if so, in run
 * the id of the run that it serves. */
static dscomm_status_t agent_read(dscomm_store_t *store, char run[RUN_MAX],
                                  bool *ret_there)
{
    void *value;
    size_t size;
    dscomm_status_t status =
        dscomm_priv_roster_fetch(store, AGENT_KEY, &value, &size);

    *ret_there = status == DSCOMM_OK && value;
    if (*ret_there)
        dscomm_priv_quote(value, run, RUN_MAX);
    if (status == DSCOMM_OK)
        dscomm_store_free(value);
    return status;
}

/* " and run 'NAME'", if the run has a name. */
static const char *name_run(const char *run, char text[RUN_TEXT_MAX])
{
    char quoted[RUN_MAX];

    *text = '\0';
    if (strcmp(run, "0"))
        snprintf(text, RUN_TEXT_MAX, " and run '%s'",
                 dscomm_priv_quote(run, quoted, sizeof quoted));
    return text;
}

/* "pid 7 on NODE": this process. */
static const char *name_process(char text[PROCESS_MAX])
{
    char node[DSCOMM_NODE_MAX];

    dscomm_priv_node_name(node);
    snprintf(text, PROCESS_MAX, "pid %ld on %s", (long)getpid(), node);
    return text;
}

/* Ends the start-up of world number in store, which may be this process's, with
 * this thread's last error. */
static void accuse(const dscomm_join_t *join, dscomm_store_t *store,
                   unsigned number, dscomm_status_t status)
{
    char *key = g_strdup_printf("dscomm/%s/%u/" DSCOMM_JOIN_WRONG, join->run_id,
                                number);

    dscomm_priv_join_decision_put_failure(store, key, status, NULL, 0);
    g_free(key);
}

static int is_same_run(const dscomm_join_t *join, char *const *lines)
{
    char run[RUN_MAX];

    return !strcmp(lines[HOST_RUN],
                   dscomm_priv_quote(join->run_id, run, sizeof run));
}

/* Fails because another rank 0 serves the port. If that one may be of this job,
 * and waits in its first world, its start-up ends as well. */
static void fail_second(const dscomm_join_t *join, dscomm_store_t *store,
                        char *const *lines, dscomm_status_t status)
{
    char process[PROCESS_MAX];

    dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                "rank 0 of %d is claimed by two processes, %s and %s: give "
                "each process its own rank, and each job its own port "
                "(MASTER_PORT)",
                join->size, lines[HOST_PROCESS], name_process(process));
    if (!*join->job && atoi(lines[HOST_SIZE]) == join->size &&
        is_same_run(join, lines))
        accuse(join, store, 1, DSCOMM_ERR_ENVIRONMENT);
    dscomm_fail(status,
                "rank 0 of %d cannot serve the store at %s, since the port is "
                "in use by %s, which is rank 0 of %s: where that is of this "
                "job, two processes have RANK 0, and each must have its own; "
                "where it is not, give each job its own port (MASTER_PORT)",
                join->size, join->url, lines[HOST_PROCESS], lines[HOST_SIZE]);
}

dscomm_status_t dscomm_priv_host_taken(const dscomm_join_t *join,
                                       dscomm_status_t status)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    char run[RUN_MAX], **lines = NULL;
    dscomm_store_t *store = NULL;
    bool agent = false;

    attr.timeout_ms = TAKEN_MS;
    dscomm_priv_fail_hold();
    if (dscomm_store_open(join->url, &attr, &store) == DSCOMM_OK &&
        host_read(store, SOON_MS, &lines) < 0)
        agent_read(store, run, &agent);
    dscomm_priv_fail_release();
    if (lines)
        fail_second(join, store, lines, status);
    else if (agent)
        dscomm_fail(status,
                    "rank 0 of %d cannot serve the store at %s, since the port "
                    "is in use by dscomm run, which serves one for run '%s'; "
                    "give each job its own port, and unset MASTER_PORT where "
                    "it is left over",
                    join->size, join->url, run);
    g_strfreev(lines);
    dscomm_store_close(store);
    return status;
}

char *dscomm_priv_host_text(const dscomm_join_t *join)
{
    char process[PROCESS_MAX], run[RUN_MAX];

    return g_strdup_printf("%d\n%s\n%s", join->size,
                           dscomm_priv_quote(join->run_id, run, sizeof run),
                           name_process(process));
}

/* Sets the key in a store that was opened before the world's size was known. */
static dscomm_status_t host_announce(const dscomm_join_t *join,
                                     dscomm_store_t *store)
{
    char *text = dscomm_priv_host_text(join);
    dscomm_status_t status =
        dscomm_store_set(store, DSCOMM_HOST_KEY, text, strlen(text));

    g_free(text);
    return status;
}

/* ERR_MISMATCH: this process is of another job than rank 0. */
static dscomm_status_t host_compare(const dscomm_join_t *join,
                                    char *const *lines)
{
    char size[16], process[PROCESS_MAX], runs[2][RUN_TEXT_MAX];

    snprintf(size, sizeof size, "%d", join->size);
    if (!strcmp(lines[HOST_SIZE], size) && is_same_run(join, lines))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_MISMATCH,
                       "two jobs, or two world sizes, at %s: rank 0 there, %s, "
                       "was told of %s ranks%s, rank %d, %s, of %s ranks%s; "
                       "give each job its own port (MASTER_PORT), and all "
                       "ranks of a job the same world size",
                       join->url, lines[HOST_PROCESS], lines[HOST_SIZE],
                       name_run(lines[HOST_RUN], runs[0]), join->rank,
                       name_process(process), size,
                       name_run(join->run_id, runs[1]));
}

/* Fails because dscomm run serves the store, although a rank 0 should. */
static dscomm_status_t refuse_agent(const dscomm_join_t *join,
                                    dscomm_store_t *store)
{
    char run[RUN_MAX];
    bool agent;
    dscomm_status_t status = agent_read(store, run, &agent);

    if (!agent)
        return status;
    return dscomm_fail(
        DSCOMM_ERR_MISMATCH,
        "another job answers at %s: dscomm run serves the store there for run "
        "'%s', and this process is rank %d of %d of a job whose rank 0 serves "
        "its own; give each job its own port, and unset MASTER_PORT where it "
        "is left over",
        join->url, run, join->rank, join->size);
}

static dscomm_status_t await_host(const dscomm_join_t *join,
                                  dscomm_store_t *store, int64_t deadline,
                                  char ***ret_lines)
{
    int left = dscomm_priv_clock_left(deadline);
    dscomm_status_t status =
        host_read(store, CLAMP(left, 1, SOON_MS), ret_lines);

    if (status != DSCOMM_ERR_TIMEOUT)
        return status;
    status = refuse_agent(join, store);
    if (status < 0)
        return status;
    left = dscomm_priv_clock_left(deadline);
    status = host_read(store, CLAMP(left, 1, COME_MS), ret_lines);
    if (status != DSCOMM_ERR_TIMEOUT)
        return status;
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "a store answers at %s, but rank 0 of %d did not come "
                       "there: another program has the port, for example one "
                       "that uses PyTorch; give each job its own "
                       "(MASTER_PORT)",
                       join->url, join->size);
}

/* OK if this world's rank 0 serves the store. Rank 0 of an earlier job may
 * still be there, so a mismatch is final only after LEAVE_MS. */
static dscomm_status_t host_check(const dscomm_join_t *join,
                                  dscomm_store_t *store, unsigned number,
                                  int64_t deadline)
{
    const int64_t leave =
        MIN(deadline, dscomm_priv_clock_after(dscomm_priv_clock(), LEAVE_MS));
    dscomm_status_t status;
    char **lines;

    for (;;) {
        int over;

        status = await_host(join, store, deadline, &lines);
        if (status < 0)
            return status;
        status = host_compare(join, lines);
        over = dscomm_priv_clock() >= leave;
        /* a rank of the same run with another size may belong to this job;
         * without this call all ranks would wait for the deadline */
        if (status < 0 && over && is_same_run(join, lines))
            accuse(join, store, number, status);
        g_strfreev(lines);
        if (status == DSCOMM_OK || over)
            return status;
        g_usleep(PAUSE_US);
    }
}

/* OK if run is this process's, whose run_id may end with "/" and the number of
 * the restart. */
static dscomm_status_t compare_agent(const dscomm_join_t *join, const char *run)
{
    const size_t length = strlen(run);
    char own[RUN_MAX];

    if (!strncmp(join->run_id, run, length) &&
        (!join->run_id[length] || join->run_id[length] == '/'))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_MISMATCH,
                       "another job answers at %s: dscomm run serves the store "
                       "there for run '%s', and this process is rank %d of "
                       "run '%s'; give each job its own port, and unset "
                       "MASTER_PORT and TORCHELASTIC_RUN_ID where they are "
                       "left over",
                       join->url, run, join->rank,
                       dscomm_priv_quote(join->run_id, own, sizeof own));
}

/* ERR_MISMATCH if a rank 0 of another job serves the store, although this job's
 * is served by an agent. A rank 0's store has the key from the start. */
static dscomm_status_t refuse_host(const dscomm_join_t *join,
                                   dscomm_store_t *store)
{
    const char *key = DSCOMM_HOST_KEY;
    char **lines, runs[2][RUN_TEXT_MAX];
    int present = 0;
    dscomm_status_t status = dscomm_store_check(store, &key, 1, &present);

    if (status < 0 || !present)
        return status;
    status = host_read(store, SOON_MS, &lines);
    if (status < 0)
        return status;
    dscomm_fail(DSCOMM_ERR_MISMATCH,
                "another job answers at %s: its rank 0, %s, which was told of "
                "%s ranks%s, serves the store there itself, and this process "
                "is rank %d of %d ranks%s, whose store a launcher serves; "
                "unset TORCHELASTIC_USE_AGENT_STORE and TORCHELASTIC_RUN_ID "
                "where they are left over",
                join->url, lines[HOST_PROCESS], lines[HOST_SIZE],
                name_run(lines[HOST_RUN], runs[0]), join->rank, join->size,
                name_run(join->run_id, runs[1]));
    g_strfreev(lines);
    return DSCOMM_ERR_MISMATCH;
}

static dscomm_status_t check_agent(const dscomm_join_t *join,
                                   dscomm_store_t *store)
{
    char run[RUN_MAX];
    bool agent;
    dscomm_status_t status = agent_read(store, run, &agent);

    if (status < 0)
        return status;
    return agent ? compare_agent(join, run) : refuse_host(join, store);
}

dscomm_status_t dscomm_priv_host_meet(const dscomm_join_t *join,
                                      dscomm_store_t *store, unsigned number,
                                      int64_t deadline)
{
    if (!join->serve && strcmp(join->run_id, "0"))
        return check_agent(join, store);
    if (!dscomm_priv_join_serves(join))
        return DSCOMM_OK;
    return join->rank ? host_check(join, store, number, deadline)
                      : host_announce(join, store);
}
