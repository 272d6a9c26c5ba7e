#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
torchrun --no-python --standalone --nproc-per-node 2 hello/hello &&
    torchrun --standalone --nproc-per-node 2 torch/ddp.py --backend dscomm
