/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores at the limit of their size, which is small here, and servers whose
 * clients request more than there is room for. */
#include "tests/lib/store/fixture.h"

#include "lib/store/memory.h"

#include <sys/stat.h>

#define LIMIT 100000

static dscomm_status_t put(dscomm_priv_table_t *table, const char *key,
                           const void *value, size_t size)
{
    dscomm_priv_bytes_t *copy =
        dscomm_priv_budget_copy(&table->budget, value, size);
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;

    if (copy)
        status = dscomm_priv_table_set(table, dscomm_priv_data_text(key), copy);
    dscomm_priv_bytes_unref(copy);
    return status;
}

/* A key and a value count with 256 bytes each, besides their own. */
static void test_table(void)
{
    static const char value[1000];
    dscomm_priv_table_t own = {.budget.most = 4 * 1000}, *table = &own;
    dscomm_priv_budget_t *budget = &table->budget;
    const dscomm_priv_data_t key = {"/b", 2}, more = {value, 500};
    dscomm_priv_bytes_t *joined;
    int64_t sum;

    status_is(put(table, "/a", value, 1000), DSCOMM_OK, "a first value");
    is_int((long long)budget->used, 1000 + 2 + 512, "counts");
    status_is(put(table, "/a", value, 1000), DSCOMM_OK, "another in its place");
    is_int((long long)budget->used, 1000 + 2 + 512, "counts as one");
    status_is(put(table, "/b", value, 1000), DSCOMM_OK, "a second");
    status_is(put(table, "/c", value, 1000), DSCOMM_ERR_NO_MEMORY, "a third");
    error_says("full");
    status_is(dscomm_priv_table_join(table, key, more, &joined),
              DSCOMM_ERR_NO_MEMORY,
              "a longer value has no room beside the old one");
    is_int((long long)table->pairs.count, 2, "two are there");
    is_int((long long)budget->used, 2 * (1000 + 2 + 512), "and count");
    ok(dscomm_priv_table_remove(table, key), "one is removed");
    is_int((long long)budget->used, 1000 + 2 + 512, "and counts no more");
    status_is(dscomm_priv_table_sum(table, key, 7, &sum, &joined), DSCOMM_OK,
              "a sum has room again");
    dscomm_priv_bytes_unref(joined);
    is_int((long long)budget->used, 1000 + 2 + 512, "and is forgotten");
    dscomm_priv_table_clear(table);
}

/* Values that grow by pieces count like values that are set; the spare room
 * after them does not count, and the limit applies to what is put into it. */
static void test_pieces(void)
{
    static const char piece[100];
    dscomm_priv_table_t own = {.budget.most = 10 * (600 + 2 + 512)},
                        *table = &own;
    dscomm_priv_budget_t *budget = &table->budget;
    const dscomm_priv_data_t data = {piece, sizeof piece};
    char name[] = "/a";
    int failed = 0, more = 0;

    for (; *(name + 1) <= 'h'; (*(name + 1))++)
        for (int i = 0; i < 6; i++)
            failed += dscomm_priv_table_append(
                          table, dscomm_priv_data_text(name), data) < 0;
    is_int(failed, 0, "values that grow have room");
    is_int((long long)budget->used, 8 * (600 + 2 + 512), "and count");
    while (!dscomm_priv_table_append(table, dscomm_priv_data_text("/a"), data))
        more++;
    ok(more && budget->used <= budget->most, "no value grows beyond the limit");
    dscomm_priv_table_cut(table, dscomm_priv_data_text("/b"), data);
    is_int((long long)budget->used,
           8 * (600 + 2 + 512) + (more - 1) * (int)sizeof piece,
           "what is cut off counts no more");
    dscomm_priv_table_clear(table);
}

/* A record that would exceed the tables of other processes is not written. */
static dscomm_status_t change_file(dscomm_priv_store_t *file,
                                   dscomm_priv_command_t command,
                                   const char *key, dscomm_priv_data_t value)
{
    dscomm_priv_request_t request = {.command = command,
                                     .deadline = dscomm_priv_deadline(1000),
                                     .keys = &key,
                                     .count = 1,
                                     .value = value};

    return file->ops->execute(file, &request);
}

static void test_file(void)
{
    static const char bytes[LIMIT];
    const dscomm_priv_data_t third = {bytes, 30000}, none = {NULL, 0};
    const dscomm_store_attr_t attr = {.timeout_ms = 1000, .world_size = 1};
    char path[] = "/tmp/dscomm-full-XXXXXX";
    dscomm_priv_store_t *file;
    struct stat before, after;
    int fd = mkstemp(path);

    if (fd < 0 || dscomm_priv_store_file(path, &attr, &file))
        bail("%s", path);
    ((dscomm_priv_local_t *)file)->table.budget.most = LIMIT;
    status_is(change_file(file, STORE_SET, "/a", third), DSCOMM_OK,
              "a third of a file");
    fstat(fd, &before);
    status_is(change_file(file, STORE_SET, "/b", third), DSCOMM_ERR_NO_MEMORY,
              "another");
    fstat(fd, &after);
    is_int(after.st_size, before.st_size, "nothing is written");
    status_is(change_file(file, STORE_DELETE, "/a", none), DSCOMM_OK,
              "but removals are");
    status_is(change_file(file, STORE_SET, "/b", third), DSCOMM_OK,
              "which make room");
    file->ops->close(file);
    is_int(access(path, F_OK), -1, "counters fit in a full file, too");
    close(fd);
}

/* The client's calls at a server that is full. */
static void test_client(int port)
{
    static const char value[LIMIT];
    const char *keys[] = {"large"};
    dscomm_store_t *store = NULL;
    int present = 0;
    void *got = NULL;
    size_t size = 0;
    int64_t sum = 0;

    store = must_open_store(url_of(port), NULL, 0);
    status_is(dscomm_store_set(store, "n", "1", 1), DSCOMM_OK, "a counter");
    status_is(dscomm_store_set(store, "large", value, 97000), DSCOMM_OK,
              "a store that is nearly full");
    status_is(dscomm_store_set(store, "more", value, 9000),
              DSCOMM_ERR_NO_MEMORY, "set");
    ok(strstr(dscomm_last_error(), "full") &&
           strstr(dscomm_last_error(), "'more'"),
       "%s", dscomm_last_error());
    status_is(
        dscomm_store_compare_set(store, "more", "", 0, value, 9000, NULL, NULL),
        DSCOMM_ERR_NO_MEMORY, "compare_set");
    status_is(dscomm_store_append(store, "more", value, 9000),
              DSCOMM_ERR_NO_MEMORY, "append");
    error_says("full");
    status_is(dscomm_store_add(store, "n", 1, &sum), DSCOMM_OK, "add");
    is_int(sum, 2, "to what is there");
    status_is(dscomm_store_check(store, keys, 1, &present), DSCOMM_OK, "check");
    status_is(dscomm_store_get(store, "large", 1000, &got, &size), DSCOMM_OK,
              "get");
    is_int((long long)size, 97000, "it is whole");
    dscomm_store_free(got);
    status_is(dscomm_store_delete(store, "large", NULL), DSCOMM_OK, "delete");
    status_is(dscomm_store_set(store, "more", value, 9000), DSCOMM_OK,
              "makes room");
    dscomm_store_close(store);
}

/* Raw commands that would exceed the limit end their connection. */
static void test_commands(void)
{
    enum { SET = 1, ADD = 4, MULTI_SET = 11, QUEUE_PUSH = 14, BARRIER = 18 };
    static const int commands[] = {SET, ADD, MULTI_SET, QUEUE_PUSH, BARRIER};
    const dscomm_priv_server_limits_t limits = {.kept = LIMIT};

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        int port, sent, fd;
        dscomm_priv_server_t *server = start_server(&limits, NULL, &port);

        fd = raw_client(port);
        for (sent = 0; sent < 2 * LIMIT / 512; sent++) {
            raw_t raw = {.size = 0};
            char key[16];
            uint8_t echo[8];

            snprintf(key, sizeof key, "/%d", sent);
            raw_put(&raw, (uint64_t)commands[i], 1);
            if (commands[i] == MULTI_SET)
                raw_put(&raw, 1, 8);
            raw_text(&raw, key);
            if (commands[i] == ADD || commands[i] == BARRIER)
                raw_put(&raw, 1, 8);
            else
                raw_text(&raw, "");
            if (commands[i] != ADD && commands[i] != BARRIER)
                raw_ping(&raw, 1);
            raw_send(fd, raw.data, raw.size);
            if (raw_recv(fd, echo,
                         commands[i] == ADD       ? 8
                         : commands[i] == BARRIER ? 1
                                                  : 4,
                         WAIT_MS) <= 0)
                break;
        }
        ok(sent > LIMIT / 600, "command %d: %d keys had room", commands[i],
           sent);
        ok(sent < 2 * LIMIT / 512, "command %d: the rest was refused",
           commands[i]);
        close(fd);
        ok(is_alive(port), "others are served");
        dscomm_priv_server_close(server);
    }
}

/* Incomplete requests: the server accepts some, and goes on with small ones. */
static void test_requests(void)
{
    enum { CLIENTS = 12, PART = 40000 };
    const dscomm_priv_server_limits_t limits = {.under_way = 5 * PART};
    static raw_t raw;
    int port, fds[CLIENTS], closed = 0;
    dscomm_priv_server_t *server = start_server(&limits, NULL, &port);

    raw_put(&raw, 1, 1);
    raw_text(&raw, "/k");
    raw_put(&raw, 1 << 20, 8);
    memset(raw.data + raw.size, 'x', PART);
    raw.size += PART;
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = raw_client(port);
        raw_send(fds[i], raw.data, raw.size);
    }
    for (int i = 0; i < CLIENTS; i++)
        closed += raw_closes(fds[i], 100);
    ok(closed >= CLIENTS - 5 && closed < CLIENTS,
       "%d of %d large requests are refused", closed, CLIENTS);
    ok(is_alive(port), "small ones are not");
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    usleep(100000);
    fds[0] = raw_client(port);
    raw_send(fds[0], raw.data, raw.size);
    ok(!raw_closes(fds[0], 200), "there is room when they have left");
    close(fds[0]);
    dscomm_priv_server_close(server);
}

/* Small requests with large answers, and waits for many keys. */
static void test_answers(int port)
{
    enum { ASKS = 3000, WAITS = 2000 };
    static uint8_t value[4000];
    static raw_t raw;
    int fd, setter;

    setter = raw_client(port);
    raw_put(&raw, 1, 1);
    raw_text(&raw, "/k");
    raw_put(&raw, sizeof value, 8);
    memcpy(raw.data + raw.size, value, sizeof value);
    raw.size += sizeof value;
    is_int(raw_echo(setter, &raw, 5), 5, "a value is set");
    raw_put(&raw, 10, 1);
    raw_put(&raw, ASKS, 8);
    for (int i = 0; i < ASKS; i++)
        raw_text(&raw, "/k");
    fd = raw_client(port);
    raw_flush(fd, &raw);
    ok(raw_closes(fd, WAIT_MS), "12 MB of answers are refused");
    close(fd);
    raw_put(&raw, 6, 1);
    raw_put(&raw, WAITS, 8);
    for (int i = 0; i < WAITS; i++) {
        char key[16];

        snprintf(key, sizeof key, "/%d", i);
        raw_text(&raw, key);
    }
    fd = raw_client(port);
    raw_flush(fd, &raw);
    ok(raw_closes(fd, WAIT_MS), "so are waits for %d keys", WAITS);
    close(fd);
    raw_command(&raw, 3, "/k", NULL, NULL);
    raw_send(setter, raw.data, raw.size);
    is_int(raw_recv(setter, raw.data, sizeof value + 8, WAIT_MS),
           sizeof value + 8, "others get what they ask for");
    close(setter);
}

int main(void)
{
    test_table();
    test_pieces();
    test_file();
    with_server(&(dscomm_priv_server_limits_t){.kept = LIMIT}, test_client);
    test_commands();
    test_requests();
    with_server(&(dscomm_priv_server_limits_t){.under_way = 1 << 20},
                test_answers);
    return tap_done();
}
