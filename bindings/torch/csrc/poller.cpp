// SPDX-License-Identifier: BSD-3-Clause
#include "poller.hpp"

#include <algorithm>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <system_error>
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

Poller::Poller() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    TORCH_CHECK_WITH(DistBackendError, wake_ >= 0, "dscomm: eventfd failed");
    start();
}

void Poller::start()
{
    std::thread([this] { run(); }).detach();
}

void Poller::add(c10::intrusive_ptr<Work> work)
{
    const uint64_t one = 1;
    {
        std::lock_guard<std::mutex> lock(mutex_);
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

void Poller::lead(std::unique_lock<std::mutex> &lock)
{
    led_ = true;
    lock.unlock();
    sleep(works_);
    lock.lock();
    works_.insert(works_.end(), added_.begin(), added_.end());
    added_.clear();
    lock.unlock();
    const Works done = look(works_);
    lock.lock();
    led_ = false;
    complete_.insert(complete_.end(), done.begin(), done.end());
}

void Poller::run()
{
    std::unique_lock<std::mutex> lock(mutex_);

    for (;;) {
        ++idle_;
        changed_.wait(lock, [this] { return !led_ || !complete_.empty(); });
        --idle_;
        if (complete_.empty()) {
            lead(lock);
            continue;
        }
        auto work = std::move(complete_.front());
        complete_.pop_front();
        try {
            if (!idle_)
                start();
        } catch (const std::system_error &) {
            // This thread goes on when the future has run what waits for it.
        }
        changed_.notify_all();
        lock.unlock();
        work->tell();
        work.reset();
        lock.lock();
    }
}

Poller::Works Poller::look(Works &works)
{
    const Group *locked = nullptr; // waited for once, not for each work

    const auto under_way = [&](const c10::intrusive_ptr<Work> &work) {
        try {
            const auto time = work->group() == locked
                                  ? std::chrono::milliseconds(0)
                                  : LOCK_TIME;
            if (work->look(time))
                return false;
            if (work->descriptor() < 0)
                locked = work->group();
        } catch (...) {
            work->fail(std::current_exception());
            return false;
        }
        return true;
    };
    const auto end =
        std::stable_partition(works.begin(), works.end(), under_way);
    const Works done(end, works.end());

    works.erase(end, works.end());
    return done;
}

} // namespace dscomm_torch
