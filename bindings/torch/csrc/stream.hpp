// SPDX-License-Identifier: BSD-3-Clause
// The streams of a group on CUDA devices. torch's interface for any kind of
// device is used, so that the extension needs no CUDA to be built.
#pragma once

#include <c10/core/Stream.h>
#include <functional>
#include <map>
#include <optional>

namespace dscomm_torch
{

// Waits for what is on the thread's current stream of a device. Throws if the
// stream is captured in a graph, which the host cannot wait for.
void wait_for_current(c10::Device device);

class Streams
{
  public:
    // The group's stream on a device, for dscomm's copies. They do not wait for
    // what the program enqueues on its own streams meanwhile.
    c10::Stream of(c10::Device device);

  private:
    std::map<c10::DeviceIndex, c10::Stream> streams_;
};

// Calls function with stream as its device's current one, and waits for what
// function has enqueued there. Without a stream, only calls function.
void run_on(const std::optional<c10::Stream> &stream,
            const std::function<void()> &function);

} // namespace dscomm_torch
