// SPDX-License-Identifier: BSD-3-Clause
// The threads that complete futures. The poller sleeps until the library, whose
// progress thread runs then, says that a work is complete. A teller completes
// the futures, one after the other, so that all ranks run what waits for them
// in one order. What it runs may wait for a future that it has asked for
// itself: these are another teller's, one for each depth of nesting.
#pragma once

#include "work.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

namespace dscomm_torch
{

class Teller
{
  public:
    // The depth of works that this thread adds to the poller.
    static int depth();
    explicit Teller(int depth);
    void add(c10::intrusive_ptr<Work> work);

  private:
    void run(int depth);

    std::mutex mutex_;
    std::condition_variable added_;
    std::deque<c10::intrusive_ptr<Work>> works_;
};

class Poller
{
  public:
    static Poller &the();
    // Completes the work's future when the work is complete.
    void add(c10::intrusive_ptr<Work> work);

  private:
    using Works = std::vector<c10::intrusive_ptr<Work>>;

    Poller();
    void run();
    void sleep(const Works &works);
    // Removes the works that are complete, and gives them to tellers.
    void look(Works &works);
    Teller &teller(int depth);

    int wake_; // eventfd: there are new works
    std::mutex mutex_;
    // By mutex_.
    Works added_;
    std::map<int, std::unique_ptr<Teller>> tellers_; // by depth
};

} // namespace dscomm_torch
