// SPDX-License-Identifier: BSD-3-Clause
// Statuses of dscomm as torch's exceptions.
#pragma once

#include <c10/util/Exception.h>
#include <chrono>
#include <climits>
#include <dscomm/dscomm.h>
#include <string>

namespace dscomm_torch
{

// The sentence of this thread's last failure. That of a time-out has the word
// which programs look for in torch's exceptions.
inline std::string sentence_of(dscomm_status_t status)
{
    const std::string sentence = dscomm_last_error();
    return status == DSCOMM_ERR_TIMEOUT ? "the timeout has passed: " + sentence
                                        : sentence;
}

// Throws DistBackendError with dscomm's sentence if a call has failed.
inline void check(dscomm_status_t status)
{
    TORCH_CHECK_WITH(DistBackendError, status >= 0,
                     "dscomm: ", sentence_of(status));
}

inline void check_timeout(std::chrono::milliseconds timeout)
{
    TORCH_CHECK(timeout.count() >= 0,
                "dscomm: the timeout of a process group is negative: ",
                timeout.count(), " ms");
}

// A time for dscomm, at least 1 ms and at most what an int has.
inline int milliseconds(std::chrono::milliseconds time)
{
    const auto count = time.count();
    return static_cast<int>(count < 1 ? 1 : count > INT_MAX ? INT_MAX : count);
}

} // namespace dscomm_torch
