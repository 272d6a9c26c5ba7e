/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts at which ranks cannot meet. */
#include "config.h"

#include "lib/rendezvous/rendezvous.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/store/tcp/socket.h"

#include <arpa/inet.h>
#include <glib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

/* The host of the store, to be freed, or NULL. */
static char *host_of(const dscomm_join_t *join)
{
    char *host = NULL;
    int port;

    if (join->url && g_str_has_prefix(join->url, "tcp://") &&
        dscomm_priv_address_split(join->url + strlen("tcp://"), &host, &port))
        host = NULL;
    return host;
}

/* As in 127.0.1.1, with which Debian's /etc/hosts answer for the machine's own
 * name. */
static int is_own_name(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;

    return address->sa_family == AF_INET &&
           ntohl(v4->sin_addr.s_addr) != INADDR_LOOPBACK;
}

static dscomm_address_check_t judge(const struct addrinfo *list)
{
    dscomm_address_check_t address = DSCOMM_ADDRESS_WRONG;

    for (; list; list = list->ai_next) {
        if (!dscomm_priv_address_is_loopback(list->ai_addr))
            return DSCOMM_ADDRESS_FINE;
        if (!is_own_name(list->ai_addr))
            address = DSCOMM_ADDRESS_DOUBTFUL;
    }
    return address;
}

dscomm_address_check_t dscomm_priv_address_check(const dscomm_join_t *join,
                                                 int64_t deadline)
{
    dscomm_address_check_t address = DSCOMM_ADDRESS_FINE;
    struct addrinfo *list;
    gboolean again;
    char *host;

    if (!join->serve || join->local_size < 1 || join->local_size >= join->size)
        return DSCOMM_ADDRESS_FINE;
    host = host_of(join);
    if (host && !strchr(host, ',') &&
        !dscomm_priv_resolve(
            host, 0, dscomm_priv_deadline(dscomm_priv_clock_left(deadline)),
            &list, &again)) {
        address = judge(list);
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
