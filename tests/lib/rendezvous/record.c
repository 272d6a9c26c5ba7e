/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of ranks: written, read, invalid texts; and the parts of rank 0's
 * decision that depend on them. */
#include "config.h"

#include "lib/rendezvous/join.h"
#include "lib/rendezvous/standby.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* errno of opening the machine's identifier; 0: it can be opened. */
static int denied;

int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (denied && g_str_has_suffix(path, "/boot_id")) {
        errno = denied;
        return -1;
    }
    return openat(AT_FDCWD, path, flags, mode);
}

#define GOOD                                                                   \
    "dscomm-record 4\n1000\n1\n4\n77\n1\n2\n-1\nnode\nhost\n\nauto\n self "    \
    "\n\n\n"

static void check_round_trip(void)
{
    dscomm_join_t join = {.rank = 1,
                          .size = 4,
                          .local_rank = 1,
                          .local_size = 2,
                          .node_rank = -1,
                          .backend = (char *)"auto"};
    dscomm_record_t record, copy;
    char *text, *again;

    dscomm_priv_record_own(&join, &record);
    text = dscomm_priv_record_write(&record);
    if (!is_int(dscomm_priv_record_read(text, strlen(text), &copy), 0,
                "what is written can be read"))
        bail("%s", text);
    again = dscomm_priv_record_write(&copy);
    is_str(again, text, "and written again");
    ok(copy.abi == DSCOMM_BACKEND_ABI && copy.size == 4 &&
           copy.local_rank == 1 && copy.local_size == 2 && copy.node_rank == -1,
       "its numbers");
    ok(!*copy.alone && !strcmp(copy.backend, "auto") && !*copy.why &&
           !strcmp(copy.rules, "barrier:linear"),
       "its texts");
    ok(strstr(copy.modules, " self ") != NULL, "self is among the modules");
    dscomm_priv_record_clear(&record);
    dscomm_priv_record_clear(&copy);
    g_free(again);
    g_free(text);
}

/* If the identifier cannot be read now, other processes of the machine may have
 * another text for the host. If it can never be read, all have the host
 * name. */
static void check_machine(void)
{
    char *limit = g_strconcat(strerror(EMFILE), "; raise the limit", NULL);
    const struct {
        int error;
        const char *alone;
    } cases[] = {{EMFILE, limit}, {ENOENT, ""}};
    const dscomm_join_t join = {.size = 2, .backend = (char *)"auto"};
    dscomm_record_t record;
    char name[256];

    gethostname(name, sizeof name);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        denied = cases[i].error;
        dscomm_priv_record_own(&join, &record);
        denied = 0;
        ok(strstr(record.alone, cases[i].alone) &&
               !*record.alone == !*cases[i].alone,
           "%s: can it share memory? '%s'", strerror(cases[i].error),
           record.alone);
        ok(g_str_has_prefix(record.host, name), "  its host is '%s'",
           record.host);
        dscomm_priv_record_clear(&record);
    }
    g_free(limit);
}

/* Two containers with equal host names and pids. */
static void check_alone(void)
{
    const char *text = "dscomm-record 4\n1000\n1\n2\n1\n-1\n-1\n-1\nnode\n"
                       "host\npid 1: memfd_create: no\nauto\n self two_level "
                       "\n\n\n";
    dscomm_join_decision_t decision = {0};
    dscomm_record_t records[2];
    const char *cause;

    for (int i = 0; i < 2; i++)
        if (dscomm_priv_record_read(text, strlen(text), &records[i]))
            bail("'%s' is no record", text);
    is_int(dscomm_priv_choose_backend(records, 2, &decision),
           DSCOMM_ERR_NO_BACKEND, "two ranks, neither of which shares memory");
    ok(strstr(dscomm_last_error(), "every rank has a host of its own") != NULL,
       "each is a host: %s", dscomm_last_error());
    cause = strstr(dscomm_last_error(), "can share no memory (pid 1: ");
    ok(cause && !strstr(cause + 1, "can share no memory") &&
           strstr(cause, "; self: ") && strstr(cause, "; two_level: "),
       "the cause is told once, before the reasons of backends");
    for (int i = 0; i < 2; i++)
        dscomm_priv_record_clear(&records[i]);
}

/* Ranks on hosts a, a, b, of which the last one lacks some modules. */
static void check_choice(void)
{
    static const struct {
        const char *backend, *modules, *why; /* of the last rank */
        const char *between; /* setting */
        const char *chosen; /* NULL: none */
        const char
            *text; /* the backend between nodes, or a part of the reason */
    } cases[] = {
        {"auto", " two_level shm ", " | self: it | self: is", "auto", NULL,
         "; self: rank 2 on n2: it;"},
        {"auto", " self two_level shm ", "", "self", NULL,
         "; two_level: it serves groups of one rank only"},
        {"auto", " self two_level ", " | shm: it", "self", NULL,
         "; two_level: DSCOMM_TWO_LEVEL_INSIDE shm: rank 2 on n2: it"},
        {"two_level", " two_level shm ", "; folder | mpi: no", "auto", NULL,
         "between nodes; self: rank 2 on n2: it has no backend self; folder;"},
        {"two_level", " self two_level ", " | shm: it", "self", NULL,
         "of 3 ranks: DSCOMM_TWO_LEVEL_INSIDE shm: rank 2 on n2: it"},
        {"two_level", " two_level shm ", " | self: it", "self", NULL,
         "of 3 ranks: DSCOMM_TWO_LEVEL_BETWEEN self: rank 2 on n2: it"},
        {"two_level", " self two_level shm ", "", "nosuch", NULL,
         "of 3 ranks: DSCOMM_TWO_LEVEL_BETWEEN: there is no backend 'nosuch'"},
        {"two_level", " self two_level shm ", "", "self", "two_level", "self"},
        {"hierarchical", " two_level shm self ", "", "self", "two_level",
         "self"},
        {"self", " ", " | self: it is out of order", "auto", NULL,
         "of 3 ranks: rank 2 on n2: it is out of order"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        dscomm_join_decision_t decision = {0};
        dscomm_record_t records[3];
        dscomm_status_t status;

        for (int r = 0; r < 3; r++) {
            char *text = g_strdup_printf(
                "dscomm-record 4\n1000\n1\n3\n%d\n-1\n-1\n-1\nn%d\nhost %c\n\n"
                "%s\n%s\n%s\n\n",
                r + 1, r, "aab"[r], cases[i].backend,
                r < 2 ? " self two_level shm " : cases[i].modules,
                r < 2 ? "" : cases[i].why);

            if (dscomm_priv_record_read(text, strlen(text), &records[r]))
                bail("'%s' is no record", text);
            g_free(text);
        }
        g_setenv("DSCOMM_TWO_LEVEL_BETWEEN", cases[i].between, TRUE);
        status = dscomm_priv_choose_backend(records, 3, &decision);
        g_unsetenv("DSCOMM_TWO_LEVEL_BETWEEN");
        if (cases[i].chosen) {
            is_str(status == DSCOMM_OK ? decision.module->name : "none",
                   cases[i].chosen, "choice %zu: %s", i, cases[i].backend);
            is_str(decision.between, cases[i].text, "  between nodes");
        } else {
            is_int(status, DSCOMM_ERR_NO_BACKEND, "choice %zu: none", i);
            ok(strstr(dscomm_last_error(), cases[i].text) != NULL,
               "  its reason: %s", dscomm_last_error());
        }
        for (int r = 0; r < 3; r++)
            dscomm_priv_record_clear(&records[r]);
    }
}

/* A record, every beginning of it, and a few things more. */
static void check_refused(void)
{
    static const char *const texts[] = {
        "",
        "\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
        "dscomm-record 1\n1000\n1\n4\n77\nnode\nhost\nauto\n self \n\n\n",
        "dscomm-record 5\n1000\n1\n4\n77\n1\n2\n0\nn\nh\n\nauto\n self \n\n\n",
        "dscomm-record 4\n-1\n1\n4\n77\n1\n2\n0\nn\nh\n\nauto\n self \n\n\n",
        "dscomm-record 4\n1000\nx\n4\n77\n1\n2\n0\nn\nh\n\nauto\n self \n\n\n",
        "dscomm-record 4\n1000\n1\n99999999999\n7\n1\n2\n0\nn\nh\n\na\n s "
        "\n\n\n",
        "dscomm-record 4\n1000\n1\n4\n77\n-2\n2\n0\nn\nh\n\nauto\n self \n\n\n",
        "dscomm-record 4\n1000\n1\n4\n77\n1\n2\n\nn\nh\n\nauto\n self \n\n\n",
        GOOD "\nmore",
    };
    dscomm_record_t record;
    char zero[] = GOOD;

    ok(dscomm_priv_record_read(GOOD, strlen(GOOD), &record) == 0 &&
           record.version == 1000 && record.pid == 77 &&
           !strcmp(record.node, "node"),
       "a record");
    dscomm_priv_record_clear(&record);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        is_int(dscomm_priv_record_read(texts[i], strlen(texts[i]), &record), -1,
               "text %zu is no record", i);
    for (size_t size = 0; size < strlen(GOOD); size++)
        if (dscomm_priv_record_read(GOOD, size, &record) != -1)
            ok(0, "%zu bytes of a record are none", size);
    zero[20] = '\0';
    is_int(dscomm_priv_record_read(zero, sizeof zero - 1, &record), -1,
           "a zero byte");
}

/* Rank 0, and the store with it, may end as soon as the decision can be read,
 * so the decision alone must identify rank 0. */
static void check_decision(void)
{
    const dscomm_join_t join = {.rank = 1,
                                .size = 2,
                                .url = (char *)"tcp://127.0.0.1:1",
                                .serve = 1,
                                .local_rank = -1,
                                .local_size = -1,
                                .node_rank = -1,
                                .backend = (char *)"auto",
                                .timeout_ms = 20000};
    const char *text = "ok\nself\nfar\n2\n0:0+1,1:0+1\n0:0+2\n0\n77\nb\n"
                       "host\n-\n00112233445566ff";
    dscomm_processes_t *processes = dscomm_priv_processes_new(2);
    dscomm_join_decision_t decision = {0};
    dscomm_store_t *store = NULL;
    char who[DSCOMM_PROCESS_MAX];
    dscomm_attempt_t attempt = {.join = &join,
                                .world = "",
                                .token = "this call",
                                .before = "",
                                .processes = processes};

    if (dscomm_store_open("memory://", NULL, &store) ||
        dscomm_store_set(store, "summary", text, strlen(text)))
        bail("%s", dscomm_last_error());
    attempt.base = store;
    attempt.roster = dscomm_priv_join_roster(store, 1, 2, INT64_MAX / 2);
    ok(dscomm_priv_join(&attempt, &decision) == DSCOMM_OK,
       "a rank joins by the decision alone");
    is_str(dscomm_priv_processes_describe(processes, 0, who),
           "rank 0 (pid 77 on b)", "which tells who rank 0 is");
    ok(decision.nodes.count == 2 && decision.hosts.count == 1,
       "and who shares memory");
    is_str(decision.between, "far", "and the backend between nodes");
    dscomm_priv_join_decision_clear(&decision);
    dscomm_priv_processes_free(processes);
    dscomm_store_close(store);
}

/* A standby store whose number is a pipe's by now is left alone: to open it
 * would make this process its writer, and the reader would see that it went. */
static void check_standby(void)
{
    char folder[] = "/tmp/dscomm-test-XXXXXX", path[80], text[80];
    struct pollfd reader = {.events = POLLIN};
    struct stat info;

    if (!mkdtemp(folder))
        bail("no folder can be made");
    snprintf(path, sizeof path, "%s/pipe", folder);
    if (mkfifo(path, 0600))
        bail("no pipe can be made");
    reader.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    fstat(reader.fd, &info);
    snprintf(text, sizeof text, "%d %llu", reader.fd,
             (unsigned long long)info.st_ino);
    ok(!dscomm_priv_standby_join(getpid(), text), "a pipe is no store");
    ok(poll(&reader, 1, 0) == 0, "and was not opened");
    close(reader.fd);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    /* The modules of the build belong to libdscomm.so. This program contains
     * another libdscomm, which refuses them, and its record would give that
     * reason. */
    setenv("DSCOMM_BACKEND_PATH", "/", 1);
    setenv("DSCOMM_ALGORITHM", "barrier:linear", 1);
    setenv("DSCOMM_TWO_LEVEL_BETWEEN", "self", 1); /* a backend that exists */
    check_round_trip();
    check_machine();
    check_alone();
    check_choice();
    check_refused();
    check_decision();
    check_standby();
    return tap_done();
}
