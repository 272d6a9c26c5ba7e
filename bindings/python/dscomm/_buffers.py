# SPDX-License-Identifier: BSD-3-Clause
"""Memory of the caller: addresses, element types and counts of its buffers.

A buffer is described as (pointer, count, dtype). The pointer keeps it alive, and a
bytearray or array.array from being resized."""

from __future__ import annotations

import operator
import sys
from ctypes import c_char, c_int, c_size_t, c_void_p
from functools import partial
from typing import TYPE_CHECKING, Any, Sequence, Union

from .errors import InvalidError

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Buffer as Exporter

    # Before Python 3.12, type checkers know only some of what has the buffer protocol.
    Buffer = Union[Exporter, npt.NDArray[Any]]
else:
    Buffer = Any

Described = tuple[Any, int, Any]

# Names of NumPy's types, those of ml_dtypes included, in the order of dscomm_dtype_t.
DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "bool",
)  # fmt: skip
_SIZES = (1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 1)
_BY_NAME = {name: c_int(value) for value, name in enumerate(DTYPES)}
# Of NumPy's dtypes that have been used. Hashing one is faster than its name.
_by_dtype: dict[Any, c_int] = {}
# Of the buffer protocol: kinds of format characters.
_KINDS = {
    **dict.fromkeys("bhilqn", "int"),
    **dict.fromkeys("BHILQNc", "uint"),
    **dict.fromkeys("efd", "float"),
}
_START = c_char * 0


class _Address(c_void_p):
    """An address in memory that owner has."""

    owner: object


def _describe(write: bool, buffer: Buffer) -> Described:
    try:
        array: Any = buffer
        return _START.from_buffer(array), array.size, _by_dtype[array.dtype]
    except (AttributeError, BufferError, KeyError, TypeError, ValueError):
        return _examine(buffer, write)


writable = partial(_describe, True)
"""Describes a buffer that a call writes."""
readable = partial(_describe, False)
"""Describes a buffer that a call reads."""


def _examine(buffer: Buffer, write: bool) -> Described:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(buffer, numpy.ndarray):
        return _examine_array(buffer, write)
    try:
        exporter: Any = buffer
        view = memoryview(exporter)
    except TypeError:
        raise TypeError(
            "a buffer is a NumPy array, bytearray, memoryview or the like, not "
            f"{type(buffer).__name__!r}"
        ) from None
    return _examine_view(view, write)


def _check_access(contiguous: bool, read_only: bool, write: bool) -> None:
    if not contiguous:
        raise InvalidError(
            "the buffer is not contiguous: pass a copy, as of numpy.ascontiguousarray()"
        )
    if write and read_only:
        raise InvalidError("the buffer is read-only, and the call writes to it")


def _examine_array(array: Any, write: bool) -> Described:
    dtype = array.dtype
    code = _BY_NAME.get(dtype.name) if dtype.isnative else None
    if code is None:
        raise InvalidError(
            f"elements of type {dtype} cannot be communicated: pass a view of a type "
            f"of {', '.join(DTYPES)} in this machine's byte order, such as "
            "array.view('uint8')"
        )
    _by_dtype[dtype] = code
    _check_access(array.flags.c_contiguous, not array.flags.writeable, write)
    pointer = _Address(array.__array_interface__["data"][0])
    pointer.owner = array
    return pointer, array.size, code


def _examine_view(view: memoryview, write: bool) -> Described:
    order = "@=<" if sys.byteorder == "little" else "@=>"
    letter = view.format.lstrip(order)
    name = "bool" if letter == "?" else f"{_KINDS.get(letter)}{8 * view.itemsize}"
    code = _BY_NAME.get(name)
    if code is None:
        raise InvalidError(
            f"elements of format {view.format!r} cannot be communicated: pass their "
            "bytes, as of memoryview.cast('B')"
        )
    _check_access(view.c_contiguous, view.readonly, write)
    if view.readonly:
        return (c_char * view.nbytes).from_buffer_copy(view), _length(view), code
    return _START.from_buffer(view), _length(view), code


def _length(view: memoryview) -> int:
    return view.nbytes // view.itemsize


def pair(send: Buffer, recv: Buffer | None) -> tuple[Any, int, Any, int, Any]:
    """Describes two buffers of one type, as (send, count, recv, count, dtype). recv
    None: the call works in place, in send."""
    if recv is None:
        pointer, count, dtype = writable(send)
        return pointer, count, pointer, count, dtype
    source, send_count, send_dtype = readable(send)
    target, recv_count, recv_dtype = writable(recv)
    if send_dtype is not recv_dtype:
        raise InvalidError(
            f"the send buffer has elements of {DTYPES[send_dtype.value]}, but the "
            f"receive buffer of {DTYPES[recv_dtype.value]}"
        )
    return source, send_count, target, recv_count, send_dtype


def nbytes(described: Described) -> int:
    """Bytes of a buffer."""
    return described[1] * _SIZES[described[2].value]


def expect(what: str, count: int, wanted: int) -> None:
    """Refuses a buffer that has another number of elements than it must have."""
    if count != wanted:
        raise InvalidError(
            f"the {what} buffer has {count} elements, and must have {wanted}"
        )


def blocks(
    what: str,
    room: int,
    size: int,
    counts: Sequence[int] | None,
    displs: Sequence[int] | None,
) -> tuple[Any, Any]:
    """Arrays for the library of one block for each of size ranks, which lie in a
    buffer with room for so many elements. displs None: packed."""
    lengths = [operator.index(count) for count in (() if counts is None else counts)]
    starts = None if displs is None else [operator.index(displ) for displ in displs]
    if len(lengths) != size or (starts is not None and len(starts) != size):
        raise InvalidError(f"{what} counts and displacements have one for each rank")
    if min(lengths) < 0 or (starts is not None and min(starts) < 0):
        raise InvalidError(f"{what} counts and displacements are not negative")
    if starts is None:
        needed = sum(lengths)
    else:
        needed = max((a + b for a, b in zip(starts, lengths) if b), default=0)
    if needed > room:
        raise InvalidError(
            f"the {what} buffer has {room} elements, but its blocks need {needed}"
        )
    array = c_size_t * size
    return array(*lengths), None if starts is None else array(*starts)
