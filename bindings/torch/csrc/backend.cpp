// SPDX-License-Identifier: BSD-3-Clause
#include "backend.hpp"

#include "arguments.hpp"
#include "poller.hpp"
#include "sparse.hpp"
#include "tensors.hpp"

#include <algorithm>

namespace dscomm_torch
{
namespace
{

using c10d::OpType;

// The CUDA device of a call's tensors, if they are on one.
std::optional<c10::Device> device_of(const Call &call)
{
    const at::Tensor &first =
        call.outputs.empty() ? call.buffers[0] : call.outputs[0];

    if (first.defined() && first.is_cuda())
        return first.device();
    return std::nullopt;
}

// The CUDA device whose work a barrier waits for, if the program has named one.
std::optional<c10::Device>
barrier_device(const c10d::BarrierOptions &options,
               const std::optional<c10::Device> &bound)
{
    if (!options.device_ids.empty() && at::hasCUDA())
        return c10::Device(
            at::kCUDA, static_cast<c10::DeviceIndex>(options.device_ids[0]));
    const auto &device = options.device ? options.device : bound;
    return device && device->is_cuda() ? device : std::nullopt;
}

dscomm_status_t all_reduce(dscomm_group_t *group, const Buffer &buffer,
                           dscomm_op_t op, double factor, dscomm_work_t **work)
{
    if (op == DSCOMM_PREMUL_SUM)
        return dscomm_all_reduce_premul_sum(group, buffer.data, buffer.data,
                                            buffer.count, buffer.dtype, factor,
                                            work);
    return dscomm_all_reduce(group, buffer.data, buffer.data, buffer.count,
                             buffer.dtype, op, work);
}

dscomm_status_t reduce_scatter_equal(dscomm_group_t *group, const Buffer &send,
                                     const Buffer &recv, dscomm_op_t op,
                                     double factor, dscomm_work_t **work)
{
    if (op == DSCOMM_PREMUL_SUM)
        return dscomm_reduce_scatter_premul_sum(
            group, send.data, recv.data, recv.count, recv.dtype, factor, work);
    return dscomm_reduce_scatter(group, send.data, recv.data, recv.count,
                                 recv.dtype, op, work);
}

} // namespace

Backend::Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank,
                 int size, std::chrono::milliseconds timeout,
                 const std::string &name)
    : c10d::Backend(rank, size),
      group_(std::make_shared<Group>(store, rank, size, timeout, name)),
      options_(c10::make_intrusive<Options>("dscomm", timeout))
{
    options_->group_name = name;
    init();
}

c10::intrusive_ptr<Backend::Options> Backend::getBackendOptions()
{
    return options_;
}

void Backend::setTimeout(std::chrono::milliseconds timeout)
{
    check_timeout(timeout);
    options_->timeout = timeout;
}

uint64_t Backend::getSequenceNumberForGroup()
{
    return sequence_;
}

int Backend::timeout_of(const Manner &manner) const
{
    const int timeout =
        milliseconds(manner.timeout == c10d::kUnsetTimeout ? options_->timeout
                                                           : manner.timeout);
    return timeout == dscomm_group_timeout(group_->world()) ? 0 : timeout;
}

// Calls between coalesce_begin and _end take host memory only.
c10::Device Backend::device_for(const at::Tensor &tensor) const
{
    return coalescing() ? c10::Device(at::kCPU) : tensor.device();
}

at::Tensor Backend::input_of(const at::Tensor &tensor) const
{
    const c10::Device device = device_for(tensor);

    return tensor.device() == device && tensor.is_contiguous()
               ? tensor
               : tensor.to(device).contiguous();
}

at::Tensor Backend::output_of(Call &call, const at::Tensor &tensor,
                              bool is_input) const
{
    const c10::Device device = device_for(tensor);

    if (tensor.device() == device && tensor.is_contiguous())
        return tensor;
    at::Tensor buffer =
        is_input ? tensor.to(device).contiguous()
                 : at::empty(tensor.sizes(), tensor.options().device(device));
    call.after = [buffer, tensor] { tensor.detach().copy_(buffer); };
    return buffer;
}

at::Tensor Backend::flat_of(const Tensors &tensors, bool copy) const
{
    return flat(tensors, device_for(tensors.at(0)), copy);
}

void *Backend::receive_list(Call &call, const Tensors &list, bool copy) const
{
    std::vector<size_t> displacements;
    void *first = copy ? nullptr : first_of(list, &displacements);

    add_counts(call, numels(list), units_of(list[0]));
    if (first) {
        std::copy(displacements.begin(), displacements.end(),
                  call.counts.end() - list.size());
        return first;
    }
    const at::Tensor to = flat_of(list, false);
    call.buffers[1] = to;
    call.after = [to, list] { unflat(to, list); };
    return to.data_ptr();
}

template <typename Function>
Backend::WorkPtr Backend::start(Call call, const Manner &manner,
                                const Function &function)
{
    dscomm_work_t *started = nullptr;
    const auto device = device_of(call);
    int timeout;
    uint64_t sequence;

    if (device)
        wait_for_current(*device);
    {
        Turn turn(*group_);
        dscomm_group_t *world = group_->world();
        begin_batch();
        timeout = timeout_of(manner);
        // Blocking calls have the group's time-out, and keep the lock. A
        // transport's own match no call with a work.
        const bool waits = !manner.async && !timeout && !coalescing() &&
                           !group_->has_works() &&
                           !group_->has(DSCOMM_CAP_SEPARATE_MATCHING);

        if (device)
            call.stream = group_->set_stream(*device);
        const dscomm_status_t status =
            function(world, waits || coalescing() ? nullptr : &started);
        if (status < 0) {
            const std::string sentence = sentence_of(status);
            broken_ = coalescing();
            if (dscomm_group_status(world) < 0)
                group_->keep(std::move(call));
            TORCH_CHECK_WITH(DistBackendError, false, "dscomm: ", sentence);
        }
        if (!c10d::isP2POp(call.type))
            sequence_++;
        sequence = sequence_;
        if (coalescing()) {
            coalesced_.push_back(std::move(call));
            return nullptr;
        }
        group_->add(started,
                    c10d::isP2POp(call.type) && call.type != OpType::SEND);
    }
    // Without the lock: it may copy, and drop tensors of Python's.
    auto work = c10::make_intrusive<Work>(group_, started, std::move(call),
                                          rank_, sequence);
    if (started && timeout)
        work->set_timeout(timeout);
    return work;
}

void Backend::check_batch() const
{
    const auto coalescer = coalescer_.load();

    TORCH_CHECK(coalescer == std::thread::id() ||
                    coalescer == std::this_thread::get_id(),
                "dscomm: another thread coalesces calls of this group; calls "
                "must wait until it has ended that, or use another group");
    TORCH_CHECK(!broken_, "dscomm: a call between the begin and the end of "
                          "coalescing has failed; end it before other calls");
}

void Backend::begin_batch()
{
    check_batch();
    if (!coalescing() || begun_)
        return;
    check(dscomm_coalesce_begin(group_->world()));
    begun_ = true;
}

Backend::WorkPtr Backend::start_above(
    Call call, const std::function<dscomm_status_t(dscomm_work_t **)> &function)
{
    return start(std::move(call), {},
                 [&](dscomm_group_t *, auto **work) { return function(work); });
}

Backend::WorkPtr Backend::broadcast(Tensors &tensors,
                                    const c10d::BroadcastOptions &options)
{
    at::Tensor &tensor = only(tensors, "broadcast");
    const int root = static_cast<int>(options.rootRank);
    Call call{OpType::BROADCAST, "dscomm:broadcast", tensors, tensors};
    const at::Tensor memory = output_of(call, tensor, true);
    const Buffer buffer = moved(memory);

    call.buffers = {memory};
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return dscomm_broadcast(group, buffer.data, buffer.count, buffer.dtype,
                                root, work);
    });
}

Backend::WorkPtr Backend::allreduce(Tensors &tensors,
                                    const c10d::AllreduceOptions &options)
{
    if (tensors.size() == 1 && tensors[0].layout() == at::kSparse)
        return allreduce_sparse(tensors, options);
    at::Tensor &tensor = only(tensors, "all_reduce");
    double factor = 0;
    const dscomm_op_t op = operator_of(options.reduceOp, &factor);
    Call call{OpType::ALLREDUCE, "dscomm:all_reduce", tensors, tensors};
    const at::Tensor memory = output_of(call, tensor, true);
    const Buffer buffer = reduced(memory, options.reduceOp);

    call.buffers = {memory};
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return all_reduce(group, buffer, op, factor, work);
    });
}

// Blocking: it is several calls, the later ones of sizes that the first tells.
Backend::WorkPtr
Backend::allreduce_sparse(Tensors &tensors,
                          const c10d::AllreduceOptions &options)
{
    TORCH_CHECK(tensors.size() == 1,
                "dscomm: all_reduce takes one tensor, not ", tensors.size());
    TORCH_CHECK(options.reduceOp.op_ == c10d::ReduceOp::SUM,
                "dscomm: all_reduce of a sparse tensor has the operator SUM "
                "only");
    TORCH_CHECK(!coalescing(),
                "dscomm: all_reduce of a sparse tensor cannot be coalesced");
    const at::Device device = tensors[0].device();
    // Copied after the work on the current stream, which the host waits for.
    const at::Tensor mine = tensors[0].cpu();
    at::Tensor sum;
    {
        Turn turn(*group_);
        check_batch();
        sum = sparse_sum(group_->world(), mine);
        sequence_++;
    }
    tensors[0].copy_(sum.to(device));
    return c10::make_intrusive<Work>(
        group_, nullptr,
        Call{OpType::_ALLREDUCE_SPARSE, "dscomm:all_reduce", tensors, tensors},
        rank_, sequence_);
}

Backend::WorkPtr
Backend::allreduce_coalesced(Tensors &tensors,
                             const c10d::AllreduceCoalescedOptions &options)
{
    TORCH_CHECK(!tensors.empty(), "dscomm: all_reduce_coalesced of no tensors");
    check_list(tensors, tensors.size(), tensors[0], "all_reduce_coalesced");
    double factor = 0;
    const dscomm_op_t op = operator_of(options.reduceOp, &factor);
    Call call{OpType::ALLREDUCE_COALESCED, "dscomm:all_reduce", tensors,
              tensors};
    const at::Tensor memory = flat_of(tensors, true);
    const Buffer buffer = reduced(memory, options.reduceOp);

    call.buffers = {memory};
    call.after = [memory, tensors] { unflat(memory, tensors); };
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return all_reduce(group, buffer, op, factor, work);
    });
}

Backend::WorkPtr Backend::reduce(Tensors &tensors,
                                 const c10d::ReduceOptions &options)
{
    at::Tensor &tensor = only(tensors, "reduce");
    const int root = static_cast<int>(options.rootRank);
    double factor = 0;
    const dscomm_op_t op = operator_of(options.reduceOp, &factor);
    Call call{OpType::REDUCE, "dscomm:reduce", tensors, tensors};
    // The tensors of other ranks than the root stay as they are.
    const at::Tensor memory =
        rank_ == root ? output_of(call, tensor, true) : input_of(tensor);
    const Buffer buffer = reduced(memory, options.reduceOp);

    call.buffers = {memory};
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return op == DSCOMM_PREMUL_SUM
                   ? dscomm_reduce_premul_sum(group, buffer.data, buffer.data,
                                              buffer.count, buffer.dtype,
                                              factor, root, work)
                   : dscomm_reduce(group, buffer.data, buffer.data,
                                   buffer.count, buffer.dtype, op, root, work);
    });
}

Backend::WorkPtr Backend::allgather(std::vector<Tensors> &outputs,
                                    Tensors &inputs,
                                    const c10d::AllgatherOptions &options)
{
    const at::Tensor &input = only(inputs, "all_gather");
    TORCH_CHECK(outputs.size() == 1, "dscomm: all_gather takes one list");
    const Tensors &list = outputs[0];
    check_list(list, size_, input, "all_gather");
    Call call{OpType::ALLGATHER, "dscomm:all_gather", inputs, list};
    const at::Tensor from = input_of(input);
    const Buffer send = moved(from);

    call.buffers = {from};
    void *recv = receive_list(call, list, overlap_any(list, from, rank_));
    const size_t *counts = call.counts.data();
    return start(std::move(call), options, [=, this](auto *group, auto **work) {
        return dscomm_all_gather_v(group, send.data, send.count, recv, counts,
                                   counts + size_, send.dtype, work);
    });
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor &output, at::Tensor &input,
                                          const c10d::AllgatherOptions &options)
{
    check_pair(output, input, "all_gather_into_tensor");
    TORCH_CHECK(output.numel() == input.numel() * size_,
                "dscomm: all_gather_into_tensor: the output must have the "
                "input's type, and ",
                size_, " times its elements");
    Call call{OpType::_ALLGATHER_BASE, "dscomm:all_gather", {input}, {output}};
    const at::Tensor from = input_of(input),
                     to = output_of(call, output, false);
    const Buffer send = moved(from), recv = moved(to);

    call.buffers = {from, to};
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return dscomm_all_gather(group, send.data, recv.data, send.count,
                                 send.dtype, work);
    });
}

Backend::WorkPtr
Backend::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                             const c10d::AllgatherOptions &options)
{
    // outputs[rank][i] is of inputs[i]
    TORCH_CHECK(outputs.size() == static_cast<size_t>(size_),
                "dscomm: all_gather_coalesced takes a list for each rank");
    std::vector<std::vector<Tensors>> lists(inputs.size());
    std::vector<Tensors> ones;
    for (size_t i = 0; i < inputs.size(); i++) {
        lists[i].resize(1);
        ones.push_back({inputs[i]});
        for (auto &list : outputs)
            lists[i][0].push_back(list.at(i));
    }
    return each({OpType::ALLGATHER_COALESCED, "dscomm:all_gather", inputs},
                options, inputs.size(),
                [&](size_t i) { allgather(lists[i], ones[i], options); });
}

Backend::WorkPtr
Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                         const c10d::AllgatherOptions &options)
{
    TORCH_CHECK(outputs.size() == inputs.size(),
                "dscomm: there must be as many outputs as inputs");
    return each(
        {OpType::ALLGATHER_INTO_TENSOR_COALESCED, "dscomm:all_gather", inputs},
        options, inputs.size(),
        [&](size_t i) { _allgather_base(outputs[i], inputs[i], options); });
}

Backend::WorkPtr Backend::gather(std::vector<Tensors> &outputs, Tensors &inputs,
                                 const c10d::GatherOptions &options)
{
    const at::Tensor &input = only(inputs, "gather");
    const int root = static_cast<int>(options.rootRank);
    const at::Tensor from = input_of(input);
    const Buffer send = moved(from);
    Call call{OpType::GATHER, "dscomm:gather", inputs};
    void *recv = nullptr;

    call.buffers = {from};
    if (rank_ == root) {
        TORCH_CHECK(outputs.size() == 1, "dscomm: gather takes one list");
        const Tensors &list = outputs[0];
        check_list(list, size_, input, "gather");
        TORCH_CHECK(equal_sizes(list, input.numel()),
                    "dscomm: gather takes tensors of one size");
        const at::Tensor to = flat_of(list, false);
        recv = to.data_ptr();
        call.outputs = list;
        call.buffers[1] = to;
        call.after = [to, list] { unflat(to, list); };
    } else {
        TORCH_CHECK(outputs.empty(),
                    "dscomm: gather takes outputs on the root only");
    }
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return dscomm_gather(group, send.data, recv, send.count, send.dtype,
                             root, work);
    });
}

Backend::WorkPtr Backend::scatter(Tensors &outputs,
                                  std::vector<Tensors> &inputs,
                                  const c10d::ScatterOptions &options)
{
    at::Tensor &output = only(outputs, "scatter");
    const int root = static_cast<int>(options.rootRank);
    Call call{OpType::SCATTER, "dscomm:scatter", {}, outputs};
    const at::Tensor to = output_of(call, output, false);
    const Buffer recv = moved(to);
    const void *send = nullptr;

    call.buffers = {to};
    if (rank_ == root) {
        TORCH_CHECK(inputs.size() == 1, "dscomm: scatter takes one list");
        check_list(inputs[0], size_, output, "scatter");
        TORCH_CHECK(equal_sizes(inputs[0], output.numel()),
                    "dscomm: scatter takes tensors of one size");
        const at::Tensor from = flat_of(inputs[0], true);
        send = from.data_ptr();
        call.inputs = inputs[0];
        call.buffers[1] = from;
    } else {
        TORCH_CHECK(inputs.empty(),
                    "dscomm: scatter takes inputs on the root only");
    }
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return dscomm_scatter(group, send, recv.data, recv.count, recv.dtype,
                              root, work);
    });
}

Backend::WorkPtr
Backend::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                        const c10d::ReduceScatterOptions &options)
{
    at::Tensor &output = only(outputs, "reduce_scatter");
    TORCH_CHECK(inputs.size() == 1, "dscomm: reduce_scatter takes one list");
    check_list(inputs[0], size_, output, "reduce_scatter");
    TORCH_CHECK(inputs[0][rank_].numel() == output.numel(),
                "dscomm: reduce_scatter: the output must have the size of this "
                "rank's input");
    double factor = 0;
    const dscomm_op_t op = operator_of(options.reduceOp, &factor);
    Call call{OpType::REDUCE_SCATTER, "dscomm:reduce_scatter", inputs[0],
              outputs};
    const at::Tensor from = flat_of(inputs[0], true),
                     to = output_of(call, output, false);
    const Buffer send = reduced(from, options.reduceOp),
                 recv = reduced(to, options.reduceOp);

    call.buffers = {from, to};
    if (equal_sizes(inputs[0], output.numel()))
        return start(std::move(call), options, [=](auto *group, auto **work) {
            return reduce_scatter_equal(group, send, recv, op, factor, work);
        });
    TORCH_CHECK(op != DSCOMM_PREMUL_SUM,
                "dscomm: reduce_scatter with PREMUL_SUM takes equal sizes");
    add_counts(call, numels(inputs[0]),
               send.count / std::max<size_t>(from.numel(), 1));
    const size_t *counts = call.counts.data();
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return dscomm_reduce_scatter_v(group, send.data, recv.data, counts,
                                       recv.dtype, op, work);
    });
}

Backend::WorkPtr
Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                              const c10d::ReduceScatterOptions &options)
{
    check_pair(output, input, "reduce_scatter_tensor");
    TORCH_CHECK(input.numel() == output.numel() * size_,
                "dscomm: reduce_scatter_tensor: the input must have the "
                "output's type, and ",
                size_, " times its elements");
    double factor = 0;
    const dscomm_op_t op = operator_of(options.reduceOp, &factor);
    Call call{OpType::_REDUCE_SCATTER_BASE,
              "dscomm:reduce_scatter",
              {input},
              {output}};
    const at::Tensor from = input_of(input),
                     to = output_of(call, output, false);
    const Buffer send = reduced(from, options.reduceOp),
                 recv = reduced(to, options.reduceOp);

    call.buffers = {from, to};
    return start(std::move(call), options, [=](auto *group, auto **work) {
        return reduce_scatter_equal(group, send, recv, op, factor, work);
    });
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(
    Tensors &outputs, Tensors &inputs,
    const c10d::ReduceScatterOptions &options)
{
    TORCH_CHECK(outputs.size() == inputs.size(),
                "dscomm: there must be as many outputs as inputs");
    return each({OpType::REDUCE_SCATTER_TENSOR_COALESCED,
                 "dscomm:reduce_scatter", inputs},
                options, inputs.size(), [&](size_t i) {
                    _reduce_scatter_base(outputs[i], inputs[i], options);
                });
}

Backend::WorkPtr Backend::alltoall_base(at::Tensor &output, at::Tensor &input,
                                        std::vector<int64_t> &output_sizes,
                                        std::vector<int64_t> &input_sizes,
                                        const c10d::AllToAllOptions &options)
{
    check_pair(output, input, "all_to_all_single");
    Call call{OpType::ALLTOALL_BASE, "dscomm:all_to_all", {input}, {output}};
    const at::Tensor from = input_of(input),
                     to = output_of(call, output, false);
    const Buffer send = moved(from), recv = moved(to);
    const auto in = splits_of(input, input_sizes, size_, "all_to_all_single"),
               out =
                   splits_of(output, output_sizes, size_, "all_to_all_single");
    const size_t unit = send.count / std::max<size_t>(from.numel(), 1);

    call.buffers = {from, to};
    if (input_sizes.empty() && output_sizes.empty()) {
        TORCH_CHECK(input.numel() == output.numel(),
                    "dscomm: all_to_all_single: input and output must have one "
                    "size");
        return start(
            std::move(call), options, [=, this](auto *group, auto **work) {
                return dscomm_all_to_all(group, send.data, recv.data,
                                         send.count / size_, send.dtype, work);
            });
    }
    add_counts(call, in, std::max<size_t>(unit, 1));
    add_counts(
        call, out,
        std::max<size_t>(recv.count / std::max<size_t>(to.numel(), 1), 1));
    const size_t *counts = call.counts.data();
    return start(std::move(call), options, [=, this](auto *group, auto **work) {
        return dscomm_all_to_all_v(group, send.data, counts, counts + size_,
                                   recv.data, counts + 2 * size_,
                                   counts + 3 * size_, send.dtype, work);
    });
}

Backend::WorkPtr Backend::alltoall(Tensors &outputs, Tensors &inputs,
                                   const c10d::AllToAllOptions &options)
{
    TORCH_CHECK(!inputs.empty() && !outputs.empty(),
                "dscomm: all_to_all takes a tensor for each rank");
    check_list(inputs, size_, inputs[0], "all_to_all");
    check_list(outputs, size_, inputs[0], "all_to_all");
    const at::Tensor from = flat_of(inputs, true);
    const Tensors list = outputs;
    Call call{OpType::ALLTOALL, "dscomm:all_to_all", inputs, list};
    const Buffer send = moved(from);

    call.buffers = {from};
    add_counts(call, numels(inputs), units_of(from));
    void *recv = receive_list(call, list, false);
    const size_t *counts = call.counts.data();
    return start(std::move(call), options, [=, this](auto *group, auto **work) {
        return dscomm_all_to_all_v(group, send.data, counts, counts + size_,
                                   recv, counts + 2 * size_, counts + 3 * size_,
                                   send.dtype, work);
    });
}

Backend::WorkPtr Backend::send(Tensors &tensors, int dest, int tag)
{
    check_tag(tag);
    const at::Tensor from = input_of(only(tensors, "send"));
    const Buffer buffer = moved(from);
    Call call{OpType::SEND, "dscomm:send", tensors};

    call.buffers = {from};
    return start(std::move(call), {}, [=](auto *group, auto **work) {
        return dscomm_isend(group, buffer.data, buffer.count, buffer.dtype,
                            dest, tag, work);
    });
}

Backend::WorkPtr Backend::recv(Tensors &tensors, int source, int tag)
{
    check_tag(tag);
    const bool any = source == DSCOMM_ANY_SOURCE;
    Call call{any ? OpType::RECVANYSOURCE : OpType::RECV,
              any ? "dscomm:recvAnySource" : "dscomm:recv", tensors, tensors};
    const at::Tensor to = output_of(call, only(tensors, "recv"), false);
    const Buffer buffer = moved(to);

    call.buffers = {to};
    return start(std::move(call), {}, [=](auto *group, auto **work) {
        return dscomm_irecv(group, buffer.data, buffer.count, buffer.dtype,
                            source, tag, work);
    });
}

Backend::WorkPtr Backend::recvAnysource(Tensors &tensors, int tag)
{
    return recv(tensors, DSCOMM_ANY_SOURCE, tag);
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions &options)
{
    if (const auto device = barrier_device(options, bound_device_id_))
        wait_for_current(*device);
    return start(
        Call{OpType::BARRIER, "dscomm:barrier"}, options,
        [](auto *group, auto **work) { return dscomm_barrier(group, work); });
}

// Neither waits for the lock nor fails after an abort: torch aborts groups in a
// batch, which has no calls, while another thread may wait with the lock.
void Backend::startCoalescing()
{
    std::thread::id coalescer;

    TORCH_CHECK(coalescer_.compare_exchange_strong(coalescer,
                                                   std::this_thread::get_id()),
                "dscomm: ", coalescing() ? "this thread" : "another thread",
                " coalesces calls of this group already, and must end that "
                "first");
}

Backend::WorkPtr Backend::each(Call whole, const Manner &manner, size_t count,
                               const std::function<void(size_t)> &call)
{
    // Other threads wait until the end.
    Turn turn(*group_);

    if (coalescing()) {
        for (size_t i = 0; i < count; i++)
            call(i);
        return nullptr;
    }
    startCoalescing();
    try {
        for (size_t i = 0; i < count; i++)
            call(i);
    } catch (...) {
        try {
            endCoalescing();
        } catch (const std::exception &) {
            // The first failure is what the program must know.
        }
        throw;
    }
    return end_coalescing(std::move(whole), manner);
}

Backend::WorkPtr Backend::endCoalescing()
{
    TORCH_CHECK(coalescing(), "dscomm: this thread coalesces no calls of the "
                              "group that could be ended");
    return end_coalescing({OpType::COALESCED, "dscomm:coalesced"}, {});
}

Backend::WorkPtr Backend::end_coalescing(Call whole, const Manner &manner)
{
    dscomm_work_t *started = nullptr;
    int timeout = 0;
    uint64_t sequence = sequence_;

    if (begun_) {
        Turn turn(*group_);
        std::vector<Call> calls = std::exchange(coalesced_, {});

        begun_ = broken_ = false;
        coalescer_ = std::thread::id();
        whole.messages = true;
        for (const Call &call : calls) {
            whole.messages &= c10d::isP2POp(call.type);
            whole.outputs.insert(whole.outputs.end(), call.outputs.begin(),
                                 call.outputs.end());
            if (call.stream)
                whole.stream = call.stream;
        }
        // The calls' buffers and arrays live in the function.
        whole.after = [calls = std::move(calls)] {
            for (const Call &call : calls)
                if (call.after)
                    call.after();
        };
        timeout = timeout_of(manner);
        sequence = sequence_;
        const dscomm_status_t status =
            dscomm_coalesce_end(group_->world(), &started);
        if (status < 0) {
            const std::string sentence = sentence_of(status);
            group_->keep(std::move(whole));
            TORCH_CHECK_WITH(DistBackendError, false, "dscomm: ", sentence);
        }
        group_->add(started, false);
    } else {
        coalescer_ = std::thread::id();
    }
    auto work = c10::make_intrusive<Work>(group_, started, std::move(whole),
                                          rank_, sequence);
    if (timeout)
        work->set_timeout(timeout);
    return work;
}

c10::intrusive_ptr<c10d::Backend>
Backend::split(const c10::intrusive_ptr<c10d::Store> &store,
               const std::vector<int> &ranks,
               const c10::intrusive_ptr<Options> &options)
{
    const auto place = std::find(ranks.begin(), ranks.end(), rank_);

    for (const int rank : ranks)
        TORCH_CHECK(rank >= 0 && rank < size_, "dscomm: split_group: rank ",
                    rank, " is not in 0 ... ", size_ - 1);
    if (place == ranks.end())
        return nullptr;
    return merge(store, options, static_cast<int>(place - ranks.begin()),
                 static_cast<int>(ranks.size()));
}

c10::intrusive_ptr<c10d::Backend>
Backend::merge(const c10::intrusive_ptr<c10d::Store> &store,
               const c10::intrusive_ptr<Options> &options, const int &rank,
               const int &size)
{
    return c10::make_intrusive<Backend>(store, rank, size, options->timeout,
                                        options->group_name);
}

c10d::ErrorType Backend::getError()
{
    const dscomm_status_t status = group_->status();

    return status >= 0                        ? c10d::ErrorType::SUCCESS
           : status == DSCOMM_ERR_TIMEOUT     ? c10d::ErrorType::TIMEOUT
           : status == DSCOMM_ERR_PEER_FAILED ? c10d::ErrorType::REMOTE_ERROR
                                              : c10d::ErrorType::COMM_ERROR;
}

void Backend::abort()
{
    group_->abort("torch.distributed aborts the process group");
}

void Backend::shutdown()
{
    Poller::settle(/*for_ever=*/false);
    group_->leave();
}

} // namespace dscomm_torch
