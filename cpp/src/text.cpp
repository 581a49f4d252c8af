// The text format: graph.h describes it.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "error.h"
#include "graph.h"

namespace mini {

namespace {

// ---- Numbers. The standard library of some systems cannot do this for floats yet.

template <class Float>
std::string float_text(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
#if defined(__cpp_lib_to_chars)
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
#else
  const int digits = std::numeric_limits<Float>::max_digits10;
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, static_cast<double>(value));
  return buffer;
#endif
}

bool read_float(std::string_view word, double& value) {
  if (word == "nan") return value = std::numeric_limits<double>::quiet_NaN(), true;
  if (word == "inf") return value = std::numeric_limits<double>::infinity(), true;
  if (word == "-inf") return value = -std::numeric_limits<double>::infinity(), true;
  if (word.find_first_not_of("0123456789+-.e") != word.npos) return false;
#if defined(__cpp_lib_to_chars)
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size();
#else
  const std::string copy{word};
  char* end = nullptr;
  value = std::strtod(copy.c_str(), &end);
  return !copy.empty() && *end == '\0' && std::isfinite(value);
#endif
}

bool read_integer(std::string_view word, int64_t& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size();
}

// ---- Printing

std::string list_text(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  }
  return text + "]";
}

std::string value_text(const Node& node) {
  const Scalar& value = node.attributes.value;
  switch (node.type.dtype) {
    case DType::Float32: return float_text(static_cast<float>(value.d));
    case DType::Float64: return float_text(value.d);
    default: return std::to_string(value.i);
  }
}

std::string attributes_text(const Node& node) {
  const Attributes& given = node.attributes;
  const Attributes usual;
  std::string text;
  if (node.op == OpType::Constant) text += " value=" + value_text(node);
  if (given.dims != usual.dims) text += " dims=" + list_text(given.dims);
  if (given.dim != usual.dim) text += " dim=" + std::to_string(given.dim);
  if (given.start != usual.start) text += " start=" + std::to_string(given.start);
  if (given.end != usual.end) text += " end=" + std::to_string(given.end);
  if (given.step != usual.step) text += " step=" + std::to_string(given.step);
  if (given.keepdim != usual.keepdim) text += " keepdim=1";
  if (given.strides != usual.strides) text += " strides=" + list_text(given.strides);
  return text;
}

// ---- Reading

// One line, word by word. Every error names the line.
class LineReader {
 public:
  LineReader(std::string_view line, int number) : rest_(line), where_(line_name(number)) {
    rest_ = rest_.substr(0, rest_.find('#'));
    skip_spaces();
  }

  static std::string line_name(int number) { return "line " + std::to_string(number); }
  const std::string& where() const { return where_; }
  bool at_end() const { return rest_.empty(); }
  bool at(char c) const { return !rest_.empty() && rest_[0] == c; }

  [[noreturn]] void fail(const std::string& what) const { throw GraphError(where_ + ": " + what); }

  bool skip(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    skip_spaces();
    return true;
  }

  void expect(char c) {
    if (!skip(c)) fail(std::string("expected '") + c + "' " + place());
  }

  // Letters, digits and what numbers are written with; "" where there is none.
  std::string_view word() {
    size_t length = 0;
    while (length < rest_.size() && is_word(rest_[length])) ++length;
    const std::string_view found = rest_.substr(0, length);
    rest_.remove_prefix(length);
    skip_spaces();
    return found;
  }

  int64_t integer() {
    const std::string before = place();
    int64_t value = 0;
    if (!read_integer(word(), value)) fail("expected a whole number " + before);
    return value;
  }

  std::vector<int64_t> list() {
    expect('[');
    std::vector<int64_t> numbers;
    if (skip(']')) return numbers;
    do numbers.push_back(integer());
    while (skip(','));
    expect(']');
    return numbers;
  }

  NodeId node() {
    expect('%');
    const int64_t id = integer();
    if (id < 0 || id > std::numeric_limits<NodeId>::max())
      fail("there is no node with that number");
    return static_cast<NodeId>(id);
  }

  std::string place() const {
    if (rest_.empty()) return "at the end of the line";
    return "before '" + std::string(rest_.substr(0, 20)) + "'";
  }

 private:
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '.';
  }
  void skip_spaces() {
    const size_t begin = rest_.find_first_not_of(" \t\r");
    rest_.remove_prefix(begin == rest_.npos ? rest_.size() : begin);
  }

  std::string_view rest_;
  std::string where_;
};

TensorType read_type(LineReader& line) {
  const std::string_view name = line.word();
  for (DType dtype : {DType::Float32, DType::Float64, DType::Int64, DType::Bool}) {
    if (dtype_name(dtype) == name) return {dtype, line.list()};
  }
  line.fail("'" + std::string(name) + "' is not a dtype");
}

// What value=.. says can only be read when the dtype is known.
void read_attribute(LineReader& line, std::string_view name, Attributes& into, std::string& value) {
  line.expect('=');
  if (name == "dims") into.dims = line.list();
  else if (name == "strides") into.strides = line.list();
  else if (name == "dim") into.dim = line.integer();
  else if (name == "start") into.start = line.integer();
  else if (name == "end") into.end = line.integer();
  else if (name == "step") into.step = line.integer();
  else if (name == "keepdim") into.keepdim = line.integer() != 0;
  else if (name == "value") value = line.word();
  else line.fail("there is no attribute '" + std::string(name) + "'");
}

Scalar read_value(const LineReader& line, DType dtype, std::string_view word) {
  Scalar value;
  const bool good = is_float(dtype) ? read_float(word, value.d) : read_integer(word, value.i);
  if (!good) line.fail("'" + std::string(word) + "' is not a number of that dtype");
  if (dtype == DType::Float32) value.d = static_cast<double>(static_cast<float>(value.d));
  return value;
}

Node read_node(LineReader& line) {
  const std::string name{line.word()};
  const auto op = find_op(name);
  if (!op) line.fail("there is no operator '" + name + "'");
  Node node;
  node.op = *op;
  std::string value;
  bool typed = false;
  while (!line.at_end()) {
    if (line.at('%') && !typed) {
      node.inputs.push_back(line.node());
    } else if (!typed && line.skip(':')) {
      node.type = read_type(line);
      typed = true;
    } else {
      const std::string place = line.place();
      const std::string_view word = line.word();
      if (word.empty()) line.fail("cannot be read " + place);
      read_attribute(line, word, node.attributes, value);
    }
  }
  if (!typed) line.fail("the type is missing");
  if (node.op == OpType::Constant) node.attributes.value = read_value(line, node.type.dtype, value);
  return node;
}

void read_return(LineReader& line, Graph& graph) {
  while (!line.at_end()) {
    const NodeId id = line.node();
    if (id >= graph.size()) line.fail("%" + std::to_string(id) + " does not exist");
    graph.outputs.push_back(id);
  }
}

}  // namespace

std::string to_text(const Node& node) {
  std::string text{op_name(node.op)};
  for (NodeId input : node.inputs) text += " %" + std::to_string(input);
  return text + attributes_text(node) + " : " + to_string(node.type);
}

std::string to_text(const Graph& graph, NodeId id) {
  return "%" + std::to_string(id) + " = " + to_text(graph[id]);
}

std::string to_text(const Graph& graph) {
  std::string text = "mini 1\n";
  for (NodeId id = 0; id < graph.size(); ++id) text += to_text(graph, id) + "\n";
  text += "return";
  for (NodeId output : graph.outputs) text += " %" + std::to_string(output);
  return text + "\n";
}

Graph parse_graph(std::string_view text) {
  Graph graph;
  bool begun = false;
  bool returned = false;
  int number = 0;
  while (!text.empty()) {
    const size_t length = text.find('\n');
    LineReader line(text.substr(0, length), ++number);
    text.remove_prefix(length == text.npos ? text.size() : length + 1);
    if (line.at_end()) continue;
    if (returned) line.fail("nothing may stand after 'return'");
    if (!begun) {
      if (line.word() != "mini" || line.word() != "1" || !line.at_end()) {
        line.fail("expected 'mini 1', the version of this format");
      }
      begun = true;
    } else if (line.at('%')) {
      const NodeId id = line.node();
      if (id != graph.size()) line.fail("expected %" + std::to_string(graph.size()));
      line.expect('=');
      Node node = read_node(line);
      verify(graph, node, line.where());
      graph.add(std::move(node));
    } else {
      const std::string place = line.place();
      if (line.word() != "return") line.fail("expected a node or 'return' " + place);
      read_return(line, graph);
      returned = true;
    }
  }
  if (!returned) throw GraphError(LineReader::line_name(number + 1) + ": 'return' is missing");
  verify(graph);
  return graph;
}

}  // namespace mini
