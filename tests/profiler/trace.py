# SPDX-License-Identifier: BSD-3-Clause
# Reads a trace or a profile in JSON, checks all of it, and prints what trace.sh
# compares:
#
#     trace.py trace FILE         "op,group,bytes,count" of all operations, sorted
#     trace.py clocks FILE        "rank: offset in ns, within its error", rounded to s
#     trace.py phases FILE        the phases that operations have had
#     trace.py stragglers FILE    "last rank", and "rank: whom it has waited for"
#
# Exits with 1 and a sentence at the first thing that is wrong.
import collections
import json
import sys

STEPS = "stf"


def fail(*words):
    print(*words, file=sys.stderr)
    sys.exit(1)


def check_rows(slices):
    """Within a row, slices begin in order, and lie within or after each other."""
    rows, last = collections.defaultdict(list), {}
    for e in slices:
        if e["ts"] < 0 or e["dur"] < 0:
            fail("negative time:", e)
        begin, end = round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)
        row = rows[e["pid"], e["tid"]]
        if begin < last.get((e["pid"], e["tid"]), 0):
            fail("a row is out of order:", e)
        last[e["pid"], e["tid"]] = begin
        while row and row[-1][1] <= begin:
            row.pop()
        if row and row[-1][1] < end:
            fail("slices overlap:", e, row[-1])
        row.append((begin, end))


def check_flows(flows, slices, errors):
    """Each arrow has a begin and an end, on slices; a message goes back in time by
    no more than the clocks may be wrong."""
    ends = collections.defaultdict(set)
    for e in slices:
        key = e["pid"], e["tid"]
        ends[key].add(round(e["ts"] * 1000))
        ends[key].add(round((e["ts"] + e["dur"]) * 1000))
    arrows = collections.defaultdict(list)
    for e in flows:
        if round(e["ts"] * 1000) not in ends[e["pid"], e["tid"]]:
            fail("an arrow touches no slice:", e)
        arrows[e["id"]].append(e)
    for parts in arrows.values():
        parts.sort(key=lambda e: (STEPS.index(e["ph"]), e["ts"]))
        steps = "".join(e["ph"] for e in parts)
        if steps != "s" + "t" * (len(steps) - 2) + "f":
            fail("an arrow without begin or end:", parts)
        for a, b in zip(parts, parts[1:]):
            slack = (errors[a["pid"]] + errors[b["pid"]] if a["name"] == "message"
                     else 0)
            if round((a["ts"] - b["ts"]) * 1000) > slack:
                fail("an arrow goes back in time:", parts)
        if len({e["pid"] for e in parts}) != len(parts):
            fail("an arrow is on a rank twice:", parts)
    return arrows


def check_matches(slices, arrows):
    """Arrows join what group and sequence, or message, say; and all of it."""
    ranks = collections.defaultdict(set)
    sends = receives = 0
    for e in slices:
        if e["cat"] != "operation" or e["args"]["status"] != "success":
            continue
        if e["name"] == "send":
            sends += 1
        elif e["name"] == "recv":
            receives += 1
        else:
            ranks[e["args"]["group_id"], e["args"]["sequence"]].add(e["pid"])
    want = sorted(sorted(r) for r in ranks.values() if len(r) > 1)
    got = sorted(sorted(e["pid"] for e in a) for a in arrows.values()
                 if a[0]["name"] != "message")
    if want != got:
        fail("arrows of collectives:", len(got), "want:", len(want))
    messages = sum(a[0]["name"] == "message" for a in arrows.values())
    if sends != receives or messages != sends:
        fail("messages:", sends, "sent,", receives, "received,", messages, "arrows")


def trace(data):
    events = data["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    flows = [e for e in events if e["ph"] in STEPS]
    named = {e["pid"] for e in events if e["name"] == "process_name"}
    if named != set(range(data["otherData"]["world_size"])):
        fail("ranks:", named)
    kinds = {e["ph"] for e in events} - set("XMstf")
    if kinds:
        fail("unknown kinds:", kinds)
    check_rows(slices)
    errors = {r["rank"]: r["clock_error_ns"] for r in data["otherData"]["ranks"]}
    check_matches(slices, check_flows(flows, slices, errors))
    rows = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    if not {(e["pid"], e["tid"]) for e in slices} <= rows:
        fail("a row has no name")
    for rank in data["otherData"]["ranks"]:
        count = sum(e["pid"] == rank["rank"] for e in slices)
        if count != rank["events"] or rank["dropped"]:
            fail("rank", rank, "has", count)
    counts = collections.Counter(
        (e["name"], e["args"]["group"], e["args"]["bytes"])
        for e in slices if e["cat"] == "operation")
    for line in sorted(",".join(map(str, (*key, n))) for key, n in counts.items()):
        print(line)


def phases(data):
    seen = set()
    for e in data["traceEvents"]:
        if e["ph"] != "X" or e["cat"] != "operation":
            continue
        times = {key: round(ns * 1000) for key, ns in e["args"].items()
                 if key.endswith("_us") and key != "held_us"}
        if times and sum(times.values()) != round(e["dur"] * 1000):
            fail("phases are not all of the time:", e)
        seen |= times.keys()
    print(*sorted(seen))


def clocks(data):
    for rank in data["otherData"]["ranks"]:
        offset, error = rank["clock_offset_ns"], rank["clock_error_ns"]
        whole = round(offset / 1e9) * 1000000000
        if abs(offset - whole) > error:
            fail("not within the error:", rank)
        print(f"{rank['rank']}: {whole}{' exactly' if error == 0 else ''}")


def stragglers(data):
    if any(a["waited_ns"] < a["late_ns"] for a in data["arrivals"]):
        fail("all have waited less than one")
    rows = data["stragglers"]
    if sum(r["others_waited_ns"] for r in rows) != sum(r["waited_ns"] for r in rows):
        fail("waits are not those for others")
    print(rows[0]["rank"])
    for row in sorted(rows[1:], key=lambda r: r["rank"]):
        print(f"{row['rank']}: {row['waited_for']}")


with open(sys.argv[2], encoding="utf-8") as file:
    {"trace": trace, "phases": phases, "clocks": clocks,
     "stragglers": stragglers}[sys.argv[1]](json.load(file))
