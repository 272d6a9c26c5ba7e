/* SPDX-License-Identifier: BSD-3-Clause */
/* How long dscomm_env_discover() takes in the environments of several
 * launchers. Not a test.
 *
 *     tests/bench/discovery [ROUNDS]
 *
 * "cold" is the first call of a process; each of the rounds, by default 101,
 * starts a new process. "named" includes the job's name and port, which
 * dscomm_init() needs. "warm" is the median of later calls. Figures are
 * microseconds: median and maximum of all rounds. */
#include "config.h"

#include "tests/bench/bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <dscomm/dscomm.h>
#include <dscomm/env.h>

#define HOSTS 4096
#define VARIABLES 64
#define CALLS 201
#define ROUNDS_MAX 1001

enum { COLD, NAMED, WARM, FIGURES };

static char *variables[VARIABLES + 1];
static int count;

static __attribute__((format(printf, 1, 2))) void put(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (count == VARIABLES || vasprintf(&variables[count++], format, args) < 0)
        abort();
    va_end(args);
}

/* An element of a list: format of first + factor * (i % modulo). */
typedef struct {
    const char *format;
    int first, factor, modulo;
} element_t;

static const element_t host_name = {"n%d-ib,", 0, 1, HOSTS},
                       odd_number = {"%d,", 1, 2, HOSTS},
                       host_slots = {"n%d 42 ", 0, 1, HOSTS},
                       json_host = {"\"h-%d\",", 0, 1, HOSTS},
                       one_or_two = {"%d,", 1, 1, 2};

/* Writes `before`, one element for each host, and `after`. */
static void put_list(const char *before, const element_t *element,
                     const char *after)
{
    static char text[HOSTS * 32];
    size_t used = 0;

    for (int i = 0; i < HOSTS; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, element->format,
            element->first + element->factor * (i % element->modulo));
    text[used - 1] = '\0';
    put("%s%s%s", before, text, after);
}

static const char *const none[] = {NULL};

static const char *const run[] = {"TORCHELASTIC_RUN_ID=job",
                                  "TORCHELASTIC_USE_AGENT_STORE=True",
                                  "RANK=9",
                                  "WORLD_SIZE=16",
                                  "LOCAL_RANK=1",
                                  "LOCAL_WORLD_SIZE=8",
                                  "GROUP_RANK=1",
                                  "MASTER_ADDR=n0",
                                  "MASTER_PORT=29500",
                                  NULL};

static const char *const openmpi[] = {"OMPI_COMM_WORLD_RANK=1",
                                      "OMPI_COMM_WORLD_SIZE=4",
                                      "OMPI_COMM_WORLD_LOCAL_RANK=1",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE=4",
                                      "PMIX_NAMESPACE=2113208321",
                                      "PMIX_RANK=1",
                                      NULL};

static const char *const mpich[] = {"PMI_RANK=1",        "PMI_SIZE=4",
                                    "PMI_FD=8",          "MPI_LOCALRANKID=1",
                                    "MPI_LOCALNRANKS=4", NULL};

static void step(int tasks)
{
    put("SLURM_JOB_ID=1");
    put("SLURM_STEP_ID=0");
    put("SLURM_PROCID=1");
    put("SLURM_STEP_NUM_TASKS=%d", tasks);
    put("SLURM_LOCALID=0");
    put("SLURM_NODEID=1");
}

static void slurm(void)
{
    step(HOSTS);
    put("SLURM_STEP_TASKS_PER_NODE=1(x%d)", HOSTS);
    put("SLURM_STEP_NODELIST=n[0001-%d]", HOSTS);
}

static void slurm_odd(void)
{
    step(HOSTS);
    put("SLURM_STEP_TASKS_PER_NODE=1(x%d)", HOSTS);
    put_list("SLURM_STEP_NODELIST=n[", &odd_number, "]");
}

static void slurm_names(void)
{
    step(HOSTS + HOSTS / 2);
    put_list("SLURM_STEP_TASKS_PER_NODE=", &one_or_two, "");
    put_list("SLURM_STEP_NODELIST=", &host_name, "");
}

static void jsrun(void)
{
    put("JSM_NAMESPACE_RANK=1");
    put("JSM_NAMESPACE_SIZE=%d", HOSTS);
    put("JSM_NAMESPACE_LOCAL_RANK=0");
    put("JSM_NAMESPACE_LOCAL_SIZE=1");
    put("LSB_JOBID=77");
    put_list("LSB_MCPU_HOSTS=", &host_slots, "");
}

static void sagemaker(void)
{
    put("SM_TRAINING_ENV={}");
    put("SM_CURRENT_HOST=h-%d", HOSTS - 1);
    put_list("SM_HOSTS=[", &json_host, "]");
}

static void vertex(void)
{
    put_list("CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"c:2222\"],"
             "\"workerpool1\":[",
             &json_host,
             "]},\"task\":{\"type\":\"workerpool1\",\"index\":4095}}");
}

static const struct {
    const char *name;
    const char *const *variables;
    void (*put)(void); /* more variables; or NULL */
} environments[] = {
    {"none", none, NULL},
    {"torchrun, dscomm run", run, NULL},
    {"Open MPI", openmpi, NULL},
    {"MPICH", mpich, NULL},
    {"Slurm, n[0001-4096]", none, slurm},
    {"Slurm, n[1,3,...,8191]", none, slurm_odd},
    {"Slurm, 4096 names", none, slurm_names},
    {"jsrun, 4096 hosts", none, jsrun},
    {"SageMaker, 4096 hosts", none, sagemaker},
    {"Vertex AI, 4096 hosts", none, vertex},
};
#define ENVIRONMENTS (sizeof environments / sizeof environments[0])

static void discover(dscomm_env_t **ret_env)
{
    if (dscomm_env_discover(NULL, ret_env) == DSCOMM_OK)
        return;
    fprintf(stderr, "%s\n", dscomm_last_error());
    exit(1);
}

/* The process of one round. */
static int be_one(void)
{
    double begin = now_ns(), figures[FIGURES], calls[CALLS];
    dscomm_env_t *env;

    now_ns();
    begin = now_ns();
    discover(&env);
    figures[COLD] = (now_ns() - begin) / 1e3;
    dscomm_env_job(env);
    dscomm_env_master_port(env);
    figures[NAMED] = (now_ns() - begin) / 1e3;
    dscomm_env_free(env);
    for (int i = 0; i < CALLS; i++) {
        begin = now_ns();
        discover(&env);
        calls[i] = (now_ns() - begin) / 1e3;
        dscomm_env_free(env);
    }
    figures[WARM] = median(calls, CALLS);
    return write(STDOUT_FILENO, figures, sizeof figures) != sizeof figures;
}

static void start_one(size_t index, double *ret_figures)
{
    int ends[2], status;
    pid_t pid;

    if (pipe(ends) < 0 || (pid = fork()) < 0)
        abort();
    if (pid == 0) {
        char *argv[] = {(char *)"discovery", (char *)"--one", NULL};
        const char *libraries = getenv("LD_LIBRARY_PATH");

        put("LD_LIBRARY_PATH=%s", libraries ? libraries : "");
        put("PATH=/usr/bin");
        put("HOME=/root");
        for (const char *const *v = environments[index].variables; *v; v++)
            put("%s", *v);
        if (environments[index].put)
            environments[index].put();
        dup2(ends[1], STDOUT_FILENO);
        execve("/proc/self/exe", argv, variables);
        _exit(127);
    }
    close(ends[1]);
    if (read(ends[0], ret_figures, FIGURES * sizeof(double)) !=
        (ssize_t)(FIGURES * sizeof(double)))
        exit(1);
    close(ends[0]);
    waitpid(pid, &status, 0);
}

static void measure(size_t index, int rounds)
{
    static double all[FIGURES][ROUNDS_MAX];
    double one[FIGURES];

    for (int r = 0; r < rounds; r++) {
        start_one(index, one);
        for (int f = 0; f < FIGURES; f++)
            all[f][r] = one[f];
    }
    printf("%-24s", environments[index].name);
    for (int f = 0; f < FIGURES; f++) {
        printf(" %9.1f", median(all[f], (size_t)rounds));
        if (f != WARM)
            printf(" %7.1f", all[f][rounds - 1]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 101;

    if (argc > 1 && strcmp(argv[1], "--one") == 0)
        return be_one();
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: discovery [ROUNDS]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* The name of the parent process of MPICH's ranks. */
    prctl(PR_SET_NAME, "hydra_pmi_proxy");
    printf("%-24s %9s %7s %9s %7s %9s\n", "us", "cold", "most", "named", "most",
           "warm");
    for (size_t i = 0; i < ENVIRONMENTS; i++)
        measure(i, rounds);
    return 0;
}
