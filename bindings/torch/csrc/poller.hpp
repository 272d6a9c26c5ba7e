// SPDX-License-Identifier: BSD-3-Clause
// The threads that complete futures. The poller sleeps until the library, whose
// progress thread runs then, says that a work is complete. Tellers complete the
// futures and run what waits for them. What runs may wait for a future that it
// has asked for itself, so that is another teller's, one for each depth of
// nesting. Collectives of a group that were asked for at one depth are told in
// the order in which they were asked for; messages, which ranks need not make
// in one order, have tellers of their own.
#pragma once

#include "work.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>
#include <tuple>

namespace dscomm_torch
{

class Poller
{
  public:
    static Poller &the();
    // How deep what this thread runs is nested: 0 for the program's threads,
    // and one more than the depth of its works for a teller.
    static int depth();
    // Waits, for a while, for what futures run: before a group is left, which
    // that may use; and for ever, when Python ends, after which its lock cannot
    // be had. Then the poller looks at no work any more.
    static void settle(bool for_ever);
    // Completes the work's future when the work is complete.
    void add(c10::intrusive_ptr<Work> work);
    // Has it look at its works.
    void wake();
    // Whether it completes no work any more.
    bool has_ended() const
    {
        return ends_;
    }

  private:
    using Works = std::vector<c10::intrusive_ptr<Work>>;
    // A group, the depth, and whether collectives or messages.
    using Key = std::tuple<const Group *, int, bool>;
    struct Given {
        uint64_t number; // of all that were given
        c10::intrusive_ptr<Work> work; // NULL: it is being told
    };
    struct Teller {
        std::deque<Given> works;
        std::condition_variable added;
        // When it began to tell the first of them.
        std::chrono::steady_clock::time_point since;
    };

    static Key key_of(const Work &work);

    Poller();
    static Poller *known();

    // Whether the works of the first numbers are told, but for those that wait
    // for what another one has been running for long.
    bool has_told(uint64_t numbers);
    // Waits, for a while, for those that were given by now.
    void await_told();
    void run();
    void sleep(const Works &works);
    // Removes the works that are complete, and gives those with a future to
    // tellers.
    void look(Works &works);
    // Lets go of a work.
    void drop(c10::intrusive_ptr<Work> &work);
    // Gives a work to its teller, unless there is no thread for one now.
    void give(c10::intrusive_ptr<Work> &work);
    // The thread of a teller, which ends when there has been nothing to do.
    void tell(const Key &key);

    int wake_; // eventfd: there are new works
    std::atomic<bool> lacks_thread_{false};
    std::atomic<int> works_{0}; // that are not dropped
    std::atomic<bool> ends_{false}, ended_{false};
    std::mutex mutex_; // locked after a work's
    // By mutex_.
    Works added_;
    std::map<Key, Teller> tellers_;
    uint64_t given_ = 0;
};

} // namespace dscomm_torch
