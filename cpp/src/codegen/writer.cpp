#include "writer.h"

#include <charconv>
#include <cmath>
#include <set>

namespace mini {

void Writer::line(const std::string& text) {
  if (!text.empty()) text_ << std::string(static_cast<size_t>(depth_) * 2, ' ') << text;
  text_ << "\n";
  if (!text.empty() && text.back() == '{' && !text.starts_with("namespace ")) ++depth_;
}

void Writer::close(const std::string& after) {
  --depth_;
  line("}" + after);
}

std::string cpp_type(DType dtype) {
  switch (dtype) {
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Int64: return "int64_t";
    case DType::Bool: break;
  }
  return "bool";
}

namespace {

template <class T>
std::string float_literal(T value, const std::string& type, const std::string& suffix) {
  if (std::isnan(value)) return "std::numeric_limits<" + type + ">::quiet_NaN()";
  if (std::isinf(value))
    return (value < 0 ? "-" : "") + ("std::numeric_limits<" + type + ">::infinity()");
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  std::string text(digits, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + suffix;
}

}  // namespace

std::string cpp_literal(DType dtype, const Scalar& value) {
  switch (dtype) {
    case DType::Float32: return float_literal(static_cast<float>(value.d), "float", "f");
    case DType::Float64: return float_literal(value.d, "double", "");
    case DType::Bool: return value.i != 0 ? "true" : "false";
    case DType::Int64: break;
  }
  // The smallest number has no literal of its own.
  if (value.i == std::numeric_limits<int64_t>::min()) return "std::numeric_limits<int64_t>::min()";
  return "int64_t(" + std::to_string(value.i) + ")";
}

std::string value_name(NodeId id) { return "v" + std::to_string(id); }
std::string memory_name(NodeId id) { return "p" + std::to_string(id); }

std::string expression(const Graph& graph, NodeId id, const std::vector<std::string>& operands) {
  const Node& node = graph[id];
  std::string arguments;
  for (const std::string& operand : operands) arguments += (arguments.empty() ? "" : ", ") + operand;
  if (node.op == OpType::Cast)
    return "kernel::cast<" + cpp_type(node.type.dtype) + ">(" + arguments + ")";
  if (is_view(node.op)) return arguments;
  return "kernel::" + std::string(op_name(node.op)) + "(" + arguments + ")";
}

std::string sum_of_products(const std::vector<std::string>& names, const Strides& strides) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (strides[i] == 0) continue;
    text += (text.empty() ? "" : " + ") + names[i];
    if (strides[i] != 1) text += " * " + std::to_string(strides[i]);
  }
  return text.empty() ? "0" : text;
}

int op_weight(OpType op) {
  switch (op) {
    case OpType::Exp:
    case OpType::Expm1:
    case OpType::Tanh:
    case OpType::Erf:
    case OpType::Sigmoid: return 8;
    case OpType::Log:
    case OpType::Log1p:
    case OpType::Log2:
    case OpType::Sin:
    case OpType::Cos: return 16;
    case OpType::Pow:
    case OpType::Atan2:
    case OpType::Fmod:
    case OpType::Remainder:
    case OpType::FloorDiv: return 30;
    case OpType::Sqrt:
    case OpType::Rsqrt:
    case OpType::Reciprocal:
    case OpType::TruncDiv:
    case OpType::Div: return 3;
    default: return 1;
  }
}

std::vector<NodeId> memory_read(const Program& program, const Kernel& kernel) {
  std::set<NodeId> inside(kernel.nodes.begin(), kernel.nodes.end());
  std::set<NodeId> read;
  for (NodeId id : kernel.nodes) {
    for (NodeId input : program.graph[id].inputs) {
      const NodeId base = view_of(program, input).base;
      if (!inside.count(base)) read.insert(base);
    }
  }
  return {read.begin(), read.end()};
}

// Waking the other threads takes as long as about this many additions.
bool worth_threads(int64_t weighted_elements) { return weighted_elements >= 60000; }

std::string loop_pragma(int64_t weighted_elements, bool simd, size_t collapsed) {
  if (!worth_threads(weighted_elements)) return simd ? "#pragma omp simd" : "";
  return std::string("#pragma omp parallel for ") + (simd ? "simd " : "") +
         (collapsed > 1 ? "collapse(" + std::to_string(collapsed) + ") " : "") +
         "schedule(static) num_threads(mini_threads())";
}

}  // namespace mini
