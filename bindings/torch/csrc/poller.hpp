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
    // Before the group is left: waits, for a while, for what futures run, which
    // may use it.
    static void settle(const Group &group);
    // After the group has ended: waits, for a while, until no thread of this
    // class has a work of it. Once the program ends, they cannot have Python's
    // lock.
    static void finish(const Group &group);
    // Completes the work's future when the work is complete.
    void add(c10::intrusive_ptr<Work> work);
    // Has it look at its works.
    void wake();
    // Whether the future of a complete work must wait for what another one has
    // been running for a while, or for a thread.
    bool is_stuck(const Work &work);

  private:
    using Works = std::vector<c10::intrusive_ptr<Work>>;
    // A group, the depth, and whether collectives or messages.
    using Key = std::tuple<const Group *, int, bool>;
    struct Teller {
        std::deque<c10::intrusive_ptr<Work>> works;
        std::condition_variable added;
        const Work *told = nullptr; // the one that it tells
        std::chrono::steady_clock::time_point since;
    };

    static Key key_of(const Work &work);

    Poller();
    // Whether no future waits for its teller, and none runs anything.
    bool is_idle();
    void run();
    void sleep(const Works &works);
    // Removes the works that are complete, and gives those with a future to
    // tellers.
    void look(Works &works);
    // Lets go of a work, whose group then counts one less.
    void drop(c10::intrusive_ptr<Work> &work);
    // Gives a work to its teller, unless there is no thread for one now.
    void give(c10::intrusive_ptr<Work> &work);
    // The thread of a teller, which ends when there has been nothing to do.
    void tell(const Key &key);

    int wake_; // eventfd: there are new works
    std::atomic<bool> lacks_thread_{false};
    std::atomic<int> count_{0}; // of works
    std::mutex mutex_; // locked after a work's
    // By mutex_.
    Works added_;
    std::map<Key, Teller> tellers_;
};

} // namespace dscomm_torch
