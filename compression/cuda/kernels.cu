/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of codec onebit, for nvcc and for the emulator of the tests. Each
 * does several jobs, one in each row of blocks of its grid. In a job, a warp
 * owns a tile of 1024 elements, 32 words of bits. In the whole tiles, each lane
 * has four neighbours of every 128 elements, in accesses of 16 bytes; a tile
 * that is cut off, or lies badly, goes element by element. */
#ifdef CUDA_EMULATOR
#include CUDA_EMULATOR
#else
#include <cuda_runtime.h>
#define LAUNCH(kernel, blocks, jobs, stream, ...)                              \
    kernel<<<dim3(blocks, jobs), THREADS, 0, (cudaStream_t)(stream)>>>(        \
        __VA_ARGS__)
#define LAUNCHED() (int)cudaGetLastError()
#endif

#include "compression/codecs/arithmetic.h"
#include "compression/cuda/kernels.h"

#define WARP 32
#define FULL 0xffffffffu
#define TILE 1024
#define STEPS 8 /* of 128 elements, in a tile */
#ifndef BATCH /* tests/gpu/variants has others */
#define BATCH 4 /* steps whose loads are under way at a time */
#endif
#define THREADS 256

/* Arguments of the kernels, in memory that stays valid while they run. */
template <class A> struct jobs_t {
    A at[DSCOMM_DEVICE_TOGETHER];
    size_t tiles[DSCOMM_DEVICE_TOGETHER];
};

struct four_t {
    float at[4];
};

struct float32_t {
    typedef float type;
    typedef float4 quad;
    static __device__ float get(float x)
    {
        return x;
    }
    static __device__ float put(float x)
    {
        return x;
    }
    static __device__ four_t split(float4 q)
    {
        return four_t{{q.x, q.y, q.z, q.w}};
    }
    static __device__ float4 join(four_t q)
    {
        return make_float4(q.at[0], q.at[1], q.at[2], q.at[3]);
    }
};

/* Functions that serve both dtypes of 16 bits. */
template <class E> struct short_t {
    typedef uint16_t type;
    typedef uint2 quad;
    static __device__ four_t split(uint2 q)
    {
        return four_t{{E::get((uint16_t)q.x), E::get((uint16_t)(q.x >> 16)),
                       E::get((uint16_t)q.y), E::get((uint16_t)(q.y >> 16))}};
    }
    static __device__ uint2 join(four_t q)
    {
        return make_uint2(E::put(q.at[0]) | (unsigned)E::put(q.at[1]) << 16,
                          E::put(q.at[2]) | (unsigned)E::put(q.at[3]) << 16);
    }
};

struct half_t : short_t<half_t> {
    static __device__ float get(uint16_t x)
    {
        return value_of_half(x);
    }
    static __device__ uint16_t put(float x)
    {
        return half_of(x);
    }
};

struct bfloat_t : short_t<bfloat_t> {
    static __device__ float get(uint16_t x)
    {
        return bfloat16_widen(x);
    }
    static __device__ uint16_t put(float x)
    {
        return bfloat16_round(x);
    }
};

#ifdef PLAIN_ACCESS /* tests/gpu/variants again */
#define __ldcs(from) (*(from))
#define __stcs(to, q) (void)(*(to) = (q))
#endif

template <class E> __device__ four_t load(const typename E::type *from)
{
    return E::split(__ldcs((const typename E::quad *)from));
}

template <class E> __device__ void store(typename E::type *to, four_t q)
{
    __stcs((typename E::quad *)to, E::join(q));
}

template <class E> __device__ bool is_aligned(const typename E::type *pointer)
{
    return (uintptr_t)pointer % sizeof(typename E::quad) == 0;
}

/* The product of two float32 is exact. */
__device__ double add_square(double sum, float u)
{
    return sum + (double)u * (double)u;
}

/* Elements [base, base + size), which are [at, at + size) of their row. */
struct tile_t {
    size_t base, row, at;
    unsigned size;
};

/* Elements [from, to) of all rows are cut into tiles. */
__device__ tile_t tile_at(size_t index, size_t chunk, size_t from, size_t to,
                          size_t count)
{
    size_t per_row = (to - from) / TILE + ((to - from) % TILE != 0);
    size_t row = index / per_row, at = from + index % per_row * TILE;
    size_t base = row * chunk + at;
    size_t left = base < count ? count - base : 0;

    left = left < to - at ? left : to - at;
    return tile_t{base, row, at, (unsigned)(left < TILE ? left : TILE)};
}

__device__ uint32_t *words_of(char *row, size_t at)
{
    return (uint32_t *)(row + DSCOMM_DEVICE_HEADER) + at / WARP;
}

__device__ unsigned lane_of()
{
    return threadIdx.x % WARP;
}

__device__ size_t warp_of()
{
    return ((size_t)blockIdx.x * THREADS + threadIdx.x) / WARP;
}

__device__ size_t warps()
{
    return (size_t)gridDim.x * (THREADS / WARP);
}

/* Where a lane's four elements of a step lie in the tile, in which word, */
__device__ unsigned place(unsigned step)
{
    return step * 128 + lane_of() * 4;
}

__device__ unsigned word_of(unsigned step)
{
    return step * 4 + lane_of() / 8;
}

/* and at which bit of it; the first of them is the highest. */
__device__ unsigned nibble_shift()
{
    return 4 * (lane_of() % 8 ^ 1);
}

/* Element i of a word is at bit i ^ 7; all lanes take part. */
__device__ uint32_t word_of_lanes(bool bit)
{
    return __byte_perm(__brev(__ballot_sync(FULL, bit)), 0, 0x0123);
}

/* The word that eight lanes make of four bits each. */
__device__ uint32_t weave(unsigned nibble)
{
    uint32_t word = nibble << nibble_shift();

    word |= __shfl_xor_sync(FULL, word, 1);
    word |= __shfl_xor_sync(FULL, word, 2);
    word |= __shfl_xor_sync(FULL, word, 4);
    return word;
}

/* Stores what is to be encoded in the step, and makes four bits of it. */
__device__ unsigned encode(four_t u, float *to, double *sum)
{
    unsigned nibble = 0;

#pragma unroll
    for (int j = 0; j < 4; j++) {
        *sum = add_square(*sum, u.at[j]);
        nibble |= u.at[j] < 0 ? 0 : 8u >> j;
    }
    store<float32_t>(to, u);
    return nibble;
}

/* In all threads of the block. */
__device__ double block_sum(double sum)
{
    __shared__ double parts[THREADS / WARP];

    for (int other = WARP / 2; other; other /= 2)
        sum += __shfl_xor_sync(FULL, sum, other);
    __syncthreads();
    if (lane_of() == 0)
        parts[threadIdx.x / WARP] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < THREADS / WARP; i++)
        sum += parts[i];
    return sum;
}

/* true in the block of a job that ends last, which gets the sum over all its
 * blocks, in an order that depends on their number alone. */
__device__ bool finish(const dscomm_cuda_grid_t &grid, double sum,
                       double *ret_sum)
{
    double *partials = grid.partials + (size_t)blockIdx.y * gridDim.x;
    __shared__ bool last;

    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(grid.arrived + blockIdx.y, gridDim.x - 1) ==
               gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return false;
    __threadfence();
    sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS)
        sum += __ldcg(partials + i);
    *ret_sum = block_sum(sum);
    return true;
}

template <class E>
__device__ double work_whole(const typename E::type *x, const float *c, float s,
                             float *next, uint32_t *words)
{
    uint32_t mine = 0;
    double sum = 0;

#pragma unroll 1
    for (unsigned first = 0; first < STEPS; first += BATCH) {
        four_t u[BATCH], e[BATCH];

#pragma unroll
        for (unsigned k = 0; k < BATCH; k++) {
            u[k] = load<E>(x + place(first + k));
            e[k] = load<float32_t>(c + place(first + k));
        }
#pragma unroll
        for (unsigned k = 0; k < BATCH; k++) {
            uint32_t word;

            for (int j = 0; j < 4; j++)
                u[k].at[j] += onebit_error(e[k].at[j], s);
            word = weave(encode(u[k], next + place(first + k), &sum));
            if (lane_of() % 8 == first + k)
                mine = word;
        }
    }
    words[word_of(lane_of() % 8)] = mine;
    return sum;
}

/* x has the first inside elements of the tile. */
template <class E>
__device__ double work_any(const typename E::type *x, size_t inside,
                           const float *c, float s, float *next,
                           uint32_t *words, unsigned size)
{
    double sum = 0;

    for (unsigned first = 0; first < size; first += WARP) {
        unsigned i = first + lane_of();
        float u = 0;
        uint32_t word;

        if (i < size) {
            u = (i < inside ? E::get(x[i]) : 0) + onebit_error(c[i], s);
            next[i] = u;
            sum = add_square(sum, u);
        }
        word = word_of_lanes(i < size && !(u < 0));
        if (lane_of() == 0)
            words[first / WARP] = word;
    }
    return sum;
}

template <class E>
__device__ double work_tile(const dscomm_device_worker_t &a, float s,
                            tile_t tile)
{
    const typename E::type *x = (const typename E::type *)a.x + tile.base;
    size_t inside = tile.base < a.count ? a.count - tile.base : 0;
    const float *c = a.c + tile.base;
    float *next = a.next + tile.base;
    uint32_t *words =
        words_of(a.rows.first + tile.row * a.rows.stride, tile.at);

    if (tile.size == TILE && inside >= TILE && is_aligned<E>(x) &&
        is_aligned<float32_t>(c) && is_aligned<float32_t>(next))
        return work_whole<E>(x, c, s, next, words);
    return work_any<E>(x, inside, c, s, next, words, tile.size);
}

template <class E>
__global__ void __launch_bounds__(THREADS, 2)
    worker(const dscomm_cuda_grid_t grid,
           const __grid_constant__ jobs_t<dscomm_device_worker_t> jobs)
{
    const dscomm_device_worker_t &a = jobs.at[blockIdx.y];
    const size_t tiles = jobs.tiles[blockIdx.y];
    float s = *a.s;
    double sum = 0;

    for (size_t i = warp_of(); i < tiles; i += warps())
        sum += work_tile<E>(
            a, s, tile_at(i, a.rows.chunk, 0, a.rows.chunk, a.padded));
    if (!finish(grid, sum, &sum))
        return;
    s = onebit_scale(sum, a.padded);
    for (size_t r = threadIdx.x; r < a.rows.ranks; r += THREADS)
        *(float *)(a.rows.first + r * a.rows.stride) = s;
    if (threadIdx.x == 0)
        *a.ret_s = s;
}

/* The weight of row r in the sum. */
__device__ float weight(const dscomm_device_server_t &a, size_t r)
{
    return *(const float *)(a.rows.first + r * a.rows.stride) * a.factor;
}

/* P: the number of rows, whose words of the tile are then read once; 0: any. */
template <int P>
__device__ double serve_whole(const dscomm_device_server_t &a, float s,
                              size_t at)
{
    const unsigned batch = P > BATCH ? BATCH / 2 : BATCH; /* registers */
    uint32_t *words = words_of(a.ret_row, at), mine = 0, row[P ? P : 1];
    float weights[P ? P : 1];
    double sum = 0;

#pragma unroll
    for (int r = 0; r < P; r++) {
        row[r] = words_of(a.rows.first + r * a.rows.stride, at)[lane_of()];
        weights[r] = weight(a, r);
    }
#pragma unroll 1
    for (unsigned first = 0; first < STEPS; first += batch) {
        four_t e[batch];

#pragma unroll
        for (unsigned k = 0; k < batch; k++)
            e[k] = load<float32_t>(a.c + at + place(first + k));
#pragma unroll
        for (unsigned k = 0; k < batch; k++) {
            four_t u = {{0, 0, 0, 0}};
            uint32_t word;

#pragma unroll
            for (int r = 0; r < (P ? P : (int)a.rows.ranks); r++) {
                float w = P ? weights[P ? r : 0] : weight(a, r);

                if (P)
                    word =
                        __shfl_sync(FULL, row[P ? r : 0], word_of(first + k));
                else
                    word = words_of(a.rows.first + r * a.rows.stride,
                                    at)[word_of(first + k)];
                word >>= nibble_shift();
                for (int j = 0; j < 4; j++)
                    u.at[j] += word & 8u >> j ? w : -w;
            }
            for (int j = 0; j < 4; j++)
                u.at[j] += onebit_error(e[k].at[j], s);
            word = weave(encode(u, a.c + at + place(first + k), &sum));
            if (lane_of() % 8 == first + k)
                mine = word;
        }
    }
    words[word_of(lane_of() % 8)] = mine;
    return sum;
}

__device__ double serve_any(const dscomm_device_server_t &a, float s, size_t at,
                            unsigned size)
{
    uint32_t *words = words_of(a.ret_row, at);
    double sum = 0;

    for (unsigned first = 0; first < size; first += WARP) {
        unsigned i = first + lane_of();
        uint32_t word;
        float u = 0;

        for (size_t r = 0; r < a.rows.ranks; r++) {
            float w = weight(a, r);

            word = words_of(a.rows.first + r * a.rows.stride, at)[first / WARP];
            u += word >> (lane_of() ^ 7) & 1 ? w : -w;
        }
        if (i < size) {
            u += onebit_error(a.c[at + i], s);
            a.c[at + i] = u;
            sum = add_square(sum, u);
        }
        word = word_of_lanes(i < size && !(u < 0));
        if (lane_of() == 0)
            words[first / WARP] = word;
    }
    return sum;
}

template <int P>
__global__ void __launch_bounds__(THREADS, 3)
    server(const dscomm_cuda_grid_t grid,
           const __grid_constant__ jobs_t<dscomm_device_server_t> jobs)
{
    const dscomm_device_server_t &a = jobs.at[blockIdx.y];
    const size_t tiles = jobs.tiles[blockIdx.y];
    float s = *a.s;
    double sum = 0;

    for (size_t i = warp_of(); i < tiles; i += warps()) {
        tile_t tile = tile_at(i, a.count, 0, a.count, a.count);

        sum += tile.size == TILE ? serve_whole<P>(a, s, tile.at)
                                 : serve_any(a, s, tile.at, tile.size);
    }
    if (!finish(grid, sum, &sum) || threadIdx.x)
        return;
    *(float *)a.ret_row = *a.s = onebit_scale(sum, a.count);
}

template <class E>
__device__ void unpack_whole(uint32_t mine, float s, typename E::type *to)
{
#pragma unroll
    for (unsigned k = 0; k < STEPS; k++) {
        uint32_t word = __shfl_sync(FULL, mine, word_of(k)) >> nibble_shift();
        four_t q;

        for (int j = 0; j < 4; j++)
            q.at[j] = word & 8u >> j ? s : -s;
        store<E>(to + place(k), q);
    }
}

template <class E>
__global__ void __launch_bounds__(THREADS)
    unpack(const __grid_constant__ jobs_t<dscomm_device_unpack_t> jobs)
{
    const dscomm_device_unpack_t &a = jobs.at[blockIdx.y];
    const size_t tiles = jobs.tiles[blockIdx.y];

    for (size_t i = warp_of(); i < tiles; i += warps()) {
        tile_t tile = tile_at(i, a.rows.chunk, a.from, a.to, a.count);
        char *row = a.rows.first + tile.row * a.rows.stride;
        typename E::type *to = (typename E::type *)a.ret_x + tile.base;
        uint32_t mine = 0;
        float s = *(float *)row;

        if (lane_of() * WARP < tile.size)
            mine = words_of(row, tile.at)[lane_of()];
        if (tile.size == TILE && is_aligned<E>(to)) {
            unpack_whole<E>(mine, s, to);
            continue;
        }
        for (unsigned first = 0; first < tile.size; first += WARP) {
            uint32_t word = __shfl_sync(FULL, mine, first / WARP);

            if (first + lane_of() < tile.size)
                to[first + lane_of()] =
                    E::put(word >> (lane_of() ^ 7) & 1 ? s : -s);
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    materialise(const dscomm_device_materialise_t a)
{
    size_t step = (size_t)gridDim.x * THREADS;
    float s = *a.s;

    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < a.count;
         i += step)
        a.c[i] = onebit_error(a.c[i], s);
}

template <class E>
__global__ void __launch_bounds__(THREADS)
    take_back(const dscomm_device_take_back_t a)
{
    const uint32_t *words = words_of((char *)a.row, 0);
    size_t step = (size_t)gridDim.x * THREADS;
    float s = *(const float *)a.row;

    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < a.count;
         i += step) {
        float e = a.c[i] + (words[i / WARP] >> (i % WARP ^ 7) & 1 ? s : -s);

        a.c[i] = e - E::get(((const typename E::type *)a.x)[i]);
    }
}

#include "compression/cuda/launch.h"
