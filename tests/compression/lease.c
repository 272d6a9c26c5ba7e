/* SPDX-License-Identifier: BSD-3-Clause */
/* Leases: while a process holds one it cannot end, also from another process;
 * it can when that process has ended. A lease that has ended, or is another's,
 * cannot be held. */
#include "config.h"

#include "compression/core/lease.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void held(void)
{
    dscomm_lease_t lease;
    int fd = dscomm_priv_lease_make(&lease), first, second;

    ok(fd >= 0, "a lease is made");
    first = dscomm_priv_lease_hold(&lease);
    second = dscomm_priv_lease_hold(&lease);
    ok(first >= 0 && second >= 0, "it is held twice");
    ok(!dscomm_priv_lease_end(fd), "it does not end");
    dscomm_priv_lease_give(first);
    ok(!dscomm_priv_lease_end(fd), "nor while it is held once");
    dscomm_priv_lease_give(second);
    ok(dscomm_priv_lease_end(fd), "it ends when nobody holds it");
    is_int(dscomm_priv_lease_hold(&lease), -1, "and is then held no more");
}

/* A process that knows only the number of an open file cannot hold the
 * lease. */
static void others(void)
{
    dscomm_lease_t lease, other;
    int fd = dscomm_priv_lease_make(&lease);

    other = lease;
    other.token[15] ^= 1;
    is_int(dscomm_priv_lease_hold(&other), -1, "that of another lease");
    other = lease;
    other.fd = STDERR_FILENO;
    is_int(dscomm_priv_lease_hold(&other), -1, "a file that is none");
    other.fd = 1 << 20;
    is_int(dscomm_priv_lease_hold(&other), -1, "no file");
    other = lease;
    other.process = 1 << 30;
    is_int(dscomm_priv_lease_hold(&other), -1, "no such process");
    ok(dscomm_priv_lease_end(fd), "none of these holds it");
}

/* A process that opens the lease late finds that it has ended. */
static void late(void)
{
    dscomm_lease_t lease;
    char path[64];
    int fd = dscomm_priv_lease_make(&lease), opened;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    opened = open(path, O_RDONLY | O_CLOEXEC);
    ok(opened >= 0 && dscomm_priv_lease_end(fd), "it ends while it is open");
    lease.fd = opened;
    is_int(dscomm_priv_lease_hold(&lease), -1, "whoever has it open, too late");
    close(opened);
}

static void killed(void)
{
    dscomm_lease_t lease;
    int fd = dscomm_priv_lease_make(&lease), ready[2], status;
    char byte = 0;
    pid_t child;

    if (pipe(ready))
        bail("no pipe");
    child = fork();
    if (child == 0) {
        byte = dscomm_priv_lease_hold(&lease) >= 0;
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    is_int(read(ready[0], &byte, 1), 1, "another process");
    is_int(byte, 1, "holds it");
    ok(!dscomm_priv_lease_end(fd), "it does not end");
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    ok(dscomm_priv_lease_end(fd), "it ends with that process");
    close(ready[0]);
    close(ready[1]);
}

/* A process that was forked meanwhile has copies of the descriptors. */
static void forked(void)
{
    dscomm_lease_t lease;
    int fd = dscomm_priv_lease_make(&lease), status;
    int held = dscomm_priv_lease_hold(&lease);
    pid_t child = fork();

    if (child == 0)
        for (;;)
            pause();
    ok(held >= 0 && !dscomm_priv_lease_end(fd), "it does not end");
    dscomm_priv_lease_give(held);
    ok(dscomm_priv_lease_end(fd), "it ends though a child lives");
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

int main(void)
{
    held();
    others();
    late();
    killed();
    forked();
    return tap_done();
}
