/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of kernels.cu: how its kernels are started. */
#ifndef COMPRESSION_CUDA_LAUNCH_H
#define COMPRESSION_CUDA_LAUNCH_H

/* The number of tiles if `some` elements of each row are processed. Rows have
 * chunk elements; count is the number of all elements. */
static size_t tiles_of(size_t some, size_t chunk, size_t count)
{
    size_t per_row = some / TILE + (some % TILE != 0);

    return chunk ? (count / chunk + (count % chunk != 0)) * per_row : 0;
}

/* The number of blocks for so many pieces of work, of which a block does
 * at_a_time at once. At least one, because a block writes the scale. */
static unsigned blocks_for(const dscomm_cuda_grid_t *grid, size_t pieces,
                           size_t at_a_time)
{
    size_t blocks = pieces / at_a_time + (pieces % at_a_time != 0);

    blocks = blocks ? blocks : 1;
    return blocks < grid->blocks ? (unsigned)blocks : grid->blocks;
}

#define PER_BLOCK (THREADS / WARP)
/* LAUNCH, with the kernel for the format's type. */
#define LAUNCH_FORMAT(format, kernel, blocks, jobs, stream, ...)               \
    do {                                                                       \
        if ((format) == DSCOMM_DEVICE_FLOAT16)                                 \
            LAUNCH(kernel<half_t>, blocks, jobs, stream, __VA_ARGS__);         \
        else if ((format) == DSCOMM_DEVICE_BFLOAT16)                           \
            LAUNCH(kernel<bfloat_t>, blocks, jobs, stream, __VA_ARGS__);       \
        else                                                                   \
            LAUNCH(kernel<float32_t>, blocks, jobs, stream, __VA_ARGS__);      \
    } while (0)

/* The number of tiles of a job, and its kind: a kernel runs jobs of one
 * kind. */
static size_t tiles_of(const dscomm_device_worker_t &a)
{
    return tiles_of(a.rows.chunk, a.rows.chunk, a.padded);
}

static size_t tiles_of(const dscomm_device_server_t &a)
{
    return tiles_of(a.count, a.count, a.count);
}

static size_t tiles_of(const dscomm_device_unpack_t &a)
{
    return tiles_of(a.to - a.from, a.rows.chunk, a.count);
}

template <class A> static size_t kind_of(const A &a)
{
    return (size_t)a.format;
}

static size_t kind_of(const dscomm_device_server_t &a)
{
    return a.rows.ranks;
}

static int start(const dscomm_cuda_grid_t *grid,
                 const jobs_t<dscomm_device_worker_t> &all, unsigned blocks,
                 unsigned jobs)
{
    LAUNCH_FORMAT(all.at[0].format, worker, blocks, jobs, grid->stream, *grid,
                  all);
    return LAUNCHED();
}

static int start(const dscomm_cuda_grid_t *grid,
                 const jobs_t<dscomm_device_server_t> &all, unsigned blocks,
                 unsigned jobs)
{
    size_t ranks = all.at[0].rows.ranks;

    if (ranks == 2)
        LAUNCH(server<2>, blocks, jobs, grid->stream, *grid, all);
    else if (ranks == 4)
        LAUNCH(server<4>, blocks, jobs, grid->stream, *grid, all);
    else if (ranks == 8)
        LAUNCH(server<8>, blocks, jobs, grid->stream, *grid, all);
    else
        LAUNCH(server<0>, blocks, jobs, grid->stream, *grid, all);
    return LAUNCHED();
}

static int start(const dscomm_cuda_grid_t *grid,
                 const jobs_t<dscomm_device_unpack_t> &all, unsigned blocks,
                 unsigned jobs)
{
    LAUNCH_FORMAT(all.at[0].format, unpack, blocks, jobs, grid->stream, all);
    return LAUNCHED();
}

/* Starts consecutive jobs of one kind together; they share the blocks. */
template <class A>
static int start_all(const dscomm_cuda_grid_t *grid, const A *args, size_t jobs)
{
    int code = 0;

    for (size_t at = 0, n; at < jobs && !code; at += n) {
        jobs_t<A> all;
        unsigned blocks = 1, most;

        for (n = 0; n < DSCOMM_DEVICE_TOGETHER && at + n < jobs &&
                    kind_of(args[at]) == kind_of(args[at + n]);
             n++) {
            all.at[n] = args[at + n];
            all.tiles[n] = tiles_of(args[at + n]);
        }
        most = grid->blocks / (unsigned)n;
        for (size_t i = 0; i < n; i++) {
            unsigned wanted = blocks_for(grid, all.tiles[i], PER_BLOCK);

            blocks = wanted > blocks ? wanted : blocks;
        }
        code = start(grid, all, blocks < most ? blocks : most, (unsigned)n);
    }
    return code;
}

#define KERNEL(name)                                                           \
    int dscomm_priv_cuda_##name(const dscomm_cuda_grid_t *grid,                \
                                const dscomm_device_##name##_t *args,          \
                                size_t jobs)                                   \
    {                                                                          \
        return start_all(grid, args, jobs);                                    \
    }

KERNEL(worker)
KERNEL(server)
KERNEL(unpack)

int dscomm_priv_cuda_materialise(const dscomm_cuda_grid_t *grid,
                                 const dscomm_device_materialise_t *args)
{
    unsigned blocks = blocks_for(grid, args->count, 4 * THREADS);

    LAUNCH(materialise, blocks, 1, grid->stream, *args);
    return LAUNCHED();
}

int dscomm_priv_cuda_take_back(const dscomm_cuda_grid_t *grid,
                               const dscomm_device_take_back_t *args)
{
    unsigned blocks = blocks_for(grid, args->count, 4 * THREADS);

    LAUNCH_FORMAT(args->format, take_back, blocks, 1, grid->stream, *args);
    return LAUNCHED();
}

#endif
