/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalid environments, and the sentences about them. */
#include "config.h"

#include "tests/env/fixture.h"

#define FLUX "FLUX_TASK_RANK=3", "FLUX_JOB_SIZE=4"

#define SAGEMAKER(hosts) "SM_HOSTS=" hosts, "SM_CURRENT_HOST=algo-9"

#define CLUSTER(type, index)                                                   \
    "CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"h\"],\"workerpool1\":"      \
    "[\"i\",\"j\"]},\"task\":{\"type\":\"" type "\",\"index\":" index "}}"

/* Expected in the sentence: its beginning, and further words. */
static const struct {
    const char *environment[VARIABLES];
    const char *begins; /* the source, ": " and the beginning of the sentence */
    const char *says;
} refused[] = {
    /* T19: values that are not decimal numbers */
    {{"RANK=abc"},
     "pod: RANK='abc': ",
     ", or unset it and the number of ranks"},
    {{"RANK=1 2"}, "pod: RANK='1 2': ", "not a rank"},
    {{"RANK=-1"}, "pod: RANK='-1': ", ""},
    {{"RANK=0x1"}, "pod: RANK='0x1': ", ""},
    {{"RANK=1.0"}, "pod: RANK='1.0': ", ""},
    {{"RANK=99999999999999999999"}, "pod: RANK='99999999999999999999': ", ""},
    {{"WORLD_SIZE=0"}, "pod: WORLD_SIZE='0': ", "from 1 to"},
    {{"MASTER_PORT=70000"},
     "singleton: MASTER_PORT='70000': ",
     "from 1 to 65535"},
    {{"MASTER_PORT=0"}, "singleton: MASTER_PORT='0': ", "not a port"},
    {{"RANK=+1", "WORLD_SIZE=4"}, "pod: RANK='+1': ", ""},
    {{"RANK=1e0", "WORLD_SIZE=4"}, "pod: RANK='1e0': ", ""},
    {{"RANK=1,", "WORLD_SIZE=4"}, "pod: RANK='1,': ", ""},
    {{"RANK= ", "WORLD_SIZE=4"}, "pod: RANK=' ': ", ""},
    {{"RANK=1\n", "WORLD_SIZE=4"}, "pod: RANK='1 ': ", ""},
    {{"RANK=2147483648", "WORLD_SIZE=4"}, "pod: RANK='2147483648': ", ""},
    {{"RANK=4294967296", "WORLD_SIZE=4"}, "pod: RANK='4294967296': ", ""},
    {{"RANK=18446744073709551616", "WORLD_SIZE=4"}, "pod: RANK=", ""},
    {{"RANK=0", "WORLD_SIZE=1048577"},
     "pod: WORLD_SIZE='1048577': ",
     "from 1 to 1048576"},
    {{"RANK=0", "WORLD_SIZE=-2"}, "pod: WORLD_SIZE='-2': ", ""},
    {{"RANK=0", "WORLD_SIZE=two"}, "pod: WORLD_SIZE='two': ", ""},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=x"}, "torch: LOCAL_RANK='x': ", ""},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=0"},
     "torch: LOCAL_WORLD_SIZE='0': ",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "NODE_RANK=-1"},
     "torch: NODE_RANK='-1': ",
     "number of a node"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=http"},
     "pod: MASTER_PORT='http': ",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "DSCOMM_MASTER_PORT=x", "MASTER_PORT=1"},
     "pod: DSCOMM_MASTER_PORT='x': ",
     ""},
    {{"DSCOMM_RANK=x", "DSCOMM_WORLD_SIZE=4"}, "dscomm: DSCOMM_RANK='x': ", ""},
    {{OMPI(x, 4, 0, 1)}, "openmpi: OMPI_COMM_WORLD_RANK='x': ", ""},
    {{OMPI(0, 4, 0, 1), "RANK=y"}, "openmpi: RANK='y': ", ""},
    {{OMPI(0, 4, 0, 1), "LOCAL_RANK=y"}, "openmpi: LOCAL_RANK='y': ", ""},
    {{TORCHRUN, "TORCHELASTIC_RESTART_COUNT=-1"},
     "torchrun: TORCHELASTIC_RESTART_COUNT='-1': ",
     ""},
    {{TORCHRUN, "TORCHELASTIC_RESTART_COUNT=zz"},
     "torchrun: TORCHELASTIC_RESTART_COUNT='zz': not a number of restarts",
     "from 0 to"},
    {{TORCHRUN, "GROUP_WORLD_SIZE=two"},
     "torchrun: GROUP_WORLD_SIZE='two': not a number of nodes",
     "from 1 to"},
    {{"FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=2", "FLUX_JOB_NNODES=0"},
     "flux: FLUX_JOB_NNODES='0': not a number of nodes",
     ""},

    /* T20: ranges */
    {{"RANK=4", "WORLD_SIZE=4", "LOCAL_RANK=0"},
     "torch: RANK='4': must be less than the 4 of WORLD_SIZE",
     ""},
    {{"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"},
     "torch: LOCAL_RANK='2': must be less than the 2 of LOCAL_WORLD_SIZE",
     ""},
    {{"RANK=0", "LOCAL_WORLD_SIZE=8", "WORLD_SIZE=4"},
     "torch: LOCAL_WORLD_SIZE='8': must not exceed the 4 of WORLD_SIZE",
     ""},
    {{"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=4"},
     "torch: LOCAL_RANK='4': ",
     "WORLD_SIZE"},
    {{"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=0", "NODE_RANK=4"},
     "torch: NODE_RANK='4': ",
     "WORLD_SIZE"},
    {{"RANK=5", "WORLD_SIZE=4"}, "pod: RANK='5': ", "WORLD_SIZE"},
    {{"DSCOMM_RANK=2", "DSCOMM_WORLD_SIZE=2"},
     "dscomm: DSCOMM_RANK='2': ",
     "the 2 of DSCOMM_WORLD_SIZE"},
    {{OMPI(8, 8, 0, 1)}, "openmpi: OMPI_COMM_WORLD_RANK='8': ", "the 8"},
    {{"FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=2", "FLUX_TASK_LOCAL_ID=1",
      "FLUX_JOB_NNODES=2"},
     "flux: FLUX_TASK_LOCAL_ID='1': must be less than the 1 of "
     "FLUX_JOB_SIZE/FLUX_JOB_NNODES",
     ""},
    {{FLUX, "FLUX_JOB_NNODES=5"},
     "flux: FLUX_JOB_NNODES='5': must not exceed the 4 of FLUX_JOB_SIZE",
     ""},
    {{"DSCOMM_RANK=3", "DSCOMM_WORLD_SIZE=4", "DSCOMM_LOCAL_SIZE=2",
      "DSCOMM_NODE_RANK=3"},
     "dscomm: DSCOMM_NODE_RANK='3': must not exceed 2: DSCOMM_LOCAL_SIZE "
     "tells 2 ranks here, of 4",
     "Nodes count from 0"},
    {{"DSCOMM_RANK=3", "DSCOMM_WORLD_SIZE=4", "DSCOMM_LOCAL_SIZE=4",
      "DSCOMM_NODE_RANK=1"},
     "dscomm: DSCOMM_NODE_RANK='1': must not exceed 0",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "NODE_RANK=1"},
     "torch: NODE_RANK='1': must not exceed 0",
     ""},
    {{"TORCHELASTIC_RUN_ID=x", "RANK=1", "WORLD_SIZE=2", "GROUP_RANK=9",
      "GROUP_WORLD_SIZE=2"},
     "torchrun: GROUP_RANK='9': must be less than the 2 of "
     "GROUP_WORLD_SIZE",
     "Nodes count from 0"},
    {{TORCHRUN, "GROUP_WORLD_SIZE=1"},
     "torchrun: GROUP_RANK='1': must be less than the 1 of "
     "GROUP_WORLD_SIZE",
     ""},
    {{"AWS_BATCH_JOB_NUM_NODES=2", "AWS_BATCH_JOB_NODE_INDEX=2"},
     "batch: AWS_BATCH_JOB_NODE_INDEX='2': ",
     "the 2 of"},
    {{"AWS_BATCH_JOB_NUM_NODES=2", "AWS_BATCH_JOB_NODE_INDEX=1",
      "AWS_BATCH_JOB_MAIN_NODE_INDEX=2"},
     "batch: AWS_BATCH_JOB_MAIN_NODE_INDEX='2': ",
     "the 2 of"},

    /* T21: half of a pair does not select the next source */
    {{"OMPI_COMM_WORLD_RANK=0", "SLURM_JOB_ID=1", "SLURM_STEP_ID=0",
      "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2"},
     "openmpi: OMPI_COMM_WORLD_RANK='0': OMPI_COMM_WORLD_SIZE is missing",
     "Set both"},
    {{"OMPI_COMM_WORLD_SIZE=2"},
     "openmpi: OMPI_COMM_WORLD_SIZE='2': OMPI_COMM_WORLD_RANK is missing",
     ""},
    {{"WORLD_SIZE=4"}, "pod: WORLD_SIZE='4': RANK is missing", ""},
    {{"RANK=0"}, "pod: RANK='0': WORLD_SIZE is missing", ""},
    {{"RANK=0", "WORLD_SIZE="}, "pod: RANK='0': WORLD_SIZE is", ""},
    {{"RANK=0", "LOCAL_RANK=0"}, "torch: RANK='0': WORLD_SIZE is", ""},
    {{"DSCOMM_RANK=0"},
     "dscomm: DSCOMM_RANK='0': DSCOMM_WORLD_SIZE is missing",
     ""},
    {{"DSCOMM_WORLD_SIZE=2", "RANK=0", "WORLD_SIZE=2"},
     "dscomm: DSCOMM_WORLD_SIZE='2': DSCOMM_RANK is missing",
     ""},
    {{"DSCOMM_LOCAL_RANK=1", "RANK=0", "WORLD_SIZE=2"},
     "dscomm: DSCOMM_LOCAL_RANK='1': DSCOMM_RANK is missing",
     ""},
    {{"TORCHELASTIC_RUN_ID=x"},
     "torchrun: TORCHELASTIC_RUN_ID='x': RANK is missing",
     ""},
    {{"TORCHELASTIC_RUN_ID=x", "RANK=0"}, "torchrun: RANK='0': ", ""},
    {{"PMI_RANK=0", "MPI_LOCALRANKID=0"},
     "hydra: PMI_RANK='0': PMI_SIZE is missing",
     ""},
    {{"PMI_SIZE=2"}, "pmi: PMI_SIZE='2': PMI_RANK is missing", ""},
    {{"PALS_RANKID=2", "PALS_LOCAL_RANKID=0"},
     "pals: PALS_RANKID='2': PMI_SIZE is missing",
     ""},
    {{"MV2_COMM_WORLD_RANK=0"},
     "mvapich2: MV2_COMM_WORLD_RANK='0': MV2_COMM_WORLD_SIZE is",
     ""},
    {{"FLUX_TASK_RANK=0"}, "flux: FLUX_TASK_RANK='0': ", ""},
    {{"JSM_NAMESPACE_SIZE=2"}, "jsrun: JSM_NAMESPACE_SIZE='2': ", ""},
    {{"SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=0"},
     "slurm: SLURM_PROCID='0': SLURM_STEP_NUM_TASKS is missing",
     ""},
    {{"SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2"},
     "slurm: SLURM_STEP_NUM_TASKS='2': SLURM_PROCID is missing",
     ""},
    {{"SM_HOSTS=[\"a\"]"},
     "sagemaker: SM_HOSTS='[\"a\"]': SM_CURRENT_HOST is missing",
     ""},
    {{"SM_CURRENT_HOST=a"}, "sagemaker: SM_CURRENT_HOST='a': ", ""},
    {{"AWS_BATCH_JOB_NUM_NODES=2"},
     "batch: AWS_BATCH_JOB_NUM_NODES='2': AWS_BATCH_JOB_NODE_INDEX is",
     ""},
    /* T12 */
    {{"PMI_ID=1", "PMI_PORT=vm:38287", "MPI_LOCALRANKID=1",
      "MPI_LOCALNRANKS=2"},
     "hydra-port: PMI_ID='1': the number of ranks is not in the",
     "without -pmi-port"},

    /* T14: two sources that disagree */
    {{OMPI(3, 8, 3, 4), "RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0",
      "MASTER_ADDR=h", "MASTER_PORT=1234"},
     "openmpi: RANK='0': disagrees with OMPI_COMM_WORLD_RANK='3'",
     "DSCOMM_LAUNCHER"},
    {{OMPI(3, 8, 3, 4), "RANK=3", "WORLD_SIZE=4"},
     "openmpi: WORLD_SIZE='4': disagrees with OMPI_COMM_WORLD_SIZE='8'",
     "Unset RANK, WORLD_SIZE and LOCAL_RANK"},
    {{OMPI(2, 4, 0, 1), "WORLD_SIZE=3"}, "openmpi: WORLD_SIZE='3': ", ""},
    {{HYDRA(2, 4, 0, 1), "WORLD_SIZE=3", "LOCAL_SIZE=2", "MASTER_ADDR=h"},
     "hydra: WORLD_SIZE='3': disagrees with PMI_SIZE='4'",
     ""},
    {{STEP(2, 4, 0, 1), "RANK=0", "WORLD_SIZE=4"},
     "slurm: RANK='0': disagrees with SLURM_PROCID='2'",
     ""},
    {{JSRUN, OMPI(2, 4, 0, 2)},
     "openmpi: JSM_NAMESPACE_RANK='1': disagrees with "
     "OMPI_COMM_WORLD_RANK='2'",
     "DSCOMM_LAUNCHER: openmpi or jsrun"},
    {{OMPI(1, 4, 1, 4), "MV2_COMM_WORLD_RANK=3", "MV2_COMM_WORLD_SIZE=4"},
     "openmpi: MV2_COMM_WORLD_RANK='3': disagrees with "
     "OMPI_COMM_WORLD_RANK='1'",
     "DSCOMM_LAUNCHER: openmpi or mvapich2"},
    {{OMPI(0, 1, 0, 1), "MVP_COMM_WORLD_RANK=0", "MVP_COMM_WORLD_SIZE=4"},
     "openmpi: MVP_COMM_WORLD_SIZE='4': disagrees with "
     "OMPI_COMM_WORLD_SIZE='1'",
     "DSCOMM_LAUNCHER: openmpi or mvapich3"},
    {{"MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_SIZE=4", "MVP_COMM_WORLD_RANK=3",
      "MVP_COMM_WORLD_SIZE=4"},
     "mvapich2: MVP_COMM_WORLD_RANK='3': disagrees with "
     "MV2_COMM_WORLD_RANK='1'",
     "DSCOMM_LAUNCHER: mvapich2 or mvapich3"},
    {{"MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_SIZE=4", JSRUN,
      "MVP_COMM_WORLD_SIZE=x"},
     "mvapich2: MVP_COMM_WORLD_SIZE='x': not a number of ranks",
     ""},
    {{"FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=1", HYDRA(2, 4, 2, 4)},
     "flux: PMI_RANK='2': disagrees with FLUX_TASK_RANK='0'",
     "DSCOMM_LAUNCHER: flux or hydra"},
    {{FLUX, "PMI_RANK=0", "PMI_SIZE=4"},
     "flux: PMI_RANK='0': disagrees with FLUX_TASK_RANK='3'",
     "DSCOMM_LAUNCHER: flux or pmi"},
    {{FLUX, "PMI_RANK=3", "PMI_SIZE=8"},
     "flux: PMI_SIZE='8': disagrees with FLUX_JOB_SIZE='4'",
     "DSCOMM_LAUNCHER"},
    {{OMPI(0, 1, 0, 1), "PMI_RANK=2", "PMI_SIZE=4", "MPI_LOCALRANKID=2",
      "MPI_LOCALNRANKS=4"},
     "openmpi: PMI_RANK='2': disagrees with OMPI_COMM_WORLD_RANK='0'",
     "DSCOMM_LAUNCHER: openmpi or hydra"},
    {{OMPI(1, 2, 1, 2), "PMI_RANK=1", "PMI_SIZE=4"},
     "openmpi: PMI_SIZE='4': disagrees with OMPI_COMM_WORLD_SIZE='2'",
     "DSCOMM_LAUNCHER"},
    {{"MV2_COMM_WORLD_RANK=0", "MV2_COMM_WORLD_SIZE=2", "PMI_RANK=1",
      "PMI_SIZE=2"},
     "mvapich2: PMI_RANK='1': disagrees with MV2_COMM_WORLD_RANK='0'",
     "DSCOMM_LAUNCHER: mvapich2 or pmi"},
    {{"MVP_COMM_WORLD_RANK=1", "MVP_COMM_WORLD_SIZE=2", "PMI_SIZE=4"},
     "mvapich3: PMI_SIZE='4': disagrees with MVP_COMM_WORLD_SIZE='2'",
     ""},
    {{JSRUN, "PMI_RANK=0", "PMI_SIZE=4"},
     "jsrun: PMI_RANK='0': disagrees with JSM_NAMESPACE_RANK='1'",
     ""},
    /* the step has the same size, but another rank */
    {{STEP(1, 4, 0, 0), OMPI(0, 2, 0, 1), "PMI_RANK=0", "PMI_SIZE=4"},
     "openmpi: PMI_SIZE='4': disagrees with OMPI_COMM_WORLD_SIZE='2'",
     ""},
    {{FLUX, "PMI_RANK=x"}, "flux: PMI_RANK='x': not a rank", ""},
    {{"PALS_RANKID=1", "PMI_RANK=2", "PMI_SIZE=4"},
     "pals: PMI_RANK='2': disagrees with PALS_RANKID='1'",
     "DSCOMM_LAUNCHER: pals"},

    /* the requested source is not there */
    {{"DSCOMM_LAUNCHER=srun"},
     "launcher: DSCOMM_LAUNCHER='srun': no such source",
     "slurm"},
    {{"DSCOMM_LAUNCHER=slurm", OMPI(0, 2, 0, 1), "SLURM_JOB_ID=1"},
     "launcher: DSCOMM_LAUNCHER='slurm': is not there: SLURM_STEP_ID not "
     "set",
     ""},
    {{"DSCOMM_LAUNCHER=tf_config"},
     "launcher: DSCOMM_LAUNCHER='tf_config': is not there: TF_CONFIG not",
     ""},

    /* T16b: pods */
    {{"RANK=1", "WORLD_SIZE=3", "PET_NPROC_PER_NODE=8"},
     "pod: PET_NPROC_PER_NODE='8': RANK counts pods",
     "Start one process per GPU with torchrun"},
    {{"RANK=1", "WORLD_SIZE=3", "NPROC_PER_NODE=8"},
     "pod: NPROC_PER_NODE='8': ",
     ""},
    {{"RANK=1", "WORLD_SIZE=3", "PET_NPROC_PER_NODE=auto"},
     "pod: PET_NPROC_PER_NODE='auto': ",
     ""},

    /* T18: SageMaker */
    {{SAGEMAKER("[\"algo-1\",\"algo-10\"]")},
     "sagemaker: SM_CURRENT_HOST='algo-9': not in SM_HOSTS",
     ""},
    {{SAGEMAKER("[algo-1")},
     "sagemaker: SM_HOSTS='[algo-1': no JSON: ",
     "at byte 1"},
    {{SAGEMAKER("[]")}, "sagemaker: SM_HOSTS='[]': not a list", ""},
    {{SAGEMAKER("[\"algo-9\",\"algo-9\"]")},
     "sagemaker: SM_HOSTS='[\"algo-9\",\"algo-9\"]': names a host twice",
     ""},
    {{SAGEMAKER("{}")}, "sagemaker: SM_HOSTS='{}': not a list", ""},
    {{SAGEMAKER("[1]")}, "sagemaker: SM_HOSTS='[1]': not a list", ""},
    {{SAGEMAKER("[\"a b\"]")}, "sagemaker: SM_HOSTS='[\"a b\"]': ", ""},

    /* T23: Slurm's lists */
    {{"SLURM_JOB_ID=1", "SLURM_STEP_ID=x", "SLURM_PROCID=1",
      "SLURM_STEP_NUM_TASKS=2"},
     "slurm: SLURM_STEP_ID='x': not the number of a step",
     "srun"},
    {{"SLURM_JOB_ID=1", "SLURM_STEP_ID=-", "SLURM_PROCID=1"},
     "slurm: SLURM_STEP_ID='-': not the number of a step",
     ""},
    {{STEP(2, 4, 0, 3), "SLURM_STEP_TASKS_PER_NODE=2(x2)"},
     "slurm: SLURM_NODEID='3': beyond the 2 nodes",
     ""},
    {{STEP(2, 5, 0, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)"},
     "slurm: SLURM_STEP_TASKS_PER_NODE='2(x2)': 4 tasks",
     "tells 5"},
    {{STEP(2, 4, 0, 1), "SLURM_STEP_TASKS_PER_NODE=2(x)"},
     "slurm: SLURM_STEP_TASKS_PER_NODE='2(x)': ",
     "at byte 3"},
    {{STEP(2, 4, 0, 1), "SLURM_GTIDS=1,,2"},
     "slurm: SLURM_GTIDS='1,,2': not a list",
     ""},
    {{STEP(2, 4, 0, 1), "SLURM_GTIDS=,"}, "slurm: SLURM_GTIDS=','", ""},
    {{STEP(2, 4, 0, 1), "SLURM_GTIDS=1,"}, "slurm: SLURM_GTIDS='1,'", ""},
    {{STEP(2, 4, 0, 1), "SLURM_GTIDS=2,3x"}, "slurm: SLURM_GTIDS=", ""},
    {{STEP(0, 2, 0, 1), "SLURM_GTIDS=99999999999999,3"},
     "slurm: SLURM_GTIDS='99999999999999,3': not a list of ranks, which "
     "are less than the number of tasks",
     ""},
    {{STEP(0, 2, 0, 1), "SLURM_GTIDS=0,2"},
     "slurm: SLURM_GTIDS='0,2': not a list of ranks",
     ""},
    {{STEP(0, 2, 0, 0), "SLURM_STEP_TASKS_PER_NODE=0(x2),2"},
     "slurm: SLURM_STEP_TASKS_PER_NODE='0(x2),2': no task on this node, "
     "number 0",
     "SLURM_NODEID"},
    {{STEP(2, 4, 2, 1), "SLURM_GTIDS=1,2"},
     "slurm: SLURM_LOCALID='2': must be less than the 2 of SLURM_GTIDS",
     ""},
    {{STEP(2, 4, 0, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)",
      "SLURM_STEP_NODELIST=tux[1-3"},
     "slurm: SLURM_STEP_NODELIST='tux[1-3': a bracket that is not closed",
     "MASTER_ADDR"},
    {{STEP(2, 4, 0, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)",
      "SLURM_STEP_NODELIST=n1,n[3-1]"},
     "slurm: SLURM_STEP_NODELIST='n1,n[3-1]': a range that runs backwards",
     "at byte 8"},
    {{STEP(2, 4, 0, 1), "SLURM_STEP_TASKS_PER_NODE=2(x2)",
      "SLURM_STEP_NODELIST=n1:5,n2"},
     "slurm: SLURM_STEP_NODELIST='n1:5,n2': what is in no host's name",
     "at byte 2"},

    /* T24c */
    {{JSRUN, "LSB_MCPU_HOSTS=h1 4 h2"},
     "jsrun: LSB_MCPU_HOSTS='h1 4 h2': ",
     "a host without a number of slots"},
    {{JSRUN, "LSB_MCPU_HOSTS=h1 x h2 4"},
     "jsrun: LSB_MCPU_HOSTS='h1 x h2 4': ",
     "what follows a host is no number of slots"},
    {{JSRUN, "LSB_MCPU_HOSTS=h1 4 h2 h3 4"},
     "jsrun: LSB_MCPU_HOSTS='h1 4 h2 h3 4': ",
     "what follows a host is no number of slots"},
    {{JSRUN, "LSB_MCPU_HOSTS=h1 4 h2", "MASTER_ADDR=h1", "MASTER_PORT=5"},
     "jsrun: LSB_MCPU_HOSTS='h1 4 h2': ",
     "a host without a number of slots"},
    {{JSRUN, "LSB_MCPU_HOSTS=h1 4 4"},
     "jsrun: LSB_MCPU_HOSTS='h1 4 4': ",
     "a host without a number of slots"},
    {{JSRUN, "LSB_MCPU_HOSTS=h1 h2"}, "jsrun: LSB_MCPU_HOSTS=", ""},
    {{JSRUN, "LSB_MCPU_HOSTS=h1 1", "CSM_ALLOCATION_ID=1"},
     "jsrun: LSB_MCPU_HOSTS='h1 1': ",
     "no host is left behind the batch host, which CSM_ALLOCATION_ID says is "
     "the first"},

    /* T25b */
    {{CLUSTER("workerpool1", "5")},
     "vertex: CLUSTER_SPEC='{\"cluster\"",
     "task.index is 5, but its list has 2 hosts"},
    {{CLUSTER("workerpool9", "0")}, "vertex: ", "names no list"},
    {{CLUSTER("workerpool1", "-1")}, "vertex: ", "is no number"},
    {{CLUSTER("workerpool1", "0.5")}, "vertex: ", "is no number"},
    {{CLUSTER("workerpool1", "\"0\"")}, "vertex: ", "is no number"},
    {{CLUSTER("workerpool1", "99999999999999999999")},
     "vertex: ",
     "is no number"},
    {{"CLUSTER_SPEC={}"},
     "vertex: CLUSTER_SPEC='{}': there is no cluster",
     "DSCOMM_LAUNCHER"},
    {{"CLUSTER_SPEC=[]"}, "vertex: CLUSTER_SPEC='[]': there is no cluster", ""},
    {{"CLUSTER_SPEC={\"cluster\":{}}"},
     "vertex: CLUSTER_SPEC='{\"cluster\":{}}': ",
     "cluster has no list of hosts"},
    {{"CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"h:1\",null]},"
      "\"task\":{\"type\":\"workerpool0\",\"index\":0}}"},
     "vertex: ",
     "a list of cluster has what is no host"},
    {{"CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"h:1\",\"\"]},"
      "\"task\":{\"type\":\"workerpool0\",\"index\":0}}"},
     "vertex: ",
     "a list of cluster has what is no host"},
    {{"CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"h\"]}}"},
     "vertex: ",
     "there is no task"},
    {{"CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"h:0\",\"i\"]},"
      "\"task\":{\"type\":\"workerpool0\",\"index\":0}}"},
     "vertex: CLUSTER_SPEC=",
     "its first host is not one"},
    {{"CLUSTER_SPEC={\"cluster\":{\"workerpool0\":[\"[fd00::7\",\"b\"]},"
      "\"task\":{\"type\":\"workerpool0\",\"index\":1}}"},
     "vertex: CLUSTER_SPEC='",
     "its first host is not one"},

    /* the master */
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=two words"},
     "pod: MASTER_ADDR='two words': not a host",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=http://h"},
     "pod: MASTER_ADDR='http://h': not a host",
     "MASTER_PORT"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h:29500"},
     "pod: MASTER_ADDR='h:29500': not a host",
     "MASTER_PORT"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=[::1"},
     "pod: MASTER_ADDR='[::1': not a host",
     "MASTER_PORT"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h\n"},
     "pod: MASTER_ADDR='h ': not a host",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=\rh"},
     "pod: MASTER_ADDR=' h': not a host",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=::1]"},
     "pod: MASTER_ADDR='::1]': not a host",
     "MASTER_PORT"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=[h]"},
     "pod: MASTER_ADDR='[h]': not a host",
     "MASTER_PORT"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=[::1]:5"},
     "pod: MASTER_ADDR='[::1]:5': not a host",
     "MASTER_PORT"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h:1:2"},
     "pod: MASTER_ADDR='h:1:2': not a host",
     "MASTER_PORT"},
    {{"MASTER_ADDR=h:29500"},
     "singleton: MASTER_ADDR='h:29500': not a host",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR= "}, "pod: MASTER_ADDR=' ': ", ""},
    {{TORCHRUN, "DSCOMM_MASTER_ADDR=two words"},
     "torchrun: DSCOMM_MASTER_ADDR='two words': ",
     ""},
    {{"TORCHELASTIC_RUN_ID=x", "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h",
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     "torchrun: TORCHELASTIC_USE_AGENT_STORE='True': MASTER_PORT is",
     ""},
    {{"TORCHELASTIC_RUN_ID=x", "RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1",
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     "torchrun: TORCHELASTIC_USE_AGENT_STORE='True': MASTER_ADDR is",
     ""},
    {{"AZUREML_EXPERIMENT_ID=e", OMPI(4, 8, 0, 4),
      "AZ_BATCH_MASTER_NODE=10.0.0.1:x"},
     "openmpi+azureml: AZ_BATCH_MASTER_NODE='10.0.0.1:x': not a host",
     ""},
    {{"AWS_BATCH_JOB_NUM_NODES=2", "AWS_BATCH_JOB_NODE_INDEX=1",
      "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=1 2"},
     "batch: AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS='1 2': ",
     ""},
};

/* Returns whether sentence begins and ends as want, "SOURCE: BEGINNING",
 * says. */
static int begins_as(const char *sentence, const char *want)
{
    const char *beginning = strstr(want, ": ") + 2;
    char *end =
        g_strdup_printf("(source: %.*s)", (int)strcspn(want, ":"), want);
    int right = g_str_has_prefix(sentence, beginning) &&
                (g_str_has_suffix(sentence, end) || strlen(sentence) > 500);

    g_free(end);
    return right;
}

static void test_refused(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        dscomm_env_t *env = NULL;
        int right;

        is_int(fixture_discover(refused[i].environment, NULL, &env),
               DSCOMM_ERR_ENVIRONMENT, "case %zu is refused", i);
        ok(!env, "nothing is written");
        right = ok(begins_as(dscomm_last_error(), refused[i].begins) &&
                       strstr(dscomm_last_error(), refused[i].says),
                   "%s ... %s", refused[i].begins, refused[i].says);
        if (!right)
            tap_text("", dscomm_last_error());
        dscomm_env_free(env);
    }
}

/* 255 bytes fit. */
static void test_long_address(void)
{
    for (size_t length = 254; length < 258; length++) {
        char address[300] = "MASTER_ADDR=";
        const char *environment[] = {"RANK=0", "WORLD_SIZE=2", address, NULL};
        dscomm_env_t *env = NULL;

        memset(address + strlen(address), 'h', length);
        is_int(fixture_discover(environment, NULL, &env),
               length < 256 ? DSCOMM_OK : DSCOMM_ERR_ENVIRONMENT,
               "an address of %zu bytes", length);
        dscomm_env_free(env);
    }
}

int main(void)
{
    test_refused();
    test_long_address();
    return tap_done();
}
