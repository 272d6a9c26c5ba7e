# SPDX-License-Identifier: BSD-3-Clause
"""Failures as exceptions: a class for each status, with the library's sentence."""

from __future__ import annotations

import builtins
import ctypes
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ._library import FailureRecord, library, text


class Status(IntEnum):
    """The status of a call or of a group."""

    OK = 0
    IN_PROGRESS = 1
    ERR_INVALID = -1
    ERR_NO_MEMORY = -2
    ERR_UNSUPPORTED = -3
    ERR_NO_BACKEND = -4
    ERR_ENVIRONMENT = -5
    ERR_TIMEOUT = -6
    ERR_PEER_FAILED = -7
    ERR_MISMATCH = -8
    ERR_ABORTED = -9
    ERR_TRUNCATED = -10
    ERR_IO = -11
    ERR_PROTOCOL = -12
    ERR_NOT_FOUND = -13
    ERR_STATE = -14
    ERR_INTERNAL = -15
    ERR_CANCELLED = -16

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        """That of a newer library."""
        return cls.ERR_INTERNAL if isinstance(value, int) else None


class FailureKind(IntEnum):
    """Why a group has ended."""

    UNKNOWN = -1
    """A kind that only a newer library has."""
    NONE = 0
    DIED = 1
    """The culprit's process has ended."""
    SILENT = 2
    """The deadline passed without progress."""
    MISMATCH = 3
    """Ranks have called different collectives."""
    ABORTED = 4
    PROTOCOL = 5
    """A rank or a library broke its contract."""
    RESOURCE = 6
    """There was no memory, descriptor or the like."""
    LEFT = 7
    """The culprit closed the group while others waited for it."""

    @classmethod
    def _missing_(cls, value: object) -> FailureKind | None:
        return cls.UNKNOWN if isinstance(value, int) else None


@dataclass(frozen=True)
class Failure:
    """What has ended a group. The culprit is the rank that caused it.

    Numbers that are not known are None, and texts empty."""

    status: Status
    kind: FailureKind
    rank: int | None
    """The culprit's rank in the world."""
    group_rank: int | None
    """Its rank in the group that failed."""
    collective: str | None
    """The collective in which it failed, or by which it differs."""
    sequence: int | None
    """The number of that collective in its group."""
    pid: int | None
    host: str
    group: str
    """The name of the group that failed."""
    detail: str
    """What the other members lack: what differs, which ranks are awaited."""


class Error(Exception):
    """A call failed. The text is a sentence with the cause and the remedy."""

    status: Status = Status.ERR_INTERNAL
    failure: Failure | None = None
    """What has ended the group, if it has ended."""
    late: tuple[int, ...] = ()
    """The ranks that monitored_barrier() has waited for, and that did not come in time."""


class InvalidError(Error, ValueError):
    """An argument is invalid; nothing was started."""

    status = Status.ERR_INVALID


class OutOfMemoryError(Error, MemoryError):
    """There is no memory or other resource."""

    status = Status.ERR_NO_MEMORY


class UnsupportedError(Error, NotImplementedError):
    """The backend or the build cannot do it."""

    status = Status.ERR_UNSUPPORTED


class NoBackendError(Error):
    """No backend can be used."""

    status = Status.ERR_NO_BACKEND


class EnvironmentInvalidError(Error):
    """A variable is wrong, or the launcher's variables contradict each other."""

    status = Status.ERR_ENVIRONMENT


class TimeoutError(Error, builtins.TimeoutError):
    """The deadline has passed."""

    status = Status.ERR_TIMEOUT


class PeerFailedError(Error):
    """Another rank died or left."""

    status = Status.ERR_PEER_FAILED


class MismatchError(Error):
    """Ranks disagree about an operation."""

    status = Status.ERR_MISMATCH


class AbortedError(Error):
    """The group was aborted or closed."""

    status = Status.ERR_ABORTED


class TruncatedError(Error):
    """A message was longer than the buffer, which has its beginning."""

    status = Status.ERR_TRUNCATED


class SystemCallError(Error):
    """A system call failed."""

    status = Status.ERR_IO


class ProtocolError(Error):
    """A peer sent bytes that make no sense."""

    status = Status.ERR_PROTOCOL


class NotFoundError(Error, LookupError):
    """What was asked for does not exist."""

    status = Status.ERR_NOT_FOUND


class StateError(Error):
    """The call is not allowed now, for example on a closed group."""

    status = Status.ERR_STATE


class InternalError(Error):
    """A mistake in the library."""

    status = Status.ERR_INTERNAL


class CancelledError(Error):
    """The program cancelled the operation."""

    status = Status.ERR_CANCELLED


_CLASSES: dict[int, type[Error]] = {
    kind.status: kind for kind in Error.__subclasses__()
}
_last_error = library.dscomm_last_error


def error_of(status: int, sentence: str | None = None) -> Error:
    """The exception of this thread's last failed call."""
    return _CLASSES.get(status, InternalError)(sentence or text(_last_error()))


def check(status: int) -> None:
    """Raises the exception of a call that has failed."""
    if status < 0:
        raise error_of(status)


def failure_of(group: Any) -> Failure | None:
    """What has ended a group, or None while it works."""
    record = FailureRecord(size=ctypes.sizeof(FailureRecord))
    if library.dscomm_group_failure(group, ctypes.byref(record)) < 0:
        return None
    known = record.coll >= 0
    return Failure(
        status=Status(record.status),
        kind=FailureKind(record.kind),
        rank=record.rank if record.rank >= 0 else None,
        group_rank=record.group_rank if record.group_rank >= 0 else None,
        collective=text(library.dscomm_coll_name(record.coll)) if known else None,
        sequence=record.sequence if known else None,
        pid=record.pid or None,
        host=text(record.host),
        group=text(record.group),
        detail=text(record.detail),
    )
