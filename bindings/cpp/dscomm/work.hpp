// SPDX-License-Identifier: BSD-3-Clause
// Works: operations that were started and may still run.
#ifndef DSCOMM_WORK_HPP
#define DSCOMM_WORK_HPP

#include <cstdint>
#include <dscomm/error.hpp>
#include <exception>
#include <utility>
#include <vector>

namespace dscomm
{

namespace detail
{

// Frees a work that is complete. If it is not, waits for it, or ends it with
// its group if an exception leaves: buffers may be gone afterwards. (On backend
// mpi, and with DSCOMM_TCP_ZEROCOPY, one may be in use even then: see
// dscomm_work(3).)
struct FreeWork {
    int exceptions = std::uncaught_exceptions();

    void operator()(dscomm_work_t *work) const noexcept
    {
        if (dscomm_work_test(work) == DSCOMM_IN_PROGRESS) {
            if (std::uncaught_exceptions() > exceptions) {
                dscomm_work_cancel(work); // a receive without a message
                if (dscomm_work_test(work) == DSCOMM_IN_PROGRESS)
                    dscomm_group_abort(
                        dscomm_work_group(work),
                        "an exception has left the scope of a work");
            }
            dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
        }
        dscomm_work_free(work);
    }
};

} // namespace detail

// The owner of a work. Its destructor waits until the work is complete, or
// aborts the group if an exception leaves; buffers are declared before it.
class [[nodiscard]] Work
{
  public:
    Work() = default;
    explicit Work(dscomm_work_t *work) : work_(work)
    {
    }
    dscomm_work_t *get() const noexcept
    {
        return work_.get();
    }
    explicit operator bool() const noexcept
    {
        return work_ != nullptr;
    }

    // Waits until the work is complete.
    void wait() const
    {
        wait(DSCOMM_TIMEOUT_DEFAULT);
    }
    // These two return whether it is complete, and throw its failure.
    bool wait(int timeout_ms) const
    {
        return check(dscomm_work_wait(get(), timeout_ms)) == DSCOMM_OK;
    }
    bool test() const
    {
        return check(dscomm_work_test(get())) == DSCOMM_OK;
    }
    void cancel() const
    {
        check(dscomm_work_cancel(get()));
    }
    void set_timeout(int timeout_ms) const
    {
        check(dscomm_work_set_timeout(get(), timeout_ms));
    }
    // What a receive has got: the only one, or that of number index among
    // coalesced calls
    dscomm_message_info_t received(std::size_t index = 0) const
    {
        dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
        check(dscomm_work_received_at(get(), index, &info));
        return info;
    }
    std::uint64_t sequence() const
    {
        return dscomm_work_sequence(get());
    }

  private:
    std::unique_ptr<dscomm_work_t, detail::FreeWork> work_;
};

namespace detail
{

template <typename Works>
std::vector<dscomm_work_t *> handles(const Works &works)
{
    std::vector<dscomm_work_t *> handles;
    for (const Work &work : works)
        handles.push_back(work.get());
    return handles;
}

} // namespace detail

// Waits until all works of a container are complete; returns whether they are,
// and throws the first failure.
template <typename Works>
bool wait_all(const Works &works, int timeout_ms = DSCOMM_TIMEOUT_DEFAULT)
{
    const auto handles = detail::handles(works);
    return check(dscomm_work_wait_all(handles.data(), handles.size(),
                                      timeout_ms)) == DSCOMM_OK;
}

// Waits until one of them is complete; returns its index, or the number of
// works if none is within timeout_ms. Throws the failure of that one.
template <typename Works>
std::size_t wait_any(const Works &works,
                     int timeout_ms = DSCOMM_TIMEOUT_DEFAULT)
{
    const auto handles = detail::handles(works);
    std::size_t index = handles.size();
    check(dscomm_work_wait_any(handles.data(), handles.size(), timeout_ms,
                               &index));
    return index;
}

} // namespace dscomm

#endif
