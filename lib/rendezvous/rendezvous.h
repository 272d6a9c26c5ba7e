/* SPDX-License-Identifier: BSD-3-Clause */
/* The rendezvous: how the ranks of a world find each other in a store, and how
 * they leave it again.
 *
 * Cost: a rank other than 0 sends about 12 requests, of a few hundred bytes
 * each, whatever the size of the world. Rank 0 sends 6, and one for each 1024
 * records, all of which come in one answer. So the store receives O(ranks)
 * messages; it sends O(ranks) bytes to rank 0, and to each rank the decision:
 * about 200 bytes and the list of nodes (lib/rendezvous/nodes.h). While ranks
 * are missing, those that have come check once a second whether waiting still
 * makes sense: rank 0 by one request for each 1024 missing records, each other
 * rank by two requests. In the worst case rank 0 itself is missing at the
 * deadline. Each rank then asks for the record of every other one, for half a
 * second at most, to name the missing ones: O(ranks) messages for each rank. */
#ifndef LIB_RENDEZVOUS_H
#define LIB_RENDEZVOUS_H

#include "lib/module/module.h"
#include "lib/rendezvous/nodes.h"
#include "lib/rendezvous/processes.h"
#include "lib/store/tcp/secret.h"

#include <dscomm/init.h>
#include <dscomm/store.h>

struct dscomm_point;

/* The process's knowledge before the rendezvous. */
typedef struct {
    int rank, size; /* size 0: not known yet */
    dscomm_store_t *store; /* the user's, or NULL: open url */
    /* "tcp://HOST:PORT", "file:///PATH"; NULL: not known yet. HOST may be
     * several addresses, comma separated, all of rank 0's. */
    char *url;
    /* url is not known, or a guess: dscomm_priv_bootstrap() must find it.
     * problem is the sentence if it cannot. host and port are the user's, or
     * NULL and 0. */
    int needs_bootstrap, port;
    char *host, *problem;
    /* start of the bootstrap, from which the deadline counts; 0: none */
    int64_t began;
    int serve; /* TCP: rank 0 serves the store */
    /* TCP: > 1: it is at the first free one of so many ports, from PORT on */
    int ports;
    char run_id[128]; /* or "0" */
    /* A text that is equal on all ranks of this job and different in other jobs
     * that may use the same port, such as the scheduler's number and step. "":
     * not known. */
    char job[128];
    /* The job's secret, which rank 0 has made and sent by the bootstrap. "":
     * the environment's, if there is one. */
    char secret[SECRET_MADE_SIZE];
    /* without such a secret, rank 0 makes one that MUNGE carries, if MUNGE
     * works */
    bool munge;
    /* The launcher's numbers; -1: not given, or only inferred. */
    int local_rank, local_size, node_rank;
    char *backend; /* the requested one: a name, or "auto" */
    int timeout_ms;
    int bad; /* an allocation for a member failed */
} dscomm_join_t;

/* Bytes of a world's identity, with the final 0. */
#define DSCOMM_WORLD_ID 17

/* Writes a random identity, 16 hexadecimal digits: no two worlds have the same,
 * whatever their jobs, hosts and pids. */
void dscomm_priv_world_identify(char ret_id[DSCOMM_WORLD_ID]);

/* Bytes of the name of a world's backend between nodes. */
#define DSCOMM_BETWEEN_MAX 256

/* The state that a world keeps of its rendezvous. */
typedef struct {
    dscomm_store_t *store; /* view of the world's keys; NULL: one rank */
    struct dscomm_point *point; /* NULL if the store is the user's */
    int rank, size;
    char id[DSCOMM_WORLD_ID]; /* the same on all ranks */
    /* rank 0's choice of a backend between nodes, for groups of two levels */
    char between[DSCOMM_BETWEEN_MAX];
    int serves; /* rank 0's process serves the store; the same on all ranks */
    /* pid of rank 0, if it serves on this machine; else 0 */
    int64_t server_pid;
    int oversubscribed; /* as in dscomm_backend_args_t */
    dscomm_nodes_t nodes;
    dscomm_nodes_t hosts; /* the ranks that share memory */
    dscomm_processes_t *processes; /* NULL: one rank */
    /* There is a standby store, see standby.h; NULL if this rank could not open
     * it. */
    bool has_standby;
    dscomm_store_t *standby;
} dscomm_meeting_t;

/* Finds what a rendezvous needs: fills *ret_join from attr, whose members are
 * merged already, and the environment; clear it afterwards. */
dscomm_status_t dscomm_priv_discover(const dscomm_init_attr_t *attr,
                                     dscomm_join_t *ret_join);
void dscomm_priv_join_clear(dscomm_join_t *join);

/* The bootstrap is for ranks that do not know rank 0's address, but that a
 * launcher has connected, for example by MPI. The backend sends them the
 * address; rank 0 serves the store at a free port. Sets url and job, and size
 * if it is not known, of a join that needs_bootstrap. If no backend can do
 * this, url stays; if it is NULL, the status is ERR_ENVIRONMENT with
 * join->problem. */
dscomm_status_t dscomm_priv_bootstrap(dscomm_join_t *join);

/* Meets the other ranks, within timeout_ms, and agrees on the backend. On
 * failure the sentence is the same on all ranks that came, if possible. */
dscomm_status_t dscomm_priv_rendezvous(const dscomm_join_t *join,
                                       dscomm_meeting_t *ret_meeting,
                                       const dscomm_module_t **ret_module);

/* The next rendezvous of join->rank at join->url uses store, which is already
 * open. */
void dscomm_priv_rendezvous_use(const dscomm_join_t *join,
                                dscomm_store_t *store);

/* Leaves the rendezvous. orderly: all ranks leave. Then each rank announces
 * that in the store, and a rank 0 that serves it waits for the others, for some
 * seconds and at most until the deadline. */
void dscomm_priv_rendezvous_leave(dscomm_meeting_t *meeting, int orderly,
                                  int64_t deadline);

/* If a launcher gives no port, a job uses one of DSCOMM_PORTS consecutive
 * ports; the first one is derived from the job's name (env/master.c). */
#define DSCOMM_PORTS 8

/* Whether the ranks of a world can meet at the host of its store. */
typedef enum {
    DSCOMM_ADDRESS_FINE,
    /* The host is a loopback address although the launchers tell of several
     * nodes: other nodes cannot reach it, unless all are the same machine. */
    DSCOMM_ADDRESS_DOUBTFUL,
    /* The host is a loopback address that /etc/hosts gives to this machine's
     * own name. */
    DSCOMM_ADDRESS_WRONG
} dscomm_address_check_t;
dscomm_address_check_t dscomm_priv_address_check(const dscomm_join_t *join,
                                                 int64_t deadline);
/* Fails with ERR_ENVIRONMENT: the ranks cannot meet at this loopback
 * address. */
dscomm_status_t dscomm_priv_address_check_fail(const dscomm_join_t *join);

/* host.c: the store of this rendezvous, and its host */

/* 1 if rank 0's process serves the store. */
int dscomm_priv_join_serves(const dscomm_join_t *join);

/* Key that describes the world of a store that rank 0 serves. The store has it
 * from the start. */
#define DSCOMM_HOST_KEY "dscomm/host"
/* The value of that key, for g_free(). */
char *dscomm_priv_host_text(const dscomm_join_t *join);

/* Checks the store of world number at this address. If rank 0 serves it:
 * ERR_MISMATCH if the store is of another job or another world size, after a
 * moment in which that job may end, or of dscomm run. If an agent serves it:
 * ERR_MISMATCH if dscomm run serves it for another run, or a rank 0 does. */
dscomm_status_t dscomm_priv_host_meet(const dscomm_join_t *join,
                                      dscomm_store_t *store, unsigned number,
                                      int64_t deadline);

/* Called if rank 0 cannot serve: makes the sentence, which names another rank 0
 * or dscomm run if one serves there; another rank 0 is notified, too. Returns
 * status. */
dscomm_status_t dscomm_priv_host_taken(const dscomm_join_t *join,
                                       dscomm_status_t status);

/* Ranks whose processes are stopped (SIGSTOP, a debugger) or have ended: causes
 * of time-outs that only the kernel of their machine knows. Appends "; rank 3
 * (pid 812) is stopped by a signal", or "has ended", to text for each of the
 * given ranks of the world for which that is so on this machine, and for rank 0
 * where it serves the store. Text that is too long is cut off. Reads unknown
 * pids from the store, in a fraction of a second at most; if the store does not
 * answer, the text says so. Returns the first rank that is stopped, else the
 * first that has ended, perhaps after the same time-out; else rank 0 if it
 * serves the store and the kernel knows that it is stopped; else -1. */
int dscomm_priv_stopped_append(const dscomm_meeting_t *meeting,
                               const int *world_ranks, int count, char *text,
                               size_t size);

/* Reads the pids of those ranks that are on this node from store, the world's
 * or its standby store. Called early in a long
 * wait, because later the store may not answer in time, or its server may be
 * stopped. Returns the status of the store. */
dscomm_status_t dscomm_priv_stopped_learn(const dscomm_meeting_t *meeting,
                                          dscomm_store_t *store,
                                          const int *world_ranks, int count);

/* Called after the deadline of a call has passed (status ERR_TIMEOUT). If the
 * store does not answer, that is the cause, and this rank's information on
 * others may be out of date; so the sentence is replaced. prefix, "group
 * 'world': " or "", begins the new one; by_rank_0: rank 0 serves the store.
 * Returns status. */
dscomm_status_t dscomm_priv_stopped_store(const dscomm_store_t *store,
                                          bool by_rank_0, const char *prefix,
                                          dscomm_status_t status);

/* In a forked child: initialises the lock. */
void dscomm_priv_rendezvous_forked(void);

#endif
