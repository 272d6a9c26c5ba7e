#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dscomm info: its parts, what it says of modules and settings.

. "$abs_top_srcdir/tests/tools/fixture.sh"

info()
{
    dscomm info "$@"
}

# parts: the headings of $out
parts()
{
    printf '%s\n' "$out" | sed -n 's/^\([A-Z][a-z]*\)\( algorithms.*\)*[,:].*/\1/p' | tr '\n' ' '
}

info
is $status 0 'status'
is "$(parts)" 'Build Backends Devices Codecs Algorithms All Settings ' 'all parts'
info --settings
is "$(parts)" 'Settings ' 'one part'
info --backends --build
is "$(parts)" 'Build Backends ' 'two parts'

info --build
like "$out" "^  version  *$PACKAGE_VERSION\$" 'the version'
like "$out" '^  compiler  *(gcc|clang) [0-9.]+$' 'the compiler'
like "$out" '^  cpu features  *[a-z0-9]' 'the processor'
like "$out" '^  kernels in use  *([a-z0-9]+ )*c$' 'the kernels'
DSCOMM_CPU=c info --build
like "$out" '^  kernels in use  *c$' 'the kernels that a setting leaves'

info --backends
like "$out" '^  self  *.*built in$' 'self is built in'
like "$out" "^  shm  *priority [0-9]+, $DSCOMM_BACKEND_PATH/shm.so\$" \
    'shm is found'
like "$out" '^  *stores: auto, single copies: auto; dscomm perf shows what' 'how it moves payloads'
DSCOMM_SHM_STORE=plain info --backends
like "$out" '^  *stores: plain, single copies: no, without a trial of stores$' 'as set'
DSCOMM_SHM_STORE=stream DSCOMM_SHM_SINGLE_COPY=yes info --backends
like "$out" '^  *stores: stream, single copies: yes$' 'or set otherwise'
info --codecs
is "$(parts)" 'Codecs ' 'codecs'
like "$out" '^  topk  *with error feedback, parameter 0\.01$' 'a codec and its parameter'
like "$out" '^  float16  *without error feedback$' 'one without'
like "$out" '^  on CUDA devices  *(onebit|no: .+)$' 'CUDA'
if [ -e "$DSCOMM_BACKEND_PATH/mpi.so" ]; then
    mkdir "$scratch/engines"
    DSCOMM_MPI_PATH=$scratch/engines info --backends
    like "$out" '^  *no module for an MPI library$' 'no MPI library'
    touch "$scratch/engines/mpich.so"
    DSCOMM_MPI_PATH=$scratch/engines info --backends
    like "$out" '^  *MPI libraries: mpich$' 'one MPI library'
    touch "$scratch/engines/openmpi.so"
    DSCOMM_MPI_PATH=$scratch/engines info --backends
    like "$out" '^  *MPI libraries: openmpi, mpich$' 'two MPI libraries'
else
    skip 'MPI libraries' 'no backend mpi'
fi
info --devices
is $status 0 'devices: status'
is "$(parts)" 'Devices ' 'devices'
if [ -e "$DSCOMM_BACKEND_PATH/ibverbs.so" ] && [ ! -e /sys/class/infiniband ]; then
    is "$(echo "$out" | sed 1d)" \
        '  ibverbs          none: this host has no RDMA device; see ibv_devices' 'none here'
else
    skip 'no device' 'no backend ibverbs, or a device'
fi
mkdir "$scratch/lister"
DSCOMM_BACKEND_PATH=$scratch/lister info --devices
is "$(echo "$out" | sed 1d)" '  no backend lists devices' 'no backend with devices'
cp "$abs_top_builddir/tests/lib/modules/.libs/lister.so" "$scratch/lister"
DSCOMM_BACKEND_PATH=$scratch/lister info --devices
is "$out" 'Devices, and which of them the settings choose:
  lister
    device one, chosen: pci 0000:17:00.0
      port 1: link layer Ethernet, mtu 4096 bytes, rate 2.5 Gbit/s
        not usable: it is down
        gid 0: type RoCE v2
        gid 3: type RoCE v2
      port 2, chosen: link layer Ethernet, mtu 4096 bytes, rate 2.5 Gbit/s
        gid 0, chosen: type RoCE v2
    device two
      not usable: it cannot be opened
        gid 7' 'devices, ports and GIDs'
FAKE_LISTER=refuse DSCOMM_BACKEND_PATH=$scratch/lister info --devices
is "$(echo "$out" | tail -1)" '    none is chosen: no device can be used' 'why none is chosen'
FAKE_LISTER=none DSCOMM_BACKEND_PATH=$scratch/lister info --devices
is "$(echo "$out" | tail -1)" '  lister           none: there is no device' 'why there is none'
mkdir "$scratch/modules"
echo 'no module' >"$scratch/modules/broken.so"
DSCOMM_BACKEND_PATH=$scratch/modules info --backends
is $status 0 'a broken module: status'
like "$out" "^Backends, in $scratch/modules:\$" 'the folder that was asked for'
like "$out" "^  broken  *$scratch/modules/broken.so\$" 'a broken module is told'
like "$out" '^ +not usable: .+' 'and why it was refused'

DSCOMM_TIMEOUT=5 info --settings
like "$out" '^  DSCOMM_TIMEOUT=5$' 'the value that is set'
like "$out" '^      [0-9.]+ to [0-9.]+ seconds; default: 1800$' 'range and default'
like "$out" '^  DSCOMM_BACKEND$' 'a setting that is not set'
like "$out" '^      enum: .*caller.*; default: caller$' 'the words accepted'

info --algorithms -n 3
is $status 0 'algorithms: status'
is "$(parts)" 'Algorithms All ' 'algorithms'
like "$out" '^Algorithms, for 3 ranks, ' 'for so many ranks'
like "$out" '^  all_reduce  *0-[0-9]+K  *[a-z_]+' 'by bytes'
like "$out" '^  gather_v  *all  *linear$' 'or not'
like "$out" '^  all_reduce  *([a-z_]*, )*ring(, [a-z_]*)*$' 'all there are'
DSCOMM_ALGORITHM=all_reduce:64K-1M:ring,barrier:native info --algorithms
like "$out" '^  *64K-1M  *ring \(default: [a-z_]+\)  *[a-z_]+$' 'what is changed'
like "$out" '^  barrier  *all  *native, else dissemination$' 'and what is left'
like "$out" '^  as DSCOMM_ALGORITHM=all_reduce:64K-1M:ring,barrier:native says$' \
    'by what'
DSCOMM_ALGORITHM=all_reduce:sing info --algorithms --build
is $status 1 'a setting that makes no sense: status'
is "$(parts)" 'Build ' 'what can be shown is'
like "$(cat "$scratch/err")" "'sing' is no algorithm of all_reduce" 'why'
info -n 1
is $status 2 'one rank needs none'
info --settings

is "$(cat "$scratch/err")" '' 'nothing to warn about'
DSCOMM_CPU=bogus info
like "$(cat "$scratch/err")" "DSCOMM_CPU='bogus' is not accepted; set it to auto, c, " \
    'a value that is not accepted'
info --algorithms -n 5
like "$out" '^  all_gather  *ring, linear, bruck$' 'algorithms that serve 5 ranks'
info --algorithms -n 4
like "$out" '^  all_gather  *ring, linear, bruck, recursive_doubling$' 'and 4'
info --algorithms -n 6 --nodes 2
like "$out" '^Algorithms, for 6 ranks on 2 nodes, ' 'on several nodes'
like "$out" '^  all_reduce  *0-[0-9]+K  *two_level  *[a-z_]+$' 'two levels by default'
like "$out" '^  all_gather  *ring, linear, bruck, two_level$' 'and among all'
for nodes in 0 9 -1; do
    info --nodes $nodes
    is $status 2 "8 ranks on $nodes nodes"
done
DSCOMM_ALGORITHM=all_reduce:two_level,reduce:1K-:chain info --algorithms
like "$out" '^  all_reduce:two_level is passed over: it needs several nodes, ' \
    'a rule that cannot serve here'
like "$out" '^  reduce:chain is passed over by sums of bfloat16: it needs a type ' \
    'one that cannot serve some types'
is "$(echo "$out" | grep -c 'passed over')" 2 'once each'
DSCOMM_ALGORITHM=all_reduce:two_level info --algorithms --nodes 2
like "$out" '^  all_reduce  *0-[0-9]+K  *two_level \(default: two_level\)' \
    'a rule that can serve there'
is "$(echo "$out" | grep -c 'passed over:')" 0 'is not passed over'
esc=$(printf 'a\033[1mb\377')
DSCOMM_BACKEND=$esc info --settings
like "$out" '^  DSCOMM_BACKEND=a\\x1b\[1mb\\xff$' 'a value no terminal should get'
DSCOMM_BACKND=shm DSCOMM_SHM_RINGS=1 DSCOMM_XYZZY=1 info --settings
is $status 0 'unknown variables: status'
is "$(sort "$scratch/err")" 'dscomm info: DSCOMM_BACKND is no setting and has no effect; is DSCOMM_BACKEND meant?
dscomm info: DSCOMM_SHM_RINGS is no setting and has no effect; is DSCOMM_SHM_RING meant?
dscomm info: DSCOMM_XYZZY is no setting and has no effect' 'unknown variables are told'

info --no-such-option
is $status 2 'unknown option'
info word
is $status 2 'unexpected argument'
like "$(cat "$scratch/err")" "unexpected argument 'word'" 'which one'
if [ -c /dev/full ]; then
    "$program" info >/dev/full 2>"$scratch/err"
    is $? 1 'output that cannot be written'
else
    skip 'output that cannot be written' 'no /dev/full'
fi

tap_done
