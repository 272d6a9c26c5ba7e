// SPDX-License-Identifier: BSD-3-Clause
#include "sparse.hpp"

#include "error.hpp"
#include "tensors.hpp"

#include <algorithm>
#include <vector>

namespace dscomm_torch
{
namespace
{

// The number of elements, the number of sparse dimensions, and the sizes, of
// this rank's tensor.
std::vector<int64_t> shape_of(const at::Tensor &tensor)
{
    std::vector<int64_t> shape{tensor._nnz(), tensor.sparse_dim()};

    shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
    return shape;
}

// Returns the numbers of elements of all ranks, whose shapes must be equal.
std::vector<int64_t> gather_counts(dscomm_group_t *group,
                                   const at::Tensor &tensor)
{
    const std::vector<int64_t> mine = shape_of(tensor);
    const size_t ranks = dscomm_group_size(group), width = mine.size();
    std::vector<int64_t> all(ranks * width), counts;

    check(dscomm_all_gather(group, mine.data(), all.data(), width, DSCOMM_INT64,
                            nullptr));
    for (size_t rank = 0; rank < ranks; rank++) {
        const int64_t *theirs = &all[rank * width];
        TORCH_CHECK(std::equal(theirs + 1, theirs + width, mine.begin() + 1),
                    "dscomm: all_reduce: the sparse tensor of rank ", rank,
                    " has another shape than that of rank ",
                    dscomm_group_rank(group));
        counts.push_back(theirs[0]);
    }
    return counts;
}

// Returns the rows of all ranks, of which rank i has counts[i].
at::Tensor gather_rows(dscomm_group_t *group, const at::Tensor &rows,
                       const std::vector<int64_t> &counts)
{
    std::vector<int64_t> sizes = rows.sizes().vec();
    std::vector<size_t> units;

    sizes[0] = 0;
    for (const int64_t count : counts)
        sizes[0] += count;
    const at::Tensor from = rows.contiguous(),
                     to = at::empty(sizes, rows.options());
    const Buffer send = moved(from), recv = moved(to);
    // A row in units of the buffer's type.
    const size_t row = sizes[0] ? recv.count / sizes[0] : 0;
    for (const int64_t count : counts)
        units.push_back(count * row);
    check(dscomm_all_gather_v(group, send.data, send.count, recv.data,
                              units.data(), nullptr, recv.dtype, nullptr));
    return to;
}

} // namespace

at::Tensor sparse_sum(dscomm_group_t *group, const at::Tensor &tensor)
{
    const at::Tensor mine = tensor.coalesce();
    const std::vector<int64_t> counts = gather_counts(group, mine);
    // The indices have a column for each element.
    const at::Tensor indices = gather_rows(group, mine.indices().t(), counts),
                     values = gather_rows(group, mine.values(), counts);

    return at::sparse_coo_tensor(indices.t(), values, mine.sizes(),
                                 mine.options())
        .coalesce();
}

} // namespace dscomm_torch
