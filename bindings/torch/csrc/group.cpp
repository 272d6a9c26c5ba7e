// SPDX-License-Identifier: BSD-3-Clause
#include "group.hpp"

#include "store.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dscomm_torch
{

namespace
{

// How long a rank that leaves waits for works that go on.
constexpr auto LEAVE_TIME = std::chrono::milliseconds(100);

void look(dscomm_work_t *work, Ending &ending)
{
    ending.status = dscomm_work_test(work);
    if (ending.status < 0)
        ending.sentence = sentence_of(ending.status);
    else if (ending.receives && ending.status != DSCOMM_IN_PROGRESS)
        dscomm_work_received(work, &ending.source, nullptr, nullptr);
}

} // namespace

Group::Group(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
             std::chrono::milliseconds timeout, const std::string &name)
    : process_(getpid())
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

    check_timeout(timeout);
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
    if (world_)
        end_works();
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

// What has not ended is freed with the world. Nobody may have looked at a work
// that needs little more.
void Group::end_works()
{
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + LEAVE_TIME;

    for (auto &[work, ending] : works_) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - clock::now());
        if (left.count() > 0)
            dscomm_work_wait(work, milliseconds(left));
        look(work, ending);
        if (ending.status == DSCOMM_IN_PROGRESS) {
            ending.status = DSCOMM_ERR_STATE;
            ending.sentence = "the process group was destroyed";
        }
    }
}

void Group::abort(const std::string &reason)
{
    check_process();
    // Not under the group's lock: a thread that waits holds it.
    std::lock_guard<std::mutex> life(life_);

    if (world_)
        dscomm_group_abort(world_, reason.c_str());
}

dscomm_status_t Group::status()
{
    check_process();
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

void Group::add(dscomm_work_t *work, bool receives)
{
    if (work)
        works_[work].receives = receives;
}

Ending Group::end_of(dscomm_work_t *work)
{
    const auto place = works_.find(work);

    TORCH_INTERNAL_ASSERT(place != works_.end());
    if (world_)
        look(work, place->second);
    if (place->second.status == DSCOMM_IN_PROGRESS)
        return {};
    if (world_)
        dscomm_work_free(work);
    return std::move(works_.extract(place).mapped());
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
    if (is_forked() || !has_unmapped_.exchange(false))
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
        group.check_process(); // a thread of the parent has it
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
