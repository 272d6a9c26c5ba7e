// SPDX-License-Identifier: BSD-3-Clause
// Tensors as buffers of dscomm.
#pragma once

#include <ATen/ATen.h>
#include <dscomm/dscomm.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

namespace dscomm_torch
{

// A buffer, in elements of a type.
struct Buffer {
    void *data;
    size_t count;
    dscomm_dtype_t dtype;
};

// The only tensor of a list.
at::Tensor &only(std::vector<at::Tensor> &tensors, const char *what);

// Throws unless the tensor is dense, and on the CPU or a CUDA device.
void check_tensor(const at::Tensor &tensor, const char *what);

// A contiguous tensor's memory for calls that only move it, of a type that
// dscomm has, or as bytes.
Buffer moved(const at::Tensor &tensor);
// The same for calls that reduce it; throws if dscomm cannot. Complex numbers
// are pairs of floats, for operators for which this is right.
Buffer reduced(const at::Tensor &tensor, const c10d::ReduceOp &op);

// The operator, with *ret_factor for PREMUL_SUM.
dscomm_op_t operator_of(const c10d::ReduceOp &op, double *ret_factor);

// How many elements moved() has for one of the tensor's.
size_t units_of(const at::Tensor &tensor);

// Whether two contiguous tensors share memory.
bool overlap(const at::Tensor &a, const at::Tensor &b);
// The first in memory of contiguous tensors on the CPU, to use them by a _v
// call without a copy; *ret_displacements are those of all from it, as moved()
// counts. NULL if this cannot be.
void *first_of(const std::vector<at::Tensor> &tensors,
               std::vector<size_t> *ret_displacements);

// A tensor on device of all elements of several in a row, copied if copy.
at::Tensor flat(const std::vector<at::Tensor> &tensors, c10::Device device,
                bool copy);
// Copies the parts of a flat tensor to tensors.
void unflat(const at::Tensor &flat, const std::vector<at::Tensor> &tensors);

} // namespace dscomm_torch
