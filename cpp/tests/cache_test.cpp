// What can go wrong between source and loaded library: each has its sentence, nothing is left
// broken, and the interpreter takes over where it may.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "c_api.h"
#include "check.h"
#include "compiler.h"
#include "error.h"
#include "interpreter.h"
#include "process.h"

#ifndef _WIN32
#include <unistd.h>
#endif

namespace fs = std::filesystem;
using namespace mini;
using namespace mini::test;

namespace {

const char* const text = "mini 1\n%0 = input : f32[3]\n%1 = add %0 %0 : f32[3]\nreturn %1\n";

struct Folder {
  fs::path path = fs::temp_directory_path() / ("mini-cache-test-" + std::to_string(std::rand()));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string name() const { return path.string(); }
};

CompilerOptions options_for(const Folder& folder) {
  CompilerOptions options;
  options.cache = folder.name();
  options.fallback = false;
  options.flags = "-O0 -w";
  return options;
}

CompileInfo compile_and_run(const CompilerOptions& options, double scale = 2) {
  OptimizingCompiler compiler(options);
  auto function = compiler.compile(compiler.optimize(parse_graph(text)));
  std::vector<Tensor> outputs = {Tensor(TensorType{DType::Float32, {3}})};
  Tensor input(TensorType{DType::Float32, {3}});
  for (int i = 0; i < 3; ++i) input.data<float>()[i] = static_cast<float>(i + 1);
  function->run({input}, outputs);
  for (int i = 0; i < 3; ++i) check_equal(outputs[0].at(i), scale * (i + 1));
  return dynamic_cast<RunnableFunction&>(*function).info();
}

void found_again() {
  Folder folder;
  check(!compile_and_run(options_for(folder)).cached, "the first is compiled");
  check(compile_and_run(options_for(folder)).cached, "the second is found");
  CompilerOptions other = options_for(folder);
  other.flags = "-O1 -w";
  check(!compile_and_run(other).cached, "other flags are another library");
}

void damaged_libraries() {
  Folder folder;
  const fs::path library = compile_and_run(options_for(folder)).library_path;
  const auto size = fs::file_size(library);
  fs::resize_file(library, size / 2);
  check(!compile_and_run(options_for(folder)).cached, "half a library is built again");
  check(fs::file_size(library) == size, "and replaced");
  { std::ofstream(library) << "not a library"; }
  check(!compile_and_run(options_for(folder)).cached, "garbage is built again");
  // A library of another version, whole and with its checksum, is not taken either.
  CompilerOptions other = options_for(folder);
  other.flags = "-O1 -w";
  const fs::path foreign = compile_and_run(other).library_path;
  fs::remove_all(library.parent_path());
  fs::copy(foreign.parent_path(), library.parent_path());
  check(!compile_and_run(options_for(folder)).cached, "a foreign library is built again");
}

void compilers_that_fail() {
  Folder folder;
  CompilerOptions options = options_for(folder);
  options.cxx = "/nowhere/g++";
  check_throws<BuildError>([&] { compile_and_run(options); }, "/nowhere/g++");
  options.fallback = true;
  const CompileInfo info = compile_and_run(options);
  check_contains(info.fallback, "/nowhere/g++");
  check_equal(info.backend, std::string("interpreter"));
  options = options_for(folder);
  options.flags = "-fno-such-flag";
  check_throws<BuildError>([&] { compile_and_run(options); }, "no-such-flag");
}

void hanging_programs() {
#ifndef _WIN32
  const auto result = run_process({"sleep", "30"}, 0.2);
  check(result.started && result.timed_out, "it is stopped");
  const auto talkative = run_process({"sh", "-c", "echo hello; exit 3"}, 20);
  check(talkative.status == 3 && talkative.output == "hello\n", "output and status");
#endif
}

void folders_that_refuse() {
#ifndef _WIN32
  Folder folder;
  CompilerOptions options = options_for(folder);
  options.cache = (folder.path / "file").string();
  { std::ofstream(options.cache) << "in the way"; }
  check_throws<BuildError>([&] { compile_and_run(options); }, "cannot be made");
  options.cache = folder.name();
  compile_and_run(options);
  const auto permissions = fs::status(folder.path / "kernels").permissions();
  check((permissions & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none,
        "only the owner may look");
  if (geteuid() == 0) return;  // root may write anywhere
  fs::permissions(folder.path / "kernels", fs::perms::owner_read | fs::perms::owner_exec);
  options.flags = "-O1 -w";
  check_throws<BuildError>([&] { compile_and_run(options); }, "cannot write");
  fs::permissions(folder.path / "kernels", fs::perms::owner_all);
#endif
}

void full_disk() {
  if (!fs::exists("/dev/full")) return;
  check_throws<BuildError>(
      [&] {
        Folder folder;
        Toolchain toolchain = find_toolchain("", "-O0 -w");
        const fs::path source = folder.path / "source.cpp";
        std::ofstream(source) << "int x;";
        build_library(toolchain, source, "/dev/full");
      },
      "failed");
}

void two_at_once() {
  Folder folder;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { compile_and_run(options_for(folder)); });
  for (std::thread& thread : threads) thread.join();
  check(compile_and_run(options_for(folder)).cached, "one of them stays");
  size_t left = 0;
  for (const auto& entry : fs::directory_iterator(folder.path / "kernels"))
    left += entry.path().filename().string().starts_with("building-");
  check_equal(left, size_t{0});
}

void c_interface() {
  Folder folder;
  const std::string options = "cache=" + folder.name() + "\nflags=-O0 -w\nfallback=error";
  check(mini_compile("mini 1\nnonsense", "") == nullptr, "a bad graph");
  check(std::strlen(mini_error()) > 0, "has a message");
  check(mini_compile(text, "colour=red") == nullptr, "an unknown option");
  check_contains(mini_error(), "colour");
  check(mini_compile(text, "threads=many") == nullptr, "not a number");
  check(mini_compile(text, "off=nothing") == nullptr, "an unknown pass");
  const char* const graphs[] = {text, "mini 1\n%0 = input : i64[2]\n%1 = input : f32[4]\n"
                                      "%2 = take %1 %0 dim=0 : f32[2]\nreturn %2\n"};
  mini_function* functions[2];
  check_equal(mini_compile_batch(graphs, 2, options.c_str(), functions), 0);
  const int64_t index[] = {3, 1}, outside[] = {3, 4};
  const float x[] = {1, 2, 3, 4};
  float y[2] = {0, 0};
  const void* in[] = {index, x};
  void* out[] = {y};
  check_equal(mini_run(functions[1], in, out), 0);
  check(y[0] == 4 && y[1] == 2, "what was taken");
  in[0] = outside;
  check_equal(mini_run(functions[1], in, out), 1);
  check_contains(mini_error(), "index");
  check_contains(mini_info(functions[0]), "\"cached\": false");
  check_contains(mini_describe(functions[1]), "kernel_0_take");
  for (mini_function* function : functions) mini_free(function);
  check_contains(mini_passes(), "fusion");
  check_contains(mini_operators(), "gather");
}

}  // namespace

int main() {
  found_again();
  damaged_libraries();
  compilers_that_fail();
  hanging_programs();
  folders_that_refuse();
  full_disk();
  two_at_once();
  c_interface();
  return finish();
}
