#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# NODE is 0 on HOST, and 1 on the other host. HOST is the same on both.
export DSCOMM_JOB_SECRET_FILE=job-secret
dscomm run --nnodes 2 --node-rank "$NODE" --master "$HOST" -n 2 hello/hello
