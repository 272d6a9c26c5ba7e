/* SPDX-License-Identifier: BSD-3-Clause */
/* The very kernels of the module, on the emulator, against the codec of hosts:
 * bits, scales, errors and results are equal to the last bit. The sums of
 * squares are made in another order, in float64; a scale could differ by that
 * in its last place, once in some 10^8, but for these inputs none does. NaN is
 * equal to NaN. A first argument "quick": stop at the first failure. */
#include "config.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <vector>

extern "C" {
#include "compression/codecs/codecs.h"
}
#include KERNELS
#include "tests/tap.h"

#define GUARD 64
#define POISON 0xa5
#define CALLS 3

static int quick, failed_at;

/* Memory with guards on both sides, off by some bytes from good alignment. */
class memory_t
{
    std::vector<unsigned char> all;
    size_t bytes, lead;

  public:
    memory_t(size_t size, size_t off = 0)
        : all(size + 2 * GUARD + 128, POISON), bytes(size)
    {
        size_t at = (uintptr_t)all.data() % 64;

        lead = GUARD + (at ? 64 - at : 0) + off;
    }
    template <class T> T *at()
    {
        return (T *)(all.data() + lead);
    }
    bool is_whole() const
    {
        for (size_t i = 0; i < all.size(); i++)
            if ((i < lead || i >= lead + bytes) && all[i] != POISON)
                return false;
        return true;
    }
};

struct case_t {
    size_t count, padded, chunk;
    int ranks, deepspeed;
    dscomm_device_format_t format;
    size_t off; /* of the buffer */
    unsigned blocks;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t part_of(const case_t &k, int rank)
{
    size_t before = (size_t)rank * k.chunk;

    return before >= k.padded ? 0 : least(k.chunk, k.padded - before);
}

static size_t row_of(const case_t &k)
{
    return (DSCOMM_DEVICE_HEADER + (k.chunk + 7) / 8 + 15) / 16 * 16;
}

static size_t size_of(const case_t &k)
{
    return k.format == DSCOMM_DEVICE_FLOAT32 ? 4 : 2;
}

/* Zeros of both signs, and now and then something large or small. */
static float number(uint64_t i, uint64_t salt)
{
    uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) +
                 salt * UINT64_C(0xd1342543de82ef95);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    if (z % 29 == 0)
        return z & 64 ? -0.0f : 0.0f;
    return (float)(int32_t)(z >> 32) / 0x80000000u * (z % 31 ? 1 : 30);
}

static bool is_same(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (minifloat_bits(a[i]) != minifloat_bits(b[i]) &&
            !(a[i] != a[i] && b[i] != b[i]))
            return false;
    return true;
}

static float scale_at(const char *row)
{
    float scale;

    memcpy(&scale, row, sizeof scale);
    return scale;
}

/* One rank, on both sides. */
struct rank_t {
    memory_t x, c0, c1, server, scales, rows, row;
    std::vector<float> values, worker_error, server_error, result;
    std::vector<char> codes; /* rows of the host */
    std::vector<char> code; /* its result row */
    int now;

    rank_t(const case_t &k, int rank)
        : x(k.count * size_of(k), k.off), c0(k.padded * 4), c1(k.padded * 4),
          server(part_of(k, rank) * 4), scales(12),
          rows(row_of(k) * (size_t)k.ranks), row(row_of(k)),
          values(k.padded + 1), worker_error(k.padded + 1),
          server_error(part_of(k, rank) + 1), result(k.count + 1),
          codes(row_of(k) * (size_t)k.ranks), code(row_of(k)), now(0)
    {
        memset(c0.at<char>(), 0, k.padded * 4);
        memset(server.at<char>(), 0, part_of(k, rank) * 4);
        memset(scales.at<char>(), 0, 12);
    }
    float *worker(int which)
    {
        return (which ? c1 : c0).at<float>();
    }
    bool is_whole() const
    {
        return x.is_whole() && c0.is_whole() && c1.is_whole() &&
               server.is_whole() && scales.is_whole() && rows.is_whole() &&
               row.is_whole();
    }
};

static const dscomm_codec_args_t args = {};
static const dscomm_codec_t *codec = &dscomm_priv_codec_onebit;

/* Elements as the host's kernels make them of float32. */
static void put(const case_t &k, const float *from, size_t count, void *to)
{
    std::vector<float> lost(count + 1);

    if (k.format == DSCOMM_DEVICE_FLOAT32)
        memcpy(to, from, count * sizeof *from);
    for (size_t i = 0; i < count && size_of(k) == 2; i++) {
        uint16_t word = k.format == DSCOMM_DEVICE_FLOAT16
                            ? half_of(from[i])
                            : bfloat16_round(from[i]);

        memcpy((char *)to + 2 * i, &word, 2);
    }
}

static float get(const case_t &k, const void *from, size_t i)
{
    uint16_t word;
    float value;

    if (k.format == DSCOMM_DEVICE_FLOAT32) {
        memcpy(&value, (const char *)from + 4 * i, 4);
        return value;
    }
    memcpy(&word, (const char *)from + 2 * i, 2);
    return k.format == DSCOMM_DEVICE_FLOAT16 ? value_of_half(word)
                                             : bfloat16_widen(word);
}

/* Block by block: measured, and then encoded. */
static float measure(const float *x, const float *e, size_t count)
{
    double sums[DSCOMM_CODEC_SUMS] = {0};

    for (size_t i = 0; i < count; i += DSCOMM_CODEC_BLOCK)
        codec->measure(&args, sums, x ? x + i : NULL, e + i,
                       least(DSCOMM_CODEC_BLOCK, count - i));
    return codec->settle(&args, sums, count);
}

static void encode(float scale, const float *x, float *e, size_t count,
                   char *row)
{
    memcpy(row, &scale, sizeof scale);
    for (size_t i = 0; i < count; i += DSCOMM_CODEC_BLOCK)
        codec->encode(&args, scale, x ? x + i : NULL, e + i,
                      least(DSCOMM_CODEC_BLOCK, count - i),
                      row + DSCOMM_DEVICE_HEADER + i / 8);
}

static std::vector<double> partials(64);
static unsigned arrived[DSCOMM_DEVICE_TOGETHER];

static dscomm_cuda_grid_t grid_of(const case_t &k)
{
    return dscomm_cuda_grid_t{NULL, k.blocks, partials.data(), arrived};
}

static dscomm_device_rows_t rows_of(const case_t &k, rank_t &rank)
{
    return dscomm_device_rows_t{rank.rows.at<char>(), row_of(k),
                                (size_t)k.ranks, k.chunk};
}

/* The worker errors go from array now to array next. */
static dscomm_device_worker_t worker_of(const case_t &k, rank_t &rank, int next)
{
    float *scales = rank.scales.at<float>();

    return dscomm_device_worker_t{
        k.format,          rank.x.at<void>(),     k.count,
        k.padded,          rank.worker(rank.now), scales + rank.now,
        rank.worker(next), scales + next,         rows_of(k, rank)};
}

/* The errors on the device, formed on the host. */
static std::vector<float> errors_of(const float *c, float s, size_t count)
{
    std::vector<float> e(count + 1);

    for (size_t i = 0; i < count; i++)
        e[i] = onebit_error(c[i], s);
    return e;
}

static bool is_row(const case_t &k, const char *row, const char *want,
                   size_t count)
{
    size_t bytes = (count + 7) / 8, words = (bytes + 3) / 4 * 4;

    for (size_t i = DSCOMM_DEVICE_HEADER + words; i < row_of(k); i++)
        if ((unsigned char)row[i] != POISON) /* not what is behind */
            return false;
    return minifloat_bits(scale_at(row)) == minifloat_bits(scale_at(want)) &&
           !memcmp(row + DSCOMM_DEVICE_HEADER, want + DSCOMM_DEVICE_HEADER,
                   bytes);
}

static bool work(const case_t &k, rank_t &rank)
{
    dscomm_cuda_grid_t grid = grid_of(k);
    int next = k.deepspeed ? rank.now : !rank.now;
    dscomm_device_worker_t a = worker_of(k, rank, next);
    float scale =
        measure(rank.values.data(), rank.worker_error.data(), k.padded);
    bool fine;

    memset(rank.rows.at<char>(), POISON, row_of(k) * (size_t)k.ranks);
    dscomm_priv_cuda_worker(&grid, &a, 1);
    fine = minifloat_bits(*a.ret_s) == minifloat_bits(scale);
    for (int r = 0; r < k.ranks; r++) {
        size_t base = least((size_t)r * k.chunk, k.padded);
        char *row = rank.codes.data() + (size_t)r * row_of(k);

        encode(scale, rank.values.data() + base,
               rank.worker_error.data() + base, part_of(k, r), row);
        fine &= is_row(k, rank.rows.at<char>() + (size_t)r * row_of(k), row,
                       part_of(k, r));
    }
    rank.now = next;
    return fine && is_same(errors_of(a.next, *a.ret_s, k.padded).data(),
                           rank.worker_error.data(), k.padded);
}

static bool serve(const case_t &k, std::vector<rank_t> &ranks, int self)
{
    dscomm_cuda_grid_t grid = grid_of(k);
    rank_t &rank = ranks[(size_t)self];
    size_t count = part_of(k, self), n = (size_t)k.ranks;
    float factor = self % 2 ? 1 : 1.0f / (float)k.ranks;
    float *scale = rank.scales.at<float>() + 2, want;
    dscomm_device_server_t a = {
        rows_of(k, rank),        factor, count,
        rank.server.at<float>(), scale,  rank.row.at<char>()};
    std::vector<float> sum(count + 1);

    if (!count)
        return true;
    for (size_t r = 0; r < n; r++) {
        char *row = ranks[r].codes.data() + (size_t)self * row_of(k);

        memcpy(a.rows.first + r * row_of(k), row, row_of(k));
        codec->accumulate(&args, scale_at(row), factor,
                          row + DSCOMM_DEVICE_HEADER, count, sum.data());
    }
    for (size_t i = 0; i < count; i++)
        rank.server_error[i] += sum[i];
    want = measure(NULL, rank.server_error.data(), count);
    encode(want, NULL, rank.server_error.data(), count, rank.code.data());
    memset(a.ret_row, POISON, row_of(k));
    if (self % 2) /* in the place of a row that is read */
        a.ret_row = a.rows.first + (size_t)self * row_of(k);
    dscomm_priv_cuda_server(&grid, &a, 1);
    if (self % 2)
        a.ret_row =
            (char *)memcpy(rank.row.at<char>(), a.ret_row,
                           DSCOMM_DEVICE_HEADER + (count + 31) / 32 * 4);
    return minifloat_bits(*a.s) == minifloat_bits(want) &&
           is_row(k, a.ret_row, rank.code.data(), count) &&
           is_same(errors_of(a.c, *a.s, count).data(), rank.server_error.data(),
                   count);
}

static bool unpack_all(const case_t &k, std::vector<rank_t> &ranks, int self)
{
    dscomm_cuda_grid_t grid = grid_of(k);
    rank_t &rank = ranks[(size_t)self];
    dscomm_device_unpack_t a = {k.format, rows_of(k, rank), k.count,
                                0,        k.chunk,          rank.x.at<void>()};
    std::vector<char> want(k.count * size_of(k) + 1);

    for (int r = 0; r < k.ranks; r++) {
        const char *row = ranks[(size_t)r].code.data();
        size_t base = least((size_t)r * k.chunk, k.count);
        size_t count = least(part_of(k, r), k.count - base);
        std::vector<float> values(count + 1);

        memcpy(a.rows.first + (size_t)r * row_of(k), row, row_of(k));
        codec->decode(&args, scale_at(row), row + DSCOMM_DEVICE_HEADER, count,
                      values.data());
        put(k, values.data(), count, want.data() + base * size_of(k));
    }
    /* As a whole, or in pieces, the last one first. */
    if (self % 2)
        a.from = (k.chunk - 1) / 1024 * 1024;
    memset(a.ret_x, POISON, k.count * size_of(k));
    dscomm_priv_cuda_unpack(&grid, &a, 1);
    while (a.from) {
        a.to = a.from;
        a.from = a.to > 2048 ? 1024 : 0;
        dscomm_priv_cuda_unpack(&grid, &a, 1);
    }
    return !memcmp(a.ret_x, want.data(), k.count * size_of(k));
}

static bool materialise_all(const case_t &k, rank_t &rank)
{
    dscomm_cuda_grid_t grid = grid_of(k);
    float *scale = rank.scales.at<float>() + rank.now;
    dscomm_device_materialise_t a = {rank.worker(rank.now), scale, k.padded};

    dscomm_priv_cuda_materialise(&grid, &a);
    *scale = 0;
    return is_same(a.c, rank.worker_error.data(), k.padded);
}

/* What was sent to rank r, as if its result had been NaN. */
static bool take_back_one(const case_t &k, rank_t &rank, int r)
{
    dscomm_cuda_grid_t grid = grid_of(k);
    size_t base = (size_t)r * k.chunk, count = part_of(k, r);
    const char *row = rank.codes.data() + (size_t)r * row_of(k);
    std::vector<uint32_t> copy(row_of(k) / 4);
    dscomm_device_take_back_t a = {
        k.format, rank.x.at<char>() + base * size_of(k), count,
        (const char *)copy.data(), rank.worker(rank.now) + base};
    float *want = rank.worker_error.data() + base;

    if (!count)
        return true;
    memcpy(copy.data(), row, row_of(k));
    codec->accumulate(&args, scale_at(row), 1, row + DSCOMM_DEVICE_HEADER,
                      count, want);
    for (size_t i = 0; i < count; i++)
        want[i] -= get(k, rank.x.at<char>(), base + i);
    dscomm_priv_cuda_take_back(&grid, &a);
    return is_same(a.c, want, count);
}

static void fill(const case_t &k, rank_t &rank, int self, int call)
{
    for (size_t i = 0; i < k.padded; i++)
        rank.values[i] =
            i < k.count ? number(i, (uint64_t)(self * 100 + call)) : 0;
    put(k, rank.values.data(), k.count, rank.x.at<void>());
    for (size_t i = 0; i < k.count; i++)
        rank.values[i] = get(k, rank.x.at<void>(), i);
}

static void check(bool cond, const case_t &k, const char *what, int call,
                  bool *passed)
{
    if (cond)
        return;
    *passed = false;
    printf("# %s differs in call %d: count %zu, %d ranks, format %d, off %zu, "
           "%u blocks, geometry %d, order %d\n",
           what, call, k.count, k.ranks, (int)k.format, k.off, k.blocks,
           k.deepspeed, emulator_order);
    fflush(stdout);
    if (quick)
        _Exit(1);
}

static void run(const case_t &k)
{
    std::vector<rank_t> ranks;
    bool fine = true;

    for (int r = 0; r < k.ranks; r++)
        ranks.emplace_back(k, r);
    for (int call = 0; call < CALLS; call++) {
        for (int r = 0; r < k.ranks; r++) {
            fill(k, ranks[(size_t)r], r, call);
            check(work(k, ranks[(size_t)r]), k, "worker", call, &fine);
        }
        for (int r = 0; r < k.ranks; r++)
            check(serve(k, ranks, r), k, "server", call, &fine);
        for (int r = 0; r < k.ranks && call == 1; r++) {
            rank_t &rank = ranks[(size_t)r];

            check(materialise_all(k, rank), k, "materialise", call, &fine);
            if (!k.deepspeed)
                check(take_back_one(k, rank, k.ranks - 1 - r), k, "take back",
                      call, &fine);
        }
        for (int r = 0; r < k.ranks; r++)
            check(unpack_all(k, ranks, r), k, "unpack", call, &fine);
    }
    for (int r = 0; r < k.ranks; r++)
        check(ranks[(size_t)r].is_whole(), k, "memory around", CALLS, &fine);
    ok(fine,
       "%zu elements on %d ranks, geometry %s, format %d, %zu bytes off, "
       "%u blocks",
       k.count, k.ranks, k.deepspeed ? "deepspeed" : "native", (int)k.format,
       k.off, k.blocks);
}

static case_t native(size_t count, int ranks, int format, size_t off,
                     unsigned blocks)
{
    size_t n = (size_t)ranks;

    return case_t{count, count, ((count + n - 1) / n + 1023) / 1024 * 1024,
                  ranks, 0,     (dscomm_device_format_t)format,
                  off,   blocks};
}

static case_t deepspeed(size_t count, size_t padded, int ranks, int format,
                        size_t off, unsigned blocks)
{
    return case_t{count, padded, padded / (size_t)ranks,
                  ranks, 1,      (dscomm_device_format_t)format,
                  off,   blocks};
}

/* What is not finite makes a scale that is not; the errors before are kept. */
static void not_finite(float what)
{
    case_t k = native(3000, 2, 0, 0, 2);
    rank_t rank(k, 0);
    dscomm_cuda_grid_t grid = grid_of(k);
    std::vector<float> before(k.padded);
    bool fine;

    fill(k, rank, 0, 0);
    work(k, rank);
    memcpy(before.data(), rank.worker(rank.now), k.padded * 4);
    fill(k, rank, 0, 1);
    rank.x.at<float>()[2500] = what;
    dscomm_device_worker_t a = worker_of(k, rank, !rank.now);
    dscomm_priv_cuda_worker(&grid, &a, 1);
    fine = !isfinite(*a.ret_s) && !isfinite(scale_at(rank.rows.at<char>()));
    ok(fine && !memcmp(before.data(), a.c, k.padded * 4) && isfinite(*a.s),
       "an element that is %f", (double)what);
}

/* More jobs than go together, of different formats: what each gives alone. */
static void run_together()
{
    enum { JOBS = 2 * DSCOMM_DEVICE_TOGETHER + 3 };
    std::vector<rank_t> ranks, twins;
    std::vector<case_t> cases;
    std::vector<dscomm_device_worker_t> workers;
    std::vector<dscomm_device_server_t> servers;
    std::vector<dscomm_device_unpack_t> unpacks;
    dscomm_cuda_grid_t grid = {NULL, 40, partials.data(), arrived};
    bool fine = true;

    for (size_t i = 0; i < JOBS; i++)
        cases.push_back(
            native(1 + i * 4111 % 20000, 1, i / 7 % 3, i % 2 ? 4 : 0, 3));
    for (size_t i = 0; i < JOBS; i++) {
        ranks.emplace_back(cases[i], 0);
        twins.emplace_back(cases[i], 0);
        fill(cases[i], ranks[i], 0, (int)i);
        fill(cases[i], twins[i], 0, (int)i);
    }
    for (size_t i = 0; i < JOBS; i++) {
        const case_t &k = cases[i];
        rank_t &rank = ranks[i];

        memset(rank.rows.at<char>(), POISON, row_of(k));
        memset(rank.row.at<char>(), POISON, row_of(k));
        workers.push_back(worker_of(k, rank, 1));
        servers.push_back({rows_of(k, rank), 1, k.count,
                           rank.server.at<float>(), rank.scales.at<float>() + 2,
                           rank.row.at<char>()});
        unpacks.push_back({k.format,
                           {rank.row.at<char>(), row_of(k), 1, k.chunk},
                           k.count,
                           0,
                           k.chunk,
                           rank.x.at<void>()});
    }
    dscomm_priv_cuda_worker(&grid, workers.data(), JOBS);
    dscomm_priv_cuda_server(&grid, servers.data(), JOBS);
    dscomm_priv_cuda_unpack(&grid, unpacks.data(), JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        std::vector<rank_t> alone;
        bool same;

        alone.push_back(std::move(twins[i]));
        same = work(cases[i], alone[0]) && serve(cases[i], alone, 0);
        /* A sum with factor 1, as above: there is one rank. */
        unpack_all(cases[i], alone, 0);
        same &= !memcmp(ranks[i].x.at<void>(), alone[0].x.at<void>(),
                        cases[i].count * size_of(cases[i]));
        same &= minifloat_bits(ranks[i].scales.at<float>()[1]) ==
                minifloat_bits(alone[0].scales.at<float>()[1]);
        same &= ranks[i].is_whole();
        check(same, cases[i], "one of many", (int)i, &fine);
    }
    ok(fine, "%d jobs together", JOBS);
}

int main(int argc, char **argv)
{
    static const size_t offs[] = {0, 4, 2, 8};
    bool fine = true;

    quick = argc > 1 && !strcmp(argv[1], "quick");
    (void)argv;
    for (int format = 0; format < 3; format++) {
        size_t off = format ? 2 : 4;

        emulator_order = format % 2;
        run(native(4096, 2, format, 0, 3));
        run(native(5000, 4, format, 0, 2));
        run(native(9001, 8, format, off, 5));
        run(native(1, 3, format, 0, 1));
        run(native(2100, 1, format, 0, 7));
        run(deepspeed(2000, 2000, 5, format, 0, 2));
        run(deepspeed(5003, 5120, 2, format, 0, 3));
        run(deepspeed(6007, 6048, 3, format, off, 2));
    }
    emulator_order = 1;
    for (size_t i = 0; i < 4; i++)
        run(native(3071 + i, 2, i == 2, offs[i], 2));
    run(native(70000, 3, 0, 0, 4));
    run(deepspeed(8 * 9 * 130 - 5, 8 * 9 * 130, 9, 0, 0, 3));
    not_finite(INFINITY);
    not_finite(NAN);
    run_together();
    for (size_t i = 0; i < DSCOMM_DEVICE_TOGETHER; i++)
        fine &= arrived[i] == 0;
    ok(fine, "the counters of blocks are as they were");
    return tap_done();
}
