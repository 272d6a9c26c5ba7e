#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
make digits/digits &&
    dscomm run -n 4 digits/digits --compress onebit --warmup 20 digits/digits.csv.gz
dscomm perf -n 4 --compress onebit -b 1M -e 1M all_reduce
