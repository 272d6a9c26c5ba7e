# SPDX-License-Identifier: BSD-3-Clause
"""torch's manager of coalesced calls, ended by exceptions too.

torch leaves its batch open then, and queues the calls that follow for ever.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d


def _end(group: dist.ProcessGroup, device: torch.device | None) -> None:
    """End a batch; its calls go on, but not collectives that torch has collected."""
    c10d._world.pg_coalesce_state.pop(group, None)
    if device and group._get_backend(device).name() == "dscomm":
        with contextlib.suppress(RuntimeError):
            group._end_coalescing(device)


def install() -> None:
    """Put a manager around torch's that ends what an exception has left open."""
    manager = getattr(c10d, "_coalescing_manager", None)
    if manager is None:
        return

    @contextlib.contextmanager
    def coalescing_manager(
        group: dist.ProcessGroup | None = None,
        device: torch.device | None = None,
        async_ops: bool = False,
    ) -> Iterator[Any]:
        group = group or c10d._get_default_group()
        begins = group not in c10d._world.pg_coalesce_state
        try:
            with manager(group, device, async_ops) as batch:
                yield batch
        except BaseException:
            if begins:
                _end(group, device)
            raise

    for module in (c10d, dist):
        setattr(module, "_coalescing_manager", coalescing_manager)
