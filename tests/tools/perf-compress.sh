#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm perf --compress: its rows, its forms, its advice, and what it refuses.

. "$abs_top_srcdir/tests/tools/fixture.sh"

for codec in none float16 bfloat16 onebit int8 topk; do
    for ranks in 1 2 3; do
        perf -n $ranks --compress $codec -b 4 -e 300K -f 1000 \
            -d float16,bfloat16,float32,float64 -t 0.0005 -w 1
        is "$status $(rows | grep -c .) $(column 16)" '0 8 0 ' \
            "$codec, $ranks ranks: all give the same bits"
    done
done

# A header of 16 bytes and 1/32 of the floats, to one rank and from it
perf -n 2 --compress onebit -b 1M -e 1M -t 0.0005
is "$(rows | awk '{ print $2, $3, $13, $14 }')" '1048576 262144 32800 3.13' \
    'what travels'
like "$out" '^# It pays where a rank.s link moves less than [0-9.]* GB/s' 'advice'
like "$out" '^# moves [0-9.]* GB/s: inside one node it does not pay' \
    'and for where it is'
perf -n 2 all_reduce --compress onebit --async -b 1M -e 1M -t 0.0005
is "$status $(column 16)" '0 0 ' 'with works'

perf -n 2 --compress int8 -b 1K -e 4K -t 0.0005 --csv
is "$(head -n 1 "$scratch/out" | tr ',' '\n' | wc -l | tr -d ' ')" 18 'CSV: names'
is "$(awk -F, '{ print NF }' "$scratch/out" | sort -u)" 18 'CSV: values'
perf -n 2 --compress int8 -b 0 -e 8 -f 2 -t 0.0005 -c 0 --json
is "$(python3 -c 'import json, sys
found = json.load(sys.stdin)
print(found["format"], [(row["count"], row["wrong"]) for row in found["rows"]])' \
    <"$scratch/out")" 'dscomm-perf-compress [(1, None), (2, None)]' \
    'from nothing, and not verified'
perf -n 2 --compress int8 -b 1K -e 4K -t 0.0005 --json
is "$(python3 -c 'import json, sys
found = json.load(sys.stdin)
print(found["codec"], found["ranks"], [row["bytes"] for row in found["rows"]])' \
    <"$scratch/out")" 'int8 2 [1024, 4096]' 'JSON'

# refuses WORD WHAT...
refuses()
{
    word=$1
    shift
    perf "$@"
    is "$status" 2 "$*: status"
    like "$err" "$word" "$*: sentence"
}
refuses "no codec 'zip'; there are none " --compress zip
refuses 'broadcast has no compressed form' broadcast --compress onebit
refuses 'int32 is not compressed' --compress onebit -d int32
refuses '-o max is not compressed' --compress onebit -o max
refuses '--compress and -r exclude' --compress onebit -r 1
refuses '--compress and -m exclude' --compress onebit -m 2
refuses '--compress and --overlap exclude' --compress onebit --overlap
refuses '--compress and --save exclude' --compress onebit --save "$scratch/x"
tap_done
