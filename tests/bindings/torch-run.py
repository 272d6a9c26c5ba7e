# SPDX-License-Identifier: BSD-3-Clause
"""The lines of dscomm_torch.run, with programs in PATH that only bear a name."""

import os
import pathlib
import subprocess
import sys
import tempfile

from dscomm_torch import run

PYTHON = sys.executable
RANK = [PYTHON, "-m", "dscomm_torch.run", "--exec", "train.py", "-x"]
SLURM = {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "3"}
TORCH = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "host", "MASTER_PORT": "1"}
VERSIONS = {"openmpi": "mpirun (Open MPI) 4.1.4", "mpich": "HYDRA build details:"}
NODE = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]

# What is in PATH, the environment, whether there is a hostfile, the line
LINES = [
    ("torchrun on one host", "", {}, False, [*NODE, "train.py", "-x"]),
    (
        "dscomm run on one host", "dscomm", {}, False,
        ["DIR/dscomm", "run", "-n", "2", "--no-secret", PYTHON, "train.py", "-x"],
    ),
    (
        "srun in an allocation", "dscomm srun", SLURM, False,
        ["srun", "--nodes=3", "--ntasks-per-node=2", *RANK],
    ),
    (
        "dscomm run with a hostfile", "dscomm openmpi", {}, True,
        ["DIR/dscomm", "run", "--hostfile", "DIR/hosts", "--rsh", "ssh", "-n", "2"]
        + ["--no-secret", PYTHON, "train.py", "-x"],
    ),
    (
        "mpirun of Open MPI", "openmpi", {}, True,
        ["mpirun", "--hostfile", "DIR/hosts", "--map-by", "ppr:2:node"]
        + ["env", "MASTER_ADDR=first", *RANK],
    ),
    (
        "mpirun of MPICH", "mpich", {}, True,
        ["mpirun", "-f", "DIR/hosts", "-ppn", "2", "env", "MASTER_ADDR=first", *RANK],
    ),
    ("a rank of a job", "dscomm", TORCH, False, RANK),
]


def write_program(path, output):
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)


def line_of(programs, environ, hostfile):
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        for name in programs.split():
            real = "mpirun" if name in VERSIONS else name
            write_program(place / real, VERSIONS.get(name, ""))
        (place / "hosts").write_text("# hosts\nfirst slots=4\n[fe80::1]:2\n")
        before = dict(os.environ)
        os.environ.update(environ, PATH=folder)
        try:
            hosts = str(place / "hosts") if hostfile else None
            line = run.launch_line(2, hosts, ["train.py", "-x"], os.environ)
        finally:
            os.environ.clear()
            os.environ.update(before)
        return [word.replace(folder, "DIR") for word in line]


ALONE = """
import os, torch, torch.distributed as dist, dscomm_torch
dscomm_torch.init_from_mpi()
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
dscomm_torch.init_from_mpi()
print(dist.get_backend(), dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"])
"""


def alone():
    """init_from_mpi() without a launcher: a group of one rank, and a warning in a job."""
    environ = os.environ | {"SLURM_JOB_ID": "7"}
    run = subprocess.run([PYTHON, "-c", ALONE], capture_output=True, text=True, env=environ)
    good = run.stdout == "dscomm 0 1 0\n" and "not started by srun" in run.stderr
    print("ok" if good else "not ok", len(LINES) + 1, "- init_from_mpi() without a launcher")
    print("#", run.stdout, run.stderr, file=sys.stderr)


def secret():
    """init_from_mpi() under dscomm run with a secret: torch must not try to connect."""
    of_run = {"TORCHELASTIC_USE_AGENT_STORE": "True", "DSCOMM_RECORDER": "1:3"}
    environ = os.environ | TORCH | of_run | {"DSCOMM_JOB_SECRET": "x" * 16}
    run = subprocess.run([PYTHON, "-c", ALONE], capture_output=True, text=True, env=environ)
    good = run.returncode == 1 and "start the job by dscomm run --no-secret" in run.stderr
    print("ok" if good else "not ok", len(LINES) + 2, "- a job with a secret")
    print("#", run.stdout, run.stderr, file=sys.stderr)


def no_ranks():
    line = [PYTHON, "-m", "dscomm_torch.run", "-n", "0", "train.py"]
    run = subprocess.run(line, capture_output=True, text=True)
    good = run.returncode == 1 and run.stderr == "dscomm_torch.run: -n must be at least 1\n"
    print("ok" if good else "not ok", len(LINES) + 3, "- no ranks")
    print("#", run.stdout, run.stderr, file=sys.stderr)


print(f"1..{len(LINES) + 3}")
for number, (text, programs, environ, hostfile, want) in enumerate(LINES, 1):
    got = line_of(programs, environ, hostfile)
    print("ok" if got == want else "not ok", number, "-", text)
    if got != want:
        print("# got", got, "want", want, file=sys.stderr)
alone()
secret()
no_ranks()
