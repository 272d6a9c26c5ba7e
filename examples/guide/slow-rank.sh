#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
cc -o guide/slow guide/slow.c $(pkg-config --cflags --libs dscomm)

# Rank 2 is late by 0.1 s in each sum.
DSCOMM_PROFILE=summary,stragglers dscomm run -n 4 guide/slow 2 100

# It does not come at all: the job fails after 5 seconds, and leaves a record.
DSCOMM_DUMP=dumps DSCOMM_TIMEOUT=5 dscomm run -n 4 guide/slow 2 60000
dscomm analyze dumps
