/* SPDX-License-Identifier: BSD-3-Clause */
/* The server with clients that are slow, do not read, or are many; and without
 * resources. */
#include "tests/lib/store/fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

/* Connections whose requests are incomplete delay no other client, and are
 * closed. */
static void test_slow(int port)
{
    enum { SLOW = 200 };
    raw_t part = {.size = 0};
    int fds[SLOW], closed = 0;
    uint8_t byte = 0;
    double start;

    raw_put(&part, 1, 1);
    raw_put(&part, 3, 8);
    raw_put(&part, 'k', 1);
    for (int i = 0; i < SLOW; i++) {
        fds[i] = i % 4 ? raw_client(port) : raw_connect(port);
        if (i % 4 == 1) /* a request's beginning */
            raw_send(fds[i], part.data, part.size);
        if (i % 4 == 2) /* a wait, which has no limit */
            raw_send(fds[i], "\6" RAW_SIZE("\1") RAW_SIZE("\1") "z", 18);
        if (i % 8 == 0) /* a VALIDATE's beginning */
            raw_send(fds[i], &byte, 1);
    }
    start = raw_now_ms();
    ok(is_alive(port), "others are served");
    ok(raw_now_ms() - start < 250, "at once");
    for (int i = 0; i < SLOW; i += 4)
        closed += raw_closes(fds[i], 2000);
    is_int(closed, SLOW / 4, "who sends no VALIDATE is closed");
    closed = 0;
    for (int i = 1; i < SLOW; i += 4)
        closed += raw_closes(fds[i], 2000);
    is_int(closed, SLOW / 4, "who sends half a request is closed");
    closed = 0;
    for (int i = 2; i < SLOW; i += 4)
        closed += raw_recv(fds[i], &byte, 1, 0) != 0;
    is_int(closed, 0, "who waits is not");
    closed = 0;
    for (int i = 3; i < SLOW; i += 4)
        closed += raw_recv(fds[i], &byte, 1, 0) != 0;
    is_int(closed, 0, "who is idle is not");
    for (int i = 0; i < SLOW; i++)
        close(fds[i]);
}

/* A request that is sent slowly does not get more time. */
static void test_drip(int port)
{
    raw_t raw = {.size = 0};
    const double start = raw_now_ms();
    int fd, sent = 0;

    fd = raw_client(port);
    raw_put(&raw, 1, 1);
    raw_put(&raw, 4000, 8);
    raw_send(fd, raw.data, raw.size);
    while (sent < 200) {
        uint8_t byte;

        if (!raw_send(fd, "k", 1) || raw_recv(fd, &byte, 1, 10) < 0)
            break;
        sent++;
    }
    ok(raw_now_ms() - start >= 200 && sent < 200,
       "closed after %d drops, in %.0f ms", sent, raw_now_ms() - start);
    close(fd);
}

/* A client requests many bytes and does not read them. */
static void test_not_reading(int port)
{
    enum { ASKS = 400, PART = 16 << 10 };
    static uint8_t value[1 << 20];
    raw_t raw = {.size = 0};
    int fd, setter;

    setter = raw_client(port);
    for (size_t i = 0; i < sizeof value; i += PART) {
        raw_command(&raw, 9, "/large", NULL, NULL); /* APPEND */
        raw_put(&raw, PART, 8);
        raw.size += PART;
        raw_flush(setter, &raw); /* at once: a request may not stall */
    }
    is_int(raw_echo(setter, &raw, 5), 5, "a large value is set");
    fd = raw_client(port);
    for (int i = 0; i < ASKS; i++)
        raw_command(&raw, 3, "/large", NULL, NULL);
    raw_send(fd, raw.data, raw.size);
    ok(is_alive(port), "others are served");
    usleep(1200 * 1000);
    for (int i = 0; i < 64; i++) { /* reads what was left in the socket */
        if (raw_recv(fd, value, sizeof value, 1000) < (long)sizeof value)
            break;
    }
    ok(raw_closes(fd, WAIT_MS), "who does not read is closed");
    close(fd);
    /* a client that reads gets everything, in order */
    fd = raw_client(port);
    raw_send(fd, raw.data, raw.size);
    {
        int whole = 0;

        for (int i = 0; i < ASKS; i++) {
            uint64_t size = 0;

            if (raw_recv(fd, &size, 8, WAIT_MS) != 8 || size != sizeof value ||
                raw_recv(fd, value, sizeof value, WAIT_MS) !=
                    (long)sizeof value)
                break;
            whole++;
        }
        is_int(whole, ASKS, "who reads gets all answers");
    }
    close(fd);
    close(setter);
}

static void test_many_clients(int port)
{
    int fds[8];

    for (int i = 0; i < 8; i++)
        fds[i] = raw_client(port);
    usleep(100000);
    {
        int fd = raw_connect(port);

        ok(raw_closes(fd, WAIT_MS), "one more than allowed is closed");
        close(fd);
    }
    close(fds[0]);
    usleep(100000);
    ok(is_alive(port), "after one has left there is room");
    for (int i = 1; i < 8; i++)
        close(fds[i]);
}

static double cpu_ms(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

/* No file descriptor left: the server waits without spinning, and recovers. */
static void test_no_descriptors(void)
{
    struct rlimit old, tight;
    dscomm_priv_server_t *server;
    int port, fd, late, lowest;
    raw_t raw = {.size = 0};
    uint32_t echo = 0;
    double before;
    const char *preload = getenv("LD_PRELOAD");

    if (preload && strstr(preload, "vgpreload")) {
        skip("valgrind has a limit of descriptors of its own");
        return;
    }
    server = start_server(NULL, NULL, &port);
    fd = raw_client(port);
    late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    getrlimit(RLIMIT_NOFILE, &old);
    usleep(50000);
    lowest = dup(0);
    close(lowest);
    tight = old;
    tight.rlim_cur = (rlim_t)lowest;
    setrlimit(RLIMIT_NOFILE, &tight);
    {
        struct sockaddr_in address = raw_loopback(port);

        is_int(connect(late, (struct sockaddr *)&address, sizeof address), 0,
               "the kernel takes the connection");
    }
    raw_hello(&raw);
    raw_ping(&raw, 99);
    raw_flush(late, &raw);
    before = cpu_ms();
    is_int(raw_recv(late, &echo, 4, 600), 0, "but the server cannot");
    ok(cpu_ms() - before < 200, "and does not spin: %.0f ms of processor time",
       cpu_ms() - before);
    is_int(raw_echo(fd, &raw, 98), 98, "it serves who is connected");
    setrlimit(RLIMIT_NOFILE, &old);
    is_int(raw_recv(late, &echo, 4, WAIT_MS), 4, "and the new one when it can");
    is_int(echo, 99, "rightly");
    close(late);
    close(fd);
    dscomm_priv_server_close(server);
}

/* Another process that has the listening socket may shut it down. */
static void test_shut_down(void)
{
    dscomm_priv_listen_t listening;
    dscomm_priv_server_t *server;
    int port = 0, fd = raw_listen(&port), old;
    raw_t raw = {.size = 0};
    double before;

    if (dscomm_priv_listen_adopt(fd, port, &listening) ||
        dscomm_priv_server_open(&listening, NULL, NULL, &server))
        bail("server: %s", dscomm_last_error());
    old = raw_client(port);
    is_int(raw_echo(old, &raw, 7), 7, "a client of before");
    shutdown(fd, SHUT_RDWR);
    before = cpu_ms();
    usleep(500 * 1000);
    ok(cpu_ms() - before < 200,
       "a socket that is shut down is left alone: %.0f ms of processor time",
       cpu_ms() - before);
    is_int(raw_echo(old, &raw, 8), 8, "and the client is served");
    close(old);
    close(fd);
    dscomm_priv_server_close(server);
}

static volatile sig_atomic_t signals_here;
static pthread_t main_thread;

static void on_signal(int number)
{
    (void)number;
    signals_here = pthread_equal(pthread_self(), main_thread) ? 1 : -1;
}

/* The server's thread gets none of the program's signals. */
static void test_signals(void)
{
    dscomm_priv_server_t *server;
    sigset_t usr1, before, now;
    int port;

    main_thread = pthread_self();
    signal(SIGUSR1, on_signal);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, &before);
    server = start_server(NULL, NULL, &port);
    kill(getpid(), SIGUSR1);
    usleep(50000);
    is_int(signals_here, 0, "the server's thread takes no signal");
    pthread_sigmask(SIG_SETMASK, &before, &now);
    is_int(signals_here, 1, "which waits for the program");
    ok(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGTERM),
       "whose mask is as it was");
    dscomm_priv_server_close(server);
}

int main(void)
{
    with_server(
        &(dscomm_priv_server_limits_t){.validate_ms = 300, .stall_ms = 300},
        test_slow);
    with_server(&(dscomm_priv_server_limits_t){.stall_ms = 200}, test_drip);
    with_server(&(dscomm_priv_server_limits_t){.stall_ms = 400},
                test_not_reading);
    with_server(&(dscomm_priv_server_limits_t){.connections = 8},
                test_many_clients);
    test_no_descriptors();
    test_shut_down();
    test_signals();
    return tap_done();
}
