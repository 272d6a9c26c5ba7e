#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm run, on programs of the shell: statuses, signals, output, nothing left.

. "$abs_top_srcdir/tests/tools/jobs.sh"

# STATUS ARGUMENTS: what the options and the program's end make of the status
statuses()
{
    while read -r want line; do
        eval "run $line"
        is $status $want "status of: $line"
    done <<-'END'
	0   -n 4 true
	0   -n4 true
	0   --ranks=4 true
	0   -n 2 -- true
	0   -n 2 sh -c 'exit 0' -n 5000
	0   --help
	1   -n 4 false
	3   -n 4 sh -c 'exit $RANK'; [ $status = 1 -o $status = 2 ] && status=3
	7   -n 3 sh -c '[ $RANK != 1 ] || exit 7; exec sleep 600'
	139 -n 2 sh -c '[ $RANK = 0 ] && kill -SEGV $$; exec sleep 600'
	127 -n 2 no-such-program-anywhere
	127 -n 2 /no/such/folder/program
	126 -n 2 "$scratch/plain"
	126 -n 2 /
	2   -n 2
	2   true
	2   -n 0 true
	2   -n -1 true
	2   -n 4097 true
	2   -n many true
	2   -n '' true
	2   -n4x true
	2   -n 100000 true
	126 -n 2 "$scratch/script"
	124 -n 1 --timeout 1e-9 sleep 600
	0   -n 1 -- "$scratch/echo" -n5; is "$out" -n5 'a -n5 of the program, behind --'
	0   -n 1 --grace 1 "$scratch/7z" -n5; is "$out" -n5 'a -n5 of the program'
	0   -n2 --timeout 60 -n1 sh -c 'echo $WORLD_SIZE'; is "$out" 1 'the last -n counts'
	2   -n 2 --no-such-option true
	2   -n 2 --timeout=-1 true
	2   -n 2 --grace=x true
	0   -n 3 --survive sh -c 'exit $RANK'
	0   -n 3 --survive sh -c '[ $RANK != 1 ] || kill -9 $$'
	6   -n 3 --survive sh -c 'exit 6'
	124 -n 3 --survive --timeout 0.5 sh -c '[ $RANK != 1 ] || exit 5; exec sleep 600'
	2   -n 3 --survive --max-restarts 1 true
	END
}
echo 'not a program' >"$scratch/plain"
printf '#!/no/such/interpreter\n' >"$scratch/script"
printf '#!/bin/sh\nprintf "%%s\\n" "$1"\n' >"$scratch/echo"
cp "$scratch/echo" "$scratch/7z"
chmod +x "$scratch/script" "$scratch/echo" "$scratch/7z"
statuses

run -n 3 sh -c '[ $RANK = 1 ] && exit 7; exec sleep 600'
like "$err" '^dscomm run: rank 1 \(pid [0-9]+\) exited with status 7; ending ranks 0, 2$' \
    'a failure is told'
run -n 3 --survive sh -c '[ $RANK = 1 ] && exit 7
    until grep -q "rank 1 .*; going on" "$1"; do sleep 0.01; done' sh "$scratch/err"
like "$status $err" \
    '^0 dscomm run: rank 1 \(pid [0-9]+\) exited with status 7; going on with ranks 0, 2$' \
    'a rank fails, and the others go on'
run -n 4 sh -c '[ $RANK = 0 ] && kill -9 $$; exec sleep 600'
like "$err" 'rank 0 \(pid [0-9]+\) was killed by signal 9 \(.+\); ending ranks 1-3$' \
    'a death by signal is told'
is `grep -c . "$scratch/err"` 1 'only the first failure is told'
run -n 2 sh -c 'trap "exit 9" TERM; [ $RANK = 1 ] && exit 5
    while :; do sleep 0.05; done'
is $status 5 'the first failure counts, not how the others end'
run -n 2 no-such-program-anywhere
like "$err" "cannot execute 'no-such-program-anywhere': .+" 'what cannot be executed'
run -n 2 "$scratch/script"
like "$err" "cannot execute '.*/script': it is there, but its interpreter" 'a missing interpreter'
run -n 2 "`printf '/no/\033[1m'`"
like "$err" "cannot execute '/no/.x1b.1m': .+" 'no control characters in messages'
like "$(run -n 2; echo "$err")" 'Usage: dscomm run -n N PROGRAM' 'usage'
"$program" >/dev/null 2>"$scratch/err"
is $? 2 'no command: status'
is "`head -n 1 "$scratch/err"`" 'Usage: dscomm COMMAND [OPTION...]' 'no command: usage'
is "`"$program" --version | head -n 1`" \
    "dscomm $PACKAGE_VERSION" 'version'

# The environment
unset OMP_NUM_THREADS TORCHELASTIC_SIGNALS_TO_HANDLE TORCH_NCCL_ASYNC_ERROR_HANDLING
run -n 3 sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK \
    $GROUP_WORLD_SIZE $ROLE_NAME $ROLE_RANK $ROLE_WORLD_SIZE $MASTER_ADDR \
    $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS \
    $TORCHELASTIC_USE_AGENT_STORE $OMP_NUM_THREADS \
    $TORCHELASTIC_SIGNALS_TO_HANDLE $TORCH_NCCL_ASYNC_ERROR_HANDLING'
is "`sort "$scratch/out"`" '0 3 0 3 0 1 default 0 3 127.0.0.1 0 0 True 1 SIGTERM,SIGINT,SIGHUP,SIGQUIT 1
1 3 1 3 0 1 default 1 3 127.0.0.1 0 0 True 1 SIGTERM,SIGINT,SIGHUP,SIGQUIT 1
2 3 2 3 0 1 default 2 3 127.0.0.1 0 0 True 1 SIGTERM,SIGINT,SIGHUP,SIGQUIT 1' 'torchrun'"'"'s variables'
run -n 8 sh -c 'echo $MASTER_PORT $TORCHELASTIC_RUN_ID'
is "`sort -u "$scratch/out" | grep -Ec '^[0-9]+ [0-9a-f]{32}$'`" 1 'one port, one id'
is "`sort -u "$scratch/out" | wc -l | tr -d ' '`" 1 'the same on all ranks'
before=$out
run -n 8 sh -c 'echo $MASTER_PORT $TORCHELASTIC_RUN_ID'
[ "$before" != "$out" ]
result $? 'another id for another job'
OMP_NUM_THREADS=3 TORCH_NCCL_ASYNC_ERROR_HANDLING=0 TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM \
    run -n 2 sh -c 'echo $OMP_NUM_THREADS $TORCH_NCCL_ASYNC_ERROR_HANDLING \
    $TORCHELASTIC_SIGNALS_TO_HANDLE'
is "`sort -u "$scratch/out"`" '3 0 SIGTERM' 'these stay as the user has them'
run -n 1 sh -c 'echo ${OMP_NUM_THREADS-unset}'
is "$out" unset 'no OMP_NUM_THREADS for one rank'
RANK=7 DSCOMM_RANK=7 DSCOMM_WORLD_SIZE=9 DSCOMM_LAUNCHER=slurm DSCOMM_LOG=info \
    run -n 1 sh -c 'echo $RANK ${DSCOMM_RANK-unset} ${DSCOMM_WORLD_SIZE-unset} \
    ${DSCOMM_LAUNCHER-unset} $DSCOMM_LOG'
is "$out" '0 unset unset unset info' 'an outer job is forgotten, settings are not'
like "$(cat "$scratch/err")" "^dscomm run: DSCOMM_LAUNCHER='slurm' is ignored: " \
    "another launcher's name is not taken silently"
DSCOMM_LAUNCHER=pmix run -n 1 echo ran
is "$status $out" '2 ' 'a launcher that does not exist: status'
like "$(cat "$scratch/err")" "^dscomm run: DSCOMM_LAUNCHER='pmix': no such source" \
    'a launcher that does not exist is named'
for name in auto Torchrun; do
    DSCOMM_LAUNCHER=$name run -n 1 echo ran
    is "$status $out $(cat "$scratch/err")" '0 ran ' "DSCOMM_LAUNCHER=$name says nothing new"
done
for words in '-np 2' '--np=2' '--ntasks 2'; do
    # shellcheck disable=SC2086
    run $words true
    is "$status $(cat "$scratch/err")" "2 dscomm run: there is no ${words%%[= ]*}: give the \
number of ranks on this machine with -n" "$words: what to write"
done
for words in '--host=a,b' '-H a,b' '-machinefile hosts' '-w a,b'; do
    # shellcheck disable=SC2086
    run -n 2 $words true
    like "$status $(cat "$scratch/err")" \
        "^2 dscomm run: there is no ${words%%[= ]*}: give a file of hosts with --hostfile, " \
        "$words: what to do instead"
done
while read -r words want; do
    run -n 2 "$words" true
    like "$status $(cat "$scratch/err")" "^2 dscomm run: there is no ${words%=*}: .*$want" \
        "$words: what to do instead"
done <<'END'
-x write NAME=VALUE before it
-genv write NAME=VALUE before it
--export=ALL write NAME=VALUE before it
--bind-to taskset -c
--cpu-bind=cores taskset -c
--oversubscribe leave the option out
--rank=1 --node-rank
--mca dscomm-env
-N --nnodes
--wdir=x in the folder
-l --tag-output puts
--redirects=3 --log-dir
--standalone leave the option out
--module python3 -m MODULE
-m python3 -m MODULE
END
for words in '--tag-outpt tag-output' '--log_dri=x log-dir' '-timeout=3 timeout' \
    '--nprocs-per-node=2 nproc-per-node'; do
    run -n 2 "${words% *}" true
    like "$status $(cat "$scratch/err")" "^2 dscomm run: .*is --${words#* } meant" \
        "${words% *}: which option is meant"
done
run -n 2 --xyzzy=1 true
like "$(cat "$scratch/err")" "^dscomm run: Unknown option --xyzzy=1; 'dscomm run --help'" \
    'an option that is near none'
run -n 1 echo -np 2 --hostfile x
is "$status $out" '0 -np 2 --hostfile x' "the program's own options are its own"
run -n 2 "$program" run -n 2 sh -c 'echo $WORLD_SIZE-$RANK'
is "`sort "$scratch/out" | tr '\n' ' '`" '2-0 2-0 2-1 2-1 ' 'a job in each rank of a job'

# Error files
# fails TEXT COMMAND WANT: rank 1 runs COMMAND, which makes its error file $f, and fails
fails()
{
    run -n 2 sh -c '[ $RANK = 0 ] && exec sleep 600
        f=$TORCHELASTIC_ERROR_FILE; eval "$1"; exit 3' sh "$2"
    is "$status $(sed -n 's/^dscomm run: rank 1: //p' "$scratch/err")" "3 $3" \
        "error file: $1"
}

# says TEXT FORMAT WANT: the same with a file of FORMAT
says()
{
    format=$2
    export format
    fails "$1" 'printf "$format" >"$f"' "$3"
}

mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp
export TMPDIR
says 'as @record writes it' '{"message": {"message": "ValueError: no \\"data\\"",
    "extraInfo": {"py_callstack": "[[", "timestamp": "1"}}}\n' 'ValueError: no "data"'
says 'as text' '{"message": "out of luck"}' 'out of luck'
says 'several lines, control characters' '{"message": "a\\u001b[1m\\r\\n\\n\\tb\\u00e9\\n"}' \
    'a\x1b[1m
\x09bé'
says 'no JSON' 'oh no' ''
says 'other JSON' '[{"message": 1}]' ''
says 'a message that is no text' '{"message": {"message": [1]}}' ''
says 'a part' '{"message": "out of' ''
says 'no text' '{"message": "\377\376"}' ''
fails 'deeply nested' 'awk "BEGIN { for (i = 0; i < 400000; i++) printf \"[\" }" >"$f"' ''
fails 'many lines are cut' '{ printf "{\"message\": \""; seq -s "\\n" 30 | tr -d "\n"; echo "\"}"; } >"$f"' \
    "`seq 20; echo ...`"
fails 'huge' '{ printf "{\"message\": \""; head -c 2000000 /dev/zero | tr "\000" x; echo "\"}"; } >"$f"' ''
fails 'a pipe' 'mkfifo "$f"' ''
echo '{"message": "secret"}' >"$scratch/secret"
fails 'a link' "ln -s $scratch/secret"' "$f"' ''
is "`ls "$scratch/tmp"`" '' 'error files go with the job'
run -n 2 sh -c 'stat -c %a "${TORCHELASTIC_ERROR_FILE%/*}"; echo "$TORCHELASTIC_ERROR_FILE" >&2'
is "`sort -u "$scratch/out"`" 700 'nobody else sees them'
is "`sort -u "$scratch/err" | sed 's|.*/||' | tr '\n' ' '`" '0.json 1.json ' 'each rank has its own'
TMPDIR=$scratch/nowhere TORCHELASTIC_ERROR_FILE=/outer run -n 2 sh -c \
    'echo ${TORCHELASTIC_ERROR_FILE-none}'
is "$status `sort -u "$scratch/out"`" '0 none' 'no place for error files: a job without'
unset TMPDIR

# A rank whose secret is not the store's, and whose end nobody takes for a failure
DSCOMM_TIMEOUT=300 run -n 2 sh -c '[ $RANK = 0 ] || export DSCOMM_JOB_SECRET=0123456789abcdef
    "$1" arguments >&2; [ $RANK != 0 ]' sh "$abs_top_builddir/tests/backends/conformance"
is "$status `grep -c "1 connection was refused at the launcher's store, from 127.0.0.1:.* that it is rank 1 of 2 (pid .*): it has another job secret than the launcher, or none; give all" "$scratch/err"`" \
    '1 1' 'a rank with another secret: rank 0 ends'

# Two programs of the suite, one after the other in each rank
for method in env:// "file://$scratch/meeting"; do
    DSCOMM_INIT_METHOD=$method DSCOMM_TIMEOUT=20 run -n 3 sh -c \
        '"$1" arguments && "$1" arguments' sh "$abs_top_builddir/tests/backends/conformance"
    is "$status `grep -c '^1\.\.' "$scratch/out"`" '0 2' "programs one after the other, $method"
done

# Input
echo word | "$program" run -n 3 \
    sh -c 'read -r w; echo "$RANK:$w"' >"$scratch/out"
is "`sort "$scratch/out" | tr '\n' ' '`" '0:word 1: 2: ' 'rank 0 gets stdin, others none'

# Tagged output
run -n 2 --tag-output sh -c 'echo out; echo err >&2; printf end; printf last >&2'
is "`sort "$scratch/out"`" '[0]: end
[0]: out
[1]: end
[1]: out' 'stdout, with an end of line where there was none'
is "`sort "$scratch/err"`" '[0]: err
[0]: last
[1]: err
[1]: last' 'stderr'
run -n 4 --tag-output awk 'BEGIN {
    for (i = 0; i < 200000; i++) line = line ENVIRON["RANK"]
    for (i = 0; i < 5; i++) print line }'
is "`awk '{ c = substr($1, 2, 1); if (length($0) != 200005 ||
    $2 !~ "^" c "*$") bad++ } END { print NR, bad + 0 }' "$scratch/out"`" '20 0' \
    'long lines stay whole'
run -n 4 --tag-output seq 20000
is "`grep -Ec '^\[[0-3]\]: [0-9]+$' "$scratch/out"`" 80000 'many lines stay whole'
is "`sed -n 's/^\[2\]: //p' "$scratch/out" | cksum`" "`seq 20000 | cksum`" \
    'in their order'
run -n 1 --tag-output printf 'a\000b\377\r\n\n'
is "`od -An -tx1 "$scratch/out" | tr -d ' \n'`" \
    "`printf '[0]: a\000b\377\r\n[0]: \n' | od -An -tx1 | tr -d ' \n'`" 'binary data'
run -n 1 --tag-output sh -c 'head -c 3000000 /dev/zero | tr "\000" x'
is "`sed 's/^\[0\]: //' "$scratch/out" | tr -d '\n' | wc -c | tr -d ' '`" 3000000 \
    'an endless line arrives in pieces'
is "`grep -c '^\[0\]: x*$' "$scratch/out"`" 3 'which are tagged'
"$program" run -n 1 --tag-output sh -c \
    'for i in 1 2 3 4 5 6 7 8 9; do echo o; echo e >&2; done' >"$scratch/out" 2>&1
is "`grep -Ec '^\[0\]: [oe]$' "$scratch/out"`" 18 'both to one place'
{
    "$program" run -n 2 --tag-output yes 2>/dev/null
    echo $? >"$scratch/status"
} | head -n 1 >/dev/null
is "`cat "$scratch/status"`" 141 'a reader that leaves ends the ranks by SIGPIPE'
{
    "$program" run -n 1 --tag-output --log-dir "$scratch/kept" \
        --rdzv-id x seq 200000 2>/dev/null
    echo $? >"$scratch/status"
} | head -n 1 >/dev/null
is "`cat "$scratch/status"` `tail -n 1 "$scratch/kept/x/attempt_0/0/stdout.log"`" \
    '0 200000' 'but not those that write a log as well'

if [ -c /dev/full ]; then
    "$program" run -n 1 --tag-output sh -c 'echo; sleep 0.5' \
        >/dev/full 2>"$scratch/err"
    is $? 125 'output that cannot be written: status'
    like "`cat "$scratch/err"`" "^dscomm run: cannot write the ranks' output: .+" \
        'output that cannot be written is told'
    "$program" run -n 1 --tag-output yes >/dev/full 2>/dev/null
    is $? 125 'output that cannot be written, and ranks die of it: status'
else
    skip 'output that cannot be written' 'no /dev/full'
fi
run -n 2 --tag-output sh -c '[ $RANK = 1 ] && exit 3
    exec awk "BEGIN { for (;;) { for (i = 0; i < 5000; i++) printf \"x\"; print \"\" } }" >&2'
is "`grep -Evc '^\[0\]: x*$|^dscomm run: rank 1 .*; ending rank 0$' "$scratch/err"`" 0 \
    'our own messages do not break lines'

# Time
for seconds in 0.5 86401 -1 x; do
    runs 2 "--node-timeout $seconds: status" -n 1 --node-timeout=$seconds true
    [ $seconds = x ] ||
        is "${err%%.*}" 'dscomm run: --node-timeout must be 1 to 86400 seconds' \
            "--node-timeout $seconds"
done
runs 124 'time-out: status' -n 3 --timeout 0.3 sh -c '[ $RANK = 1 ] || exec sleep 600'
is "$err" 'dscomm run: ranks 0, 2 still ran after 0.3 s; ending them' \
    'time-out: who still ran'
run -n 2 --grace 0.2 sh -c 'trap "" TERM
    if [ $RANK = 1 ]; then
        while [ ! -e "$1/ignoring" ]; do sleep 0.05; done
        exit 4
    fi
    : >"$1/ignoring"
    while :; do sleep 0.05; done' sh "$scratch"
is $status 4 'a rank that ignores SIGTERM: status'
like "$err" '^dscomm run: rank 0 did not end within 0.2 s; killing it$' \
    'a rank that ignores SIGTERM is killed'
# Stopped ranks, which are left alone when the others have ended
"$program" run -n 3 sh -c '[ $RANK != 1 ] || kill -STOP $$' 2>"$scratch/err" &
until_true grep -q 'rank 1 (pid [0-9]*) is stopped, and all others have ended; waiting for it$' "$scratch/err"
result $? 'a stopped rank is waited for when the others have succeeded' ||
    sed 's/^/# /' "$scratch/err"
kill -CONT "$(sed -n 's/.*(pid \([0-9]*\)).*/\1/p' "$scratch/err")"
wait $!
is "$?,$(grep -c . "$scratch/err")" 0,1 'until it is continued'
for row in 5:'exit 5' 0:'[ $RANK = 2 ]'; do
    want=${row%%:*}
    timeout --preserve-status -k 5 60 "$program" run -n 4 --survive --grace 0.2 sh -c "
        case \$RANK in
        0) ${row#*:} ;;
        1) trap '' TERM && kill -STOP \$\$ && sleep 600 ;;
        2) ${row#*:} ;;
        3) exit 7 ;;
        esac" 2>"$scratch/err"
    like "$? $(sed -n 's/.*: rank 1 //p' "$scratch/err" | tr '\n' ';')" \
        "^$want \(pid [0-9]+\) is stopped, and all others have ended; ending it;did not end within 0.2 s; killing it;\$" \
        "a stopped rank is ended when others have failed: $want"
done
# A reader that does not read: ranks that write on, and one that has ended
mkfifo "$scratch/stuck"
sleep 600 <"$scratch/stuck" &
reader=$!
for row in 'for (;;) print "x"' 'for (i = 0; i < 99999; i++) print "x"'; do
    timeout --preserve-status -k 5 60 "$program" run \
        -n 1 --tag-output --timeout 0.5 --grace 0.2 awk "BEGIN { $row }" \
        >"$scratch/stuck" 2>"$scratch/err"
    is $? 124 "nobody reads: status of $row"
    like "`cat "$scratch/err"`" \
        '^dscomm run: nobody reads .* have written; giving up the last [0-9]+ bytes$' \
        "nobody reads: is told of $row"
done
# Nor does it hang where that is stderr as well.
timeout --preserve-status -k 5 60 "$program" run -n 1 \
    --tag-output --timeout 0.5 --grace 0.2 awk 'BEGIN { for (;;) print "x" }' \
    >"$scratch/stuck" 2>&1
is $? 124 'nobody reads either of them'
kill $reader
# Who reads, however slowly, gets all of it.
timeout --preserve-status -k 5 60 "$program" run -n 2 \
    --tag-output --timeout 0.5 --grace 0 sh -c 'trap "" TERM; yes' \
    2>"$scratch/err" | cat >/dev/null
is "$(grep -c 'nobody reads' "$scratch/err")" 0 'somebody reads'
runs 0 'in time' -n 2 --timeout 600 true

# Signals to dscomm itself
for row in INT:130 TERM:143 HUP:129 QUIT:131; do
    signal=${row%:*}
    rm -f "$scratch"/got.* "$scratch"/ready
    timeout --preserve-status -k 5 60 "$program" run -n 2 sh -c \
        "trap 'echo >$scratch/got.\$RANK; exit 0' $signal
        if [ \$RANK = 1 ]; then
            echo >$scratch/ready
        else
            until [ -e $scratch/ready ]; do sleep 0.05; done
            kill -$signal \$PPID
        fi
        while :; do sleep 0.05; done" \
        >/dev/null 2>"$scratch/err"
    is $? ${row#*:} "SIG$signal: dscomm ends by it"
    is "`ls "$scratch"/got.0 "$scratch"/got.1 2>/dev/null | wc -l | tr -d ' '`" 2 \
        "SIG$signal: the ranks get it"
    is "`grep dscomm "$scratch/err"`" '' "SIG$signal: nobody is blamed"
done
for signal in USR1 USR2; do
    rm -f "$scratch"/up.*
    "$program" run -n 2 sh -c \
        "trap 'exit 0' $signal; echo >$scratch/up.\$RANK; while :; do sleep 0.05; done" &
    appears 2 "$scratch"/up.0 "$scratch"/up.1
    kill -$signal $!
    wait $!
    is $? 0 "SIG$signal is passed on, and no more"
done
(
    trap '' HUP
    exec "$program" run -n 1 sh -c \
        "echo >$scratch/up.hup; sleep 0.3"
) &
appears 1 "$scratch/up.hup"
kill -HUP $!
wait $!
is $? 0 'a signal that was ignored stays ignored (nohup)'

# Nothing is left
# is_empty FOLDER
is_empty()
{
    [ -z "$(ls "$1")" ]
}
TMPDIR=$scratch/tmp
export TMPDIR
run -n 3 sh -c "sleep 600 & echo \$! >$scratch/left.\$RANK"
is $status 0 'left behind by ranks that ended: status'
gone "$scratch"/left.*
result $? 'left behind by ranks that ended'
run -n 2 sh -c "setsid sh -c 'echo \$\$ >$scratch/left.\$RANK; sleep 600; :' &
    while [ ! -s $scratch/left.\$RANK ]; do sleep 0.05; done; exit \$RANK"
is $status 1 'in sessions of their own: status'
gone "$scratch"/left.*
result $? 'in sessions of their own'
for signal in TERM KILL; do
    rm -f "$scratch"/left.*
    "$program" run -n 2 sh -c \
        "sleep 600 & echo \$! >$scratch/left.\$RANK; echo \$\$ >$scratch/left.p\$RANK; wait" &
    appears 4 "$scratch"/left.0 "$scratch"/left.1 "$scratch"/left.p0 "$scratch"/left.p1
    kill -$signal $!
    wait $! 2>/dev/null
    gone "$scratch"/left.*
    result $? "by dscomm that got SIG$signal"
done
until_true is_empty "$scratch/tmp"
result $? 'nor its error files'

# contained COMMAND...: with processes and a /proc of its own. unshare's own
# --mount-proc fails in a chroot.
contained()
{
    unshare -pfm --propagation unchanged sh -c 'mount --make-private /proc &&
        mount -t proc proc /proc && exec "$@"' sh "$@"
}

if contained true 2>/dev/null; then
    before=`date +%s`
    contained "$program" run -n 2 true
    is $? 0 'as the first process of a container'
    [ $((`date +%s` - before)) -lt 4 ]
    result $? 'which ends at once'
else
    skip 'as the first process of a container' 'no permission for namespaces'
fi

# Many ranks, few files
run -n 64 --tag-output sh -c 'echo $RANK'
is "`sort -u "$scratch/out" | grep -c .`" 64 '64 ranks'
run -n 256 sh -c 'echo $RANK'
is "`sort -u "$scratch/out" | grep -c .`" 256 '256 ranks'
(
    ulimit -n 40
    run -n 64 true
    echo "$status $err" >"$scratch/few"
)
like "`cat "$scratch/few"`" '^125 dscomm run: 64 ranks need [0-9]+ open files, .* 40: ' \
    'too few open files'

# A rank of another run that comes to the port
timeout 60 "$program" run -n 2 --rdzv-id own sh -c '
    exec env TORCHELASTIC_RUN_ID=left-over "$1"' sh \
    "$abs_top_builddir/examples/hello/hello" >"$scratch/out" 2>"$scratch/err"
result $((! $?)) 'ranks of another run fail'
like "$(cat "$scratch/err")" "dscomm run serves the store there for run 'own', and this process is rank [01] of run 'left-over/0'" \
    'and are told of it'

tap_done
