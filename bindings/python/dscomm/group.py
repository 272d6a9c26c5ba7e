# SPDX-License-Identifier: BSD-3-Clause
"""Groups of ranks: joining a job, calls that wait, new groups, failures."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import byref, c_int, c_void_p
from enum import IntFlag
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _blobs, _memory
from ._arguments import attribute_ms, encoded, integer, milliseconds
from ._buffers import Buffer
from ._library import (
    ANY_SOURCE,
    ANY_TAG,
    IN_PROGRESS,
    INT_MAX,
    NO_COLOR,
    GroupAttr,
    InitAttr,
    MessageInfo,
    library,
    text,
)
from ._memory import Allocations, Registration
from ._waiting import Slices, interruptible, is_main
from .calls import Calls, irecv
from .coalesce import Coalescing
from .errors import (
    Error,
    Failure,
    InvalidError,
    StateError,
    Status,
    TimeoutError,
    check,
    error_of,
    failure_of,
)
from .store import Store
from .work import SLICE, Message, Work, keep, open_groups, work_free, work_wait

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

    from ._await import Watch

_INTERRUPTED = b"interrupted"
# Works under way, or calls, after which works that nobody waits for are looked at.
_SWEEP = 64
# The longest wait for a signal that Ctrl-C does not end, in milliseconds.
_SIGNAL_SLICE_MS = 1000


class Capabilities(IntFlag):
    """What a group's backend can do."""

    NATIVE_COLLECTIVES = 1 << 0
    ANY_SOURCE = 1 << 1
    ZERO_COPY = 1 << 2
    """Memory of Group.allocate() is faster."""
    DEVICE_MEMORY = 1 << 3
    DEATH_DETECTION = 1 << 4
    MISMATCH_DETECTION = 1 << 5
    SEPARATE_MATCHING = 1 << 6
    """Blocking calls of other languages match no call of this package."""
    USER_OPS = 1 << 7
    CALLER_PROGRESS = 1 << 8
    """Works make progress in calls only; they cannot be awaited."""


class Group(Calls[None]):
    """Ranks that communicate: the world, of init(), or a group made from another.

    Its own calls (see Calls) return when they are complete, those of start return
    works. One thread at a time uses a group. Ctrl-C ends a wait: a collective or
    message goes on then as a work does; monitored_barrier(), calls on bytes and
    objects, and those that make or close groups abort the group, and close the world
    without freeing it if they still run two seconds later.

    As a context manager it is closed at the end; after an exception other than
    sys.exit() with success it is aborted before, so that the other ranks fail with
    the exception's text."""

    def __init__(self, handle: int, parent: Group | None, store: Store | None = None):
        """Groups are made by init(), new(), split(), mesh() and shrink()."""
        # Calls get _handle, which is NULL while calls are coalesced, or _closed.
        self._pointer = c_void_p(handle)
        self._handle = self._pointer
        self._closed = False
        self._given_up = False
        self._world: Group = parent._world if parent else self
        self._store = store
        self._works: set[Work] = set()
        self._sweep_at = _SWEEP
        self._calls = 0
        # Of a world: the groups made of it, which end with it.
        self._groups: weakref.WeakSet[Group] = weakref.WeakSet()
        self._watch: Watch | None = None
        self._memory: Allocations = Allocations()
        self.rank = library.dscomm_group_rank(handle)
        self.size = library.dscomm_group_size(handle)
        self.local_rank: int = library.dscomm_group_local_rank(handle)
        """This rank's number among the group's ranks on its node."""
        self.local_size: int = library.dscomm_group_local_size(handle)
        self.node_rank: int = library.dscomm_group_node_rank(handle)
        self.name = text(library.dscomm_group_name(handle))
        self.backend = text(library.dscomm_group_backend(handle))
        self.id = text(library.dscomm_group_id(handle))
        """Text that is equal on all ranks, and that no other group of the world has."""
        self.number: int = library.dscomm_group_number(handle)
        self.timeout: float = library.dscomm_group_timeout(handle) / 1000
        """Default deadline of operations, in seconds."""
        self.capabilities = Capabilities(library.dscomm_group_capabilities(handle))
        self.start = Starter(self)
        """The group's calls, each of which returns a Work at once."""
        open_groups.add(self)
        if parent:
            self._world._groups.add(self)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"rank {self.rank} of {self.size}"
        return f"<dscomm group '{self.name}' on {self.backend}, {state}>"

    # Calls

    def _run(self, function: Any, *arguments: Any) -> None:
        if self._works or self._memory.freed:
            self._tidy()
        slot = c_void_p()
        try:
            status = function(self._handle, *arguments, byref(slot))
            if not status:
                status = work_wait(slot, SLICE)
                while status == IN_PROGRESS:
                    status = work_wait(slot, SLICE)
        except BaseException:
            if slot:
                self._keep(Work(self, slot, arguments))
            raise
        if status:
            self._fail(status, arguments, slot)
        work_free(slot)

    def _keep(self, work: Work) -> Work:
        """Keeps a work until it is complete, also if its program forgets it."""
        self._works.add(work)
        if len(self._works) >= self._sweep_at:
            self._sweep()
            self._sweep_at = max(_SWEEP, 2 * len(self._works))
        return work

    def _tidy(self) -> None:
        """Lets go, now and then, of what the program has forgotten."""
        if not self._handle:
            return
        self._memory.drain(self._pointer)
        self._calls += 1
        if self._calls >= _SWEEP:
            self._sweep()

    def _sweep(self) -> None:
        self._calls = 0
        for work in list(self._works):
            work._sweep()

    def _fail(self, status: int, arguments: Any, slot: c_void_p) -> None:
        error = self._error(status)
        if slot:
            work_free(slot)
            if error.failure:
                keep(self, arguments)
        raise error

    def _error(self, status: int) -> Error:
        """The exception of a call on this group that has failed."""
        if self._closed:
            return StateError(f"group '{self.name}' is closed")
        if not self._handle:
            return StateError(
                f"the calls of group '{self.name}' are being coalesced: make them on "
                "what coalesce() has returned"
            )
        return self._failed(status)

    def _failed(self, status: int) -> Error:
        error = error_of(status)
        error.failure = failure_of(self._pointer)
        return error

    def _check(self, status: int) -> None:
        if status < 0:
            raise self._error(status)

    def _usable(self) -> c_void_p:
        """The group for a call that takes no work."""
        if not self._handle:
            raise self._error(Status.ERR_STATE)
        return self._handle

    def _wait(self, call: Callable[[], int]) -> None:
        """Runs a call that may wait long and that has no work."""
        self._usable()
        interruptible(
            lambda: self._check(call()), self._interrupt, give_up=self._give_up
        )

    def _interrupt(self) -> None:
        library.dscomm_group_abort(self._pointer, _INTERRUPTED)

    def _give_up(self) -> None:
        """Closes the world without freeing it: a call that does not end uses it."""
        self._given_up = True
        for group in self._world._family():
            group._forget()
        if self._world._store:
            self._world._store._give_up()

    def recv(
        self,
        buffer: Buffer,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        timeout: float | None = None,
    ) -> Message:
        """Receives a message of at most buffer's length from rank source, with tag.
        A longer one is TruncatedError. timeout, in seconds, is this receive's own
        deadline, of which TimeoutError leaves the group as it is; math.inf: none."""
        milliseconds(timeout, True)
        work = self.start.recv(buffer, source, tag)
        try:
            if timeout is not None:
                work.set_timeout(timeout)
            work.wait()
        finally:
            work._withdraw()
        return work.message

    def probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, timeout: float | None = 0
    ) -> Message | None:
        """The next message that recv() would receive, which stays; or None if there
        is none within timeout seconds. timeout None: the group's."""
        source, tag = self._envelope(source, tag)
        slices = Slices(self.timeout if timeout is None else timeout)
        info = MessageInfo(size=ctypes.sizeof(MessageInfo))
        while True:
            status = library.dscomm_probe(
                self._handle, source, tag, slices.next(), byref(info)
            )
            self._check(status)
            if status != IN_PROGRESS:
                return Message(info.source, info.tag, info.bytes)
            if slices.ended():
                return None

    def monitored_barrier(self, timeout: float | None = None) -> None:
        """A barrier that names the late ranks: TimeoutError on all ranks, whose late
        has their numbers, after which the group goes on. timeout is in seconds."""
        limit = milliseconds(timeout)
        ranks, count = (c_int * self.size)(), c_int()
        try:
            self._wait(
                lambda: library.dscomm_monitored_barrier_late(
                    self._handle, limit, ranks, byref(count)
                )
            )
        except Error as error:
            error.late = tuple(ranks[: count.value])
            raise

    def signal_wait(self, rank: int, timeout: float | None = None) -> None:
        """Waits for one signal of rank, and the data of its puts before. TimeoutError
        if none comes within timeout seconds; the group goes on."""
        rank = self._member(rank, "rank")
        seconds = self.timeout if timeout is None else timeout
        slices = Slices(seconds, _SIGNAL_SLICE_MS if is_main() else INT_MAX)
        while True:
            piece = slices.next()
            status = library.dscomm_signal_wait(self._handle, rank, piece)
            if status != Status.ERR_TIMEOUT:
                return self._check(status)
            error = self._error(status)
            if error.failure:
                raise error
            if slices.ended():
                raise TimeoutError(f"no signal of rank {rank} within {seconds:g} s")

    def coalesce(self) -> Coalescing:
        """A context manager that records the calls made on it, and starts all as one
        operation at the end, for which it waits::

            with group.coalesce() as calls:
                calls.all_reduce(a)
                calls.send(b, 1)

        None of the calls may use memory that another one writes."""
        return Coalescing(self, True)

    def broadcast_bytes(self, value: bytes | None = None, root: int = 0) -> bytes:
        """Returns root's bytes on every rank; others need not give any."""
        return _blobs.broadcast(self, value, self._member(root))

    def all_gather_bytes(self, value: bytes) -> list[bytes]:
        """Returns all ranks' bytes, in rank order, of any lengths."""
        return _blobs.all_gather(self, value)

    def broadcast_object(self, value: Any = None, root: int = 0) -> Any:
        """Returns root's object on every rank. It is pickled, so ranks must trust
        each other: unpickling runs what the sender wants."""
        return _blobs.broadcast_object(self, value, self._member(root))

    def all_gather_object(self, value: Any) -> list[Any]:
        """Returns all ranks' objects, in rank order; as broadcast_object()."""
        return _blobs.all_gather_object(self, value)

    # Memory

    def allocate(
        self, shape: int | Sequence[int], dtype: npt.DTypeLike = "float64"
    ) -> npt.NDArray[Any]:
        """A NumPy array of zeros, in memory that the group's backend moves without
        copies. The group cannot be closed while the array or a view of it exists."""
        return _memory.allocate(self, shape, dtype)

    def register(self, buffer: Buffer) -> Registration:
        """Lets other ranks put and get in a buffer; see Registration."""
        return Registration(self, buffer)

    # Groups

    def new(
        self,
        ranks: Sequence[int],
        *,
        name: str | None = None,
        backend: str | None = None,
        timeout: float | None = None,
        members_only: bool = False,
    ) -> Group | None:
        """Makes a group of these ranks, in the order given. Every rank calls, with the
        same list, and gets None if it is not listed. With members_only only those
        that are listed call."""
        numbers = [self._member(rank, "rank") for rank in ranks]
        attr = _attributes(name, backend, timeout, members_only)
        array = (c_int * len(numbers))(*numbers)
        return self._make(library.dscomm_group_new, array, len(numbers), byref(attr))

    def split(
        self,
        color: int | None,
        key: int = 0,
        *,
        name: str | None = None,
        backend: str | None = None,
        timeout: float | None = None,
    ) -> Group | None:
        """Makes a group for each color, of the ranks that give it, in the order of
        their keys. Every rank calls; with color None it gets None."""
        color = NO_COLOR if color is None else integer(color, "color")
        key = integer(key, "key", -INT_MAX, INT_MAX)
        attr = _attributes(name, backend, timeout, False)
        return self._make(library.dscomm_group_split, color, key, byref(attr))

    def mesh(self, dims: Sequence[int]) -> list[Group]:
        """Lays the ranks out as a mesh of these dimensions, of which the last varies
        fastest, and returns this rank's group along each. A dimension of -1 is
        computed. Every rank calls."""
        sizes = [integer(dim, "dimension", -1) for dim in dims]
        array = (c_int * len(sizes))(*sizes)
        groups = (c_void_p * len(sizes))()
        self._wait(
            lambda: library.dscomm_group_mesh(self._handle, array, len(sizes), groups)
        )
        return [Group(handle, self) for handle in groups if handle]

    def shrink(self, *, name: str | None = None, timeout: float | None = None) -> Group:
        """Makes a group of the ranks that are left after a failure. Each of them
        calls, after one of its calls has failed; this group must still be closed."""
        attr = _attributes(name, None, timeout, False)
        made = self._make(library.dscomm_group_shrink, byref(attr))
        assert made
        return made

    def _make(self, function: Any, *arguments: Any) -> Group | None:
        made = c_void_p()
        self._wait(lambda: function(self._handle, *arguments, byref(made)))
        return Group(made.value, self) if made.value else None

    def to_global(self, rank: int) -> int:
        """The rank in the world of the group's rank."""
        found = c_int()
        number = self._member(rank, "rank")
        self._check(library.dscomm_group_to_global(self._handle, number, byref(found)))
        return found.value

    def from_global(self, rank: int) -> int:
        """The rank in the group of a rank of the world; NotFoundError if it is not in
        the group."""
        found = c_int()
        number = integer(rank, "rank")
        self._check(
            library.dscomm_group_from_global(self._handle, number, byref(found))
        )
        return found.value

    # State

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def sequence(self) -> int:
        """Number of collectives that this rank has started on the group."""
        return int(library.dscomm_group_sequence(self._usable()))

    @property
    def failure(self) -> Failure | None:
        """What has ended the group, or None while it works."""
        return failure_of(self._usable())

    def check(self) -> None:
        """Raises the failure that has ended the group, if it has ended."""
        self._check(library.dscomm_group_status(self._usable()))

    def fileno(self) -> int:
        """A descriptor for select and poll, readable when a work completes or the
        group fails: read its 8 bytes, then test works. From the first call on, a
        thread of the library makes progress."""
        found = c_int()
        self._check(library.dscomm_group_fd(self._usable(), byref(found)))
        return found.value

    def abort(self, reason: str = "") -> None:
        """Ends the group on all its ranks, whose calls fail with AbortedError, this
        rank's number and the reason. From any thread."""
        if self._closed:
            raise self._error(Status.ERR_STATE)
        said = reason.replace("\0", "").encode(errors="replace")
        check(library.dscomm_group_abort(self._pointer, said or None))

    def close(self) -> None:
        """Leaves the group and frees it. For the world, closes all its groups too,
        and waits for all ranks, at most its time-out, unless it has failed. For another
        group, waits for nobody; works that still run end with AbortedError."""
        if self._closed:
            return
        family = self._family()
        for group in family:
            group._memory.check_unused(group._pointer, group.name)
        for group in family:
            group._forget()
        try:
            self._free()
        finally:
            if not self._given_up:
                self._store = None
                for group in family:
                    group._works.clear()
                open_groups.difference_update(family)

    def _free(self) -> None:
        is_world = self._world is self
        leave = library.dscomm_finalize if is_world else library.dscomm_group_free
        interruptible(
            lambda: check(leave(self._pointer)), self._interrupt, give_up=self._give_up
        )

    def _family(self) -> list[Group]:
        """The group, and of a world those made of it that are open."""
        return [self, *(group for group in self._groups if not group._closed)]

    def _forget(self) -> None:
        """The group is closed from now on."""
        self._closed = True
        self._handle = c_void_p()
        for work in list(self._works):
            work._abandon()
        if self._watch:
            self._watch.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._closed:
            return
        if kind is None or (isinstance(error, SystemExit) and not error.code):
            self.close()
            return
        self.abort(_reason(kind, error))
        # Arrays of allocate() may live on in the exception's frames.
        if all(group._memory.unused(group._pointer) for group in self._family()):
            self.close()


class Starter(Calls[Work]):
    """A group's calls, each of which returns a Work at once; see Group.start."""

    def __init__(self, group: Group):
        self._group = group
        self.rank = group.rank
        self.size = group.size

    def _run(self, function: Any, *arguments: Any) -> Work:
        group = self._group
        if group._memory.freed:
            group._tidy()
        slot = c_void_p()
        work = Work(group, slot, arguments, int(function is irecv))
        try:
            status = function(group._handle, *arguments, byref(slot))
            if status:
                raise group._error(status)
            return group._keep(work)
        except BaseException:
            if not work.done:
                group._works.add(work)
            raise

    def recv(
        self, buffer: Buffer, source: int = ANY_SOURCE, tag: int = ANY_TAG
    ) -> Work:
        """Starts to receive a message as Group.recv() does; see Work.message."""
        return self._receive(buffer, source, tag)

    def coalesce(self) -> Coalescing:
        """As Group.coalesce(), but does not wait at the end; see Coalescing.work."""
        return Coalescing(self._group, False)


def _reason(kind: type[BaseException], error: BaseException | None) -> str:
    """Tells other ranks about an exception, whose text may fail too."""
    try:
        return f"{kind.__name__}: {error}"
    except Exception:
        return kind.__name__


def _attributes(
    name: str | None, backend: str | None, timeout: float | None, members_only: bool
) -> GroupAttr:
    return GroupAttr(
        size=ctypes.sizeof(GroupAttr),
        name=encoded(name),
        backend=encoded(backend),
        timeout_ms=attribute_ms(timeout),
        members_only=members_only,
    )


def init(
    *,
    backend: str | None = None,
    init_method: str | None = None,
    store: Store | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    timeout: float | None = None,
    name: str | None = None,
) -> Group:
    """Joins the job and returns the world, the group of all its ranks, when every
    rank has arrived. What is not given is found in the environment, which the launcher
    has set (see env()); without a launcher the world has one rank.

    backend: "auto" or a name such as "shm". init_method: "env://", "tcp://HOST:PORT"
    or "file:///PATH", where ranks meet; or store, through which they do, and which
    stays open until the world is closed. rank and world_size: both or none. timeout:
    the default deadline of every operation, in seconds. name: of the world."""
    if (rank is None) != (world_size is None):
        raise InvalidError("give both rank and world_size, or neither")
    attr = InitAttr(
        size=ctypes.sizeof(InitAttr),
        backend=encoded(backend),
        init_method=encoded(init_method),
        store=store._usable() if store else None,
        has_rank=rank is not None,
        rank=integer(rank or 0, "rank"),
        world_size=integer(world_size or 0, "world size"),
        timeout_ms=attribute_ms(timeout),
        name=encoded(name),
    )
    world = c_void_p()
    interruptible(
        lambda: check(library.dscomm_init(byref(attr), byref(world))),
        lambda: None,
        lambda _: _leave(world),
        store._give_up if store else lambda: None,
    )
    assert world.value
    return Group(world.value, None, store)


def _leave(world: c_void_p) -> None:
    """Ends a world that nobody has."""
    library.dscomm_group_abort(world, _INTERRUPTED)
    library.dscomm_finalize(world)
