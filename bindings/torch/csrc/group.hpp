// SPDX-License-Identifier: BSD-3-Clause
// A world of dscomm that backends and works share, with the lock that its one
// user at a time holds.
#pragma once

#include "error.hpp"
#include "stream.hpp"

#include <any>
#include <atomic>
#include <dscomm/dscomm.h>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <unordered_map>
#include <vector>

namespace dscomm_torch
{

// How a work has ended.
struct Ending {
    bool receives = false;
    dscomm_status_t status = DSCOMM_IN_PROGRESS;
    int source = -1;
    std::string sentence; // of a failure
};

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

    // The status of the world, from any thread; throws once it was left.
    dscomm_status_t status();

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

    // Adds a work that a call has started, or NULL for none: its result remains
    // when the world is left. Call with the lock held, as end_of().
    void add(dscomm_work_t *work, bool receives);
    // Looks whether a work is complete; then it is freed.
    Ending end_of(dscomm_work_t *work);
    // Whether a call has works whose end nobody has taken; call with the lock
    // held.
    bool has_works() const
    {
        return !works_.empty();
    }

    // Readable when a work of the world completes or the world was left; -1:
    // look at all times. Lives as long as the group. Call with the lock held.
    int descriptor();
    // Keeps memory that messages of a failed call may use until the world has
    // ended; call with the lock held.
    void keep(std::any memory);
    // Unmaps memory, after it was deregistered by a holder of the lock: this
    // thread if nobody has it now. Never waits: the thread may have Python's
    // lock, for which the holder may wait.
    void unmap(dscomm_mem_t *mem, void *memory, size_t bytes);
    // Whether this process is a child that fork(2) made of the group's.
    bool is_forked() const;
    // Throws if it is: the threads that the group needs are the parent's.
    void check_process() const;

    // Calls that are several ones of dscomm lock it again.
    std::recursive_timed_mutex mutex;
    // Several threads have wanted the lock at once.
    std::atomic<bool> shared{false};

  private:
    friend class Turn;
    struct Pages {
        dscomm_mem_t *mem;
        void *memory;
        size_t bytes;
    };

    void unmap_all();
    void end_works();

    // Of the world's pointer for abort(), which cannot wait for the lock.
    std::mutex life_;
    dscomm_store_t *store_ = nullptr;
    std::shared_ptr<std::atomic<bool>> store_stopped_ =
        std::make_shared<std::atomic<bool>>(false);
    dscomm_group_t *world_ = nullptr;
    Streams streams_;
    uint64_t capabilities_ = 0;
    int descriptor_ = -1; // a copy of the world's
    const pid_t process_;
    std::vector<std::any> kept_;
    std::unordered_map<dscomm_work_t *, Ending> works_;
    std::mutex unmapped_mutex_;
    std::vector<Pages> unmapped_; // to unmap
    std::atomic<bool> has_unmapped_{false};
};

// Holds the lock of a group, and lets a thread that waits for a work know.
class Turn
{
  public:
    explicit Turn(Group &group);
    // Waits for the lock no longer than time: see is_mine().
    Turn(Group &group, std::chrono::milliseconds time);
    ~Turn();
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

    bool is_mine() const
    {
        return mine_;
    }

  private:
    Group &group_;
    bool mine_ = true;
};

} // namespace dscomm_torch
