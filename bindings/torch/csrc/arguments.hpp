// SPDX-License-Identifier: BSD-3-Clause
// Checks of what torch's calls are given: lists of tensors, sizes and tags.
#pragma once

#include "work.hpp"

namespace dscomm_torch
{

// Throw a sentence about what is wrong; what: the call. A list has count
// tensors, alike in type and device to another one.
void check_list(const std::vector<at::Tensor> &tensors, size_t count,
                const at::Tensor &like, const char *what);
// A tensor that is written and one that is read.
void check_pair(const at::Tensor &output, const at::Tensor &input,
                const char *what);

// Whether all tensors have count elements.
bool equal_sizes(const std::vector<at::Tensor> &tensors, int64_t count);
std::vector<int64_t> numels(const std::vector<at::Tensor> &tensors);
// Adds the counts and displacements of tensors in a row, as dscomm takes them.
void add_counts(Call &call, const std::vector<int64_t> &counts, size_t unit);
// Whether other shares memory with a tensor of the list, unless it is number
// own itself.
bool overlap_any(const std::vector<at::Tensor> &list, const at::Tensor &other,
                 int own);
// Elements of each rank, of whose rows of the first dimension sizes tells the
// numbers; empty: equal ones.
std::vector<int64_t> splits_of(const at::Tensor &tensor,
                               const std::vector<int64_t> &sizes, int ranks,
                               const char *what);
// Throws if the tag of a message is negative: to dscomm, -1 is any tag.
void check_tag(int tag);

} // namespace dscomm_torch
