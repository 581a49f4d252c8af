// The text of kernel_math.h, which generated code carries with it.
#pragma once

#include <string>

namespace mini {

const std::string& kernel_math_source();

}  // namespace mini
