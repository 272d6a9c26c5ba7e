/* SPDX-License-Identifier: BSD-3-Clause */
/* The umbrella header: includes everything that a program needs. A backend
 * module also includes <dscomm/backend.h>. */
#ifndef DSCOMM_DSCOMM_H
#define DSCOMM_DSCOMM_H

#include <dscomm/collective.h>
#include <dscomm/device.h>
#include <dscomm/env.h>
#include <dscomm/failure.h>
#include <dscomm/group.h>
#include <dscomm/hook.h>
#include <dscomm/info.h>
#include <dscomm/init.h>
#include <dscomm/log.h>
#include <dscomm/memory.h>
#include <dscomm/op.h>
#include <dscomm/p2p.h>
#include <dscomm/status.h>
#include <dscomm/store.h>
#include <dscomm/types.h>
#include <dscomm/version.h>
#include <dscomm/work.h>

#endif
