// Constant folding: what can be computed now is computed now.
//
// A Constant is one number everywhere, so only results that are again one number are folded:
// pointwise work on constants, views and reductions of one, and Cat of equal ones. Iota, MatMul and
// whatever reads an index stay.
#include <algorithm>

#include "evaluate.h"
#include "passes/graph_pass.h"

namespace mini {

namespace {

// A longer row is left to the machine: folding should not take longer than running.
constexpr int64_t longest_row = 1 << 16;

// The constant as a tensor of one number.
Tensor number(const Node& constant) {
  Node one = constant;
  one.type.shape = {};
  return evaluate(one, {});
}

Node constant(const TensorType& type, const Tensor& number) {
  Node node;
  node.op = OpType::Constant;
  node.type = type;
  if (is_float(type.dtype)) {
    node.attributes.value.d = number.at(0);
  } else if (type.dtype == DType::Int64) {
    node.attributes.value.i = *number.data<int64_t>();
  } else {
    node.attributes.value.i = *number.data<bool>() ? 1 : 0;
  }
  return node;
}

class ConstantFolding final : public GraphPass {
 public:
  explicit ConstantFolding(bool planted) : planted_(planted) {}
  std::string_view name() const override { return "constant_folding"; }
  std::string_view purpose() const override { return "constant folding"; }
  std::string_view mistake() const override {
    return "The sum of a constant is folded to the constant: how many there are is forgotten.";
  }

 private:
  Result rewrite(const Graph& graph) const override {
    Rewriting rewriting(graph);
    Result result;
    for (NodeId id = 0; id < graph.size(); ++id) {
      Node node = rewriting.translated(id);
      if (auto folded = fold(rewriting.to, node)) {
        node = std::move(*folded);
        ++result.changes;
      }
      rewriting.replace(id, rewriting.to.add(std::move(node)));
    }
    result.graph = rewriting.finish();
    result.what = std::to_string(result.changes) + " computed";
    return result;
  }

  std::optional<Node> fold(const Graph& graph, const Node& node) const {
    std::vector<Tensor> numbers;
    for (NodeId input : node.inputs) {
      if (graph[input].op != OpType::Constant) return std::nullopt;
      numbers.push_back(number(graph[input]));
    }
    if (numbers.empty()) return std::nullopt;
    if (is_pointwise(node.op)) {
      Node one = node;
      one.type.shape = {};
      return constant(node.type, evaluate(one, numbers));
    }
    if (is_view(node.op)) return constant(node.type, numbers[0]);
    if (node.op == OpType::Cat) return fold_cat(graph, node);
    if (is_reduction(node.op)) return fold_reduction(graph[node.inputs[0]], node, numbers[0]);
    return std::nullopt;
  }

  static std::optional<Node> fold_cat(const Graph& graph, const Node& node) {
    Node whole = graph[node.inputs[0]];
    const auto same = [&](NodeId input) {
      Node part = graph[input];
      part.type.shape = whole.type.shape;
      return to_text(part) == to_text(whole);
    };
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), same)) return std::nullopt;
    whole.type.shape = node.type.shape;
    return whole;
  }

  // One row stands for all.
  std::optional<Node> fold_reduction(const Node& input, const Node& node,
                                     const Tensor& value) const {
    int64_t length = 1;
    for (int64_t dim : node.attributes.dims) length *= input.type.shape[static_cast<size_t>(dim)];
    if (length > longest_row) return std::nullopt;
    if (planted_ && node.op == OpType::Sum) length = 1;  // the planted mistake
    Node one = node;
    one.type.shape = {};
    one.attributes.dims = {0};
    return constant(node.type, evaluate(one, {value.viewed({length}, {0}, 0)}));
  }

  bool planted_;
};

}  // namespace

std::unique_ptr<Pass> make_constant_folding_pass(bool planted) {
  return std::make_unique<ConstantFolding>(planted);
}

}  // namespace mini
