# SPDX-License-Identifier: BSD-3-Clause
"""loop.c by torch.distributed, in Python, as its users call it: the same arguments after the
peer, and the same output, but without the times of a cache line (0).

    torch-loop.py gloo|deepspeed FILE CALL BYTES,BYTES,... MILLISECONDS [fresh] [unpinned]

RANK and WORLD_SIZE are in the environment. "deepspeed" is all_reduce by DeepSpeed's operator
over shared memory, which it compiles when it is first used; barriers are gloo's. all_reduce
is in place, as both have it. Only ranks of DeepSpeed are pinned: gloo's threads would share
the processor with the caller."""

import contextlib
import mmap
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

BATCHES = 9
CALLS_MOST = 20000
ANY_BYTE = 0x3f  # no zeros, see loop.c


def deepspeed_all_reduce(ranks, rank):
    """Returns the function; it takes ranks for local only if LOCAL_SIZE says so."""
    from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder

    os.environ["LOCAL_SIZE"] = str(ranks)
    ShareMemCommBuilder().load(verbose=False).initialize(ranks, rank)
    return torch.ops.deepspeed.inference_all_reduce_


def deepspeed_clean(rank):
    """Removes the segment of this rank, which DeepSpeed leaves."""
    address, port = (os.environ.get("MASTER_" + word, "") for word in ("ADDR", "PORT"))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"/dev/shm/deepspeed_allreduce_buffer_{os.getuid()}_{address}_{port}_{rank}")


class Calls:
    """Each call is a method that returns a function of the turn."""

    def __init__(self, reduce, size):
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.reduce = reduce
        self.input = torch.full((size,), ANY_BYTE, dtype=torch.uint8)
        self.output = torch.full((size,), ANY_BYTE, dtype=torch.uint8)

    def part(self, tensor, size):
        return tensor[:size].view(torch.float32) if size % 4 == 0 else tensor[:size]

    def all_reduce(self, size):
        data = self.part(self.input, size)
        return lambda turn: self.reduce(data)

    def all_gather(self, size):
        own, out = self.input[:size // self.ranks], self.output[:size // self.ranks * self.ranks]
        return lambda turn: dist.all_gather_into_tensor(out, own)

    def all_to_all(self, size):
        size = size // self.ranks * self.ranks
        own, out = self.input[:size], self.output[:size]
        return lambda turn: dist.all_to_all_single(out, own)

    def reduce_scatter(self, size):
        count = size // 4 // self.ranks
        own = self.input[:4 * count * self.ranks].view(torch.float32)
        out = self.output[:4 * count].view(torch.float32)
        return lambda turn: dist.reduce_scatter_tensor(out, own)

    def broadcast(self, size):
        data = self.input[:size]
        return lambda turn: dist.broadcast(data, turn % self.ranks)

    def message(self, size):
        own, out, other = self.input[:size], self.output[:size], self.rank ^ 1

        def both(turn):
            if self.rank < other:
                dist.send(own, other)
            dist.recv(out, other)
            if self.rank > other:
                dist.send(own, other)
        return both if other < self.ranks else lambda turn: None

    def barrier(self, size):
        return lambda turn: dist.barrier()


def expected(call, size, rank, ranks):
    """Where the result is and what it begins and ends with, if every rank's input is floats
    of its number plus one; None: there is none."""
    total = ranks * (ranks + 1) / 2
    return {"all_reduce": ("input", size, total, total),
            "reduce_scatter": ("output", size // ranks, total, total),
            "all_gather": ("output", size, 1, ranks),
            "all_to_all": ("output", size, 1, ranks),
            "broadcast": ("input", size, 1, 1),
            "message": ("output", size, (rank ^ 1) + 1, (rank ^ 1) + 1)}.get(call)


def check(calls, name, size):
    """Ends the process if the first call of a size gives something else than it must."""
    want = expected(name, size, calls.rank, calls.ranks)
    if not want or size % (4 * calls.ranks):
        return
    calls.input[:size].view(torch.float32).fill_(calls.rank + 1)
    dist.barrier()
    getattr(calls, name)(size)(0)
    where, length, first, last = want
    got = getattr(calls, where)[:length].view(torch.float32)
    if got[0] != first or got[-1] != last:
        sys.exit(f"{name} of {size} bytes: {got[0]} to {got[-1]}, want {first} to {last}")
    calls.input.fill_(ANY_BYTE)


class Shared:
    """What the ranks share without the library: a barrier, which all leave at the same time,
    and a number of each."""

    def __init__(self, path, rank, ranks):
        with open(path, "r+b") as file:
            words = memoryview(mmap.mmap(file.fileno(), 16 * ranks)).cast("d")
        self.met, self.numbers = words[:ranks], words[ranks:]
        self.rank, self.count = rank, 0

    def meet(self):
        self.count += 1
        self.met[self.rank] = self.count
        while min(self.met) < self.count:
            os.sched_yield()

    def most(self, number):
        self.numbers[self.rank] = number
        self.meet()
        most = max(self.numbers)
        self.meet()
        return most


def batch_us(run, count, refresh, calls, shared):
    """The mean time of a call on the slowest rank."""
    spent = 0.0
    shared.meet()
    begin = time.perf_counter()
    for turn in range(count):
        if refresh is not None:
            refresh.fill_(ANY_BYTE)
            shared.meet()
            begin = time.perf_counter()
        run(turn)
        if refresh is not None:
            spent += time.perf_counter() - begin
    if refresh is None:
        spent = time.perf_counter() - begin
    return shared.most(spent / count * 1e6)


def point(calls, name, size, milliseconds, fresh, shared):
    check(calls, name, size)
    run = getattr(calls, name)(size)
    refresh = calls.input[:size] if fresh else None

    def batch(count):
        return batch_us(run, count, refresh, calls, shared)
    batch(1)
    batch(10 if size < 1 << 20 else 2)
    count = max(1, min(CALLS_MOST, int(milliseconds * 1e3 / max(batch(2), 1e-3))))
    batch(count)
    us = statistics.median(batch(count) for _ in range(BATCHES))
    if not calls.rank:
        print(name, size, f"{us / (2 if name == 'message' else 1):.4f}", 0, 0, flush=True)


def main():
    peer, path, name, sizes, milliseconds = sys.argv[1:6]
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if peer == "deepspeed" and "unpinned" not in sys.argv[6:]:
        os.sched_setaffinity(0, {rank % os.cpu_count()})
    torch.set_num_threads(1)
    # A launcher may have a store of its own at MASTER_PORT.
    dist.init_process_group("gloo", init_method=f"file://{path}.store", rank=rank,
                            world_size=ranks)
    reduce = deepspeed_all_reduce(ranks, rank) if peer == "deepspeed" else dist.all_reduce
    sizes = [int(size) for size in sizes.split(",")]
    calls = Calls(reduce, max(sizes))
    shared = Shared(path, rank, ranks)
    for size in sizes:
        point(calls, name, size, float(milliseconds), "fresh" in sys.argv[6:], shared)
    dist.barrier()
    dist.destroy_process_group()
    if peer == "deepspeed":
        deepspeed_clean(rank)


main()
