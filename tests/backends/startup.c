/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining when something is wrong: ranks that are missing, late, duplicate or
 * inconsistent; ports in use; strangers at the port. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/backends/sandbox.h"
#include "tests/tap.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Joins, sums once, leaves. */
static void join_and_leave(job_rank_t *me)
{
    int32_t one = 1, sum = 0;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = dscomm_all_reduce(me->world, &one, &sum, 1, DSCOMM_INT32,
                               DSCOMM_SUM, NULL);
    me->report->value = sum;
    if (status == DSCOMM_OK)
        status = dscomm_finalize(me->world);
    job_report(me, status);
}

static int all_summed(const job_t *job)
{
    int passed = job_all(job, DSCOMM_OK);

    for (int r = 0; r < job->ranks; r++)
        passed &= job->reports[r].value == job->ranks;
    return passed;
}

static void run_missing(int tcp, int missing, int also_missing)
{
    job_t job;
    char numbers[2][16];
    int passed;

    job_make(&job, 8, job_slowly(1000), join_and_leave, NULL);
    if (tcp)
        job_use_tcp(&job);
    snprintf(numbers[0], sizeof numbers[0], "%d", missing);
    snprintf(numbers[1], sizeof numbers[1], "%d", also_missing);
    for (int r = 0; r < job.ranks; r++)
        if (r != missing && r != also_missing)
            job_start_rank(&job, r);
    passed = job_join(&job, 6000);
    passed &=
        job_reported(&job, ~(1u << missing | 1u << also_missing),
                     DSCOMM_ERR_TIMEOUT, 3500, numbers[0], numbers[1], NULL);
    job_ok(&job, passed, "ranks %d and %d never come, %s: they are named",
           missing, also_missing, tcp ? "tcp" : "file");
}

/* Rank 1 is killed after it has joined. Rank 2 comes after rank 0 has detected
 * that, but within the two seconds that rank 0 then stays, however slow the
 * build is. */
static void run_killed(int tcp)
{
    job_t job;
    int passed;

    job_make(&job, 3, job_slowly(8000), join_and_leave, NULL);
    if (tcp)
        job_use_tcp(&job);
    job_start_rank(&job, 0);
    job_start_rank(&job, 1);
    job_sleep_ms(job_slowly(300));
    job_kill(&job, 1);
    job_sleep_ms(1300);
    job_start_rank(&job, 2);
    passed = job_join(&job, 10000);
    passed &= job_reported(&job, 5, DSCOMM_ERR_PEER_FAILED, 5000,
                           "rank 1 (pid ", NULL);
    job_ok(&job, passed,
           "rank 1 is killed before rank 2 comes, %s: both name it",
           tcp ? "tcp" : "file");
}

typedef struct {
    const char *name;
    long call; /* system call that kills rank 1 */
    int split; /* in the first split; else in init */
} deadly_t;

static void die_joining(job_rank_t *me)
{
    const deadly_t *d = me->arg;
    struct rlimit no_core = {0, 0};
    dscomm_group_t *group;

    setrlimit(RLIMIT_CORE, &no_core);
    if (me->rank == 1 && !d->split)
        me->report->value =
            sandbox_filter(d->call, SECCOMP_RET_KILL_PROCESS) ? errno : 0;
    if (job_init(me) < 0)
        return;
    if (me->rank == 1 && d->split)
        me->report->value =
            sandbox_filter(d->call, SECCOMP_RET_KILL_PROCESS) ? errno : 0;
    me->started = job_now_ms();
    job_report(me, dscomm_group_split(me->world, 0, 0, NULL, &group));
    dscomm_finalize(me->world);
}

/* Rank 1 dies while the group is made, before or after its message to rank 0:
 * both others name it, and not each other. */
static void test_killed_joining(void)
{
    static const deadly_t deadly[] = {
        {"init, after its message", SYS_recvmsg, 0},
        {"split, after its message", SYS_recvmsg, 1},
        {"split, before its message", SYS_connect, 1},
    };

    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
        job_t job;
        int passed;

        passed = job_run(&job, 3, job_slowly(8000), die_joining,
                         (void *)&deadly[i], 20000);
        if (job_unfiltered(&job, 1))
            continue;
        passed &= job_reported(&job, 5, DSCOMM_ERR_PEER_FAILED, 4000, "rank 1 ",
                               NULL);
        job_ok(&job, passed, "rank 1 dies in %s: both name it", deadly[i].name);
    }
}

static void test_missing(void)
{
    run_missing(0, 5, 7);
    run_missing(0, 0, 3);
    run_missing(1, 5, 7);
    run_killed(0);
    run_killed(1);
}

/* Without rank 0 nobody serves the store: the others say where they looked. */
static void test_nobody_serves(void)
{
    job_t job;
    int passed;
    const char *port;

    job_make(&job, 3, job_slowly(1000), join_and_leave, NULL);
    job_use_tcp(&job);
    port = strrchr(job.rendezvous, ':') + 1;
    job_start_rank(&job, 1);
    job_start_rank(&job, 2);
    passed = job_join(&job, 6000);
    passed &= job_reported(&job, 6, DSCOMM_ERR_TIMEOUT, 6000, port, NULL);
    job_ok(&job, passed, "rank 0 never serves: the address is named");
}

static void run_late(int tcp)
{
    job_t job;
    int passed;

    job_make(&job, 4, 0, join_and_leave, NULL);
    if (tcp)
        job_use_tcp(&job);
    for (int r = job.ranks - 1; r >= 0; r--) {
        job_start_rank(&job, r);
        job_sleep_ms(200);
    }
    passed = job_join(&job, 10000) && all_summed(&job);
    job_ok(&job, passed, "ranks that come late and in reverse order, %s",
           tcp ? "tcp" : "file");
}

/* The last rank pretends to be the rank in arg. */
static void join_doubled(job_rank_t *me)
{
    if (me->rank == me->ranks - 1)
        me->rank = *(const int *)me->arg;
    join_and_leave(me);
}

/* All ranks that join learn of it, long before their deadline. */
static void test_doubled(int tcp, int doubled)
{
    int passed;
    job_t job;

    job_make(&job, 4, 600000, join_doubled, &doubled);
    if (tcp)
        job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, 30000);
    passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_ENVIRONMENT, 20000,
                           "is claimed by two processes, pid ", " and ",
                           "own rank", NULL);
    job_ok(&job, passed, "two processes claim rank %d, %s: all are told",
           doubled, tcp ? "tcp" : "file");
}

/* A second rank 0 finds the port in use, and the first is notified. */
static void test_two_leaders(void)
{
    int passed, second, zero = 0;
    job_t job;

    job_make(&job, 2, 600000, join_doubled, &zero);
    job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, 30000);
    second = job.reports[1].status == DSCOMM_ERR_IO;
    passed &=
        job_reported(&job, 1u << second, DSCOMM_ERR_IO, 20000, "in use by pid ",
                     "which is rank 0 of 2", "RANK 0", "MASTER_PORT", NULL);
    passed &= job_reported(&job, 1u << !second, DSCOMM_ERR_ENVIRONMENT, 20000,
                           "rank 0 of 2 is claimed by two processes",
                           "MASTER_PORT", NULL);
    job_ok(&job, passed, "two processes claim rank 0: both are told");
}

/* The last rank has the world size in arg. */
static void join_miscounted(job_rank_t *me)
{
    if (me->rank == me->ranks - 1)
        me->rank = (me->ranks = *(const int *)me->arg) - 1;
    join_and_leave(me);
}

static void test_miscounted(int tcp, int ranks)
{
    int passed;
    job_t job;

    job_make(&job, 3, tcp ? 600000 : job_slowly(1500), join_miscounted, &ranks);
    if (tcp)
        job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, 30000);
    for (int r = 0; r < 3; r++)
        passed &= job.reports[r].ended && job.reports[r].status < 0;
    if (tcp)
        passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_MISMATCH, 20000,
                               "of 3 ranks", "world size", NULL);
    job_ok(&job, passed,
           "ranks disagree about the world's size, 3 or %d, %s: %s", ranks,
           tcp ? "tcp" : "file", tcp ? "all are told" : "none hangs");
}

/* One error in the environment, and which rank the sentence names. */
typedef struct {
    const char *set[3][2];
    dscomm_status_t want;
    const char *word;
} environment_t;

static void init_from_environment(job_rank_t *me)
{
    const environment_t *e = me->arg;
    dscomm_group_t *world = NULL;
    dscomm_status_t status;

    for (int i = 0; i < 3 && e->set[i][0]; i++)
        setenv(e->set[i][0], e->set[i][1], 1);
    status = dscomm_init(NULL, &world);
    job_report(me, status);
    dscomm_finalize(world);
}

static void test_environment(void)
{
    static const environment_t cases[] = {
        {{{"DSCOMM_RANK", "3"}, {"DSCOMM_WORLD_SIZE", "2"}},
         DSCOMM_ERR_ENVIRONMENT,
         "DSCOMM_RANK"},
        {{{"DSCOMM_RANK", "two"}, {"DSCOMM_WORLD_SIZE", "2"}},
         DSCOMM_ERR_ENVIRONMENT,
         "two"},
        {{{"DSCOMM_RANK", "-1"}, {"DSCOMM_WORLD_SIZE", "2"}},
         DSCOMM_ERR_ENVIRONMENT,
         "-1"},
        {{{"DSCOMM_RANK", "0"}}, DSCOMM_ERR_ENVIRONMENT, "DSCOMM_WORLD_SIZE"},
        {{{"DSCOMM_TIMEOUT", "soon"}}, DSCOMM_ERR_ENVIRONMENT, "soon"},
        {{{"DSCOMM_BACKEND", "warp"}, {"DSCOMM_RANK", ""}},
         DSCOMM_ERR_NO_BACKEND,
         "warp"},
        {{{"DSCOMM_INIT_METHOD", "carrier-pigeon://x"},
          {"DSCOMM_RANK", "0"},
          {"DSCOMM_WORLD_SIZE", "2"}},
         DSCOMM_ERR_ENVIRONMENT,
         "carrier-pigeon"},
        {{{NULL, NULL}}, DSCOMM_OK, ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        job_t job;
        int passed;

        passed =
            job_run(&job, 1, 0, init_from_environment, (void *)&cases[i],
                    5000) &&
            job_reported(&job, 1, cases[i].want, 5000, cases[i].word, NULL);
        job_ok(&job, passed, "environment %s=%s",
               cases[i].set[0][0] ? cases[i].set[0][0] : "(none)",
               cases[i].set[0][0] ? cases[i].set[0][1] : "");
    }
}

/* Rank 1, or every rank, has no modules. */
static void join_without_modules(job_rank_t *me)
{
    if (me->arg || me->rank == 1)
        setenv("DSCOMM_BACKEND_PATH", "/nonexistent/backends", 1);
    setenv("DSCOMM_BACKEND", "auto", 1);
    join_and_leave(me);
}

static void test_no_modules(void)
{
    static const char *const words[2][2] = {
        {"rank 1 on", "/nonexistent/backends cannot be read"},
        {"self: ", "/nonexistent/backends cannot be read: No such file or "
                   "directory (set DSCOMM_BACKEND_PATH"}};

    for (int all = 0; all < 2; all++) {
        job_t job;
        int passed;

        passed =
            job_run(&job, 2, 0, join_without_modules, all ? &job : NULL, 8000);
        passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_NO_BACKEND, 8000,
                               words[all][0], words[all][1], NULL);
        job_ok(&job, passed, "no modules on %s", all ? "any rank" : "rank 1");
    }
}

/* The same by attributes. */
typedef struct {
    dscomm_init_attr_t attr;
    const char *word;
} attribute_t;

static void init_from_attributes(job_rank_t *me)
{
    const attribute_t *a = me->arg;
    dscomm_group_t *world = NULL;

    job_report(me, dscomm_init(&a->attr, &world));
    dscomm_finalize(world);
}

static void test_attributes(void)
{
    const size_t size = sizeof(dscomm_init_attr_t);
    const attribute_t cases[] = {
        {{size, NULL, "file:///tmp/x", NULL, 1, 2, 2, 0, NULL}, "2"},
        {{size, NULL, "file:///tmp/x", NULL, 1, -1, 2, 0, NULL}, "-1"},
        {{size, NULL, "file:///tmp/x", NULL, 1, 0, 0, 0, NULL}, "0"},
        {{size, NULL, "bogus:///tmp/x", NULL, 1, 0, 2, 0, NULL}, "bogus"},
        {{size, NULL, NULL, NULL, 0, 0, 0, -5, NULL}, "-5"},
        {{3, NULL, NULL, NULL, 0, 0, 0, 0, NULL}, "size"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        job_t job;
        int passed;

        passed = job_run(&job, 1, 0, init_from_attributes, (void *)&cases[i],
                         5000) &&
                 job_reported(&job, 1, DSCOMM_ERR_INVALID, 5000, cases[i].word,
                              NULL);
        job_ok(&job, passed, "wrong attribute %zu", i);
    }
}

/* Another program listens at the port, and does not answer. */
static void test_port_in_use(void)
{
    job_t job;
    int port, passed, fd = job_listen(&port);
    char number[16];

    job_make(&job, 2, job_slowly(1500), join_and_leave, NULL);
    snprintf(job.rendezvous, sizeof job.rendezvous, "tcp://127.0.0.1:%d", port);
    snprintf(number, sizeof number, "%d", port);
    job_start(&job);
    passed = job_join(&job, 8000);
    for (int r = 0; r < 2; r++)
        passed &=
            job.reports[r].status < 0 && job_sentence_has(&job, r, number);
    passed &= job_sentence_has(&job, 0, "in use");
    job_ok(&job, passed, "the port is in use: both ranks name it");
    close(fd);
}

static int connect_to(int port)
{
    struct sockaddr_in address = job_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* A stranger that reads no answers; it sends invalid, truncated or endless
 * requests. */
static void pester(int port)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    static const unsigned char huge[] = {0,    0x3c, 0x85, 0xf9, 0x3c,
                                         0,    0xff, 0xff, 0xff, 0xff,
                                         0xff, 0xff, 0xff, 0x7f};
    unsigned char noise[512];

    for (int i = 0; i < 40; i++) {
        int fd = connect_to(port);
        ssize_t sent = 0;

        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = (unsigned char)job_draw(256);
        if (i % 4 == 0)
            sent = send(fd, http, sizeof http, MSG_NOSIGNAL);
        else if (i % 4 == 1)
            sent = send(fd, noise, sizeof noise, MSG_NOSIGNAL);
        else if (i % 4 == 2)
            sent = send(fd, huge, sizeof huge, MSG_NOSIGNAL);
        else if (fd >= 0) /* connected, and silent */
            sent = 1;
        if (sent <= 0 || i % 8 == 0)
            close(fd);
    }
}

static void test_strangers(void)
{
    job_t job;
    pid_t pest;
    int passed, port;

    job_make(&job, 3, 0, join_and_leave, NULL);
    job_use_tcp(&job);
    port = atoi(strrchr(job.rendezvous, ':') + 1);
    job_start_rank(&job, 0);
    for (int i = 0, fd = -1; i < 300 && fd < 0; i++) {
        job_sleep_ms(10);
        fd = connect_to(port); /* rank 0 serves */
        close(fd);
    }
    fflush(NULL);
    pest = fork();
    if (pest == 0) {
        pester(port);
        pause();
    }
    job_sleep_ms(200);
    job_start_rank(&job, 1);
    job_start_rank(&job, 2);
    passed = job_join(&job, 15000) && all_summed(&job);
    if (pest > 0) {
        kill(pest, SIGKILL);
        waitpid(pest, NULL, 0);
    }
    job_ok(&job, passed,
           "strangers, malformed requests and silence on the port");
}

int main(void)
{
    test_missing();
    test_killed_joining();
    test_nobody_serves();
    run_late(0);
    run_late(1);
    for (int tcp = 0; tcp < 2; tcp++) {
        for (int rank = tcp; rank < 3; rank++)
            test_doubled(tcp, rank);
        test_miscounted(tcp, 2);
        test_miscounted(tcp, 5);
    }
    test_two_leaders();
    test_environment();
    test_no_modules();
    test_attributes();
    test_port_in_use();
    test_strangers();
    return job_done();
}
