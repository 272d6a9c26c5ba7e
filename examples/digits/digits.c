/* SPDX-License-Identifier: BSD-3-Clause */
/* Data-parallel training: a small network learns to read handwritten digits.
 *
 *     dscomm run -n 4 digits digits.csv.gz
 *
 * Every rank holds the whole network and takes its share of every batch. The
 * ranks add up their gradients with one all_reduce a batch, and then take the
 * same step. The batch has the same images however many ranks share it, so one
 * rank or four learn the same, up to rounding.
 *
 * With --survive the others go on if ranks die: they share the batches anew,
 * and learn the same.
 *
 * With --compress an optimizer of ../optimizers does the step and its
 * communication, and tells how much of that it has saved. If ranks die, what
 * they had not sent yet is lost, so that the others learn nearly the same. */
#include "../optimizers/optimizers.h"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

enum {
    PIXELS = 64,
    HIDDEN = 48,
    DIGITS = 10,
    ROW = PIXELS + 1, /* the pixels, 0 to 16, and the digit */
    IMAGES = 1797,
    TRAIN = 1437, /* the other 360 are the test */
    BATCH = 32,
    LINE = 1024
};

static const float learning_rate = 0.1f, momentum = 0.9f;

/* The weights, and their gradient: one flat buffer, one all_reduce. */
typedef struct {
    float hidden[HIDDEN][PIXELS], hidden_bias[HIDDEN];
    float out[DIGITS][HIDDEN], out_bias[DIGITS];
    float loss; /* of the gradient: it is summed along with the rest */
} network_t;
enum { FLOATS = sizeof(network_t) / sizeof(float) };

typedef struct {
    float hidden[HIDDEN], chance[DIGITS];
} activation_t;

/* An optimizer, and what suits this network */
typedef struct {
    const char *name;
    const optimizer_kind_t *kind;
    float rate, beta2, epsilon;
    long warmup;
} method_t;

static const method_t methods[] = {
    {"onebit", &onebit_adam, 0.02f, 0.99f, 1e-2f, 180},
    {"onebit-lamb", &onebit_lamb, 0.003f, 0.99f, 1e-2f, 180},
    {"zero-one", &zero_one_adam, 0.02f, 0.99f, 1e-6f, 180},
};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

typedef struct {
    const char *file;
    int epochs;
    unsigned long long seed;
    const method_t *method; /* NULL: none of them */
    long warmup; /* 0: the method's */
    int survive;
    int kill_rank; /* dies before step kill_step, from 0; -1: none */
    long kill_step;
} options_t;

/* The ranks, and the digits that each learns from */
typedef struct {
    const options_t *options;
    dscomm_group_t *world, *group; /* group: the ranks that are left */
    const unsigned char *rows;
    network_t net, velocity, *grad;
    int64_t steps; /* made so far */
    float loss; /* of the last one */
    optimizer_t *optimizer; /* NULL: net_step() */
} learner_t;

/* The state that a rank which missed a step gets from another one */
typedef struct {
    network_t net, velocity;
    float loss;
} state_t;

/* splitmix64: the same numbers on every machine. */
static unsigned long long next_random(unsigned long long *state)
{
    unsigned long long z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void shuffle(int *order, int count, unsigned long long *state)
{
    for (int i = count - 1; i > 0; i--) {
        int j = (int)(next_random(state) % (unsigned)(i + 1));
        int swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

/* Uniform in +-sqrt(6 / inputs), which suits ReLU. */
static void fill_random(float *weights, int count, int inputs,
                        unsigned long long *state)
{
    float range = sqrtf(6.0f / (float)inputs);

    for (int i = 0; i < count; i++)
        weights[i] =
            range * ((float)(next_random(state) >> 40) / 8388608.0f - 1.0f);
}

/* One line, "0,5,13,...,DIGIT", to ROW bytes; 0, or -1 if it is not that. */
static int parse_row(const char *line, unsigned char *row)
{
    for (int i = 0; i < ROW; i++) {
        char *end;
        long value = strtol(line, &end, 10);
        long max = i < PIXELS ? 16 : 9;
        int is_last = i == ROW - 1;

        if (end == line || value < 0 || value > max)
            return -1;
        if (is_last ? *end != '\n' && *end != '\r' && *end != '\0'
                    : *end != ',')
            return -1;
        row[i] = (unsigned char)value;
        line = end + 1;
    }
    return 0;
}

/* All images, to rows; 0, or -1 with a text in error. */
static int read_rows(gzFile file, unsigned char *rows, char *error, size_t size)
{
    char line[LINE];
    int count = 0, bad = 0, code;

    while (!bad && gzgets(file, line, sizeof(line))) {
        bad = count == IMAGES || parse_row(line, rows + count * ROW) < 0;
        count += !bad;
    }
    const char *reason = gzerror(file, &code);
    if (code != Z_OK && code != Z_STREAM_END)
        snprintf(error, size, "after %d images: %s", count, reason);
    else if (bad)
        snprintf(error, size, "line %d is no image of %d pixels", count + 1,
                 PIXELS);
    else if (count < IMAGES)
        snprintf(error, size, "%d images instead of %d", count, IMAGES);
    else
        return 0;
    return -1;
}

/* blob = 'D' and the images, or 'E' and the reason why there are none. */
static size_t digits_load(const char *name, char *blob, size_t size)
{
    gzFile file = gzopen(name, "rb");
    char error[256];
    int failed = 1;

    snprintf(error, sizeof(error), "cannot open it: %s", strerror(errno));
    if (file) {
        failed =
            read_rows(file, (unsigned char *)blob + 1, error, sizeof(error));
        gzclose(file);
    }
    blob[0] = failed ? 'E' : 'D';
    if (!failed)
        return 1 + IMAGES * ROW;
    return 1 + (size_t)snprintf(blob + 1, size - 1, "%.3000s: %s", name, error);
}

/* Rank 0 reads the file, all get the images, or all leave. To be freed with
 * dscomm_blob_free(). */
static unsigned char *share_images(dscomm_group_t *world, const char *name)
{
    static char blob[1 + IMAGES * ROW];
    void *shared;
    size_t size = 0;

    if (dscomm_group_rank(world) == 0)
        size = digits_load(name, blob, sizeof(blob));
    DSCOMM_CHECK(dscomm_broadcast_blob(world, blob, size, 0, &shared, &size));
    if (*(char *)shared == 'D')
        return shared;
    fprintf(stderr, "digits: rank %d: %.*s\n", dscomm_group_rank(world),
            (int)size - 1, (char *)shared + 1);
    dscomm_blob_free(shared);
    dscomm_finalize(world);
    exit(1);
}

static void forward(const network_t *net, const unsigned char *row,
                    activation_t *ret)
{
    float sum = 0, top = -INFINITY;

    for (int h = 0; h < HIDDEN; h++) {
        float x = net->hidden_bias[h];
        for (int p = 0; p < PIXELS; p++)
            x += net->hidden[h][p] * (float)row[p] / 16.0f;
        ret->hidden[h] = x > 0 ? x : 0;
    }
    for (int d = 0; d < DIGITS; d++) {
        float x = net->out_bias[d];
        for (int h = 0; h < HIDDEN; h++)
            x += net->out[d][h] * ret->hidden[h];
        ret->chance[d] = x;
        top = x > top ? x : top;
    }
    for (int d = 0; d < DIGITS; d++)
        sum += ret->chance[d] = expf(ret->chance[d] - top);
    for (int d = 0; d < DIGITS; d++)
        ret->chance[d] /= sum;
}

/* Adds one image's gradient and loss. */
static void backward(const network_t *net, const unsigned char *row,
                     const activation_t *act, network_t *grad)
{
    float back[HIDDEN] = {0};

    grad->loss -= logf(act->chance[row[PIXELS]] + 1e-30f);
    for (int d = 0; d < DIGITS; d++) {
        float delta = act->chance[d] - (d == row[PIXELS] ? 1.0f : 0.0f);
        grad->out_bias[d] += delta;
        for (int h = 0; h < HIDDEN; h++) {
            grad->out[d][h] += delta * act->hidden[h];
            back[h] += delta * net->out[d][h];
        }
    }
    for (int h = 0; h < HIDDEN; h++) {
        if (act->hidden[h] <= 0)
            continue;
        grad->hidden_bias[h] += back[h];
        for (int p = 0; p < PIXELS; p++)
            grad->hidden[h][p] += back[h] * (float)row[p] / 16.0f;
    }
}

static void net_step(float *net, float *velocity, const float *grad, int batch)
{
    for (int i = 0; i < FLOATS - 1; i++) { /* all but the loss */
        velocity[i] = momentum * velocity[i] - learning_rate * grad[i] / batch;
        net[i] += velocity[i];
    }
}

/* The first of count things that rank of ranks takes: even shares. */
static int even_share(int count, int rank, int ranks)
{
    return (int)((long)count * rank / ranks);
}

/* Adds the gradient of this rank's share of a batch. */
static void add_share(learner_t *l, const int *order, int batch)
{
    int rank = dscomm_group_rank(l->group), ranks = dscomm_group_size(l->group);
    int end = even_share(batch, rank + 1, ranks);

    memset(l->grad, 0, sizeof(*l->grad));
    for (int i = even_share(batch, rank, ranks); i < end; i++) {
        const unsigned char *row = l->rows + order[i] * ROW;
        activation_t act;
        forward(&l->net, row, &act);
        backward(&l->net, row, &act, l->grad);
    }
}

/* Gives all ranks of the group the weights of one that has made most steps.
 * Some may have missed the last one, for which *ret_made is 1 then. */
static dscomm_status_t catch_up(learner_t *l, int *ret_made)
{
    static state_t state;
    int64_t most;
    int root;
    dscomm_status_t status;

    if (l->optimizer) {
        status =
            optimizer_rebind(l->optimizer, l->group, (float *)&l->net, &most);
        if (status < 0)
            return status;
        *ret_made = l->steps < most;
        l->steps = most;
        return DSCOMM_OK;
    }
    status = dscomm_all_reduce(l->group, &l->steps, &most, 1, DSCOMM_INT64,
                               DSCOMM_MAX, NULL);
    if (status < 0)
        return status;
    root = l->steps == most ? dscomm_group_rank(l->group) : INT32_MAX;
    status = dscomm_all_reduce(l->group, &root, &root, 1, DSCOMM_INT32,
                               DSCOMM_MIN, NULL);
    if (status < 0)
        return status;
    state = (state_t){l->net, l->velocity, l->loss};
    status = dscomm_broadcast(l->group, &state, sizeof(state) / sizeof(float),
                              DSCOMM_FLOAT32, root, NULL);
    if (status < 0)
        return status;
    *ret_made = l->steps < most;
    l->net = state.net;
    l->velocity = state.velocity;
    l->loss = state.loss;
    l->steps = most;
    return DSCOMM_OK;
}

/* Goes on with the ranks that are left. Returns 1 if this rank has got the step
 * that it was about to make. */
static int go_on(learner_t *l)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;
    dscomm_group_t *smaller;
    dscomm_status_t status;
    int made = 0;

    do {
        DSCOMM_CHECK(dscomm_group_shrink(l->group, NULL, &smaller));
        /* An optimizer's call fails before the group does. */
        DSCOMM_CHECK(dscomm_group_failure(l->group, &failure));
        if (l->group != l->world)
            DSCOMM_CHECK(dscomm_group_free(l->group));
        l->group = smaller;
        if (dscomm_group_rank(smaller) == 0)
            printf("rank %d has failed; %d of %d ranks go on\n", failure.rank,
                   dscomm_group_size(smaller), dscomm_group_size(l->world));
        status = catch_up(l, &made);
        if (dscomm_group_status(smaller) == DSCOMM_OK)
            DSCOMM_CHECK(status);
    } while (status < 0);
    return made;
}

/* Makes a step with the sum of the ranks' gradients. */
static dscomm_status_t step_sum(learner_t *l, int batch)
{
    dscomm_status_t status = dscomm_all_reduce(
        l->group, l->grad, l->grad, FLOATS, DSCOMM_FLOAT32, DSCOMM_SUM, NULL);

    if (status < 0)
        return status;
    net_step((float *)&l->net, (float *)&l->velocity, (float *)l->grad, batch);
    l->loss = l->grad->loss;
    return DSCOMM_OK;
}

/* Makes a step of the optimizer, whose gradient of the batch is the mean of the
 * ranks'. The loss comes before it: a rank that misses the step has that. */
static dscomm_status_t step_optimizer(learner_t *l, int batch)
{
    float *grad = (float *)l->grad;
    float factor = (float)dscomm_group_size(l->group) / (float)batch;
    dscomm_status_t status = DSCOMM_OK;

    l->loss = l->grad->loss;
    if (l->options->survive)
        status = dscomm_all_reduce(l->group, &l->grad->loss, &l->loss, 1,
                                   DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
    if (status < 0)
        return status;
    for (int i = 0; i < FLOATS - 1; i++)
        grad[i] *= factor;
    return optimizer_step(l->optimizer, (float *)&l->net, grad);
}

/* The rank that --kill names must exist. */
static void check_kill(const options_t *options, const dscomm_group_t *world)
{
    if (options->kill_rank < dscomm_group_size(world))
        return;
    fprintf(stderr, "digits: --kill names rank %d, but there are %d ranks\n",
            options->kill_rank, dscomm_group_size(world));
    exit(2);
}

/* Makes a step. Returns 0 if it must be made again, with other shares. */
static int step(learner_t *l, int batch)
{
    dscomm_status_t status;

    if (l->options->kill_step == l->steps &&
        l->options->kill_rank == dscomm_group_rank(l->world))
        raise(SIGKILL);
    status = l->optimizer ? step_optimizer(l, batch) : step_sum(l, batch);
    if (status < 0 && l->options->survive)
        return go_on(l);
    DSCOMM_CHECK(status);
    l->steps++;
    return 1;
}

/* Returns the mean loss of an epoch. */
static double train_epoch(learner_t *l, const int *order)
{
    double loss = 0;

    for (int at = 0; at < TRAIN; at += BATCH) {
        int batch = TRAIN - at < BATCH ? TRAIN - at : BATCH;

        add_share(l, order + at, batch);
        while (!step(l, batch))
            add_share(l, order + at, batch);
        loss += (double)l->loss;
    }
    if (l->optimizer && !l->options->survive) /* so far this rank's alone */
        DSCOMM_CHECK(dscomm_all_reduce(l->group, &loss, &loss, 1,
                                       DSCOMM_FLOAT64, DSCOMM_SUM, NULL));
    return loss / TRAIN;
}

/* True on the rank that prints */
static int speaks(const learner_t *l)
{
    return dscomm_group_rank(l->group) == 0;
}

/* Returns the fraction of the test images that are read correctly. */
static double test(dscomm_group_t *group, const unsigned char *rows,
                   const int *order, const network_t *net)
{
    int rank = dscomm_group_rank(group), ranks = dscomm_group_size(group);
    const int count = IMAGES - TRAIN;
    int64_t correct = 0;

    for (int i = even_share(count, rank, ranks);
         i < even_share(count, rank + 1, ranks); i++) {
        const unsigned char *row = rows + order[i] * ROW;
        activation_t act;
        int best = 0;

        forward(net, row, &act);
        for (int d = 1; d < DIGITS; d++)
            best = act.chance[d] > act.chance[best] ? d : best;
        correct += best == row[PIXELS];
    }
    DSCOMM_CHECK(dscomm_all_reduce(group, &correct, &correct, 1, DSCOMM_INT64,
                                   DSCOMM_SUM, NULL));
    return (double)correct / count;
}

static void start_learner(learner_t *l, const options_t *options,
                          unsigned long long *state)
{
    const size_t sizes[] = {HIDDEN * PIXELS, HIDDEN, DIGITS * HIDDEN, DIGITS};
    const method_t *method = options->method;
    optimizer_attr_t attr = OPTIMIZER_ATTR_INIT;
    void *grad;

    fill_random(&l->net.hidden[0][0], HIDDEN * PIXELS, PIXELS, state);
    fill_random(&l->net.out[0][0], DIGITS * HIDDEN, HIDDEN, state);
    DSCOMM_CHECK(dscomm_mem_alloc(l->world, sizeof(network_t), &grad));
    l->grad = grad;
    if (!method)
        return;
    attr.rate = method->rate;
    attr.beta2 = method->beta2;
    attr.epsilon = method->epsilon;
    attr.warmup = options->warmup ? options->warmup : method->warmup;
    attr.local_doubling = attr.warmup;
    attr.recoverable = options->survive;
    DSCOMM_CHECK(optimizer_create(method->kind, l->world, &attr, sizes, 4,
                                  &l->optimizer));
}

/* Bytes that all ranks that are left have sent for the steps */
static void tell_traffic(const learner_t *l)
{
    optimizer_traffic_t own = optimizer_traffic(l->optimizer);
    uint64_t bytes[] = {own.sent, own.plain};

    DSCOMM_CHECK(dscomm_all_reduce(l->group, bytes, bytes, 2, DSCOMM_UINT64,
                                   DSCOMM_SUM, NULL));
    if (!speaks(l))
        return;
    printf("bytes sent: %llu, uncompressed: %llu\n",
           (unsigned long long)bytes[0], (unsigned long long)bytes[1]);
    if (bytes[0])
        printf("saved: %.2f %%, %.2f times fewer bytes\n",
               100 - 100 * (double)bytes[0] / (double)bytes[1],
               (double)bytes[1] / (double)bytes[0]);
}

static void net_learn(dscomm_group_t *world, const unsigned char *rows,
                      const options_t *options)
{
    static learner_t l;
    unsigned long long state = options->seed;
    int order[IMAGES];
    struct timespec begin, end;

    l.options = options;
    l.world = l.group = world;
    if (speaks(&l))
        printf("%d rank%s on backend %s\n", dscomm_group_size(world),
               dscomm_group_size(world) > 1 ? "s" : "",
               dscomm_group_backend(world));
    l.rows = rows;
    for (int i = 0; i < IMAGES; i++)
        order[i] = i;
    shuffle(order, IMAGES, &state);
    start_learner(&l, options, &state);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int epoch = 1; epoch <= options->epochs; epoch++) {
        shuffle(order, TRAIN, &state);
        double loss = train_epoch(&l, order);
        if (speaks(&l))
            printf("epoch %d: loss %.8f\n", epoch, loss);
    }
    if (l.optimizer)
        DSCOMM_CHECK(optimizer_sync(l.optimizer, (float *)&l.net));
    clock_gettime(CLOCK_MONOTONIC, &end);
    double accuracy = test(l.group, rows, order + TRAIN, &l.net);
    if (speaks(&l))
        printf("test accuracy: %.2f %%\ntime: %.2f s\n", 100 * accuracy,
               (double)(end.tv_sec - begin.tv_sec) +
                   (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    if (l.optimizer)
        tell_traffic(&l);
    optimizer_free(l.optimizer);
    DSCOMM_CHECK(dscomm_mem_free(world, l.grad));
}

static const method_t *find_method(const char *name)
{
    for (int i = 0; i < METHODS; i++)
        if (!strcmp(methods[i].name, name))
            return &methods[i];
    return NULL;
}

static int parse_options(int argc, char **argv, options_t *ret_options)
{
    static const struct option longs[] = {
        {"compress", required_argument, NULL, 'c'},
        {"warmup", required_argument, NULL, 'w'},
        {"survive", no_argument, NULL, 'v'},
        {"kill", required_argument, NULL, 'k'},
        {NULL, 0, NULL, 0},
    };
    options_t o = {
        .file = "digits.csv.gz", .epochs = 20, .seed = 1, .kill_rank = -1};
    int option;

    while ((option = getopt_long(argc, argv, "e:s:", longs, NULL)) != -1) {
        if (option == 'e')
            o.epochs = atoi(optarg);
        else if (option == 's')
            o.seed = strtoull(optarg, NULL, 10);
        else if (option == 'c' && find_method(optarg))
            o.method = find_method(optarg);
        else if (option == 'w' && atol(optarg) > 0)
            o.warmup = atol(optarg);
        else if (option == 'v')
            o.survive = 1;
        else if (option == 'k' &&
                 sscanf(optarg, "%d:%ld", &o.kill_rank, &o.kill_step) == 2)
            continue;
        else
            return -1;
    }
    if (optind < argc)
        o.file = argv[optind++];
    if (optind < argc || o.epochs < 1)
        return -1;
    *ret_options = o;
    return 0;
}

int main(int argc, char **argv)
{
    dscomm_group_t *world;
    options_t options;

    if (parse_options(argc, argv, &options) < 0) {
        fprintf(stderr, "Usage: digits [-e EPOCHS] [-s SEED] [--compress "
                        "onebit|onebit-lamb|zero-one]\n"
                        "              [--warmup STEPS] [--survive] "
                        "[--kill RANK:STEP] [FILE]\n");
        return 2;
    }
    if (options.survive && options.method &&
        options.method->kind == &zero_one_adam) {
        fprintf(stderr, "digits: --survive does not work with --compress "
                        "zero-one, whose ranks walk alone between meetings: "
                        "what a dead rank has learned is lost\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* a rank that is killed has printed */
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    check_kill(&options, world);
    unsigned char *blob = share_images(world, options.file);
    net_learn(world, blob + 1, &options);
    dscomm_blob_free(blob);
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
