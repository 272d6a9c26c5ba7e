/* SPDX-License-Identifier: BSD-3-Clause */
/* Names whose resolution hangs, addresses that are dead or duplicate, and a
 * lack of descriptors. The test has its own resolver, because no name server
 * does this on demand. */
#include "config.h"

#include "lib/store/tcp/listen.h"

#include "tests/lib/store/fixture.h"
#include "tests/port.h"
#include "tests/tap.h"

#include <dlfcn.h>
#include <dscomm/log.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>

typedef int resolve_t(const char *host, const char *service,
                      const struct addrinfo *hints, struct addrinfo **ret_list);

static const char *const both[] = {"127.0.0.2", "127.0.0.1"};
static const char *const twice[] = {"127.0.0.1", "127.0.0.1"};
static const char *const elsewhere[] = {"192.0.2.7", "192.0.2.8"};
static const char *const myself[] = {"127.0.1.1", "127.0.1.1"};
static const char *const six[] = {"::1", "127.0.0.1"};
static const char *const four[] = {"127.0.0.1", "::1"};

/* "hang.test" is answered after two seconds; others as the arrays say. */
int getaddrinfo(const char *host, const char *service,
                const struct addrinfo *hints, struct addrinfo **ret_list)
{
    resolve_t *real = (resolve_t *)(uintptr_t)dlsym(RTLD_NEXT, "getaddrinfo");
    const char *const *hosts = NULL;

    if (!strcmp(host, "hang.test") && !(hints->ai_flags & AI_NUMERICHOST)) {
        usleep(2000 * 1000);
        host = "127.0.0.1";
    }
    if (!strcmp(host, "both.test"))
        hosts = both;
    if (!strcmp(host, "localhost.twice"))
        hosts = twice;
    if (!strcmp(host, "elsewhere.test"))
        hosts = elsewhere;
    if (!strcmp(host, "myself.test"))
        hosts = myself;
    if (!strcmp(host, "six.test"))
        hosts = six;
    if (!strcmp(host, "four.test"))
        hosts = four;
    if (!hosts)
        return real(host, service, hints, ret_list);
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    if (real(hosts[0], service, hints, ret_list) != 0 ||
        real(hosts[1], service, hints, &(*ret_list)->ai_next) != 0)
        bail("127.0.0.1 has no address");
    return 0;
}

static void test_name_that_hangs(void)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;

    attr.timeout_ms = 200;
    for (attr.serve = 0; attr.serve < 2; attr.serve++) {
        double start = raw_now_ms(), took;

        is_int(dscomm_store_open("tcp://hang.test:29", &attr, &store),
               DSCOMM_ERR_TIMEOUT, "serve %d: a name server does not answer",
               attr.serve);
        took = raw_now_ms() - start;
        ok(took >= 200 && took < 1500, "given up after %.0f ms", took);
        error_says("hang.test");
    }
    usleep(2000 * 1000); /* the answer comes when nobody waits any more */
}

/* Returns a port of 127.0.0.2 whose queue is full, so that a connection
 * hangs. */
static int listen_full(int port, int *ret_client)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK + 1)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *ret_client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 0) != 0 ||
        connect(*ret_client, (struct sockaddr *)&address, sizeof address) != 0)
        bail("cannot fill a queue");
    return fd;
}

/* Connects to host at port, within ms. */
static dscomm_status_t connect_to(const char *host, int port, int ms,
                                  int *ret_fd, bool *ret_again)
{
    const dscomm_priv_deadline_t deadline = dscomm_priv_deadline(ms);
    struct addrinfo *list;
    dscomm_status_t status =
        dscomm_priv_resolve(host, port, deadline, &list, ret_again);

    if (status)
        return status;
    status = dscomm_priv_connect_list(list, port, deadline, ret_fd, ret_again);
    freeaddrinfo(list);
    return status;
}

/* The first of two addresses is dead: the second gets its share of the time. */
static void test_dead_address(void)
{
    int port, client, good = raw_listen(&port);
    int full = listen_full(port, &client), fd = -1;
    double start = raw_now_ms();
    bool again = false;

    is_int(connect_to("127.0.0.2", port, 100, &fd, &again), DSCOMM_ERR_IO,
           "the first address is dead");
    ok(again, "which may change");
    is_int(connect_to("both.test", port, 1000, &fd, &again), DSCOMM_OK,
           "the second is tried as well");
    ok(raw_now_ms() - start < 1000, "in time");
    if (fd >= 0)
        close(fd);
    start = raw_now_ms();
    is_int(connect_to("both.test", port, 60000, &fd, &again), DSCOMM_OK,
           "and where there is much time");
    ok(raw_now_ms() - start < 2000, "it is not spent on the first: %.0f ms",
       raw_now_ms() - start);
    if (fd >= 0)
        close(fd);
    close(client);
    close(full);
    close(good);
}

/* ::1 first, where no server listens, then 127.0.0.1; and the reverse. */
static void test_both_families(void)
{
    bool again;
    int port, fd, listening = raw_listen(&port);

    if (is_int(connect_to("six.test", port, 5000, &fd, &again), DSCOMM_OK,
               "IPv6 is refused, IPv4 is not"))
        close(fd);
    if (is_int(connect_to("four.test", port, 5000, &fd, &again), DSCOMM_OK,
               "IPv4 first"))
        close(fd);
    close(listening);
    is_int(connect_to("six.test", port, 5000, &fd, &again), DSCOMM_ERR_IO,
           "neither answers");
    ok(again, "which may change: %s", dscomm_last_error());
}

/* Clients that began together try again at different times. */
static void test_pauses(void)
{
    int different = 0, bad = 0;
    double last = 0;

    for (int i = 0; i < 20; i++) {
        int64_t pause = 4 * NS_PER_MS;
        double start = raw_now_ms(), took;

        dscomm_priv_back_off(dscomm_priv_deadline(1000), &pause, 6 * NS_PER_MS);
        took = raw_now_ms() - start;
        bad += took < 1.99 || pause != 6 * NS_PER_MS;
        different += took > last + 0.05 || took < last - 0.05;
        last = took;
    }
    is_int(bad, 0, "a pause is at least a half, and doubles up to the most");
    ok(different > 10, "%d of 20 differ from the one before", different);
}

/* Listens at host, and stores the result. */
static dscomm_status_t listen_at(const char *host, int port,
                                 dscomm_priv_listen_t *listening)
{
    const dscomm_priv_place_t place = {host, port, 1, false, false};

    return dscomm_priv_listen(&place, dscomm_priv_deadline(5000), listening);
}

static void test_doubled_address(void)
{
    dscomm_priv_place_t place = {"localhost.twice", 0, 8, false, false};
    dscomm_priv_listen_t listening;
    int fd, port = port_find_free(1);

    if (is_int(listen_at("localhost.twice", port, &listening), DSCOMM_OK,
               "a name with the same address twice")) {
        is_int(listening.count, 1, "is served once");
        dscomm_priv_listen_close(&listening);
    }
    fd = raw_listen(&port);
    place.port = port;
    if (is_int(
            dscomm_priv_listen(&place, dscomm_priv_deadline(1000), &listening),
            DSCOMM_OK, "and at another port where the first is taken")) {
        ok(listening.port > port, "  %d after %d", listening.port, port);
        dscomm_priv_listen_close(&listening);
    }
    close(fd);
}

/* The address by which a process reaches its own server if IPv6 may be off. */
static void test_own_host(void)
{
    static const struct {
        const char *host, *own;
    } rows[] = {
        {"0.0.0.0", "127.0.0.1"},
        {"::", "127.0.0.1"},
        {"127.0.0.2", "127.0.0.2"},
        {"::1", "::1"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dscomm_priv_listen_t listening;
        char own[LISTEN_HOST_MAX];

        if (listen_at(rows[i].host, 0, &listening)) {
            skip("%s", dscomm_last_error());
            continue;
        }
        is_str(dscomm_priv_listen_host(&listening, own), rows[i].own,
               "the server of %s is reached at", rows[i].host);
        dscomm_priv_listen_close(&listening);
    }
}

/* Lists the addresses of listening, in order: "127.0.0.1 127.0.1.1". */
static char *list_bound(const dscomm_priv_listen_t *listening)
{
    GString *names = g_string_new(NULL);

    for (int i = 0; i < listening->count; i++) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof address;
        char name[SOCKET_NAME_MAX];

        getsockname(listening->fds[i], (struct sockaddr *)&address, &length);
        dscomm_priv_address_name((struct sockaddr *)&address, length, name);
        *strrchr(name, ':') = '\0';
        g_string_append_printf(names, "%s%s", i ? " " : "", name);
    }
    return g_string_free(names, false);
}

/* A server listens only where it must. If IPv6 is off, "[::]" becomes
 * "0.0.0.0". bound NULL: ERR_ENVIRONMENT. */
static void test_listens(void)
{
    enum { REMOTE = 1, GUARDED = 2 };
    static const struct {
        const char *host;
        int flags;
        const char *variable, *value;
        const char *bound;
    } rows[] = {
        {"127.0.0.1", 0, NULL, NULL, "127.0.0.1"},
        {"localhost.twice", 0, NULL, NULL, "127.0.0.1"},
        {"myself.test", 0, NULL, NULL, "127.0.0.1 127.0.1.1"},
        {"myself.test", REMOTE, NULL, NULL, NULL},
        {"myself.test", REMOTE | GUARDED, NULL, NULL, "*"},
        {"myself.test", GUARDED, NULL, NULL, "*"},
        {"myself.test", REMOTE, "DSCOMM_SOCKET_IFNAME", "lo",
         "127.0.0.1 127.0.1.1"},
        {"myself.test", 0, "DSCOMM_STORE_LISTEN", "lo", "127.0.0.1 127.0.1.1"},
        {"myself.test", 0, "DSCOMM_STORE_LISTEN", "*", "*"},
        {"elsewhere.test", 0, NULL, NULL, NULL},
        {"elsewhere.test", GUARDED, NULL, NULL, "*"},
        {"elsewhere.test", 0, "DSCOMM_SOCKET_IFNAME", "lo", "127.0.0.1"},
        {"elsewhere.test", 0, "NCCL_SOCKET_IFNAME", "=lo", "127.0.0.1"},
        {"elsewhere.test", 0, "NCCL_SOCKET_IFNAME", "=nosuch0", NULL},
        {"elsewhere.test", GUARDED, "NCCL_SOCKET_IFNAME", "=nosuch0", "*"},
        {"elsewhere.test", GUARDED, "DSCOMM_SOCKET_IFNAME", "=nosuch0", NULL},
        {"myself.test", 0, "DSCOMM_SOCKET_IFNAME", "=nosuch0", NULL},
        {"elsewhere.test", 0, "DSCOMM_STORE_LISTEN", "lo", "127.0.0.1"},
        {"elsewhere.test", 0, "DSCOMM_STORE_LISTEN", "=nosuch0", NULL},
        {"127.0.0.2", 0, "DSCOMM_STORE_LISTEN", "*", "*"},
        {"*", 0, NULL, NULL, "*"},
        {"*", 0, "DSCOMM_SOCKET_IFNAME", "lo", "127.0.0.1"},
        {"*", 0, "DSCOMM_SOCKET_IFNAME", "=nosuch0", NULL},
        {"*", 0, "DSCOMM_SOCKET_IFNAME", "^=lo,10.0.0.0/33", NULL},
        {"*", 0, "DSCOMM_STORE_LISTEN", "lo,10.0.0.0/33", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const dscomm_priv_place_t place = {rows[i].host, 0, 1,
                                           rows[i].flags & REMOTE,
                                           (rows[i].flags & GUARDED) != 0};
        dscomm_priv_listen_t listening;
        dscomm_status_t status;
        char *bound;

        if (rows[i].variable)
            setenv(rows[i].variable, rows[i].value, 1);
        status =
            dscomm_priv_listen(&place, dscomm_priv_deadline(5000), &listening);
        if (rows[i].variable)
            unsetenv(rows[i].variable);
        if (!rows[i].bound) {
            is_int(status, DSCOMM_ERR_ENVIRONMENT, "%s: %s", rows[i].host,
                   dscomm_last_error());
            continue;
        }
        if (status)
            bail("%s: %s", rows[i].host, dscomm_last_error());
        bound = list_bound(&listening);
        if (!strcmp(bound, "[::]") || !strcmp(bound, "0.0.0.0"))
            strcpy(bound, "*");
        is_str(bound, rows[i].bound, "%s, %s=%s, flags %d", rows[i].host,
               rows[i].variable ? rows[i].variable : "",
               rows[i].variable ? rows[i].value : "", rows[i].flags);
        g_free(bound);
        dscomm_priv_listen_close(&listening);
    }
}

/* If the host is this machine's name for itself, its own ranks connect
 * there. */
static void test_interfaces_own_name(void)
{
    dscomm_priv_listen_t listening;
    bool again;
    int fd = -1;

    setenv("DSCOMM_SOCKET_IFNAME", "lo", 1);
    if (listen_at("myself.test", 0, &listening))
        bail("%s", dscomm_last_error());
    unsetenv("DSCOMM_SOCKET_IFNAME");
    is_int(listening.count, 2, "served at 127.0.0.1 and the name's address");
    is_int(connect_to("myself.test", listening.port, 5000, &fd, &again),
           DSCOMM_OK, "the machine's own name leads to the server");
    if (fd >= 0)
        close(fd);
    dscomm_priv_listen_close(&listening);
}

/* A resource that the system refuses this process is reported at once, and no
 * server is blamed. */
static void test_no_descriptors(void)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;
    double start = raw_now_ms();
    struct rlimit old, tight;
    int lowest = dup(0);
    dscomm_status_t status;

    getrlimit(RLIMIT_NOFILE, &old);
    tight = old;
    tight.rlim_cur = (rlim_t)lowest;
    close(lowest);
    attr.timeout_ms = 3000;
    setrlimit(RLIMIT_NOFILE, &tight);
    status = dscomm_store_open("tcp://127.0.0.1:29", &attr, &store);
    setrlimit(RLIMIT_NOFILE, &old);
    is_int(status, DSCOMM_ERR_NO_MEMORY, "no descriptor for a connection");
    ok(raw_now_ms() - start < 2000, "is not tried again");
    error_says("ulimit -n");
}

int main(void)
{
    test_name_that_hangs();
    test_dead_address();
    test_both_families();
    test_pauses();
    test_doubled_address();
    test_own_host();
    dscomm_log_set_levels("error");
    test_listens();
    test_interfaces_own_name();
    test_no_descriptors();
    return tap_done();
}
