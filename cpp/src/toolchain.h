// The machine's C++ compiler: which one, with which flags, and building a shared library with it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mini {

struct Toolchain {
  std::string path;
  std::string version;  // what it says of itself, and the processor it compiles for
  std::vector<std::string> flags;
  bool msvc = false;
};

// `cxx` and `flags` may be empty: the first compiler that works, with the usual flags. Throws
// BuildError. What was found is remembered for the life of the process.
Toolchain find_toolchain(const std::string& cxx, const std::string& flags);
// Throws BuildError with the compiler's last lines.
void build_library(const Toolchain& toolchain, const std::filesystem::path& source,
                   const std::filesystem::path& library, double seconds = 120);

}  // namespace mini
