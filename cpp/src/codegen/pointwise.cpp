// Pointwise kernels: each element of the result needs the same element of the operands. All nodes
// run in one loop, so what lies between them never reaches memory.
#include <algorithm>

#include "writer.h"

namespace mini {
namespace {

// A line of memory that was fetched for one number of a transposed operand holds 16 of them: squares
// of that size use it up before it is dropped.
constexpr int64_t tile = 16;

std::vector<std::string> loop_names(size_t count) {
  std::vector<std::string> names;
  for (size_t d = 0; d < count; ++d) names.push_back("i" + std::to_string(d));
  return names;
}

std::string read(const Program& program, const Operand& operand,
                 const std::vector<std::string>& names) {
  const Node& node = program.graph[operand.node];
  if (operand.from == Operand::From::Literal)
    return cpp_literal(node.type.dtype, node.attributes.value);
  if (operand.from == Operand::From::Nest) return value_name(operand.node);
  std::string place = sum_of_products(names, operand.strides);
  if (operand.offset != 0) place += " + " + std::to_string(operand.offset);
  return memory_name(operand.node) + "[" + place + "]";
}

void write_body(Writer& out, const Program& program, const Kernel& kernel, const LoopNest& nest,
                const std::vector<std::string>& names) {
  for (const NestNode& node : nest.nodes) {
    std::vector<std::string> operands;
    for (const Operand& operand : node.operands) operands.push_back(read(program, operand, names));
    const DType dtype = program.graph[node.id].type.dtype;
    out.line("const " + cpp_type(dtype) + " " + value_name(node.id) + " = " +
             expression(program.graph, node.id, operands) + ";");
  }
  const std::string place = sum_of_products(names, nest.result_strides(false));
  for (NodeId id : kernel.results)
    out.line(memory_name(id) + "[" + place + "] = " + value_name(id) + ";");
}

// The dimension that some operand steps through one by one while it jumps along the innermost:
// it is read transposed. -1: there is none.
int transposed_dimension(const LoopNest& nest) {
  for (const NestNode& node : nest.nodes) {
    for (const Operand& operand : node.operands) {
      if (operand.from != Operand::From::Memory || operand.strides.back() < tile) continue;
      for (size_t d = 0; d + 1 < nest.sizes.size(); ++d) {
        if (operand.strides[d] == 1 && nest.sizes[d] >= tile) return static_cast<int>(d);
      }
    }
  }
  return -1;
}

// Opens rank + 2 loops: over squares, and within one.
void write_tiles(Writer& out, const LoopNest& nest, const std::vector<std::string>& names,
                 size_t crossed, int64_t weight) {
  const size_t inner = nest.sizes.size() - 1;
  const std::string step = std::to_string(tile);
  out.pragma(loop_pragma(weight, false, nest.sizes.size()));
  for (size_t d = 0; d <= inner; ++d) {
    const bool tiled = d == crossed || d == inner;
    const std::string name = tiled ? "t" + std::to_string(d) : names[d];
    out.line("for (int64_t " + name + " = 0; " + name + " < " + std::to_string(nest.sizes[d]) +
             "; " + name + " += " + (tiled ? step : "1") + ") {");
  }
  for (size_t d : {crossed, inner}) {
    const std::string from = "t" + std::to_string(d);
    const std::string size = std::to_string(nest.sizes[d]);
    out.line("const int64_t end" + std::to_string(d) + " = " + from + " + " + step + " < " + size +
             " ? " + from + " + " + step + " : " + size + ";");
  }
  for (size_t d : {crossed, inner}) {
    if (d == inner) out.line("#pragma omp simd");
    out.line("for (int64_t " + names[d] + " = t" + std::to_string(d) + "; " + names[d] + " < end" +
             std::to_string(d) + "; ++" + names[d] + ") {");
  }
}

}  // namespace

void write_pointwise(Writer& out, const Program& program, const Kernel& kernel, LoopNest nest) {
  merge_dimensions(nest);
  int64_t weight = 1;
  for (const NestNode& node : nest.nodes) weight += op_weight(program.graph[node.id].op);
  weight *= element_count(nest.sizes);
  const size_t rank = nest.sizes.size();
  const auto names = loop_names(rank);
  auto loop = [&](size_t d) {
    const std::string& i = names[d];
    out.line("for (int64_t " + i + " = 0; " + i + " < " + std::to_string(nest.sizes[d]) + "; ++" +
             i + ") {");
  };
  if (rank == 0) {
    write_body(out, program, kernel, nest, names);
    return;
  }
  const int crossed = rank > 1 ? transposed_dimension(nest) : -1;
  if (crossed >= 0) {
    write_tiles(out, nest, names, static_cast<size_t>(crossed), weight);
    write_body(out, program, kernel, nest, names);
    for (size_t d = 0; d < rank + 2; ++d) out.close();
    return;
  }
  if (rank > 1) {
    // Enough of the outer loops together that all threads have work.
    out.pragma(loop_pragma(weight, false, rank - 1));
    for (size_t d = 0; d + 1 < rank; ++d) loop(d);
  }
  out.pragma(rank > 1 ? "#pragma omp simd" : loop_pragma(weight, true));
  loop(rank - 1);
  write_body(out, program, kernel, nest, names);
  for (size_t d = 0; d < rank; ++d) out.close();
}

}  // namespace mini
