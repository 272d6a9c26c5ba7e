# SPDX-License-Identifier: BSD-3-Clause
# Attacks the ports of a rank of backend tcp: hostile.py PID SEED. Exits with 0 if the rank
# has closed each connection that proved nothing. hostile.py PID SEED SECONDS holds 300
# connections to each port, and makes a new one for each that the rank closes.
import hmac
import os
import random
import selectors
import socket
import struct
import sys
import time

pid, rng = int(sys.argv[1]), random.Random(int(sys.argv[2]))


def ports():
    """The ports on which the process listens, from the kernel's tables."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if name.startswith("socket:["):
            inodes.add(name[8:-1])
    found = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as rows:
            for row in list(rows)[1:]:
                words = row.split()
                if words[3] != "0A" or words[9] not in inodes:
                    continue
                address, port = words[1].split(":")
                raw = b"".join(struct.pack("=I", int(address[i:i + 8], 16))
                               for i in range(0, len(address), 8))
                found.append((family, socket.inet_ntop(family, raw), int(port, 16)))
    return found


def connect(place):
    family, host, port = place
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(10)
    s.connect((host, port))
    return s


def closed(s):
    """Whether the rank closes the connection; what it sends before is discarded."""
    try:
        while s.recv(4096):
            pass
    except socket.timeout:
        return False
    except OSError:
        pass
    return True


def hello(sender, receiver, channel=0, magic=b"dscommN1"):
    return magic + struct.pack("<IIII", sender, receiver, channel, 0) + rng.randbytes(16)


def attacks():
    yield "random bytes", rng.randbytes(200)
    yield "another protocol", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + b"x" * 40
    yield "another rank", hello(0, 77)
    yield "no such sender", hello(0xFFFFFFFF, 1)
    yield "from itself", hello(1, 1)
    yield "a channel beyond all", hello(0, 1, 0xFFFF)
    yield "a proof of nothing", hello(0, 1) + bytes(32)
    yield "a frame in place of a proof", hello(0, 1) + rng.randbytes(4096)
    for _ in range(20):
        yield "a mutated hello", bytes(
            b ^ (1 << rng.randrange(8)) if rng.random() < 0.02 else b
            for b in hello(0, 1)) + rng.randbytes(32 + rng.randrange(64))


def crowd(places, seconds):
    places = [place for place in places if place[0] == socket.AF_INET]
    selector = selectors.DefaultSelector()
    end = time.monotonic() + seconds
    made = 0
    for place in places:
        try:
            for _ in range(300):
                selector.register(connect(place), selectors.EVENT_READ, place)
        except OSError as error:  # a network that this host does not reach
            print(f"{place}: {error}")
    while time.monotonic() < end:
        for key, _ in selector.select(0.1):
            selector.unregister(key.fileobj)
            key.fileobj.close()
            selector.register(connect(key.data), selectors.EVENT_READ, key.data)
            made += 1
    print(f"{made} connections were closed and made anew")


def main():
    places = ports()
    if not places:
        sys.exit("the rank does not listen")
    if len(sys.argv) > 3:
        crowd(places, float(sys.argv[3]))
        return
    place = places[0]
    for what, data in attacks():
        s = connect(place)
        try:
            s.sendall(data)
        except OSError:
            pass
        if not closed(s):
            sys.exit(f"not closed: {what}")
        s.close()
    # What a rank answers to a hello proves nothing in another connection.
    s = connect(place)
    s.sendall(hello(0, 1))
    challenge = s.recv(48, socket.MSG_WAITALL)
    t = connect(place)
    t.sendall(hello(0, 1))
    t.recv(48, socket.MSG_WAITALL)
    t.sendall(challenge[16:])
    if not closed(t):
        sys.exit("not closed: a reflected proof")
    # The proof of a rank of another job
    s = connect(place)
    first = hello(0, 1)
    s.sendall(first)
    challenge = s.recv(48, socket.MSG_WAITALL)
    s.sendall(hmac.digest(bytes(32), b"C" + first + challenge[:16], "sha256"))
    if not closed(s):
        sys.exit("not closed: a proof with the secret of another job")
    # A hello that comes byte by byte does not last longer than one that does not come.
    slow = [connect(place) for _ in range(8)]
    begin = time.monotonic()
    while slow and time.monotonic() - begin < 10:
        for s in list(slow):
            try:
                s.sendall(hello(0, 1)[:1])
            except OSError:
                slow.remove(s)
        time.sleep(0.2)
    if slow:
        sys.exit("not closed: a hello that comes byte by byte")
    # Connections that send nothing, or half a hello, or close.
    idle = [connect(place) for _ in range(150)]
    for s in idle[::2]:
        s.sendall(hello(0, 1)[:20])
    for s in idle[::3]:
        s.close()
    begin = time.monotonic()
    if not all(closed(s) for s in idle if s.fileno() >= 0):
        sys.exit("not closed: a slow handshake")
    print(f"closed all, the slow ones after {time.monotonic() - begin:.1f} s")


main()
