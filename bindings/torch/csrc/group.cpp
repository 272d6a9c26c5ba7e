// SPDX-License-Identifier: BSD-3-Clause
#include "group.hpp"

#include "store.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dscomm_torch
{

Group::Group(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
             std::chrono::milliseconds timeout, const std::string &name)
    : process_(getpid())
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
    if (descriptor_ >= 0)
        close(descriptor_);
}

void Group::leave()
{
    if (is_forked())
        return;
    std::vector<std::any> kept; // freed without the lock
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
    kept.swap(kept_);
    unmap_all();
    const uint64_t one = 1;
    if (descriptor_ >= 0)
        (void)!write(descriptor_, &one, sizeof one);
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

dscomm_status_t Group::status()
{
    std::lock_guard<std::mutex> life(life_);

    return dscomm_group_status(world());
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

int Group::descriptor()
{
    int descriptor;

    if (descriptor_ < 0 && world_ &&
        dscomm_group_fd(world_, &descriptor) == DSCOMM_OK)
        descriptor_ = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return descriptor_;
}

void Group::keep(std::any memory)
{
    if (world_)
        kept_.push_back(std::move(memory));
}

void Group::unmap(dscomm_mem_t *mem, void *memory, size_t bytes)
{
    if (is_forked()) {
        munmap(memory, bytes);
        return;
    }
    {
        std::lock_guard<std::mutex> lock(unmapped_mutex_);
        unmapped_.push_back({mem, memory, bytes});
        has_unmapped_ = true;
    }
    const Turn turn(*this, std::chrono::milliseconds(0));
}

// Memory that a work still uses stays.
void Group::unmap_all()
{
    if (!has_unmapped_.exchange(false))
        return;
    std::lock_guard<std::mutex> lock(unmapped_mutex_);

    for (const Pages &pages : unmapped_)
        if (!world_ || dscomm_mem_deregister(pages.mem) == DSCOMM_OK)
            munmap(pages.memory, pages.bytes);
    unmapped_.clear();
}

bool Group::is_forked() const
{
    return getpid() != process_;
}

void Group::check_process() const
{
    TORCH_CHECK_WITH(DistBackendError, !is_forked(),
                     "dscomm: this process is a child that a rank has forked, "
                     "and cannot use the rank's process group");
}

Turn::Turn(Group &group) : group_(group)
{
    if (!group.mutex.try_lock()) {
        group.check_process(); // a thread of the parent has it
        group.shared = true;
        group.mutex.lock();
    }
    group.unmap_all();
}

Turn::Turn(Group &group, std::chrono::milliseconds time)
    : group_(group), mine_(group.mutex.try_lock())
{
    if (!mine_) {
        group.shared = true;
        mine_ = time.count() > 0 && group.mutex.try_lock_for(time);
    }
    if (mine_)
        group.unmap_all();
}

Turn::~Turn()
{
    if (mine_)
        group_.mutex.unlock();
}

} // namespace dscomm_torch
