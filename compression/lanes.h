/* SPDX-License-Identifier: BSD-3-Clause */
/* LANES before a loop: its rounds do not depend on each other, so that the
 * compiler makes vectors of it. */
#ifndef COMPRESSION_LANES_H
#define COMPRESSION_LANES_H

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#define LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES _Pragma("GCC ivdep")
#endif

#endif
