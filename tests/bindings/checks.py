# SPDX-License-Identifier: BSD-3-Clause
"""Checks that all ranks of torch.distributed make; rank 0 prints TAP."""

import sys
import traceback

import torch
import torch.distributed as dist

functions = []


def check(function):
    functions.append(function)
    return function


def run(functions):
    """Make checks of a group that is there; one passes if it holds on all ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        print(f"1..{len(functions)}")
    for number, function in enumerate(functions, 1):
        problem = ""
        try:
            function(rank, size)
        except Exception:
            problem = traceback.format_exc()
            text = problem.replace("\n", "\n# ")
            print(f"# rank {rank}:", text, file=sys.stderr, flush=True)
        failed = torch.tensor([bool(problem)], dtype=torch.int32)
        dist.all_reduce(failed)
        if rank == 0:
            word = "not ok" if failed.item() else "ok"
            print(f"{word} {number} - {function.__name__}, {size} ranks", flush=True)


def main(backend, **options):
    """Make all checks of a program."""
    dist.init_process_group(backend, **options)
    run(functions)
    dist.destroy_process_group()
