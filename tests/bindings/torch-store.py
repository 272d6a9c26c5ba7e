# SPDX-License-Identifier: BSD-3-Clause
"""A group whose ranks meet in a store that is written in Python.

Rank 0 prints TAP. A check passes if it holds on all ranks."""

import datetime
import os
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from checks import check, main
from dscomm_torch import _C


class Incomplete(dist.Store):
    """Keys in another store, which lacks a method that a group needs."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.busy = threading.Lock()
        self.overlaps = 0

    def _call(self, name, *arguments):
        if not self.busy.acquire(blocking=False):
            self.overlaps += 1
            self.busy.acquire()
        try:
            time.sleep(0)  # lets other threads run
            return getattr(self.inner, name)(*arguments)
        finally:
            self.busy.release()

    def set(self, key, value):
        self._call("set", key, value)

    def get(self, key):
        return self._call("get", key)

    def add(self, key, number):
        return self._call("add", key, number)

    def check(self, keys):
        return self._call("check", keys)

    def deleteKey(self, key):
        return self._call("delete_key", key)

    def wait(self, keys, timeout=datetime.timedelta(seconds=60)):
        self.inner.clone().wait(keys, timeout)


class Store(Incomplete):
    """It has no clone(), and serves one call at a time."""

    def compare_set(self, key, expected, desired):
        return self._call("compare_set", key, expected, desired)


@check
def calls(rank, size):
    tensor = torch.full((3,), float(rank))
    dist.all_reduce(tensor)
    assert tensor.tolist() == [size * (size - 1) / 2] * 3


@check
def more_groups(rank, size):
    for group in (dist.new_group(), dist.new_group(list(range(size)))):
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=group)
        assert tensor.item() == size
        dist.destroy_process_group(group)


@check
def no_overlap(rank, size):
    """Threads of the library do not call it at once."""
    assert store.overlaps == 0, store.overlaps


@check
def missing_method(rank, size):
    """The ranks say what such a store needs."""
    options = distributed_c10d._DistributedBackendOptions()
    mine = Incomplete(dist.PrefixStore("incomplete", inner))  # kept while it is used
    options.store = mine
    options.group_rank, options.group_size = rank, size
    options.timeout = datetime.timedelta(seconds=10)
    try:
        _C.create_backend(options)
    except dist.DistBackendError as error:
        assert "needs the methods set, get, add, check and compare_set" in str(error), error
    else:
        raise AssertionError("a group has met in a store without compare_set()")


if __name__ == "__main__":
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    inner = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, is_master=False
    )
    store = Store(dist.PrefixStore("of Python's", inner))
    main(
        "dscomm",
        store=store,
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=60),
    )
