#include "generate.h"

#include <algorithm>

#include "../kernel_source.h"
#include "prelude.h"
#include "writer.h"

namespace mini {
namespace {

bool can_fail(const Program& program, const Kernel& kernel) {
  const OpType op = program.graph[kernel.nodes[0]].op;
  return op == OpType::Take || op == OpType::Gather;
}

bool has_kind(const std::vector<const Program*>& programs, Kernel::Kind kind) {
  return std::any_of(programs.begin(), programs.end(), [&](const Program* program) {
    return std::any_of(program->kernels.begin(), program->kernels.end(),
                       [&](const Kernel& kernel) { return kernel.kind == kind; });
  });
}

// A node as the graph's text has it, attributes left out.
std::string node_comment(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  std::string text = "//   %" + std::to_string(id) + " = " + std::string(op_name(node.op));
  for (NodeId input : node.inputs) text += " %" + std::to_string(input);
  if (node.op == OpType::Constant) text += " " + cpp_literal(node.type.dtype, node.attributes.value);
  return text + " : " + to_string(node.type);
}

std::string kernel_name(const Program& program, const Kernel& kernel, size_t place) {
  std::string name = "kernel_" + std::to_string(place);
  size_t named = 0;
  for (NodeId id : kernel.nodes) {
    if (program.graph[id].op == OpType::Constant && kernel.nodes.size() > 1) continue;
    if (named++ == 4) return name + "_etc";
    name += "_" + std::string(op_name(program.graph[id].op));
  }
  return name;
}

// A reduction of nothing: what is known without looking.
void write_empty_reduction(Writer& out, const Program& program, NodeId id) {
  const Node& node = program.graph[id];
  const bool one = node.op == OpType::Prod || node.op == OpType::All;
  out.line("for (int64_t i = 0; i < " + std::to_string(node.type.elements()) + "; ++i) " +
           memory_name(id) + "[i] = " + (one ? "1" : "0") + ";");
}

void write_body(Writer& out, const Program& program, const Kernel& kernel) {
  const NodeId first = kernel.nodes[0];
  const Node& node = program.graph[first];
  if (node.op == OpType::ArgMax || node.op == OpType::ArgMin)
    return write_arg_reduction(out, program, first);
  if (kernel.kind == Kernel::Kind::MatMul) return write_matmul(out, program, first);
  const bool moves =
      kernel.kind == Kernel::Kind::Copy && !is_view(program.graph[kernel.results[0]].op);
  if (!moves) {
    if (auto nest = nest_of(program, kernel.nodes)) {
      const bool reduces = kernel.kind == Kernel::Kind::Reduction;
      return reduces ? write_reduction(out, program, kernel, std::move(*nest))
                     : write_pointwise(out, program, kernel, std::move(*nest));
    }
  }
  if (kernel.kind == Kernel::Kind::Reduction) return write_empty_reduction(out, program, kernel.results[0]);
  if (kernel.kind == Kernel::Kind::Copy) return write_copy(out, program, kernel.results[0]);
}

bool has_elements(const Program& program, const Kernel& kernel) {
  return std::any_of(kernel.results.begin(), kernel.results.end(),
                     [&](NodeId id) { return program.graph[id].type.elements() > 0; });
}

void write_kernel(Writer& out, const Program& program, const Kernel& kernel, size_t place) {
  out.line("");
  for (NodeId id : kernel.nodes) out.line(node_comment(program.graph, id));
  std::string parameters;
  for (NodeId id : memory_read(program, kernel)) {
    parameters += (parameters.empty() ? "const " : ", const ") +
                  cpp_type(program.graph[id].type.dtype) + "* __restrict " + memory_name(id);
  }
  for (NodeId id : kernel.results) {
    parameters += (parameters.empty() ? "" : ", ") + cpp_type(program.graph[id].type.dtype) +
                  "* __restrict " + memory_name(id);
  }
  const std::string type = can_fail(program, kernel) ? "int32_t" : "void";
  out.line("static " + type + " " + kernel_name(program, kernel, place) + "(" + parameters + ") {");
  write_body(out, program, kernel);
  out.close();
}

// The place of a node's numbers as an expression in the exported function.
std::string address(const Program& program, NodeId id, bool constant) {
  const std::string type = cpp_type(program.graph[id].type.dtype);
  const std::string cast = "static_cast<" + std::string(constant ? "const " : "") + type + "*>(";
  const auto& inputs = program.graph.inputs;
  const auto found = std::find(inputs.begin(), inputs.end(), id);
  if (found != inputs.end())
    return cast + "in[" + std::to_string(found - inputs.begin()) + "])";
  const int output = home_output(program, id);
  if (output >= 0) return cast + "out[" + std::to_string(output) + "])";
  const auto& slot = program.slots[static_cast<size_t>(id)];
  return "reinterpret_cast<" + type + "*>(work + " + std::to_string(slot ? slot->offset : 0) + ")";
}

void write_call(Writer& out, const Program& program, const Kernel& kernel, size_t place) {
  std::string arguments;
  for (NodeId id : memory_read(program, kernel))
    arguments += (arguments.empty() ? "" : ", ") + address(program, id, true);
  for (NodeId id : kernel.results)
    arguments += (arguments.empty() ? "" : ", ") + address(program, id, false);
  const std::string call = kernel_name(program, kernel, place) + "(" + arguments + ")";
  if (can_fail(program, kernel))
    out.line("if (" + call + " != 0) return " + std::to_string(kernel.nodes[0] + 1) + ";");
  else
    out.line(call + ";");
}

// Outputs that no kernel writes: inputs, views and what is given back twice.
void write_remaining_outputs(Writer& out, const Program& program) {
  for (size_t k = 0; k < program.graph.outputs.size(); ++k) {
    const NodeId id = program.graph.outputs[k];
    const View view = view_of(program, id);
    if (home_output(program, view.base) == static_cast<int>(k)) continue;
    const TensorType& type = program.graph[id].type;
    if (type.elements() == 0) continue;
    out.line("{");
    out.line("// output " + std::to_string(k) + " is %" + std::to_string(id));
    out.line("const " + cpp_type(type.dtype) + "* const from = " +
             address(program, view.base, true) + ";");
    out.line(cpp_type(type.dtype) + "* const to = static_cast<" + cpp_type(type.dtype) + "*>(out[" +
             std::to_string(k) + "]);");
    write_strided_copy(out, type.shape, "from + " + std::to_string(view.offset), view.strides, "to",
                       contiguous_strides(type.shape));
    out.close();
  }
}

void write_program(Writer& out, const Program& program, size_t place) {
  const std::string scope = "program_" + std::to_string(place);
  out.line("");
  out.line("namespace " + scope + " {");
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (has_elements(program, program.kernels[i])) write_kernel(out, program, program.kernels[i], i);
  }
  out.line("");
  out.line("static int32_t run([[maybe_unused]] const void* const* in, [[maybe_unused]] void* const* "
           "out, [[maybe_unused]] char* work) {");
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (has_elements(program, program.kernels[i])) write_call(out, program, program.kernels[i], i);
  }
  write_remaining_outputs(out, program);
  out.line("return 0;");
  out.close();
  out.line("}  // namespace " + scope);
  out.line("");
  out.line("MINI_EXPORT int32_t " + entry_name(place) +
           "(const void* const* in, void* const* out, char* work) {");
  out.line("return " + scope + "::run(in, out, work);");
  out.close();
}

}  // namespace

std::string entry_name(size_t place) { return "mini_function_" + std::to_string(place); }

std::string generate_source(const std::vector<const Program*>& programs,
                            const SourceOptions& options) {
  std::string source = kernel_math_source() + prelude_basics(options.threads);
  if (has_kind(programs, Kernel::Kind::Reduction)) source += prelude_folds();
  if (has_kind(programs, Kernel::Kind::MatMul)) source += prelude_matmul();
  Writer out;
  for (size_t i = 0; i < programs.size(); ++i) write_program(out, *programs[i], i);
  return source + out.text();
}

}  // namespace mini
