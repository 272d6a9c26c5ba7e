# SPDX-License-Identifier: BSD-3-Clause
"""Ranks under mpirun or srun use mpi4py and torch.distributed by turns.

Rank 0 prints TAP."""

import datetime

import dscomm_torch
import torch
import torch.distributed as dist
from mpi4py import MPI

ROUNDS = 20


def main():
    comm = MPI.COMM_WORLD
    dscomm_torch.init_from_mpi(timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    same = (rank, size) == (comm.rank, comm.size)
    sums, rings = True, True
    right, left = (rank + 1) % size, (rank - 1) % size
    works = []
    for turn in range(ROUNDS):
        # A work of torch's goes on while MPI communicates.
        tensor = torch.full((10_000,), float(rank + turn))
        works.append((tensor, dist.all_reduce(tensor, async_op=True)))
        rings &= comm.sendrecv(rank + turn, right, source=left) == left + turn
        array = torch.full((100,), float(rank * turn))
        comm.Allreduce(MPI.IN_PLACE, array.numpy())
        sums &= bool((array == turn * size * (size - 1) / 2).all())
        dist.barrier()
    for turn, (tensor, work) in enumerate(works):
        work.wait()
        sums &= bool((tensor == size * (size - 1) / 2 + size * turn).all())
    results = comm.gather((same, sums, rings))
    if rank == 0:
        print("1..3")
        for number, name in enumerate(("ranks", "sums", "messages")):
            word = "ok" if all(result[number] for result in results) else "not ok"
            print(f"{word} {number + 1} - mpi4py and torch: {name}, {size} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
