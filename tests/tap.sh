# SPDX-License-Identifier: BSD-3-Clause
# For shell tests: results as TAP, and a folder that goes when the test ends.
# shellcheck shell=sh

tap_count=0
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
: "${abs_top_srcdir:?run me with make check}" "${abs_top_builddir:?}"

# result STATUS TEXT: ok where STATUS is 0. Otherwise what was last written to
# $scratch/err is shown.
result()
{
    tap_count=$((tap_count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tap_count - $2"
    else
        echo "not ok $tap_count - $2"
        [ ! -f "$scratch/err" ] || tail -n 20 "$scratch/err" | sed 's/^/# stderr: /'
        return 1
    fi
}

# is GOT WANT TEXT: this and the next two fail where the test does
is()
{
    [ "$1" = "$2" ]
    result $? "$3" && return
    printf "got '%s', want '%s'\n" "$1" "$2" | sed 's/^/# /'
    return 1
}

# like GOT PATTERN TEXT: a line of GOT matches the extended regular expression
like()
{
    printf '%s\n' "$1" | grep -Eq -e "$2"
    result $? "$3" && return
    printf "got '%s', want /%s/\n" "$1" "$2" | sed 's/^/# /'
    return 1
}

# same GOT WANT TEXT: two sorted files are equal
same()
{
    diff "$2" "$1" >"$scratch/diff"
    result $? "$3" && return
    sed -n 's/^</# missing:/p; s/^>/# too many:/p' "$scratch/diff"
    return 1
}

# skip TEXT REASON
skip()
{
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

# skip_all REASON
skip_all()
{
    echo "1..0 # SKIP $1"
    exit 0
}

tap_done()
{
    echo "1..$tap_count"
}
