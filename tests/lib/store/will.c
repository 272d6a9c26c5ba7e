/* SPDX-License-Identifier: BSD-3-Clause */
/* Last wills: carried out when a client has died, and never for a living one.
 */
#include "tests/lib/store/fixture.h"

#include "lib/store/store.h"
#include "lib/store/tcp/connect.h"
#include "lib/store/tcp/session.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define LONG_MS (2 * WILL_GRACE_MS + 200) /* no will is that late */

enum { GET = 3, CHECK = 5, WAIT = 6, WILL = 66 };

/* Gives a will on a connection, under the identifier of 16 times name. */
static void give(int fd, char name, const char *key, const char *value)
{
    raw_t raw = {.size = 0};

    raw_put(&raw, WILL, 1);
    for (int i = 0; i < 16; i++)
        raw_put(&raw, (uint64_t)name, 1);
    raw_text(&raw, key);
    raw_text(&raw, value);
    if (raw_echo(fd, &raw, 0xCAFE0004) != 0xCAFE0004)
        bail("the will is refused");
}

static int client_with(int port, char name)
{
    int fd = raw_client(port);

    give(fd, name, "/died", "dead ");
    return fd;
}

/* Whether there is a key, after ms. */
static int is_there(int port, const char *key, int ms)
{
    raw_t raw = {.size = 0};
    uint8_t answer = 2;
    int fd = raw_client(port);

    usleep((useconds_t)ms * 1000);
    raw_keys(&raw, CHECK, key, NULL);
    raw_send(fd, raw.data, raw.size);
    raw_recv(fd, &answer, 1, WAIT_MS);
    close(fd);
    return answer == 0;
}

/* The value of a key that may not be there. */
static void get(int port, const char *key, char got[64])
{
    raw_t raw = {.size = 0};
    uint64_t size = 0;
    int fd = raw_client(port);

    memset(got, 0, 64);
    raw_command(&raw, GET, key, NULL, NULL);
    raw_send(fd, raw.data, raw.size);
    raw_recv(fd, &size, 8, WAIT_MS);
    if (size < 64)
        raw_recv(fd, got, size, WAIT_MS);
    close(fd);
}

/* The key gets the value. */
static void becomes(int port, const char *key, const char *value,
                    const char *about)
{
    const double end = raw_now_ms() + WAIT_MS;
    char got[64];

    do {
        usleep(20000);
        get(port, key, got);
    } while (strcmp(got, value) && raw_now_ms() < end);
    is_str(got, value, "%s", about);
}

/* Waits for the key, which must have the value. */
static void comes(int port, const char *key, const char *value,
                  const char *about)
{
    raw_t raw = {.size = 0};
    uint8_t answer = 2;
    int fd = raw_client(port);
    char got[64];

    raw_keys(&raw, WAIT, key, NULL);
    raw_send(fd, raw.data, raw.size);
    ok(raw_recv(fd, &answer, 1, WAIT_MS) == 1 && answer == 0,
       "%s: who waits for it is woken", about);
    get(port, key, got);
    is_str(got, value, "%s: as it was given", about);
    close(fd);
}

static void test_ends(int port)
{
    int fd;

    fd = client_with(port, 'a');
    ok(!is_there(port, "/died", LONG_MS), "a client that is silent lives");
    close(fd);
    comes(port, "/died", "dead ", "a client that ends");
    fd = client_with(port, 'b');
    close(fd);
    becomes(port, "/died", "dead dead ", "another one");
    fd = raw_client(port);
    give(fd, 'c', "/other", "1");
    give(fd, 'd', "/other", "2");
    close(fd);
    comes(port, "/other", "2", "a will in place of another");
}

static void test_withdrawn(int port)
{
    int fd, other;

    fd = client_with(port, 'a');
    give(fd, 'a', "", "");
    close(fd);
    ok(!is_there(port, "/died", LONG_MS), "withdrawn");
    fd = client_with(port, 'b');
    other = raw_client(port);
    give(other, 'b', "", "");
    close(fd);
    ok(!is_there(port, "/died", LONG_MS), "withdrawn on another connection");
    give(other, 'z', "", "");
    ok(is_alive(port), "nobody's will can be withdrawn");
    close(other);
}

static void test_connections(int port)
{
    int first, second;

    first = client_with(port, 'a');
    second = client_with(port, 'a');
    close(first);
    ok(!is_there(port, "/died", LONG_MS), "one connection of two ends");
    close(second);
    second = client_with(port, 'a');
    ok(!is_there(port, "/died", LONG_MS), "the client comes again");
    close(second);
    comes(port, "/died", "dead ", "the last connection ends");
}

/* A connection that the server closes tells nothing about the client. */
static void test_closed(int port)
{
    static raw_t raw;
    int fd;

    fd = client_with(port, 'a');
    raw_put(&raw, GET, 1);
    raw_flush(fd, &raw);
    ok(raw_closes(fd, WAIT_MS), "a request that stalls is closed");
    close(fd);
    fd = raw_client(port);
    raw_put(&raw, WILL, 1);
    raw.size += 16;
    raw_text(&raw, "/died");
    raw_put(&raw, 1020, 8);
    raw.size += 1020;
    raw_send(fd, raw.data, raw.size);
    ok(raw_closes(fd, WAIT_MS), "a will of 1025 bytes is closed");
    close(fd);
    ok(!is_there(port, "/died", LONG_MS), "neither will is carried out");
}

/* A client that comes back lives: only its own line goes. */
static void test_comes_back(int port)
{
    int fd;

    fd = raw_client(port);
    give(fd, 'a', "/died", "21 a\n");
    close(fd);
    comes(port, "/died", "21 a\n", "one client dies");
    fd = raw_client(port);
    give(fd, 'b', "/died", "1 a\n");
    close(fd);
    becomes(port, "/died", "21 a\n1 a\n", "then another one");
    fd = raw_client(port);
    give(fd, 'c', "/died", "3 a\n");
    close(fd);
    becomes(port, "/died", "21 a\n1 a\n3 a\n", "and a third one");
    fd = raw_client(port);
    give(fd, 'b', "/died", "1 a\n");
    comes(port, "/died", "21 a\n3 a\n", "one comes back");
    give(fd, 'c', "", "");
    comes(port, "/died", "21 a\n", "one is known to have left");
    give(fd, 'a', "/died", "");
    ok(!is_there(port, "/died", 0), "nor is the last one dead");
    close(fd);
    comes(port, "/died", "1 a\n", "the one that came back dies");
}

/* One client, several wills. */
static void test_several(void)
{
    int port, fd;
    dscomm_priv_server_t *server = start_server(NULL, NULL, &port);

    fd = raw_client(port);
    is_int(dscomm_priv_server_clients(server), 0, "no client has a will");
    give(fd, 'a', "/one", "1");
    give(fd, 'a', "/two", "2");
    give(fd, 'a', "/three", "3");
    give(fd, 'a', "/two", "");
    ok(is_alive(port) && dscomm_priv_server_clients(server) == 1,
       "one client has wills");
    close(fd);
    comes(port, "/one", "1", "the first of several");
    comes(port, "/three", "3", "the third");
    ok(!is_there(port, "/two", 0), "but not the withdrawn one");
    ok(dscomm_priv_server_clients(server) == 0, "nobody is there any more");
    dscomm_priv_server_close(server);
}

/* Clients of the library */

/* A process with a will, which sleeps when it is there, and so does a child
 * that it has forked then, if ret_child is not NULL. */
static pid_t start_process(int port, pid_t *ret_child)
{
    int fds[2];
    pid_t pid, child = 0;

    if (pipe(fds) || (pid = fork()) < 0)
        bail("fork");
    if (!pid) {
        dscomm_store_t *store = must_open_store(url_of(port), NULL, 0), *view;

        if (dscomm_priv_store_will(store, "died", "7") ||
            dscomm_store_prefix(store, "world", &view) ||
            dscomm_priv_store_will(view, "died", "8") ||
            dscomm_store_prefix(store, "left", &view) ||
            dscomm_priv_store_will(view, "died", "9"))
            _exit(1);
        dscomm_priv_store_withdraw(view, "died");
        if (ret_child)
            child = fork();
        if ((child || !ret_child) &&
            write(fds[1], &child, sizeof child) != sizeof child)
            _exit(1);
        for (;;)
            pause();
    }
    close(fds[1]);
    if (read(fds[0], &child, sizeof child) != sizeof child)
        bail("no will: %s", dscomm_last_error());
    close(fds[0]);
    if (ret_child)
        *ret_child = child;
    return pid;
}

static void test_process(int port)
{
    dscomm_store_t *store = must_open_store(url_of(port), NULL, 0);
    pid_t pid = start_process(port, NULL);

    is_int(dscomm_priv_store_will(store, "left", "1"), DSCOMM_OK, "a will");
    dscomm_store_close(store);
    ok(!is_there(port, "/left", LONG_MS), "a store that is closed has left");
    kill(pid, SIGSTOP);
    ok(!is_there(port, "/died", LONG_MS), "a process that is stopped lives");
    kill(pid, SIGCONT);
    ok(!is_there(port, "/died", LONG_MS), "and when it goes on");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    comes(port, "/died", "7", "a process that is killed");
    comes(port, "/world/died", "8", "of two worlds");
    ok(!is_there(port, "/left/died", 0), "and has left a third");
}

/* A child that lives on does not hide the death of its parent. */
static void test_forked(int port)
{
    pid_t child, pid = start_process(port, &child);

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    comes(port, "/died", "7", "a process whose child lives on is killed");
    kill(child, SIGKILL);
}

static void link_give(dscomm_priv_link_t *link, const char *key,
                      const char *value)
{
    if (dscomm_priv_link_give_will(link, key, dscomm_priv_data_text(value),
                                   dscomm_priv_deadline(WAIT_MS)))
        bail("%s", dscomm_last_error());
}

static dscomm_priv_link_t *take_link(dscomm_priv_link_t *first, bool waits)
{
    dscomm_priv_link_t *link = first;

    if (dscomm_priv_link_enter(&link, waits, dscomm_priv_deadline(WAIT_MS)))
        bail("%s", dscomm_last_error());
    return link;
}

static void use_link(dscomm_priv_link_t *first, dscomm_status_t status)
{
    dscomm_priv_link_leave(take_link(first, false), status);
}

static void link_open(dscomm_priv_link_t *link, int port)
{
    if (!dscomm_priv_link_init(link, "127.0.0.1", port, NULL, NULL) ||
        dscomm_priv_link_connect(link, dscomm_priv_deadline(WAIT_MS)))
        bail("%s", dscomm_last_error());
}

/* A client with a will for /died. */
static void link_with_will(dscomm_priv_link_t *link, int port,
                           const char *value)
{
    link_open(link, port);
    link_give(link, "/died", value);
}

/* After a request that failed a client drops its connection, and makes another
 * one when it next needs it, if ever. */
static void test_dropped(int port)
{
    dscomm_priv_link_t link;

    link_with_will(&link, port, "8");
    for (int i = 0; i < 2; i++) {
        use_link(&link, DSCOMM_ERR_TIMEOUT);
        ok(!is_there(port, "/died", LONG_MS), "a dropped connection, time %d",
           i + 1);
        use_link(&link, DSCOMM_OK);
        ok(!is_there(port, "/died", LONG_MS), "and the next one");
    }
    is_int(link.old_fd, -1, "the dropped one is closed then");
    dscomm_priv_link_clear(&link);
    comes(port, "/died", "8", "the end without a word");
}

/* A client that leaves in order, while the server cannot be told: its
 * connection was dropped, or another thread has it. */
static void test_leaves(int held)
{
    dscomm_priv_link_t link;
    int port;
    dscomm_priv_server_t *server = start_server(NULL, NULL, &port);

    link_with_will(&link, port, "9");
    if (!held)
        use_link(&link, DSCOMM_ERR_TIMEOUT);
    else
        take_link(&link, false);
    dscomm_priv_link_withdraw_will(&link, "/died");
    ok(!dscomm_priv_own_wills_settled(&link), "the server is not told");
    dscomm_priv_link_clear(&link);
    ok(!is_there(port, "/died", LONG_MS), "and takes it for no death: %s",
       held ? "a connection in use" : "a dropped one");
    dscomm_priv_server_close(server);
}

/* A withdrawal that had to wait goes with the next request. */
static void test_withdrawn_later(int port)
{
    dscomm_priv_link_t link;

    link_with_will(&link, port, "9");
    link_give(&link, "/other", "9");
    use_link(&link, DSCOMM_ERR_TIMEOUT);
    dscomm_priv_link_withdraw_will(&link, "/died");
    use_link(&link, DSCOMM_OK);
    ok(dscomm_priv_own_wills_settled(&link), "the next request tells it");
    dscomm_priv_link_clear(&link);
    comes(port, "/other", "9", "the will that was left");
    ok(!is_there(port, "/died", 0), "the withdrawn one is not carried out");
}

static int count_links(const dscomm_priv_link_t *link)
{
    return link ? 1 + count_links(link->next) : 0;
}

/* Threads that wait have a connection each, which goes when it is idle. */
static void test_idle(int port)
{
    dscomm_priv_link_t link, *taken[3];

    link_open(&link, port);
    for (int i = 0; i < 3; i++)
        taken[i] = take_link(&link, true);
    is_int(count_links(&link), 3, "three threads wait");
    for (int i = 0; i < 3; i++)
        dscomm_priv_link_leave(taken[i], DSCOMM_OK);
    use_link(&link, DSCOMM_OK);
    is_int(count_links(&link), 3, "connections are used again");
    taken[1]->idle -= LINK_IDLE_NS;
    use_link(&link, DSCOMM_OK);
    is_int(count_links(&link), 2, "but not kept for ever");
    link.idle = 0;
    use_link(&link, DSCOMM_OK);
    is_int(count_links(&link), 2, "all but the first one");
    dscomm_priv_link_clear(&link);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    with_server(NULL, test_ends);
    with_server(NULL, test_withdrawn);
    with_server(NULL, test_connections);
    with_server(&(dscomm_priv_server_limits_t){.stall_ms = 100}, test_closed);
    with_server(NULL, test_comes_back);
    test_several();
    with_server(NULL, test_process);
    with_server(NULL, test_forked);
    with_server(NULL, test_dropped);
    test_leaves(0);
    test_leaves(1);
    with_server(NULL, test_withdrawn_later);
    with_server(NULL, test_idle);
    return tap_done();
}
