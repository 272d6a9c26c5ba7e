# SPDX-License-Identifier: BSD-3-Clause
"""Memory of a group: arrays in it, and registered memory that other ranks reach."""

from __future__ import annotations

import ctypes
import math
import operator
import sys
import weakref
from collections.abc import Sequence
from ctypes import byref, c_char, c_void_p
from typing import TYPE_CHECKING, Any

from ._buffers import Buffer, nbytes, writable
from ._library import MEM_KEY_BYTES, library
from .errors import InvalidError, StateError, Status
from .work import kept

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

    from .group import Group


class Allocations:
    """What a group has allocated and registered."""

    def __init__(self) -> None:
        self.arrays = 0
        # Addresses of arrays that were deleted, in any thread.
        self.freed: list[c_void_p] = []
        self.registered: set[Registration] = set()

    def drain(self, group: c_void_p) -> None:
        """Frees the memory of deleted arrays."""
        while self.freed:
            library.dscomm_mem_free(group, self.freed.pop())
            self.arrays -= 1

    def unused(self, group: c_void_p) -> bool:
        self.drain(group)
        return not self.arrays

    def check_unused(self, group: c_void_p, name: str) -> None:
        if not self.unused(group):
            raise StateError(
                f"{self.arrays} arrays of allocate() of group '{name}' still exist, "
                "and their memory is the group's: delete them and their views before"
            )


class Registration:
    """Memory that other ranks may put to and get from, until it is closed.

    They need its key, bytes that can be sent as any others. It is closed by close(),
    as a context manager, or with its group."""

    def __init__(self, group: Group, buffer: Buffer):
        """See Group.register()."""
        described = writable(buffer)
        self._group = group
        self._handle = c_void_p()
        self._pointer = described[0]
        group._check(
            library.dscomm_mem_register(
                group._handle, described[0], nbytes(described), byref(self._handle)
            )
        )
        group._memory.registered.add(self)
        key = ctypes.create_string_buffer(MEM_KEY_BYTES)
        group._check(library.dscomm_mem_key(self._handle, key))
        self.key = key.raw
        """What other ranks give to put() and get()."""

    def close(self) -> None:
        """Ends the registration. StateError if a work of this rank uses the memory."""
        registered = self._group._memory.registered
        if self in registered and not self._group.closed:
            status = library.dscomm_mem_deregister(self._handle)
            if status in (Status.ERR_STATE, Status.ERR_NO_MEMORY):
                raise self._group._failed(status)
            if status < 0:
                # It has ended, but an access that was begun may still use the memory.
                registered.discard(self)
                kept.append(self._pointer)
                raise self._group._failed(status)
        registered.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def allocate(
    group: Group, shape: int | Sequence[int], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    import numpy

    dims = tuple(shape) if isinstance(shape, Sequence) else (operator.index(shape),)
    element = numpy.dtype(dtype)
    size = math.prod(dims) * element.itemsize
    if min(dims, default=0) < 0 or element.hasobject or size > sys.maxsize:
        raise InvalidError(f"no array of shape {shape} and type {element} can be made")
    group._memory.drain(group._usable())
    address = c_void_p()
    group._check(library.dscomm_mem_alloc(group._handle, max(size, 1), byref(address)))
    assert address.value
    memory: Any = (c_char * size).from_address(address.value)
    group._memory.arrays += 1
    weakref.finalize(memory, group._memory.freed.append, address).atexit = False
    return numpy.ndarray(dims, element, memory)
