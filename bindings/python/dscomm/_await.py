# SPDX-License-Identifier: BSD-3-Clause
"""Works in asyncio, by the descriptors of their groups."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .group import Group
    from .work import Message, Work


class Watch:
    """The tasks of one event loop that await works of a group."""

    def __init__(self, group: Group, loop: asyncio.AbstractEventLoop):
        self.loop = loop
        self._descriptor = group.fileno()
        self._waiters: list[asyncio.Future[None]] = []

    async def changed(self) -> None:
        """Returns when a work of the group may be complete."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        if not self._waiters:
            self.loop.add_reader(self._descriptor, self._wake)
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
                self._rest()

    def _wake(self) -> None:
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            return
        self.end()

    def end(self) -> None:
        """Makes all tasks look at their works."""
        waiters, self._waiters = self._waiters, []
        if self.loop.is_closed():
            return
        self._rest()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _rest(self) -> None:
        if not self._waiters:
            self.loop.remove_reader(self._descriptor)


async def completion(work: Work) -> Message | None:
    """Awaits a work; its message if it is a receive."""
    group, loop = work._group, asyncio.get_running_loop()
    while not work.test():
        if group._watch is None or group._watch.loop is not loop:
            if group._watch:
                group._watch.end()
            group._watch = Watch(group, loop)
        await group._watch.changed()
    return work.messages[0] if work.messages else None
