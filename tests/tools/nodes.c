/* SPDX-License-Identifier: BSD-3-Clause */
/* How often the nodes of a job query their store, how a job ends if one of
 * them gets no descriptor, and that it goes on if samples cannot be stored. */
#include "config.h"

#include "tests/port.h"
#include "tools/common/tool.h"
#include "tools/run/job.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES 2
/* A node that does not end by itself gets SIGALRM after so many seconds. */
#define LIMIT_S 120

/* The function that fails in this process, if dscomm run calls it; calls by the
 * library succeed. */
static enum { NOTHING, EVENTFD, SIGNALFD, SAMPLES } fault;
/* The pipe to which a process with fault SAMPLES writes a byte each time. */
static int failures[2];

/* The library of a sanitizer refers to functions that replace libc's. */
#define VISIBLE __attribute__((visibility("default")))

int __real_eventfd(unsigned count, int flags);
VISIBLE int __wrap_eventfd(unsigned count, int flags);
int __real_signalfd(int fd, const sigset_t *mask, int flags);
VISIBLE int __wrap_signalfd(int fd, const sigset_t *mask, int flags);

int __wrap_eventfd(unsigned count, int flags)
{
    errno = ENFILE;
    return fault == EVENTFD ? -1 : __real_eventfd(count, flags);
}

int __wrap_signalfd(int fd, const sigset_t *mask, int flags)
{
    errno = EMFILE;
    return fault == SIGNALFD ? -1 : __real_signalfd(fd, mask, flags);
}

dscomm_status_t __real_dscomm_store_set(dscomm_store_t *store, const char *key,
                                        const void *value, size_t size);
VISIBLE dscomm_status_t __wrap_dscomm_store_set(dscomm_store_t *store,
                                                const char *key,
                                                const void *value, size_t size);

dscomm_status_t __wrap_dscomm_store_set(dscomm_store_t *store, const char *key,
                                        const void *value, size_t size)
{
    if (fault != SAMPLES || !g_str_has_prefix(key, TOOL_NODES_SAMPLES "/"))
        return __real_dscomm_store_set(store, key, value, size);
    if (write(failures[1], "", 1) < 1)
        return DSCOMM_ERR_IO;
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory");
}

/* Requests a second at the store of node 0: each node checks for the end and
 * for a restart, and sends heartbeats; node 0 reads all heartbeats. */
static double requests(int nodes, gint64 silence_us)
{
    const double tick = (double)tool_nodes_tick_us(nodes) / G_USEC_PER_SEC;
    const double beat =
        (double)tool_nodes_beat_us(nodes, silence_us) / G_USEC_PER_SEC;

    return nodes * (2 / tick + 2 / beat);
}

/* dscomm run as a node, whose messages go to file. */
static G_GNUC_NORETURN void node_run(int node, int port, int join_s,
                                     const char *file)
{
    static char *argv[] = {(char *)"sleep", (char *)"600", NULL};
    const tool_place_t place = {.nodes = NODES,
                                .node_rank = node,
                                .host = "127.0.0.1",
                                .port = port,
                                .join_us = join_s * G_USEC_PER_SEC,
                                .silence_us = 60 * G_USEC_PER_SEC};
    const tool_limits_t limits = {.grace_us = 5 * G_USEC_PER_SEC,
                                  .place = &place};

    if (!freopen(file, "w", stderr))
        bail("%s: %s", file, g_strerror(errno));
    setvbuf(stderr, NULL, _IONBF, 0);
    alarm(LIMIT_S);
    _exit(tool_job_run("run", argv, 1, &limits));
}

/* One node of two has the fault. texts: a part of what each node says. */
static const struct {
    int fault, node;
    int join_s;
    const char *name, *texts[NODES];
} faults[] = {
    {EVENTFD,
     0,
     3,
     "no eventfd",
     {"dscomm run: cannot have a descriptor for events of other nodes: ",
      "dscomm run: node 0 of 2 did not come: "}},
    {SIGNALFD,
     1,
     60,
     "no signalfd",
     {"): its ranks could not be started; ending rank 0",
      "dscomm run: cannot receive signals: "}},
};

static void test_fault(size_t row, const char *folder)
{
    const int port = port_find_free(1);
    char *files[NODES];
    pid_t pids[NODES];

    for (int i = 0; i < NODES; i++) {
        files[i] = g_strdup_printf("%s/%d", folder, i);
        pids[i] = fork();
        if (pids[i])
            continue;
        fault = faults[row].node == i ? faults[row].fault : NOTHING;
        node_run(i, port, faults[row].join_s, files[i]);
    }
    for (int i = 0; i < NODES; i++) {
        int wait_status;
        char *text = NULL;

        waitpid(pids[i], &wait_status, 0);
        ok(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == TOOL_INTERNAL,
           "%s: node %d ends with status %d", faults[row].name, i,
           TOOL_INTERNAL);
        g_file_get_contents(files[i], &text, NULL, NULL);
        if (!ok(text && strstr(text, faults[row].texts[i]), "%s: node %d: %s",
                faults[row].name, i, faults[row].texts[i]))
            tap_text("got", text);
        unlink(files[i]);
        g_free(text);
        g_free(files[i]);
    }
}

/* Asks a job's nodes for samples until they have failed to store some three
 * times, and then ends it. False: the job has ended before, or has no store. */
static bool ask_for_samples(int port)
{
    char *url = tool_nodes_url("127.0.0.1", port), byte;
    dscomm_store_t *store = NULL;
    bool done = tool_nodes_open(url, 0, 10000, NULL, &store) == DSCOMM_OK;

    for (int i = 0; i < 3 && done; i++)
        done = dscomm_store_add(store, TOOL_NODES_BEAT "/1", TOOL_NODES_REQUEST,
                                NULL) == DSCOMM_OK &&
               read(failures[0], &byte, 1) == 1;
    if (store)
        dscomm_store_compare_set(store, "end", "", 0, "-1 0 ", 5, NULL, NULL);
    dscomm_store_close(store);
    g_free(url);
    return done;
}

static void test_samples(const char *folder)
{
    const int port = port_find_free(1);
    char *file = g_strdup_printf("%s/samples", folder), *text = NULL;
    pid_t pids[NODES];
    bool asked;

    if (pipe(failures))
        bail("pipe: %s", g_strerror(errno));
    for (int i = 0; i < NODES; i++) {
        pids[i] = fork();
        if (pids[i])
            continue;
        fault = SAMPLES;
        close(failures[0]);
        node_run(i, port, 60, file);
    }
    close(failures[1]);
    asked = ask_for_samples(port);
    for (int i = 0; i < NODES; i++) {
        int wait_status;

        waitpid(pids[i], &wait_status, 0);
        ok(asked && WIFEXITED(wait_status) && !WEXITSTATUS(wait_status),
           "samples that cannot be stored do not end node %d", i);
    }
    g_file_get_contents(file, &text, NULL, NULL);
    if (text && *text)
        tap_text("said", text);
    close(failures[0]);
    unlink(file);
    g_free(text);
    g_free(file);
}

static void test_requests(void)
{
    static const int counts[] = {2, 100, 128, 500, 1000, 2000, TOOL_NODES_MAX};
    const gint64 silence = 10 * G_USEC_PER_SEC;

    is_int(tool_nodes_tick_us(2), G_USEC_PER_SEC / 10, "few nodes look often");
    is_int(tool_nodes_beat_us(2, silence), G_USEC_PER_SEC / 2, "and beat so");
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        const int nodes = counts[i];

        ok(requests(nodes, silence) <= 12000,
           "%d nodes: %.0f requests a second", nodes, requests(nodes, silence));
        ok(tool_nodes_tick_us(nodes) <= G_USEC_PER_SEC, "%d nodes hear soon",
           nodes);
        ok(4 * tool_nodes_beat_us(nodes, silence) <= silence,
           "%d nodes beat several times before they are lost", nodes);
    }
    is_int(tool_nodes_beat_us(4096, G_USEC_PER_SEC), G_USEC_PER_SEC / 2,
           "but no more often than few do");
}

int main(void)
{
    char *folder = g_dir_make_tmp("nodes-XXXXXX", NULL);

    test_requests();
    if (!folder)
        bail("no folder for files");
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++)
        test_fault(i, folder);
    test_samples(folder);
    rmdir(folder);
    g_free(folder);
    return tap_done();
}
