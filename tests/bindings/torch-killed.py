# SPDX-License-Identifier: BSD-3-Clause
"""One of three ranks that train by DDP fails: the others raise, and say which one.

Prints TAP. There is no launcher: it would end the other ranks itself."""

import datetime
import os
import re
import signal
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

import dscomm_torch

RANKS, CULPRIT, STEP = 3, 1, 5
TIMEOUT = datetime.timedelta(seconds=8)
GUARD_S = 60  # ends a test whose ranks wait for ever


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def killed_with_a_hook():
    killed()


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)


def other_call():
    dist.broadcast(torch.ones(3), src=0)


# What rank 1 does, and what all ranks that go on say.
CASES = [
    (killed, r"rank 1 \(pid \d+ on .*\) .*died before all_reduce"),
    (killed_with_a_hook, r"rank 1 \(pid \d+ on .*\) .*died"),
    (stopped, r"all_reduce.* made no progress.* for rank 1 \(pid \d+, stopped by"),
    (other_call, r"rank 1 \(pid \d+ on .*\) called broadcast.* called all_reduce"),
]


def train(fail):
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 20))
    if fail is killed_with_a_hook:
        model.register_comm_hook(dscomm_torch.Int8State(), dscomm_torch.int8_hook)
    for step in range(2 * STEP):
        if dist.get_rank() == CULPRIT and step == STEP:
            fail()
        model.zero_grad()
        model(torch.randn(8, 20)).pow(2).mean().backward()


def run_rank(rank, fail, folder):
    with open(f"{folder}/{rank}", "w") as said:
        dist.init_process_group(
            "dscomm",
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=RANKS,
            timeout=TIMEOUT,
        )
        try:
            train(fail)
        except dist.DistBackendError as error:
            said.write(str(error))
    dist.destroy_process_group()


def start_rank(*arguments):
    """Starts a process that has imported torch already."""
    pid = os.fork()
    if pid == 0:
        try:
            run_rank(*arguments)
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(0)
    return pid


def wait_for(pids):
    """Returns the processes that have not ended in time."""
    end = time.monotonic() + GUARD_S
    while pids and time.monotonic() < end:
        pids = {pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0] == 0}
        time.sleep(0.01)
    return pids


def leftovers():
    return {name for name in os.listdir("/dev/shm") if "dscomm" in name}


def try_case(fail, sentence):
    before = leftovers()
    with tempfile.TemporaryDirectory() as folder:
        pids = [start_rank(rank, fail, folder) for rank in range(RANKS)]
        late = wait_for(set(pids) - {pids[CULPRIT]})
        for pid in {pids[CULPRIT]} | late:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        assert not late, f"{len(late)} ranks wait for ever"
        assert leftovers() <= before, leftovers()
        for rank in set(range(RANKS)) - {CULPRIT}:
            with open(f"{folder}/{rank}") as said:
                text = said.read()
            assert re.search(sentence, text), f"rank {rank} says '{text}'"


def main():
    print(f"1..{len(CASES)}", flush=True)
    for number, (fail, sentence) in enumerate(CASES, 1):
        word, text = "ok", f"rank {CULPRIT} of {RANKS}: {fail.__name__}"
        try:
            try_case(fail, sentence)
        except AssertionError as error:
            word = "not ok"
            print(f"# {text}: {error}", file=sys.stderr)
        print(f"{word} {number} - {text}", flush=True)


if __name__ == "__main__":
    main()
