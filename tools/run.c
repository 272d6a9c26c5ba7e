/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm run`: the command line, the store, and the limits of a job of local
 * ranks. */
#include "config.h"

#include "tools/errors.h"
#include "tools/guard.h"
#include "tools/supervise.h"
#include "tools/tool.h"

#include <dscomm/status.h>
#include <dscomm/store.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define RANKS_MAX 4096
/* To open a store that is served here. */
#define STORE_TIMEOUT_MS 10000

typedef struct {
    int ranks;
    double timeout, grace; /* seconds */
    gboolean tag_output;
    char **argv;
} options_t;

static const char description[] =
    "PROGRAM is searched in PATH and gets ARGUMENTS. The exit status is that "
    "of the\n"
    "first rank that fails (128 + N for signal N), after which the others are\n"
    "ended; 0 if none fails; 124 after --timeout; 125 if dscomm itself fails;\n"
    "126 if PROGRAM cannot be executed, 127 if it is not found; 2 for wrong "
    "use.";

static int check_options(const options_t *options)
{
    if (options->ranks < 1 || options->ranks > RANKS_MAX)
        return tool_fail(TOOL_USAGE, "run",
                         "give the number of ranks, 1 to %d, with -n",
                         RANKS_MAX);
    if (!(options->timeout >= 0 && options->timeout <= 1e9))
        return tool_fail(TOOL_USAGE, "run",
                         "--timeout must be 0 to 1000000000 seconds");
    if (!(options->grace >= 0 && options->grace <= 1e9))
        return tool_fail(TOOL_USAGE, "run",
                         "--grace must be 0 to 1000000000 seconds");
    if (!options->argv[0])
        return tool_fail(TOOL_USAGE, "run",
                         "which program? Usage: dscomm run -n N PROGRAM "
                         "[ARGUMENTS]");
    return TOOL_OK;
}

/* GOption knows "-n 4" and "--ranks=4", people write "-n4" as well. */
static void split_ranks(char **argv)
{
    static const char *const with_value[] = {"-n", "--ranks", "--timeout",
                                             "--grace", NULL};

    for (int i = 1; argv[i] && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--") == 0)
            return;
        if (g_strv_contains(with_value, argv[i]) && argv[i + 1])
            i++;
        if (!g_str_has_prefix(argv[i], "-n") || !g_ascii_isdigit(argv[i][2]))
            continue;
        char *word = g_strdup_printf("--ranks=%s", argv[i] + 2);
        argv[i] = (char *)g_intern_string(word);
        g_free(word);
    }
}

static int read_options(int argc, char **argv, options_t *ret_options)
{
    options_t o = {.grace = 5};
    const GOptionEntry entries[] = {
        {"ranks", 'n', 0, G_OPTION_ARG_INT, &o.ranks,
         "Start N ranks (required)", "N"},
        {"tag-output", 0, 0, G_OPTION_ARG_NONE, &o.tag_output,
         "Put \"[rank]: \" before every line of output", NULL},
        {"timeout", 0, 0, G_OPTION_ARG_DOUBLE, &o.timeout,
         "End all ranks after S seconds; 0 = never", "S"},
        {"grace", 0, 0, G_OPTION_ARG_DOUBLE, &o.grace,
         "Time from SIGTERM to SIGKILL (5 seconds)", "S"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };

    split_ranks(argv);
    if (!tool_parse(&argc, &argv, entries, "PROGRAM [ARGUMENT...]",
                    description))
        return TOOL_USAGE;
    o.argv = argv + 1;
    if (o.argv[0] && strcmp(o.argv[0], "--") == 0)
        o.argv++;
    int status = check_options(&o);
    if (status == TOOL_OK)
        *ret_options = o;
    return status;
}

/* Pipes, and two connections of every rank to the store. */
static int raise_file_limit(const options_t *options, struct rlimit *ret_before)
{
    rlim_t need = 64 + (rlim_t)options->ranks * (options->tag_output ? 4 : 2);
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    *ret_before = limit;
    if (limit.rlim_cur >= need)
        return TOOL_OK;
    if (limit.rlim_max < need)
        return tool_fail(TOOL_INTERNAL, "run",
                         "%d ranks need %llu open files, and the hard limit "
                         "is %llu: raise it (ulimit -Hn) or start fewer",
                         options->ranks, (unsigned long long)need,
                         (unsigned long long)limit.rlim_max);
    limit.rlim_cur = need;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return TOOL_OK;
    return tool_fail(TOOL_INTERNAL, "run", "cannot have %llu open files: %s",
                     (unsigned long long)need, g_strerror(errno));
}

/* Ours must not get the numbers of stdin, stdout and stderr. */
static void fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    if (fd > STDERR_FILENO)
        close(fd);
}

static int make_run_id(char *id, size_t size)
{
    guint32 words[4];

    if (getrandom(words, sizeof(words), 0) != sizeof(words))
        return tool_fail(TOOL_INTERNAL, "run", "no random numbers: %s",
                         g_strerror(errno));
    snprintf(id, size, "%08x%08x%08x%08x", words[0], words[1], words[2],
             words[3]);
    return TOOL_OK;
}

static int prepare_job(const options_t *options, tool_job_t *ret_job)
{
    tool_job_t job = {.argv = options->argv, .ranks = options->ranks};
    int status = raise_file_limit(options, &job.files);

    fill_standard_fds();
    if (status == TOOL_OK)
        status = make_run_id(job.run_id, sizeof(job.run_id));
    if (status != TOOL_OK)
        return status;
    job.terminal = tcgetpgrp(STDIN_FILENO) >= 0;
    job.null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (job.null_fd < 0)
        return tool_fail(TOOL_INTERNAL, "run", "/dev/null: %s",
                         g_strerror(errno));
    int error = tool_guard_start(job.ranks, &job.guard);
    if (error)
        return tool_fail(TOOL_INTERNAL, "run",
                         "cannot start the guard process: %s",
                         g_strerror(error));
    tool_errors_make(job.guard.folder, PATH_MAX);
    *ret_job = job;
    return TOOL_OK;
}

static int open_store(dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    attr.serve = 1;
    attr.timeout_ms = STORE_TIMEOUT_MS;
    if (dscomm_store_open("tcp://127.0.0.1:0", &attr, ret_store) == DSCOMM_OK)
        return TOOL_OK;
    return tool_fail(TOOL_INTERNAL, "run", "cannot serve the ranks' store: %s",
                     dscomm_last_error());
}

/* Only 0 becomes 0, which may mean "never". */
static gint64 to_us(double seconds)
{
    gint64 us = (gint64)(seconds * G_USEC_PER_SEC);

    return seconds > 0 ? MAX(us, 1) : 0;
}

static int run_job(const options_t *options, tool_job_t *job)
{
    const tool_limits_t limits = {
        .timeout_us = to_us(options->timeout),
        .grace_us = to_us(options->grace),
        .tag_output = options->tag_output,
    };

    if (tool_supervise_prepare(job) < 0)
        return TOOL_INTERNAL;
    return tool_supervise(job, &limits);
}

int tool_run(int argc, char **argv)
{
    options_t options;
    tool_job_t job;
    dscomm_store_t *store;
    int status = read_options(argc, argv, &options);

    if (status == TOOL_OK)
        status = prepare_job(&options, &job);
    if (status != TOOL_OK)
        return status;
    status = open_store(&store);
    if (status == TOOL_OK) {
        job.port = dscomm_store_port(store);
        status = run_job(&options, &job);
        dscomm_store_close(store);
    }
    tool_guard_end(&job.guard);
    return status;
}
