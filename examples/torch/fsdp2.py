# SPDX-License-Identifier: BSD-3-Clause
"""FSDP2: each rank has a part of every layer, and gathers a layer when it needs it."""

import digits
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main() -> None:
    options = digits.parser(__doc__).parse_args()
    _, size = digits.start(options.backend)
    mesh = init_device_mesh("cpu", (size,))
    model = torch.nn.Sequential(*digits.layers(3))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    digits.train(model, options)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
