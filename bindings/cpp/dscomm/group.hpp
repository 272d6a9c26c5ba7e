// SPDX-License-Identifier: BSD-3-Clause
// Groups, and what belongs to them: messages, memory, coalesced calls,
// operators.
#ifndef DSCOMM_GROUP_HPP
#define DSCOMM_GROUP_HPP

#include <algorithm>
#include <dscomm/calls.hpp>
#include <exception>
#include <optional>
#include <string_view>

namespace dscomm
{

class Group;

namespace detail
{

// Frees a group. A world that an exception leaves is aborted first: otherwise
// it would wait for ranks that wait for this one.
struct FreeGroup {
    dscomm_status_t (*release)(dscomm_group_t *) = dscomm_group_free;
    int exceptions = std::uncaught_exceptions();

    void operator()(dscomm_group_t *group) const noexcept
    {
        if (release == dscomm_finalize &&
            std::uncaught_exceptions() > exceptions)
            dscomm_group_abort(group,
                               "an exception has left the scope of the world");
        release(group);
    }
};

// The memory's group may be gone already, and the memory with it.
struct FreeMemory {
    dscomm_group_t *group = nullptr;

    void operator()(void *memory) const noexcept
    {
        dscomm_mem_free(group, memory);
    }
};

struct Deregister {
    void operator()(dscomm_mem_t *mem) const noexcept
    {
        dscomm_mem_deregister(mem);
    }
};

} // namespace detail

// Memory that the group's backend moves without copies: a buffer of zeros, to
// be destroyed before its group.
template <typename T> class Memory
{
  public:
    Memory() = default;
    Memory(dscomm_group_t *group, std::size_t size) : size_(size)
    {
        void *memory = nullptr;
        // What overflows is more than there is.
        const auto bytes =
            size > SIZE_MAX / sizeof(T) ? SIZE_MAX : size * sizeof(T);
        check(dscomm_mem_alloc(group, bytes, &memory));
        memory_ = Owner(static_cast<T *>(memory), {group});
    }
    T *get() const noexcept
    {
        return memory_.get();
    }
    T *data() const noexcept
    {
        return memory_.get();
    }
    std::size_t size() const noexcept
    {
        return memory_ ? size_ : 0;
    }
    T &operator[](std::size_t index) const
    {
        return data()[index];
    }

  private:
    static_assert(std::is_trivial_v<T>);
    using Owner = std::unique_ptr<T, detail::FreeMemory>;
    Owner memory_;
    std::size_t size_ = 0;
};

// Registered memory: ranks that have the key may put and get in it. To be
// destroyed before its group, and before the memory.
class Registration
{
  public:
    Registration() = default;
    explicit Registration(dscomm_mem_t *mem) : mem_(mem)
    {
    }
    dscomm_mem_t *get() const noexcept
    {
        return mem_.get();
    }
    Key key() const
    {
        Key key;
        check(dscomm_mem_key(get(), key.data()));
        return key;
    }
    // Ends the registration; the destructor does so, too, without a failure.
    // With these two the memory stays registered.
    void close()
    {
        const auto status = dscomm_mem_deregister(get());
        if (status != DSCOMM_ERR_STATE && status != DSCOMM_ERR_NO_MEMORY)
            static_cast<void>(mem_.release());
        check(status);
    }

  private:
    std::unique_ptr<dscomm_mem_t, detail::Deregister> mem_;
};

// The calls that start and return a Work; see Group::start().
class Start : public detail::Calls<Start, detail::Starting>
{
  public:
    using Calls::get;

    explicit Start(dscomm_group_t *group) : group_(group)
    {
    }
    dscomm_group_t *get() const noexcept
    {
        return group_;
    }
    template <typename S> Work send(S &&buffer, int dest, int tag) const
    {
        return detail::Starting::run<S>([&](dscomm_work_t **work) {
            return dscomm_isend(group_, std::data(buffer), std::size(buffer),
                                detail::type<S>(), dest, tag, work);
        });
    }
    template <typename R> Work recv(R &&buffer, int source, int tag) const
    {
        return detail::Starting::run<R>([&](dscomm_work_t **work) {
            return dscomm_irecv(group_, std::data(buffer), std::size(buffer),
                                detail::type<R>(), source, tag, work);
        });
    }

  private:
    dscomm_group_t *group_;
};

// The owner of a group, or of none: of a rank that is not in the new group. A
// world is destroyed after all that is of it.
class Group : public detail::Calls<Group, detail::Blocking>
{
  public:
    using Calls::get;

    Group() = default;
    // A group that dscomm_group_free() frees, or a world, which
    // dscomm_finalize() frees
    explicit Group(
        dscomm_group_t *group,
        dscomm_status_t (*release)(dscomm_group_t *) = dscomm_group_free)
        : group_(group, {release})
    {
    }
    dscomm_group_t *get() const noexcept
    {
        return group_.get();
    }
    explicit operator bool() const noexcept
    {
        return group_ != nullptr;
    }
    // Frees the group, or throws why not; a world is gone all the same.
    void close()
    {
        const auto release = group_.get_deleter().release;
        const auto status = release(get());
        if (status == DSCOMM_OK || release == dscomm_finalize)
            static_cast<void>(group_.release());
        check(status);
    }

    int rank() const noexcept
    {
        return dscomm_group_rank(get());
    }
    int size() const noexcept
    {
        return dscomm_group_size(get());
    }
    int local_rank() const noexcept
    {
        return dscomm_group_local_rank(get());
    }
    int local_size() const noexcept
    {
        return dscomm_group_local_size(get());
    }
    int node_rank() const noexcept
    {
        return dscomm_group_node_rank(get());
    }
    const char *name() const noexcept
    {
        return dscomm_group_name(get());
    }
    const char *backend() const noexcept
    {
        return dscomm_group_backend(get());
    }
    const char *id() const noexcept
    {
        return dscomm_group_id(get());
    }
    int timeout() const noexcept
    {
        return dscomm_group_timeout(get());
    }
    std::uint64_t sequence() const noexcept
    {
        return dscomm_group_sequence(get());
    }
    std::uint64_t capabilities() const noexcept
    {
        return dscomm_group_capabilities(get());
    }
    int to_global(int rank) const
    {
        int result = -1;
        check(dscomm_group_to_global(get(), rank, &result));
        return result;
    }
    int from_global(int rank) const
    {
        int result = -1;
        check(dscomm_group_from_global(get(), rank, &result));
        return result;
    }
    int fd() const
    {
        int fd = -1;
        check(dscomm_group_fd(get(), &fd));
        return fd;
    }
    void set_stream(void *stream) const
    {
        check(dscomm_group_set_stream(get(), stream));
    }

    // Throws the failure that has ended the group.
    void status() const
    {
        check(dscomm_group_status(get()));
    }
    // That failure as data; nothing while the group works
    std::optional<dscomm_failure_t> failure() const
    {
        dscomm_failure_t failure = DSCOMM_FAILURE_INIT;
        const auto status = dscomm_group_failure(get(), &failure);
        if (status == DSCOMM_ERR_NOT_FOUND)
            return std::nullopt;
        check(status);
        return failure;
    }
    void abort(const char *reason = nullptr) const
    {
        check(dscomm_group_abort(get(), reason));
    }

    // New groups of this one's ranks
    Group new_group(Span<const int> ranks,
                    const dscomm_group_attr_t *attr = nullptr) const
    {
        return made([&](dscomm_group_t **group) {
            return dscomm_group_new(get(), ranks.data(),
                                    static_cast<int>(ranks.size()), attr,
                                    group);
        });
    }
    Group split(int color, int key = 0,
                const dscomm_group_attr_t *attr = nullptr) const
    {
        return made([&](dscomm_group_t **group) {
            return dscomm_group_split(get(), color, key, attr, group);
        });
    }
    Group shrink(const dscomm_group_attr_t *attr = nullptr) const
    {
        return made([&](dscomm_group_t **group) {
            return dscomm_group_shrink(get(), attr, group);
        });
    }
    std::vector<Group> mesh(Span<const int> dims) const
    {
        std::vector<dscomm_group_t *> handles(dims.size());
        std::vector<Group> groups;
        groups.reserve(dims.size());
        check(dscomm_group_mesh(get(), dims.data(),
                                static_cast<int>(dims.size()), handles.data()));
        for (auto handle : handles)
            groups.emplace_back(handle);
        return groups;
    }

    // The same calls as of this class, as works
    Start start() const
    {
        return Start(get());
    }

    void monitored_barrier(int timeout_ms) const
    {
        check(dscomm_monitored_barrier(get(), timeout_ms));
    }
    // Bytes whose length only root, or each rank, knows
    std::string broadcast_blob(std::string_view blob, int root) const
    {
        void *result = nullptr;
        std::size_t size = 0;
        check(dscomm_broadcast_blob(get(), blob.data(), blob.size(), root,
                                    &result, &size));
        return detail::take(result, size, dscomm_blob_free);
    }
    std::vector<std::string> all_gather_blob(std::string_view blob) const
    {
        void *result = nullptr;
        std::vector<std::size_t> sizes(
            static_cast<std::size_t>(std::max(size(), 0)));
        std::vector<std::string> blobs;
        std::size_t begin = 0;

        check(dscomm_all_gather_blob(get(), blob.data(), blob.size(), &result,
                                     sizes.data()));
        for (auto size : sizes)
            begin += size;
        const auto all = detail::take(result, begin, dscomm_blob_free);
        begin = 0;
        for (auto size : sizes) {
            blobs.push_back(all.substr(begin, size));
            begin += size;
        }
        return blobs;
    }

    template <typename S> void send(const S &buffer, int dest, int tag) const
    {
        check(dscomm_send(get(), std::data(buffer), std::size(buffer),
                          detail::type<S>(), dest, tag));
    }
    template <typename R> void recv(R &&buffer, int source, int tag) const
    {
        check(dscomm_recv(get(), std::data(buffer), std::size(buffer),
                          detail::type<R>(), source, tag, nullptr, nullptr));
    }
    // The same within its own deadline; tells what has come.
    template <typename R>
    dscomm_message_info_t recv_within(R &&buffer, int source, int tag,
                                      int timeout_ms) const
    {
        dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
        check(dscomm_recv_within(get(), std::data(buffer), std::size(buffer),
                                 detail::type<R>(), source, tag, timeout_ms,
                                 &info));
        return info;
    }
    // A message that has come and stays; nothing if none does within timeout_ms
    std::optional<dscomm_message_info_t>
    probe(int source, int tag, int timeout_ms = DSCOMM_TIMEOUT_DEFAULT) const
    {
        dscomm_message_info_t info = DSCOMM_MESSAGE_INFO_INIT;
        if (check(dscomm_probe(get(), source, tag, timeout_ms, &info)))
            return std::nullopt;
        return info;
    }

    template <typename T> Memory<T> allocate(std::size_t size) const
    {
        return Memory<T>(get(), size);
    }
    template <typename B> Registration register_memory(B &&buffer) const
    {
        static_assert(detail::lasts<B>, "registered memory is no temporary");
        dscomm_mem_t *mem = nullptr;
        check(dscomm_mem_register(
            get(), std::data(buffer),
            std::size(buffer) * sizeof(*std::data(buffer)), &mem));
        return Registration(mem);
    }
    void signal_wait(int rank, int timeout_ms = DSCOMM_TIMEOUT_DEFAULT) const
    {
        check(dscomm_signal_wait(get(), rank, timeout_ms));
    }

  private:
    template <typename Make> static Group made(Make make)
    {
        dscomm_group_t *group = nullptr;
        check(make(&group));
        return Group(group);
    }

    std::unique_ptr<dscomm_group_t, detail::FreeGroup> group_;
};

// Joins the job; the group of all ranks.
inline Group init(const dscomm_init_attr_t *attr = nullptr)
{
    dscomm_group_t *world = nullptr;
    check(dscomm_init(attr, &world));
    return Group(world, dscomm_finalize);
}

// While it exists, calls on the group are recorded; end() runs all of them as
// one operation, and start() starts it; without, the destructor runs them and
// ignores a failure. If an exception leaves before that, their buffers may be
// gone: the group is aborted, which the other ranks get to know, and nothing
// runs. Declare buffers before it.
class Coalescing
{
  public:
    explicit Coalescing(const Group &group) : group_(group.get())
    {
        check(dscomm_coalesce_begin(group_));
    }
    ~Coalescing()
    {
        if (!group_)
            return;
        if (std::uncaught_exceptions() > exceptions_)
            dscomm_group_abort(group_, "an exception has left coalesced calls");
        dscomm_coalesce_end(group_, nullptr);
    }
    Coalescing(const Coalescing &) = delete;
    Coalescing &operator=(const Coalescing &) = delete;
    void end()
    {
        check(dscomm_coalesce_end(std::exchange(group_, nullptr), nullptr));
    }
    Work start()
    {
        const auto group = std::exchange(group_, nullptr);
        return detail::Starting::run([&](dscomm_work_t **work) {
            return dscomm_coalesce_end(group, work);
        });
    }

  private:
    dscomm_group_t *group_;
    int exceptions_ = std::uncaught_exceptions();
};

// An operator of the program, wherever a dscomm_op_t is wanted
class Operator
{
  public:
    explicit Operator(dscomm_op_fn function,
                      const dscomm_op_attr_t *attr = nullptr)
    {
        dscomm_op_t op;
        check(dscomm_op_create(function, attr, &op));
        op_ = op;
    }
    Operator(Operator &&other) noexcept : op_(std::exchange(other.op_, {}))
    {
    }
    Operator &operator=(Operator &&other) noexcept
    {
        std::swap(op_, other.op_);
        return *this;
    }
    ~Operator()
    {
        if (op_)
            dscomm_op_free(*op_);
    }
    dscomm_op_t get() const
    {
        if (!op_)
            throw Error(DSCOMM_ERR_INVALID, "the operator was moved from");
        return *op_;
    }
    operator dscomm_op_t() const
    {
        return get();
    }

  private:
    std::optional<dscomm_op_t> op_;
};

} // namespace dscomm

#endif
