#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm tune: the file that it writes, what it refuses; and what tuning files do in
# other commands.

. "$abs_top_srcdir/tests/tools/fixture.sh"

unset DSCOMM_ALGORITHM DSCOMM_SHM_RING DSCOMM_BACKEND DSCOMM_TUNING_FILE

# algorithms ARGUMENTS...: those that dscomm perf reports, once each
algorithms()
{
    perf "$@" -t 0.0005 -w 0 -c 0 --no-roof
    rows | awk '{ print $NF }' | sort -u | tr '\n' ' '
}

# The machine, as other programs see it.
dscomm tune --machine
is $status 0 'the machine: status'
machine=$out
is "$(echo "$machine" | head -2 | tr '\n' ' ')" '[machine] format=1 ' 'its group, and the format'
is "$(echo "$machine" | grep -c =)" 5 'all facts'
like "$machine" "^processors=$(getconf _NPROCESSORS_ONLN)\$" 'the processors'
model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1)
if [ -n "$model" ]; then
    is "$(echo "$machine" | grep -Fc ", $model")" 1 'the processor'
else
    skip 'the processor' 'no model name in /proc/cpuinfo'
fi
if [ -d /sys/devices/system/node/node0 ]; then
    like "$machine" "^numa_nodes=$(find /sys/devices/system/node -name 'node[0-9]*' | grep -c .)\$" \
        'the NUMA nodes'
else
    skip 'the NUMA nodes' 'the system does not list them'
fi

# STATUS PATTERN ARGUMENTS: one sentence, which says what is wrong
echo 'my notes' >"$scratch/notes"
while read -r want pattern line; do
    eval "dscomm tune $line"
    is $status $want "status of: $line"
    like "$err" "^dscomm tune: .*$(echo "$pattern" | tr _ ' ')" "sentence of: $line"
    is "$(grep -c . "$scratch/err")" 1 "one sentence: $line"
done <<'END'
2 --ranks_must_be_from_2_to_4096,_not_1 -n 1
2 --ranks_must_be -n 5000
2 --time_must_be_from_1_to_86400 --time 0
2 --time_must_be --time nan
2 unexpected_argument_'barrier' barrier
2 --output_needs_a_file --output ''
2 --no-such --no-such
1 --output_/no/such/folder/x:_No_such_file -n 2 --output /no/such/folder/x
1 it_exists_and_is_no_tuning_file -n 2 --output "$scratch/notes"
1 there_is_no_backend -n 2 --backend teleport --output "$scratch/x"
END
is "$(cat "$scratch/notes")" 'my notes' 'a file of another kind stays as it is'
"$program" run -n 2 "$program" tune >/dev/null 2>"$scratch/err"
is $? 2 'under a launcher: status'
like "$(cat "$scratch/err")" 'a launcher has started 2 ranks, and dscomm tune starts its own' \
    'under a launcher'

# From end to end.
tuned=$scratch/tuned
began=$(date +%s)
dscomm tune -n 2 --time 12 --output "$tuned"
is $status 0 'a short run'
[ $(($(date +%s) - began)) -le 30 ]
result $? 'its time is bounded'
like "$out" '^2 ranks of backend [a-z]+, 12 seconds$' 'for whom'
like "$out" "^Written: $tuned; DSCOMM_TUNING_FILE=$tuned " 'where it is, and how it is used'
is "$(sed -n '/^\[machine\]/,/^$/p' "$tuned")" "$machine" 'the file tells the machine'
is "$(grep -vc '^#\|^$\|^\[\|=' "$tuned")" 0 'and has lines of a key file'
is "$(find "$scratch" -name 'tuned?*' | grep -c .)" 0 'nothing is left beside it'
for ranks in 2 3; do
    DSCOMM_TUNING_FILE=$tuned perf -n $ranks all_reduce broadcast gather all_to_all barrier \
        -b 64 -e 4M -f 64 -t 0.0005
    is "$status $(column 9)" '0 0 N/A ' "it can be used by $ranks ranks"
done
sed 's/^processors=/processors=1/' "$tuned" >"$scratch/elsewhere"
cp "$scratch/elsewhere" "$scratch/before"
dscomm tune -n 2 --time 1 --output "$scratch/elsewhere"
is $status 1 'the file of another machine: status'
like "$err" 'elsewhere: it is the tuning file of another machine; remove it, or choose' \
    'the file of another machine'
cmp -s "$scratch/elsewhere" "$scratch/before"
result $? 'it stays as it is'
echo "$machine" >"$tuned"
DSCOMM_TUNING_FILE=/no/such/file dscomm tune -n 2 --time 1 --output "$tuned"
is $status 1 'too short for anything, and a wrong tuning file does not disturb'
like "$out" 'give more with --time' 'nothing follows from too few rounds'
is "$(cat "$tuned")" "$machine" 'a file that is there stays as it is'
rm "$tuned"
dscomm tune -n 2 --time 1 --output "$tuned"
is $status 0 'where there is none, it is written'
is "$(sed '1,/^\[settings\]/d' "$tuned")" '' 'with nothing in it'
if [ -c /dev/full ]; then
    dscomm tune -n 2 --time 1 --output /dev/full
    is $status 1 'a full disk: status'
    like "$err" '^dscomm tune: --output /dev/full: No space left on device$' 'a full disk'
else
    skip 'a full disk' 'no /dev/full'
fi

# A run that is ended leaves nothing.
"$program" tune -n 2 --time 60 --output "$scratch/ended" >/dev/null 2>&1 &
job=$!
sleep 2
kill -TERM $job
wait $job
is $? 143 'a run that is ended'
is "$(find "$scratch" -name 'ended*' | grep -c .)" 0 'leaves no file'

# A file that was written by hand.
hand=$scratch/hand
printf '%s\n\n[settings]\n%s\n%s\n' "$machine" \
    'DSCOMM_ALGORITHM=all_reduce@shm/2:1K-64K:ring,barrier@3:linear,broadcast@tcp:chain' \
    'DSCOMM_SHM_RING=1M' >"$hand"
export DSCOMM_TUNING_FILE="$hand"
is "$(algorithms -n 2 all_reduce -b 1K -e 64K -f 8)" 'ring ' 'a rule of the file'
like "$(algorithms -n 2 all_reduce -b 512 -e 512)" '^native(:[a-z]+)? $' 'not for other sizes'
like "$(algorithms -n 3 all_reduce -b 4K -e 4K)" '^native(:[a-z]+)? $' 'not for another number of ranks'
is "$(algorithms -n 3 barrier)" 'linear ' 'another rule'
like "$(algorithms -n 2 broadcast -b 4K -e 4K)" '^native(:[a-z]+)? $' 'not for another backend'
is "$(algorithms -n 2 --backend tcp broadcast -b 4K -e 4K)" 'chain ' 'but for that one'
is "$(DSCOMM_ALGORITHM=all_reduce:tree algorithms -n 2 all_reduce -b 4K -e 4K)" 'tree ' \
    'the environment has precedence'
is "$(DSCOMM_ALGORITHM='' algorithms -n 2 all_reduce -b 4K -e 4K)" 'ring ' \
    'unless it is empty'
dscomm info --settings
like "$out" '^  DSCOMM_SHM_RING=1M, from the tuning file$' 'info shows where a value is from'
like "$out" "^  DSCOMM_TUNING_FILE=$hand\$" 'and the file'
is "$err" '' 'and has nothing to say about it'
DSCOMM_SHM_RING=2M dscomm info --settings
like "$out" '^  DSCOMM_SHM_RING=2M$' 'that the environment has precedence'
dscomm info --settings --json
is "$(echo "$out" | grep -c '"origin" : "tuning file"')" 2 'JSON shows it too'
dscomm info --algorithms -n 2
like "$out" '^  *1K-[0-9]+K  *ring \(default: ' 'info shows the algorithm'

# Files that cannot be used.
# refused PATTERN TEXT: dscomm perf fails with that sentence, and dscomm info prints it
refused()
{
    perf -n 2 barrier -i 1
    is $status 1 "$2: status"
    like "$err" "^dscomm perf: start: tuning file .*$1" "$2"
    dscomm info --settings
    is $status 0 "$2: dscomm info"
    like "$err" "^dscomm info: tuning file .*$1" "$2: dscomm info says so"
}

sed 's/^processors=.*/processors=12345/' "$hand" >"$scratch/other"
DSCOMM_TUNING_FILE=$scratch/other
refused "was made for another machine: its processors is '12345', here it is '[0-9]+'; run .dscomm tune. here, or unset DSCOMM_TUNING_FILE" \
    'another machine'
sed 's/^DSCOMM_SHM_RING/DSCOMM_SHM_RNG/' "$hand" >"$scratch/other"
refused 'DSCOMM_SHM_RNG is no setting .*is DSCOMM_SHM_RING meant' 'an unknown setting'
sed 's/^DSCOMM_SHM_RING.*/DSCOMM_BACKEND_PATH=\/tmp/' "$hand" >"$scratch/other"
refused 'DSCOMM_BACKEND_PATH cannot be set by a file' 'a path'
sed 's/^DSCOMM_SHM_RING.*/DSCOMM_SHM_RING=much/' "$hand" >"$scratch/other"
refused "DSCOMM_SHM_RING='much' is not accepted; set it to 0 to 1073741824" 'a wrong value'
DSCOMM_TUNING_FILE=$scratch
refused 'is a directory' 'a folder'
DSCOMM_TUNING_FILE=$scratch/other
sed 's/:ring/:sing/' "$hand" >"$scratch/other"
perf -n 2 barrier -i 1
like "$err" "tuning file $scratch/other: DSCOMM_ALGORITHM: 'sing' is no algorithm of all_reduce" \
    'a wrong rule'

# Ranks with different files must not run different algorithms.
sed 's/:ring/:tree/' "$hand" >"$scratch/other"
# shellcheck disable=SC2016
DSCOMM_TUNING_FILE=$hand "$program" run -n 2 sh -c \
    '[ "$RANK" = 0 ] || DSCOMM_TUNING_FILE=$1; exec "$2" perf all_reduce -e 8' \
    sh "$scratch/other" "$program" >/dev/null 2>"$scratch/err"
is $? 1 'ranks with different files: status'
like "$(cat "$scratch/err")" "rank 0 has DSCOMM_ALGORITHM 'all_reduce@shm/2:1K-64K:ring,.*', rank 1 on .* has 'all_reduce@shm/2:1K-64K:tree" \
    'ranks with different files'
sed 's/^DSCOMM_SHM_RING.*/DSCOMM_SHM_RING=64K/' "$hand" >"$scratch/other"
# shellcheck disable=SC2016
DSCOMM_TUNING_FILE=$hand "$program" run -n 2 sh -c \
    '[ "$RANK" = 0 ] || DSCOMM_TUNING_FILE=$1
    exec "$2" perf all_reduce all_to_all sendrecv -b 64 -e 4M -f 64 -t 0.0005' \
    sh "$scratch/other" "$program" >"$scratch/out" 2>"$scratch/err"
is "$? $(column 9)" '0 0 ' 'ranks with other sizes of rings have those of rank 0'

tap_done
