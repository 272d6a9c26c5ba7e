/* SPDX-License-Identifier: BSD-3-Clause */
/* Buckets: each time is within 1 % of its bucket's value, and larger times are
 * in later buckets. */
#include "config.h"

#include "profiler/histogram.h"
#include "tests/tap.h"

/* The error in parts of a thousand, rounded up. */
static int64_t error_of(int64_t ns)
{
    const int64_t value = histogram_value(histogram_bucket(ns));
    const int64_t error = value > ns ? value - ns : ns - value;

    return ns ? (error * 1000 + ns - 1) / ns : error;
}

int main(void)
{
    int64_t worst = 0;
    unsigned last = 0;
    int ordered = 1;

    for (int64_t ns = 0; ns < INT64_C(1) << 42; ns += 1 + ns / 1000) {
        const unsigned bucket = histogram_bucket(ns);
        const int64_t error = error_of(ns);

        ordered &= bucket >= last && bucket < HISTOGRAM_BUCKETS;
        last = bucket;
        worst = error > worst ? error : worst;
    }
    ok(worst <= 10, "no error above 1 %% (%lld in a thousand)",
       (long long)worst);
    ok(ordered, "larger times are in later buckets");
    for (int64_t ns = 0; ns < 128; ns++)
        ordered &= histogram_value(histogram_bucket(ns)) == ns;
    ok(ordered, "times below 128 ns are exact");
    is_int(histogram_bucket(-1), 0, "a negative time is 0");
    is_int(histogram_bucket(INT64_MAX), HISTOGRAM_BUCKETS - 1,
           "the last bucket has what is longer");
    is_int(last, HISTOGRAM_BUCKETS - 1, "and begins below 73 minutes");
    for (int bit = 7; bit < 42; bit++)
        ordered &= histogram_bucket((INT64_C(1) << bit) - 1) + 1 ==
                   histogram_bucket(INT64_C(1) << bit);
    ok(ordered, "no bucket is skipped at a power of two");
    return tap_done();
}
