# SPDX-License-Identifier: BSD-3-Clause
"""The smallest job in Python: every rank gives its number, and all get the sum.

dscomm run -n 4 python3 hello.py
"""

import array

import dscomm

with dscomm.init() as world:
    total = array.array("i", [world.rank])
    world.all_reduce(total)
    print(f"rank {world.rank} of {world.size}: the sum of all ranks is {total[0]}")
