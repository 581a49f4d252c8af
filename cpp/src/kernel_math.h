// What every pointwise operator of ops.def computes, under the operator's name. The interpreter
// calls these functions and their text is pasted in front of generated code.
//
// Two wishes shape the file. Loops over these functions must become vector instructions: so there
// are no branches and, for f32, no calls. And PyTorch's meaning of NaN, infinity and -0.0 must
// hold: so nothing here may be built with -ffast-math. f64 calls the C library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace mini::kernel {

// ---- Pieces ------------------------------------------------------------------------------------

// a * b + c, rounded once where the machine can.
inline float madd(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
inline double madd(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

// c0 + c1 x + c2 x^2 + ..
template <class T>
inline T polynomial(T, T c0) {
  return c0;
}
template <class T, class... Rest>
inline T polynomial(T x, T c0, Rest... rest) {
  return madd(polynomial(x, rest...), x, c0);
}

// 2^k for -127 < k < 128. Any other k gives some number, but does no harm.
inline float power_of_two(uint32_t k) { return std::bit_cast<float>((k + 127u) << 23); }

// x = k ln 2 + r with a small r. Adding 1.5 * 2^23 leaves k in the low bits of the sum.
struct Reduced {
  uint32_t k;
  float r;
};
inline Reduced reduce_by_ln2(float x) {
  constexpr float shift = 12582912.f;
  const float shifted = madd(x, 1.44269504f, shift);
  const float k = shifted - shift;
  const float r = madd(k, -1.42860677e-6f, madd(k, -0.693145752f, x));
  return {std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(shift), r};
}
// e^r - 1 for |r| <= ln(2) / 2.
inline float expm1_near_zero(float r) {
  const float p = polynomial(r, 0.5f, 0.166666667f, 0.0416664650f, 0.00833331093f, 0.00139336410f,
                             0.000198909809f);
  return madd(r * r, p, r);
}

// ln x for a positive x that is normal: with room to spare for the needs of f32.
inline double log_wide(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  // Bits of sqrt(1/2): m is in [sqrt(1/2), sqrt(2)).
  const uint64_t above = bits - 0x3fe6a09e667f3bcdu;
  const double k = static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(above) >> 52));
  const double m = std::bit_cast<double>(bits - (above & 0xfff0000000000000u));
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  const double p = polynomial(z, 1.0, 0.333333333333, 0.200000000312, 0.142857079557,
                              0.111117212672, 0.0906083461548, 0.0842046722372);
  return madd(k, 0.69314718055994531, 2.0 * s * p);
}
// ln x as f32 sees it, for all x.
inline double log_all(double x) {
  const double inf = std::numeric_limits<double>::infinity();
  const double y = x < inf ? log_wide(x) : x;  // and NaN stays
  const double low = x == 0.0 ? -inf : std::numeric_limits<double>::quiet_NaN();
  return x <= 0.0 ? low : y;
}
// 2^y for |y| < 1000.
inline double exp2_wide(double y) {
  constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = y + shift;
  const double f = y - (shifted - shift);
  const uint64_t k = std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(shift);
  const double p =
      polynomial(f, 0.99999999996, 0.693147180557, 0.240226512135, 0.0555041090633,
                 0.00961802561332, 0.00133334784737, 0.000154697292141, 1.53037007114e-5);
  return p * std::bit_cast<double>((k + 1023u) << 52);
}

// sin(|x| + quarters * pi / 2). The turn |x| * 2/pi is taken in whole numbers of 2^-62 quarters:
// as 64 bits wrap around, whole turns fall away by themselves, so sin and cos of 1e38 are as good
// as those of 1. Which bits of 2/pi matter depends on the exponent of x.
inline double sine_of_size(float x, uint64_t quarters) {
  const uint32_t all = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  const uint32_t exponent = all >> 23;
  const uint64_t mantissa = (all & 0x7fffffu) | 0x800000u;
  // The first bit of 2/pi that counts, after 64 zeros; smaller x take the way of `small` below.
  const uint64_t from = (exponent < 126u ? 126u : exponent) - 88u;
  const uint64_t word = from >> 6;
  const uint64_t shift = from & 63u;
  constexpr uint64_t w0 = 0xa2f9836e4e441529u, w1 = 0xfc2757d1f534ddc0u;  // 2/pi
  constexpr uint64_t w2 = 0xdb6295993c439041u, w3 = 0xfe5163abdebbc561u;
  const uint64_t a = word == 0u ? 0u : word == 1u ? w0 : w1;
  const uint64_t b = word == 0u ? w0 : word == 1u ? w1 : w2;
  const uint64_t c = word == 0u ? w1 : word == 1u ? w2 : w3;
  const uint64_t high = (a << shift) | ((b >> 1) >> (63u - shift));
  const uint64_t low = (b << shift) | ((c >> 1) >> (63u - shift));
  const uint64_t turn = high * mantissa + (((low >> 32) * mantissa) >> 32);
  const uint64_t quarter = (turn + (uint64_t(1) << 61)) >> 62;
  const uint64_t rest = turn - (quarter << 62);
  // A 64-bit whole number to f64, in two halves: that all machines can do in vectors.
  const double upper = static_cast<double>(static_cast<int32_t>(rest >> 32));
  const double lower = std::bit_cast<double>((rest & 0xffffffffu) | 0x4330000000000000u) - 0x1p52;
  const double size = static_cast<double>(std::bit_cast<float>(all));
  const double r = size < 0.75 ? size : (upper * 0x1p32 + lower) * (1.5707963267948966 * 0x1p-62);
  const uint64_t q = (size < 0.75 ? uint64_t(0) : quarter) + quarters;
  const double z = r * r;
  const double sine = r * polynomial(z, 0.999999999996, -0.166666666316, 0.00833332878246,
                                     -0.000198392022122, 2.71734568411e-6);
  const double cosine = polynomial(z, 0.999999999952, -0.499999996149, 0.0416666166925,
                                   -0.00138866179996, 2.43798312512e-5);
  const double value = (q & 1u) != 0u ? cosine : sine;
  const double result = (q & 2u) != 0u ? -value : value;
  return size < std::numeric_limits<double>::infinity() ? result
                                                        : std::numeric_limits<double>::quiet_NaN();
}

inline int64_t wrap(uint64_t x) { return static_cast<int64_t>(x); }
inline uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }

// ---- One input ---------------------------------------------------------------------------------

inline float neg(float x) { return -x; }
inline double neg(double x) { return -x; }
inline int64_t neg(int64_t x) { return wrap(0u - bits(x)); }

inline float abs(float x) { return std::fabs(x); }
inline double abs(double x) { return std::fabs(x); }
inline int64_t abs(int64_t x) { return x < 0 ? neg(x) : x; }

// 0 for NaN.
template <class T>
inline T sign(T x) {
  return static_cast<T>(static_cast<int>(T(0) < x) - static_cast<int>(x < T(0)));
}
template <class T>
inline T relu(T x) {
  return x < T(0) ? T(0) : x;
}

inline float exp(float x) {
  const float high = x > 89.f ? 89.f : x;
  const Reduced reduced = reduce_by_ln2(high < -104.f ? -104.f : high);
  // In two steps: 2^k alone may be out of range where the result is not.
  const uint32_t most = reduced.k + (x < 0.f ? 32u : 0u - 1u);
  const float rest = x < 0.f ? 0x1p-32f : 2.f;
  const float p = polynomial(reduced.r, 1.f, 1.f, 0.5f, 0.166665734f, 0.0416665501f,
                             0.00836377387f, 0.00139269266f);
  return p * power_of_two(most) * rest;
}
inline double exp(double x) { return std::exp(x); }

inline float expm1(float x) {
  const float high = x > 89.f ? 89.f : x;
  const Reduced reduced = reduce_by_ln2(high < -18.f ? -18.f : high);
  const float half = power_of_two(reduced.k - 1u);
  const float y = 2.f * madd(half, expm1_near_zero(reduced.r), half - 0.5f);
  return x == 0.f ? x : y;  // -0.0 stays
}
inline double expm1(double x) { return std::expm1(x); }

inline float log(float x) { return static_cast<float>(log_all(static_cast<double>(x))); }
inline double log(double x) { return std::log(x); }

inline float log1p(float x) {
  const double wide = static_cast<double>(x);
  const double series = wide * polynomial(wide, 1.0, -0.5, 0.33333333333333333, -0.25);
  const double y = std::fabs(wide) < 1e-3 ? series : log_all(1.0 + wide);
  return static_cast<float>(y);
}
inline double log1p(double x) { return std::log1p(x); }

inline float log2(float x) {
  return static_cast<float>(log_all(static_cast<double>(x)) * 1.4426950408889634);
}
inline double log2(double x) { return std::log2(x); }

template <class T>
inline T sqrt(T x) {
  return std::sqrt(x);
}
template <class T>
inline T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}
template <class T>
inline T reciprocal(T x) {
  return T(1) / x;
}

inline float sin(float x) {
  const float y = static_cast<float>(sine_of_size(x, 0u));
  const uint32_t sign = std::bit_cast<uint32_t>(x) & 0x80000000u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(y) ^ sign);
}
inline double sin(double x) { return std::sin(x); }
inline float cos(float x) { return static_cast<float>(sine_of_size(x, 1u)); }
inline double cos(double x) { return std::cos(x); }

inline float tanh(float x) {
  const float size = std::fabs(x);
  const float e = expm1(2.f * (size > 10.f ? 10.f : size));
  return std::copysign(e / (e + 2.f), x);
}
inline double tanh(double x) { return std::tanh(x); }

// erf(x) = 1 - e^(-x R(x)): the logarithm of 1 - erf is tame enough for one polynomial R.
inline float erf(float x) {
  const float size = std::fabs(x);
  const float a = size > 4.f ? 4.f : size;
  const float r = polynomial(a, 1.12837917f, 0.636619567f, 0.102773361f, -0.0191213860f,
                             -0.000258150395f, 0.00182303072f, -0.000771879746f, 0.000188092176f,
                             -2.87435818e-5f, 2.55876506e-6f, -1.01397727e-7f);
  return std::copysign(expm1(-a * r), x);
}
inline double erf(double x) { return std::erf(x); }

template <class T>
inline T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}
template <class T>
inline T floor(T x) {
  return std::floor(x);
}
template <class T>
inline T ceil(T x) {
  return std::ceil(x);
}
template <class T>
inline T trunc(T x) {
  return std::trunc(x);
}
template <class T>
inline T round(T x) {
  return std::nearbyint(x);
}
template <class T>
inline bool is_nan(T x) {
  return x != x;
}
template <class T>
inline bool is_inf(T x) {
  return std::fabs(x) == std::numeric_limits<T>::infinity();
}
template <class T>
inline bool logical_not(T x) {
  return x == T(0);
}
inline int64_t bitwise_not(int64_t x) { return ~x; }
inline bool bitwise_not(bool x) { return !x; }

// ---- Two inputs --------------------------------------------------------------------------------

inline float add(float a, float b) { return a + b; }
inline double add(double a, double b) { return a + b; }
inline int64_t add(int64_t a, int64_t b) { return wrap(bits(a) + bits(b)); }
inline float sub(float a, float b) { return a - b; }
inline double sub(double a, double b) { return a - b; }
inline int64_t sub(int64_t a, int64_t b) { return wrap(bits(a) - bits(b)); }
inline float mul(float a, float b) { return a * b; }
inline double mul(double a, double b) { return a * b; }
inline int64_t mul(int64_t a, int64_t b) { return wrap(bits(a) * bits(b)); }
template <class T>
inline T div(T a, T b) {
  return a / b;
}

inline int64_t trunc_div(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? neg(a) : a / b;
}
inline int64_t fmod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
inline int64_t floor_div(int64_t a, int64_t b) {
  const int64_t rest = fmod(a, b);
  return trunc_div(a, b) - static_cast<int64_t>(rest != 0 && (rest < 0) != (b < 0));
}
inline int64_t remainder(int64_t a, int64_t b) {
  const int64_t rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline float trunc_div(float a, float b) { return std::trunc(a / b); }
inline double trunc_div(double a, double b) { return std::trunc(a / b); }
inline float fmod(float a, float b) { return std::fmod(a, b); }
inline double fmod(double a, double b) { return std::fmod(a, b); }
template <class T>
inline T remainder(T a, T b) {
  const T rest = std::fmod(a, b);
  return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}
// As Python's: a / b may round up to a whole number that a does not reach, so the rest decides.
template <class T>
inline T floor_div(T a, T b) {
  const T rest = std::fmod(a, b);
  const T down = rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(1) : T(0);
  const T quotient = (a - rest) / b - down;
  const T whole = std::floor(quotient);
  const T nearest = quotient - whole > T(0.5) ? whole + T(1) : whole;
  const T result = quotient == T(0) ? std::copysign(T(0), a / b) : nearest;
  return b == T(0) ? a / b : result;
}

inline int64_t pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}
// Choices between numbers only, never between truths: those the vectorizer understands.
inline float pow(float base, float exponent) {
  const double a = static_cast<double>(base);
  const double b = static_cast<double>(exponent);
  const double inf = std::numeric_limits<double>::infinity();
  const double size = std::fabs(a);
  const double y = size == 1.0 ? 0.0 : b * log_all(size) * 1.4426950408889634;
  const double high = y > 200.0 ? 200.0 : y;
  const double value = exp2_wide(high < -200.0 ? -200.0 : high);
  // 1 for odd whole exponents only.
  const double rest = b - 2.0 * std::floor(b * 0.5);
  const double flipped = rest == 1.0 ? -value : value;
  const double below = std::copysign(1.0, a) < 0.0 ? flipped : value;
  const double root = std::floor(b) == b ? below : std::numeric_limits<double>::quiet_NaN();
  const double finite = a < 0.0 ? root : below;
  const double known = a == -inf ? below : finite;
  const double any = b == b ? known : b;
  const double one = a == 1.0 ? 1.0 : any;
  return static_cast<float>(b == 0.0 ? 1.0 : one);
}
inline double pow(double base, double exponent) { return std::pow(base, exponent); }
template <class T>
inline T atan2(T a, T b) {
  return std::atan2(a, b);
}

template <class T>
inline T maximum(T a, T b) {
  const T larger = a > b ? a : b;
  return a != a ? a : larger;
}
template <class T>
inline T minimum(T a, T b) {
  const T smaller = a < b ? a : b;
  return a != a ? a : smaller;
}
template <class T>
inline bool eq(T a, T b) {
  return a == b;
}
template <class T>
inline bool ne(T a, T b) {
  return a != b;
}
template <class T>
inline bool lt(T a, T b) {
  return a < b;
}
template <class T>
inline bool le(T a, T b) {
  return a <= b;
}
template <class T>
inline bool gt(T a, T b) {
  return a > b;
}
template <class T>
inline bool ge(T a, T b) {
  return a >= b;
}
template <class T>
inline bool logical_and(T a, T b) {
  return (a != T(0)) & (b != T(0));
}
template <class T>
inline bool logical_or(T a, T b) {
  return (a != T(0)) | (b != T(0));
}
template <class T>
inline bool logical_xor(T a, T b) {
  return (a != T(0)) != (b != T(0));
}
inline int64_t bitwise_and(int64_t a, int64_t b) { return a & b; }
inline bool bitwise_and(bool a, bool b) { return a & b; }
inline int64_t bitwise_or(int64_t a, int64_t b) { return a | b; }
inline bool bitwise_or(bool a, bool b) { return a | b; }
inline int64_t bitwise_xor(int64_t a, int64_t b) { return a ^ b; }
inline bool bitwise_xor(bool a, bool b) { return a != b; }

// ---- The others --------------------------------------------------------------------------------

template <class T>
inline T where(bool condition, T a, T b) {
  return condition ? a : b;
}

// What an i64 cannot hold becomes the smallest one, as on x86.
template <class To, class From>
inline To cast(From x) {
  if constexpr (std::numeric_limits<From>::is_iec559 && !std::numeric_limits<To>::is_iec559 &&
                sizeof(To) == 8) {
    const bool fits = x >= From(-9223372036854775808.0) && x < From(9223372036854775808.0);
    return fits ? static_cast<To>(x) : std::numeric_limits<To>::min();
  } else if constexpr (sizeof(To) == 1) {
    return x != From(0);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace mini::kernel
