#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite on two levels over two hosts: network namespaces with a name
# and loopback of their own, joined by a cable. Open MPI's mpirun reaches the other
# one by a launch agent that takes ssh's place, and its messages go over the cable.
# Nobody tells the ranks where they meet but MPI.

. "$abs_top_srcdir/tests/backends/mpi.sh"

DSCOMM_MPI_PATH=$abs_top_builddir/backends/mpi/.libs
base=dscomm-$$
use_openmpi
[ -e "$DSCOMM_MPI_PATH/openmpi.so" ] || skip_all 'no module for Open MPI'
[ "$(id -u)" = 0 ] || skip_all 'network namespaces need root'
for program in ip nsenter unshare; do
    command -v $program >/dev/null || skip_all "no $program"
done
trap 'ip netns del $base-0 2>/dev/null; ip netns del $base-1 2>/dev/null
    rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# up HOST: the end of the cable that is there, and loopback
up()
{
    ip -n $base-"$1" link set lo up &&
        ip -n $base-"$1" address add 10.99.0.$(($1 + 1))/24 dev eth0 &&
        ip -n $base-"$1" link set eth0 up
}

ip netns add $base-0 2>"$scratch/why" && ip netns add $base-1 2>"$scratch/why" ||
    skip_all "no network namespaces: $(tail -n 1 "$scratch/why")"
{
    ip -n $base-0 link add eth0 type veth peer name eth0 netns $base-1 &&
        up 0 && up 1
} 2>"$scratch/why" || skip_all "no cable: $(tail -n 1 "$scratch/why")"

# AGENT HOST WORD...: carries out the words there, as ssh would. ip netns exec would
# not do in a chroot.
cat >"$scratch/agent" <<SCRIPT
#!/bin/sh
host=\$1
shift
exec nsenter --net=/run/netns/$base-\${host#host} unshare -u \\
    sh -c 'hostname "\$1" && shift && eval "\$*"' sh "\$host" "\$@"
SCRIPT
cat >"$scratch/mpirun" <<SCRIPT
#!/bin/sh
exec timeout -k 5 200 nsenter --net=/run/netns/$base-0 unshare -u \\
    sh -c 'hostname host0 && exec "\$@"' sh mpirun.openmpi --bind-to none \\
    --host "\$hosts" "\$@"
SCRIPT
chmod +x "$scratch/agent" "$scratch/mpirun"
"$scratch/agent" host1 true 2>"$scratch/why" ||
    skip_all "no programs in namespaces: $(tail -n 1 "$scratch/why")"
OMPI_MCA_plm_rsh_agent=$scratch/agent
PRTE_MCA_plm_ssh_agent=$scratch/agent # Open MPI 5
launch=$scratch/mpirun
hosts=host0:2,host1:2
export DSCOMM_MPI_PATH OMPI_MCA_plm_rsh_agent PRTE_MCA_plm_ssh_agent hosts

# The launcher's own part: where do the ranks go?
$launch -n 4 hostname >"$scratch/out" 2>"$scratch/err" </dev/null
is "$(sort "$scratch/out" | tr '\n' ' ')" 'host0 host0 host1 host1 ' \
    'mpirun starts two ranks on each host' || sed 's/^/# /' "$scratch/err"
DSCOMM_LOG=core:info $launch -n 4 "$abs_top_builddir/examples/hello/hello" \
    >"$scratch/out" 2>&1 </dev/null
like "$(cat "$scratch/out")" 'backend two_level is chosen' \
    'auto takes two levels' || sed 's/^/# /' "$scratch/out"
conform auto 4 collectives reductions groups works p2p
hosts=host0:3,host1:1
conform auto 4 reductions variants
tap_done
