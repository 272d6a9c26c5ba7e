#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm perf --model: what it prints, the tuning file that it writes, and what it
# refuses. tests/tools/perf-model-*.c check its figures.

. "$abs_top_srcdir/tests/tools/fixture.sh"

unset DSCOMM_ALGORITHM DSCOMM_BACKEND DSCOMM_TUNING_FILE
echo 'my notes' >"$scratch/notes"
"$program" tune --machine | sed 's/^processors=/processors=1/' >"$scratch/elsewhere"
cp "$scratch/elsewhere" "$scratch/before"

# STATUS PATTERN ARGUMENTS: one sentence, which says what is wrong
while read -r want pattern line; do
    eval "perf $line"
    is $status $want "status of: $line"
    like "$err" "^dscomm perf: .*$(echo "$pattern" | tr _ ' ')" "sentence of: $line"
    is "$(grep -c . "$scratch/err")" 1 "one sentence: $line"
done <<'END'
2 --model_and_--csv_exclude --model --csv
2 --model_and_-m_exclude --model -m 2
2 --model_and_--async_exclude --model --async
2 --model_and_-d_exclude --model -d int8
2 --model_and_-o_exclude --model -o max
2 --model_and_--compress_exclude --model --compress onebit
2 sendrecv_is_not_in_the_model --model sendrecv
2 all.gather.v_is_not_in_the_model --model all_gather_v
2 --model_needs_2_ranks --model
2 --model-parameters_and_-n_exclude --model-parameters alpha=1,beta=1 -n 2
2 --model-parameters_needs_alpha_and_beta --model-parameters alpha=1e-6
2 'lambda=1'_is_no_parameter --model-parameters lambda=1
2 'alpha'_is_no_parameter --model-parameters alpha
2 alpha_must_be_a_number_of_seconds_from_0_to_1 --model-parameters alpha=2
2 alpha_must_be_a_number --model-parameters alpha=nan,beta=1
2 alpha_must_be_a_number --model-parameters alpha=1us,beta=1
2 local_must_be_a_whole_number --model-parameters alpha=1,beta=1,local=1.5
2 '1'_is_no_number_of_ranks --model-parameters alpha=1,beta=1 --model-ranks 4,1
2 ''_is_no_number_of_ranks --model-parameters alpha=1,beta=1 --model-ranks 4,
2 ''_is_no_number_of_ranks --model-parameters alpha=1,beta=1 --model-ranks ''
2 'two'_is_no_number_of_ranks -n 2 --model-ranks two
2 --model-save_needs --model --model-save ''
2 --model-save:_rules_are_for_one_backend --model-parameters alpha=1,beta=1 --model-save "$scratch/x"
2 --model-save:_rules_are_for_one_backend --model-parameters alpha=1,beta=1 --model-save "$scratch/x" --backend auto
2 --model-save:_there_is_no_backend_'tpc' --model-parameters alpha=1,beta=1 --model-save "$scratch/x" --backend tpc
1 it_exists_and_is_no_tuning_file --model -n 2 --model-save "$scratch/notes"
1 it_is_the_tuning_file_of_another_machine --model -n 2 --model-save "$scratch/elsewhere"
1 --model-save_/no/such/folder/x:_No_such_file --model -n 2 --model-save /no/such/folder/x
END
is "$(cat "$scratch/notes")" 'my notes' 'a file of another kind stays as it is'
cmp -s "$scratch/elsewhere" "$scratch/before"
result $? 'so does that of another machine'

# Given parameters: times that are computed by hand, of 2 and of 4 ranks
given=alpha=1e-6,beta=1e-9,gamma=1e-10
perf --model-parameters $given --model-ranks 4 -b 1000 -e 1000 all_reduce barrier
is $status 0 'given parameters'
like "$out" '^# all_reduce, 4 ranks: predicted, us$' 'a table'
# 2 rounds: 1 us, 1 us for 1000 bytes, 0.3 us for 3000 bytes of a reduction
is "$(grep -A2 '^# all_reduce' "$scratch/out" | awk '
    NR == 2 { for (i = 2; i <= NF; i++) if ($i == "recursive_doubling") at = i - 1 }
    NR == 3 { print $1, $at }')" '1000 4.60' 'recursive doubling: 2 (1 + 1 + 0.3)'
# 3 messages: 1 us, and 1 us for each further one; then the same back
is "$(grep -A2 '^# barrier' "$scratch/out" | awk 'NR == 3 { print $2, $3 }')" '2.00 6.00' \
    'barrier: dissemination 2, linear 2 (1 + 2)'
like "$out" '^# fastest barrier, 4 ranks: dissemination$' 'the fastest barrier'
perf --model-parameters $given,local=4 --model-ranks 16 -b 1000 -e 1000 barrier
like "$out" 'two_level' 'two levels, if nodes have several ranks'
# Bytes count, and latency does not: the ring moves the least. The other way round
# recursive doubling has the fewest rounds.
perf --model-parameters alpha=0,beta=1e-9,gap=0 --model-ranks 7 -e 64M
like "$out" '^# fastest all_reduce, 7 ranks: .*(ring|pairwise) beyond$' 'without latency'
perf --model-parameters alpha=1e-3,beta=0 --model-ranks 8 -e 64M
like "$out" '^# fastest all_reduce, 8 ranks: [a-z_, 0-9KM]*(recursive_doubling|tree)' \
    'without bytes'
like "$out" '^#   both ways  1000.00 us \+ bytes in no time$' 'no bandwidth is infinite'
like "$out" '^# each rank, while all do so, reads and writes for reductions in no time, for copies in no time$' \
    'nor that of memory'
perf --model-parameters $given --model-ranks 1048576 -e 1K broadcast
is $status 0 'a million ranks'
perf --model-parameters $given --model-ranks 4 -b 0 -e 0
is $status 0 'no bytes'
like "$out" '^# fastest all_reduce, 4 ranks: [a-z_]+$' 'the fastest for no bytes'

# Fitted parameters
perf -n 2 --model --backend tcp -t 0.0005 -b 1K -e 64K -f 8 --model-ranks 2,8 \
    all_reduce broadcast --model-save "$scratch/tuned"
is $status 0 'fitted'
like "$out" '^# dscomm .*, model fitted by 2 ranks of backend tcp, all of one node$' 'by whom'
like "$out" '^#   one way  .* us \+ bytes at .* GB/s.*; error: median [0-9]+ %, worst [0-9]+ %$' \
    'messages, and the error of the fit'
like "$out" '^# each rank, .* reductions at [0-9.]+ GB/s, for copies at [0-9.]+ GB/s; measured on 64K bytes$' \
    'the bandwidth of memory, and what it is'
is "$(rows | awk '$1 == "all_reduce" { print $3 }' | sort -u | tr '\n' ' ')" \
    'bruck halving_doubling linear pairwise recursive_doubling ring tree ' \
    'all algorithms are measured'
is "$(rows | awk '$1 ~ /^[a-z]/ && ($4 <= 0 || $5 <= 0)' | grep -c .)" 0 'and predicted'
like "$out" '^# error of broadcast by knomial: median [0-9]+ %, worst [0-9]+ %$' 'errors'
is "$(grep -c '^# fastest' "$scratch/out")" 4 'two operations, two numbers of ranks'
for ranks in 2 8; do
    DSCOMM_TUNING_FILE=$scratch/tuned "$program" info --algorithms -n $ranks >/dev/null
    is $? 0 "the file is understood, $ranks ranks"
done

# Nodes of one rank and of two: all ranks must try the same algorithms.
# shellcheck disable=SC2016
DSCOMM_TIMEOUT=30 "$program" run -n 3 sh -c 'DSCOMM_HOST_ID=node$((($RANK + 1) / 2)) exec "$@"' \
    sh "$program" perf --model -t 0.0005 -b 1K -e 1K --model-ranks 8 >"$scratch/out" 2>"$scratch/err"
is $? 0 'uneven nodes'
like "$(cat "$scratch/out")" 'model fitted by 3 ranks of backend [a-z_]+, 1 rank a node$' \
    "the ranks of rank 0's node count"

# JSON
perf -n 2 --model -J -t 0.0005 -b 1K -e 8K -f 8 --model-ranks 4 barrier all_gather
is $status 0 'JSON'
python3 - "$scratch/out" <<'END'
import json, sys
o = json.load(open(sys.argv[1]))
assert (o["format"], o["format_version"], o["ranks"]) == ("dscomm-perf-model", 1, 2)
assert o["ranks_of_node"] is None and o["gamma_s"] > 0
assert o["near"]["both_ways"]["short"]["alpha_s"] > 0
assert {m["operation"] for m in o["measured"]} == {"barrier", "all_gather"}
assert all(m["measured_us"] > 0 for m in o["measured"])
assert all((m["predicted_us"] is None) == (m["algorithm"] == "native") for m in o["measured"])
barrier, gather = o["predicted"]
assert barrier["operation"] == "barrier" and gather["ranks"] == 4
assert set(barrier["rows"][0]["times_us"]) == {"dissemination", "linear"}
assert [r["bytes"] for r in gather["rows"]] == [1024, 8192]
spans = gather["fastest"]
assert spans[0]["from"] == 0 and spans[-1]["to"] is None
assert all(a["to"] + 1 == b["from"] for a, b in zip(spans, spans[1:]))
END
result $? 'its members'

# Rules, where the default is much slower: with these parameters messages count
perf --model-parameters alpha=1e-9,beta=1e-9,gap=1e-3 --backend tcp --model-ranks 64,65 \
    --model-save "$scratch/rules" all_reduce
is $status 0 'rules'
like "$(cat "$scratch/rules")" '^DSCOMM_ALGORITHM=all_reduce@tcp/64:' 'for a number of ranks'
like "$(cat "$scratch/rules")" ',all_reduce@tcp/65:' 'and another one'
sed -i 's/^DSCOMM_ALGORITHM=.*/DSCOMM_ALGORITHM=all_reduce@tcp:tree,all_reduce@tcp\/64:-5:ring\nDSCOMM_TCP_CONNECTIONS=2/' \
    "$scratch/rules"
perf --model-parameters alpha=1e-9,beta=1e-9,gap=1e-3 --backend tcp --model-ranks 64,65 \
    --model-save "$scratch/rules" all_reduce
like "$err" 'has rules of all_reduce for 64 ranks, which stay' 'rules that are there stay'
is "$(grep -o 'all_reduce@tcp/64[^,]*' "$scratch/rules")" 'all_reduce@tcp/64:-5:ring' \
    'as they were'
like "$(cat "$scratch/rules")" '^DSCOMM_ALGORITHM=all_reduce@tcp/65:' 'others are added'
like "$(cat "$scratch/rules")" ',all_reduce@tcp:tree,all_reduce@tcp/64' \
    'before those for more groups, which they would not be used after'
like "$(cat "$scratch/rules")" '^DSCOMM_TCP_CONNECTIONS=2$' 'other settings stay'
# The largest size that is predicted is the last of a rule.
perf --model-parameters alpha=1e-9,beta=1e-9,gap=1e-3 --backend tcp --model-ranks 64 -e 1K \
    --model-save "$scratch/small" all_reduce
like "$(cat "$scratch/small")" '^DSCOMM_ALGORITHM=.*-1024:[a-z_]+$' 'rules end with -e'
is "$(grep -c '[0-9]-:' "$scratch/small")" 0 'and none is without end'
DSCOMM_TUNING_FILE=$scratch/rules perf -n 2 all_reduce -b 64 -e 64 -t 0.0005 --backend tcp
is $status 0 'a job uses the file'
perf -n 2 --model --backend shm -t 0.0005 -b 1K -e 1K --model-ranks 4 \
    --model-save "$scratch/native"
like "$err" 'backend shm has all_reduce of its own' 'no rules for what a backend has'
is "$(sed '1,/^\[settings\]/d' "$scratch/native")" '' 'so there are none'
tap_done
