# SPDX-License-Identifier: BSD-3-Clause
"""DistributedDataParallel: each rank has the network and a share of each batch."""

import digits
import torch
import torch.distributed as dist


def compress(model: torch.nn.parallel.DistributedDataParallel, codec: str) -> None:
    import dscomm_torch

    state, hook = {
        "onebit": (dscomm_torch.OnebitState, dscomm_torch.onebit_hook),
        "int8": (dscomm_torch.Int8State, dscomm_torch.int8_hook),
        "topk": (dscomm_torch.TopkState, dscomm_torch.topk_hook),
    }[codec]
    model.register_comm_hook(state(), hook)


def main() -> None:
    parser = digits.parser(__doc__)
    parser.add_argument("--compress", choices=("onebit", "int8", "topk"))
    options = parser.parse_args()
    digits.start(options.backend)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*digits.layers(3))
    )
    if options.compress:
        compress(model, options.compress)
    digits.train(model, options)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
