# SPDX-License-Identifier: BSD-3-Clause
# For the scripts that make hosts of this machine. $conformance starts the conformance
# suite on the host that a rank's letter in $hosts names; without $hosts, on this one.
# shellcheck shell=sh

[ -n "$conformance" ] || . "$abs_top_srcdir/tests/backends/conform.sh"

real=$conformance
conformance=$scratch/on-host
cat >"$conformance" <<'SCRIPT'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${RANK:-0}}}
if [ "$hosts" ]; then
    DSCOMM_HOST_ID=$(echo "$hosts" | cut -c $((rank + 1)))
    export DSCOMM_HOST_ID
fi
exec "$real" "$@"
SCRIPT
chmod +x "$conformance"
export real hosts

# Two levels of nodes in every schedule that can have them.
# shellcheck disable=SC2034
levels=all_reduce:two_level,broadcast:two_level,reduce:two_level,all_gather:two_level,reduce_scatter:two_level,barrier:two_level

# on HOSTS BACKEND [AREA...]: the suite on as many ranks as HOSTS has letters
on()
{
    hosts=$1 backend=$2
    shift 2
    echo "# ranks on hosts $hosts"
    conform "$backend" ${#hosts} "$@"
    hosts=
}

# compile_mailbox SOURCE FOLDER: the example backend, or one like it
compile_mailbox()
{
    # Compiler and flags are words.
    # shellcheck disable=SC2086
    $CC $SANITIZER_FLAGS -O2 -I"$abs_top_srcdir/lib" -fPIC -shared -o "$2/mailbox.so" "$1"
}

# Adds the example backend, which has messages alone, to those that can be loaded.
make_mailbox()
{
    compile_mailbox "$abs_top_srcdir/examples/backend/mailbox.c" "$scratch" || return
    DSCOMM_BACKEND_PATH=$DSCOMM_BACKEND_PATH:$scratch
    export DSCOMM_BACKEND_PATH
}
