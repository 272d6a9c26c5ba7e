# SPDX-License-Identifier: BSD-3-Clause
"""A recipe for Spack 1.0 or newer: folder packages/dscomm of a repository of yours takes
this file."""

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class Dscomm(AutotoolsPackage):
    """Process groups and collective communication for C programs: torch.distributed
    without PyTorch, over shared memory, TCP, RDMA or MPI."""

    license("BSD-3-Clause")

    # Whoever publishes dscomm adds url and sha256. Until then a release that is unpacked
    # in FOLDER is built after "spack develop --path FOLDER dscomm@0.1.0".
    version("0.1.0")

    variant("tools", default=True, description="The program dscomm")
    variant("mpi", default=True, description="The part of backend mpi for one MPI")
    variant("ibverbs", default=False, description="Backend for RDMA devices")
    variant("cuda", default=False, description="Compression on CUDA devices")
    variant(
        "cairo", default=False, when="+tools", description="Pictures by dscomm perf and topo"
    )

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("pkgconfig", type="build")
    depends_on("glib@2.66:")
    depends_on("hwloc@2.2:")
    depends_on("json-glib@1.6:", when="+tools")
    depends_on("mpi", when="+mpi")
    depends_on("rdma-core", when="+ibverbs")
    depends_on("cuda", when="+cuda")
    depends_on("cairo+png+svg", when="+cairo")

    def configure_args(self):
        args = self.enable_or_disable("tools")
        args.append(f"--with-hwloc={self.spec['hwloc'].prefix}")
        for name, package in (
            ("mpi", "mpi"),
            ("ibverbs", "rdma-core"),
            ("cuda", "cuda"),
            ("cairo", "cairo"),
        ):
            if self.spec.satisfies(f"+{name}"):
                args.append(f"--with-{name}={self.spec[package].prefix}")
            else:
                args.append(f"--without-{name}")
        return args

    def check(self):
        """Needs neither a network nor a launcher."""
        with working_dir(self.build_directory):
            make("check-units")
