# SPDX-License-Identifier: BSD-3-Clause
"""1-bit compressed all-reduce by DeepSpeed's own class.

deepspeed.py write N SEED CASES FILE              cases for N ranks
deepspeed.py check N SEED CASES PREFIX SOURCE     compares what the ranks wrote

SOURCE is DeepSpeed's source package, of a release that still has the class for
MPI. NumPy stands in for CuPy, and threads with queues for MPI.

The class sums squares, and ranks, by PyTorch, which sums in float32 and in an
order of its own. With both sums made definite, squares in float64 and ranks in
order, bits are equal; as it is, values are near."""

import functools
import queue
import sys
import tarfile
import threading
import types

import model
import numpy as np
import torch
from torch.utils import dlpack

WAIT = 60  # seconds, at most, for a message
# The class sums squares in float32: a scale is off by some 3e-6 of itself.
PART = 5e-6


class Request:
    @staticmethod
    def Waitall(requests):
        for request in requests:
            if request:
                request()


class Comm:
    """What the class uses of a communicator."""

    def __init__(self, rank, size, queues):
        self.rank, self.size, self.queues = rank, size, queues

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def Isend(self, array, dest):
        self.queues[self.rank, dest].put(np.array(array))

    def Irecv(self, array, source):
        def finish():
            got = self.queues[source, self.rank].get(timeout=WAIT)
            array[...] = got.reshape(array.shape)

        return finish

    def Allgather(self, array, gathered):
        for dest in range(self.size):
            self.Isend(array, dest)
        for source in range(self.size):
            self.Irecv(gathered[source:source + 1], source)()

    def Barrier(self):
        pass


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def load(source):
    """The class, with NumPy for CuPy; and the module in which it finds MPI."""
    stream = types.SimpleNamespace(synchronize=lambda: None)
    device = types.SimpleNamespace(use=lambda: None)
    stand_in("cupy", asnumpy=np.asarray, asarray=np.asarray, zeros=np.zeros,
             packbits=np.packbits, unpackbits=np.unpackbits, split=np.split,
             from_dlpack=lambda capsule: dlpack.from_dlpack(capsule).numpy(),
             cuda=types.SimpleNamespace(get_current_stream=lambda: stream,
                                        Device=lambda number: device))
    mpi = stand_in("mpi4py.MPI", Request=Request)
    stand_in("mpi4py", MPI=mpi)
    with tarfile.open(source) as package:
        for path in ("runtime/comm/utils", "runtime/compression/cupy",
                     "runtime/comm/mpi"):
            inside = next(n for n in package.getnames()
                          if n.endswith(f"/deepspeed/{path}.py"))
            text = package.extractfile(inside).read()
            module = stand_in("deepspeed." + path.replace("/", "."))
            exec(compile(text, inside, "exec"), module.__dict__)
    return sys.modules["deepspeed.runtime.comm.mpi"].MpiBackend, mpi


def run_rank(backend, model_, calls, results, errors):
    rank = backend.rank
    worker = torch.zeros(model_.total)
    server = torch.zeros(model_.chunk)
    for buffers in calls:
        buffer = torch.from_numpy(buffers[rank].copy())
        out = backend.compressed_allreduce(buffer, worker, server, 0)
        results[rank].append(out.numpy().copy())
    errors[rank] = worker.numpy(), server.numpy()


def run(MpiBackend, mpi, n, case, calls):
    queues = {(a, b): queue.Queue() for a in range(n) for b in range(n)}
    results, errors = [[] for _ in range(n)], [None] * n
    threads = []
    for rank in range(n):
        mpi.COMM_WORLD = Comm(rank, n, queues)
        backend = MpiBackend(cuda_aware=False)
        threads.append(threading.Thread(target=run_rank, args=(
            backend, model.Model(n, case), calls, results, errors)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, errors


def exact_norm(vector):
    squares = np.sum(vector.numpy().astype(np.float64) ** 2)
    return torch.tensor(float(np.sqrt(squares)), dtype=torch.float32)


def make_definite():
    torch.linalg.norm = exact_norm
    torch.Tensor.sum = lambda rows, dim: functools.reduce(torch.add, rows)


def drawn(n, seed, number):
    """Those that the class can do: padded, and the mean."""
    return [(case, calls) for case, calls in model.draw(n, seed, number)
            if case["geometry"] == model.DEEPSPEED and case["op"] == model.AVG]


# part: how far values may be apart; 0: not at all
def check(n, seed, number, prefix, source, part):
    MpiBackend, mpi = load(source)
    files = [open(f"{prefix}.{r}", "rb") for r in range(n)]
    wrong = undecided = done = 0
    for case, calls in drawn(n, seed, number):
        reference = model.Model(n, case)
        for buffers in calls:
            reference.all_reduce(buffers)
        scale = max(float(np.max(np.abs(b))) for c in calls for b in c)
        results, errors = run(MpiBackend, mpi, n, case, calls)
        differs = False
        for r, file in enumerate(files):
            for want in results[r] + list(errors[r]):
                got = np.frombuffer(file.read(4 * len(want)), np.float32)
                differs |= not model.agree(got, want, scale, part)
        done += 1
        undecided += differs and reference.doubtful
        if differs and not (part and reference.doubtful):
            print(f"# {case}")
            wrong += 1
    print(f"{done} cases on {n} ranks, {wrong} not within {part}; of "
          f"{undecided} the last bit of a scale decides")
    return wrong or not done or undecided > done // 10


if __name__ == "__main__":
    what, n, seed, number = sys.argv[1], *map(int, sys.argv[2:5])
    if what == "write":
        model.write(drawn(n, seed, number), sys.argv[5])
    else:
        as_is = check(n, seed, number, *sys.argv[5:7], PART)
        make_definite()
        definite = check(n, seed, number, *sys.argv[5:7], 0)
        sys.exit(1 if as_is or definite else 0)
