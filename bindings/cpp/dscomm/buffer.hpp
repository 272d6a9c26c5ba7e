// SPDX-License-Identifier: BSD-3-Clause
// Buffers: whatever has data() and size(), such as std::vector and std::array,
// arrays of C, and Span. The type of their elements tells the dscomm_dtype_t.
#ifndef DSCOMM_BUFFER_HPP
#define DSCOMM_BUFFER_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <dscomm/error.hpp>
#include <initializer_list>
#include <iterator>
#include <type_traits>

namespace dscomm
{

// Elements of types that C++17 lacks, as their bits
struct float16 {
    std::uint16_t bits;
};
struct bfloat16 {
    std::uint16_t bits;
};
struct float8_e4m3 {
    std::uint8_t bits;
};
struct float8_e5m2 {
    std::uint8_t bits;
};

namespace detail
{

// INT8 to UINT64, each signed one followed by the unsigned one of its size
constexpr dscomm_dtype_t integer(std::size_t size, bool is_signed)
{
    const int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    return static_cast<dscomm_dtype_t>(2 * log + (is_signed ? 0 : 1));
}

template <dscomm_dtype_t Value>
using constant = std::integral_constant<dscomm_dtype_t, Value>;

} // namespace detail

// dtype<T>::value is the dscomm_dtype_t of elements of type T. A program may
// specialize it for a type of its own that has the same bits.
template <typename T>
struct dtype
    : detail::constant<detail::integer(sizeof(T), std::is_signed_v<T>)> {
    static_assert(std::is_integral_v<T> && sizeof(T) <= 8,
                  "specialize dscomm::dtype for this type of element");
};
template <> struct dtype<bool> : detail::constant<DSCOMM_BOOL> {
    static_assert(sizeof(bool) == 1);
};
template <> struct dtype<std::byte> : detail::constant<DSCOMM_UINT8> {
};
template <> struct dtype<float> : detail::constant<DSCOMM_FLOAT32> {
};
template <> struct dtype<double> : detail::constant<DSCOMM_FLOAT64> {
};
template <> struct dtype<float16> : detail::constant<DSCOMM_FLOAT16> {
};
template <> struct dtype<bfloat16> : detail::constant<DSCOMM_BFLOAT16> {
};
template <> struct dtype<float8_e4m3> : detail::constant<DSCOMM_FLOAT8_E4M3> {
};
template <> struct dtype<float8_e5m2> : detail::constant<DSCOMM_FLOAT8_E5M2> {
};

// A pointer and a number of elements; it owns nothing. {0, 2} is no list.
template <typename T> class Span
{
  public:
    constexpr Span() = default;
    constexpr Span(T *data, std::size_t size) : data_(data), size_(size)
    {
    }
    Span(int, std::size_t) = delete;
    template <typename B, typename = std::enable_if_t<std::is_convertible_v<
                              decltype(std::data(std::declval<B &>())), T *>>>
    constexpr Span(B &&buffer)
        : data_(std::data(buffer)), size_(std::size(buffer))
    {
    }
    constexpr T *data() const
    {
        return data_;
    }
    constexpr std::size_t size() const
    {
        return size_;
    }
    constexpr T *begin() const
    {
        return data_;
    }
    constexpr T *end() const
    {
        return data_ + size_;
    }
    constexpr T &operator[](std::size_t index) const
    {
        return data_[index];
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// A value as a buffer of one element
template <typename T> constexpr Span<T> one(T &value)
{
    return {&value, 1};
}

// Elements for each rank, or where they begin. The array must live as long as
// the work of the call. Displacements that are left out are packed.
using Counts = Span<const std::size_t>;

namespace detail
{

template <typename B> using pointer = decltype(std::data(std::declval<B &>()));
template <typename B> using element = std::remove_pointer_t<pointer<B>>;

// Whether a buffer outlives the call that it is an argument of: a variable, or
// a temporary that owns nothing, whose elements do not become const with it
template <typename B>
constexpr bool
    lasts = std::is_lvalue_reference_v<B> ||
            (std::is_trivially_copyable_v<B> &&
             std::is_same_v<pointer<std::remove_cv_t<B>>, pointer<const B>>);

// The elements of these end with the temporary.
template <typename T> constexpr bool lasts<std::initializer_list<T>> = false;
template <typename T, std::size_t N>
constexpr bool lasts<std::array<const T, N>> = false;

// Counts of a call that starts
struct LastingCounts : Counts {
    constexpr LastingCounts() = default;
    constexpr LastingCounts(const std::size_t *data, std::size_t size)
        : Counts(data, size)
    {
    }
    LastingCounts(int, std::size_t) = delete;
    template <typename B, typename = std::enable_if_t<std::is_convertible_v<
                              pointer<B>, const std::size_t *>>>
    constexpr LastingCounts(B &&counts) : Counts(counts)
    {
        static_assert(lasts<B>, "counts of a work are no temporary: they must "
                                "live until it is complete");
    }
};

// The type of the elements of a buffer, and of another one
template <typename B> constexpr dscomm_dtype_t type()
{
    return dtype<std::remove_cv_t<element<B>>>::value;
}
template <typename A, typename B> constexpr dscomm_dtype_t type()
{
    static_assert(std::is_same_v<std::remove_cv_t<element<A>>,
                                 std::remove_cv_t<element<B>>>,
                  "the buffers have different types of elements");
    return type<A>();
}

// Throws if a buffer is too short.
inline void need(const char *name, std::size_t size, std::size_t needed)
{
    if (size < needed)
        check(dscomm_fail(DSCOMM_ERR_INVALID,
                          "%s has %zu elements, but the call needs %zu", name,
                          size, needed));
}

// Elements from the begin of a buffer to the end of its last block
inline std::size_t extent(Counts counts, Counts displs, std::size_t ranks)
{
    std::size_t end = 0, packed = 0;

    need("the array of counts", counts.size(), ranks);
    need("the array of displacements", displs.data() ? displs.size() : ranks,
         ranks);
    for (std::size_t rank = 0; rank < ranks; rank++) {
        const auto begin = displs.data() ? displs[rank] : packed;
        packed += counts[rank];
        if (counts[rank] && begin + counts[rank] > end)
            end = begin + counts[rank];
    }
    return end;
}

} // namespace detail
} // namespace dscomm

#endif
