// The graph: a list of nodes, each after all that it needs. Every node has one result.
//
// Shapes are explicit. Operands of pointwise operators have the shape of the result; broadcasting
// is an Expand that somebody wrote.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "op.h"
#include "tensor.h"

namespace mini {

using NodeId = int32_t;  // the node's place in Graph::nodes

// A number as exact as its dtype: `i` for i64 and bool, `d` for floats.
struct Scalar {
  double d = 0;
  int64_t i = 0;
  bool operator==(const Scalar&) const = default;
};

// What an operator is told beside its inputs. ops.def says who reads what.
struct Attributes {
  std::vector<int64_t> dims;
  int64_t dim = 0;
  int64_t start = 0;
  int64_t end = 0;
  int64_t step = 1;
  bool keepdim = false;
  Scalar value;
  Strides strides;
  bool operator==(const Attributes&) const = default;
};

struct Node {
  OpType op = OpType::Input;
  std::vector<NodeId> inputs;
  TensorType type;
  Attributes attributes;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<NodeId> inputs;   // the Input nodes, in the order of the caller's tensors
  std::vector<NodeId> outputs;  // a node may be given back twice, and an input may be one

  const Node& operator[](NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  Node& operator[](NodeId id) { return nodes[static_cast<size_t>(id)]; }
  NodeId size() const { return static_cast<NodeId>(nodes.size()); }
  // Appends a node. Input nodes are listed in `inputs` by themselves.
  NodeId add(Node node);
  // For each node, how many nodes and outputs read it.
  std::vector<int> use_counts() const;
};

// verify.cpp: throws GraphError with one sentence that names the node.
void verify(const Graph& graph);
// The type that an operator gives for these inputs; throws GraphError where they don't fit.
// Expand, Reshape, Cast, Input, Constant, Iota keep the type that `node.type` asks for.
TensorType infer_type(const Graph& graph, const Node& node);
// Throws GraphError where the node's inputs, attributes or type are wrong; `where` begins its
// message ("line 3: %2").
void verify(const Graph& graph, const Node& node, const std::string& where);
// The strides of an Input: its own, or contiguous ones.
Strides input_strides(const Node& node);

// text.cpp: the format that is printed, read, hashed and kept in files.
//
//   mini 1
//   %0 = input : f32[4, 8] strides=[1, 4]
//   %1 = constant value=0.5 : f32[4, 8]
//   %2 = mul %0 %1 : f32[4, 8]
//   %3 = sum %2 dims=[1] keepdim=1 : f32[4, 1]
//   return %2 %3
//
// A line is `%n = op inputs attributes : type`, numbered from 0 without gaps; attributes may also
// stand after the type. Attributes at their default are left out. Floats are printed so that
// reading gives the same bits; inf, -inf and nan are words. `#` begins a comment.
std::string to_text(const Graph& graph);
// One line of it, "%2 = mul %0 %1 : f32[4, 8]".
std::string to_text(const Graph& graph, NodeId id);
// What the node does, without its number: nodes with equal text compute the same, bit for bit.
std::string to_text(const Node& node);
// Throws GraphError that names the line. What it returns is verified.
Graph parse_graph(std::string_view text);

// dot.cpp: for Graphviz.
std::string to_dot(const Graph& graph);

}  // namespace mini
