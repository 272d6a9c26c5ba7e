/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of `dscomm run`'s command line, see words.h. */
#include "config.h"

#include "tools/run/words.h"

#include "tools/common/tool.h"

#include <stdbool.h>
#include <string.h>

/* Changes "--nproc_per_node=2" to "--nproc-per-node=2", and "-n4" to
 * "--ranks=4", because GOption does not know these forms. */
static char *option_respell(char *word)
{
    char *copy;

    if (g_str_has_prefix(word, "--")) {
        copy = g_strdup(word);
        for (char *c = copy; *c && *c != '='; c++)
            if (*c == '_')
                *c = '-';
    } else if (g_str_has_prefix(word, "-n") && g_ascii_isdigit(word[2])) {
        copy = g_strdup_printf("--ranks=%s", word + 2);
    } else {
        return word;
    }
    word = (char *)g_intern_string(copy);
    g_free(copy);
    return word;
}

/* Options of mpirun, srun and torchrun, and what to do instead. */
static const struct {
    const char *options; /* each with a blank after it */
    const char *remedy;
} foreign[] = {
    {"-np --np --nproc --ntasks --ntasks-per-node -ppn --ppn -npernode "
     "--npernode ",
     "give the number of ranks on this machine with -n"},
    {"-N --nodes ", "give the number of nodes with --nnodes, and that of ranks "
                    "on this machine with -n"},
    {"-hostfile -machinefile --machinefile -f -H -host --host -hosts --hosts "
     "-w --nodelist ",
     "give a file of hosts with --hostfile, and --rsh ssh to start the job "
     "there, or start the program with mpirun or srun; SEVERAL NODES in "
     "dscomm-run(1) explains"},
    {"-x -genv --genv -env --env -genvlist -genvall -envlist -envall --export ",
     "the ranks get the environment of dscomm run; write NAME=VALUE before it"},
    {"-bind-to --bind-to -map-by --map-by --rank-by --report-bindings "
     "--cpu-bind --cpu-set --cpus-per-task -c --distribution "
     "--bind-cores-to-rank --bind-core-list ",
     "--bind core, numa, socket or gpu binds the ranks, and --bind 0-3,8 "
     "shares "
     "these processors; for others, let each bind itself, as sh -c 'exec "
     "taskset -c $LOCAL_RANK PROGRAM' does"},
    {"-oversubscribe --oversubscribe --overcommit -O --allow-run-as-root ",
     "dscomm run allows it; leave the option out"},
    {"-rank --rank --rank-id ",
     "dscomm run numbers the ranks; give the number of this node with "
     "--node-rank"},
    {"-mca --mca --gmca --prtemca --mpi ",
     "no MPI starts the ranks; dscomm's own settings are in dscomm-env(7)"},
    {"-wdir --wdir -wd --chdir -D ",
     "start dscomm run in the folder in which the ranks are to run"},
    {"-l --label -prepend-rank --prepend-rank ",
     "--tag-output puts the rank before each line"},
    {"-output-filename --output-filename -outfile-pattern -o --output "
     "-r --redirects -t --tee ",
     "--log-dir writes the output of the ranks to files"},
    {"--standalone --rdzv-backend --rdzv-conf --local-addr --no-python "
     "--monitor-interval --start-method ",
     "dscomm run needs none; leave the option out"},
    {"--gpus --gpus-per-task --gpus-per-node --gres ",
     "dscomm run gives all devices to all ranks; let each take that of its "
     "LOCAL_RANK"},
    {"-m --module ", "give the program in full, as python3 -m MODULE"},
};

/* TOOL_OK, or a sentence with the remedy if word is another launcher's. */
static int check_word(const char *word)
{
    char *option = g_strdup_printf("%.*s ", (int)strcspn(word, "="), word);
    int status = TOOL_OK;

    for (size_t i = 0; i < G_N_ELEMENTS(foreign) && status == TOOL_OK; i++) {
        const char *found = strstr(foreign[i].options, option);

        if (found && (found == foreign[i].options || found[-1] == ' '))
            status = tool_fail(TOOL_USAGE, "run", "there is no %s: %s",
                               g_strchomp(option), foreign[i].remedy);
    }
    g_free(option);
    return status;
}

/* Whether the word after this one is its value. */
static bool takes_value(const GOptionEntry *entries, const char *word)
{
    const bool is_long = g_str_has_prefix(word, "--");

    for (; entries->long_name; entries++)
        if (entries->arg != G_OPTION_ARG_NONE &&
            (is_long ? strcmp(word + 2, entries->long_name) == 0
                     : word[1] && word[1] == entries->short_name && !word[2]))
            return true;
    return false;
}

/* Whether the command of each host of --hostfile gets the option from
 * tools/run/hosts.c. */
static bool is_of_hosts(const char *word)
{
    static const char *const names[] = {"-n",
                                        "--ranks",
                                        "--nproc-per-node",
                                        "--nnodes",
                                        "--hostfile",
                                        "--rsh",
                                        "--node-rank",
                                        "--master",
                                        "--master-addr",
                                        "--master-port",
                                        "--rdzv-endpoint",
                                        NULL};
    char *name = g_strndup(word, strcspn(word, "="));
    const bool found = g_strv_contains(names, name);

    g_free(name);
    return found;
}

int tool_words_read(char **argv, const GOptionEntry *entries, GPtrArray *others)
{
    for (int i = 1; argv[i] && argv[i][0] == '-'; i++) {
        bool keep;

        if (strcmp(argv[i], "--") == 0)
            break;
        argv[i] = option_respell(argv[i]);
        if (check_word(argv[i]) != TOOL_OK)
            return TOOL_USAGE;
        keep = !is_of_hosts(argv[i]);
        if (keep)
            g_ptr_array_add(others, argv[i]);
        if (takes_value(entries, argv[i]) && argv[i + 1]) {
            i++;
            if (keep)
                g_ptr_array_add(others, argv[i]);
        }
    }
    return TOOL_OK;
}
