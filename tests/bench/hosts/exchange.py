# SPDX-License-Identifier: BSD-3-Clause
"""exchange.c by torch.distributed over gloo; the same arguments and output."""

import statistics
import sys
import time

import torch
import torch.distributed as dist

WINDOW = 16


def calls_of(size):
    if size <= 4096:
        return 500
    return 2 if size >= 8 << 20 else (16 << 20) // size


def stream(rank, data, times):
    while times:
        count = min(times, WINDOW)
        works = [dist.irecv(data, 0) if rank else dist.isend(data, 1)
                 for _ in range(count)]
        for work in works:
            work.wait()
        times -= count


def run(what, rank, data, calls):
    if what == "all_reduce":
        for _ in range(calls):
            dist.all_reduce(data)
    elif rank > 1:
        return
    elif what == "bandwidth":
        answer = torch.zeros(1, dtype=torch.uint8)
        stream(rank, data, calls)
        dist.send(answer, 0) if rank else dist.recv(answer, 1)
    else:
        for _ in range(calls):
            dist.recv(data, 0) if rank else dist.send(data, 1)
            dist.send(data, 0) if rank else dist.recv(data, 1)


def main():
    what, size = sys.argv[1], int(sys.argv[2])
    batches = int(sys.argv[3]) if len(sys.argv) > 3 else 11
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    calls = calls_of(size)
    messages = 2 * calls if what == "latency" else calls
    # Zeros stay zeros, however often they are summed in place.
    data = (torch.zeros(size // 4) if what == "all_reduce"
            else torch.ones(size, dtype=torch.uint8))
    run(what, rank, data, max(calls // 2, 1))
    cpu = time.process_time()
    times = []
    for _ in range(batches):
        begin = time.perf_counter()
        run(what, rank, data, calls)
        times.append((time.perf_counter() - begin) / messages * 1e6)
    cpu = time.process_time() - cpu
    if rank == 0:
        print("%.3f us %.4f ns/B" % (statistics.median(times),
                                     cpu * 1e9 / messages / batches / size))
    dist.barrier()
    dist.destroy_process_group()


main()
