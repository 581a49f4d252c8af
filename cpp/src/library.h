// A shared library that is loaded while this lives.
#pragma once

#include <filesystem>
#include <string>

namespace mini {

class Library {
 public:
  // Throws BuildError.
  explicit Library(const std::filesystem::path& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // nullptr where it has no such symbol.
  void* symbol(const std::string& name) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace mini
