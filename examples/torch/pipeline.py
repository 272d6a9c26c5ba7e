# SPDX-License-Identifier: BSD-3-Clause
"""Pipeline: each rank has a layer, and passes activations to the next rank."""

import digits
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

PARTS = 4  # of a batch, that are in different ranks at a time


def forward(layer: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Return the layer's output for what the rank before it has made of images."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank:
        images = torch.empty(len(images), 48)
        dist.recv(images, rank - 1)
    with torch.no_grad():
        output = layer(images)
    if rank < size - 1:
        dist.send(output, rank + 1)
    return output


def main() -> None:
    options = digits.parser(__doc__).parse_args()
    rank, size = digits.start(options.backend)
    layer = digits.layers(size)[rank]
    stage = PipelineStage(layer, rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, PARTS, loss_fn=torch.nn.functional.cross_entropy)
    optimizer = torch.optim.SGD(layer.parameters(), lr=options.rate, momentum=0.9)
    images, numbers = digits.load(options.data)
    for epoch in range(options.epochs):
        total = 0.0
        for batch in digits.batches(epoch):
            losses: list[torch.Tensor] = []  # of the parts; the last rank has them
            optimizer.zero_grad()
            inputs = (images[batch],) if rank == 0 else ()
            if rank == size - 1:
                schedule.step(*inputs, target=numbers[batch], losses=losses)
            else:
                schedule.step(*inputs)
            optimizer.step()
            total += sum(loss.item() for loss in losses) / PARTS
    output = forward(layer, images[digits.TRAIN :])
    if rank == size - 1:
        loss = total * digits.BATCH / digits.TRAIN
        digits.report(loss, output.argmax(1) == numbers[digits.TRAIN :])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
