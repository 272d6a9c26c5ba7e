# SPDX-License-Identifier: BSD-3-Clause
# Makes links of a page's references to others, for HTML:
#
#     awk -v pages='PAGE.3 ...' -f links.awk links PAGE.3.rst
#
# links is doc/links. A reference **dscomm_x**\ (3) becomes
# `dscomm_x(3) <PAGE.3.html>`__, where PAGE.3 describes dscomm_x. Names that are no
# page of dscomm stay as they are.

BEGIN {
    for (n = split(pages, page); n > 0; n--)
        target[page[n]] = page[n]
}

FILENAME == ARGV[1] { target[$1] = $2; next }

{
    done = ""
    while (match($0, /\*\*[a-z0-9_-]+\*\*\\ \([1-9]\)/)) {
        reference = substr($0, RSTART, RLENGTH)
        name = substr(reference, 3, RLENGTH - 9)
        section = substr(reference, RLENGTH - 1, 1)
        if ((name "." section) in target)
            reference = "`" name "(" section ") <" target[name "." section] ".html>`__"
        done = done substr($0, 1, RSTART - 1) reference
        $0 = substr($0, RSTART + RLENGTH)
    }
    print done $0
}

END {
    if (FILENAME != "index.rst")
        print "\n`The manual of dscomm <index.html>`__"
}
