#include "compiler.h"

#include <mutex>
#include <sstream>

#include "error.h"
#include "interpreter.h"

namespace mini {
namespace {

using Entry = int32_t (*)(const void* const* in, void* const* out, char* work);

// Working memory for one call each; kept, because fresh memory is slow to touch the first time.
class WorkPool {
 public:
  explicit WorkPool(int64_t bytes) : bytes_(static_cast<size_t>(bytes) + 64) {}

  std::unique_ptr<char[]> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::unique_ptr<char[]>(new char[bytes_]);
    auto memory = std::move(free_.back());
    free_.pop_back();
    return memory;
  }
  void give(std::unique_ptr<char[]> memory) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(memory));
  }
  // Kernels like slots on cache lines.
  static char* aligned(char* memory) {
    const auto place = reinterpret_cast<uintptr_t>(memory);
    return memory + ((64 - place % 64) % 64);
  }

 private:
  size_t bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<char[]>> free_;
};

std::string description(const Program& program, const CompileInfo& info) {
  std::ostringstream text;
  for (const PassReport& report : info.reports) {
    text << "== pass " << report.pass << ": " << report.summary << "\n";
    if (report.changes > 0)
      text << "-- before\n" << report.before << "-- after\n" << report.after;
  }
  text << "== program\n" << program.to_text();
  if (!info.fallback.empty()) text << "== the interpreter runs it: " << info.fallback << "\n";
  if (!info.source.empty())
    text << "== generated source (" << info.source_path << ")\n" << info.source;
  return text.str();
}

class Described : public RunnableFunction {
 public:
  Described(Program program, CompileInfo info)
      : program_(std::move(program)), info_(std::move(info)) {}
  std::string describe() const override { return description(program_, info_); }
  const Program& program() const override { return program_; }
  const CompileInfo& info() const override { return info_; }

 protected:
  Program program_;
  CompileInfo info_;
};

class GeneratedFunction : public Described {
 public:
  GeneratedFunction(Program program, CompileInfo info, std::shared_ptr<Library> library, Entry entry)
      : Described(std::move(program), std::move(info)),
        library_(std::move(library)),
        entry_(entry),
        pool_(program_.working_bytes) {}

  void run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override {
    check_arguments(program_.graph, inputs, outputs);
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const Tensor& tensor : inputs) in.push_back(tensor.raw());
    for (const Tensor& tensor : outputs) out.push_back(tensor.raw());
    run_raw(in.data(), out.data());
  }

  void run_raw(const void* const* inputs, void* const* outputs) override {
    auto memory = pool_.take();
    const int32_t failed = entry_(inputs, outputs, WorkPool::aligned(memory.get()));
    pool_.give(std::move(memory));
    if (failed != 0)
      throw GraphError("%" + std::to_string(failed - 1) + ": an index points outside");
  }

 private:
  std::shared_ptr<Library> library_;
  Entry entry_;
  WorkPool pool_;
};

class InterpretedFunction : public Described {
 public:
  using Described::Described;

  void run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override {
    check_arguments(program_.graph, inputs, outputs);
    interpret(program_, inputs, outputs);
  }

  void run_raw(const void* const* inputs, void* const* outputs) override {
    const Graph& graph = program_.graph;
    std::vector<Tensor> in, out;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const NodeId id = graph.inputs[i];
      in.emplace_back(graph[id].type, const_cast<void*>(inputs[i]), view_of(program_, id).strides);
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const TensorType& type = graph[graph.outputs[i]].type;
      out.emplace_back(type, outputs[i], contiguous_strides(type.shape));
    }
    interpret(program_, in, out);
  }
};

// The part of the source that was written for one program.
std::string own_source(const std::string& source, size_t place, size_t count) {
  const size_t begin = source.find("\nnamespace program_" + std::to_string(place) + " {");
  const size_t end = place + 1 < count
                         ? source.find("\nnamespace program_" + std::to_string(place + 1) + " {")
                         : std::string::npos;
  return begin == std::string::npos ? "" : source.substr(begin, end - begin);
}

}  // namespace

std::unique_ptr<RunnableFunction> interpreted(Program program, CompileInfo info) {
  info.backend = "interpreter";
  return std::make_unique<InterpretedFunction>(std::move(program), std::move(info));
}

Program OptimizingCompiler::optimize(const Graph& graph) {
  nodes_before_ = graph.size();
  Program program = plan_plainly(graph);
  reports_ = run_passes(program, options_.passes);
  return program;
}

std::unique_ptr<CompiledFunction> OptimizingCompiler::compile(Program program) {
  std::vector<Program> one;
  CompileInfo info;
  info.nodes_before = nodes_before_;
  info.nodes_after = program.graph.size();
  info.reports = reports_;
  one.push_back(std::move(program));
  return std::move(compile_all(std::move(one), {info})[0]);
}

std::vector<std::unique_ptr<RunnableFunction>> OptimizingCompiler::compile_all(
    std::vector<Program> programs, std::vector<CompileInfo> infos) {
  std::vector<std::unique_ptr<RunnableFunction>> functions;
  std::string fallback;
  std::string source;
  CachedLibrary built;
  try {
    const Toolchain toolchain = find_toolchain(options_.cxx, options_.flags);
    std::vector<const Program*> pointers;
    for (const Program& program : programs) pointers.push_back(&program);
    source = generate_source(pointers, {options_.threads});
    built = load_or_build(source, toolchain, options_.cache);
  } catch (const BuildError& error) {
    if (!options_.fallback) throw;
    fallback = error.what();
  }
  for (size_t i = 0; i < programs.size(); ++i) {
    CompileInfo& own = infos[i];
    own.fallback = fallback;
    own.source = own_source(source, i, programs.size());
    own.source_path = built.source_path.string();
    own.library_path = built.library_path.string();
    own.cached = built.cached;
    own.seconds = built.seconds;
    if (!built.library) {
      functions.push_back(interpreted(std::move(programs[i]), std::move(own)));
      continue;
    }
    const auto entry = reinterpret_cast<Entry>(built.library->symbol(entry_name(i)));
    if (!entry) throw BuildError("the compiled library lacks " + entry_name(i));
    functions.push_back(std::make_unique<GeneratedFunction>(std::move(programs[i]), std::move(own),
                                                            built.library, entry));
  }
  return functions;
}

}  // namespace mini
