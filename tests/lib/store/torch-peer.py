# SPDX-License-Identifier: BSD-3-Clause
"""Our store against torch's: torch-peer.py LIBDSCOMM FOLDER, speaks TAP."""

import ctypes
import datetime
import os
import subprocess
import sys
import threading

import torch.distributed as dist

SECOND = datetime.timedelta(seconds=1)
LARGE = bytes(range(256)) * (1 << 15)  # 8 MiB
LONGEST = "k" * 8191  # and torch's slash in front
OK, INVALID, TIMEOUT, PEER_FAILED = 0, -1, -6, -7

lib = ctypes.CDLL(sys.argv[1])
lib.dscomm_last_error.restype = ctypes.c_char_p
lib.dscomm_store_free.argtypes = [ctypes.c_void_p]
count = failed = 0


def check(passed, name):
    global count, failed
    count += 1
    failed += not passed
    print("ok" if passed else "not ok", count, "-", name, flush=True)


def same(got, want, name):
    check(got == want, name)
    if got != want:
        print("#   got %.200r, want %.200r" % (got, want), flush=True)


class Failure(Exception):
    def __init__(self, status):
        super().__init__(lib.dscomm_last_error().decode())
        self.status = status


def call(function, *args):
    status = function(*args)
    if status:
        raise Failure(status)


def status_of(function, *args):
    try:
        function(*args)
    except Failure as failure:
        return failure.status
    return OK


class Attr(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.c_int)
        for name in ("timeout_ms", "serve", "listen_fd", "world_size")
    ]


class Store:
    """Just enough of dscomm/store.h."""

    def __init__(self, url, **attr):
        self.handle = ctypes.c_void_p()
        attr = Attr(size=ctypes.sizeof(Attr), **attr)
        call(lib.dscomm_store_open, url.encode(), ctypes.byref(attr),
             ctypes.byref(self.handle))
        self.port = lib.dscomm_store_port(self.handle)

    def close(self):
        lib.dscomm_store_close(self.handle)

    def set(self, key, value):
        call(lib.dscomm_store_set, self.handle, key.encode(), value,
             ctypes.c_size_t(len(value)))

    def append(self, key, value):
        call(lib.dscomm_store_append, self.handle, key.encode(), value,
             ctypes.c_size_t(len(value)))

    def get(self, key, ms=5000):
        value, size = ctypes.c_void_p(), ctypes.c_size_t()
        call(lib.dscomm_store_get, self.handle, key.encode(), ms,
             ctypes.byref(value), ctypes.byref(size))
        return self.take(value, size)

    def take(self, value, size):
        copy = ctypes.string_at(value, size.value)
        lib.dscomm_store_free(value)
        return copy

    def keys(self, keys):
        return (ctypes.c_char_p * len(keys))(*[k.encode() for k in keys])

    def multi_get(self, keys, ms=5000):
        values = (ctypes.c_void_p * len(keys))()
        sizes = (ctypes.c_size_t * len(keys))()
        call(lib.dscomm_store_multi_get, self.handle, self.keys(keys),
             ctypes.c_size_t(len(keys)), ms, values, sizes)
        return [self.take(v, ctypes.c_size_t(s)) for v, s in zip(values, sizes)]

    def wait(self, keys, ms):
        call(lib.dscomm_store_wait, self.handle, self.keys(keys),
             ctypes.c_size_t(len(keys)), ms)

    def add(self, key, delta):
        total = ctypes.c_int64()
        call(lib.dscomm_store_add, self.handle, key.encode(),
             ctypes.c_int64(delta), ctypes.byref(total))
        return total.value

    def compare_set(self, key, expected, desired):
        value, size = ctypes.c_void_p(), ctypes.c_size_t()
        call(lib.dscomm_store_compare_set, self.handle, key.encode(), expected,
             ctypes.c_size_t(len(expected)), desired,
             ctypes.c_size_t(len(desired)), ctypes.byref(value),
             ctypes.byref(size))
        return self.take(value, size)

    def delete(self, key):
        deleted = ctypes.c_int()
        call(lib.dscomm_store_delete, self.handle, key.encode(),
             ctypes.byref(deleted))
        return deleted.value

    def check(self, keys):
        present = ctypes.c_int()
        call(lib.dscomm_store_check, self.handle, self.keys(keys),
             ctypes.c_size_t(len(keys)), ctypes.byref(present))
        return present.value

    def num_keys(self):
        number = ctypes.c_int64()
        call(lib.dscomm_store_num_keys, self.handle, ctypes.byref(number))
        return number.value


def later(seconds, function, *args):
    timer = threading.Timer(seconds, function, args)
    timer.start()
    return timer


def test_both(name, ours, torchs):
    """One store, seen by us and by torch."""
    name += ": "
    ours.set("a", b"one")
    same(torchs.get("a"), b"one", name + "torch reads what we set")
    torchs.set("b", "two")
    same(ours.get("b"), b"two", name + "we read what torch sets")
    ours.set("large", LARGE)
    check(torchs.get("large") == LARGE, name + "8 MiB from us")
    check(ours.get("large") == LARGE, name + "8 MiB to us")
    ours.set(LONGEST, b"ours")
    same(torchs.get(LONGEST), b"ours", name + "the longest key from us")
    torchs.set(LONGEST, "torch's")
    same(ours.get(LONGEST), b"torch's", name + "the longest key to us")
    same(status_of(ours.set, LONGEST + "k", b""), INVALID, name + "and longer")
    ours.set("empty", b"")
    same(ours.get("empty"), b"", name + "an empty value")
    same(ours.add("n", 5), 5, name + "add")
    same(torchs.add("n", -7), -2, name + "torch adds to it")
    same(ours.add("n", 1), -1, name + "and we to that")
    same(ours.compare_set("c", b"x", b"y"), b"x", name + "compare_set: absent")
    same(ours.check(["c"]), 0, name + "stores nothing")
    same(ours.compare_set("c", b"", b"y"), b"y", name + "compare_set: empty")
    same(torchs.compare_set("c", "y", "z"), b"z", name + "torch's compare_set")
    same(ours.compare_set("c", b"y", b"w"), b"z", name + "compare_set: other")
    same(ours.check(["a", "b"]), 1, name + "check")
    same(ours.check(["a", "nope"]), 0, name + "check of an absent key")
    check(torchs.check(["a", "c"]), name + "torch's check")
    same(status_of(ours.wait, ["a", "nope"], 200), TIMEOUT, name + "time-out")
    check("'nope'" in lib.dscomm_last_error().decode(), name + "which names it")
    timer = later(0.1, torchs.set, "late", "v")
    ours.wait(["late", "a"], 5000)
    check(True, name + "torch wakes us")
    timer.join()
    timer = later(0.1, ours.set, "later", b"v")
    torchs.wait(["later", "a"], 5 * SECOND)
    check(True, name + "we wake torch")
    timer.join()
    before = ours.num_keys()
    same(ours.delete("a"), 1, name + "delete")
    same(ours.num_keys(), before - 1, name + "one key less")
    ours.append("list", b"a,")
    ours.append("list", b"b,")
    same(torchs.get("list"), b"a,b,", name + "append")
    prefixed = dist.PrefixStore("job/0", torchs)
    prefixed.set("k", "deep")
    same(ours.get("job/0/k"), b"deep", name + "torch's prefix")


def test_tcp(name, ours, torchs):
    """What only TCP stores have."""
    name += ": "
    torchs.append("list", "c")
    same(ours.get("list"), b"a,b,c", name + "torch's append")
    torchs.multi_set(["m1", "m2"], ["1", "2"])
    same(ours.multi_get(["m2", "m1"]), [b"2", b"1"], name + "torch's multi_set")
    same(torchs.multi_get(["m1", "m2"]), [b"1", b"2"],
         name + "torch's multi_get")
    check(torchs.delete_key("m1"), name + "torch deletes")
    same(ours.check(["m1"]), 0, name + "and it is gone")
    ours.set("text", b"abc")
    same(status_of(ours.add, "text", 1), INVALID, name + "add to text")
    same(ours.get("text"), b"abc", name + "after which we go on")


def test_our_server():
    ours = Store("tcp://127.0.0.1:0", serve=1, timeout_ms=10000)
    torchs = dist.TCPStore("127.0.0.1", ours.port, is_master=False,
                           wait_for_workers=False, timeout=10 * SECOND)
    test_both("our server", ours, torchs)
    test_tcp("our server", ours, torchs)
    ours.add("most", (1 << 63) - 1)
    same(status_of(ours.add, "most", 1), INVALID, "our server: overflow")
    if hasattr(torchs, "queue_push"):
        torchs.queue_push("q", "1")
        torchs.queue_push("q", "2")
        same(torchs.queue_len("q"), 2, "our server: queue_len")
        same(torchs.queue_pop("q"), b"1", "our server: queue_pop")
        same(torchs.queue_pop("q"), b"2", "our server: queue_pop again")
        timer = later(0.1, torchs.clone().queue_push, "q", "3")
        same(torchs.queue_pop("q"), b"3", "our server: queue_pop waits")
        timer.join()
    if hasattr(torchs, "list_keys"):
        keys = torchs.list_keys()
        check("b" in keys and len(keys) == torchs.num_keys(),
              "our server: list_keys")
    if hasattr(torchs, "barrier"):
        other = threading.Thread(target=torchs.clone().barrier, args=("all", 2))
        other.start()
        torchs.barrier("all", 2)
        other.join(10)
        check(not other.is_alive(), "our server: barrier")
    try:
        torchs.wait(["never"], datetime.timedelta(milliseconds=200))
        check(False, "our server: torch's wait times out")
    except dist.DistStoreError:
        check(True, "our server: torch's wait times out")
    same(torchs.get("b"), b"two", "our server: after which it goes on")
    ours.close()


def test_torchs_server(libuv):
    name = "torch's server" + ("" if libuv else " without libuv")
    torchs = dist.TCPStore("127.0.0.1", 0, is_master=True,
                           wait_for_workers=False, timeout=10 * SECOND,
                           use_libuv=libuv)
    ours = Store("tcp://127.0.0.1:%d" % torchs.port, timeout_ms=10000)
    test_both(name, ours, torchs)
    test_tcp(name, ours, torchs)
    ours.add("most", (1 << 63) - 1)
    same(ours.add("most", 1), -1 << 63, name + ": overflow wraps")
    keys = ["many/%d" % i for i in range(3000)]
    for key in keys:
        ours.set(key, key.encode())
    same(ours.multi_get(keys), [key.encode() for key in keys],
         name + ": 3000 keys at once")
    del torchs
    same(status_of(ours.get, "never", 5000), PEER_FAILED, name + ": it ends")
    ours.close()


def test_workers():
    """world_size, each side hosting in turn."""
    ready = []
    torchs = dist.TCPStore("127.0.0.1", 0, is_master=True,
                           wait_for_workers=False, timeout=10 * SECOND)
    port = torchs.port
    del torchs

    def host():
        ready.append(dist.TCPStore("127.0.0.1", port, 2, is_master=True,
                                   timeout=10 * SECOND))

    thread = threading.Thread(target=host)
    thread.start()
    ours = Store("tcp://127.0.0.1:%d" % port, world_size=2, timeout_ms=10000)
    thread.join(10)
    same(len(ready), 1, "torch waits for us")
    same(ours.num_keys(), 0, "and its counter is no key")
    ours.close()
    ready.clear()

    def join():
        ready.append(dist.TCPStore("127.0.0.1", port, 2, is_master=False,
                                   timeout=10 * SECOND))

    thread = threading.Thread(target=join)
    thread.start()
    ours = Store("tcp://127.0.0.1:%d" % port, world_size=2, serve=1,
                 timeout_ms=10000)
    thread.join(10)
    same(len(ready), 1, "we wait for torch")
    ready.clear()
    ours.close()


def test_file(folder):
    path = os.path.join(folder, "store")
    torchs = dist.FileStore(path, 2)
    ours = Store("file://" + path, world_size=2, timeout_ms=10000)
    test_both("file", ours, torchs)
    torchs.delete_key("b")
    same(ours.check(["b"]), 0, "file: torch deletes")
    ours.delete("c")
    check(not torchs.check(["c"]), "file: we delete")
    ours.close()
    check(os.path.exists(path), "file: it stays for torch")
    del torchs
    check(not os.path.exists(path), "file: which removes it as the last")
    ours = Store("file://" + path, world_size=2, timeout_ms=10000)
    torchs = dist.FileStore(path, 2)
    torchs.set("k", "v")
    same(ours.get("k"), b"v", "file: the other way round")
    del torchs
    check(os.path.exists(path), "file: it stays for us")
    ours.close()
    check(not os.path.exists(path), "file: who remove it as the last")


WORKER = """
import sys, torch, torch.distributed as dist, datetime
rank, port = int(sys.argv[1]), int(sys.argv[2])
store = dist.TCPStore("127.0.0.1", port, is_master=False,
                      wait_for_workers=False)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2,
                        timeout=datetime.timedelta(seconds=60))
t = torch.tensor([rank + 1.0])
dist.all_reduce(t)
assert t.item() == 3.0, t
dist.barrier()
dist.destroy_process_group()
"""


def test_gloo():
    """A whole job of torch meets in our store."""
    if not dist.is_gloo_available():
        return
    ours = Store("tcp://127.0.0.1:0", serve=1)
    env = dict(os.environ, GLOO_SOCKET_IFNAME="lo")
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(rank), str(ours.port)],
            env=env, stderr=subprocess.DEVNULL)
        for rank in range(2)
    ]
    same([job.wait(120) for job in jobs], [0, 0], "gloo meets in our store")
    ours.close()


test_our_server()
test_torchs_server(True)
test_torchs_server(False)
test_workers()
test_file(sys.argv[2])
test_gloo()
print("1..%d" % count)
sys.exit(failed != 0)
