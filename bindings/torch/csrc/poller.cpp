// SPDX-License-Identifier: BSD-3-Clause
#include "poller.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dscomm_torch
{
namespace
{

// Milliseconds between looks at works whose group has no descriptor, and at all
// works, in case of a failure that no descriptor tells.
constexpr int BUSY_MS = 1, IDLE_MS = 200;

void drain(int descriptor)
{
    uint64_t count;
    while (read(descriptor, &count, sizeof count) > 0)
        ;
}

} // namespace

Poller &Poller::the()
{
    // Never destroyed: it may run when the process ends.
    static Poller *poller = new Poller();
    return *poller;
}

Poller::Poller() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    TORCH_CHECK_WITH(DistBackendError, wake_ >= 0, "dscomm: eventfd failed");
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

void Poller::sleep(const std::vector<c10::intrusive_ptr<Work>> &works)
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
    std::vector<c10::intrusive_ptr<Work>> works;

    for (;;) {
        sleep(works);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            works.insert(works.end(), added_.begin(), added_.end());
            added_.clear();
        }
        works.erase(
            std::remove_if(works.begin(), works.end(),
                           [](const auto &work) { return work->poll(); }),
            works.end());
    }
}

} // namespace dscomm_torch
