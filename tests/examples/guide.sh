#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The recipes of the guide, in a copy of the examples, with the dscomm that is built
# here. Each prints what the guide says.

. "$abs_top_srcdir/tests/tap.sh"

build=$abs_top_builddir
cp -R "$abs_top_srcdir/examples" "$scratch" && chmod -R u+w "$scratch/examples" &&
    cd "$scratch/examples" && mkdir bin || exit 99
rm -f hello/hello digits/digits # of a build in the folder of the sources
ln -s "$build/tools/dscomm" bin
# What the recipes call cc also has the options of this build.
printf '#!/bin/sh\nexec %s %s "$@"\n' "$CC" "$SANITIZER_FLAGS" >bin/cc
chmod +x bin/cc
PATH=$PWD/bin:$PATH
PKG_CONFIG_PATH=$build:$build/compression
LD_LIBRARY_PATH=$build/lib/.libs:$build/compression/.libs:$build/profiler/.libs
DSCOMM_TIMEOUT=60
export PATH PKG_CONFIG_PATH LD_LIBRARY_PATH DSCOMM_TIMEOUT
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
unset DSCOMM_PROFILE DSCOMM_PROFILER_PLUGIN DSCOMM_DUMP

# recipe NAME: its status in $status, its output in $scratch/out
recipe()
{
    timeout -k 5 200 sh "guide/$1.sh" >"$scratch/out" 2>&1
    status=$?
}

# prints PATTERN N TEXT: N lines of the output match
prints()
{
    is "$(grep -cE "$1" "$scratch/out")" "$2" "$3" || sed 's/^/# /' "$scratch/out"
}

hello='^rank [0-9] of 4: the sum of all ranks is 6$'

recipe first-program
is $status 0 'first program: status'
prints "$hello" 4 'first program: each rank prints the sum'

# Two hosts that are this machine, at an address that no other test has
(umask 077 && echo "a secret of $$" >job-secret)
HOST=127.$((1 + $$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256))
export HOST
for node in 1 0; do
    NODE=$node DSCOMM_HOST_ID=host-$node timeout -k 5 200 sh guide/several-hosts.sh \
        >"$scratch/out.$node" 2>&1 &
    eval pid_$node=$!
done
wait "$pid_0"
first=$?
wait "$pid_1"
is "$first $?" '0 0' 'several hosts: statuses'
cat "$scratch/out.0" "$scratch/out.1" >"$scratch/out"
prints "$hello" 4 'several hosts: each rank prints the sum'
is "$(grep -c '^rank [01] ' "$scratch/out.0")" 2 'several hosts: node 0 has the first ranks'
unset HOST

# As root, and on fewer processors than ranks
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=sh
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_plm_rsh_agent \
    OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_mpi_yield_when_idle \
    PRTE_MCA_rmaps_default_mapping_policy
for mpi in openmpi mpich; do
    if [ ! -e "$DSCOMM_MPI_PATH/$mpi.so" ] || ! command -v mpirun.$mpi >/dev/null; then
        skip "MPI cluster: $mpi" "no mpirun.$mpi, or no module for it"
        continue
    fi
    printf '#!/bin/sh\nexec mpirun.%s "$@"\n' $mpi >bin/mpirun
    chmod +x bin/mpirun
    recipe mpi-cluster
    is $status 0 "MPI cluster: status ($mpi)"
    prints "$hello" 4 "MPI cluster: each rank prints the sum ($mpi)"
    like "$(cat "$scratch/out")" "^[^ ]*/mpirun.$mpi .*-n 4 .*hello/hello\$" \
        "MPI cluster: advice ($mpi)"
done

if [ -e "$build/examples/digits/digits" ]; then
    recipe compression
    is $status 0 'compression: status'
    prints '^bytes sent: [0-9]*, uncompressed: [0-9]*$' 1 'compression: the bytes are counted'
    prints '^# It pays where .* GB/s\.' 1 'compression: it is told where the codec pays'
else
    skip compression 'digits was not built: no zlib'
fi

recipe slow-rank
is $status 1 'slow rank: the status of dscomm analyze that has found something'
is "$(sed -n '/^Rank /{n;s/ .*//;p;}' "$scratch/out")" 2 \
    'slow rank: the summary begins with it' || sed 's/^/# /' "$scratch/out"
like "$(cat "$scratch/out")" '^guide/slow\.c:.* still waits for rank 2 ' \
    'slow rank: the failure names it'
prints 'rank 2 is behind' 1 'slow rank: dscomm analyze names it'

python=${TEST_PYTHON:-python3}
site=$build/bindings/site
if ! "$python" -c 'import torch.distributed.run' >/dev/null 2>&1; then
    skip torchrun "${NO_TORCH:-$python has no torch.distributed; set DSCOMM_TEST_PYTHON}"
elif ! PYTHONPATH=$site "$python" -c 'import dscomm_torch' >/dev/null 2>&1; then
    skip torchrun 'dscomm_torch was not built; configure --with-torch'
else
    printf '#!/bin/sh\nexec "%s" -m torch.distributed.run "$@"\n' "$python" >bin/torchrun
    chmod +x bin/torchrun
    PYTHONPATH=$site
    export PYTHONPATH
    recipe torchrun
    is $status 0 'torchrun: status'
    prints '^rank [01] of 2: the sum of all ranks is 1$' 2 'torchrun: a program in C'
    prints '^test accuracy: 9[0-9]' 1 'torchrun: a network is trained'
fi
tap_done
