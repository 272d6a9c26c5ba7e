# SPDX-License-Identifier: BSD-3-Clause
"""DDP, DeviceMesh, DTensor and FSDP2 on the CPU by the backend dscomm.

Started by torch's launcher. Every check runs with gloo's group of the same ranks and
with dscomm's; the results must be equal but for the order of sums. Rank 0 prints TAP."""

import datetime
import functools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import checks


def check(function):
    """A check of what function returns for a mesh of gloo's, and for one of dscomm's."""

    @functools.wraps(function)
    def compare(_rank, size):
        results = []
        for name in ("gloo", "dscomm"):
            group = dist.new_group(backend=name)
            mesh = DeviceMesh.from_group(group, "cpu", torch.arange(size))
            results.append(function(mesh))
        for want, got in zip(*results, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)

    return checks.check(compare)


def model_and_data():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
    data = torch.randn(8 * dist.get_world_size(), 12)
    return model, data.chunk(dist.get_world_size())[dist.get_rank()]


def steps(model, data):
    """Return the losses of some steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (model(data) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


@check
def ddp(mesh):
    model, data = model_and_data()
    parallel = DistributedDataParallel(
        model, process_group=mesh.get_group(), bucket_cap_mb=0.0005
    )
    return [steps(parallel, data), *model.parameters()]


@check
def ddp_static_graph(mesh):
    model, data = model_and_data()
    parallel = DistributedDataParallel(
        model,
        process_group=mesh.get_group(),
        static_graph=True,
        gradient_as_bucket_view=True,
    )
    return [steps(parallel, data), *model.parameters()]


@check
def ddp_sparse(mesh):
    """DDP sums the sparse gradients of an embedding."""
    torch.manual_seed(5)
    model = nn.Embedding(10, 4, sparse=True)
    parallel = DistributedDataParallel(model, process_group=mesh.get_group())
    parallel(torch.tensor([dist.get_rank(), 7, 7])).sum().backward()
    return [model.weight.grad.to_dense()]


@check
def fsdp2(mesh):
    model, data = model_and_data()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    losses = steps(model, data)
    return [losses, *(parameter.full_tensor() for parameter in model.parameters())]


@check
def fsdp2_mixed(mesh):
    from torch.distributed.fsdp import MixedPrecisionPolicy

    model, data = model_and_data()
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32
    )
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    losses = steps(model, data)
    return [losses, *(parameter.full_tensor() for parameter in model.parameters())]


@check
def redistribute(mesh):
    torch.manual_seed(7)
    whole = torch.randn(7, 9)  # unequal shards
    results = []
    for source in (Shard(0), Shard(1), Replicate()):
        for target in (Shard(0), Shard(1), Replicate()):
            tensor = distribute_tensor(whole, mesh, [source])
            tensor = tensor.redistribute(mesh, [target])
            results += [tensor.to_local(), tensor.full_tensor()]
    for target in (Shard(0), Shard(1), Replicate()):
        partial = DTensor.from_local(
            whole * (mesh.get_local_rank() + 1), mesh, [Partial()], run_check=False
        )
        results.append(partial.redistribute(mesh, [target]).to_local())
    return results


@check
def matmul(mesh):
    torch.manual_seed(9)
    a, b = torch.randn(8, 12), torch.randn(12, 4)
    results = []
    for left in (Shard(0), Shard(1), Replicate()):
        for right in (Shard(0), Shard(1), Replicate()):
            one = distribute_tensor(a, mesh, [left]).requires_grad_()
            other = distribute_tensor(b, mesh, [right])
            product = one @ other
            product.sum().backward()
            results += [product.full_tensor().detach(), one.grad.full_tensor()]
    return results


@check
def functional(mesh):
    """The functional collectives that DTensor and torch.compile use."""
    import torch.distributed._functional_collectives as functional

    group = (mesh, 0)
    size = mesh.size()
    tensor = torch.arange(4.0 * size).reshape(2 * size, 2) + mesh.get_local_rank()
    return [
        functional.all_reduce(tensor, "avg", group).clone(),
        functional.all_gather_tensor(tensor, 0, group).clone(),
        functional.reduce_scatter_tensor(tensor, "sum", 0, group).clone(),
        functional.all_to_all_single(tensor, None, None, group).clone(),
        functional.broadcast(tensor, size - 1, group).clone(),
        *functional.all_reduce_coalesced([tensor, tensor * 2], "max", group),
        *functional.all_gather_into_tensor_coalesced([tensor, tensor * 2], group),
    ]


def mesh_2d(_rank, _size):
    """A mesh of 2 by 2 ranks, of dscomm, by the public call; collective."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    torch.manual_seed(11)
    whole = torch.randn(6, 8)
    tensor = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    assert torch.equal(tensor.full_tensor(), whole)
    rank = torch.tensor([float(dist.get_rank())])
    row, column = rank.clone(), rank.clone()
    dist.all_reduce(row, group=mesh.get_group("shard"))
    dist.all_reduce(column, group=mesh.get_group("replicate"))
    first = 2 * (dist.get_rank() // 2)
    assert row.item() == 2 * first + 1
    assert column.item() == 2 * (dist.get_rank() % 2) + 2
    model, data = model_and_data()
    alone, _ = model_and_data()
    fully_shard(model, mesh=mesh)
    losses = [steps(model, data)]
    mean = DistributedDataParallel(alone, process_group=dist.group.WORLD)
    losses.append(steps(mean, data))
    assert torch.allclose(*losses, rtol=1e-4, atol=1e-5), losses


if __name__ == "__main__":
    if os.environ["WORLD_SIZE"] == "4":
        checks.check(mesh_2d)
    checks.main("dscomm", timeout=datetime.timedelta(seconds=60))
