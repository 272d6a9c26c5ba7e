#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm top, on a job whose rank 1 is stopped while the others wait for it.

. "$abs_top_srcdir/tests/tools/jobs.sh"

# member NAME: its values in $json, in the order of the ranks
member()
{
    printf '%s\n' "$json" | sed -n "s/.*\"$1\" : \\(.*[^,]\\),*\$/\\1/p" | tr '\n' ' '
}

# is_stopped: whether top shows that rank 1 is stopped, and the others wait
is_stopped()
{
    json=$("$program" top --once --json --interval 0.01 "$job" 2>&1) &&
        [ "$(member process)" = '"running" "stopped" "running" "running" ' ] &&
        [ "$(member wait)" = '1.0 0.0 1.0 1.0 ' ] &&
        [ "$(printf '%s\n' "$json" | grep -c '"current" : "all_reduce(count 4, float32, sum) #5"')" = 3 ]
}

name=top-$$
# waits_there: whether rank 0 waits for rank 1
waits_there()
{
    json=$("$program" top --once --json --interval 0.01 "$job" 2>&1) &&
        [ "$(member current | cut -c 2-11)" = all_reduce ]
}
# ms: the time now
ms()
{
    echo $(($(date +%s%N) / 1000000))
}
began=$(ms)
DSCOMM_TIMEOUT=100 start_node 0 "$program" run -n 4 "$abs_top_builddir/tests/tools/failing" later
job=$pid
until_true waits_there
result $? 'ranks begin to wait a second after their start'
age=$(($(ms) - began))
waited=$(member seconds | awk '{ print int(1000 * $1) }')
[ "$waited" -ge 0 ] && [ "$waited" -le $((age - 1000)) ]
result $? "and have waited for $waited ms of $age"
like "$("$program" analyze "$job")" \
    'rank 1 is behind: .* up to [0-9.e-]+ s before.*; its last, all_reduce\(count 4, float32, sum\) #4 .* was made [0-9.]+ s before' \
    'dscomm analyze has times'
spread=$("$program" analyze "$job" |
    sed -n 's/.*up to \([0-9.e-]*\) s before.*#4 .* was made \([0-9.]*\) s before.*/\1 \2/p' | head -n 1 |
    awk '{ print int(1000 * ($2 - $1)) }')
[ "${spread:-0}" -ge 990 ]
result $? "by which the others called ${spread:-no} ms after the last call of rank 1"
{
    kill_started
    finish
} 2>/dev/null
started=
DSCOMM_TIMEOUT=100 "$program" run --rdzv-id $name -n 4 "$abs_top_builddir/tests/tools/failing" stop \
    >/dev/null 2>&1 &
job=$!
until_true is_stopped
result $? 'rank 1 is stopped, and the others wait in the fifth collective'
is "$(member rank)" '0 1 2 3 ' 'all ranks'
is "$(printf '%s\n' "$json" | grep -c '"current" : null')" 1 'rank 1 is in no call'
out=$("$program" top --once --interval 0.01 "$name")
is $? 0 'as text, by the name of the job'
is "$(printf '%s\n' "$out" | head -n 1)" "job $name, 4 ranks on this machine" 'the job'
like "$out" '^ +1 +[0-9]+ stopped .* no call$' 'the stopped rank'
like "$out" '^ +3 +[0-9]+ running .* all_reduce\(count 4, float32, sum\) #5$' 'a rank that waits'
pid=$(member pid | cut -d' ' -f1)
out=$("$program" top --once --interval 0.01 "$pid")
like "$out" '^ +1 +[0-9]+ stopped' 'by the pid of a rank'
out=$("$program" analyze "$job")
is $? 1 'dscomm analyze on the running job'
like "$out" '^rank 1 \(pid [0-9]+ on [^ ]+\) is stopped' 'finds the stopped rank'
like "$out" "^group 'world': rank 1 is behind: ranks 0, 2, 3 have called all_reduce\(count 4, float32, sum\) #5" \
    'and who waits for it'

# The view, in a terminal of tmux
socket=$scratch/tmux
session()
{
    tmux -S "$socket" -f /dev/null "$@"
}
trap 'session kill-server 2>/dev/null; kill_started; rm -rf "$scratch"' EXIT
screen()
{
    session capture-pane -p "$@" >"$scratch/screen" 2>/dev/null
}
# shows PATTERN [OPTION]: whether the screen does
shows()
{
    pattern=$1
    shift
    screen "$@" && grep -Eq -e "$pattern" "$scratch/screen"
}
# appears_there TEXT PATTERN [OPTION]
appears_there()
{
    text=$1
    shift
    until_true shows "$@"
    result $? "$text" || sed 's/^/# /' "$scratch/screen"
}
escape=$(printf '\033')
if session new-session -d -x 80 -y 12 "PS1='$ ' LC_ALL=C.UTF-8 sh" 2>"$scratch/err"; then
    view="$scratch/view.sh"
    printf 'echo $$ >%s/view\nexec %s top --interval 0.1 %s\n' "$scratch" "$program" "$name" >"$view"
    chmod +x "$view"
    session send-keys "$view" Enter
    appears_there 'in a terminal: the job' "^job $name, 4 ranks on 1 node +q: quit\$"
    appears_there 'a rank that waits, in 80 columns' \
        '^ +0 +[0-9]+ running +0 +0 100% (█){6} +[0-9.]+s all_reduce\(count 4, floa>$'
    appears_there 'the stopped rank, whose bar is empty' '^ +1 +[0-9]+ stopped +0 +0 +0% (░){6} .* no call *$'
    appears_there 'in red' "$escape\[31m +1 +[0-9]+ stopped" -e
    appears_there 'a long call is yellow' "$escape\[33m.* 3 +[0-9]+ running|$escape\[33m +2 +[0-9]+ running" -e
    is "$(awk 'length > 80' "$scratch/screen" | grep -vc "$escape")" 0 'no line is longer'
    session resize-window -x 200 -y 12
    appears_there 'after it has become wider' \
        '^ +0 +[0-9]+ running +0 +0 100% (█){24} +[0-9.]+s all_reduce\(count 4, float32, sum\) #5 *$'
    # narrow COLUMNS ROWS HEADER RANK: all lines fit, and have these columns
    narrow()
    {
        session resize-window -x "$1" -y "$2"
        until_true shows "$3"
        until_true shows "$4" &&
            is "$(sed -n 2p "$scratch/screen" | grep -Ec "$3")" 1 "$1 columns: the names, in line 2"
        result $? "$1 columns: $4" || sed 's/^/# /' "$scratch/screen"
    }
    narrow 60 12 '^rank +pid process call/s byte/s wait +time in *$' \
        '^ +0 +[0-9]+ running +0 +0 100% +[0-9.]+s all_reduce\(>$'
    narrow 50 8 '^rank +pid process wait +time in *$' \
        '^ +0 +[0-9]+ running 100% +[0-9.]+s all_reduce\(coun>$'
    narrow 30 4 '^rank process wait in *$' '^ +0 running 100% all_reduce\(>$'
    is "$(sed -n 4p "$scratch/screen")" 'ranks 1 to 1 of 4; j, k: down>' '30 columns: which ranks'
    narrow 14 4 '^rank process *>?$' '^ +0 running *>?$'
    session resize-window -x 80 -y 5
    appears_there 'after it has become smaller' '^ranks 1 to 2 of 4; j, k: down, up$'
    session send-keys j
    appears_there 'one rank down' '^ranks 2 to 3 of 4;'
    session send-keys k
    appears_there 'and up' '^ranks 1 to 2 of 4;'
    session send-keys q
    for way in q C-c TERM HUP; do
        [ $way = q ] || {
            session send-keys "clear; $view" Enter
            until_true shows 'q: quit'
        }
        case $way in
        q) code=0 ;;
        C-c) code=130 && session send-keys C-c ;;
        TERM) code=143 && kill -TERM "$(cat "$scratch/view")" ;;
        HUP) code=129 && kill -HUP "$(cat "$scratch/view")" ;;
        esac
        until_true has_ended "$(cat "$scratch/view")"
        session send-keys "echo status \$?, \$(stty -a | grep -Eo ' -?(icanon|echo) ')" Enter
        appears_there "the terminal after $way" "(^|[$] )status $code, icanon echo *\$"
    done
    session send-keys "clear; $view" Enter
    until_true shows 'q: quit'
    session send-keys C-z
    until_true shows '[Ss]topped'
    result $? 'stopped by the terminal'
    session send-keys fg Enter
    appears_there 'and continued' 'q: quit'
    session kill-server
else
    skip 'in a terminal' "no tmux: $(tail -n 1 "$scratch/err")"
fi

# Another user, who may not come to the build's folder
other=$scratch/other
mkdir "$other"
cp "$abs_top_builddir"/tools/.libs/dscomm "$abs_top_builddir"/*/.libs/lib*.so.0 "$other" 2>/dev/null
chmod 711 "$scratch"
chmod 755 "$other"
export LD_LIBRARY_PATH="$other"
if setpriv --reuid=65534 --regid=65534 --clear-groups "$other/dscomm" --version >/dev/null 2>&1; then
    setpriv --reuid=65534 --regid=65534 --clear-groups "$other/dscomm" top --once "$job" \
        >/dev/null 2>"$scratch/err"
    is "$?,$(cat "$scratch/err")" \
        "1,dscomm top: process $job is another user's (uid 0); only that user may see its job" \
        'the job of another user'
else
    skip 'the job of another user' 'running as another user needs root and shared libraries'
fi
unset LD_LIBRARY_PATH

kill -TERM "$job"
kill -CONT "$(member pid | cut -d' ' -f2)" 2>/dev/null
for p in $(member pid); do
    kill -KILL "$p" 2>/dev/null
done
wait "$job"
"$program" top --once "$name" >/dev/null 2>"$scratch/err"
is "$?,$(cat "$scratch/err")" "1,dscomm top: this user has no job '$name' on this machine" \
    'a job that has ended'
"$program" top --once $$ >/dev/null 2>"$scratch/err"
is $? 1 'a process that is no rank'
like "$(cat "$scratch/err")" "^dscomm top: process $$: it has no flight recorder" 'says so'

# Ranks of two worlds in one process: neither's calls are those of the other.
trap 'kill_started; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
DSCOMM_TIMEOUT=100 start_node 0 "$program" run --survive -n 2 "$abs_top_builddir/tests/tools/failing" apart
has_two()
{
    json=$("$program" top --once --json --interval 0.01 "$pid" 2>&1) &&
        [ "$(member calls)" = '5 20 20 5 ' ]
}
until_true has_two
result $? 'two worlds of each process' || printf '%s\n' "$json" | sed 's/^/# /'
is "$(member calls_per_s)" '0.0 0.0 0.0 0.0 ' 'two worlds of each process: all are idle'
kill_started
finish 2>/dev/null

# Two nodes, which are this machine: the dscomm run of each samples its ranks
DSCOMM_JOB_SECRET=$(printf '%032d' $$)
export DSCOMM_JOB_SECRET
address=127.$((1 + $$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256))
for r in 1 0; do
    DSCOMM_TIMEOUT=100 start_node $r "$program" run --nnodes 2 --node-rank $r --master $address \
        --join-timeout 30 --rdzv-id $name -n 2 "$abs_top_builddir/tests/tools/failing" late
done
unset DSCOMM_JOB_SECRET
has_both()
{
    json=$("$program" top --once --json --interval 1 "$pid" 2>&1) &&
        [ "$(member node)" = '0 0 1 1 ' ] && [ "$(member wait)" = "$1" ]
}
until_true has_both '1.0 0.0 null null '
result $? 'two nodes: the ranks of both, and their waits, where these are known' ||
    printf '%s\n' "$json" | sed 's/^/# /'
is "$(member rank)" '0 1 2 3 ' 'two nodes: in the order of the ranks'
is "$(printf '%s\n' "$json" | grep -c '"current" : "all_reduce(count 4, float32, sum) #5"')" 3 \
    'two nodes: what each rank is in'
out=$("$program" top --once --interval 1 "$pid")
is "$(printf '%s\n' "$out" | head -n 1)" "job $name, 4 ranks on 2 nodes" 'two nodes: as text'
like "$out" '^ +1 +3 +[0-9]+ running .* - [.]{10} .* all_reduce\(count 4, float32, sum\) #5$' \
    'two nodes: a rank of the other one'
kill_started
finish 2>/dev/null
for arguments in 'a/b' '1 2' '--interval 0' '--interval 1e9' '--nothing' \
    '--json=3'; do
    # shellcheck disable=SC2086
    "$program" top --once $arguments >/dev/null 2>&1
    is $? 2 "wrong use: $arguments"
done
tap_done
