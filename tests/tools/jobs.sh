# SPDX-License-Identifier: BSD-3-Clause
# For the tests of dscomm run: jobs that are started here, of one node and of several.
# shellcheck shell=sh

. "$abs_top_srcdir/tests/tools/fixture.sh"

started=
host=

# run WHAT...: dscomm run, its output in $out and $err, its status in $status
run()
{
    "$program" run "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    out=$(tr -d '\000' <"$scratch/out")
    err=$(cat "$scratch/err")
}

losses()
{
    sed -n 's/^.*epoch [0-9]*: loss //p' "$1"
}

# same_losses OUT OTHER: whether two outputs of the digits example have the same losses
same_losses()
{
    losses "$1" >"$scratch/losses"
    losses "$2" | paste - "$scratch/losses" | awk '
        { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
        END { print "# largest difference", worst + 0, "of the loss"
              exit !(NR == 20 && worst <= 1e-4) }'
}

# runs STATUS TEXT WHAT...: dscomm run ends with STATUS
runs()
{
    wanted=$1
    text=$2
    shift 2
    run "$@"
    is $status "$wanted" "$text"
}

# until_true COMMAND...: whether COMMAND succeeds within 20 seconds
until_true()
{
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || return 1
        sleep 0.05
    done
}

# appears COUNT FILE...: waits until so many files exist
appears()
{
    until_true exist "$@"
}

exist()
{
    least=$1
    shift
    [ "$(ls "$@" 2>/dev/null | wc -l)" -ge "$least" ]
}

# gone FILE...: whether the processes end whose numbers are in the files
gone()
{
    for pid in $(cat "$@"); do
        until_true has_ended "$pid" || return 1
    done
}

has_ended()
{
    ! grep -qv '^[0-9]* (.*) Z' "/proc/$1/stat" 2>/dev/null
}

# start_node R COMMAND...: COMMAND becomes node R. Its output will be in $scratch/out.R
# and err.R, it is process $pid, and it counts for finish.
start_node()
{
    r=$1
    shift
    "$@" >"$scratch/out.$r" 2>"$scratch/err.$r" &
    pid=$!
    eval "pid_$r=$pid"
    started="$started $r"
}

# finish: waits for all nodes; $statuses = theirs, in the order of their start
finish()
{
    statuses=
    for r in $started; do
        eval "wait \$pid_$r"
        statuses="$statuses$?,"
    done
    statuses=${statuses%,}
    started=
    cat "$scratch"/out.[0-9] >"$scratch/out"
}

# ends STATUSES TEXT: all nodes do
ends()
{
    finish
    is "$statuses" "$1" "$2"
}

# What a test that is ended leaves behind would stay for minutes; a dscomm run that
# is killed has its ranks killed by its guard.
kill_started()
{
    for r in $started; do
        eval "kill -KILL \$pid_$r" 2>/dev/null
    done
}

# err R: what node R says, with "host" for $host
err()
{
    sed "s/(pid [0-9]*)/(pid)/; s/ ($host)/ (host)/" "$scratch/err.$1"
}
