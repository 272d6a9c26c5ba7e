// SPDX-License-Identifier: BSD-3-Clause
// The threads that complete futures. The poller sleeps until the library, whose
// progress thread runs then, says that a work is complete. Tellers complete the
// futures and run what waits for them, the collectives of a group in the order
// in which their futures were asked for, which is the same on all ranks. What
// runs may wait for a future that it has asked for itself: that is another
// teller's, one for each depth of nesting.
#pragma once

#include "work.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <thread>

namespace dscomm_torch
{

// Of what waits for a future, while it runs.
struct Asker {
    int depth;
    std::shared_ptr<Asker> parent; // which has asked for that future, or NULL
    std::atomic<bool> runs{true};
};

class Poller
{
  public:
    static Poller &the();
    // Completes the work's future when the work is complete.
    void add(c10::intrusive_ptr<Work> work);
    // Has it look at its works.
    void wake();

  private:
    struct Entry {
        c10::intrusive_ptr<Work> work;
        std::shared_ptr<Asker> asker;
    };
    using Entries = std::vector<Entry>;
    using Key = std::pair<const Group *, int>; // and the depth
    struct Teller {
        std::deque<Entry> entries;
        std::condition_variable added;
    };

    Poller();
    void run();
    void sleep(const Entries &entries);
    // Removes the works that are complete, and gives those with a future to
    // tellers.
    void look(Entries &entries);
    void give(Entry entry);
    // The thread of a teller, which ends when there has been nothing to do.
    void tell(Key key);

    int wake_; // eventfd: there are new works
    std::mutex mutex_;
    // By mutex_.
    Entries added_;
    std::map<Key, Teller> tellers_;
};

} // namespace dscomm_torch
