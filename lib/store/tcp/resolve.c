/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of a name, within a deadline that getaddrinfo() has not: it runs in
 * a thread of its own, which is left alone when it takes too long. */
#include "config.h"

#include "lib/store/tcp/socket.h"

#include "lib/base/status.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char service[8];
    struct addrinfo hints, *list;
    int problem, system; /* what getaddrinfo() says, and errno */
    gboolean done;
    int users; /* the caller and the thread, until they have left */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char host[];
} lookup_t;

static lookup_t *lookup_new(const char *host, int port)
{
    lookup_t *lookup = calloc(1, sizeof *lookup + strlen(host) + 1);

    if (!lookup)
        return NULL;
    strcpy(lookup->host, host);
    snprintf(lookup->service, sizeof lookup->service, "%d", port);
    lookup->hints.ai_family = AF_UNSPEC;
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->hints.ai_flags = AI_NUMERICSERV;
    lookup->users = 1;
    pthread_mutex_init(&lookup->mutex, NULL);
    dscomm_priv_cond_init(&lookup->changed);
    return lookup;
}

/* Locked; unlocks, and frees what the last one leaves. */
static void leave(lookup_t *lookup)
{
    int users = --lookup->users;

    pthread_mutex_unlock(&lookup->mutex);
    if (users)
        return;
    if (lookup->list)
        freeaddrinfo(lookup->list);
    pthread_cond_destroy(&lookup->changed);
    pthread_mutex_destroy(&lookup->mutex);
    free(lookup);
}

static int ask(lookup_t *lookup)
{
    int problem = getaddrinfo(lookup->host, lookup->service, &lookup->hints,
                              &lookup->list);

    lookup->system = errno;
    if (problem)
        lookup->list = NULL;
    return problem;
}

static void *run(void *arg)
{
    lookup_t *lookup = arg;
    int problem = ask(lookup);

    pthread_mutex_lock(&lookup->mutex);
    lookup->problem = problem;
    lookup->done = TRUE;
    pthread_cond_signal(&lookup->changed);
    leave(lookup);
    return NULL;
}

/* The thread takes no signal that is meant for the program. */
static int start(lookup_t *lookup)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    int problem;

    lookup->users = 2;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    problem = pthread_create(&thread, &attr, run, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return problem;
}

static dscomm_status_t fail(const lookup_t *lookup, gboolean *ret_again)
{
    int problem = lookup->problem;
    char shown[64];

    *ret_again =
        problem == EAI_AGAIN || problem == EAI_NONAME || problem == EAI_SYSTEM;
    return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                       "store host '%s' has no address: %s; give a name that "
                       "resolves on every node, or an address, as MASTER_ADDR "
                       "or in the URL",
                       dscomm_priv_quote(lookup->host, shown, sizeof shown),
                       problem == EAI_SYSTEM ? strerror(lookup->system)
                                             : gai_strerror(problem));
}

/* In a thread. */
static dscomm_status_t ask_others(lookup_t *lookup,
                                  dscomm_priv_deadline_t deadline,
                                  gboolean *ret_again)
{
    int problem = start(lookup);
    char shown[64];

    pthread_mutex_lock(&lookup->mutex);
    if (problem) {
        lookup->users = 1;
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "start a thread to look up a name: %s",
                           strerror(problem));
    }
    while (!lookup->done) {
        if (!dscomm_priv_cond_wait(&lookup->changed, &lookup->mutex, deadline))
            break;
    }
    if (!lookup->done)
        return dscomm_fail(
            DSCOMM_ERR_TIMEOUT,
            "the name of store host '%s' found no answer within %d ms: is its "
            "name server reachable? Its address needs none",
            dscomm_priv_quote(lookup->host, shown, sizeof shown), deadline.ms);
    return lookup->problem ? fail(lookup, ret_again) : DSCOMM_OK;
}

dscomm_status_t dscomm_priv_resolve(const char *host, int port,
                                    dscomm_priv_deadline_t deadline,
                                    struct addrinfo **ret_list,
                                    gboolean *ret_again)
{
    lookup_t *lookup = lookup_new(host, port);
    dscomm_status_t status = DSCOMM_OK;

    *ret_again = FALSE;
    if (!lookup)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory to look up a store's host");
    lookup->hints.ai_flags |= AI_NUMERICHOST;
    if (ask(lookup) == 0) {
        pthread_mutex_lock(&lookup->mutex);
    } else {
        lookup->hints.ai_flags &= ~AI_NUMERICHOST;
        status = ask_others(lookup, deadline, ret_again);
    }
    if (!status)
        *ret_list = g_steal_pointer(&lookup->list);
    leave(lookup);
    return status;
}
