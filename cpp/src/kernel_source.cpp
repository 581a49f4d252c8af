#include "kernel_source.h"

#include <string_view>

namespace mini {

const std::string& kernel_math_source() {
  static const std::string whole = [] {
    // Written by cmake/embed.cmake.
    constexpr std::string_view pieces[] = {
#include "kernel_math.inc"
    };
    std::string text;
    for (std::string_view piece : pieces) text += piece;
    return text;
  }();
  return whole;
}

}  // namespace mini
