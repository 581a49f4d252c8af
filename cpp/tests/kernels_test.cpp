// Every kind of kernel at sizes where threads, blocks, pieces and parts of rows all occur, against
// the interpreter; with all passes and with none, contiguous inputs and strided ones.
#include "check.h"
#include "compare.h"
#include "compiler.h"
#include "interpreter.h"
#include "tracer.h"

using namespace mini;
using namespace mini::test;

namespace {

struct Case {
  const char* name;
  TracedFunction function;
  std::vector<TensorType> inputs;
};

TensorType f32(Shape shape) { return {DType::Float32, std::move(shape)}; }
TensorType f64(Shape shape) { return {DType::Float64, std::move(shape)}; }
TensorType i64(Shape shape) { return {DType::Int64, std::move(shape)}; }

using In = const std::vector<Sym>&;

std::vector<Case> cases() {
  return {
      {"pointwise", [](In x) -> std::vector<Sym> { return {tanh(x[0]) * x[1], x[0] + x[1]}; },
       {f32({300, 401}), f32({300, 401})}},
      {"transposed", [](In x) -> std::vector<Sym> { return {transpose(x[0], 0, 1) - x[1]}; },
       {f32({300, 400}), f32({400, 300})}},
      {"broadcast", [](In x) -> std::vector<Sym> { return {relu(x[0] + x[1]) * x[2]}; },
       {f32({64, 3, 500}), f32({3, 1}), f32({64, 1, 1})}},
      {"sum of all", [](In x) -> std::vector<Sym> { return {sum(x[0] * x[0], {0, 1}), max(x[0], {0, 1})}; },
       {f32({301, 1003})}},
      {"few long rows", [](In x) -> std::vector<Sym> { return {sum(x[0], {1}), exp(x[0])}; },
       {f64({3, 70001})}},
      {"columns", [](In x) -> std::vector<Sym> { return {sum(x[0], {0}), min(x[0], {0}) * 2.0}; },
       {f32({3000, 70})}},
      {"wide columns", [](In x) -> std::vector<Sym> { return {prod(x[0], {0}), max(x[0], {0})}; },
       {f64({7, 30011})}},
      {"channels", [](In x) -> std::vector<Sym> { return {sum(x[0], {0, 2}), mean(x[0], {0, 2}, true)}; },
       {f32({40, 30, 1500})}},
      {"integers", [](In x) -> std::vector<Sym> { return {sum(x[0], {0}), prod(x[0], {1}), max(x[0], {1})}; },
       {i64({130, 2000})}},
      {"truths", [](In x) -> std::vector<Sym> { return {any(x[0] > 2.9, {1}), all(x[0] < 2.9, {0})}; },
       {f32({200, 1100})}},
      {"argmax", [](In x) -> std::vector<Sym> { return {argmax(x[0], 1), argmin(x[0], 0, true)}; },
       {f32({170, 190})}},
      {"softmax", [](In x) -> std::vector<Sym> { return {softmax(x[0])}; }, {f32({90, 2500})}},
      {"softmax of columns", [](In x) -> std::vector<Sym> { return {softmax(x[0], 0)}; },
       {f32({500, 300})}},
      {"softmax in the middle", [](In x) -> std::vector<Sym> { return {softmax(x[0], 1)}; },
       {f32({20, 70, 50})}},
      {"layer norm", [](In x) -> std::vector<Sym> { return {layer_norm(x[0]) * x[1] + x[2]}; },
       {f32({128, 768}), f32({768}), f32({768})}},
      {"matmul", [](In x) -> std::vector<Sym> { return {matmul(x[0], x[1])}; },
       {f32({65, 600}), f32({600, 70})}},
      {"matmul f64", [](In x) -> std::vector<Sym> { return {matmul(x[0], x[1])}; },
       {f64({130, 61}), f64({61, 515})}},
      {"matmul transposed", [](In x) -> std::vector<Sym> { return {relu(matmul(transpose(x[0], 0, 1), transpose(x[1], 0, 1)))}; },
       {f32({100, 130}), f32({90, 100})}},
      {"matmul of a row", [](In x) -> std::vector<Sym> { return {matmul(x[0], transpose(x[1], 0, 1)), matmul(x[0], x[2])}; },
       {f32({2, 300}), f32({700, 300}), f32({300, 200})}},
      {"matmul of integers", [](In x) -> std::vector<Sym> { return {matmul(x[0], x[1])}; },
       {i64({70, 50}), i64({50, 90})}},
      {"batched matmul", [](In x) -> std::vector<Sym> { return {matmul(x[0], transpose(x[1], 1, 2))}; },
       {f32({9, 40, 33}), f32({9, 50, 33})}},
      {"attention", [](In x) -> std::vector<Sym> {
         const Sym scores = matmul(x[0], transpose(x[1], 2, 3)) * 0.125;
         return {reshape(permute(matmul(softmax(scores), x[2]), {0, 2, 1, 3}), {2, 60, 4 * 32})};
       }, {f32({2, 4, 60, 32}), f32({2, 4, 60, 32}), f32({2, 4, 60, 32})}},
      {"cat and slice", [](In x) -> std::vector<Sym> { return {cat({slice(x[0], 1, 3, 400, 7), x[1]}, 1)}; },
       {f32({300, 400}), f32({300, 200})}},
  };
}

// The memory of a strided tensor has gaps; `strided` swaps the last two dimensions.
Tensor filled(const TensorType& type, bool strided, int seed) {
  Shape shape = type.shape;
  const size_t rank = shape.size();
  const bool swap = strided && rank >= 2;
  if (swap) std::swap(shape[rank - 1], shape[rank - 2]);
  Tensor tensor(TensorType{type.dtype, shape});
  uint32_t state = 12345u + static_cast<uint32_t>(seed);
  with_dtype(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < tensor.type().elements(); ++i) {
      state = state * 1664525u + 1013904223u;
      const double number = static_cast<double>(state >> 8) / (1 << 24) * 6 - 3;
      tensor.data<T>()[i] = static_cast<T>(number);
    }
  });
  if (!swap) return tensor;
  Strides strides = contiguous_strides(shape);
  std::swap(strides[rank - 1], strides[rank - 2]);
  return tensor.viewed(type.shape, strides, 0);
}

void run(bool strided, const PassOptions& passes, const std::string& how) {
  CompilerOptions options;
  options.passes = passes;
  options.fallback = false;
  options.threads = 3;
#if defined(__SANITIZE_ADDRESS__)
  options.flags = "-O1 -w -fsanitize=address,undefined -fno-sanitize-recover=all";
#elif defined(_MSC_VER)
  options.flags = "/O1 /nologo /EHsc";
#else
  options.flags = "-O2 -w -fopenmp";
#endif
  OptimizingCompiler compiler(options);
  std::vector<std::vector<Tensor>> inputs;
  std::vector<Graph> graphs;
  std::vector<Program> programs;
  for (const Case& one : cases()) {
    inputs.emplace_back();
    for (const TensorType& type : one.inputs)
      inputs.back().push_back(filled(type, strided, static_cast<int>(inputs.back().size())));
    graphs.push_back(trace(one.function, inputs.back()));
    programs.push_back(compiler.optimize(graphs.back()));
  }
  auto functions = compiler.compile_all(programs, std::vector<CompileInfo>(programs.size()));
  for (size_t i = 0; i < graphs.size(); ++i) {
    const auto expected = interpret(graphs[i], inputs[i]);
    std::vector<Tensor> found;
    for (NodeId id : graphs[i].outputs) found.emplace_back(graphs[i][id].type);
    functions[i]->run(inputs[i], found);
    for (size_t k = 0; k < found.size(); ++k)
      check(distance(found[k], expected[k], 1e-4) <= 1e-4,
            how + ": " + cases()[i].name + ", output " + std::to_string(k));
  }
}

void one_kernel_each() {
  for (const Case& one : cases()) {
    const std::string name = one.name;
    if (name != "softmax" && name != "layer norm" && name != "softmax of columns") continue;
    std::vector<Tensor> inputs;
    for (const TensorType& type : one.inputs) inputs.push_back(filled(type, false, 0));
    OptimizingCompiler compiler;
    check_equal(compiler.optimize(trace(one.function, inputs)).kernels.size(), size_t{1});
  }
}

}  // namespace

int main() {
  one_kernel_each();
  run(false, {}, "all passes");
  run(true, {}, "all passes, strided");
  run(false, {pass_names(), ""}, "no pass");
  return finish();
}
