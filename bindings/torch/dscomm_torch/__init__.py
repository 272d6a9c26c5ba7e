# SPDX-License-Identifier: BSD-3-Clause
"""The backend "dscomm" of torch.distributed.

Installed beside torch, it is registered when torch is imported:

    torch.distributed.init_process_group("dscomm")
"""

import atexit
import os
import socket
import sys
import warnings


def _autoload():
    """Entry point of the group torch.backends. This module's import registers.

    Torch calls it when torch is imported, perhaps by the next line.
    """


import torch  # noqa: E402, F401, before the extension that links it
import torch.distributed as dist  # noqa: E402

if dist.is_available():
    from . import _coalescing
    from .hooks import Int8State as Int8State
    from .hooks import OnebitState as OnebitState
    from .hooks import TopkState as TopkState
    from .hooks import int8_hook as int8_hook
    from .hooks import onebit_hook as onebit_hook
    from .hooks import topk_hook as topk_hook


@atexit.register
def _finish():
    """End the extension's threads: what they need of Python goes with it.

    Called after all that is registered once torch has been imported.
    """
    extension = sys.modules.get(f"{__name__}._C")
    if extension:
        extension.finish()


def _create(options, _more=None):
    from . import _C

    return _C.create_backend(options)


def register():
    """Register the backend; later calls do nothing."""
    if not dist.is_available() or hasattr(dist.Backend, "DSCOMM"):
        return
    dist.Backend.register_backend(
        "dscomm", _create, extended_api=True, devices=["cpu", "cuda"]
    )
    _coalescing.install()


def check_secret():
    """Raise under dscomm run with a secret, where torch would try until its time-out."""
    secrets = ("DSCOMM_JOB_SECRET", "DSCOMM_JOB_SECRET_FILE")
    # dscomm run sets both, and torchrun the second only.
    of_dscomm = "DSCOMM_RECORDER" in os.environ and os.environ.get(
        "TORCHELASTIC_USE_AGENT_STORE"
    )
    if of_dscomm and any(os.environ.get(name) for name in secrets):
        raise RuntimeError(
            "dscomm run has given the job a secret, which torch's client of its store "
            "cannot prove; start the job by dscomm run --no-secret"
        )


def set_environment():
    """Set torch's variables to what any launcher says, but those that are set."""
    from . import _C

    values = _C.environment()
    if values["MASTER_PORT"] == "0":  # a rank alone: any port that is free
        with socket.create_server(("localhost", 0)) as server:
            values["MASTER_PORT"] = str(server.getsockname()[1])
    for name, value in values.items():
        os.environ.setdefault(name, value)


def init_from_mpi(backend="dscomm", **options):
    """Call init_process_group() with what any launcher says: mpirun, srun, ...

    Variables that are set already stay. options are those of
    torch.distributed.init_process_group(). Without a launcher it makes one rank.
    """
    if options.get("init_method") in (None, "env://") and options.get("store") is None:
        check_secret()
    set_environment()
    dist.init_process_group(backend, **options)


# Torch may be importing this module, and must not fail by it.
try:
    register()
except Exception as error:
    warnings.warn(f"dscomm is not registered: {error}")
