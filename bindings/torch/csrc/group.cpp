// SPDX-License-Identifier: BSD-3-Clause
#include "group.hpp"

#include "store.hpp"

namespace dscomm_torch
{

Group::Group(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
             std::chrono::milliseconds timeout, const std::string &name)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

    store_ = open_store(store, timeout, store_stopped_);
    attr.store = store_;
    attr.has_rank = 1;
    attr.rank = rank;
    attr.world_size = size;
    attr.timeout_ms = milliseconds(timeout);
    attr.name = name.empty() ? nullptr : name.c_str();
    if (dscomm_init(&attr, &world_) < 0) {
        const std::string sentence = dscomm_last_error();
        dscomm_store_close(store_);
        TORCH_CHECK_WITH(DistBackendError, false, "dscomm: ", sentence);
    }
    capabilities_ = dscomm_group_capabilities(world_);
}

Group::~Group()
{
    try {
        leave();
    } catch (const std::exception &) {
        // The sentence is in the log.
    }
}

void Group::leave()
{
    Turn turn(*this);
    std::unique_lock<std::mutex> life(life_);
    dscomm_group_t *world = std::exchange(world_, nullptr);
    life.unlock();
    // Its server may be a rank that has ended. torch's stores keep the keys of
    // groups that were destroyed.
    *store_stopped_ = true;
    dscomm_store_t *store = std::exchange(store_, nullptr);
    // A failure that has ended the group before is the result of other calls.
    const bool ended = world && dscomm_group_status(world) < 0;
    const dscomm_status_t status = world ? dscomm_finalize(world) : DSCOMM_OK;
    const std::string sentence = status < 0 ? dscomm_last_error() : "";

    dscomm_store_close(store);
    TORCH_CHECK_WITH(DistBackendError, status >= 0 || ended,
                     "dscomm: ", sentence);
}

void Group::abort(const std::string &reason)
{
    // Not under the group's lock: a thread that waits holds it.
    std::lock_guard<std::mutex> life(life_);

    if (world_)
        dscomm_group_abort(world_, reason.c_str());
}

dscomm_group_t *Group::world() const
{
    TORCH_CHECK_WITH(DistBackendError, world_,
                     "dscomm: the process group was destroyed");
    return world_;
}

bool Group::has(uint64_t capability) const
{
    return capabilities_ & capability;
}

c10::Stream Group::set_stream(c10::Device device)
{
    const c10::Stream stream = streams_.of(device);

    check(dscomm_group_set_stream(world(), stream.native_handle()));
    return stream;
}

} // namespace dscomm_torch
