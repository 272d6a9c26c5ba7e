# SPDX-License-Identifier: BSD-3-Clause
"""What the examples share: the images, a network, and the beginning of a job."""

import argparse
import gzip
import pathlib

import torch
import torch.distributed as dist

TRAIN = 1392  # images that are learned; the others are the test
BATCH = 48  # a multiple of 2, 3 and 4, so that these numbers of ranks learn the same
DATA = pathlib.Path(__file__).parent.parent / "digits" / "digits.csv.gz"


def parser(description: str) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--backend", choices=("dscomm", "gloo"), default="dscomm")
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--rate", type=float, default=0.1, help="of learning")
    options.add_argument("--data", default=DATA, help="digits.csv.gz")
    return options


def start(backend: str) -> tuple[int, int]:
    """Join the other ranks, and return rank and number of ranks."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    return dist.get_rank(), dist.get_world_size()


def load(path: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the images, pixels from 0 to 1, and their digits, in a fixed order."""
    with gzip.open(path, "rt") as lines:
        rows = torch.tensor([[int(word) for word in line.split(",")] for line in lines])
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))]
    return rows[:, :-1] / 16, rows[:, -1]


def layers(count: int) -> list[torch.nn.Module]:
    """Return a network's layers: 64 inputs, 48 neurons in between, 10 outputs."""
    sizes = [64] + [48] * (count - 1)
    inner = [
        torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU())
        for a, b in zip(sizes, sizes[1:])
    ]
    return [*inner, torch.nn.Linear(sizes[-1], 10)]


def batches(epoch: int) -> list[torch.Tensor]:
    """Return the places of the images of each batch, the same on all ranks."""
    order = torch.randperm(TRAIN, generator=torch.Generator().manual_seed(epoch))
    return list(order.split(BATCH))


def train(model: torch.nn.Module, options: argparse.Namespace) -> None:
    """Train with equal shares of each batch, and print what is reached."""
    rank, size = dist.get_rank(), dist.get_world_size()
    images, digits = load(options.data)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)
    for epoch in range(options.epochs):
        total = torch.zeros(())
        for batch in batches(epoch):
            mine = batch[rank::size]
            loss = torch.nn.functional.cross_entropy(model(images[mine]), digits[mine])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(mine) / TRAIN
    dist.all_reduce(total)
    with torch.no_grad():
        right = model(images[TRAIN:]).argmax(1) == digits[TRAIN:]
    if rank == 0:
        report(total.item(), right)


def report(loss: float, right: torch.Tensor) -> None:
    print(f"loss of the last epoch: {loss:.6f}", flush=True)
    print(f"test accuracy: {100 * right.float().mean().item():.2f} %", flush=True)
