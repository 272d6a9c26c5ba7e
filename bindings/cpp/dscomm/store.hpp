// SPDX-License-Identifier: BSD-3-Clause
// The key-value store.
#ifndef DSCOMM_STORE_HPP
#define DSCOMM_STORE_HPP

#include <cstdint>
#include <dscomm/error.hpp>
#include <string_view>
#include <vector>

namespace dscomm
{

namespace detail
{

struct CloseStore {
    void operator()(dscomm_store_t *store) const noexcept
    {
        dscomm_store_close(store);
    }
};

} // namespace detail

// The owner of a store, or of a view of it. Values are any bytes.
class Store
{
  public:
    using Keys = std::vector<const char *>;

    Store() = default;
    explicit Store(dscomm_store_t *store) : store_(store)
    {
    }
    explicit Store(const char *url, const dscomm_store_attr_t *attr = nullptr)
    {
        dscomm_store_t *store = nullptr;
        check(dscomm_store_open(url, attr, &store));
        store_.reset(store);
    }
    dscomm_store_t *get() const noexcept
    {
        return store_.get();
    }
    explicit operator bool() const noexcept
    {
        return store_ != nullptr;
    }

    // A view in which each key is PREFIX/key
    Store prefix(const char *prefix) const
    {
        dscomm_store_t *store = nullptr;
        check(dscomm_store_prefix(get(), prefix, &store));
        return Store(store);
    }
    int port() const noexcept
    {
        return dscomm_store_port(get());
    }
    void set(const char *key, std::string_view value) const
    {
        check(dscomm_store_set(get(), key, value.data(), value.size()));
    }
    std::string get(const char *key,
                    int timeout_ms = DSCOMM_TIMEOUT_DEFAULT) const
    {
        void *value = nullptr;
        std::size_t size = 0;
        check(dscomm_store_get(get(), key, timeout_ms, &value, &size));
        return detail::take(value, size, dscomm_store_free);
    }
    void wait(const Keys &keys, int timeout_ms = DSCOMM_TIMEOUT_DEFAULT) const
    {
        check(dscomm_store_wait(get(), keys.data(), keys.size(), timeout_ms));
    }
    std::int64_t add(const char *key, std::int64_t delta) const
    {
        std::int64_t sum = 0;
        check(dscomm_store_add(get(), key, delta, &sum));
        return sum;
    }
    // Returns the value that is stored then.
    std::string compare_set(const char *key, std::string_view expected,
                            std::string_view desired) const
    {
        void *value = nullptr;
        std::size_t size = 0;
        check(dscomm_store_compare_set(get(), key, expected.data(),
                                       expected.size(), desired.data(),
                                       desired.size(), &value, &size));
        return detail::take(value, size, dscomm_store_free);
    }
    void append(const char *key, std::string_view value) const
    {
        check(dscomm_store_append(get(), key, value.data(), value.size()));
    }
    // Removes key; returns whether it existed.
    bool remove(const char *key) const
    {
        int deleted = 0;
        check(dscomm_store_delete(get(), key, &deleted));
        return deleted;
    }
    bool has(const Keys &keys) const
    {
        int present = 0;
        check(dscomm_store_check(get(), keys.data(), keys.size(), &present));
        return present;
    }
    std::int64_t num_keys() const
    {
        std::int64_t count = 0;
        check(dscomm_store_num_keys(get(), &count));
        return count;
    }

  private:
    std::unique_ptr<dscomm_store_t, detail::CloseStore> store_;
};

} // namespace dscomm

#endif
