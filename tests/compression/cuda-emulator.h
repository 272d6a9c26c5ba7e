/* SPDX-License-Identifier: BSD-3-Clause */
/* Emulates the part of CUDA that the kernels of compression/cuda use, on the
 * host, in C++. Each thread of a block is a fiber, which runs until it reaches
 * a barrier or an operation of its whole warp. The program ends if lanes of a
 * warp are at different operations, if a barrier is not reached by all threads,
 * or at a misaligned vector access. Blocks run one after the other, so races
 * between them, and effects of memory order, are not detected. */
#ifndef TESTS_COMPRESSION_CUDA_EMULATOR_H
#define TESTS_COMPRESSION_CUDA_EMULATOR_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __grid_constant__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct emulated_index {
    unsigned x, y;
};

static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return uint2{x, y};
}

static emulated_index threadIdx, blockIdx, gridDim;
/* Order of the blocks (of all rows alternately), and of the threads within
 * them: 0 forward, 1 backward. */
static int emulator_order;

namespace emulator
{
enum { THREADS_MAX = 256, LANES = 32, STACK = 64 << 10 };
enum state_t { RUNS, MEETS, WAITS, ENDED };
enum kind_t { SHUFFLE, XOR, BALLOT };

struct fiber_t {
    ucontext_t context;
    state_t state;
    kind_t kind;
    int line; /* line of the source at which it waits */
    uint64_t value;
    unsigned argument;
};

static fiber_t fibers[THREADS_MAX];
static char stacks[THREADS_MAX][STACK] __attribute__((aligned(64)));
static ucontext_t scheduler;
static void (*body)(const void *);
static const void *arguments;

[[noreturn]] static inline void stop(const char *what, int line)
{
    printf("not ok - emulator: %s, line %d, block %u, thread %u\n", what, line,
           blockIdx.x, threadIdx.x);
    fflush(stdout);
    _Exit(2);
}

static inline void pause(state_t state, int line)
{
    fiber_t *self = &fibers[threadIdx.x];

    self->state = state;
    self->line = line;
    swapcontext(&self->context, &scheduler);
}

template <class T>
static inline T meet(kind_t kind, int line, unsigned mask, T value,
                     unsigned argument)
{
    fiber_t *self = &fibers[threadIdx.x];

    if (mask != 0xffffffffu)
        stop("a mask that is not full", line);
    self->kind = kind;
    self->value = 0;
    memcpy(&self->value, &value, sizeof value);
    self->argument = argument;
    pause(MEETS, line);
    memcpy(&value, &self->value, sizeof value);
    return value;
}

static inline void fiber_main(void)
{
    body(arguments);
    fibers[threadIdx.x].state = ENDED;
    swapcontext(&fibers[threadIdx.x].context, &scheduler);
}

static inline void begin(fiber_t *fiber, char *stack)
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = STACK;
    fiber->context.uc_link = &scheduler;
    makecontext(&fiber->context, fiber_main, 0);
    fiber->state = RUNS;
}

/* Carries out the operation of a warp, all lanes of which have reached it. */
static inline void resolve(fiber_t *warp)
{
    uint64_t values[LANES], ballot = 0;

    for (int i = 0; i < LANES; i++) {
        values[i] = warp[i].value;
        ballot |= (uint64_t)(warp[i].value != 0) << i;
    }
    for (int i = 0; i < LANES; i++) {
        unsigned from = warp[i].kind == XOR ? (unsigned)i ^ warp[i].argument
                                            : warp[i].argument;

        warp[i].value = warp[i].kind == BALLOT ? ballot : values[from % LANES];
        warp[i].state = RUNS;
    }
}

/* Returns 1 if the warp can go on. */
static inline int gather(fiber_t *warp)
{
    int meets = 0;

    for (int i = 0; i < LANES; i++)
        meets += warp[i].state == MEETS;
    if (!meets)
        return 0;
    for (int i = 0; i < LANES; i++)
        if (warp[i].state != MEETS || warp[i].kind != warp[0].kind ||
            warp[i].line != warp[0].line)
            stop("lanes meet at different places", warp[i].line);
    resolve(warp);
    return 1;
}

/* Returns 1 if the block can go on after a barrier, 0 if it has ended. */
static inline int release(unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        if (fibers[i].state != fibers[0].state ||
            (fibers[i].state == WAITS && fibers[i].line != fibers[0].line))
            stop("a barrier that not all threads reach", fibers[i].line);
    if (fibers[0].state == ENDED)
        return 0;
    for (unsigned i = 0; i < threads; i++)
        fibers[i].state = RUNS;
    return 1;
}

static inline void run_block(unsigned threads)
{
    int goes_on = 1;

    for (unsigned i = 0; i < threads; i++)
        begin(&fibers[i], stacks[i]);
    while (goes_on) {
        for (unsigned i = 0; i < threads; i++) {
            threadIdx.x = emulator_order ? threads - 1 - i : i;
            if (fibers[threadIdx.x].state == RUNS)
                swapcontext(&scheduler, &fibers[threadIdx.x].context);
        }
        goes_on = 0;
        for (unsigned i = 0; i < threads; i += LANES)
            goes_on |= gather(&fibers[i]);
        if (!goes_on)
            goes_on = release(threads);
    }
}

template <class F>
static inline void launch(unsigned blocks, unsigned rows, unsigned threads,
                          const F &kernel)
{
    body = [](const void *f) { (*(const F *)f)(); };
    arguments = &kernel;
    gridDim.x = blocks;
    gridDim.y = rows;
    for (unsigned i = 0; i < blocks * rows; i++) {
        unsigned block = emulator_order ? blocks * rows - 1 - i : i;

        blockIdx.x = block / rows;
        blockIdx.y = block % rows;
        run_block(threads);
    }
}

template <class T> static inline void check(const T *pointer, int line)
{
    if ((uintptr_t)pointer % alignof(T))
        stop("a vector access that is not aligned", line);
}

template <class T> static inline T read(const T *pointer, int line)
{
    check(pointer, line);
    return *pointer;
}

template <class T> static inline void write(T *pointer, T value, int line)
{
    check(pointer, line);
    *pointer = value;
}
} // namespace emulator

#define LAUNCH(kernel, blocks, rows, stream, ...)                              \
    emulator::launch(blocks, rows, THREADS, [&] { kernel(__VA_ARGS__); })
#define LAUNCHED() 0

#define __shfl_sync(mask, value, lane)                                         \
    emulator::meet(emulator::SHUFFLE, __LINE__, mask, value, lane)
#define __shfl_xor_sync(mask, value, lanes)                                    \
    emulator::meet(emulator::XOR, __LINE__, mask, value, lanes)
#define __ballot_sync(mask, bit)                                               \
    emulator::meet(emulator::BALLOT, __LINE__, mask, (unsigned)!!(bit), 0)
#define __syncthreads() emulator::pause(emulator::WAITS, __LINE__)
#define __threadfence()
#define __ldcs(pointer) emulator::read(pointer, __LINE__)
#define __ldcg(pointer) (*(pointer))
#define __stcs(pointer, value) emulator::write(pointer, value, __LINE__)

static inline unsigned atomicInc(unsigned *number, unsigned last)
{
    unsigned old = *number;

    *number = old >= last ? 0 : old + 1;
    return old;
}

static inline unsigned __brev(unsigned x)
{
    unsigned reversed = 0;

    for (int i = 0; i < 32; i++)
        reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}

/* Supports only selectors of the lower four bits. */
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    uint64_t both = (uint64_t)y << 32 | x;
    unsigned result = 0;

    for (int i = 0; i < 4; i++)
        result |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 0xff)
                  << 8 * i;
    return result;
}

#endif
