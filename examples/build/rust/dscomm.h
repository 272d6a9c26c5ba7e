/* SPDX-License-Identifier: BSD-3-Clause */
/* What bindgen reads */
#include <dscomm/dscomm.h>
