/* SPDX-License-Identifier: BSD-3-Clause */
/* Other properties of an environment: the sources of values, why a source was
 * taken, files; and the variables that are set for other programs. */
#include "config.h"

#include "tests/env/fixture.h"

#include <glib/gstdio.h>
#include <stdlib.h>

static dscomm_env_t *find(const char *const *environment, const char *root)
{
    dscomm_env_t *env = NULL;

    if (!is_int(fixture_discover(environment, root, &env), DSCOMM_OK,
                "is understood"))
        bail("%s", dscomm_last_error());
    return env;
}

static void test_origins(void)
{
    static const char *const environment[] = {
        STEP(4, 5, 0, 2), "SLURM_STEP_TASKS_PER_NODE=2(x2),1",
        "SLURM_STEP_NODELIST=rack1-n[08-10]", NULL};
    static const char *const want[DSCOMM_ENV_FIELD_COUNT] = {
        "SLURM_PROCID",  "SLURM_STEP_NUM_TASKS",
        "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_NODEID",  "first host of SLURM_STEP_NODELIST",
        "name of job"};
    static const char *const nameless[] = {"PMI_RANK=0", "PMI_SIZE=2", NULL};
    dscomm_env_t *env = find(environment, NULL);

    for (int i = 0; i < DSCOMM_ENV_FIELD_COUNT; i++)
        is_str(dscomm_env_origin(env, (dscomm_env_field_t)i), want[i],
               "origin of field %d", i);
    ok(!dscomm_env_origin(env, (dscomm_env_field_t)7), "no field");
    ok(!dscomm_env_origin(env, (dscomm_env_field_t)-1), "nor this");
    is_str(dscomm_env_job(env), "slurm/1/0", "the job's name");
    dscomm_env_free(env);
    env = find(nameless, NULL);
    ok(!dscomm_env_origin(env, DSCOMM_ENV_LOCAL_RANK), "of what is unknown");
    ok(!dscomm_env_origin(env, DSCOMM_ENV_MASTER_ADDR), "nor the address");
    is_str(dscomm_env_job(env), "", "a job without a name");
    dscomm_env_free(env);
    dscomm_env_free(NULL);
}

#define LONG_ID                                                                \
    "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff"             \
    "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff"

static const struct {
    const char *environment[VARIABLES];
    const char *job;
    int agent_store;
} jobs[] = {
    {{TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True",
      "TORCHELASTIC_RESTART_COUNT=2"},
     "x/2",
     1},
    {{TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=False"}, "x/0", 0},
    {{TORCHRUN}, "x/0", 0},
    /* torch compares with "True" only */
    {{TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=true"}, "x/0", 0},
    {{TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=maybe"}, "x/0", 0},
    {{TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True", "DSCOMM_MASTER_PORT=5"},
     "x/0",
     0},
    {{TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True", "DSCOMM_MASTER_ADDR=m"},
     "x/0",
     0},
    {{"DSCOMM_RANK=1", "DSCOMM_WORLD_SIZE=2", TORCHRUN,
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     "x/0",
     1},
    {{"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=0",
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     "",
     0},
    /* 125 bytes and "/0" fit, one more is replaced by a checksum */
    {{"RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=" LONG_ID "12345"},
     LONG_ID "12345/0",
     0},
    /* printf aa...ff123456/0 | sha256sum */
    {{"RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=" LONG_ID "123456"},
     "21179509f7140fa319b6b0ff589315e7eaa39c30cd442e19ad90a92a858a0fec",
     0},
    {{STEP(0, 1, 0, 0), "SLURM_RESTART_COUNT=3"}, "slurm/1/0/3", 0},
    {{OMPI(0, 1, 0, 1), "PMIX_NAMESPACE=7", "OMPI_MCA_orte_hnp_uri=7.0;x"},
     "openmpi/7",
     0},
    {{HYDRA(0, 4, 0, 2), "SLURM_JOB_ID=7", "SLURM_STEP_ID=1", "SLURM_PROCID=1",
      "SLURM_STEP_NUM_TASKS=2"},
     "hydra/7/1",
     0},
    {{HYDRA(0, 4, 0, 2), "SLURM_JOB_ID=7"}, "hydra/7", 0},
    /* torchrun without a job name: there may be other jobs like that */
    {{"RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=none", "MASTER_ADDR=h",
      "MASTER_PORT=29500", "TORCHELASTIC_RESTART_COUNT=1"},
     "none/h:29500/1",
     0},
    {{"RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=none"}, "none/0", 0},
    {{OMPI(0, 4, 0, 2), "PBS_JOBID=7.x"}, "openmpi/7.x", 0},
    {{"JSM_NAMESPACE_RANK=0", "JSM_NAMESPACE_SIZE=2", "LSB_JOBID=7",
      "PMIX_NAMESPACE=3"},
     "jsrun/7/3",
     0},
    {{"RANK=0", "WORLD_SIZE=2", "SLURM_JOB_ID=7"}, "", 0},
    {{"AWS_BATCH_JOB_NUM_NODES=2", "AWS_BATCH_JOB_NODE_INDEX=1",
      "AWS_BATCH_JOB_ID=a-b#1", "AWS_BATCH_JOB_ATTEMPT=2"},
     "batch/a-b/2",
     0},
};

static void test_jobs(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(jobs); i++) {
        dscomm_env_t *env = find(jobs[i].environment, NULL);

        is_str(dscomm_env_job(env), jobs[i].job, "job %zu", i);
        is_int(dscomm_env_agent_store(env), jobs[i].agent_store,
               "who serves the store of job %zu", i);
        dscomm_env_free(env);
    }
}

static dscomm_env_candidate_t candidate(const dscomm_env_t *env,
                                        const char *name)
{
    dscomm_env_candidate_t info = {.size = sizeof info};

    for (size_t i = 0; dscomm_env_candidate(env, i, &info) == DSCOMM_OK; i++) {
        if (strcmp(info.name, name) == 0)
            return info;
    }
    bail("no candidate %s", name);
}

static const struct {
    const char *environment[VARIABLES];
    const char *name;
    int verdict;
    const char *why;
} verdicts[] = {
    {{NULL}, "singleton", DSCOMM_ENV_TAKEN, "nothing else is there"},
    {{OMPI(0, 2, 0, 2), "DSCOMM_LAUNCHER=singleton"},
     "singleton",
     DSCOMM_ENV_TAKEN,
     "DSCOMM_LAUNCHER asks for it"},
    {{NULL}, "torchrun", DSCOMM_ENV_ABSENT, "TORCHELASTIC_RUN_ID not set"},
    {{NULL}, "torch", DSCOMM_ENV_ABSENT, "RANK and WORLD_SIZE not set"},
    {{"SLURM_JOB_ID=1"}, "slurm", DSCOMM_ENV_ABSENT, "SLURM_STEP_ID not set"},
    {{"SLURM_JOB_ID=1", "SLURM_STEP_ID=4294967290", "SLURM_PROCID=0"},
     "slurm",
     DSCOMM_ENV_REFUSED,
     "SLURM_STEP_ID is not that of a step by srun"},
    {{STEP(1, 2, 0, 0), TORCHRUN},
     "torchrun",
     DSCOMM_ENV_TAKEN,
     "TORCHELASTIC_RUN_ID set"},
    {{STEP(1, 2, 0, 0), TORCHRUN},
     "slurm",
     DSCOMM_ENV_IGNORED,
     "SLURM_PROCID and SLURM_STEP_NUM_TASKS set, but torchrun comes first"},
    {{STEP(1, 2, 0, 0), TORCHRUN, "DSCOMM_LAUNCHER=slurm"},
     "torchrun",
     DSCOMM_ENV_IGNORED,
     "TORCHELASTIC_RUN_ID set, but slurm is asked for"},
    {{STEP(1, 2, 0, 0), "PMI_RANK=1", "PMI_SIZE=2"},
     "pmi",
     DSCOMM_ENV_REFUSED,
     "set by Slurm, whose step says the same"},
    {{HYDRA(0, 2, 0, 2)},
     "pmi",
     DSCOMM_ENV_IGNORED,
     "PMI_RANK and PMI_SIZE set, but hydra comes first"},
    {{"TF_CONFIG={}"},
     "tf_config",
     DSCOMM_ENV_ABSENT,
     "only where DSCOMM_LAUNCHER is 'tf_config'"},
    {{"RANK=0", "WORLD_SIZE=1"},
     "torch",
     DSCOMM_ENV_REFUSED,
     "LOCAL_RANK not set: see pod"},
};

static void test_verdicts(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(verdicts); i++) {
        dscomm_env_t *env = find(verdicts[i].environment, NULL);
        dscomm_env_candidate_t info = candidate(env, verdicts[i].name);

        is_int(info.verdict, verdicts[i].verdict, "verdict %zu, on %s", i,
               verdicts[i].name);
        is_str(info.why, verdicts[i].why, "and why");
        ok(info.about && *info.about, "what it is");
        dscomm_env_free(env);
    }
}

static void test_overlays(void)
{
    static const char *const environment[] = {
        "AZUREML_EXPERIMENT_ID=e", "KUBERNETES_SERVICE_HOST=10.0.0.1",
        OMPI(0, 1, 0, 1), NULL};
    dscomm_env_t *env = find(environment, NULL);

    is_str(dscomm_env_overlay(env, 0), "azureml", "one platform");
    is_str(dscomm_env_overlay(env, 1), "kubernetes", "and another");
    ok(!dscomm_env_overlay(env, 2), "no more");
    ok(!dscomm_env_warning(env, 0), "no warning");
    dscomm_env_free(env);
}

/* Structures of older and newer callers. */
static void test_sizes(void)
{
    static struct { /* its padding is zero */
        dscomm_env_attr_t attr;
        int more;
    } newer = {DSCOMM_ENV_ATTR_INIT, 0};
    dscomm_env_attr_t older = DSCOMM_ENV_ATTR_INIT;
    dscomm_env_t *env = NULL;

    newer.attr.size = sizeof newer;
    is_int(dscomm_env_discover(&newer.attr, &env), DSCOMM_OK,
           "a newer caller's attributes, not used");
    dscomm_env_free(env);
    newer.more = 1;
    is_int(dscomm_env_discover(&newer.attr, &env), DSCOMM_ERR_INVALID,
           "a newer caller's attributes, used");
    older.size = offsetof(dscomm_env_attr_t, root);
    older.root = "/nowhere";
    is_int(dscomm_env_discover(&older, &env), DSCOMM_OK,
           "an older caller's attributes");
    dscomm_env_free(env);
}

static void test_arguments(void)
{
    static const char *const broken[] = {"RANK=x", NULL};
    dscomm_env_attr_t attr = DSCOMM_ENV_ATTR_INIT;
    dscomm_env_candidate_t info = {0};
    dscomm_env_t *env = NULL;

    is_int(dscomm_env_discover(NULL, NULL), DSCOMM_ERR_INVALID, "no result");
    attr.size = 1;
    is_int(dscomm_env_discover(&attr, &env), DSCOMM_ERR_INVALID, "size 1");
    attr = (dscomm_env_attr_t)DSCOMM_ENV_ATTR_INIT;
    attr.get = fixture_get;
    attr.arg = (void *)broken;
    attr.tolerate = 1;
    is_int(dscomm_env_discover(&attr, &env), DSCOMM_OK, "tolerated");
    ok(strstr(dscomm_last_error(), "attr.size is 1") != NULL,
       "the last failure's sentence stays");
    is_int(dscomm_env_status(env), DSCOMM_ERR_ENVIRONMENT, "but told");
    ok(strstr(dscomm_last_error(), "RANK='x'") != NULL, "with a sentence");
    is_int(dscomm_env_rank(env), -1, "no rank");
    is_int(dscomm_env_world_size(env), -1, "nor size");
    is_str(dscomm_env_source(env), "pod", "the source at fault");
    is_int(dscomm_env_check_master(env), DSCOMM_ERR_ENVIRONMENT, "no master");
    is_int(dscomm_env_export(env), DSCOMM_ERR_ENVIRONMENT, "no export");
    is_int(dscomm_env_candidate(env, 0, NULL), DSCOMM_ERR_INVALID, "no info");
    is_int(dscomm_env_candidate(env, 0, &info), DSCOMM_ERR_INVALID, "size 0");
    info.size = sizeof info;
    is_int(dscomm_env_candidate(env, 1000, &info), DSCOMM_ERR_NOT_FOUND,
           "beyond the last");
    dscomm_env_free(env);
}

/* All queries with NULL as environment. */
static void test_null(void)
{
    static int (*const numbers[])(const dscomm_env_t *) = {
        dscomm_env_rank,       dscomm_env_world_size, dscomm_env_local_rank,
        dscomm_env_local_size, dscomm_env_node_rank,  dscomm_env_master_port,
        dscomm_env_agent_store};
    static const char *(*const texts[])(const dscomm_env_t *) = {
        dscomm_env_master_addr, dscomm_env_job, dscomm_env_source};
    static dscomm_status_t (*const statuses[])(const dscomm_env_t *) = {
        dscomm_env_status, dscomm_env_check_master, dscomm_env_export};
    dscomm_env_candidate_t info = {.size = sizeof info};

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        is_int(numbers[i](NULL), -1, "number %zu of nothing", i);
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        ok(!texts[i](NULL), "text %zu of nothing", i);
    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        is_int(statuses[i](NULL), DSCOMM_ERR_INVALID, "status %zu of nothing",
               i);
        ok(strstr(dscomm_last_error(), "env is NULL") != NULL, "and says so");
    }
    ok(!dscomm_env_origin(NULL, DSCOMM_ENV_MASTER_PORT), "no origin");
    ok(!dscomm_env_overlay(NULL, 0), "no overlay");
    ok(!dscomm_env_warning(NULL, 0), "no warning");
    is_int(dscomm_env_candidate(NULL, 0, &info), DSCOMM_ERR_INVALID,
           "no candidate");
}

static void put_file(const char *root, const char *path, const char *text)
{
    char *full = g_strconcat(root, path, NULL);
    char *folder = g_path_get_dirname(full);

    g_mkdir_with_parents(folder, 0700);
    if (!g_file_set_contents(full, text, -1, NULL))
        bail("cannot write %s", full);
    g_free(folder);
    g_free(full);
}

/* Process 30 is a child of 20, which is a child of a proxy. */
static void put_files(const char *root)
{
    static const char tail[] = " 1 1 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 ";
    char *self = g_strdup_printf("30 (a) S (b)) S 20%s700 1 2\n", tail);
    char *parent = g_strdup_printf("20 (sh) S 10%s600 1 2\n", tail);
    char *proxy = g_strdup_printf("10 (hydra_pmi_proxy) S 1%s500 1\n", tail);

    put_file(root, "/proc/self/stat", self);
    put_file(root, "/proc/20/stat", parent);
    put_file(root, "/proc/10/stat", proxy);
    put_file(root, "/proc/sys/kernel/hostname", "a01n02\n");
    put_file(root, "/var/spool/nodes", "x01.site\nx01.site\nx02.site\n");
    put_file(root, "/var/spool/none", "\n");
    g_free(self);
    g_free(parent);
    g_free(proxy);
}

/* Values from files: job, address, node. */
static const struct {
    const char *environment[VARIABLES];
    const char *job, *address;
    int node_rank;
} files[] = {
    {{HYDRA(0, 2, 0, 2)}, "hydra_pmi_proxy/10/500", "127.0.0.1", 0},
    {{HYDRA(0, 2, 0, 1)}, "", "", -1},
    {{"MV2_COMM_WORLD_RANK=0", "MV2_COMM_WORLD_SIZE=2",
      "MV2_COMM_WORLD_LOCAL_SIZE=2"},
     "",
     "127.0.0.1",
     0},
    {{"PALS_RANKID=3", "PMI_SIZE=4", "PBS_NODEFILE=/var/spool/nodes",
      "PBS_JOBID=12.x", "PALS_APID=y"},
     "pals/12.x/y",
     "x01.site",
     -1},
    {{"PALS_RANKID=3", "PMI_SIZE=4", "PBS_NODEFILE=/var/spool/none"},
     "",
     "",
     -1},
    {{"PALS_RANKID=3", "PMI_SIZE=4", "PBS_NODEFILE=/var/spool"}, "", "", -1},
    {{"JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_SIZE=4",
      "LSB_MCPU_HOSTS=batch 1 a01n01 4 A01N02.site 4", "CSM_ALLOCATION_ID=1"},
     "",
     "a01n01",
     1},
    {{"JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_SIZE=4",
      "LSB_MCPU_HOSTS=a01n01 4 a01n022 4"},
     "",
     "a01n01",
     -1},
    {{"AWS_BATCH_JOB_NUM_NODES=2", "AWS_BATCH_JOB_NODE_INDEX=0"},
     "",
     "a01n02",
     0},
};

/* Processes are examined when the job's name, or a value that depends on it, is
 * first requested. */
static void test_late_name(const char *root)
{
    static const char *const environment[] = {HYDRA(0, 2, 0, 2), NULL};
    static const char *const in_slurm[] = {HYDRA(0, 2, 0, 2), "SLURM_JOB_ID=7",
                                           NULL};
    dscomm_env_t *env = find(environment, root);
    int port = dscomm_env_master_port(env);

    ok(port >= 61440 && port % 8 == 0, "a port by the name of the job");
    is_str(dscomm_env_job(env), "hydra_pmi_proxy/10/500", "and the name");
    dscomm_env_free(env);
    env = find(environment, root);
    is_str(dscomm_env_origin(env, DSCOMM_ENV_MASTER_PORT), "name of job",
           "where the port is from, asked for first");
    is_int(dscomm_env_master_port(env), port, "the same port");
    dscomm_env_free(env);
    env = find(environment, root);
    is_int(dscomm_env_check_master(env), DSCOMM_OK, "the master, asked first");
    dscomm_env_free(env);
    env = find(in_slurm, NULL);
    is_str(dscomm_env_job(env), "hydra/7", "the scheduler's, without files");
    is_int(dscomm_env_master_port(env), -1, "which gives no port");
    dscomm_env_free(env);
    env = find(in_slurm, root);
    is_int(dscomm_env_master_port(env), port, "as the ancestor does there");
    dscomm_env_free(env);
    env = find(environment, NULL);
    ok(!dscomm_env_origin(env, DSCOMM_ENV_MASTER_PORT), "nor a port then");
    is_int(dscomm_env_master_port(env), -1, "as is told");
    dscomm_env_free(env);
}

static void test_files(void)
{
    char *root = g_dir_make_tmp("dscomm-env-XXXXXX", NULL);
    char *argv[] = {(char *)"rm", (char *)"-r", root, NULL};

    put_files(root);
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        dscomm_env_t *env = find(files[i].environment, root);

        is_str(dscomm_env_job(env), files[i].job, "files %zu: job", i);
        is_str(dscomm_env_master_addr(env), files[i].address,
               "files %zu: address", i);
        is_int(dscomm_env_node_rank(env), files[i].node_rank, "files %zu: node",
               i);
        dscomm_env_free(env);
    }
    test_late_name(root);
    g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
                 NULL, NULL);
    g_free(root);
}

/* The port depends on the job: it is the same on all ranks, and another one for
 * another job. */
static void test_ports(void)
{
    const char *one[] = {STEP(0, 2, 0, 0), NULL};
    const char *same[] = {STEP(1, 2, 0, 1), NULL};
    const char *next[] = {STEP(0, 2, 0, 0), "SLURM_RESTART_COUNT=1", NULL};
    dscomm_env_t *a = find(one, NULL), *b = find(same, NULL);
    dscomm_env_t *c = find(next, NULL);

    is_int(dscomm_env_master_port(a), dscomm_env_master_port(b),
           "the ranks of a job have one port");
    ok(dscomm_env_master_port(a) != dscomm_env_master_port(c),
       "a restarted job another");
    dscomm_env_free(a);
    dscomm_env_free(b);
    dscomm_env_free(c);
}

static const char *const exported[] = {
    "RANK",        "WORLD_SIZE",  "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    "MASTER_ADDR", "MASTER_PORT",
};

static void clear_environment(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(exported); i++)
        unsetenv(exported[i]);
}

static char *environment_text(void)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(exported); i++) {
        const char *value = getenv(exported[i]);

        g_string_append_printf(text, "%s%s", i ? " " : "", value ? value : "-");
    }
    return g_string_free(text, FALSE);
}

/* The second of two ranks. */
#define PAIR                                                                   \
    {                                                                          \
        OMPI(1, 2, 1, 2), "MASTER_PORT=5"                                      \
    }

static const struct {
    const char *environment[VARIABLES]; /* what is discovered */
    const char *name, *value; /* set before the call; or NULL */
    const char *want; /* set after the call; or the variable that is refused */
    int refused;
} exports[] = {
    {PAIR, NULL, NULL, "1 2 1 2 127.0.0.1 5", 0},
    {PAIR, "RANK", " 1", " 1 2 1 2 127.0.0.1 5", 0},
    {PAIR, "RANK", "0", "RANK='0'", 1},
    {PAIR, "RANK", "x", "RANK='x'", 1},
    {PAIR, "MASTER_ADDR", "h", "MASTER_ADDR='h'", 1},
    {PAIR, "MASTER_ADDR", "", "1 2 1 2 127.0.0.1 5", 0},
    {{OMPI(1, 4, 1, 2), "DSCOMM_MASTER_ADDR=[fd00::1%eth0]", "MASTER_PORT=5"},
     NULL,
     NULL,
     "1 4 1 2 fd00::1%eth0 5",
     0},
    {{OMPI(1, 4, 1, 2), "MASTER_ADDR=[::1]", "MASTER_PORT=5"},
     "MASTER_ADDR",
     "[::1]",
     "1 4 1 2 ::1 5",
     0},
    {{OMPI(1, 4, 1, 2), "MASTER_ADDR=::1", "MASTER_PORT=5"},
     "MASTER_ADDR",
     "[::1]5",
     "MASTER_ADDR='[::1]5'",
     1},
    {{OMPI(1, 4, 1, 2)}, NULL, NULL, "MASTER_ADDR: not set", 1},
    {{OMPI(1, 2, 1, 2)}, NULL, NULL, "MASTER_PORT: not set", 1},
    {{"PMI_RANK=1", "PMI_SIZE=4", "MASTER_ADDR=h", "MASTER_PORT=5"},
     NULL,
     NULL,
     "1 4 - - h 5",
     0},
};

static void test_export(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(exports); i++) {
        dscomm_env_t *env = find(exports[i].environment, NULL);
        char *text;

        clear_environment();
        if (exports[i].name)
            setenv(exports[i].name, exports[i].value, 1);
        is_int(dscomm_env_export(env),
               exports[i].refused ? DSCOMM_ERR_ENVIRONMENT : DSCOMM_OK,
               "export %zu", i);
        text = environment_text();
        if (exports[i].refused) {
            ok(strstr(dscomm_last_error(), exports[i].want) != NULL,
               "says %s: %s", exports[i].want, dscomm_last_error());
            is_int(getenv("WORLD_SIZE") == NULL, 1, "and sets nothing");
        } else {
            is_str(text, exports[i].want, "sets these");
        }
        g_free(text);
        dscomm_env_free(env);
    }
    clear_environment();
}

/* This process alone: the exported values are discovered again. */
static void test_process(void)
{
    dscomm_env_t *env = NULL;
    int port;

    clear_environment();
    setenv("DSCOMM_RANK", "0", 1);
    setenv("DSCOMM_WORLD_SIZE", "1", 1);
    is_int(dscomm_env_discover(NULL, &env), DSCOMM_OK, "this process");
    is_str(dscomm_env_source(env), "dscomm", "its source");
    is_int(dscomm_env_export(env), DSCOMM_OK, "is exported");
    dscomm_env_free(env);
    unsetenv("DSCOMM_RANK");
    unsetenv("DSCOMM_WORLD_SIZE");
    port = atoi(getenv("MASTER_PORT"));
    ok(port >= 61440 && port <= 65535, "a port of its own");
    setenv("DSCOMM_LAUNCHER", "torch", 1);
    is_int(dscomm_env_discover(NULL, &env), DSCOMM_OK, "is found again");
    is_int(dscomm_env_rank(env), 0, "rank");
    is_int(dscomm_env_local_size(env), 1, "local size");
    is_int(dscomm_env_master_port(env), port, "port");
    dscomm_env_free(env);
    unsetenv("DSCOMM_LAUNCHER");
    clear_environment();
}

int main(void)
{
    test_origins();
    test_jobs();
    test_verdicts();
    test_overlays();
    test_sizes();
    test_arguments();
    test_null();
    test_files();
    test_ports();
    test_export();
    test_process();
    return tap_done();
}
