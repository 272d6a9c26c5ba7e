// SPDX-License-Identifier: BSD-3-Clause
// A store of torch's as one of dscomm's, by which the ranks of a group meet.
#pragma once

#include <atomic>
#include <dscomm/dscomm.h>
#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace dscomm_torch
{

// Opens a store that calls clones of this one, lest calls of the program's that
// wait delay it, or this one if it has none. It fails without a call once
// *stopped is true. Throws what torch throws if it fails. The caller closes it
// by dscomm_store_close().
dscomm_store_t *open_store(const c10::intrusive_ptr<c10d::Store> &store,
                           std::chrono::milliseconds timeout,
                           std::shared_ptr<std::atomic<bool>> stopped);

} // namespace dscomm_torch
