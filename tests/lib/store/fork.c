/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores and fork: a child may close what it inherited, and open its own. */
#include "tests/lib/store/fixture.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USED = 1, NO_SENTENCE = 2, OPENED_NONE = 4, HUNG = 98, DIED = 99 };

/* The child uses an inherited store; returns bits of failed checks. */
static int use_inherited(dscomm_store_t *store)
{
    const char *keys[] = {"k"};
    dscomm_store_t *own = NULL, *view = NULL;
    int wrong = 0, flag;
    int64_t number;
    void *value;
    size_t size;

    if (dscomm_store_set(store, "k", "child", 5) != DSCOMM_ERR_STATE ||
        dscomm_store_get(store, "k", 100, &value, &size) != DSCOMM_ERR_STATE ||
        dscomm_store_wait(store, keys, 1, 100) != DSCOMM_ERR_STATE ||
        dscomm_store_multi_get(store, keys, 1, 100, &value, &size) !=
            DSCOMM_ERR_STATE ||
        dscomm_store_add(store, "n", 1, NULL) != DSCOMM_ERR_STATE ||
        dscomm_store_compare_set(store, "k", "", 0, "", 0, NULL, NULL) !=
            DSCOMM_ERR_STATE ||
        dscomm_store_append(store, "k", "", 0) != DSCOMM_ERR_STATE ||
        dscomm_store_delete(store, "k", NULL) != DSCOMM_ERR_STATE ||
        dscomm_store_check(store, keys, 1, &flag) != DSCOMM_ERR_STATE ||
        dscomm_store_num_keys(store, &number) != DSCOMM_ERR_STATE ||
        dscomm_store_prefix(store, "p", &view) != DSCOMM_ERR_STATE)
        wrong |= USED;
    if (!strstr(dscomm_last_error(), "fork"))
        wrong |= NO_SENTENCE;
    dscomm_store_close(store);
    if (dscomm_store_open("memory://", NULL, &own) ||
        dscomm_store_set(own, "k", "v", 1))
        wrong |= OPENED_NONE;
    dscomm_store_close(own);
    return wrong;
}

/* Returns the exit status of a child that does so. */
static int in_child(dscomm_store_t *store)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(10);
        _exit(use_inherited(store));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        bail("fork failed");
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return WTERMSIG(status) == SIGALRM ? HUNG : DIED;
}

static void test_kind(const char *kind, const char *url)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL, *other = NULL;
    void *value = NULL;
    size_t size = 0;

    attr.serve = strncmp(url, "tcp:", 4) == 0;
    attr.timeout_ms = 5000;
    if (dscomm_store_open(url, &attr, &store))
        bail("%s: %s", url, dscomm_last_error());
    dscomm_store_set(store, "k", "parent", 6);
    is_int(in_child(store), 0, "%s: a child is refused, and closes it", kind);
    is_int(dscomm_store_get(store, "k", 1000, &value, &size), DSCOMM_OK,
           "%s: the parent goes on", kind);
    ok(size == 6 && memcmp(value, "parent", 6) == 0,
       "%s: with what it has stored", kind);
    dscomm_store_free(value);
    if (attr.serve) {
        attr.serve = 0;
        is_int(
            dscomm_store_open(url_of(dscomm_store_port(store)), &attr, &other),
            DSCOMM_OK, "%s: and serves new clients", kind);
        dscomm_store_close(other);
    }
    dscomm_store_close(store);
}

/* A child that lives on has copies of its parent's server sockets, but neither
 * keeps clients waiting nor the port in use. */
static void test_server_ends(void)
{
    dscomm_store_t *store = NULL, *other = NULL;
    char address[64];
    pid_t pid;

    if (open_store("tcp://127.0.0.1:0", NULL, 1, 3000, &store))
        bail("serve: %s", dscomm_last_error());
    snprintf(address, sizeof address, "%s", url_of(dscomm_store_port(store)));
    other = must_open_store(address, NULL, 0);
    pid = fork();
    if (pid == 0) {
        sleep(20);
        _exit(0);
    }
    dscomm_store_close(store);
    is_int(dscomm_store_wait(other, (const char *[]){"k"}, 1, 2000),
           DSCOMM_ERR_PEER_FAILED, "a child holds no client of a server");
    store = NULL;
    is_int(open_store(address, NULL, 1, 3000, &store), DSCOMM_OK,
           "nor its port");
    dscomm_store_close(store);
    dscomm_store_close(other);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A process that serves a store, and a child of it that lives on. */
typedef struct {
    pid_t pid, child;
    int port;
} host_t;

static void host(int fd)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;
    host_t self = {.pid = getpid()};

    attr.serve = 1;
    if (dscomm_store_open("tcp://127.0.0.1:0", &attr, &store))
        _exit(1);
    self.port = dscomm_store_port(store);
    if (write(fd, &self, sizeof self) != sizeof self)
        _exit(1);
    while (dscomm_store_wait(store, (const char *[]){"came"}, 1, 10000))
        ;
    self.child = fork();
    if (self.child && write(fd, &self, sizeof self) != sizeof self)
        _exit(1);
    for (;;)
        pause();
}

/* The same if the parent was killed. */
static void test_server_dies(void)
{
    dscomm_store_t *store = NULL;
    char address[64];
    host_t served;
    int fds[2];
    pid_t pid;

    if (pipe(fds) || (pid = fork()) < 0)
        bail("fork");
    if (pid == 0)
        host(fds[1]);
    if (read(fds[0], &served, sizeof served) != sizeof served)
        bail("no server");
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", served.port);
    if (dscomm_store_open(address, NULL, &store) ||
        dscomm_store_set(store, "came", "", 0))
        bail("open: %s", dscomm_last_error());
    if (read(fds[0], &served, sizeof served) != sizeof served)
        bail("no child");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    is_int(dscomm_store_wait(store, (const char *[]){"k"}, 1, 20000),
           DSCOMM_ERR_PEER_FAILED, "a child holds no client of a dead server");
    kill(served.child, SIGKILL);
    dscomm_store_close(store);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    char folder[] = "/tmp/dscomm-fork-XXXXXX", url[64], *path;

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(url, sizeof url, "file://%s/store", folder);
    path = url + strlen("file://");
    test_kind("memory", "memory://");
    test_kind("tcp", "tcp://127.0.0.1:0");
    test_kind("file", url);
    test_server_ends();
    test_server_dies();
    unlink(path);
    rmdir(folder);
    return tap_done();
}
