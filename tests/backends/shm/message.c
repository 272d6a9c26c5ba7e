/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between ranks that form a group: descriptors are passed, invalid
 * messages do no harm, and a silent peer leads to a time-out. */
#include "tests/backends/shm/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "backends/shm/connect.h"

#define MANY 20 /* messages with two descriptors each */
#define NOBODY 65534

static int64_t in_ms(int ms)
{
    return shm_now_ns() + ms * NS_PER_MS;
}

/* Counts the open descriptors of this process. */
static int open_files(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_descriptors(int a, int b)
{
    hello_t hello = {.magic = SHM_MAGIC, .rank = 5}, got;
    int ends[2], received[2], before;
    char byte = 'x';

    if (pipe(ends))
        bail("pipe: %s", strerror(errno));
    before = open_files();
    is_int(shm_message_send(a, &hello, sizeof hello, ends, 2, in_ms(1000)), 0,
           "send two");
    is_int(shm_message_receive(b, &got, sizeof got, received, 2, in_ms(1000)),
           0, "receive two descriptors");
    is_int(got.rank, 5, "with the message");
    ok(write(received[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1,
       "they are the sender's files");
    ok(fcntl(received[0], F_GETFD) & FD_CLOEXEC, "closed on exec");
    close(received[0]);
    close(received[1]);
    shm_message_send(a, &hello, sizeof hello, ends, 2, in_ms(1000));
    is_int(shm_message_receive(b, &got, sizeof got, received, 1, in_ms(1000)),
           0, "one wanted, two sent");
    close(received[0]);
    is_int(open_files(), before, "the other is closed");
    close(ends[0]);
    close(ends[1]);
}

static void test_garbage(int a, int b)
{
    char garbage[sizeof(hello_t) + 1];
    hello_t got;
    int received[1], before = open_files(), ends[2];

    memset(garbage, 0x5a, sizeof garbage);
    send(a, garbage, sizeof(hello_t), 0);
    is_int(shm_message_receive(b, &got, sizeof got, received, 1, in_ms(1000)),
           EPROTO, "a wrong magic number is refused");
    send(a, garbage, 3, 0);
    is_int(shm_message_receive(b, &got, sizeof got, received, 1, in_ms(1000)),
           EPROTO, "so is a short message");
    ((hello_t *)(void *)garbage)->magic = SHM_MAGIC;
    send(a, garbage, sizeof garbage, 0);
    is_int(shm_message_receive(b, &got, sizeof got, received, 1, in_ms(1000)),
           EPROTO, "so is a long one");
    if (pipe(ends))
        bail("pipe: %s", strerror(errno));
    shm_message_send(a, "bad", 3, ends, 2, in_ms(1000));
    is_int(shm_message_receive(b, &got, sizeof got, received, 1, in_ms(1000)),
           EPROTO, "so is a bad one with descriptors");
    close(ends[0]);
    close(ends[1]);
    is_int(open_files(), before, "which are closed");
}

static void test_silence(int a, int b)
{
    hello_t got;
    int64_t start = shm_now_ns(), took;

    is_int(shm_message_receive(b, &got, sizeof got, NULL, 0, in_ms(100)),
           ETIMEDOUT, "silence ends at the deadline");
    took = shm_now_ns() - start;
    ok(took >= 99 * NS_PER_MS, "not before (%lld ns)", (long long)took);
    close(a);
    is_int(shm_message_receive(b, &got, sizeof got, NULL, 0, in_ms(1000)),
           ECONNRESET, "a peer that closed is told apart");
}

/* A user with a low limit sends more descriptors than may be in flight; exits
 * with 0 if all are sent. */
static void send_many(int fd)
{
    struct rlimit few = {16, 16};
    hello_t hello = {.magic = SHM_MAGIC};
    int fds[2] = {0, 1}, failed = 0;

    if ((!geteuid() && setresuid(NOBODY, NOBODY, NOBODY)) ||
        setrlimit(RLIMIT_NOFILE, &few))
        _exit(77);
    for (int i = 0; i < MANY && !failed; i++)
        failed =
            shm_message_send(fd, &hello, sizeof hello, fds, 2, in_ms(10000));
    _exit(failed ? 1 : 0);
}

static void test_in_flight(int a, int b)
{
    int received[2], status, got = 0;
    hello_t hello;
    pid_t child = fork();

    if (child == 0)
        send_many(a);
    g_usleep(100000);
    while (got < MANY && !shm_message_receive(b, &hello, sizeof hello, received,
                                              2, in_ms(1000))) {
        got++;
        close(received[0]);
        close(received[1]);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        bail("no child: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip("cannot become an ordinary user");
        return;
    }
    ok(WIFEXITED(status) && !WEXITSTATUS(status),
       "a sender waits where too many descriptors are on their way");
    is_int(got, MANY, "all of them arrive");
}

int main(void)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        bail("socketpair: %s", strerror(errno));
    test_descriptors(pair[0], pair[1]);
    test_garbage(pair[0], pair[1]);
    test_in_flight(pair[0], pair[1]);
    test_silence(pair[0], pair[1]);
    close(pair[1]);
    return tap_done();
}
