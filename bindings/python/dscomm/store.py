# SPDX-License-Identifier: BSD-3-Clause
"""The key-value store, through which ranks find each other."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ._arguments import attribute_ms, encoded, integer, milliseconds
from ._library import StoreAttr, library
from ._waiting import Slices, interruptible
from .errors import StateError, Status, check, error_of

if TYPE_CHECKING:
    from typing_extensions import Self

# The library's own default, in seconds.
_TIMEOUT = 300.0


class Store:
    """A store of keys, which are texts, with values, which are bytes.

    Threads may use a store at the same time. It can be closed as a context manager.
    A store that was opened before os.fork() can only be closed in the child."""

    def __init__(
        self,
        url: str,
        *,
        serve: bool = False,
        timeout: float | None = None,
        world_size: int = 0,
    ):
        """Opens the store that url names: "tcp://HOST:PORT", whose protocol is that of
        torch's TCPStore, "file:///PATH" or "memory://", which is new and private.

        serve: serve the port of tcp:// in this process; port 0 is then any free one,
        see port. timeout: the default of waits, in seconds, 300 if it is not given.
        world_size: with serve, the clients that opening waits for; of a file, its
        users, of whom the last removes it."""
        attr = StoreAttr(
            size=ctypes.sizeof(StoreAttr),
            timeout_ms=attribute_ms(timeout),
            serve=serve,
            world_size=integer(world_size, "world size"),
        )
        handle = c_void_p()
        name = encoded(url)
        self._set(handle, _TIMEOUT if timeout is None else timeout)
        interruptible(
            lambda: check(library.dscomm_store_open(name, byref(attr), byref(handle))),
            lambda: None,
            lambda _: self.close(),
        )

    def _set(self, handle: c_void_p, timeout: float) -> None:
        self._handle = handle
        self._timeout = timeout

    def prefix(self, prefix: str) -> Store:
        """A view of the store in which every key is PREFIX/key. It must be closed too,
        and may be after the store."""
        handle = c_void_p()
        name = encoded(prefix)
        check(library.dscomm_store_prefix(self._usable(), name, byref(handle)))
        view = Store.__new__(Store)
        view._set(handle, self._timeout)
        return view

    @property
    def port(self) -> int:
        """The port of tcp://, served or connected to; otherwise 0."""
        return int(library.dscomm_store_port(self._usable()))

    def set(self, key: str, value: bytes | str) -> None:
        """Stores value under key, in place of an earlier one."""
        data = _bytes(value)
        check(library.dscomm_store_set(self._usable(), encoded(key), data, len(data)))

    def get(self, key: str, timeout: float | None = None) -> bytes:
        """The value under key, for which it waits; TimeoutError if there is none after
        timeout seconds."""
        value, size = c_void_p(), c_size_t()
        name = encoded(key)
        self._wait(
            timeout,
            lambda ms: library.dscomm_store_get(
                self._usable(), name, ms, byref(value), byref(size)
            ),
        )
        return _take(value.value, size.value)

    def multi_get(
        self, keys: Sequence[str], timeout: float | None = None
    ) -> list[bytes]:
        """The values under all keys, as get()."""
        names = _names(keys)
        values, sizes = (c_void_p * len(names))(), (c_size_t * len(names))()
        self._wait(
            timeout,
            lambda ms: library.dscomm_store_multi_get(
                self._usable(), names, len(names), ms, values, sizes
            ),
        )
        return [_take(value, size) for value, size in zip(values, sizes)]

    def wait(self, keys: Sequence[str], timeout: float | None = None) -> None:
        """Waits until all keys exist; TimeoutError names those that do not."""
        names = _names(keys)
        self._wait(
            timeout,
            lambda ms: library.dscomm_store_wait(self._usable(), names, len(names), ms),
        )

    def add(self, key: str, delta: int = 1) -> int:
        """Adds delta to the decimal number under key, 0 if there is none, and returns
        the sum."""
        total = c_int64()
        name, number = encoded(key), integer(delta, "delta", -(2**63), 2**63 - 1)
        check(library.dscomm_store_add(self._usable(), name, number, byref(total)))
        return total.value

    def compare_set(
        self, key: str, expected: bytes | str, desired: bytes | str
    ) -> bytes:
        """Replaces the value by desired if it equals expected, or if there is none and
        expected is empty. Returns the value that is stored then; expected if there is
        none."""
        value, size = c_void_p(), c_size_t()
        before, after = _bytes(expected), _bytes(desired)
        name = encoded(key)
        check(
            library.dscomm_store_compare_set(
                self._usable(),
                name,
                before,
                len(before),
                after,
                len(after),
                byref(value),
                byref(size),
            )
        )
        return _take(value.value, size.value)

    def append(self, key: str, value: bytes | str) -> None:
        """Appends to the value under key, which is empty if there is none."""
        data = _bytes(value)
        name = encoded(key)
        check(library.dscomm_store_append(self._usable(), name, data, len(data)))

    def delete(self, key: str) -> bool:
        """Removes key; True if it existed."""
        deleted = c_int()
        name = encoded(key)
        check(library.dscomm_store_delete(self._usable(), name, byref(deleted)))
        return bool(deleted.value)

    def check(self, keys: Sequence[str]) -> bool:
        """True if all keys exist now."""
        present = c_int()
        names = _names(keys)
        check(
            library.dscomm_store_check(
                self._usable(), names, len(names), byref(present)
            )
        )
        return bool(present.value)

    def num_keys(self) -> int:
        """The number of keys in the whole store, whatever the prefix."""
        count = c_int64()
        check(library.dscomm_store_num_keys(self._usable(), byref(count)))
        return count.value

    def close(self) -> None:
        """Closes the store or the view. A server ends with its last view."""
        handle, self._handle = self._handle, c_void_p()
        library.dscomm_store_close(handle)

    def _give_up(self) -> None:
        """Leaves the store, which is never closed, to a call that does not end."""
        self._handle = c_void_p()

    def _usable(self) -> c_void_p:
        if not self._handle:
            raise StateError("the store is closed")
        return self._handle

    def _wait(self, timeout: float | None, call: Callable[[int], int]) -> None:
        """Makes a call that takes milliseconds, again and again until the time-out."""
        seconds = self._timeout if timeout is None else timeout
        milliseconds(seconds)
        slices = Slices(seconds)
        while True:
            piece = slices.next()
            status = call(piece)
            if status != Status.ERR_TIMEOUT or slices.ended():
                break
        if status < 0:
            error = error_of(status)
            sentence = str(error).replace(f"within {piece} ms", f"within {seconds:g} s")
            raise type(error)(sentence)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, close: Any = library.dscomm_store_close) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            close(handle)


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else memoryview(value).tobytes()


def _names(keys: Sequence[str]) -> Any:
    if isinstance(keys, str):
        raise TypeError("keys is a list of texts")
    return (c_char_p * len(keys))(*(encoded(key) for key in keys))


def _take(value: int | None, size: int) -> bytes:
    try:
        return ctypes.string_at(value, size) if value else b""
    finally:
        library.dscomm_store_free(value)
