# SPDX-License-Identifier: BSD-3-Clause
"""Libdscomm, its functions and structures, by ctypes.

The library is found as a program would find it, by its soname; variable LIBDSCOMM
may have the path of another one. Every call releases the interpreter's lock."""

from __future__ import annotations

import ctypes
import os
import re
from ctypes import c_char, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from ._prototypes import PROTOTYPES

VERSION = "0.1.0"
SONAME = "libdscomm.so.0"

IN_PROGRESS = 1
TIMEOUT_DEFAULT = -1
TIMEOUT_NONE = -2
ANY_SOURCE = -1
ANY_TAG = -1
TAG_MAX = 0x7FFFFFFF
NO_COLOR = -1
MEM_KEY_BYTES = 64
INT_MAX = 0x7FFFFFFF

# Types that are passed by value; enumerations are ints, and pointers c_void_p.
_VALUES: dict[str, Any] = {
    "void": None,
    "int": c_int,
    "double": ctypes.c_double,
    "size_t": c_size_t,
    "int64_t": c_int64,
    "uint64_t": c_uint64,
    "dscomm_status_t": c_int,
    "dscomm_dtype_t": c_int,
    "dscomm_op_t": c_int,
    "dscomm_coll_t": c_int,
}


class InitAttr(ctypes.Structure):
    """dscomm_init_attr_t"""

    _fields_ = [
        ("size", c_size_t),
        ("backend", c_char_p),
        ("init_method", c_char_p),
        ("store", c_void_p),
        ("has_rank", c_int),
        ("rank", c_int),
        ("world_size", c_int),
        ("timeout_ms", c_int),
        ("name", c_char_p),
    ]


class GroupAttr(ctypes.Structure):
    """dscomm_group_attr_t"""

    _fields_ = [
        ("size", c_size_t),
        ("backend", c_char_p),
        ("name", c_char_p),
        ("timeout_ms", c_int),
        ("members_only", c_int),
    ]


class StoreAttr(ctypes.Structure):
    """dscomm_store_attr_t"""

    _fields_ = [
        ("size", c_size_t),
        ("timeout_ms", c_int),
        ("serve", c_int),
        ("listen_fd", c_int),
        ("world_size", c_int),
    ]


class MessageInfo(ctypes.Structure):
    """dscomm_message_info_t"""

    _fields_ = [
        ("size", c_size_t),
        ("status", c_int),
        ("source", c_int),
        ("tag", c_int),
        ("bytes", c_size_t),
    ]


class FailureRecord(ctypes.Structure):
    """dscomm_failure_t"""

    _fields_ = [
        ("size", c_size_t),
        ("status", c_int),
        ("kind", c_int),
        ("rank", c_int),
        ("group_rank", c_int),
        ("coll", c_int),
        ("pid", c_int64),
        ("sequence", c_uint64),
        ("host", c_char * 72),
        ("group", c_char * 184),
        ("detail", c_char * 512),
    ]


def _ctype(declaration: str) -> Any:
    """The type of a parameter, with its name, or of a function's result."""
    if "*" not in declaration:
        return _VALUES[declaration.split()[0]]
    text = declaration.count("*") == 1 and declaration.startswith("const char ")
    return c_char_p if text else c_void_p


def prototypes() -> dict[str, tuple[Any, list[Any]]]:
    """The result and the parameters of each function, by its name."""
    parsed = {}
    for result, name, parameters in re.findall(
        r"^([\w ]+[ *])(dscomm_\w+)\(([^)]*)\);", PROTOTYPES, re.M
    ):
        words = [" ".join(word.split()) for word in parameters.split(",")]
        arguments = [] if words == ["void"] else [_ctype(word) for word in words]
        parsed[name] = _ctype(result), arguments
    return parsed


def _load() -> ctypes.CDLL:
    path = os.environ.get("LIBDSCOMM", SONAME)
    try:
        loaded = ctypes.CDLL(path)
        for name, (result, arguments) in prototypes().items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except OSError as error:
        raise ImportError(
            f"{error}: install dscomm, or name the folder of {SONAME} in "
            "LD_LIBRARY_PATH or its path in LIBDSCOMM"
        ) from None
    except AttributeError as error:
        raise ImportError(
            f"{error}: this package needs dscomm {VERSION} or newer"
        ) from None
    return loaded


library = _load()


def text(value: bytes | None) -> str:
    """A string of the library's, which may hold any byte."""
    return (value or b"").decode(errors="replace")
