#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Dumps of the flight recorder after each kind of failure, and what dscomm analyze finds.

. "$abs_top_srcdir/tests/tools/jobs.sh"

trap 'kill_started; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
dumps=$scratch/dumps
failing=$abs_top_builddir/tests/tools/failing

# fail_by WAY: a job of four ranks fails, $found = the findings
fail_by()
{
    rm -rf "$dumps"
    DSCOMM_DUMP=$dumps run -n 4 --grace 50 "$failing" "$1"
    found=$("$program" analyze "$dumps" 2>&1)
    status=$?
    json=$("$program" analyze --json "$dumps")
    is "$(ls "$dumps" | grep -c 'json$')" 1 "$1: one dump"
    is $status 1 "$1: something is found"
}

# kinds: the kinds of findings, each once
kinds()
{
    printf '%s\n' "$json" | sed -n 's/.*"kind" : "\(.*\)".*/\1/p' | sort -u | tr '\n' ' '
}

# end_job: kills what start_node has started
end_job()
{
    kill_started
    finish
} 2>/dev/null

export DSCOMM_TIMEOUT=8
last=

# What ends a job of four ranks, and what its dump tells. In the patterns, R is the call
# of the others, W their group, and P a process.
while IFS='|' read -r way text pattern; do
    [ "$way" = "$last" ] || fail_by "$way"
    last=$way
    pattern=$(printf '%s\n' "$pattern" |
        sed 's/R(/all_reduce\\(count 4, float32, sum\\) #(/g; s/W:/^group .world.:/; s/P/\\(pid [0-9]+ on [^ ]+\\)/g')
    like "$found" "$pattern" "$way: $text"
done <<'END'
die|the dead rank, and its last call|^rank 1 P is dead; it was in no call; its last, R(4) 
die|who waits for it|W: rank 1 is behind: ranks? (0|2|3).* called R(5)
stop|the stopped rank|^rank 1 P is stopped; it was in no call
stop|who waits for it|W: rank 1 is behind: ranks 0, 2, 3 have called R(5)
stop|the failure|no progress for 8
late|what the late rank did|W: rank 1 is behind: ranks 0, 2, 3 have called R(5).*; rank 1 has made 4 collectives there, and was in no call
leave|a rank that finalizes|W: rank 1 P called dscomm_finalize
differ|another collective|rank 1 called broadcast\(count 4, float32, root 0\) #5
count|another count|rank 1 called all_reduce\(count 3, float32, sum\) #5
dtype|another type|rank 1 called all_reduce\(count 4, int32, sum\) #5
op|another reduction|rank 1 called all_reduce\(count 4, float32, max\) #5
root|another root|rank 1 called broadcast\(count 4, float32, root 2\) #5
root|the root of the others|called broadcast\(count 4, float32, root 0\) #5
abort|who has aborted, and why|^rank 1 aborted group 'world': the loss is not a number$
all|ranks that have all died: the first|^rank 0 P is dead
all|the last|^rank 3 P is dead
all|how|was killed by signal 9
END
# Ranks that end as soon as a call has failed, under dscomm run and without it.
while IFS='|' read -r way text pattern; do
    rm -rf "$dumps"
    DSCOMM_TIMEOUT=2 DSCOMM_DUMP=$dumps run -n 3 "$failing" "$way" exit
    is "$(ls "$dumps" | grep -c 'json$')" 1 "$text, ranks that end at once: one dump"
    like "$("$program" analyze "$dumps")" "$pattern" "$text, ranks that end at once: the failure"
    rm -rf "$dumps" "$scratch/meet"
    for r in 0 1 2; do
        DSCOMM_TIMEOUT=2 DSCOMM_DUMP=$dumps RANK=$r WORLD_SIZE=3 \
            DSCOMM_INIT_METHOD=file://$scratch/meet start_node $r "$failing" "$way" exit
    done
    finish 2>/dev/null
    is "$(ls "$dumps" | grep -c 'json$')" 1 "$text, ranks started by hand: one dump"
    like "$("$program" analyze "$dumps")" "$pattern" "$text, ranks started by hand: the failure"
done <<'END'
die|a death|^rank 1 .* (died|was killed by signal 9)
late|a time-out|no progress for 2
differ|a mismatch|^group .world.: rank . .* called .*, but rank
works|a time-out of works|^all_reduce[^:]* made no progress for 2000 ms: still waits for rank 1 \(pid [0-9]+
END
grep -q '"group_rank": 1, "pid": [1-9]' "$dumps"/*.json
result $? 'a time-out of works: the process of the culprit'
rm -f "$scratch"/out.* "$scratch"/err.*
fail_by late
is "$(kinds)" 'behind failure ' 'findings about a rank that does not come'
like "$json" '"ranks" : \[$' 'the ranks as data'
is "$(printf '%s\n' "$json" | grep -A 5 '"kind" : "failure"' | tr -d ' \n')" \
    '"kind":"failure","group":"world","sequence":5,"ranks":[1],' 'the failure and its culprit as data'

# Jobs that hang, and what dscomm analyze tells of them.
while IFS='|' read -r way text pattern; do
    if [ "$way" != "$last" ]; then
        end_job
        DSCOMM_TIMEOUT=100 start_node 0 "$program" run -n 4 "$failing" "$way"
        last=$way
    fi
    until_true sh -c '"$1" analyze "$2" 2>/dev/null | grep -Eq "$3"' sh "$program" "$pid" "$pattern"
    result $? "$way: $text" || "$program" analyze "$pid" | sed 's/^/# /'
done <<'END'
stop|a stopped rank|^rank 1 \(pid [0-9]+ on [^ ]+\) is stopped
receive|a circle of a message and a collective|^ranks 0, 1 wait for each other: rank 0 was in all_reduce\(count 4, float32, sum\) #5 of group 'world', rank 1 was in recv from rank 0 with tag 5 of group 'world'$
receive|the rank behind is in a message|rank 1 has made 4 collectives there, and was in recv from rank 0 with tag 5 of group 'world' for
lone|a message that nobody sends|^group 'world': rank 1 was in recv from rank 0 with tag 5, which rank 0 has not sent; rank 0 was in no call; its last, all_reduce\(count 4, float32, sum\) #4
any|a message of any rank|^group 'world': rank 1 was in recv from any rank with tag 5, which no rank has sent$
send|a message that nobody receives|^group 'world': rank 1 was in send to rank 0 with tag 5, which rank 0 has not received; rank 0 was in no call
circle|ranks that receive from each other|^ranks 0, 1, 2, 3 wait for each other: rank 0 was in recv from rank 1 with tag 5 of group 'world', rank 1 .* rank 2 .* rank 3 was in recv from rank 0 
works|the first work that a rank lacks|^group 'world': rank 1 is behind: ranks 0, 2, 3 have called all_reduce\(count 4, float32, sum\) #6, .*; rank 1 has made 5 collectives
even|another group than the world|^group 'even': rank 2 is behind: rank 0 has called barrier\(\) #1
END
end_job

# The failure of a rank is noted in its own records, not in those of the ranks of other
# worlds that have the same number.
DSCOMM_TIMEOUT=100 start_node 0 "$program" run --survive -n 3 "$failing" apart
until_true sh -c '"$1" analyze --json "$2" 2>/dev/null | grep -q was.killed' sh "$program" "$pid"
result $? 'apart: how the dead rank ended'
is "$("$program" analyze --json "$pid" | grep -c '"kind" : "failure"')" 2 \
    'apart: in the world of all, and in its own'
end_job

# A job that goes on. On a loaded machine ranks do wait for each other at times.
DSCOMM_TIMEOUT=100 start_node 0 "$program" run -n 4 "$failing" healthy
has_called()
{
    "$program" top --once --json --interval 0.01 "$pid" 2>/dev/null | grep -q '"calls" : [0-9]\{3,\}'
}
until_true has_called
quiet=0
for i in 1 2 3 4 5 6 7 8 9 10; do
    out=$("$program" analyze "$pid")
    [ "$out" != 'nothing found in the records of 4 ranks' ] || quiet=$((quiet + 1))
done
[ $quiet -ge 5 ]
result $? "a healthy job: nothing is found $quiet times of 10" || printf '%s\n' "$out" | sed 's/^/# /'
end_job

# Two hosts: each has its dump, and only both tell all.
if [ "$(id -u)" = 0 ] && unshare -u true 2>/dev/null; then
    rm -rf "$dumps"
    address=127.$((1 + $$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256))
    for r in 1 0; do
        # shellcheck disable=SC2016
        DSCOMM_DUMP=$dumps start_node $r unshare -u sh -c 'hostname $0; exec "$@"' host$r \
            "$program" run --nnodes 2 --node-rank $r --master $address --join-timeout 30 \
            --grace 50 -n 2 "$failing" late
    done
    finish
    is "$(ls "$dumps" | grep -c 'json$')" 2 'two hosts: two dumps'
    found=$("$program" analyze "$dumps")
    like "$found" "^group 'world': rank 1 is behind: ranks 0, 2, 3 have called all_reduce" \
        'two hosts: who is behind'
    found=$("$program" analyze "$dumps"/*-host1-*)
    like "$found" "^group 'world': no dump has ranks 0, 1 of the group$" 'the dump of one: what it lacks'
else
    skip 'two hosts' 'names of hosts need root'
fi

# Ranks that hang write a dump on a signal, which dscomm run passes on, and go on.
rm -rf "$dumps"
DSCOMM_TIMEOUT=100 DSCOMM_DUMP=$dumps DSCOMM_DUMP_SIGNAL=usr2 \
    start_node 0 "$program" run -n 4 "$failing" late
is_behind()
{
    "$program" analyze "$1" 2>/dev/null |
        grep -q '^group .world.: rank 1 is behind: ranks 0, 2, 3 have called all_reduce'
}
# has_dumps COUNT: whether there are so many
has_dumps()
{
    [ "$(ls "$dumps" 2>/dev/null | grep -c 'json$')" -ge "$1" ]
}
until_true is_behind "$pid"
result $? 'a job hangs'
kill -USR2 "$pid"
until_true has_dumps 1
result $? 'a signal writes a dump'
is_behind "$dumps"
result $? 'which says who is behind'
is_behind "$pid"
result $? 'and the job goes on'
sleep 1
pkill -USR2 -P "$pid" failing
until_true has_dumps 2
result $? 'a signal to each rank writes one dump'
sleep 0.2
is "$(ls "$dumps" | wc -l)" 2 'and no other file'
end_job

rm -rf "$dumps"
DSCOMM_DUMP=$dumps run -n 4 "$abs_top_builddir/tests/tools/failing" none
is $status 0 'a job that ends well'
[ ! -e "$dumps" ]
result $? 'writes nothing'
DSCOMM_BACKEND=nothing DSCOMM_DUMP=$dumps run -n 4 "$failing" none
[ $status != 0 ] && [ ! -e "$dumps" ]
result $? 'nor does one whose ranks fail before they record anything'

# The launcher ends the other ranks as soon as one has failed, also the one that writes.
missing=0
for try in 1 2 3 4 5; do
    rm -rf "$dumps"
    DSCOMM_DUMP=$dumps run -n 4 "$failing" full
    [ "$(ls "$dumps" | grep -c 'json$')" = 1 ] || missing=$((missing + 1))
done
is $missing 0 'a dump where the launcher ends all ranks at once'

# A connection ends before its process.
shown=0
for try in 1 2 3 4 5; do
    rm -rf "$dumps"
    DSCOMM_BACKEND=tcp DSCOMM_DUMP=$dumps run -n 4 --grace 50 "$failing" die
    "$program" analyze "$dumps" | grep -q '^rank 1 .* is dead' && shown=$((shown + 1))
done
is $shown 5 'over tcp a dead rank is dead'

# A custom work is recorded and marked; coalesced calls are recorded one by one.
fail_by compose
is "$(grep -c '"operation": "custom".*"state": "completed".*"internal": true' "$dumps"/*.json)" 1 \
    'a custom work is recorded'
is "$(grep -c '"operation": "\(send\|recv\)".*"tag": 5, .*"internal": false' "$dumps"/*.json)" 2 \
    'and so are coalesced calls'
like "$found" '^rank 1 .* is dead; it was in no call; its last, (send to|recv from) rank 1 with tag 5 ' \
    'for the findings'

# Every attempt of a job has dumps, and so has a second job of that name.
for way in die all; do
    rm -rf "$dumps"
    for job in 1 2; do
        DSCOMM_DUMP=$dumps run -n 2 --grace 50 --rdzv-id again --max-restarts 1 \
            "$abs_top_builddir/tests/tools/failing" $way
    done
    is "$(ls "$dumps" | grep -c 'json$')" 4 "$way: a dump of each of two attempts of two jobs"
    is "$("$program" analyze --json "$dumps" | grep -c '"kind" : "failure"')" 4 "$way: four failures"
    is "$(ls "$dumps" | grep -vc 'json$')" 0 "$way: no other file"
done

# The records of two machines.
cat >"$scratch/a.json" <<'END'
{"dscomm_dump": 1, "job": "j", "host": "a", "written_ns": 2000000000, "ranks": [
 {"rank": 0, "size": 2, "pid": 11, "process": "running", "calls": 1, "failure": null,
  "groups": [{"number": 1, "name": "world", "id": "w", "rank": 0, "size": 2}],
  "entries": [{"serial": 1, "group": 1, "sequence": 1, "operation": "barrier",
   "call": "barrier() #1", "state": "started", "fingerprint": 5, "called_ns": 500000000}]}]}
END
sed 's/"host": "a"/"host": "b"/; s/"rank": 0/"rank": 1/g; s/started/completed/' \
    "$scratch/a.json" >"$scratch/b.json"
cp "$scratch/a.json" "$scratch/whole"
out=$("$program" analyze "$scratch/a.json")
like "$out" \
    "^group 'world': rank 0, which the dumps have, has called barrier\(\) #1, rank 0 has not completed it$" \
    'one machine'
like "$out" "^group 'world': no dump has rank 1 of the group$" 'lacks the other'
out=$("$program" analyze "$scratch/a.json" "$scratch/b.json")
is "$out" "group 'world': all ranks have called barrier() #1, rank 0 has not completed it" 'both'
sed -i 's/"rank": 1/"rank": 1/; s/fingerprint": 5/fingerprint": 6/; s/barrier() #1/broadcast() #1/' \
    "$scratch/b.json"
out=$("$program" analyze "$scratch/a.json" "$scratch/b.json")
is "$out" "group 'world': rank 0 called barrier() #1, but rank 1 called broadcast() #1" \
    'calls that differ'
sed -i 's/started/completed/; s/fingerprint": 5/fingerprint": 6/' "$scratch/a.json"
out=$("$program" analyze "$scratch")
is "$?,$out" '0,nothing found in the records of 2 ranks' 'a folder, without findings'
# A running rank is behind if others have waited for it for 10 ms; one that has died always is.
rm "$scratch"/?.json
while read -r process called found; do
    cat >"$scratch/a.json" <<EOF
{"dscomm_dump": 1, "job": "j", "host": "a", "written_ns": 2000000000, "ranks": [
 {"rank": 0, "size": 2, "world": "v", "pid": 11, "process": "running", "calls": 1, "failure": null,
  "groups": [{"number": 1, "name": "world", "id": "w", "rank": 0, "size": 2}],
  "entries": [{"serial": 1, "group": 1, "sequence": 1, "operation": "barrier",
   "call": "barrier() #1", "state": "started", "fingerprint": 5, "called_ns": $called}]},
 {"rank": 1, "size": 2, "world": "v", "pid": 12, "process": "$process", "calls": 0, "failure": null,
  "groups": [{"number": 1, "name": "world", "id": "w", "rank": 1, "size": 2}], "entries": []}]}
EOF
    is "$("$program" analyze "$scratch/a.json" | grep -c 'rank 1 is behind')" "$found" \
        "a rank is $process; the other has waited $((2000000000 - called)) ns"
done <<'END'
running 1980000000 1
running 1999700000 0
running 2000700000 0
dead 1999700000 1
END
# Two worlds of the same processes: neither hides the other, and no rank of one is compared
# with a rank of the other.
rm "$scratch"/?.json
for world in 1 2; do
    sed "s/\"size\": 2, \"pid\"/\"world\": \"$world\", &/; s/null/{\"sentence\": \"end of $world\"}/
        s/\"sequence\": 1/\"sequence\": $world/" >"$scratch/$world.json" <<'END'
{"dscomm_dump": 1, "job": "j", "host": "a", "written_ns": 2000000000, "ranks": [
 {"rank": 0, "size": 2, "pid": 11, "process": "running", "calls": 1, "failure": null,
  "groups": [{"number": 1, "name": "world", "id": "w", "rank": 0, "size": 1}],
  "entries": [{"serial": 1, "group": 1, "sequence": 1, "operation": "barrier",
   "call": "barrier()", "state": "completed", "fingerprint": 5, "called_ns": 500000000}]}]}
END
done
out=$("$program" analyze "$scratch" | sort)
is "$out" 'end of 1
end of 2' 'two worlds of one process'
# refused PATTERN TEXT: what is in c.json is refused within the memory, by a sentence
refused()
{
    (ulimit -v 1000000 && exec "$program" analyze "$scratch/c.json") >/dev/null 2>"$scratch/err"
    is "$?,$(wc -l <"$scratch/err")" '2,1' "$2"
    like "$(cut -c 1-300 "$scratch/err")" "^dscomm analyze: $scratch/c.json: .*$1" "$2: the sentence"
}

# many COUNT TEXT: so many copies
many()
{
    awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", text }'
}

while IFS='|' read -r pattern text; do
    printf '%s' "$text" >"$scratch/c.json"
    refused "$pattern" "no dump: $text"
done <<'END'
not a dump|
Parse error|{
not a dump|[]
not a dump|{"dscomm_dump": 2, "ranks": []}
not a dump|{"dscomm_dump": 1}
not a dump|{"dscomm_dump": 1e300, "ranks": []}
not a dump|{"dscomm_dump": 99999999999999999999999999999, "ranks": []}
not JSON|/* " */ {"dscomm_dump": 1, "ranks": []}
rank whose number|{"dscomm_dump": 1, "ranks": [{}]}
rank whose number|{"dscomm_dump": 1, "ranks": [null]}
rank whose number|{"dscomm_dump": 1, "ranks": [{"rank": "x", "entries": 5}]}
rank whose number|{"dscomm_dump": 1, "ranks": [{"rank": 2, "size": 2}]}
rank whose number|{"dscomm_dump": 1, "ranks": [{"rank": -1, "size": 2}]}
rank whose number|{"dscomm_dump": 1, "ranks": [{"rank": 0, "size": 4294967297}]}
rank whose number|{"dscomm_dump": 1, "ranks": [{"rank": 1e300, "size": 2}]}
a rank twice|{"dscomm_dump": 1, "ranks": [{"rank": 0, "size": 2}, {"rank": 0, "size": 2}]}
a group that cannot be|{"dscomm_dump": 1, "ranks": [{"rank": 0, "size": 2, "groups": [7]}]}
a group that cannot be|{"dscomm_dump": 1, "ranks": [{"rank": 0, "size": 2, "groups": [{"size": 3, "rank": 0}]}]}
a group that cannot be|{"dscomm_dump": 1, "ranks": [{"rank": 0, "size": 2, "groups": [{"size": 2, "rank": 2}]}]}
a group that cannot be|{"dscomm_dump": 1, "ranks": [{"rank": 0, "size": 2, "groups": [{"size": 2, "rank": 0}, {"size": 2, "rank": 0}]}]}
END
many 1000000 '[' >"$scratch/c.json"
refused 'nested too deeply' 'a million brackets'
many 300000 '{"a":' >"$scratch/c.json"
refused 'nested too deeply' 'objects in objects'
{
    printf '{"dscomm_dump": 1, "ranks": ['
    many 8000000 '0,'
    printf '0]}'
} >"$scratch/c.json"
refused 'not enough memory' 'more values than fit into the memory'
sed 's/"serial"/"serial" "serial"/' "$scratch/whole" >"$scratch/c.json"
refused 'Parse error' 'a dump that was changed'
head -c 300 "$scratch/whole" >"$scratch/c.json"
refused 'Parse error' 'a dump that was cut off'
head -c 300000 /dev/urandom >"$scratch/c.json"
refused '' 'random bytes'
(ulimit -v 1000000 && exec "$program" analyze /dev/zero) >/dev/null 2>"$scratch/err"
is $? 2 'a file without an end'
rm "$scratch/c.json"
for text in '"groups": 1' '"entries": [[], null, {"group": 1}]' '"entries": [{"state": 5, "call": {}}]' \
    '"groups": [{"number": 1, "size": 1000000, "rank": 999999}], "entries": [{"group": 1}]'; do
    printf '{"dscomm_dump": 1, "ranks": [{"rank": 7, "size": 1000000, %s}]}' "$text" >"$scratch/d.json"
    "$program" analyze "$scratch/d.json" >"$scratch/out" 2>&1
    is "$(($? <= 1))" 1 "a strange rank: $text"
done
"$program" analyze >/dev/null 2>&1
is $? 2 'no argument'
"$program" analyze /no/such/file >/dev/null 2>&1
is $? 2 'no file'
# Memory that cannot be used
for place in x 1:1 -1:-1; do
    DSCOMM_RECORDER=$place "$abs_top_builddir/examples/hello/hello" >"$scratch/out" 2>"$scratch/err"
    is "$?,$(grep -c "warn: core: DSCOMM_RECORDER is '$place', and cannot be used: " "$scratch/err")" \
        0,1 "DSCOMM_RECORDER=$place: a warning"
done
tap_done
