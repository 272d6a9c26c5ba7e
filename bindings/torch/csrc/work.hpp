// SPDX-License-Identifier: BSD-3-Clause
// A work of dscomm as one of torch's.
#pragma once

#include "group.hpp"

#include <array>
#include <functional>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace dscomm_torch
{

// What a call is about, and what belongs to it until it is complete.
struct Call {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char *title = nullptr; // for torch's profiler
    std::vector<at::Tensor> inputs; // as the user gave them, for the profiler
    std::vector<at::Tensor> outputs; // results, as the user gave them
    std::array<at::Tensor, 2> buffers; // memory that dscomm reads and writes
    std::vector<size_t> counts; // arrays of _v calls
    std::function<void()> after; // copies buffers to outputs; or empty
    std::optional<c10::Stream> stream; // of CUDA tensors: for after
};

class Work final : public c10d::Work
{
  public:
    // work is NULL if the call is complete.
    Work(std::shared_ptr<Group> group, dscomm_work_t *work, Call call, int rank,
         uint64_t sequence);
    ~Work() override;

    bool isCompleted() override;
    bool isSuccess() const override;
    std::exception_ptr exception() const override;
    int sourceRank() const override;
    std::vector<at::Tensor> result() override;
    void synchronize() override;
    bool wait(std::chrono::milliseconds timeout) override;
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    uint64_t getSequencenumber() const override;

    // Looks whether the work is complete, without waiting for it.
    bool poll();
    // Readable when a work of the group completes; -1: look at all times.
    int descriptor() const
    {
        return descriptor_;
    }

  private:
    // Where the results are, unless on the CPU.
    std::vector<c10::Device> devices() const;
    bool is_ended() const;
    bool wait_here(std::chrono::milliseconds timeout);
    bool wait_poller(std::chrono::milliseconds timeout);
    // Takes the end of dscomm's work; with the group's lock held.
    void end(dscomm_status_t status);

    std::shared_ptr<Group> group_;
    dscomm_work_t *work_; // NULL: complete; by the group's lock
    Call call_;
    uint64_t sequence_;
    int source_ = -1;
    int descriptor_ = -1;
    c10::intrusive_ptr<c10::ivalue::Future> future_; // NULL: nobody asked
    bool told_ = false; // the future is complete, or about to be
};

} // namespace dscomm_torch
