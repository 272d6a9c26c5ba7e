/* SPDX-License-Identifier: BSD-3-Clause */
/* LANES before a loop: its rounds do not depend on each other, so that the
 * compiler makes vectors of it. At -O0 and with sanitizers it makes none, which
 * clang need not say. */
#ifndef LIB_LANES_H
#define LIB_LANES_H

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#define LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES _Pragma("GCC ivdep")
#endif

#endif
