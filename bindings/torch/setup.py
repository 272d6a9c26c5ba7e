# SPDX-License-Identifier: BSD-3-Clause
import glob
import os
import shlex
import subprocess

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension


def pkg_config(option):
    try:
        found = subprocess.check_output(
            ["pkg-config", option, "dscomm-compression"], text=True
        )
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(
            "pkg-config finds no dscomm-compression: install dscomm first; if it has a "
            "prefix of its own, set PKG_CONFIG_PATH to its lib/pkgconfig"
        ) from None
    return shlex.split(found)


def one_source():
    """Return a file that includes all, since torch's headers take most of the time."""
    os.makedirs("build", exist_ok=True)
    with open("build/all.cpp", "w") as all_sources:
        for name in sorted(glob.glob("csrc/*.cpp")):
            print(f'#include "../{name}"', file=all_sources)
    return "build/all.cpp"


libraries = pkg_config("--libs")
setup(
    ext_modules=[
        CppExtension(
            "dscomm_torch._C",
            [one_source()],
            extra_compile_args=["-O2", "-std=c++20"] + pkg_config("--cflags"),
            extra_link_args=libraries
            + ["-Wl,-rpath," + word[2:] for word in libraries if word.startswith("-L")],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
