// A graph with a plan: which nodes run together, what is only a way of looking at memory, and where
// results live. The passes turn the plain plan of `plan_plainly` into a good one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph.h"

namespace mini {

// How a value is read from the memory of another node: element (i, j, ..) is at
// offset + i * strides[0] + j * strides[1] + ..
struct View {
  NodeId base = 0;  // never itself a view
  Strides strides;
  int64_t offset = 0;
  bool operator==(const View&) const = default;
};

// Nodes that run in one loop nest, or one that runs alone. A Constant may be in several kernels.
struct Kernel {
  enum class Kind : uint8_t {
    Pointwise,  // all nodes have the same elements in the same order
    Reduction,  // rows: kept dimensions outside, reduced ones inside, and pointwise work on both
    MatMul,
    Copy,    // one view that has to be made, or Constant, Iota, Cat, Take, Gather
  };
  Kind kind = Kind::Pointwise;
  std::vector<NodeId> nodes;    // in order
  std::vector<NodeId> results;  // those of `nodes` that other kernels or the caller read
};

// Where a kernel's result lives.
struct Slot {
  int64_t offset = 0;  // bytes from the beginning of the working memory
  int64_t bytes = 0;
};

struct Program {
  Graph graph;
  std::vector<Kernel> kernels;              // in order of execution
  std::vector<std::optional<View>> views;   // by node: set where the node needs no memory of its own
  std::vector<std::optional<Slot>> slots;   // by node: results that are not the caller's
  int64_t working_bytes = 0;                // of all slots together

  std::string to_text() const;
};

// program.cpp: each node a kernel of its own, no views, no memory used twice.
Program plan_plainly(Graph graph);
// Where a node's numbers are: its view, or itself, contiguous (an Input: with its strides).
View view_of(const Program& program, NodeId id);
// The output, by its place in graph.outputs, whose memory the kernel writes this node to; -1: none,
// so it has a slot. Outputs that no kernel writes are copied at the end.
int home_output(const Program& program, NodeId id);
// What a slot for such a value takes, and slots for all results, none shared.
int64_t slot_bytes(const TensorType& type);
void give_slots(Program& program);
// Throws std::logic_error where a pass broke the plan.
void verify(const Program& program);

}  // namespace mini
