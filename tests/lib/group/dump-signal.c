/* SPDX-License-Identifier: BSD-3-Clause */
/* Dumps of the flight recorder on DSCOMM_DUMP_SIGNAL, in a world of one rank:
 * when there is one, and who handles the signal. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <dscomm/log.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/dscomm-dump-signal-XXXXXX";
static char warning[1024];

static void remember(dscomm_log_level_t level, const char *domain,
                     const char *text, void *arg)
{
    (void)level, (void)domain, (void)arg;
    g_strlcpy(warning, text, sizeof warning);
}

/* The number of dumps; the contents of the last one that was listed. */
static int dumps(char **ret_text)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;
    int count = 0;

    while (dir && (name = g_dir_read_name(dir))) {
        char *path = g_build_filename(folder, name, NULL);

        count += g_str_has_suffix(name, ".json");
        if (ret_text && g_str_has_suffix(name, ".json")) {
            g_free(*ret_text);
            g_file_get_contents(path, ret_text, NULL, NULL);
        }
        g_free(path);
    }
    if (dir)
        g_dir_close(dir);
    return count;
}

/* Waits until there are so many dumps; at most 10 s. */
static int dumps_wait(int wanted)
{
    for (int i = 0; i < 1000 && dumps(NULL) < wanted; i++)
        usleep(10000);
    return dumps(NULL);
}

static dscomm_group_t *start(void)
{
    dscomm_group_t *world = NULL;

    warning[0] = 0;
    is_int(dscomm_init(NULL, &world), DSCOMM_OK, "a world is made");
    return world;
}

static volatile sig_atomic_t own_calls;

static void own_handler(int number)
{
    (void)number;
    own_calls++;
}

static void test_refused(void)
{
    dscomm_group_t *world;

    g_unsetenv("DSCOMM_DUMP");
    g_setenv("DSCOMM_DUMP_SIGNAL", "usr2", TRUE);
    world = start();
    ok(strstr(warning, "DSCOMM_DUMP names no folder") != NULL,
       "without a folder a warning says so: %s", warning);
    dscomm_finalize(world);

    g_setenv("DSCOMM_DUMP", folder, TRUE);
    g_setenv("DSCOMM_DUMP_SIGNAL", "usr1", TRUE);
    signal(SIGUSR1, own_handler);
    world = start();
    ok(strstr(warning, "the program handles that signal itself") != NULL,
       "the program's handler stays: %s", warning);
    raise(SIGUSR1);
    is_int(own_calls, 1, "and is called");
    dscomm_finalize(world);
    is_int(dumps(NULL), 0, "no dump");

    g_setenv("DSCOMM_DUMP_SIGNAL", "kill", TRUE);
    is_int(dscomm_init(NULL, &world), DSCOMM_ERR_ENVIRONMENT,
           "another signal is refused: %s", dscomm_last_error());
}

/* The child of a process with a world has no dumps, and is not ended. */
static void test_fork(dscomm_group_t *world)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        raise(SIGUSR2);
        dscomm_finalize(world);
        _exit(7);
    }
    waitpid(child, &status, 0);
    is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 7,
           "a forked child outlives the signal");
}

static void test_dumps(void)
{
    dscomm_group_t *world;
    gint64 began;
    char *text = NULL;
    int32_t x = 1;

    g_setenv("DSCOMM_DUMP_SIGNAL", "usr2", TRUE);
    world = start();
    is_str(warning, "", "no warning");
    dscomm_all_reduce(world, &x, &x, 1, DSCOMM_INT32, DSCOMM_MAX, NULL);
    began = g_get_monotonic_time();
    raise(SIGUSR2);
    is_int(dumps_wait(1), 1, "a signal writes a dump");
    dumps(&text);
    ok(text && strstr(text, "\"operation\": \"all_reduce\"") &&
           strstr(text, "\"failure\": null"),
       "it has the operation, and no failure");
    raise(SIGUSR2);
    g_usleep(200000);
    if (g_get_monotonic_time() - began < 1000000)
        is_int(dumps(NULL), 1, "another one in the same second writes none");
    else
        skip("no second signal within a second: the machine is too slow");
    g_usleep(1000000);
    raise(SIGUSR2);
    is_int(dumps_wait(2), 2, "a later one does");
    test_fork(world);
    dscomm_finalize(world);
    raise(SIGUSR2);
    is_int(dumps(NULL), 2, "a signal after the world does nothing");
    g_free(text);
}

/* Thread and list serve the next world as well. */
static void test_next_world(void)
{
    dscomm_group_t *worlds[2];

    g_usleep(1000000);
    worlds[0] = start();
    worlds[1] = start();
    dscomm_finalize(worlds[0]);
    raise(SIGUSR2);
    is_int(dumps_wait(3), 3, "the second of two worlds has a dump");
    dscomm_finalize(worlds[1]);
}

static void remove_folder(void)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        char *path = g_build_filename(folder, name, NULL);

        unlink(path);
        g_free(path);
    }
    if (dir)
        g_dir_close(dir);
    rmdir(folder);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        skip("no folder in /tmp");
        return tap_done();
    }
    dscomm_log_set_handler(remember, NULL);
    test_refused();
    test_dumps();
    test_next_world();
    remove_folder();
    return tap_done();
}
