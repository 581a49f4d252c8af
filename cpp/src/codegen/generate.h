// From a program to the C++ source of a shared library.
#pragma once

#include <string>
#include <vector>

#include "../program.h"

namespace mini {

struct SourceOptions {
  int threads = 0;  // for generated loops; 0: as many as OpenMP says
};

// One exported function a program, `int32_t mini_function_0(in, out, work)`: it returns 0, or n + 1
// where node %n found an index that points outside.
std::string generate_source(const std::vector<const Program*>& programs,
                            const SourceOptions& options);
std::string entry_name(size_t place);

}  // namespace mini
