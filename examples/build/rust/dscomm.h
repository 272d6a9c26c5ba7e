/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers for bindgen */
#include <dscomm/dscomm.h>
