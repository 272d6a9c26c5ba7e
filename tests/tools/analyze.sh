#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Dumps of the flight recorder after each kind of failure, and what dscomm analyze finds.

. "$abs_top_srcdir/tests/tools/jobs.sh"

dumps=$scratch/dumps

# fail_by WAY: a job of four ranks fails, $found = the findings
fail_by()
{
    rm -rf "$dumps"
    DSCOMM_DUMP=$dumps run -n 4 --grace 50 "$abs_top_builddir/tests/tools/failing" "$1"
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

export DSCOMM_TIMEOUT=8
reduce='all_reduce\(count 4, float32, sum\) #5'

fail_by die
like "$found" '^rank 1 \(pid [0-9]+ on [^ ]+\) is dead; it was in no call; its last, all_reduce\(count 4, float32, sum\) #4 ' \
    'the dead rank, and its last call'
like "$found" "^group 'world': rank 1 is behind: ranks? (0|2|3).* called $reduce" 'who waits for it'

fail_by stop
like "$found" '^rank 1 \(pid [0-9]+ on [^ ]+\) is stopped; it was in no call' 'the stopped rank'
like "$found" "^group 'world': rank 1 is behind: ranks 0, 2, 3 have called $reduce" \
    'who waits for it'
like "$found" 'no progress for 8' 'the failure'

fail_by late
is "$(kinds)" 'behind failure ' 'findings about a rank that does not come'
like "$found" "^group 'world': rank 1 is behind: ranks 0, 2, 3 have called $reduce.*; rank 1 has made 4 collectives there, and was in no call" \
    'what the late rank did'

fail_by receive
like "$found" "rank 1 has made 4 collectives there, and was in (recv from rank 0 with tag 5 of group 'world' for |no call; its last, recv from rank 0 with tag 5 )" \
    'a rank that receives'

fail_by differ
like "$(kinds)" failure 'findings about a rank that differs'
like "$found" "rank 1 .*called broadcast\(count 4, float32, root 0\) #5" 'which call differs'

fail_by all
like "$found" '^rank 0 \(pid [0-9]+ on [^ ]+\) is dead' 'ranks that have all died: the first'
like "$found" '^rank 3 \(pid [0-9]+ on [^ ]+\) is dead' 'and the last'
like "$found" 'was killed by signal 9' 'and how'

rm -rf "$dumps"
DSCOMM_DUMP=$dumps run -n 4 "$abs_top_builddir/tests/tools/failing" none
is $status 0 'a job that ends well'
[ ! -e "$dumps" ]
result $? 'writes nothing'

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
out=$("$program" analyze "$scratch/a.json")
like "$out" "^group 'world': all ranks have called barrier\(\) #1, rank 0 has not completed it$" \
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
for text in '' '{' '[]' '{"dscomm_dump": 2, "ranks": []}' '{"dscomm_dump": 1}'; do
    printf '%s' "$text" >"$scratch/c.json"
    "$program" analyze "$scratch/c.json" >/dev/null 2>&1
    is $? 2 "no dump: $text"
done
for text in '{}' '{"rank": "x", "entries": 5}' '{"groups": [7], "entries": [[], null]}' 'null'; do
    printf '{"dscomm_dump": 1, "ranks": [%s]}' "$text" >"$scratch/c.json"
    "$program" analyze "$scratch/c.json" >/dev/null 2>&1
    [ $? -le 2 ]
    result $? "a strange rank: $text"
done
"$program" analyze >/dev/null 2>&1
is $? 2 'no argument'
"$program" analyze /no/such/file >/dev/null 2>&1
is $? 2 'no file'
tap_done
