/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend tcp when a peer receives nothing, is stopped, dies in the middle of a
 * message or resets the connection, and when this host lacks descriptors or
 * ports: every rank returns in time, with a sentence that names the cause. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/backends/inject.h"
#include "tests/backends/job.h"
#include "tests/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define TIMEOUT_MS 1500
#define SHORT_MS 700 /* well below it */
#define LONG ((size_t)64 << 20)
#define MEDIUM ((size_t)700 << 10)
#define ADDRESS "(at|to) ([0-9.]+|\\[[0-9a-f:]+\\]):[0-9]+"

enum { TAG = 5, TAG_NEVER = 99 };

static char *buffer; /* LONG bytes */
static volatile int injected_error;
static inject_call_t injected_call;

int inject_error(inject_call_t call)
{
    return injected_error && call == injected_call ? injected_error : 0;
}

size_t inject_part(size_t size)
{
    return size;
}

static int sentence_matches(const job_t *job, int rank, const char *pattern)
{
    const char *sentence = job->reports[rank].sentence;
    regex_t regex;
    int matches;

    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB))
        bail("not a regular expression: %s", pattern);
    matches = regexec(&regex, sentence, 0, NULL, 0) == 0;
    regfree(&regex);
    if (!matches)
        printf("# rank %d: not /%s/: %s\n", rank, pattern, sentence);
    return matches;
}

/* Whether a rank has returned within limit_ms, with a sentence that names the
 * other one, its process, its host and its address. */
static int names_peer(const job_t *job, int rank, pid_t pid, int limit_ms)
{
    const job_report_t *report = &job->reports[rank];
    char host[256] = "", pattern[400];

    gethostname(host, sizeof host - 1);
    snprintf(pattern, sizeof pattern, "rank %d .*pid %d on %s.*%s", 1 - rank,
             (int)pid, host, ADDRESS);
    if (report->took_ms > job_slowly(limit_ms))
        printf("# rank %d: after %.0f ms\n", rank, report->took_ms);
    return report->ended && report->status < 0 && job_exited(job, rank) &&
           report->took_ms <= job_slowly(limit_ms) &&
           sentence_matches(job, rank, pattern);
}

/* Sends to a rank that posts no receive: so many bytes a message. */
static void run_ignored(job_rank_t *me)
{
    const size_t bytes = *(const size_t *)me->arg;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL);
    while (status == DSCOMM_OK && me->rank == 0) {
        me->started = job_now_ms();
        status = dscomm_send(me->world, buffer, bytes, DSCOMM_UINT8, 1, TAG);
    }
    while ((status == DSCOMM_OK || status == DSCOMM_IN_PROGRESS) && me->rank)
        status = dscomm_probe(me->world, 0, TAG_NEVER, 100, NULL);
    me->report->value = descriptors_count();
    job_leave(me, status);
}

static void test_ignored(void)
{
    static const struct {
        const char *name;
        size_t bytes;
    } cases[] = {{"empty messages", 0}, {"short", 1 << 16}, {"long", LONG}};
    job_t job;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_make(&job, 2, TIMEOUT_MS, run_ignored, (void *)&cases[i].bytes);
        job_start(&job);
        job_join(&job, 20000);
        job_ok(&job,
               job.reports[0].took_ms >= TIMEOUT_MS - 10 &&
                   names_peer(&job, 0, job.reports[1].pid, TIMEOUT_MS + 1000) &&
                   job.reports[1].ended && job.reports[1].status < 0,
               "a receiver that never posts a receive, %s", cases[i].name);
    }
}

/* Sends more short messages than a socket takes at once, to a rank that is late
 * for them, and makes no calls then for longer than the deadline. */
static void run_no_calls(job_rank_t *me)
{
    enum { COUNT = 2000 };
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL);
    if (me->rank)
        job_sleep_ms(SHORT_MS / 2);
    for (int i = 0; i < COUNT && status == DSCOMM_OK; i++)
        status =
            me->rank == 0
                ? dscomm_send(me->world, &i, sizeof i, DSCOMM_UINT8, 1, TAG)
                : dscomm_recv(me->world, &me->report->value, sizeof i,
                              DSCOMM_UINT8, 0, TAG, NULL, NULL);
    if (me->rank == 0)
        job_sleep_ms(TIMEOUT_MS * 2);
    job_leave(me, status);
}

static void test_no_calls(void)
{
    job_t job;

    setenv("DSCOMM_TCP_UNIX", "yes", 1); /* a small buffer */
    job_run(&job, 2, TIMEOUT_MS, run_no_calls, NULL, 20000);
    job_ok(&job, job_all(&job, DSCOMM_OK),
           "short messages leave a rank that makes no more calls");
    setenv("DSCOMM_TCP_UNIX", "no", 1);
}

/* Sends a byte now and then. */
static void run_seldom(job_rank_t *me)
{
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL);
    while (status == DSCOMM_OK && me->rank == 0) {
        me->report->loops++;
        status = dscomm_send(me->world, buffer, 1, DSCOMM_UINT8, 1, TAG);
        job_sleep_ms(5);
    }
    while ((status == DSCOMM_OK || status == DSCOMM_IN_PROGRESS) && me->rank) {
        me->report->loops++;
        status = dscomm_probe(me->world, 0, TAG_NEVER, 5, NULL);
    }
    job_report_failure(me);
    job_leave(me, status);
}

/* Sends numbered messages until the value is set; the receiver checks them. */
static void run_stream(job_rank_t *me)
{
    const int64_t last = *(const int64_t *)me->arg;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL);
    for (int64_t i = 0; i < last && status == DSCOMM_OK; i++) {
        const size_t bytes = i % 3 ? MEDIUM / (size_t)(i % 7 + 1) : 100;

        me->started = job_now_ms();
        me->report->loops = i + 1;
        memcpy(buffer, &i, sizeof i);
        memcpy(buffer + bytes - sizeof i, &i, sizeof i);
        status = me->rank == 0 ? dscomm_send(me->world, buffer, bytes,
                                             DSCOMM_UINT8, 1, TAG)
                               : dscomm_recv(me->world, buffer, bytes,
                                             DSCOMM_UINT8, 0, TAG, NULL, NULL);
        me->report->value += memcmp(buffer, &i, sizeof i) ||
                             memcmp(buffer + bytes - sizeof i, &i, sizeof i);
    }
    job_leave(me, status);
}

static void test_stopped(void)
{
    static const int64_t few = 8000, many = INT64_MAX;
    job_t job;

    job_make(&job, 2, TIMEOUT_MS * 2, run_stream, (void *)(uintptr_t)&few);
    job_start(&job);
    job_wait_loops(&job, 50);
    kill(job.pids[1], SIGSTOP);
    job_sleep_ms(TIMEOUT_MS);
    kill(job.pids[1], SIGCONT);
    job_join(&job, 20000);
    is_int(job.reports[1].value, 0, "every message is right");
    job_ok(&job, job_all(&job, DSCOMM_OK) && job.reports[1].loops == few,
           "a receiver is stopped for less than the deadline");

    job_make(&job, 2, TIMEOUT_MS, run_stream, (void *)(uintptr_t)&many);
    job_start(&job);
    job_wait_loops(&job, 50);
    kill(job.pids[1], SIGSTOP);
    job_sleep_ms(TIMEOUT_MS * 2 + 500);
    ok(job.reports[0].ended, "the sender has returned by then");
    kill(job.pids[1], SIGCONT);
    job_join(&job, 20000);
    job_ok(&job,
           names_peer(&job, 0, job.reports[1].pid, TIMEOUT_MS + 1000) &&
               job.reports[1].ended && job.reports[1].status < 0,
           "a receiver is stopped for longer than the deadline");
}

/* Both ranks compute for longer than the deadline, with full sockets. */
static void run_busy(job_rank_t *me)
{
    enum { COUNT = 15 };
    dscomm_work_t *works[COUNT];
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL);
    for (int i = 0; i < COUNT && status == DSCOMM_OK && me->rank == 0; i++)
        status = dscomm_isend(me->world, buffer, 1 << 16, DSCOMM_UINT8, 1, TAG,
                              &works[i]);
    if (me->rank == 0)
        memset(buffer, 0, 1 << 16);
    job_sleep_ms(TIMEOUT_MS * 2);
    for (int i = 0; i < COUNT && status == DSCOMM_OK; i++) {
        if (me->rank)
            status = dscomm_recv(me->world, buffer, 1 << 16, DSCOMM_UINT8, 0,
                                 TAG, NULL, NULL);
        else
            status = dscomm_work_wait(works[i], DSCOMM_TIMEOUT_DEFAULT);
        if (me->rank == 0)
            dscomm_work_free(works[i]);
    }
    job_leave(me, status);
}

static void test_busy(void)
{
    job_t job;

    job_run(&job, 2, TIMEOUT_MS, run_busy, NULL, 20000);
    job_ok(&job, job_all(&job, DSCOMM_OK),
           "ranks that make no calls for longer than the deadline");
}

/* Rank 1 comes after the others have given up. Rank 0 then makes no calls, so
 * that there is never a connection; rank 2 has ended. */
static void run_late(job_rank_t *me)
{
    float in = 1, out;

    if (job_init(me) < 0)
        return;
    if (me->rank)
        job_sleep_ms(TIMEOUT_MS + SHORT_MS);
    job_report(me, dscomm_all_reduce(me->world, &in, &out, 1, DSCOMM_FLOAT32,
                                     DSCOMM_SUM, NULL));
    job_report_failure(me);
    if (me->rank == 2)
        dscomm_finalize(me->world);
    if (!me->rank)
        job_sleep_ms(TIMEOUT_MS * 2);
}

static void test_late(void)
{
    job_t job;

    for (int ranks = 2; ranks <= 3; ranks++) {
        int passed = 1;

        job_run(&job, ranks, TIMEOUT_MS, run_late, NULL, 20000);
        for (int r = 0; r < ranks; r++)
            passed &= job.reports[r].status == DSCOMM_ERR_TIMEOUT &&
                      job.reports[r].failure.rank == 1;
        job_ok(&job, passed, "the late one of %d ranks is the culprit for all",
               ranks);
    }
}

/* Sends long messages from rank 0 to rank 1 for ever. */
static void run_long(job_rank_t *me)
{
    dscomm_status_t status = job_init(me);

    while (status == DSCOMM_OK) {
        me->report->loops++;
        me->started = job_now_ms();
        status = me->rank == 0 ? dscomm_send(me->world, buffer, LONG,
                                             DSCOMM_UINT8, 1, TAG)
                               : dscomm_recv(me->world, buffer, LONG,
                                             DSCOMM_UINT8, 0, TAG, NULL, NULL);
    }
    if (!me->world)
        return;
    job_report_failure(me);
    job_leave(me, status);
}

static int record_names(const job_t *job, int rank, pid_t pid)
{
    const dscomm_failure_t *failure = &job->reports[rank].failure;

    if (failure->kind == DSCOMM_FAILURE_DIED && failure->rank == 1 - rank &&
        failure->pid == pid)
        return 1;
    printf("# rank %d: the record has kind %d, rank %d, pid %lld\n", rank,
           failure->kind, failure->rank, (long long)failure->pid);
    return 0;
}

/* Rank 0 sends memory that it may not read. */
static void run_unreadable(job_rank_t *me)
{
    void *memory =
        mmap(NULL, LONG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    dscomm_status_t status = job_init(me);

    if (status == DSCOMM_OK)
        status = me->rank ? dscomm_recv(me->world, buffer, LONG, DSCOMM_UINT8,
                                        0, TAG, NULL, NULL)
                          : dscomm_send(me->world, memory, LONG, DSCOMM_UINT8,
                                        1, TAG);
    job_report_failure(me);
    job_leave(me, status);
}

static void test_unreadable(void)
{
    const dscomm_failure_t *failure;
    job_t job;

    job_run(&job, 2, TIMEOUT_MS, run_unreadable, NULL, 20000);
    failure = &job.reports[0].failure;
    job_ok(&job,
           job.reports[0].status == DSCOMM_ERR_PROTOCOL &&
               failure->kind == DSCOMM_FAILURE_PROTOCOL && failure->rank == 0 &&
               job.reports[1].status == DSCOMM_ERR_PEER_FAILED,
           "memory that cannot be sent ends the group at once: %s",
           failure->detail);
}

static void test_seldom(void)
{
    job_t job;
    int64_t before;

    job_make(&job, 2, TIMEOUT_MS, run_seldom, NULL);
    job_start(&job);
    job_wait_loops(&job, 5);
    before = job.reports[0].loops;
    kill(job.pids[1], SIGKILL);
    job_join(&job, 20000);
    job_ok(&job,
           job.reports[0].status == DSCOMM_ERR_PEER_FAILED &&
               record_names(&job, 0, job.reports[1].pid) &&
               job.reports[0].loops < before + 100,
           "a rank that only sends learns of a death");
}

static void test_killed(void)
{
    job_t job;

    for (int victim = 0; victim < 2; victim++) {
        job_make(&job, 2, 0, run_long, NULL);
        job_start(&job);
        job_wait_loops(&job, 3);
        job_kill(&job, victim);
        job_join(&job, 10000);
        job_ok(&job,
               record_names(&job, 1 - victim, job.reports[victim].pid) &&
                   names_peer(&job, 1 - victim, job.reports[victim].pid, 5000),
               "the %s of a long message is killed",
               victim ? "receiver" : "sender");
    }
}

/* Resets the TCP connections of this process: connect() to nowhere does. */
static void reset_connections(int signal)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    struct tcp_info info;

    (void)signal;
    for (int fd = 3; fd < 256; fd++) {
        socklen_t size = sizeof info;

        if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) &&
            info.tcpi_state == TCP_ESTABLISHED)
            connect(fd, &nowhere, sizeof nowhere);
    }
}

static void run_reset(job_rank_t *me)
{
    signal(SIGUSR1, reset_connections);
    run_long(me);
}

static void test_reset(void)
{
    job_t job;

    for (int victim = 0; victim < 2; victim++) {
        job_make(&job, 2, 0, run_reset, NULL);
        job_start(&job);
        job_wait_loops(&job, 3);
        kill(job.pids[victim], SIGUSR1);
        job_join(&job, 10000);
        job_ok(&job,
               record_names(&job, 0, job.reports[1].pid) &&
                   names_peer(&job, 0, job.reports[1].pid, 5000) &&
                   record_names(&job, 1, job.reports[0].pid) &&
                   names_peer(&job, 1, job.reports[0].pid, 5000) &&
                   job_count(&job, 1 - victim, "reset by peer"),
               "the %s of a long message resets the connection",
               victim ? "receiver" : "sender");
    }
}

/* The number below which so many descriptors are free. */
static rlim_t limit_for(int free)
{
    int fd = 0;

    for (; free; fd++)
        free -= fcntl(fd, F_GETFD) < 0;
    return (rlim_t)fd;
}

/* Waits until all ranks have come here, without a message. */
static void ring_ended(const job_rank_t *me)
{
    const job_report_t *reports = me->report - me->rank;

    __atomic_store_n(&me->report->value, 1, __ATOMIC_RELEASE);
    for (int ms = 0, r = 0; ms < 20000 && r < me->ranks; ms++) {
        if (__atomic_load_n(&reports[r].value, __ATOMIC_ACQUIRE) == 1)
            r++;
        else
            usleep(1000);
    }
}

/* A ring has two connections a rank, and works with few descriptors; an
 * exchange of all with all does not. */
static void run_few_descriptors(job_rank_t *me)
{
    const int right = (me->rank + 1) % me->ranks;
    const int left = (me->rank + me->ranks - 1) % me->ranks;
    static char in[JOB_RANKS_MAX], out[JOB_RANKS_MAX];
    struct rlimit limit;
    dscomm_work_t *work;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit_for(6);
    setrlimit(RLIMIT_NOFILE, &limit);
    status = dscomm_isend(me->world, out, 1, DSCOMM_UINT8, right, TAG, &work);
    if (status == DSCOMM_OK)
        status =
            dscomm_recv(me->world, in, 1, DSCOMM_UINT8, left, TAG, NULL, NULL);
    if (status == DSCOMM_OK)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    me->report->other_status = status;
    ring_ended(me);
    me->started = job_now_ms();
    if (status == DSCOMM_OK)
        status = dscomm_all_to_all(me->world, out, in, 1, DSCOMM_UINT8, NULL);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    job_leave(me, status);
}

static void test_few_descriptors(void)
{
    enum { RANKS = 14 };
    int rings = 1, failed = 1, remedies = 0;
    job_t job;

    job_run(&job, RANKS, TIMEOUT_MS * 3, run_few_descriptors, NULL, 30000);
    for (int r = 0; r < RANKS; r++) {
        const job_report_t *report = &job.reports[r];

        rings &= report->other_status == DSCOMM_OK;
        failed &= report->ended && report->status < 0 && *report->sentence &&
                  job_exited(&job, r) &&
                  report->took_ms < job_slowly(TIMEOUT_MS * 3 + 2000);
        remedies += job_count(&job, r, "ulimit -n");
    }
    for (int r = 0; r < RANKS && !rings; r++)
        printf("# rank %d: %s\n", r, job.reports[r].sentence);
    ok(rings, "a ring works with six more descriptors a rank");
    printf("# %d of %d sentences have the remedy\n", remedies, RANKS);
    job_ok(&job, failed && remedies > RANKS / 2,
           "too few descriptors for %d ranks", RANKS);
}

typedef struct {
    const char *name;
    inject_call_t call;
    int error;
    bool early; /* before the start */
    const char *remedy;
} lack_t;

/* Rank 1 lacks a resource. */
static void run_lack(job_rank_t *me)
{
    const lack_t *lack = me->arg;
    static char in[2], out[2];
    dscomm_status_t status;

    injected_call = lack->call;
    if (me->rank == 1 && lack->early)
        injected_error = lack->error;
    if (job_init(me) < 0)
        return;
    if (me->rank == 1)
        injected_error = lack->error;
    /* Rank 0 connects unless rank 1 cannot. */
    if (lack->call == INJECT_CONNECT_INET)
        job_sleep_ms(me->rank ? 0 : 2 * TIMEOUT_MS);
    else
        job_sleep_ms(me->rank ? SHORT_MS : 0);
    if (lack->call == INJECT_CONNECT_INET && me->rank)
        status = dscomm_send(me->world, out, 1, DSCOMM_UINT8, 0, TAG);
    else
        status = dscomm_all_gather(me->world, out, in, 1, DSCOMM_UINT8, NULL);
    injected_error = 0;
    job_report_failure(me);
    job_leave(me, status);
}

static void test_lacks(void)
{
    static const lack_t lacks[] = {
        {"listen: EADDRINUSE", INJECT_LISTEN, EADDRINUSE, true,
         "ip_local_port_range"},
        {"bind: EADDRINUSE", INJECT_BIND, EADDRINUSE, true,
         "ip_local_port_range"},
        {"socket: EMFILE", INJECT_SOCKET, EMFILE, true, "ulimit -n"},
        {"accept4: EMFILE", INJECT_ACCEPT4, EMFILE, false, "ulimit -n"},
        {"connect: EADDRNOTAVAIL", INJECT_CONNECT_INET, EADDRNOTAVAIL, false,
         "ip_local_port_range"},
    };
    job_t job;

    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        job_run(&job, 2, TIMEOUT_MS, run_lack, (void *)(uintptr_t)&lacks[i],
                20000);
        job_ok(&job,
               job.reports[0].ended && job.reports[0].status < 0 &&
                   job.reports[1].ended && job.reports[1].status < 0 &&
                   job_sentence_has(&job, 1, lacks[i].remedy) &&
                   job_sentence_has(&job, 0, "rank 1"),
               "%s on rank 1", lacks[i].name);
    }
}

/* Rank 1 lacks descriptors for a moment. */
static void run_short_lack(job_rank_t *me)
{
    static char in[2], out[2];
    dscomm_work_t *work;
    dscomm_status_t status;

    injected_call = *(const inject_call_t *)me->arg;
    if (job_init(me) < 0)
        return;
    injected_error = me->rank ? EMFILE : 0;
    status = dscomm_all_gather(me->world, out, in, 1, DSCOMM_UINT8, &work);
    me->started = job_now_ms();
    while (status == DSCOMM_OK &&
           (status = dscomm_work_test(work)) == DSCOMM_IN_PROGRESS) {
        status = DSCOMM_OK;
        if (injected_error && job_now_ms() - me->started >= 200) {
            me->report->value = 1;
            injected_error = 0;
        }
    }
    injected_error = 0;
    job_leave(me, status);
}

static void test_short_lacks(void)
{
    static const inject_call_t calls[] = {INJECT_SOCKET, INJECT_ACCEPT4};
    int waited = 0;
    job_t job;

    for (size_t i = 0; i < 2; i++) {
        job_run(&job, 2, 20000, run_short_lack, (void *)(uintptr_t)&calls[i],
                30000);
        waited += (int)job.reports[1].value;
        job_ok(&job,
               job.reports[0].status == DSCOMM_OK &&
                   job.reports[1].status == DSCOMM_OK,
               "a short lack, %s, ends well", i ? "accept4" : "socket");
    }
    ok(waited, "a rank has waited for a descriptor");
}

int main(void)
{
    setenv("DSCOMM_BACKEND", "tcp", 1);
    setenv("DSCOMM_TCP_UNIX", "no", 1);
    inject_look_up();
    buffer = calloc(1, LONG);
    if (!buffer)
        bail("no memory");
    test_ignored();
    test_no_calls();
    test_seldom();
    test_unreadable();
    test_stopped();
    test_busy();
    test_late();
    test_killed();
    test_reset();
    test_few_descriptors();
    test_lacks();
    test_short_lacks();
    free(buffer);
    return job_done();
}
