#include "graph.h"

namespace mini {

NodeId Graph::add(Node node) {
  const NodeId id = size();
  if (node.op == OpType::Input) inputs.push_back(id);
  nodes.push_back(std::move(node));
  return id;
}

std::vector<int> Graph::use_counts() const {
  std::vector<int> counts(nodes.size(), 0);
  for (const Node& node : nodes) {
    for (NodeId input : node.inputs) ++counts[static_cast<size_t>(input)];
  }
  for (NodeId output : outputs) ++counts[static_cast<size_t>(output)];
  return counts;
}

}  // namespace mini
