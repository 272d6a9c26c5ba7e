// SPDX-License-Identifier: BSD-3-Clause
// dscomm for C++17: owners of its handles, exceptions, and buffers that know
// their type and length. Each function calls the C function of its name, whose
// rules hold (<dscomm/dscomm.h>). What is not here is called with the handle
// that get() returns.
#ifndef DSCOMM_DSCOMM_HPP
#define DSCOMM_DSCOMM_HPP

#include <dscomm/buffer.hpp>
#include <dscomm/calls.hpp>
#include <dscomm/env.hpp>
#include <dscomm/error.hpp>
#include <dscomm/group.hpp>
#include <dscomm/store.hpp>
#include <dscomm/work.hpp>

#endif
