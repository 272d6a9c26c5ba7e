# SPDX-License-Identifier: BSD-3-Clause
"""Ranks with tensors on CUDA devices, real ones or those of fake-cuda.c.

Rank 0 prints TAP. fake-cuda.c has no kernels: elements come from the host and go
there."""

import datetime
import threading

import torch
import torch.distributed as dist

from checks import check, main


def late(values, device="cuda"):
    """A tensor on a device whose elements come later, on the current stream."""
    tensor = torch.empty(len(values), device=device)
    tensor.copy_(torch.tensor(values).pin_memory(), non_blocking=True)
    return tensor


def total(size):
    return size * (size - 1) / 2


@check
def ordered_after_the_current_stream(rank, size):
    tensor = late([float(rank)] * 5)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [total(size)] * 5
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        tensor = late([float(rank), 1.0])
        work = dist.all_reduce(tensor, async_op=True)
        work.wait()
        assert work.is_completed()
        assert tensor.tolist() == [total(size), size]


@check
def calls_under_way(rank, size):
    tensors = [late([float(rank + i)] * 1000) for i in range(4)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, work in reversed(list(enumerate(works))):
        work.wait()
        assert tensors[i][999].item() == total(size) + i * size


@check
def lists(rank, size):
    outputs = [late([-1.0] * 3) for _ in range(size)]
    dist.all_gather(outputs, late([float(rank)] * 3))
    assert [out.tolist() for out in outputs] == [[float(r)] * 3 for r in range(size)]
    output = late([-1.0] * 2)
    dist.reduce_scatter(output, [late([float(r + rank)] * 2) for r in range(size)])
    assert output.tolist() == [total(size) + rank * size] * 2
    outputs = [late([-1.0]) for _ in range(size)]
    work = dist.all_to_all(
        outputs, [late([10.0 * rank + r]) for r in range(size)], async_op=True
    )
    work.wait()
    assert [out.item() for out in outputs] == [10.0 * r + rank for r in range(size)]


@check
def tensors_of_another_device(rank, size):
    if torch.cuda.device_count() < 2:
        return
    assert torch.cuda.current_device() == 0
    tensor = late([float(rank)] * 3, "cuda:1")
    dist.broadcast(tensor, src=size - 1)
    assert tensor.tolist() == [size - 1.0] * 3
    assert torch.cuda.current_device() == 0
    try:
        dist.all_gather_into_tensor(late([0.0] * size, "cuda:0"), tensor[:1])
    except Exception as error:
        assert "on one device" in str(error), error
    else:
        raise AssertionError("tensors of two devices are accepted")


@check
def callbacks_of_futures(rank, size):
    done, seen = threading.Event(), []
    outputs = [late([-1.0] * 2) for _ in range(size)]
    work = dist.all_gather(outputs, late([float(rank)] * 2), async_op=True)
    future = work.get_future()

    def copy(ended):
        seen.extend(value.cpu().tolist() for value in ended.value())
        done.set()

    future.then(copy)
    assert done.wait(30), "the callback of a future did not run"
    assert seen == [[float(r)] * 2 for r in range(size)]
    future = dist.all_reduce(outputs[0], async_op=True).get_future()
    future.wait()
    assert outputs[0].tolist() == [0.0] * 2


@check
def coalesced(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    received = late([-1.0] * 3)
    for request in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, late([float(rank)] * 3), right),
            dist.P2POp(dist.irecv, received, left),
        ]
    ):
        request.wait()
    assert received.tolist() == [float(left)] * 3
    tensors = [late([float(rank + i)] * 2) for i in range(3)]
    device = torch.device("cuda:0")
    with dist._coalescing_manager(device=device, async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for i, tensor in enumerate(tensors):
        assert tensor[1].item() == total(size) + i * size


@check
def messages(rank, size):
    if rank == 0:
        for other in range(1, size):
            tensor = late([-1.0])
            source = dist.recv(tensor)
            assert tensor.item() == source
    else:
        dist.send(late([float(rank)]), 0)


@check
def barriers_wait_for_the_device(rank, size):
    tensor = late([1.0])
    event = torch.cuda.current_stream().record_event()
    dist.barrier(device_ids=[0])
    assert event.query()
    assert tensor.item() == 1.0


@check
def beside_the_cpu(rank, size):
    tensor, other = torch.tensor([float(rank)]), late([float(rank)])
    works = [dist.all_reduce(each, async_op=True) for each in (tensor, other)]
    for work in works:
        work.wait()
    assert tensor.item() == other.item() == total(size)


if __name__ == "__main__":
    torch.cuda.set_device(0)
    main(
        "cpu:dscomm,cuda:dscomm",
        timeout=datetime.timedelta(seconds=60),
        device_id=torch.device("cuda:0"),
    )
