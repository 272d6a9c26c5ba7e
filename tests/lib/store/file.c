/* SPDX-License-Identifier: BSD-3-Clause */
/* The file store: torch's format byte by byte; files that are damaged, locked,
 * removed or left over. */
#include "config.h"

#include <dscomm/store.h>

#include "lib/store/store.h"
#include "tests/lib/store/fixture.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char path[64], url[80];

static dscomm_status_t open_for(int world_size, int timeout_ms,
                                dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    attr.world_size = world_size;
    attr.timeout_ms = timeout_ms;
    return dscomm_store_open(url, &attr, ret_store);
}

static void write_file(const void *data, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        bail("cannot write %s", path);
    close(fd);
}

static void append_file(const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        bail("cannot append to %s", path);
    close(fd);
}

static size_t read_file(char *data, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, data, size);

    if (fd >= 0)
        close(fd);
    return got < 0 ? 0 : (size_t)got;
}

#define RECORD(key_length, key, value_length, value)                           \
    RAW_LENGTH(key_length) key RAW_LENGTH(value_length) value

/* The bytes that torch 2.15's FileStore writes for: open, set a=x, add n 5,
 * delete a. */
static const char by_torch[] =
    RECORD("\11", "refcount/", "\1", "1") RECORD("\2", "/a", "\1", "x")
        RECORD("\2", "/n", "\1", "5") RECORD("\3", "-/a", "\0", "");

static void test_reads_torch(void)
{
    dscomm_store_t *store = NULL;
    const char *key = "a";
    int64_t count = -1;
    int present = -1;
    void *value;
    size_t size;

    write_file(BYTES(by_torch));
    status_is(open_for(0, 1000, &store), DSCOMM_OK, "open torch's file");
    status_is(dscomm_store_get(store, "n", 0, &value, &size), DSCOMM_OK,
              "its key");
    ok(size == 1 && *(char *)value == '5', "its value");
    dscomm_store_free(value);
    dscomm_store_check(store, &key, 1, &present);
    is_int(present, 0, "what it deleted is gone");
    dscomm_store_num_keys(store, &count);
    is_int(count, 1, "counters are no keys");
    append_file(BYTES(RECORD("\2", "/b", "\2", "yy")));
    status_is(dscomm_store_get(store, "b", 1000, &value, &size), DSCOMM_OK,
              "what it sets later");
    ok(size == 2 && memcmp(value, "yy", 2) == 0, "its value");
    dscomm_store_free(value);
    dscomm_store_close(store);
    unlink(path);
}

static void test_writes_as_torch(void)
{
    static const char want[] = RECORD("\6", "users/", "\1", "1")
        RECORD("\11", "refcount/", "\1", "1") RECORD("\2", "/a", "\1", "x")
            RECORD("\2", "/n", "\1", "5") RECORD("\3", "-/a", "\0", "")
                RECORD("\10", "cleanup/", "\1", "1")
                    RECORD("\11", "refcount/", "\1", "0");
    dscomm_store_t *store = NULL;
    struct stat info;
    char got[512];
    size_t size;

    status_is(open_for(2, 1000, &store), DSCOMM_OK, "open a new file");
    ok(stat(path, &info) == 0 && (info.st_mode & 0177) == 0,
       "its mode is no wider than 0600");
    dscomm_store_set(store, "a", "x", 1);
    dscomm_store_add(store, "n", 5, NULL);
    dscomm_store_delete(store, "a", NULL);
    dscomm_store_delete(store, "never", NULL);
    dscomm_store_close(store);
    size = read_file(got, sizeof got);
    ok(size == sizeof want - 1 && memcmp(got, want, size) == 0,
       "the file is as torch would write it (%zu bytes)", size);
    unlink(path);
}

/* Each record is read at open, and again after a valid beginning. */
static void test_damaged(void)
{
    static const struct {
        const char *name, *bytes;
        size_t size;
        const char *offset; /* position that the sentence gives */
    } rows[] = {
        {"a text file", BYTES("hello, this is no store\n"), "byte 0"},
        {"a length alone", BYTES(RAW_LENGTH("\2")), "byte 0"},
        {"half a length", BYTES("\2\0"), "byte 0"},
        {"half a key", BYTES(RAW_LENGTH("\5") "/ab"), "byte 0"},
        {"no value", BYTES(RAW_LENGTH("\2") "/a"), "byte 0"},
        {"half a value", BYTES(RECORD("\2", "/a", "\5", "xy")), "byte 0"},
        {"a good record and half a one",
         BYTES(RECORD("\2", "/a", "\1", "x") RAW_LENGTH("\2") "/b\1"),
         "byte 11"},
        {"a key beyond its limit", BYTES(RAW_U32("\2", "\40", "\0") "/a"),
         "byte 0"},
        {"a value beyond its limit",
         BYTES(RAW_LENGTH("\2") "/a" RAW_U32("\1", "\0", "\200") "x"),
         "byte 6"},
        {"a value of 4 GiB", BYTES(RAW_LENGTH("\2") "/a\377\377\377\377x"),
         "byte 6"},
        {"an empty key", BYTES(RECORD("\0", "", "\1", "x")), "byte 0"},
        {"a counter that is no number",
         BYTES(RECORD("\6", "users/", "\3", "two")), "users/"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dscomm_store_t *store = NULL;
        void *value;
        size_t size;

        write_file(rows[i].bytes, rows[i].size);
        status_is(open_for(0, 300, &store), DSCOMM_ERR_PROTOCOL, rows[i].name);
        ok(!store && strstr(dscomm_last_error(), path) &&
               strstr(dscomm_last_error(), rows[i].offset),
           "%s: %s", rows[i].name, dscomm_last_error());
        unlink(path);
        if (!strncmp(rows[i].offset, "users", 5))
            continue;
        status_is(open_for(0, 300, &store), DSCOMM_OK, "a good file");
        append_file(rows[i].bytes, rows[i].size);
        status_is(dscomm_store_get(store, "z", 300, &value, &size),
                  DSCOMM_ERR_PROTOCOL, rows[i].name);
        status_is(dscomm_store_set(store, "z", "", 0), DSCOMM_ERR_PROTOCOL,
                  "and nothing is written behind it");
        dscomm_store_close(store);
        unlink(path);
    }
}

static void test_shorter(void)
{
    dscomm_store_t *store = NULL;

    status_is(open_for(0, 300, &store), DSCOMM_OK, "open");
    if (truncate(path, 3) != 0)
        bail("truncate");
    status_is(dscomm_store_add(store, "n", 1, NULL), DSCOMM_ERR_PROTOCOL,
              "a file that becomes shorter");
    dscomm_store_close(store);
    unlink(path);
}

static void test_removed(void)
{
    dscomm_store_t *store = NULL;
    void *value;
    size_t size;

    status_is(open_for(0, 300, &store), DSCOMM_OK, "open");
    unlink(path);
    status_is(dscomm_store_set(store, "a", "b", 1), DSCOMM_ERR_NOT_FOUND,
              "a file that is removed meanwhile");
    status_is(dscomm_store_get(store, "a", 5000, &value, &size),
              DSCOMM_ERR_NOT_FOUND, "is not waited for");
    dscomm_store_close(store);
    ok(access(path, F_OK) != 0, "closing does not bring it back");
}

static void test_left_over(void)
{
    dscomm_store_t *a = NULL, *b = NULL, *c = NULL;

    status_is(open_for(2, 300, &a), DSCOMM_OK, "the first of two users");
    dscomm_store_set(a, "k", "old", 3);
    dscomm_store_close(a);
    ok(access(path, F_OK) == 0, "the file stays for the second");
    status_is(open_for(2, 300, &b), DSCOMM_OK, "the second of two");
    status_is(open_for(2, 300, &c), DSCOMM_ERR_STATE, "a third");
    error_says("earlier run");
    dscomm_store_close(b);
    ok(access(path, F_OK) != 0, "the second has removed it");
    status_is(open_for(2, 300, &c), DSCOMM_OK, "a new run");
    status_is(dscomm_store_wait(c, (const char *[]){"k"}, 1, 0),
              DSCOMM_ERR_TIMEOUT, "sees nothing of the old one");
    dscomm_store_close(c);
    unlink(path);
}

/* Opening the link at path fails, and its target is unchanged. */
static void refuse_link(const char *to, const char *what)
{
    dscomm_store_t *store = NULL;

    if (symlink(to, path) != 0)
        bail("cannot link %s", path);
    status_is(open_for(0, 300, &store), DSCOMM_ERR_INVALID, what);
    ok(!store && strstr(dscomm_last_error(), "symbolic link") != NULL, "%s",
       dscomm_last_error());
    unlink(path);
}

static void test_links(void)
{
    char other[sizeof path + 8];
    struct stat info;
    int fd;

    snprintf(other, sizeof other, "%s-other", path);
    refuse_link(other, "a link to a file that is absent");
    ok(access(other, F_OK) != 0, "which is not created");
    fd = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    refuse_link(other, "a link to an empty file");
    ok(stat(other, &info) == 0 && info.st_size == 0, "which stays empty");
    unlink(other);
}

/* The kernel refuses the second open by itself if fs.protected_regular is set.
 */
static void test_foreign(const char *folder)
{
    dscomm_store_t *store = NULL;
    dscomm_status_t status;

    if (geteuid() != 0) {
        skip("needs root, to make files of another user");
        return;
    }
    write_file("", 0);
    if (chown(path, 65534, 65534) != 0)
        bail("cannot chown %s", path);
    status_is(open_for(0, 300, &store), DSCOMM_OK,
              "another user's file in a folder of one's own");
    dscomm_store_close(store);
    store = NULL;
    write_file("", 0);
    if (chmod(folder, 01777) != 0)
        bail("cannot chmod %s", folder);
    status = open_for(0, 300, &store);
    ok(status == DSCOMM_ERR_INVALID || status == DSCOMM_ERR_IO,
       "another user's file in a folder of everybody: status %d", status);
    ok(!store && strstr(dscomm_last_error(), path) != NULL, "%s",
       dscomm_last_error());
    unlink(path);
    status_is(open_for(0, 300, &store), DSCOMM_OK, "one's own file there");
    dscomm_store_close(store);
    unlink(path);
    chmod(folder, 0700);
}

/* Another process keeps the lock: calls end at their deadline. */
static void test_locked(void)
{
    dscomm_store_t *store = NULL;
    double start;
    int fd;

    status_is(open_for(0, 200, &store), DSCOMM_OK, "open");
    fd = open(path, O_RDWR | O_CLOEXEC);
    flock(fd, LOCK_EX);
    start = raw_now_ms();
    status_is(dscomm_store_set(store, "a", "b", 1), DSCOMM_ERR_TIMEOUT,
              "a lock that is kept");
    ok(raw_now_ms() - start < 5000, "in %.0f ms", raw_now_ms() - start);
    close(fd);
    status_is(dscomm_store_set(store, "a", "b", 1), DSCOMM_OK,
              "and one that is given back");
    dscomm_store_close(store);
    unlink(path);
}

/* If there is no room for a record, no part of it is written. */
static void test_no_room(void)
{
    static const char value[10000];
    dscomm_store_t *store = NULL;
    struct rlimit old, tight;
    struct stat before, after;

    status_is(open_for(0, 300, &store), DSCOMM_OK, "open");
    getrlimit(RLIMIT_FSIZE, &old);
    tight = old;
    tight.rlim_cur = 8192;
    setrlimit(RLIMIT_FSIZE, &tight);
    stat(path, &before);
    status_is(dscomm_store_set(store, "a", value, sizeof value), DSCOMM_ERR_IO,
              "a file that may not grow so far");
    stat(path, &after);
    is_int(after.st_size, before.st_size, "is as before");
    status_is(dscomm_store_set(store, "a", value, 100), DSCOMM_OK,
              "and takes less");
    setrlimit(RLIMIT_FSIZE, &old);
    dscomm_store_close(store);
    unlink(path);
}

/* Processes that count, append and leave; nothing is lost. */
static void test_processes(void)
{
    enum { PROCESSES = 4, ADDS = 50 };
    dscomm_store_t *store = NULL;
    int64_t sum = -1;
    int failed = 0;

    status_is(open_for(PROCESSES + 1, 10000, &store), DSCOMM_OK, "open");
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            dscomm_store_t *own;
            int wrong = open_for(PROCESSES + 1, 10000, &own) != DSCOMM_OK;

            for (int j = 0; j < ADDS && !wrong; j++)
                wrong = dscomm_store_add(own, "sum", 1, NULL) != DSCOMM_OK;
            if (!wrong)
                dscomm_store_close(own);
            _exit(wrong);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 1;

        wait(&status);
        failed += status != 0;
    }
    is_int(failed, 0, "all processes ended well");
    dscomm_store_add(store, "sum", 0, &sum);
    is_int(sum, PROCESSES * ADDS, "none of their adds is lost");
    dscomm_store_close(store);
    ok(access(path, F_OK) != 0, "the last one has removed the file");
}

/* Opens the anonymous file fd as another process would, that is for itself. */
static dscomm_store_t *open_again(int fd, int *ret_own)
{
    char name[32];
    dscomm_store_t *store = NULL;

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    *ret_own = open(name, O_RDWR | O_CLOEXEC);
    if (*ret_own < 0 || dscomm_priv_store_open_anonymous(*ret_own, &store))
        bail("cannot open %s", name);
    return store;
}

static void test_anonymous(void)
{
    const uint32_t length = 40; /* of a key of which only a part follows */
    char torn[10] = "";
    int fd = memfd_create("dscomm-test", MFD_CLOEXEC), fds[2];
    dscomm_store_t *stores[2];
    struct stat before, after;
    void *value = NULL;
    size_t size;

    if (fd < 0)
        bail("no memfd");
    stores[0] = open_again(fd, &fds[0]);
    stores[1] = open_again(fd, &fds[1]);
    is_int(dscomm_store_set(stores[0], "a", "x", 1), DSCOMM_OK,
           "a store in a file without a name");
    is_int(dscomm_store_get(stores[1], "a", 1000, &value, &size), DSCOMM_OK,
           "  which another user reads");
    dscomm_store_free(value);
    fstat(fd, &before);
    memcpy(torn, &length, sizeof length);
    is_int(pwrite(fd, torn, sizeof torn, before.st_size), sizeof torn,
           "  and whose writer dies");
    is_int(dscomm_store_get(stores[1], "a", 1000, &value, &size), DSCOMM_OK,
           "  can still be read");
    dscomm_store_free(value);
    is_int(dscomm_store_set(stores[1], "a", "yy", 2), DSCOMM_OK,
           "  and written");
    is_int(dscomm_store_get(stores[0], "a", 1000, &value, &size), DSCOMM_OK,
           "  by everybody");
    is_int(size, 2, "  with the new value");
    dscomm_store_free(value);
    fstat(fd, &after);
    is_int(after.st_size, before.st_size + 4 + 2 + 4 + 2,
           "  in place of the torn record");
    dscomm_store_close(stores[0]);
    dscomm_store_close(stores[1]);
    close(fd);
}

int main(void)
{
    char folder[] = "/tmp/dscomm-file-XXXXXX";

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(path, sizeof path, "%s/store", folder);
    snprintf(url, sizeof url, "file://%s", path);
    test_reads_torch();
    test_writes_as_torch();
    test_damaged();
    test_shorter();
    test_removed();
    test_left_over();
    test_links();
    test_foreign(folder);
    test_locked();
    test_no_room();
    test_processes();
    test_anonymous();
    rmdir(folder);
    return tap_done();
}
