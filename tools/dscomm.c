/* SPDX-License-Identifier: BSD-3-Clause */
/* The program `dscomm`: finds the subcommand and runs it. */
#include "config.h"

#include "lib/base/nearest.h"
#include "tools/common/tool.h"

#include <dscomm/version.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const tool_command_t commands[] = {
    {"run", tool_run,
     "start a program as several ranks, here or on several nodes",
     TOOL_INTERNAL},
    {"perf", tool_perf, "measure the operations, and verify them", TOOL_FAILED},
    {"tune", tool_tune, "find what is fastest here, for DSCOMM_TUNING_FILE",
     TOOL_FAILED},
    {"topo", tool_topo, "show devices, and how each pair is connected",
     TOOL_FAILED},
    {"env", tool_env, "show who this process is, and tell other programs",
     TOOL_FAILED},
    {"analyze", tool_analyze,
     "find in dumps of the flight recorder which rank is behind", TOOL_USAGE},
    {"top", tool_top, "show what the ranks of a job on this machine do",
     TOOL_FAILED},
    {"info", tool_info, "show build, processor, backends and settings",
     TOOL_FAILED},
};

/* The running command, or NULL. */
static const tool_command_t *current;

/* Runs at every exit, also that of GLib after --help. A forked process that
 * executes no program ends by _exit(). */
static void check_stdout(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    if (!errno && write(STDOUT_FILENO, "\n", 1) > 0) /* sets errno again */
        errno = EIO;
    fprintf(stderr, "dscomm%s%s: cannot write: %s\n", current ? " " : "",
            current ? current->name : "", g_strerror(errno));
    _exit(current ? current->unwritten : TOOL_FAILED);
}

/* Opens /dev/null for closed standard streams, because otherwise other files
 * would get their numbers. It is opened in the wrong direction, so that using
 * the stream fails as if it were closed. */
static void open_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

static void print_usage(FILE *to)
{
    fprintf(to, "Usage: dscomm COMMAND [OPTION...]\n\nCommands:\n");
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n'dscomm help COMMAND' tells a command's options, "
                "'dscomm --version' the version.\n");
}

static int print_version(void)
{
    printf("dscomm %s\n", DSCOMM_VERSION_STRING);
    if (dscomm_version() != DSCOMM_VERSION)
        printf("libdscomm %s\n", dscomm_version_string());
    return TOOL_OK;
}

static void print_unknown(const char *word)
{
    dscomm_nearest_t search = dscomm_priv_nearest_begin(word, 0);
    char *printable = tool_printable(word);

    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        dscomm_priv_nearest_try(&search, commands[i].name);
    fprintf(stderr, "dscomm: no command '%s'%s%s%s\n", printable,
            search.nearest ? "; is " : "", search.nearest ? search.nearest : "",
            search.nearest ? " meant?" : "");
    g_free(printable);
}

static const tool_command_t *find_command(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int command_refuse(const char *word)
{
    if (*word)
        print_unknown(word);
    print_usage(stderr);
    return TOOL_USAGE;
}

/* Makes "dscomm COMMAND --help" of "dscomm help COMMAND". */
static int help(const char *word)
{
    char name[16], option[] = "--help";
    char *words[] = {name, option, NULL};

    if (!*word || strcmp(word, "help") == 0) {
        print_usage(stdout);
        return TOOL_OK;
    }
    current = find_command(word);
    if (!current)
        return command_refuse(word);
    g_strlcpy(name, current->name, sizeof name);
    return current->main(2, words);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";

    open_streams();
    setlocale(LC_CTYPE, "");
    setlocale(LC_MESSAGES, "");
    atexit(check_stdout);
    current = find_command(word);
    if (current)
        return current->main(argc - 1, argv + 1);
    if (strcmp(word, "--version") == 0)
        return print_version();
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return help("");
    if (strcmp(word, "help") == 0)
        return help(argc > 2 ? argv[2] : "");
    return command_refuse(word);
}
