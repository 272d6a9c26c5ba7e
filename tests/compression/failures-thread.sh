#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Calls that fail, as failures.c has them, where a thread of the library goes on
# with works.

DSCOMM_PROGRESS=thread
export DSCOMM_PROGRESS
exec "$abs_top_builddir/tests/compression/failures.t"
