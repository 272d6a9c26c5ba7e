# SPDX-License-Identifier: BSD-3-Clause
"""Waits that Ctrl-C ends.

Python runs signal handlers between two instructions of the main thread, so a call of
the library that waits long must be cut into slices or run in another thread."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from typing import Callable, TypeVar

from .errors import InvalidError

T = TypeVar("T")

SLICE_MS = 100
# How long an interrupted call may take to end, in seconds.
_GRACE = 2.0


class Slices:
    """A wait of some seconds in slices."""

    def __init__(self, timeout: float | None, longest: int = SLICE_MS):
        """timeout: None waits without an end. longest: of a slice, in milliseconds."""
        self._longest = longest
        if timeout is not None and not timeout >= 0:
            raise InvalidError(f"a time-out of {timeout} is invalid: give 0 or more")
        self._end = None if timeout is None else time.monotonic() + timeout

    def next(self) -> int:
        """Milliseconds of the next slice, 0 after the last one."""
        if self._end is None:
            return self._longest
        left = math.ceil(min((self._end - time.monotonic()) * 1000, self._longest))
        return max(left, 0)

    def ended(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end


def is_main() -> bool:
    """True in the thread that runs signal handlers."""
    return threading.current_thread() is threading.main_thread()


def _is_bound() -> bool:
    """True if calls must be made by the program's own thread: DSCOMM_BIND prefers
    memory for the calling thread, and an MPI that the program has initialised may
    allow only one thread."""
    bind = os.environ.get("DSCOMM_BIND", "none")
    return bind != "none" or "mpi4py.MPI" in sys.modules


def _nothing(*_: object) -> None:
    pass


def _start(run: Callable[[], None]) -> bool:
    """Runs a function in a thread; False if none can be made."""
    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        if thread.is_alive():
            raise
        return False
    return True


def interruptible(
    call: Callable[[], T],
    interrupt: Callable[[], object],
    undo: Callable[[T], object] = _nothing,
    give_up: Callable[[], object] = _nothing,
) -> T:
    """Runs a call that may wait long. If an exception arrives meanwhile, such as
    KeyboardInterrupt, interrupt() makes the call end, and the exception goes on.

    The call may succeed nevertheless, perhaps later: then undo() gets its result, in
    any thread. give_up() is called if it still runs after two seconds."""
    if not is_main() or _is_bound():
        return call()
    results: list[T] = []
    errors: list[BaseException] = []
    ended = threading.Event()
    # Held by whoever is first: the call at its end, or the caller who gives it up.
    first = threading.Lock()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        if first.acquire(blocking=False):
            ended.set()
        elif results:
            undo(results[0])

    try:
        started = _start(run)
        if started:
            ended.wait()
    except BaseException:
        try:
            if not ended.is_set():
                interrupt()
                ended.wait(_GRACE)
        finally:
            if first.acquire(blocking=False):
                give_up()
            elif results:
                undo(results[0])
        raise
    if not started:
        return call()
    if errors:
        raise errors[0]
    return results[0]
