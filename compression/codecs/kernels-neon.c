/* SPDX-License-Identifier: BSD-3-Clause */
/* NEON: a byte of signs is for two vectors. */
#include "config.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#define ROW dscomm_priv_codec_kernels_neon
#define NAME "neon"

static const uint32_t high_bits[4] = {0x80, 0x40, 0x20, 0x10};
static const uint32_t low_bits[4] = {0x08, 0x04, 0x02, 0x01};

/* Sets all bits of the elements for which x < 0 is false. */
static uint32x4_t is_plus(float32x4_t x)
{
    return vmvnq_u32(vcltq_f32(x, vdupq_n_f32(0)));
}

static float32x4_t pick(uint32x4_t mask, float scale)
{
    return vbslq_f32(mask, vdupq_n_f32(scale), vdupq_n_f32(-scale));
}

static float32x4_t pick_byte(uint8_t byte, const uint32_t *bits, float scale)
{
    return pick(vtstq_u32(vdupq_n_u32(byte), vld1q_u32(bits)), scale);
}

static size_t sign_vectors(const float *x, float *e, size_t count, float scale,
                           uint8_t *ret_bits)
{
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        float32x4_t u = vaddq_f32(vld1q_f32(x + i), vld1q_f32(e + i));
        float32x4_t v = vaddq_f32(vld1q_f32(x + i + 4), vld1q_f32(e + i + 4));
        uint32x4_t high = is_plus(u), low = is_plus(v);

        ret_bits[i / 8] =
            (uint8_t)vaddvq_u32(vorrq_u32(vandq_u32(high, vld1q_u32(high_bits)),
                                          vandq_u32(low, vld1q_u32(low_bits))));
        vst1q_f32(e + i, vsubq_f32(u, pick(high, scale)));
        vst1q_f32(e + i + 4, vsubq_f32(v, pick(low, scale)));
    }
    return i;
}

static size_t add_vectors(const uint8_t *bits, size_t count, float scale,
                          float *sum)
{
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        uint8_t byte = bits[i / 8];

        vst1q_f32(sum + i, vaddq_f32(vld1q_f32(sum + i),
                                     pick_byte(byte, high_bits, scale)));
        vst1q_f32(sum + i + 4, vaddq_f32(vld1q_f32(sum + i + 4),
                                         pick_byte(byte, low_bits, scale)));
    }
    return i;
}

static size_t put_vectors(const uint8_t *bits, size_t count, float scale,
                          int stream, float *ret_values)
{
    size_t i = 0;

    (void)stream;
    for (; i + 8 <= count; i += 8) {
        vst1q_f32(ret_values + i, pick_byte(bits[i / 8], high_bits, scale));
        vst1q_f32(ret_values + i + 4, pick_byte(bits[i / 8], low_bits, scale));
    }
    return i;
}

#include "compression/codecs/kernels-body.h"
