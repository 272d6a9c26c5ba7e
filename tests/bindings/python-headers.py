# SPDX-License-Identifier: BSD-3-Clause
"""Prints C that compiles if the Python package agrees with the public headers.

Each of its prototypes is a declaration once more, and each structure and constant an
assertion. With an argument: prints the functions that it has."""

import ctypes
import sys

from dscomm import _buffers, _library, calls, errors, group
from dscomm._prototypes import PROTOTYPES

STRUCTURES = {
    "dscomm_init_attr_t": _library.InitAttr,
    "dscomm_group_attr_t": _library.GroupAttr,
    "dscomm_store_attr_t": _library.StoreAttr,
    "dscomm_message_info_t": _library.MessageInfo,
    "dscomm_failure_t": _library.FailureRecord,
}
CONSTANTS = {
    "DSCOMM_IN_PROGRESS": _library.IN_PROGRESS,
    "DSCOMM_TIMEOUT_DEFAULT": _library.TIMEOUT_DEFAULT,
    "DSCOMM_TIMEOUT_NONE": _library.TIMEOUT_NONE,
    "DSCOMM_ANY_SOURCE": _library.ANY_SOURCE,
    "DSCOMM_ANY_TAG": _library.ANY_TAG,
    "DSCOMM_TAG_MAX": _library.TAG_MAX,
    "DSCOMM_NO_COLOR": _library.NO_COLOR,
    "DSCOMM_MEM_KEY_BYTES": _library.MEM_KEY_BYTES,
    "DSCOMM_DTYPE_COUNT": len(_buffers.DTYPES),
    "DSCOMM_PREMUL_SUM": len(calls.Op),
}
ENUMERATIONS = {
    "DSCOMM_": [*errors.Status, *calls.Op],
    "DSCOMM_FAILURE_": [kind for kind in errors.FailureKind if kind >= 0],
    "DSCOMM_CAP_": [*group.Capabilities],
}


def check(condition):
    print(f'_Static_assert({condition}, "{condition}");')


def main():
    prototypes = _library.prototypes()
    if len(sys.argv) > 1:
        print("\n".join(prototypes))
        return
    print("#include <dscomm/dscomm.h>", PROTOTYPES)
    assert len(prototypes) == PROTOTYPES.count(";")
    for name, (result, arguments) in prototypes.items():
        for kind in [result, *arguments]:
            assert kind is None or issubclass(kind, ctypes._SimpleCData), name
    for name, kind in _library._VALUES.items():
        if kind is not None:
            check(f"sizeof({name}) == {ctypes.sizeof(kind)}")
            check(f"(({name})1.5 == 1.5) == {int(kind is ctypes.c_double)}")
    for name, structure in STRUCTURES.items():
        check(f"sizeof({name}) == {ctypes.sizeof(structure)}")
        for field, kind in structure._fields_:
            offset = getattr(structure, field).offset
            check(f"offsetof({name}, {field}) == {offset}")
            check(f"sizeof((({name} *)0)->{field}) == {ctypes.sizeof(kind)}")
    for name, value in CONSTANTS.items():
        check(f"{name} == {value}")
    for prefix, members in ENUMERATIONS.items():
        for member in members:
            check(f"{prefix}{member.name} == {member.value}")
    for value, name in enumerate(_buffers.DTYPES):
        check(f"DSCOMM_{name.removesuffix('fn').upper()} == {value}")


main()
