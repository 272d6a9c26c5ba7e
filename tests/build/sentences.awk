# SPDX-License-Identifier: BSD-3-Clause
# Prints the sentences of failures in C sources, each with its file after a tab: the
# formats of calls of the functions that the first file lists. Strings that follow each
# other are joined, a macro that is a string is replaced, and each conversion is "...". A
# format "c ? one : other" is two sentences. Texts of one word are none. Headers must
# come before the sources that use their macros.

# The number of the format among the arguments of the function, from 0; -1: it has none
function place(function_name) {
    if ((FILENAME ":" function_name) in places)
        return places[FILENAME ":" function_name]
    return function_name in places ? places[function_name] : -1
}

# Whether the token is in a format; depth counts open brackets in a listed call.
function in_format() {
    return depth && argument[depth] == wanted[depth]
}

# Ends the text that has been joined, and prints it if it is a sentence.
function text_end(    text) {
    text = joined
    joined = ""
    gsub(/%%/, "\001", text)
    gsub(/%[-+ #0]*(\*|[0-9]+)?(\.(\*|[0-9]+)?)?(hh|h|ll|l|j|z|t)?[a-zA-Z]/, "...", text)
    gsub(/\.\.\.(\.\.\.)+/, "...", text)
    gsub(/\001/, "%", text)
    gsub(/\\"/, "\"", text)
    gsub(/\\[nt]/, " ", text)
    gsub(/  +/, " ", text)
    gsub(/^ +| +$/, "", text)
    if (text ~ /[a-zA-Z].* .*[a-zA-Z]/)
        print text "\t" FILENAME
}

# Adds what a macro stands for: a conversion's letters, a string, or something unknown.
function macro_add(name) {
    if (name ~ /^(PRI|G_G)/)
        joined = joined "d"
    else if ((FILENAME, name) in own)
        joined = joined own[FILENAME, name]
    else if (name in shared)
        joined = joined shared[name]
    else if (joined != "")
        joined = joined "%s"
}

function bracket_open(kind,    outer, format) {
    format = kind == "(" ? place(before) : -1
    if (!depth && format < 0)
        return
    outer = in_format() && kind == "(" && before !~ /^[a-z]/
    argument[++depth] = 0
    wanted[depth] = format >= 0 ? format : outer ? 0 : -1
    if (!outer)
        text_end()
}

function token_read(token) {
    if (token ~ /^[(\[{]$/)
        bracket_open(token)
    else if (depth && token ~ /^[)\]}]$/) {
        text_end()
        depth--
    } else if (depth && token ~ /^[,?:;]$/) {
        text_end()
        argument[depth] += token == ","
    } else if (in_format() && token ~ /^"/)
        joined = joined substr(token, 2, length(token) - 2)
    else if (in_format() && token ~ /^[A-Z][A-Za-z0-9_]*$/)
        macro_add(token)
    before = token
}

function macro_define(line, name) {
    match(line, /"([^"\\]|\\.)*"/)
    line = substr(line, RSTART + 1, RLENGTH - 2)
    if ((FILENAME, name) in own && own[FILENAME, name] != line)
        line = "%s"
    own[FILENAME, name] = line
    if (FILENAME ~ /\.h$/)
        shared[name] = line
}

NR == FNR {
    if (!/^#/)
        places[$1] = $2
    next
}
FNR == 1 { depth = commented = 0; joined = "" }
/^#define [A-Z][A-Z0-9_]* +"([^"\\]|\\.)*" *(\/\*.*)?$/ {
    macro_define($0, $2)
    next
}
{
    line = $0
    if (commented && !match(line, /\*\//))
        next
    if (commented)
        line = substr(line, RSTART + 2)
    commented = 0
    while (match(line, /\/\*|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|[A-Za-z_][A-Za-z0-9_]*|[^ \t\\]/)) {
        token = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (token != "/*")
            token_read(token)
        else if (match(line, /\*\//))
            line = substr(line, RSTART + 2)
        else {
            commented = 1
            break
        }
    }
}
