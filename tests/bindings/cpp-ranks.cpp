// SPDX-License-Identifier: BSD-3-Clause
// <dscomm/dscomm.hpp> on any number of ranks: each call against what arithmetic
// gives, failures as exceptions, owners that are moved. Rank 0 prints "ok" or
// "not ok" for all ranks.
#include <array>
#include <cstdio>
#include <cstring>
#include <dscomm/dscomm.hpp>
#include <functional>
#include <numeric>

using dscomm::Counts;
using dscomm::Group;
using dscomm::one;
using dscomm::Span;
using dscomm::Work;

namespace
{

int count;

// One result of all ranks: whether none has failed
void result(const Group &world, bool passed, const char *name)
{
    int all = passed;

    if (!passed)
        std::printf("# rank %d: %s\n", world.rank(), name);
    world.all_reduce(one(all), DSCOMM_MIN);
    if (world.rank() == 0)
        std::printf("%s %d - %s\n", all ? "ok" : "not ok", ++count, name);
    std::fflush(stdout);
}

// The failure of a call: its status, if its sentence has these words
dscomm_status_t fails(const std::function<void()> &call, const char *words)
{
    try {
        call();
    } catch (const dscomm::Error &error) {
        if (std::strstr(error.what(), words))
            return error.status();
        std::printf("# %s\n", error.what());
    }
    return DSCOMM_OK;
}

template <typename T, dscomm_dtype_t Dtype> constexpr bool is()
{
    return dscomm::dtype<T>::value == Dtype;
}
static_assert(is<std::int8_t, DSCOMM_INT8>());
static_assert(is<std::uint8_t, DSCOMM_UINT8>());
static_assert(is<std::int16_t, DSCOMM_INT16>());
static_assert(is<std::uint16_t, DSCOMM_UINT16>());
static_assert(is<std::int32_t, DSCOMM_INT32>());
static_assert(is<std::uint32_t, DSCOMM_UINT32>());
static_assert(is<std::int64_t, DSCOMM_INT64>());
static_assert(is<std::uint64_t, DSCOMM_UINT64>());
static_assert(is<long long, DSCOMM_INT64>());
static_assert(is<bool, DSCOMM_BOOL>());
static_assert(is<std::byte, DSCOMM_UINT8>());
static_assert(is<float, DSCOMM_FLOAT32>());
static_assert(is<double, DSCOMM_FLOAT64>());
static_assert(is<dscomm::float16, DSCOMM_FLOAT16>());
static_assert(is<dscomm::bfloat16, DSCOMM_BFLOAT16>());
static_assert(is<dscomm::float8_e4m3, DSCOMM_FLOAT8_E4M3>());
static_assert(is<dscomm::float8_e5m2, DSCOMM_FLOAT8_E5M2>());

// Buffers of a work: variables, and temporaries that own nothing
using dscomm::detail::lasts;
static_assert(lasts<std::vector<int> &> && lasts<const std::vector<int> &>);
static_assert(lasts<Span<int>> && lasts<const Counts> && lasts<int (&)[2]>);
static_assert(lasts<std::string_view>);
static_assert(!lasts<std::vector<int>> && !lasts<const std::vector<int>>);
static_assert(!lasts<std::array<int, 2>> && !lasts<const dscomm::Key>);
static_assert(!lasts<std::initializer_list<int>>);
static_assert(!lasts<std::array<const int, 2>>);
static_assert(!lasts<std::string> && !lasts<dscomm::Memory<int>>);
static_assert(std::is_constructible_v<Counts, const std::size_t *, int>);
static_assert(!std::is_constructible_v<Counts, int, int>);
static_assert(
    !std::is_constructible_v<dscomm::detail::LastingCounts, int, int>);

static_assert(!std::is_copy_constructible_v<Group>);
static_assert(!std::is_copy_constructible_v<Work>);
static_assert(!std::is_copy_constructible_v<dscomm::Store>);
static_assert(!std::is_copy_constructible_v<dscomm::Env>);
static_assert(!std::is_copy_constructible_v<dscomm::Operator>);
static_assert(!std::is_copy_constructible_v<dscomm::Memory<int>>);
static_assert(!std::is_copy_constructible_v<dscomm::Registration>);
static_assert(std::is_nothrow_move_assignable_v<Group>);

// 0 + 1 + ... + n - 1
int triangle(int n)
{
    return n * (n - 1) / 2;
}

// n, n + 1, ...
std::vector<int> numbers(int count, int n)
{
    std::vector<int> result(count);
    std::iota(result.begin(), result.end(), n);
    return result;
}

void reductions(const Group &world)
{
    const int rank = world.rank(), p = world.size();
    const std::vector<int> mine = {rank, 10 * rank};
    const std::vector<int> sum = {triangle(p), 10 * triangle(p)};
    std::vector<int> all(2), none;
    std::array<double, 2> doubles = {1.0 + rank, 2.0};
    dscomm::bfloat16 half = {0x3f80}; // 1

    world.all_reduce(mine, all, DSCOMM_SUM);
    result(world, all == sum, "all_reduce");
    world.all_reduce(doubles, DSCOMM_MAX);
    result(world, doubles[0] == p && doubles[1] == 2, "all_reduce in place");
    world.all_reduce(one(half), DSCOMM_MAX);
    result(world, half.bits == 0x3f80, "all_reduce of bfloat16");

    all = {-1, -1};
    world.reduce(mine, rank == p - 1 ? all : none, DSCOMM_SUM, p - 1);
    result(world, rank < p - 1 || all == sum, "reduce");

    doubles = {1, 2};
    std::array<double, 2> scaled = {};
    world.all_reduce_premul_sum(doubles, scaled, 1.0 + rank);
    result(world, scaled[0] == triangle(p + 1) && scaled[1] == 2 * scaled[0],
           "all_reduce_premul_sum");
    scaled = {};
    world.reduce_premul_sum(doubles, scaled, 2, 0);
    result(world, rank || (scaled[0] == 2 * p && scaled[1] == 4 * p),
           "reduce_premul_sum");

    // Rank r gives r to each.
    const std::vector<int> blocks(2 * p, rank);
    world.reduce_scatter(blocks, all, DSCOMM_SUM);
    result(world, all[0] == triangle(p) && all[1] == all[0], "reduce_scatter");
    const std::vector<float> floats(p, 1);
    float total = 0;
    world.reduce_scatter_premul_sum(floats, one(total), rank);
    result(world, total == triangle(p), "reduce_scatter_premul_sum");

    // Rank r gets r + 1 elements.
    const std::vector<int> staircase(triangle(p + 1), 1);
    std::vector<std::size_t> counts(p);
    std::iota(counts.begin(), counts.end(), 1);
    std::vector<int> part(rank + 1);
    world.reduce_scatter_v(staircase, part, counts, DSCOMM_SUM);
    result(world, part == std::vector<int>(rank + 1, p), "reduce_scatter_v");
}

void moves(const Group &world)
{
    const int rank = world.rank(), p = world.size();
    const std::vector<int> mine = numbers(2, 2 * rank);
    std::vector<int> all(2 * p), block(2);

    int number = rank == p - 1 ? 42 : 0;
    world.broadcast(one(number), p - 1);
    result(world, number == 42, "broadcast");
    world.all_gather(mine, all);
    result(world, all == numbers(2 * p, 0), "all_gather");

    all.assign(2 * p, -1);
    world.gather(mine, rank ? Span<int>() : Span<int>(all), 0);
    result(world, rank || all == numbers(2 * p, 0), "gather");
    all = numbers(2 * p, 0);
    world.scatter(rank ? Span<int>() : Span<int>(all), block, 0);
    result(world, block == mine, "scatter");

    // Rank i sends i * p + j to rank j.
    const std::vector<int> send = numbers(p, rank * p);
    std::vector<int> recv(p), want(p);
    for (int i = 0; i < p; i++)
        want[i] = i * p + rank;
    world.all_to_all(send, recv);
    result(world, recv == want, "all_to_all");
    world.barrier();
    world.monitored_barrier(10000);
    result(world, true, "barriers");
}

// Rank r has r + 1 elements.
void blocks_of_any_size(const Group &world)
{
    const int rank = world.rank(), p = world.size(), all = triangle(p + 1);
    std::vector<std::size_t> counts(p), displs(p), ones(p, 1);
    std::iota(counts.begin(), counts.end(), 1);
    for (int i = 0; i < p; i++)
        displs[i] = all - triangle(i + 2); // from the end on
    const std::vector<int> mine(rank + 1, rank);
    std::vector<int> packed, reversed(all), got(all);
    for (int i = 0; i < p; i++) {
        packed.insert(packed.end(), i + 1, i);
        std::fill_n(reversed.begin() + displs[i], i + 1, i);
    }

    world.all_gather_v(mine, got, counts);
    result(world, got == packed, "all_gather_v");
    world.all_gather_v(mine, got, counts, displs);
    result(world, got == reversed, "all_gather_v with displacements");
    got.assign(all, -1);
    world.gather_v(mine, got, counts, displs, 0);
    result(world, rank || got == reversed, "gather_v");
    std::vector<int> part(rank + 1, -1);
    world.scatter_v(packed, counts, {}, part, 0);
    result(world, part == mine, "scatter_v");

    // Each rank sends j + 1 elements to rank j, and gets rank + 1 of each.
    const std::vector<std::size_t> same(p, rank + 1);
    std::vector<int> from_each(p * (rank + 1), -1), want;
    std::vector<int> send(all, rank);
    for (int i = 0; i < p; i++)
        want.insert(want.end(), rank + 1, i);
    world.all_to_all_v(send, counts, {}, from_each, same, {});
    result(world, from_each == want, "all_to_all_v");
}

void works(const Group &world)
{
    const int rank = world.rank(), p = world.size();
    const int right = (rank + 1) % p, left = (rank + p - 1) % p;
    int sum = 0, got = -1;
    Work first = world.start().all_reduce(one(rank), one(sum), DSCOMM_SUM);
    Work moved = std::move(first);

    result(world, !first && moved, "a work is moved");
    moved.wait();
    result(world, sum == triangle(p) && moved.test(), "its result");
    moved = world.start().recv(one(got), left, 7);
    world.send(one(rank), right, 7);
    moved.wait();
    const auto info = moved.received();
    result(world,
           got == left && info.source == left && info.tag == 7 &&
               info.bytes == sizeof got,
           "a message by a work");

    std::vector<Work> works;
    std::vector<int> sums(4);
    for (int i = 0; i < 4; i++) {
        sums[i] = i * rank;
        works.push_back(world.start().all_reduce(one(sums[i]), DSCOMM_SUM));
    }
    const auto any = wait_any(works);
    result(world, any < 4 && works[any].test(), "wait_any");
    result(world, wait_all(works) && sums[3] == 3 * triangle(p), "wait_all");

    Work unmatched = world.start().recv(one(got), left, 8);
    result(world, !unmatched.test() && !unmatched.wait(1), "a work goes on");
    unmatched.cancel();
    result(world, fails([&] { unmatched.wait(); }, "") == DSCOMM_ERR_CANCELLED,
           "it is cancelled");
}

// A work that is destroyed before it is complete
void destroyed_works(const Group &world)
{
    const int rank = world.rank(), p = world.size();
    const int right = (rank + 1) % p, left = (rank + p - 1) % p;
    const std::vector<int> long_message(1 << 20, rank);
    std::vector<int> got(1 << 20, -1);

    {
        const Work recv = world.start().recv(got, left, 9);
        const Work send = world.start().send(long_message, right, 9);
    }
    result(world, got.front() == left && got.back() == left,
           "a work is destroyed");
    const Group other = world.split(0);
    if (rank == 0)
        try {
            std::vector<int> gone(1);
            const Work unmatched = other.start().recv(gone, left, 9);
            throw 1;
        } catch (int) {
        }
    other.barrier();
    if (rank == 0)
        try {
            std::vector<int> gone(1 << 20);
            const Work unmatched = other.start().send(gone, right, 9);
            throw 1;
        } catch (int) {
        }
    result(world,
           fails([&] { other.barrier(); }, "the scope of a work") ==
               DSCOMM_ERR_ABORTED,
           "by an exception");
}

void messages(const Group &world)
{
    const int rank = world.rank(), p = world.size();
    const int right = (rank + 1) % p, left = (rank + p - 1) % p;
    std::array<std::uint16_t, 4> text = {};

    result(world, !world.probe(left, 1, 0), "probe finds nothing");
    world.barrier();
    const std::array<std::uint16_t, 2> two = {1, 2};
    Work sent = world.start().send(two, right, 1);
    const auto found = world.probe(left, 1);
    result(world, found && found->bytes == 4, "probe finds a message");
    const auto info = world.recv_within(text, left, 1, 10000);
    result(world, text[1] == 2 && info.source == left, "recv_within");
    sent.wait();
    result(world,
           fails([&] { world.recv_within(text, left, 2, 1); }, "") ==
               DSCOMM_ERR_TIMEOUT,
           "its deadline");
}

void coalesced(const Group &world)
{
    const int p = world.size();
    int a = 1, b = 2, c = 3;
    {
        dscomm::Coalescing calls(world);
        world.all_reduce(one(a), DSCOMM_SUM);
        world.all_reduce(one(b), DSCOMM_SUM);
        calls.end();
    }
    result(world, a == p && b == 2 * p, "coalesced calls");
    Work work;
    {
        dscomm::Coalescing calls(world);
        world.all_reduce(one(c), DSCOMM_SUM);
        work = calls.start();
    }
    work.wait();
    result(world, c == 3 * p, "as a work");
    const Group other = world.split(0);
    if (other.rank() == 0)
        try {
            dscomm::Coalescing calls(other);
            std::vector<int> gone(10000);
            other.all_reduce(gone, DSCOMM_SUM);
            throw 1;
        } catch (int) {
        }
    result(world,
           fails([&] { other.barrier(); }, "has left coalesced calls") ==
               DSCOMM_ERR_ABORTED,
           "an exception leaves them");
}

void add(void *left, const void *right, std::size_t n, dscomm_dtype_t, void *)
{
    for (std::size_t i = 0; i < n; i++)
        static_cast<int *>(left)[i] += static_cast<const int *>(right)[i];
}

void memory(const Group &world)
{
    const int rank = world.rank(), p = world.size();
    const int right = (rank + 1) % p, left = (rank + p - 1) % p;
    auto buffer = world.allocate<int>(3);
    std::vector<int> window(4), copy(4);
    std::vector<dscomm::Key> keys(p);

    buffer[0] = rank;
    dscomm::Operator sum(add);
    dscomm::Operator op = std::move(sum);
    result(world, fails([&] { sum.get(); }, "moved from") == DSCOMM_ERR_INVALID,
           "an operator that was moved from");
    world.all_reduce(buffer, op);
    result(world, buffer.size() == 3 && buffer[0] == triangle(p),
           "memory, and an operator");

    result(world,
           fails([&] { world.allocate<double>(SIZE_MAX / 8 + 2); }, "") ==
               DSCOMM_ERR_NO_MEMORY,
           "more memory than there is");

    auto registered = world.register_memory(window);
    const auto mine = registered.key();
    std::vector<std::byte> all(p * mine.size());
    world.all_gather(mine, all);
    for (int i = 0; i < p; i++)
        std::copy_n(all.begin() + i * mine.size(), mine.size(),
                    keys[i].begin());
    world.put(one(rank), keys[right], sizeof(int));
    world.signal(right);
    world.signal_wait(left);
    result(world, window[1] == left, "put");
    world.get(copy, keys[right]);
    result(world, copy[1] == rank, "get");
    registered.close();
}

void blobs(const Group &world)
{
    const int rank = world.rank(), p = world.size();
    const std::string text = rank ? "" : std::string("a\0b", 3);

    result(world, world.broadcast_blob(text, 0) == std::string("a\0b", 3),
           "broadcast_blob");
    const auto all = world.all_gather_blob(std::string(rank, 'x'));
    bool right = all.size() == std::size_t(p);
    for (int i = 0; right && i < p; i++)
        right = all[i] == std::string(i, 'x');
    result(world, right, "all_gather_blob");
}

void groups(const Group &world)
{
    const int rank = world.rank(), p = world.size();
    std::vector<int> last(1, p - 1);
    const Group one_rank = world.new_group(last);
    const Group same = world.split(0, -rank);
    const Group none = world.split(DSCOMM_NO_COLOR);
    auto mesh = world.mesh(std::array<int, 2>{p, 1});

    result(world, bool(one_rank) == (rank == p - 1), "new_group");
    result(world, same.rank() == p - 1 - rank && !none, "split");
    result(world,
           same.to_global(0) == p - 1 && same.from_global(rank) == same.rank(),
           "numbers in the world");
    result(world,
           mesh.size() == 2 && mesh[0].size() == p && mesh[1].size() == 1,
           "mesh");
    Group moved = std::move(mesh[0]);
    int sum = rank;
    moved.all_reduce(one(sum), DSCOMM_SUM);
    result(world, !mesh[0] && mesh[0].rank() == -1 && sum == triangle(p),
           "a group is moved");
    moved.close();
    result(world, !moved, "a group is closed");
}

void failures(const Group &world)
{
    const int p = world.size();
    std::vector<int> few(1), many(2 * p);

    result(world,
           fails([&] { world.all_gather(many, few); }, "recv has 1 elements") ==
               DSCOMM_ERR_INVALID,
           "a buffer that is too short");
    result(world,
           fails([&] { world.broadcast(few, p); }, "root") ==
               DSCOMM_ERR_INVALID,
           "the sentence of the library");
    result(world,
           fails([&] { Group().barrier(); }, "NULL") == DSCOMM_ERR_INVALID,
           "no group");
    const std::vector<std::size_t> counts(1, 1);
    result(
        world,
        fails([&] { Group().reduce_scatter_v(few, few, counts, DSCOMM_SUM); },
              "NULL") == DSCOMM_ERR_INVALID,
        "no group, and counts");
    Group alias(world.get());
    result(world,
           fails([&] { alias.close(); }, "is the world") == DSCOMM_ERR_STATE &&
               alias,
           "a group that cannot be closed");

    const Group other = world.split(0);
    other.status();
    result(world, !other.failure(), "no failure");
    if (other.rank() == 0)
        other.abort("as told");
    result(world,
           fails([&] { other.barrier(); }, "as told") == DSCOMM_ERR_ABORTED,
           "an abort");
    result(world,
           other.failure() && other.failure()->kind == DSCOMM_FAILURE_ABORTED,
           "its record");
    const Group left = other.shrink();
    int sum = 1;
    left.all_reduce(one(sum), DSCOMM_SUM);
    result(world, sum == p, "a shrunk group");
}

void store(const Group &world)
{
    const dscomm::Store all("memory://");
    const dscomm::Store view = all.prefix("view");
    const std::string bytes("a\0b", 3);

    view.set("key", bytes);
    result(world, all.get("view/key") == bytes && all.has({"view/key"}),
           "a store");
    all.append("view/key", "c");
    view.wait({"key"});
    result(world, view.get("key").size() == 4 && view.add("sum", 3) == 3,
           "append and add");
    result(world,
           view.compare_set("new", "", "1") == "1" && all.num_keys() == 3 &&
               view.remove("key") && !view.remove("key"),
           "compare_set and remove");
    result(world,
           fails([&] { view.get("none", 1); }, "none") == DSCOMM_ERR_TIMEOUT,
           "a key that is missing");
}

void environment(const Group &world)
{
    const dscomm::Env env;

    result(world,
           env.rank() == world.rank() && env.world_size() == world.size() &&
               *env.source(),
           "the environment");
}

// An exception leaves the world of rank 0; what the others get
void leave()
{
    const Group world = dscomm::init();
    if (world.rank() == 0)
        throw std::runtime_error("rank 0 is lost");
    std::puts(fails([&] { world.barrier(); }, "an exception") ==
                      DSCOMM_ERR_ABORTED
                  ? "aborted"
                  : "not aborted");
}

// A registration of rank 0 whose group rank 1 aborts within a put
void close_late()
{
    const Group world = dscomm::init(), other = world.split(0);
    std::vector<char> data(1 << 26);
    dscomm::Key key;
    char turn = 0;

    if (world.rank() == 0) {
        auto registered = other.register_memory(data);
        world.send(registered.key(), 1, 0);
        other.recv(one(turn), 1, 0);
        world.send(one(turn), 1, 0);
        fails([&] { registered.close(); }, "as told");
        std::puts(registered.get() ? "registered" : "closed");
    } else {
        world.recv(key, 0, 0);
        const Work put = other.start().put(data, key);
        other.send(one(turn), 0, 0);
        world.recv(one(turn), 0, 0);
        other.abort("as told");
    }
}

void run_all()
{
    Group world = dscomm::init();

    for (auto part : {reductions, moves, blocks_of_any_size, works,
                      destroyed_works, messages, coalesced, memory, blobs,
                      groups, failures, store, environment})
        part(world);
    if (world.rank() == 0)
        std::printf("1..%d\n", count);
    std::vector<char> late(100); // registered for longer than there is a world
    const auto registered = world.register_memory(late);
    world.close();
}

} // namespace

int main(int argc, char **argv)
{
    try {
        const std::string_view part = argc > 1 ? argv[1] : "all";
        part == "all" ? run_all() : part == "throw" ? leave() : close_late();
    } catch (const std::exception &error) {
        std::printf("# %s\n", error.what());
        return 1;
    }
}
