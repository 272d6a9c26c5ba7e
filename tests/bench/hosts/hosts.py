#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares dscomm with its peers between hosts, which are network namespaces.

In a build folder, as root, after `make bench-hosts`:

    ../tests/bench/hosts/hosts.py latency 8 65536
    ../tests/bench/hosts/hosts.py --hosts 4 --ranks 2 all_reduce 64 1M

The peers run in turn, in as many rounds as --rounds says. Printed are the
median times, their ratio to dscomm's (more than 1: dscomm is faster), and the
processor time of rank 0 for a byte."""

import argparse
import json
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BRIDGE = f"dscomm-bench-{os.getpid()}"
FOLDER = "tests/bench/hosts/"
PORTS = iter(range(24000, 32000))


def command(text):
    subprocess.run(text.split(), check=True, stdout=subprocess.DEVNULL)


def host_name(host):
    return f"{BRIDGE}-{host}"


def host_address(host):
    return f"10.99.0.{host + 1}"


def hosts_remove(count):
    for name in [host_name(host) for host in range(count)] + [BRIDGE]:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def host_make(name, congestion):
    """The default of congestion differs between kernels: bbr paces a short link, too."""
    command(f"ip netns add {name}")
    command(f"ip netns exec {name} sysctl -qw net.ipv4.tcp_congestion_control={congestion}")
    command(f"ip -n {name} link set lo up")


def pair_make(netem, congestion):
    """Two hosts and a link, without the bridge, which some kernels lack."""
    names = [host_name(host) for host in range(2)]
    hosts_remove(2)
    for name in names:
        host_make(name, congestion)
    command(f"ip -n {names[0]} link add eth0 type veth peer name eth0 netns {names[1]}")
    for host, name in enumerate(names):
        command(f"ip -n {name} address add {host_address(host)}/24 dev eth0")
        command(f"ip -n {name} link set eth0 up")
        command(f"ip netns exec {name} tc qdisc add dev eth0 root netem {netem}")


def link_make(count, link, congestion):
    """Hosts joined by the program link; returns its process."""
    hosts_remove(count)
    names = [host_name(host) for host in range(count)]
    for name in names:
        host_make(name, congestion)
    process = subprocess.Popen([FOLDER + "link", *link.split(), *names], text=True,
                               stdout=subprocess.PIPE)
    if not process.stdout.readline():
        sys.exit("link: it cannot make its devices")
    for host, name in enumerate(names):
        command(f"ip -n {name} address add {host_address(host)}/24 dev eth0")
        command(f"ip -n {name} link set eth0 up txqueuelen 1000")
    return process


def hosts_make(count, netem, congestion):
    hosts_remove(count)
    command(f"ip netns add {BRIDGE}")
    command(f"ip -n {BRIDGE} link add bridge type bridge")
    command(f"ip -n {BRIDGE} link set bridge up")
    for host in range(count):
        name = host_name(host)
        host_make(name, congestion)
        command(f"ip -n {name} link add eth0 type veth peer name port{host} netns {BRIDGE}")
        command(f"ip -n {name} address add {host_address(host)}/24 dev eth0")
        command(f"ip -n {name} link set eth0 up")
        command(f"ip -n {BRIDGE} link set port{host} master bridge")
        command(f"ip -n {BRIDGE} link set port{host} up")
        if netem:
            command(f"ip netns exec {name} tc qdisc add dev eth0 root netem {netem}")


def on_host(host, words):
    """The command line that runs words on a host."""
    return ["nsenter", f"--net=/run/netns/{host_name(host)}", "unshare", "-u", "sh", "-c",
            'hostname "$1" && shift && exec "$@"', "sh", f"host{host}", *words]


def rsh_write(path):
    """A remote shell for the mpiruns: ADDRESS COMMAND..."""
    with open(path, "w") as file:
        file.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\n'
                   'host=$((${1##*.} - 1))\nshift\n'
                   f'exec nsenter --net=/run/netns/{BRIDGE}-$host unshare -u sh -c '
                   '"hostname host$host; $*"\n')
    os.chmod(path, 0o755)


class Failure(Exception):
    pass


def wait_all(processes, seconds):
    """Returns what the first one has written."""
    text = ""
    try:
        text = processes[0].communicate(timeout=seconds)[0]
        for process in processes[1:]:
            process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        pass
    bad = [process for process in processes if process.returncode]
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            bad.append(process)
    if bad or not text.strip():
        raise Failure(f"{len(bad)} processes failed")
    return text


def start(words, env):
    return subprocess.Popen(words, env=env, text=True, stdout=subprocess.PIPE,
                            start_new_session=True)


def run_ranks(options, words, extra):
    """Ranks that find each other by RANK, WORLD_SIZE and MASTER_ADDR."""
    port = str(next(PORTS))
    size = options.hosts * options.ranks
    secret = secrets.token_hex(16)
    processes = []
    for rank in range(size):
        host = rank // options.ranks
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR=host_address(0),
                   MASTER_PORT=port, LOCAL_RANK=str(rank % options.ranks),
                   LOCAL_WORLD_SIZE=str(options.ranks), DSCOMM_JOB_SECRET=secret, **extra)
        processes.append(start(on_host(host, words), env))
    return wait_all(processes, options.limit)


def run_dscomm(options, words):
    return run_ranks(options, [FOLDER + "dscomm", *words],
                     {"DSCOMM_BACKEND_PATH": os.path.abspath("backends/.libs")})


def run_sockets(options, words):
    return run_ranks(options, [FOLDER + "sockets", *words], {})


def run_gloo(options, words):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exchange.py")
    return run_ranks(options, [options.python, script, *words], {"GLOO_SOCKET_IFNAME": "eth0"})


def run_openmpi(options, words):
    hosts = ",".join(f"{host_address(host)}:{options.ranks}" for host in range(options.hosts))
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               OMPI_MCA_plm_rsh_agent=options.rsh, OMPI_MCA_pml="ob1",
               OMPI_MCA_btl="tcp,vader,self", OMPI_MCA_btl_tcp_if_include="eth0",
               OMPI_MCA_oob_tcp_if_include="eth0", OMPI_MCA_mpi_yield_when_idle=options.yields)
    return wait_all([start(on_host(0, [
        "mpirun.openmpi", "--host", hosts, "-n", str(options.hosts * options.ranks),
        "--bind-to", "none", "--oversubscribe", os.path.abspath(FOLDER + "openmpi"), *words]),
        env)], options.limit)


def run_mpich(options, words):
    hosts = ",".join(host_address(host) for host in range(options.hosts))
    env = dict(os.environ, UCX_TLS="tcp,self", UCX_NET_DEVICES="eth0", UCX_LOG_LEVEL="error")
    return wait_all([start(on_host(0, [
        "mpirun.mpich", "-launcher", "rsh", "-launcher-exec", options.rsh, "-iface", "eth0",
        "-hosts", hosts, "-ppn", str(options.ranks), "-n", str(options.hosts * options.ranks),
        os.path.abspath(FOLDER + "mpich"), *words]), env)], options.limit)


def run_iperf3(options, words):
    """A stream, so its figure is the time of so many bytes, not of a message."""
    port = str(next(PORTS))
    seconds = 3
    server = start(on_host(1, ["iperf3", "-s", "-1", "-p", port]), None)
    time.sleep(0.3)
    client = start(on_host(0, ["iperf3", "-c", host_address(1), "-p", port, "-J", "-t",
                               str(seconds)]), None)
    end = json.loads(wait_all([client, server], options.limit))["end"]
    received, used = end["sum_received"], end["cpu_utilization_percent"]
    cpu = used["host_total"] / 100 * received["seconds"] * 1e9
    return (f'{int(words[1]) * 8e6 / received["bits_per_second"]} us '
            f'{cpu / received["bytes"]} ns/B')


RUNS = {"dscomm": run_dscomm, "sockets": run_sockets, "iperf3": run_iperf3,
        "openmpi": run_openmpi, "mpich": run_mpich, "gloo": run_gloo}


def bytes_of(text):
    units = {"K": 10, "M": 20, "G": 30}
    return int(text[:-1]) << units[text[-1]] if text[-1] in units else int(text)


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def measure(options, size):
    found = {peer: [] for peer in options.peers}
    words = [options.what, str(size), str(options.batches)]
    for _ in range(options.rounds):
        for peer in options.peers:
            try:
                text = RUNS[peer](options, words).split()
                found[peer].append((float(text[0]), float(text[2])))
            except (Failure, OSError, ValueError) as error:
                print(f"# {peer}: {error}", file=sys.stderr)
    return found


def table(size, found):
    base = found.get("dscomm")
    for peer, values in found.items():
        if not values:
            print(f"{size:>10} {peer:<8} failed")
            continue
        took = statistics.median(value[0] for value in values)
        ratio = took / statistics.median(value[0] for value in base) if base else float("nan")
        least = min(value[0] for value in values)
        cpu = statistics.median(value[1] for value in values)
        print(f"{size:>10} {peer:<8} {took:12.2f} us  least {least:12.2f}  ratio {ratio:6.2f}"
              f"  {size / took / 1e3:8.3f} GB/s  {cpu:8.3f} ns/B", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["latency", "bandwidth", "all_reduce"])
    parser.add_argument("bytes", nargs="+", type=bytes_of)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=1, help="of each host")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=11)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(RUNS))
    parser.add_argument("--python", default=sys.executable, help="one that has torch")
    parser.add_argument("--netem", help="for tc, for example 'delay 1ms loss 1%% rate 1gbit'")
    parser.add_argument("--link", help="MBIT DELAY_MS LOSS_PERCENT, where the kernel lacks netem")
    parser.add_argument("--congestion", default="cubic", help="control of TCP, of all peers")
    parser.add_argument("--limit", type=int, default=120, help="seconds of a run")
    options = parser.parse_args()
    unknown = set(options.peers) - set(RUNS)
    if unknown:
        parser.error(f"no peer {', '.join(sorted(unknown))}: there are {', '.join(RUNS)}")
    if "gloo" in options.peers and not has_torch(options.python):
        print("# gloo is left out: --python names no Python with torch", file=sys.stderr)
        options.peers.remove("gloo")
    if options.what == "all_reduce" or options.hosts * options.ranks != 2:
        options.peers = [peer for peer in options.peers if peer != "sockets"]
    if options.what != "bandwidth" or options.hosts != 2:
        options.peers = [peer for peer in options.peers if peer != "iperf3"]
    options.yields = str(int(options.hosts * options.ranks > os.cpu_count()))
    with tempfile.TemporaryDirectory() as folder:
        options.rsh = os.path.join(folder, "rsh")
        rsh_write(options.rsh)
        link = None
        try:
            if options.link:
                link = link_make(options.hosts, options.link, options.congestion)
            elif options.netem and options.hosts == 2:
                pair_make(options.netem, options.congestion)
            else:
                hosts_make(options.hosts, options.netem, options.congestion)
            print(f"# {options.what}, {options.hosts} hosts of {options.ranks} ranks on "
                  f"{socket.gethostname()}, {options.rounds} rounds", flush=True)
            for size in options.bytes:
                table(size, measure(options, size))
        except (Failure, subprocess.CalledProcessError) as error:
            sys.exit(f"hosts.py: {error}")
        finally:
            if link:
                link.kill()
            hosts_remove(options.hosts)


main()
