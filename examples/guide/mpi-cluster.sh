#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
dscomm env --mpirun --nodes 1 --ranks-per-node 4 -- mpirun -n 4 hello/hello
mpirun -n 4 hello/hello
