# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of the Python package that die, raise, are interrupted or disagree.

Prints TAP. Each scenario is a function that each of its ranks runs in a process of its
own; the scenario holds if all exit as they must, and print nothing to stderr."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dscomm
import numpy as np

DEADLINE = 40
scenarios = {}


def scenario(size, exits=None):
    """exits: statuses of ranks that do not exit with 0."""

    def add(function):
        scenarios[function.__name__] = function, size, exits or {}
        return function

    return add


def raises(kind, text, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        assert re.search(text, str(error)), error
        return error
    raise AssertionError(f"no {kind.__name__}")


def interrupt_in_call(world):
    """Sends SIGINT when this rank has started its next collective."""
    before = world.sequence

    def run():
        while world.sequence == before:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=run).start()


def interrupted(function, *arguments):
    """Calls a function that does not end but by the SIGINT that it gets."""
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    function(*arguments)


@scenario(3, {1: -signal.SIGKILL})
def a_rank_is_killed(join):
    world = join()
    work = world.start.recv(bytearray(1), 1, 7)
    if world.rank == 1:
        for _ in range(2):
            world.recv(bytearray(), tag=8)
        os.kill(os.getpid(), signal.SIGKILL)
    world.start.send(b"", 1, 8)
    error = raises(dscomm.PeerFailedError, "rank 1", world.barrier)
    assert error.failure.rank == error.failure.group_rank == 1
    assert error.failure.kind == dscomm.FailureKind.DIED and error.failure.pid
    assert error.failure.group == "world" and world.failure == error.failure
    raises(dscomm.PeerFailedError, "rank 1", work.wait)
    raises(dscomm.PeerFailedError, "rank 1", world.start.barrier)
    raises(dscomm.PeerFailedError, "rank 1", world.check)
    with world.shrink() as group:
        total = np.array([world.rank])
        group.all_reduce(total)
        assert total == 2 and group.size == 2
        group.barrier()
    world.close()


@scenario(2, {1: 1})
def a_rank_raises(join):
    with join() as world:
        values = world.allocate(3)
        world.barrier()
        if world.rank == 1:
            sys.stderr = open(os.devnull, "w")
            raise KeyError("boom")
        del values
        raises(dscomm.AbortedError, "rank 1.*KeyError: 'boom'", world.barrier)


@scenario(2, {1: 1})
def a_rank_raises_what_has_no_text(join):
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    with join() as world:
        group = world.new(range(2))
        if world.rank == 1:
            group.abort("\udcff")
            sys.stderr = open(os.devnull, "w")
            raise Mute
        raises(dscomm.AbortedError, r"rank 1.*\?", group.barrier)
        raises(dscomm.AbortedError, "rank 1.*Mute", world.barrier)


@scenario(2)
def a_rank_exits_with_success(join):
    with join() as world:
        if world.rank == 1:
            sys.exit(0)
        assert world.probe(1, timeout=0.5) is None and world.failure is None


@scenario(2)
def a_signal_handler_calls(join):
    with join() as world:
        if world.rank == 0:
            signal.signal(signal.SIGINT, lambda *_: world.send(b"x", 1, 5))
            interrupt_in_call(world)
        else:
            world.recv(bytearray(1), 0, 5)
        values = np.ones(3)
        world.all_reduce(values)
        assert values.tolist() == [2, 2, 2] and not world._works


@scenario(2)
def ctrl_c_ends_a_collective(join):
    with join() as world:
        values = np.ones(3)
        if world.rank == 0:
            interrupt_in_call(world)
            raises(KeyboardInterrupt, "", world.all_reduce, values)
            world.send(b"", 1)
        else:
            world.recv(bytearray())
            world.all_reduce(values)
        world.barrier()
        assert values.tolist() == [2, 2, 2]


@scenario(2)
def ctrl_c_ends_a_message(join):
    with join() as world:
        text = bytearray(3)
        if world.rank == 0:
            raises(KeyboardInterrupt, "", interrupted, world.recv, text, 1)
        world.barrier()


@scenario(2, {0: -signal.SIGINT})
def ctrl_c_aborts_a_monitored_barrier(join):
    with join() as world:
        if world.rank == 0:
            sys.stderr = open(os.devnull, "w")
            interrupted(world.monitored_barrier, 30)
        raises(dscomm.AbortedError, "rank 0", world.recv, bytearray(1), 0)


@scenario(1)
def ctrl_c_ends_init(join):
    raises(KeyboardInterrupt, "", interrupted, lambda: join(world_size=2))


@scenario(2)
def an_interrupted_init_succeeds_later(join):
    mark = f"{sys.argv[2]}.mark"
    if sys.argv[3] == "0":
        raises(KeyboardInterrupt, "", interrupted, join)
        open(mark, "w").close()
        for thread in set(threading.enumerate()) - {threading.main_thread()}:
            thread.join(DEADLINE)
    else:
        while not os.path.exists(mark):
            time.sleep(0.01)
        raises(dscomm.AbortedError, "rank 0", lambda: join().barrier())


@scenario(1)
def ctrl_c_gives_a_call_up(join):
    end = threading.Event()
    with join() as world:
        group = world.new([0])
        raises(KeyboardInterrupt, "", interrupted, group._wait, lambda: end.wait() - 1)
        assert world.closed and group.closed
    end.set()
    raises(dscomm.StateError, "is closed", world.barrier)


@scenario(1)
def ctrl_c_ends_a_store(join):
    with dscomm.Store("memory://") as store:
        raises(KeyboardInterrupt, "", interrupted, store.get, "key")


@scenario(2)
def ranks_disagree(join):
    world = join()
    values = np.ones(3 + world.rank)
    error = raises(dscomm.MismatchError, "all_reduce", world.all_reduce, values)
    assert error.failure.collective == "all_reduce" and error.failure.detail
    assert error.status == dscomm.Status.ERR_MISMATCH
    world.close()


@scenario(2)
def a_rank_is_late(join):
    with join() as world:
        if world.rank == 0:
            late = raises(dscomm.TimeoutError, "rank 1", world.monitored_barrier, 1)
            world.send(b"", 1)
        else:
            world.recv(bytearray())
            late = raises(dscomm.TimeoutError, "rank 1", world.monitored_barrier, 1)
        assert late.late == (1,)
        world.barrier()
        assert world.failure is None


@scenario(2)
def a_group_is_closed_with_works(join):
    with join() as world:
        group = world.new(range(2))
        child = group.split(world.rank)
        work = group.start.recv(bytearray(3))
        registration = group.register(bytearray(3))
        group.close()
        raises(dscomm.AbortedError, "was closed", work.wait)
        registration.close()
        child.barrier()
    raises(dscomm.StateError, "is closed", child.barrier)


@scenario(2)
def the_world_is_left_open(join):
    world = join()
    array = world.allocate(5)
    world.start.recv(array, 0, 7)
    sys.modules["kept"] = world, world.start.barrier(), dscomm.Store("memory://")
    world.send(b"x", 1 - world.rank, 1)
    world.recv(bytearray(1), tag=1)


@scenario(2)
def ranks_meet_by_a_store(join):
    store = dscomm.Store(f"file://{sys.argv[2]}")
    with join(store=store, init_method=None, name="job") as world:
        world.barrier()
        assert world.name == "job"


def child(name, path, rank):
    function, size, _ = scenarios[name]
    arguments = {"rank": int(rank), "world_size": size, "timeout": DEADLINE}

    def join(**more):
        return dscomm.init(**{"init_method": f"file://{path}", **arguments, **more})

    function(join)


def start(name, path, rank):
    command = [sys.executable, __file__, name, path, str(rank)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def run(name, folder):
    """True if each rank does what the scenario says, before a deadline."""
    _, size, exits = scenarios[name]
    ranks = [start(name, f"{folder}/{name}", rank) for rank in range(size)]
    passed = True
    for rank, process in enumerate(ranks):
        try:
            said = process.communicate(timeout=DEADLINE)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            said = "does not end\n" + process.communicate()[1]
        if said or process.returncode != exits.get(rank, 0):
            passed = False
            text = said.replace("\n", "\n#   ")
            print(f"# rank {rank}, status {process.returncode}: {text}")
    return passed


def main():
    print(f"1..{len(scenarios)}")
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda name: run(name, folder), scenarios))
        for number, name in enumerate(scenarios, 1):
            word = "ok" if results[number - 1] else "not ok"
            print(f"{word} {number} - {name.replace('_', ' ')}", flush=True)


if __name__ == "__main__":
    child(*sys.argv[1:]) if len(sys.argv) > 1 else main()
