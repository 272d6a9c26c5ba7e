#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bootstrap tells how to use it, and says of what it cannot do why.

. "$abs_top_srcdir/tests/tap.sh"

bootstrap=$abs_top_srcdir/bootstrap
[ -f "$bootstrap" ] || skip_all 'no bootstrap, which a clone has'

for word in -h --help; do
    out=$(sh "$bootstrap" $word)
    is $? 0 "$word: status"
    like "$out" '^  \./bootstrap tests  ' "$word: a command without options"
    like "$out" '^  \./bootstrap check \[OPTION\]  ' "$word: a command"
    like "$out" '^      --with-torch  ' "$word: an option"
done
err=$(sh "$bootstrap" nonsense 2>&1)
is $? 1 'a word that is none: status'
like "$err" "unknown argument 'nonsense': give .* or --help" 'a word that is none'

# --no-install stands anywhere, and nothing is installed then.
for words in '--no-install nonsense' 'nonsense --no-install'; do
    # Split on purpose
    # shellcheck disable=SC2086
    err=$(sh "$bootstrap" $words 2>&1)
    like "$err" "unknown argument 'nonsense'" "$words"
done
sed -n '/^can_install()/,/^}/p; /^install_missing()/,/^}/p' "$bootstrap" >"$scratch/part"
mkdir "$scratch/bin"
printf '#!/bin/sh\nexit 0\n' >"$scratch/bin/apt-get"
cp "$scratch/bin/apt-get" "$scratch/bin/sudo"
chmod +x "$scratch/bin/apt-get" "$scratch/bin/sudo"
for no_install in '' yes; do
    err=$(
        PATH=$scratch/bin:$PATH
        say() { echo "bootstrap: $*"; }
        have() { command -v "$1" >/dev/null 2>&1; }
        missing() { printf 'one\ntwo\n'; }
        apt_install() { echo "installing $*"; }
        . "$scratch/part"
        install_missing missing ' (remark)'
    )
    is "$(printf '%s\n' "$err" | grep -c '^installing one two$')" $((1 - ${#no_install} / 3)) \
        "installing, --no-install='$no_install'"
    like "$err" "^bootstrap: missing, by Debian's names: one two  \(remark\)" \
        "what is missing, --no-install='$no_install'"
    like "$err" '^bootstrap: to install them: sudo apt-get install --no-install-recommends one two$' \
        "a line to install it, --no-install='$no_install'"
done

# install_torch alone, where its log cannot be written: no folder, no file
sed -n '/^no_torch()/,/^}/p; /^install_torch()/,/^}/p' "$bootstrap" >"$scratch/part"
: >"$scratch/file"
mkdir -p "$scratch/folder/dscomm/torch.log"
for cache in file folder; do
    err=$(
        say() { echo "bootstrap: $*" >&2; }
        has_torch() { false; }
        install_missing() { :; }
        unset DSCOMM_TEST_PYTHON
        # Its own
        # shellcheck disable=SC2034
        XDG_CACHE_HOME=$scratch/$cache
        . "$scratch/part"
        install_torch 2>&1
        echo 'and goes on'
    )
    like "$err" 'PyTorch cannot be installed: .*/torch\.log cannot be written; set' \
        "a log that cannot be written: $cache"
    like "$err" '^and goes on$' "what comes after that: $cache"
done
tap_done
