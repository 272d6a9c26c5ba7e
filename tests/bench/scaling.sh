#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tables of doc/scaling.md: run in the build folder, with SimGrid's smpicc and
# smpirun (Debian: libsimgrid-dev) in PATH.
#
#   SOURCE/tests/bench/scaling.sh [HOSTS...]     16 64 256 1024 where none is given

set -e
source=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ $# -gt 0 ] || set -- 16 64 256 1024

# pkg-config prints several words.
# shellcheck disable=SC2046
smpicc -std=gnu11 -O2 -D_GNU_SOURCE -I. -I"$source/../.." -I"$source/../../lib" \
    $(pkg-config --cflags glib-2.0) -o "$scratch/scaling" "$source/scaling.c" \
    lib/.libs/libcore.a $(pkg-config --libs glib-2.0) -lm -lpthread

# platform HOSTS RANKS-PER-HOST: one switch that holds nobody up, links of 100
# Gbit/s and a microsecond each way, and inside a host 20 GB/s and 0.3 us
platform()
{
    cat >"$scratch/platform.xml" <<XML
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="c" prefix="h" suffix="" radical="0-$(($1 - 1))" speed="1Gf"
 core="$2" bw="12.5GBps" lat="0.5us" sharing_policy="SPLITDUPLEX"
 loopback_bw="20GBps" loopback_lat="0.3us"/>
</platform>
XML
    i=0
    while [ $i -lt "$1" ]; do
        yes "h$i" | head -n "$2"
        i=$((i + 1))
    done >"$scratch/hosts"
}

# table RANKS-PER-HOST BYTES MOST-HOSTS-OF-RINGS NAMES HOSTS...: a ring of all ranks,
# and rings of hosts, have so many hosts at most, or the simulation takes hours
table()
{
    k=$1 bytes=$2 most=$3 names=$4
    shift 4
    # shellcheck disable=SC2086
    printf '| hosts'
    for name in $names; do printf ' | %s' "$name"; done
    printf ' |\n| ---:'
    for name in $names; do printf ' | ---:'; done
    printf ' |\n'
    for hosts; do
        platform "$hosts" "$k"
        printf '| %s' "$hosts"
        for name in $names; do
            case $name in
            ring) limit=$most ;;
            *:ring) limit=256 ;;
            *) limit=$hosts ;;
            esac
            if [ "$hosts" -gt "$limit" ]; then
                printf ' | '
                continue
            fi
            smpirun -no-privatize -np $((hosts * k)) \
                -platform "$scratch/platform.xml" -hostfile "$scratch/hosts" \
                --cfg=smpi/simulate-computation:no --cfg=network/model:CM02 \
                --cfg=contexts/stack-size:256 --log=root.threshold:critical \
                "$scratch/scaling" "$bytes" "$k" "$name" \
                >"$scratch/out" 2>"$scratch/err" || cat "$scratch/err" >&2
            printf ' | %s' "$(awk -v n="$name" '$1 == n { print $3 }' \
                "$scratch/out")"
        done
        printf ' |\n'
    done
}

for bytes in ${SHORT:-1024 16384}; do
    printf '\n%s bytes, four ranks on each host\n\n' $bytes
    table 4 $bytes 64 'recursive_doubling halving_doubling two_level' "$@"
done
for bytes in ${BYTES:-65536 1048576 67108864}; do
    printf '\n%s bytes, one rank on each host, simulated microseconds\n\n' $bytes
    table 1 $bytes 1024 'ring halving_doubling recursive_doubling' "$@"
    printf '\n%s bytes, four ranks on each host\n\n' $bytes
    table 4 $bytes 64 \
        'ring halving_doubling two_level:ring two_level:halving_doubling' "$@"
done
