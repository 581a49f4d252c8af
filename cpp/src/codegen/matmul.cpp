// Matrix products: a call of `multiply` (prelude.cpp) for each matrix of the batch. Operands are
// read in place, whatever their strides: a transposed one needs no copy.
#include "writer.h"

namespace mini {

void write_matmul(Writer& out, const Program& program, NodeId id) {
  const Node& node = program.graph[id];
  const View a = view_of(program, node.inputs[0]);
  const View b = view_of(program, node.inputs[1]);
  const Shape& shape = node.type.shape;
  const size_t batch = shape.size() - 2;
  const int64_t rows = shape[batch];
  const int64_t columns = shape[batch + 1];
  const int64_t inner = program.graph[node.inputs[0]].type.shape[batch + 1];
  const Strides result = contiguous_strides(shape);
  std::vector<std::string> names;
  int64_t batches = 1;
  for (size_t d = 0; d < batch; ++d) {
    names.push_back("b" + std::to_string(d));
    batches *= shape[d];
  }
  // Either whole matrices are shared out among the threads, or the parts of one.
  const int64_t work = rows * columns * (inner + 1);
  const bool many = batches >= 4;
  if (many) out.pragma(loop_pragma(work * batches / 4, false, batch));
  for (size_t d = 0; d < batch; ++d)
    out.line("for (int64_t " + names[d] + " = 0; " + names[d] + " < " + std::to_string(shape[d]) +
             "; ++" + names[d] + ") {");
  auto place = [&](const View& view) {
    const Strides outer(view.strides.begin(), view.strides.begin() + static_cast<std::ptrdiff_t>(batch));
    return memory_name(view.base) + " + " + std::to_string(view.offset) + " + " +
           sum_of_products(names, outer) + ", " + std::to_string(view.strides[batch]) + ", " +
           std::to_string(view.strides[batch + 1]);
  };
  const Strides outer(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(batch));
  const bool threads = !many && worth_threads(work / 4);
  out.line("multiply(" + std::to_string(rows) + ", " + std::to_string(columns) + ", " +
           std::to_string(inner) + ", " + place(a) + ", " + place(b) + ", " + memory_name(id) +
           " + " + sum_of_products(names, outer) + (threads ? ", true);" : ", false);"));
  for (size_t d = 0; d < batch; ++d) out.close();
}

}  // namespace mini
