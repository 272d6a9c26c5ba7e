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
    // Whether this thread is a teller.
    static bool tells();
    // Completes the work's future when the work is complete.
    void add(c10::intrusive_ptr<Work> work);
    // Has it look at its works.
    void wake();

  private:
    struct Entry {
        c10::intrusive_ptr<Work> work;
        int depth; // how deep its future was asked for; the program: 0
    };
    using Entries = std::vector<Entry>;
    // A group, the depth, and whether collectives or messages.
    using Key = std::tuple<const Group *, int, bool>;
    struct Teller {
        std::deque<c10::intrusive_ptr<Work>> works;
        std::condition_variable added;
    };

    Poller();
    void run();
    void sleep(const Entries &entries);
    // Removes the works that are complete, and gives those with a future to
    // tellers.
    void look(Entries &entries);
    // Gives a work to its teller; false: there is no thread for one now.
    bool give(const Key &key, const c10::intrusive_ptr<Work> &work);
    // The thread of a teller, which ends when there has been nothing to do.
    void tell(const Key &key);

    int wake_; // eventfd: there are new works
    bool lacks_thread_ = false; // the poller's
    std::mutex mutex_;
    // By mutex_.
    Entries added_;
    std::map<Key, Teller> tellers_;
};

} // namespace dscomm_torch
