/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp://: a client of torch's TCPStore protocol, whose server may be ours or
 * torch's, and the server too where this process hosts it. */
#include "config.h"

#include "lib/store-link.h"
#include "lib/store-own-will.h"
