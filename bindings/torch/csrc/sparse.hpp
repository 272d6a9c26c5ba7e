// SPDX-License-Identifier: BSD-3-Clause
// Sums of sparse tensors, which dscomm has no call for.
#pragma once

#include <ATen/ATen.h>
#include <dscomm/dscomm.h>

namespace dscomm_torch
{

// Returns the sum of the sparse COO tensors of all ranks, coalesced. Blocking.
// Throws if their shapes differ.
at::Tensor sparse_sum(dscomm_group_t *group, const at::Tensor &tensor);

} // namespace dscomm_torch
