/* Shared by the two passes of attention: block sizes, scratch memory, and products of blocks in cache. */
#ifndef ATTENTION_H
#define ATTENTION_H

#include "dtconv_nn_elem.h"
#include "dtconv_attention.h"
#include "dtconv_gemm.h"
#include "dtconv_thread_id.h"
#include "dtconv_ukr.h"

#include "norm_common.h"

enum { MOST_KEYS = 256, READ_AHEAD = 1024 /* micro-kernels load the step after the last one */ };

/* Sizes that depend on the problem and the micro-kernel, and not on the number of threads. */
typedef struct {
    const dtconv_attention *p;
    const DT(ukr_row) * ukr;
    int64_t keys;   /* keys of a block */
    int64_t blocks; /* blocks of keys */
    int64_t rows;   /* queries of a block */
    int64_t ld;     /* elements from row to row of a block of scores */
} tiling;

INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
INLINE int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/* Threads worth starting: each pair of a query and a key is two products. */
INLINE int threads_of(const dtconv_attention *p) {
    return dtconv_threads_for(p->n * p->heads * p->tq * p->tk * (p->d + p->dv));
}

/* wanted: about so many queries in a block. */
INLINE tiling tiling_of(const dtconv_attention *p, int64_t wanted) {
    tiling t = {.p = p, .ukr = DT(ukr_current)()};
    if (!t.ukr) return t;
    const int64_t nr = t.ukr->nr, mr = t.ukr->mr;
    t.blocks = ceil_div(p->tk, MOST_KEYS);
    t.keys = round_up(ceil_div(p->tk, t.blocks), nr);
    t.blocks = ceil_div(p->tk, t.keys);
    t.rows = max_i64(1, wanted / mr) * mr;
    t.ld = t.keys + 64 / (int64_t)sizeof(real); /* so that rows do not fall into the same sets of a cache */
    return t;
}

/* The next `count` elements of scratch memory, aligned to 64 bytes. */
INLINE real *take(char **scratch, int64_t count) {
    real *part = (real *)*scratch;
    *scratch += ((size_t)count * sizeof(real) + READ_AHEAD + 63) / 64 * 64;
    return part;
}

INLINE int64_t keys_of(const tiling *t, int64_t block) { return min_i64(t->keys, t->p->tk - block * t->keys); }

/* Packs B (k x n), element (p, j) at b[p * rs + j * cs], into panels of NR columns. */
INLINE void pack(const tiling *t, int64_t k, int64_t n, const real *b, int64_t rs, int64_t cs, real *dst) {
    const DT(matrix) matrix = {b, rs, cs};
    DT(pack_b_matrix)(&matrix, 0, k, 0, n, t->ukr->nr, dst);
}

/* C (m x n) = alpha * A (m x k) * B + beta * C: B packed, A anywhere, packed into a_packed where it has to be. */
INLINE void product(const tiling *t, int64_t m, int64_t n, int64_t k, real alpha, const real *a, int64_t rs, int64_t cs,
                    const real *b, real beta, real *c, int64_t ldc, real *a_packed) {
    const int64_t mr = t->ukr->mr, nr = t->ukr->nr;
    const int in_place = t->ukr->in_place && (rs == 1 || (cs == 1 && rs * (int64_t)sizeof(real) % 4096 != 0));
    const DT(matrix) matrix = {a, rs, cs};
    DT(ukr_call) call = {.k = k, .alpha = alpha, .beta = beta, .ldc = ldc};
    for (int64_t i = 0; i < m; i += mr) {
        call.m = min_i64(mr, m - i);
        if (in_place) {
            call.a = a + i * rs, call.rs_a = rs, call.cs_a = cs;
        } else {
            DT(pack_a_matrix)(&matrix, i, call.m, 0, k, mr, a_packed);
            call.a = a_packed, call.rs_a = 1, call.cs_a = mr;
        }
        call.a_next = call.a;
        for (int64_t j = 0; j < n; j += nr) {
            call.n = min_i64(nr, n - j);
            call.b = b + j * k;
            call.b_next = call.b + nr * k;
            call.c = c + i * ldc + j;
            t->ukr->run(t->ukr, &call);
        }
    }
}

/* Keys of a block, of `count` from key `first` on, that query i may attend to as far as causality goes. */
INLINE int64_t reach(const dtconv_attention *p, int64_t i, int64_t first, int64_t count) {
    return p->causal ? max_i64(0, min_i64(count, i + 1 - first)) : count;
}

/* The same for a block of queries whose last one is i.  Where there is a mask all blocks are walked, because a query
 * that may attend to nothing attends to everything. */
INLINE int64_t reach_of_rows(const dtconv_attention *p, const uint8_t *mask, int64_t i, int64_t first, int64_t count) {
    return mask ? count : reach(p, i, first, count);
}

/* Factors 0 or 1 / (1 - rate) of the elements of P from (b, h, i, j) on. */
/* Whether sizes are what dtconv_attention.h says. */
INLINE int fits(const dtconv_attention *p) {
    return DTCONV_ARE_SIZES(0, p->n, p->tq, p->dv) && DTCONV_ARE_SIZES(1, p->heads, p->kv_heads, p->tk, p->d) &&
           p->heads % p->kv_heads == 0 &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_PRODUCTS, p->n, p->heads, p->tq, p->tk, 3 * p->d + 2 * p->dv);
}

INLINE void draw(const dtconv_attention *p, int64_t b, int64_t h, int64_t i, int64_t j, int64_t count, real *factors) {
    dtconv_random_key key = p->key;
    key.first = (int64_t)((uint64_t)key.first + (uint64_t)(((b * p->heads + h) * p->tq + i) * p->tk + j));
    DT(dropout)(&key, p->rate, 0, 1, count, NULL, 0, factors, count);
}

/* exp(v) for v <= 0 or NaN; 0 from -87 on.  In float a fourth less work than fast_exp: exp(r) = 1 + r + r^2 P(r), P a
 * minimax fit (as in dtconv_math.h), and no overflow to look after. */
INLINE real exp_negative(real v) {
#ifdef DTCONV_DOUBLE
    return fast_exp(v);
#else
    const float low = -87.0f, magic = 12582912.0f;
    const float clipped = v < low ? low : v;
    const float shifted = clipped * 1.44269504f + magic; /* the rounded quotient in the low bits */
    const float k = shifted - magic, r = (clipped - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 0.00139506023f;
    p = p * r + 0.00836895351f;
    p = p * r + 0.0416662041f;
    p = p * r + 0.166665183f;
    p = p * r + 0.50000001f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + ((uint32_t)127 << 23);
    float power;
    memcpy(&power, &bits, sizeof power);
    const float y = (p * (r * r) + r + 1.0f) * power;
    return v < low ? 0.0f : y;
#endif
}

#endif
