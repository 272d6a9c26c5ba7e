#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm env --mpirun: what it prints starts ranks with the mpiruns that are
# here. Which line for which mpirun is in tests/tools/advice.golden.

. "$abs_top_srcdir/tests/tools/fixture.sh"

for name in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT \
    DSCOMM_MASTER_ADDR DSCOMM_MASTER_PORT \
    SLURM_JOB_ID SLURM_JOB_NUM_NODES PBS_JOBID LSB_JOBID DSCOMM_LAUNCHER \
    I_MPI_ROOT OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM; do
    unset $name
done

tool()
{
    dscomm env "$@"
}

# The line printed runs, with as many ranks as it says.
# runs NAME PROGRAM RANKS WHAT...
runs()
{
    name=$1 mpirun=$2 ranks=$3
    shift 3
    if ! command -v "$mpirun" >"$scratch/which"; then
        skip "$name" "no $mpirun"
        return
    fi
    if ! OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        timeout 60 "$mpirun" -n 1 true >"$scratch/log" 2>&1 </dev/null; then
        skip "$name" "$mpirun cannot start a program: $(grep '[a-z]' "$scratch/log" |
            head -n 1)"
        return
    fi
    tool --mpirun --mpirun-path "$mpirun" --ranks-per-node "$ranks" "$@"
    is $status 0 "$name: advice"
    line=$(printf '%s\n' "$out" | sed -n 2p | sed 's/ PROGRAM$//')
    # The line is one for a shell
    if ! eval "timeout 60 $line '$program' env --json" >"$scratch/out" \
        2>"$scratch/err" </dev/null; then
        result 1 "$name: $line"
        sed 's/^/# /' "$scratch/err"
        return
    fi
    result 0 "$name: $line"
    sed -n 's/^{"source":"[a-z-]*","rank":\([0-9]*\),"world_size":\([0-9]*\),.*/\1 \2/p' \
        "$scratch/out" | sort -n >"$scratch/got"
    rank=0
    while [ $rank -lt "$ranks" ]; do
        echo "$rank $ranks"
        rank=$((rank + 1))
    done >"$scratch/want"
    same "$scratch/got" "$scratch/want" "$name: $ranks ranks"
}

cores=$(getconf _NPROCESSORS_ONLN)
for mpirun in mpirun.openmpi mpirun.mpich; do
    runs "$mpirun" "$mpirun" 1
    runs "$mpirun, more ranks than cores" "$mpirun" $((cores + 1))
    runs "$mpirun, old arguments" "$mpirun" 2 -- --mca coll tuned \
        --mca btl_sm_use_knem 1 --mca hwloc_base_binding_policy none \
        --oversubscribe -x "A=b c"
    case $mpirun in
    *openmpi) host=--host ;;
    *) host=-hosts ;;
    esac
    runs "$mpirun, a list of hosts" "$mpirun" 2 -- $host localhost
done

# Open MPI's jobs have a name, which a port follows from; Hydra's have none.
if command -v mpirun.mpich >"$scratch/which"; then
    tool --mpirun --mpirun-path mpirun.mpich --nodes 2 -- -hosts a,b
    like "$out" 'genv MASTER_ADDR a ' 'mpirun.mpich, a list of two hosts: the first'
    is "$(printf '%s\n' "$out" | grep -c 'need MASTER_PORT,')" 1 \
        'mpirun.mpich, a list of two hosts: a port is to be given'
    MASTER_PORT=29500
    export MASTER_PORT
    tool --mpirun --mpirun-path mpirun.mpich --nodes 2 -- -hosts a,b
    unset MASTER_PORT
    is "$(printf '%s\n' "$out" | grep -c 'need MASTER_PORT,')" 0 \
        'mpirun.mpich, a list of two hosts: a port is given'
else
    skip 'mpirun.mpich, a list of two hosts' 'no mpirun.mpich'
fi

# Stand-ins
# fake NAME TEXT...: an mpirun whose --version prints so
fake()
{
    name=$1
    shift
    {
        echo '#!/bin/sh'
        echo "$@"
    } >"$scratch/$name"
    chmod +x "$scratch/$name"
}

fake five "echo 'mpirun (Open MPI) 5.0.7'"
tool --mpirun --mpirun-path "$scratch/five" --nodes 1 --ranks-per-node 1 -- \
    mpirun --mca hwloc_base_binding_policy core ./a.out 'b c'
is $status 0 'a stand-in: status'
like "$out" "^# Open MPI 5\.0\.7: $scratch/five\$" 'its version'
like "$out" "^$scratch/five .*--mca btl self,sm \./a\.out 'b c'\$" 'its line'
like "$out" '^  --mca hwloc_base_binding_policy core +replaced: .*5\.x.*Instead: --bind-to' \
    'an old argument'
tool --mpirun --json --mpirun-path "$scratch/five" --ranks-per-node 1 -- --mca coll tuned
is "$(printf '%s\n' "$out" | wc -l | tr -d ' ')" 1 'JSON is a line'
like "$out" '^\[\{"program":".*","library":"Open MPI","version":"5\.0\.7","nodes":1,"ranks_per_node":1,"ranks":1,"line":"' \
    'JSON'
like "$out" '"given":\[\{"text":"--mca coll tuned","verdict":"dropped","why":"[^"]*","instead":"[^"]*\^han' \
    'JSON of an old argument'

fake chatty 'while :; do echo y; done'
tool --mpirun --mpirun-path "$scratch/chatty"
is "$status" 1 'one that prints for ever'
fake slow 'sleep 100 & exec sleep 100'
before=$(date +%s)
tool --mpirun --mpirun-path "$scratch/slow"
is "$status" 1 'one that hangs'
[ $(($(date +%s) - before)) -lt 60 ]
result $? 'is not waited for'
like "$err" "^dscomm env: '.*/slow --version' has not ended after [0-9]+ ms$" 'and named'
fake other 'echo x 1.0'
tool --mpirun --mpirun-path "$scratch/other"
is "$status" 1 'no mpirun'
like "$err" "names neither Open MPI 4 or later" 'says what is known'
fake broken 'echo "error while loading shared libraries: libx.so" >&2; exit 127'
tool --mpirun --mpirun-path "$scratch/broken"
is "$status" 1 'one that fails'
like "$err" "^dscomm env: '.*/broken --version' failed with exit status 127: error while loading shared libraries: libx.so\$" \
    'says how, and its sentence'
fake killed 'kill -9 $$'
tool --mpirun --mpirun-path "$scratch/killed" --json
is "$status" 1 'one that is killed'
like "$out" "^\{\"error\":\"'.*/killed --version' was ended by signal 9 \(Killed\)\"\}\$" \
    'says how'
tool --mpirun --mpirun-path "$scratch/nothing"
is "$status" 1 'one that is not there'
like "$err" "cannot execute '.*/nothing': No such file" 'says so'
out=$(PATH=$scratch "$program" env --mpirun 2>&1)
is $? 1 'no mpirun in PATH'
like "$out" 'no mpirun is in PATH; --mpirun-path names one' 'says what to do'
cp "$scratch/five" "$scratch/mpirun"
ln -s mpirun "$scratch/mpiexec"
out=$(PATH=$scratch "$program" env --mpirun --nodes 2 2>&1)
is "$(printf '%s\n' "$out" | grep -c '^# ')" 1 'one by two names is one'
like "$out" "^$scratch/mpirun .*--hostfile hosts " 'nodes that nobody gives'

# Errors in JSON: one object, and nothing else
cp "$scratch/other" "$scratch/mpirun"
cp "$scratch/other" "$scratch/mpirun.openmpi"
out=$(PATH=$scratch "$program" env --mpirun --json 2>"$scratch/err")
is "$? $(grep '^dscomm' "$scratch/err")" '1 ' 'JSON of two that are none: status'
is "$(printf '%s\n' "$out" | wc -l | tr -d ' ')" 1 'JSON of two that are none: one line'
like "$out" "^\{\"error\":\"'$scratch/mpirun.openmpi --version' names neither .*; '$scratch/mpirun --version' names neither [^\"]*\"\}\$" \
    'JSON of two that are none'
for counts in '--ranks-per-node=2147483647' '--nodes 0' '--nodes 100001'; do
    # Words on purpose
    # shellcheck disable=SC2086
    tool --mpirun $counts
    is "$status $out $err" '2  dscomm env: nodes are 1 to 100000, ranks per node 1 to 4096' \
        "$counts: one sentence"
    # shellcheck disable=SC2086
    tool --mpirun --json $counts
    is "$status $out $err" '2 {"error":"nodes are 1 to 100000, ranks per node 1 to 4096"} ' \
        "$counts: JSON"
done

# Wrong use
while read -r line; do
    # Words on purpose
    # shellcheck disable=SC2086
    tool $line
    is "$status" 2 "refused: $line"
done <<'END'
--mpirun --export
--mpirun --explain
--mpirun --exec true
--nodes 2
--ranks-per-node 2
--mpirun-path mpirun
--mpirun --nodes 0
--mpirun --ranks-per-node -1
--mpirun --nodes x
END

# With JSON an object says so, whatever is wrong.
# error SENTENCE WHAT...: it has such a sentence
error()
{
    sentence=$1
    shift
    tool "$@"
    is "$status $err" '2 ' "JSON of wrong use: $*"
    like "$out" "^\{\"error\":\"$sentence[^\"]*\"\}\$" "$*: says why"
}

error "'99999999999999999999' for --nodes is no decimal number" \
    --mpirun --json --nodes 99999999999999999999
error "'abc' for --nodes" --mpirun --json --nodes abc
error "'' for --nodes" --mpirun --json --nodes ''
error "'1.5' for --nodes" --mpirun --json --nodes 1.5
error "'0x10' for --nodes" --nodes 0x10 --mpirun --json
error "'--2' for --nodes" --nodes --2 --mpirun --json
error 'nodes are 1 to' --mpirun --json --nodes -3
error 'Missing argument for --nodes' --mpirun --json --nodes
error 'Missing argument for --mpirun-path' --mpirun --json --mpirun-path
error 'Unknown option --bogus' --bogus --json
error 'Unknown option --bogus' --json --bogus
error '--mpirun goes with' --mpirun --json --place
error '--mpirun goes with' --mpirun --json --explain
error '--json, --export and --exec' --json --export
error '--json, --export and --exec' --json --exec true
error '--bind, --device and --input go with --place' --json --device 0:0:0.0
error '--bind, --device and --input go with --place' --json --input x
error "unexpected argument 'x'" --json x
error '--nodes and --mpirun-path go with --mpirun' --json --nodes 2
error '--ranks-per-node goes with --mpirun or --place' --json --ranks-per-node 2
tool --bogus --exec echo --json
is "$status $out" '2 ' 'what is behind PROGRAM is its own'
like "$err" '^dscomm env: Unknown option --bogus' 'and said to people'

# 010 is no octal number.
tool --mpirun --mpirun-path "$scratch/five" --nodes 010 --ranks-per-node 01 --json
like "$out" '"nodes":10,"ranks_per_node":1,' 'numbers are decimal'
out=$("$program" run -n 010 "$program" env 2>&1 | grep -c '^rank [0-9] of 10')
is "$out" 10 'dscomm run: numbers are decimal'
out=$("$program" run -n 0x2 true 2>&1)
is $? 2 'dscomm run: and nothing else'

tap_done
