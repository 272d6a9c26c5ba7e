/* SPDX-License-Identifier: BSD-3-Clause */
/* See job.h. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/port.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int leftovers;

double job_now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

void job_sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        continue;
}

/* How many times slower than an idle machine this one is: 1 to 8. The ranks of
 * the test itself, and a build beside it, do not count as load. */
static int busy_factor(void)
{
    static int factor;
    double load = 0;

    if (factor)
        return factor;
    if (getloadavg(&load, 1) < 1)
        load = 0;
    load /= 3.0 * (double)sysconf(_SC_NPROCESSORS_ONLN);
    factor = load < 1 ? 1 : load > 7 ? 8 : (int)load + 1;
    return factor;
}

int job_slowly(int ms)
{
    const char *valgrind = getenv("VALGRIND");
    const char *sanitizer = getenv("SANITIZER_FLAGS");

    ms *= busy_factor();
    if (valgrind && *valgrind)
        return ms * 8;
    return sanitizer && strstr(sanitizer, "sanitize") ? ms * 2 : ms;
}

unsigned job_draw(unsigned limit)
{
    static uint32_t state = 12345;

    state = state * 1664525 + 1013904223;
    return (state >> 8) % limit;
}

/* Counts the entries of /dev/shm, whoever owns them; a leak shows as a
 * difference. */
static int count_shm(void)
{
    DIR *folder = opendir("/dev/shm");
    struct dirent *entry;
    int count = 0;

    while (folder && (entry = readdir(folder)) != NULL)
        count += strstr(entry->d_name, "dscomm") != NULL;
    if (folder)
        closedir(folder);
    return count;
}

void job_make(job_t *job, int ranks, int timeout_ms, job_scenario_t scenario,
              void *arg)
{
    static int number;

    memset(job, 0, sizeof *job);
    job->ranks = ranks;
    job->timeout_ms = timeout_ms ? timeout_ms : job_slowly(20000);
    job->scenario = scenario;
    job->arg = arg;
    snprintf(job->path, sizeof job->path, "/tmp/dscomm-test.%d.%d",
             (int)getpid(), number++);
    snprintf(job->rendezvous, sizeof job->rendezvous, "file://%s", job->path);
    unlink(job->path);
    job->reports =
        mmap(NULL, sizeof *job->reports * JOB_RANKS_MAX, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job->reports == MAP_FAILED)
        bail("no memory for reports: %s", strerror(errno));
    /* Processes that a rank leaves behind become children of this one. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

struct sockaddr_in job_address(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};

    return address;
}

int job_listen(int *ret_port)
{
    struct sockaddr_in address = job_address(0);
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        bail("no port: %s", strerror(errno));
    *ret_port = ntohs(address.sin_port);
    return fd;
}

void job_use_tcp(job_t *job)
{
    snprintf(job->rendezvous, sizeof job->rendezvous, "tcp://127.0.0.1:%d",
             port_find_free(1));
}

/* JOB_HOSTS, such as "abab", has a letter for each rank: the host on which it
 * pretends to be. */
static void set_host(int rank)
{
    const char *hosts = getenv("JOB_HOSTS");
    char host[2] = "";

    if (!hosts || !*hosts)
        return;
    host[0] = hosts[(size_t)rank % strlen(hosts)];
    setenv("DSCOMM_HOST_ID", host, 1);
}

void job_start_rank(job_t *job, int rank)
{
    job_rank_t me = {.rank = rank,
                     .ranks = job->ranks,
                     .rendezvous = job->rendezvous,
                     .timeout_ms = job->timeout_ms,
                     .arg = job->arg,
                     .report = &job->reports[rank],
                     .started = job_now_ms()};
    pid_t parent = getpid();

    fflush(NULL);
    job->pids[rank] = fork();
    if (job->pids[rank] < 0)
        bail("fork: %s", strerror(errno));
    if (job->pids[rank] > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    set_host(rank);
    job->scenario(&me);
    exit(0); /* not _exit(), because a sanitizer checks for leaks at exit */
}

void job_start(job_t *job)
{
    for (int r = 0; r < job->ranks; r++)
        job_start_rank(job, r);
}

int job_wait_loops(job_t *job, int64_t loops)
{
    double end = job_now_ms() + job_slowly(15000);

    for (int r = 0; r < job->ranks; r++)
        while (job->pids[r] && job->reports[r].loops < loops &&
               !job->reports[r].ended) {
            if (job_now_ms() > end)
                return 0;
            job_sleep_ms(1);
        }
    return 1;
}

static int reap(job_t *job)
{
    int left = 0;

    for (int r = 0; r < job->ranks; r++) {
        if (job->pids[r] &&
            waitpid(job->pids[r], &job->statuses[r], WNOHANG) == job->pids[r])
            job->pids[r] = 0;
        left += job->pids[r] != 0;
    }
    return left;
}

void job_kill(job_t *job, int rank)
{
    kill(job->pids[rank], SIGKILL);
    waitpid(job->pids[rank], &job->statuses[rank], 0);
    job->pids[rank] = 0;
}

int job_join(job_t *job, int limit_ms)
{
    double end = job_now_ms() + job_slowly(limit_ms);

    while (reap(job) > 0 && job_now_ms() < end)
        job_sleep_ms(2);
    if (reap(job) == 0)
        return 1;
    for (int r = 0; r < job->ranks; r++) {
        if (!job->pids[r])
            continue;
        printf("# rank %d did not end in %d ms\n", r, limit_ms);
        job_kill(job, r);
        job->statuses[r] = -1;
    }
    return 0;
}

int job_run(job_t *job, int ranks, int timeout_ms, job_scenario_t scenario,
            void *arg, int limit_ms)
{
    job_make(job, ranks, timeout_ms, scenario, arg);
    job_start(job);
    return job_join(job, limit_ms);
}

int job_exited(const job_t *job, int rank)
{
    return job->statuses[rank] == 0;
}

int job_all(const job_t *job, dscomm_status_t status)
{
    int all = 1;

    for (int r = 0; r < job->ranks; r++)
        all &= job->reports[r].ended && job->reports[r].status == status;
    return all;
}

void job_end(job_t *job, const char *name)
{
    pid_t left;

    job_join(job, 0);
    left = waitpid(-1, NULL, WNOHANG);
    if (left != -1 || errno != ECHILD) {
        printf("# %s: a process is left\n", name);
        leftovers++;
    }
    if (count_shm() != 0) {
        printf("# %s: something is left in /dev/shm\n", name);
        leftovers++;
    }
    munmap(job->reports, sizeof *job->reports * JOB_RANKS_MAX);
    unlink(job->path);
}

int job_leftovers(void)
{
    return leftovers;
}

dscomm_status_t job_init(job_rank_t *me)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_status_t status;

    attr.init_method = me->rendezvous;
    attr.has_rank = 1;
    attr.rank = me->rank;
    attr.world_size = me->ranks;
    attr.timeout_ms = me->timeout_ms;
    attr.name = me->name;
    me->started = job_now_ms();
    status = dscomm_init(&attr, &me->world);
    if (status < 0) {
        job_report(me, status);
        return status;
    }
    me->report->capabilities = dscomm_group_capabilities(me->world);
    me->report->ready = 1;
    me->started = job_now_ms();
    return status;
}

void job_report(job_rank_t *me, dscomm_status_t status)
{
    job_report_t *report = me->report;

    report->status = status;
    report->at_ms = job_now_ms();
    report->took_ms = report->at_ms - me->started;
    snprintf(report->sentence, sizeof report->sentence, "%s",
             status < 0 ? dscomm_last_error() : "");
    report->ended = 1;
}

void job_leave(job_rank_t *me, dscomm_status_t status)
{
    job_report(me, status);
    dscomm_finalize(me->world);
}

int job_sentence_has(const job_t *job, int rank, const char *text)
{
    if (strstr(job->reports[rank].sentence, text))
        return 1;
    printf("# rank %d: the sentence lacks \"%s\": %s: %s\n", rank, text,
           dscomm_status_name(job->reports[rank].status),
           job->reports[rank].sentence);
    return 0;
}

int job_count(const job_t *job, int rank, const char *text)
{
    const char *at = job->reports[rank].sentence;
    int count = 0;

    for (; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

int job_reported(const job_t *job, unsigned ranks, dscomm_status_t status,
                 int limit_ms, ...)
{
    int passed = 1;

    for (int r = 0; r < job->ranks; r++) {
        const job_report_t *report = &job->reports[r];
        const char *word;
        va_list words;

        if (!(ranks >> r & 1))
            continue;
        if (!report->ended || report->status != status ||
            report->took_ms >= job_slowly(limit_ms)) {
            printf("# rank %d: not told %s within %d ms\n", r,
                   dscomm_status_name(status), job_slowly(limit_ms));
            passed = 0;
        }
        va_start(words, limit_ms);
        while ((word = va_arg(words, const char *)))
            passed &= job_sentence_has(job, r, word);
        va_end(words);
    }
    return passed;
}

void job_show(const job_t *job)
{
    for (int r = 0; r < job->ranks; r++) {
        const job_report_t *report = &job->reports[r];

        printf("# rank %d: %s after %.0f ms: %s (ended %d, wait status %d, "
               "value %lld, other status %s)\n",
               r, dscomm_status_name(report->status), report->took_ms,
               report->sentence, report->ended, job->statuses[r],
               (long long)report->value,
               dscomm_status_name((dscomm_status_t)report->other_status));
    }
}
