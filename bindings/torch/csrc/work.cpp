// SPDX-License-Identifier: BSD-3-Clause
#include "work.hpp"

#include "poller.hpp"

#include <algorithm>
#include <c10/core/StreamGuard.h>
#include <cxxabi.h>
#include <thread>

namespace dscomm_torch
{
namespace
{

// How long a thread that waits for a work keeps the group's lock, in
// milliseconds, if other threads want it, and if none does; and the time for
// another thread to take it.
constexpr int SHORT_TURN = 1, LONG_TURN = 100;
constexpr auto PAUSE = std::chrono::microseconds(50);
// How long wait() waits for the future of a work that is complete. Longer, and
// what runs before the future, or an earlier call, may wait for this thread.
constexpr auto FUTURE_TIME = std::chrono::seconds(5);
// Longer waits have no limit: the clock could not show their end.
constexpr auto LONGEST = std::chrono::hours(24 * 365 * 100);

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
    call_.inputs.clear();
    if (!work_) {
        if (call_.after)
            run_on(call_.stream, call_.after);
        end(nullptr);
    }
}

// dscomm's work goes on, and uses its buffers. So it goes on as another work,
// which the poller frees. Never waits: see Group::unmap().
Work::~Work()
{
    c10::intrusive_ptr<Work> rest;

    if (!work_ || group_->is_forked()) // nobody else has a reference
        return;
    call_.title = nullptr;
    try {
        rest = c10::make_intrusive<Work>(group_, work_, std::move(call_), rank_,
                                         sequence_);
        Poller::the().add(rest);
    } catch (const std::exception &) {
        (void)rest.release(); // without a poller its buffers stay
    }
}

void Work::set_timeout(int timeout)
{
    Turn turn(*group_);

    if (work_ && group_->is_joined())
        check(dscomm_work_set_timeout(work_, timeout));
}

std::exception_ptr Work::take(const Ending &ending)
{
    const auto failure =
        ending.status < 0 ? exception_of(ending.sentence) : nullptr;

    source_ = ending.source;
    work_ = nullptr;
    if (failure) {
        Call kept = std::move(call_);
        call_.outputs = kept.outputs;
        call_.stream = kept.stream;
        group_->keep(std::move(kept));
    }
    return failure;
}

void Work::end(std::exception_ptr failure)
{
    call_.after = nullptr;
    call_.buffers = {};
    call_.counts.clear();
    complete(failure);
    if (has_future())
        Poller::the().wake();
}

void Work::tell()
{
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!completed_ || !future_ || std::exchange(told_, true))
            return;
        future = future_;
    }
    try {
        // Callbacks of the future may call the group.
        const c10::OptionalStreamGuard guard(call_.stream);
        if (auto failure = exception())
            future->setErrorIfNeeded(failure);
        else
            future->markCompleted(c10::IValue(call_.outputs));
    } catch (const abi::__forced_unwind &) { // the process ends
        throw;
    } catch (...) {
        future->setErrorIfNeeded(std::current_exception());
    }
}

void Work::fail(std::exception_ptr failure)
{
    if (!is_ended())
        complete(failure);
}

void Work::complete(std::exception_ptr failure)
{
    completed_at_ = std::chrono::steady_clock::now();
    finish(failure);
}

bool Work::poll(std::optional<Turn> &turn)
{
    std::exception_ptr failure;

    if (!turn->is_mine())
        return is_ended();
    if (!work_) {
        turn.reset();
        return is_ended();
    }
    const Ending ending = group_->end_of(work_);
    if (ending.status == DSCOMM_IN_PROGRESS)
        return false;
    failure = take(ending);
    turn.reset();
    try {
        if (!failure && call_.after)
            run_on(call_.stream, call_.after);
    } catch (...) {
        failure = std::current_exception();
    }
    end(failure);
    return true;
}

bool Work::poll()
{
    std::optional<Turn> turn(std::in_place, *group_);

    return poll(turn);
}

bool Work::look(std::chrono::milliseconds time)
{
    std::optional<Turn> turn(std::in_place, *group_, time);

    descriptor_ = turn->is_mine() ? group_->descriptor() : -1;
    return poll(turn);
}

bool Work::has_future() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return future_ != nullptr;
}

bool Work::is_collective() const
{
    return !c10d::isP2POp(opType_) && !call_.messages;
}

bool Work::is_ended() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return completed_;
}

// Does not wait for the lock: its thread may have Python's.
bool Work::isCompleted()
{
    std::optional<Turn> turn(std::in_place, *group_,
                             std::chrono::milliseconds(0));

    poll(turn);
    std::lock_guard<std::mutex> lock(mutex_);
    return waited_ = waited_ || is_over();
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
    const auto end = clock::now() + timeout;
    const auto left = [&] {
        return std::chrono::ceil<std::chrono::milliseconds>(end - clock::now());
    };
    bool taken = false;

    while (!taken && !poll()) {
        const int turn = group_->shared ? SHORT_TURN : LONG_TURN;
        const auto rest = left();
        if (rest.count() <= 0)
            return false;
        {
            Turn mine(*group_);
            taken = !work_;
            if (work_ && group_->is_joined())
                dscomm_work_wait(work_, std::min(turn, milliseconds(rest)));
        }
        if (group_->shared)
            std::this_thread::sleep_for(PAUSE);
    }
    // Another thread has completed it, or asked for the future meanwhile.
    return wait_other(left());
}

bool Work::is_over() const
{
    return completed_ &&
           (!future_ || future_over_ || depth_ < Poller::depth() ||
            std::chrono::steady_clock::now() - completed_at_ > FUTURE_TIME);
}

bool Work::wait_other(std::chrono::milliseconds timeout)
{
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + timeout;
    std::unique_lock<std::mutex> lock(mutex_);

    while (!is_over()) {
        const auto most = completed_ ? completed_at_ + FUTURE_TIME : end;
        if (clock::now() >= std::min(end, most))
            return completed_;
        cv_.wait_until(lock, std::min(end, most));
    }
    return true;
}

bool Work::wait(std::chrono::milliseconds timeout)
{
    TORCH_CHECK(timeout.count() >= 0 || isCompleted() || is_ended(),
                "dscomm: wait() for ", timeout.count(),
                " ms, which is negative");
    if (timeout == kNoTimeout || timeout > LONGEST)
        timeout = LONGEST;
    std::unique_lock<std::mutex> lock(mutex_);
    // The poller completes a work with a future.
    const bool others = completed_ || (future_ && !Poller::the().has_ended());
    if (others && !is_over())
        group_->check_process();
    lock.unlock();
    const bool done = others ? wait_other(timeout) : wait_here(timeout);

    TORCH_CHECK_WITH(DistBackendError, done,
                     "dscomm: ", c10d::opTypeToString(opType_), " #", sequence_,
                     " is not complete after the ", timeout.count(),
                     " ms that wait() allows; it goes on");
    lock.lock();
    waited_ = true;
    lock.unlock();
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
    std::vector<c10::Device> devices;

    for (const at::Tensor &tensor : call_.outputs)
        if (tensor.is_cuda() && std::find(devices.begin(), devices.end(),
                                          tensor.device()) == devices.end())
            devices.push_back(tensor.device());
    return devices;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
    bool known;

    // What may throw comes before the future, which the poller completes.
    Poller::the();
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (future_)
            return future_;
        future_ = c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()), devices());
        // Runs before what the program adds.
        future_->addCallback(
            [this](c10::ivalue::Future &) {
                std::lock_guard<std::mutex> lock(mutex_);
                future_over_ = true;
                cv_.notify_all();
            },
            /*uses_future=*/false);
        depth_ = Poller::depth();
        known = waited_;
    }
    if (known)
        tell();
    else
        Poller::the().add(c10::intrusive_ptr<Work>::reclaim_copy(this));
    return future_;
}

uint64_t Work::getSequencenumber() const
{
    return sequence_;
}

} // namespace dscomm_torch
