# SPDX-License-Identifier: BSD-3-Clause
"""Bytes and objects whose lengths only their owners know."""

from __future__ import annotations

import ctypes
import pickle
from ctypes import byref, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

from ._library import library

if TYPE_CHECKING:
    from .group import Group


def _take(blob: c_void_p, size: int) -> bytes:
    try:
        return ctypes.string_at(blob, size) if size else b""
    finally:
        library.dscomm_blob_free(blob)


def broadcast(group: Group, value: bytes | None, root: int) -> bytes:
    if group.rank == root:
        value = memoryview(value).tobytes()  # type: ignore[arg-type]
    else:
        value = b""
    blob, size = c_void_p(), c_size_t()
    group._wait(
        lambda: library.dscomm_broadcast_blob(
            group._handle, value, len(value), root, byref(blob), byref(size)
        )
    )
    return _take(blob, size.value)


def all_gather(group: Group, value: bytes) -> list[bytes]:
    value = memoryview(value).tobytes()
    blob, sizes = c_void_p(), (c_size_t * group.size)()
    group._wait(
        lambda: library.dscomm_all_gather_blob(
            group._handle, value, len(value), byref(blob), sizes
        )
    )
    whole = _take(blob, sum(sizes))
    parts, start = [], 0
    for size in sizes:
        parts.append(whole[start : start + size])
        start += size
    return parts


def broadcast_object(group: Group, value: Any, root: int) -> Any:
    data = pickle.dumps(value) if group.rank == root else None
    data = broadcast(group, data, root)
    return value if group.rank == root else pickle.loads(data)


def all_gather_object(group: Group, value: Any) -> list[Any]:
    return [pickle.loads(data) for data in all_gather(group, pickle.dumps(value))]
