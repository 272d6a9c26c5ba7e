// SPDX-License-Identifier: BSD-3-Clause
#include "poller.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <set>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace dscomm_torch
{
namespace
{

using clock = std::chrono::steady_clock;

// Milliseconds between looks at works whose group has no descriptor, and at all
// works, in case of a failure that no descriptor tells.
constexpr int BUSY_MS = 1, IDLE_MS = 200;
// How long the poller waits for the lock of a group, of which another thread
// that waits for a work keeps it for 1 ms: futures of other groups wait too.
constexpr auto LOCK_TIME = std::chrono::milliseconds(3);

// How long a teller waits for more before its thread ends.
constexpr auto LINGER = std::chrono::milliseconds(2);
// How long a group is not left for works that are incomplete, and for what
// futures run; and the time between looks.
constexpr auto SETTLE_TIME = std::chrono::milliseconds(100);
constexpr auto FINISH_TIME = std::chrono::seconds(10);
constexpr auto FINISH_PAUSE = std::chrono::milliseconds(1);

thread_local int the_depth; // see Poller::depth()

// A child that fork(2) makes has no such thread, and makes its own.
std::mutex the_mutex;
Poller *the_poller;

void forget_poller()
{
    the_poller = nullptr;
    the_depth = 0;
    the_mutex.unlock();
}

void drain(int descriptor)
{
    uint64_t count;
    while (read(descriptor, &count, sizeof count) > 0)
        ;
}

// Waits, for a time at most, until done() is true. Returns at once in what a
// future runs.
template <typename Predicate>
void wait_until(clock::duration time, Predicate done)
{
    const auto end = clock::now() + time;

    if (the_depth)
        return;
    while (!done() && clock::now() < end)
        std::this_thread::sleep_for(FINISH_PAUSE);
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

int Poller::depth()
{
    return the_depth;
}

// NULL: this process has none yet.
Poller *Poller::known()
{
    std::lock_guard<std::mutex> lock(the_mutex);

    return the_poller;
}

void Poller::settle(bool for_ever)
{
    Poller *const poller = known();

    if (!poller)
        return;
    wait_until(SETTLE_TIME, [&] { return poller->works_ == 0; });
    poller->await_told();
    if (!for_ever)
        return;
    poller->ends_ = true;
    poller->wake();
    wait_until(FINISH_TIME, [&] { return poller->ended_.load(); });
    poller->await_told(); // which it gave at last
}

void Poller::await_told()
{
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t given = given_;

    lock.unlock();
    wait_until(FINISH_TIME, [&] { return has_told(given); });
}

bool Poller::has_told(uint64_t numbers)
{
    std::lock_guard<std::mutex> lock(mutex_);
    const auto long_ago = clock::now() - FINISH_TIME;

    return std::all_of(tellers_.begin(), tellers_.end(), [&](const auto &one) {
        const Teller &teller = one.second;
        return teller.works.empty() || teller.works.front().number > numbers ||
               teller.since < long_ago;
    });
}

Poller::Key Poller::key_of(const Work &work)
{
    return {work.group(), work.depth(), work.is_collective()};
}

Poller::Poller() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    TORCH_CHECK_WITH(DistBackendError, wake_ >= 0, "dscomm: eventfd failed");
    std::thread([this] { run(); }).detach();
}

void Poller::wake()
{
    const uint64_t one = 1;

    (void)!write(wake_, &one, sizeof one);
}

void Poller::add(c10::intrusive_ptr<Work> work)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        works_++;
        added_.push_back(std::move(work));
    }
    wake();
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
        if (descriptor < 0 || lacks_thread_)
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
    Works &works = *new Works; // never freed: see settle()

    while (!ends_) {
        sleep(works);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            std::move(added_.begin(), added_.end(), std::back_inserter(works));
            added_.clear();
        }
        look(works);
    }
    ended_ = true;
}

void Poller::look(Works &works)
{
    const Group *locked = nullptr; // waited for once, not for each work
    std::set<Key> before; // of which an earlier collective is not told yet

    for (auto &work : works) {
        bool complete = true;

        try {
            complete = work->look(work->group() == locked
                                      ? std::chrono::milliseconds(0)
                                      : LOCK_TIME);
            if (!complete && work->descriptor() < 0)
                locked = work->group();
        } catch (const std::exception &) {
            work->fail(std::current_exception());
        }
        if (!work->has_future()) {
            if (complete)
                drop(work);
            continue;
        }
        const Key key = key_of(*work);
        if (complete && !before.count(key))
            give(work);
        if (work && work->is_collective())
            before.insert(key);
    }
    works.erase(std::remove(works.begin(), works.end(), nullptr), works.end());
}

void Poller::give(c10::intrusive_ptr<Work> &work)
{
    const Key key = key_of(*work);
    std::lock_guard<std::mutex> lock(mutex_);
    const bool is_new = !tellers_.count(key);
    Teller &teller = tellers_[key];

    try {
        if (is_new) {
            std::thread([this, key] { tell(key); }).detach();
            lacks_thread_ = false;
        }
    } catch (const std::system_error &error) {
        if (!lacks_thread_.exchange(true))
            TORCH_WARN("dscomm: no thread for what waits for a future, which "
                       "waits until there is one: ",
                       error.what());
        tellers_.erase(key);
        return;
    }
    if (teller.works.empty())
        teller.since = clock::now();
    teller.works.push_back({++given_, std::move(work)});
    teller.added.notify_one();
}

void Poller::drop(c10::intrusive_ptr<Work> &work)
{
    work.reset();
    works_--;
}

void Poller::tell(const Key &key)
{
    std::unique_lock<std::mutex> lock(mutex_);
    Teller &teller = tellers_[key];

    the_depth = std::get<int>(key) + 1;
    while (teller.added.wait_for(lock, LINGER,
                                 [&] { return !teller.works.empty(); })) {
        auto work = std::move(teller.works.front().work);
        teller.since = clock::now();
        lock.unlock();
        try {
            work->tell();
        } catch (const std::exception &error) {
            TORCH_WARN("dscomm: what waits for a future failed: ",
                       error.what());
        }
        drop(work);
        lock.lock();
        teller.works.pop_front();
    }
    tellers_.erase(key);
}

} // namespace dscomm_torch
