/* SPDX-License-Identifier: BSD-3-Clause */
/* A mesh of ranks: data parallel along one dimension, tensor parallel along the
 * other.
 *
 *     dscomm run -n 4 mesh [PARTS]
 *
 * Each replica of a layer y = W x has an x of its own. The rows of W are shared
 * by the PARTS ranks of a replica: each computes its part of y, and all_gather
 * gives all of y to all of them. The ranks that have the same rows average
 * their gradients of W by all_reduce. All numbers are whole, or halves, and
 * small: as floats they are exact, in whatever order they are added. */
#include <dscomm/dscomm.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPLICAS, PARTS, DIMENSIONS }; /* of the mesh */
enum { ROWS = 3, COLUMNS = 4 }; /* of W, on each rank */

/* Prints a result that is wrong, and returns whether it is. */
static int wrong(const char *what, int i, float got, int want, int divisor)
{
    if (got * (float)divisor == (float)want)
        return 0;
    fprintf(stderr, "mesh: %s %d is %g, not %g\n", what, i, got,
            (double)want / divisor);
    return 1;
}

/* W[i][j] is i + 1, and x[j] is replica + j: y[i] is i + 1 times their sum. */
static int forward(dscomm_group_t *parts, int replica)
{
    int first = dscomm_group_rank(parts) * ROWS, bad = 0;
    int rows = dscomm_group_size(parts) * ROWS;
    int sum = COLUMNS * replica + COLUMNS * (COLUMNS - 1) / 2;
    float own[ROWS] = {0}, *y = malloc(sizeof *y * (size_t)rows);

    if (!y) {
        fputs("mesh: there is not enough memory for y\n", stderr);
        exit(1);
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            own[i] += (float)((first + i + 1) * (replica + j));
    DSCOMM_CHECK(dscomm_all_gather(parts, own, y, ROWS, DSCOMM_FLOAT32, NULL));
    for (int i = 0; i < rows; i++)
        bad += wrong("y", i, y[i], (i + 1) * sum, 1);
    free(y);
    return bad;
}

/* With a gradient of i + 1 for y[i], that of W[i][j] is (i + 1) x[j]. The
 * average of replica, from 0 to count - 1, is (count - 1) / 2. */
static int backward(dscomm_group_t *replicas, int part)
{
    int replica = dscomm_group_rank(replicas), bad = 0;
    int count = dscomm_group_size(replicas);
    float gradient[ROWS][COLUMNS];

    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            gradient[i][j] = (float)((part * ROWS + i + 1) * (replica + j));
    DSCOMM_CHECK(dscomm_all_reduce(replicas, gradient, gradient, ROWS * COLUMNS,
                                   DSCOMM_FLOAT32, DSCOMM_AVG, NULL));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            bad += wrong("gradient in row", part * ROWS + i, gradient[i][j],
                         (part * ROWS + i + 1) * (count - 1 + 2 * j), 2);
    return bad;
}

int main(int argc, char **argv)
{
    dscomm_group_t *world, *mesh[DIMENSIONS];
    char none[] = "", *end = none;
    long parts = argc > 1 ? strtol(argv[1], &end, 10) : 1;

    if (argc > 2 || *end || parts < 1 || parts > 1024) {
        fputs("usage: mesh [PARTS]    a divisor of the number of ranks\n",
              stderr);
        return 2;
    }
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    if (argc == 1 && dscomm_group_size(world) % 2 == 0)
        parts = 2;
    /* -1: as many replicas as there are ranks for */
    const int dims[DIMENSIONS] = {[REPLICAS] = -1, [PARTS] = (int)parts};
    DSCOMM_CHECK(dscomm_group_mesh(world, dims, DIMENSIONS, mesh));
    int replica = dscomm_group_rank(mesh[REPLICAS]);
    int part = dscomm_group_rank(mesh[PARTS]);
    int bad = forward(mesh[PARTS], replica) + backward(mesh[REPLICAS], part);
    printf("rank %d is part %d of %d in replica %d of %d, and has %d wrong "
           "results\n",
           dscomm_group_rank(world), part, dscomm_group_size(mesh[PARTS]),
           replica, dscomm_group_size(mesh[REPLICAS]), bad);
    DSCOMM_CHECK(dscomm_group_free(mesh[PARTS]));
    DSCOMM_CHECK(dscomm_group_free(mesh[REPLICAS]));
    DSCOMM_CHECK(dscomm_finalize(world));
    return bad > 0;
}
