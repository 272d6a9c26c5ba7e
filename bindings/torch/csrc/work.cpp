// SPDX-License-Identifier: BSD-3-Clause
#include "work.hpp"

#include "poller.hpp"

#include <c10/core/StreamGuard.h>
#include <thread>

namespace dscomm_torch
{
namespace
{

// How long a thread that waits for a work keeps the group's lock while another
// thread wants it, in milliseconds, and while none does.
constexpr int SHORT_TURN = 1, LONG_TURN = 100;

std::exception_ptr exception_of(const std::string &sentence)
{
    try {
        TORCH_CHECK_WITH(DistBackendError, false, "dscomm: ", sentence);
    } catch (...) {
        return std::current_exception();
    }
}

} // namespace

Work::Work(std::shared_ptr<Group> group, dscomm_work_t *work, Call call,
           int rank, uint64_t sequence)
    : c10d::Work(rank, call.type, call.title,
                 std::optional<std::vector<at::Tensor>>(call.inputs)),
      group_(std::move(group)), work_(work), call_(std::move(call)),
      sequence_(sequence)
{
    if (!work_) {
        if (call_.after)
            run_on(call_.stream, call_.after);
        finish();
    }
}

// dscomm's work goes on, and uses its buffers, so it must end first.
Work::~Work()
{
    if (!work_) // nobody else has a reference
        return;
    Turn turn(*group_);
    if (!group_->is_joined())
        return;
    dscomm_work_wait(work_, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work_);
}

void Work::end(dscomm_status_t status)
{
    std::exception_ptr failure;

    if (status < 0) {
        failure = exception_of(sentence_of(status));
    } else {
        if (c10d::isP2POp(call_.type) && call_.type != c10d::OpType::SEND)
            dscomm_work_received(work_, &source_, nullptr, nullptr);
        try {
            if (call_.after)
                run_on(call_.stream, call_.after);
        } catch (...) {
            failure = std::current_exception();
        }
    }
    dscomm_work_free(std::exchange(work_, nullptr));
    call_.buffers = {};
    finish(failure);
}

bool Work::poll()
{
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
        Turn turn(*group_);
        if (work_ && !group_->is_joined()) {
            // dscomm has freed its work with the world.
            work_ = nullptr;
            finish(exception_of("the process group was destroyed"));
        } else if (work_) {
            const dscomm_status_t status = dscomm_work_test(work_);
            if (status == DSCOMM_IN_PROGRESS)
                return false;
            end(status);
        }
        if (!std::exchange(told_, future_ != nullptr))
            future = future_;
    }
    // Callbacks of the future may call the group.
    if (future) {
        const c10::OptionalStreamGuard guard(call_.stream);
        if (auto failure = exception())
            future->setErrorIfNeeded(failure);
        else
            future->markCompleted(c10::IValue(call_.outputs));
    }
    return true;
}

bool Work::is_ended() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return completed_;
}

bool Work::isCompleted()
{
    return poll();
}

bool Work::isSuccess() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return completed_ && !exception_;
}

std::exception_ptr Work::exception() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return exception_;
}

int Work::sourceRank() const
{
    return source_;
}

std::vector<at::Tensor> Work::result()
{
    return call_.outputs;
}

void Work::synchronize()
{
}

bool Work::wait_here(std::chrono::milliseconds timeout)
{
    using clock = std::chrono::steady_clock;
    const bool limited = timeout != kNoTimeout;
    const auto end = clock::now() + timeout;

    while (!poll()) {
        int turn = group_->wanted ? SHORT_TURN : LONG_TURN;
        if (limited) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(
                    end - clock::now());
            if (left.count() <= 0)
                return false;
            turn = std::min(turn, milliseconds(left));
        }
        {
            Turn mine(*group_);
            if (work_ && group_->is_joined())
                dscomm_work_wait(work_, turn);
        }
        if (group_->wanted)
            std::this_thread::yield();
    }
    return true;
}

bool Work::wait_poller(std::chrono::milliseconds timeout)
{
    std::unique_lock<std::mutex> lock(mutex_);
    const auto done = [this] { return completed_; };

    if (timeout == kNoTimeout)
        cv_.wait(lock, done);
    else
        return cv_.wait_for(lock, timeout, done);
    return true;
}

bool Work::wait(std::chrono::milliseconds timeout)
{
    const bool done =
        is_ended() || (future_ ? wait_poller(timeout) : wait_here(timeout));

    TORCH_CHECK_WITH(DistBackendError, done,
                     "dscomm: ", c10d::opTypeToString(opType_), " #", sequence_,
                     " is not complete after the ", timeout.count(),
                     " ms that wait() allows; it goes on");
    if (auto failure = exception())
        std::rethrow_exception(failure);
    return true;
}

void Work::abort()
{
    group_->abort("torch's Work.abort()");
}

std::vector<c10::Device> Work::devices() const
{
    if (call_.stream)
        return {call_.stream->device()};
    return {};
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
    bool begins = false;
    {
        Turn turn(*group_);
        if (!future_) {
            future_ = c10::make_intrusive<c10::ivalue::Future>(
                c10::ListType::create(c10::TensorType::get()), devices());
            begins = true;
            if (work_ && dscomm_group_fd(group_->world(), &descriptor_) < 0)
                descriptor_ = -1;
        }
    }
    if (begins && !poll())
        Poller::the().add(c10::intrusive_ptr<Work>::reclaim_copy(this));
    return future_;
}

uint64_t Work::getSequencenumber() const
{
    return sequence_;
}

} // namespace dscomm_torch
