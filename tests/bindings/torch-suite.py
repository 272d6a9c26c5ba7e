# SPDX-License-Identifier: BSD-3-Clause
"""Run PyTorch's own tests of a backend of torch.distributed.

The tests are those of the installed torch:
torch.testing._internal.distributed.distributed_test. This process imports torch
once, and forks a driver for each test, which forks the ranks. A driver that is too
slow is killed with its ranks.

Output: a line for each test, of test, result, seconds and reason, separated by tabs.
Results are pass, skip, fail and time-out. The exit status is 0 if no test failed."""

import argparse
import fnmatch
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

MODULE = "torch.testing._internal.distributed.distributed_test"
# A rank that dies need not end the others; a driver waits 300 seconds for them.
LIMIT_SECONDS = 150


class Name(str):
    """A backend's name for tests that choose their code by it: also equal to `like`."""

    like = ""
    __hash__ = str.__hash__

    def __eq__(self, other):
        return str.__eq__(self, other) or self.like == other

    def __ne__(self, other):
        return not self == other


def prepare(backend: str, like: str, ranks: int):
    """Return the class of the tests, with those that the backend `like` runs.

    The tests' decorators compare names of backends when the class is made; what runs
    in the tests takes the name from the module later, and may compare it as well."""
    os.environ.update(
        BACKEND=like,
        WORLD_SIZE=str(ranks),
        MASTER_ADDR="127.0.0.1",
        OMP_NUM_THREADS="1",
        CUDA_VISIBLE_DEVICES="",
        TEMP_DIR=tempfile.gettempdir(),
    )
    sys.argv = sys.argv[:1]
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    from torch.testing._internal import common_distributed as common
    from torch.testing._internal.distributed import distributed_test as module

    dist.Backend(backend)
    for names in common.DistTestCases.backend_feature.values():
        if like in names:
            names.add(backend)
    for names in (
        module.PROFILING_SUPPORTED_BACKENDS,
        module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS,
    ):
        names.append(backend)
    os.environ["BACKEND"] = backend
    Name.like = like
    module.BACKEND = Name(backend)

    class Suite(module.TestDistBackend, module.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    Suite.__module__ = "__main__"
    return Suite


def drive(suite, name: str, log: str, descriptor: int):
    """Run one test in this process, and write its result to the descriptor."""
    os.setsid()
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(out, 1)
    os.dup2(out, 2)
    result = unittest.TestResult()
    unittest.TestSuite([suite(name)]).run(result)
    if result.skipped:
        answer = "skip", result.skipped[0][1]
    elif problems := result.errors + result.failures:
        answer = "fail", problems[0][1]
    else:
        answer = "pass", ""
    os.write(descriptor, json.dumps(answer).encode())
    os._exit(0)


def answer_of(descriptor: int, limit: float):
    """Return the result that the driver writes, read until it ends or is late."""
    end = time.monotonic() + limit
    data = b""
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return "time-out", f"not ended after {limit} seconds"
        part = os.read(descriptor, 65536)
        data += part
        if data.endswith(b"]"):
            return tuple(json.loads(data))
        if not part:
            return "fail", "the driver has died"


def run(suite, name: str, log: str, limit: float):
    """Run one test by a driver of its own; return result and reason."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        drive(suite, name, log, writer)
    os.close(writer)
    try:
        return answer_of(reader, limit)
    finally:
        os.close(reader)
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(pid, 0)


def reason_of(text: str) -> str:
    """Return the last exception's line of a traceback, or the text if it is a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return " ".join((errors[-1:] or lines[:1] or [""])[0].split())[:300]


def names_of(suite, pattern: str, listed: Path | None):
    """Return the tests whose names match, of those that the file lists, if given."""
    names = unittest.TestLoader().getTestCaseNames(suite)
    if listed:
        lines = (line.split("#")[0].strip() for line in listed.read_text().splitlines())
        wanted = set(filter(None, lines))
        missing = wanted.difference(names)
        if missing:
            sys.exit(f"{listed}: this torch has no test {sorted(missing)[0]}")
        names = [name for name in names if name in wanted]
    return [name for name in names if re.search(pattern, name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="dscomm")
    parser.add_argument("--like", default="gloo", help="run what this backend runs")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--tests", default="", help="regular expression of names")
    parser.add_argument("--list", type=Path, help="file of names, one a line")
    parser.add_argument("--output", type=Path, help="file, or else standard output")
    parser.add_argument("--logs", type=Path, help="folder for what the tests print")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS)
    options = parser.parse_args()
    suite = prepare(options.backend, options.like, options.ranks)
    output = options.output.open("w") if options.output else sys.stdout
    failed = False
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
    for name in names_of(suite, options.tests, options.list):
        start = time.monotonic()
        log = str(options.logs / name) if options.logs else os.devnull
        result, reason = run(suite, name, log, options.limit)
        if result != "pass" and options.logs:
            Path(log + ".reason").write_text(reason)
        seconds = time.monotonic() - start
        print(name, result, f"{seconds:.1f}", reason_of(reason), sep="\t", file=output)
        output.flush()
        failed |= result in ("fail", "time-out")
    sys.exit(failed)


if __name__ == "__main__":
    main()
