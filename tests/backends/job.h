/* SPDX-License-Identifier: BSD-3-Clause */
/* A job whose ranks are forked by the test itself, so that it can kill, stop
 * and limit them. Ranks report through shared memory; only the parent prints
 * TAP. */
#ifndef TESTS_BACKENDS_JOB_H
#define TESTS_BACKENDS_JOB_H

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#define JOB_RANKS_MAX 16
#define JOB_ALL (~0u)

/* The report of a rank. Written by the rank, read by the parent. */
typedef struct {
    volatile pid_t pid; /* 0: not started */
    volatile int64_t loops; /* turns made so far */
    volatile int ready; /* 1: init is done */
    volatile int ended; /* 1: the members below are final */
    dscomm_status_t status; /* of the call that failed, or OK */
    double at_ms; /* when it returned, job_now_ms() */
    double took_ms;
    uint64_t capabilities;
    int64_t value, other_status; /* meaning depends on the scenario */
    char sentence[600];
    dscomm_failure_t failure; /* size 0: the scenario did not read it */
} job_report_t;

/* A rank's own data. arg is the scenario's. */
typedef struct {
    int rank, ranks;
    const char *rendezvous; /* an init_method that only this job uses */
    int timeout_ms; /* 0: 20 seconds */
    const char *name; /* of the world; NULL: the default */
    void *arg;
    job_report_t *report;
    /* job_now_ms() when the call began that the rank tells of: the process's
     * start, job_init(), its success, or what the scenario writes */
    double started;
    dscomm_group_t *world; /* of job_init(); NULL: none */
} job_rank_t;

typedef void (*job_scenario_t)(job_rank_t *me);

typedef struct {
    int ranks;
    pid_t pids[JOB_RANKS_MAX]; /* 0: not started, or reaped */
    int statuses[JOB_RANKS_MAX]; /* of waitpid(); -1: killed by job_join() */
    job_report_t *reports;
    char path[64], rendezvous[80];
    int timeout_ms;
    job_scenario_t scenario;
    void *arg;
    pid_t launcher; /* of job_launch(); 0: none, or reaped */
    int launcher_status; /* of waitpid() */
} job_t;

/* The address of a port of this machine; and a socket that listens on a free
 * port. */
struct sockaddr_in job_address(int port);
int job_listen(int *ret_port);

/* Prepares a job; timeout zero is the default. The scenario runs in each
 * process that job_start_rank() forks; job_start() starts all ranks. */
void job_make(job_t *job, int ranks, int timeout_ms, job_scenario_t scenario,
              void *arg);
void job_start_rank(job_t *job, int rank);
void job_start(job_t *job);
/* Starts all ranks by a launcher, a command that starts so many processes of
 * the program at its end. program and args, which end with NULL, are those of
 * this test; its main() calls job_serve() in each process. What the launcher
 * prints goes to the file job->path ".log". The ranks are no children of the
 * test, which knows their pids from their reports. */
void job_launch(job_t *job, char *const *launcher, char *const *args);
/* True if the launcher or a rank has printed text so far. */
bool job_log_has(const job_t *job, const char *text);
/* In a process that job_launch() has started: runs its rank, and does not
 * return. Elsewhere: returns at once. The launcher sees an orderly end whatever
 * happens to the rank; a launcher that ends a job early would end the ranks
 * that the test observes. */
void job_serve(job_scenario_t scenario, void *arg);
/* Called before the start: ranks meet in a store that rank 0 serves, instead of
 * a file. */
void job_use_tcp(job_t *job);
/* Waits until every started rank has made so many turns, or has ended. */
int job_wait_loops(job_t *job, int64_t loops);
/* Waits for the processes. Kills those that do not end within limit_ms, and
 * then returns 0. */
int job_join(job_t *job, int limit_ms);
/* job_make(), job_start() and job_join(limit_ms). */
int job_run(job_t *job, int ranks, int timeout_ms, job_scenario_t scenario,
            void *arg, int limit_ms);
/* Kills a rank and waits for its end. */
void job_kill(job_t *job, int rank);
/* Frees the job, and prints under name what the job has left behind. */
void job_end(job_t *job, const char *name);
/* How many jobs have left something behind; job_done() tells. */
int job_leftovers(void);
/* Returns 1 if the rank ended by exit(0). */
int job_exited(const job_t *job, int rank);
/* 1 where all ranks have told this status. */
int job_all(const job_t *job, dscomm_status_t status);

/* In a rank: joins the job. A failure is written to the report. */
dscomm_status_t job_init(job_rank_t *me);
/* In a rank: writes the failure record of the world to the report. */
void job_report_failure(job_rank_t *me);
/* In a rank: this is the outcome. */
void job_report(job_rank_t *me, dscomm_status_t status);
/* The same, and finalizes the world. */
void job_leave(job_rank_t *me, dscomm_status_t status);

double job_now_ms(void);
void job_sleep_ms(int ms);
/* Returns a longer time under valgrind, with sanitizers, and on a loaded
 * machine. */
int job_slowly(int ms);
/* Returns a random number below limit; the sequence is the same in every
 * run. */
unsigned job_draw(unsigned limit);
/* Returns 0, after a comment, if the sentence does not contain text. */
int job_sentence_has(const job_t *job, int rank, const char *text);
/* Returns how often a rank's sentence contains text. */
int job_count(const job_t *job, int rank, const char *text);
/* 1 where the ranks, bits, were told this failure within limit_ms (more where
 * all is slow), in sentences with all words that follow, the last of which is
 * NULL; else 0 and a comment. */
int job_reported(const job_t *job, unsigned ranks, dscomm_status_t status,
                 int limit_ms, ...) __attribute__((sentinel));
/* After a failed check: prints the report of each rank as a comment. */
void job_show(const job_t *job);

/* ok(), job_show() if that fails, and job_end(). */
static inline TAP_PRINTF(3, 4) int job_ok(job_t *job, int passed,
                                          const char *format, ...)
{
    char name[256];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    if (!ok(passed, "%s", name))
        job_show(job);
    job_end(job, name);
    return passed;
}

/* 1, and the job is skipped and ended, where rank could not filter its system
 * calls; its value is then the errno. */
static inline int job_unfiltered(job_t *job, int rank)
{
    const int error = (int)job->reports[rank].value;

    if (!error)
        return 0;
    skip("system calls cannot be filtered: %s", strerror(error));
    job_end(job, "no filters");
    return 1;
}

/* The last check of a program; returns what main should. */
static inline int job_done(void)
{
    is_int(job_leftovers(), 0, "nothing is left of any job");
    return tap_done();
}

#endif
