/* SPDX-License-Identifier: BSD-3-Clause */
/* Last wills without a server: the bytes that a client sends when two threads
 * give and withdraw a will, and what is kept of clients that have died. */
#include "config.h"

#include "lib/store/tcp/connect.h"
#include "lib/store/tcp/session.h"

#include "tests/lib/store/raw.h"
#include "tests/tap.h"

#include <pthread.h>

#define WAIT_MS 5000
#define NONCE 0x3B1CF02D /* of the PING after the wills */

/* Connects link to this test, which acts as its server; returns the other
 * end. */
static int link_to_test(dscomm_priv_link_t *link)
{
    int fds[2];

    if (!link || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
        bail("socketpair");
    link->fd = fds[0];
    link->server[0] = WIRE_NAMED_ITSELF;
    return fds[1];
}

/* Appends wills to raw, up to the PING after them. */
static void read_wills(int fd, raw_t *raw)
{
    const uint32_t nonce = NONCE;
    const size_t start = raw->size;

    while (raw->size < start + 4 ||
           memcmp(raw->data + raw->size - 4, &nonce, 4)) {
        if (raw->size == RAW_MAX ||
            raw_recv(fd, raw->data + raw->size, 1, WAIT_MS) != 1)
            bail("no wills");
        raw->size++;
    }
}

static void answer_wills(int fd)
{
    const uint32_t nonce = NONCE;

    raw_send(fd, &nonce, sizeof nonce);
}

static void give_will(dscomm_priv_link_t *first, const char *value)
{
    if (dscomm_priv_link_give_will(first, "/died", dscomm_priv_data_text(value),
                                   dscomm_priv_deadline(WAIT_MS)))
        bail("%s", dscomm_last_error());
}

static void *give_old(void *first)
{
    give_will(first, "old");
    return NULL;
}

static void *give_new(void *first)
{
    give_will(first, "new");
    return NULL;
}

static pthread_t start(void *(*function)(void *), void *first)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, function, first))
        bail("no thread");
    return thread;
}

/* Returns the bytes that withdraw the will for /died, or give it with value. */
static const uint8_t *find_will(const raw_t *raw, const char *value)
{
    static raw_t will;

    will.size = 0;
    raw_text(&will, "/died");
    raw_text(&will, value);
    return memmem(raw->data, raw->size, will.data, will.size);
}

/* A server may read two connections in any order. So no connection withdraws or
 * replaces a will before the server has answered on the connection that gives
 * it. */
static void test_two_connections(void)
{
    dscomm_priv_link_t first, *second;
    pthread_t one, other;
    static raw_t raw;
    char byte;
    int fds[2];

    if (!dscomm_priv_link_init(&first, "localhost", 1, NULL, NULL))
        bail("no memory");
    fds[0] = link_to_test(dscomm_priv_link_choose(&first, TRUE));
    second = dscomm_priv_link_choose(&first, FALSE);
    fds[1] = link_to_test(second);
    dscomm_priv_link_release(second);
    one = start(give_old, &first);
    read_wills(fds[1], &raw);
    dscomm_priv_link_release(&first);
    dscomm_priv_link_withdraw_will(&first, "/died");
    ok(recv(fds[0], &byte, 1, MSG_DONTWAIT) < 0,
       "while one connection gives a will another one does not withdraw it");
    ok(!dscomm_priv_own_wills_settled(&first), "and the client knows that");
    other = start(give_new, &first);
    answer_wills(fds[1]);
    raw.size = 0;
    do {
        read_wills(fds[0], &raw);
        answer_wills(fds[0]);
    } while (!find_will(&raw, "new"));
    ok(find_will(&raw, "") && find_will(&raw, "") < find_will(&raw, "new"),
       "then the other one withdraws it, and gives the next one");
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    ok(dscomm_priv_own_wills_settled(&first), "the server knows all");
    dscomm_priv_link_clear(&first);
    close(fds[0]);
    close(fds[1]);
}

/* Clients that have died, without a server. */

typedef struct {
    dscomm_priv_table_t table;
    dscomm_priv_waiters_t waiters;
    dscomm_priv_wills_t wills;
    /* names of the clients, and keys of their wills */
    dscomm_priv_bytes_t *name;
    dscomm_priv_bytes_t *client; /* of the connection */
} dead_t;

static void dead_init(dead_t *dead)
{
    *dead = (dead_t){.table.budget.most = (size_t)1 << 30};
    dead->wills.table = &dead->table;
    dead->wills.waiters = &dead->waiters;
}

static void dead_clear(dead_t *dead)
{
    dscomm_priv_bytes_unref(dead->name);
    dscomm_priv_wills_clear(&dead->wills);
    dscomm_priv_waiters_clear(&dead->waiters);
    dscomm_priv_table_clear(&dead->table);
}

static void name_client(dead_t *dead, int i)
{
    char name[16];

    snprintf(name, sizeof name, "%d", i);
    dscomm_priv_bytes_unref(dead->name);
    dead->name =
        dscomm_priv_budget_copy(&dead->table.budget, name, strlen(name));
    if (!dead->name ||
        !dscomm_priv_wills_join(&dead->wills, &dead->client, dead->name))
        bail("no memory");
}

static void die(dead_t *dead, int i)
{
    name_client(dead, i);
    if (dscomm_priv_wills_give(&dead->wills, dead->name->data, dead->name,
                               dead->name))
        bail("no will");
    dscomm_priv_wills_leave(&dead->wills, &dead->client, true);
}

/* Client i connects again. Returns whether its note is still there. */
static bool stays(dead_t *dead, int i)
{
    name_client(dead, i);
    return dscomm_priv_table_get(&dead->table, dead->name->data) != NULL;
}

/* Client i dies, with a will for key. Returns the value of key afterwards. */
static const dscomm_priv_bytes_t *die_for(dead_t *dead, int i,
                                          dscomm_priv_bytes_t *key)
{
    name_client(dead, i);
    if (dscomm_priv_wills_give(&dead->wills, dead->name->data, key, key))
        bail("no will");
    dscomm_priv_wills_leave(&dead->wills, &dead->client, true);
    dscomm_priv_wills_carry_out(&dead->wills, G_MAXINT64);
    return dscomm_priv_table_get(&dead->table, key->data);
}

/* Thousands of deaths under one key copy its value a few times, not once for
 * each. */
static void test_one_key(void)
{
    enum { CLIENTS = 4096 };
    dead_t dead;
    dscomm_priv_bytes_t *key, *kept = NULL;
    const dscomm_priv_bytes_t *value = NULL;
    int copies = 0;

    dead_init(&dead);
    key = dscomm_priv_budget_copy(&dead.table.budget, "0123456789abcde\n", 16);
    for (int i = 0; i < CLIENTS; i++) {
        const dscomm_priv_bytes_t *now = die_for(&dead, i, key);

        copies += now != value;
        value = now;
    }
    is_int((long)value->data.size, 16 * CLIENTS, "each will is there");
    ok(copies <= 13, "%d deaths copy the value %d times", CLIENTS, copies);
    kept = dscomm_priv_bytes_ref((dscomm_priv_bytes_t *)value);
    value = die_for(&dead, CLIENTS, key);
    ok(value != kept && kept->data.size == 16 * CLIENTS &&
           value->data.size == 16 * (CLIENTS + 1),
       "a value that is being sent stays as it is");
    dscomm_priv_table_cut(&dead.table, key->data, key->data);
    is_int((long)value->data.size, 16 * CLIENTS, "a will is taken out again");
    ok(!memcmp(value->own, kept->own, kept->data.size), "and no other one");
    dscomm_priv_bytes_unref(kept);
    dscomm_priv_bytes_unref(key);
    dead_clear(&dead);
}

static void test_kept(void)
{
    dead_t dead;

    dead_init(&dead);
    for (int i = 0; i <= WILL_KEPT_MAX; i++)
        die(&dead, i);
    dscomm_priv_wills_carry_out(&dead.wills, dscomm_priv_clock() +
                                                 WILL_GRACE_MS * NS_PER_MS);
    is_int((long)dead.table.pairs.count, WILL_KEPT_MAX + 1,
           "all wills are carried out");
    ok(stays(&dead, 0), "the oldest client is forgotten, its note is not");
    ok(!stays(&dead, 1), "the next one comes back, and its note goes");
    ok(!stays(&dead, WILL_KEPT_MAX), "so does that of the last one");
    dscomm_priv_wills_leave(&dead.wills, &dead.client, false);
    dead_clear(&dead);
}

int main(void)
{
    test_two_connections();
    test_kept();
    test_one_key();
    return tap_done();
}
