// SPDX-License-Identifier: BSD-3-Clause
// A world of dscomm that backends and works share, with the lock that its one
// user at a time holds.
#pragma once

#include "error.hpp"
#include "stream.hpp"

#include <atomic>
#include <dscomm/dscomm.h>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace dscomm_torch
{

class Group
{
  public:
    // Joins the ranks that meet in store; collective.
    Group(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
          std::chrono::milliseconds timeout, const std::string &name);
    ~Group();
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;

    // Leaves the ranks; collective, unless the group has ended. Later calls
    // throw.
    void leave();
    // Ends the group on all ranks, from any thread.
    void abort(const std::string &reason);

    // The world; call with the lock held.
    dscomm_group_t *world() const;
    bool has(uint64_t capability) const;
    // The stream of the next calls, on a CUDA device; call with the lock held.
    c10::Stream set_stream(c10::Device device);
    // Whether the world was not left; call with the lock held.
    bool is_joined() const
    {
        return world_ != nullptr;
    }

    // A tensor that is freed under the lock takes it again.
    std::recursive_mutex mutex;
    // Threads that want the lock while another one waits for a work.
    std::atomic<int> wanted{0};

  private:
    // Of the world's pointer for abort(), which cannot wait for the lock.
    std::mutex life_;
    dscomm_store_t *store_ = nullptr;
    std::shared_ptr<std::atomic<bool>> store_stopped_ =
        std::make_shared<std::atomic<bool>>(false);
    dscomm_group_t *world_ = nullptr;
    Streams streams_;
    uint64_t capabilities_ = 0;
};

// Holds the lock of a group, and lets a thread that waits for a work know.
class Turn
{
  public:
    explicit Turn(Group &group) : group_(group)
    {
        group.wanted++;
        group.mutex.lock();
        group.wanted--;
    }
    ~Turn()
    {
        group_.mutex.unlock();
    }
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

  private:
    Group &group_;
};

} // namespace dscomm_torch
