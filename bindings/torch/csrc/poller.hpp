// SPDX-License-Identifier: BSD-3-Clause
// The thread that completes futures. It sleeps until the library, whose
// progress thread runs then, says that a work is complete.
#pragma once

#include "work.hpp"

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
    void run();
    void sleep(const Works &works);
    // Removes the works that are complete.
    void look(Works &works);

    int wake_; // eventfd: there are new works
    std::mutex mutex_;
    std::vector<c10::intrusive_ptr<Work>> added_;
};

} // namespace dscomm_torch
