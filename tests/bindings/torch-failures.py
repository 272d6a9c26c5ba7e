# SPDX-License-Identifier: BSD-3-Clause
"""What calls that fail, and processes that ranks fork, leave behind.

Rank 0 prints TAP. A check passes if it holds on all ranks."""

import ctypes
import datetime
import os
import select
import signal
import sys
import threading
import time
import weakref

import torch
import torch.distributed as dist

from checks import check, main

CPU = torch.device("cpu")
GUARD_S = 20  # ends a child that waits for ever


def watched(count):
    """A tensor, and a reference that tells whether its memory is still kept."""
    memory = (ctypes.c_float * count)()
    return torch.frombuffer(memory, dtype=torch.float32), weakref.ref(memory)


def refuses(function, *texts):
    """It raises an exception with one of the texts."""
    try:
        function()
    except Exception as error:
        assert not texts or any(text in str(error) for text in texts), error
    else:
        raise AssertionError(f"no exception with {texts}")


def works(rank, size, group=None):
    """Calls of all kinds are right, and none is queued."""
    tensor = torch.full((2,), float(rank))
    dist.all_reduce(tensor, group=group)
    assert tensor.tolist() == [size * (size - 1) / 2] * 2, tensor
    tensor = torch.tensor([rank])
    dist.broadcast(tensor, 0, group=group)
    assert tensor.item() == 0
    received = torch.zeros(3)
    for request in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, torch.full((3,), float(rank)), (rank + 1) % size, group),
            dist.P2POp(dist.irecv, received, (rank - 1) % size, group),
        ]
    ):
        request.wait()
    assert received.tolist() == [float((rank - 1) % size)] * 3, received
    with dist._coalescing_manager(group):
        dist.all_reduce(received, group=group)
    assert received.tolist() == [size * (size - 1) / 2] * 3, received


@check
def bad_argument_in_a_batch(rank, size):
    """The calls before it are made; the group goes on."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for bad, text in (
        (dist.P2POp(dist.irecv, torch.ones(3).to_sparse(), left), "SparseCPU"),
        (dist.P2POp(dist.isend, torch.ones(3), right, tag=-5), "tag"),
        (dist.P2POp(dist.irecv, torch.ones(3, dtype=torch.complex64), left, tag=-5), "tag"),
    ):
        first = dist.P2POp(dist.isend, torch.full((1,), float(rank)), right, tag=7)
        refuses(lambda: dist.batch_isend_irecv([first, bad]), text)
        received = torch.zeros(1)
        dist.recv(received, left, tag=7)
        assert received.item() == left
        works(rank, size)


@check
def exception_in_a_batch(rank, size):
    def stop(device, call):
        with dist._coalescing_manager(device=device, async_ops=True):
            call()
            raise KeyError("of the program")

    tensor = torch.ones(2)
    refuses(lambda: stop(None, lambda: dist.all_reduce(tensor)), "of the program")
    assert tensor.tolist() == [1, 1]
    works(rank, size)
    refuses(lambda: stop(CPU, lambda: dist.broadcast(tensor, 0)), "of the program")
    works(rank, size)

    def begin_twice():
        with dist._coalescing_manager(device=CPU):
            with dist._coalescing_manager(device=CPU):
                pass

    refuses(begin_twice)
    works(rank, size)
    refuses(lambda: dist.group.WORLD._end_coalescing(CPU), "could be ended")
    works(rank, size)


@check
def batch_of_another_thread(rank, size):
    """A thread that may not begin a batch does not end that of another."""
    errors = []

    def other():
        try:
            dist.group.WORLD._end_coalescing(CPU)
        except RuntimeError as error:
            errors.append(str(error))

    tensor = torch.ones(2)
    with dist._coalescing_manager(device=CPU, async_ops=True) as batch:
        dist.broadcast(tensor, 0)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    batch.wait()
    assert len(errors) == 1 and "could be ended" in errors[0], errors
    works(rank, size)


def is_freed(memory):
    """Whether memory is freed; a thread of the library's may still be about to."""
    end = time.monotonic() + GUARD_S
    while memory() is not None and time.monotonic() < end:
        time.sleep(0.01)
    return memory() is None


def fail(rank, group, call):
    """Rank 0 alone calls, until a time-out."""
    if rank == 0:
        tensor, memory = watched(1 << 16)
        refuses(lambda: call(tensor, group), "timeout")
        del tensor
        assert memory() is not None, "memory was freed that the library may use"
    dist.barrier()
    dist.destroy_process_group(group)
    assert rank or is_freed(memory), "memory is kept for ever"


@check
def buffers_of_failed_calls(rank, size):
    """They stay until the group has ended, and no longer."""
    if size == 1:
        return
    # A call that blocks in the library has the time-out with which the group was made.
    group = dist.new_group(timeout=datetime.timedelta(seconds=3))
    fail(rank, group, lambda tensor, group: dist.all_reduce(tensor, group=group))
    for call in (
        lambda tensor, group: dist.recv(tensor, 1, group=group),
        lambda tensor, group: dist.all_reduce(tensor, group=group, async_op=True).wait(),
        lambda tensor, group: dist.irecv(tensor, 1, group=group).get_future().wait(),
        lambda tensor, group: dist.all_reduce_coalesced([tensor], group=group),
        lambda tensor, group: [
            request.wait()
            for request in dist.batch_isend_irecv([dist.P2POp(dist.irecv, tensor, 1, group)])
        ],
    ):
        group = dist.new_group()
        group.set_timeout(datetime.timedelta(seconds=0.4))
        fail(rank, group, call)


@check
def buffers_of_works_that_go_on(rank, size):
    """wait() gives up, and nobody keeps the work: its memory stays, and is filled."""
    if size == 1:
        return
    if rank == 0:
        tensor, memory = watched(1 << 16)
        work = dist.irecv(tensor, 1, tag=3)
        refuses(lambda: work.wait(datetime.timedelta(milliseconds=50)), "goes on")
        del work, tensor
        assert memory() is not None
        seen = memory()
    dist.barrier()
    if rank == 1:
        dist.send(torch.full((1 << 16,), 5.0), 0, tag=3)
    elif rank == 0:
        end = time.monotonic() + GUARD_S
        while seen[0] != 5.0 or seen[(1 << 16) - 1] != 5.0:
            assert time.monotonic() < end, "the message did not come"
            time.sleep(0.01)
        del seen
        assert is_freed(memory), "memory is kept for ever"
    dist.barrier()


def in_child(function, leave=os._exit):
    """Fork a child that calls function; return what it has said of exceptions."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            function()
            said = "nothing"
        except BaseException as error:
            said = str(error).partition("\n")[0]
        os.write(writer, said.encode())
        leave(0)
    os.close(writer)
    ready = select.select([reader], [], [], GUARD_S)[0]
    said = os.read(reader, 4096).decode() if ready else "hangs"
    os.close(reader)
    end = time.monotonic() + GUARD_S
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return said + ", and does not end"
        time.sleep(0.01)
    return said


@check
def forked_children(rank, size):
    """A child computes, is refused calls, and ends; the rank's group goes on."""
    tensor = torch.ones(4)
    for function, want in (
        (lambda: tensor.add(1).sum(), "nothing"),
        (lambda: dist.all_reduce(torch.ones(2)), "fork"),
        (lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor, 0)]), "fork"),
        (dist.destroy_process_group, "nothing"),
    ):
        for leave in (os._exit, sys.exit):
            said = in_child(function, leave)
            assert want in said and "hang" not in said and "not end" not in said, said
            works(rank, size)


@check
def forked_while_a_work_goes_on(rank, size):
    if size == 1:
        return
    received = torch.zeros(2)
    if rank == 0:
        work = dist.irecv(received, 1, tag=4)
        future = work.get_future()
        said = in_child(work.wait)
        assert "fork" in said, said
        said = in_child(lambda: None, sys.exit)
        assert said == "nothing", said
    dist.barrier()
    if rank == 1:
        dist.send(torch.ones(2), 0, tag=4)
    elif rank == 0:
        assert future.wait()[0].tolist() == [1, 1]
    works(rank, size)


@check
def workers_of_a_loader(rank, size):
    """DataLoader forks its workers beside the group."""
    data = torch.utils.data.TensorDataset(torch.arange(64.0).unsqueeze(1))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    for _ in range(2):
        loader = torch.utils.data.DataLoader(
            data, batch_size=8, num_workers=2, multiprocessing_context="fork"
        )
        batches = 0
        for (batch,) in loader:
            model(batch).mean().backward()
            batches += 1
        assert batches == 8
        works(rank, size)


@check
def works_of_a_group_that_was_destroyed(rank, size):
    """Those that were complete keep their results."""
    group = dist.new_group()
    right, left = (rank + 1) % size, (rank - 1) % size
    received, all_have = torch.zeros(1), torch.zeros(1)
    complete = [
        dist.irecv(received, left, group=group, tag=1),
        dist.isend(torch.ones(1), right, group=group, tag=1),
    ]
    while not all_have.item():
        dist.barrier(group)
        all_have = received.clone()
        dist.all_reduce(all_have, op=dist.ReduceOp.MIN)
    unmatched = dist.irecv(torch.zeros(1), left, group=group, tag=2)
    dist.destroy_process_group(group)
    for work in complete:
        assert work.wait() and work.is_completed() and work.is_success()
    # Its peer may have been faster.
    refuses(unmatched.wait, "the process group was destroyed", "has left")


@check
def negative_timeouts(rank, size):
    wrong = datetime.timedelta(seconds=-5)
    refuses(lambda: dist.new_group(timeout=wrong), "timeout of a process group is negative")
    refuses(lambda: dist.group.WORLD.set_timeout(wrong), "is negative: -5000 ms")
    works(rank, size)


@check
def batch_of_an_aborted_group(rank, size):
    """Its calls fail; without calls it is no error."""
    group = dist.new_group()
    dist.barrier()
    group.abort()
    with dist._coalescing_manager(group, CPU):
        pass
    refuses(lambda: group._start_coalescing(CPU) or dist.broadcast(torch.ones(1), 0, group))
    group._end_coalescing(CPU)
    dist.barrier()
    dist.destroy_process_group(group)


@check
def aborted_by_a_thread(rank, size):
    """The thread does not wait for the call; torch forgets the group, and makes another."""
    store = dist.distributed_c10d._get_default_store()
    errors = []

    def abort():
        try:
            dist.distributed_c10d._abort_process_group()
        except Exception as error:
            errors.append(error)
        store.set(f"aborted {rank}", "yes")

    store.set(f"here {rank}", "yes")
    store.wait([f"here {other}" for other in range(size)])
    if rank == 0:
        work = dist.all_reduce(torch.ones(1), async_op=True)
        thread = threading.Timer(0.3, abort)
        thread.start()
        if size > 1:
            refuses(work.wait, "aborts the process group")
        thread.join()
    else:
        store.wait(["aborted 0"])
        abort()
    assert not errors and not dist.is_initialized(), errors
    dist.init_process_group("dscomm", timeout=datetime.timedelta(seconds=60))
    works(rank, size)


if __name__ == "__main__":
    main("dscomm", timeout=datetime.timedelta(seconds=60))
