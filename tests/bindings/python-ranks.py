# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that use the Python package; results against NumPy's arithmetic.

Rank 0 prints TAP. A check passes if it holds on all ranks. It may return a reason
to skip it."""

import array
import asyncio
import gc
import os
import select
import sys
import threading
import traceback
import weakref

import dscomm
import numpy as np
from dscomm import InvalidError, StateError

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
checks = []


def check(function):
    checks.append(function)
    return function


def ramp(count, rank, dtype="float64"):
    """Small whole numbers, exact in every type."""
    return (np.arange(count) % 5 + rank + 1).astype(dtype)


def stack(count, size, dtype="float64"):
    """The ramps of all ranks, a row each."""
    return np.stack([ramp(count, rank, dtype) for rank in range(size)])


def equal(got, want):
    assert np.array_equal(got, want), (got, want)


def refuses(kind, text, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"no {kind.__name__} with '{text}'")


@check
def identity(world):
    assert world.name == "world" and world.id == "w" and world.number == 1
    assert world.timeout == 60 and world.failure is None and not world.closed
    found = dscomm.env()
    assert (found.rank, found.world_size) == (world.rank, world.size)
    assert (world.local_rank, world.local_size) == (world.rank, world.size)
    assert world.node_rank == 0 and f"rank {world.rank} of {world.size}" in repr(world)
    assert world.to_global(world.rank) == world.from_global(world.rank) == world.rank
    world.check()
    before = world.sequence
    world.barrier()
    assert world.sequence == before + 1


@check
def all_reduce_types(world):
    for dtype in INTEGERS + FLOATS:
        rows = stack(7, world.size, dtype)
        for op in ("sum", "max", "min"):
            result = np.zeros(7, dtype)
            world.all_reduce(ramp(7, world.rank, dtype), result, op)
            equal(result, getattr(rows, op)(0).astype(dtype))
    flags = np.array([world.rank == 0, False])
    world.all_reduce(flags)
    equal(flags, [True, False])


@check
def all_reduce_operators(world):
    rows = stack(5, world.size, "int32")
    for op, function in (
        (dscomm.Op.PRODUCT, np.multiply),
        ("band", np.bitwise_and),
        ("bor", np.bitwise_or),
        (dscomm.Op.BXOR, np.bitwise_xor),
    ):
        values = ramp(5, world.rank, "int32")
        world.all_reduce(values, op=op)
        equal(values, function.reduce(rows, 0, dtype="int32"))
    values = ramp(5, world.rank)
    world.all_reduce(values, op="avg")
    equal(values, stack(5, world.size).sum(0) / world.size)
    values = np.full(3, 4.0)
    world.all_reduce(values, factor=0.25 * (world.rank + 1))
    equal(values, np.full(3, world.size * (world.size + 1) / 2))


@check
def small_floats(world):
    try:
        import ml_dtypes
    except ImportError:
        return "no ml_dtypes"
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        values = np.full(3, 2**world.rank).astype(dtype)
        world.all_reduce(values, op="max")
        equal(values.astype("f4"), np.full(3, 2.0 ** (world.size - 1)))
    other = np.ones(1, ml_dtypes.float8_e4m3)
    refuses(InvalidError, "float8_e4m3", world.broadcast, other)


@check
def buffers(world):
    number = array.array("i", [world.rank, 1])
    world.all_reduce(number)
    assert number.tolist() == [world.size * (world.size - 1) // 2, world.size]
    text = bytearray(b"rank 0" if world.rank == 0 else bytes(6))
    world.broadcast(text)
    assert text == b"rank 0"
    scalar = np.array(float(world.rank))
    world.all_reduce(scalar)
    assert scalar == world.size * (world.size - 1) / 2
    wide = np.zeros((4, 6), "f4")
    world.all_reduce(wide[1:3])
    world.all_reduce(memoryview(wide)[:2])
    world.all_reduce(np.zeros(0))
    fixed = ramp(4, world.rank)
    fixed.flags.writeable = False
    result = np.zeros(4)
    world.all_reduce(fixed, result)
    equal(result, stack(4, world.size).sum(0))
    text = bytearray(8)
    work = world.start.all_reduce(text)
    work.wait()
    text += b"x"


@check
def rooted(world):
    for root in range(world.size):
        mine, result = ramp(4, world.rank), np.zeros(4)
        world.reduce(mine, result, root=root)
        equal(result, stack(4, world.size).sum(0) * (world.rank == root))
        world.reduce(mine, op="max", root=root)
        equal(mine, ramp(4, world.size - 1 if world.rank == root else world.rank))
        whole = np.zeros((world.size, 4)) if world.rank == root else None
        world.gather(ramp(4, world.rank), whole, root)
        if world.rank == root:
            equal(whole, stack(4, world.size))
            whole += 1
        part = np.zeros(4)
        world.scatter(whole, part, root)
        equal(part, ramp(4, world.rank) + 1)
        values = ramp(3, world.rank)
        world.broadcast(values, root)
        equal(values, ramp(3, root))
        values = np.full(2, 1.0)
        world.reduce(values, root=root, factor=world.rank + 1.0)
        if world.rank == root:
            equal(values, np.full(2, world.size * (world.size + 1) / 2))


@check
def rooted_v(world):
    counts = [rank + 1 for rank in range(world.size)]
    displs = [2 * sum(counts[:rank]) for rank in range(world.size)]
    ramps = [ramp(count, rank) for rank, count in enumerate(counts)]
    mine = ramps[world.rank]
    is_root = world.rank == world.size - 1
    whole = np.zeros(sum(counts) if is_root else 0)
    world.gather_v(mine, whole, np.array(counts), root=world.size - 1)
    if is_root:
        equal(whole, np.concatenate(ramps))
    part = np.zeros_like(mine)
    world.scatter_v(whole, part, counts, root=world.size - 1)
    equal(part, mine)
    sparse = np.zeros(2 * sum(counts))
    world.all_gather_v(mine, sparse, counts, displs)
    for rank, start in enumerate(displs):
        equal(sparse[start : start + counts[rank]], ramps[rank])
    part = np.zeros_like(mine)
    world.scatter_v(sparse, part, counts, displs)
    equal(part, mine)


@check
def gathered(world):
    whole = np.zeros((world.size, 3), "i4")
    world.all_gather(ramp(3, world.rank, "i4"), whole)
    equal(whole, stack(3, world.size, "i4"))
    whole = np.zeros((world.size, 3))
    whole[world.rank] = ramp(3, world.rank)
    world.all_gather(whole[world.rank], whole)
    equal(whole, stack(3, world.size))


@check
def scattered(world):
    rows = stack(2 * world.size, world.size)
    want = rows.sum(0).reshape(world.size, 2)[world.rank]
    part = np.zeros(2)
    world.reduce_scatter(rows[world.rank], part)
    equal(part, want)
    world.reduce_scatter(rows[world.rank], part, factor=2.0)
    equal(part, 2 * want)
    counts = [rank + 1 for rank in range(world.size)]
    rows = stack(sum(counts), world.size)
    part = np.zeros(world.rank + 1)
    world.reduce_scatter_v(rows[world.rank], part, counts, "max")
    equal(part, np.split(rows.max(0), np.cumsum(counts)[:-1])[world.rank])


@check
def exchanged(world):
    rows = stack(2 * world.size, world.size).reshape(world.size, world.size, 2)
    result = np.zeros((world.size, 2))
    world.all_to_all(rows[world.rank], result)
    equal(result, rows[:, world.rank])
    counts = [rank + 1 for rank in range(world.size)]
    mine = np.repeat(np.arange(world.size) + 10 * world.rank, counts)
    result = np.zeros(world.size * (world.rank + 1), int)
    world.all_to_all_v(mine, counts, result, [world.rank + 1] * world.size)
    equal(result, np.repeat(10 * np.arange(world.size) + world.rank, world.rank + 1))


@check
def messages(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    sends = [world.start.send(ramp(2, world.rank + tag), right, tag) for tag in (1, 2)]
    second, first = np.zeros(2), np.zeros(4)
    assert world.recv(second, left, 2) == dscomm.Message(left, 2, 16)
    while world.probe(left, 1) is None:
        pass
    assert world.probe() == dscomm.Message(left, 1, 16)
    assert world.recv(first) == dscomm.Message(left, 1, 16)
    equal(first[:2], ramp(2, left + 1))
    equal(second, ramp(2, left + 2))
    assert dscomm.wait_all(sends)
    work = world.start.recv(first, left, 3)
    world.start.send(b"abc", right, 3)
    work.wait()
    assert work.message.nbytes == 3 and first.tobytes()[:3] == b"abc"
    world.start.send(ramp(3, 0), right, 4)
    refuses(dscomm.TruncatedError, "", world.recv, np.zeros(2), left, 4)
    refuses(dscomm.TimeoutError, "", world.recv, first, left, 5, timeout=0.01)
    work = world.start.recv(first, left, 5)
    work.cancel()
    refuses(dscomm.CancelledError, "", work.wait)
    assert world.failure is None and world.probe(timeout=0.01) is None
    world.barrier()
    world.start.send(b"abc", right, 6)
    assert world.probe(left, 6, timeout=None).nbytes == 3
    refuses(InvalidError, "time-out", world.recv, first, left, 6, timeout=-1)
    assert world.recv(first, left, 6).nbytes == 3
    world.barrier()


@check
def works(world):
    values = [np.full(1000, float(world.rank + i)) for i in range(5)]
    running = [world.start.all_reduce(value) for value in values]
    left = list(running)
    while left:
        left.pop(dscomm.wait_any(left)).wait(0)
    assert all(work.done and work.test() for work in running)
    for i, value in enumerate(values):
        equal(value, np.full(1000, world.size * (world.size - 1) / 2 + i * world.size))
    for _ in range(200):
        world.start.all_reduce(np.zeros(100))
    gc.collect()
    world.barrier()
    for _ in range(64):
        world.barrier()
    assert not world._works
    work = world.start.recv(values[0], world.rank, 9)
    assert not work.wait(0.01) and not work.test()
    assert dscomm.wait_any([work], 0) is None and not dscomm.wait_all([work], 0.01)
    refuses(StateError, "no complete receive", lambda: work.message)
    world.send(b"", world.rank, 9)
    assert work.wait() and work.message.nbytes == 0


@check
def forgotten_groups(world):
    group = world.new(range(world.size))
    values = np.zeros(3)
    group.start.recv(values, world.rank, 1)
    known = weakref.ref(group), weakref.ref(values)
    del group, values
    gc.collect()
    assert all(reference() is not None for reference in known)
    known[0]().send(np.ones(3), world.rank, 1)
    while known[0]()._works:
        known[0]()._sweep()
    known[0]().close()
    gc.collect()
    assert all(reference() is None for reference in known)


@check
def newer_libraries(world):
    assert dscomm.FailureKind(99) == dscomm.FailureKind.UNKNOWN
    assert dscomm.Status(-99) == dscomm.Status.ERR_INTERNAL
    refuses(ValueError, "", dscomm.Status, "text")


@check
def coalesced(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    values = [np.full(i + 1, float(world.rank)) for i in range(4)]
    received = np.zeros(3)
    with world.coalesce() as calls:
        for value in values:
            calls.all_reduce(value)
        refuses(StateError, "being coalesced", world.barrier)
        calls.send(ramp(3, world.rank), right, 1)
        calls.recv(received, left, 1)
    for i, value in enumerate(values):
        equal(value, np.full(i + 1, world.size * (world.size - 1) / 2))
    equal(received, ramp(3, left))
    assert calls.messages == [dscomm.Message(left, 1, 24)]
    refuses(StateError, "inside", calls.barrier)
    value = np.ones(2)
    with world.start.coalesce() as calls:
        calls.all_reduce(value)
    calls.work.wait()
    equal(value, np.full(2, world.size))
    with world.coalesce():
        pass


@check
def blobs(world):
    texts = [b"x" * rank for rank in range(world.size)]
    assert world.all_gather_bytes(texts[world.rank]) == texts
    for root in range(world.size):
        mine = b"from %d" % root if world.rank == root else None
        assert world.broadcast_bytes(mine, root) == b"from %d" % root
        thing = {"root": root, "list": [1, 2]}
        mine = thing if world.rank == root else None
        assert world.broadcast_object(mine, root) == thing
    things = world.all_gather_object((world.rank, "text"))
    assert things == [(rank, "text") for rank in range(world.size)]


@check
def groups(world):
    last = world.size - 1
    order = list(range(world.size))[::-1]
    with world.new(order, name="reversed", timeout=7) as group:
        assert (group.rank, group.size) == (last - world.rank, world.size)
        assert (group.name, group.timeout) == ("reversed", 7)
        assert group.to_global(0) == last and group.from_global(last) == 0
        values = ramp(2, world.rank)
        group.broadcast(values)
        equal(values, ramp(2, last))
    assert group.closed and "closed" in repr(group)
    refuses(StateError, "group 'reversed' is closed", group.barrier)
    refuses(StateError, "closed", lambda: group.failure)
    group.close()
    alone = world.new([last])
    assert (alone is None) == (world.rank != last)
    if world.rank == 0:
        only = world.new([0], members_only=True)
        refuses(dscomm.NotFoundError, "", only.from_global, last) if last else None
    half = world.split(world.rank % 2 if world.rank < 3 else None, -world.rank)
    members = [r for r in order if r < 3 and r % 2 == world.rank % 2]
    if world.rank < 3:
        assert (half.size, half.rank) == (len(members), members.index(world.rank))
        total = np.array([world.rank])
        half.all_reduce(total)
        assert total == sum(members)
    else:
        assert half is None
    rows, columns = world.mesh([-1, 2 - world.size % 2])
    assert rows.size * columns.size == world.size
    refuses(dscomm.StateError, "", world.shrink)


@check
def refusals(world):
    ones, call = np.ones(3), world.all_reduce
    foreign = np.dtype("f4").newbyteorder()
    refuses(InvalidError, "type complex128", call, np.ones(3, complex))
    refuses(InvalidError, "byte order", call, np.ones(3, foreign))
    refuses(InvalidError, "not contiguous", call, np.ones((3, 3)).T)
    refuses(InvalidError, "not contiguous", call, memoryview(bytearray(9))[::2])
    refuses(InvalidError, "read-only", call, b"abc")
    refuses(InvalidError, "read-only", call, np.broadcast_to(1.0, 1))
    refuses(InvalidError, "of float64, but the receive", call, ones, np.ones(3, "f4"))
    refuses(InvalidError, "has 2 elements, and must have 3", call, ones, np.ones(2))
    refuses(InvalidError, "no operator 'mean'", call, ones, op="mean")
    refuses(InvalidError, "sum only", call, ones, op="max", factor=2.0)
    refuses(InvalidError, "does not apply", call, ones, op="band")
    refuses(InvalidError, "does not apply", call, np.ones(3, bool), op="avg")
    refuses(TypeError, "not 'list'", call, [1.0])
    refuses(TypeError, "not 'NoneType'", call, None)
    equal(ones, np.ones(3))


@check
def refused_arguments(world):
    ones = np.ones(3)
    for root in (-1, world.size, 2**32):
        refuses(InvalidError, f"root {root} is no rank", world.broadcast, ones, root)
    refuses(InvalidError, "tag -1 is invalid", world.send, ones, 0, -1)
    refuses(InvalidError, "tag 4294967296", world.recv, ones, 0, 2**32)
    refuses(InvalidError, "source 99 is no rank", world.recv, ones, 99)
    refuses(InvalidError, "source 4294967296 is no rank", world.probe, 2**32)
    refuses(InvalidError, "key 4294967296", world.split, 0, 2**32)
    refuses(InvalidError, "dimension 4294967297", world.mesh, [2**32 + 1])
    refuses(InvalidError, "rank 4294967296", world.from_global, 2**32)
    refuses(InvalidError, "offset 1844", world.get, ones, bytes(64), 2**64)
    refuses(InvalidError, "must have", world.all_gather, ones, np.ones(1))
    refuses(InvalidError, "must have", world.reduce_scatter, ones, np.ones(9))
    refuses(InvalidError, "one for each rank", world.all_gather_v, ones, ones, [])
    wrong = [-1] * world.size
    refuses(InvalidError, "not negative", world.all_gather_v, ones, ones, wrong)
    wrong, far = [3] * world.size, [9] * world.size
    refuses(InvalidError, "blocks need", world.all_gather_v, ones, np.ones(2), wrong)
    refuses(InvalidError, "blocks need", world.all_gather_v, ones, ones, wrong, far)
    if world.rank == 0:
        refuses(InvalidError, "root needs recv", world.gather, ones)
        refuses(InvalidError, "root needs send", world.scatter, None, ones)
        refuses(TypeError, "", world.broadcast_bytes, None)
    refuses(InvalidError, "no rank", world.new, [world.size])
    refuses(InvalidError, "color -5", world.split, -5)
    refuses(InvalidError, "time-out", world.monitored_barrier, -1)
    refuses(InvalidError, "time-out", world.start.recv(ones, world.rank, 77).wait, -1)
    world.send(ones, world.rank, 77)
    refuses(InvalidError, "no key", world.put, ones, b"key")
    refuses(InvalidError, "NUL", dscomm.Store, "file:///\0")
    refuses(InvalidError, "", dscomm.set_log_levels, "loud")
    refuses(InvalidError, "both rank and", dscomm.init, rank=0)
    assert issubclass(dscomm.TimeoutError, TimeoutError)
    world.all_reduce(ones)
    equal(ones, np.full(3, world.size))


@check
def memory(world):
    values = world.allocate((2, 3), "f4")
    assert values.shape == (2, 3) and not values.any()
    values += world.rank
    world.all_reduce(values)
    equal(values, np.full((2, 3), world.size * (world.size - 1) / 2))
    assert world.allocate(0).size == 0 and world.allocate(()).shape == ()
    refuses(InvalidError, "shape", world.allocate, (-1,))
    refuses(InvalidError, "shape", world.allocate, 2**61 + 1)
    group = world.new(range(world.size))
    values = group.allocate(5)
    refuses(StateError, "still exist", group.close)
    view = values[1:]
    del values
    refuses(StateError, "still exist", group.close)
    del view
    group.close()


@check
def one_sided(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    window = np.zeros(4)
    with world.register(window) as registration:
        keys = world.all_gather_bytes(registration.key)
        assert len(registration.key) == 64
        world.put(ramp(2, world.rank), keys[right], 8)
        world.signal(right)
        world.signal_wait(left)
        equal(window, [0, *ramp(2, left), 0])
        copy = np.zeros(2)
        world.start.get(copy, keys[right], 8).wait()
        equal(copy, ramp(2, world.rank))
        refuses(InvalidError, "", world.get, np.zeros(5), keys[right])
        refuses(dscomm.TimeoutError, "no signal of rank", world.signal_wait, left, 0.01)
        world.barrier()
    registration.close()


@check
def awaited(world):
    async def reduce(value):
        await world.start.all_reduce(value)
        return value[0]

    async def main():
        values = [np.full(10, float(i)) for i in range(8)]
        sums = await asyncio.gather(*(reduce(value) for value in values))
        assert sums == [i * world.size for i in range(8)]
        work = world.start.recv(values[0], world.rank, 5)
        try:
            await asyncio.wait_for(asyncio.ensure_future(wait(work)), 0.05)
        except asyncio.TimeoutError:
            pass
        world.start.send(b"1", world.rank, 5)
        assert (await work).nbytes == 1
        group = world.new(range(world.size))
        waiting = asyncio.ensure_future(wait(group.start.recv(values[0])))
        await asyncio.sleep(0)
        group.close()
        try:
            await waiting
        except dscomm.AbortedError as error:
            assert "was closed" in str(error)

    async def wait(work):
        return await work

    if dscomm.Capabilities.CALLER_PROGRESS in world.capabilities:
        return "the library has no thread that makes progress"
    asyncio.run(main())
    asyncio.run(main())
    with world.new(range(world.size)) as group:
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)
        task = loop.create_task(wait(group.start.recv(bytearray(1))))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
    del task
    work = world.start.barrier()
    while not work.test():
        select.select([world], [], [], 10)


@check
def threads(world):
    group = world.new(range(world.size))
    result = []

    def run():
        values = np.ones(3)
        group.all_reduce(values)
        result.append(values)
        try:
            group.monitored_barrier(30)
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    values = np.ones(3)
    world.all_reduce(values)
    thread.join(50)
    equal(values, np.full(3, world.size))
    equal(result[0], values)
    assert len(result) == 1, result
    group.close()


@check
def stores(world):
    kinds = [dscomm.Store("memory://"), dscomm.Store("tcp://127.0.0.1:0", serve=True)]
    for store in kinds:
        with store:
            store.set("text", "väl")
            store.set("bytes", b"\0\1")
            assert store.get("text") == "väl".encode() and store.get("bytes") == b"\0\1"
            assert store.multi_get(["bytes", "text"]) == [b"\0\1", "väl".encode()]
            assert store.add("sum", 5) == 5 and store.add("sum", -7) == -2
            assert store.compare_set("text", "other", "new") == "väl".encode()
            assert store.compare_set("text", "väl", "new") == b"new"
            store.append("text", "er")
            assert store.get("text") == b"newer"
            assert store.check(["text", "sum"]) and not store.check(["text", "no"])
            store.wait(["text", "sum"])
            with store.prefix("part") as part:
                part.set("key", "1")
                assert part.get("key") == store.get("part/key") == b"1"
            assert store.num_keys() == 4
            assert store.delete("sum") and not store.delete("sum")
            error = refuses(dscomm.TimeoutError, "missing", store.get, "missing", 0.15)
            assert "0.15 s" in str(error), error
            refuses(dscomm.TimeoutError, "no", store.wait, ["no", "text"], 0)
            refuses(InvalidError, "", store.set, "", "value")
            refuses(InvalidError, "", store.add, "text", 1)
            refuses(InvalidError, "delta", store.add, "number", 2**64)
            refuses(TypeError, "list", store.wait, "key")
            assert (store.port > 0) == (store is kinds[1])
            late = threading.Timer(0.05, store.set, ["late", "1"])
            late.start()
            assert store.get("late") == b"1"
            late.join()
        refuses(StateError, "store is closed", store.get, "text")
        store.close()
    refuses(InvalidError, "", dscomm.Store, "carrier-pigeon://")


@check
def forked(world):
    child = os.fork()
    if child == 0:
        try:
            refuses(StateError, "fork", world.barrier)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    world.barrier()


def main():
    world = dscomm.init(timeout=60)
    if world.rank == 0:
        print(f"1..{len(checks)}")
    for number, function in enumerate(checks, 1):
        problem = skipped = ""
        try:
            skipped = function(world)
        except Exception:
            problem = traceback.format_exc()
            text = problem.replace("\n", "\n# ")
            print(f"# rank {world.rank}: {text}", file=sys.stderr, flush=True)
        failed = np.array([bool(problem)])
        world.all_reduce(failed)
        if world.rank == 0:
            word = "not ok" if failed[0] else "ok"
            text = f"{function.__name__}, {world.size} ranks"
            if skipped:
                text += f" # SKIP {skipped}"
            print(f"{word} {number} - {text}", flush=True)
    world.close()


if __name__ == "__main__":
    main()
