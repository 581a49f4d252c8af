// Guards, the cache of compiled functions, and torch.compile in small.
#include "simulator.h"

#include "compare.h"
#include "error.h"
#include "interpreter.h"

using namespace mini;
using namespace mini::test;

namespace {

Tensor zeros(const Shape& shape, DType dtype = DType::Float32) {
  return Tensor(TensorType{dtype, shape});
}

void fails(const Guards& guards, const std::vector<Tensor>& inputs, const std::string& why,
           const Where& where = Where::current()) {
  const auto failure = guards.failure(inputs);
  check_equal(failure.value_or("all hold"), why, where);
}

void guards() {
  const Guards guards({zeros({2, 8}), zeros({8}, DType::Int64)});
  fails(guards, {zeros({2, 8}), zeros({8}, DType::Int64)}, "all hold");
  fails(guards, {zeros({2, 8})}, "number of inputs is 1, compiled for 2");
  fails(guards, {zeros({2, 16}), zeros({8}, DType::Int64)},
        "input 0: size of dimension 1 is 16, compiled for 8");
  fails(guards, {zeros({2, 8}), zeros({8})}, "input 1: dtype is f32, compiled for i64");
  fails(guards, {zeros({2, 8, 1}), zeros({8}, DType::Int64)}, "input 0: rank is 3, compiled for 2");
  fails(guards, {zeros({16}).viewed({2, 8}, {1, 2}, 0), zeros({8}, DType::Int64)},
        "input 0: layout is strides [1, 2], compiled for strides [8, 1]");
  check_equal(guards.describe()[1], "input 1 is i64[8] with strides [1]");
}

void cache() {
  FunctionCache cache;
  EagerInterpreter interpreter;
  for (int64_t size : {1, 2, 3}) {
    const Graph graph =
        trace([](const auto& x) -> std::vector<Sym> { return {neg(x[0])}; }, {zeros({size})});
    cache.add({Guards({zeros({size})}),
               interpreter.compile(plan_plainly(graph)),
               {graph[graph.outputs[0]].type}});
  }
  check_equal(cache.find({zeros({3})}).failures.size(), size_t{0});
  const auto oldest = cache.find({zeros({1})});
  check(oldest.entry != nullptr && oldest.failures.size() == 2,
        "the newest entries are asked first");
  check_equal(cache.find({zeros({1})}).failures.size(), size_t{0});
  const auto none = cache.find({zeros({9})});
  check(none.entry == nullptr && none.failures.size() == 3, "all are asked where none fits");
  check_equal(none.failures[0], "input 0: size of dimension 0 is 9, compiled for 1");
}

void simulator() {
  TorchCompileSimulator compiled(std::make_shared<EagerInterpreter>(), 2);
  check_throws<GraphError>([&] { compiled.execute_compiled_function({}); },
                           "create_function_graph first");
  // The number of rows is a constant of the graph: without guards it would be wrong.
  const TracedFunction function = [](const std::vector<Sym>& x) -> std::vector<Sym> {
    return {x[0] * static_cast<double>(x[0].shape()[0])};
  };
  const Graph& graph = compiled.create_function_graph(function, {zeros({2})});
  check_contains(to_text(graph), "constant value=2");
  check(compiled.last_function() == nullptr, "nothing is compiled before the first call");
  check_equal(compiled.statistics().compilations, 0);

  const Tensor two = Tensor::from<float>({2}, {1, 2});
  const Tensor three = Tensor::from<float>({3}, {1, 2, 3});
  check_values(compiled.execute_compiled_function({two})[0], {2, 4});
  check_values(compiled.execute_compiled_function({two})[0], {2, 4});
  check_values(compiled.execute_compiled_function({three})[0], {3, 6, 9});
  check_values(compiled.execute_compiled_function({two})[0], {2, 4});
  check_equal(compiled.statistics().calls, 4);
  check_equal(compiled.statistics().compilations, 2);
  check_equal(compiled.statistics().recompiles, 1);
  check_equal(compiled.statistics().cache_hits, 2);
  const auto told = [&](const std::string& event) {
    for (const std::string& line : compiled.events()) {
      if (line == event) return true;
    }
    return false;
  };
  check(told("captured a graph of 3 nodes"), "the capture is reported");
  check(told("recompile 1: input 0: size of dimension 0 is 3, compiled for 2"),
        "the failed guard is reported");
  check(told("  guard: input 0 is f32[3] with strides [1]"), "guards are reported");

  // One more recompile is allowed; then eager mode, still with the right numbers.
  check_values(compiled.execute_compiled_function({Tensor::from<float>({1}, {5})})[0], {5});
  check_values(compiled.execute_compiled_function({Tensor::from<float>({4}, {1, 1, 1, 1})})[0],
               {4, 4, 4, 4});
  check_equal(compiled.statistics().eager_calls, 1);
  check_equal(compiled.statistics().compilations, 3);
  check(told("fell back to eager: more than 2 recompiles"), "the limit is reported");
  compiled.create_function_graph(function, {two});
  check_equal(compiled.statistics().calls, 0);
}

// The same with passes: another backend as far as the simulator can see.
void with_passes() {
  TorchCompileSimulator compiled(std::make_shared<EagerInterpreter>(PassOptions{}));
  const auto function = [](const std::vector<Sym>& x) -> std::vector<Sym> {
    return {softmax(x[0]), layer_norm(x[0])};
  };
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 7});
  const Graph graph = compiled.create_function_graph(function, {x});
  const std::vector<Tensor> right = interpret(graph, {x});
  const std::vector<Tensor> found = compiled.execute_compiled_function({x});
  for (size_t i = 0; i < right.size(); ++i)
    check(distance(right[i], found[i]) < 1e-6, "output " + std::to_string(i));
}

}  // namespace

int main() {
  guards();
  cache();
  simulator();
  with_passes();
  return finish();
}
