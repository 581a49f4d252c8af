// Algebraic rules: cheaper ways to the same number.
//
// The same number bit for bit, NaN, infinity and -0.0 included, except where a rule says
// otherwise. Much that is true of real numbers is therefore not here:
//   x + 0.0 is not x (-0.0 + 0.0 is 0.0), but x + -0.0 and x - 0.0 are;
//   x * 0.0 and x - x are not 0 (NaN, infinity), x / x is not 1; for i64 the first two hold;
//   0.0 - x is not -x (x = 0.0), but -0.0 - x is; -(a - b) is not b - a (a = b);
//   x / c is not x * (1 / c), unless c is a power of two;
//   pow(x, 0.5) is not sqrt(x) (-0.0, -inf); log(exp(x)) is not x.
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <variant>

#include "passes/graph_pass.h"

namespace mini {

namespace {

// What a node becomes: one that is there already, or another node.
using Replacement = std::variant<std::monostate, NodeId, Node>;

// ---- Looking at a node and its inputs

const Node& input(const Graph& graph, const Node& node, size_t place) {
  return graph[node.inputs[place]];
}

bool is_constant(const Node& node, double value) {
  if (node.op != OpType::Constant) return false;
  if (!is_float(node.type.dtype)) return static_cast<double>(node.attributes.value.i) == value;
  return std::bit_cast<uint64_t>(node.attributes.value.d) == std::bit_cast<uint64_t>(value);
}

bool is_int(const Node& node) { return node.type.dtype == DType::Int64; }
bool is_bool(const Node& node) { return node.type.dtype == DType::Bool; }

Node make(OpType op, std::vector<NodeId> inputs, const TensorType& type) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.type = type;
  return node;
}

Node make_constant(double value, const TensorType& type) {
  Node node = make(OpType::Constant, {}, type);
  node.attributes.value =
      is_float(type.dtype) ? Scalar{value, 0} : Scalar{0, static_cast<int64_t>(value)};
  return node;
}

// ---- The rules. Each takes a node whose inputs are simple already; it may add what it needs to
// the graph, after which references into the graph are stale.

Replacement add(Graph& graph, const Node& node) {
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Node& one = input(graph, node, i);
    const NodeId other = node.inputs[1 - i];
    if (is_constant(one, is_int(node) ? 0.0 : -0.0)) return other;
    if (one.op == OpType::Neg) return make(OpType::Sub, {other, one.inputs[0]}, node.type);
  }
  return {};
}

Replacement subtract(Graph& graph, const Node& node) {
  const Node& a = input(graph, node, 0);
  const Node& b = input(graph, node, 1);
  if (is_constant(b, 0.0)) return node.inputs[0];
  if (is_constant(a, is_int(node) ? 0.0 : -0.0))
    return make(OpType::Neg, {node.inputs[1]}, node.type);
  if (b.op == OpType::Neg) return make(OpType::Add, {node.inputs[0], b.inputs[0]}, node.type);
  if (is_int(node) && node.inputs[0] == node.inputs[1]) return make_constant(0, node.type);
  return {};
}

Replacement multiply(Graph& graph, const Node& node) {
  const Node& a = input(graph, node, 0);
  const Node& b = input(graph, node, 1);
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Node& one = input(graph, node, i);
    const NodeId other = node.inputs[1 - i];
    if (is_constant(one, 1.0)) return other;
    if (is_constant(one, -1.0)) return make(OpType::Neg, {other}, node.type);
    if (is_int(node) && is_constant(one, 0.0)) return make_constant(0, node.type);
  }
  if (a.op == OpType::Neg && b.op == OpType::Neg) {
    return make(OpType::Mul, {a.inputs[0], b.inputs[0]}, node.type);
  }
  return {};
}

// Whether 1 / c is exact and a normal number, in this dtype.
bool is_power_of_two(const Node& c) {
  if (c.op != OpType::Constant || !std::isfinite(c.attributes.value.d)) return false;
  int exponent = 0;
  const double mantissa = std::frexp(c.attributes.value.d, &exponent);
  const int most = c.type.dtype == DType::Float32 ? 120 : 1000;
  return std::fabs(mantissa) == 0.5 && std::abs(exponent) < most;
}

Replacement divide(Graph& graph, const Node& node) {
  const Node& a = input(graph, node, 0);
  const Node& b = input(graph, node, 1);
  if (is_constant(b, 1.0)) return node.inputs[0];
  if (is_constant(a, 1.0)) return make(OpType::Reciprocal, {node.inputs[1]}, node.type);
  if (is_power_of_two(b)) {
    const NodeId factor = graph.add(make_constant(1 / b.attributes.value.d, node.type));
    return make(OpType::Mul, {node.inputs[0], factor}, node.type);
  }
  return {};
}

Replacement power(Graph& graph, const Node& node) {
  const NodeId x = node.inputs[0];
  const Node& exponent = input(graph, node, 1);
  if (is_constant(exponent, 0.0)) return make_constant(1, node.type);  // of NaN, too
  if (is_constant(exponent, 1.0)) return x;
  // PyTorch computes these two in the same way; pow itself may round differently.
  if (is_constant(exponent, 2.0)) return make(OpType::Mul, {x, x}, node.type);
  if (!is_int(node) && is_constant(exponent, -1.0)) return make(OpType::Reciprocal, {x}, node.type);
  return {};
}

Replacement negate(Graph& graph, const Node& node) {
  const Node& x = input(graph, node, 0);
  if (x.op == OpType::Neg) return x.inputs[0];
  return {};
}

Replacement absolute(Graph& graph, const Node& node) {
  const Node& x = input(graph, node, 0);
  if (x.op == OpType::Neg) return make(OpType::Abs, x.inputs, node.type);
  return {};
}

// f(f(x)) is f(x), and a whole number is not rounded again.
Replacement repeat(Graph& graph, const Node& node) {
  const auto is_rounding = [](OpType op) { return op >= OpType::Floor && op <= OpType::Round; };
  const OpType inner = input(graph, node, 0).op;
  const bool same = node.op == inner || (is_rounding(node.op) && is_rounding(inner));
  if (same) return node.inputs[0];
  return {};
}

Replacement invert(Graph& graph, const Node& node) {
  const Node& x = input(graph, node, 0);
  const bool undone = x.op == node.op && input(graph, x, 0).type == node.type;
  if (undone) return x.inputs[0];
  return {};
}

Replacement reciprocal(Graph& graph, const Node& node) {
  const Node& x = input(graph, node, 0);
  if (x.op == OpType::Sqrt) return make(OpType::Rsqrt, x.inputs, node.type);
  return {};
}

Replacement logic(Graph& graph, const Node& node) {
  const bool is_and = node.op == OpType::LogicalAnd || node.op == OpType::BitwiseAnd;
  if (!is_bool(input(graph, node, 0))) return {};
  if (node.inputs[0] == node.inputs[1]) return node.inputs[0];
  for (size_t i : {size_t{0}, size_t{1}}) {
    const NodeId other = node.inputs[1 - i];
    const NodeId one = node.inputs[i];
    if (is_constant(graph[one], is_and ? 1.0 : 0.0)) return other;
    if (is_constant(graph[one], is_and ? 0.0 : 1.0)) return one;
  }
  return {};
}

Replacement choose(Graph& graph, const Node& node) {
  const Node& condition = input(graph, node, 0);
  const NodeId then = node.inputs[1];
  const NodeId other = node.inputs[2];
  if (is_constant(condition, 1.0) || then == other) return then;
  if (is_constant(condition, 0.0)) return other;
  const bool inverted = condition.op == OpType::LogicalNot && is_bool(input(graph, condition, 0));
  if (inverted) return make(OpType::Where, {condition.inputs[0], other, then}, node.type);
  return {};
}

Replacement extreme(Graph&, const Node& node) {
  if (node.inputs[0] == node.inputs[1]) return node.inputs[0];
  return {};
}

// Casts that lose nothing can be left out before another one.
Replacement cast(Graph& graph, const Node& node) {
  const Node& x = input(graph, node, 0);
  if (x.type == node.type) return node.inputs[0];
  if (x.op != OpType::Cast) return {};
  const DType from = input(graph, x, 0).type.dtype;
  const bool exact =
      from == DType::Bool || (from == DType::Float32 && x.type.dtype == DType::Float64);
  if (exact) return make(OpType::Cast, x.inputs, node.type);
  return {};
}

Replacement reshape_or_expand(Graph& graph, const Node& node) {
  const Node& x = input(graph, node, 0);
  if (x.type == node.type) return node.inputs[0];
  if (x.op == node.op) return make(node.op, x.inputs, node.type);
  return {};
}

Replacement permute(Graph& graph, const Node& node) {
  const Node& x = input(graph, node, 0);
  std::vector<int64_t> unchanged(node.attributes.dims.size());
  std::iota(unchanged.begin(), unchanged.end(), 0);
  if (node.attributes.dims == unchanged) return node.inputs[0];
  if (x.op != OpType::Permute) return {};
  Node both = make(OpType::Permute, x.inputs, node.type);
  for (int64_t dim : node.attributes.dims) {
    both.attributes.dims.push_back(x.attributes.dims[static_cast<size_t>(dim)]);
  }
  return both;
}

Replacement slice(Graph& graph, const Node& node) {
  const Attributes& outer = node.attributes;
  const Node& x = input(graph, node, 0);
  if (x.type == node.type && outer.start == 0) return node.inputs[0];
  const bool twice = x.op == OpType::Slice && x.attributes.dim == outer.dim;
  const int64_t length = node.type.shape[static_cast<size_t>(outer.dim)];
  if (!twice || length == 0) return {};
  Node both = make(OpType::Slice, x.inputs, node.type);
  both.attributes = outer;
  both.attributes.start = x.attributes.start + outer.start * x.attributes.step;
  both.attributes.step = length == 1 ? 1 : x.attributes.step * outer.step;
  both.attributes.end = both.attributes.start + (length - 1) * both.attributes.step + 1;
  return both;
}

// The planted mistake. Of a negative x, sqrt(x * x) is -x.
Replacement planted_root(Graph& graph, const Node& node) {
  const Node& x = input(graph, node, 0);
  if (x.op == OpType::Mul && x.inputs[0] == x.inputs[1]) return x.inputs[0];
  return {};
}

struct Rule {
  OpType op;
  const char* name;  // in the report
  Replacement (*apply)(Graph& graph, const Node& node);
};

constexpr Rule rules[] = {
    {OpType::Add, "addition", add},
    {OpType::Sub, "subtraction", subtract},
    {OpType::Mul, "multiplication", multiply},
    {OpType::Div, "division", divide},
    {OpType::Pow, "power", power},
    {OpType::Neg, "sign", negate},
    {OpType::Abs, "sign", absolute},
    {OpType::Abs, "repetition", repeat},
    {OpType::Relu, "repetition", repeat},
    {OpType::Sign, "repetition", repeat},
    {OpType::Floor, "repetition", repeat},
    {OpType::Ceil, "repetition", repeat},
    {OpType::Trunc, "repetition", repeat},
    {OpType::Round, "repetition", repeat},
    {OpType::LogicalNot, "logic", invert},
    {OpType::BitwiseNot, "logic", invert},
    {OpType::Reciprocal, "division", reciprocal},
    {OpType::LogicalAnd, "logic", logic},
    {OpType::LogicalOr, "logic", logic},
    {OpType::BitwiseAnd, "logic", logic},
    {OpType::BitwiseOr, "logic", logic},
    {OpType::Where, "where", choose},
    {OpType::Maximum, "extremes", extreme},
    {OpType::Minimum, "extremes", extreme},
    {OpType::Cast, "cast", cast},
    {OpType::Reshape, "views", reshape_or_expand},
    {OpType::Expand, "views", reshape_or_expand},
    {OpType::Permute, "views", permute},
    {OpType::Slice, "views", slice},
};

class Algebraic final : public GraphPass {
 public:
  explicit Algebraic(bool planted) : planted_(planted) {}
  std::string_view name() const override { return "algebraic"; }
  std::string_view purpose() const override { return "algebraic rules"; }
  std::string_view mistake() const override {
    return "sqrt(x * x) becomes x: it is the absolute value of x.";
  }

 private:
  using Counts = std::map<std::string, int>;

  // Nodes that become unused stay: dead_code drops them.
  Result rewrite(const Graph& graph) const override {
    Rewriting rewriting(graph);
    Counts counts;
    for (NodeId id = 0; id < graph.size(); ++id) {
      rewriting.replace(id, emit(rewriting.to, rewriting.translated(id), counts));
    }
    Result result;
    result.graph = rewriting.finish();
    for (const auto& [rule, count] : counts) {
      result.changes += count;
      result.what += (result.what.empty() ? " (" : ", ") + rule + " " + std::to_string(count);
    }
    if (!result.what.empty()) result.what += ")";
    result.what = std::to_string(result.changes) + " rewritten" + result.what;
    return result;
  }

  // Rules make nodes smaller or move them towards a leaf, so this ends.
  NodeId emit(Graph& to, Node node, Counts& counts) const {
    while (true) {
      Replacement found = apply(to, node, counts);
      if (const NodeId* known = std::get_if<NodeId>(&found)) return *known;
      if (Node* other = std::get_if<Node>(&found)) {
        node = std::move(*other);
        continue;
      }
      return to.add(std::move(node));
    }
  }

  Replacement apply(Graph& to, const Node& node, Counts& counts) const {
    if (planted_ && node.op == OpType::Sqrt) {
      Replacement found = planted_root(to, node);
      if (found.index() != 0) return ++counts["roots"], found;
    }
    for (const Rule& rule : rules) {
      if (rule.op != node.op) continue;
      Replacement found = rule.apply(to, node);
      if (found.index() != 0) return ++counts[rule.name], found;
    }
    return {};
  }

  bool planted_;
};

}  // namespace

std::unique_ptr<Pass> make_algebraic_pass(bool planted) {
  return std::make_unique<Algebraic>(planted);
}

}  // namespace mini
