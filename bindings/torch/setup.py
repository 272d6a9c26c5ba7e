# SPDX-License-Identifier: BSD-3-Clause
import glob
import shlex
import subprocess

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension


def pkg_config(option):
    return shlex.split(
        subprocess.check_output(["pkg-config", option, "dscomm-compression"], text=True)
    )


libraries = pkg_config("--libs")
setup(
    ext_modules=[
        CppExtension(
            "dscomm_torch._C",
            sorted(glob.glob("csrc/*.cpp")),
            extra_compile_args=["-O2", "-std=c++20"] + pkg_config("--cflags"),
            extra_link_args=libraries
            + ["-Wl,-rpath," + word[2:] for word in libraries if word.startswith("-L")],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
