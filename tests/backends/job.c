/* SPDX-License-Identifier: BSD-3-Clause */
/* See job.h. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Data that a job shares with ranks that a launcher starts, in a file. */
typedef struct {
    job_report_t reports[JOB_RANKS_MAX]; /* first: they are unmapped alone */
    job_t job;
    int statuses[JOB_RANKS_MAX];
} job_shared_t;

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
    me.report->pid = getpid();
    set_host(rank);
    job->scenario(&me);
    exit(0); /* not _exit(), because a sanitizer checks for leaks at exit */
}

void job_start(job_t *job)
{
    for (int r = 0; r < job->ranks; r++)
        job_start_rank(job, r);
}

/* Maps the file of a job, of which the name is path ".job". */
static job_shared_t *map_shared(const char *path, int flags)
{
    char name[80];
    job_shared_t *shared;
    int fd;

    snprintf(name, sizeof name, "%s.job", path);
    fd = open(name, flags | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || (flags && ftruncate(fd, sizeof *shared) < 0))
        bail("%s: %s", name, strerror(errno));
    shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        bail("%s: %s", name, strerror(errno));
    close(fd);
    return shared;
}

/* In the child: becomes the launcher. */
static void execute(const job_t *job, char *const *launcher, char *const *args)
{
    enum { WORDS_MAX = 64 };
    char *words[WORDS_MAX], log[80];
    int count = 0, fd;

    snprintf(log, sizeof log, "%s.log", job->path);
    fd = open(log, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (; *launcher && count < WORDS_MAX - 1; launcher++)
        words[count++] = *launcher;
    for (; *args && count < WORDS_MAX - 1; args++)
        words[count++] = *args;
    words[count] = NULL;
    setenv("JOB_PATH", job->path, 1);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    execvp(words[0], words);
    _exit(127);
}

void job_launch(job_t *job, char *const *launcher, char *const *args)
{
    job_shared_t *shared = map_shared(job->path, O_CREAT | O_TRUNC);

    munmap(job->reports, sizeof *job->reports * JOB_RANKS_MAX);
    job->reports = shared->reports;
    shared->job = *job;
    for (int r = 0; r < JOB_RANKS_MAX; r++)
        shared->statuses[r] = -1;
    fflush(NULL);
    job->launcher = fork();
    if (job->launcher < 0)
        bail("fork: %s", strerror(errno));
    if (job->launcher > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execute(job, launcher, args);
}

static int launched_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "RANK"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    bail("the launcher tells no rank");
}

void job_serve(job_scenario_t scenario, void *arg)
{
    const char *path = getenv("JOB_PATH");
    job_shared_t *shared;
    job_t job;
    int rank;

    if (!path)
        return;
    shared = map_shared(path, 0);
    unsetenv("JOB_PATH");
    signal(SIGUSR1, SIG_IGN); /* Hydra's, when another rank has ended */
    rank = launched_rank();
    job = shared->job;
    job.reports = shared->reports;
    job.scenario = scenario;
    job.arg = arg;
    job_start_rank(&job, rank);
    while (waitpid(job.pids[rank], &shared->statuses[rank], 0) < 0 &&
           errno == EINTR)
        continue;
    _exit(0);
}

static int is_awaited(const job_t *job, int rank)
{
    return job->launcher || job->pids[rank];
}

int job_wait_loops(job_t *job, int64_t loops)
{
    double end = job_now_ms() + job_slowly(15000);

    for (int r = 0; r < job->ranks; r++)
        while (is_awaited(job, r) && job->reports[r].loops < loops &&
               !job->reports[r].ended) {
            if (job_now_ms() > end)
                return 0;
            job_sleep_ms(1);
        }
    return 1;
}

/* Returns whether the launcher still runs. */
static int reap_launcher(job_t *job)
{
    const job_shared_t *shared = (const job_shared_t *)job->reports;

    if (!job->launcher)
        return 0;
    if (waitpid(job->launcher, &job->launcher_status, WNOHANG) != job->launcher)
        return 1;
    job->launcher = 0;
    memcpy(job->statuses, shared->statuses, sizeof job->statuses);
    return 0;
}

static int reap(job_t *job)
{
    int left = reap_launcher(job);

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

/* Ends a launcher that has not ended, after its ranks. Unless it is killed, it
 * removes what its MPI keeps in /dev/shm. */
static void end_launcher(job_t *job)
{
    const double end = job_now_ms() + job_slowly(5000);

    for (int r = 0; r < job->ranks; r++)
        if (job->reports[r].pid)
            kill(job->reports[r].pid, SIGKILL);
    kill(job->launcher, SIGTERM);
    while (reap_launcher(job) && job_now_ms() < end)
        job_sleep_ms(2);
    if (!job->launcher)
        return;
    kill(job->launcher, SIGKILL);
    waitpid(job->launcher, NULL, 0);
    job->launcher = 0;
}

int job_join(job_t *job, int limit_ms)
{
    double end = job_now_ms() + job_slowly(limit_ms);

    while (reap(job) > 0 && job_now_ms() < end)
        job_sleep_ms(2);
    if (reap(job) == 0)
        return 1;
    if (job->launcher) {
        printf("# the launcher did not end in %d ms\n", limit_ms);
        end_launcher(job);
        return 0;
    }
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

/* Removes the file path SUFFIX. */
static void remove_file(const job_t *job, const char *suffix)
{
    char name[80];

    snprintf(name, sizeof name, "%s%s", job->path, suffix);
    unlink(name);
}

/* Returns whether no child is left. Processes of a launcher that end after it
 * are given a moment. */
static int is_childless(double until_ms)
{
    pid_t left;

    while ((left = waitpid(-1, NULL, WNOHANG)) >= 0 && job_now_ms() < until_ms)
        job_sleep_ms(left ? 0 : 2);
    return left == -1 && errno == ECHILD;
}

void job_end(job_t *job, const char *name)
{
    char file[80];
    int launched;

    job_join(job, 0);
    snprintf(file, sizeof file, "%s.job", job->path);
    launched = access(file, F_OK) == 0;
    if (!is_childless(launched ? job_now_ms() + job_slowly(3000) : 0)) {
        printf("# %s: a process is left\n", name);
        leftovers++;
    }
    if (count_shm() != 0) {
        printf("# %s: something is left in /dev/shm\n", name);
        leftovers++;
    }
    munmap(job->reports, launched ? sizeof(job_shared_t)
                                  : sizeof *job->reports * JOB_RANKS_MAX);
    remove_file(job, "");
    remove_file(job, ".job");
    remove_file(job, ".log");
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

void job_report_failure(job_rank_t *me)
{
    dscomm_failure_t *failure = &me->report->failure;

    failure->size = sizeof *failure;
    if (!me->world || dscomm_group_failure(me->world, failure) < 0)
        failure->size = 0;
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

static FILE *open_log(const job_t *job)
{
    char name[80];

    snprintf(name, sizeof name, "%s.log", job->path);
    return fopen(name, "re");
}

bool job_log_has(const job_t *job, const char *text)
{
    char line[512];
    FILE *file = open_log(job);
    bool has = false;

    while (file && !has && fgets(line, sizeof line, file))
        has = strstr(line, text);
    if (file)
        fclose(file);
    return has;
}

/* Prints the end of what the launcher and its ranks have printed. */
static void show_log(const job_t *job)
{
    enum { BYTES = 4000 };
    char line[512];
    FILE *file = open_log(job);

    if (!file)
        return;
    if (fseek(file, -BYTES, SEEK_END) < 0)
        rewind(file);
    while (fgets(line, sizeof line, file))
        printf("# log: %s%s", line, strchr(line, '\n') ? "" : "\n");
    fclose(file);
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
    show_log(job);
}
