/* SPDX-License-Identifier: BSD-3-Clause */
/* Strangers send valid and invalid frames of every kind to a store's server,
 * while a client uses it. The client's keys stay as they are, no stranger gets
 * a byte of them, and the server answers to the end with bounded memory.
 *
 *     tests/lib/store/frames.t [FRAMES [SEED]]
 *
 * FRAMES frames are sent to a server without a secret, and as many to one with
 * a secret. */
#include "tests/lib/store/fixture.h"

#include <dscomm/log.h>
#include <dscomm/store.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRANGERS 3
#define FRAMES 20000 /* by default */
#define BATCH 64 /* most frames of a connection */
#define HONEST_KEYS 8
/* contained in all values of the client, and nowhere else */
#define MARK "HONEST--"
/* More than millions of frames need, because a full store closes connections:
 * SET has no answer. */
#define KEPT ((size_t)24 << 20)
/* twice KEPT, and the memory that malloc() keeps */
#define GROWTH_MAX_KB (64 << 10)
#define SECRET "sixteen letters."

enum {
    SET = 1,
    COMPARE_SET = 2,
    ADD = 4,
    CHECK = 5,
    NUM_KEYS = 7,
    DELETE = 8,
    APPEND = 9,
    MULTI_SET = 11,
    PING = 13,
    QUEUE_PUSH = 14,
    QUEUE_POP = 15,
    QUEUE_LEN = 16,
    LIST_KEYS = 17,
    CHALLENGE = 64,
    PROOF = 65,
    WILL = 66,
    CREDENTIAL = 67,
};

typedef struct {
    pthread_t thread;
    int port, guarded;
    long frames; /* to send */
    uint32_t state;
    /* results */
    long connections, answered, leaks, unanswered;
    raw_t raw;
} stranger_t;

static atomic_int running;

static uint32_t draw(stranger_t *self, uint32_t below)
{
    self->state ^= self->state << 13;
    self->state ^= self->state >> 17;
    self->state ^= self->state << 5;
    return self->state % below;
}

/* Frames that the server executes */

static void put_bytes(stranger_t *self, size_t size)
{
    raw_put(&self->raw, size, 8);
    memset(self->raw.data + self->raw.size, (int)('a' + draw(self, 26)), size);
    self->raw.size += size;
}

static void put_key(stranger_t *self)
{
    char key[16];

    snprintf(key, sizeof key, "/k%u", draw(self, 32));
    raw_text(&self->raw, draw(self, 16) ? key : "");
}

static size_t some_size(stranger_t *self)
{
    return draw(self, 8) ? draw(self, 100) : draw(self, 8000);
}

static void put_nonce(stranger_t *self, size_t size)
{
    for (size_t i = 0; i < size; i++)
        raw_put(&self->raw, draw(self, 256), 1);
}

static void put_queue(stranger_t *self)
{
    const char *key = draw(self, 2) ? "/q1" : "/q2";

    raw_text(&self->raw, key);
    put_bytes(self, some_size(self));
    raw_put(&self->raw, QUEUE_POP, 1);
    raw_text(&self->raw, key);
}

/* The fields after a command byte: k key, n key of a number, v value, s short
 * value, i integer, 1 a count of one, o nonce, p proof, u 32 bits, Q a queue's
 * key, a value, and the command that removes the value, so that it never
 * waits. */
static void put_fields(stranger_t *self, const char *fields)
{
    for (; *fields; fields++) {
        if (*fields == 'k')
            put_key(self);
        else if (*fields == 'v')
            put_bytes(self, some_size(self));
        else if (*fields == 's')
            put_bytes(self, draw(self, 100));
        else if (*fields == 'n')
            raw_text(&self->raw, "/number");
        else if (*fields == 'Q')
            put_queue(self);
        else if (*fields == '1')
            raw_put(&self->raw, 1, 8);
        else if (*fields == 'i')
            raw_put(&self->raw, draw(self, 1000), 8);
        else
            put_nonce(self, *fields == 'u' ? 4 : *fields == 'o' ? 16 : 32);
    }
}

static void put_good(stranger_t *self)
{
    static const struct {
        int command;
        const char *fields;
    } rows[] = {
        /* the first three also before a proof */
        {PING, "u"},      {CHALLENGE, "o"},     {CREDENTIAL, ""},
        {SET, "kv"},      {COMPARE_SET, "kvv"}, {ADD, "ni"},
        {CHECK, "1k"},    {NUM_KEYS, ""},       {DELETE, "k"},
        {APPEND, "kv"},   {MULTI_SET, "1kv"},   {QUEUE_PUSH, "Q"},
        {QUEUE_LEN, "k"}, {LIST_KEYS, ""},      {WILL, "oks"},
    };
    const uint32_t count =
        self->guarded ? 3 : (uint32_t)(sizeof rows / sizeof *rows);
    const uint32_t i = draw(self, count);

    raw_put(&self->raw, (uint64_t)rows[i].command, 1);
    put_fields(self, rows[i].fields);
}

/* Frames that end the connection, or wait. */

static uint64_t extreme(stranger_t *self)
{
    static const uint64_t sizes[] = {
        UINT64_MAX,        UINT64_MAX - 7,          (uint64_t)1 << 63,
        (uint64_t)1 << 32, ((uint64_t)1 << 31) - 1, (64 << 20) + 1,
        (64 << 20),        (128 << 10) + 1,         UINT64_MAX / 2,
    };

    return sizes[draw(self, sizeof sizes / sizeof *sizes)];
}

/* A known or unknown command, with invalid sizes and counts. */
static void put_bad(stranger_t *self)
{
    const uint32_t kind = draw(self, 5);

    raw_put(&self->raw, draw(self, kind ? 70 : 256), 1);
    if (kind == 0) {
        put_nonce(self, 1 + draw(self, 64));
    } else if (kind == 1) {
        raw_put(&self->raw, extreme(self), 8);
        put_nonce(self, draw(self, 64));
    } else if (kind == 2) {
        put_key(self);
        raw_put(&self->raw, extreme(self), 8);
    } else if (kind == 3) {
        put_fields(self, &"kvv"[draw(self, 3)]);
        self->raw.size -= 1 + draw(self, 8); /* cut off */
    } else {
        put_fields(self, "p"); /* a wrong proof, or half a frame */
    }
}

/* Answers */

/* Reads until the connection ends, or until the last four bytes are echo if
 * that is not 0. Returns 1 in these cases; -1 if it has received bytes of the
 * client's values; 0 if neither happens within WAIT_MS. */
static int read_answers(int fd, uint32_t echo)
{
    uint8_t bytes[65536 + 16];
    size_t kept = 0;

    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t got;

        if (poll(&ready, 1, 6 * WAIT_MS) < 1)
            return 0;
        got = recv(fd, bytes + kept, 65536, 0);
        if (got <= 0)
            return !echo;
        kept += (size_t)got;
        if (memmem(bytes, kept, MARK, strlen(MARK)))
            return -1;
        if (echo && kept >= 4 && !memcmp(bytes + kept - 4, &echo, 4))
            return 1;
        if (kept > 16) {
            memmove(bytes, bytes + kept - 16, 16);
            kept = 16;
        }
    }
}

/* Makes one connection: sends valid frames, and then, in three of four cases,
 * an invalid one. Otherwise sends a PING, whose answer comes after all
 * others. */
static void visit(stranger_t *self)
{
    const struct linger reset = {1, 0};
    const int good = draw(self, 4) == 0;
    const long count = MIN(1 + (long)draw(self, BATCH), self->frames);
    const uint32_t nonce = 0x5a5a0000 | draw(self, 0x10000);
    /* a server with a secret returns the nonce inverted */
    const uint32_t echo = self->guarded ? ~nonce : nonce;
    int fd = raw_connect(self->port), result;

    self->raw.size = 0;
    raw_hello(&self->raw);
    for (long i = 1; i < count; i++)
        put_good(self);
    if (good)
        raw_ping(&self->raw, nonce);
    else
        put_bad(self);
    self->frames -= count;
    self->connections++;
    if (fd < 0)
        return;
    raw_send(fd, self->raw.data, self->raw.size);
    if (!good && draw(self, 2))
        shutdown(fd, SHUT_WR);
    else if (!good)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (good || draw(self, 2)) {
        if (!good)
            shutdown(fd, SHUT_WR);
        result = read_answers(fd, good ? echo : 0);
        self->answered += result == 1;
        self->leaks += result == -1;
        self->unanswered += result == 0;
    }
    close(fd);
}

static void *be_strange(void *arg)
{
    stranger_t *self = arg;

    while (self->frames > 0)
        visit(self);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* The client */

static size_t fill(char *value, int i)
{
    size_t size = (size_t)(1 + i * 1000) * strlen(MARK);

    for (size_t at = 0; at < size; at += strlen(MARK))
        memcpy(value + at, MARK, strlen(MARK));
    return size;
}

/* Returns how many of the client's keys do not have its values. */
static int count_wrong(dscomm_store_t *store)
{
    static char want[HONEST_KEYS * 1000 * 8];
    int wrong = 0;

    for (int i = 0; i < HONEST_KEYS; i++) {
        size_t size = fill(want, i), got = 0;
        void *value = NULL;
        char key[16];

        snprintf(key, sizeof key, "honest/%d", i);
        wrong += dscomm_store_get(store, key, 10 * WAIT_MS, &value, &got) ||
                 got != size || memcmp(value, want, size) != 0;
        dscomm_store_free(value);
    }
    return wrong;
}

static dscomm_store_t *open_client(int port, int guarded)
{
    static char value[HONEST_KEYS * 1000 * 8];
    dscomm_store_t *store;
    char key[16];

    if (guarded)
        setenv("DSCOMM_JOB_SECRET", SECRET, 1);
    if (open_store(url_of(port), NULL, 0, 10 * WAIT_MS, &store))
        bail("%s", dscomm_last_error());
    unsetenv("DSCOMM_JOB_SECRET");
    for (int i = 0; i < HONEST_KEYS; i++) {
        snprintf(key, sizeof key, "honest/%d", i);
        if (dscomm_store_set(store, key, value, fill(value, i)))
            bail("%s", dscomm_last_error());
    }
    return store;
}

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long total, pages = 0;

    if (file && fscanf(file, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static dscomm_priv_server_t *open_server(int guarded, int *ret_port)
{
    const dscomm_priv_job_t job = {.ports = 1,
                                   .secret = guarded ? SECRET : NULL};
    dscomm_priv_server_limits_t limits = SERVER_LIMITS_INIT;

    limits.kept = limits.under_way = KEPT;
    return start_server(&limits, &job, ret_port);
}

static void attack(int guarded, long frames, uint32_t seed)
{
    static stranger_t strangers[STRANGERS];
    stranger_t sum = {0};
    int port, wrong = 0;
    dscomm_priv_server_t *server = open_server(guarded, &port);
    dscomm_store_t *store = open_client(port, guarded);
    long before = resident_kb(), grown;

    atomic_store(&running, STRANGERS);
    for (int i = 0; i < STRANGERS; i++) {
        memset(&strangers[i], 0, sizeof strangers[i]);
        strangers[i].port = port;
        strangers[i].guarded = guarded;
        strangers[i].frames = frames / STRANGERS + 1;
        strangers[i].state = (seed * STRANGERS + (uint32_t)i) * 2654435761u | 1;
        if (pthread_create(&strangers[i].thread, NULL, be_strange,
                           &strangers[i]))
            bail("no thread");
    }
    do
        wrong += count_wrong(store);
    while (atomic_load(&running));
    for (int i = 0; i < STRANGERS; i++) {
        pthread_join(strangers[i].thread, NULL);
        sum.connections += strangers[i].connections;
        sum.answered += strangers[i].answered;
        sum.leaks += strangers[i].leaks;
        sum.unanswered += strangers[i].unanswered;
    }
    wrong += count_wrong(store);
    grown = resident_kb() - before;
    is_int(wrong, 0, "%s a secret: %ld frames, %ld connections, %ld answered",
           guarded ? "with" : "without", frames, sum.connections, sum.answered);
    is_int((int)sum.leaks, 0, "no stranger got a byte of the client's values");
    is_int((int)sum.unanswered, 0, "the server answers or closes");
    ok(grown < GROWTH_MAX_KB || getenv("SANITIZER_FLAGS") || getenv("VALGRIND"),
       "the process has grown by %ld KiB", grown);
    dscomm_store_close(store);
    dscomm_priv_server_close(server);
}

int main(int argc, char **argv)
{
    const long frames = argc > 1 ? atol(argv[1]) : FRAMES;
    const uint32_t seed = argc > 2 ? (uint32_t)atol(argv[2]) : 1;

    /* refused clients and a full store cause warnings */
    dscomm_log_set_levels("error");
    attack(0, frames, seed);
    attack(1, frames, seed);
    return tap_done();
}
