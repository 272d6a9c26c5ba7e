/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs of algorithms, see traffic.h. They are those that the heads of the
 * files in lib/schedule/algorithms give, summed over all ranks.
 *
 * What a message carries is read once by its sender and written once by its
 * receiver. To combine k inputs of b bytes reads k b and writes b. An algorithm
 * in rank order combines all p inputs of an element at once, others two at a
 * time, which reads and writes 3 b for each of p - 1 combinations. The cost of
 * a native algorithm is what the backend tells. If it does not, that is the
 * least for the operation, each input being read once and each result written
 * once.
 */
#include "config.h"

#include "tools/perf/model.h"
#include "tools/perf/operations.h"
#include "tools/perf/sequences.h"
#include "tools/perf/traffic.h"

#include <math.h>
#include <string.h>

/* The ranks of a call, and what depends on its bytes. */
typedef struct {
    double p;
    double rounds; /* ceil(log2 p) */
    double q,
        halvings; /* the largest power of two that is not more, its log2 */
    double odd; /* p - q: ranks that need a partner; 0 for a power of two */
    double fours; /* ceil(log4 p) */
    double children; /* of the root of a k-nomial tree of radix 4 */
    double hops; /* of the blocks of all ranks up a binomial tree */
    double parts, cuts; /* that halving_doubling makes of an all_reduce, log2 */
} shape_t;

/* Per byte of the row, except steps; summed over ranks, except busiest. */
typedef struct {
    double steps, sent, busiest;
    /* bytes read and written to combine inputs, and to copy in any case */
    double combined;
    double copied; /* bytes copied locally, if the call is out of place */
} factors_t;

static shape_t shape_new(int ranks, double bytes)
{
    shape_t s = {.p = ranks, .q = 1};
    const int parts = perf_halving_parts(ranks, bytes);

    for (int reach = 1; reach < ranks; reach *= 2)
        s.rounds++;
    for (; s.q * 2 <= ranks; s.q *= 2)
        s.halvings++;
    s.odd = ranks - s.q;
    for (int reach = 1; reach < ranks; reach *= 4) {
        s.fours++;
        for (int child = 1; child <= 3; child++)
            s.children += child * reach < ranks;
    }
    for (int rank = 1; rank < ranks; rank++)
        for (int rest = rank; rest; rest &= rest - 1)
            s.hops++;
    s.parts = parts;
    for (int reach = 1; reach < parts; reach *= 2)
        s.cuts++;
    return s;
}

/* One message of the whole buffer for each rank but the root, to or from it. */
static factors_t whole(const shape_t *s, double steps, double busiest,
                       double combined)
{
    return (factors_t){steps, s->p - 1, busiest, combined, 0};
}

/* All inputs of each element are combined at once. */
static double in_order(const shape_t *s)
{
    return s->p + 1;
}

static double by_twos(const shape_t *s)
{
    return 3 * (s->p - 1);
}

static factors_t broadcast_linear(const shape_t *s)
{
    return whole(s, s->p - 1, s->p - 1, 0);
}

static factors_t broadcast_binomial(const shape_t *s)
{
    return whole(s, s->rounds, s->rounds, 0);
}

static factors_t broadcast_knomial(const shape_t *s)
{
    return whole(s, MAX(s->fours, s->children), s->children, 0);
}

static factors_t broadcast_chain(const shape_t *s)
{
    return whole(s, s->p - 1, s->p > 1, 0);
}

static factors_t broadcast_parts(const shape_t *s)
{
    return whole(s, s->rounds + s->p - 1, 2 * (s->p - 1) / s->p, 0);
}

static factors_t reduce_linear(const shape_t *s)
{
    return whole(s, s->p - 1, s->p - 1, in_order(s));
}

static factors_t reduce_binomial(const shape_t *s)
{
    return whole(s, s->rounds, s->rounds, by_twos(s));
}

static factors_t reduce_knomial(const shape_t *s)
{
    return whole(s, MAX(s->fours, s->children), s->children, by_twos(s));
}

static factors_t reduce_chain(const shape_t *s)
{
    return whole(s, s->p - 1, s->p > 1, by_twos(s));
}

static factors_t reduce_pairwise(const shape_t *s)
{
    return (factors_t){2 * (s->p - 1), (s->p - 1) + (s->p - 1) / s->p,
                       2 * (s->p - 1) / s->p, in_order(s), 0};
}

/* The way down: each round halves what is exchanged. Ranks without a partner
 * hand over all they have. */
static factors_t halving(const shape_t *s)
{
    const bool odd = s->odd > 0;

    return (factors_t){s->halvings + odd, (s->q - 1) + s->odd,
                       (s->q - 1) / s->q + odd, 3 * (s->p - 1), 0};
}

static factors_t reduce_halving(const shape_t *s)
{
    factors_t f = halving(s);

    f.steps += s->halvings;
    f.sent += s->halvings / 2;
    f.busiest += (s->q - 1) / s->q;
    return f;
}

/* Halving ends when parts are short: they are exchanged whole in the rounds
 * that are left, and only the rounds before are reversed. */
static factors_t all_reduce_halving(const shape_t *s)
{
    const double halved = (s->parts - 1) / s->parts;
    const double whole = (s->halvings - s->cuts) / s->parts;
    const double extra = s->odd > 0 ? 2 : 0;

    return (factors_t){
        s->halvings + s->cuts + extra, s->q * (2 * halved + whole) + 2 * s->odd,
        2 * halved + whole + extra, 3 * (s->q * (halved + whole) + s->odd), 0};
}

static factors_t all_reduce_linear(const shape_t *s)
{
    return (factors_t){s->p - 1, s->p * (s->p - 1), s->p - 1,
                       s->p * in_order(s), 0};
}

/* Each rank copies its input to where the others' arrive. */
static factors_t all_reduce_bruck(const shape_t *s)
{
    factors_t f = all_reduce_linear(s);

    f.steps = s->rounds;
    f.combined += 2 * s->p;
    return f;
}

static factors_t all_reduce_pairwise(const shape_t *s)
{
    return (factors_t){2 * (s->p - 1), 2 * (s->p - 1), 2 * (s->p - 1) / s->p,
                       in_order(s), 0};
}

static factors_t all_reduce_ring(const shape_t *s)
{
    factors_t f = all_reduce_pairwise(s);

    f.combined = by_twos(s);
    return f;
}

static factors_t all_reduce_doubling(const shape_t *s)
{
    const double extra = s->odd > 0 ? 2 : 0;

    return (factors_t){s->halvings + extra, s->q * s->halvings + 2 * s->odd,
                       s->halvings + extra, 3 * (s->q * s->halvings + s->odd),
                       0};
}

static factors_t all_reduce_tree(const shape_t *s)
{
    return (factors_t){2 * MAX(s->fours, s->children), 2 * (s->p - 1),
                       2 * s->children, by_twos(s), 0};
}

static factors_t gathered(const shape_t *s, double steps)
{
    return (factors_t){steps, s->p - 1, (s->p - 1) / s->p, 0, 2};
}

static factors_t all_gather_direct(const shape_t *s)
{
    return gathered(s, s->p - 1);
}

static factors_t all_gather_doubling(const shape_t *s)
{
    return gathered(s, s->rounds);
}

/* Each rank copies its block to the others', and all of them to the result, in
 * place too. */
static factors_t all_gather_bruck(const shape_t *s)
{
    return (factors_t){s->rounds, s->p - 1, (s->p - 1) / s->p, 2 + 2 * s->p, 0};
}

static factors_t reduce_scatter_pairwise(const shape_t *s)
{
    return (factors_t){s->p - 1, s->p - 1, (s->p - 1) / s->p, in_order(s), 0};
}

static factors_t reduce_scatter_ring(const shape_t *s)
{
    factors_t f = reduce_scatter_pairwise(s);

    f.combined = by_twos(s);
    return f;
}

/* A rank without a partner gets its part at the end. */
static factors_t reduce_scatter_halving(const shape_t *s)
{
    factors_t f = halving(s);

    f.steps += s->odd > 0;
    f.sent += s->odd / s->p;
    f.busiest += s->odd > 0 ? 1 / s->p : 0;
    return f;
}

static factors_t root_linear(const shape_t *s)
{
    return (factors_t){s->p - 1, (s->p - 1) / s->p, (s->p - 1) / s->p, 0,
                       2 / s->p};
}

static factors_t root_binomial(const shape_t *s)
{
    factors_t f = root_linear(s);

    f.steps = s->rounds;
    f.sent = s->hops / s->p;
    return f;
}

static const struct {
    dscomm_coll_t coll;
    const char *name;
    factors_t (*factors)(const shape_t *shape);
} algorithms[] = {
    {DSCOMM_COLL_BROADCAST, "linear", broadcast_linear},
    {DSCOMM_COLL_BROADCAST, "binomial", broadcast_binomial},
    {DSCOMM_COLL_BROADCAST, "knomial", broadcast_knomial},
    {DSCOMM_COLL_BROADCAST, "chain", broadcast_chain},
    {DSCOMM_COLL_BROADCAST, "scatter_all_gather", broadcast_parts},
    {DSCOMM_COLL_REDUCE, "linear", reduce_linear},
    {DSCOMM_COLL_REDUCE, "binomial", reduce_binomial},
    {DSCOMM_COLL_REDUCE, "knomial", reduce_knomial},
    {DSCOMM_COLL_REDUCE, "chain", reduce_chain},
    {DSCOMM_COLL_REDUCE, "pairwise", reduce_pairwise},
    {DSCOMM_COLL_REDUCE, "halving_doubling", reduce_halving},
    {DSCOMM_COLL_ALL_REDUCE, "linear", all_reduce_linear},
    {DSCOMM_COLL_ALL_REDUCE, "bruck", all_reduce_bruck},
    {DSCOMM_COLL_ALL_REDUCE, "pairwise", all_reduce_pairwise},
    {DSCOMM_COLL_ALL_REDUCE, "ring", all_reduce_ring},
    {DSCOMM_COLL_ALL_REDUCE, "recursive_doubling", all_reduce_doubling},
    {DSCOMM_COLL_ALL_REDUCE, "halving_doubling", all_reduce_halving},
    {DSCOMM_COLL_ALL_REDUCE, "tree", all_reduce_tree},
    {DSCOMM_COLL_ALL_GATHER, "linear", all_gather_direct},
    {DSCOMM_COLL_ALL_GATHER, "ring", all_gather_direct},
    {DSCOMM_COLL_ALL_GATHER, "bruck", all_gather_bruck},
    {DSCOMM_COLL_ALL_GATHER, "recursive_doubling", all_gather_doubling},
    {DSCOMM_COLL_REDUCE_SCATTER, "pairwise", reduce_scatter_pairwise},
    {DSCOMM_COLL_REDUCE_SCATTER, "ring", reduce_scatter_ring},
    {DSCOMM_COLL_REDUCE_SCATTER, "halving_doubling", reduce_scatter_halving},
    {DSCOMM_COLL_GATHER, "linear", root_linear},
    {DSCOMM_COLL_GATHER, "binomial", root_binomial},
    {DSCOMM_COLL_SCATTER, "linear", root_linear},
    {DSCOMM_COLL_SCATTER, "binomial", root_binomial},
};

/* The least of a collective: the bytes that all ranks send, and those of the
 * busiest rank. */
static const struct {
    dscomm_coll_t coll;
    factors_t (*factors)(const shape_t *shape);
} least[] = {
    {DSCOMM_COLL_ALL_REDUCE, all_reduce_pairwise},
    {DSCOMM_COLL_REDUCE, reduce_chain},
    {DSCOMM_COLL_BROADCAST, broadcast_chain},
    {DSCOMM_COLL_REDUCE_SCATTER, reduce_scatter_pairwise},
    {DSCOMM_COLL_ALL_GATHER, all_gather_direct},
    {DSCOMM_COLL_GATHER, root_linear},
    {DSCOMM_COLL_SCATTER, root_linear},
};

/* Costs do not distinguish equal parts from others. */
static dscomm_coll_t plain(dscomm_coll_t coll)
{
    static const dscomm_coll_t forms[] = {
        DSCOMM_COLL_REDUCE_SCATTER, DSCOMM_COLL_ALL_GATHER, DSCOMM_COLL_SCATTER,
        DSCOMM_COLL_GATHER};

    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++)
        if (perf_coll_v(forms[i]) == coll)
            return forms[i];
    return coll;
}

static const perf_operation_t *operation_of(dscomm_coll_t coll)
{
    const perf_operation_t *operation;

    for (size_t i = 0; (operation = perf_operation(i)); i++)
        if (operation->coll == (int)coll)
            break;
    return operation;
}

static perf_traffic_t cost_least(dscomm_coll_t coll, const shape_t *s,
                                 double bytes, perf_place_t place)
{
    const perf_operation_t *operation = operation_of(coll);
    perf_traffic_t cost = {.steps = s->p > 1, .most = NAN, .bound = true};

    if (operation)
        cost.memory = 2 * bytes * perf_copied(operation, (int)s->p, place);
    for (size_t i = 0; i < G_N_ELEMENTS(least); i++) {
        if (least[i].coll != coll)
            continue;
        factors_t f = least[i].factors(s);
        cost.wire = f.sent / s->p * bytes;
        cost.busiest = f.busiest * bytes;
    }
    return cost;
}

/* Costs that a backend tells: bytes move through memory that ranks share, so no
 * rank has a link. */
static perf_traffic_t cost_native(const dscomm_native_info_t *native,
                                  const shape_t *s)
{
    return (perf_traffic_t){.steps = native->steps,
                            .wire = (double)native->moved / s->p,
                            .busiest = NAN,
                            .memory = (double)native->memory / s->p,
                            .most = (double)native->busiest};
}

/* native: NULL unless the backend describes the call */
static perf_traffic_t cost_of(dscomm_coll_t coll, const char *algorithm,
                              const shape_t *s, double bytes,
                              perf_place_t place,
                              const dscomm_native_info_t *native)
{
    if (native && native->algorithm)
        return cost_native(native, s);
    coll = plain(coll);
    for (size_t i = 0; i < G_N_ELEMENTS(algorithms); i++) {
        if (algorithms[i].coll != coll ||
            strcmp(algorithms[i].name, algorithm) != 0)
            continue;
        factors_t f = algorithms[i].factors(s);
        double copied = place == PERF_OUT_OF_PLACE ? f.copied : 0;
        return (perf_traffic_t){.steps = f.steps,
                                .wire = f.sent / s->p * bytes,
                                .busiest = f.busiest * bytes,
                                .memory = (2 * f.sent + f.combined + copied) /
                                          s->p * bytes,
                                .most = NAN};
    }
    return cost_least(coll, s, bytes, place);
}

static void cost_add(perf_traffic_t *sum, perf_traffic_t more)
{
    sum->steps += more.steps;
    sum->wire += more.wire;
    sum->busiest += more.busiest;
    sum->memory += more.memory;
    sum->most += more.most;
    sum->bound = sum->bound || more.bound;
}

perf_traffic_t perf_traffic(const perf_operation_t *operation,
                            const char *algorithm, int ranks, size_t bytes,
                            perf_place_t place,
                            const dscomm_native_info_t *natives)
{
    const dscomm_coll_t *parts = perf_parts(operation);
    const shape_t shape = shape_new(ranks, (double)bytes);
    char **names = g_strsplit(algorithm, "+", 2);
    perf_traffic_t cost;

    if (parts && names[0] && names[1]) {
        cost =
            cost_of(parts[0], names[0], &shape, (double)bytes, place, natives);
        cost_add(&cost, cost_of(parts[1], names[1], &shape, (double)bytes,
                                PERF_IN_PLACE, natives ? natives + 1 : NULL));
    } else if (operation->coll >= 0) {
        cost = cost_of((dscomm_coll_t)operation->coll, algorithm, &shape,
                       (double)bytes, place, natives);
    } else {
        cost = (perf_traffic_t){.steps = 1, .most = NAN, .bound = true};
        cost.memory = 2 * (double)bytes * perf_copied(operation, ranks, place);
    }
    g_strfreev(names);
    return cost;
}
