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

    def __init__(self, timeout: float | None):
        """timeout: None waits without an end."""
        if timeout is not None and not timeout >= 0:
            raise InvalidError(f"a time-out of {timeout} is invalid: give 0 or more")
        self._end = None if timeout is None else time.monotonic() + timeout

    def next(self) -> int:
        """Milliseconds of the next slice, 0 after the last one."""
        if self._end is None:
            return SLICE_MS
        left = math.ceil(min((self._end - time.monotonic()) * 1000, SLICE_MS))
        return max(left, 0)

    def ended(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end


def _is_bound() -> bool:
    """True if calls must be made by the program's own thread: DSCOMM_BIND prefers
    memory for the calling thread, and an MPI that the program has initialised may
    allow only one thread."""
    bind = os.environ.get("DSCOMM_BIND", "none")
    return bind != "none" or "mpi4py.MPI" in sys.modules


def interruptible(call: Callable[[], T], interrupt: Callable[[], object]) -> T:
    """Runs a call that may wait long. If an exception arrives meanwhile, such as
    KeyboardInterrupt, interrupt() makes the call end, and the exception goes on."""
    if threading.current_thread() is not threading.main_thread() or _is_bound():
        return call()
    results: list[T] = []
    errors: list[BaseException] = []
    running = threading.Lock()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            running.release()

    running.acquire()
    threading.Thread(target=run, daemon=True).start()
    try:
        running.acquire()
    except BaseException:
        interrupt()
        running.acquire(timeout=_GRACE)
        raise
    if errors:
        raise errors[0]
    return results[0]
