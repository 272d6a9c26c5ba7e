# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of torch.distributed with the backend dscomm; results against arithmetic.

Rank 0 prints TAP. A check passes if it holds on all ranks."""

import datetime
import os
import threading
import time

import torch
import torch.distributed as dist

from checks import check, main
from torch.distributed.distributed_c10d import _abort_process_group

REDUCED = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
]


def ramp(count, dtype, rank):
    """Small whole numbers, exact in every type."""
    return torch.arange(count).remainder(5).add(rank + 1).to(dtype)


@check
def all_reduce_types(rank, size):
    for dtype in REDUCED:
        for op, want in (
            (dist.ReduceOp.SUM, sum(ramp(7, torch.int64, r) for r in range(size))),
            (dist.ReduceOp.MAX, ramp(7, torch.int64, size - 1)),
            (dist.ReduceOp.MIN, ramp(7, torch.int64, 0)),
        ):
            tensor = ramp(7, dtype, rank)
            dist.all_reduce(tensor, op=op)
            assert torch.equal(tensor, want.to(dtype)), (dtype, op, tensor, want)


@check
def all_reduce_operators(rank, size):
    tensor = ramp(5, torch.float32, rank)
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    assert torch.equal(tensor, sum(ramp(5, torch.float32, r) for r in range(size)) / size)
    tensor = ramp(5, torch.int64, rank)
    dist.all_reduce(tensor, op=dist.ReduceOp.PRODUCT)
    want = ramp(5, torch.int64, 0)
    for r in range(1, size):
        want = want * ramp(5, torch.int64, r)
    assert torch.equal(tensor, want)
    for op, start, function in (
        (dist.ReduceOp.BAND, -1, torch.bitwise_and),
        (dist.ReduceOp.BOR, 0, torch.bitwise_or),
        (dist.ReduceOp.BXOR, 0, torch.bitwise_xor),
    ):
        tensor = ramp(5, torch.int32, rank)
        dist.all_reduce(tensor, op=op)
        want = torch.full((5,), start, dtype=torch.int32)
        for r in range(size):
            want = function(want, ramp(5, torch.int32, r))
        assert torch.equal(tensor, want), op
    tensor = torch.full((3,), float(rank + 1))
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5))
    assert torch.equal(tensor, torch.full((3,), size * (size + 1) / 4))
    tensor = torch.full((3,), complex(rank, 1))
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.full((3,), complex(size * (size - 1) / 2, size)))
    tensor = torch.tensor([rank == 0, False])
    dist.all_reduce(tensor)
    assert tensor.tolist() == [True, False]


@check
def strided_tensors(rank, size):
    whole = torch.zeros(4, 6)
    part = whole[:, 1:4].t()
    part.copy_(torch.arange(12.0).reshape(3, 4) + rank)
    dist.all_reduce(part)
    want = size * torch.arange(12.0).reshape(3, 4) + size * (size - 1) / 2
    assert torch.equal(part, want) and whole[:, 0].sum() == 0 and whole[:, 4:].sum() == 0
    part.fill_(rank)
    dist.broadcast(part, src=size - 1)
    assert torch.equal(part, torch.full((3, 4), size - 1.0))
    outputs = [torch.zeros(3, 2).t() for _ in range(size)]
    dist.all_gather(outputs, torch.full((3, 2), float(rank)).t())
    assert all(torch.equal(out, torch.full((2, 3), float(r))) for r, out in enumerate(outputs))


@check
def rooted(rank, size):
    for root in range(size):
        tensor = ramp(4, torch.float32, rank)
        dist.reduce(tensor, dst=root)
        want = sum(ramp(4, torch.float32, r) for r in range(size))
        assert torch.equal(tensor, want if rank == root else ramp(4, torch.float32, rank))
        outputs = [torch.zeros(3, dtype=torch.int32) for _ in range(size)]
        dist.gather(
            ramp(3, torch.int32, rank), outputs if rank == root else None, dst=root
        )
        for r in range(size):
            assert torch.equal(outputs[r], ramp(3, torch.int32, r) if rank == root else outputs[r])
        tensor = torch.zeros(3)
        inputs = [ramp(3, torch.float32, root + 2 * r) for r in range(size)]
        dist.scatter(tensor, inputs if rank == root else None, src=root)
        assert torch.equal(tensor, ramp(3, torch.float32, root + 2 * rank))


@check
def gathered(rank, size):
    output = torch.zeros(size * 4, dtype=torch.int64)
    dist.all_gather_into_tensor(output, ramp(4, torch.int64, rank))
    assert torch.equal(output, torch.cat([ramp(4, torch.int64, r) for r in range(size)]))
    outputs = [torch.zeros(r + 1) for r in range(size)]
    dist.all_gather(outputs, ramp(rank + 1, torch.float32, rank))
    assert all(torch.equal(out, ramp(r + 1, torch.float32, r)) for r, out in enumerate(outputs))
    # An input that is an output: this rank's own, and another's.
    for own in (rank, (rank + 1) % size):
        outputs = list(torch.zeros(size, 4).unbind())
        outputs[own].copy_(ramp(4, torch.float32, rank))
        dist.all_gather(outputs, outputs[own])
        assert all(torch.equal(out, ramp(4, torch.float32, r)) for r, out in enumerate(outputs))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert objects == [{"rank": r, "text": "x" * r} for r in range(size)]


@check
def scattered_sums(rank, size):
    output = torch.zeros(3)
    dist.reduce_scatter_tensor(output, ramp(3 * size, torch.float32, rank))
    whole = sum(ramp(3 * size, torch.float32, r) for r in range(size))
    assert torch.equal(output, whole[3 * rank : 3 * rank + 3])
    inputs = [ramp(r + 1, torch.float32, rank + r) for r in range(size)]
    output = torch.zeros(rank + 1)
    dist.reduce_scatter(output, inputs)
    assert torch.equal(output, sum(ramp(rank + 1, torch.float32, r + rank) for r in range(size)))


@check
def all_to_all(rank, size):
    output = torch.zeros(size * 2)
    dist.all_to_all_single(output, torch.arange(size * 2.0) + 100 * rank)
    want = torch.cat([torch.arange(2.0) + 2 * rank + 100 * r for r in range(size)])
    assert torch.equal(output, want)
    splits = [r + 1 for r in range(size)]
    source = torch.cat([torch.full((r + 1, 2), 10.0 * rank + r) for r in range(size)])
    output = torch.zeros((rank + 1) * size, 2)
    dist.all_to_all_single(output, source, [rank + 1] * size, splits)
    want = torch.cat([torch.full((rank + 1, 2), 10.0 * r + rank) for r in range(size)])
    assert torch.equal(output, want)
    outputs = [torch.zeros(rank + 1) for _ in range(size)]
    dist.all_to_all(outputs, [torch.full((r + 1,), 10.0 * rank + r) for r in range(size)])
    assert all(
        torch.equal(out, torch.full((rank + 1,), 10.0 * r + rank)) for r, out in enumerate(outputs)
    )


@check
def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    works = [dist.isend(torch.full((2,), float(10 * rank + tag)), right, tag=tag) for tag in (1, 2)]
    second, first = torch.zeros(2), torch.zeros(2)
    dist.recv(second, left, tag=2)
    dist.recv(first, left, tag=1)
    for work in works:
        work.wait()
    assert first.tolist() == [10.0 * left + 1] * 2 and second.tolist() == [10.0 * left + 2] * 2
    if rank:
        dist.send(torch.tensor([float(rank)]), 0, tag=9)
    else:
        seen = set()
        for _ in range(size - 1):
            tensor = torch.zeros(1)
            source = dist.recv(tensor, tag=9)
            assert tensor.item() == source
            seen.add(source)
        assert seen == set(range(1, size))
    received = torch.zeros(3)
    for request in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, torch.full((3,), float(rank)), right),
            dist.P2POp(dist.irecv, received, left),
        ]
    ):
        request.wait()
    assert received.tolist() == [float(left)] * 3


@check
def works_and_futures(rank, size):
    tensors = [torch.full((1000,), float(rank + i)) for i in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, work in reversed(list(enumerate(works))):
        work.wait()
        assert work.is_completed() and work.is_success()
        assert tensors[i][0].item() == size * (size - 1) / 2 + i * size
    done = threading.Event()
    tensor = torch.full((4,), 1.0)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    future.then(lambda ended: (ended.value()[0].mul_(2), done.set()))
    assert done.wait(30), "the callback of a future did not run"
    assert tensor.tolist() == [2.0 * size] * 4
    futures = [
        dist.all_reduce(torch.ones(10), async_op=True).get_future() for _ in range(20)
    ]
    assert all(torch.futures.wait_all(futures)[i][0][0].item() == size for i in range(20))
    assert dist.all_reduce(tensor, async_op=True).wait(datetime.timedelta(days=200000))


@check
def nested_futures(rank, size):
    """What a future runs waits for another one, as the hook PowerSGD does."""

    def reduce(depth):
        future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
        if not depth:
            return future
        return future.then(lambda ended: ended.value()[0] + reduce(depth - 1).wait()[0])

    assert reduce(3).wait().tolist() == [4.0 * size] * 3

    busy, order = threading.Lock(), []

    def note(number):
        assert busy.acquire(blocking=False), "two callbacks at the same time"
        time.sleep(0.001)
        order.append(number)
        busy.release()

    futures = [dist.all_reduce(torch.ones(1), async_op=True).get_future() for _ in range(30)]
    for future in [f.then(lambda _, n=n: note(n)) for n, f in enumerate(futures)]:
        future.wait()
    assert order == list(range(30)), order

    # A chain needs no thread for each of its links, two groups do not wait for each other.
    groups = [dist.new_group(), dist.new_group()]
    ended = threading.Event()

    def link(number):
        if not number:
            ended.set()
            return
        future = dist.all_reduce(torch.ones(1), group=groups[0], async_op=True).get_future()
        future.then(lambda _: link(number - 1))

    link(100)
    assert ended.wait(30) and len(os.listdir("/proc/self/task")) < 60
    futures = []
    for group in groups if rank % 2 else reversed(groups):
        future = dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future()
        futures.append(
            future.then(lambda _, group=group: dist.all_reduce(torch.ones(1), group=group))
        )
    torch.futures.wait_all(futures)


@check
def ordered_futures(rank, size):
    """One callback at a time, whether the one that asked for its future still runs or not;
    neither a blocking call nor a message that is not there keeps futures from completing."""
    inner, own = dist.new_group(), dist.new_group()
    sums, ended = [], threading.Semaphore(0)

    def add(value):
        tensor = torch.tensor([value])
        time.sleep(0.02)
        dist.all_reduce(tensor, group=own)
        sums.append(tensor.item())
        ended.release()

    def ask(_):
        for value in (1, 100):
            future = dist.all_reduce(torch.ones(1), group=inner, async_op=True).get_future()
            future.then(lambda _, value=value: add(value))
            time.sleep(0.03 * (rank % 2))

    dist.all_reduce(torch.ones(1), async_op=True).get_future().then(ask)
    assert ended.acquire(timeout=30) and ended.acquire(timeout=30)
    assert sums == [size, 100 * size], sums

    future = dist.all_reduce(torch.ones(1), async_op=True).get_future()
    future = future.then(lambda _: dist.all_reduce(torch.ones(1), group=own))
    if rank:
        future.wait()
    dist.all_reduce(torch.ones(1))
    future.wait()

    if size == 1:
        return
    received = torch.zeros(1)
    if rank == 0:
        batch = dist.batch_isend_irecv([dist.P2POp(dist.irecv, received, 1)])[0].get_future()
    dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
    if rank == 0:
        dist.send(torch.ones(1), 1)
        batch.wait()
        assert received.item() == 7
    elif rank == 1:
        dist.recv(received, 0)
        dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((1,), 7.0), 0)])[0].wait()


@check
def waited_futures(rank, size):
    """A future is complete when wait() has returned, whoever asked first."""
    for _ in range(100):
        work = dist.all_reduce(torch.ones(2), async_op=True)
        future = work.get_future()
        work.wait()
        assert future.done() and future.value()[0].tolist() == [size] * 2
        work = dist.all_reduce(torch.ones(2), async_op=True)
        work.wait()
        assert work.get_future().value()[0].tolist() == [size] * 2
        work = dist.all_reduce(torch.ones(2), async_op=True)
        while not work.is_completed():
            time.sleep(0)
        assert work.get_future().value()[0].tolist() == [size] * 2

    # In what a future runs, too; and what runs for long is not waited for.
    lock, seen = threading.Lock(), []

    def nested(_):
        work = dist.all_reduce(torch.ones(2), group=own, async_op=True)
        future = work.get_future()
        work.wait()
        seen.append(future.done())

    def slow(_):
        with lock:
            seen.append("slow")

    own = dist.new_group()
    dist.all_reduce(torch.ones(1), async_op=True).get_future().then(nested).wait()
    assert seen == [True]
    holds = rank == 0 and size > 1  # The others come once its future has what it runs.
    if rank != 0:
        dist.barrier(group=own)
    late = dist.all_reduce(torch.ones(1), async_op=True).get_future()
    if holds:
        lock.acquire()
    late = late.then(slow)
    if rank == 0:
        dist.barrier(group=own)
    work = dist.all_reduce(torch.ones(1), async_op=True)
    future = work.get_future()
    assert work.wait(datetime.timedelta(seconds=20))
    if holds:
        assert not future.done() and work.wait(datetime.timedelta(seconds=-1))
        lock.release()
    torch.futures.wait_all([late, future])

    # A group that is destroyed waits for what futures run, which may use it.
    def sleepy(_):
        time.sleep(0.2)
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=other)
        seen.append(tensor.item())

    other = dist.new_group()
    works = [dist.all_reduce(torch.ones(1), group=own, async_op=True) for _ in range(2)]
    for work in works:
        work.get_future().then(sleepy)
    dist.destroy_process_group(other)
    assert seen == [True, "slow", size, size]
    dist.destroy_process_group(own)


@check
def coalesced(rank, size):
    tensors = [torch.full((i + 1,), float(rank)) for i in range(4)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert all(torch.equal(t, torch.full_like(t, size * (size - 1) / 2)) for t in tensors)


@check
def allocated(rank, size):
    """Tensors in a group's memory outlive it."""
    cpu = torch.device("cpu")
    group = dist.new_group()
    backend = group._get_backend(cpu)
    if size > 1:
        assert backend.supports_tensor_alloc(cpu)
    tensor = backend.allocate_tensor(100000, dtype=torch.float32, device=cpu)
    assert tensor.shape == (100000,) and tensor.dtype == torch.float32
    tensor.fill_(rank + 1)
    dist.all_reduce(tensor, group=group)
    assert (tensor == size * (size + 1) / 2).all()
    other = backend.allocate_tensor(7, dtype=torch.int64, device=cpu).fill_(rank)
    future = dist.all_reduce(other, group=group, async_op=True).get_future()
    del other
    assert future.wait()[0].tolist() == [size * (size - 1) // 2] * 7
    assert backend.allocate_tensor(0, dtype=torch.int64, device=cpu).numel() == 0
    dist.destroy_process_group(group)
    tensor.add_(1)
    assert (tensor == size * (size + 1) / 2 + 1).all()


@check
def groups(rank, size):
    if size == 1:
        return
    pairs = [dist.new_group([r, (r + 1) % size]) for r in range(size)]
    for r, group in enumerate(pairs):
        if rank in (r, (r + 1) % size):
            tensor = torch.tensor([float(rank)])
            dist.all_reduce(tensor, group=group)
            assert tensor.item() == r + (r + 1) % size
    dist.barrier()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))


@check
def sparse(rank, size):
    tensor = torch.sparse_coo_tensor([[rank, 5, 5]], torch.tensor([1.0, 2.0, 3.0]), (6,))
    dist.all_reduce(tensor)
    want = torch.ones(6)
    want[size:5] = 0
    want[5] = size * 5
    assert torch.equal(tensor.to_dense(), want), tensor


@check
def split(rank, size):
    group = dist.split_group(split_ranks=[[0], list(range(1, size))] if size > 1 else [[0]])
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=group)
    assert tensor.item() == (rank and size * (size - 1) / 2)


@check
def dropped_works(rank, size):
    """A work that nobody keeps goes on, and delays neither its thread nor other calls."""
    if size == 1:
        return
    tensor = torch.zeros(3)
    if rank == 1:
        dist.irecv(tensor, src=0)
        begin = time.monotonic()
    dist.barrier()
    if rank == 0:
        dist.send(torch.ones(3), dst=1)
    elif rank == 1:
        assert time.monotonic() - begin < 30
        while not tensor.eq(1).all() and time.monotonic() - begin < 30:
            time.sleep(0.01)
        assert tensor.tolist() == [1, 1, 1]


@check
def other_thread_while_coalescing(rank, size):
    """A call of another thread does not get into a batch."""
    group = dist.group.WORLD
    device = torch.device("cpu")
    errors = []

    def other():
        try:
            dist.all_reduce(torch.ones(1))
        except Exception as error:
            errors.append(str(error))

    tensor = torch.ones(2)
    group._start_coalescing(device)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    group.allreduce([tensor])
    group._end_coalescing(device).wait()
    assert len(errors) == 1 and "another thread coalesces" in errors[0], errors
    assert tensor.tolist() == [size, size]


@check
def own_timeout(rank, size):
    """A call keeps its own time-out, and names who is late; then the group has ended."""
    if size == 1:
        return
    group = dist.new_group()
    if rank == 0:
        begin = time.monotonic()
        try:
            dist.barrier(group, timeout=datetime.timedelta(seconds=0.5))
        except dist.DistBackendError as error:
            assert "rank 1" in str(error) and " timeout " in str(error), error
        else:
            raise AssertionError("barrier() has ended without the others")
        assert 0.4 < time.monotonic() - begin < 30
    dist.barrier()


@check
def late_ranks(rank, size):
    """monitored_barrier() names the ranks that are missing as torch's programs expect."""
    if size == 1:
        return
    group = dist.new_group()
    if rank == 0:
        for every, text in (
            (False, "Rank 1 failed to pass monitoredBarrier in 300 ms"),
            (True, "Ranks " + ", ".join(map(str, range(1, size))) + " failed to pass"),
        ):
            try:
                dist.monitored_barrier(group, datetime.timedelta(seconds=0.3), every)
            except RuntimeError as error:
                assert text in str(error), error
            else:
                raise AssertionError("the barrier has passed")
    dist.barrier()
    for _ in range(2 if rank else 0):
        begin = time.monotonic()
        try:
            dist.monitored_barrier(group, datetime.timedelta(seconds=30))
        except RuntimeError as error:
            assert f"Rank {rank} came too late" in str(error), error
            assert "did not come" in str(error), error
        else:
            raise AssertionError("the barrier has passed")
        assert time.monotonic() - begin < 15
    dist.barrier()


@check
def refusals(rank, size):
    def refuses(function, text):
        try:
            function()
        except Exception as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"no exception with '{text}'")

    refuses(lambda: dist.all_reduce(torch.ones(2), op=dist.ReduceOp.BAND), "operator band does not apply")
    refuses(lambda: dist.recv(torch.ones(2), 0, tag=-1), "tag -1, which is negative")
    refuses(
        lambda: dist.monitored_barrier(timeout=datetime.timedelta(seconds=-5)),
        "-5000 ms, which is negative",
    )
    refuses(
        lambda: dist.all_gather_into_tensor(torch.zeros(1), torch.zeros(2)),
        "times its elements",
    )
    refuses(
        lambda: dist.all_reduce(torch.ones(2).to_sparse(), op=dist.ReduceOp.MAX), "SUM only"
    )
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    refuses(
        lambda: backend.allocate_tensor(2, dtype=torch.int8, device=torch.device("meta")),
        "on the CPU only",
    )
    refuses(
        lambda: backend.allocate_tensor(
            (1 << 61) + 1, dtype=torch.float64, device=torch.device("cpu")
        ),
        "elements",
    )
    refuses(
        lambda: dist.all_to_all_single(torch.tensor(0.0), torch.tensor(5.0)), "no dimensions"
    )
    if size > 1:  # else torch refuses it
        refuses(lambda: dist.split_group(split_ranks=[[0, size]]), "is not in 0 ...")
    work = dist.irecv(torch.ones(1), 1) if size > 1 and rank == 0 else None
    if work:
        refuses(lambda: work.wait(datetime.timedelta(seconds=-5)), "negative")
    dist.barrier()
    if rank == 1:
        dist.send(torch.ones(1), 0)
    if work:
        work.wait()
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [size, size]


@check
def train(rank, size):
    """DDP has the gradients of the whole batch."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    alone = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    alone.load_state_dict(model.state_dict())
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    data = torch.randn(4 * size, 8)
    for _ in range(3):
        for network, batch in ((parallel, data[rank::size]), (alone, data)):
            network.zero_grad()
            network(batch).pow(2).mean().backward()
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter -= 0.1 * parameter.grad
    for a, b in zip(model.parameters(), alone.parameters()):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)


class Slow:
    """What takes a while to go, with Python's lock."""

    def __del__(self):
        time.sleep(0.1)


def abandon():
    """End the process while threads of the backend have what needs Python's lock."""
    works = []
    for end in (dist.destroy_process_group, _abort_process_group):
        dist.init_process_group("dscomm")
        for kind in ("kept", "dropped", "with a future"):
            tensor = torch.ones(1)
            tensor.slow = Slow()
            work = dist.all_reduce(tensor, async_op=True)
            if kind == "kept":
                works.append(work)
            elif kind == "with a future":
                work.get_future().then(lambda _: time.sleep(0.3))
        del tensor, work
        try:
            dist.barrier()  # All have made their calls when one aborts.
        except dist.DistBackendError as error:
            assert "aborts the process group" in str(error)
        end()


if __name__ == "__main__":
    main("dscomm", timeout=datetime.timedelta(seconds=60))
    abandon()
