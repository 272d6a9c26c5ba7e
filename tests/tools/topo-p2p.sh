#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm topo --p2p: copies between devices of a stand-in for CUDA's driver, whose times are
# known, between cores of this machine, and between ranks; and what it refuses.

. "$abs_top_srcdir/tests/tools/fixture.sh"

machine=$abs_top_srcdir/tests/tools/topo/machine.xml
cuda=$abs_top_builddir/tests/tools/topo/.libs

# devices WHAT...: dscomm topo --p2p with that driver. 10 tensors of 10,000 float32 are
# 400,000 bytes: 16.667 us at 24 GB/s, 66.667 at 6, 133.333 at 3, 50 at 8, 20 at 20.
devices()
{
    out=$(LD_LIBRARY_PATH=$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$program" topo --p2p \
        --input "$machine" --elements 10000 "$@" 2>"$scratch/err")
    status=$?
    err=$(cat "$scratch/err")
}

devices
is $status 0 'devices: status'
is "$(echo "$out" | sed -n '/one pair at a time (/,/^$/p' | sed 's/ *$//')" \
    "GB/s, one pair at a time (from a row's end to a column's)
              cuda0        cuda1        cuda2         host
cuda0   1000.0 X       24.0 PIX     6.00 SYS     20.0 HOST
cuda1     24.0 PIX   1000.0 X       6.00 SYS     20.0 HOST
cuda2     6.00 SYS     3.00 SYS   1000.0 X       20.0 HOST
host      20.0 HOST    20.0 HOST    20.0 HOST       - X" 'devices: rates and paths'
is "$(echo "$out" | sed -n '/through the host (/,/^$/p' | grep ^cuda0 | tr -s ' ')" \
    'cuda0 - X 8.00 PIX - SYS - HOST' 'devices: through the host, where it is not needed'
is "$(echo "$out" | sed -n '/both directions/,/^$/p' | grep ^cuda2 | tr -s ' ')" \
    'cuda2 12.0 SYS 6.00 SYS - X 40.0 HOST' 'devices: the sum of both directions'
is "$(echo "$out" | sed -n '/^Why they differ/,$p' | grep -v '^Warning: ')" \
    'Why they differ
cuda0 -> cuda1 over PIX (at most one PCI bridge, or switch, 2 pairs): 16.7 us, 24 GB/s
cuda0 -> host over HOST (the link between the host'"'"'s memory and a device, 6 pairs): 20 us, 20 GB/s, 1.2 times as long as PIX: expected from the path
cuda0 -> cuda2 over SYS (the link between NUMA nodes, 4 pairs): 66.7 us, 6 GB/s, 4 times as long as PIX: expected from the path; its slowest link allows 31.5 GB/s, of which this is 19 %
cuda2 -> cuda1 takes 2 times as long as most over SYS: not expected from the path; see what else uses it, and whether a link of it runs with fewer lanes or at a lower speed' \
    'devices: why they differ'

like "$out" "^on $(uname -n), [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z\$" 'devices: where and when'

devices --iters 3 --json --trace "$scratch/trace.json"
echo "$out" >"$scratch/pairs.json"
python3 - "$scratch/pairs.json" "$scratch/trace.json" <<'END'
import json
import os
import sys
with open(sys.argv[1], encoding="utf-8") as file:
    copies = json.load(file)["copies"]
assert len(copies) == 1 and copies[0]["bytes"] == 400000
pairs = {(pair["from"], pair["to"]): pair for pair in copies[0]["pairs"]}
assert len(pairs) == 16
slow = pairs[("cuda2", "cuda1")]
assert abs(slow["alone"]["us"] - 133.333) < 0.01 and abs(slow["limit_gb_s"] - 31.5) < 0.1
assert abs(slow["together"]["us"] - 133.333) < 0.01
assert abs(pairs[("cuda1", "cuda0")]["staged"]["gb_s"] - 8) < 0.001
assert [outlier["to"] for outlier in copies[0]["outliers"]] == ["cuda1"]
# Only latencies are timed by a clock, and spread. 35 rates, 15 latencies
assert copies[0]["host"] == os.uname().nodename and copies[0]["time"].endswith("Z")
noisy = sum(pair.get("latency_spread_percent", 0) > 10 for pair in pairs.values())
assert ["latency_us" in pair for pair in pairs.values()] == \
    ["latency_spread_percent" in pair for pair in pairs.values()]
assert len(copies[0]["warnings"]) == (noisy > 0), copies[0]["warnings"]
assert not noisy or copies[0]["warnings"][0].startswith(f"{noisy} of 50 "), (noisy, copies[0]["warnings"])
with open(sys.argv[2], encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]
slices = [event for event in events if event["ph"] == "X"]
# Alone: 15 pairs; staged 2; both 6 twice; together 6: each three times.
assert len(slices) == 3 * (15 + 2 + 2 * 6 + 6), len(slices)
mine = [one for one in slices if (one["pid"], one["tid"]) == (2, 1)]
assert len(mine) == 3 * 3 and all(abs(one["dur"] - 133.333) < 0.01 for one in mine)
mine.sort(key=lambda one: one["ts"])
assert all(a["ts"] + a["dur"] <= b["ts"] + 0.01 for a, b in zip(mine, mine[1:]))
names = {(event["pid"], event["name"], event["tid"]): event["args"]["name"]
         for event in events if event["ph"] == "M"}
assert names[(2, "process_name", 0)] == "cuda2" and names[(2, "thread_name", 1)] == "to cuda1"
END
result $? 'devices: JSON and the trace have the same'

devices --iters 1 --output "$scratch/by-end.json"
is "$status $(python3 -c 'import json, sys
print(json.load(open(sys.argv[1], encoding="utf-8"))["copies"][0]["bytes"])' "$scratch/by-end.json")" \
    '0 400000' 'devices: the end of the name chooses JSON'
devices --iters 1 --format text --output "$scratch/by-name.dot"
like "$status $(cat "$scratch/by-name.dot")" '^0 Copies between 4 devices' \
    'devices: the format goes before the end of the name'

export FAKE_CUDA_FAIL=cuMemAlloc
devices
is $status 1 'no memory on the device: status'
is "$err" \
    'dscomm topo: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY; smaller --elements need less memory' \
    'no memory on the device'
export FAKE_CUDA_FAIL=cuMemAllocHost
devices
is "$err" \
    'dscomm topo: cuMemAllocHost: CUDA_ERROR_OUT_OF_MEMORY; smaller --elements need less memory' \
    'no pinned memory'
export FAKE_CUDA_FAIL=cuInit
devices
is "$err" 'dscomm topo: cuInit: CUDA_ERROR_INVALID_VALUE' 'a driver that fails'
unset FAKE_CUDA_FAIL
export FAKE_CUDA_CORRUPT=1
devices
is "$status $err" '1 dscomm topo: cuda1 has received other bytes than cuda0 has sent' \
    'a copy that copies nothing is found'
unset FAKE_CUDA_CORRUPT
export FAKE_CUDA_DEVICES=0
devices
like "$err" 'topo: CUDA shows no device to this process' 'no device'
unset FAKE_CUDA_DEVICES

# Cores
cores=$(taskset -cp $$ | sed 's/.*: //')
dscomm topo --p2p --host --tensors 2 --elements 1000 --iters 3
case $cores in
*[,-]*)
    is $status 0 "cores $cores: status"
    like "$out" '^Copies between [0-9]+ cores: 2 tensors of 1000 float32, together 0.008 MB$' \
        'cores: what is measured'
    like "$out" '^cpu[0-9]+ -> cpu[0-9]+ over (SMT|L2|L3|NODE|PKG|SYS) ' 'cores: why'
    ;;
*) skip 'cores' "this process may use only core $cores" ;;
esac
out=$(taskset -c "${cores%%[,-]*}" "$program" topo --p2p --host 2>&1)
is "$?,$out" '1,dscomm topo: this process may use one core only, so there are no pairs; mpirun binds to cores, unless it has --bind-to none' \
    'one core has no pairs'

# Ranks
DSCOMM_BACKEND_PATH=$abs_top_builddir/backends/.libs
export DSCOMM_BACKEND_PATH
for backend in shm tcp; do
    for ranks in 2 3; do
        dscomm topo --p2p --ranks -n $ranks --backend $backend --tensors 2 --elements 5000 \
            --iters 2 --json
        is $status 0 "$ranks ranks, $backend: status"
        echo "$out" >"$scratch/ranks.json"
        python3 - "$scratch/ranks.json" $ranks $backend <<'END'
import json
import sys
with open(sys.argv[1], encoding="utf-8") as file:
    copies = json.load(file)["copies"][0]
ranks = int(sys.argv[2])
assert sys.argv[3] in copies["how"] and len(copies["pairs"]) == ranks * ranks
for pair in copies["pairs"]:
    for way in ["alone", "both", "together"]:
        assert (way in pair) == (pair["from"] != pair["to"]), pair
        if way in pair:
            want = 40000 * (2 if way == "both" else 1) / pair[way]["us"] / 1e3
            assert abs(pair[way]["gb_s"] - want) < 0.01 * want + 0.001, pair
    assert ("latency_us" in pair) == (pair["from"] != pair["to"])
assert sum(one["pairs"] for one in copies["classes"]) == ranks * (ranks - 1)
END
        result $? "$ranks ranks, $backend: all pairs"
    done
done
out=$(taskset -c "${cores%%[,-]*}" "$program" topo --p2p --ranks -n 2 --elements 1000 --iters 2 \
    --backend shm 2>"$scratch/err")
is "$(echo "$out" | grep '^Warning: ')" \
    "Warning: 2 ranks share 1 processor of $(uname -n) and wait for their turn" \
    'ranks that share a processor: their times are not noise'
dscomm topo --p2p --ranks -n 2 --elements 1000 --output "$scratch/heat.svg" \
    --trace "$scratch/ranks.trace"
case $err in
*'built without cairo'*) skip 'a heat map' 'this build has no cairo' ;;
*)
    python3 -c 'import sys, xml.dom.minidom as m
m.parse(sys.argv[1])' "$scratch/heat.svg"
    result $? 'a heat map'
    # 20 repetitions of 2 pairs, alone, both ways and together
    is "$(grep -o '"ph":"X"' "$scratch/ranks.trace" | wc -l)" 120 'a trace of all ranks'
    ;;
esac

dscomm perf -n 2 --pairs --backend shm --elements 1000 --iters 1
like "$status $out" '^0 Copies between 2 ranks: 10 tensors of 1000 float32' 'dscomm perf --pairs is the same'
while read -r want pattern line; do
    eval "dscomm perf --pairs $line"
    is $status $want "status of: perf --pairs $line"
    like "$err" "^dscomm perf: .*$(echo "$pattern" | tr _ ' ')" "sentence of: perf --pairs $line"
done <<'END'
2 copies_between_ranks_need_at_least_two
2 --host --host
2 --tensors_must_be_1_to_1024 -n 2 --tensors 0
2 --output_can_end_in --output "$scratch/x.gif"
1 --output_/no/such/folder/x:_No_such_file -n 2 --output /no/such/folder/x
1 more_than_half_of_what_is_free -n 2 --elements 20000000000
END
dscomm perf --pairs --help
like "$status $out" '^0 ' 'dscomm perf --pairs --help'
is "$(echo "$out" | grep -c -e '--input' -e '--host' -e '--ranks')" 0 'it lists what pairs of ranks have'

# Colours and progress: only on the session's terminal, not on one that a launcher made
cat >"$scratch/count.py" <<'END'
import os
import pty
import subprocess
import sys
def read(fd):
    text = b""
    try:
        while part := os.read(fd, 4096):
            text += part
    except OSError:
        pass
    return text
own, what, words = sys.argv[1] == "own", sys.argv[2], sys.argv[3:]
if own:
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(words[0], words)
    text = read(fd)
    os.waitpid(pid, 0)
else:
    fd, other = pty.openpty()
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=other, start_new_session=True):
        os.close(other)
        text = read(fd)
sys.stdout.write(str(text.count({"colours": b"\x1b[97;48;5;", "progress": b"\r\x1b[K"}[what])))
END
colours()
{
    LD_LIBRARY_PATH=$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TERM=xterm python3 \
        "$scratch/count.py" "$1" colours "$program" topo --p2p --input "$machine" --elements 10000
}
unset NO_COLOR
# 15 pairs alone, 2 through the host, 12 both ways, 6 together
is "$(colours own)" 35 'a colour of each rate on a terminal'
is "$(colours other)" 0 'no colours on a terminal of a launcher'
is "$(NO_COLOR=1 colours own)" 0 'no colours with NO_COLOR'
progress()
{
    python3 "$scratch/count.py" "$1" progress sh -c \
        '"$0" perf -n 1 all_reduce -b 8 -e 8 --iters 1 2>&1 >/dev/null' "$program"
}
[ "$(progress own)" -gt 0 ]
result $? 'progress on a terminal'
is "$(progress other)" 0 'no progress on a terminal of a launcher'

while read -r want pattern line; do
    eval "dscomm topo --p2p $line"
    is $status $want "status of: $line"
    like "$err" "^dscomm topo: .*$(echo "$pattern" | tr _ ' ')" "sentence of: $line"
done <<'END'
2 --format_must_be_text_or_json_for_copies --format dot
2 --output_can_end_in_.txt_or_.json --host --output "$scratch/x.gif"
2 --trace_needs_the_name_of_a_file --host --trace -
2 --output_can_end_in_.txt_or_.json --host --output "$scratch/x.dot"
2 --output_can_end_in_.txt_or_.json --host --output "$scratch/x.xml"
2 --format_must_be_text_or_json_for_copies --host --format nccl --output "$scratch/x.json"
2 --host_and_--ranks_cannot_be_used_together --host --ranks
2 -n_and_--backend_need_--ranks --host -n 2
2 --most_needs_--host --ranks --most 3
2 --input_gives_the_paths_between_devices:_it_cannot_be_used_with_--host_and_--ranks --host --input "$machine"
2 --tensors_must_be_1_to_1024 --host --tensors -1
2 --elements_must_be --host --elements -5
2 --elements_must_be --host --elements 9223372036854775807
2 --iters_must_be --host --iters -1
2 --iters_must_be --host -w 1000000
2 --tensors_must_be_1_to_1024 --host --tensors 0
2 --elements_must_be --host --elements 0
2 --iters_must_be --host --iters 0
2 --iters_must_be --host -w -3
2 --most_must_be_at_least_2 --host --most 0
2 --most_must_be_at_least_2 --host --most 1
2 -n_must_be_1_to_4096 --ranks -n 0
2 -n_must_be_1_to_4096 --ranks -n -1
2 copies_between_ranks_need_at_least_two --ranks
1 more_than_half_of_what_is_free --ranks -n 2 --elements 20000000000
1 more_than_half_of --host --elements 20000000000
1 --trace_/no/such/folder/x:_No_such_file --host --trace /no/such/folder/x
1 --output_/no/such/folder/x:_No_such_file --host --output /no/such/folder/x
END

tap_done
