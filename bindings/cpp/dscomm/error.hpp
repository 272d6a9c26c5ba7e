// SPDX-License-Identifier: BSD-3-Clause
// A failed call is an exception.
#ifndef DSCOMM_ERROR_HPP
#define DSCOMM_ERROR_HPP

// In C++ a function hides a structure of its name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <dscomm/dscomm.h>
#pragma GCC diagnostic pop

#include <memory>
#include <stdexcept>
#include <string>

namespace dscomm
{

// The status of a call that has failed; what() is its sentence.
class Error : public std::runtime_error
{
  public:
    Error(dscomm_status_t status, const std::string &sentence)
        : std::runtime_error(sentence), status_(status)
    {
    }
    dscomm_status_t status() const noexcept
    {
        return status_;
    }

  private:
    dscomm_status_t status_;
};

// Throws the failure of the call that has just returned status, if it is one;
// else returns status, which is OK or IN_PROGRESS.
inline dscomm_status_t check(dscomm_status_t status)
{
    if (status < 0)
        throw Error(status, dscomm_last_error());
    return status;
}

namespace detail
{

// Bytes that the library has allocated, which release() frees.
inline std::string take(void *bytes, std::size_t size, void (*release)(void *))
{
    const std::unique_ptr<void, void (*)(void *)> owner(bytes, release);
    return size ? std::string(static_cast<char *>(bytes), size) : std::string();
}

} // namespace detail
} // namespace dscomm

#endif
