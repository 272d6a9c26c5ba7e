#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch's own tests of backends, on 2, 3 and 4 ranks: what gloo passes here, dscomm passes,
# but for what torch-suite.skips lists. Tests of collectives that gloo lacks are those of
# torch's mpi. TORCH_SUITE_TESTS, a regular expression, selects tests. Not in TESTS: it takes
# half an hour.

. "$abs_top_srcdir/tests/tap.sh"
. "$abs_top_srcdir/tests/bindings/site.sh"
has expecttest, hypothesis || skip_all "$python has no expecttest or hypothesis"

tab=$(printf '\t')
wanted=${TORCH_SUITE_TESTS:-.}
skips=$programs/torch-suite.skips

# counts FILE: "3 pass, 2 skip"
counts()
{
    cut -f 2 "$1" | sort | uniq -c | awk '{ printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2 }'
}

# report RESULTS RANKS: a result for each line
report()
{
    while IFS=$tab read -r name passed _ reason; do
        [ "$passed" = pass ]
        result $? "$name, $2 ranks" || echo "# $passed: $reason"
    done <"$1"
}

for ranks in 2 3 4; do
    suite --backend gloo --ranks $ranks --tests "$wanted"
    mv "$results" "$scratch/gloo"
    suite --ranks $ranks --tests "$wanted"
    echo "# $ranks ranks: gloo $(counts "$scratch/gloo"); dscomm $(counts "$results")"
    awk -F '\t' -v OFS='\t' 'FILENAME == ARGV[1] { if (!/^#/) skipped[$1]; next }
        FILENAME == ARGV[2] { result[$1] = $2 OFS $3 OFS $4; next }
        $2 == "pass" && !($1 in skipped) {
            print $1, ($1 in result) ? result[$1] : "missing" }' \
        "$skips" "$results" "$scratch/gloo" >"$scratch/judged"
    [ -s "$scratch/judged" ]
    result $? "gloo passes tests, $ranks ranks"
    report "$scratch/judged" $ranks
    grep -v '^#' "$skips" | while IFS=$tab read -r name reason; do
        echo "# not judged: $name $reason"
    done
    suite --like mpi --ranks $ranks --tests all_to_all
    grep -v "${tab}skip$tab" "$results" >"$scratch/judged"
    report "$scratch/judged" $ranks
done
tap_done
