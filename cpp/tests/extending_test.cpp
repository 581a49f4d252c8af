// The worked examples of README.md: a backend and a pass of one's own.
#include <cmath>

#include "compare.h"
#include "error.h"
#include "interpreter.h"
#include "passes/graph_pass.h"
#include "simulator.h"

using namespace mini;
using namespace mini::test;

// A backend that trusts no other: it runs the other one's code and the interpreter, and compares.
class CheckingBackend : public CompilerBackend {
 public:
  explicit CheckingBackend(std::shared_ptr<CompilerBackend> other) : other_(std::move(other)) {}

  std::string_view name() const override { return "checking"; }
  Program optimize(const Graph& graph) override {
    graph_ = graph;
    return other_->optimize(graph);
  }
  std::unique_ptr<CompiledFunction> compile(Program program) override {
    return std::make_unique<Function>(graph_, other_->compile(std::move(program)));
  }

 private:
  class Function : public CompiledFunction {
   public:
    Function(Graph graph, std::unique_ptr<CompiledFunction> function)
        : graph_(std::move(graph)), function_(std::move(function)) {}

    void run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override {
      function_->run(inputs, outputs);
      const std::vector<Tensor> expected = interpret(graph_, inputs);
      for (size_t i = 0; i < outputs.size(); ++i) {
        for (int64_t place = 0; place < outputs[i].type().elements(); ++place) {
          const double difference = outputs[i].at(place) - expected[i].at(place);
          if (std::fabs(difference) > 1e-5)
            throw GraphError("output " + std::to_string(i) + " differs");
        }
      }
    }
    std::string describe() const override { return "checked: " + function_->describe(); }

   private:
    Graph graph_;
    std::unique_ptr<CompiledFunction> function_;
  };

  std::shared_ptr<CompilerBackend> other_;
  Graph graph_;
};

// A pass: the maximum or minimum of a single element is that element, so no loop is needed.
class SingleExtremes final : public GraphPass {
 public:
  std::string_view name() const override { return "single_extremes"; }
  std::string_view purpose() const override { return "extremes of one element"; }

 private:
  Result rewrite(const Graph& graph) const override {
    Rewriting rewriting(graph);
    Result result;
    for (NodeId id = 0; id < graph.size(); ++id) {
      Node node = rewriting.translated(id);
      const bool extreme = node.op == OpType::Max || node.op == OpType::Min;
      if (extreme && graph[graph[id].inputs[0]].type.elements() == node.type.elements()) {
        node.op = OpType::Reshape;
        node.attributes = {};
        ++result.changes;
      }
      rewriting.replace(id, rewriting.to.add(std::move(node)));
    }
    result.graph = rewriting.finish();
    result.what = std::to_string(result.changes) + " replaced";
    return result;
  }
};

namespace {

const TracedFunction root_of_square = [](const std::vector<Sym>& x) -> std::vector<Sym> {
  return {sqrt(x[0] * x[0])};
};

void backend() {
  const Tensor x = Tensor::from<float>({2}, {-3, 4});
  TorchCompileSimulator right(
      std::make_shared<CheckingBackend>(std::make_shared<EagerInterpreter>(PassOptions{})));
  right.create_function_graph(root_of_square, {x});
  check_values(right.execute_compiled_function({x})[0], {3, 4});
  check_contains(right.last_function()->describe(), "checked: ");

  const auto mistaken = std::make_shared<EagerInterpreter>(PassOptions{{}, "algebraic"});
  TorchCompileSimulator wrong(std::make_shared<CheckingBackend>(mistaken));
  wrong.create_function_graph(root_of_square, {x});
  check_throws<GraphError>([&] { wrong.execute_compiled_function({x}); }, "output 0 differs");
}

void pass() {
  const Graph graph = parse_graph(
      "mini 1\n%0 = input : f32[3, 1]\n%1 = max %0 dims=[1] : f32[3]\n%2 = max %0 dims=[0] : "
      "f32[1]\n"
      "return %1 %2\n");
  Program program = plan_plainly(graph);
  const PassReport report = SingleExtremes().run(program);
  check_equal(report.summary, "extremes of one element: 3 nodes -> 3, 1 replaced");
  check_contains(to_text(program.graph), "%1 = reshape %0 : f32[3]\n%2 = max");
  const Tensor x = Tensor::from<float>({3, 1}, {2, 5, 1});
  check_values(interpret(program.graph, {x})[0], {2, 5, 1});
  check_values(interpret(program.graph, {x})[1], {5});
}

// "rsqrt" of the README: one line and one function, and everything knows it.
void operators() {
  const Tensor x = Tensor::from<float>({1}, {4});
  const Graph graph = trace([](const auto& in) -> std::vector<Sym> { return {rsqrt(in[0])}; }, {x});
  check_contains(to_text(graph), "%1 = rsqrt %0 : f32[1]");
  check_values(interpret(parse_graph(to_text(graph)), {x})[0], {0.5});
}

}  // namespace

int main() {
  operators();
  backend();
  pass();
  return finish();
}
