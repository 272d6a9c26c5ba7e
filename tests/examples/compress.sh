#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The example digits with optimizers that send signs: it reads as much of the test
# as without compression, and counts fewer bytes.

. "$abs_top_srcdir/tests/tap.sh"

digits=$abs_top_builddir/examples/digits/digits
data=$abs_top_srcdir/examples/digits/digits.csv.gz
[ -x "$digits" ] || skip_all 'digits was not built: no zlib'
DSCOMM_TIMEOUT=60
export DSCOMM_TIMEOUT

# learn RANKS ARGUMENT...: $accuracy, $sent and $plain
learn()
{
    ranks=$1
    shift
    "$abs_top_builddir/tools/dscomm" run -n "$ranks" --timeout 100 "$digits" \
        "$@" "$data" >"$scratch/out" 2>"$scratch/err" ||
        sed 's/^/# /' "$scratch/err"
    accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\) %$/\1/p' "$scratch/out")
    accuracy=${accuracy:-0}
    sent=$(sed -n 's/^bytes sent: \([0-9]*\), .*/\1/p' "$scratch/out")
    plain=$(sed -n 's/^bytes sent: .*, uncompressed: \([0-9]*\)$/\1/p' \
        "$scratch/out")
    saved=$(sed -n 's/^saved: //p' "$scratch/out")
}

# holds EXPRESSION TEXT
holds()
{
    awk "BEGIN { exit !($1) }"
    result $? "$2"
}

learn 4
without=$accuracy
holds "$without >= 95" "plain digits: $without % of the test is read, of 95 %"

# 20 epochs of 45 batches; 3610 weights of 4 bytes: 900 all-reduces of 14440 bytes
for method in onebit onebit-lamb zero-one; do
    learn 4 --compress $method --warmup 900
    full=$accuracy
    holds "$full >= $without - 1.5" "$method, all warm-up: $full % is read"
    for n in 1 2 4; do
        learn $n --compress $method
        text="$method on $n ranks:"
        holds "$accuracy >= $without - 1" \
            "$text $accuracy % of the test is read, $without % by plain digits"
        holds "$accuracy >= $full - 1" \
            "$text $full % by the method with nothing but a warm-up"
        is "$plain" $((900 * 2 * (n - 1) * 14440)) "$text bytes without signs"
        case $n in
        1) is "$sent" 0 "$text nothing is sent" ;;
        *) holds "$sent * 4 < $plain" "$text $sent bytes are sent ($saved)" ;;
        esac
    done
done

# Warm-up in floats, then signs: what one step of them sends is not much more
# than a bit a weight, by whole tiles of 1024 and with headers.
learn 2 --compress onebit --warmup 900
is "$sent" "$plain" 'a warm-up without end saves nothing'
learn 2 --compress onebit --warmup 1
first=$((2 * 14440)) steps=899
holds "($sent - $first) / $steps / 2 < 2 * (2048 / 8 + 128)" \
    'a step sends a bit a weight, and headers'

for wrong in '--compress two-bit' '--warmup 0' '--warmup'; do
    # Arguments are words on purpose.
    # shellcheck disable=SC2086
    "$digits" $wrong >"$scratch/out" 2>"$scratch/err"
    is "$? $(grep -c '^Usage: digits' "$scratch/err")" '2 1' "usage: $wrong"
done
tap_done
