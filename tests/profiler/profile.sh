#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_PROFILE in a program that knows nothing of it: the rows are what the program
# has counted itself, all formats have them, a dead rank is named, and another plugin
# can be loaded.

. "$abs_top_srcdir/tests/tap.sh"

run=$abs_top_builddir/tools/dscomm
count=$abs_top_builddir/tests/profiler/count
own=$scratch/own
unset DSCOMM_PROFILE DSCOMM_PROFILER_PLUGIN

# own_rows: "op,group,bytes,count" of what all ranks have noted
own_rows()
{
    sort "$own".? | uniq -c | awk '{ print $2 "," $1 }' | sort
}

# csv_rows: the same of a profile
csv_rows()
{
    awk -F, '$1 == "sizes" { print $2 "," $3 "," $7 "," $10 }' "$1" | sort
}

# Each rank seems to be on the host of its letter.
cat >"$scratch/start" <<'END'
#!/bin/sh
DSCOMM_HOST_ID=$(echo "$HOSTS" | cut -c $((RANK + 1)))
export DSCOMM_HOST_ID
exec "$@"
END
chmod +x "$scratch/start"

seed=0
while read -r HOSTS settings; do
    seed=$((seed + 1))
    rm -f "$own".?
    # Settings are words on purpose.
    # shellcheck disable=SC2086
    env HOSTS="$HOSTS" $settings \
        DSCOMM_PROFILE="csv:$scratch/profile.csv,json:$scratch/profile.json,
        prometheus:$scratch/profile.prom,deepspeed:$scratch/deepspeed,summary,summary" \
        "$run" run -n 3 "$scratch/start" "$count" "$own" 300 $seed 2>"$scratch/summary"
    result $? "a program runs under DSCOMM_PROFILE ($settings)"
    own_rows >"$scratch/want"
    csv_rows "$scratch/profile.csv" >"$scratch/got"
    same "$scratch/got" "$scratch/want" 'each row is what the program has counted'
done <<'END'
aab DSCOMM_BACKEND=two_level DSCOMM_TWO_LEVEL_BETWEEN=shm
aaa DSCOMM_PROGRESS=thread
aaa DSCOMM_BACKEND=shm
END
[ "$(wc -l <"$scratch/want")" -gt 50 ]
result $? 'and these are many'

# Sums over all rows, from the program's notes
bytes=$(cat "$own".? | awk -F, '{ sum += $3 } END { print sum }')
operations=$(cat "$own".? | wc -l)
is "$(awk -F, '$1 == "classes" { sum += $12 } END { print sum }' "$scratch/profile.csv")" \
    "$bytes" 'bytes by class'
is "$(awk '/^dscomm_operations_total/ { sum += $2 } END { print sum }' "$scratch/profile.prom")" \
    "$operations" 'operations for Prometheus'
is "$(awk '/^dscomm_bytes_total/ { sum += $2 } END { print sum }' "$scratch/profile.prom")" \
    "$bytes" 'bytes for Prometheus'
is "$(awk -F, '$1 == "peers" && $2 == "send" { sum += $10 } END { print sum }' "$scratch/profile.csv")" \
    "$(cat "$own".? | grep -c '^send,')" 'messages sent, by peer'
is "$(sed 1d "$scratch/deepspeed" | cut -c 41-60 | awk '{ sum += $1 } END { print sum }')" \
    "$operations" "operations in DeepSpeed's table"
# Sends and receives may end in any order.
awk -F, '!/^(send|recv),/ && !seen[$1]++ { print $1 }' "$own.0" >"$scratch/want"
sed 1d "$scratch/deepspeed" | grep -Ev '^( |send|recv)' >"$scratch/got"
same "$scratch/got" "$scratch/want" 'which are there in the order of their first use'
like "$(head -n 3 "$scratch/profile.json" | tr -d '\n')" \
    '"world_size": 3, "ranks": 3, "missing": \[\], "dropped": 0,' 'all ranks are in the JSON'
is "$(grep -c 'Sums over 3 of 3 ranks' "$scratch/summary")" 1 'the summary goes to stderr, once'

# --deepspeed-table adds to what DSCOMM_PROFILE says.
for words in '' stragglers ' deepspeed ,stragglers'; do
    DSCOMM_PROFILE=$words "$run" run -n 2 --deepspeed-table \
        "$abs_top_builddir/tests/profiler/late" 2 1 2>"$scratch/error"
    result $? "--deepspeed-table and DSCOMM_PROFILE='$words'"
    is "$(grep -c '^Comm\. Op .*Total Latency(ms)' "$scratch/error")" 1 'there is one table'
    is "$(grep -c '^Breakdown with straggler effect$' "$scratch/error")" \
        "$(echo "$words" | grep -c stragglers)" 'with the breakdown if there are stragglers'
done
# Rank 1 is late by 200 ms twice, which is the time of rank 0 alone.
sed -n '/^Breakdown/,$p' "$scratch/error" | grep -A 1 '^all_reduce' | cut -c 41- >"$scratch/got"
awk 'NR == 2 { exit !($1 == 4 && $3 > 300 && $2 < $3) }' "$scratch/got"
result $? 'a late rank costs the others time' || sed 's/^/# /' "$scratch/error"

# What is no regular file is written to, not replaced.
touch "$scratch/target"
ln -s "$scratch/target" "$scratch/link"
written=$(DSCOMM_PROFILE=csv:/dev/stdout,csv:$scratch/link "$run" run -n 3 "$count" "$own" 9 1)
like "$written" '^by,op,group' 'a profile goes to a pipe'
[ -L "$scratch/link" ] && [ -s "$scratch/target" ]
result $? 'and through a link'

# Nobody reads stderr, or a file would be too long.
mkfifo "$scratch/fifo"
while read -r size setting; do
    true <"$scratch/fifo" &
    (
        trap - PIPE
        exec 2>"$scratch/fifo"
        wait
        ulimit -f "$size"
        RANK=0 WORLD_SIZE=1 DSCOMM_PROFILE=$setting "$abs_top_builddir/tests/profiler/late" 20 0
    )
    result $? "a profile that cannot be written ends no program ($setting)"
done <<END
unlimited deepspeed,verbose
1 trace:$scratch/long
END
is "$(find "$scratch" -name 'long*')" '' 'and leaves no file behind'

DSCOMM_PROFILE=Summary "$run" run -n 3 "$count" "$own" 30 1 2>"$scratch/upper"
like "$(cat "$scratch/upper")" 'all_reduce' 'words may be in upper case'

# Without a launcher, because that would end the others
start()
{
    for rank in 0 1 2; do
        RANK=$rank WORLD_SIZE=3 DSCOMM_INIT_METHOD=file://$scratch/meet \
            DSCOMM_PROFILE=summary:$scratch/dead "$count" "$own" 30 1 2 \
            2>"$scratch/error.$rank" &
        echo $! >"$scratch/pid.$rank"
    done
    for rank in 0 1 2; do
        wait "$(cat "$scratch/pid.$rank")"
        echo $? >"$scratch/status.$rank"
    done
}
start 2>/dev/null
is "$(cat "$scratch/status.2")" 137 'rank 2 is dead'
is "$(cat "$scratch/status.0")" 1 'rank 0 finalizes all the same'
like "$(cat "$scratch/error.0")" 'dscomm_finalize.*rank 2 .*died' 'with the failure of the world'
# Rank 1 is missing, too, if it comes more than two seconds late.
like "$(cat "$scratch/dead")" 'Sums over [12] of 3 ranks' 'and writes what there is'
like "$(cat "$scratch/dead")" 'Missing ranks: (1, )?2\.' 'and who is missing'

DSCOMM_PROFILE=",summary:$scratch/commas,, ,verbose" "$run" run -n 3 "$count" "$own" 30 1 \
    2>"$scratch/error"
is "$?,$(grep -c 'Sums over' "$scratch/commas")" 0,1 'empty words are ignored'
is "$(grep -c 'op: ' "$scratch/error" | sed 's/^[1-9].*/some/'),$(grep -c ': -' "$scratch/error")" \
    some,0 'no bandwidth is negative'
DSCOMM_PROFILE=trace:$scratch/none/x,csv:$scratch/some "$run" run -n 3 "$count" "$own" 3 1 \
    2>"$scratch/error"
like "$(grep -m 1 none/x "$scratch/error")" \
    "DSCOMM_PROFILE: $scratch/none/x cannot be written at the end of the job: No such file or directory" \
    'a file that cannot be written is reported at the start'
is "$(grep -c "$scratch/some" "$scratch/error")" 0 'and no other file'
DSCOMM_PROFILE=json:$scratch "$run" run -n 3 "$count" "$own" 3 1 2>"$scratch/error"
like "$(cat "$scratch/error")" \
    "DSCOMM_PROFILE: $scratch cannot be written at the end of the job: Is a directory" \
    'nor can a folder'

# Refused settings
for setting in json jsn:x summary:; do
    DSCOMM_PROFILE=$setting "$count" "$own" 3 1 2>"$scratch/error"
    like "$(cat "$scratch/error")" "DSCOMM_PROFILE has '$setting'; it accepts" \
        "DSCOMM_PROFILE=$setting is refused"
done
DSCOMM_PROFILE=json:same,csv:same "$count" "$own" 3 1 2>"$scratch/error"
like "$(cat "$scratch/error")" "DSCOMM_PROFILE names the file 'same' twice" \
    'two outputs to one file are refused'
for setting in prof_ops: prof_op:send prof_all:1 level level:3; do
    DSCOMM_PROFILE=$setting "$count" "$own" 3 1 2>"$scratch/error"
    like "$(cat "$scratch/error")" \
        "DSCOMM_PROFILE has '$setting'; .*level:2, prof_all and prof_ops:OPERATION\\+OPERATION" \
        "DSCOMM_PROFILE=$setting is refused"
done
for setting in prof_ops:allgather 'prof_ops:send+allgather,summary'; do
    DSCOMM_PROFILE=$setting "$count" "$own" 3 1 2>"$scratch/error"
    like "$(cat "$scratch/error")" \
        "DSCOMM_PROFILE: prof_ops names 'allgather', .*give names such as all_reduce" \
        "DSCOMM_PROFILE=$setting is refused"
done

# The operations that count, from the program's notes
while read -r setting pattern; do
    rm -f "$own".?
    DSCOMM_PROFILE="$setting,csv:$scratch/profile.csv" "$run" run -n 3 "$count" "$own" 99 5
    own_rows | grep -E "$pattern" >"$scratch/want"
    csv_rows "$scratch/profile.csv" >"$scratch/got"
    same "$scratch/got" "$scratch/want" "$setting"
done <<'END'
prof_ops:all_reduce+send ^(all_reduce|send),
prof_ops:recv,prof_ops:barrier ^(recv|barrier),
prof_ops:send,prof_all .
END

# Phases at level 2: shm's own collectives, schedules over its messages, two levels

# phase OP PHASE: the operations that had this phase
phase()
{
    awk -F, -v op="$1" -v phase="$2" '$1 == "phases" && $2 == op && $(NF - 2) == phase {
        sum += $10 } END { print sum + 0 }' "$scratch/profile.csv"
}

# ns KIND OP: the sum of times
ns()
{
    awk -F, -v kind="$1" -v op="$2" '$1 == kind && $2 == op { sum += $13 }
        END { printf "%d", sum }' "$scratch/profile.csv"
}

while read -r HOSTS settings; do
    rm -f "$own".?
    # Settings are words on purpose.
    # shellcheck disable=SC2086
    env HOSTS="$HOSTS" $settings DSCOMM_PROFILE="level:2,csv:$scratch/profile.csv,summary" \
        "$run" run -n 3 "$scratch/start" "$count" "$own" 200 4 2>"$scratch/summary"
    result $? "level:2 ($settings)"
    for op in all_reduce all_gather broadcast barrier; do
        [ "$(ns phases $op)" -gt 0 ] && [ "$(ns phases $op)" -le "$(ns sizes $op)" ]
        result $? "the phases of $op are parts of its time"
    done
    [ "$(phase all_reduce reduce)" -gt 0 ] && [ "$(phase all_gather copy_out)" -gt 0 ] &&
        [ "$(phase all_gather wait)" -gt 0 ] && [ "$(phase broadcast copy_in)" -gt 0 ]
    result $? 'all phases are there'
    is "$(phase broadcast reduce)$(phase all_gather reduce)$(phase barrier reduce)" 000 \
        'but none that cannot be'
    like "$(cat "$scratch/summary")" 'all_reduce +world \(3\) .* reduce ' 'the summary has them'
done <<'END'
aaa DSCOMM_ALGORITHM=all_reduce:ring,all_gather:ring,broadcast:binomial DSCOMM_BACKEND=shm
aab DSCOMM_BACKEND=two_level DSCOMM_TWO_LEVEL_BETWEEN=shm
aaa DSCOMM_BACKEND=shm
END
# Every all_reduce of shm copies in, and one with elements reduces.
is "$(phase all_reduce copy_in)" "$(cat "$own".? | grep -c '^all_reduce,')" \
    'operations that copied in'
is "$(phase all_reduce reduce)" "$(cat "$own".? | grep -c '^all_reduce,.*,[1-9]')" \
    'operations that reduced'

DSCOMM_PROFILER_PLUGIN=$scratch/nothing.so DSCOMM_PROFILE=summary \
    "$count" "$own" 3 1 2>"$scratch/error"
like "$(cat "$scratch/error")" "nothing\\.so cannot be loaded: .*No such file" \
    'a plugin that is not there'

cat >"$scratch/odd.c" <<'END'
#include <dscomm/dscomm.h>
#include <dscomm/plugin.h>

static dscomm_status_t odd_open(const char *settings, void **ret_state)
{
    (void)settings, (void)ret_state;
    return (dscomm_status_t)7;
}

static void odd_close(void *state)
{
    (void)state;
}

const dscomm_profiler_plugin_t *dscomm_profiler_plugin(unsigned abi)
{
    static const dscomm_profiler_plugin_t plugin = {
        .size = sizeof plugin, .name = "odd", .open = odd_open, .close = odd_close};

    (void)abi;
    return &plugin;
}
END
# Flags are words on purpose.
# shellcheck disable=SC2086
$CC $SANITIZER_FLAGS -std=gnu11 -shared -fPIC -o "$scratch/odd.so" \
    -I"$abs_top_srcdir/lib" "$scratch/odd.c" 1>&2
DSCOMM_PROFILER_PLUGIN=$scratch/odd.so DSCOMM_PROFILE=any \
    "$count" "$own" 3 1 2>"$scratch/error"
like "$(cat "$scratch/error")" \
    'open of the profiler returned 7, which is neither DSCOMM_OK nor an error' \
    'a plugin that opens with a status above 0 is refused'

# Somebody else's plugin: that of dscomm-profiler(7)
sed -n '/^EXAMPLE$/,/^SEE ALSO$/s/^    //p' "$abs_top_srcdir/doc/dscomm-profiler.7.rst" \
    >"$scratch/sum.c"
# Flags are words on purpose.
# shellcheck disable=SC2086
$CC $SANITIZER_FLAGS -std=gnu11 -Wall -Wextra -Werror -shared -fPIC -o "$scratch/sum.so" \
    -I"$abs_top_srcdir/lib" "$scratch/sum.c" -L"$abs_top_builddir/lib/.libs" -ldscomm 1>&2
result $? 'the plugin of the manual compiles'
rm -f "$own".?
DSCOMM_PROFILER_PLUGIN=$scratch/sum.so DSCOMM_PROFILE=any \
    "$run" run -n 3 "$count" "$own" 100 3 2>"$scratch/error"
result $? 'a program runs under another plugin'
# At its beginning a receive has the size of its buffer, 3000 elements.
bytes=$(cat "$own".? | awk -F, '{ sum += $1 == "recv" ? 12000 : $3 } END { print sum }')
is "$(cat "$scratch/error")" "3 ranks, $bytes bytes" 'which has seen its operations'
tap_done
