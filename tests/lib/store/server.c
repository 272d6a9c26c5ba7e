/* SPDX-License-Identifier: BSD-3-Clause */
/* The server with requests in pieces, malformed, foreign and random ones. */
#include "tests/lib/store/fixture.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Replaces libc's function: a write of 8 bytes, as to an eventfd, fails if
 * wanted. */
static int write_fails;

ssize_t write(int fd, const void *data, size_t size)
{
    if (write_fails && size == 8) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_write, fd, data, size);
}

/* Requests SET, GET, COMPARE_SET, ADD, and their answers. */
static void put_values(raw_t *raw, raw_t *answers)
{
    raw_command(raw, 1, "/k", "value", NULL);
    raw_command(raw, 3, "/k", NULL, NULL);
    raw_text(answers, "value");
    raw_command(raw, 3, "/absent", NULL, NULL);
    raw_text(answers, "");
    raw_command(raw, 2, "/k", "value", "other");
    raw_text(answers, "other");
    raw_command(raw, 2, "/k", "value", "third");
    raw_text(answers, "other");
    raw_command(raw, 2, "/c", "x", "y");
    raw_text(answers, "x");
    raw_command(raw, 4, "/n", NULL, NULL);
    raw_put(raw, (uint64_t)-3, 8);
    raw_put(answers, (uint64_t)-3, 8);
    raw_command(raw, 3, "/n", NULL, NULL);
    raw_text(answers, "-3");
}

/* Requests with several keys, their number, DELETE, APPEND. */
static void put_keys(raw_t *raw, raw_t *answers)
{
    raw_keys(raw, 5, "/k", "/n");
    raw_put(answers, 0, 1);
    raw_keys(raw, 5, "/k", "/absent");
    raw_put(answers, 1, 1);
    raw_keys(raw, 5, NULL, NULL);
    raw_put(answers, 0, 1);
    raw_keys(raw, 6, "/k", "/n");
    raw_put(answers, 0, 1);
    raw_command(raw, 7, NULL, NULL, NULL);
    raw_put(answers, 2, 8);
    raw_command(raw, 8, "/n", NULL, NULL);
    raw_put(answers, 1, 8);
    raw_command(raw, 8, "/n", NULL, NULL);
    raw_put(answers, 0, 8);
    raw_command(raw, 9, "/k", "!", NULL);
    raw_keys(raw, 10, "/k", "/absent");
    raw_text(answers, "other!");
    raw_text(answers, "");
    raw_put(raw, 11, 1); /* MULTI_SET */
    raw_put(raw, 2, 8);
    raw_text(raw, "/m1");
    raw_text(raw, "1");
    raw_text(raw, "/m2");
    raw_text(raw, "");
    raw_keys(raw, 10, "/m2", "/m1");
    raw_text(answers, "");
    raw_text(answers, "1");
    raw_command(raw, 12, NULL, NULL, NULL); /* CANCEL_WAIT without WAIT */
    raw_put(answers, 1, 1);
}

static void put_queue(raw_t *raw, raw_t *answers)
{
    raw_command(raw, 15, "/q", NULL, NULL); /* QUEUE_POP of nothing */
    raw_put(answers, 0, 8);
    raw_command(raw, 14, "/q", "one", NULL);
    raw_command(raw, 14, "/q", "two", NULL);
    raw_keys(raw, 5, "/q", NULL); /* a queue counts */
    raw_put(answers, 0, 1);
    raw_command(raw, 3, "/q", NULL, NULL); /* but not as a key */
    raw_text(answers, "");
    raw_command(raw, 8, "/q", NULL, NULL);
    raw_put(answers, 0, 8);
    raw_command(raw, 16, "/q", NULL, NULL);
    raw_put(answers, 2, 8);
    raw_command(raw, 15, "/q", NULL, NULL);
    raw_put(answers, 2, 8);
    raw_text(answers, "one");
    raw_command(raw, 15, "/q", NULL, NULL);
    raw_put(answers, 1, 8);
    raw_text(answers, "two");
    raw_command(raw, 16, "/q", NULL, NULL);
    raw_put(answers, 0, 8);
}

static void put_barrier(raw_t *raw, raw_t *answers)
{
    raw_command(raw, 18, "/b", NULL, NULL); /* BARRIER of one */
    raw_put(raw, 1, 8);
    raw_put(answers, 0, 1);
    raw_command(raw, 3, "/b", NULL, NULL);
    raw_text(answers, "1");
    raw_command(raw, 8, "/b", NULL, NULL);
    raw_put(answers, 1, 8);
}

/* Deletes the keys that are left, because the traffic may be sent again. */
static void put_end(raw_t *raw, raw_t *answers)
{
    raw_command(raw, 8, "/m1", NULL, NULL);
    raw_put(answers, 1, 8);
    raw_command(raw, 8, "/m2", NULL, NULL);
    raw_put(answers, 1, 8);
    raw_command(raw, 17, NULL, NULL, NULL); /* LIST_KEYS */
    raw_put(answers, 1, 8);
    raw_text(answers, "/k");
    raw_command(raw, 8, "/k", NULL, NULL);
    raw_put(answers, 1, 8);
}

/* Every command once, with the answers of torch's server. */
static void put_traffic(raw_t *raw, raw_t *answers)
{
    raw_hello(raw);
    raw_ping(raw, 0xCAFE0001);
    raw_put(answers, 0xCAFE0001, 4);
    put_values(raw, answers);
    put_keys(raw, answers);
    put_queue(raw, answers);
    put_barrier(raw, answers);
    put_end(raw, answers);
}

/* The same traffic in portions of any size gives the same answers. */
static void test_segments(int port)
{
    static const size_t portions[] = {RAW_MAX, 1, 2, 3, 7, 64, 255};
    int fd;

    for (size_t i = 0; i < sizeof portions / sizeof portions[0]; i++) {
        static raw_t raw, answers;
        static uint8_t got[RAW_MAX];
        long n;

        raw.size = answers.size = 0;
        put_traffic(&raw, &answers);
        fd = raw_connect(port);
        for (size_t sent = 0, some; sent < raw.size; sent += some) {
            struct timespec moment = {0, 20000};

            some = raw.size - sent;
            if (some > portions[i])
                some = portions[i];
            if (!raw_send(fd, raw.data + sent, some))
                break;
            nanosleep(&moment, NULL); /* so that it is sent alone */
        }
        n = raw_recv(fd, got, answers.size, WAIT_MS);
        is_int(n, (long)answers.size, "portions of %zu: bytes of answers",
               portions[i]);
        ok(n > 0 && memcmp(got, answers.data, (size_t)n) == 0,
           "portions of %zu: the answers", portions[i]);
        is_int(raw_recv(fd, got, 1, 10), 0, "portions of %zu: nothing else",
               portions[i]);
        close(fd);
    }
}

/* A text of one byte. */
#define TEXT(byte) RAW_SIZE("\1") byte

/* Requests after which the server closes the connection. */
static void test_malformed(int port)
{
    static const struct {
        const char *name, *bytes; /* after VALIDATE */
        size_t size;
    } rows[] = {
        {"an unknown command", BYTES("\x13")},
        {"command 255", BYTES("\xff")},
        {"a key of 8 KiB and 1", BYTES("\3" RAW_U64("\1", "\40", "\0"))},
        {"a value of 8 MiB and 1",
         BYTES("\1" RAW_SIZE("\1") "k" RAW_U64("\1", "\0", "\200"))},
        {"a length of 2^64 - 1", BYTES("\3\377\377\377\377\377\377\377\377")},
        {"128 Ki keys and 1", BYTES("\5" RAW_U64("\1", "\0", "\2"))},
        {"-1 keys", BYTES("\13\377\377\377\377\377\377\377\377")},
        {"a second, wrong magic", BYTES("\0\1\2\3\4")},
        {"add to text",
         BYTES("\1" TEXT("t") TEXT("x") "\4" TEXT("t") RAW_SIZE("\1"))},
        {"two waits at a time",
         BYTES("\6" RAW_SIZE("\1") TEXT("A") "\6" RAW_SIZE("\1") TEXT("B"))},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = raw_client(port);

        raw_send(fd, rows[i].bytes, rows[i].size);
        ok(raw_closes(fd, WAIT_MS), "%s: closed", rows[i].name);
        close(fd);
    }
    ok(is_alive(port), "others are served");
}

/* First bytes that are not VALIDATE. */
static void test_strangers(int port)
{
    static const char *const rows[] = {
        "GET / HTTP/1.0\r\n\r\n",
        "SSH-2.0-x\r\n",
        "\1abcdefgh",
        "\r1234",
    };
    raw_t raw = {.size = 0};
    int fd;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fd = raw_connect(port);
        raw_send(fd, rows[i], strlen(rows[i]));
        ok(raw_closes(fd, WAIT_MS), "stranger %zu: closed", i);
        close(fd);
    }
    raw_put(&raw, 0, 1);
    raw_put(&raw, 0xDEADBEEF, 4);
    fd = raw_connect(port);
    raw_send(fd, raw.data, raw.size);
    ok(raw_closes(fd, WAIT_MS), "wrong magic: closed");
    close(fd);
    ok(is_alive(port), "others are served");
}

/* Requests that are truncated at every byte of the traffic, then the client
 * leaves. */
static void test_truncated(int port)
{
    static raw_t raw, answers;

    raw.size = answers.size = 0;
    put_traffic(&raw, &answers);
    for (size_t cut = 0; cut < raw.size; cut++) {
        int fd = raw_connect(port);

        raw_send(fd, raw.data, cut);
        close(fd);
    }
    ok(is_alive(port), "others are served after %zu cut connections", raw.size);
}

static uint32_t random_state = 20260101;

static uint32_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

/* Traffic with random changes, for a second; the server does not crash. */
static void test_fuzz(int port)
{
    static raw_t raw, answers;
    double end = raw_now_ms() + 1000;
    unsigned long rounds = 0;

    for (; raw_now_ms() < end; rounds++) {
        int fd = raw_connect(port), changes = (int)(next_random() % 8);
        size_t cut;
        uint8_t byte;

        raw.size = answers.size = 0;
        put_traffic(&raw, &answers);
        for (int i = 0; i < changes; i++)
            raw.data[5 + next_random() % (raw.size - 5)] =
                (uint8_t)next_random();
        cut = next_random() % raw.size;
        raw_send(fd, raw.data, cut);
        raw_send(fd, raw.data + cut, raw.size - cut);
        raw_recv(fd, &byte, 1, 1);
        close(fd);
    }
    ok(is_alive(port), "others are served after %lu rounds", rounds);
}

/* A server that cannot be notified by its eventfd ends all the same. */
static void test_close(void)
{
    int port, fd;
    dscomm_priv_server_t *server = start_server(NULL, NULL, &port);

    fd = raw_client(port);
    write_fails = 1;
    dscomm_priv_server_close(server);
    write_fails = 0;
    ok(raw_closes(fd, WAIT_MS), "a server is closed without its eventfd");
    close(fd);
}

/* Waits that are fulfilled, cancelled, repeated and abandoned. */
static void test_waits(int port)
{
    raw_t raw = {.size = 0};
    int a, b, c;
    uint8_t bytes[3];

    a = raw_client(port);
    b = raw_client(port);
    c = raw_client(port);
    raw_keys(&raw, 6, "/x", "/x");
    raw_send(a, raw.data, raw.size);
    raw_flush(b, &raw);
    is_int(raw_recv(a, bytes, 1, 50), 0, "a wait waits");
    close(b); /* leaves during its wait */
    raw_command(&raw, 1, "/x", "", NULL);
    raw_flush(c, &raw);
    is_int(raw_recv(a, bytes, 1, WAIT_MS), 1, "the key wakes it");
    is_int(bytes[0], 0, "with STOP_WAITING");
    raw_keys(&raw, 6, "/y", "/x");
    raw_put(&raw, 12, 1);
    raw_flush(a, &raw);
    is_int(raw_recv(a, bytes, 2, 100), 1, "CANCEL_WAIT answers once");
    is_int(bytes[0], 1, "with WAIT_CANCELED");
    raw_command(&raw, 1, "/y", "", NULL);
    raw_flush(c, &raw);
    is_int(raw_recv(a, bytes, 1, 50), 0, "the key wakes no one any more");
    raw_keys(&raw, 6, "/x", NULL);
    raw_put(&raw, 12, 1);
    raw_send(a, raw.data, raw.size);
    is_int(raw_recv(a, bytes, 2, WAIT_MS), 2, "a cancel that is late");
    ok(bytes[0] == 0 && bytes[1] == 1, "is answered [0][1]");
    ok(is_alive(port), "others are served");
    close(a);
    close(c);
}

/* A request COMPARE_SET for an absent key, and its answer. */
static void put_absent(raw_t *raw, raw_t *answer, char byte, size_t size)
{
    raw_command(raw, 2, "/absent", NULL, NULL);
    raw_put(raw, size, 8);
    memset(raw->data + raw->size, byte, size);
    raw->size += size;
    raw_text(raw, "desired");
    raw_put(answer, size, 8);
    memset(answer->data + answer->size, byte, size);
    answer->size += size;
}

/* The answer is the expected value. It must not be in the memory of the
 * request, which another client's request uses next. */
static void test_answers_own_their_bytes(int port)
{
    static const size_t sizes[] = {4096, 4097, 5000, 65000, 150000};
    static raw_t raw[2], answers[2];
    static uint8_t got[RAW_MAX];
    int fds[2];

    for (int i = 0; i < 2; i++)
        fds[i] = raw_client(port);
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        int wrong = 0;

        for (int i = 0; i < 2; i++) {
            raw[i].size = answers[i].size = 0;
            put_absent(&raw[i], &answers[i], i ? 'B' : 'A', sizes[n]);
        }
        for (int round = 0; round < 10; round++) {
            for (int i = 0; i < 2; i++)
                raw_send(fds[i], raw[i].data, raw[i].size);
            for (int i = 0; i < 2; i++) {
                size_t size = answers[i].size;

                wrong += raw_recv(fds[i], got, size, WAIT_MS) != (long)size ||
                         memcmp(got, answers[i].data, size) != 0;
            }
        }
        is_int(wrong, 0, "%zu bytes: answers with other bytes", sizes[n]);
    }
    for (int i = 0; i < 2; i++)
        close(fds[i]);
}

static void test_queues_and_barriers(int port)
{
    raw_t raw = {.size = 0};
    uint8_t bytes[2];
    int a, b, c;

    a = raw_client(port);
    b = raw_client(port);
    c = raw_client(port);
    raw_keys(&raw, 6, "/q", NULL);
    raw_send(a, raw.data, raw.size);
    raw_flush(b, &raw);
    usleep(50000);
    raw_command(&raw, 14, "/q", "x", NULL);
    raw_flush(c, &raw);
    {
        int woken = (raw_recv(a, bytes, 1, 200) == 1) +
                    (raw_recv(b, bytes, 1, 200) == 1);

        is_int(woken, 1, "QUEUE_PUSH wakes one");
    }
    close(a);
    close(b);
    a = raw_client(port);
    b = raw_client(port);
    raw_command(&raw, 18, "/b", NULL, NULL);
    raw_put(&raw, 3, 8);
    raw_send(a, raw.data, raw.size);
    raw_send(b, raw.data, raw.size);
    is_int(raw_recv(a, bytes, 1, 50), 0, "two of three wait in BARRIER");
    raw_send(c, raw.data, raw.size);
    is_int(raw_recv(a, bytes, 1, WAIT_MS), 1, "the third frees the first,");
    is_int(raw_recv(b, bytes, 1, WAIT_MS), 1, "the second,");
    is_int(raw_recv(c, bytes, 1, WAIT_MS), 1, "and itself");
    close(a);
    close(b);
    close(c);
}

/* Silent connections are kept only while there are enough connections, or
 * enough descriptors of the process. */
static void test_silent(int short_of_files)
{
    const dscomm_priv_server_limits_t limits = {
        .connections = short_of_files ? 1000 : 8, .validate_ms = 60000};
    const struct timespec moment = {0, 700000000};
    const char *what = short_of_files ? "descriptors" : "connections";
    struct rlimit before, few;
    int port, fds[8], closed = 0, early;
    raw_t raw = {.size = 0};
    dscomm_priv_server_t *server = start_server(&limits, NULL, &port);

    for (int i = 0; i < 8; i++)
        fds[i] = i == 3 ? raw_client(port) : raw_connect(port);
    early = raw_closes(fds[0], 100);
    nanosleep(&moment, NULL);
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = (rlim_t)dup(0) + 1;
    close((int)few.rlim_cur - 1);
    if (short_of_files && setrlimit(RLIMIT_NOFILE, &few))
        bail("setrlimit failed");
    ok(is_alive(port), "no %s: a new client is served", what);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 8; i++)
        closed += i != 3 && raw_closes(fds[i], 1000);
    is_int(early, 0, "no %s: the silent had time", what);
    is_int(closed, 7, "no %s: the silent are closed", what);
    ok(raw_echo(fds[3], &raw, 0xCAFE0002) == 0xCAFE0002,
       "no %s: a client among them stays", what);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    dscomm_priv_server_close(server);
}

int main(void)
{
    with_server(NULL, test_segments);
    with_server(NULL, test_malformed);
    with_server(NULL, test_strangers);
    with_server(NULL, test_truncated);
    with_server(NULL, test_fuzz);
    test_close();
    with_server(NULL, test_waits);
    with_server(NULL, test_answers_own_their_bytes);
    with_server(NULL, test_queues_and_barriers);
    test_silent(0);
    test_silent(1);
    return tap_done();
}
