// What each operator computes: the reference that everything else is checked against. Written to
// be read, not to be fast; only pointwise loops and MatMul are made so that they don't crawl.
#pragma once

#include <vector>

#include "graph.h"

namespace mini {

// Writes the node's result to `output`, which is contiguous and has the node's type. Inputs may
// have any strides. Throws GraphError for an index that points outside.
void evaluate(const Node& node, const std::vector<Tensor>& inputs, const Tensor& output);

// The same into new memory. A view gives a new look at its input's memory where strides can say it.
Tensor evaluate(const Node& node, const std::vector<Tensor>& inputs);

// Copies between tensors of one type; `to` is contiguous.
void copy(const Tensor& from, const Tensor& to);

}  // namespace mini
