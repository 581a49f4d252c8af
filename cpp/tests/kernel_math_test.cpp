// How far the f32 functions of kernel_math.h are from the truth (long double), in units of the
// last place, over random numbers of all sizes and over the special ones.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "kernel_math.h"

namespace k = mini::kernel;
using mini::test::check;
using Wide = long double;

namespace {

std::vector<float> sample(float low, float high, int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  std::uniform_real_distribution<float> uniform(low, high);
  for (int i = 0; i < count; ++i) values.push_back(uniform(random));
  // Every exponent, both signs: bits at random, denormals, NaN and infinity among them.
  for (int i = 0; i < count; ++i) values.push_back(std::bit_cast<float>(uint32_t(random())));
  for (float special : {0.f, 1.f, 0.5f, 2.f, 3.f, 0x1p-149f, 0x1p-126f, 1e-10f, 88.7f, 89.f, 103.9f,
                        104.f, 0.75f, 1e5f, 3.4e38f, 0x1p24f, 0x1p25f,
                        std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()}) {
    values.push_back(special);
    values.push_back(-special);
  }
  return values;
}

double ulps(float got, Wide exact) {
  const float want = static_cast<float>(exact);
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::isnan(got)) return 1e9;
  if (std::isinf(want) || std::isinf(got)) return want == got ? 0 : 1e9;
  if (want == 0 && got == 0) return std::signbit(want) == std::signbit(got) ? 0 : 1e9;
  const Wide unit = std::fmax(std::ldexp(Wide(1), std::ilogb(want) - 23), Wide(0x1p-149f));
  return static_cast<double>(std::fabs(Wide(got) - exact) / unit);
}

template <class Fast, class Exact>
void measure(const char* name, double limit, float low, float high, Fast fast, Exact exact) {
  double worst = 0;
  float at = 0;
  for (float x : sample(low, high, 200000, 7)) {
    const double error = ulps(fast(x), exact(Wide(x)));
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  std::printf("%-8s %6.3f ulp at %.9g\n", name, worst, double(at));
  check(worst <= limit, name);
}

void one_input() {
  measure("exp", 1.5, -90, 90, [](float x) { return k::exp(x); }, [](Wide x) { return std::exp(x); });
  measure("expm1", 2.5, -3, 3, [](float x) { return k::expm1(x); }, [](Wide x) { return std::expm1(x); });
  measure("log", 1.0, 0, 10, [](float x) { return k::log(x); }, [](Wide x) { return std::log(x); });
  measure("log1p", 1.0, -1, 3, [](float x) { return k::log1p(x); }, [](Wide x) { return std::log1p(x); });
  measure("log2", 1.0, 0, 10, [](float x) { return k::log2(x); }, [](Wide x) { return std::log2(x); });
  measure("sin", 1.0, -20, 20, [](float x) { return k::sin(x); }, [](Wide x) { return std::sin(x); });
  measure("cos", 1.0, -20, 20, [](float x) { return k::cos(x); }, [](Wide x) { return std::cos(x); });
  measure("tanh", 4.0, -5, 5, [](float x) { return k::tanh(x); }, [](Wide x) { return std::tanh(x); });
  measure("erf", 4.0, -4, 4, [](float x) { return k::erf(x); }, [](Wide x) { return std::erf(x); });
  measure("rsqrt", 1.5, 0, 4, [](float x) { return k::rsqrt(x); }, [](Wide x) { return 1 / std::sqrt(x); });
  // As PyTorch's, 1 / (1 + e^-x) becomes 0 where e^-x leaves f32.
  measure("sigmoid", 2.5, -80, 80,
          [](float x) { return x < -87.f ? 0.f : k::sigmoid(x); },
          [](Wide x) { return x < -87.f ? Wide(0) : 1 / (1 + std::exp(-x)); });
}

void powers() {
  double worst = 0;
  auto compare = [&](float a, float b) {
    const double error = ulps(k::pow(a, b), std::pow(Wide(a), Wide(b)));
    if (error > 2) std::printf("pow(%g, %g) = %g\n", double(a), double(b), double(k::pow(a, b)));
    worst = std::fmax(worst, error);
  };
  const auto bases = sample(-4, 4, 50000, 1);
  const auto exponents = sample(-10, 10, 50000, 2);
  for (size_t i = 0; i < bases.size(); ++i) compare(bases[i], exponents[i]);
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {0.f, -0.f, 1.f, -1.f, 2.f, -2.f, 3.f, -3.f, 0.5f, -0.5f, inf, -inf, nan,
                           1e30f, 0x1p24f, 16777215.f, -7.f, 0x1p-149f};
  for (float a : special)
    for (float b : special) compare(a, b);
  std::printf("pow      %6.3f ulp\n", worst);
  check(worst <= 1.0, "worst <= 1.0");
}

void integers() {
  const int64_t least = std::numeric_limits<int64_t>::min();
  check(k::floor_div(int64_t(-7), int64_t(2)) == -4, "k::floor_div(int64_t(-7), int64_t(2)) == -4");
  check(k::floor_div(int64_t(7), int64_t(-2)) == -4, "k::floor_div(int64_t(7), int64_t(-2)) == -4");
  check(k::trunc_div(int64_t(-7), int64_t(2)) == -3, "k::trunc_div(int64_t(-7), int64_t(2)) == -3");
  check(k::remainder(int64_t(-7), int64_t(3)) == 2, "k::remainder(int64_t(-7), int64_t(3)) == 2");
  check(k::fmod(int64_t(-7), int64_t(3)) == -1, "k::fmod(int64_t(-7), int64_t(3)) == -1");
  check(k::floor_div(least, int64_t(-1)) == least, "k::floor_div(least, int64_t(-1)) == least");
  check(k::floor_div(int64_t(5), int64_t(0)) == 0, "k::floor_div(int64_t(5), int64_t(0)) == 0");
  check(k::remainder(int64_t(5), int64_t(0)) == 0, "k::remainder(int64_t(5), int64_t(0)) == 0");
  check(k::abs(least) == least, "k::abs(least) == least");
  check(k::pow(int64_t(3), int64_t(4)) == 81, "k::pow(int64_t(3), int64_t(4)) == 81");
  check(k::pow(int64_t(2), int64_t(-1)) == 0, "k::pow(int64_t(2), int64_t(-1)) == 0");
  check(k::pow(int64_t(-1), int64_t(-3)) == -1, "k::pow(int64_t(-1), int64_t(-3)) == -1");
  check(k::cast<int64_t>(std::nan("")) == least, "k::cast<int64_t>(std::nan(\"\")) == least");
  check(k::cast<int64_t>(1e30f) == least, "k::cast<int64_t>(1e30f) == least");
  check(k::cast<int64_t>(-2.9) == -2, "k::cast<int64_t>(-2.9) == -2");
  check(k::cast<bool>(0.5f), "k::cast<bool>(0.5f)");
  check(!k::cast<bool>(-0.f), "!k::cast<bool>(-0.f)");
}

void signs_and_order() {
  const float nan = std::nanf("");
  check(std::isnan(k::maximum(nan, 1.f)) && std::isnan(k::maximum(1.f, nan)), "std::isnan(k::maximum(nan, 1.f)) && std::isnan(k::maximum(1.f, nan))");
  check(std::isnan(k::minimum(nan, 1.f)) && std::isnan(k::minimum(1.f, nan)), "std::isnan(k::minimum(nan, 1.f)) && std::isnan(k::minimum(1.f, nan))");
  check(std::isnan(k::relu(nan)) && k::relu(-1.f) == 0 && k::relu(int64_t(-2)) == 0, "std::isnan(k::relu(nan)) && k::relu(-1.f) == 0 && k::relu(int64_t(-2)) == 0");
  check(k::sign(nan) == 0 && k::sign(-3.0) == -1, "k::sign(nan) == 0 && k::sign(-3.0) == -1");
  check(k::round(2.5f) == 2 && k::round(3.5) == 4, "k::round(2.5f) == 2 && k::round(3.5) == 4");
  check(k::remainder(-7.f, 3.f) == 2 && k::fmod(-7.f, 3.f) == -1, "k::remainder(-7.f, 3.f) == 2 && k::fmod(-7.f, 3.f) == -1");
  check(k::floor_div(-7.f, 2.f) == -4, "k::floor_div(-7.f, 2.f) == -4");
  check(std::isinf(k::floor_div(1.f, 0.f)), "std::isinf(k::floor_div(1.f, 0.f))");
  check(k::where(true, 1, 2) == 1, "k::where(true, 1, 2) == 1");
}

}  // namespace

int main() {
  one_input();
  powers();
  integers();
  signs_and_order();
  return mini::test::finish();
}
