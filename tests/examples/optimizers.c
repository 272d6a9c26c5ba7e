/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank that makes the steps in a file of optimizers.py. It writes its
 * weights after each step, and after the ranks have averaged them, and the
 * bytes that it has sent: optimizers IN OUT. */
#include "config.h"

#include "examples/optimizers/optimizers.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int64_t method, layers, steps;
    int64_t warmup, variance_doubling, local_doubling, local_max, per_layer;
} numbers_t;

typedef struct {
    float rate, beta1, beta2, epsilon;
    float coefficient_min, coefficient_max, coefficient_beta;
    float ratio_min, ratio_max, ratio_change;
} factors_t;

static void must(int fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "optimizers: %s: %s\n", what, dscomm_last_error());
    exit(1);
}

static void get(void *to, size_t size, size_t count, FILE *file)
{
    must(!count || fread(to, size, count, file) == count, "read");
}

static void put(const void *from, size_t size, size_t count, FILE *file)
{
    must(!count || fwrite(from, size, count, file) == count, "write");
}

static void *get_new(size_t size, size_t count, FILE *file)
{
    void *to = malloc(size * count + 1);

    must(to != NULL, "memory");
    get(to, size, count, file);
    return to;
}

static optimizer_t *create(dscomm_group_t *world, const numbers_t *n,
                           const factors_t *f, const size_t *sizes)
{
    static const optimizer_kind_t *const kinds[] = {&onebit_adam, &onebit_lamb,
                                                    &zero_one_adam};
    const optimizer_attr_t attr = {
        .rate = f->rate,
        .beta1 = f->beta1,
        .beta2 = f->beta2,
        .epsilon = f->epsilon,
        .warmup = (long)n->warmup,
        .coefficient_min = f->coefficient_min,
        .coefficient_max = f->coefficient_max,
        .coefficient_beta = f->coefficient_beta,
        .ratio_min = f->ratio_min,
        .ratio_max = f->ratio_max,
        .ratio_change = f->ratio_change,
        .variance_doubling = (long)n->variance_doubling,
        .local_doubling = (long)n->local_doubling,
        .local_max = (long)n->local_max,
        .per_layer = (int)n->per_layer,
    };
    optimizer_t *optimizer;

    must(n->method >= 0 && n->method < 3, "method");
    must(!optimizer_create(kinds[n->method], world, &attr, sizes,
                           (size_t)n->layers, &optimizer),
         "create");
    return optimizer;
}

static void put_traffic(const optimizer_t *optimizer, FILE *out)
{
    optimizer_traffic_t traffic = optimizer_traffic(optimizer);
    int64_t bytes[] = {(int64_t)traffic.sent, (int64_t)traffic.plain};

    put(bytes, sizeof(bytes[0]), 2, out);
}

/* The file has the gradients of all ranks for a step, one after the other. */
static void make_steps(optimizer_t *optimizer, const numbers_t *n, size_t count,
                       int rank, int ranks, FILE *in, FILE *out)
{
    float *weights = get_new(sizeof(float), count, in);

    for (int64_t s = 0; s < n->steps; s++) {
        float *gradients = get_new(sizeof(float), count * (size_t)ranks, in);
        must(!optimizer_step(optimizer, weights,
                             gradients + (size_t)rank * count),
             "step");
        put(weights, sizeof(float), count, out);
        free(gradients);
    }
    must(!optimizer_sync(optimizer, weights), "sync");
    put(weights, sizeof(float), count, out);
    free(weights);
}

static void run(dscomm_group_t *world, FILE *in, FILE *out)
{
    optimizer_t *optimizer;
    size_t *sizes, count = 0;
    numbers_t n;
    factors_t f;

    get(&n, sizeof(n), 1, in);
    get(&f, sizeof(f), 1, in);
    sizes = calloc((size_t)n.layers + 1, sizeof(*sizes));
    must(sizes != NULL, "memory");
    for (int64_t i = 0; i < n.layers; i++) {
        int64_t size;
        get(&size, sizeof(size), 1, in);
        count += sizes[i] = (size_t)size;
    }
    optimizer = create(world, &n, &f, sizes);
    make_steps(optimizer, &n, count, dscomm_group_rank(world),
               dscomm_group_size(world), in, out);
    put_traffic(optimizer, out);
    optimizer_free(optimizer);
    free(sizes);
}

int main(int argc, char **argv)
{
    dscomm_group_t *world;
    char name[4096];
    FILE *in, *out;

    must(argc == 3, "usage: optimizers IN OUT");
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    snprintf(name, sizeof(name), "%s.%d", argv[2], dscomm_group_rank(world));
    in = fopen(argv[1], "rb");
    must(in != NULL, argv[1]);
    out = fopen(name, "wb");
    must(out != NULL, name);
    run(world, in, out);
    fclose(in);
    must(!fclose(out), name);
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
