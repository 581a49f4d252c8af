// Compiled kernels by what they were compiled from, on disk. One folder a library: its source, the
// library and its checksum. A folder is built under another name and then renamed, so that nobody
// sees half of it, and of two processes that build the same one simply comes second.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "library.h"
#include "toolchain.h"

namespace mini {

struct CachedLibrary {
  std::shared_ptr<Library> library;
  std::filesystem::path source_path;
  std::filesystem::path library_path;
  bool cached = false;  // it was there already
  double seconds = 0;   // that the compiler took
};

// `folder` may be empty: one for this process, removed at its end. Throws BuildError.
CachedLibrary load_or_build(const std::string& source, const Toolchain& toolchain,
                            const std::string& folder);

// 128 bits as hexadecimal digits.
std::string hash_of(const std::string& text);

}  // namespace mini
