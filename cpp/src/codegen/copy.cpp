// Kernels that only move numbers or make them from nothing: views that need memory of their own,
// Constant, Iota, Cat, Take and Gather.
#include "writer.h"

namespace mini {
namespace {

std::vector<std::string> names_of(size_t count) {
  std::vector<std::string> names;
  for (size_t d = 0; d < count; ++d) names.push_back("i" + std::to_string(d));
  return names;
}

void open_loop(Writer& out, const std::string& name, int64_t size) {
  out.line("for (int64_t " + name + " = 0; " + name + " < " + std::to_string(size) + "; ++" + name +
           ") {");
}

std::string at(const View& view) {
  return memory_name(view.base) + (view.offset ? " + " + std::to_string(view.offset) : "");
}

void write_fill(Writer& out, NodeId id, const Node& node, int64_t count) {
  out.pragma(loop_pragma(count, true));
  open_loop(out, "i", count);
  std::string value = cpp_literal(node.type.dtype, node.attributes.value);
  if (node.op == OpType::Iota) {
    value = "kernel::cast<" + cpp_type(node.type.dtype) + ">(kernel::add(int64_t(" +
            std::to_string(node.attributes.start) + "), kernel::mul(i, int64_t(" +
            std::to_string(node.attributes.step) + "))))";
  }
  out.line(memory_name(id) + "[i] = " + value + ";");
  out.close();
}

// Strides cannot say it and no common dimensions exist: the place in the input is divided out.
void write_reshape(Writer& out, const Program& program, NodeId id) {
  const NodeId input = program.graph[id].inputs[0];
  const Shape& shape = program.graph[input].type.shape;
  const View view = view_of(program, input);
  const int64_t count = element_count(shape);
  const Node& base = program.graph[view.base];
  if (base.op == OpType::Constant) return write_fill(out, id, base, count);
  out.pragma(loop_pragma(4 * count, false));
  open_loop(out, "i", count);
  std::string place = std::to_string(view.offset);
  int64_t below = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    place += " + i / " + std::to_string(below) + " % " + std::to_string(shape[d]) + " * " +
             std::to_string(view.strides[d]);
    below *= shape[d];
  }
  out.line(memory_name(id) + "[i] = " + memory_name(view.base) + "[" + place + "];");
  out.close();
}

void write_cat(Writer& out, const Program& program, NodeId id) {
  const Node& node = program.graph[id];
  const Strides strides = contiguous_strides(node.type.shape);
  const size_t dim = static_cast<size_t>(node.attributes.dim);
  int64_t start = 0;
  for (NodeId input : node.inputs) {
    const Shape& shape = program.graph[input].type.shape;
    const View view = view_of(program, input);
    out.line("// %" + std::to_string(input));
    write_strided_copy(out, shape, at(view), view.strides,
                       memory_name(id) + " + " + std::to_string(start * strides[dim]), strides);
    start += shape[dim];
  }
}

void write_index_check(Writer& out, int64_t size) {
  out.line("if (j < 0 || j >= " + std::to_string(size) + ") {");
  out.line("bad = 1;");
  out.line("continue;");
  out.close();
}

std::string parallel_with_check(int64_t work, size_t collapsed) {
  const std::string pragma = loop_pragma(work, false, collapsed);
  return pragma.empty() || collapsed == 0 ? "" : pragma + " reduction(|:bad)";
}

// The result is x[before.., index.., after..]: loops over `before` and over the index, then the
// slice itself.
void write_take(Writer& out, const Program& program, NodeId id) {
  const Node& node = program.graph[id];
  const Shape& x_shape = program.graph[node.inputs[0]].type.shape;
  const View x = view_of(program, node.inputs[0]);
  const Shape& index_shape = program.graph[node.inputs[1]].type.shape;
  const View index = view_of(program, node.inputs[1]);
  const size_t dim = static_cast<size_t>(node.attributes.dim);
  const size_t outer = dim + index_shape.size();
  const Shape& shape = node.type.shape;
  const auto names = names_of(shape.size());
  Strides x_strides(x.strides.begin(), x.strides.begin() + static_cast<std::ptrdiff_t>(dim));
  x_strides.resize(outer, 0);
  x_strides.insert(x_strides.end(), x.strides.begin() + static_cast<std::ptrdiff_t>(dim) + 1,
                   x.strides.end());
  Strides index_strides(dim, 0);
  index_strides.insert(index_strides.end(), index.strides.begin(), index.strides.end());
  index_strides.resize(shape.size(), 0);

  out.line("int32_t bad = 0;");
  out.pragma(parallel_with_check(2 * element_count(shape), outer));
  for (size_t d = 0; d < outer; ++d) open_loop(out, names[d], shape[d]);
  if (outer == 0) out.line("do {");
  out.line("const int64_t j = (" + at(index) + ")[" + sum_of_products(names, index_strides) + "];");
  write_index_check(out, x_shape[dim]);
  for (size_t d = outer; d < shape.size(); ++d) open_loop(out, names[d], shape[d]);
  out.line(memory_name(id) + "[" + sum_of_products(names, contiguous_strides(shape)) + "] = (" +
           at(x) + ")[" + sum_of_products(names, x_strides) + " + j * " +
           std::to_string(x.strides[dim]) + "];");
  for (size_t d = outer; d < shape.size(); ++d) out.close();
  if (outer == 0) out.close(" while (false);");
  for (size_t d = 0; d < outer; ++d) out.close();
  out.line("return bad;");
}

void write_gather(Writer& out, const Program& program, NodeId id) {
  const Node& node = program.graph[id];
  const Shape& x_shape = program.graph[node.inputs[0]].type.shape;
  const View x = view_of(program, node.inputs[0]);
  const View index = view_of(program, node.inputs[1]);
  const Shape& shape = node.type.shape;
  const size_t dim = static_cast<size_t>(node.attributes.dim);
  const auto names = names_of(shape.size());
  Strides x_strides = x.strides;
  x_strides[dim] = 0;

  out.line("int32_t bad = 0;");
  out.pragma(parallel_with_check(2 * element_count(shape), shape.size()));
  for (size_t d = 0; d < shape.size(); ++d) open_loop(out, names[d], shape[d]);
  out.line("const int64_t j = (" + at(index) + ")[" + sum_of_products(names, index.strides) + "];");
  write_index_check(out, x_shape[dim]);
  out.line(memory_name(id) + "[" + sum_of_products(names, contiguous_strides(shape)) + "] = (" +
           at(x) + ")[" + sum_of_products(names, x_strides) + " + j * " +
           std::to_string(x.strides[dim]) + "];");
  for (size_t d = 0; d < shape.size(); ++d) out.close();
  out.line("return bad;");
}

}  // namespace

void write_strided_copy(Writer& out, const Shape& shape, const std::string& from,
                        const Strides& from_strides, const std::string& to,
                        const Strides& to_strides) {
  // Neighbouring dimensions that both sides step through as through one are joined.
  Shape sizes;
  Strides a, b;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    if (!sizes.empty() && a.back() == from_strides[d] * shape[d] &&
        b.back() == to_strides[d] * shape[d]) {
      sizes.back() *= shape[d];
      a.back() = from_strides[d];
      b.back() = to_strides[d];
    } else {
      sizes.push_back(shape[d]);
      a.push_back(from_strides[d]);
      b.push_back(to_strides[d]);
    }
  }
  const int64_t count = element_count(shape);
  if (count == 0) return;
  const auto names = names_of(sizes.size());
  const size_t rank = sizes.size();
  if (rank > 1) out.pragma(loop_pragma(count, false, rank - 1));
  for (size_t d = 0; d < rank; ++d) {
    if (d + 1 == rank) out.pragma(rank > 1 ? "#pragma omp simd" : loop_pragma(count, true));
    open_loop(out, names[d], sizes[d]);
  }
  out.line("(" + to + ")[" + sum_of_products(names, b) + "] = (" + from + ")[" +
           sum_of_products(names, a) + "];");
  for (size_t d = 0; d < rank; ++d) out.close();
}

void write_copy(Writer& out, const Program& program, NodeId id) {
  const Node& node = program.graph[id];
  switch (node.op) {
    case OpType::Constant:
    case OpType::Iota: return write_fill(out, id, node, node.type.elements());
    case OpType::Reshape: return write_reshape(out, program, id);
    case OpType::Cat: return write_cat(out, program, id);
    case OpType::Take: return write_take(out, program, id);
    case OpType::Gather: return write_gather(out, program, id);
    default: break;
  }
  const NodeId input = node.inputs[0];
  const View view =
      *view_through(node, view_of(program, input), program.graph[input].type.shape);
  write_strided_copy(out, node.type.shape, at(view), view.strides, memory_name(id),
                     contiguous_strides(node.type.shape));
}

}  // namespace mini
