// SPDX-License-Identifier: BSD-3-Clause
// Collectives, puts and gets, which exist in two forms: functions of a Group
// return when they are complete, and those of group.start() return a Work.
#ifndef DSCOMM_CALLS_HPP
#define DSCOMM_CALLS_HPP

#include <array>
#include <dscomm/buffer.hpp>
#include <dscomm/work.hpp>

namespace dscomm
{

// What another rank needs to put into registered memory and to get out of it
using Key = std::array<std::byte, DSCOMM_MEM_KEY_BYTES>;

namespace detail
{

// The two forms of a call, which takes a place for its work
struct Blocking {
    using Counts = dscomm::Counts;
    template <typename... Buffers, typename Call> static void run(Call call)
    {
        check(call(nullptr));
    }
};
struct Starting {
    using Counts = LastingCounts;
    template <typename... Buffers, typename Call> static Work run(Call call)
    {
        static_assert((lasts<Buffers> && ...),
                      "a buffer of a work is no temporary: it must live until "
                      "the work is complete");
        dscomm_work_t *work = nullptr;
        check(call(&work));
        return Work(work);
    }
};

// The calls of a class Self that has get(). Counts are the sizes of buffers;
// buffers that a rank does not need may be empty, such as Span<int>().
template <typename Self, typename Form> class Calls
{
  public:
    template <typename B> auto broadcast(B &&buffer, int root) const
    {
        return Form::template run<B>([&](dscomm_work_t **work) {
            return dscomm_broadcast(group(), std::data(buffer),
                                    std::size(buffer), type<B>(), root, work);
        });
    }

    // In place: a buffer that is sent and received
    template <typename B> auto all_reduce(B &&buffer, dscomm_op_t op) const
    {
        return Form::template run<B>([&](dscomm_work_t **work) {
            return dscomm_all_reduce(group(), std::data(buffer),
                                     std::data(buffer), std::size(buffer),
                                     type<B>(), op, work);
        });
    }
    template <typename S, typename R>
    auto all_reduce(S &&send, R &&recv, dscomm_op_t op) const
    {
        need("recv", std::size(recv), std::size(send));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_all_reduce(group(), std::data(send), std::data(recv),
                                     std::size(send), type<S, R>(), op, work);
        });
    }
    template <typename S, typename R>
    auto all_reduce_premul_sum(S &&send, R &&recv, double factor) const
    {
        need("recv", std::size(recv), std::size(send));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_all_reduce_premul_sum(
                group(), std::data(send), std::data(recv), std::size(send),
                type<S, R>(), factor, work);
        });
    }

    template <typename S, typename R>
    auto reduce(S &&send, R &&recv, dscomm_op_t op, int root) const
    {
        need("recv", std::size(recv), on(root, std::size(send)));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_reduce(group(), std::data(send), std::data(recv),
                                 std::size(send), type<S, R>(), op, root, work);
        });
    }
    template <typename S, typename R>
    auto reduce_premul_sum(S &&send, R &&recv, double factor, int root) const
    {
        need("recv", std::size(recv), on(root, std::size(send)));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_reduce_premul_sum(group(), std::data(send),
                                            std::data(recv), std::size(send),
                                            type<S, R>(), factor, root, work);
        });
    }

    template <typename S, typename R>
    auto reduce_scatter(S &&send, R &&recv, dscomm_op_t op) const
    {
        need("send", std::size(send), ranks() * std::size(recv));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_reduce_scatter(group(), std::data(send),
                                         std::data(recv), std::size(recv),
                                         type<S, R>(), op, work);
        });
    }
    template <typename S, typename R>
    auto reduce_scatter_premul_sum(S &&send, R &&recv, double factor) const
    {
        need("send", std::size(send), ranks() * std::size(recv));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_reduce_scatter_premul_sum(
                group(), std::data(send), std::data(recv), std::size(recv),
                type<S, R>(), factor, work);
        });
    }
    template <typename S, typename R>
    auto reduce_scatter_v(S &&send, R &&recv, typename Form::Counts recv_counts,
                          dscomm_op_t op) const
    {
        need("send", std::size(send), extent(recv_counts, {}, ranks()));
        need("recv", std::size(recv), group() ? recv_counts[rank()] : 0);
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_reduce_scatter_v(group(), std::data(send),
                                           std::data(recv), recv_counts.data(),
                                           type<S, R>(), op, work);
        });
    }

    template <typename S, typename R> auto all_gather(S &&send, R &&recv) const
    {
        need("recv", std::size(recv), ranks() * std::size(send));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_all_gather(group(), std::data(send), std::data(recv),
                                     std::size(send), type<S, R>(), work);
        });
    }
    template <typename S, typename R>
    auto all_gather_v(S &&send, R &&recv, typename Form::Counts recv_counts,
                      typename Form::Counts recv_displs = {}) const
    {
        need("recv", std::size(recv),
             extent(recv_counts, recv_displs, ranks()));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_all_gather_v(
                group(), std::data(send), std::size(send), std::data(recv),
                recv_counts.data(), recv_displs.data(), type<S, R>(), work);
        });
    }

    template <typename S, typename R>
    auto gather(S &&send, R &&recv, int root) const
    {
        need("recv", std::size(recv), on(root, ranks() * std::size(send)));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_gather(group(), std::data(send), std::data(recv),
                                 std::size(send), type<S, R>(), root, work);
        });
    }
    // The counts matter on root only.
    template <typename S, typename R>
    auto gather_v(S &&send, R &&recv, typename Form::Counts recv_counts,
                  typename Form::Counts recv_displs, int root) const
    {
        if (rank() == root)
            need("recv", std::size(recv),
                 extent(recv_counts, recv_displs, ranks()));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_gather_v(group(), std::data(send), std::size(send),
                                   std::data(recv), recv_counts.data(),
                                   recv_displs.data(), type<S, R>(), root,
                                   work);
        });
    }

    template <typename S, typename R>
    auto scatter(S &&send, R &&recv, int root) const
    {
        need("send", std::size(send), on(root, ranks() * std::size(recv)));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_scatter(group(), std::data(send), std::data(recv),
                                  std::size(recv), type<S, R>(), root, work);
        });
    }
    template <typename S, typename R>
    auto scatter_v(S &&send, typename Form::Counts send_counts,
                   typename Form::Counts send_displs, R &&recv, int root) const
    {
        if (rank() == root)
            need("send", std::size(send),
                 extent(send_counts, send_displs, ranks()));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_scatter_v(group(), std::data(send),
                                    send_counts.data(), send_displs.data(),
                                    std::data(recv), std::size(recv),
                                    type<S, R>(), root, work);
        });
    }

    // send has a block for each rank, all of the same size.
    template <typename S, typename R> auto all_to_all(S &&send, R &&recv) const
    {
        const std::size_t count = (std::size(send) + ranks() - 1) / ranks();
        need("send", std::size(send), ranks() * count);
        need("recv", std::size(recv), ranks() * count);
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_all_to_all(group(), std::data(send), std::data(recv),
                                     count, type<S, R>(), work);
        });
    }
    template <typename S, typename R>
    auto all_to_all_v(S &&send, typename Form::Counts send_counts,
                      typename Form::Counts send_displs, R &&recv,
                      typename Form::Counts recv_counts,
                      typename Form::Counts recv_displs) const
    {
        need("send", std::size(send),
             extent(send_counts, send_displs, ranks()));
        need("recv", std::size(recv),
             extent(recv_counts, recv_displs, ranks()));
        return Form::template run<S, R>([&](dscomm_work_t **work) {
            return dscomm_all_to_all_v(group(), std::data(send),
                                       send_counts.data(), send_displs.data(),
                                       std::data(recv), recv_counts.data(),
                                       recv_displs.data(), type<S, R>(), work);
        });
    }

    auto barrier() const
    {
        return Form::run([&](dscomm_work_t **work) {
            return dscomm_barrier(group(), work);
        });
    }

    // Copies a buffer to registered memory, offset bytes behind its begin.
    template <typename S>
    auto put(S &&data, const Key &key, std::size_t offset = 0) const
    {
        return Form::template run<S>([&](dscomm_work_t **work) {
            return dscomm_put(group(), std::data(data), bytes(data), key.data(),
                              offset, work);
        });
    }
    // Copies from that memory to a buffer.
    template <typename R>
    auto get(R &&data, const Key &key, std::size_t offset = 0) const
    {
        return Form::template run<R>([&](dscomm_work_t **work) {
            return dscomm_get(group(), std::data(data), bytes(data), key.data(),
                              offset, work);
        });
    }
    auto signal(int rank) const
    {
        return Form::run([&](dscomm_work_t **work) {
            return dscomm_signal(group(), rank, work);
        });
    }

  private:
    dscomm_group_t *group() const
    {
        return static_cast<const Self *>(this)->get();
    }
    int rank() const
    {
        return dscomm_group_rank(group());
    }
    // As a number of blocks; 1 without a group, which the call refuses
    std::size_t ranks() const
    {
        return group() ? dscomm_group_size(group()) : 1;
    }
    // Elements that this rank needs if only root needs them
    std::size_t on(int root, std::size_t elements) const
    {
        return rank() == root ? elements : 0;
    }
    template <typename B> static std::size_t bytes(const B &buffer)
    {
        return std::size(buffer) * sizeof(*std::data(buffer));
    }
};

} // namespace detail
} // namespace dscomm

#endif
