/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a job that runs the cases in a file of model.py, and writes the
 * results: cases IN OUT. */
#include "config.h"

#include <dscomm/compression.h>
#include <dscomm/dscomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t geometry, op, count, padded, calls;
} case_t;

static void must(int fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "cases: %s: %s\n", what, dscomm_last_error());
    exit(1);
}

static void get(void *to, size_t size, size_t count, FILE *file)
{
    must(!count || fread(to, size, count, file) == count, "read");
}

static void put(const float *from, size_t count, FILE *file)
{
    must(!count || fwrite(from, sizeof *from, count, file) == count, "write");
}

static void put_errors(dscomm_compressor_t *onebit, FILE *out)
{
    dscomm_compressor_info_t info = {.size = sizeof info};
    float *worker, *server;

    must(!dscomm_compressor_info(onebit, &info), "info");
    must(!dscomm_compressor_errors(onebit, &worker, &server), "errors");
    put(worker, info.padded, out);
    put(server, info.server, out);
}

/* The file has the buffers of all ranks. */
static void run(dscomm_group_t *world, FILE *in, FILE *out)
{
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    size_t ranks = (size_t)dscomm_group_size(world), count;
    dscomm_compressor_t *onebit;
    float *buffers;
    case_t c;

    get(&c, sizeof c, 1, in);
    attr.geometry = (dscomm_geometry_t)c.geometry;
    attr.sum = c.op == DSCOMM_SUM;
    attr.padded = (size_t)c.padded;
    count = (size_t)c.count;
    buffers = malloc(ranks * count * sizeof *buffers + 1);
    must(!dscomm_onebit_create(world, count, &attr, &onebit), "create");
    for (int64_t call = 0; call < c.calls; call++) {
        float *mine = buffers + (size_t)dscomm_group_rank(world) * count;

        get(buffers, sizeof *buffers, ranks * count, in);
        must(!dscomm_compressor_all_reduce(onebit, mine, DSCOMM_FLOAT32, NULL),
             "all_reduce");
        put(mine, count, out);
    }
    put_errors(onebit, out);
    must(!dscomm_compressor_free(onebit), "free");
    free(buffers);
}

int main(int argc, char **argv)
{
    dscomm_group_t *world;
    FILE *in, *out;
    char name[4096];
    int64_t cases;

    must(argc == 3, "usage: cases IN OUT");
    must(!dscomm_init(NULL, &world), "init");
    snprintf(name, sizeof name, "%s.%d", argv[2], dscomm_group_rank(world));
    in = fopen(argv[1], "rb");
    out = fopen(name, "wb");
    must(in && out, "open");
    get(&cases, sizeof cases, 1, in);
    while (cases--)
        run(world, in, out);
    must(!fclose(out) && !fclose(in), "close");
    return dscomm_finalize(world) < 0;
}
