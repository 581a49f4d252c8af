// The optimizing compiler: passes, C++ source, the machine's compiler, a library that is loaded.
#pragma once

#include "backend.h"
#include "codegen/generate.h"
#include "kernel_cache.h"

namespace mini {

struct CompilerOptions {
  PassOptions passes;
  std::string cache;  // a folder; empty: one for this process
  std::string cxx;    // empty: the first that is found
  std::string flags;  // empty: the usual ones
  int threads = 0;    // 0: as many as OpenMP says
  bool fallback = true;  // without a compiler the interpreter runs, and says so
};

// What became of a graph.
struct CompileInfo {
  std::string backend = "compiler";
  std::string fallback;  // why the interpreter runs; empty: it does not
  int nodes_before = 0;
  int nodes_after = 0;
  std::vector<PassReport> reports;
  std::string source;  // generated for this program alone, without what is in front of it
  std::string source_path;
  std::string library_path;
  bool cached = false;
  double seconds = 0;
};

// A program that runs, by generated code or by the interpreter.
class RunnableFunction : public CompiledFunction {
 public:
  virtual void run_raw(const void* const* inputs, void* const* outputs) = 0;
  virtual const Program& program() const = 0;
  virtual const CompileInfo& info() const = 0;
};

class OptimizingCompiler : public CompilerBackend {
 public:
  explicit OptimizingCompiler(CompilerOptions options = {}) : options_(std::move(options)) {}

  std::string_view name() const override { return "compiler"; }
  Program optimize(const Graph& graph) override;
  std::unique_ptr<CompiledFunction> compile(Program program) override;
  // Several by one call of the machine's compiler. `infos` say what is known of each so far.
  std::vector<std::unique_ptr<RunnableFunction>> compile_all(std::vector<Program> programs,
                                                             std::vector<CompileInfo> infos);
  // What the passes did in the last `optimize`.
  const std::vector<PassReport>& reports() const { return reports_; }

 private:
  CompilerOptions options_;
  std::vector<PassReport> reports_;
  int nodes_before_ = 0;
};

// The same interface over the interpreter.
std::unique_ptr<RunnableFunction> interpreted(Program program, CompileInfo info);

}  // namespace mini
