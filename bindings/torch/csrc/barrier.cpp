// SPDX-License-Identifier: BSD-3-Clause
// The monitored barrier of the backend.
#include "backend.hpp"

#include <algorithm>

namespace dscomm_torch
{

// The words that torch's programs look for in the sentence of a failed barrier.
std::string Backend::barrier_text(const std::vector<int> &late, bool all,
                                  int64_t timeout) const
{
    const int first = late.empty() ? 0 : late[0];
    std::string list = std::to_string(first);

    if (rank_ != 0 && std::find(late.begin(), late.end(), rank_) != late.end())
        return c10::str("Rank ", rank_,
                        " came too late to monitoredBarrier, which the other "
                        "ranks have given up");
    if (rank_ != 0)
        return c10::str("Rank ", rank_,
                        " successfully reached monitoredBarrier,"
                        " but received errors while waiting for send/recv from "
                        "rank 0");
    if (first == 0)
        return c10::str("Rank 0 timed out in monitoredBarrier after ", timeout,
                        " ms");
    for (size_t i = 1; all && i < late.size(); i++)
        list += c10::str(", ", late[i]);
    return c10::str(all ? "Ranks " : "Rank ", list,
                    " failed to pass monitoredBarrier in ", timeout, " ms");
}

void Backend::monitoredBarrier(const c10d::BarrierOptions &options, bool all)
{
    const auto timeout = options.timeout == c10d::kUnsetTimeout
                             ? options_->timeout
                             : options.timeout;
    std::vector<int> late(size_);
    int count = 0;

    TORCH_CHECK(timeout.count() >= 0, "dscomm: monitored_barrier() of ",
                timeout.count(), " ms, which is negative");
    Turn turn(*group_);
    TORCH_CHECK_WITH(DistBackendError, timeout.count() > 0,
                     "dscomm: ", barrier_text({}, all, timeout.count()));
    check_batch();
    const dscomm_status_t status = dscomm_monitored_barrier_late(
        group_->world(), milliseconds(timeout), late.data(), &count);
    late.resize(count);
    TORCH_CHECK_WITH(DistBackendError,
                     status >= 0 ||
                         (late.empty() && status != DSCOMM_ERR_TIMEOUT),
                     "dscomm: ", barrier_text(late, all, timeout.count()), ": ",
                     dscomm_last_error());
    check(status);
}

} // namespace dscomm_torch
