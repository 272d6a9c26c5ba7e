/* SPDX-License-Identifier: BSD-3-Clause */
/* Environments as launchers make them, and who one is in them. */
#include "config.h"

#include "tests/env/fixture.h"

typedef struct {
    const char *name;
    const char *environment[VARIABLES];
    /* source, rank/world/local rank/local size/node, address, port; "-" where
     * unknown, "#" for a port by the name of the job */
    const char *want;
    /* a warning has it, or why there is no master; NULL: neither is there */
    const char *says;
} vector_t;

#define ALONE "singleton 0/1/0/1/0 127.0.0.1 -"

static const vector_t vectors[] = {
    {"T01 nothing", {NULL}, ALONE, NULL},
    {"empty is unset",
     {"RANK=", "WORLD_SIZE=", "TORCHELASTIC_RUN_ID=", "SLURM_JOB_ID="},
     ALONE,
     NULL},
    {"an address alone",
     {"MASTER_ADDR=h", "MASTER_PORT=1234", "LOCAL_RANK=3"},
     "singleton 0/1/0/1/0 h 1234",
     NULL},

    {"T02 Open MPI, one node",
     {OMPI(1, 2, 1, 2), "OMPI_COMM_WORLD_NODE_RANK=1", "PMIX_RANK=1"},
     "openmpi 1/2/1/2/0 127.0.0.1 -",
     "MASTER_PORT: not set"},
    {"Open MPI, one node, a job with a name",
     {OMPI(1, 2, 1, 2), "PMIX_NAMESPACE=2113208321", "PMIX_RANK=1"},
     "openmpi 1/2/1/2/0 127.0.0.1 #",
     NULL},
    {"Open MPI 5",
     {OMPI(0, 2, 0, 2), "PRTE_LAUNCHED=1", "OMPI_VERSION=5.0.7",
      "PMIX_NAMESPACE=prterun-vm-4363@1", "PMIX_SERVER_URI41=x"},
     "openmpi 0/2/0/2/0 127.0.0.1 #",
     NULL},
    {"T03 mpirun in Slurm",
     {OMPI(3, 5, 1, 2), "SLURM_JOB_ID=2", "SLURM_STEP_ID=5", "SLURM_PROCID=1",
      "SLURM_STEP_NUM_TASKS=3", "SLURM_NTASKS=3", "SLURM_LOCALID=0",
      "SLURM_NODEID=1", "SLURM_STEP_NODELIST=rack1-n[08-10]"},
     "openmpi 3/5/1/2/- - #",
     "env[openmpi]: MASTER_ADDR: not set, and mpirun does not tell where rank "
     "0 is. Set MASTER_ADDR to the host of rank 0"},
    {"Open MPI, duplicates that agree",
     {OMPI(3, 8, 3, 4), "RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3",
      "MASTER_ADDR=h", "MASTER_PORT=1234"},
     "openmpi 3/8/3/4/- h 1234",
     NULL},
    {"Open MPI, duplicates that agree in part",
     {OMPI(2, 3, 0, 1), "WORLD_SIZE=3", "LOCAL_SIZE=2", "MASTER_ADDR=h",
      "MASTER_PORT=5"},
     "openmpi 2/3/0/1/- h 5",
     NULL},
    {"Open MPI, LOCAL_RANK chooses a device",
     {OMPI(3, 4, 3, 4), "LOCAL_RANK=0", "MASTER_PORT=5"},
     "openmpi 3/4/3/4/0 127.0.0.1 5",
     "LOCAL_RANK='0' disagrees with OMPI_COMM_WORLD_LOCAL_RANK='3'"},

    {"T04 batch script",
     {"SLURM_JOB_ID=2", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NODEID=0",
      "SLURM_NTASKS=6", "SLURM_TASKS_PER_NODE=2(x3)"},
     ALONE,
     "inside Slurm job 2 but not started by srun/mpirun"},
    {"T05 interactive step",
     {"SLURM_JOB_ID=2", "SLURM_STEP_ID=4294967290", "SLURM_PROCID=0",
      "SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=1"},
     ALONE,
     "inside Slurm job 2 but"},
    {"T05b batch step of Slurm 26",
     {"SLURM_JOB_ID=2", "SLURM_STEP_ID=-5", "SLURM_PROCID=0", "SLURM_NTASKS=4"},
     ALONE,
     "inside Slurm job 2 but"},
    {"extern step",
     {"SLURM_JOB_ID=2", "SLURM_STEP_ID=4294967292", "SLURM_PROCID=0",
      "SLURM_STEP_NUM_TASKS=2"},
     ALONE,
     "inside Slurm job 2 but"},
    {"the last step there can be",
     {"SLURM_JOB_ID=2", "SLURM_STEP_ID=4294967279", "SLURM_PROCID=1",
      "SLURM_STEP_NUM_TASKS=2", "MASTER_ADDR=h"},
     "slurm 1/2/-/-/- h #",
     NULL},
    {"T06 srun",
     {STEP(4, 5, 0, 2), "SLURM_STEP_NUM_NODES=3",
      "SLURM_STEP_TASKS_PER_NODE=2(x2),1", "SLURM_STEP_NODELIST=rack1-n[08-10]",
      "SLURM_GTIDS=4"},
     "slurm 4/5/0/1/2 rack1-n08 #",
     NULL},
    {"T07 srun -r 1",
     {STEP(0, 2, 0, 0), "SLURM_JOB_NODELIST=rack1-n[08-10]",
      "SLURM_NODELIST=rack1-n[08-10]", "SLURM_STEP_NODELIST=rack1-n[09-10]",
      "SLURM_STEP_TASKS_PER_NODE=1(x2)", "SLURM_NTASKS_PER_NODE=2"},
     "slurm 0/2/0/1/0 rack1-n09 #",
     NULL},
    {"T08 cyclic distribution",
     {STEP(2, 4, 1, 0), "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_GTIDS=0,2",
      "SLURM_DISTRIBUTION=cyclic", "SLURM_STEP_NODELIST=n[1-2]"},
     "slurm 2/4/1/2/0 n1 #",
     NULL},
    {"T09 arbitrary distribution",
     {STEP(0, 4, 0, 2), "SLURM_DISTRIBUTION=arbitrary",
      "SLURM_STEP_NODELIST=rack1-n[08-10]", "SLURM_STEP_TASKS_PER_NODE=1(x2),2",
      "SLURM_GTIDS=0,2"},
     "slurm 0/4/0/2/2 - #",
     "rank 0 need not be on the first node. Set MASTER_ADDR"},
    {"T09b arbitrary distribution and an address",
     {STEP(0, 4, 0, 2), "SLURM_DISTRIBUTION=arbitrary",
      "SLURM_STEP_NODELIST=rack1-n[08-10]", "SLURM_STEP_TASKS_PER_NODE=1(x2),2",
      "SLURM_GTIDS=0,2", "MASTER_ADDR=rack1-n10"},
     "slurm 0/4/0/2/2 rack1-n10 #",
     NULL},
    {"srun on one node",
     {STEP(3, 4, 3, 0), "SLURM_STEP_TASKS_PER_NODE=4",
      "SLURM_STEP_NODELIST=n7"},
     "slurm 3/4/3/4/0 127.0.0.1 #",
     NULL},
    {"srun without SLURM_STEP_NUM_TASKS",
     {"SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=3", "SLURM_NTASKS=4",
      "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_GTIDS=2,3",
      "SLURM_STEP_NODELIST=a,b"},
     "slurm 3/4/1/2/1 a #",
     NULL},
    {"a step without a list of nodes",
     {STEP(0, 2, 0, 0), "SLURM_STEP_TASKS_PER_NODE=1(x2)",
      "SLURM_JOB_NODELIST=n[1-2]", "SLURM_LAUNCH_NODE_IPADDR=10.0.0.1"},
     "slurm 0/2/0/1/0 - #",
     "SLURM_STEP_NODELIST is not set either"},
    {"a job of several components",
     {STEP(5, 6, 1, 2), "SLURM_HET_SIZE=2", "SLURM_NTASKS=6", "SLURM_NPROCS=2",
      "SLURM_STEP_TASKS_PER_NODE=2", "SLURM_GTIDS=4,5",
      "SLURM_STEP_NODELIST=n[1-3]"},
     "slurm 5/6/1/2/2 n1 #",
     NULL},
    {"T23 ranks of this node",
     {STEP(2, 4, 0, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_GTIDS=1,2,3",
      "SLURM_STEP_NODELIST=n[1-2]"},
     "slurm 2/4/0/3/1 n1 #",
     "SLURM_GTIDS lists 3 ranks on this node"},

    {"T10 Hydra in Slurm",
     {HYDRA(2, 3, 0, 1), "SLURM_JOB_ID=2", "SLURM_STEP_ID=6", "SLURM_PROCID=1",
      "SLURM_NTASKS=6", "SLURM_STEP_NUM_TASKS=2", "MASTER_ADDR=h",
      "MASTER_PORT=7"},
     "hydra 2/3/0/1/- h 7",
     NULL},
    {"T10b srun --mpi=pmi2",
     {STEP(3, 4, 1, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)",
      "SLURM_STEP_NODELIST=n[1-2]", "PMI_RANK=3", "PMI_SIZE=4", "PMI_FD=6",
      "PMI_JOBID=1.0"},
     "slurm 3/4/1/2/1 n1 #",
     NULL},
    {"Hydra on one node",
     {HYDRA(1, 2, 1, 2), "PMI_FD=8", "MASTER_PORT=7"},
     "hydra 1/2/1/2/0 127.0.0.1 7",
     NULL},
    {"PMI alone",
     {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8", "MASTER_PORT=7"},
     "pmi 1/2/-/-/- - 7",
     "nothing else tells where rank 0 is. Set MASTER_ADDR"},
    {"T11 srun --mpi=pmix",
     {STEP(2, 4, 0, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)",
      "SLURM_STEP_NODELIST=n[1-2]", "PMIX_RANK=2",
      "PMIX_NAMESPACE=slurm.pmix.1.0"},
     "slurm 2/4/0/2/1 n1 #",
     NULL},
    {"T11b PMIX_RANK alone",
     {"PMIX_RANK=0"},
     ALONE,
     "PMIX_RANK without world size"},

    {"T13 torchrun in Slurm",
     {TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True", "SLURM_JOB_ID=1",
      "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2"},
     "torchrun 9/16/1/8/1 n0 29500",
     NULL},
    {"torchrun, rank 0 serves elsewhere: not at the agent's port",
     {TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True", "DSCOMM_MASTER_ADDR=m"},
     "torchrun 9/16/1/8/1 m #",
     NULL},
    {"torchrun, rank 0 serves at another port",
     {TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True", "DSCOMM_MASTER_PORT=7"},
     "torchrun 9/16/1/8/1 n0 7",
     NULL},
    {"T13b torchrun without the agent's store",
     {TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=False"},
     "torchrun 9/16/1/8/1 n0 29500",
     NULL},
    {"torchrun by mpirun",
     {TORCHRUN, OMPI(1, 2, 0, 1), "NODE_RANK=0"},
     "torchrun 9/16/1/8/1 n0 29500",
     NULL},
    {"torchrun with half of Open MPI's variables",
     {TORCHRUN, "OMPI_COMM_WORLD_RANK=1"},
     "torchrun 9/16/1/8/1 n0 29500",
     NULL},
    {"T26 torchrun --virtual-local-rank",
     {"TORCHELASTIC_RUN_ID=x", "RANK=2", "WORLD_SIZE=4", "LOCAL_RANK=0",
      "LOCAL_WORLD_SIZE=4", "GROUP_RANK=0", "MASTER_ADDR=h",
      "MASTER_PORT=29500"},
     "torchrun 2/4/0/4/0 h 29500",
     NULL},
    {"torchrun, hardly anything",
     {"TORCHELASTIC_RUN_ID=x", "RANK=0", "WORLD_SIZE=2"},
     "torchrun 0/2/-/-/- - #",
     "nothing else tells where rank 0 is"},
    {"T29 DeepSpeed, uneven nodes",
     {"CROSS_RANK=1", "CROSS_SIZE=2", "LOCAL_SIZE=3", "RANK=4", "LOCAL_RANK=1",
      "WORLD_SIZE=7", "MASTER_ADDR=h", "MASTER_PORT=29500"},
     "deepspeed 4/7/1/3/1 h 29500",
     NULL},
    {"T21d DeepSpeed on MPICH",
     {HYDRA(2, 3, 0, 1), "WORLD_SIZE=3", "LOCAL_SIZE=2", "MASTER_ADDR=h",
      "MASTER_PORT=29500"},
     "hydra 2/3/0/1/- h 29500",
     NULL},
    {"DeepSpeed on Intel MPI",
     {HYDRA(5, 8, 1, 4), "I_MPI_ROOT=/opt/intel/mpi", "WORLD_SIZE=8",
      "LOCAL_SIZE=4", "RANK=5", "LOCAL_RANK=1", "MASTER_ADDR=h",
      "MASTER_PORT=29500"},
     "hydra 5/8/1/4/- h 29500",
     NULL},

    {"T14b a stale export, and the launcher named",
     {OMPI(3, 8, 3, 4), "RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0",
      "MASTER_ADDR=h", "MASTER_PORT=1234", "DSCOMM_LAUNCHER=openmpi"},
     "openmpi 3/8/3/4/- h 1234",
     NULL},
    {"the other named",
     {OMPI(3, 8, 3, 4), "RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0",
      "MASTER_ADDR=h", "MASTER_PORT=1234", "DSCOMM_LAUNCHER=Torch"},
     "torch 0/1/0/1/0 h 1234",
     NULL},
    {"none named",
     {OMPI(3, 8, 3, 4), "DSCOMM_LAUNCHER=singleton", "SLURM_JOB_ID=1"},
     ALONE,
     NULL},
    {"the launcher named, and numbers besides",
     {OMPI(1, 2, 1, 2), "DSCOMM_RANK=0", "DSCOMM_WORLD_SIZE=4",
      "DSCOMM_LAUNCHER=openmpi", "MASTER_PORT=5"},
     "openmpi 1/2/1/2/0 127.0.0.1 5",
     "DSCOMM_RANK and DSCOMM_WORLD_SIZE set, but DSCOMM_LAUNCHER asks for "
     "openmpi"},
    {"auto named",
     {OMPI(1, 2, 1, 2), "DSCOMM_LAUNCHER=auto"},
     "openmpi 1/2/1/2/0 127.0.0.1 -",
     "MASTER_PORT: not set"},
    {"T15 torch's variables by a hook in Slurm",
     {STEP(5, 8, 1, 1), "RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1",
      "MASTER_ADDR=n1", "MASTER_PORT=50000", "SLURM_STEP_TASKS_PER_NODE=4(x2)"},
     "slurm 5/8/1/4/1 n1 50000",
     NULL},

    {"T16 PyTorchJob",
     {"RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=job-master-0", "MASTER_PORT=23456",
      "PET_NPROC_PER_NODE=1"},
     "pod 1/3/0/1/1 job-master-0 23456",
     NULL},
    {"a pod without a port",
     {"RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=h"},
     "pod 1/3/0/1/1 h -",
     "env[pod]: MASTER_PORT: not set"},
    {"two terminals of one machine",
     {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"},
     "torch 1/2/1/2/0 127.0.0.1 29500",
     NULL},
    {"Ray",
     {"RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
      "NODE_RANK=0", "MASTER_ADDR=n0", "MASTER_PORT=29501"},
     "torch 1/4/1/2/0 n0 29501",
     NULL},
    {"torch's default port",
     {"RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "MASTER_ADDR=n0"},
     "torch 1/4/1/-/- n0 29500",
     NULL},
    {"one rank by torch's variables",
     {"RANK=0", "WORLD_SIZE=1"},
     "pod 0/1/0/1/0 127.0.0.1 -",
     NULL},
    {"all ranks here",
     {"RANK=2", "WORLD_SIZE=3", "LOCAL_WORLD_SIZE=3"},
     "torch 2/3/2/3/0 127.0.0.1 29500",
     NULL},
    {"T19 blanks",
     {"RANK= 3 ", "WORLD_SIZE=\t4", "LOCAL_RANK= 0", "MASTER_PORT= 80 ",
      "MASTER_ADDR= ::2 "},
     "torch 3/4/0/-/- ::2 80",
     NULL},
    {"zeros in front",
     {"RANK=007", "WORLD_SIZE=0000000000000000000000008", "LOCAL_RANK=0",
      "MASTER_ADDR=h"},
     "torch 7/8/0/-/- h 29500",
     NULL},
    {"the largest world",
     {"RANK=2147483646", "WORLD_SIZE=2147483647", "LOCAL_RANK=0",
      "MASTER_ADDR=h"},
     "torch 2147483646/2147483647/0/-/- h 29500",
     NULL},

    {"T17 Azure ML",
     {"AZUREML_EXPERIMENT_ID=e", OMPI(4, 8, 0, 4),
      "AZ_BATCH_MASTER_NODE=10.0.1.17:6000"},
     "openmpi 4/8/0/4/- 10.0.1.17 6105",
     NULL},
    {"T17 Azure ML and a port",
     {"AZUREML_EXPERIMENT_ID=e", OMPI(4, 8, 0, 4),
      "AZ_BATCH_MASTER_NODE=10.0.1.17:6000", "MASTER_PORT=7000"},
     "openmpi 4/8/0/4/- 10.0.1.17 7000",
     NULL},
    {"T17b Azure ML without a master",
     {"AZUREML_EXPERIMENT_ID=e", OMPI(4, 8, 0, 4)},
     "openmpi 4/8/0/4/- - 6105",
     "env[openmpi+azureml]: MASTER_ADDR: not set, and neither "
     "AZ_BATCH_MASTER_NODE nor AZ_BATCHAI_MPI_MASTER_NODE is set"},
    {"Azure ML, one node",
     {"AZUREML_EXPERIMENT_ID=e", OMPI(1, 4, 1, 4),
      "AZ_BATCHAI_MPI_MASTER_NODE=10.0.0.5", "PMIX_NAMESPACE=77"},
     "openmpi 1/4/1/4/0 10.0.0.5 #",
     NULL},
    {"not Azure ML but DLTS",
     {"AZUREML_EXPERIMENT_ID=e", "DLTS_JOB_ID=1", OMPI(4, 8, 0, 4),
      "AZ_BATCH_MASTER_NODE=10.0.1.17:6000"},
     "openmpi 4/8/0/4/- - -",
     "mpirun does not tell"},
    {"T18 SageMaker, mpirun",
     {"SM_TRAINING_ENV={}", "SM_HOSTS=[\"algo-1\",\"algo-10\",\"algo-2\"]",
      "SM_CURRENT_HOST=algo-2", OMPI(16, 24, 0, 8), "MASTER_ADDR=algo-1",
      "MASTER_PORT=7777"},
     "openmpi 16/24/0/8/- algo-1 7777",
     NULL},
    {"SageMaker, mpirun, no address",
     {"SM_TRAINING_ENV={}", "SM_HOSTS=[\"algo-1\",\"algo-10\",\"algo-2\"]",
      "SM_CURRENT_HOST=algo-2", OMPI(16, 24, 0, 8)},
     "openmpi 16/24/0/8/- algo-1 7777",
     NULL},
    {"SageMaker, smddp",
     {"SM_TRAINING_ENV={}", "SM_HOSTS=[\"algo-1\",\"algo-2\"]",
      "SM_CURRENT_HOST=algo-1", OMPI(3, 16, 3, 8),
      "SMDATAPARALLEL_USE_HOMOGENEOUS=1", "SMDATAPARALLEL_SERVER_ADDR=algo-1",
      "SMDATAPARALLEL_SERVER_PORT=7592"},
     "openmpi 3/16/3/8/- algo-1 7777",
     NULL},
    {"T18b SageMaker, plain",
     {"SM_TRAINING_ENV={}", "SM_HOSTS=[\"algo-1\",\"algo-10\",\"algo-2\"]",
      "SM_CURRENT_HOST=algo-2"},
     "sagemaker 2/3/0/1/2 algo-1 7777",
     NULL},
    {"SageMaker, torchrun",
     {"SM_TRAINING_ENV={}", "SM_HOSTS=[\"algo-1\",\"algo-2\"]",
      "SM_CURRENT_HOST=algo-2", TORCHRUN},
     "torchrun 9/16/1/8/1 n0 29500",
     NULL},
    {"T25 Vertex AI",
     {"CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"h-0:2222\"],"
      "\"workerpool1\":[\"h-1:2222\",\"h-2:2222\"]},\"environment\":\"cloud\","
      "\"task\":{\"type\":\"workerpool1\",\"index\":1}}"},
     "vertex 2/3/0/1/2 h-0 2222",
     NULL},
    {"Vertex AI, an address of IPv6",
     {"CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"[fd00::7]:2222\",\"b\"]},"
      "\"task\":{\"type\":\"workerpool0\",\"index\":1}}"},
     "vertex 1/2/0/1/1 fd00::7 2222",
     NULL},
    {"Vertex AI without ports",
     {"CLUSTER_SPEC= { \"task\" : {\"index\": 0, \"type\": \"workerpool0\"}, "
      "\"cluster\": {\"workerpool1\":[\"b\"],\"workerpool0\":[\"a\"]}} ",
      "CLOUD_ML_JOB_ID=9"},
     "vertex 0/2/0/1/0 a #",
     NULL},
    {"TF_CONFIG is not asked",
     {"TF_CONFIG={\"cluster\":{\"worker\":[\"w:1\"]},"
      "\"task\":{\"type\":\"worker\",\"index\":0}}"},
     ALONE,
     NULL},
    {"TF_CONFIG is asked",
     {"DSCOMM_LAUNCHER=tf_config",
      "TF_CONFIG={\"cluster\":{\"worker\":[\"w0:2222\",\"w1:2222\"],"
      "\"chief\":[\"c:2222\"]},\"task\":{\"type\":\"worker\",\"index\":1}}"},
     "tf_config 2/3/0/1/2 c 2222",
     NULL},
    {"AWS Batch",
     {"AWS_BATCH_JOB_NUM_NODES=4", "AWS_BATCH_JOB_NODE_INDEX=3",
      "AWS_BATCH_JOB_MAIN_NODE_INDEX=0", "AWS_BATCH_JOB_ID=a-b#3",
      "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.0.0.7"},
     "batch 3/4/0/1/3 10.0.0.7 #",
     NULL},
    {"AWS Batch, another main node",
     {"AWS_BATCH_JOB_NUM_NODES=4", "AWS_BATCH_JOB_NODE_INDEX=1",
      "AWS_BATCH_JOB_MAIN_NODE_INDEX=2",
      "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.0.0.7", "MASTER_PORT=5"},
     "batch 3/4/0/1/3 10.0.0.7 5",
     NULL},

    {"MVAPICH2",
     {"MV2_COMM_WORLD_RANK=3", "MV2_COMM_WORLD_SIZE=4",
      "MV2_COMM_WORLD_LOCAL_RANK=1", "MV2_COMM_WORLD_LOCAL_SIZE=2", "PMI_ID=3",
      "MASTER_ADDR=h", "MASTER_PORT=5"},
     "mvapich2 3/4/1/2/- h 5",
     NULL},
    {"MVAPICH 3",
     {"MVP_COMM_WORLD_RANK=1", "MVP_COMM_WORLD_SIZE=2",
      "MVP_COMM_WORLD_LOCAL_RANK=1", "MVP_COMM_WORLD_LOCAL_SIZE=2",
      "MASTER_PORT=5"},
     "mvapich3 1/2/1/2/0 127.0.0.1 5",
     NULL},
    {"T24 jsrun with CSM",
     {"JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_SIZE=4",
      "JSM_NAMESPACE_LOCAL_RANK=1", "JSM_NAMESPACE_LOCAL_SIZE=2",
      "LSB_JOBID=77", "CSM_ALLOCATION_ID=9",
      "LSB_MCPU_HOSTS=batch5 1 a01n01 42 a01n02 42 "},
     "jsrun 1/4/1/2/- a01n01 #",
     NULL},
    {"T24b jsrun without CSM",
     {"JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_SIZE=4",
      "JSM_NAMESPACE_LOCAL_RANK=1", "JSM_NAMESPACE_LOCAL_SIZE=2",
      "LSB_JOBID=77", "LSB_MCPU_HOSTS=h1 4 h2 4"},
     "jsrun 1/4/1/2/- h1 #",
     NULL},
    {"jsrun, which sets Open MPI's variables",
     {"JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_SIZE=4",
      "JSM_NAMESPACE_LOCAL_RANK=1", "JSM_NAMESPACE_LOCAL_SIZE=2",
      OMPI(1, 4, 1, 2), "LSB_JOBID=77"},
     "jsrun 1/4/1/2/- - #",
     "LSB_MCPU_HOSTS is not set either"},
    {"in a job of LSF",
     {"LSB_JOBID=77", "LSB_MCPU_HOSTS=h1 4"},
     ALONE,
     "inside LSF job 77 but"},
    {"PALS",
     {"PALS_RANKID=5", "PALS_LOCAL_RANKID=1", "PALS_NODEID=1",
      "PALS_LOCAL_SIZE=4", "PALS_APID=f00", "PMI_SIZE=8", "PMI_RANK=5",
      "PBS_JOBID=12.pbs", "MASTER_ADDR=h"},
     "pals 5/8/1/4/1 h #",
     NULL},
    {"Slurm's plugin for Cray",
     {STEP(3, 4, 1, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)",
      "SLURM_STEP_NODELIST=nid[000001-000002]", "PALS_RANKID=3",
      "PALS_NODEID=1", "PALS_LOCAL_RANKID=1", "PMI_LOCAL_RANK=1",
      "PMI_LOCAL_SIZE=2", "PMI_UNIVERSE_SIZE=4"},
     "slurm 3/4/1/2/1 nid000001 #",
     NULL},
    {"Flux",
     {"FLUX_TASK_RANK=3", "FLUX_JOB_SIZE=4", "FLUX_TASK_LOCAL_ID=1",
      "FLUX_JOB_NNODES=2", "FLUX_JOB_ID=f1", "PMI_RANK=3", "PMI_SIZE=4"},
     "flux 3/4/1/-/- - #",
     "Flux does not tell"},
    {"Flux, and mpiexec below it is asked for",
     {"DSCOMM_LAUNCHER=pmi", "FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=1",
      "PMI_RANK=1", "PMI_SIZE=2", "MASTER_ADDR=h", "MASTER_PORT=5"},
     "pmi 1/2/-/-/- h 5",
     NULL},
    {"Flux is asked for, and mpiexec is below it",
     {"DSCOMM_LAUNCHER=flux", "FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=1",
      "PMI_RANK=1", "PMI_SIZE=2", "FLUX_JOB_NNODES=1", "MASTER_PORT=5"},
     "flux 0/1/0/1/0 127.0.0.1 5",
     NULL},
    {"Flux, one node",
     {"FLUX_TASK_RANK=3", "FLUX_JOB_SIZE=4", "FLUX_TASK_LOCAL_ID=3",
      "FLUX_JOB_NNODES=1", "FLUX_JOB_ID=f1"},
     "flux 3/4/3/4/0 127.0.0.1 #",
     NULL},
    {"Flux, a node each",
     {"FLUX_TASK_RANK=1", "FLUX_JOB_SIZE=2", "FLUX_TASK_LOCAL_ID=0",
      "FLUX_JOB_NNODES=2", "FLUX_JOB_ID=f1", "MASTER_ADDR=h"},
     "flux 1/2/0/1/- h #",
     NULL},

    {"the user says all",
     {"DSCOMM_RANK=1", "DSCOMM_WORLD_SIZE=2", "DSCOMM_LOCAL_RANK=0",
      "DSCOMM_LOCAL_SIZE=1", "DSCOMM_NODE_RANK=1", "DSCOMM_MASTER_ADDR=m",
      "DSCOMM_MASTER_PORT=5000"},
     "dscomm 1/2/0/1/1 m 5000",
     NULL},
    {"the user overrides, and no number is from elsewhere",
     {"DSCOMM_RANK=1", "DSCOMM_WORLD_SIZE=2", TORCHRUN},
     "dscomm 1/2/-/-/- n0 29500",
     NULL},
    {"the user overrides nonsense",
     {"DSCOMM_RANK=1", "DSCOMM_WORLD_SIZE=2", OMPI(7, 8, 0, 1), "RANK=abc",
      "WORLD_SIZE=0", "MASTER_ADDR=h"},
     "dscomm 1/2/-/-/- h -",
     "env[dscomm]: MASTER_PORT: not set"},
    {"a port of ours",
     {"DSCOMM_MASTER_PORT=5000", TORCHRUN},
     "torchrun 9/16/1/8/1 n0 5000",
     NULL},
    {"an address of ours",
     {"DSCOMM_MASTER_ADDR=m", TORCHRUN},
     "torchrun 9/16/1/8/1 m 29500",
     NULL},
};

static void add_number(GString *text, const char *before, int number)
{
    if (number < 0)
        g_string_append_printf(text, "%s-", before);
    else
        g_string_append_printf(text, "%s%d", before, number);
}

/* A port by the job's name is above those that Linux gives out, and the first
 * of eight. */
static void add_port(GString *text, const dscomm_env_t *env)
{
    int port = dscomm_env_master_port(env);

    if (port >= 61440 && port <= 65520 && port % 8 == 0)
        g_string_append(text, " #");
    else
        add_number(text, " ", port);
}

static char *describe(const dscomm_env_t *env)
{
    GString *text = g_string_new(dscomm_env_source(env));
    const char *address = dscomm_env_master_addr(env);

    add_number(text, " ", dscomm_env_rank(env));
    add_number(text, "/", dscomm_env_world_size(env));
    add_number(text, "/", dscomm_env_local_rank(env));
    add_number(text, "/", dscomm_env_local_size(env));
    add_number(text, "/", dscomm_env_node_rank(env));
    g_string_append_printf(text, " %s", *address ? address : "-");
    add_port(text, env);
    return g_string_free(text, FALSE);
}

/* Warnings, and why the master is not known where there are others. */
static char *words_of(const dscomm_env_t *env)
{
    GString *words = g_string_new(NULL);
    const char *text;

    for (size_t i = 0; (text = dscomm_env_warning(env, i)); i++)
        g_string_append_printf(words, "%s\n", text);
    if (dscomm_env_world_size(env) > 1 && dscomm_env_check_master(env) < 0)
        g_string_append(words, dscomm_last_error());
    return g_string_free(words, FALSE);
}

static void check(const dscomm_env_t *env, const vector_t *want)
{
    char *text = describe(env), *words = words_of(env);

    is_str(text, want->want, "%s", want->name);
    if (!want->says)
        is_str(words, "", "%s: says nothing", want->name);
    else if (!ok(strstr(words, want->says) != NULL, "%s: says %s", want->name,
                 want->says))
        tap_text("", words);
    g_free(text);
    g_free(words);
}

int main(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++) {
        dscomm_env_t *env;

        if (is_int(fixture_discover(vectors[i].environment, NULL, &env),
                   DSCOMM_OK, "%s is understood", vectors[i].name)) {
            check(env, &vectors[i]);
            dscomm_env_free(env);
        } else {
            tap_text("", dscomm_last_error());
        }
    }
    return tap_done();
}
