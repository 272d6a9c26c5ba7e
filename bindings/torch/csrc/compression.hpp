// SPDX-License-Identifier: BSD-3-Clause
// A compressor of libdscomm-compression, for tensors of one size.
#pragma once

#include "backend.hpp"

#include <dscomm/compression.h>

namespace dscomm_torch
{

class Compressor
{
  public:
    // Makes a compressor of the mean for count elements; collective. parameter
    // 0: the codec's default. Throws unless backend is dscomm.
    Compressor(const c10::intrusive_ptr<c10d::Backend> &backend, size_t count,
               const std::string &codec, bool feedback, bool deepspeed,
               double parameter);
    ~Compressor();
    Compressor(const Compressor &) = delete;
    Compressor &operator=(const Compressor &) = delete;

    // Makes a contiguous tensor the mean of all ranks', in place.
    c10::intrusive_ptr<c10d::Work> all_reduce(const at::Tensor &tensor);

    // The errors that are kept, as bytes on the CPU.
    at::Tensor save() const;
    void load(const at::Tensor &state);

    size_t count() const
    {
        return info().count;
    }
    // Bytes that this rank sends in a call.
    size_t wire_bytes() const
    {
        return info().wire_bytes;
    }

  private:
    dscomm_compressor_info_t info() const;

    c10::intrusive_ptr<Backend> backend_;
    std::shared_ptr<dscomm_compressor_t> compressor_; // shared with works
};

} // namespace dscomm_torch
