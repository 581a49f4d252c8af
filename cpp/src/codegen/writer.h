// Source text that is being written, with its indentation, and the small pieces all kernels share.
#pragma once

#include <sstream>
#include <string>

#include "loop_nest.h"

namespace mini {

class Writer {
 public:
  // Appends a line; a line that ends in `{` opens a block.
  void line(const std::string& text);
  // A line unless it is empty.
  void pragma(const std::string& text) { if (!text.empty()) line(text); }
  // `}` and what follows it.
  void close(const std::string& after = "");
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  int depth_ = 0;
};

// "float", "double", "int64_t", "bool".
std::string cpp_type(DType dtype);
std::string cpp_literal(DType dtype, const Scalar& value);
// "v12": the value of %12 in a loop; "p12": where its numbers are in memory.
std::string value_name(NodeId id);
std::string memory_name(NodeId id);
// The call that computes a pointwise node or a copy from the names of its operands.
std::string expression(const Graph& graph, NodeId id, const std::vector<std::string>& operands);
// "i0 * 4 + i1", zero and one left out; "0" where nothing is left.
std::string sum_of_products(const std::vector<std::string>& names, const Strides& strides);
// How much work one element of this operator is, beside an addition.
int op_weight(OpType op);

// What each kernel's file writes: the body of a function whose parameters are the memory of its
// operands and results.
void write_pointwise(Writer& out, const Program& program, const Kernel& kernel, LoopNest nest);
void write_reduction(Writer& out, const Program& program, const Kernel& kernel, LoopNest nest);
void write_arg_reduction(Writer& out, const Program& program, NodeId id);
void write_matmul(Writer& out, const Program& program, NodeId id);
void write_copy(Writer& out, const Program& program, NodeId id);
// One strided copy; also for outputs that no kernel writes.
void write_strided_copy(Writer& out, const Shape& shape, const std::string& from,
                        const Strides& from_strides, const std::string& to,
                        const Strides& to_strides);

// The nodes whose memory a kernel reads, each once, in order.
std::vector<NodeId> memory_read(const Program& program, const Kernel& kernel);

// "#pragma omp .." for a loop with this much work: several threads where they are worth it, vectors
// where `simd` says so; empty where neither.
std::string loop_pragma(int64_t weighted_elements, bool simd, size_t collapsed = 1);
bool worth_threads(int64_t weighted_elements);

}  // namespace mini
