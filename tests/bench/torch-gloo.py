# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed on dscomm and on gloo, by turns in the same processes. Not a test.

    torchrun --nproc-per-node 2 tests/bench/torch-gloo.py [OPTION...] [WHAT...]

Rank 0 prints a table for each WHAT: a collective, or ddp, a step of a model of 10
million parameters. Figures are medians of rounds; a round is the time of its slowest
rank. The thread that calls is bound to a processor; gloo's threads, on which its
collectives run, are not, nor is any thread in ddp."""

import argparse
import contextlib
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

BACKENDS = ("dscomm", "gloo")
SIZES = [8, 64, 512, 2**12, 2**16, 2**18, 2**20, 2**23, 2**26]
# How many calls a round has: so many of the small ones, so many bytes of others, but
# never fewer than the last number. One before them, not timed, takes over the caches.
SMALL, SMALL_CALLS, LARGE_BYTES, LEAST_CALLS = 2**16, 100, 2**23, 4
WIDTH, LAYERS, BATCH = 1024, 10, 8


def all_reduce(size, group):
    tensor = torch.ones(size // 4)
    return lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX, group)


def broadcast(size, group):
    tensor = torch.ones(size // 4)
    return lambda: dist.broadcast(tensor, 0, group)


def all_gather(size, group):
    """The size is that of the result."""
    part = torch.ones(size // group.size(), dtype=torch.uint8)
    parts = [torch.ones_like(part) for _ in range(group.size())]
    return lambda: dist.all_gather(parts, part, group)


def all_gather_into_tensor(size, group):
    whole = torch.ones(size, dtype=torch.uint8)
    part = torch.ones(size // group.size(), dtype=torch.uint8)
    return lambda: dist.all_gather_into_tensor(whole, part, group)


def all_to_all_single(size, group):
    output, data = (torch.ones(size, dtype=torch.uint8) for _ in range(2))
    return lambda: dist.all_to_all_single(output, data, group=group)


COLLECTIVES = {
    function.__name__: function
    for function in (
        all_reduce, broadcast, all_gather, all_gather_into_tensor, all_to_all_single,
    )
}


def time_of(function, calls, group):
    """Returns the seconds of a call."""
    function()
    dist.barrier(group)
    begin = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - begin) / calls


def compare(functions, calls, rounds, groups):
    """Returns the microseconds of the functions, one for each backend."""
    times = {backend: [] for backend in BACKENDS}
    for _ in range(rounds):
        for backend in BACKENDS:
            times[backend].append(time_of(functions[backend], calls, groups[backend]))
    slowest = torch.tensor([times[backend] for backend in BACKENDS])
    dist.all_reduce(slowest, dist.ReduceOp.MAX, groups["gloo"])
    return [1e6 * statistics.median(row) for row in slowest.tolist()]


def print_head(title):
    if dist.get_rank() == 0:
        print(f"\n{title}, {dist.get_world_size()} ranks\n")
        print("| | dscomm, us | gloo, us | gloo / dscomm |")
        print("| ---: | ---: | ---: | ---: |")


def print_row(name, dscomm, gloo):
    if dist.get_rank() == 0:
        ratio = gloo / dscomm
        print(f"| {name} | {dscomm:.1f} | {gloo:.1f} | {ratio:.1f} |", flush=True)


def measure_collective(name, rounds, most, groups):
    print_head(f"{name}, bytes")
    for size in (size for size in SIZES if size <= most):
        calls = SMALL_CALLS if size <= SMALL else max(LEAST_CALLS, LARGE_BYTES // size)
        functions = {b: COLLECTIVES[name](size, groups[b]) for b in BACKENDS}
        print_row(size, *compare(functions, calls, rounds, groups))


def model_of(group, sizes):
    """A model whose buckets' elements are appended to sizes."""

    def hook(state, bucket):
        sizes.append(bucket.buffer().numel())
        return default_hooks.allreduce_hook(state, bucket)

    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*layers), process_group=group
    )
    model.register_comm_hook(group, hook)
    return model


def step_of(model, synchronizes):
    data = torch.randn(BATCH, WIDTH)

    def step():
        with contextlib.nullcontext() if synchronizes else model.no_sync():
            model(data).sum().backward()

    return step


def buckets_of(sizes, group):
    """All all_reduces of a step, without the rest of it."""
    buckets = [torch.ones(size) for size in sizes]

    def reduce():
        works = [dist.all_reduce(b, dist.ReduceOp.MAX, group, True) for b in buckets]
        for work in works:
            work.wait()

    return reduce


def measure_ddp(rounds, groups):
    print_head(f"DDP step of {LAYERS * (WIDTH + 1) * WIDTH} parameters")
    sizes = {backend: [] for backend in BACKENDS}
    models = {b: model_of(groups[b], sizes[b]) for b in BACKENDS}
    for _ in range(2):  # DDP makes other buckets after the first step
        for backend in BACKENDS:
            sizes[backend].clear()
            step_of(models[backend], True)()
    last = {backend: list(sizes[backend]) for backend in BACKENDS}
    whole = compare({b: step_of(models[b], True) for b in BACKENDS}, 1, rounds, groups)
    alone = compare({b: step_of(models[b], False) for b in BACKENDS}, 1, rounds, groups)
    print_row("step", *whole)
    print_row("step without communication", *alone)
    print_row("difference", *(w - a for w, a in zip(whole, alone)))
    functions = {b: buckets_of(last[b], groups[b]) for b in BACKENDS}
    row = f"all_reduce of {len(last['gloo'])} buckets"
    print_row(row, *compare(functions, 1, rounds, groups))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--most", type=int, default=2**26)
    choices = [*COLLECTIVES, "ddp"]
    parser.add_argument("what", nargs="*", default=choices, metavar="WHAT")
    args = parser.parse_args()
    if unknown := set(args.what) - set(choices):
        parser.error(f"{min(unknown)} is none of {', '.join(choices)}")

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = {backend: dist.new_group(backend=backend) for backend in BACKENDS}
    for group in groups.values():
        dist.barrier(group)
    processors = sorted(os.sched_getaffinity(0))
    for name in args.what:
        if name == "ddp":
            os.sched_setaffinity(0, processors)
            measure_ddp(args.rounds, groups)
        else:
            os.sched_setaffinity(0, {processors[dist.get_rank() % len(processors)]})
            measure_collective(name, args.rounds, args.most, groups)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
