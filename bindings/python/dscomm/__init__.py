# SPDX-License-Identifier: BSD-3-Clause
"""dscomm: collectives and messages between the processes of a job.

::

    import dscomm
    import numpy

    with dscomm.init() as world:
        x = numpy.full(4, float(world.rank))
        world.all_reduce(x)

The ranks of a job are started by a launcher, such as ``dscomm run -n 4 python3
program.py``, mpirun, srun or torchrun. Begin with init() and Group; Calls has the
collectives. Times are in seconds. After os.fork() a child has no groups: calls on
them are StateError, and it may call init() anew."""

from ._arguments import encoded
from ._library import ANY_SOURCE, ANY_TAG, TAG_MAX, library, text
from ._library import VERSION as __version__
from ._memory import Registration
from .calls import Calls, Op
from .coalesce import Coalescing
from .environment import Env, env
from .errors import (
    AbortedError,
    CancelledError,
    EnvironmentInvalidError,
    Error,
    Failure,
    FailureKind,
    InternalError,
    InvalidError,
    MismatchError,
    NoBackendError,
    NotFoundError,
    OutOfMemoryError,
    PeerFailedError,
    ProtocolError,
    StateError,
    Status,
    SystemCallError,
    TimeoutError,
    TruncatedError,
    UnsupportedError,
    check,
)
from .group import Capabilities, Group, Starter, init
from .store import Store
from .work import Message, Work, wait_all, wait_any


def version() -> str:
    """The version of the library that runs."""
    return text(library.dscomm_version_string())


def set_log_levels(levels: str) -> None:
    """Sets what the library logs, as variable DSCOMM_LOG does: "info", or
    "warn,shm:debug"."""
    check(library.dscomm_log_set_levels(encoded(levels)))


__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "TAG_MAX",
    "AbortedError",
    "Calls",
    "CancelledError",
    "Capabilities",
    "Coalescing",
    "Env",
    "EnvironmentInvalidError",
    "Error",
    "Failure",
    "FailureKind",
    "Group",
    "InternalError",
    "InvalidError",
    "Message",
    "MismatchError",
    "NoBackendError",
    "NotFoundError",
    "Op",
    "OutOfMemoryError",
    "PeerFailedError",
    "ProtocolError",
    "Registration",
    "Starter",
    "StateError",
    "Status",
    "Store",
    "SystemCallError",
    "TimeoutError",
    "TruncatedError",
    "UnsupportedError",
    "Work",
    "__version__",
    "env",
    "init",
    "set_log_levels",
    "version",
    "wait_all",
    "wait_any",
]
