# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of DeepSpeed with a backend of torch.distributed: ZeRO, and deepspeed.comm.

    torch-deepspeed.py BACKEND FILE

Rank 0 prints TAP. Backend gloo only trains, and writes the losses to FILE; another
backend must have the same losses. What deepspeed.comm computes is compared with
arithmetic."""

import contextlib
import datetime
import json
import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import deepspeed.comm as dist
import torch

import checks

# Otherwise DeepSpeed compiles an all_reduce over shared memory of its own, which
# inference_all_reduce() uses in place of the backend.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

STEPS, BATCH, INPUTS, CLASSES = 12, 16, 64, 10


def ramp(count, rank):
    return torch.arange(count, dtype=torch.float32) + 100 * rank


def total(count, size):
    return sum(ramp(count, rank) for rank in range(size))


def train(stage, rank):
    """The losses of a classifier of images of which a fixed matrix knows the digits."""
    torch.manual_seed(23)
    teacher = torch.randn(INPUTS, CLASSES)
    model = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, 50), torch.nn.Tanh(), torch.nn.Linear(50, CLASSES)
    )
    config = {
        "train_micro_batch_size_per_gpu": BATCH,
        "zero_optimization": {
            "stage": stage,
            "reduce_bucket_size": 1000,
            "allgather_bucket_size": 1000,
        },
        "zero_allow_untested_optimizer": True,
    }
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    images = torch.Generator().manual_seed(1000 + rank)
    losses = []
    for _ in range(STEPS):
        batch = torch.rand(BATCH, INPUTS, generator=images)
        digits = (batch @ teacher).argmax(1)
        loss = torch.nn.functional.cross_entropy(engine(batch), digits)
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    return losses


def reductions(rank, size):
    want = total(6, size)
    for function in (dist.all_reduce, dist.inference_all_reduce):
        tensor = ramp(6, rank)
        function(tensor)
        assert torch.equal(tensor, want), function
    for op, result in (
        (dist.ReduceOp.AVG, want / size),
        (dist.ReduceOp.MAX, ramp(6, size - 1)),
        (dist.ReduceOp.MIN, ramp(6, 0)),
    ):
        tensor = ramp(6, rank)
        dist.all_reduce(tensor, op=op)
        assert torch.equal(tensor, result), op
    tensor = ramp(6, rank)
    dist.all_reduce(tensor, async_op=True).wait()
    assert torch.equal(tensor, want)
    tensors = [ramp(count, rank) for count in (1, 5, 9)]
    dist.all_reduce_coalesced(tensors)
    assert all(torch.equal(t, total(len(t), size)) for t in tensors)
    tensor = ramp(6, rank)
    dist.reduce(tensor, 1)
    assert rank != 1 or torch.equal(tensor, want)


def gathers(rank, size):
    outputs = [torch.zeros(4) for _ in range(size)]
    want = [ramp(4, r) for r in range(size)]
    dist.all_gather(outputs, ramp(4, rank))
    assert all(map(torch.equal, outputs, want))
    for function in (dist.all_gather_into_tensor, dist.allgather_fn):
        output = torch.zeros(4 * size)
        function(output, ramp(4, rank))
        assert torch.equal(output, torch.cat(want)), function
    outputs = [torch.zeros(size * count) for count in (2, 3)]
    # When the results are there, DeepSpeed waits for a work that torch does not give.
    with contextlib.suppress(ValueError):
        dist.all_gather_coalesced(outputs, [ramp(2, rank), ramp(3, rank)])
    for output, count in zip(outputs, (2, 3)):
        assert torch.equal(output, torch.cat([ramp(count, r) for r in range(size)]))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    outputs = [torch.zeros(4) for _ in range(size)] if rank == 0 else None
    dist.gather(ramp(4, rank), outputs, dst=0)
    assert rank != 0 or all(map(torch.equal, outputs, want))


def scatters(rank, size):
    output = torch.zeros(4)
    inputs = [ramp(4, r) for r in range(size)] if rank == 0 else None
    dist.scatter(output, inputs, src=0)
    assert torch.equal(output, ramp(4, rank))
    part = total(4 * size, size)[4 * rank : 4 * rank + 4]
    for function in (dist.reduce_scatter_tensor, dist.reduce_scatter_fn):
        output = torch.zeros(4)
        function(output, ramp(4 * size, rank))
        assert torch.equal(output, part), function
    output = torch.zeros(4)
    dist.reduce_scatter(output, list(ramp(4 * size, rank).chunk(size)))
    assert torch.equal(output, part)


def exchanges(rank, size):
    output = torch.zeros(2 * size)
    want = torch.cat([ramp(2 * size, r)[2 * rank : 2 * rank + 2] for r in range(size)])
    dist.all_to_all_single(output, ramp(2 * size, rank))
    assert torch.equal(output, want)
    # rank r sends r + 1 elements to each rank
    output = torch.zeros(sum(range(1, size + 1)))
    source = ramp((rank + 1) * size, rank)
    dist.all_to_all_single(output, source, list(range(1, size + 1)), [rank + 1] * size)
    parts = [ramp((r + 1) * size, r).chunk(size)[rank] for r in range(size)]
    assert torch.equal(output, torch.cat(parts))
    outputs = [torch.zeros(2) for _ in range(size)]
    dist.all_to_all(outputs, list(ramp(2 * size, rank).chunk(size)))
    assert torch.equal(torch.cat(outputs), want)


def broadcasts(rank, size):
    for root in range(size):
        tensor = ramp(5, rank)
        dist.broadcast(tensor, src=root)
        assert torch.equal(tensor, ramp(5, root))
    objects = [{"from": rank}]
    dist.broadcast_object_list(objects, src=1)
    assert objects == [{"from": 1}]


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    tensor = torch.zeros(3)
    if rank == 0:
        dist.send(ramp(3, rank), right, tag=4)
        dist.recv(tensor, left, tag=4)
    else:
        dist.recv(tensor, left, tag=4)
        dist.send(ramp(3, rank), right, tag=4)
    assert torch.equal(tensor, ramp(3, left))
    tensor = torch.zeros(3)
    works = [dist.irecv(tensor, left, tag=5), dist.isend(ramp(3, rank), right, tag=5)]
    for work in works:
        work.wait()
    assert torch.equal(tensor, ramp(3, left))


def groups(rank, size):
    assert dist.is_available() and dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    assert dist.get_local_rank() == rank
    assert dist.get_world_group() is torch.distributed.group.WORLD
    group = dist.new_group(list(reversed(range(size))))
    assert sorted(dist.get_all_ranks_from_group(group)) == list(range(size))
    assert dist.get_global_rank(group, dist.get_rank(group)) == rank
    tensor = ramp(3, rank)
    dist.all_reduce(tensor, group=group)
    assert torch.equal(tensor, total(3, size))
    mesh = dist.initialize_mesh_device((size,), ("data",))
    tensor = ramp(3, rank)
    dist.all_reduce(tensor, group=mesh.get_group("data"))
    assert torch.equal(tensor, total(3, size))
    dist.barrier()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))


def logger(rank, size):
    dist.configure(enabled=True, prof_all=True)
    for count in (8, 8, 16):
        dist.all_reduce(torch.zeros(count))
    assert dist.has_comm_data() and dist.get_comm_operation_count() == 3
    assert dist.get_logged_comm_ops() == ["all_reduce"]
    summary = dist.log_summary(show_straggler=True, return_dict=True)["summary"]
    calls = {size: figures["count"] for size, figures in summary["all_reduce"].items()}
    assert calls == {32: 2, 64: 1}, calls
    dist.configure(enabled=False)
    dist.reset_log()


def losses_as_in(path):
    def losses(rank, size):
        assert size == 2
        with open(path) as file:
            want = json.load(file)
        # Equal to the last bit, as the sum of two numbers has no order.
        for stage in (1, 2):
            got, gloo = train(stage, rank), want[rank][stage - 1]
            assert got == gloo, (stage, got, gloo)

    return losses


def write_losses(path, rank, size):
    everyone = [None] * size
    dist.all_gather_object(everyone, [train(stage, rank) for stage in (1, 2)])
    if rank == 0:
        with open(path, "w") as file:
            json.dump(everyone, file)
        print("1..1\nok 1 - DeepSpeed: losses of gloo")


def main():
    backend, path = sys.argv[1:]
    deepspeed.init_distributed(backend, timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    if backend == "gloo":
        write_losses(path, rank, size)
        dist.destroy_process_group()
        return
    checks.run([
        groups, reductions, gathers, scatters, exchanges, broadcasts, messages, logger,
        losses_as_in(path),
    ])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
