#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm perf: its rows, its forms, what it refuses, and how it fails.

. "$abs_top_srcdir/tests/tools/fixture.sh"

operations=$("$program" perf --help |
    sed -n '/^Operations:/,/^$/s/^  \([a-z_+]*\) .*/\1/p')
is "$(echo "$operations" | grep -c .)" 29 'operations in the help'
"$program" perf allreduce >/dev/null 2>"$scratch/err"
is $? 2 'a misspelt operation: status'
like "$(cat "$scratch/err")" "no operation 'allreduce'; is all_reduce meant\?" \
    'which one is meant'

# Every operation, two types, nothing wrong
for ranks in 2 3; do
    for operation in $operations; do
        perf -n $ranks $operation -b 1 -e 10000 -f 100 -d int16,float32 -c \
            -t 0.0005 -w 1
        is "$status $(rows | awk '{ print $9, $13 }' | grep -vc '^\(0\|N/A\) \(0\|N/A\)$')" \
            '0 0' "$operation, $ranks ranks: nothing is wrong"
        [ "$(rows | awk '{ print $3 }' | sort -u | wc -l | tr -d ' ')" = 2 ]
        result $? "$operation, $ranks ranks: both types"
    done
done
perf -n 5 all_reduce reduce_scatter -d all -o all -b 120 -e 1K -f 8 -t 0.0002 -w 0
is "$status $(column 9)$(column 13)" '0 0 0 ' 'every type and operator'
is "$(rows | awk '{ print $1, $3, $4 }' | sort | uniq -d | wc -l | tr -d ' ')" \
    "$(rows | awk '{ print $1, $3, $4 }' | sort -u | wc -l | tr -d ' ')" \
    'each in both operations' || :
is "$(rows | awk '{ print $3 }' | sort -u | wc -l | tr -d ' ')" 15 '15 types'
is "$(rows | awk '{ print $4 }' | sort -u | wc -l | tr -d ' ')" 9 '9 operators'
perf -n 17 all_reduce -d float8_e5m2,float8_e4m3,bfloat16 -o all -b 100 -e 100 \
    -t 0.0002 -w 0
is "$status $(column 9)" '0 0 ' 'more ranks than small floats can count'
perf -n 2 all --async -b 64 -e 4K -f 64 -t 0.0005
is "$status $(column 9)$(column 13)" '0 0 N/A 0 N/A ' 'with works'
perf -n 2 all_reduce barrier --overlap -b 64 -e 4K -f 64 -t 0.0005
is "$status $(column 9)" '0 0 ' 'overlapped'
like "$out" 'hidden' 'overlapped: a column says how much'
perf -n 2 all_reduce all_to_all -m 7 -b 64 -e 4K -f 64 -t 0.0005
is "$status $(column 9)" '0 0 ' 'coalesced'
perf -n 2 all_reduce reduce_scatter -m 3 -b 256K -e 256K -t 0.0005
is "$status $(column 13)" '0 0 ' 'coalesced, in place, and too long to go as one'
DSCOMM_SHM_NATIVE=0 perf -n 3 reduce -m 4 -c 5 -b 64K -e 64K -t 0.0005
is "$status $(column 9)$(column 13)" '0 0 0 ' 'coalesced, as schedules'
perf -n 2 all_reduce broadcast -R -r rotate -b 64 -e 4K -f 64 -t 0.0005
is "$status $(column 13)" '0 0 ' 'registered buffers, rotating roots'
perf -n 2 all_reduce -R 1 -b 64 -e 64 -t 0.0005
is "$status $(column 9)" '0 0 ' 'as nccl-tests has it, too'
like "$out" ', registered' 'and says so'
perf -n 2 all_reduce --register=0 -b 64 -e 64 -t 0.0005
is "$(grep -c ', registered' "$scratch/out")" 0 'or not'
perf -n 3 gather -r all -b 64 -e 64 -t 0.0005
is "$(column 5)" '0 1 2 ' 'all roots'
perf -n 3 gather -r -1 -b 64 -e 64 -t 0.0005
is "$(column 5)" '0 1 2 ' 'as nccl-tests has it, too'
perf -n 3 gather reduce scatter -r rotate -b 96 -e 9600 -f 10 -t 0.0005
is "$status $(column 5)$(column 9)$(column 13)" '0 rotate 0 0 ' \
    'rotating roots: rows say so'
perf all_reduce -b 64 -e 64 -t 0.0005
is "$status $(column 9)" '0 0 ' 'one rank'
for backend in shm tcp; do
    perf -n 3 put get -b 64 -e 64K -f 1024 -t 0.0005 --backend $backend
    is "$status $(rows | wc -l | tr -d ' ') $(column 9)" '0 4 0 ' "puts and gets by $backend"
done
perf -n 2 put -R -b 64 -e 64 -t 0.0005 --backend shm
is "$status $(column 9)" '0 0 ' 'in memory of the library'

# Letters, sizes and columns
perf -n2 all_reduce -b8 -e 64 -f2 -i20 -w2 -c0
is "$(rows | awk '{ print $1, $2 }' | tr '\n' ' ')" '8 2 16 4 32 8 64 16 ' 'by factor'
is "$(column 9)" 'N/A ' '-c 0 checks nothing'
perf -n 2 all_reduce -b 8 -e 1K --stepbytes 500 -t 0.0005
is "$(rows | awk '{ print $1 }' | tr '\n' ' ')" '8 508 1008 ' 'by step'
perf -b 100 -e 100 -t 0.0005 -n 3 all_gather
is "$(rows | awk '{ print $1, $2, $3, $4, $5 }')" '96 8 float32 none -1' \
    'sizes are rounded down to equal parts'
is "$(rows | awk '{ print NF }')" 18 'columns'
perf -n 2 all_reduce -d float -o mulsum -b 64 -e 64 -t 0.0005
is "$(rows | awk '{ print $3, $4 }')" 'float32 premul_sum' "nccl-tests' mulsum"
perf -n 2 all_reduce -d half,double -o max,prod -b 64 -e 64 -t 0.0005
is "$(rows | awk '{ print $3, $4 }' | sort | tr '\n' ' ')" \
    'float16 max float16 product float64 max float64 product ' "nccl-tests' names"
perf -n 2 all_reduce -b 8 -e 8 -t 0.0005
like "$out" '^#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong' \
    'the header of nccl-tests'
like "$out" '^# Out of bounds values : 0 OK$' 'and its last lines'
like "$out" '^# Avg bus bandwidth    : [0-9.e-]+ $' 'both'
like "$out" '^# Page faults          : at most [0-9.e+-]+ in a call$' 'page faults are counted'
perf -n 2 all_reduce -b 8 -e 1M -f 128 -t 0.0005
like "$out" '^# Copy bandwidth       : [0-9.]+ GB/s' 'the limit is measured'
perf -n 2 all_reduce -b 8 -e 1M -f 128 -t 0.0005 --no-roof
is "$status $(column 17)$(grep -Ec 'Copy bandwidth|Cache line|Warning: a cache' "$scratch/out")" '0 - 0' \
    'or not, where it is not asked for'
perf -n 2 all_reduce barrier -b 8 -e 8 -t 0.0005 --csv
is "$(awk -F, '{ print NF }' "$scratch/out" | sort -u)" 24 'CSV: fields'
is "$(awk -F, '{ print $1, $7 }' "$scratch/out" | tr '\n' ' ')" \
    'operation place all_reduce out all_reduce in barrier out ' 'CSV: lines'
is "$(grep -c "$(printf '\r')" "$scratch/err")" 0 'no progress but to a terminal'

# Alternatives
three=all_reduce,reduce+broadcast,reduce_scatter+all_gather
for backend in shm tcp; do
    perf -n 3 --compare $three -b 4 -e 40004 -f 100 -d int32,bfloat16 -t 0.0005 \
        --backend $backend
    is "$status $(rows | grep -c .) $(column 10)" '0 36 0 ' \
        "$backend: 3 sizes of 2 types, 3 alternatives, 2 places"
    like "$out" '^# Out of bounds values : 0 OK, all alternatives have the same results$' \
        "$backend: results are equal"
    like "$out" '^# int32, sum, out of place:$' "$backend: which one wins"
    like "$out" '^#   4 B.*: (all_reduce|reduce.*) (is .* times as fast as|and .* take the same time)|: no difference between .* beyond' \
        "$backend: for which sizes"
done
is "$(rows | awk '{ print $5 }' | sort | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" \
    '18 in 18 out ' 'both places'
perf -n 2 --compare all_gather,gather+broadcast -b 64 -e 64 -t 0.0005 --csv
is "$(awk -F, '{ print NF }' "$scratch/out" | sort -u)" 25 'alternatives as CSV: fields'
is "$(awk -F, '{ print $1, $6 }' "$scratch/out" | tr '\n' ' ')" \
    'operation place all_gather out gather+broadcast out all_gather in gather+broadcast in ' \
    'alternatives as CSV: lines'
# By hand: in lines, 2 ranks read and write 5 n, or 2 n and, in place, 3 n, of n = 8 bytes;
# in parts 2.5 n. A root reads and writes 5 n, the other rank 2 n.
perf -n 2 --compare $three -b 8 -e 8 -t 0.0005 --csv --backend shm
is "$(awk -F, '$6 == "in" { print $7, $19, $22, $23 }' "$scratch/out" | tr '\n' ';')" \
    'native:line 1 40.00 40.00;native:flat+native:line 2 44.00 56.00;native:parts+native:line 2 44.00 44.00;' \
    'the algorithms of shm, and their costs'
perf -n 2 --model -t 0.0001 -b 8 -e 8 --model-ranks 2 all
is "$status $(grep -c '_v' "$scratch/out")" '0 0' '--model all: what the model has'
perf -n 4 --compare broadcast,scatter+all_gather -r rotate -b 100 -e 100 -t 0.0005 --json
is $status 0 'alternatives as JSON'
like "$out" '"format" : "dscomm-perf-compare"' 'alternatives as JSON: format'
like "$out" '"sentence" : "100 B: ' 'alternatives as JSON: findings'
like "$(sed -n '/"findings"/,$p' "$scratch/out")" '"redop" : "none"' \
    'alternatives as JSON: findings without an operator'
like "$out" '"wire_bytes" : 93\.75,' \
    'alternatives as JSON: 3 of 4 ranks get 25 bytes from one, and 75 from each'
perf -n 2 --compare broadcast,scatter+all_gather -b 8 -e 8 -d float32,int8 -t 0.0005
is "$(grep -c '^# float32, in place:$' "$scratch/out") $(
    grep -c '^# int8, in place:$' "$scratch/out")" '1 1' 'findings of each type'
perf -n 2 --compare all_reduce,reduce+broadcast -b 8 -e 8 -o sum,max -i 1
is "$(sed -n 's/^# float32, \(.*\), in place:$/\1/p' "$scratch/out" | tr '\n' ' ')" 'sum max ' \
    'findings of each operator'
like "$out" '^#   8 B: .* and .* were measured in too few batches' \
    'one batch tells no difference'
perf -n 2 --compare put,bandwidth -b 64 -e 64 -t 0.0005 --backend shm
is "$status $(column 10)" '0 0 ' 'puts and messages'
DSCOMM_ALGORITHM=all_reduce:ring perf -n 2 --compare all_reduce,reduce+broadcast \
    -b 8K -e 8K -t 0.0005 --backend tcp
is "$(rows | awk '$6 == "all_reduce" { print $12, $13, $14, $15, $16, $17 }' | sort -u)" \
    '2 8192 8192 28672 N/A ring' 'costs of the algorithm that ran'

# Pictures
if "$program" perf -n 1 all_reduce -b 8 -e 8 -i 1 --plot "$scratch/x.png" \
    >/dev/null 2>"$scratch/err"; then
    is "$(head -c 4 "$scratch/x.png" | tr -d '\211')" PNG 'a picture as PNG'
    perf -n 2 --compare $three -b 8 -e 64 -t 0.0005 --plot "$scratch/x.svg"
    is "$status $(grep -c '<svg' "$scratch/x.svg")" '0 1' 'a picture as SVG'
    perf -n 2 all_reduce -b 8 -e 8 -t 0.0005 --plot "$scratch/x.gif"
    like "$err" '^dscomm perf: --plot .*x.gif: pictures are PNG or SVG' 'no other format'
    is "$status $(grep -c . "$scratch/err")" '2 1' 'which is said once, before anything else'
    perf -n 2 all_reduce -b 8 -e 8 -t 0.0005 --plot /no/such/folder/x.png
    like "$err" '^dscomm perf: --plot /no/such/folder/x.png: ' 'a folder that is not there'
    # 96 + 380 + 62, and 20 for the only line of the legend and for each warning
    taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$program" perf -n 2 all_reduce \
        -b 8 -e 8 -t 0.0005 --plot "$scratch/crowd.svg" >"$scratch/out"
    is "$(sed -n 's/^<svg .* height="\([0-9]*\).*/\1/p' "$scratch/crowd.svg")" \
        $((558 + 20 * $(grep -c '^# Warning: ' "$scratch/out"))) 'warnings in a picture'
    like "$(cat "$scratch/out")" '^# Warning: 2 ranks share 1 processor of ' 'which there are'
    mkfifo "$scratch/pipe.svg"
    cat "$scratch/pipe.svg" >"$scratch/pipe" &
    perf -n 1 all_reduce -b 8 -e 8 -t 0.0005 --plot "$scratch/pipe.svg"
    wait
    is "$status $(grep -c '<svg' "$scratch/pipe")" '0 1' 'one picture into a pipe'
    perf -n 1 barrier -t 0.0005 --plot "$scratch/y.png"
    like "$err" '^dscomm perf: --plot .*y.png: there is nothing to draw' 'no sizes'
    is "$status $(find "$scratch" -name 'y.png*' | grep -c .)" '1 0' 'and no picture'
    if [ -c /dev/full ]; then
        ln -s /dev/full "$scratch/full.png"
        perf -n 1 all_reduce -b 8 -e 8 -t 0.0005 --plot "$scratch/full.png"
        is $status 1 'a picture on a full disk: status'
        like "$err" '^dscomm perf: --plot .*full.png: No space' 'a picture on a full disk'
    fi
else
    like "$(cat "$scratch/err")" 'built without cairo.*libcairo2-dev' 'no pictures without cairo'
fi

# Messages of pairs: 2 pairs of 5 ranks, both ways
perf -n 5 multi_pair bidirectional message_rate -b 64 -e 64 -t 0.0005 --csv
is "$status $(awk -F, 'NR > 1 { print $21 }' "$scratch/out" | sort -u)" '0 0' \
    'messages of pairs are right'
is "$(awk -F, 'NR > 1 { r = $24 * $11 / 1e6; printf "%s %.2f\n", $1, r }' "$scratch/out" | tr '\n' ' ')" \
    'multi_pair 2.00 bidirectional 4.00 message_rate 4.00 ' 'messages a second, of all ranks'
perf -n 2 message_rate -b 8 -e 8 -t 0.0005
is "$(rows | awk '{ r = $18 * $6; print NF, (r > 1.95 && r < 2.05) }')" '19 1' \
    'the table tells millions a second'

# A sweep over numbers of ranks
perf -n 1,2-3 all_reduce -b 8 -e 8 -t 0.0005
is "$status $(grep -o '^# dscomm .* rank' "$scratch/out" | awk '{ print $6 }' | tr '\n' ' ')" \
    '0 1 2 3 ' 'a table for each number of ranks'
perf -n 3,2 --compare all_reduce,reduce+broadcast -b 8 -e 8 -t 0.0005 --csv
is "$status $(awk -F, '{ print $8 }' "$scratch/out" | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" \
    '0 1 ranks 4 3 4 2 ' 'one CSV, in the order that was given'
perf -n 2,3 barrier -t 0.0005 --json --save "$scratch/sweep.json"
is "$status $(grep -c '"rank" :' "$scratch/out") $(grep -c '"rank" :' "$scratch/sweep.json")" '0 5 5' \
    'one JSON, printed and saved'
like "$out" '"format" : "dscomm-perf-sweep"' 'JSON of a sweep: format'
perf -n 3 barrier -t 0.0005 --against "$scratch/sweep.json"
is "$status $(grep -c 'speedup' "$scratch/out") $(grep -c 'Warning: the baseline' "$scratch/out")" '0 1 0' \
    'a sweep is a baseline: of one number of its ranks'
perf -n 2,3 barrier -t 0.0005 --against "$scratch/sweep.json" --save "$scratch/sweep.json"
is "$status $(grep -c 'speedup' "$scratch/out") $(grep -c '"speedup" : [0-9]' "$scratch/sweep.json")" \
    '0 2 2' 'and of another sweep, which replaces it'
perf -n 2,4 barrier -t 0.0005 --against "$scratch/sweep.json"
is "$status $out" '1 ' 'but not of other numbers: status, and nothing is measured'
like "$err" 'not a baseline: it is a sweep over 2, 3 ranks, without 4; ' 'but not of other numbers'
perf -n 2,3 reduce -r 2 -b 8 -e 8 -t 0.0005
is $status 2 'a sweep ends with the first failure: status'
perf -n 3,2 reduce -r 2 -b 8 -e 8 -t 0.0005 --json --save "$scratch/part.json"
is "$status $(grep -c '"rank" :' "$scratch/out") $(grep -c '"rank" :' "$scratch/part.json")" \
    '2 3 3' 'and keeps the reports before'
is "$(cat "$scratch/err")" 'dscomm perf: -r 2: there are 2 ranks only' 'which is said once'
"$program" run -n 2 "$program" perf -n 2,3 all_reduce -e 8 >/dev/null 2>"$scratch/err"
is "$? $(grep -c '^dscomm perf: -n with several numbers' "$scratch/err")" '2 1' \
    'no sweep under a launcher'

# Buffers of a device, by a driver that is not one
cuda=$abs_top_builddir/tests/lib/device/.libs
case $SANITIZER_FLAGS in
*-fsanitize*) skip 'buffers of a device' 'the stand-in for CUDA does not do with sanitizers' ;;
*)
    libraries=$LD_LIBRARY_PATH
    export LD_LIBRARY_PATH="$cuda${libraries:+:$libraries}"
    perf -n 2 all --accelerator cuda -b 96 -e 9600 -f 100 -d int32 -t 0.0005
    is "$status $(column 9)$(column 13)" '0 0 N/A 0 N/A ' 'buffers of a device'
    like "$out" ', buffers on cuda$' 'which the table tells'
    perf -n 3 --compare $three --accelerator cuda -b 100 -e 100 -t 0.0005
    is "$status $(column 10)" '0 0 ' 'alternatives with buffers of a device'
    LD_LIBRARY_PATH=$libraries
    ;;
esac
if [ ! -e /dev/nvidiactl ]; then
    perf -n 2 all_reduce --accelerator=cuda -b 8 -e 8
    like "$err" '^dscomm perf: --accelerator: rank 0: no CUDA device: .*without --accelerator' \
        'no device'
    is "$status $(grep -c '^dscomm perf: --acc' "$scratch/err")" '1 1' 'which is said once'
fi

# What was chosen by trial, in every form.
if [ "$(nproc)" -gt 1 ]; then
    choice='(plain|streaming) stores \(a piece: plain [0-9.]+ us, streaming [0-9.]+ us\)'
    perf -n 2 all_reduce -b 1M -e 1M -i 100 --backend shm
    like "$out" "^# Chosen by trial      : $choice" 'the table tells the choice of stores'
    perf -n 2 all_reduce -b 1M -e 1M -i 100 --backend shm --csv
    like "$err" "^dscomm perf: chosen by trial: $choice" 'CSV tells it beside the lines'
    perf -n 2 all_reduce -b 1M -e 1M -i 100 --backend shm --json
    like "$out" "^  \"chosen_by_trial\" : \"$choice" 'JSON tells it'
else
    skip 'the choice of stores' 'ranks share the processor, so nothing is tried'
fi
perf -n 2 barrier -i 20 --backend shm --json
like "$out" '^  "chosen_by_trial" : null,$' 'JSON says that nothing was tried'

# STATUS PATTERN ARGUMENTS: one sentence, which says what is wrong
refusals()
{
    while read -r want pattern line; do
        eval "perf $line"
        is $status $want "status of: $line"
        like "$err" "^dscomm perf: .*$(echo "$pattern" | tr _ ' ')" "sentence of: $line"
        is "$(grep -c . "$scratch/err")" 1 "one sentence: $line"
    done <<-'END'
	2 which_operation
	2 no_operation_'no-such' -n 2 no-such
	2 is_larger_than -n 2 all_reduce -b 1M -e 8
	2 is_no_size -n 2 all_reduce -b x
	2 is_no_size -n 2 all_reduce -e 8Q
	2 -f_must_be -n 2 all_reduce -f 1
	2 must_not_be_0 -n 2 all_reduce --stepbytes 0
	2 -f_must_be_a_number_of_more_than_1.*'nan' -n 2 all_reduce -f nan
	2 -f_must_be.*'0x4' -n 2 all_reduce -f 0x4
	2 -n_must_be_a_whole_number_from_1_to_4096,_not_'0' -n 0 all_reduce
	2 -n_must_be_a_whole_number_from_1_to_4096 -n 4294967297 all_reduce
	2 -n_must_be_a_whole_number -n 2.0 all_reduce
	2 -i_must_be_a_whole_number_from_1_to_2147483647,_not_'0' -n 2 all_reduce -i 0
	2 -w_must_be_a_whole_number_from_0_to_2147483647,_not_'2147483648' -n 2 all_reduce -w 2147483648
	2 -w_must_be.*,_not_'-1' -n 2 all_reduce -w -1
	2 -w_must_be.*,_not_'x' -n 2 all_reduce -w x
	2 -c_must_be.*,_not_'2147483648' -n 2 all_reduce -c 2147483648
	2 -m_must_be_a_whole_number_from_1_to_10000 -n 2 all_reduce -m 0
	2 -R_must_be_0_or_1 -n 2 all_reduce -R 2
	2 -t_must_be_seconds,_0.000001_to_1000000,_not_'nan' -n 2 all_reduce -t nan
	2 -t_must_be.*'1s' -n 2 all_reduce -t 1s
	2 no_type_'float99' -n 2 all_reduce -d float99
	2 no_operator_'no' -n 2 all_reduce -o no
	2 is_no_rank -n 2 broadcast -r x
	2 exclude_each_other -n 2 all_reduce --json --csv
	2 none_of_these_operators -n 2 all_reduce -o band
	2 no_form_that_returns_a_work -n 2 latency --async
	2 no_form_that_returns_a_work -n 2 all_gather_blob -m 2
	2 needs_2_ranks latency
	2 needs_2_ranks bidirectional
	2 --model_and_--compare_exclude -n 2 --model --compare all_reduce,reduce+broadcast
	2 --model_and_several_numbers_of_ranks -n 2,3 --model
	2 --model_and_--plot_exclude -n 2 --model --plot x.png
	2 --accelerator_must_be_cuda,_not_'rocm' -n 2 all_reduce --accelerator rocm
	2 --accelerator_and_-R_exclude -n 2 all_reduce -R --accelerator cuda
	2 put_needs_memory_of_the_host -n 2 put --accelerator cuda
	2 or_up_to_64_of_them,.*,_not_'2,' -n 2, all_reduce
	2 or_up_to_64_of_them,.*,_not_'4-2' -n 4-2 all_reduce
	2 or_up_to_64_of_them,.*,_not_'1-65' -n 1-65 all_reduce
	2 or_up_to_64_of_them,.*,_not_'0,1' -n 0,1 all_reduce
	1 not_a_baseline -n 2,3 all_reduce -e 8 --against "$scratch/corrupt"
	2 --compress_and_several_numbers -n 2,3 --compress onebit
	1 --save_/no/such/folder/x -n 2,3 all_reduce -e 8 --save /no/such/folder/x
	2 --no-such-option --no-such-option
	2 needs_two_operations_or_more -n 2 --compare all_reduce
	2 needs_two_operations_or_more -n 2 --compare ''
	2 no_operation_'reduc' -n 2 --compare reduc,reduce+broadcast
	2 reduce.broadcast_is_there_twice -n 2 --compare reduce+broadcast,all_reduce,reduce+broadcast
	2 --compare_needs_2_ranks,.*start_them_with_-n --compare all_reduce,reduce+broadcast
	2 --compare_needs_2_ranks -n 1 --compare all_reduce,reduce+broadcast
	2 have_different_results -n 2 --compare all_reduce,all_gather
	2 --compare_has_the_operations -n 2 --compare all_reduce,reduce+broadcast reduce
	2 exclude_each_other -n 2 --compare all_reduce,reduce+broadcast -m 2
	2 exclude_each_other -n 2 --compare all_reduce,reduce+broadcast --async
	2 --compare_and_--overlap_exclude -n 2 --compare all_reduce,reduce+broadcast --overlap
	2 exclude_each_other -n 2 --compare all_reduce,reduce+broadcast --compress onebit
	2 none_of_these_operators -n 2 --compare all_reduce,reduce+broadcast -o mulsum
	2 --save_needs_a_file -n 2 all_reduce -e 8 --save ''
	2 --against_needs_a_file -n 2 all_reduce -e 8 --against ''
	1 --save_/no/such/folder/x -n 2 all_reduce -e 8 --save /no/such/folder/x
	1 not_a_baseline -n 2 all_reduce -e 8 --against "$scratch/corrupt"
	1 not_a_baseline -n 2 all_reduce -e 8 --against /no/such/file
	1 out_of_memory:.*choose_a_smaller -n 2 all_reduce -e 100T
	1 out_of_memory:.*choose_a_smaller all_reduce -e 100T
	1 no_such_backend|no_backend|unknown_backend -n 1 all_reduce --backend no-such
	END
}
echo '{"format": "dscomm-perf", "rows": ' >"$scratch/corrupt"
refusals
DSCOMM_BACKEND_PATH=/no/such perf -n 2 all_reduce
like "$err" '^dscomm perf: start: no backend can serve this world of 2 ranks' 'no backend'
is "$status $(grep -c '^dscomm perf: ' "$scratch/err")" '1 1' 'which the ranks say once'
perf -n 2 broadcast -r 2 -e 8
is $status 2 'a root that does not exist: status'
is "$(cat "$scratch/err")" 'dscomm perf: -r 2: there are 2 ranks only' \
    'a root that does not exist, said once'
"$program" run -n 2 "$program" perf -n 3 \
    all_reduce -e 8 >/dev/null 2>"$scratch/err"
is $? 2 'another number than the launcher started: status'
is "$(grep -c '^dscomm perf: -n 3, but the launcher has started 2 ranks' "$scratch/err")" 1 \
    'another number than the launcher started, said once'
"$program" run -n 2 "$program" perf -n 2 \
    all_reduce -b 8 -e 8 -t 0.0005 >"$scratch/out" 2>&1
is "$? $(rows | grep -c .)" '0 1' 'under a launcher'

# Files
if [ -c /dev/full ]; then
    "$program" perf -n 2 all_reduce -e 8 -t 0.0005 \
        >/dev/full 2>"$scratch/err"
    is $? 1 'output that cannot be written: status'
    like "$(cat "$scratch/err")" '^dscomm perf: cannot write: ' 'output that cannot be written'
    perf -n 2 all_reduce -e 8 -t 0.0005 --save /dev/full
    is $status 1 'a full disk: status'
    like "$err" '^dscomm perf: --save /dev/full: .*' 'a full disk'
else
    skip 'output that cannot be written' 'no /dev/full'
fi
perf -n 2 all_reduce -e 64 -t 0.0005 --save "$scratch/base.json"
is "$status" 0 'a baseline is saved'
perf -n 2 all_reduce -e 64 -t 0.0005 --against "$scratch/base.json" \
    --save "$scratch/base.json"
is "$status" 0 'and compared with and replaced in one run'
like "$out" 'speedup' 'a column says how the times compare'
is "$(rows | awk '{ print ($18 ~ /^[0-9]+[.][0-9]+$/) ($19 ~ /^[0-9]+[.][0-9]+$/) }' | sort -u)" 11 \
    'ratios of both places'
is "$(echo "$out" | grep -c 'Warning: the baseline')" 0 'of the same rows'
perf -n 2 all_reduce -b 512 -e 512 -t 0.0005 --against "$scratch/base.json"
like "$out$err" 'Warning: the baseline has none of these rows' 'of no row'
perf -n 2 all_reduce -b 32 -e 128 -t 0.0005 --against "$scratch/base.json"
like "$out$err" 'Warning: the baseline lacks 2 of the 4 figures' 'of some rows'
perf -n 2 broadcast -r rotate -e 8 -t 0.0005 --json --save "$scratch/root.json"
like "$out" '"root" : "rotate"' 'a root that rotates is told from 0'
perf -n 2 broadcast -e 8 -t 0.0005 --against "$scratch/root.json"
like "$out$err" 'Warning: the baseline has none of these rows' 'and not compared with it'
perf -n 2 broadcast -r rotate -e 8 -t 0.0005 --against "$scratch/root.json"
is "$(echo "$out$err" | grep -c 'Warning: the baseline')" 0 'but with another'
DSCOMM_ALGORITHM=all_reduce:-512:linear,all_reduce:ring \
    perf -n 2 all_reduce -b 256 -e 256 -m 4 -t 0.0005
like "$out" ' linear/ring$' 'algorithms of one call, and of all as one'
perf -n 3 all_reduce -e 64 -t 0.0005 --against "$scratch/base.json"
like "$out" '^# Warning: the baseline is of 2 ranks, this is of 3$' 'of other ranks'
is "$(find "$scratch" -name 'base.json?*' | grep -c .)" 0 'nothing is left beside it'

# A rank that dies. The file is emptied here, because the job's own redirection can
# come after the first look at it, which would find the ranks of the job before.
: >"$scratch/out"
"$program" perf -n 3 all_reduce -b 8 -e 8 -t 600 \
    >"$scratch/out" 2>"$scratch/err" &
job=$!
tries=0
while victim=$(sed -n 's/^#  Rank  1 Pid *\([0-9]*\) .*/\1/p' "$scratch/out" 2>/dev/null)
    [ -z "$victim" ] && [ $tries -lt 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
kill -KILL "$victim"
wait $job
is $? 137 'a rank that dies: status'
like "$(cat "$scratch/err")" "rank 1 \(pid $victim\) was killed by signal 9" \
    'a rank that dies is named'

tap_done
