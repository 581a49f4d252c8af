// Comparing tensors.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "tensor.h"

namespace mini::test {

// NaN is NaN, whatever its bits; 0.0 and -0.0 differ.
inline bool same_number(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

inline std::string shown(const Tensor& tensor) {
  std::string text = to_string(tensor.type()) + " {";
  const int64_t count = tensor.type().elements();
  for (int64_t i = 0; i < count && i < 24; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(tensor.at(i));
  return text + (count > 24 ? ", ..}" : "}");
}

inline void check_values(const Tensor& found, const std::vector<double>& expected,
                         const Where& where = Where::current()) {
  bool same = found.type().elements() == static_cast<int64_t>(expected.size());
  for (size_t i = 0; same && i < expected.size(); ++i) {
    same = same_number(found.at(static_cast<int64_t>(i)), expected[i]);
  }
  check(same, "found " + shown(found), where);
}

// How far apart, in parts of the larger one; 0 for the same numbers, infinity where only one is NaN
// or infinite. Differences below `ground` do not count.
inline double distance(const Tensor& a, const Tensor& b, double ground = 0) {
  if (a.type() != b.type()) return INFINITY;
  double worst = 0;
  for (int64_t i = 0; i < a.type().elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (same_number(x, y) || std::fabs(x - y) <= ground) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    const double size = std::fmax(std::fabs(x), std::fabs(y));
    worst = std::fmax(worst, size == 0 ? INFINITY : std::fabs(x - y) / size);
  }
  return worst;
}

}  // namespace mini::test
