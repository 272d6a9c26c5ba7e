# SPDX-License-Identifier: BSD-3-Clause
"""Communication hooks of DistributedDataParallel that send compressed gradients.

    state = dscomm_torch.OnebitState(freeze_step=100)
    model.register_comm_hook(state, dscomm_torch.onebit_hook)

The mean of the gradients is that of libdscomm-compression, dscomm_compressor(3): what
compression loses in one step is added in the next. The group's backend must be dscomm.
"""

import numbers
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

# Steps after which DDP's buckets are final, as for torch's PowerSGD hook.
_REBUILT = 2


class CompressionState:
    """What a hook keeps for one model: the step, and a compressor for each bucket.

    The first freeze_step steps, and the first two of a process, are plain all_reduce,
    because DDP arranges its buckets anew after the first one. All ranks must make it
    with the same arguments.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None,
        codec: str,
        *,
        freeze_step: int,
        feedback: bool = True,
        deepspeed: bool = False,
        parameter: float = 0.0,
    ) -> None:
        if not isinstance(freeze_step, numbers.Integral):
            raise TypeError(f"freeze_step must be an integer, not {freeze_step!r}")
        for name, value in (("feedback", feedback), ("deepspeed", deepspeed)):
            if type(value) is not bool:
                raise TypeError(f"{name} must be True or False, not {value!r}")
        if not isinstance(group, dist.ProcessGroup | None):
            raise TypeError(
                "group must be a process group with this rank in it, or None for the "
                f"default one, not {group!r}"
            )
        if freeze_step < _REBUILT:
            raise ValueError(
                f"freeze_step is {freeze_step}; it must be at least {_REBUILT}, because "
                "DDP arranges its buckets anew after the first step"
            )
        self.group = group
        self.codec = codec
        self.freeze_step = freeze_step
        self.step = 0
        self._options = (codec, feedback, deepspeed, parameter)
        self._seen = 0  # steps of this process
        self._compressors: dict[int, Any] = {}
        self._loaded: dict[int, torch.Tensor] = {}  # errors of compressors to come

    def reduce(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Make the bucket the mean of all ranks', as DDP wants it of a hook."""
        from . import _C

        buffer = bucket.buffer()
        backend = self._backend(buffer.device)
        plain = min(self.step - self.freeze_step, self._seen - _REBUILT) < 0
        if bucket.is_last():
            self.step += 1
            self._seen += 1
        if plain or dist.get_world_size(self.group) == 1:
            work = dist.all_reduce(
                buffer, op=dist.ReduceOp.AVG, group=self.group, async_op=True
            )
        else:
            compressor = self._compressor(bucket.index(), buffer.numel(), backend)
            work = compressor.all_reduce(buffer)
        return _C.tensor_future(work)

    def state_dict(self) -> dict[str, Any]:
        """Return this rank's state; other ranks have other errors."""
        errors = self._loaded | {
            index: compressor.save() for index, compressor in self._compressors.items()
        }
        return {"codec": self.codec, "step": self.step, "errors": errors}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state that state_dict() has returned on the same rank."""
        if not isinstance(state, Mapping) or not {"codec", "step", "errors"} <= set(state):
            raise ValueError(
                "the state is not what state_dict() returns: a dictionary with codec, "
                "step and errors"
            )
        if state["codec"] != self.codec:
            raise ValueError(
                f"the state is of codec {state['codec']}, the hook's is {self.codec}"
            )
        step, errors = state["step"], state["errors"]
        right = isinstance(errors, Mapping) and all(
            type(bucket) is int and bucket >= 0 and isinstance(error, torch.Tensor)
            for bucket, error in errors.items()
        )
        if type(step) is not int or step < 0 or not right:
            raise ValueError(
                "the state is not what state_dict() returns: step must be a number of "
                "steps, and errors a dictionary of tensors by the numbers of buckets"
            )
        self.step = step
        self._compressors.clear()
        self._loaded = dict(errors)

    def _backend(self, device: torch.device) -> Any:
        """Return the group's backend for tensors of a device."""
        backend = (self.group or dist.group.WORLD)._get_backend(device)
        if backend.name() != "dscomm":
            raise ValueError(
                f"the group's backend for {device.type} is {backend.name()}; compressed "
                'gradients need a group of backend "dscomm"'
            )
        return backend

    def _compressor(self, index: int, count: int, backend: Any) -> Any:
        """Return the compressor of a bucket; collective if there is none yet."""
        found = self._compressors.get(index)
        if found is not None:
            if found.count != count:
                raise ValueError(
                    f"bucket {index} has {count} elements and had {found.count}; each "
                    "model needs a state of its own"
                )
            return found
        from . import _C

        made = _C.Compressor(backend, count, *self._options)
        saved = self._loaded.get(index)
        if saved is not None:
            made.load(saved)
            del self._loaded[index]
        self._compressors[index] = made
        return made


class OnebitState(CompressionState):
    """Signs with one scale, as in 1-bit Adam; deepspeed: padded as DeepSpeed does it.

    It suits optimizers that are linear in the gradient, such as SGD with momentum.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        *,
        freeze_step: int = 100,
        deepspeed: bool = False,
    ) -> None:
        super().__init__(group, "onebit", freeze_step=freeze_step, deepspeed=deepspeed)


class Int8State(CompressionState):
    """A byte for each element, and a scale for 256 of them."""

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        *,
        freeze_step: int = _REBUILT,
        feedback: bool = True,
    ) -> None:
        super().__init__(group, "int8", freeze_step=freeze_step, feedback=feedback)


class TopkState(CompressionState):
    """The largest elements; fraction: how many of all, more than 0 and at most 1."""

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        *,
        freeze_step: int = 100,
        fraction: float = 0.01,
        feedback: bool = True,
    ) -> None:
        if not isinstance(fraction, numbers.Real) or not 0 < fraction <= 1:
            raise ValueError(
                f"fraction is {fraction!r}; it must be more than 0 and at most 1"
            )
        super().__init__(
            group,
            "topk",
            freeze_step=freeze_step,
            feedback=feedback,
            parameter=float(fraction),
        )


def _check_state(state: Any, kind: type[CompressionState], hook: str) -> None:
    """Raise unless a hook got a state of its own kind."""
    if not isinstance(state, kind):
        raise TypeError(f"{hook} needs a state of {kind.__name__}, not {state!r}")


def onebit_hook(
    state: OnebitState, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Reduce a bucket by codec onebit."""
    _check_state(state, OnebitState, "onebit_hook")
    return state.reduce(bucket)


def int8_hook(
    state: Int8State, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Reduce a bucket by codec int8."""
    _check_state(state, Int8State, "int8_hook")
    return state.reduce(bucket)


def topk_hook(
    state: TopkState, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Reduce a bucket by codec topk."""
    _check_state(state, TopkState, "topk_hook")
    return state.reduce(bucket)
