# SPDX-License-Identifier: BSD-3-Clause
"""1-bit compressed all-reduce, written down once more with NumPy.

model.py write N SEED CASES FILE    cases for N ranks
model.py check N SEED CASES PREFIX  compares what the ranks wrote, prints TAP
"""

import sys

import numpy as np

F = np.float32
NATIVE, DEEPSPEED = 0, 1
SUM, AVG = 0, 4
TILE = 1024


def rms(v):
    """Root of the mean square; the sum in float64, the rest in float32."""
    total = np.sum(v.astype(np.float64) ** 2)
    return F(F(np.sqrt(total)) / F(np.sqrt(len(v))))


def signs(v):
    return np.where(v < 0, F(-1), F(1))


def near(v, scale):
    """Elements whose sign the last bit of a scale may have decided."""
    return bool(np.any((np.abs(v) < 1e-6 * scale) & (v != 0)))


class Model:
    def __init__(self, n, case):
        self.n, self.case = n, case
        if case["geometry"] == DEEPSPEED:
            unit = n * np.lcm(n, 8)
            self.total = case["padded"] or -(-case["count"] // unit) * unit
            self.chunk = self.total // n
        else:
            self.total = case["count"]
            self.chunk = -(-(-(-self.total // n)) // TILE) * TILE
        self.worker = [np.zeros(self.total, F) for _ in range(n)]
        self.server = [np.zeros(len(self.part(self.worker[0], j)), F)
                       for j in range(n)]
        self.doubtful = False

    def part(self, v, j):
        return v[j * self.chunk:(j + 1) * self.chunk]

    def all_reduce(self, buffers):
        sent = []
        for r, x in enumerate(buffers):
            u = np.concatenate([x, np.zeros(self.total - len(x), F)])
            u = u + self.worker[r]
            scale = rms(u)
            q = signs(u)
            self.doubtful |= near(u, scale)
            self.worker[r] = u - scale * q
            sent.append((scale, q))
        return np.concatenate([self.serve(j, sent) for j in range(self.n)])

    def serve(self, j, sent):
        factor = F(1) / F(self.n) if self.case["op"] == AVG else F(1)
        v = np.zeros(len(self.server[j]), F)
        if not len(v):
            return v
        for scale, q in sent:
            v = v + self.part(q, j) * F(scale * factor)
        v = v + self.server[j]
        scale = rms(v)
        self.doubtful |= near(v, scale)
        self.server[j] = v - scale * signs(v)
        return scale * signs(v)


def draw(n, seed, number):
    """The cases, and their buffers call by call: the same every time."""
    rng = np.random.default_rng([seed, n])
    for i in range(number):
        geometry = DEEPSPEED if i % 2 else NATIVE
        count = int(rng.choice([1, 2, 7, 8, 20, 100, 1000, 1024, 3001, 9000]))
        count += int(rng.integers(0, 3))
        padded = 0
        if geometry == DEEPSPEED and i % 3 == 0:
            padded = (-(-count // (8 * n)) + int(rng.integers(0, 3))) * 8 * n
        case = dict(geometry=geometry, op=SUM if i % 5 == 0 else AVG,
                    count=count, padded=padded, calls=int(rng.integers(1, 5)))
        scale = F(10.0 ** rng.integers(-6, 6))
        yield case, [[(rng.standard_normal(count) * scale).astype(F)
                      for _ in range(n)] for _ in range(case["calls"])]


def write(cases, path):
    with open(path, "wb") as file:
        file.write(np.int64(len(cases)).tobytes())
        for case, calls in cases:
            head = [case[k] for k in ("geometry", "op", "count", "padded",
                                      "calls")]
            file.write(np.array(head, np.int64).tobytes())
            for buffers in calls:
                file.write(np.concatenate(buffers).tobytes())


def agree(got, want, scale, part=1e-6):
    return len(got) == len(want) and bool(
        np.all(np.abs(got - want) <= part * (scale + np.abs(want))))


def wrongs(model, calls, files):
    """What differs, one after the other; all of the files' case is read."""
    case = model.case
    scale = max(float(np.max(np.abs(b))) for c in calls for b in c)
    results = [model.all_reduce(b)[:case["count"]] for b in calls]
    for r, file in enumerate(files):
        wanted = [(f"result {i}", w) for i, w in enumerate(results)]
        wanted += [("worker error", model.worker[r]),
                   ("server error", model.server[r])]
        for name, want in wanted:
            got = np.frombuffer(file.read(4 * len(want)), F)
            if not agree(got, want, scale):
                yield f"{name} of rank {r}"


def check(n, seed, number, prefix):
    files = [open(f"{prefix}.{r}", "rb") for r in range(n)]
    wrong = undecided = 0
    for case, calls in draw(n, seed, number):
        model = Model(n, case)
        what = list(wrongs(model, calls, files))
        if what and model.doubtful:
            undecided += 1
        elif what:
            print(f"# {case}: {what}")
            wrong += 1
    if any(file.read(1) for file in files):
        print("# there is more than was asked for")
        wrong += 1
    print(f"{number} cases on {n} ranks, {wrong} wrong; of {undecided} the last "
          "bit of a scale decides")
    return wrong or undecided > number // 20


if __name__ == "__main__":
    what, n, seed, number = sys.argv[1], *map(int, sys.argv[2:5])
    if what == "write":
        write(list(draw(n, seed, number)), sys.argv[5])
    else:
        sys.exit(1 if check(n, seed, number, sys.argv[5]) else 0)
