/* SPDX-License-Identifier: BSD-3-Clause */
/* Meeting over TCP and in a file: repeatedly, in several worlds at a time, and
 * with failures. Ranks are threads. */
#include "config.h"

#include "tests/lib/store/raw.h"
#include "tests/lib/work/ranks.h"
#include "tests/port.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

/* One rank of a meeting, and its result. */
typedef struct {
    char url[128];
    dscomm_store_t *store; /* NULL: that of url */
    int rank, size, timeout_ms, worlds;
    char failure[1024];
    dscomm_status_t status;
} guest_t;

static dscomm_status_t join(const guest_t *guest, dscomm_group_t **ret_world)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

    attr.backend = "thread";
    attr.store = guest->store;
    attr.init_method = guest->store ? NULL : guest->url;
    attr.has_rank = 1;
    attr.rank = guest->rank;
    attr.world_size = guest->size;
    attr.timeout_ms = guest->timeout_ms;
    return dscomm_init(&attr, ret_world);
}

/* Joins two worlds, leaves the first, then the second; several times. */
static void *visit(void *arg)
{
    guest_t *guest = arg;
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < guest->worlds && status == DSCOMM_OK; i++) {
        dscomm_group_t *first, *second;

        status = join(guest, &first);
        if (status == DSCOMM_OK)
            status = join(guest, &second);
        if (status == DSCOMM_OK)
            status = dscomm_barrier(second, NULL);
        if (status == DSCOMM_OK)
            status = dscomm_finalize(first);
        if (status == DSCOMM_OK)
            status = dscomm_finalize(second);
    }
    guest->status = status;
    if (status < 0)
        snprintf(guest->failure, sizeof guest->failure, "%s",
                 dscomm_last_error());
    return NULL;
}

static void invite(guest_t *guests, int count, const char *url, int timeout_ms)
{
    for (int i = 0; i < count; i++) {
        guests[i] = (guest_t){.rank = i, .size = count, .worlds = 1};
        guests[i].timeout_ms = timeout_ms;
        snprintf(guests[i].url, sizeof guests[i].url, "%s", url);
    }
}

static void receive(guest_t *guests, int count)
{
    pthread_t threads[8];

    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, visit, &guests[i]);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void all_are(const guest_t *guests, int count, dscomm_status_t want,
                    const char *words, const char *what)
{
    for (int i = 0; i < count; i++) {
        is_int(guests[i].status, want, "%s: rank %d: %s", what, guests[i].rank,
               guests[i].failure);
        ok(strstr(guests[i].failure, words) != NULL, "  says \"%s\"", words);
    }
}

static void check_tcp(void)
{
    guest_t guests[4];
    char url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port_find_free(1));
    invite(guests, 4, url, 20000);
    for (int i = 0; i < 4; i++)
        guests[i].worlds = 5;
    receive(guests, 4);
    all_are(guests, 4, DSCOMM_OK, "", "over TCP, ten worlds");
}

static void check_tcp_failures(void)
{
    guest_t guests[3];
    char url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port_find_free(1));
    invite(guests, 3, url, 300);
    receive(&guests[1], 2);
    all_are(&guests[1], 2, DSCOMM_ERR_TIMEOUT, "rank 0 of 3 did not come",
            "rank 0 is missing");
    invite(guests, 3, url, 3000);
    receive(guests, 2);
    all_are(guests, 2, DSCOMM_ERR_TIMEOUT,
            "rank 2 of 3 did not come within 3.0 s; the ranks meet at "
            "tcp://127.0.0.1:",
            "rank 2 is missing");
    invite(guests, 3, url, 10000);
    receive(guests, 3);
    all_are(guests, 3, DSCOMM_OK, "", "all come at last");
}

static void check_file(void)
{
    char folder[] = "/tmp/dscomm-meet-XXXXXX", url[128];
    guest_t guests[3];

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(url, sizeof url, "file://%s/store", folder);
    invite(guests, 3, url, 20000);
    for (int i = 0; i < 3; i++)
        guests[i].worlds = 3;
    receive(guests, 3);
    all_are(guests, 3, DSCOMM_OK, "", "in a file, six worlds");
    ok(rmdir(folder) == 0, "the last one removes the file");
}

/* The file of a crashed run is distinguished from that of a running one. */
static void check_old_file(void)
{
    char folder[] = "/tmp/dscomm-meet-XXXXXX", path[128];
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;
    guest_t guest;

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(path, sizeof path, "file://%s/store", folder);
    attr.world_size = 2;
    if (dscomm_store_open(path, &attr, &store))
        bail("%s", dscomm_last_error());
    dscomm_store_set(store, "dscomm/0/1/claim/0", "pid 1 on a crashed run", 22);
    invite(&guest, 1, path, 2000);
    guest.size = 2;
    receive(&guest, 1);
    all_are(&guest, 1, DSCOMM_ERR_ENVIRONMENT,
            "rank 0 of 2 is claimed by two processes", "an old file");
    ok(strstr(guest.failure, "a crashed run") != NULL, "says by whom");
    dscomm_store_close(store);
    unlink(strchr(path, '/') + 2);
    rmdir(folder);
}

/* Starts a process that joins as that guest and is killed when its record is
 * there; returns its pid. */
static pid_t join_and_die(guest_t *guest)
{
    const char *path = strchr(guest->url, '/') + 2;
    char want[32];
    int there = 0;
    pid_t pid = fork();

    if (pid == 0) {
        receive(guest, 1);
        _exit(0);
    }
    snprintf(want, sizeof want, "/r/%d", guest->rank);
    for (int i = 0; i < 1000 && !there; i++) {
        char text[4096];
        FILE *file = fopen(path, "rb");
        size_t size = file ? fread(text, 1, sizeof text, file) : 0;

        there = memmem(text, size, want, strlen(want)) != NULL;
        if (file)
            fclose(file);
        usleep(10000);
    }
    ok(there, "the process came");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return pid;
}

/* A run that was killed before all ranks had come leaves records of ranks that
 * have ended: no rank waits for these. */
static void check_dead_rank(int dead, int size)
{
    char folder[] = "/tmp/dscomm-meet-XXXXXX", url[128], words[64];
    time_t begin = time(NULL);
    guest_t guests[3];
    pid_t pid;

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(url, sizeof url, "file://%s/store", folder);
    invite(guests, size, url, 50000);
    pid = join_and_die(&guests[dead]);
    receive(&guests[!dead], 1);
    snprintf(words, sizeof words, "rank %d (pid %d on ", dead, (int)pid);
    all_are(&guests[!dead], 1, DSCOMM_ERR_PEER_FAILED, words, "a dead rank");
    ok(strstr(guests[!dead].failure, "must be removed") != NULL,
       "  says what to do");
    ok(time(NULL) - begin < 30, "  at once");
    unlink(strchr(url, '/') + 2);
    rmdir(folder);
}

/* A decision that a failed run has left is not taken for that of a later
 * run. */
static void check_failed_run(void)
{
    char folder[] = "/tmp/dscomm-meet-XXXXXX", url[128], words[64];
    guest_t guests[2];
    pid_t pid;

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(url, sizeof url, "file://%s/store", folder);
    invite(guests, 2, url, 300);
    pid = fork();
    if (pid == 0) {
        receive(guests, 1);
        _exit(guests[0].status == DSCOMM_ERR_TIMEOUT ? 0 : 1);
    }
    waitpid(pid, NULL, 0);
    guests[1].timeout_ms = 50000;
    receive(&guests[1], 1);
    snprintf(words, sizeof words, "rank 0 (pid %d on ", (int)pid);
    all_are(&guests[1], 1, DSCOMM_ERR_PEER_FAILED, words, "a failed run");
    ok(strstr(guests[1].failure, "must be removed") != NULL,
       "  says what to do");
    unlink(strchr(url, '/') + 2);
    rmdir(folder);
}

static pthread_barrier_t together;

/* Three ranks over TCP, of which so many meet at the barrier. */
static void come_together(guest_t guests[3], void *(*body)(void *),
                          unsigned waiting)
{
    pthread_t threads[3];
    char url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port_find_free(1));
    invite(guests, 3, url, 20000);
    pthread_barrier_init(&together, NULL, waiting);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, body, &guests[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
}

/* A second world at the same place, for which rank 2 comes too late, while the
 * first one still uses the same store; and a third. */
static void *visit_again(void *arg)
{
    guest_t *guest = arg;
    dscomm_group_t *first = NULL, *second = NULL;
    dscomm_status_t status = join(guest, &first);

    pthread_barrier_wait(&together);
    if (guest->rank == 2)
        pthread_barrier_wait(&together);
    guest->timeout_ms = 500;
    guest->worlds = join(guest, &second) == DSCOMM_ERR_TIMEOUT;
    guest->timeout_ms = 20000;
    if (guest->rank != 2)
        pthread_barrier_wait(&together);
    if (status == DSCOMM_OK)
        status = join(guest, &second);
    if (status == DSCOMM_OK)
        status = dscomm_finalize(second);
    if (status < 0)
        snprintf(guest->failure, sizeof guest->failure, "%s",
                 dscomm_last_error());
    if (first)
        dscomm_finalize(first);
    guest->status = status;
    return NULL;
}

static void check_late_rank(void)
{
    guest_t guests[3];

    come_together(guests, visit_again, 3);
    for (int i = 0; i < 3; i++)
        ok(guests[i].worlds, "a second world fails: rank %d is told", i);
    all_are(guests, 3, DSCOMM_OK, "", "all come to a third world");
}

/* Without rank 1 the others fail, and repeat the call at once, while rank 0's
 * first store may still exist. */
static void *repeat(void *arg)
{
    guest_t *guest = arg;
    dscomm_group_t *world;

    if (guest->rank != 1) {
        guest->timeout_ms = 300;
        guest->worlds = join(guest, &world) == DSCOMM_ERR_TIMEOUT;
    }
    if (guest->rank != 2)
        pthread_barrier_wait(&together);
    guest->timeout_ms = 20000;
    guest->status = join(guest, &world);
    if (guest->status == DSCOMM_OK)
        guest->status = dscomm_finalize(world);
    if (guest->status < 0)
        snprintf(guest->failure, sizeof guest->failure, "%s",
                 dscomm_last_error());
    return NULL;
}

static void check_repeated(void)
{
    guest_t guests[3];

    come_together(guests, repeat, 2);
    ok(guests[0].worlds && guests[2].worlds, "without rank 1 the others fail");
    all_are(guests, 3, DSCOMM_OK, "", "all come when they repeat it at once");
}

/* Two processes are rank 0: one finds the port in use, and notifies the
 * other. */
static pid_t come_as_zero(const char *url)
{
    guest_t guest = {.size = 2, .timeout_ms = 60000};
    dscomm_group_t *world;
    dscomm_status_t status;
    pid_t pid = fork();

    if (pid)
        return pid;
    snprintf(guest.url, sizeof guest.url, "%s", url);
    status = join(&guest, &world);
    _exit(status == DSCOMM_ERR_ENVIRONMENT &&
                  !strstr(dscomm_last_error(),
                          "rank 0 of 2 is claimed by two processes")
              ? 1
              : -status);
}

static void check_two_zeros(void)
{
    int statuses[2] = {0, 0}, codes[2];
    pid_t pids[2];
    char url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port_find_free(1));
    for (int i = 0; i < 2; i++)
        pids[i] = come_as_zero(url);
    for (int i = 0; i < 2; i++) {
        waitpid(pids[i], &statuses[i], 0);
        codes[i] = WIFEXITED(statuses[i]) ? -WEXITSTATUS(statuses[i]) : 1;
    }
    is_int(codes[0] + codes[1],
           (int)DSCOMM_ERR_IO + (int)DSCOMM_ERR_ENVIRONMENT,
           "two ranks 0: one has no port, and the other is told: %d and %d",
           codes[0], codes[1]);
}

/* Variables of an agent that are left over. */
static void check_no_agent(int rank)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    char texts[2][16];
    const char *const names[][2] = {
        {"RANK", texts[0]},
        {"WORLD_SIZE", "2"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", texts[1]},
        {"TORCHELASTIC_RUN_ID", "old"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
    };
    dscomm_group_t *world;

    snprintf(texts[0], sizeof texts[0], "%d", rank);
    snprintf(texts[1], sizeof texts[1], "%d", port_find_free(1));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i][0], names[i][1], 1);
    attr.timeout_ms = 300;
    is_int(dscomm_init(&attr, &world), DSCOMM_ERR_TIMEOUT,
           "no agent where one is told: rank %d", rank);
    ok(strstr(dscomm_last_error(),
              "since TORCHELASTIC_USE_AGENT_STORE is True") != NULL,
       "  %s", dscomm_last_error());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i][0]);
}

/* Two ranks of the largest world: their work while they wait does not exceed
 * the deadline. Which missing ranks they name depends on the machine's load:
 * one of the two may come too late for the other. roster.t checks the
 * sentences. */
static void check_largest(const char *url)
{
    guest_t guests[2];
    time_t begin = time(NULL);

    invite(guests, 2, url, 3000);
    guests[0].size = guests[1].size = 1048576;
    receive(guests, 2);
    all_are(guests, 2, DSCOMM_ERR_TIMEOUT, " did not come within 3.0 s",
            "all the others are missing");
    ok(time(NULL) - begin < 30, "  soon after the deadline: %ld s",
       (long)(time(NULL) - begin));
}

/* Passes on what one of the two sockets gets to the other; requests, which come
 * by the first one, 10 ms later. */
static void *pass_on(void *arg)
{
    int *fds = arg, open = 1;

    while (open) {
        struct pollfd ends[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
        char bytes[65536];

        poll(ends, 2, -1);
        for (int i = 0; i < 2 && open; i++) {
            ssize_t size =
                ends[i].revents ? read(fds[i], bytes, sizeof bytes) : 0;

            if (!ends[i].revents)
                continue;
            usleep(i ? 0 : 10000);
            open = size > 0 &&
                   send(fds[!i], bytes, (size_t)size, MSG_NOSIGNAL) == size;
        }
    }
    close(fds[0]);
    close(fds[1]);
    free(fds);
    return NULL;
}

/* Serves a slow view of a store: arg has a listening socket, and the store's
 * port. */
static void *slow_down(void *arg)
{
    const int *listening = arg;
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port =
                                            htons((uint16_t)listening[1]),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd;

    while ((fd = accept(*listening, NULL, NULL)) >= 0) {
        int *fds = malloc(2 * sizeof *fds);
        pthread_t thread;

        fds[0] = fd;
        fds[1] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fds[1], (struct sockaddr *)&address, sizeof address) ||
            pthread_create(&thread, NULL, pass_on, fds))
            bail("no connection to the store");
        pthread_detach(thread);
    }
    return NULL;
}

/* With a slow store, rank 0 cannot look at all records before the deadline; it
 * still names the ranks that are missing. */
static void check_slow_store(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;
    int proxy[] = {socket(AF_INET, SOCK_STREAM, 0), port_find_free(1)};
    guest_t guests[2];
    char url[64];
    pthread_t thread;

    attr.serve = 1;
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", proxy[1]);
    if (dscomm_store_open(url, &attr, &store) ||
        bind(proxy[0], (struct sockaddr *)&address, length) ||
        getsockname(proxy[0], (struct sockaddr *)&address, &length) ||
        listen(proxy[0], 16))
        bail("no store: %s", dscomm_last_error());
    pthread_create(&thread, NULL, slow_down, proxy);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
    invite(guests, 2, "", 2000);
    for (int i = 0; i < 2; i++) {
        guests[i].size = 2000;
        dscomm_store_open(url, NULL, &guests[i].store);
    }
    receive(guests, 2);
    all_are(guests, 2, DSCOMM_ERR_TIMEOUT, "did not come within 2.0 s",
            "many ranks are missing in a slow store");
    for (int i = 0; i < 2; i++)
        dscomm_store_close(guests[i].store);
    shutdown(proxy[0], SHUT_RDWR);
    pthread_join(thread, NULL);
    close(proxy[0]);
    dscomm_store_close(store);
}

static void check_largest_worlds(void)
{
    char folder[] = "/tmp/dscomm-meet-XXXXXX", url[128];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port_find_free(1));
    check_largest(url);
    if (!mkdtemp(folder))
        bail("no folder");
    snprintf(url, sizeof url, "file://%s/store", folder);
    check_largest(url);
    unlink(strchr(url, '/') + 2);
    rmdir(folder);
}

int main(void)
{
    ranks_use_modules();
    dscomm_log_set_levels("error");
    check_tcp();
    check_tcp_failures();
    check_late_rank();
    for (int i = 0; i < 5; i++)
        check_repeated();
    check_file();
    check_old_file();
    check_dead_rank(1, 2);
    check_dead_rank(1, 3);
    check_dead_rank(0, 2);
    check_failed_run();
    check_two_zeros();
    check_no_agent(0);
    check_no_agent(1);
    check_slow_store();
    check_largest_worlds();
    return tap_done();
}
