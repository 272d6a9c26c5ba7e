#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# torchrun starts the ranks, in C and in Python. Needs a Python that has torch:
# DSCOMM_TEST_PYTHON, or else python3.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/launchers/ranks.sh"

python=${TEST_PYTHON:-python3}
no_torch=${NO_TORCH:-"$python has no torch.distributed; set DSCOMM_TEST_PYTHON"}
"$python" -c 'import torch.distributed.run' >/dev/null 2>&1 ||
    skip_all "$no_torch"
# One that no other test has: two torchrun of one port would meet.
address=127.$((1 + $$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256))
keys=$abs_top_builddir/tests/launchers/keys
keys_py=$abs_top_srcdir/tests/launchers/keys.py

# torchrun ARGUMENT...
torchrun()
{
    run "$python" -m torch.distributed.run --no-python "$@"
}

# numbers N TEXT: $scratch/out is that of N ranks of keys
numbers()
{
    i=0
    while [ $i -lt "$1" ]; do
        echo "rank $i of $1: $(($1 * ($1 - 1) / 2))"
        i=$((i + 1))
    done >"$scratch/want"
    sed -n 's/ on node [0-9]*//p' "$scratch/out" | sort >"$scratch/ranks"
    [ "$status" = 0 ] && cmp -s "$scratch/want" "$scratch/ranks"
    result $? "$2" || {
        echo "# status $status"
        cat "$scratch/out" "$scratch/err" | tail -n 60 | sed 's/^/# /'
    }
}

torchrun --standalone --nproc-per-node 4 "$hello"
ranks 4 'torchrun of four ranks'
torchrun --master-addr $address --nproc-per-node 2 "$hello"
ranks 2 'torchrun with an address'
torchrun --standalone --nproc-per-node 2 "$digits" "$data"
is "$status $(grep -c '^epoch [0-9]*: loss ' "$scratch/out")" '0 20' digits

# Two nodes, a torchrun each
for r in 1 0; do
    timeout -k 5 120 "$python" -m torch.distributed.run --no-python \
        --nnodes 2 --node-rank $r --master-addr $address --master-port 29501 \
        --nproc-per-node 2 "$hello" >"$scratch/out.$r" 2>"$scratch/err.$r" &
    eval pid_$r=$!
done
wait "$pid_0"
first=$?
wait "$pid_1"
status=$((first + $?))
cat "$scratch"/out.[01] >"$scratch/out"
err=$(cat "$scratch"/err.[01])
ranks 4 'two torchrun of two ranks'

# The store outlives the ranks: those of the first attempt have left their keys.
torchrun --standalone --nproc-per-node 3 --max-restarts 1 sh -c '
    [ $TORCHELASTIC_RESTART_COUNT$RANK != 01 ] || { sleep 1; exit 1; }
    exec "$1"' sh "$hello"
ranks 3 'started again by torchrun'
torchrun --standalone --nproc-per-node 3 sh -c '"$1" && "$1"' sh "$hello"
sort "$scratch/out" | uniq -c | awk '{ print $1 }' >"$scratch/twice"
is "$status $(tr '\n' ' ' <"$scratch/twice")" '0 2 2 2 ' \
    'two programs, one after the other'
run env TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 "$python" -m torch.distributed.run \
    --no-python --standalone --nproc-per-node 3 "$hello"
ranks 3 "without the agent's store"

# C and Python in one job: the program of each rank
cat >"$scratch/mixed" <<'END'
#!/bin/sh
[ $((RANK % 2)) = "$PYTHON_RANKS" ] || exec "$keys"
exec "$python" "$keys_py"
END
chmod +x "$scratch/mixed"
export keys keys_py python PYTHON_RANKS
for PYTHON_RANKS in 0 1; do
    torchrun --standalone --nproc-per-node 3 "$scratch/mixed"
    numbers 3 "C and Python under torchrun, Python in ranks % 2 = $PYTHON_RANKS"
    run "$abs_top_builddir/tools/dscomm" run --no-secret -n 3 "$scratch/mixed"
    numbers 3 "C and Python under dscomm run, Python in ranks % 2 = $PYTHON_RANKS"
    for r in 1 0; do
        RANK=$r WORLD_SIZE=2 MASTER_ADDR=$address MASTER_PORT=29502 \
            TORCHELASTIC_USE_AGENT_STORE=False GROUP_RANK=0 \
            TORCHELASTIC_RUN_ID=x TORCHELASTIC_RESTART_COUNT=0 \
            timeout 120 "$scratch/mixed" >"$scratch/out.$r" 2>"$scratch/err.$r" &
        eval pid_$r=$!
    done
    wait "$pid_0"
    first=$?
    wait "$pid_1"
    status=$((first + $?))
    cat "$scratch"/out.[01] >"$scratch/out"
    cat "$scratch"/err.[01] >"$scratch/err"
    numbers 2 "rank 0 serves, Python in ranks % 2 = $PYTHON_RANKS"
done

# A program that knows torch alone, under other launchers
sum=$abs_top_srcdir/tests/launchers/sum.py
run "$dscomm" run --no-secret -n 3 "$python" "$sum"
ranks 3 'a torch program under dscomm run'
for r in 1 0; do
    timeout -k 5 120 "$dscomm" run --nnodes 2 --node-rank $r --master $address:29503 \
        -n 2 "$python" "$sum" >"$scratch/out.$r" 2>"$scratch/err.$r" &
    eval pid_$r=$!
done
wait "$pid_0"
first=$?
wait "$pid_1"
status=$((first + $?))
cat "$scratch"/out.[01] >"$scratch/out"
err=$(cat "$scratch"/err.[01])
ranks 4 'a torch program under dscomm run on two nodes'
if command -v mpirun.mpich >/dev/null; then
    run mpirun.mpich -localhost localhost -n 3 "$dscomm" env --exec "$python" "$sum"
    ranks 3 'a torch program under mpirun, by dscomm env --exec'
else
    skip 'a torch program under mpirun' 'no mpirun.mpich (package mpich)'
fi

tap_done
