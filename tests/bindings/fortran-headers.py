# SPDX-License-Identifier: BSD-3-Clause
"""Prints C that compiles if the Fortran module in argv[1] agrees with the public headers.

Each constant and structure becomes assertions, each interface a call whose arguments have
the interface's types."""

import re
import sys

TYPES = {
    "c_int": "int",
    "c_size_t": "size_t",
    "c_int8_t": "int8_t",
    "c_int64_t": "int64_t",
    "c_double": "double",
    "c_char": "char",
}


def c_type(declaration):
    """The type in C of "integer(c_int)", "type(c_ptr)" or the like."""
    kind = re.search(r"\((?:kind=)?(\w+)\)", declaration)[1]
    return TYPES.get(kind, "void *")


def by_reference(declaration):
    """The type of the pointer that an argument without "value" is in C."""
    handle = re.search(r"type\((dscomm_\w+)\)", declaration)
    if not handle:
        target = c_type(declaration)
    elif handle[1] in ("dscomm_failure", "dscomm_message_info"):
        target = f"{handle[1]}_t"
    else:
        target = f"{handle[1]}_t *"
    return f"{target} const *" if "intent(in)" in declaration else f"{target} *"


def variables(text):
    """(declaration, name, length of an array or None) of each variable."""
    for declaration, names in re.findall(r"^ *([a-z].*?) :: (.*)$", text, re.M):
        for name, length in re.findall(r"(\w+)(?:\((\d+|\*)\))?(?: = [^,]*)?", names):
            yield declaration, name, length


def structure(name, body):
    members = [
        (f"{c_type(declaration)} {member}" + (f"[{length}]" if length else ""), member)
        for declaration, member, length in variables(body)
    ]
    ours = f"struct fortran_{name}"
    print(f"{ours} {{ {' '.join(text + ';' for text, _ in members)} }};")
    assertions = [f"sizeof({ours}) == sizeof({name}_t)"]
    for _, member in members:
        assertions.append(f"offsetof({ours}, {member}) == offsetof({name}_t, {member})")
        assertions.append(
            f"sizeof((({ours} *)0)->{member}) == sizeof((({name}_t *)0)->{member})"
        )
    for assertion in assertions:
        print(f'_Static_assert({assertion}, "{assertion}");')


def interface(name, arguments, result, body):
    declarations = {member: text for text, member, _ in variables(body)}
    types = {
        member: (
            c_type(text)
            if member == result or "value" in text
            else by_reference(text)
        )
        for member, text in declarations.items()
    }
    parameters = ", ".join(f"{types[argument]} {argument}" for argument in arguments)
    value = "" if not result else "return "
    kind = "void" if not result else types[result].replace("void *", "const void *")
    print(f"{kind} call_{name}({parameters or 'void'});")
    print(f"{kind} call_{name}({parameters or 'void'}) {{")
    print(f"    {value}{name}({', '.join(arguments)});\n}}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = re.sub(r" *&\n *", " ", file.read())
    print("#include <dscomm/dscomm.h>\n#include <string.h>")
    for name, value in re.findall(r"parameter :: (DSCOMM_\w+) = (-?\d+)", text):
        print(f'_Static_assert({name} == {value}, "{name}");')
    for name, body in re.findall(r"type, bind\(c\) :: (\w+)\n(.*?)end type", text, re.S):
        if "handle" not in body:
            structure(name, body)
    pattern = (
        r"(?:function|subroutine) c_\w+\((.*?)\) bind\(c, name='(\w+)'\)"
        r"(?: result\((\w+)\))?\n(.*?)end (?:function|subroutine)"
    )
    for arguments, name, result, body in re.findall(pattern, text, re.S):
        interface(name, [word for word in arguments.split(", ") if word], result, body)


main()
