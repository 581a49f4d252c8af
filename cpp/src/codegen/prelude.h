// What generated code finds in front of it, beside kernel_math.h.
#pragma once

#include <string>

namespace mini {

// Threads and memory; folds of a piece of a row; matrix products.
std::string prelude_basics(int threads);
std::string prelude_folds();
std::string prelude_matmul();

}  // namespace mini
