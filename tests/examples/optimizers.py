# SPDX-License-Identifier: BSD-3-Clause
"""The optimizers of examples/optimizers, after their papers, with NumPy.

optimizers.py write METHOD N FILE    steps for N ranks
optimizers.py check METHOD N PREFIX  compares what the ranks wrote

A METHOD that ends in "+layers" has scales of its own for each layer.
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "compression"))
import model  # noqa: E402

F = np.float32
METHODS = ["onebit-adam", "onebit-lamb", "zero-one-adam"]
STEPS = 60
# A layer without weights, one whose weights begin at zero, one without gradient
SIZES = [1300, 7, 0, 900, 10]
ZERO_WEIGHTS, ZERO_GRADIENT = 1, 4
NUMBERS = dict(warmup=16, variance_doubling=3, local_doubling=10, local_max=4)
# epsilon is large, so that where it stands makes a difference.
FACTORS = {k: F(v) for k, v in dict(
    rate=0.02, beta1=0.9, beta2=0.9, epsilon=0.05,
    coefficient_min=0.3, coefficient_max=3, coefficient_beta=0.8,
    ratio_min=0.5, ratio_max=1.3, ratio_change=0.02).items()}
# What the roundings of all steps come to, with fused multiply-add as without
ROUNDING = 5e-6
# With these, no sign is decided by the last bit of a number.
SEEDS = {"onebit-adam": {1: 1, 2: 1, 4: 2},
         "onebit-lamb": {1: 4, 2: 1, 4: 1},
         "zero-one-adam": {1: 2, 2: 1, 4: 2},
         "onebit-adam+layers": {4: 2},
         "zero-one-adam+layers": {4: 1}}


class Signs(model.Model):
    """Averages as dscomm_compressor_all_reduce() does, but for what is masked."""

    def __init__(self, n, count):
        super().__init__(n, dict(geometry=model.NATIVE, op=model.AVG,
                                 count=count, padded=0))
        self.mask = np.zeros(count, F)
        self.calls = 0

    def all_reduce(self, buffers):
        self.calls += 1
        out = super().all_reduce([b * self.mask for b in buffers]) * self.mask
        self.worker = [e * self.mask for e in self.worker]
        return out

    def serve(self, j, sent):
        out = super().serve(j, [(s, q * self.mask) for s, q in sent])
        self.server[j] *= self.part(self.mask, j)
        return out


class LayerSigns:
    """The same for each layer."""

    def __init__(self, n):
        ends = np.cumsum(SIZES)
        self.layers = [slice(e - s, e) for s, e in zip(SIZES, ends) if s]
        self.signs = [Signs(n, l.stop - l.start) for l in self.layers]
        self.calls = 0

    def all_reduce(self, buffers):
        self.calls += 1
        return np.concatenate([s.all_reduce([b[l] for b in buffers])
                               for s, l in zip(self.signs, self.layers)])

    @property
    def doubtful(self):
        return any(s.doubtful for s in self.signs)

    @property
    def mask(self):
        return np.concatenate([s.mask for s in self.signs])

    @mask.setter
    def mask(self, mask):
        for s, l in zip(self.signs, self.layers):
            s.mask = mask[l]


class Optimizer:
    def __init__(self, n, weights, by_layer):
        self.n = n
        self.__dict__.update(NUMBERS, **FACTORS)
        self.x = [weights.copy() for _ in range(n)]
        self.m = np.zeros_like(weights)
        self.v = np.zeros_like(weights)
        self.signs = LayerSigns(n) if by_layer else Signs(n, len(weights))
        self.t = self.averages = 0
        self.seen = set()

    def mean(self, gradients):
        self.averages += 1
        return sum(gradients[1:], gradients[0]) / F(self.n)

    def decay(self, average, value, beta):
        return beta * average + (F(1) - beta) * value

    def freeze(self):
        self.signs.mask = (self.v > 0).astype(F)

    def sync(self):
        pass


class OnebitAdam(Optimizer):
    """Algorithm 1 of arXiv:2102.02888"""

    def step(self, gradients):
        if self.t < self.warmup:
            g = self.mean(gradients)
            self.m = self.decay(self.m, g, self.beta1)
            self.v = self.decay(self.v, g * g, self.beta2)
        else:
            self.m = self.signs.all_reduce(
                [self.decay(self.m, g, self.beta1) for g in gradients])
        self.t += 1
        if self.t == self.warmup:
            self.freeze()
        step = self.rate * self.m / (np.sqrt(self.v) + self.epsilon)
        self.x = [x - step for x in self.x]


def norm(v):
    return np.sqrt(np.sum(v.astype(np.float64) ** 2))


class OnebitLamb(Optimizer):
    """Algorithm 1 of arXiv:2104.06069"""

    def __init__(self, n, weights, by_layer):
        super().__init__(n, weights, by_layer)
        self.c = [F(0)] * len(SIZES)
        self.r = [F(1)] * len(SIZES)
        ends = np.cumsum(SIZES)
        self.layers = [slice(e - s, e) for s, e in zip(SIZES, ends)]

    def within(self, x, low, high, name):
        self.seen |= {name + " low"} if x < low else set()
        self.seen |= {name + " high"} if x > high else set()
        return min(max(F(x), F(low)), F(high))

    def warm_up(self, gradients):
        g = self.mean(gradients)
        self.m = self.decay(self.m, g, self.beta1)
        self.v = self.decay(self.v, g * g, self.beta2)
        u = self.m / (np.sqrt(self.v) + self.epsilon)
        for i, layer in enumerate(self.layers):
            x = self.x[0][layer]
            c = F(1)
            if norm(x) and norm(u[layer]):
                c = self.within(norm(x) / norm(u[layer]), self.coefficient_min,
                                self.coefficient_max, "coefficient")
            self.c[i] = self.decay(self.c[i], c, self.coefficient_beta)
            for x in self.x:
                x[layer] = x[layer] - self.rate * c * u[layer]

    def freeze(self):
        super().freeze()
        self.fresh = self.v.copy()
        sizes = [norm(self.m[l]) / np.sqrt(n) if n else 0
                 for l, n in zip(self.layers, SIZES)]
        mean = np.mean(sizes)
        self.scale = np.ones_like(self.m)
        for layer, s in zip(self.layers, sizes):
            self.scale[layer] = F(mean) / F(s) if s else 1

    def compressed(self, gradients):
        last = self.m
        self.m = self.signs.all_reduce(
            [self.decay(last, g, self.beta1) * self.scale
             for g in gradients]) / self.scale
        g = (self.m - self.beta1 * last) / (F(1) - self.beta1)
        self.fresh = self.decay(self.fresh, g * g, self.beta2)
        frozen = np.sqrt(self.v) + self.epsilon
        ratios = frozen / (np.sqrt(self.fresh) + self.epsilon)
        for i, layer in enumerate(self.layers):
            r = np.max(ratios[layer], initial=0)
            r = self.within(r, self.ratio_min, self.ratio_max, "ratio")
            self.r[i] = self.within(r, self.r[i] * (F(1) - self.ratio_change),
                                    self.r[i] * (F(1) + self.ratio_change),
                                    "change")
            step = self.rate * (self.c[i] * self.r[i]) * (self.m / frozen)
            for x in self.x:
                x[layer] = x[layer] - step[layer]

    def step(self, gradients):
        if self.t < self.warmup:
            self.warm_up(gradients)
        else:
            self.compressed(gradients)
        self.t += 1
        if self.t == self.warmup:
            self.freeze()


class ZeroOneAdam(Optimizer):
    """Algorithm 1 of arXiv:2202.06009"""

    def __init__(self, n, weights, by_layer):
        super().__init__(n, weights, by_layer)
        self.m = [self.m.copy() for _ in range(n)]
        self.u = [np.zeros_like(weights) for _ in range(n)]
        self.start = weights.copy()
        self.rates = F(0)
        self.variances = [0]  # T_v, by the rule k_j+1 = k_j + 2^floor(j / kappa)
        while self.variances[-1] < self.warmup:
            j = len(self.variances) - 1
            self.variances.append(self.variances[-1] +
                                  2 ** (j // self.variance_doubling))
        self.variances.pop()
        self.meetings = [0]  # T_u
        while self.meetings[-1] < STEPS:
            t = self.meetings[-1]
            alone = max(t - self.warmup, 0) // self.local_doubling
            self.meetings.append(t + min(2 ** alone, self.local_max))

    def sync(self):
        if not self.rates:
            return
        u = self.signs.all_reduce(self.u)
        self.m = [u / self.rates for _ in self.m]
        x = self.start - u / np.sqrt(self.v + self.epsilon)
        self.x = [x.copy() for _ in self.x]
        self.start = x
        self.u = [np.zeros_like(u) for _ in self.u]
        self.rates = F(0)

    def step(self, gradients):
        if self.t == 0:
            self.v = self.mean(gradients) ** 2
            self.averages -= 1  # it is averaged once, for both
            self.freeze()
        for i, g in enumerate(gradients):
            self.m[i] = self.decay(self.m[i], g, self.beta1) * self.signs.mask
            self.x[i] = self.x[i] - (self.rate * self.m[i] /
                                     np.sqrt(self.v + self.epsilon))
            self.u[i] = self.u[i] + self.rate * self.m[i]
        self.rates = self.rates + self.rate
        if self.t in self.meetings:
            self.sync()
        if self.t in self.variances:
            self.v = self.decay(self.v, self.mean(gradients) ** 2, self.beta2)
            self.freeze()
        self.t += 1


def draw(method, n):
    """Weights, and the gradients of every step and rank."""
    rng = np.random.default_rng([2102, 2888, SEEDS[method][n]])
    layer = np.repeat(np.arange(len(SIZES)), SIZES)
    count = len(layer)
    weights = rng.standard_normal(count).astype(F)
    weights[layer == ZERO_WEIGHTS] = 0
    drift = rng.standard_normal(count) * np.where(rng.random(count) < 0.05, 8, 1)
    size = np.array([1, 20, 1, 0.2, 0])[layer]
    # Later the gradients of one layer fade, and those of another grow.
    trend = np.array([-0.1, 0, 0, 0.05, 0])[layer]
    none = rng.random(count) < 0.02
    # None until the last step of the warm-up, or until after it
    first = rng.choice([0, NUMBERS["warmup"] - 1, 30], count, p=[.96, .02, .02])
    steps = []
    for t in range(STEPS):
        now = size * np.exp(trend * max(t - NUMBERS["warmup"], 0))
        now = np.where(none | (t < first), 0, now)
        steps.append([(now * (drift + rng.standard_normal(count))).astype(F)
                      for _ in range(n)])
    return weights, steps


def write(method, n, path):
    weights, steps = draw(method, n)
    name, _, layers = method.partition("+")
    numbers = [METHODS.index(name), len(SIZES), STEPS, *NUMBERS.values(),
               layers == "layers"]
    with open(path, "wb") as file:
        file.write(np.array(numbers, np.int64).tobytes())
        file.write(np.array(list(FACTORS.values()), F).tobytes())
        file.write(np.array(SIZES, np.int64).tobytes())
        file.write(weights.tobytes())
        for gradients in steps:
            file.write(np.concatenate(gradients).tobytes())


def bytes_differ(o, n, rank, sent, plain):
    """Each rank gets its part from the others and gives them the result: a bit
    an element, with a header and a scale in front of each row."""
    ring = 2 * (n - 1) * sum(SIZES) * 4 // n
    if plain != STEPS * ring:
        return f"{plain} bytes are not {STEPS} times {ring}"
    each = getattr(o.signs, "signs", [o.signs])
    calls, signs = o.signs.calls, 0
    for s in each:
        parts = [min(max(s.total - r * s.chunk, 0), s.chunk) for r in range(n)]
        bits = [(part + 7) // 8 for part in parts]
        signs += calls * (sum(bits) + (n - 2) * bits[rank])
    rows = 2 * (n - 1) * calls * len(each)
    rest = sent - o.averages * ring - signs
    if rest % rows if rows else rest:
        return f"rank {rank}: {rest} bytes are not of {rows} rows"
    if rows and not 4 <= rest // rows <= 128:
        return f"rank {rank}: {rest // rows} bytes beside the signs of a row"
    return None


def differ(o, steps, files):
    """What differs first, or None"""
    n = len(files)
    for t in range(STEPS + 1):
        o.step(steps[t]) if t < STEPS else o.sync()
        for rank, file in enumerate(files):
            want = o.x[rank]
            got = np.frombuffer(file.read(4 * len(want)), F)
            if len(got) != len(want):
                return f"rank {rank} has written less than {t + 1} steps"
            off = np.abs(got - want) / np.maximum(1, np.abs(want))
            if not np.max(off) <= ROUNDING:
                return (f"step {t}, rank {rank}: weight {np.argmax(off)} is "
                        f"off by {np.max(off)}")
    for rank, file in enumerate(files):
        got = np.frombuffer(file.read(), np.int64)
        wrong = bytes_differ(o, n, rank, *got)
        if wrong:
            return wrong
    return None


def check(method, n, prefix):
    weights, steps = draw(method, n)
    name, _, layers = method.partition("+")
    o = {"onebit-adam": OnebitAdam, "onebit-lamb": OnebitLamb,
         "zero-one-adam": ZeroOneAdam}[name](n, weights, layers == "layers")
    files = [open(f"{prefix}.{r}", "rb") for r in range(n)]
    with np.errstate(invalid="raise", divide="raise"):
        wrong = differ(o, steps, files)
    if wrong:
        print(wrong)
    if o.signs.doubtful:
        print("the last bit of a number decides a sign: another seed is due")
    bounds = {f"{name} {end}" for name in ("coefficient", "ratio", "change")
              for end in ("low", "high")}
    if method == "onebit-lamb" and o.seen != bounds:
        print(f"not seen: {bounds - o.seen}")
        return True
    print(f"{o.averages} averages in floats, {o.signs.calls} in signs")
    return bool(wrong) or o.signs.doubtful


if __name__ == "__main__":
    what, method, n, path = sys.argv[1:5]
    if what == "write":
        write(method, int(n), path)
    else:
        sys.exit(1 if check(method, int(n), path) else 0)
