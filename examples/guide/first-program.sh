#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
cc -o hello/hello hello/hello.c $(pkg-config --cflags --libs dscomm) &&
    dscomm run -n 4 hello/hello
