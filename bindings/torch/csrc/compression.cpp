// SPDX-License-Identifier: BSD-3-Clause
#include "compression.hpp"

#include "tensors.hpp"

#include <pybind11/pybind11.h>

namespace dscomm_torch
{

Compressor::Compressor(const c10::intrusive_ptr<c10d::Backend> &backend,
                       size_t count, const std::string &codec, bool feedback,
                       bool deepspeed, double parameter)
    : backend_(c10::dynamic_intrusive_pointer_cast<Backend>(backend))
{
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_compressor_t *compressor = nullptr;

    TORCH_CHECK_VALUE(backend_,
                      "dscomm: compression needs a group of backend "
                      "dscomm; this one's is ",
                      backend->getBackendName());
    attr.codec = codec.c_str();
    attr.feedback = feedback ? DSCOMM_FEEDBACK_ON : DSCOMM_FEEDBACK_OFF;
    attr.geometry =
        deepspeed ? DSCOMM_GEOMETRY_DEEPSPEED : DSCOMM_GEOMETRY_NATIVE;
    attr.parameter = parameter;
    const std::shared_ptr<Group> group = backend_->group();
    {
        Turn turn(*group);
        check(dscomm_compressor_create(group->world(), count, &attr,
                                       &compressor));
    }
    compressor_ = {compressor, [group](dscomm_compressor_t *freed) {
                       Turn turn(*group);
                       dscomm_compressor_free(freed);
                   }};
}

Compressor::~Compressor()
{
    // Python frees it and has its lock, for which a thread that has the group's
    // may wait.
    const pybind11::gil_scoped_release released;
    compressor_.reset();
    backend_.reset();
}

c10::intrusive_ptr<c10d::Work> Compressor::all_reduce(const at::Tensor &tensor)
{
    check_tensor(tensor, "compressed all_reduce");
    TORCH_CHECK_VALUE(tensor.is_contiguous(),
                      "dscomm: compressed all_reduce takes contiguous tensors");
    TORCH_CHECK_VALUE(static_cast<size_t>(tensor.numel()) == count(),
                      "dscomm: compressed all_reduce: the compressor is for ",
                      count(), " elements, the tensor has ", tensor.numel());
    const Buffer buffer = moved(tensor);
    Call call{c10d::OpType::ALLREDUCE,
              "dscomm:compressed_all_reduce",
              {tensor},
              {tensor}};

    call.buffers = {tensor};
    // The compressor lives as long as the work.
    call.after = [owner = compressor_] {};
    return backend_->start_above(std::move(call), [&](dscomm_work_t **work) {
        return dscomm_compressor_all_reduce(compressor_.get(), buffer.data,
                                            buffer.dtype, work);
    });
}

dscomm_compressor_info_t Compressor::info() const
{
    dscomm_compressor_info_t info = {};

    info.size = sizeof info;
    check(dscomm_compressor_info(compressor_.get(), &info));
    return info;
}

at::Tensor Compressor::save() const
{
    at::Tensor state =
        at::empty({static_cast<int64_t>(info().state_bytes)}, at::kByte);
    Turn turn(*backend_->group());

    check(dscomm_compressor_save(compressor_.get(), state.data_ptr(),
                                 state.nbytes()));
    return state;
}

void Compressor::load(const at::Tensor &state)
{
    const at::Tensor bytes = state.cpu().contiguous();
    Turn turn(*backend_->group());

    check(dscomm_compressor_load(compressor_.get(), bytes.data_ptr(),
                                 bytes.nbytes()));
}

} // namespace dscomm_torch
