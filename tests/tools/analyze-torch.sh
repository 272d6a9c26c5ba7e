#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch's flight recorder analyzer on the dumps that dscomm analyze --torch writes: it
# finds the same. Needs a Python that has it: DSCOMM_TEST_PYTHON, or else python3.

. "$abs_top_srcdir/tests/tools/jobs.sh"

python=${TEST_PYTHON:-python3}
no_torch=${NO_TORCH:-"$python has no torch.distributed.flight_recorder; set DSCOMM_TEST_PYTHON"}
"$python" -c 'import torch.distributed.flight_recorder.fr_trace' >/dev/null 2>&1 ||
    skip_all "$no_torch"
dumps=$scratch/dumps

# both PATH [OPTION...]: what dscomm finds in $ours, and what PyTorch finds in $theirs
both()
{
    path=$1
    shift
    rm -rf "$scratch/torch"
    ours=$("$program" analyze --torch "$scratch/torch" "$path" 2>&1)
    theirs=$("$python" -W ignore -m torch.distributed.flight_recorder.fr_trace \
        "$scratch/torch" "$@" 2>&1)
    status=$?
    theirs=$(printf '%s\n' "$theirs" | grep -v '^tabulate is not installed')
}

# fail_by WAY: the same, of a job of four ranks that fails
fail_by()
{
    rm -rf "$dumps"
    DSCOMM_DUMP=$dumps run -n 4 --grace 50 "$abs_top_builddir/tests/tools/failing" "$1"
    both "$dumps"
}

export DSCOMM_TIMEOUT=8

fail_by late
like "$ours" "^group 'world': rank 1 is behind: .* called all_reduce\(count 4, float32, sum\) #5" \
    'a rank that does not come: dscomm'
is $status 0 'PyTorch reads the dumps'
like "$theirs" '^Not all ranks joining collective, sequence number: 5$' 'the collective'
like "$theirs" '^collective: nccl:all_reduce$' 'its operation'
like "$theirs" '^missing ranks: \{1\}$' 'the rank'
like "$theirs" '^group info: .*:world$' 'the group'
like "$theirs" '^input sizes: \[\[4\]\]$' 'the size'
like "$theirs" '^ *all_reduce\(count 4, float32, sum\) #5 at rank [023], pid [0-9]+ on ' \
    'and the call, in the words of dscomm'
is "$(printf '%s\n' "$theirs" | grep -c 'sequence number')" 1 'nothing else'
ls "$scratch/torch" >"$scratch/names"
is "$(tr '\n' ' ' <"$scratch/names")" 'rank_0 rank_1 rank_2 rank_3 ' 'a file for each rank'

"$python" - "$dumps" <<'END'
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).glob("*.json"):
    dump = json.loads(path.read_text())
    dump["ranks"] = [r for r in dump["ranks"] if r["rank"] != 3]
    path.write_text(json.dumps(dump))
END
both "$dumps"
like "$ours" "^group 'world': no dump has rank 3 of the group$" 'without the dump of rank 3: dscomm'
like "$theirs" 'Missing dump files from ranks \{3\}' 'PyTorch'
both "$dumps" --allow-incomplete-ranks
is $status 0 'PyTorch can go on'
like "$theirs" 'missed FR dumps from ranks \(\{3\}\)' 'and says what it lacks'

fail_by differ
like "$ours" "rank 1 .*called broadcast\(count 4, float32, root 0\) #5" \
    'another operation: dscomm'
like "$theirs" '^Collective sequence number: 5 has errors$' 'PyTorch'
like "$theirs" "Culprit rank 1; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type: 'all_reduce' does not match found collective type: 'broadcast'" \
    'both operations'

fail_by receive
like "$ours" 'rank 1 .*recv from rank 0 with tag 5' 'a message that is never sent: dscomm'
like "$theirs" '^collective: nccl:recv 1<-0$' 'PyTorch'
like "$theirs" '^missing ranks: \{0\}$' 'the sender'
like "$theirs" '^missing ranks: \{1\}$' 'and who does not come'

# Ranks whose records begin at different calls, and who have made different numbers of
# them: the collectives that all records have are complete.
"$python" - "$scratch/cut.json" <<'END'
import json, sys
operations = [("all_gather", 7), ("reduce_scatter", 6), ("all_to_all", 5), ("barrier", 0),
              ("gather", 4), ("scatter", 3), ("reduce", 2), ("broadcast", 9), ("all_to_all_v", 1)]
ranks = []
for rank, first in enumerate((5, 3, 9)):
    entries = [{"serial": 1000 * (rank + 1) + i, "group": 1, "sequence": i,
                "operation": operations[i % 9][0], "count": operations[i % 9][1],
                "call": f"{operations[i % 9][0]}() #{i}", "state": "completed", "peer": -1,
                "tag": -1, "dtype": "float32", "fingerprint": i % 9, "called_ns": 10 ** 18 + i}
               for i in range(first, 30)]
    ranks.append({"rank": rank, "size": 3, "pid": 9, "process": "running",
                  "calls": 1000 * (rank + 1) + 29, "failure": None, "entries": entries,
                  "groups": [{"number": 1, "name": "world", "id": "w", "rank": rank, "size": 3}]})
json.dump({"dscomm_dump": 1, "job": "j", "host": "h", "written_ns": 2 * 10 ** 18,
           "ranks": ranks}, open(sys.argv[1], "w"))
END
both "$scratch/cut.json"
is "$ours" 'nothing found in the records of 3 ranks' 'records that were cut off: dscomm'
is "$status,$theirs" '0,' 'PyTorch finds nothing either'

"$program" analyze --torch "$scratch/torch" "$scratch/cut.json" >/dev/null 2>"$scratch/err"
is $? 2 'a folder that is not empty'
like "$(cat "$scratch/err")" "^dscomm analyze: $scratch/torch is not empty" 'is refused'
"$program" analyze --torch /dev/null/x "$scratch/cut.json" >/dev/null 2>&1
is $? 2 'a folder that cannot be made'
tap_done
