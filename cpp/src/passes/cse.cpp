// Common subexpressions: a node that computes what an earlier one did is replaced by that one.
#include <algorithm>
#include <unordered_map>

#include "passes/graph_pass.h"

namespace mini {

namespace {

// Whether f(a, b) and f(b, a) have the same bits. Not Maximum and Minimum: of 0.0 and -0.0 they
// give back the second.
bool is_commutative(OpType op) {
  switch (op) {
    case OpType::Add:
    case OpType::Mul:
    case OpType::Eq:
    case OpType::Ne:
    case OpType::LogicalAnd:
    case OpType::LogicalOr:
    case OpType::LogicalXor:
    case OpType::BitwiseAnd:
    case OpType::BitwiseOr:
    case OpType::BitwiseXor: return true;
    default: return false;
  }
}

class CommonSubexpressions final : public GraphPass {
 public:
  explicit CommonSubexpressions(bool planted) : planted_(planted) {}
  std::string_view name() const override { return "cse"; }
  std::string_view purpose() const override { return "common subexpressions"; }
  std::string_view mistake() const override {
    return "Every operator with two inputs is taken for commutative: a - b and b - a are computed "
           "once.";
  }

 private:
  Result rewrite(const Graph& graph) const override {
    Rewriting rewriting(graph);
    Result result;
    // The text says everything about a node. It tells 0.0 from -0.0, which == does not.
    std::unordered_map<std::string, NodeId> seen;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node node = rewriting.translated(id);
      const auto known = node.op == OpType::Input ? seen.end() : seen.find(key(node));
      if (known != seen.end()) {
        rewriting.replace(id, known->second);
        ++result.changes;
      } else {
        const NodeId added = rewriting.to.add(node);
        if (node.op != OpType::Input) seen.emplace(key(node), added);
        rewriting.replace(id, added);
      }
    }
    result.graph = rewriting.finish();
    result.what = std::to_string(result.changes) + " shared";
    return result;
  }

  std::string key(Node node) const {
    // The planted mistake: this asks for two inputs only.
    const bool any_order = planted_ ? node.inputs.size() == 2 : is_commutative(node.op);
    if (any_order) std::sort(node.inputs.begin(), node.inputs.end());
    return to_text(node);
  }

  bool planted_;
};

}  // namespace

std::unique_ptr<Pass> make_cse_pass(bool planted) {
  return std::make_unique<CommonSubexpressions>(planted);
}

}  // namespace mini
