#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Traces of all ranks, read by a parser of JSON: the operations are those that the
# program has counted itself, rows are in order, arrows join what belongs together.
# Stragglers: the others have waited for a rank that sleeps.

. "$abs_top_srcdir/tests/tap.sh"

run=$abs_top_builddir/tools/dscomm
count=$abs_top_builddir/tests/profiler/count
late=$abs_top_builddir/tests/profiler/late
own=$scratch/own
file=$scratch/trace.json
unset DSCOMM_PROFILE DSCOMM_PROFILER_PLUGIN
command -v python3 >/dev/null || skip_all 'no python3'

# parse WHAT FILE OUT
parse()
{
    python3 "$abs_top_srcdir/tests/profiler/trace.py" "$1" "$2" >"$3" 2>"$scratch/error" &&
        return
    sed 's/^/# /' "$scratch/error"
    return 1
}

seed=0
while read -r level phases settings; do
    seed=$((seed + 1))
    rm -f "$own".? "$file"
    # Settings are words on purpose.
    # shellcheck disable=SC2086
    env $settings DSCOMM_PROFILE="$level,trace:$file" \
        "$run" run -n 4 "$count" "$own" 300 $seed 2>"$scratch/error"
    result $? "a program is traced ($level, $settings)" || sed 's/^/# /' "$scratch/error"
    parse trace "$file" "$scratch/got"
    result $? 'the trace is complete and in order'
    parse phases "$file" "$scratch/phases"
    is "$(cat "$scratch/phases")" "$([ "$phases" = none ] || echo "$phases" | tr + ' ')" \
        "phases: $phases"
    sort "$own".? | uniq -c | awk '{ print $2 "," $1 }' | LC_ALL=C sort >"$scratch/want"
    same "$scratch/got" "$scratch/want" 'it has the operations that the program has counted'
done <<'END'
level:2 copy_in_us+copy_out_us+other_us+reduce_us+wait_us DSCOMM_BACKEND=shm
level:1 none DSCOMM_PROGRESS=thread
END

for victim in 0 2; do
    DSCOMM_PROFILE="json:$scratch/profile.json,trace:$file,summary:$scratch/summary" \
        "$run" run -n 4 "$late" 5 $victim 2>"$scratch/error"
    result $? "rank $victim is late" || sed 's/^/# /' "$scratch/error"
    parse stragglers "$scratch/profile.json" "$scratch/got"
    result $? 'the report is consistent'
    { echo $victim && seq 0 3 | sed "/$victim/d; s/\$/: $victim/"; } >"$scratch/want"
    same "$scratch/got" "$scratch/want" 'the others have waited for it'
    like "$(sed -n '/^Rank /,$p' "$scratch/summary" | sed -n 2p)" "^$victim " \
        'it is the first of the summary'
    parse trace "$file" "$scratch/got"
    result $? 'the trace is complete and in order'
done

# Rank 2 dies after five rounds of 0.2 s. Of 3 ranks, the group of those that are not
# late is 1 and 2: its collectives have no second rank.
while read -r ranks victim left counted; do
    DSCOMM_PROFILE="stragglers,json:$scratch/profile.json,deepspeed:$scratch/deepspeed
        ,summary:$scratch/summary" \
        "$run" run -n "$ranks" --survive "$late" 5 "$victim" 2 2>"$scratch/error"
    like "$(cat "$scratch/summary")" 'Missing ranks: 2\.' "of $ranks ranks, rank 2 dies"
    sed -n '/^Rank /,$p' "$scratch/summary" |
        awk -v rank="$victim" 'NR == 2 { good = $1 == rank && $3 == 5 && $4 == 5 && $5 > 900 }
            END { exit !good }'
    result $? "rank $victim was late in all collectives" || sed 's/^/# /' "$scratch/summary"
    is "$(sed -n '/^Breakdown/,$p' "$scratch/deepspeed" | grep -A 1 '^all_reduce' |
        awk 'NR == 2 { print $3 }')" "$counted" 'those of all survivors are in the breakdown'
    like "$(cat "$scratch/profile.json")" "\"unmatched_collectives\": $left," \
        "$left are left out"
    is "$(sed -n 's/^Not in the times of stragglers: \([0-9]*\) .*/\1/p' "$scratch/summary")" \
        "$(echo "$left" | grep -v '^0')" 'and the summary says so'
done <<'END'
4 3 0 25
3 0 5 10
END

# Ranks 2 and 3 have clocks of their own, 100,000 s ahead.
cat >"$scratch/start" <<'END'
#!/bin/sh
[ "$RANK" -lt 2 ] || set -- unshare --time --monotonic 100000 --fork "$@"
exec "$@"
END
chmod +x "$scratch/start"
if unshare --time --monotonic 100000 --fork true 2>"$scratch/error"; then
    DSCOMM_PROFILE="json:$scratch/profile.json,trace:$file" \
        "$run" run -n 4 "$scratch/start" "$late" 5 2 2>"$scratch/error"
    result $? 'ranks have different clocks' || sed 's/^/# /' "$scratch/error"
    parse trace "$file" "$scratch/got"
    result $? 'the trace is complete and in order'
    parse clocks "$file" "$scratch/got"
    printf '%s\n' '0: 0 exactly' '1: 0 exactly' '2: -100000000000000' \
        '3: -100000000000000' >"$scratch/want"
    same "$scratch/got" "$scratch/want" 'their offsets are right within the error'
    parse stragglers "$scratch/profile.json" "$scratch/got"
    printf '%s\n' 2 '0: 2' '1: 2' '3: 2' >"$scratch/want"
    same "$scratch/got" "$scratch/want" 'and the others have waited for the late rank'
else
    skip 'ranks have different clocks' "no time namespace: $(head -n 1 "$scratch/error")"
fi
tap_done
