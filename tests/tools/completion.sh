#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What bash completes, from the program's own help.

. "$abs_top_srcdir/tests/tap.sh"

command -v bash >/dev/null || skip_all 'no bash'
export COMPLETION="$abs_top_srcdir/tools/completion/dscomm"
export PROGRAM="$abs_top_builddir/tools/dscomm"

# completes WORD...: what the last of these words may become
completes()
{
    bash -c '
        . "$COMPLETION"
        COMP_WORDS=(dscomm "$@") COMP_CWORD=$#
        _dscomm "$PROGRAM" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@" | sort | tr '\n' ' '
}

is "$(completes '')" '--help --version analyze env help info perf run top topo tune ' 'commands'
is "$(completes i)" 'info ' 'the beginning of one'
is "$(completes help p)" 'perf ' 'a command after help'
is "$(completes run --m)" '--master-addr= --master-port= --master= --max-restarts= ' \
    'options of run'
is "$(completes perf --a)" '--accelerator= --against= --agg_iters= --async ' 'options of perf'
is "$(completes perf -n 2 all_r)" 'all_reduce ' 'operations of perf'
is "$(completes perf --backend = sh)" 'shm ' 'a backend after "="'
is "$(completes perf --backend sh)" 'shm ' 'a backend after a blank'
is "$(completes perf --compress =)" 'bfloat16 float16 int8 none onebit topk ' 'all codecs'
is "$(completes perf --compress o)" 'onebit ' 'a codec'
is "$(completes perf --compare all_r)" 'all_reduce ' 'an alternative'
is "$(completes perf --compare = all_reduce,reduce+)" 'all_reduce,reduce+broadcast ' \
    'another one'
is "$(completes tune --)" '--backend= --help --machine --output= --ranks= --time= ' 'options of tune'
is "$(completes topo --)" '--backend= --elements= --format= --help --host --input= --iters= --json --most= --nranks= --output= --p2p --ranks --tensors= --trace= --warmup_iters= ' 'options of topo'
is "$(completes info --j)" '--json ' 'an option without a value'
is "$(completes run ./pro)" ' ' 'a program is left to bash'
tap_done
