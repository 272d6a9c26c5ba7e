/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts at which several nodes cannot meet. The test has its own resolver. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/rendezvous/rendezvous.h"
#include "tests/tap.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdint.h>
#include <string.h>

typedef int resolve_t(const char *host, const char *service,
                      const struct addrinfo *hints, struct addrinfo **ret_list);

/* "own.test" is this machine's name, as in a stock /etc/hosts; "far.test" is
 * another machine. */
int getaddrinfo(const char *host, const char *service,
                const struct addrinfo *hints, struct addrinfo **ret_list)
{
    resolve_t *real = (resolve_t *)(uintptr_t)dlsym(RTLD_NEXT, "getaddrinfo");
    static const char *const names[][2] = {{"own.test", "127.0.1.1"},
                                           {"near.test", "127.0.0.1"},
                                           {"far.test", "192.0.2.7"}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(host, names[i][0])) {
            if (hints->ai_flags & AI_NUMERICHOST)
                return EAI_NONAME;
            host = names[i][1];
        }
    return real(host, service, hints, ret_list);
}

static void check_addresses(void)
{
    static const struct {
        const char *url;
        int size, local_size, node_rank;
        dscomm_address_check_t want;
    } rows[] = {
        {"tcp://far.test:1", 4, 2, 1, DSCOMM_ADDRESS_FINE},
        {"tcp://192.0.2.1:1", 4, 2, 1, DSCOMM_ADDRESS_FINE},
        {"tcp://127.0.0.1:1", 4, 4, 0, DSCOMM_ADDRESS_FINE}, /* one node */
        {"tcp://own.test:1", 4, 4, 0, DSCOMM_ADDRESS_FINE}, /* T27b */
        {"tcp://127.0.0.1:1", 4, -1, -1, DSCOMM_ADDRESS_FINE}, /* unknown */
        {"tcp://127.0.0.1:1", 4, 2, 0, DSCOMM_ADDRESS_DOUBTFUL},
        {"tcp://127.0.0.1:1", 4, 2, 1, DSCOMM_ADDRESS_DOUBTFUL},
        {"tcp://[::1]:1", 4, 2, 1, DSCOMM_ADDRESS_DOUBTFUL},
        {"tcp://localhost:1", 4, 2, 1, DSCOMM_ADDRESS_DOUBTFUL},
        {"tcp://near.test:1", 4, 2, 1, DSCOMM_ADDRESS_DOUBTFUL},
        {"tcp://own.test:1", 4, 2, 0, DSCOMM_ADDRESS_DOUBTFUL},
        {"tcp://own.test:1", 4, 2, -1, DSCOMM_ADDRESS_DOUBTFUL},
        {"tcp://own.test:1", 4, 2, 1, DSCOMM_ADDRESS_WRONG},
        {"file:///x", 4, 2, 1, DSCOMM_ADDRESS_FINE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dscomm_join_t join = {.rank = 3,
                              .size = rows[i].size,
                              .url = (char *)rows[i].url,
                              .serve = 1,
                              .local_size = rows[i].local_size,
                              .node_rank = rows[i].node_rank};
        const int64_t deadline =
            dscomm_priv_clock_after(dscomm_priv_clock(), 5000);

        is_int(dscomm_priv_address_check(&join, deadline), rows[i].want,
               "%s, %d of %d ranks here, node %d", rows[i].url,
               rows[i].local_size, rows[i].size, rows[i].node_rank);
    }
}

/* A rank on the second node fails at once, not at the deadline. */
static void check_trap(void)
{
    dscomm_join_t join = {.rank = 3,
                          .size = 4,
                          .url = (char *)"tcp://own.test:1",
                          .serve = 1,
                          .run_id = "0",
                          .backend = (char *)"auto",
                          .timeout_ms = 60000,
                          .local_rank = 1,
                          .local_size = 2,
                          .node_rank = 1};
    const int64_t begin = dscomm_priv_clock();
    const dscomm_module_t *module;
    dscomm_meeting_t meeting;

    is_int(dscomm_priv_rendezvous(&join, &meeting, &module),
           DSCOMM_ERR_ENVIRONMENT, "T27 127.0.1.1 on another node is an error");
    ok(strstr(dscomm_last_error(), "'own.test'") &&
           strstr(dscomm_last_error(), "/etc/hosts"),
       "that names both: %s", dscomm_last_error());
    ok(dscomm_priv_clock() - begin < 10000 * NS_PER_MS, "at once");
    join.node_rank = -1;
    join.timeout_ms = 300;
    is_int(dscomm_priv_rendezvous(&join, &meeting, &module),
           DSCOMM_ERR_ENVIRONMENT, "where it may be rank 0's node, in the end");
}

int main(void)
{
    dscomm_log_set_levels("error");
    check_addresses();
    check_trap();
    return tap_done();
}
