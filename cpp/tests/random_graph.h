// Random graphs with inputs to run them on: every operator, dtype and kind of view, strided inputs,
// empty and 0-d tensors, NaN, infinity and -0.0. The same seed gives the same graph everywhere.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "graph.h"

namespace mini::test {

// Not <random>: its distributions differ between standard libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  // 0 <= result < bound
  int64_t below(int64_t bound) { return static_cast<int64_t>(next() >> 11) % bound; }
  bool chance(int percent) { return below(100) < percent; }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

class RandomGraph {
 public:
  Graph graph;
  std::vector<Tensor> inputs;

  explicit RandomGraph(uint64_t seed, int size = 12, bool special_values = true)
      : random_(seed), special_(special_values) {
    const int64_t leaves = 1 + random_.below(3);
    for (int64_t i = 0; i < leaves; ++i) add_input();
    while (graph.size() < leaves + size) step();
    add_outputs();
    verify(graph);
  }

 private:
  static constexpr DType dtypes[] = {DType::Float32, DType::Float64, DType::Int64, DType::Bool};
  Random random_;
  bool special_;

  // ---- Leaves

  DType random_dtype() { return random_.chance(50) ? DType::Float32 : dtypes[random_.below(4)]; }

  Shape random_shape() {
    Shape shape(static_cast<size_t>(random_.below(4)));
    // The same few sizes over and over, so that shapes meet.
    for (int64_t& size : shape) size = random_.chance(3) ? 0 : 1 + random_.below(5);
    return shape;
  }

  double random_number(DType dtype) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    constexpr double special[] = {
        0.0, -0.0, 1.0, -1.0, 2.0, 0.5, inf, -inf, std::numeric_limits<double>::quiet_NaN()};
    if (dtype == DType::Bool) return random_.chance(50) ? 1 : 0;
    if (dtype == DType::Int64) return static_cast<double>(random_.below(11) - 5);
    if (random_.chance(special_ ? 15 : 5)) return special[random_.below(special_ ? 9 : 6)];
    return random_.uniform() * 6 - 3;
  }

  void add_input() {
    Node node;
    node.type = {random_dtype(), random_shape()};
    const size_t dims = node.type.shape.size();
    int64_t reach = 1;
    if (random_.chance(40)) {
      // A permuted, spread or broadcast layout.
      node.attributes.strides.assign(dims, 0);
      for (size_t i = 0; i < dims; ++i) {
        const size_t dim = random_.chance(50) ? i : dims - 1 - i;
        if (node.attributes.strides[dim] != 0 || random_.chance(10)) continue;
        node.attributes.strides[dim] = reach;
        reach = reach * (node.type.shape[dim] + 1) + random_.below(2);
      }
    }
    const Strides strides = input_strides(node);
    int64_t extent = 1;
    for (size_t dim = 0; dim < dims; ++dim)
      extent += strides[dim] * (node.type.shape[dim] > 0 ? node.type.shape[dim] - 1 : 0);
    Tensor memory(TensorType{node.type.dtype, {extent}});
    with_dtype(node.type.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t i = 0; i < extent; ++i)
        memory.data<T>()[i] = static_cast<T>(random_number(node.type.dtype));
    });
    inputs.push_back(memory.viewed(node.type.shape, strides, 0));
    graph.add(std::move(node));
  }

  NodeId constant(const TensorType& type) {
    Node node;
    node.op = OpType::Constant;
    node.type = type;
    const double number = random_number(type.dtype);
    if (!is_float(type.dtype)) node.attributes.value.i = static_cast<int64_t>(number);
    else if (type.dtype == DType::Float64) node.attributes.value.d = number;
    else node.attributes.value.d = static_cast<double>(static_cast<float>(number));
    return graph.add(std::move(node));
  }

  // ---- Operators

  // A node that is not large yet.
  NodeId any_node() {
    NodeId id = 0;
    do id = static_cast<NodeId>(random_.below(graph.size()));
    while (graph[id].type.elements() > 2000);
    return id;
  }
  const TensorType& type(NodeId id) const { return graph[id].type; }
  int64_t rank(NodeId id) const { return static_cast<int64_t>(type(id).shape.size()); }

  NodeId add(OpType op, std::vector<NodeId> ins, TensorType wanted = {},
             Attributes attributes = {}) {
    Node node;
    node.op = op;
    node.inputs = std::move(ins);
    node.type = std::move(wanted);
    node.attributes = std::move(attributes);
    node.type = infer_type(graph, node);
    return graph.add(std::move(node));
  }

  NodeId as_dtype(NodeId id, DType dtype) {
    return type(id).dtype == dtype ? id : add(OpType::Cast, {id}, {dtype, type(id).shape});
  }

  // Another node of this type, if need be a new one.
  NodeId partner(const TensorType& wanted) {
    if (random_.chance(25)) return constant(wanted);
    for (int tries = 0; tries < 8; ++tries) {
      const NodeId id = any_node();
      if (type(id).shape == wanted.shape) return as_dtype(id, wanted.dtype);
      if (const NodeId expanded = broadcast(id, wanted.shape); expanded >= 0)
        return as_dtype(expanded, wanted.dtype);
    }
    return constant(wanted);
  }

  NodeId broadcast(NodeId id, const Shape& shape) {
    if (type(id).shape.size() != shape.size()) return -1;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      if (type(id).shape[dim] != shape[dim] && type(id).shape[dim] != 1) return -1;
    }
    return add(OpType::Expand, {id}, {type(id).dtype, shape});
  }

  void step() {
    const int64_t choice = random_.below(100);
    if (choice < 55) return pointwise();
    if (choice < 60) return choose();
    if (choice < 72) return reduce();
    if (choice < 88) return view();
    if (choice < 92) return multiply();
    if (choice < 98) return index();
    Attributes attributes;
    attributes.start = random_.below(7) - 3;
    attributes.step = random_.below(5) - 2;
    add(OpType::Iota, {}, {dtypes[random_.below(3)], {random_.below(6)}}, attributes);
  }

  void pointwise() {
    const OpType op =
        static_cast<OpType>(random_.below(static_cast<int64_t>(OpType::BitwiseXor) + 1));
    const PointwiseRule rule = *pointwise_rule(op);
    NodeId first = any_node();
    DType dtype = type(first).dtype;
    while (!accepts(rule.accepts, dtype)) dtype = dtypes[random_.below(4)];
    first = as_dtype(first, dtype);
    std::vector<NodeId> operands{first};
    if (rule.inputs == 2) operands.push_back(partner(TensorType(type(first))));
    if (rule.inputs == 2 && random_.chance(30)) std::swap(operands[0], operands[1]);
    add(op, operands);
  }

  void choose() {
    const NodeId then = any_node();
    const TensorType wanted = type(then);
    const NodeId condition = partner({DType::Bool, wanted.shape});
    add(OpType::Where, {condition, then, partner(wanted)});
  }

  void reduce() {
    constexpr OpType ops[] = {OpType::Sum, OpType::Sum, OpType::Prod,   OpType::Max,   OpType::Min,
                              OpType::Any, OpType::All, OpType::ArgMax, OpType::ArgMin};
    const OpType op = ops[random_.below(9)];
    NodeId x = any_node();
    if (op == OpType::Any || op == OpType::All) x = as_dtype(x, DType::Bool);
    if ((op == OpType::Sum || op == OpType::Prod) && type(x).dtype == DType::Bool)
      x = as_dtype(x, DType::Int64);
    Attributes attributes;
    attributes.keepdim = random_.chance(60);
    const bool one = op == OpType::ArgMax || op == OpType::ArgMin;
    for (int64_t dim = rank(x); dim-- > 0;) {
      if (one ? attributes.dims.empty() : random_.chance(60)) attributes.dims.push_back(dim);
    }
    if (one && attributes.dims.empty()) return;
    if (op != OpType::Sum && op != OpType::Prod && type(x).elements() == 0) return;
    const NodeId reduced = add(op, {x}, {}, attributes);
    // What normalizations do: bring it back to the shape that was reduced.
    if (attributes.keepdim && random_.chance(60))
      add(OpType::Expand, {reduced}, {type(reduced).dtype, Shape(type(x).shape)});
  }

  void view() {
    const NodeId x = any_node();
    const TensorType from = type(x);
    Attributes attributes;
    switch (random_.below(4)) {
      case 0: return reshape(x);
      case 1: {
        for (int64_t dim = 0; dim < rank(x); ++dim) {
          const int64_t place = random_.below(dim + 1);
          attributes.dims.insert(attributes.dims.begin() + static_cast<ptrdiff_t>(place), dim);
        }
        add(OpType::Permute, {x}, {}, attributes);
        return;
      }
      case 2: {
        Shape shape = from.shape;
        for (int64_t& size : shape) size = size == 1 ? 1 + random_.below(4) : size;
        add(OpType::Expand, {x}, {from.dtype, shape});
        return;
      }
      default: break;
    }
    if (rank(x) == 0) return;
    attributes.dim = random_.below(rank(x));
    const int64_t size = from.shape[static_cast<size_t>(attributes.dim)];
    attributes.start = random_.below(size + 1);
    attributes.end = attributes.start + random_.below(size - attributes.start + 1);
    attributes.step =
        random_.chance(3) ? std::numeric_limits<int64_t>::max() : 1 + random_.below(3);
    add(OpType::Slice, {x}, {}, attributes);
  }

  void reshape(NodeId x) {
    Shape shape = type(x).shape;
    const DType dtype = type(x).dtype;
    if (random_.chance(40))
      shape.insert(shape.begin() + random_.below(static_cast<int64_t>(shape.size()) + 1), 1);
    else if (random_.chance(50) || shape.size() < 2) shape = {type(x).elements()};
    else {
      shape[0] *= shape[1];
      shape.erase(shape.begin() + 1);
    }
    add(OpType::Reshape, {x}, {dtype, shape});
  }

  void multiply() {
    NodeId a = any_node();
    if (rank(a) < 2) return;
    if (type(a).dtype == DType::Bool) a = as_dtype(a, DType::Int64);
    TensorType wanted = type(a);
    const size_t last = wanted.shape.size() - 1;
    wanted.shape[last - 1] = wanted.shape[last];
    wanted.shape[last] = random_.chance(50) ? wanted.shape[last] : 1 + random_.below(5);
    add(OpType::MatMul, {a, partner(wanted)});
  }

  // Indices that are in range: a remainder keeps them there.
  NodeId indices(const Shape& shape, int64_t size) {
    const NodeId any = partner({DType::Int64, shape});
    Node bound;
    bound.op = OpType::Constant;
    bound.type = {DType::Int64, shape};
    bound.attributes.value.i = size;
    return add(OpType::Remainder, {any, graph.add(std::move(bound))});
  }

  void index() {
    const NodeId x = any_node();
    if (rank(x) == 0) return;
    Attributes attributes;
    attributes.dim = random_.below(rank(x));
    const int64_t size = type(x).shape[static_cast<size_t>(attributes.dim)];
    if (random_.chance(40)) {
      TensorType other = type(x);
      add(OpType::Cat, {x, partner(other)}, {}, attributes);
    } else if (size > 0 && random_.chance(50)) {
      const Shape shape = random_shape();
      if (shape.size() + type(x).shape.size() > 5) return;
      const NodeId where = indices(shape, size);
      add(OpType::Take, {x, where}, {}, attributes);
    } else if (size > 0) {
      Shape shape = type(x).shape;
      shape[static_cast<size_t>(attributes.dim)] = 1 + random_.below(4);
      const NodeId where = indices(shape, size);
      add(OpType::Gather, {x, where}, {}, attributes);
    }
  }

  void add_outputs() {
    graph.outputs.push_back(graph.size() - 1);
    for (int64_t more = random_.below(3); more > 0; --more) graph.outputs.push_back(any_node());
  }
};

}  // namespace mini::test
