// SPDX-License-Identifier: BSD-3-Clause
// The threads that complete futures. One of them sleeps until the library,
// whose progress thread runs then, says that a work is complete. What a future
// runs may wait for another future, so there is always a thread that is free.
#pragma once

#include "work.hpp"

#include <condition_variable>
#include <deque>
#include <thread>

namespace dscomm_torch
{

class Poller
{
  public:
    static Poller &the();
    // Completes the work's future when the work is complete.
    void add(c10::intrusive_ptr<Work> work);

  private:
    using Works = std::vector<c10::intrusive_ptr<Work>>;

    Poller();
    void start(); // another thread
    void run();
    void sleep(const Works &works);
    // Moves the works that are complete to the result.
    Works look(Works &works);
    // Polls once; without the lock meanwhile.
    void lead(std::unique_lock<std::mutex> &lock);

    int wake_; // eventfd: there are new works
    Works works_; // of the thread that polls
    std::mutex mutex_;
    // By mutex_.
    std::condition_variable changed_;
    Works added_;
    std::deque<c10::intrusive_ptr<Work>> complete_; // whose futures are not
    bool led_ = false; // a thread polls
    int idle_ = 0; // threads that do nothing
};

} // namespace dscomm_torch
