# SPDX-License-Identifier: BSD-3-Clause
"""Several calls as one operation."""

from __future__ import annotations

from ctypes import byref, c_void_p
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._buffers import Buffer
from ._library import ANY_SOURCE, ANY_TAG, library
from .calls import Calls, irecv
from .errors import StateError
from .work import Message, Work, kept

if TYPE_CHECKING:
    from typing_extensions import Self

    from .group import Group


class Coalescing(Calls[None]):
    """Records calls of a group, see Group.coalesce() and Group.start.coalesce()."""

    def __init__(self, group: Group, wait: bool):
        self._group = group
        self._wait = wait
        self._buffers: list[Any] = []
        self._receives = 0
        self._recording = False
        self._work: Work | None = None
        self.rank = group.rank
        self.size = group.size

    def __enter__(self) -> Self:
        group = self._group
        group._check(library.dscomm_coalesce_begin(group._handle))
        group._handle = c_void_p()
        self._recording = True
        return self

    def _run(self, function: Any, *arguments: Any) -> None:
        if not self._recording:
            raise StateError("calls are coalesced inside 'with group.coalesce()' only")
        self._buffers.append(arguments)
        status = function(self._group._pointer, *arguments, None)
        if status:
            raise self._group._failed(status)
        self._receives += function is irecv

    def recv(
        self, buffer: Buffer, source: int = ANY_SOURCE, tag: int = ANY_TAG
    ) -> None:
        """Receives a message as Group.recv() does; see messages."""
        self._receive(buffer, source, tag)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        group = self._group
        self._recording = False
        if group.closed:
            return
        group._handle = group._pointer
        slot = c_void_p()
        work = Work(group, slot, self._buffers, self._receives)
        try:
            status = library.dscomm_coalesce_end(group._handle, byref(slot))
            if status:
                # The calls before the one that failed go on.
                kept.append(self._buffers)
                if kind is None:
                    raise group._error(status)
        finally:
            if slot:
                self._work = work
                group._works.add(work)
        if slot and self._wait and kind is None:
            work.wait()

    @property
    def work(self) -> Work:
        """The work of all calls, after the end of recording."""
        if self._work is None:
            raise StateError("the calls have not been started: leave 'with' before")
        return self._work

    @property
    def messages(self) -> list[Message]:
        """What the receives have got, in the order of the calls."""
        return self.work.messages
