#include "toolchain.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>

#include "error.h"
#include "process.h"

namespace mini {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

std::string last_lines(const std::string& text, size_t count) {
  size_t from = text.find_last_not_of('\n');
  if (from == std::string::npos) return "it printed nothing";
  const size_t end = from + 1;
  for (; count > 0 && from != std::string::npos && from > 0; --count) from = text.rfind('\n', from - 1);
  const size_t begin = from == std::string::npos || from == 0 ? 0 : from + 1;
  return text.substr(begin, end - begin);
}

// What -march=native depends on: a library for another processor would crash.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string all;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    if (line.starts_with("flags") || line.starts_with("Features") || line.starts_with("model name"))
      all += line;
  }
#if defined(__aarch64__)
  return "arm64 " + all;
#else
  return all;
#endif
}

bool is_msvc(const std::string& path) {
  const std::string stem = fs::path(path).stem().string();
  return stem == "cl" || stem == "CL";
}

// A folder that is removed with everything in it.
struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    path = fs::temp_directory_path() / ("mini-probe-" + std::to_string(std::random_device{}()));
    fs::create_directory(path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::vector<std::string> command(const Toolchain& toolchain, const fs::path& source,
                                 const fs::path& library) {
  std::vector<std::string> arguments = {toolchain.path};
  arguments.insert(arguments.end(), toolchain.flags.begin(), toolchain.flags.end());
  if (toolchain.msvc) {
    arguments.insert(arguments.end(), {"/LD", source.string(), "/Fe:" + library.string(),
                                       "/Fo:" + library.string() + ".obj"});
  } else {
    arguments.insert(arguments.end(), {"-fPIC", "-shared", "-x", "c++", source.string(), "-o",
                                       library.string()});
  }
  return arguments;
}

bool accepts(const Toolchain& toolchain) {
  try {
    TemporaryFolder folder;
    const fs::path source = folder.path / "probe.cpp";
    std::ofstream(source) << "#include <cmath>\nint probe() { return 0; }\n";
    const auto result = run_process(command(toolchain, source, folder.path / "probe.bin"), 60);
    return result.started && !result.timed_out && result.status == 0;
  } catch (const fs::filesystem_error& error) {
    throw BuildError(std::string("no temporary folder to try the compiler in: ") + error.what());
  }
}

// Not -ffast-math: NaN, infinity and -0.0 keep their meaning. No contraction: a * b - a * b is 0.
const std::vector<std::string> needed = {"-std=c++20", "-O3", "-fvisibility=hidden",
                                         "-ffp-contract=off", "-fno-math-errno",
                                         "-fno-trapping-math", "-w"};
// A libstdc++ that the compiler links statically must not mix with the process's own.
const std::string exclude_libraries = "-Wl,--exclude-libs,ALL";
// Left out where the compiler has them not: the code is then slower, and right.
// -fno-tree-pre and -fno-thread-jumps keep GCC from turning choices back into jumps, which are no vectors.
const std::vector<std::string> welcome = {"-march=native", "-mprefer-vector-width=512",
                                          "-fno-tree-pre", "-fno-thread-jumps", "-fopenmp",
                                          exclude_libraries};

void choose_flags(Toolchain& toolchain) {
  if (toolchain.msvc) {
    // Its OpenMP lacks collapse: loops run in one thread.
    toolchain.flags = {"/nologo", "/std:c++20", "/O2", "/EHsc"};
    return;
  }
  toolchain.flags = needed;
  toolchain.flags.insert(toolchain.flags.end(), welcome.begin(), welcome.end());
  if (accepts(toolchain)) return;
  toolchain.flags = needed;
  if (!accepts(toolchain)) throw BuildError("the compiler " + toolchain.path + " cannot build a C++20 library");
  for (const std::string& flag : welcome) {
    toolchain.flags.push_back(flag);
    if (accepts(toolchain)) continue;
    toolchain.flags.pop_back();
    // Without threads, loops can still become vectors.
    if (flag != "-fopenmp") continue;
    toolchain.flags.push_back("-fopenmp-simd");
    if (!accepts(toolchain)) toolchain.flags.pop_back();
  }
}

// Nothing where it does not start.
std::string version_of(const std::string& path) {
  const auto result =
      is_msvc(path) ? run_process({path}, 20) : run_process({path, "--version"}, 20);
  if (!result.started || result.timed_out || (result.status != 0 && !is_msvc(path))) return "";
  return result.output.substr(0, result.output.find('\n'));
}

Toolchain find_path(const std::string& cxx) {
  std::vector<std::string> candidates;
  if (!cxx.empty()) {
    candidates = {cxx};
  } else {
    if (const char* from_environment = std::getenv("CXX")) candidates.push_back(from_environment);
    for (const char* name : {"c++", "g++", "clang++"}) candidates.push_back(name);
#ifdef _WIN32
    candidates.push_back("cl");
#endif
  }
  for (const std::string& path : candidates) {
    if (path.empty()) continue;
    const std::string version = version_of(path);
    if (!version.empty()) return {path, version + " | " + processor(), {}, is_msvc(path)};
  }
  if (!cxx.empty()) throw BuildError("the C++ compiler " + cxx + " does not run");
  throw BuildError("no C++ compiler: tried $CXX, c++, g++ and clang++; install one, such as g++");
}

}  // namespace

Toolchain find_toolchain(const std::string& cxx, const std::string& flags) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, Toolchain> known;
  const char* environment = cxx.empty() ? std::getenv("CXX") : nullptr;
  const std::pair key{cxx.empty() && environment ? environment : cxx, flags};
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  Toolchain toolchain = find_path(cxx);
  if (flags.empty()) {
    choose_flags(toolchain);
  } else {
    toolchain.flags = words(flags);
    const std::string standard = toolchain.msvc ? "/std:c++20" : "-std=c++20";
    toolchain.flags.insert(toolchain.flags.begin(), standard);
  }
  known[key] = toolchain;
  return toolchain;
}

void build_library(const Toolchain& toolchain, const fs::path& source, const fs::path& library,
                   double seconds) {
  const auto result = run_process(command(toolchain, source, library), seconds);
  if (!result.started)
    throw BuildError("the C++ compiler " + toolchain.path + " does not start: " + result.output);
  if (result.timed_out)
    throw BuildError("the C++ compiler " + toolchain.path + " took longer than " +
                     std::to_string(static_cast<int>(seconds)) + " s and was stopped");
  if (result.status != 0)
    throw BuildError("the C++ compiler " + toolchain.path + " failed (exit status " +
                     std::to_string(result.status) + "): " + last_lines(result.output, 5));
  if (!fs::exists(library))
    throw BuildError("the C++ compiler " + toolchain.path + " gave no library");
}

}  // namespace mini
