// SPDX-License-Identifier: BSD-3-Clause
#include "stream.hpp"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

namespace dscomm_torch
{

void wait_for_current(c10::Device device)
{
    const auto stream =
        c10::impl::VirtualGuardImpl(device.type()).getStream(device);

    TORCH_CHECK(!stream.is_capturing(),
                "dscomm: the host waits in a call on CUDA tensors, so the call "
                "cannot be captured in a CUDA graph");
    stream.synchronize();
}

c10::Stream Streams::of(c10::Device device)
{
    const auto found = streams_.find(device.index());

    if (found != streams_.end())
        return found->second;
    const auto stream = c10::impl::VirtualGuardImpl(device.type())
                            .getStreamFromGlobalPool(device, true);
    streams_.emplace(device.index(), stream);
    return stream;
}

void run_on(const std::optional<c10::Stream> &stream,
            const std::function<void()> &function)
{
    const c10::OptionalStreamGuard guard(stream);

    function();
    if (stream)
        stream->synchronize();
}

} // namespace dscomm_torch
