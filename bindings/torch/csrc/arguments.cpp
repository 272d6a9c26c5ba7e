// SPDX-License-Identifier: BSD-3-Clause
#include "arguments.hpp"

#include "tensors.hpp"

namespace dscomm_torch
{
namespace
{

void check_alike(const at::Tensor &tensor, const at::Tensor &like,
                 const char *what)
{
    TORCH_CHECK(tensor.scalar_type() == like.scalar_type() &&
                    tensor.device() == like.device(),
                "dscomm: ", what, " takes tensors of one type, on one device");
}

} // namespace

void check_list(const std::vector<at::Tensor> &tensors, size_t count,
                const at::Tensor &like, const char *what)
{
    TORCH_CHECK(tensors.size() == count, "dscomm: ", what, " takes ", count,
                " tensors, one for each rank, not ", tensors.size());
    for (const auto &tensor : tensors) {
        check_tensor(tensor, what);
        check_alike(tensor, like, what);
    }
}

void check_pair(const at::Tensor &output, const at::Tensor &input,
                const char *what)
{
    check_tensor(output, what);
    check_tensor(input, what);
    check_alike(output, input, what);
}

bool equal_sizes(const std::vector<at::Tensor> &tensors, int64_t count)
{
    for (const auto &tensor : tensors)
        if (tensor.numel() != count)
            return false;
    return true;
}

void add_counts(Call &call, const std::vector<int64_t> &counts, size_t unit)
{
    size_t offset = 0;
    for (const int64_t count : counts)
        call.counts.push_back(static_cast<size_t>(count) * unit);
    for (const int64_t count : counts) {
        call.counts.push_back(offset);
        offset += static_cast<size_t>(count) * unit;
    }
}

std::vector<int64_t> numels(const std::vector<at::Tensor> &tensors)
{
    std::vector<int64_t> counts;
    for (const auto &tensor : tensors)
        counts.push_back(tensor.numel());
    return counts;
}

bool overlap_any(const std::vector<at::Tensor> &list, const at::Tensor &other,
                 int own)
{
    for (size_t i = 0; i < list.size(); i++)
        if (overlap(list[i], other) && (static_cast<int>(i) != own ||
                                        list[i].data_ptr() != other.data_ptr()))
            return true;
    return false;
}

std::vector<int64_t> splits_of(const at::Tensor &tensor,
                               const std::vector<int64_t> &sizes, int ranks,
                               const char *what)
{
    TORCH_CHECK_INDEX(tensor.dim() > 0, "dscomm: ", what,
                      " splits rows, which a tensor of no dimensions has not");
    const int64_t rows = tensor.size(0);
    const int64_t row = rows ? tensor.numel() / rows : 0;
    std::vector<int64_t> counts;
    int64_t sum = 0;

    if (sizes.empty()) {
        TORCH_CHECK(rows % ranks == 0, "dscomm: ", what, ": ", rows,
                    " rows cannot be split equally among ", ranks, " ranks");
        return std::vector<int64_t>(ranks, rows / ranks * row);
    }
    TORCH_CHECK(sizes.size() == static_cast<size_t>(ranks), "dscomm: ", what,
                ": ", sizes.size(), " split sizes for ", ranks, " ranks");
    for (const int64_t size : sizes) {
        TORCH_CHECK(size >= 0, "dscomm: ", what, ": a split size is negative");
        TORCH_CHECK(size <= rows - sum, "dscomm: ", what,
                    ": the split sizes sum to more than the tensor's ", rows,
                    " rows");
        counts.push_back(size * row);
        sum += size;
    }
    TORCH_CHECK(sum == rows, "dscomm: ", what, ": the split sizes sum to ", sum,
                ", the tensor has ", rows, " rows");
    return counts;
}

void check_tag(int tag)
{
    TORCH_CHECK(tag >= 0, "dscomm: tag ", tag, ", which is negative");
}

} // namespace dscomm_torch
