/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a compressor: reset, masked, queried, saved and loaded.
 *
 * A saved state is little-endian: magic, version, codec, geometry, operator,
 * ranks, rank, count, padded, elements of the worker and the server error;
 * these errors as float32; and the SHA-256 of all before it. */
#include "config.h"

#include "compression/core/compressor.h"
#include "compression/device/device.h"

#include <dscomm/dscomm.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "dscommEF"
#define MAGIC_BYTES 8
#define STATE_VERSION 1
#define CODEC_BYTES 16
#define SUM_BYTES 32

/* The layout in the file; it has no padding. */
typedef struct {
    char magic[MAGIC_BYTES];
    uint32_t version, geometry, op, ranks, rank, reserved;
    char codec[CODEC_BYTES];
    uint64_t count, padded, worker, server;
} state_header_t;
G_STATIC_ASSERT(sizeof(state_header_t) == 80);

static size_t worker_count(const dscomm_compressor_t *c)
{
    return c->feedback ? c->padded : 0;
}

static size_t state_server_count(const dscomm_compressor_t *c)
{
    return c->feedback ? dscomm_priv_part_count(c, c->channel->rank) : 0;
}

static size_t state_bytes(const dscomm_compressor_t *c)
{
    return sizeof(state_header_t) +
           (worker_count(c) + state_server_count(c)) * sizeof(float) +
           SUM_BYTES;
}

static state_header_t header_of(const dscomm_compressor_t *c)
{
    state_header_t header = {
        .version = GUINT32_TO_LE(STATE_VERSION),
        .geometry = GUINT32_TO_LE((uint32_t)c->geometry),
        .op = GUINT32_TO_LE((uint32_t)c->op),
        .ranks = GUINT32_TO_LE((uint32_t)c->channel->ranks),
        .rank = GUINT32_TO_LE((uint32_t)c->channel->rank),
        .count = GUINT64_TO_LE(c->count),
        .padded = GUINT64_TO_LE(c->padded),
        .worker = GUINT64_TO_LE(worker_count(c)),
        .server = GUINT64_TO_LE(state_server_count(c)),
    };

    memcpy(header.magic, MAGIC, MAGIC_BYTES);
    memcpy(header.codec, c->codec->name,
           MIN(strlen(c->codec->name), CODEC_BYTES - 1));
    return header;
}

/* Copies floats from memory of this machine to a saved state, or back. */
static void copy_floats(void *to, const void *from, size_t count)
{
    if (count)
        memcpy(to, from, count * sizeof(float));
#if G_BYTE_ORDER != G_LITTLE_ENDIAN
    for (size_t i = 0; i < count; i++) {
        uint32_t word;

        memcpy(&word, (char *)to + i * sizeof word, sizeof word);
        word = GUINT32_SWAP_LE_BE(word);
        memcpy((char *)to + i * sizeof word, &word, sizeof word);
    }
#endif
}

static void sum_of(const void *memory, size_t bytes, guint8 *ret_sum)
{
    GChecksum *checksum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize length = SUM_BYTES;

    while (bytes) { /* the length is a signed number */
        size_t some = MIN(bytes, (size_t)1 << 30);

        g_checksum_update(checksum, memory, (gssize)some);
        memory = (const char *)memory + some;
        bytes -= some;
    }
    g_checksum_get_digest(checksum, ret_sum, &length);
    g_checksum_free(checksum);
}

dscomm_status_t dscomm_priv_compressor_known(const dscomm_compressor_t *c,
                                             const char *name)
{
    dscomm_status_t status = dscomm_priv_compressor_idle(c, name);

    if (status == DSCOMM_OK && c->lost)
        status = dscomm_fail(DSCOMM_ERR_STATE,
                             "%s: a call has failed and left nothing to go on "
                             "with; load a saved state, or reset the "
                             "compressor",
                             name);
    return status;
}

dscomm_status_t dscomm_compressor_save(const dscomm_compressor_t *compressor,
                                       void *memory, size_t bytes)
{
    const char *name = "dscomm_compressor_save";
    const dscomm_compressor_t *c = compressor;
    dscomm_status_t status = dscomm_priv_compressor_known(c, name);
    state_header_t header;
    char *at = memory;

    if (status < 0)
        return status;
    if (!memory)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: memory is NULL", name);
    if (bytes < state_bytes(c))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: the state needs %zu bytes; memory has %zu",
                           name, state_bytes(c), bytes);
    status = dscomm_priv_device_home(c, 0);
    if (status < 0)
        return status;
    header = header_of(c);
    memcpy(at, &header, sizeof header);
    at += sizeof header;
    copy_floats(at, c->worker, worker_count(c));
    at += worker_count(c) * sizeof(float);
    copy_floats(at, c->server, state_server_count(c));
    at += state_server_count(c) * sizeof(float);
    sum_of(memory, (size_t)(at - (char *)memory), (guint8 *)at);
    return DSCOMM_OK;
}

/* Returns why a saved state does not fit c, or NULL. */
static const char *state_refusal(const dscomm_compressor_t *c,
                                 const state_header_t *got, const char *memory,
                                 size_t bytes)
{
    state_header_t want = header_of(c);
    guint8 sum[SUM_BYTES];

    if (bytes < sizeof *got + SUM_BYTES ||
        memcmp(got->magic, want.magic, MAGIC_BYTES))
        return "this is no saved state of a compressor";
    if (got->version != want.version)
        return "it has a version that this library does not know";
    if (memcmp(got->codec, want.codec, CODEC_BYTES))
        return "it is that of another codec";
    if (got->count != want.count)
        return "it has another number of elements";
    if (got->geometry != want.geometry || got->op != want.op ||
        got->padded != want.padded)
        return "it has another geometry or operator";
    if (got->ranks != want.ranks)
        return "it comes from a group with another number of ranks";
    if (got->rank != want.rank)
        return "it is that of another rank";
    if (got->worker != want.worker || got->server != want.server)
        return "one keeps errors and the other does not";
    if (bytes != state_bytes(c))
        return "it has been cut off, or something was added";
    sum_of(memory, bytes - SUM_BYTES, sum);
    if (memcmp(sum, memory + bytes - SUM_BYTES, SUM_BYTES))
        return "it is damaged: its SHA-256 is not that of its bytes";
    return NULL;
}

/* Clears the errors of masked elements. */
static void state_clear_masked(dscomm_compressor_t *c)
{
    size_t base = (size_t)c->channel->rank * c->chunk;

    for (size_t i = 0; c->mask && i < MIN(c->count, worker_count(c)); i++)
        if (!c->mask[i])
            c->worker[i] = 0;
    for (size_t i = 0; c->mask && i < state_server_count(c); i++)
        if (base + i < c->count && !c->mask[base + i])
            c->server[i] = 0;
}

/* Forgets a call that has failed, after the errors got other values. */
static void forget_call(dscomm_compressor_t *c)
{
    c->calls = dscomm_priv_calls_complete(c);
    c->lost = 0;
}

/* from: where the bytes were read, for the sentence; or "". */
static dscomm_status_t state_load(const char *name, dscomm_compressor_t *c,
                                  const char *memory, size_t bytes,
                                  const char *from)
{
    state_header_t got;
    dscomm_status_t status;
    const char *wrong;

    memset(&got, 0, sizeof got);
    memcpy(&got, memory, MIN(bytes, sizeof got));
    wrong = state_refusal(c, &got, memory, bytes);
    if (wrong)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "%s: %s%sthe state cannot be taken: %s", name, from,
                           *from ? ": " : "", wrong);
    status = dscomm_priv_device_discard(c, 0);
    if (status < 0)
        return status;
    memory += sizeof got;
    copy_floats(c->worker, memory, worker_count(c));
    memory += worker_count(c) * sizeof(float);
    copy_floats(c->server, memory, state_server_count(c));
    state_clear_masked(c);
    forget_call(c);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_compressor_load(dscomm_compressor_t *compressor,
                                       const void *memory, size_t bytes)
{
    const char *name = "dscomm_compressor_load";
    dscomm_status_t status = dscomm_priv_compressor_idle(compressor, name);

    if (status < 0)
        return status;
    if (!memory)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: memory is NULL", name);
    /* As for save, memory may be longer than the state. */
    return state_load(name, compressor, memory,
                      MIN(bytes, state_bytes(compressor)), "");
}

static dscomm_status_t fail_kind(const char *name, const char *path)
{
    return dscomm_fail(DSCOMM_ERR_IO,
                       "%s: '%s' is no regular file; give the name of one",
                       name, path);
}

/* Memory for a state and one byte more, or NULL and the sentence. */
static void *state_room(const char *name, const dscomm_compressor_t *c)
{
    const size_t bytes = state_bytes(c);
    void *memory = g_try_malloc(bytes + 1);

    if (!memory)
        dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                    "%s: no memory for the %zu bytes of the state", name,
                    bytes);
    return memory;
}

static dscomm_status_t check_path(const char *name, const char *path)
{
    if (!path)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: path is NULL", name);
    if (!*path)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: path is empty", name);
    return DSCOMM_OK;
}

dscomm_status_t
dscomm_compressor_save_file(const dscomm_compressor_t *compressor,
                            const char *path)
{
    const char *name = "dscomm_compressor_save_file";
    dscomm_status_t status = dscomm_priv_compressor_known(compressor, name);
    GError *error = NULL;
    struct stat there;
    size_t bytes;
    void *memory;

    if (status == DSCOMM_OK)
        status = check_path(name, path);
    if (status < 0)
        return status;
    /* Only a regular file is replaced by the new one. */
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return fail_kind(name, path);
    bytes = state_bytes(compressor);
    memory = state_room(name, compressor);
    if (!memory)
        return DSCOMM_ERR_NO_MEMORY;
    status = dscomm_compressor_save(compressor, memory, bytes);
    if (status == DSCOMM_OK &&
        !g_file_set_contents_full(path, memory, (gssize)bytes,
                                  G_FILE_SET_CONTENTS_CONSISTENT |
                                      G_FILE_SET_CONTENTS_DURABLE,
                                  0666, &error))
        status = dscomm_fail(DSCOMM_ERR_IO, "%s: %s", name, error->message);
    g_clear_error(&error);
    g_free(memory);
    return status;
}

/* Reads at most so many bytes; -1 with errno. */
static ssize_t state_read_all(int fd, char *memory, size_t most)
{
    size_t got = 0;

    while (got < most) {
        ssize_t part = read(fd, memory + got, most - got);

        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return -1;
        if (part == 0)
            break;
        got += (size_t)part;
    }
    return (ssize_t)got;
}

/* Reads one byte more than a state has, to detect a file that is longer. */
static dscomm_status_t load_from(const char *name, dscomm_compressor_t *c,
                                 int fd, const char *path)
{
    const size_t most = state_bytes(c) + 1;
    dscomm_status_t status;
    struct stat file;
    char *memory;
    ssize_t got;

    if (fstat(fd, &file) == 0 && !S_ISREG(file.st_mode))
        return fail_kind(name, path);
    memory = state_room(name, c);
    if (!memory)
        return DSCOMM_ERR_NO_MEMORY;
    got = state_read_all(fd, memory, most);
    if (got < 0)
        status = dscomm_fail(DSCOMM_ERR_IO, "%s: %s: %s", name, path,
                             strerror(errno));
    else
        status = state_load(name, c, memory, (size_t)got, path);
    g_free(memory);
    return status;
}

dscomm_status_t dscomm_compressor_load_file(dscomm_compressor_t *compressor,
                                            const char *path)
{
    const char *name = "dscomm_compressor_load_file";
    dscomm_status_t status = dscomm_priv_compressor_idle(compressor, name);
    int fd;

    if (status == DSCOMM_OK)
        status = check_path(name, path);
    if (status < 0)
        return status;
    /* Opening a pipe without a writer must not block. */
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return dscomm_fail(DSCOMM_ERR_IO, "%s: %s: %s", name, path,
                           strerror(errno));
    status = load_from(name, compressor, fd, path);
    close(fd);
    return status;
}

dscomm_status_t dscomm_compressor_reset(dscomm_compressor_t *compressor)
{
    dscomm_status_t status =
        dscomm_priv_compressor_idle(compressor, "dscomm_compressor_reset");

    if (status == DSCOMM_OK)
        status = dscomm_priv_device_discard(compressor, 1);
    if (status < 0)
        return status;
    memset(compressor->server, 0,
           dscomm_priv_part_count(compressor, compressor->channel->rank) *
               sizeof(float));
    if (compressor->worker)
        memset(compressor->worker, 0, compressor->padded * sizeof(float));
    forget_call(compressor);
    return DSCOMM_OK;
}

/* Returns a copy of mask as ones and zeros; NULL: no memory. */
static uint8_t *copy_mask(const uint8_t *mask, size_t count)
{
    uint8_t *copy = g_try_malloc(MAX(count, 1));

    for (size_t i = 0; copy && i < count; i++)
        copy[i] = mask[i] != 0;
    return copy;
}

/* Adds the mask to the signature, because all ranks must give the same one. */
static void put_mask(dscomm_compressor_t *c, uint8_t *mask)
{
    uint32_t hash =
        mask ? dscomm_priv_hash(mask, c->count, DSCOMM_HASH_SEED) : 0;

    g_free(c->mask);
    c->mask = mask;
    c->signature ^= c->mask_hash ^ hash;
    c->mask_hash = hash;
}

dscomm_status_t dscomm_compressor_set_mask(dscomm_compressor_t *compressor,
                                           const uint8_t *mask)
{
    const char *name = "dscomm_compressor_set_mask";
    dscomm_compressor_t *c = compressor;
    dscomm_status_t status = dscomm_priv_compressor_idle(c, name);
    uint8_t *copy = NULL;

    if (status < 0)
        return status;
    if (mask) {
        status = dscomm_priv_device_home(c, 1);
        copy = status < 0 ? NULL : copy_mask(mask, c->count);
        if (!copy)
            return status < 0 ? status
                              : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                                            "%s: no memory for %zu elements",
                                            name, c->count);
    }
    put_mask(c, copy);
    state_clear_masked(c);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_compressor_errors(dscomm_compressor_t *compressor,
                                         float **ret_worker, float **ret_server)
{
    const char *name = "dscomm_compressor_errors";
    dscomm_status_t status = dscomm_priv_compressor_known(compressor, name);

    if (status < 0)
        return status;
    if (!ret_worker || !ret_server)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s is NULL", name,
                           ret_worker ? "ret_server" : "ret_worker");
    status = dscomm_priv_device_home(compressor, 1);
    if (status < 0)
        return status;
    *ret_worker = compressor->worker;
    *ret_server = compressor->feedback ? compressor->server : NULL;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_compressor_info(const dscomm_compressor_t *compressor,
                                       dscomm_compressor_info_t *ret_info)
{
    const char *name = "dscomm_compressor_info";
    const dscomm_compressor_t *c = compressor;
    dscomm_compressor_info_t info;

    if (!c || !ret_info)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s is NULL", name,
                           c ? "ret_info" : "compressor");
    if (ret_info->size < sizeof info.size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: ret_info->size is %zu; set it to the size of "
                           "the structure",
                           name, ret_info->size);
    info = (dscomm_compressor_info_t){
        .size = MIN(ret_info->size, sizeof info),
        .codec = c->codec->name,
        .geometry = c->geometry,
        .op = c->op,
        .count = c->count,
        .padded = c->padded,
        .chunk = c->chunk,
        .server = dscomm_priv_part_count(c, c->channel->rank),
        .wire_bytes = dscomm_priv_wire_bytes(c),
        .state_bytes = state_bytes(c),
        .calls = dscomm_priv_calls_complete(c),
    };
    memcpy(ret_info, &info, info.size);
    return DSCOMM_OK;
}
