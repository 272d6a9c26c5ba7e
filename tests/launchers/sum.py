# SPDX-License-Identifier: BSD-3-Clause
# A program for torchrun that knows nothing of dscomm: the sum of all ranks.
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.tensor([rank])
dist.all_reduce(total)
sys.stdout.write(
    f"rank {rank} of {dist.get_world_size()}: "
    f"the sum of all ranks is {total.item()}\n"
)
sys.stdout.flush()
dist.destroy_process_group()
