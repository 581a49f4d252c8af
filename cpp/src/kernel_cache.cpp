#include "kernel_cache.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>
#include <sstream>

#include "c_api.h"
#include "error.h"

#ifndef _WIN32
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace mini {
namespace {

namespace fs = std::filesystem;

uint64_t fnv1a(const std::string& text, uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash ^ (hash >> 29);
}

std::string random_name() {
  std::random_device random;
  return std::to_string(random()) + std::to_string(random());
}

// Removed when the process ends.
struct ProcessFolder {
  fs::path path = fs::temp_directory_path() / ("mini-" + random_name());
  ~ProcessFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// Only its owner may write where libraries are loaded from.
fs::path private_folder(const std::string& asked) {
  static ProcessFolder of_process;
  const fs::path folder = asked.empty() ? of_process.path : fs::path(asked) / "kernels";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw BuildError("the folder for compiled kernels cannot be made: " + folder.string() + ": " +
                     error.message());
#ifndef _WIN32
  struct stat info;
  if (stat(folder.c_str(), &info) != 0 || info.st_uid != geteuid())
    throw BuildError("the folder for compiled kernels belongs to somebody else: " + folder.string());
  if ((info.st_mode & 077) != 0) fs::permissions(folder, fs::perms::owner_all, error);
#endif
  return folder;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw BuildError("cannot write " + path.string() + ": is the disk full or the folder read-only?");
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Entry {
  fs::path folder;
  fs::path source() const { return folder / "source.cpp"; }
  fs::path library() const {
#ifdef _WIN32
    return folder / "kernels.dll";
#else
    return folder / "kernels.so";
#endif
  }
  fs::path checksum() const { return folder / "checksum"; }
};

// Nothing where it is missing, cut short, or made of something else. The checksum comes first:
// loading half a library can crash.
std::shared_ptr<Library> load(const Entry& entry, const std::string& hash) {
  std::error_code error;
  if (!fs::exists(entry.library(), error)) return nullptr;
  if (hash_of(read_file(entry.library())) != read_file(entry.checksum())) return nullptr;
  try {
    auto library = std::make_shared<Library>(entry.library());
    const void* const identity = library->symbol("mini_identity");
    if (identity && hash == static_cast<const char*>(identity)) return library;
  } catch (const BuildError&) {
    // Built again below; if that does not load either, its error is the one to show.
  }
  return nullptr;
}

class TemporaryEntry {
 public:
  explicit TemporaryEntry(const fs::path& parent) {
    entry.folder = parent / ("building-" + random_name());
    std::error_code error;
    fs::create_directory(entry.folder, error);
    if (error)
      throw BuildError("cannot write to the folder for compiled kernels: " + parent.string() + ": " +
                       error.message());
  }
  ~TemporaryEntry() {
    std::error_code ignored;
    fs::remove_all(entry.folder, ignored);
  }
  Entry entry;
};

// Moves it to its place. Where something unusable is in the way, that is removed.
void publish(const Entry& from, const Entry& to, const std::string& hash) {
  std::error_code error;
  fs::rename(from.folder, to.folder, error);
  if (!error || load(to, hash)) return;
  fs::remove_all(to.folder, error);
  fs::rename(from.folder, to.folder, error);
  if (error && !load(to, hash))
    throw BuildError("the compiled library cannot be kept in " + to.folder.string() + ": " +
                     error.message());
}

}  // namespace

std::string hash_of(const std::string& text) {
  std::ostringstream digits;
  digits << std::hex << fnv1a(text, 0xcbf29ce484222325u) << '-'
         << fnv1a(text, 0x9ae16a3b2f90404fu);
  return digits.str();
}

CachedLibrary load_or_build(const std::string& source, const Toolchain& toolchain,
                            const std::string& folder) {
  std::string key = std::to_string(mini_version()) + "\n" + toolchain.path + "\n" +
                    toolchain.version + "\n";
  for (const std::string& flag : toolchain.flags) key += flag + "\n";
  const std::string hash = hash_of(key + source);
  const fs::path parent = private_folder(folder);
  const Entry entry{parent / hash};
  CachedLibrary result{nullptr, entry.source(), entry.library(), true, 0};
  result.library = load(entry, hash);
  if (result.library) return result;

  const TemporaryEntry temporary(parent);
  const std::string identity = "MINI_EXPORT const char mini_identity[] = \"" + hash + "\";\n";
  write_file(temporary.entry.source(), source + "\n" + identity);
  const auto start = std::chrono::steady_clock::now();
  build_library(toolchain, temporary.entry.source(), temporary.entry.library());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  write_file(temporary.entry.checksum(), hash_of(read_file(temporary.entry.library())));
  publish(temporary.entry, entry, hash);
  result.cached = false;
  result.library = load(entry, hash);
  if (!result.library) result.library = std::make_shared<Library>(entry.library());
  return result;
}

}  // namespace mini
