/* SPDX-License-Identifier: BSD-3-Clause */
/* Little-endian numbers at any address, as they go over the network. */
#ifndef BACKENDS_NET_LITTLE_H
#define BACKENDS_NET_LITTLE_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

static inline void put_16(unsigned char *to, uint16_t value)
{
    const uint16_t little = GUINT16_TO_LE(value);

    memcpy(to, &little, sizeof little);
}

static inline uint16_t get_16(const unsigned char *from)
{
    uint16_t little;

    memcpy(&little, from, sizeof little);
    return GUINT16_FROM_LE(little);
}

static inline void put_32(unsigned char *to, uint32_t value)
{
    const uint32_t little = GUINT32_TO_LE(value);

    memcpy(to, &little, sizeof little);
}

static inline uint32_t get_32(const unsigned char *from)
{
    uint32_t little;

    memcpy(&little, from, sizeof little);
    return GUINT32_FROM_LE(little);
}

static inline void put_64(unsigned char *to, uint64_t value)
{
    const uint64_t little = GUINT64_TO_LE(value);

    memcpy(to, &little, sizeof little);
}

static inline uint64_t get_64(const unsigned char *from)
{
    uint64_t little;

    memcpy(&little, from, sizeof little);
    return GUINT64_FROM_LE(little);
}

#endif
