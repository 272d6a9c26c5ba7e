#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares dscomm with the MPIs of this host, and with PyTorch's gloo and DeepSpeed's
all_reduce over shared memory; `make bench` runs it.

In a build folder, after `make bench-compare`:

    ../tests/bench/compare/compare.py
    ../tests/bench/compare/compare.py --calls message --bytes 64K,256K --fresh

The libraries take turns. A cache line is timed before and after each figure: figures of
which the two differ are dropped, and only those of one placement are compared, "near" or
"far". A ratio is the time of the fastest peer by dscomm's: above 1, dscomm is faster. The
bar is the ratio that dscomm is to reach in one of the placements. Intel MPI is compared if
I_MPI_ROOT names it, gloo and DeepSpeed if TORCH_PYTHON is a Python that has torch or
deepspeed. These two have bars of their own, for all_reduce in place (--in-place), which is all
that they have. Nothing is fetched."""

import argparse
import collections
import contextlib
import json
import math
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile

FOLDER = "tests/bench/compare/"
SOURCE = os.path.dirname(os.path.abspath(__file__))
CALLS = ["all_reduce", "all_gather", "all_to_all", "broadcast", "reduce_scatter", "message",
         "barrier"]
BYTES = [32] + [1024 * 4**i for i in range(9)]
FAR_NS = 100  # of a cache line: processors that share a cache take less
MOVES = [2.0, 1.3, 1.2, 1.1, 1.1, 1.1, 1.05, 1.05, 1.05, 1.05]
BARS = {
    "all_reduce": [2.0, 1.8, 1.5, 1.6, 1.2, 1.15, 1.1, 1.2, 1.5, 2.0],
    "all_gather": MOVES, "all_to_all": MOVES, "broadcast": MOVES, "reduce_scatter": MOVES,
    "message": [1.1] + 9 * [1.05],
    "barrier": [1.0],
}
ALLOC_BARS = dict(zip(BYTES[3:], [2.0, 2.5, 2.5, 2.5, 2.0, 2.0, 2.0]))
# Of the two that are called from Python, for all_reduce: the ratio to that peer alone.
TORCH_BARS = {
    "deepspeed": dict(zip(BYTES, [7, 5, 2.5, 1.8, 1.4, 1.6, 1.2, 1.5, 2.2, 2.2])),
    "gloo": dict(zip(BYTES, [500, 500, 300, 150, 40, 20, 15, 10, 7, 6])),
}
MODULES = {"gloo": "torch", "deepspeed": "deepspeed"}
CONDITIONS = ["alloc", "fresh", "unpinned", "in_place"]


def bytes_of(text):
    number = text.upper().rstrip("KMG")
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[text.upper()[len(number):]]


def bytes_text(count):
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            return f"{count >> shift} {unit}"
    return f"{count} B"


# Peers: a function that returns the words before "loop"'s arguments, or None.

def openmpi(ranks, *settings):
    words = ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe"]
    if ranks > len(os.sched_getaffinity(0)):
        words += ["--mca", "mpi_yield_when_idle", "1"]
    return words + [*settings, "-n", str(ranks), FOLDER + "openmpi"]


def intel_build(root):
    """Compiles the loop for an Intel MPI; returns the program."""
    program = os.path.abspath(FOLDER + "intel")
    top = os.path.join(SOURCE, "../../..")
    library = os.path.join(root, "lib")
    if not os.path.exists(os.path.join(library, "libmpi.so")):
        library = os.path.join(library, "release")
    subprocess.run(["cc", "-O2", "-I", ".", "-I", top, "-I", os.path.join(root, "include"),
                    "-o", program, os.path.join(SOURCE, "loop.c"), os.path.join(SOURCE, "mpi.c"),
                    "-L", library, "-lmpi", f"-Wl,-rpath,{library}"], check=True)
    return program


def intel(ranks):
    root = os.environ["I_MPI_ROOT"]
    return ["env", "FI_TCP_IFACE=lo", "I_MPI_PIN=0",
            f"LD_LIBRARY_PATH={root}/lib:{root}/opt/mpi/libfabric/lib",
            os.path.join(root, "bin/mpiexec.hydra"), "-n", str(ranks), intel_build(root)]


def torch(peer, ranks):
    python = os.environ["TORCH_PYTHON"]
    return ["tools/dscomm", "run", "-n", str(ranks), "env", "GLOO_SOCKET_IFNAME=lo",
            "OMP_NUM_THREADS=1", f"TORCH_EXTENSIONS_DIR={os.path.abspath(FOLDER)}/extensions",
            f"PATH={os.path.dirname(os.path.abspath(python))}:{os.environ['PATH']}", python,
            os.path.join(SOURCE, "torch-loop.py"), peer]


def has_module(name):
    python = os.environ.get("TORCH_PYTHON")
    found = f"import importlib.util, sys; sys.exit(not importlib.util.find_spec('{name}'))"
    return bool(python) and not subprocess.run([python, "-c", found], check=False).returncode


PEERS = {
    "dscomm": lambda ranks: ["tools/dscomm", "run", "-n", str(ranks), FOLDER + "dscomm"],
    "openmpi": openmpi,
    "openmpi-ring": lambda ranks: openmpi(
        ranks, "--mca", "btl_vader_single_copy_mechanism", "none"),
    "openmpi-ucx": lambda ranks: openmpi(
        ranks, "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices",
        "any", "--mca", "osc", "^ucx"),
    "mpich": lambda ranks: ["mpirun.mpich", "-bind-to", "none", "-n", str(ranks), FOLDER + "mpich"],
    "intel": intel,
    "gloo": lambda ranks: torch("gloo", ranks),
    "deepspeed": lambda ranks: torch("deepspeed", ranks),
}


def is_there(peer):
    if peer == "intel":
        return os.path.exists(os.path.join(os.environ.get("I_MPI_ROOT", ""),
                                           "bin/mpiexec.hydra"))
    if peer in MODULES:
        return has_module(MODULES[peer])
    return os.path.exists(FOLDER + peer.split("-")[0])


def run(words, arguments, limit):
    """Returns the lines of a run: (bytes, us, line before, line after)."""
    env = dict(os.environ, DSCOMM_BACKEND_PATH=os.path.abspath("backends/.libs"),
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.truncate(1 << 16)
        job = subprocess.Popen([*words, file.name, *arguments], env=env, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
        try:
            out, err = job.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            print(f"# {words[-1]}: no end within {limit} s", file=sys.stderr)
            return []
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.name + ".store")  # of torch-loop.py
    if job.returncode:
        print(f"# {words[-1]}: {err.strip()[-300:]}", file=sys.stderr)
        return []
    # Launchers may say something, too.
    lines = [line.split() for line in out.splitlines() if line.startswith(arguments[0] + " ")]
    return [(int(line[1]), *map(float, line[2:])) for line in lines if len(line) == 5]


def line_ns(options, words):
    """The time of a cache line now, by dscomm's loop."""
    lines = run(words["dscomm"], ["barrier", "1", "0.1"], options.limit)
    return lines[0][3] if lines else 0.0


def run_peer(options, words, peer, arguments):
    """run(); around a program in Python, which cannot time a cache line, another one does."""
    if peer not in MODULES:
        return run(words[peer], arguments, options.limit)
    if peer == "deepspeed" and arguments[0] != "all_reduce":
        return []
    before = line_ns(options, words)
    figures = run(words[peer], arguments, options.limit)
    after = line_ns(options, words)
    return [(size, us, before, after) for size, us, _, _ in figures]


def placement(before, after, pinned):
    """"near" or "far"; None: the processors have moved. Ranks that are not pinned have none."""
    if not pinned:
        return "any"
    if (before > FAR_NS) != (after > FAR_NS):
        return None
    return "far" if before > FAR_NS else "near"


def measure(options, words):
    """{(call, bytes, placement): {peer: [us]}}, the times of lines, the figures dropped."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    lines, dropped = collections.defaultdict(list), 0
    extra = [name for name in CONDITIONS if getattr(options, name)]
    for call in ["copy", *options.calls]:
        sizes = options.bytes if call != "barrier" else [1]
        if call == "reduce_scatter" or call == "all_reduce":
            sizes = [size for size in sizes if size >= 4 * options.ranks]
        for number in range(options.rounds):
            print(f"# {call}, round {number + 1} of {options.rounds}", file=sys.stderr)
            for peer in options.peers if call != "copy" else ["dscomm"]:
                arguments = [call, ",".join(map(str, sizes)), str(options.ms), *extra]
                for size, us, before, after in run_peer(options, words, peer, arguments):
                    where = placement(before, after, not options.unpinned)
                    dropped += not where
                    if where:
                        found[call, size, where][peer].append(us)
                        lines[where] += [before, after]
    return found, lines, dropped


def rows_of(options, found):
    """Rows of the table: call, bytes, {placement: (us of each peer, ratio)}, bar."""
    rows = []
    for call in options.calls:
        for size in sorted({key[1] for key in found if key[0] == call}):
            cells = {}
            for where in ("near", "far", "any"):
                times = {peer: statistics.median(values)
                         for peer, values in found.get((call, size, where), {}).items()}
                rivals = [us for peer, us in times.items() if peer != "dscomm"]
                if rivals and "dscomm" in times:
                    cells[where] = (times, min(rivals) / times["dscomm"])
            bar = dict(zip(BYTES if call != "barrier" else [1], BARS[call])).get(size)
            if options.alloc:
                bar = ALLOC_BARS.get(size)
            if cells:
                rows.append((call, size, cells, bar))
    return rows


def torch_rows(options, found):
    """Rows of the peers that have bars of their own: peer, bytes, {placement: ratio}, bar."""
    rows = []
    for peer in (peer for peer in MODULES if peer in options.peers):
        for size, bar in TORCH_BARS[peer].items():
            ratios = {}
            for where in ("near", "far", "any"):
                times = found.get(("all_reduce", size, where), {})
                if peer in times and "dscomm" in times:
                    ratios[where] = (statistics.median(times[peer])
                                     / statistics.median(times["dscomm"]))
            if ratios:
                rows.append((peer, size, ratios, bar))
    return rows


def torch_markdown(rows):
    if not rows:
        return []
    text = ["\nall_reduce by one peer's time / dscomm's\n",
            "| | bytes | near | far | any | bar |", "| --- | ---: |" + " ---: |" * 4]
    for peer, size, ratios, bar in rows:
        bold = "**" if max(ratios.values()) < bar else ""
        cells = [f"{bold}{ratios[w]:.3g}{bold}" if w in ratios else ""
                 for w in ("near", "far", "any")]
        text.append(f"| {peer} | {bytes_text(size)} | {' | '.join(cells)} | {bar} |")
    return text


def markdown(options, rows, lines, dropped):
    text = [f"{platform.processor() or platform.machine()}: {machine()}; {options.ranks} ranks; "
            f"conditions: {', '.join(n for n in CONDITIONS if getattr(options, n)) or 'none'}; "
            f"median of {options.rounds} rounds, microseconds; {dropped} figures dropped."]
    for where, values in sorted(lines.items()):
        text.append(f"\n{where}: a cache line takes {statistics.median(values):.0f} ns one way\n")
        peers = [peer for peer in options.peers if any(peer in r[2].get(where, ({},))[0]
                                                       for r in rows)]
        text.append("| | bytes | " + " | ".join(peers) + " | ratio | bar |")
        text.append("| --- | ---: |" + " ---: |" * (len(peers) + 2))
        for call, size, cells, bar in rows:
            if where not in cells:
                continue
            times, ratio = cells[where]
            below = bar and max(cell[1] for cell in cells.values()) < bar
            text.append(f"| {call} | {bytes_text(size)} | "
                        + " | ".join(f"{times[p]:.3g}" if p in times else "" for p in peers)
                        + f" | {'**' if below else ''}{ratio:.2f}{'**' if below else ''}"
                        + f" | {bar or ''} |")
    return "\n".join(text) + "\n"


def machine():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} x {names[0] if names else '?'}, Linux {platform.release()}"


# The picture: time by size, a panel a call; without a library, so that none is needed.

COLOURS = {"dscomm": "#d62728", "best peer": "#1f77b4", "memcpy": "#999999"}
WIDE, HIGH, EDGE = 300, 240, 45


def curve(points, scale, colour):
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (scale(*point) for point in points))
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def panel(number, call, curves):
    """One panel: curves are {name: [(bytes, us)]}, both axes are logarithms."""
    all_points = [point for points in curves.values() for point in points]
    low_x, high_x = (f(math.log(p[0]) for p in all_points) for f in (min, max))
    low_y, high_y = (f(math.log(p[1]) for p in all_points) for f in (min, max))
    left = EDGE + number % 3 * (WIDE + EDGE)
    top = EDGE + number // 3 * (HIGH + EDGE)

    def scale(x, y):
        return (left + (math.log(x) - low_x) / (high_x - low_x or 1) * WIDE,
                top + HIGH - (math.log(y) - low_y) / (high_y - low_y or 1) * HIGH)

    parts = [f'<rect x="{left}" y="{top}" width="{WIDE}" height="{HIGH}" fill="none" '
             f'stroke="#ccc"/><text x="{left + 5}" y="{top - 5}">{call}, us</text>']
    for size in sorted({point[0] for point in all_points})[::2]:
        x = scale(size, 1)[0]
        parts.append(f'<text x="{x:.1f}" y="{top + HIGH + 12}" text-anchor="middle" '
                     f'font-size="8">{bytes_text(size)}</text>')
    for power in range(math.ceil(low_y / math.log(10)), math.floor(high_y / math.log(10)) + 1):
        y = scale(1, 10.0**power)[1]
        parts.append(f'<text x="{left - 3}" y="{y:.1f}" text-anchor="end" font-size="8">'
                     f'{10.0**power:g}</text><line x1="{left}" x2="{left + WIDE}" y1="{y:.1f}" '
                     f'y2="{y:.1f}" stroke="#eee"/>')
    return parts + [curve(points, scale, COLOURS[name]) for name, points in curves.items()]


def picture(rows, found, where):
    panels = []
    for call in dict.fromkeys(row[0] for row in rows if row[0] != "barrier"):
        mine = [(size, cells[where][0]) for name, size, cells, _ in rows
                if name == call and where in cells]
        if len(mine) < 2:
            continue
        curves = {"memcpy": [(size, statistics.median(found["copy", size, where]["dscomm"]))
                             for size, _ in mine if ("copy", size, where) in found],
                  "best peer": [(size, min(us for peer, us in times.items() if peer != "dscomm"))
                                for size, times in mine],
                  "dscomm": [(size, times["dscomm"]) for size, times in mine]}
        panels.append((call, curves))
    parts = [part for number, (call, curves) in enumerate(panels)
             for part in panel(number, call, curves)]
    for number, (name, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{EDGE + 130 * number}" y="18" fill="{colour}">{name}</text>')
    wide, high = EDGE + 3 * (WIDE + EDGE), EDGE + -(-len(panels) // 3) * (HIGH + EDGE)
    return ('<!-- SPDX-License-Identifier: BSD-3-Clause -->\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
            f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" '
            f'fill="white"/>' + "".join(parts) + "</svg>\n")


def names(text):
    return text.split(",")


def sizes(text):
    return [bytes_of(size) for size in text.split(",")]


def options_read():
    """The options; ends the program for what no run can have, before the first one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=names, default=CALLS)
    parser.add_argument("--bytes", type=sizes, default=BYTES)
    parser.add_argument("--peers", type=names, default=list(PEERS))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ms", type=float, default=4, help="of a batch; a figure has 9")
    parser.add_argument("--limit", type=int, default=120, help="seconds of a run")
    parser.add_argument("--fresh", action="store_true", help="inputs are written before each call")
    parser.add_argument("--alloc", action="store_true", help="buffers are of the library")
    parser.add_argument("--unpinned", action="store_true")
    parser.add_argument("--in-place", action="store_true", help="all_reduce has one buffer")
    parser.add_argument("--markdown", type=argparse.FileType("w"), help="file for the table")
    parser.add_argument("--plot", type=argparse.FileType("w"), help="file for the picture, SVG")
    parser.add_argument("--json", type=argparse.FileType("w"), help="file for all figures")
    options = parser.parse_args()
    for name, known in (("calls", CALLS), ("peers", PEERS)):
        unknown = set(getattr(options, name)) - set(known)
        if unknown:
            parser.error(f"--{name}: there is no {', '.join(sorted(unknown))}, but there are "
                         f"{', '.join(known)}")
    if min(*options.bytes, 1) < 1 or min(options.rounds, options.limit) < 1 or options.ms <= 0:
        parser.error("--bytes, --rounds, --ms and --limit must be positive")
    if options.ranks < 2 or "dscomm" not in options.peers:
        parser.error("two ranks or more, and dscomm among the peers, are needed to compare")
    if options.plot and not options.plot.name.endswith(".svg"):
        parser.error("--plot: the picture is SVG; give it a name that ends with .svg")
    return options


def main():
    options = options_read()
    absent = [peer for peer in options.peers if not is_there(peer)]
    if "dscomm" in absent:
        sys.exit("compare.py: run it in a build folder, after make bench-compare")
    for peer in absent:
        print(f"# {peer} is left out: it is not there", file=sys.stderr)
    options.peers = [peer for peer in options.peers if peer not in absent]
    words = {peer: PEERS[peer](options.ranks) for peer in options.peers}
    found, lines, dropped = measure(options, words)
    rows, by_torch = rows_of(options, found), torch_rows(options, found)
    text = markdown(options, rows, lines, dropped) + "\n".join([*torch_markdown(by_torch), ""])
    print(text, end="")
    if options.markdown:
        options.markdown.write(text)
    if options.plot and lines:
        most = max(lines, key=lambda where: len(lines[where]))
        options.plot.write(picture(rows, found, most))
    if options.json:
        json.dump([[*key, peers] for key, peers in found.items()], options.json)
    if not rows and not by_torch:
        sys.exit("compare.py: nothing was compared: see above, or the processors moved")
    below = [row for row in rows if row[3] and max(c[1] for c in row[2].values()) < row[3]]
    below += [row for row in by_torch if max(row[2].values()) < row[3]]
    reach = len(rows) + len(by_torch) - len(below)
    print(f"# {reach} rows reach their bars or have none, {len(below)} do not")
    sys.exit(bool(below))


main()
