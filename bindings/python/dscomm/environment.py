# SPDX-License-Identifier: BSD-3-Clause
"""The identity of this process, as its launcher gives it."""

from __future__ import annotations

from ctypes import byref, c_void_p
from dataclasses import dataclass
from itertools import count

from ._library import library, text
from .errors import check


@dataclass(frozen=True)
class Env:
    """Rank, sizes and master of this process. Numbers that are not known are None, and
    texts empty."""

    rank: int | None
    world_size: int | None
    local_rank: int | None
    """Among the ranks of its node."""
    local_size: int | None
    node_rank: int | None
    master_addr: str
    """Where the ranks meet."""
    master_port: int | None
    agent_store: bool
    """The launcher serves a store there."""
    job: str
    """Names the job and its restart, equal on all ranks."""
    source: str
    """What gave the numbers, such as "openmpi" or "slurm"."""
    warnings: tuple[str, ...]


def env() -> Env:
    """Finds the identity of this process, from the innermost launcher's variables.
    EnvironmentInvalidError if they are incomplete or contradict each other."""
    handle = c_void_p()
    check(library.dscomm_env_discover(None, byref(handle)))
    try:
        return _read(handle)
    finally:
        library.dscomm_env_free(handle)


def _number(value: int) -> int | None:
    return value if value >= 0 else None


def _read(handle: c_void_p) -> Env:
    warnings = []
    for index in count():
        warning = library.dscomm_env_warning(handle, index)
        if warning is None:
            break
        warnings.append(text(warning))
    return Env(
        rank=_number(library.dscomm_env_rank(handle)),
        world_size=_number(library.dscomm_env_world_size(handle)),
        local_rank=_number(library.dscomm_env_local_rank(handle)),
        local_size=_number(library.dscomm_env_local_size(handle)),
        node_rank=_number(library.dscomm_env_node_rank(handle)),
        master_addr=text(library.dscomm_env_master_addr(handle)),
        master_port=_number(library.dscomm_env_master_port(handle)),
        agent_store=library.dscomm_env_agent_store(handle) == 1,
        job=text(library.dscomm_env_job(handle)),
        source=text(library.dscomm_env_source(handle)),
        warnings=tuple(warnings),
    )
