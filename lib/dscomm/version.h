/* SPDX-License-Identifier: BSD-3-Clause */
/* The version a program was compiled against, and the one it runs with. */
#ifndef DSCOMM_VERSION_H
#define DSCOMM_VERSION_H

#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSCOMM_VERSION_MAJOR 0
#define DSCOMM_VERSION_MINOR 1
#define DSCOMM_VERSION_MICRO 0
#define DSCOMM_VERSION_STRING "0.1.0"

/* One number that grows with every release: major * 1000000 + minor * 1000 +
 * micro. */
#define DSCOMM_VERSION                                                         \
    (DSCOMM_VERSION_MAJOR * 1000000 + DSCOMM_VERSION_MINOR * 1000 +            \
     DSCOMM_VERSION_MICRO)

/* Version of the library that the program runs with, as DSCOMM_VERSION. Compare
 * it with the macro to learn whether a newer library is in use. MT: safe. */
DSCOMM_API int dscomm_version(void);

/* The same as text, "0.1.0"; static. MT: safe. */
DSCOMM_API const char *dscomm_version_string(void);

#ifdef __cplusplus
}
#endif

#endif
