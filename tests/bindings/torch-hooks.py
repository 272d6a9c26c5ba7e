# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of DistributedDataParallel with the hooks of dscomm_torch. The gradients that
they must give are computed by NumPy, from the gradients of all ranks."""

import datetime
import gc
import io
import math

import numpy as np
import torch
import torch.distributed as dist
from checks import check, main

import dscomm_torch

f32 = np.float32


class Vector(torch.nn.Module):
    """A vector whose gradient is what forward() got."""

    def __init__(self, count, dtype=torch.float32):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(count, dtype=dtype))

    def forward(self, gradient):
        return (self.weight * gradient).sum()


class Model:
    """A vector under DDP, with a hook."""

    def __init__(self, count, state, hook, dtype=torch.float32, group=None):
        self.ddp = torch.nn.parallel.DistributedDataParallel(
            Vector(count, dtype), process_group=group
        )
        self.ddp.register_comm_hook(state, hook)

    def reduce(self, gradient):
        """Return the gradient that DDP makes of the ranks' gradients."""
        self.ddp.zero_grad()
        self.ddp(torch.as_tensor(gradient).to(self.ddp.module.weight.dtype)).backward()
        return self.ddp.module.weight.grad.clone()


def gradients(count, step, size):
    """The gradients of all ranks in a step."""
    return [
        np.random.default_rng([step, rank]).standard_normal(count, dtype=f32)
        for rank in range(size)
    ]


def mean(vectors):
    """The mean as codecs with values compute it: scaled, then added by rank."""
    total = np.zeros_like(vectors[0])
    for vector in vectors:
        total = total + vector * f32(1 / len(vectors))
    return total


class CompressedAllReduce:
    """DeepSpeed's compressed_allreduce of all ranks, in NumPy. The parts are DeepSpeed's,
    or of whole tiles of 1024 elements."""

    def __init__(self, count, size, deepspeed):
        divider = size * math.lcm(size, 8)
        self.padded = -(-count // divider) * divider if deepspeed else count
        chunk = self.padded // size if deepspeed else -(-count // (1024 * size)) * 1024
        ends = [min(chunk * rank, self.padded) for rank in range(size + 1)]
        self.parts = [slice(a, b) for a, b in zip(ends, ends[1:])]
        self.worker = [np.zeros(self.padded, f32) for _ in range(size)]
        self.server = np.zeros(self.padded, f32)

    @staticmethod
    def signs(vector):
        """The signs, and the scale: the root of the mean square."""
        if not len(vector):
            return vector, f32(0)
        norm = f32(math.sqrt(np.sum(vector.astype(np.float64) ** 2)))
        return np.where(vector < 0, f32(-1), f32(1)), norm / f32(math.sqrt(len(vector)))

    def reduce(self, vectors):
        size = len(vectors)
        total = np.zeros(self.padded, f32)
        for rank, vector in enumerate(vectors):
            sent = np.pad(vector, (0, self.padded - len(vector))) + self.worker[rank]
            signs, scale = self.signs(sent)
            self.worker[rank] = sent - scale * signs
            total = total + signs * (scale * f32(1 / size))
        total = total + self.server
        result = np.zeros(self.padded, f32)
        for part in self.parts:
            signs, scale = self.signs(total[part])
            result[part] = scale * signs
        self.server = total - result
        return result[: len(vectors[0])]


def close(got, want):
    return np.allclose(got.numpy(), want, rtol=1e-6, atol=0)


@check
def onebit(rank, size):
    for count in (20, 5000):
        for deepspeed in (False, True):
            state = dscomm_torch.OnebitState(freeze_step=3, deepspeed=deepspeed)
            model = Model(count, state, dscomm_torch.onebit_hook)
            reference = CompressedAllReduce(count, size, deepspeed)
            for step in range(9):
                vectors = gradients(count, step, size)
                got = model.reduce(vectors[rank])
                if step < 3 or size == 1:
                    assert np.allclose(got.numpy(), mean(vectors), atol=1e-6)
                else:
                    assert close(got, reference.reduce(vectors)), (count, step)


@check
def onebit_as_deepspeed(rank, size):
    """What the class of DeepSpeed itself has computed."""
    if size != 2:
        return
    state = dscomm_torch.OnebitState(freeze_step=2, deepspeed=True)
    model = Model(20, state, dscomm_torch.onebit_hook)
    places = np.arange(20)
    wants = (
        ("-+-++-++-+--+-++-++-", 0.44249386, 0.58522344),
        ("-+++-+-+--+-+++-+-+-", 0.60983664, 0.78708303),
    )
    for _ in range(2):
        model.reduce(np.zeros(20))
    for step, (signs, first, second) in enumerate(wants):
        got = model.reduce((((7 * places + 3 * rank + 5 * step) % 11) - 5) / 4)
        want = np.where(places < 16, first, second)
        want *= [1 if sign == "+" else -1 for sign in signs]
        assert close(got, want), (got, want)


@check
def topk_of_all_elements(rank, size):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        state = dscomm_torch.TopkState(freeze_step=2, fraction=1)
        model = Model(5000, state, dscomm_torch.topk_hook, dtype)
        for step in range(5):
            whole = [np.round(8 * vector) for vector in gradients(5000, step, size)]
            got = model.reduce(whole[rank])
            if step >= 2:
                assert torch.equal(got, torch.as_tensor(mean(whole)).to(dtype)), dtype


@check
def topk_sends_the_rest_later(rank, size):
    """Half of the elements in each step: the largest first, the others next."""
    if size == 1:
        return
    state = dscomm_torch.TopkState(freeze_step=2, fraction=0.5)
    model = Model(4096, state, dscomm_torch.topk_hook)
    values = np.where(np.arange(4096) % 2, f32(3), f32(1))
    for _ in range(2):
        model.reduce(values)
    got = model.reduce(size * values)
    assert np.allclose(got.numpy(), np.where(values == 3, 3 * size, 0), atol=1e-4)
    got = model.reduce(0 * values)
    assert np.allclose(got.numpy(), np.where(values == 1, size, 0), atol=1e-4)


@check
def int8(rank, size):
    """An element is wrong by half a step of its 256 elements' scale in each phase."""
    count = 256 * 40
    for feedback in (False, True):
        state = dscomm_torch.Int8State(feedback=feedback)
        model = Model(count, state, dscomm_torch.int8_hook)
        total = np.zeros(count)
        for step in range(8):
            vectors = gradients(count, step, size)
            got = model.reduce(vectors[rank]).numpy()
            total += got.astype(np.float64) - np.mean(vectors, 0, dtype=np.float64)
            largest = np.abs(vectors).reshape(size, -1, 256).max((0, 2))
            bound = np.repeat(largest * (1 + 1 / 127) / 127 * 1.001, 256)
            if step == 2:
                assert (np.abs(total) <= bound).all()
        # What is missing is in the errors, half a step each; values are less than 6.
        assert not feedback or np.abs(total).max() <= 6 * (1 + 1 / 50) / 127
        assert size == 1 or np.abs(total).max() > 1e-6


@check
def several_buckets(rank, size):
    torch.manual_seed(3)
    layers = [torch.nn.Linear(200, 200) for _ in range(5)]
    alone = torch.nn.Sequential(*layers)
    hooked = torch.nn.Sequential(*[torch.nn.Linear(200, 200) for _ in range(5)])
    hooked.load_state_dict(alone.state_dict())
    ddp = torch.nn.parallel.DistributedDataParallel(hooked, bucket_cap_mb=0.2)
    state = dscomm_torch.TopkState(freeze_step=2, fraction=1)
    ddp.register_comm_hook(state, dscomm_torch.topk_hook)
    for step in range(5):
        data = torch.randn(6 * size, 200)
        alone.zero_grad()
        ddp.zero_grad()
        alone(data).pow(2).mean().backward()
        ddp(data[rank::size]).pow(2).mean().backward()
        for a, b in zip(alone.parameters(), hooked.parameters()):
            assert torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-7), step
    assert size == 1 or len(state.state_dict()["errors"]) > 2


@check
def saved_and_loaded(rank, size):
    def steps(first, count):
        return [
            model.reduce(gradients(3000, step, size)[rank])
            for step in range(first, first + count)
        ]

    for make, hook in (
        (dscomm_torch.OnebitState, dscomm_torch.onebit_hook),
        (dscomm_torch.Int8State, dscomm_torch.int8_hook),
        (dscomm_torch.TopkState, dscomm_torch.topk_hook),
    ):
        state = make(freeze_step=2)
        model = Model(3000, state, hook)
        steps(0, 6)
        file = io.BytesIO()
        torch.save(state.state_dict(), file)
        want = steps(6, 4)
        file.seek(0)
        state.load_state_dict(torch.load(file, weights_only=True))
        assert state.step == 6
        assert all(torch.equal(a, b) for a, b in zip(steps(6, 4), want))
        assert size == 1 or not torch.equal(steps(6, 1)[0], want[0])


@check
def loaded_by_a_new_process(rank, size):
    """Two plain steps, in which DDP finds its buckets; then the errors count."""
    if size == 1:
        return
    reference = CompressedAllReduce(3000, size, False)
    state = dscomm_torch.OnebitState(freeze_step=2)
    model = Model(3000, state, dscomm_torch.onebit_hook)
    for step in range(5):
        model.reduce(gradients(3000, step, size)[rank])
        if step >= 2:
            reference.reduce(gradients(3000, step, size))
    saved = state.state_dict()
    state = dscomm_torch.OnebitState(freeze_step=2)
    state.load_state_dict(saved)
    model = Model(3000, state, dscomm_torch.onebit_hook)
    for step in range(5, 10):
        vectors = gradients(3000, step, size)
        got = model.reduce(vectors[rank])
        if step < 7:
            assert np.allclose(got.numpy(), mean(vectors), atol=1e-6)
            assert torch.equal(state.state_dict()["errors"][0], saved["errors"][0])
        else:
            assert close(got, reference.reduce(vectors)), step


@check
def refusals(rank, size):
    def refuses(kind, text, function):
        try:
            function()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"no exception with '{text}'")

    refuses(ValueError, "at least 2", lambda: dscomm_torch.OnebitState(freeze_step=1))
    refuses(TypeError, "2.5", lambda: dscomm_torch.Int8State(freeze_step=2.5))
    refuses(TypeError, "group must be", lambda: dscomm_torch.Int8State("x"))
    for fraction in (0, 2, -0.1, math.nan, "x"):
        refuses(ValueError, "at most 1", lambda: dscomm_torch.TopkState(fraction=fraction))
    for make in (
        lambda: dscomm_torch.OnebitState(deepspeed="no"),
        lambda: dscomm_torch.Int8State(feedback=3),
    ):
        refuses(TypeError, "must be True or False", make)
    state = dscomm_torch.Int8State()
    refuses(ValueError, "codec, step and errors", lambda: state.load_state_dict({"step": 1}))
    one = torch.ones(1)
    for wrong in (
        *({"step": step} for step in ("x", -1, 2.5, True)),
        *({"errors": errors} for errors in (None, [one], {"0": one}, {-1: one}, {0: None})),
    ):
        bad = state.state_dict() | wrong
        refuses(ValueError, "a number of steps", lambda bad=bad: state.load_state_dict(bad))
    for hook, kind in (
        (dscomm_torch.onebit_hook, "OnebitState"),
        (dscomm_torch.topk_hook, "TopkState"),
    ):
        refuses(TypeError, f"needs a state of {kind}", lambda: hook(state, None))
    refuses(TypeError, "state of Int8State", lambda: dscomm_torch.int8_hook(None, None))
    other = dscomm_torch.OnebitState().state_dict()
    refuses(ValueError, "codec onebit", lambda: state.load_state_dict(other))
    if size == 1:
        return
    gloo = dist.new_group(backend="gloo")
    model = Model(8, dscomm_torch.Int8State(gloo), dscomm_torch.int8_hook, group=gloo)
    refuses(Exception, 'need a group of backend "dscomm"', lambda: model.reduce(np.ones(8)))
    state = dscomm_torch.Int8State()
    model = Model(300, state, dscomm_torch.int8_hook)
    for _ in range(3):
        model.reduce(np.ones(300))
    other = dscomm_torch.Int8State()
    other.load_state_dict(state.state_dict())
    model = Model(400, other, dscomm_torch.int8_hook)
    for _ in range(2):
        model.reduce(np.ones(400))
    refuses(Exception, "another number of elements", lambda: model.reduce(np.ones(400)))


@check
def group_that_ends_first(rank, size):
    group = dist.new_group()
    state = dscomm_torch.OnebitState(group, freeze_step=2)
    model = Model(100, state, dscomm_torch.onebit_hook, group=group)
    for _ in range(4):
        model.reduce(np.ones(100))
    dist.destroy_process_group(group)
    saved = state.state_dict()
    assert size == 1 or saved["errors"][0].numel() > 0
    del state, model, group
    gc.collect()


if __name__ == "__main__":
    main("dscomm", timeout=datetime.timedelta(seconds=60))
