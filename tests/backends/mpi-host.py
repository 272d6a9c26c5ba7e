# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py and libdscomm in one process: both sum over the same ranks.

Usage: mpi-host.py LIBDSCOMM. Exit status 77: there is no mpi4py.
"""

import ctypes
import sys

try:
    from mpi4py import MPI
except ImportError:
    sys.exit(77)

INT32, SUM = 4, 0
dscomm = ctypes.CDLL(sys.argv[1])
dscomm.dscomm_last_error.restype = ctypes.c_char_p
dscomm.dscomm_all_reduce.argtypes = [
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
    ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
dscomm.dscomm_finalize.argtypes = [ctypes.c_void_p]


def need(status):
    if status < 0:
        sys.exit(dscomm.dscomm_last_error().decode())


world = ctypes.c_void_p()
need(dscomm.dscomm_init(None, ctypes.byref(world)))
comm = MPI.COMM_WORLD
size = comm.Get_size()
for turn in range(10):
    mine = ctypes.c_int(comm.Get_rank() + turn)
    total = ctypes.c_int(-1)
    need(dscomm.dscomm_all_reduce(world, ctypes.addressof(mine),
                                  ctypes.addressof(total), 1, INT32, SUM,
                                  None))
    want = size * (size - 1) // 2 + size * turn
    if total.value != want or comm.allreduce(mine.value) != want:
        sys.exit("turn %d: %d, want %d" % (turn, total.value, want))
need(dscomm.dscomm_finalize(world))
print("content", flush=True)
