# SPDX-License-Identifier: BSD-3-Clause
# For tests of backend mpi: use_openmpi or use_mpich sets $launch, as conform.sh
# wants it, and $host, the program that uses MPI itself.
# shellcheck shell=sh

. "$abs_top_srcdir/tests/backends/conform.sh"

unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
unset DSCOMM_MPI_LIBRARY DSCOMM_MPI_BLOCKING DSCOMM_MPI_CHUNK
# Warnings of UCX about what a test has left undone on purpose
UCX_LOG_LEVEL=error
export UCX_LOG_LEVEL
# UCX patches mmap() and its like, and so calls them without the thread sanitizer.
case $SANITIZER_FLAGS in
*=thread*) export UCX_MEM_EVENTS=no ;;
esac
# Whose memory it is that MPI's modules leave, only whole stacks tell.
ASAN_OPTIONS=fast_unwind_on_malloc=0:$ASAN_OPTIONS
export ASAN_OPTIONS

use()
{
    host=$abs_top_builddir/tests/backends/mpi-host-$1
    [ -x "$host" ] || skip_all "configure has found no $1"
    command -v "mpirun.$1" >/dev/null || skip_all "no mpirun.$1"
}

use_openmpi()
{
    use openmpi
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # It wants a remote shell to be there, though it will not use one.
    OMPI_MCA_plm_rsh_agent=sh
    # The machine may have other things to do.
    OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM \
        OMPI_MCA_plm_rsh_agent OMPI_MCA_mpi_yield_when_idle
    launch='timeout -k 5 200 mpirun.openmpi --oversubscribe --bind-to none'
    survive=--enable-recovery
}

use_mpich()
{
    use mpich
    launch='timeout -k 5 200 mpirun.mpich -localhost localhost'
    survive=-disable-auto-cleanup
}

# Needs DSCOMM_MPI_PATH; else a check is skipped
use_if_present()
{
    if [ ! -e "$DSCOMM_MPI_PATH/$1.so" ] || ! command -v "mpirun.$1" >/dev/null; then
        skip "mpirun.$1" 'it is not there, or there is no module for it'
        return 1
    fi
    echo "# $1"
    "use_$1"
}

node= # script that starts a rank
# start N MODE: its status in $status, what it prints in $out and $err
start()
{
    # The launcher is a command with arguments.
    # shellcheck disable=SC2086
    DSCOMM_BACKEND=mpi $launch -n "$1" ${node:+sh "$node"} "$host" "$2" >"$scratch/out" \
        2>"$scratch/err" </dev/null
    status=$?
    out=$(cat "$scratch/out")
    err=$(cat "$scratch/err")
}

# said TEXT: how often; Hydra may put the lines of several ranks into one
said()
{
    grep -o "$1" "$scratch/out" | wc -l
}

# content N MODE TEXT: all ranks are content, and the launcher is
content()
{
    start "$1" "$2"
    [ "$status" = 0 ] && [ "$(said content)" -eq "$1" ]
    result $? "$3" ||
        { echo "# status $status"; sed 's/^/# /' "$scratch/out" "$scratch/err"; }
}

# Two ranks on a node, and the third, the one to be late, on another
by_levels()
{
    node=$scratch/node
    cat >"$node" <<'END'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
DSCOMM_HOST_ID=h$((rank / 2)) DSCOMM_BACKEND=two_level exec "$@"
END
    content 3 part-late 'and the same by levels'
    DSCOMM_MPI_BLOCKING=yes # else there are no rails
    export DSCOMM_MPI_BLOCKING
    content 3 rail 'a level that some ranks cannot open'
    unset DSCOMM_MPI_BLOCKING
    node=
}

# outlive MODE TEXT: the last of three ranks dies, and the others are content. The
# launcher must let them live: it sees the end of a shell in place of the rank's, and
# Hydra tells of it by SIGUSR1.
outlive()
{
    orderly=$launch
    launch="$launch $survive"
    node=$scratch/outlive
    cat >"$node" <<'END'
trap '' USR1
"$@"
exit 0
END
    start 3 "$1"
    launch=$orderly
    node=
    [ "$(said content)" -eq 2 ]
    result $? "$2" ||
        { echo "# status $status"; sed 's/^/# /' "$scratch/out" "$scratch/err"; }
}

# MPICH 4.2 over UCX aborts in the program's own MPI_Finalize() then, whatever
# the library does.
end_early()
{
    start 2 early
    if printf '%s' "$err" | grep -q 'rcache.c:[0-9]* *Assertion'; then
        skip 'a program that finalises MPI too early' 'UCX aborts in MPI_Finalize()'
    else
        content 2 early 'a program that finalises MPI too early'
    fi
}

# What a program may do with MPI beside the library
test_host()
{
    content 3 single 'a program that uses MPI, in one thread'
    content 3 serialized 'a program that uses MPI, in one thread at a time'
    content 3 funneled 'a program that uses MPI, in one thread, and another beside'
    content 2 need-more 'an MPI that takes calls of one thread alone'
    content 3 multiple 'a program that uses MPI, in any thread'
    content 3 none 'a program that does not'
    end_early
    orderly=$launch
    launch="$abs_top_builddir/tools/dscomm run"
    content 2 lack-files 'ranks that cannot open the module for their MPI'
    launch=$orderly
    content 2 exhausted 'a communicator that cannot be made'
    content 3 part 'a group of some ranks while MPI waits for all'
    content 2 turns 'blocking calls of MPI, where another call must go on'
    case $SANITIZER_FLAGS in
    *=thread*) skip 'a child of a process that uses MPI' 'it cannot start threads' ;;
    *) content 2 fork 'a child of a process that uses MPI' ;;
    esac
    content 3 receive-any 'a program that waits for any message meanwhile'
    content 3 part-late 'a rank that does not leave'
    by_levels
    content 2 differ 'ranks that cut messages differently'
    for n in 2 3 4 5; do
        content $n bits "the same bits on all of $n ranks"
    done
    # Copied by both, as between machines: a message can stop half-way.
    OMPI_MCA_btl_vader_single_copy_mechanism=none
    export OMPI_MCA_btl_vader_single_copy_mechanism
    content 2 withdraw 'a group that ends with a receive nobody has looked at'
    content 3 stop 'a rank that stops in the midst of a message'
    unset OMPI_MCA_btl_vader_single_copy_mechanism
    if [ "$(said 'given up')" = 1 ]; then
        result 0 'for which its receiver does not wait'
    else
        skip 'for which its receiver does not wait' 'this MPI moves it at once'
    fi
    content 3 many 'thousands of groups, with ranks that are late'
    content 2 keep 'memory of a message that is never received'
    begun=$(date +%s)
    start 3 die
    [ "$status" != 0 ] && [ "$(said joined)" -eq 3 ] && [ $(($(date +%s) - begun)) -lt 25 ]
    result $? 'the launcher ends the job of a rank that dies'
    begun=$(date +%s)
    start 3 miss-one
    [ "$(said joined)" -ge 1 ] && [ $(($(date +%s) - begun)) -lt 25 ]
    result $? 'the end of ranks that another has left alone in a group'
    content 3 miss-once 'the end of those that have met again'
    outlive die-meeting 'a death before all ranks of a group have met'
    outlive die-making 'a death inside MPI_Comm_create_group()'
    outlive die-beginning 'a death while others are in MPI_Init_thread()'
    DSCOMM_TIMEOUT=20
    export DSCOMM_TIMEOUT
    outlive die-finalizing 'a death while others are in MPI_Finalize()'
    [ "$status" != 124 ] && [ "$status" != 137 ]
    result $? 'and they end'
    unset DSCOMM_TIMEOUT
    DSCOMM_MPI_BLOCKING=yes
    export DSCOMM_MPI_BLOCKING
    start 3 desert
    [ "$status" != 124 ] && [ "$status" != 137 ] && [ "$(said joined)" -eq 3 ]
    result $? 'a rank that aborts and goes, while others wait for it'
    unset DSCOMM_MPI_BLOCKING
}
