// Graphs for Graphviz: `dot -Tsvg graph.dot -o graph.svg`.
#include <algorithm>

#include "graph.h"

namespace mini {

namespace {

const char* color(OpType op) {
  if (is_leaf(op)) return "#e8e8e8";
  if (is_reduction(op)) return "#fde3c8";
  if (is_view(op)) return "#e3f1dd";
  if (is_pointwise(op)) return "#dbe9fb";
  return "#f3dcee";
}

std::string label(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  std::string text = to_text(node);
  // Inputs are edges, and the type has its own line.
  std::string without{op_name(node.op)};
  size_t begin = without.size();
  while (text.compare(begin, 2, " %") == 0)
    begin = std::min(text.find(' ', begin + 1), text.size());
  const size_t colon = text.rfind(" : ");
  without += text.substr(begin, colon - begin);
  return "%" + std::to_string(id) + " " + without + "\\n" + to_string(node.type);
}

std::string edge(NodeId from, const std::string& to) {
  return "  n" + std::to_string(from) + " -> " + to;
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string text =
      "digraph mini {\n  node [shape=box, style=\"rounded,filled\", fontname=\"monospace\"];\n";
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const std::string name = "n" + std::to_string(id);
    text += "  " + name + " [label=\"" + label(graph, id) + "\", fillcolor=\"" + color(node.op) +
            "\"];\n";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      text += edge(node.inputs[i], name);
      // Which operand it is matters where there are several.
      text += node.inputs.size() > 1 ? " [label=\"" + std::to_string(i) + "\"];\n" : ";\n";
    }
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string name = "output" + std::to_string(i);
    text +=
        "  " + name + " [shape=plaintext, style=\"\"];\n" + edge(graph.outputs[i], name) + ";\n";
  }
  return text + "}\n";
}

}  // namespace mini
