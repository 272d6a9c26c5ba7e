// SPDX-License-Identifier: BSD-3-Clause
// Tensors that dscomm moves without copies.
#pragma once

#include "group.hpp"

#include <ATen/ATen.h>

namespace dscomm_torch
{

// A tensor on the CPU of size elements, in memory that is registered with the
// group. After the group has ended it is a tensor like any other.
at::Tensor allocate(const std::shared_ptr<Group> &group, int64_t size,
                    const at::TensorOptions &options);

} // namespace dscomm_torch
