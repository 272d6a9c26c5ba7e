# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, times and texts for the library, whose types have limits that ctypes does
not check."""

from __future__ import annotations

import math
import operator
from typing import SupportsIndex

from ._library import INT_MAX, TIMEOUT_DEFAULT, TIMEOUT_NONE
from .errors import InvalidError


def integer(value: SupportsIndex, name: str, low: int = 0, high: int = INT_MAX) -> int:
    """A number that is in a range."""
    number = operator.index(value)
    if not low <= number <= high:
        raise InvalidError(f"{name} {number} is invalid: give {low} to {high}")
    return number


def milliseconds(timeout: float | None, endless: bool = False) -> int:
    """A time-out in seconds for the library: None is the default, and math.inf no
    time-out, where endless allows that."""
    if timeout is None:
        return TIMEOUT_DEFAULT
    if timeout == math.inf and endless:
        return TIMEOUT_NONE
    if not 0 <= timeout <= INT_MAX / 1000:
        raise InvalidError(
            f"a time-out of {timeout} is invalid: give 0 to {INT_MAX // 1000} seconds"
        )
    return math.ceil(timeout * 1000)


def attribute_ms(timeout: float | None) -> int:
    """A default time-out, for an attribute in which 0 means the library's choice."""
    return 0 if timeout is None else max(1, milliseconds(timeout))


def encoded(value: str | None) -> bytes | None:
    """A text as a C string; None is NULL."""
    if value is None:
        return None
    if "\0" in value:
        raise InvalidError(f"{value!r} has a NUL, where C strings end")
    return value.encode()
