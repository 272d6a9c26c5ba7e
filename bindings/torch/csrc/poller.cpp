// SPDX-License-Identifier: BSD-3-Clause
#include "poller.hpp"

#include <algorithm>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dscomm_torch
{
namespace
{

// Milliseconds between looks at works whose group has no descriptor, and at all
// works, in case of a failure that no descriptor tells.
constexpr int BUSY_MS = 1, IDLE_MS = 200;
// How long the poller waits for the lock of a group, of which another thread
// that waits for a work keeps it for 1 ms: futures of other groups wait too.
constexpr auto LOCK_TIME = std::chrono::milliseconds(3);

// A child that fork(2) makes has no such thread, and makes its own.
std::mutex the_mutex;
Poller *the_poller;

void forget_poller()
{
    the_poller = nullptr;
    the_mutex.unlock();
}

void drain(int descriptor)
{
    uint64_t count;
    while (read(descriptor, &count, sizeof count) > 0)
        ;
}

} // namespace

Poller &Poller::the()
{
    static const int forks = pthread_atfork(
        [] { the_mutex.lock(); }, [] { the_mutex.unlock(); }, forget_poller);
    std::lock_guard<std::mutex> lock(the_mutex);

    TORCH_CHECK_WITH(DistBackendError, forks == 0,
                     "dscomm: pthread_atfork failed");
    // Never destroyed: it may run when the process ends.
    if (!the_poller)
        the_poller = new Poller();
    return *the_poller;
}

namespace
{
thread_local int the_depth;
}

int Teller::depth()
{
    return the_depth;
}

// Never destroyed, as the poller.
Teller::Teller(int depth)
{
    std::thread([this, depth] { run(depth); }).detach();
}

void Teller::add(c10::intrusive_ptr<Work> work)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        works_.push_back(std::move(work));
    }
    added_.notify_one();
}

void Teller::run(int depth)
{
    std::unique_lock<std::mutex> lock(mutex_);

    the_depth = depth + 1;
    for (;;) {
        added_.wait(lock, [this] { return !works_.empty(); });
        auto work = std::move(works_.front());
        works_.pop_front();
        lock.unlock();
        try {
            work->tell();
        } catch (const std::exception &error) {
            TORCH_WARN("dscomm: what waits for a future failed: ",
                       error.what());
        }
        work.reset();
        lock.lock();
    }
}

Poller::Poller() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    TORCH_CHECK_WITH(DistBackendError, wake_ >= 0, "dscomm: eventfd failed");
    std::thread([this] { run(); }).detach();
}

Teller &Poller::teller(int depth)
{
    std::lock_guard<std::mutex> lock(mutex_);
    return *tellers_.at(depth);
}

void Poller::add(c10::intrusive_ptr<Work> work)
{
    const uint64_t one = 1;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        auto &teller = tellers_[Teller::depth()];
        if (!teller)
            teller = std::make_unique<Teller>(Teller::depth());
        work->depth = Teller::depth();
        added_.push_back(std::move(work));
    }
    (void)!write(wake_, &one, sizeof one);
}

void Poller::sleep(const Works &works)
{
    std::vector<pollfd> polled{{wake_, POLLIN, 0}};
    int timeout = works.empty() ? -1 : IDLE_MS;

    for (const auto &work : works) {
        const int descriptor = work->descriptor();
        const bool known =
            std::any_of(polled.begin(), polled.end(), [&](const pollfd &one) {
                return one.fd == descriptor;
            });
        if (descriptor < 0)
            timeout = BUSY_MS;
        else if (!known)
            polled.push_back({descriptor, POLLIN, 0});
    }
    ::poll(polled.data(), polled.size(), timeout);
    for (const pollfd &one : polled)
        if (one.revents & POLLIN)
            drain(one.fd);
}

void Poller::run()
{
    Works works;

    for (;;) {
        sleep(works);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            works.insert(works.end(), added_.begin(), added_.end());
            added_.clear();
        }
        look(works);
    }
}

void Poller::look(Works &works)
{
    const Group *locked = nullptr; // waited for once, not for each work

    const auto complete = [&](const c10::intrusive_ptr<Work> &work) {
        try {
            const auto time = work->group() == locked
                                  ? std::chrono::milliseconds(0)
                                  : LOCK_TIME;
            if (!work->look(time)) {
                if (work->descriptor() < 0)
                    locked = work->group();
                return false;
            }
        } catch (...) {
            work->fail(std::current_exception());
        }
        teller(work->depth).add(work);
        return true;
    };
    works.erase(std::remove_if(works.begin(), works.end(), complete),
                works.end());
}

} // namespace dscomm_torch
