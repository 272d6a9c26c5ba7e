#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The example digits on 1, 2 and 4 ranks: it learns, and learns the same.

. "$abs_top_srcdir/tests/tap.sh"

digits=$abs_top_builddir/examples/digits/digits
data=$abs_top_srcdir/examples/digits/digits.csv.gz
[ -x "$digits" ] || skip_all 'digits was not built: no zlib'

# learn RANKS ARGUMENTS...: digits under dscomm run, its status in $status
learn()
{
    ranks=$1
    shift
    DSCOMM_TIMEOUT=60 "$abs_top_builddir/tools/dscomm" run -n "$ranks" \
        --timeout 100 "$digits" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    sed 's/^/# /' "$scratch/err"
}

# losses FILE
losses()
{
    sed -n 's/^epoch [0-9]*: loss //p' "$1"
}

for n in 1 2 4; do
    learn $n "$data"
    is $status 0 "$n ranks: status"
    mv "$scratch/out" "$scratch/out.$n"
    is "$(losses "$scratch/out.$n" | grep -c .)" 20 "$n ranks: one loss an epoch"
    like "$(sed -n 1p "$scratch/out.$n")" "^$n ranks? on backend (self|shm)\$" \
        "$n ranks: it says how many they are, and the backend"
    like "$(cat "$scratch/out.$n")" '^time: [0-9]+\.[0-9][0-9] s$' "$n ranks: it says the time"
    accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\) %$/\1/p' "$scratch/out.$n")
    awk "BEGIN { exit !(\"$accuracy\" + 0 >= 95) }"
    result $? "$n ranks: $accuracy % of the test is read, of 95 %"
    losses "$scratch/out.$n" >"$scratch/losses.$n"
    paste "$scratch/losses.1" "$scratch/losses.$n" | awk '
        { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
        END { print "# largest difference", worst + 0, "of the loss"
              exit !(NR == 20 && worst <= 1e-4) }'
    result $? "$n ranks: the losses of one rank"
done

learn 3 -e 6 "$data"
losses "$scratch/out" >"$scratch/losses.3"

# survive EPOCHS COMMAND...: a command of four ranks of which one dies; its status in
# $status
survive()
{
    epochs=$1
    shift
    DSCOMM_TIMEOUT=60 "$abs_top_builddir/tools/dscomm" run -n 4 --survive --timeout 100 \
        "$@" --survive -e "$epochs" "$data" >"$scratch/out" 2>"$scratch/err"
    status=$?
}

# survived RANK TEXT LOSSES MOST: the others have finished, with the losses of three
# ranks, to a part of MOST. Rounding grows with the number of steps.
survived()
{
    is $status 0 "$2: the others finish" || sed 's/^/# /' "$scratch/err"
    like "$(cat "$scratch/err")" \
        "^dscomm run: rank $1 \(pid [0-9]+\) was killed by signal 9 \(.*\); going on with ranks" \
        "$2: dscomm run says so"
    is "$(grep -c "^rank $1 has failed; 3 of 4 ranks go on\$" "$scratch/out")" 1 \
        "$2: they say so"
    losses "$scratch/out" | paste "$3" - | awk -v most="$4" '
        { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
        $2 == "" { bad = 1 }
        END { print "# largest difference", worst + 0, "of the loss"
              exit !(NR > 5 && !bad && worst <= most) }'
    result $? "$2: the losses of three ranks" || sed 's/^/# /' "$scratch/out"
}

# Before step 1 a rank may still be in the set-up, which no rank survives.
for kill in 0:100 1:44 2:45 3:1 0:269 "$(($$ % 4)):$(($$ % 269 + 1))"; do
    survive 6 "$digits" --kill $kill
    survived ${kill%:*} "kill $kill" "$scratch/losses.3" 1e-4
done

# With an optimizer, the losses are the same during its warm-up of 180 steps. After it,
# the errors of the dead rank are lost, and ranks that share a batch otherwise send other
# signs: the losses of 3 and 4 ranks differ by 7 %.
for method in onebit onebit-lamb; do
    learn 3 --compress $method -e 6 "$data"
    losses "$scratch/out" >"$scratch/losses.$method"
    for row in 2:100,1e-2 3:179,1e-3 1:180,0.15 0:200,0.15 1:269,0.15; do
        kill=${row%,*}
        survive 6 "$digits" --compress $method --kill $kill
        survived ${kill%:*} "$method, kill $kill" "$scratch/losses.$method" ${row#*,}
    done
done
survive 6 "$digits" --compress zero-one
is $status 2 'zero-one does not survive'
like "$(cat "$scratch/err")" '^digits: --survive does not work with --compress zero-one, ' \
    'and says why'

# Each rank is killed from outside while the ranks train: so many ms, drawn from the
# seed, after the first epoch has ended. One that has ended before is tried again.
epochs=60
learn 3 -e $epochs "$data"
losses "$scratch/out" >"$scratch/losses.long"
seed=$$
echo "# seed $seed"
cat >"$scratch/rank" <<'END'
echo $$ >"$1.$RANK"
shift
exec "$@"
END

# kill_outside RANK MS
kill_outside()
{
    until grep -qs '^epoch 1:' "$scratch/out"; do
        sleep 0.01
    done
    sleep "$(printf '0.%03d' "$2")"
    kill -9 "$(cat "$scratch/pid.$1")"
}

for rank in 0 1 2 3; do
    for try in 1 2 3 4 5; do
        ms=$(((seed * 7919 + rank * 104729 + try * 1299709) % 150))
        rm -f "$scratch/out"
        kill_outside $rank $ms 2>"$scratch/kill" &
        survive $epochs sh "$scratch/rank" "$scratch/pid" "$digits"
        wait $!
        grep -q ' has failed; ' "$scratch/out" && break
        echo "# rank $rank had ended after $ms ms, or was in its last step"
    done
    survived $rank "kill -9 of rank $rank after $ms ms" "$scratch/losses.long" 1e-3
done

for rank in 0 1 2 3; do
    ms=$(((seed * 7919 + rank * 104729) % 150))
    rm -f "$scratch/out"
    kill_outside $rank $ms 2>"$scratch/kill" &
    survive $epochs sh "$scratch/rank" "$scratch/pid" "$digits" --compress onebit
    wait $!
    is $status 0 "onebit, kill -9 of rank $rank after $ms ms: the others finish" ||
        sed 's/^/# /' "$scratch/err"
    accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\) %$/\1/p' "$scratch/out")
    awk "BEGIN { exit !(\"$accuracy\" + 0 >= 95) }"
    result $? "and read $accuracy % of the test, of 95 %"
done

head -c 5000 "$data" >"$scratch/short.csv.gz"
echo 1,2,3 >"$scratch/wrong.csv"
for file in none.csv.gz short.csv.gz wrong.csv; do
    learn 3 "$scratch/$file"
    is $status 1 "$file: status"
    is "$(grep -c "^digits: rank [012]: $scratch/$file: " "$scratch/err")" 3 \
        "$file: every rank says so"
done

"$abs_top_builddir/tools/dscomm" run -n 3 --tag-output \
    "$abs_top_builddir/examples/hello/hello" | sort >"$scratch/hello"
is "$(cat "$scratch/hello")" '[0]: rank 0 of 3: the sum of all ranks is 3
[1]: rank 1 of 3: the sum of all ranks is 3
[2]: rank 2 of 3: the sum of all ranks is 3' 'hello'

tap_done
