# SPDX-License-Identifier: BSD-3-Clause
# For the scripts that run two_level: on HOSTS [AREA...] runs the conformance
# suite on as many ranks as HOSTS has letters, each on the host that its letter
# names.
# shellcheck shell=sh

[ -n "$conformance" ] || . "$abs_top_srcdir/tests/backends/conform.sh"

real=$conformance
conformance=$scratch/on-host
cat >"$conformance" <<'SCRIPT'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${RANK:-0}}}
DSCOMM_HOST_ID=$(echo "$hosts" | cut -c $((rank + 1)))
export DSCOMM_HOST_ID
exec "$real" "$@"
SCRIPT
chmod +x "$conformance"
export real hosts

# Two levels of nodes in every schedule that can have them.
# shellcheck disable=SC2034
levels=all_reduce:two_level,broadcast:two_level,reduce:two_level,all_gather:two_level,reduce_scatter:two_level,barrier:two_level

on()
{
    hosts=$1
    shift
    echo "# ranks on hosts $hosts"
    conform two_level ${#hosts} "$@"
}
