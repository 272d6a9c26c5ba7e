#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws doc/trace.svg: a part of a trace, and the summary of the same run.

    zcat examples/digits/digits.csv.gz >digits.csv
    DSCOMM_PROFILE=summary:t.txt,trace:t.json \\
        dscomm run -n 4 examples/digits/digits -e 3 digits.csv
    doc/trace.py t.json t.txt FROM_US FOR_US >doc/trace.svg

FROM_US and FOR_US say which part, in microseconds of the trace. Each rank is a
row, each operation a box; a line joins the ranks of a collective, and ends at the
one that began last.
"""
import html
import json
import sys

WIDTH, LEFT, ROW, TOP = 1000, 150, 44, 64
COLORS = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d"]
BACK, LINE, TEXT = "#ffffff", "#d0d0d0", "#222222"


def text(x, y, words, size=11, more=""):
    print(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" {more}>{html.escape(words)}</text>')


def main(path, table, begin, length):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    with open(table, encoding="utf-8") as file:
        lines = file.read().splitlines()
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    slices = [e for e in events if e["ph"] == "X" and
              e["ts"] < begin + length and e["ts"] + e["dur"] > begin]
    shown = {}  # an arrow's steps in the part
    for e in events:
        if e["ph"] in "stf" and begin <= e["ts"] <= begin + length:
            shown.setdefault(e["id"], []).append(e)
    colors = {n: COLORS[i % len(COLORS)] for i, n in enumerate(sorted({e["name"] for e in slices}))}

    def x_of(us):
        us = min(max(us, begin), begin + length)
        return LEFT + (us - begin) / length * (WIDTH - LEFT - 35)

    bottom = TOP + ROW * len(names)
    height = bottom + 30 + 14 * len(lines) + 10
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
          f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" fill="{TEXT}">')
    print("<!-- SPDX-License-Identifier: BSD-3-Clause; made by doc/trace.py -->")
    print(f'<rect width="100%" height="100%" fill="{BACK}"/>')
    text(20, 22, "trace:t.json, examples/digits on 4 ranks", 14, 'font-weight="bold"')
    for i, (name, color) in enumerate(colors.items()):
        print(f'<rect x="{WIDTH - 260 + 120 * i}" y="12" width="12" height="12" fill="{color}"/>')
        text(WIDTH - 244 + 120 * i, 22, name)
    for i in range(6):
        us = begin + length * i / 5
        print(f'<line x1="{x_of(us):.1f}" y1="{TOP - 14}" x2="{x_of(us):.1f}" y2="{bottom}" '
              f'stroke="{LINE}"/>')
        text(x_of(us), TOP - 18, f"{(us - begin):.0f} µs", 10, 'text-anchor="middle"')
    for rank, name in sorted(names.items()):
        y = TOP + ROW * rank
        text(20, y + 19, name.split("(")[0].strip(), 12)
        text(20, y + 33, "(" + name.split("(")[1], 9, 'fill="#777777"')
    for e in slices:
        x, end = x_of(e["ts"]), x_of(e["ts"] + e["dur"])
        y = TOP + ROW * e["pid"] + 6
        late = e["args"].get("waited_for") is None
        print(f'<rect x="{x:.1f}" y="{y}" width="{max(end - x, 1.5):.1f}" height="{ROW - 14}" '
              f'fill="{colors[e["name"]]}" fill-opacity="{1 if late else 0.55}" rx="2"/>')
        if end - x > 120:
            words = f"{e['name']} {e['args']['sequence']}"
            if not late:
                words += f": waited for rank {e['args']['waited_for']}"
            text(x + 5, y + 19, words, 10)
    for steps in filter(lambda s: len(s) > 1, shown.values()):
        steps.sort(key=lambda e: e["ts"])
        at = [(x_of(e["ts"]), TOP + ROW * e["pid"] + ROW / 2 - 1) for e in steps]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        print(f'<polyline points="{points}" fill="none" stroke="{TEXT}" stroke-width="1"/>')
        print(f'<circle cx="{at[-1][0]:.1f}" cy="{at[-1][1]:.1f}" r="3.5" fill="{TEXT}"/>')
    text(20, bottom + 24, "summary", 14, 'font-weight="bold"')
    for i, line in enumerate(lines):
        text(20, bottom + 44 + 14 * i, line, 9.6, 'font-family="monospace" xml:space="preserve"')
    print("</svg>")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
