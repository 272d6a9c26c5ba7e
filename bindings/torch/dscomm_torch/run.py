# SPDX-License-Identifier: BSD-3-Clause
"""The launch line of a training script, for where this process stands.

    python -m dscomm_torch.run train.py            prints the line
    python -m dscomm_torch.run --exec train.py     runs it

Inside a job, by whatever launcher, --exec runs the script as one of its ranks, with the
variables that torch.distributed reads: RANK, WORLD_SIZE, MASTER_ADDR, ...
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

import torch

from . import _C, check_secret, set_environment


def in_job() -> bool:
    """Return whether a launcher has started this process as a rank."""
    return _C.launcher() not in ("", "singleton")


def first_host(path: str) -> str:
    """Return the first host of a hostfile, in the form of Open MPI's or MPICH's."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.partition("#")[0].split()
            if words and words[0].startswith("["):
                return words[0][1:].partition("]")[0]
            if words:
                return words[0].partition(":")[0]
    raise SystemExit(f"dscomm_torch.run: {path} names no host")


def per_node(number: int | None) -> int:
    """Return the ranks of a node: what was asked for, or a rank for each GPU."""
    if number is None:
        number = torch.cuda.device_count()
    if number < 1:
        raise SystemExit(
            "dscomm_torch.run: this machine has no GPU to count ranks by; give -n N"
        )
    return number


def mpirun_options(hostfile: str, number: int | None) -> list[str]:
    """Return the options for hosts and ranks of Open MPI's mpirun, or MPICH's."""
    told = subprocess.run(["mpirun", "--version"], capture_output=True, text=True)
    if "Open MPI" in told.stdout:
        ranks = ["--map-by", f"ppr:{number}:node"] if number else []
        return ["--hostfile", hostfile, *ranks]
    return ["-f", hostfile, *(["-ppn", str(number)] if number else [])]


def launch_line(
    number: int | None,
    hostfile: str | None,
    script: Sequence[str],
    environ: Mapping[str, str],
) -> list[str]:
    """Return the command that starts script; number: ranks of a node."""
    python = [sys.executable, *script]
    rank = [sys.executable, "-m", "dscomm_torch.run", "--exec", *script]
    dscomm = shutil.which("dscomm")
    if in_job():
        return rank
    if hostfile:
        count = ["-n", str(number)] if number else []
        if dscomm:
            line = [dscomm, "run", "--hostfile", hostfile, "--rsh", "ssh", *count]
            return [*line, "--no-secret", *python]
        if shutil.which("mpirun"):
            address = ["env", f"MASTER_ADDR={first_host(hostfile)}"]
            return ["mpirun", *mpirun_options(hostfile, number), *address, *rank]
        raise SystemExit(
            "dscomm_torch.run: neither dscomm nor mpirun is in PATH to start several "
            "hosts"
        )
    number = per_node(number)
    if "SLURM_JOB_ID" in environ and shutil.which("srun"):
        nodes = environ.get("SLURM_JOB_NUM_NODES", "1")
        return ["srun", f"--nodes={nodes}", f"--ntasks-per-node={number}", *rank]
    if dscomm:
        return [dscomm, "run", "-n", str(number), "--no-secret", *python]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*torchrun, f"--nproc-per-node={number}", *script]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dscomm_torch.run",
        description="Print or run the launch line of a training script: srun in an "
        "allocation of Slurm, dscomm run or mpirun with a hostfile, dscomm run or "
        "torchrun on one host; inside a job, the script itself as one of its ranks.",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--print", action="store_true", help="print the line (default)")
    what.add_argument("--exec", action="store_true", help="run the line")
    parser.add_argument(
        "-n", type=int, metavar="N", help="ranks of a node (default: its GPUs)"
    )
    parser.add_argument("--hostfile", metavar="FILE", help="hosts, one a line")
    parser.add_argument("script", help="the script, a file of Python")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    if asked.n is not None and asked.n < 1:
        raise SystemExit("dscomm_torch.run: -n must be at least 1")
    script = [asked.script, *asked.args]
    try:
        line = launch_line(asked.n, asked.hostfile, script, os.environ)
        if not asked.exec:
            print(shlex.join(line))
            return
        if in_job():
            line = [sys.executable, *script]
            check_secret()
            set_environment()
        os.execvp(line[0], line)
    except (OSError, RuntimeError) as error:
        raise SystemExit(f"dscomm_torch.run: {error}") from None


if __name__ == "__main__":
    main()
