// The loops that a set of nodes can share: the fusion pass asks whether there are any, code
// generation walks them.
//
// A nest goes over some dimensions, some of them reduced. Every node is at one of two levels: one
// value an element, or one value a row (a row is what reductions make one number of). Reductions
// separate phases: a value that needs the row's sum has to wait until the row has been seen once.
#pragma once

#include <optional>
#include <vector>

#include "../program.h"

namespace mini {

struct Operand {
  enum class From : uint8_t { Memory, Nest, Literal };
  From from = From::Memory;
  NodeId node = 0;     // in memory: the base; in the nest or a literal: that node
  Strides strides;     // Memory: one a dimension of the nest
  int64_t offset = 0;  // Memory: in elements
};

struct NestNode {
  NodeId id = 0;
  bool per_row = false;
  bool reduction = false;
  int phase = 0;  // an element: the pass over the row that computes it; a row: known before that pass
  std::vector<Operand> operands;
};

struct LoopNest {
  Shape sizes;  // without dimensions of size 1
  std::vector<bool> reduced;
  std::vector<NestNode> nodes;  // by id, Constants left out
  int phases = 1;

  const NestNode* find(NodeId id) const;
  int64_t rows() const;        // product of the sizes that are kept
  int64_t row_length() const;  // and of those that are reduced
  // How a result is laid out: contiguous over all dimensions, or over the kept ones.
  Strides result_strides(bool per_row) const;
};

// Nothing where the nodes cannot share loops, or have no elements. Nodes must be in order.
std::optional<LoopNest> nest_of(const Program& program, const std::vector<NodeId>& nodes);

// Joins neighbouring dimensions that all operands step through as through one.
void merge_dimensions(LoopNest& nest);

// What a view operator makes of the view of its input; nothing where strides cannot express it.
std::optional<View> view_through(const Node& node, const View& input, const Shape& input_shape);

}  // namespace mini
