/* Rows of scores to weights and statistics, in one pass per row that stays in the cache.

   Between two matrix products (scores = q k, output = weights v) every row is read three times while it
   is in the L1 or L2 cache: for its maximum, for the powers 2^(score - maximum) with their sums, and for
   the weights, which are also added to what each key received. Scores are in bits, that is, multiplied
   by log2(e); a masked pair has weight 0 exactly.

   Built by build_row_pass.py, which compiles with -ffast-math, so that sums may be reordered, and links
   without it: linked with -ffast-math, it would make the whole process treat subnormal numbers as 0. Called by compiled_pass.py through ctypes. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define MASKED -1e30f  /* the score of a masked pair, as in statistics_pass.py */
#define LOG2_E 1.4426950408889634f
#define SMALLEST -127.0f  /* 2^-127, a subnormal number, counts as 0; so does all that is smaller */
#define LARGE 3.4e38f
#define BLOCK 512  /* scores among which the column of the maximum is searched */
#define TOGETHER 4  /* rows whose weights are added to `received` in one go */

#define INLINE static inline __attribute__((always_inline))

/* The memory of one call. Elements are heads of batch entries; arrays are (element, row, ...), with the
   number of entries from one element to the next, which is 0 if all elements share it. */
struct row_pass {
    float *scores;  /* (element, row, column): scores before, weights after */
    int64_t batch, heads, rows, width;
    int64_t totals_batch, totals_head;  /* strides of the totals: from one batch entry, and from one head, to the next */
    const int64_t *queries;  /* (row): the query of the totals that each row belongs to */
    const float *query_places;  /* (row): positions, counted from some key */
    const float *key_places;  /* (column) */
    const int64_t *key_positions;  /* (column): positions, counted from the beginning of the sequence */
    const int64_t *special_columns;  /* (3, row): of the own, the previous and the first key; -1: none */
    const int64_t *starts, *stops;  /* (element, row): the columns outside of which everything is masked */
    int64_t range_batch, range_head;
    const uint8_t *allowed;  /* (element, row, column), or null if all columns between are allowed */
    int64_t allowed_batch, allowed_head;
    int64_t counts;  /* whether scores may be MASKED already, so that visible keys must be counted */
    const float *sinks;  /* (head), in bits, or null */
    int64_t lse_known;  /* whether lse is read, not written */
    float *received;  /* (element, column): what the keys received from these rows */
    float *lse, *entropy, *mass, *far_sum, *own, *previous, *first, *peak;  /* the totals */
    int64_t *visible, *peak_key;
};

/* 2^t for t in [-127, 0]; relative error 2e-7, and 0 exactly at -127, where the exponent's bits are 0. */
INLINE float power(float t) {
    int32_t whole = (int32_t)(t - 0.5f);  /* the nearest integer */
    float rest = t - (float)whole;
    float fraction = 1.0f + rest * (0.69314700f + rest * (0.24022242f + rest * (0.055507336f
                   + rest * (0.0096715130f + rest * 0.0013264727f))));
    union { uint32_t bits; float number; } scale = {.bits = (uint32_t)(whole + 127) << 23};
    return fraction * scale.number;
}

/* -ffast-math lets the compiler assume that there are no such numbers, so their bits are compared. */
INLINE int is_nan(float x) {
    union { float number; uint32_t bits; } value = {.number = x};
    return value.bits << 1 > 0xff000000u;
}

INLINE int is_finite(float x) {
    union { float number; uint32_t bits; } value = {.number = x};
    return value.bits << 1 < 0xff000000u;
}

INLINE void put_nan(float *x) {
    uint32_t bits = 0x7fc00000u;
    memcpy(x, &bits, sizeof bits);
}

/* Hide what is not allowed, and count the columns that are seen; *wrong says whether a score is NaN. */
INLINE int64_t hide(float *row, const uint8_t *allowed, int64_t start, int64_t stop, int *wrong) {
    int32_t seen = 0, nan = 0;
    if (allowed)
        for (int64_t j = start; j < stop; j++) row[j] = allowed[j] ? row[j] : MASKED;
    for (int64_t j = start; j < stop; j++) {
        nan |= is_nan(row[j]);
        row[j] = row[j] > MASKED ? row[j] : MASKED;
        seen += row[j] > 0.5f * MASKED;
    }
    *wrong = nan;
    return seen;
}

/* The greatest score; *column gets the first column that has it. */
INLINE float greatest(const float *row, int64_t start, int64_t stop, int64_t *column) {
    float best = -LARGE;
    int64_t first = start;
    for (int64_t block = start; block < stop; block += BLOCK) {
        int64_t end = block + BLOCK < stop ? block + BLOCK : stop;
        float top = -LARGE;
        for (int64_t j = block; j < end; j++) top = row[j] > top ? row[j] : top;
        if (top > best) {
            best = top;
            first = block;
        }
    }
    while (first + 1 < stop && row[first] != best) first++;
    *column = first;
    return best;
}

struct sums {
    float scores, powers, shifted, distances;
};

/* Scores to powers, and Σ score, Σ p, Σ p (score - best), Σ p |position - key|. */
INLINE struct sums powers(float *restrict row, const float *restrict places, int64_t start, int64_t stop,
                          float best, float place) {
    float scores = 0, total = 0, shifted = 0, distances = 0;
    for (int64_t j = start; j < stop; j++) {
        float score = row[j], t = score - best;
        float near = t > SMALLEST ? t : SMALLEST;
        float p = power(near);
        row[j] = p;
        scores += score;
        total += p;
        shifted += p * near;
        distances += p * fabsf(place - places[j]);
    }
    return (struct sums){scores, total, shifted, distances};
}

INLINE float at(const float *row, int64_t column, float factor) { return column < 0 ? 0 : row[column] * factor; }

/* A row with NaN or infinity among its scores: everything is NaN, as in torch. */
INLINE float wrong_row(const struct row_pass *a, int64_t q, float *row, int64_t start, int64_t stop) {
    float *numbers[] = {a->entropy, a->mass, a->far_sum, a->own, a->previous, a->first, a->peak, a->lse};
    for (int x = 0; x < 8 - (a->lse_known != 0); x++) put_nan(numbers[x] + q);
    for (int64_t j = start; j < stop; j++) put_nan(row + j);
    return 1;
}

/* One row: its powers in place of its scores, its statistics added to the totals. Returns weight / power. */
INLINE float one_row(const struct row_pass *a, int64_t b, int64_t h, int64_t i, float *row, int64_t start, int64_t stop) {
    int64_t seen = stop - start, column = 0;
    int wrong = 0;
    if (start > 0) memset(row, 0, start * sizeof(float));
    if (stop < a->width) memset(row + stop, 0, (a->width - stop) * sizeof(float));
    if (a->allowed || a->counts) {
        const uint8_t *allowed = a->allowed;
        if (allowed) allowed += b * a->allowed_batch + h * a->allowed_head + i * a->width;
        seen = hide(row, allowed, start, stop, &wrong);
    }
    if (!seen && !wrong) {
        memset(row, 0, a->width * sizeof(float));
        return 0;
    }
    float best = greatest(row, start, stop, &column);
    struct sums sums = powers(row, a->key_places, start, stop, best, a->query_places[i]);
    int64_t q = b * a->totals_batch + h * a->totals_head + a->queries[i];
    a->visible[q] += seen;
    if (wrong || !is_finite(sums.scores)) return wrong_row(a, q, row, start, stop);
    float above, factor;  /* (lse - best) in bits, and 2^-above */
    if (a->lse_known) {
        above = (float)((double)a->lse[q] * 1.4426950408889634 - best);
        factor = exp2f(-above);
    } else {
        float total = sums.powers, sink = a->sinks ? a->sinks[h] - best : -LARGE;
        if (sink < 64) {
            total += sink > SMALLEST ? exp2f(sink) : 0;
            above = log2f(total);
            factor = 1 / total;
        } else {  /* the sink takes nearly all */
            above = sink + log2f(1 + total * exp2f(-sink));
            factor = exp2f(-above);
        }
        a->lse[q] = (float)(((double)best + above) / 1.4426950408889634);
    }
    const int64_t *special = a->special_columns + i;
    a->entropy[q] += factor * (above * sums.powers - sums.shifted) / LOG2_E;
    a->mass[q] += factor * sums.powers;
    a->far_sum[q] += factor * sums.distances;
    a->own[q] += at(row, special[0], factor);
    a->previous[q] += at(row, special[a->rows], factor);
    a->first[q] += at(row, special[2 * a->rows], factor);
    /* Parts come in any order; among equal weights the first key counts. */
    int64_t key = a->key_positions[column];
    if (!(factor <= a->peak[q]) || (factor == a->peak[q] && key < a->peak_key[q])) {
        a->peak[q] = factor;
        a->peak_key[q] = key;
    }
    return factor;
}

/* Powers to weights between two columns; the weights are added to what the keys received. */
INLINE void weigh(float *rows, int64_t width, int64_t start, int64_t stop, int64_t count,
                  const float *factors, float *restrict received) {
    if (count == TOGETHER) {
        float f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
        float *restrict r0 = rows, *restrict r1 = r0 + width, *restrict r2 = r1 + width, *restrict r3 = r2 + width;
        for (int64_t j = start; j < stop; j++) {
            float w0 = r0[j] * f0, w1 = r1[j] * f1, w2 = r2[j] * f2, w3 = r3[j] * f3;
            r0[j] = w0, r1[j] = w1, r2[j] = w2, r3[j] = w3;
            received[j] += (w0 + w1) + (w2 + w3);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        float factor = factors[i], *restrict row = rows + i * width;
        for (int64_t j = start; j < stop; j++) {
            float weight = row[j] * factor;
            row[j] = weight;
            received[j] += weight;
        }
    }
}

INLINE void all_rows(const struct row_pass *a) {
    for (int64_t e = 0; e < a->batch * a->heads; e++) {
        int64_t b = e / a->heads, h = e % a->heads, range = b * a->range_batch + h * a->range_head;
        float *received = a->received + e * a->width;
        memset(received, 0, a->width * sizeof(float));
        for (int64_t i = 0; i < a->rows; i += TOGETHER) {
            int64_t count = a->rows - i < TOGETHER ? a->rows - i : TOGETHER, low = a->width, high = 0;
            float *rows = a->scores + (e * a->rows + i) * a->width, factors[TOGETHER];
            for (int64_t r = 0; r < count; r++) {
                int64_t start = a->starts[range + i + r], stop = a->stops[range + i + r];
                factors[r] = one_row(a, b, h, i + r, rows + r * a->width, start, stop);
                low = start < low ? start : low;
                high = stop > high ? stop : high;
            }
            weigh(rows, a->width, low, high, count, factors, received);
        }
    }
}

/* ---- one version for each instruction set ------------------------------------------------- */

/* On ARM the ordinary version has NEON, which all 64-bit processors have. */
#if defined(__x86_64__) && defined(__GNUC__)
#define VERSIONS 3
#if defined(__clang__)
#define WIDE
#else
#define WIDE ",prefer-vector-width=512"
#endif
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma" WIDE)))
static void rows_avx512(const struct row_pass *a) { all_rows(a); }
__attribute__((target("avx2,fma")))
static void rows_avx2(const struct row_pass *a) { all_rows(a); }
#else
#define VERSIONS 1
#endif
static void rows_ordinary(const struct row_pass *a) { all_rows(a); }

/* The best version that this processor has, at most `most`: 0 ordinary, 1 AVX2, 2 AVX-512. */
int row_pass_version(int most) {
#if VERSIONS == 3
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
              && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (most >= 2 && avx2 && avx512) return 2;
    if (most >= 1 && avx2) return 1;
#endif
    (void)most;
    return 0;
}

void row_pass(const struct row_pass *a, int version) {
#if VERSIONS == 3
    if (version == 2) { rows_avx512(a); return; }
    if (version == 1) { rows_avx2(a); return; }
#endif
    (void)version;
    rows_ordinary(a);
}

#ifndef SOURCE_DIGEST
#define SOURCE_DIGEST ""
#endif

/* The digest of the source that this was built from: compiled_pass.py ignores a library built from other source. */
const char *row_pass_source(void) { return SOURCE_DIGEST; }
