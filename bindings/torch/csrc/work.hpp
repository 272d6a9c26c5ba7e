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
    bool messages = false; // coalesced messages, no collective
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

    // Gives the call a time-out of its own, in ms.
    void set_timeout(int timeout);
    // What the poller does: poll(), if the lock can be had in time; if the work
    // is complete, the poller calls tell(). From then on descriptor() is the
    // group's, which is readable when a work of the group completes; -1: look
    // at all times.
    bool look(std::chrono::milliseconds time);
    int descriptor() const
    {
        return descriptor_;
    }
    const Group *group() const
    {
        return group_.get();
    }
    // How deep its future was asked for: see Poller::depth().
    int depth() const
    {
        return depth_;
    }
    // Completes the work with an exception, which look() has thrown.
    void fail(std::exception_ptr failure);
    // Completes the future, if there is one, of a complete work: runs what
    // waits for it, which may wait itself for others.
    void tell();
    bool has_future() const;
    // Whether all ranks start it in one order.
    bool is_collective() const;

  private:
    // Looks whether the work is complete, without waiting for it. If turn is
    // not this thread's it is not. Gives the turn back.
    bool poll(std::optional<Turn> &turn);
    bool poll();
    // Where the results are, unless on the CPU.
    std::vector<c10::Device> devices() const;
    bool is_ended() const;
    bool wait_here(std::chrono::milliseconds timeout);
    void complete(std::exception_ptr failure);
    // Whether the work is complete, and its future, unless that may wait for
    // this thread; call with mutex_ held.
    bool is_over() const;
    // Waits until other threads have completed the work and its future.
    bool wait_other(std::chrono::milliseconds timeout);
    // Takes the end of dscomm's work; with the group's lock held.
    std::exception_ptr take(const Ending &ending);
    // Completes the work of which this thread has taken the end; without the
    // lock, since what it calls may need Python's.
    void end(std::exception_ptr failure);

    std::shared_ptr<Group> group_;
    // By the group's lock. NULL: complete, or a thread is about to complete it.
    dscomm_work_t *work_;
    Call call_;
    uint64_t sequence_;
    int source_ = -1;
    int descriptor_ = -1; // the poller's
    int depth_ = 0; // written before the poller has the work
    std::chrono::steady_clock::time_point completed_at_;
    // By mutex_.
    c10::intrusive_ptr<c10::ivalue::Future> future_; // NULL: nobody asked
    bool told_ = false; // the future is complete, or about to be
    bool future_over_ = false; // it is
    bool waited_ = false; // the program knows that the work is complete
};

} // namespace dscomm_torch
