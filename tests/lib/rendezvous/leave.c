/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving a rendezvous: for which ranks the serving rank waits. Ranks are
 * processes, which are started and stopped without a world. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/rendezvous/processes.h"
#include "lib/rendezvous/record.h"
#include "lib/rendezvous/rendezvous.h"
#include "tests/lib/store/fixture.h"
#include "tests/port.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static char logged[1024];

static void remember(dscomm_log_level_t level, const char *domain,
                     const char *message, void *arg)
{
    (void)level;
    (void)domain;
    (void)arg;
    snprintf(logged, sizeof logged, "%s", message);
}

static int serves = 1;

static dscomm_status_t meet(char *url, int rank, dscomm_meeting_t *meeting)
{
    static char backend[] = "fine";
    const dscomm_join_t join = {.rank = rank,
                                .size = 3,
                                .url = url,
                                .serve = serves,
                                .run_id = "0",
                                .backend = backend,
                                .timeout_ms = 10000,
                                .local_rank = -1,
                                .local_size = -1,
                                .node_rank = -1};
    const dscomm_module_t *module;

    return dscomm_priv_rendezvous(&join, meeting, &module);
}

/* Replaces libdscomm's function: a rank that is asked for dies before its
 * record is in the store. */
static int dies_early;

void __real_dscomm_priv_record_own(const dscomm_join_t *join,
                                   dscomm_record_t *record);
void __wrap_dscomm_priv_record_own(const dscomm_join_t *join,
                                   dscomm_record_t *record);

void __wrap_dscomm_priv_record_own(const dscomm_join_t *join,
                                   dscomm_record_t *record)
{
    if (dies_early)
        _exit(0);
    __real_dscomm_priv_record_own(join, record);
}

static void check_early_death(void)
{
    char url[64], words[48];
    dscomm_meeting_t meeting;
    pid_t pid;

    snprintf(url, sizeof url, "%s", url_of(port_find_free(1)));
    pid = fork();
    if (pid == 0) {
        dies_early = 1;
        setenv("DSCOMM_HOST_ID", "b", 1);
        meet(url, 2, &meeting);
        _exit(1);
    }
    is_int(meet(url, 0, &meeting), DSCOMM_ERR_PEER_FAILED,
           "a rank elsewhere dies before its record is there");
    snprintf(words, sizeof words, "rank 2 (pid %d on ", (int)pid);
    ok(strstr(dscomm_last_error(), words) &&
           strstr(dscomm_last_error(), "ended before all had come"),
       "  %s", dscomm_last_error());
    waitpid(pid, NULL, 0);
}

/* In a store that another process serves, over TCP, the sentence does not
 * mention a file. wrong: NULL, or a value under the key of failures that is no
 * failure. */
static void check_dead_record(const char *wrong)
{
    dscomm_store_t *store = must_open_store("tcp://127.0.0.1:0", NULL, 1);
    dscomm_meeting_t meeting;
    char url[64];
    void *value;
    size_t size;
    pid_t pid;

    snprintf(url, sizeof url, "%s", url_of(dscomm_store_port(store)));
    serves = 0;
    pid = fork();
    if (pid == 0) {
        meet(url, 2, &meeting);
        _exit(1);
    }
    if (dscomm_store_get(store, "dscomm/0/1/r/2", 10000, &value, &size))
        bail("%s", dscomm_last_error());
    dscomm_store_free(value);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (wrong)
        dscomm_store_set(store, "dscomm/0/1/wrong", wrong, strlen(wrong));
    is_int(meet(url, 0, &meeting), DSCOMM_ERR_PEER_FAILED,
           "a rank dies after its record is there%s",
           wrong ? ", beside a value that is no failure" : "");
    ok(strstr(dscomm_last_error(), "ended before all had come") &&
           !strstr(dscomm_last_error(), "file://"),
       "  %s", dscomm_last_error());
    serves = 1;
    dscomm_store_close(store);
}

/* Rank 0 serves the others until they have left, but does not wait for one that
 * died, even on another machine. Another client of the store is not taken for a
 * rank. */
static void check_silent_rank(const char *host)
{
    dscomm_store_t *client = NULL;
    char url[64];
    dscomm_meeting_t meeting;
    pid_t pids[2];
    int64_t begin;

    snprintf(url, sizeof url, "%s", url_of(port_find_free(1)));
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            dscomm_status_t status;

            if (host && !i)
                setenv("DSCOMM_HOST_ID", host, 1);
            status = meet(url, i + 1, &meeting);
            if (status == DSCOMM_OK && i)
                dscomm_priv_rendezvous_leave(
                    &meeting, 1,
                    dscomm_priv_clock_after(dscomm_priv_clock(), 10000));
            _exit(status != DSCOMM_OK);
        }
    }
    if (!is_int(meet(url, 0, &meeting), DSCOMM_OK, "three processes meet"))
        return;
    for (int i = 0; i < 2; i++) {
        int status = -1;

        waitpid(pids[i], &status, 0);
        is_int(status, 0, "rank %d came, and went", i + 1);
    }
    if (dscomm_store_open(url, NULL, &client))
        bail("%s", dscomm_last_error());
    dscomm_log_set_levels("warn");
    dscomm_log_set_handler(remember, NULL);
    begin = dscomm_priv_clock();
    dscomm_priv_rendezvous_leave(
        &meeting, 1, dscomm_priv_clock_after(dscomm_priv_clock(), 10000));
    ok(dscomm_priv_clock() - begin < INT64_C(3000000000),
       "rank 0 does not wait for one that died%s", host ? " elsewhere" : "");
    ok(!strncmp(logged, "rank 1 did not leave", 20), "and names it, alone: %s",
       logged);
    dscomm_log_set_handler(NULL, NULL);
    dscomm_log_set_levels("error");
    dscomm_store_close(client);
    dscomm_priv_processes_free(meeting.processes);
}

/* Three ranks meet in a store that outlives them, and leave; rank 1 in order or
 * not. Returns the number of keys that are left. */
static int count_left(int orderly)
{
    dscomm_store_t *store = must_open_store("tcp://127.0.0.1:0", NULL, 1);
    const int64_t never = INT64_MAX / 2;
    dscomm_meeting_t meeting;
    int64_t before = 0, after = 0;
    pid_t pids[2];
    char url[64];
    int status;

    snprintf(url, sizeof url, "%s", url_of(dscomm_store_port(store)));
    dscomm_store_num_keys(store, &before);
    serves = 0;
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            status = meet(url, i + 1, &meeting);
            if (status == DSCOMM_OK)
                dscomm_priv_rendezvous_leave(&meeting, i || orderly, never);
            _exit(status != DSCOMM_OK);
        }
    }
    is_int(meet(url, 0, &meeting), DSCOMM_OK, "three processes meet");
    dscomm_priv_rendezvous_leave(&meeting, 1, never);
    dscomm_priv_processes_free(meeting.processes);
    for (int i = 0; i < 2; i++) {
        waitpid(pids[i], &status, 0);
        is_int(status, 0, "rank %d came, and went", i + 1);
    }
    serves = 1;
    dscomm_store_num_keys(store, &after);
    dscomm_store_close(store);
    return (int)(after - before);
}

/* In a launcher's store each rank counts the worlds that it has left. */
static void check_keys_left(void)
{
    is_int(count_left(1), 3, "all leave in order: what they counted stays");
    ok(count_left(0) >= 2 * 3 + 1, "one does not: all keys stay");
}

int main(void)
{
    const char *top = getenv("abs_top_builddir");
    char path[4096];

    snprintf(path, sizeof path, "%s/tests/lib/modules/.libs", top ? top : ".");
    setenv("DSCOMM_BACKEND_PATH", path, 1);
    dscomm_log_set_levels("error");
    check_silent_rank(NULL);
    check_silent_rank("b");
    check_early_death();
    check_dead_record(NULL);
    check_dead_record("x");
    check_keys_left();
    return tap_done();
}
