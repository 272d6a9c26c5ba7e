# SPDX-License-Identifier: BSD-3-Clause
"""Collectives, messages and one-sided accesses, as descriptions for the library."""

from __future__ import annotations

import operator
from ctypes import c_int
from enum import IntEnum
from typing import Any, Generic, Sequence, TypeVar

from ._arguments import integer
from ._buffers import Buffer, blocks, expect, nbytes, pair, readable, writable
from ._library import ANY_SOURCE, ANY_TAG, MEM_KEY_BYTES, library
from .errors import InvalidError

R = TypeVar("R")


class Op(IntEnum):
    """Reduction operators. A call also takes their names in lower case.

    Integers wrap around. MIN and MAX give NaN if an operand is NaN. AVG is the sum
    divided by the group's size. BAND, BOR and BXOR are for integers and bool."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3
    AVG = 4
    BAND = 5
    BOR = 6
    BXOR = 7


_OPS: dict[object, c_int] = {}
for _op in Op:
    _OPS[_op] = _OPS[_op.name.lower()] = c_int(_op)

_broadcast = library.dscomm_broadcast
_reduce = library.dscomm_reduce
_reduce_premul_sum = library.dscomm_reduce_premul_sum
_all_reduce = library.dscomm_all_reduce
_all_reduce_premul_sum = library.dscomm_all_reduce_premul_sum
_all_gather = library.dscomm_all_gather
_reduce_scatter = library.dscomm_reduce_scatter
_reduce_scatter_premul_sum = library.dscomm_reduce_scatter_premul_sum
_all_to_all = library.dscomm_all_to_all
_barrier = library.dscomm_barrier
_isend = library.dscomm_isend
irecv = library.dscomm_irecv


def _operator(op: Op | str, factor: float | None) -> c_int:
    try:
        found = _OPS[op]
    except (KeyError, TypeError):
        names = ", ".join(item.name.lower() for item in Op)
        raise InvalidError(f"there is no operator {op!r}, but {names}") from None
    if factor is not None and found.value != Op.SUM:
        raise InvalidError("a factor goes with operator sum only")
    return found


class Calls(Generic[R]):
    """The calls of a group. They return when they are complete (Group), return a
    Work at once (Group.start), or are recorded (Group.coalesce()).

    Every rank of the group makes the same collectives in the same order, with
    matching arguments. Buffers are contiguous NumPy arrays, or other objects with the
    buffer protocol such as bytearray; counts and displacements are in elements. Both
    buffers of a call have the same element type. They do not overlap, except where a
    call works in place: then one is a view of the other, or recv is left out.

    Wrong arguments are InvalidError or TypeError before anything is started. A call
    may also fail with TimeoutError, PeerFailedError, MismatchError or AbortedError;
    the group has ended then, and the exception's failure tells why."""

    rank: int
    """This rank's number in the group."""
    size: int
    """The number of ranks."""

    def _run(self, function: Any, *arguments: Any) -> R:
        """Calls a function of the library with the group, arguments and a work."""
        raise NotImplementedError

    def _member(self, rank: int, name: str = "root") -> int:
        if not 0 <= rank < self.size:
            raise InvalidError(
                f"{name} {rank} is no rank of the group: it has 0 to {self.size - 1}"
            )
        return operator.index(rank)

    def barrier(self) -> R:
        """Waits for all ranks."""
        return self._run(_barrier)

    def broadcast(self, buffer: Buffer, root: int = 0) -> R:
        """Copies root's buffer to that of every rank, of the same length."""
        root = self._member(root)
        describe = readable if self.rank == root else writable
        return self._run(_broadcast, *describe(buffer), root)

    def reduce(
        self,
        send: Buffer,
        recv: Buffer | None = None,
        op: Op | str = "sum",
        root: int = 0,
        *,
        factor: float | None = None,
    ) -> R:
        """Reduces all ranks' send to recv on root, of the same length; recv is not
        used elsewhere. Without recv on root the result is in send. factor multiplies
        this rank's input, and may differ between ranks; for floats and sums."""
        root, code = self._member(root), _operator(op, factor)
        if self.rank == root:
            source, count, target, room, dtype = pair(send, recv)
            expect("receive", room, count)
        else:
            (source, count, dtype), target = readable(send), None
        if factor is None:
            return self._run(_reduce, source, target, count, dtype, code, root)
        return self._run(_reduce_premul_sum, source, target, count, dtype, factor, root)

    def all_reduce(
        self,
        send: Buffer,
        recv: Buffer | None = None,
        op: Op | str = "sum",
        *,
        factor: float | None = None,
    ) -> R:
        """Reduces all ranks' send to recv on every rank, of the same length. Without
        recv the result is in send. factor: as for reduce()."""
        source, count, target, room, dtype = pair(send, recv)
        code = _operator(op, factor)
        if count != room:
            expect("receive", room, count)
        if factor is None:
            return self._run(_all_reduce, source, target, count, dtype, code)
        return self._run(_all_reduce_premul_sum, source, target, count, dtype, factor)

    def all_gather(self, send: Buffer, recv: Buffer) -> R:
        """Gathers all ranks' send in recv on every rank, in rank order; recv is size
        times as long. In place: send is this rank's part of recv."""
        source, count, target, room, dtype = pair(send, recv)
        expect("receive", room, count * self.size)
        return self._run(_all_gather, source, target, count, dtype)

    def all_gather_v(
        self,
        send: Buffer,
        recv: Buffer,
        counts: Sequence[int],
        displs: Sequence[int] | None = None,
    ) -> R:
        """As all_gather() with counts[r] elements of rank r, the same on all ranks,
        put at displs[r] in recv; without displs packed."""
        source, count, target, room, dtype = pair(send, recv)
        lengths, starts = blocks("receive", room, self.size, counts, displs)
        expect("send", count, lengths[self.rank])
        return self._run(
            library.dscomm_all_gather_v, source, count, target, lengths, starts, dtype
        )

    def reduce_scatter(
        self,
        send: Buffer,
        recv: Buffer,
        op: Op | str = "sum",
        *,
        factor: float | None = None,
    ) -> R:
        """Reduces all ranks' send, which is size times as long as recv, and gives
        rank r the part r of the result in recv. In place: recv is this rank's part of
        send. factor: as for reduce()."""
        source, count, target, part, dtype = pair(send, recv)
        code = _operator(op, factor)
        expect("send", count, part * self.size)
        if factor is None:
            return self._run(_reduce_scatter, source, target, part, dtype, code)
        return self._run(
            _reduce_scatter_premul_sum, source, target, part, dtype, factor
        )

    def reduce_scatter_v(
        self,
        send: Buffer,
        recv: Buffer,
        counts: Sequence[int],
        op: Op | str = "sum",
    ) -> R:
        """As reduce_scatter() with counts[r] elements for rank r, the same on all
        ranks, packed in send."""
        source, count, target, room, dtype = pair(send, recv)
        code = _operator(op, None)
        lengths, _ = blocks("send", count, self.size, counts, None)
        expect("receive", room, lengths[self.rank])
        return self._run(
            library.dscomm_reduce_scatter_v, source, target, lengths, dtype, code
        )

    def gather(self, send: Buffer, recv: Buffer | None = None, root: int = 0) -> R:
        """Gathers all ranks' send in recv on root, in rank order; recv is size times
        as long, and not used elsewhere. In place on root: send is root's part."""
        root = self._member(root)
        if self.rank == root:
            source, count, target, room, dtype = self._root_pair(send, recv, "recv")
            expect("receive", room, count * self.size)
        else:
            (source, count, dtype), target = readable(send), None
        return self._run(library.dscomm_gather, source, target, count, dtype, root)

    def gather_v(
        self,
        send: Buffer,
        recv: Buffer | None = None,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        root: int = 0,
    ) -> R:
        """As gather() with counts[r] elements of rank r, put at displs[r] in recv;
        without displs packed. recv, counts and displs are not used but on root."""
        root = self._member(root)
        target = lengths = starts = None
        if self.rank == root:
            source, count, target, room, dtype = self._root_pair(send, recv, "recv")
            lengths, starts = blocks("receive", room, self.size, counts, displs)
            expect("send", count, lengths[root])
        else:
            source, count, dtype = readable(send)
        arguments = source, count, target, lengths, starts, dtype, root
        return self._run(library.dscomm_gather_v, *arguments)

    def scatter(self, send: Buffer | None, recv: Buffer, root: int = 0) -> R:
        """Gives rank r the part r of root's send in recv; send is size times as long,
        and not used elsewhere. In place on root: recv is root's part."""
        root = self._member(root)
        if self.rank == root:
            source, room, target, count, dtype = self._root_pair(send, recv, "send")
            expect("send", room, count * self.size)
        else:
            (target, count, dtype), source = writable(recv), None
        return self._run(library.dscomm_scatter, source, target, count, dtype, root)

    def scatter_v(
        self,
        send: Buffer | None,
        recv: Buffer,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        root: int = 0,
    ) -> R:
        """As scatter() with counts[r] elements for rank r, from displs[r] in send;
        without displs packed. send, counts and displs are not used but on root."""
        root = self._member(root)
        source = lengths = starts = None
        if self.rank == root:
            source, room, target, count, dtype = self._root_pair(send, recv, "send")
            lengths, starts = blocks("send", room, self.size, counts, displs)
            expect("receive", count, lengths[root])
        else:
            target, count, dtype = writable(recv)
        arguments = source, lengths, starts, target, count, dtype, root
        return self._run(library.dscomm_scatter_v, *arguments)

    @staticmethod
    def _root_pair(send: Buffer | None, recv: Buffer | None, name: str) -> Any:
        if send is None or recv is None:
            raise InvalidError(f"root needs {name}")
        return pair(send, recv)

    def all_to_all(self, send: Buffer, recv: Buffer) -> R:
        """Sends part r of send to rank r, and has rank r's part for this rank as part
        r of recv. Both are as long, and of size parts; never in place."""
        source, count, target, room, dtype = pair(send, recv)
        expect("receive", room, count)
        part = count // self.size
        expect("send", count, part * self.size)
        return self._run(_all_to_all, source, target, part, dtype)

    def all_to_all_v(
        self,
        send: Buffer,
        send_counts: Sequence[int],
        recv: Buffer,
        recv_counts: Sequence[int],
        send_displs: Sequence[int] | None = None,
        recv_displs: Sequence[int] | None = None,
    ) -> R:
        """As all_to_all() with send_counts[r] elements for rank r, from
        send_displs[r] in send, and recv_counts[r] of rank r, put at recv_displs[r] in
        recv; without displs packed."""
        source, given, target, room, dtype = pair(send, recv)
        return self._run(
            library.dscomm_all_to_all_v,
            source,
            *blocks("send", given, self.size, send_counts, send_displs),
            target,
            *blocks("receive", room, self.size, recv_counts, recv_displs),
            dtype,
        )

    def send(self, buffer: Buffer, dest: int, tag: int = 0) -> R:
        """Sends rank dest a message; complete when buffer may be used again. Messages
        of one rank with one tag arrive in their order."""
        return self._run(
            _isend, *readable(buffer), self._member(dest, "dest"), integer(tag, "tag")
        )

    def _receive(self, buffer: Buffer, source: int, tag: int) -> R:
        return self._run(irecv, *writable(buffer), *self._envelope(source, tag))

    def _envelope(self, source: int, tag: int) -> tuple[int, int]:
        """What a receive takes, each of which may be any."""
        if source != ANY_SOURCE:
            source = self._member(source, "source")
        return source, ANY_TAG if tag == ANY_TAG else integer(tag, "tag")

    def put(self, data: Buffer, key: bytes, offset: int = 0) -> R:
        """Copies data to the registered memory of another rank, whose key is that of
        Registration.key, offset bytes from its start."""
        return self._access(library.dscomm_put, readable(data), key, offset)

    def get(self, data: Buffer, key: bytes, offset: int = 0) -> R:
        """Copies registered memory of another rank to data, as put() the other way."""
        return self._access(library.dscomm_get, writable(data), key, offset)

    def _access(self, function: Any, data: Any, key: bytes, offset: int) -> R:
        if not isinstance(key, bytes) or len(key) != MEM_KEY_BYTES:
            raise InvalidError(f"the key is no key of {MEM_KEY_BYTES} bytes")
        start = integer(offset, "offset", 0, 2**63 - 1)
        return self._run(function, data[0], nbytes(data), key, start)

    def signal(self, rank: int) -> R:
        """Sends rank a signal, which arrives after the data of all puts to it before;
        see Group.signal_wait()."""
        return self._run(library.dscomm_signal, self._member(rank, "rank"))
