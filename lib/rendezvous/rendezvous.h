/* SPDX-License-Identifier: BSD-3-Clause */
/* The rendezvous: how the ranks of a world find each other in a store, and how
 * they leave it again.
 *
 * What it costs: a rank other than 0 sends the store about 12 requests, of a
 * few hundred bytes, whatever the size of the world; rank 0 sends 6 and one
 * for the records of each 1024 ranks, which come in one answer. So the store
 * sees O(ranks) messages and sends O(ranks) bytes to rank 0, and the decision,
 * some 200 bytes and what the nodes take (lib/rendezvous/nodes.h), to each
 * rank. While ranks are missing, those that have come look once a second
 * whether it still makes sense to wait: rank 0 by a request for each of 1024
 * missing records, the others by two. Where rank 0 itself is missing at the
 * deadline, each rank asks for each record, for half a second at most, to name
 * those that are: O(ranks) messages a rank, the worst case. */
#ifndef LIB_RENDEZVOUS_H
#define LIB_RENDEZVOUS_H

#include "lib/module/module.h"
#include "lib/rendezvous/nodes.h"
#include "lib/rendezvous/processes.h"
#include "lib/store/tcp/secret.h"

#include <dscomm/init.h>
#include <dscomm/store.h>

struct dscomm_point;

/* What this process knows before the rendezvous. */
typedef struct {
    int rank, size; /* size 0: not known yet */
    dscomm_store_t *store; /* the user's, or NULL: open url */
    /* "tcp://HOST:PORT", "file:///PATH"; NULL: not known yet. HOST may be
     * several addresses, comma separated, all of rank 0's. */
    char *url;
    /* url is not known, or a guess: it is to be asked for
     * (dscomm_priv_bootstrap()), and problem says what to do where nobody
     * tells. host and port are the user's, or NULL and 0. */
    int ask, port;
    char *host, *problem;
    int64_t began; /* when it was asked, or 0: its deadline counts from there */
    int serve; /* TCP: rank 0 serves the store */
    int ports; /* TCP: > 1: at the first free one of so many, from PORT on */
    char run_id[128]; /* or "0" */
    /* What no other job that may come to the same port has, and all ranks of
     * this one do: the scheduler's number and step, say. "": not known. */
    char job[128];
    /* The job's, which rank 0 has made and told by a backend's own channel. "":
     * that of the environment, if it has one. */
    char secret[SECRET_MADE_SIZE];
    bool munge; /* else rank 0 makes one that MUNGE carries, if that works */
    /* As the launcher has told; -1: it has not, or they were only inferred. */
    int local_rank, local_size, node_rank;
    char *backend; /* asked for: a name, or "auto" */
    int timeout_ms;
    int bad; /* something of it found no memory */
} dscomm_join_t;

/* What a world keeps of it. */
typedef struct {
    dscomm_store_t *store; /* view of the world's keys; NULL: one rank */
    struct dscomm_point *point; /* NULL if the store is the user's */
    int rank, size;
    int serves; /* rank 0 serves the store, on all ranks */
    int64_t server_pid; /* of rank 0, if it serves on this machine, or 0 */
    int oversubscribed; /* as in dscomm_backend_args_t */
    dscomm_nodes_t nodes;
    dscomm_nodes_t hosts; /* the ranks that share memory */
    dscomm_processes_t *processes; /* NULL: one rank */
} dscomm_meeting_t;

/* Finds what a rendezvous needs: fills *ret_join from attr, whose members are
 * merged already, and the environment; clear it afterwards. */
dscomm_status_t dscomm_priv_discover(const dscomm_init_attr_t *attr,
                                     dscomm_join_t *ret_join);
void dscomm_priv_join_clear(dscomm_join_t *join);

/* The bootstrap is for ranks that do not know rank 0's address, but that a
 * launcher has connected, for example by MPI. The backend sends them the
 * address; rank 0 serves the store at a free port. Sets url and job of a join
 * with ask set, and size if it is not known. If no backend can do this, url
 * stays; if it is NULL, the status is ERR_ENVIRONMENT with join->problem. */
dscomm_status_t dscomm_priv_bootstrap(dscomm_join_t *join);

/* Meets the other ranks, at most timeout_ms from now, and agrees on the
 * backend. On failure the sentence is the same on all ranks that came, where
 * possible. */
dscomm_status_t dscomm_priv_rendezvous(const dscomm_join_t *join,
                                       dscomm_meeting_t *ret_meeting,
                                       const dscomm_module_t **ret_module);

/* The next rendezvous of join->rank at join->url uses store, which is open. */
void dscomm_priv_rendezvous_use(const dscomm_join_t *join,
                                dscomm_store_t *store);

/* Leaves. orderly: all ranks do, so one that serves waits for the others, and
 * all tell the store, a few seconds and at most until the deadline. */
void dscomm_priv_rendezvous_leave(dscomm_meeting_t *meeting, int orderly,
                                  int64_t deadline);

/* Where a launcher gave no port, a job has one of DSCOMM_PORTS, from the one
 * that its name leads to (env/master.c). */
#define DSCOMM_PORTS 8

/* Whether the host of a world's store can be what its ranks meet at. */
typedef enum {
    DSCOMM_ADDRESS_FINE,
    /* the loopback, while launchers say that there are several nodes: none of
     * the others comes there, unless all are the same machine */
    DSCOMM_ADDRESS_DOUBTFUL,
    /* this machine's name for itself, as stock /etc/hosts have it */
    DSCOMM_ADDRESS_WRONG
} dscomm_address_check_t;
dscomm_address_check_t dscomm_priv_address_check(const dscomm_join_t *join,
                                                 int64_t deadline);
/* ERR_ENVIRONMENT: nobody meets at this loopback. */
dscomm_status_t dscomm_priv_address_check_fail(const dscomm_join_t *join);

/* host.c: the store of this rendezvous, and its host */

/* 1 if rank 0's process serves the store. */
int dscomm_priv_join_serves(const dscomm_join_t *join);

/* Key that describes the world of a store that rank 0 serves. It is there from
 * the start. */
#define DSCOMM_HOST_KEY "dscomm/host"
/* Its value, for g_free(). */
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

/* Ranks whose processes are stopped (SIGSTOP, a debugger): a cause of time-outs
 * that only the kernel of their machine knows. Appends "; rank 3 (pid 812) is
 * stopped by a signal" to text for each of the given ranks of the world that is
 * stopped on this machine, and for rank 0 where it serves the store. Text that
 * is too long is cut off. Asks the store for pids, a fraction of a second at
 * most; one that does not answer is not asked, and the text says so. */
void dscomm_priv_stopped_append(const dscomm_meeting_t *meeting,
                                const int *world_ranks, int count, char *text,
                                size_t size);

/* Replaces the sentence of a call that has passed its deadline, status
 * ERR_TIMEOUT, if the store does not answer: that is the cause then, and what a
 * rank knows of others may be out of date. prefix, "group 'world': " or "",
 * begins the new one; by_rank_0: rank 0 serves the store. Returns status. */
dscomm_status_t dscomm_priv_stopped_store(const dscomm_store_t *store,
                                          bool by_rank_0, const char *prefix,
                                          dscomm_status_t status);

/* In a forked child: its lock is new. */
void dscomm_priv_rendezvous_forked(void);

#endif
