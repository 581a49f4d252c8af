/* The pass over a pair of tensors as one loop: every number is read once.
 *
 * A block of elements is decoded and added up by a loop that the compiler makes vectors of; what
 * needs a place (worst elements, profiles) then looks at the block's errors, which are still in the
 * cache. The largest of errors is sought among their bits as whole numbers: the order is the same,
 * and such loops become vectors too. Compiled with reordered sums, but NaN and infinity mean what
 * they mean. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 1024
#define KEPT 8

#define INLINE static inline __attribute__((always_inline))

/* The order of these fields is that of the structures in native_pass.py. */
typedef struct {
    double sum_abs, sum_square, sum_rel, dot, square_reference, square_test, sum_ulp;
    double max_abs, max_rel, max_ulp, largest_reference;
    int64_t finite, differing, mismatched, relative, appeared;
    int64_t nan_reference, nan_test, nan_both, inf_reference, inf_test, inf_both, disagreeing;
    int64_t odd, overflown, rel_at;
    int64_t bad_at[KEPT], odd_at[KEPT];
} Found;

typedef struct {
    double atol, rtol;
    int64_t equal_nan, keep, dims, base;
    double *worst;          /* errors, largest first */
    int64_t *worst_at;
    const int64_t *layout;  /* for each dimension: stride, size, places in an entry, first entry */
    double *totals, *wrongs;
    int64_t *largest;       /* the bits of floats */
} Rules;

typedef struct {
    double error[BLOCK], relative[BLOCK], size[BLOCK], off[BLOCK];
} Buffer;

INLINE double from_f32(float value) { return value; }
INLINE double from_f64(double value) { return value; }
INLINE float as_float(uint32_t bits) { float f; memcpy(&f, &bits, 4); return f; }
INLINE uint32_t as_bits(float value) { uint32_t b; memcpy(&b, &value, 4); return b; }
INLINE double from_bf16(int16_t bits) { return as_float((uint32_t)(uint16_t)bits << 16); }
INLINE double from_f16(int16_t value) {
    uint32_t bits = (uint16_t)value;
    uint32_t scaled = as_bits(as_float((bits & 0x7fff) << 13) * 0x1p112f);
    uint32_t endless = (bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    return as_float(scaled | endless | (bits & 0x8000) << 16);
}

INLINE int64_t largest_bits(const double *values, int64_t count) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t here;
        memcpy(&here, values + i, 8);
        found = here > found ? here : found;
    }
    return found;
}

INLINE double as_double(int64_t bits) { double d; memcpy(&d, &bits, 8); return d; }
/* A choice between a number and 0, which gcc 12 would not make vectors of if it were written so. */
INLINE double kept(double value, int64_t mask) {
    int64_t bits;
    memcpy(&bits, &value, 8);
    return as_double(bits & mask);
}

/* Among the worst: of equal ones the first stays before. */
INLINE void insert(const Rules *rules, double error, int64_t place) {
    int64_t at = rules->keep;
    while (at > 0 && rules->worst[at - 1] < error) {
        if (at < rules->keep) {
            rules->worst[at] = rules->worst[at - 1];
            rules->worst_at[at] = rules->worst_at[at - 1];
        }
        at--;
    }
    if (at < rules->keep) {
        rules->worst[at] = error;
        rules->worst_at[at] = place;
    }
}

/* One element that is not finite on both sides: 1 where they are not the same. */
INLINE int odd_element(Found *found, const Rules *rules, const int kinds[5], int64_t place) {
    int nan_r = kinds[0], nan_t = kinds[1], inf_r = kinds[2], inf_t = kinds[3];
    int same = (nan_r && nan_t && rules->equal_nan) || kinds[4];
    if (!(nan_r || nan_t || inf_r || inf_t)) {
        found->overflown++;
        return 0;
    }
    found->nan_reference += nan_r;
    found->nan_test += nan_t;
    found->nan_both += nan_r && nan_t;
    found->inf_reference += inf_r;
    found->inf_test += inf_t;
    found->inf_both += same && inf_r;
    if (found->odd < KEPT) found->odd_at[found->odd] = place;
    found->odd++;
    if (same) return 0;
    if (found->disagreeing < KEPT) found->bad_at[found->disagreeing] = place;
    found->disagreeing++;
    found->mismatched++;
    found->differing++;
    insert(rules, INFINITY, place);
    return 1;
}

INLINE void add_each(const Rules *rules, const Buffer *buffer, int64_t into, int64_t from,
                     int64_t many) {
    double *restrict totals = rules->totals + into, *restrict wrongs = rules->wrongs + into;
    int64_t *restrict largest = rules->largest + into;
    for (int64_t i = 0; i < many; i++) {
        int64_t here;
        memcpy(&here, buffer->error + from + i, 8);
        totals[i] += buffer->error[from + i];
        wrongs[i] += buffer->off[from + i];
        largest[i] = here > largest[i] ? here : largest[i];
    }
}

INLINE void add_together(const Rules *rules, const Buffer *buffer, int64_t into, int64_t from,
                         int64_t many) {
    double total = 0, wrong = 0;
    for (int64_t i = from; i < from + many; i++) {
        total += buffer->error[i];
        wrong += buffer->off[i];
    }
    int64_t peak = largest_bits(buffer->error + from, many);
    rules->totals[into] += total;
    rules->wrongs[into] += wrong;
    if (peak > rules->largest[into]) rules->largest[into] = peak;
}

INLINE void profile(const Rules *rules, const Buffer *buffer, int64_t place, int64_t count) {
    for (int64_t dim = 0; dim < rules->dims; dim++) {
        const int64_t *layout = rules->layout + 4 * dim;
        int64_t span = layout[0] * layout[2], whole = layout[0] * layout[1], first = layout[3];
        int64_t inside = place % whole, entry = inside / span, done = 0;
        int64_t end = (entry + 1) * span < whole ? (entry + 1) * span : whole;
        int64_t left = end - inside;
        while (done < count) {
            int64_t reach = span == 1 ? whole - entry : left;
            int64_t many = reach < count - done ? reach : count - done;
            if (span == 1) {
                add_each(rules, buffer, first + entry, done, many);
                entry = 0;
            } else {
                add_together(rules, buffer, first + entry, done, many);
                left -= many;
                if (left == 0) {
                    entry = (entry + 1) * span < whole ? entry + 1 : 0;
                    left = span < whole - entry * span ? span : whole - entry * span;
                }
            }
            done += many;
        }
    }
}

/* What needs places: the worst elements and the profiles. */
INLINE void finish(Found *found, const Rules *rules, const Buffer *buffer, int64_t place,
                   int64_t count, int wrong) {
    double worst = as_double(largest_bits(buffer->error, count));
    double relative = as_double(largest_bits(buffer->relative, count));
    found->largest_reference =
        fmax(found->largest_reference, as_double(largest_bits(buffer->size, count)));
    if (worst == 0 && !wrong) return;
    found->max_abs = fmax(found->max_abs, worst);
    if (rules->keep && worst > rules->worst[rules->keep - 1])
        for (int64_t i = 0; i < count; i++)
            if (buffer->error[i] > rules->worst[rules->keep - 1])
                insert(rules, buffer->error[i], place + i);
    if (relative > found->max_rel) {
        int64_t at = 0;
        while (buffer->relative[at] < relative) at++;
        found->max_rel = relative;
        found->rel_at = place + at;
    }
    profile(rules, buffer, place, count);
}

/* Floats in the order of their bits; both zeros are 0. */
#define DISTANCE(x, y) ((x) > (y) ? (uint64_t)(x) - (uint64_t)(y) : (uint64_t)(y) - (uint64_t)(x))
#define ORDERED(bits, lowest) ((bits) >= 0 ? (int64_t)(bits) : (int64_t)(lowest) - (int64_t)(bits))

/* The sums of one block. SETUP sets a, b (numbers, for the products), d (error), m (size), ok
 * (finite) and u (units in the last place); PRODUCTS adds to the products. */
#define ADD_BLOCK(SETUP, UNEQUAL, PRODUCTS)                                                       \
    const double atol = rules->atol, rtol = rules->rtol;                                          \
    double total = 0, square = 0, quotient = 0, dot = 0, rr = 0, tt = 0;                          \
    int64_t finite = 0, differing = 0, mismatched = 0, nonzero = 0, appeared = 0;                 \
    uint64_t steps = 0, low = 0, high = 0;                                                        \
    for (int64_t i = 0; i < count; i++) {                                                         \
        SETUP                                                                                     \
        int64_t mask = -ok, differs = ok & (UNEQUAL);                                             \
        d = kept(d, mask);                                                                        \
        m = kept(m, mask);                                                                        \
        u &= mask;                                                                                \
        int64_t some = m > 0, off = differs & (d > atol + rtol * m);                              \
        double q = kept(d / m, -some);                                                            \
        buffer.error[i] = d;                                                                      \
        buffer.relative[i] = q;                                                                   \
        buffer.size[i] = m;                                                                       \
        buffer.off[i] = kept(1.0, -off);                                                          \
        total += d;                                                                               \
        square += d * d;                                                                          \
        quotient += q;                                                                            \
        PRODUCTS                                                                                  \
        low += u & 0xffffffff;                                                                    \
        high += u >> 32;                                                                          \
        steps = u > steps ? u : steps;                                                            \
        finite += ok;                                                                             \
        mismatched += off;                                                                        \
        differing += differs;                                                                     \
        nonzero += some;                                                                          \
        appeared += differs & (some ^ 1);                                                         \
    }                                                                                             \
    found->sum_abs += total;                                                                      \
    found->sum_square += square;                                                                  \
    found->sum_rel += quotient;                                                                   \
    found->dot += dot;                                                                            \
    found->square_reference += rr;                                                                \
    found->square_test += tt;                                                                     \
    found->sum_ulp += (double)high * 0x1p32 + (double)low;                                        \
    found->max_ulp = fmax(found->max_ulp, (double)steps);                                         \
    found->finite += finite;                                                                      \
    found->differing += differing;                                                                \
    found->mismatched += mismatched;                                                              \
    found->relative += nonzero;                                                                   \
    found->appeared += appeared;

#define DOT                                                                                       \
    a = kept(a, mask), b = kept(b, mask);                                                         \
    dot += a * b, rr += a * a, tt += b * b;
#define FLOATS(TYPE, BITS, LOWEST, DECODE)                                                        \
    void add(const TYPE *r, const TYPE *t, int64_t size, const Rules *rules,                      \
                    Found *found) {                                                               \
        Buffer buffer;                                                                            \
        for (int64_t at = 0; at < size; at += BLOCK, r += BLOCK, t += BLOCK) {                    \
            int64_t count = size - at < BLOCK ? size - at : BLOCK, place = rules->base + at;      \
            ADD_BLOCK(double a = DECODE(r[i]); double b = DECODE(t[i]);                           \
                      double d = fabs(a - b); double m = fabs(a); int64_t ok = d < INFINITY;      \
                      BITS x_; BITS y_; memcpy(&x_, r + i, sizeof x_);                            \
                      memcpy(&y_, t + i, sizeof y_);                                              \
                      int64_t x = ORDERED(x_, LOWEST); int64_t y = ORDERED(y_, LOWEST);           \
                      uint64_t u = DISTANCE(x, y);, a != b, DOT)                                  \
            int wrong = mismatched > 0;                                                           \
            for (int64_t i = 0; finite < count && i < count; i++) {                               \
                double a = DECODE(r[i]), b = DECODE(t[i]);                                        \
                if (fabs(a - b) < INFINITY) continue;                                             \
                int kinds[5] = {a != a, b != b, fabs(a) == INFINITY, fabs(b) == INFINITY,         \
                                a == b};                                                          \
                if (odd_element(found, rules, kinds, place + i)) buffer.off[i] = wrong = 1;       \
            }                                                                                     \
            finish(found, rules, &buffer, place, count, wrong);                                   \
        }                                                                                         \
    }

#define DOTS                                                                                      \
    a = kept(a, mask), b = kept(b, mask), e = kept(e, mask), f = kept(f, mask);                   \
    dot += a * b + e * f, rr += a * a + e * e, tt += b * b + f * f;
#define NANS(p, q) (p != p || q != q)
#define INFS(p, q) (!NANS(p, q) && (fabs(p) == INFINITY || fabs(q) == INFINITY))
#define COMPLEX(TYPE, BITS, LOWEST)                                                               \
    void add(const TYPE *r, const TYPE *t, int64_t size, const Rules *rules,                      \
                    Found *found) {                                                               \
        Buffer buffer;                                                                            \
        for (int64_t at = 0; at < size; at += BLOCK, r += 2 * BLOCK, t += 2 * BLOCK) {            \
            int64_t count = size - at < BLOCK ? size - at : BLOCK, place = rules->base + at;      \
            ADD_BLOCK(double a = r[2 * i]; double b = t[2 * i]; double e = r[2 * i + 1];          \
                      double f = t[2 * i + 1]; double m = sqrt(a * a + e * e);                    \
                      double d = sqrt((a - b) * (a - b) + (e - f) * (e - f));                     \
                      int64_t ok = d < INFINITY; BITS w[2]; BITS z[2];                            \
                      memcpy(w, r + 2 * i, sizeof w); memcpy(z, t + 2 * i, sizeof z);             \
                      int64_t w0 = ORDERED(w[0], LOWEST); int64_t z0 = ORDERED(z[0], LOWEST);     \
                      int64_t w1 = ORDERED(w[1], LOWEST); int64_t z1 = ORDERED(z[1], LOWEST);     \
                      uint64_t u = DISTANCE(w0, z0); uint64_t v = DISTANCE(w1, z1);               \
                      u = v > u ? v : u;, (a != b) | (e != f), DOTS)                              \
            int wrong = mismatched > 0;                                                           \
            for (int64_t i = 0; finite < count && i < count; i++) {                               \
                double a = r[2 * i], b = t[2 * i], e = r[2 * i + 1], f = t[2 * i + 1];            \
                if (sqrt((a - b) * (a - b) + (e - f) * (e - f)) < INFINITY) continue;             \
                int kinds[5] = {NANS(a, e), NANS(b, f), INFS(a, e), INFS(b, f),                   \
                                a == b && e == f};                                                \
                if (odd_element(found, rules, kinds, place + i)) buffer.off[i] = wrong = 1;       \
            }                                                                                     \
            finish(found, rules, &buffer, place, count, wrong);                                   \
        }                                                                                         \
    }

/* Whole numbers, exactly. uint64 is shifted so that its order is that of int64. */
#define WHOLE(TYPE, FLIP, SHIFT)                                                                  \
    void add(const TYPE *r, const TYPE *t, int64_t size, const Rules *rules,                      \
                    Found *found) {                                                               \
        Buffer buffer;                                                                            \
        for (int64_t at = 0; at < size; at += BLOCK, r += BLOCK, t += BLOCK) {                    \
            int64_t count = size - at < BLOCK ? size - at : BLOCK;                                \
            ADD_BLOCK(int64_t x = (int64_t)r[i] ^ FLIP; int64_t y = (int64_t)t[i] ^ FLIP;         \
                      double a = (double)x + SHIFT; double b = (double)y + SHIFT;                 \
                      uint64_t u = 0; double d = (double)DISTANCE(x, y); double m = fabs(a);      \
                      int64_t ok = 1;, x != y, DOT)                                               \
            finish(found, rules, &buffer, rules->base + at, count, mismatched > 0);               \
        }                                                                                         \
    }

/* One kind of number in a library: INSTANCE is a use of one of the three macros. */
INSTANCE
