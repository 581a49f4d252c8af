// The whole story in one run: a function is traced, its graph is optimized, C++ is generated,
// compiled, loaded and run; a second shape fails a guard; a second process would find everything in
// the cache; and all of it is measured, now and here.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <sstream>

#include "compiler.h"
#include "interpreter.h"
#include "simulator.h"

using namespace mini;

namespace {

constexpr size_t width = 79;

void heading(int number, const std::string& text, const char* explanation) {
  std::printf("\n%d. %s\n%s\n%s\n\n", number, text.c_str(), std::string(width, '-').c_str(),
              explanation);
}

// Prints lines, cut to the width of a terminal; at most `most` of them.
void show(const std::string& text, int most = 1000) {
  std::istringstream stream(text);
  int count = 0;
  for (std::string line; std::getline(stream, line); ++count) {
    if (count == most) {
      std::printf("  ..\n");
      return;
    }
    if (line.size() > width - 2) line = line.substr(0, width - 5) + "...";
    std::printf("  %s\n", line.c_str());
  }
}

// The example: attention of a tensor to itself, a gate and a softmax, written so that every pass has
// something to do.
std::vector<Sym> example(const std::vector<Sym>& in) {
  const Sym x = in[0];
  const Sym two = x.tracer().constant(2.0, TensorType{DType::Float32, {}});
  exp(x);                                                                      // dead code
  const Sym weights = relu(matmul(x, transpose(x, 0, 1)) * 1.0);               // a view; times one
  const Sym mixed = matmul(matmul(weights, weights), x) * (two * two * 1e-4);  // constants, memory
  const Sym gated = tanh(mixed + 1.0) * sigmoid(mixed + 1.0);                  // the same twice
  return {softmax(gated)};
}

// Sixteen operators, one after the other: what fusion is best at.
std::vector<Sym> chain(const std::vector<Sym>& in) {
  Sym x = in[0];
  for (int i = 0; i < 4; ++i) x = relu(x * 1.01 + in[1]) - 0.25;
  return {x};
}

Tensor filled(const Shape& shape, double phase) {
  Tensor tensor(TensorType{DType::Float32, shape});
  for (int64_t i = 0; i < tensor.type().elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>(std::sin(phase + 0.37 * static_cast<double>(i)));
  return tensor;
}

std::vector<Tensor> outputs_for(const Graph& graph) {
  std::vector<Tensor> outputs;
  for (NodeId id : graph.outputs) outputs.emplace_back(graph[id].type);
  return outputs;
}

double difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (int64_t i = 0; i < a.type().elements(); ++i)
    worst = std::max(worst, std::fabs(a.at(i) - b.at(i)));
  return worst;
}

double median_ms(const std::function<void()>& run, int times) {
  run();
  std::vector<double> taken;
  for (int i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const auto end = std::chrono::steady_clock::now();
    taken.push_back(std::chrono::duration<double, std::milli>(end - start).count());
  }
  std::sort(taken.begin(), taken.end());
  return taken[taken.size() / 2];
}

void show_graph(const Graph& graph) {
  heading(1, "A C++ function is traced into a graph",
          "The function runs once on tensors without numbers. What it does becomes nodes,\n"
          "each after those it reads.");
  show(to_text(graph));
  std::printf("\n  The same for Graphviz (dot -Tsvg), the first lines:\n");
  show(to_dot(graph), 6);
}

// Of a plan, what follows its graph.
std::string plan_lines(const std::string& text) {
  const size_t end = text.find("\n", text.find("return"));
  return end + 1 < text.size() ? text.substr(end + 1) : text;
}

void show_passes(const std::vector<PassReport>& reports) {
  heading(2, "Passes improve it, each with a report",
          "The first four rewrite the graph. Layout, fusion and memory plan how it runs:\n"
          "what is only a view, which nodes share a kernel, where results live.");
  for (const PassReport& report : reports) {
    std::printf("\n  [%s] %d %s\n", report.pass.c_str(), report.changes,
                report.changes == 1 ? "change" : "changes");
    show(report.summary);
    if (report.changes == 0) continue;
    std::printf("  before:\n");
    show(plan_lines(report.before), 14);
    std::printf("  after:\n");
    show(plan_lines(report.after), 14);
  }
}

void show_source(const CompileInfo& info) {
  heading(3, "The plan becomes C++, and the machine's compiler makes a library of it",
          "A kernel for each matrix product, and few others. In the last one each row is\n"
          "walked three times, for its maximum, its sum and its result, and nothing in\n"
          "between reaches memory.");
  if (!info.fallback.empty()) {
    std::printf("  The interpreter runs it instead: %s\n", info.fallback.c_str());
    return;
  }
  const size_t last = info.source.rfind("static void kernel_");
  show(info.source.substr(last == std::string::npos ? 0 : last), 45);
  std::printf("\n  %s after %.2f s%s\n", "Loaded", info.seconds, info.cached ? " (cached)" : "");
}

void show_run(CompiledFunction& function, const Graph& graph, const std::vector<Tensor>& inputs) {
  heading(4, "It runs and agrees with the interpreter",
          "The interpreter computes node by node and is the reference.");
  auto outputs = outputs_for(graph);
  function.run(inputs, outputs);
  const auto expected = interpret(graph, inputs);
  std::printf("  largest difference: %.3g\n", difference(outputs[0], expected[0]));
}

void show_guards(const CompilerOptions& options) {
  heading(5, "Another shape fails a guard: a recompile",
          "A graph is only valid for the shapes it was traced with, so each call checks\n"
          "them first.");
  TorchCompileSimulator compiled(std::make_shared<OptimizingCompiler>(options));
  compiled.create_function_graph(example, {filled({64, 256}, 0)});
  for (int64_t rows : {64, 64, 32, 64, 32})
    compiled.execute_compiled_function({filled({rows, 256}, 1)});
  for (const std::string& event : compiled.events()) show(event);
  const auto& counted = compiled.statistics();
  std::printf("  %d calls: %d compilations, %d of them recompiles, %d cache hits\n", counted.calls,
              counted.compilations, counted.recompiles, counted.cache_hits);
}

void show_cache(const CompilerOptions& options, const Graph& graph) {
  heading(6, "The same graph again: the library is found by its hash",
          "The hash covers the source, the compiler, its flags and the processor.");
  OptimizingCompiler compiler(options);
  const auto start = std::chrono::steady_clock::now();
  const auto function = compiler.compile(compiler.optimize(graph));
  const auto end = std::chrono::steady_clock::now();
  const CompileInfo& info = dynamic_cast<RunnableFunction&>(*function).info();
  std::printf("  %s in %.1f ms\n", info.cached ? "found" : "compiled",
              std::chrono::duration<double, std::milli>(end - start).count());
  show(info.library_path);
}

void show_benchmark(CompilerOptions options) {
  heading(7, "What fusion is worth: 16 pointwise operators over 4 million numbers",
          "Unfused, every operator reads and writes 16 MB. Fused, only the first read and\n"
          "the last write remain. Medians, measured now.");
  const std::vector<Tensor> inputs = {filled({1 << 22}, 0), filled({1 << 22}, 1)};
  const Graph graph = trace(chain, inputs);
  auto outputs = outputs_for(graph);
  EagerInterpreter eager;
  const auto original = eager.compile(eager.optimize(graph));
  OptimizingCompiler with(options);
  const auto fused = with.compile(with.optimize(graph));
  options.passes.off = {"fusion"};
  OptimizingCompiler without(options);
  const auto unfused = without.compile(without.optimize(graph));
  const double a = median_ms([&] { original->run(inputs, outputs); }, 3);
  const double b = median_ms([&] { unfused->run(inputs, outputs); }, 9);
  const double c = median_ms([&] { fused->run(inputs, outputs); }, 9);
  std::printf("  original, operator by operator (interpreter)  %9.2f ms\n", a);
  std::printf("  compiled, one kernel an operator              %9.2f ms   %5.1fx\n", b, a / b);
  std::printf("  compiled and fused                            %9.2f ms   %5.1fx\n", c, a / c);
  std::printf("  fused against unfused                                        %5.1fx\n", b / c);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CompilerOptions options;
    if (argc > 1) options.cache = argv[1];
    const std::vector<Tensor> inputs = {filled({64, 256}, 0)};
    const Graph graph = trace(example, inputs);
    show_graph(graph);
    OptimizingCompiler compiler(options);
    Program program = compiler.optimize(graph);
    show_passes(compiler.reports());
    const auto function = compiler.compile(std::move(program));
    show_source(dynamic_cast<RunnableFunction&>(*function).info());
    show_run(*function, graph, inputs);
    show_guards(options);
    show_cache(options, graph);
    show_benchmark(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "demo: %s\n", error.what());
    return 1;
  }
}
