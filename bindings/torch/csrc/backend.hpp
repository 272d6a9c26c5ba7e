// SPDX-License-Identifier: BSD-3-Clause
// The backend "dscomm" of torch.distributed: calls on tensors as calls of
// dscomm.
#pragma once

#include "work.hpp"

#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace dscomm_torch
{

using Tensors = std::vector<at::Tensor>;

class Backend final : public c10d::Backend
{
  public:
    using WorkPtr = c10::intrusive_ptr<c10d::Work>;

    // Joins the ranks that meet in store; collective.
    Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
            std::chrono::milliseconds timeout, const std::string &name);

    const std::string getBackendName() const override
    {
        return "dscomm";
    }
    c10::intrusive_ptr<Options> getBackendOptions() override;
    void setTimeout(std::chrono::milliseconds timeout) override;
    uint64_t getSequenceNumberForGroup() override;
    void setSequenceNumberForGroup() override
    {
    }

    WorkPtr broadcast(Tensors &tensors,
                      const c10d::BroadcastOptions &options) override;
    WorkPtr allreduce(Tensors &tensors,
                      const c10d::AllreduceOptions &options) override;
    // Of sparse COO tensors, by SUM.
    WorkPtr allreduce_sparse(Tensors &tensors,
                             const c10d::AllreduceOptions &options) override;
    WorkPtr allreduce_coalesced(
        Tensors &tensors,
        const c10d::AllreduceCoalescedOptions &options) override;
    WorkPtr reduce(Tensors &tensors,
                   const c10d::ReduceOptions &options) override;
    WorkPtr allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                      const c10d::AllgatherOptions &options) override;
    WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
                            const c10d::AllgatherOptions &options) override;
    WorkPtr allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &options) override;
    WorkPtr allgather_into_tensor_coalesced(
        Tensors &outputs, Tensors &inputs,
        const c10d::AllgatherOptions &options) override;
    WorkPtr gather(std::vector<Tensors> &outputs, Tensors &inputs,
                   const c10d::GatherOptions &options) override;
    WorkPtr scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                    const c10d::ScatterOptions &options) override;
    WorkPtr reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                           const c10d::ReduceScatterOptions &options) override;
    WorkPtr
    _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                         const c10d::ReduceScatterOptions &options) override;
    WorkPtr reduce_scatter_tensor_coalesced(
        Tensors &outputs, Tensors &inputs,
        const c10d::ReduceScatterOptions &options) override;
    WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input,
                          std::vector<int64_t> &output_sizes,
                          std::vector<int64_t> &input_sizes,
                          const c10d::AllToAllOptions &options) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs,
                     const c10d::AllToAllOptions &options) override;
    WorkPtr send(Tensors &tensors, int dest, int tag) override;
    WorkPtr recv(Tensors &tensors, int source, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;
    WorkPtr barrier(const c10d::BarrierOptions &options) override;
    void monitoredBarrier(const c10d::BarrierOptions &options,
                          bool all) override;

    bool supportsCoalescing() const override
    {
        return true;
    }
    void startCoalescing() override;
    WorkPtr endCoalescing() override;

    bool supportsSplitting() const override
    {
        return true;
    }
    c10::intrusive_ptr<c10d::Backend>
    split(const c10::intrusive_ptr<c10d::Store> &store,
          const std::vector<int> &ranks,
          const c10::intrusive_ptr<Options> &options) override;
    c10::intrusive_ptr<c10d::Backend>
    merge(const c10::intrusive_ptr<c10d::Store> &store,
          const c10::intrusive_ptr<Options> &options, const int &rank,
          const int &size) override;
    bool supportsTensorAlloc(c10::DeviceIndex index) override;
    at::Tensor allocateTensor(long size, at::TensorOptions options) override;

    c10d::ErrorType getError() override;
    void abort() override;
    void shutdown() override;

    const std::shared_ptr<Group> &group() const
    {
        return group_;
    }
    // Starts a call of a library on top of dscomm; function(ret_work) calls it.
    WorkPtr start_above(
        Call call,
        const std::function<dscomm_status_t(dscomm_work_t **)> &function);

  private:
    // What the options of all calls have in common.
    struct Manner {
        Manner() = default;
        template <typename CallOptions>
        Manner(const CallOptions &options)
            : async(options.asyncOp), timeout(options.timeout)
        {
        }

        bool async = true;
        std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    };

    // Memory that dscomm reads: tensor's own, or a contiguous copy.
    at::Tensor input_of(const at::Tensor &tensor) const;
    // Memory for the result in tensor: its own, or a contiguous buffer that is
    // copied to it after the call.
    at::Tensor output_of(Call &call, const at::Tensor &tensor,
                         bool is_input) const;
    // One buffer for all tensors.
    at::Tensor flat_of(const Tensors &tensors, bool copy) const;
    // Where a _v call receives a list: the first tensor's memory, or one buffer
    // that is copied to them, if so wanted or necessary. Adds counts and
    // displacements to the call.
    void *receive_list(Call &call, const Tensors &list, bool copy) const;
    // The device on which dscomm takes tensor's elements.
    c10::Device device_for(const at::Tensor &tensor) const;
    // Starts a call, or carries it out if the program would wait for it anyway.
    // function(group, ret_work) calls dscomm.
    template <typename Function>
    WorkPtr start(Call call, const Manner &manner, const Function &function);
    // A call's time-out in ms; 0: that of dscomm's group.
    int timeout_of(const Manner &manner) const;
    // Makes count calls one work, which is described by whole.
    WorkPtr each(Call whole, const Manner &manner, size_t count,
                 const std::function<void(size_t)> &call);
    WorkPtr end_coalescing(Call whole, const Manner &manner);
    // Whether this thread coalesces calls.
    bool coalescing() const
    {
        return coalescer_.load() == std::this_thread::get_id();
    }
    // Throws if calls are coalesced that this one must not be among; with the
    // lock held.
    void check_batch() const;
    // Begins the batch of this thread with its first call.
    void begin_batch();
    std::string barrier_text(const std::vector<int> &late, bool all,
                             int64_t timeout) const;

    std::shared_ptr<Group> group_;
    c10::intrusive_ptr<Options> options_;
    std::atomic<uint64_t> sequence_{0};
    std::atomic<std::thread::id> coalescer_; // none: the default
    bool begun_ = false; // dscomm has begun the coalescer's batch
    bool broken_ = false; // a call that was to be coalesced has failed
    std::vector<Call> coalesced_;
};

} // namespace dscomm_torch
