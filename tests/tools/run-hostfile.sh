#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm run --hostfile: the commands that it prints, and a --rsh that starts them on
# this machine.

. "$abs_top_srcdir/tests/tools/jobs.sh"

trap 'kill_started; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

address=127.$((128 + $$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256))
bounds='--join-timeout 30 --node-timeout 4 --grace 2'
for name in $(env | sed -n 's/^\(DSCOMM_[A-Z_]*\)=.*/\1/p'); do
    [ "$name" = DSCOMM_BACKEND_PATH ] || unset "$name"
done
backends=$DSCOMM_BACKEND_PATH

# An rsh that notes its arguments, and runs the command as a shell of its own does,
# elsewhere and with no variable of dscomm; "far" cannot be reached.
cat >"$scratch/rsh" <<'END_RSH'
#!/bin/sh
folder=$1
shift
printf '%s\n' "$#: $1: $2" >>"$folder/rsh.log"
[ "$1" != far ] || { echo "rsh: no route to far" >&2; exit 255; }
unset DSCOMM_JOB_SECRET DSCOMM_BACKEND_PATH DSCOMM_DUMMY
echo $$ >"$folder/rsh.$1"
cd / && exec sh -c "$2"
END_RSH
chmod +x "$scratch/rsh"
rsh="$scratch/rsh '$scratch'"

# hosts LINE...: the file
hosts()
{
    printf '%s\n' "$@" >"$scratch/hosts"
}

# rsh_run ARGUMENT...: the hosts of the file, by rsh
rsh_run()
{
    rm -f "$scratch"/rsh.*
    # shellcheck disable=SC2086
    run --hostfile "$scratch/hosts" --rsh "$rsh" --master $address $bounds "$@"
}

# Printed commands
unset DSCOMM_BACKEND_PATH
hosts '# two hosts' '' 'alpha slots=2 max_slots=4 # the first' '  beta:3 '
run --hostfile "$scratch/hosts" --tag-output ./train "it's" '$HOME'
is "$status" 0 'two hosts: status'
printed=$(echo "$out" | sed 's/^[^#].* run --nnodes/dscomm run --nnodes/')
is "$printed" "# On each host, with the same DSCOMM_JOB_SECRET in the environment, or none:
# on alpha
dscomm run --nnodes 2 --node-rank 0 --master alpha:29500 -n 2 --tag-output -- ./train 'it'\\''s' '\$HOME'
# on beta
dscomm run --nnodes 2 --node-rank 1 --master alpha:29500 -n 3 --tag-output -- ./train 'it'\\''s' '\$HOME'" \
    'two hosts: the commands'
DSCOMM_TIMEOUT=7 DSCOMM_RANK=1 DSCOMM_JOB_SECRET=0123456789abcdef \
    run --hostfile "$scratch/hosts" true
like "$out" '^env DSCOMM_TIMEOUT=7 [^ ]*dscomm run ' 'settings, and no secret'
hosts me@alpha gamma alpha2 gamma
run -n 4 --hostfile "$scratch/hosts" --nnodes 2 --master-port 42401 --grace=3 -- true
is "$(echo "$out" | sed -n 's/^[^#].* run //p')" \
    '--nnodes 2 --node-rank 0 --master alpha:42401 -n 4 --grace=3 -- true
--nnodes 2 --node-rank 1 --master alpha:42401 -n 2 --grace=3 -- true' \
    'the first hosts of the file; repeated ones have the sum of their slots'
hosts '[::1]:2' h2
run -n 1 --hostfile "$scratch/hosts" --nnodes 1:2 true
is "$(echo "$out" | sed -n 's/^[^#].* run //p')" \
    "--nnodes 1:2 --node-rank 0 --master '[::1]:29500' -n 2 -- true
--nnodes 1:2 --master '[::1]:29500' -n 1 -- true" 'elastic, at an address of IPv6'

# Wrong files: LINE|WHAT IS SAID
while IFS='|' read -r line want; do
    hosts '# hosts' "$line"
    run -n 1 --hostfile "$scratch/hosts" true
    like "$status $err" "^2 dscomm run: .*/hosts:2: .*: $want\$" "a line '$line'"
done <<'EOF'
a slots=0|slots must be 1 to 4096
a slots=|slots must be 1 to 4096
a slots=5000|slots must be 1 to 4096
a slots=2x|slots must be 1 to 4096
a:0|the slots after ':' must be 1 to 4096
a:|the slots after ':' must be 1 to 4096
a:2 slots=2|the slots are given twice
a slots=2 slots=2|the slots are given twice
a max_slots|after the host there may be slots=N, and no more
a b|after the host there may be slots=N, and no more
::1|an IPv6 address needs brackets, as in \[::1\]
[::1|it must be \[ADDRESS\] or \[ADDRESS\]:N
[a]|it must be \[ADDRESS\] or \[ADDRESS\]:N
[::1]x|it must be \[ADDRESS\] or \[ADDRESS\]:N
-oProxyCommand=x|that is not the name of a host
a;b|that is not the name of a host
EOF
hosts a b
run --hostfile "$scratch/hosts" true
like "$status $err" '^2 dscomm run: .*/hosts: host a has no slots=N; give' 'no number of ranks'
run -n 1 --hostfile "$scratch/hosts" --nnodes 3 true
like "$status $err" '^2 dscomm run: --nnodes 3: .*/hosts has 2 hosts$' 'more nodes than hosts'
run -n 1 --hostfile "$scratch/hosts" --node-rank 0 true
like "$status $err" '^2 dscomm run: --hostfile numbers the nodes' 'a node rank'
run -n 1 --rsh ssh true
like "$status $err" '^2 dscomm run: --rsh .*--hostfile' '--rsh alone'
run -n 1 --hostfile "$scratch/none" true
like "$status $err" '^2 dscomm run: --hostfile: .*/none' 'no file'
hosts '# none'
run -n 1 --hostfile "$scratch/hosts" true
like "$status $err" '^2 dscomm run: .*/hosts names no host' 'no host'
hosts a
run -n 1 --hostfile "$scratch/hosts" --rsh "no-such-rsh" true
like "$status $err" '^127 dscomm run: cannot start --rsh: .*no-such-rsh' 'no --rsh program'
run -n 1 --hostfile "$scratch/hosts" --rsh "a 'b" true
like "$status $err" "^2 dscomm run: --rsh 'a 'b': " 'a --rsh without its end'

# Started by --rsh
hosts 'alpha slots=2' 'beta slots=1'
mkdir "$scratch/it's here"
cd "$scratch/it's here" || exit 1
DSCOMM_DUMMY='a b' rsh_run sh -c 'echo "$RANK $WORLD_SIZE $GROUP_RANK $DSCOMM_DUMMY ${#DSCOMM_JOB_SECRET} $PWD $1"' \
    sh 'x  "y"'
is "$status" 0 'two hosts by rsh: status'
is "$(echo "$out" | sort)" "0 3 0 a b 64 $PWD x  \"y\"
1 3 0 a b 64 $PWD x  \"y\"
2 3 1 a b 64 $PWD x  \"y\"" 'two hosts by rsh: the ranks'
is "$(cut -d: -f 1,2 "$scratch/rsh.log" | sort | tr '\n' ' ')" '2: alpha 2: beta ' \
    'two hosts by rsh: a host and a command'
cd "$scratch" || exit 1
DSCOMM_JOB_SECRET=fedcba9876543210 rsh_run sh -c 'echo $DSCOMM_JOB_SECRET'
is "$(echo "$out" | sort -u)" fedcba9876543210 'the secret of the environment'
is "$(grep -c fedcba "$scratch/rsh.log")" 0 'it is in no command'
rsh_run --no-secret sh -c 'echo ${DSCOMM_JOB_SECRET-none}'
is "$(echo "$out" | sort -u)" none '--no-secret'
DSCOMM_BACKEND_PATH=$backends DSCOMM_TIMEOUT=60 rsh_run "$abs_top_builddir/examples/hello/hello"
is "$status $(echo "$out" | grep -c 'of 3: the sum of all ranks is 3')" '0 3' \
    'ranks of two hosts compute a sum'
hosts '[::1]:1'
rsh_run true
is "$status $(cut -d: -f 1-4 "$scratch/rsh.log")" '0 2: ::1' 'an address of IPv6 loses its brackets'

# Lines of several hosts stay whole, however --rsh's program cuts its output.
cat >"$scratch/cut" <<'END'
#!/bin/sh
sh -c "$2" | dd bs=61 2>/dev/null
END
chmod +x "$scratch/cut"
hosts alpha beta gamma
"$program" run -n 1 --hostfile "$scratch/hosts" --rsh "$scratch/cut" --master $address \
    --tag-output seq 20000 2>"$scratch/err" | cat >"$scratch/out"
is "$(grep -c '^\[[0-2]\]: [0-9]*$' "$scratch/out") $(wc -l <"$scratch/out")" '60000 60000' \
    'lines of three hosts are whole'

# Ends
hosts alpha beta
rsh_run -n 1 sh -c '[ $RANK = 0 ] || exit 7; exec sleep 600'
is "$status" 7 'a rank fails: status'
like "$err" 'dscomm run: node [01] \((alpha|beta)\): [^ ]*/rsh ended with status 7' \
    'a rank fails: the host'
hosts alpha far
before=$(date +%s)
rsh_run -n 1 sleep 600
is "$status" 255 'a host cannot be reached: status'
like "$err" 'dscomm run: node 1 \(far\): [^ ]*/rsh ended with status 255; ending the other hosts' \
    'a host cannot be reached: it is named'
[ $(($(date +%s) - before)) -lt 20 ]
result $? 'a host cannot be reached: the others do not wait for it'

# start: both hosts with a rank each that is up and stays
start()
{
    rm -f "$scratch"/rsh.* "$scratch"/up.*
    hosts alpha beta
    # shellcheck disable=SC2086
    start_node 0 "$program" run -n 1 --hostfile "$scratch/hosts" --rsh "$rsh" \
        --master $address $bounds sh -c 'echo $$ >"$1/up.$RANK"; exec sleep 600' \
        sh "$scratch"
    appears 2 "$scratch/up.0" "$scratch/up.1"
}

# SIGINT is ignored in what a shell starts in the background.
for signal in TERM:143 HUP:129; do
    start
    kill -${signal%:*} "$pid_0"
    finish
    is "$statuses" ${signal#*:} "signal $signal: status"
    gone "$scratch"/up.*
    result $? "signal $signal: no rank is left"
done
start
kill -KILL "$pid_0"
finish
gone "$scratch"/up.*
result $? 'killed: no rank is left'
gone "$scratch"/rsh.alpha "$scratch"/rsh.beta
result $? 'killed: no process of --rsh is left'
start
kill -KILL "$(cat "$scratch/rsh.beta")"
finish
is "$statuses" 137 'a process of --rsh is killed: status'
like "$(err 0)" 'dscomm run: node 1 \(beta\): [^ ]*/rsh ended with status 137; ending the other hosts' \
    'a process of --rsh is killed: which'

# An elastic job outlives a host whose dscomm run, or whose process of --rsh, is killed
# outlive FILE: kills the process of $scratch/FILE.R for a rank R that is not on the
# first host
outlive()
{
    rm -f "$scratch"/rsh.* "$scratch"/up.* "$scratch/out"
    # shellcheck disable=SC2086
    start_node 0 "$program" run -n 1 --hostfile "$scratch/hosts" --rsh "$rsh" \
        --nnodes 1:3 --max-restarts 3 --master $address $bounds sh -c '
        echo $WORLD_SIZE $TORCHELASTIC_RESTART_COUNT
        [ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
        [ $RANK = 0 ] || echo $PPID >"$1/up.$RANK"
        exec sleep 600' sh "$scratch"
    appears 2 "$scratch/up.1" "$scratch/up.2"
    kill -KILL "$(cat "$scratch/$1")"
    finish
    is "$statuses" 0 "elastic, $1: status"
    is "$(sort "$scratch/out" | tr '\n' ' ')" '2 1 2 1 3 0 3 0 3 0 ' \
        "elastic, $1: the worlds"
    like "$(err 0)" 'dscomm run: node [12] \((beta|gamma)\): [^ ]*/rsh ended with status 137; going on with the other hosts' \
        "elastic, $1: which host"
}

hosts alpha beta gamma
bounds='--join-timeout 30 --node-timeout 4 --grace 2 --last-call 1.5'
outlive up.1
outlive rsh.beta

tap_done
