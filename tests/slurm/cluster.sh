# SPDX-License-Identifier: BSD-3-Clause
# A Slurm of this machine alone, for shell tests: a controller, and several daemons
# that each are a node. Everything is in namespaces of the test's own (network,
# processes, mounts, host name), and goes with its first process.
# shellcheck shell=sh

# The one address, of an interface that leads nowhere: one of loopback would be no
# node's.
cluster_address=10.99.1.1

# cluster_enter: becomes the same script in namespaces of its own; skips where that
# or Slurm cannot be had.
cluster_enter()
{
    [ -z "${CLUSTER_INSIDE-}" ] || return 0
    for program in slurmctld slurmd munged srun; do
        PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null ||
            skip_all "no $program (packages slurm-wlm and munge)"
    done
    command -v ip >/dev/null || skip_all 'no ip (package iproute2)'
    unshare -nmpuf --propagation unchanged sh -c 'mount --make-rprivate / &&
        mount -t proc proc /proc && ip link set lo up' 2>"$scratch/why" ||
        skip_all "no namespaces of one's own: $(tail -n 1 "$scratch/why")"
    CLUSTER_INSIDE=1
    export CLUSTER_INSIDE
    rm -rf "$scratch"
    exec unshare -nmpuf --kill-child --propagation unchanged sh "$0"
}

# cluster_host: makes the namespaces look like a machine whose nodes have names
cluster_host()
{
    mount --make-rprivate / && mount -t proc proc /proc &&
        ip link set lo up &&
        ip link add eth0 type veth peer name eth1 &&
        ip address add $cluster_address/24 dev eth0 &&
        ip link set eth0 up && ip link set eth1 up &&
        hostname cluster || return 1
    echo "127.0.0.1 localhost" >"$cluster/hosts"
    echo "$cluster_address cluster $(cluster_names)" >>"$cluster/hosts"
    mount --bind "$cluster/hosts" /etc/hosts
}

cluster_names()
{
    i=0
    while [ $i -lt "$cluster_nodes" ]; do
        printf 'n%d ' $i
        i=$((i + 1))
    done
}

cluster_configuration()
{
    cat <<END
ClusterName=test
SlurmctldHost=cluster($cluster_address)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=2
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool.%n
TmpFS=$cluster/tmp.%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.%n.log
NodeName=n[0-$((cluster_nodes - 1))] NodeHostname=cluster NodeAddr=$cluster_address Port=[17001-$((17000 + cluster_nodes))] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
}

# The socket is where libmunge looks for it, in a /run of the test's own.
cluster_munge()
{
    mount -t tmpfs -o mode=755 tmpfs /run && mkdir -m 755 /run/munge &&
        mkdir -m 755 "$cluster/munge" && mkdir -m 700 "$cluster/key" || return 1
    head -c 128 /dev/urandom >"$cluster/key/key" && chmod 400 "$cluster/key/key"
    munged --force --num-threads=2 --socket=/run/munge/munge.socket.2 \
        --key-file="$cluster/key/key" --pid-file="$cluster/munge/pid" \
        --log-file="$cluster/key/log" --seed-file="$cluster/key/seed" \
        2>"$cluster/munged.log"
}

# cluster_start FOLDER NODES: starts everything, in FOLDER; fails with the reason in
# $cluster_why
cluster_start()
{
    cluster=$1
    cluster_nodes=$2
    PATH=$PATH:/usr/sbin:/sbin
    SLURM_CONF=$cluster/slurm.conf
    export PATH SLURM_CONF
    mkdir -p "$cluster/state"
    chmod 755 "$cluster"
    cluster_host || { cluster_why='no host of its own'; return 1; }
    cluster_configuration >"$SLURM_CONF"
    cluster_munge || { cluster_why="munged: $(cat "$cluster/munged.log")"; return 1; }
    slurmctld -c 2>"$cluster/start.log" ||
        { cluster_why="slurmctld: $(tail -n 1 "$cluster/start.log")"; return 1; }
    for name in $(cluster_names); do
        mkdir "$cluster/spool.$name" "$cluster/tmp.$name"
        slurmd -N "$name" 2>"$cluster/start.log" ||
            { cluster_why="slurmd: $(tail -n 1 "$cluster/start.log")"; return 1; }
    done
    tries=0
    until [ "$(sinfo -h -t idle -o %D 2>"$cluster/sinfo.log")" = "$cluster_nodes" ]; do
        tries=$((tries + 1))
        if [ $tries -gt 150 ]; then
            cluster_why="nodes are not idle: $(sinfo -h -o '%D %T %E' 2>&1 | tr '\n' ';') $(grep -h error "$cluster"/*.log | tail -n 3 | tr '\n' ';')"
            return 1
        fi
        sleep 0.2
    done
}
