// SPDX-License-Identifier: BSD-3-Clause
#include "store.hpp"

#include "error.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <pybind11/pybind11.h>
#include <thread>
#include <vector>

namespace dscomm_torch
{
namespace
{

using Bytes = std::vector<uint8_t>;

// torch prints a warning if a wait ends without the keys, so short ones look
// at times.
constexpr int SHORT_MS = 1000, LOOK_MS = 5;

// The store for calls that do not wait, and clones of it: a call that waits may
// do so with the lock of its store held, so each has one of its own. A store
// that a program has written in Python need have no clone; then it serves one
// call at a time, and none waits in it.
class Connections
{
  public:
    Connections(const c10::intrusive_ptr<c10d::Store> &store,
                std::shared_ptr<std::atomic<bool>> stopped)
        : stopped_(std::move(stopped))
    {
        try {
            store_ = store->clone();
        } catch (const c10::Error &) {
            throw;
        } catch (const std::exception &) {
            store_ = store;
            alone_ = true;
        }
    }

    // Calls function(store); an exception becomes a status and its sentence.
    template <typename Function>
    dscomm_status_t call(Function function) noexcept;

    // Whether the store has no clones.
    bool is_alone() const
    {
        return alone_;
    }
    // A clone for one call.
    c10::intrusive_ptr<c10d::Store> take()
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (idle_.empty())
            return store_->clone();
        auto clone = std::move(idle_.back());
        idle_.pop_back();
        return clone;
    }
    void give(c10::intrusive_ptr<c10d::Store> clone)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        idle_.push_back(std::move(clone));
    }

  private:
    dscomm_status_t fail(const char *what) const noexcept
    {
        return dscomm_fail(DSCOMM_ERR_IO, "%s%s", what,
                           alone_ ? " (the store is a class of Python's: it "
                                    "needs the methods set, get, add, check "
                                    "and compare_set)"
                                  : "");
    }
    template <typename Function> void call_alone(Function function);

    c10::intrusive_ptr<c10d::Store> store_;
    const std::shared_ptr<std::atomic<bool>> stopped_;
    bool alone_ = false;
    std::mutex mutex_; // of idle_
    std::vector<c10::intrusive_ptr<c10d::Store>> idle_;
};

// The function takes Python's lock, so this thread must not have it while it
// waits for the store's.
template <typename Function> void Connections::call_alone(Function function)
{
    // Groups share a store, whose prefixes hide that it is one.
    static std::mutex &called = *new std::mutex;
    std::optional<pybind11::gil_scoped_release> unlocked;

    if (PyGILState_Check())
        unlocked.emplace();
    std::lock_guard<std::mutex> lock(called);
    function(*store_);
}

template <typename Function>
dscomm_status_t Connections::call(Function function) noexcept
{
    if (*stopped_)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "the process group is being destroyed");
    try {
        alone_ ? call_alone(function) : function(*store_);
        return DSCOMM_OK;
    } catch (const c10::DistStoreError &error) {
        return dscomm_fail(DSCOMM_ERR_TIMEOUT, "%s",
                           error.what_without_backtrace());
    } catch (const c10::Error &error) {
        return fail(error.what_without_backtrace());
    } catch (const std::exception &error) {
        return fail(error.what());
    }
}

template <typename Function>
dscomm_status_t guarded(void *arg, Function function) noexcept
{
    return static_cast<Connections *>(arg)->call(function);
}

Bytes bytes_of(const void *data, size_t size)
{
    const auto *first = static_cast<const uint8_t *>(data);
    return size ? Bytes(first, first + size) : Bytes();
}

void return_value(const Bytes &value, void **ret_value, size_t *ret_size)
{
    *ret_value = std::malloc(value.size() + 1);
    if (!*ret_value)
        throw std::bad_alloc();
    if (!value.empty())
        std::memcpy(*ret_value, value.data(), value.size());
    *ret_size = value.size();
}

dscomm_status_t store_set(void *arg, const char *key, const void *value,
                          size_t size)
{
    return guarded(arg, [&](c10d::Store &store) {
        store.set(key, bytes_of(value, size));
    });
}

// Called when the key is there.
dscomm_status_t store_get(void *arg, const char *key, int, void **ret_value,
                          size_t *ret_size)
{
    return guarded(arg, [&](c10d::Store &store) {
        return_value(store.get(key), ret_value, ret_size);
    });
}

// Looks at times.
dscomm_status_t wait_looking(Connections &connections,
                             const std::vector<std::string> &names,
                             int timeout_ms)
{
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::milliseconds(timeout_ms);
    bool found = false;

    for (;;) {
        const dscomm_status_t status = connections.call(
            [&](c10d::Store &store) { found = store.check(names); });
        if (status < 0 || found)
            return status;
        if (clock::now() >= end)
            return dscomm_fail(DSCOMM_ERR_TIMEOUT, "no such key after %d ms",
                               timeout_ms);
        std::this_thread::sleep_for(std::chrono::milliseconds(LOOK_MS));
    }
}

dscomm_status_t store_wait(void *arg, const char *const *keys, size_t count,
                           int timeout_ms)
{
    const std::vector<std::string> names(keys, keys + count);
    auto &connections = *static_cast<Connections *>(arg);

    if (timeout_ms < SHORT_MS || connections.is_alone())
        return wait_looking(connections, names, timeout_ms);
    return connections.call([&](c10d::Store &) {
        auto clone = connections.take();
        clone->wait(names, std::chrono::milliseconds(timeout_ms));
        connections.give(std::move(clone));
    });
}

dscomm_status_t store_add(void *arg, const char *key, int64_t delta,
                          int64_t *ret_sum)
{
    return guarded(
        arg, [&](c10d::Store &store) { *ret_sum = store.add(key, delta); });
}

dscomm_status_t store_compare_set(void *arg, const char *key,
                                  const void *expected, size_t expected_size,
                                  const void *desired, size_t desired_size,
                                  void **ret_value, size_t *ret_size)
{
    return guarded(arg, [&](c10d::Store &store) {
        return_value(store.compareSet(key, bytes_of(expected, expected_size),
                                      bytes_of(desired, desired_size)),
                     ret_value, ret_size);
    });
}

// Appends to a store that has no append of its own.
void append_by_comparing(c10d::Store &store, const std::string &key,
                         const Bytes &value)
{
    Bytes old = store.check({key}) ? store.get(key) : Bytes();
    for (;;) {
        Bytes joined = old;
        joined.insert(joined.end(), value.begin(), value.end());
        Bytes now = store.compareSet(key, old, joined);
        if (now == joined)
            return;
        old = std::move(now);
    }
}

dscomm_status_t store_append(void *arg, const char *key, const void *value,
                             size_t size)
{
    return guarded(arg, [&](c10d::Store &store) {
        if (store.hasExtendedApi())
            store.append(key, bytes_of(value, size));
        else if (size)
            append_by_comparing(store, key, bytes_of(value, size));
    });
}

dscomm_status_t store_remove(void *arg, const char *key, int *ret_deleted)
{
    return guarded(
        arg, [&](c10d::Store &store) { *ret_deleted = store.deleteKey(key); });
}

dscomm_status_t store_check(void *arg, const char *const *keys, size_t count,
                            int *ret_present)
{
    const std::vector<std::string> names(keys, keys + count);

    return guarded(
        arg, [&](c10d::Store &store) { *ret_present = store.check(names); });
}

dscomm_status_t store_num_keys(void *arg, int64_t *ret_count)
{
    return guarded(
        arg, [&](c10d::Store &store) { *ret_count = store.getNumKeys(); });
}

void store_close(void *arg)
{
    delete static_cast<Connections *>(arg);
}

} // namespace

dscomm_store_t *open_store(const c10::intrusive_ptr<c10d::Store> &store,
                           std::chrono::milliseconds timeout,
                           std::shared_ptr<std::atomic<bool>> stopped)
{
    dscomm_store_custom_t custom = DSCOMM_STORE_CUSTOM_INIT;
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *opened = nullptr;
    auto connections = std::make_unique<Connections>(store, std::move(stopped));

    custom.arg = connections.get();
    custom.set = store_set;
    custom.get = store_get;
    custom.wait = store_wait;
    custom.add = store_add;
    custom.compare_set = store_compare_set;
    custom.append = store_append;
    custom.remove = store_remove;
    custom.check = store_check;
    custom.num_keys = store_num_keys;
    custom.close = store_close;
    attr.timeout_ms = milliseconds(timeout);
    check(dscomm_store_open_custom(&custom, &attr, &opened));
    connections.release();
    return opened;
}

} // namespace dscomm_torch
