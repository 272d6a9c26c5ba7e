// SPDX-License-Identifier: BSD-3-Clause
#include "tensors.hpp"

#include "error.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace dscomm_torch
{
namespace
{

std::optional<dscomm_dtype_t> dtype_of(at::ScalarType type)
{
    switch (type) {
    case at::kBool:
        return DSCOMM_BOOL;
    case at::kByte:
        return DSCOMM_UINT8;
    case at::kChar:
        return DSCOMM_INT8;
    case at::kShort:
        return DSCOMM_INT16;
    case at::kUInt16:
        return DSCOMM_UINT16;
    case at::kInt:
        return DSCOMM_INT32;
    case at::kUInt32:
        return DSCOMM_UINT32;
    case at::kLong:
        return DSCOMM_INT64;
    case at::kUInt64:
        return DSCOMM_UINT64;
    case at::kHalf:
        return DSCOMM_FLOAT16;
    case at::kBFloat16:
        return DSCOMM_BFLOAT16;
    case at::kFloat:
        return DSCOMM_FLOAT32;
    case at::kDouble:
        return DSCOMM_FLOAT64;
    case at::kFloat8_e4m3fn:
        return DSCOMM_FLOAT8_E4M3;
    case at::kFloat8_e5m2:
        return DSCOMM_FLOAT8_E5M2;
    default:
        return std::nullopt;
    }
}

// Bytes for which torch's own copy takes longer than memcpy() with one thread.
constexpr size_t SMALL = 64 << 10;

// The address of an element of a flat tensor.
char *at_element(const at::Tensor &flat, int64_t offset)
{
    return static_cast<char *>(flat.data_ptr()) + offset * flat.itemsize();
}

// Whether the bytes of the tensor may be copied by memcpy().
bool is_small(const at::Tensor &tensor, const at::Tensor &flat)
{
    return tensor.nbytes() <= SMALL && tensor.is_contiguous() &&
           tensor.is_cpu() && flat.is_cpu();
}

} // namespace

at::Tensor &only(std::vector<at::Tensor> &tensors, const char *what)
{
    TORCH_CHECK(tensors.size() == 1, "dscomm: ", what,
                " takes one tensor, not ", tensors.size());
    check_tensor(tensors[0], what);
    return tensors[0];
}

void check_tensor(const at::Tensor &tensor, const char *what)
{
    TORCH_CHECK(tensor.layout() == at::kStrided, "dscomm: ", what,
                " takes dense tensors only");
    TORCH_CHECK(tensor.device().is_cpu() || tensor.device().is_cuda(),
                "dscomm: ", what, " takes tensors on the CPU or CUDA, not on ",
                tensor.device());
}

Buffer moved(const at::Tensor &tensor)
{
    const auto dtype = dtype_of(tensor.scalar_type());

    if (dtype)
        return {tensor.data_ptr(), static_cast<size_t>(tensor.numel()), *dtype};
    return {tensor.data_ptr(), static_cast<size_t>(tensor.nbytes()),
            DSCOMM_UINT8};
}

Buffer reduced(const at::Tensor &tensor, const c10d::ReduceOp &op)
{
    if (tensor.is_complex()) {
        TORCH_CHECK(c10d::isComplexViewAsRealAllowed(op),
                    "dscomm: this operator is not defined on complex numbers");
        return moved(at::view_as_real(tensor));
    }
    const auto dtype = dtype_of(tensor.scalar_type());
    TORCH_CHECK(dtype, "dscomm cannot reduce elements of ",
                tensor.scalar_type());
    return {tensor.data_ptr(), static_cast<size_t>(tensor.numel()), *dtype};
}

dscomm_op_t operator_of(const c10d::ReduceOp &op, double *ret_factor)
{
    switch (op.op_) {
    case c10d::ReduceOp::SUM:
        return DSCOMM_SUM;
    case c10d::ReduceOp::AVG:
        return DSCOMM_AVG;
    case c10d::ReduceOp::PRODUCT:
        return DSCOMM_PRODUCT;
    case c10d::ReduceOp::MIN:
        return DSCOMM_MIN;
    case c10d::ReduceOp::MAX:
        return DSCOMM_MAX;
    case c10d::ReduceOp::BAND:
        return DSCOMM_BAND;
    case c10d::ReduceOp::BOR:
        return DSCOMM_BOR;
    case c10d::ReduceOp::BXOR:
        return DSCOMM_BXOR;
    case c10d::ReduceOp::PREMUL_SUM:
        break;
    default:
        TORCH_CHECK(false, "dscomm: unknown reduction operator");
    }
    const auto *more =
        dynamic_cast<const c10d::PreMulSumSupplement *>(op.supplement_.get());
    TORCH_CHECK(more, "dscomm: PREMUL_SUM has no factor");
    *ret_factor = more->tensor_factor.defined()
                      ? more->tensor_factor.item<double>()
                      : more->double_factor;
    return DSCOMM_PREMUL_SUM;
}

size_t units_of(const at::Tensor &tensor)
{
    return dtype_of(tensor.scalar_type()) ? 1 : tensor.element_size();
}

bool overlap(const at::Tensor &a, const at::Tensor &b)
{
    const auto first = reinterpret_cast<uintptr_t>(a.data_ptr()),
               second = reinterpret_cast<uintptr_t>(b.data_ptr());

    return first < second + b.nbytes() && second < first + a.nbytes();
}

void *first_of(const std::vector<at::Tensor> &tensors,
               std::vector<size_t> *ret_displacements)
{
    uintptr_t first = UINTPTR_MAX;

    for (const auto &tensor : tensors) {
        if (!tensor.is_cpu() || !tensor.is_contiguous() || !tensor.numel())
            return nullptr;
        first = std::min(first, reinterpret_cast<uintptr_t>(tensor.data_ptr()));
    }
    for (const auto &tensor : tensors) {
        const auto bytes =
            reinterpret_cast<uintptr_t>(tensor.data_ptr()) - first;
        const size_t element = tensor.element_size() / units_of(tensor);
        if (bytes % element)
            return nullptr;
        ret_displacements->push_back(bytes / element);
    }
    return reinterpret_cast<void *>(first);
}

at::Tensor flat(const std::vector<at::Tensor> &tensors, c10::Device device,
                bool copy)
{
    int64_t count = 0, offset = 0;
    for (const auto &tensor : tensors)
        count += tensor.numel();
    auto result = at::empty(
        {count},
        tensors.at(0).options().device(device).memory_format(std::nullopt));
    for (const auto &tensor : tensors) {
        if (copy && is_small(tensor, result))
            std::memcpy(at_element(result, offset), tensor.const_data_ptr(),
                        tensor.nbytes());
        else if (copy)
            result.narrow(0, offset, tensor.numel())
                .copy_(tensor.reshape({-1}));
        offset += tensor.numel();
    }
    return result;
}

void unflat(const at::Tensor &flat, const std::vector<at::Tensor> &tensors)
{
    int64_t offset = 0;
    for (const auto &tensor : tensors) {
        if (is_small(tensor, flat))
            std::memcpy(tensor.data_ptr(), at_element(flat, offset),
                        tensor.nbytes());
        else
            tensor.detach().copy_(
                flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
        offset += tensor.numel();
    }
}

} // namespace dscomm_torch
