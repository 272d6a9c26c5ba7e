# SPDX-License-Identifier: BSD-3-Clause
"""Works: operations that were started and may still run."""

from __future__ import annotations

import ctypes
from copy import copy
from ctypes import c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generator, Sequence

from ._arguments import milliseconds
from ._library import IN_PROGRESS, MessageInfo, library
from ._waiting import SLICE_MS, Slices
from .errors import AbortedError, Error, InvalidError, StateError, check

if TYPE_CHECKING:
    from .group import Group

SLICE = c_int(SLICE_MS)
_NONE = c_void_p()

work_free = library.dscomm_work_free
work_wait = library.dscomm_work_wait
_work_test = library.dscomm_work_test
_received_at = library.dscomm_work_received_at

# Groups that are not freed: the library writes to the buffers of their works and
# registrations, whatever the program forgets.
open_groups: set[Group] = set()
# Buffers of operations that ended with their group: a transport may still use them.
kept: list[Any] = []
# Backends that use no buffer after that.
_PROMPT = ("self", "shm")
# The interpreter frees neither when it exits, while threads of the library run.
for _each in (open_groups, kept):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_each))


def keep(group: Group, buffers: Any) -> None:
    """Keeps the buffers of an operation that has ended with its group."""
    if group.backend not in _PROMPT:
        kept.append(buffers)


@dataclass(frozen=True)
class Message:
    """A message that was received or found: who sent it, and how long it is."""

    source: int
    tag: int
    nbytes: int


class Work:
    """An operation of a group, as Group.start's calls return it.

    Its buffers must not be changed, and if it writes them not be read, until it is
    complete; they are kept alive. It can be awaited in asyncio. A work that nobody
    waits for goes on."""

    def __init__(self, group: Group, handle: c_void_p, buffers: Any, receives: int = 0):
        self._group = group
        self._handle = handle
        self._buffers = buffers
        self._receives = receives
        self._error: Error | None = None
        self.messages: list[Message] = []
        """What the operation has received, if it is complete, in order."""

    @property
    def done(self) -> bool:
        """True if the operation was found complete by wait() or test()."""
        return not self._handle

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the operation is complete, or for timeout seconds. True if it
        is complete; the exception if it has failed; False if it still runs."""
        if timeout is None:
            while not self._settled(work_wait, SLICE):
                pass
            return True
        slices = Slices(timeout)
        while not self._settled(work_wait, slices.next()):
            if slices.ended():
                return False
        return True

    def test(self) -> bool:
        """As wait(), without waiting."""
        return self._settled(_work_test)

    @property
    def message(self) -> Message:
        """The message that a complete receive has got."""
        if not self.messages:
            raise StateError("the work is no complete receive")
        return self.messages[0]

    def cancel(self) -> None:
        """Withdraws a receive, if no message has begun to arrive: then it fails with
        CancelledError, else it goes on."""
        if not self.done:
            check(library.dscomm_work_cancel(self._handle))

    def set_timeout(self, timeout: float) -> None:
        """Gives the work a deadline of its own, in seconds, in place of the group's
        time-out. That of a receive counts from now, and math.inf is none: when it
        passes, the work fails with TimeoutError and the group goes on. Another work
        has so many seconds, more than 0, without progress: then the group ends."""
        limit = milliseconds(timeout, True)
        if not self.done:
            check(library.dscomm_work_set_timeout(self._handle, limit))

    def __await__(self) -> Generator[Any, None, Message | None]:
        from ._await import completion

        return completion(self).__await__()

    def _settled(self, function: Any, *arguments: Any) -> bool:
        """Asks the library. True if the operation is complete."""
        if self._handle:
            status = function(self._handle, *arguments)
            if status == IN_PROGRESS:
                return False
            self._settle(status)
        if self._error:
            # A copy, because its traceback leads to this work: no cycle keeps buffers.
            raise copy(self._error)
        return True

    def _settle(self, status: int) -> None:
        if status < 0:
            self._error = self._group._failed(status)
        for index in range(self._receives):
            info = MessageInfo(size=ctypes.sizeof(MessageInfo))
            if _received_at(self._handle, index, ctypes.byref(info)) == 0:
                self.messages.append(Message(info.source, info.tag, info.bytes))
        handle, self._handle = self._handle, _NONE
        work_free(handle)
        self._release()

    def _release(self) -> None:
        if self._error and self._error.failure:
            keep(self._group, self._buffers)
        self._buffers = None
        self._group._works.discard(self)

    def _withdraw(self) -> None:
        """Cancels a receive that its call has left early."""
        try:
            self.cancel()
        except Error:
            pass

    def _sweep(self) -> None:
        """Looks whether a work that nobody waits for is complete."""
        try:
            self.test()
        except Error:
            pass

    def _abandon(self) -> None:
        """Its group is closed, and its handle gone with it."""
        if not self.done:
            self._handle = _NONE
            self._error = AbortedError(f"group '{self._group.name}' was closed")
            keep(self._group, self._buffers)


def wait_all(works: Sequence[Work], timeout: float | None = None) -> bool:
    """Waits until all works are complete, or for timeout seconds. Raises the first
    failure in their order when all are complete; False if one still runs."""
    slices = Slices(timeout)
    errors = []
    for work in works:
        try:
            while not work.wait(slices.next() / 1000):
                if slices.ended():
                    return False
        except Error as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return True


def wait_any(works: Sequence[Work], timeout: float | None = None) -> int | None:
    """Waits until one of the works is complete, or for timeout seconds. Its index, the
    exception if it has failed, or None if all still run."""
    if not works:
        raise InvalidError("there is no work to wait for")
    for index, work in enumerate(works):
        if work.done and work.wait():
            return index
    slices = Slices(timeout)
    found = c_size_t()
    handles = (c_void_p * len(works))(*(work._handle.value for work in works))
    while True:
        status = library.dscomm_work_wait_any(
            handles, len(works), slices.next(), ctypes.byref(found)
        )
        if status != IN_PROGRESS:
            break
        if slices.ended():
            return None
    works[found.value].wait()
    return found.value
