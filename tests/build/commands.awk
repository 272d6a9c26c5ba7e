# SPDX-License-Identifier: BSD-3-Clause
# Prints options that texts give to a command of dscomm, and that it does not have:
#
#     awk -f commands.awk HELP TEXT...
#
# HELP has, for each command, a line "== COMMAND" and what dscomm COMMAND --help prints.
# An option is looked for in lines with "dscomm COMMAND", up to the first word that is
# neither an option nor the value of one.

FILENAME == ARGV[1] && $1 == "==" {
    command = $2
    known[command]
    next
}

FILENAME == ARGV[1] {
    while (match($0, /-[A-Za-z],|--[a-z0-9_-]+=?/)) {
        option = substr($0, RSTART, RLENGTH)
        gsub(/_/, "-", option)
        # "-n, --ranks=N": both have a value.
        takes = substr($0, RSTART) ~ /^(-[A-Za-z], )?--[a-z0-9_-]+=/
        sub(/[=,]$/, "", option)
        options[command, option] = takes
        $0 = substr($0, RSTART + RLENGTH)
    }
    next
}

{
    gsub(/[*`\\]/, "")
    n = split($0, words, /[ \t|,;()"]+/)
    for (i = 1; i < n; i++) {
        if (words[i] !~ /(^|\/)dscomm$/ || !(words[i + 1] in known))
            continue
        command = words[++i]
        while (i < n && words[i + 1] ~ /^-/) {
            option = words[++i]
            given = sub(/=.*/, "", option)
            sub(/[.:]$/, "", option)
            gsub(/_/, "-", option)
            if (option == "--")
                break
            if (!((command, option) in options) && option !~ /^(-h|--help)$/)
                print FILENAME ":" FNR ": dscomm " command " " option
            else if (options[command, option] == 1 && !given)
                i++
        }
    }
}
