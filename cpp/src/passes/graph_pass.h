// What passes over the graph have in common: they build a new graph from the old one, node by node,
// and the plain plan is made anew.
#pragma once

#include <string>

#include "pass.h"

namespace mini {

// The new graph as it grows, and where the old nodes went.
class Rewriting {
 public:
  explicit Rewriting(const Graph& from) : from_(from), places_(from.nodes.size(), -1) {}

  // An old node, its inputs already those of the new graph.
  Node translated(NodeId old) const {
    Node node = from_[old];
    for (NodeId& input : node.inputs) input = places_[static_cast<size_t>(input)];
    return node;
  }
  void replace(NodeId old, NodeId by) { places_[static_cast<size_t>(old)] = by; }
  NodeId place(NodeId old) const { return places_[static_cast<size_t>(old)]; }
  // The new graph with the old outputs.
  Graph finish() {
    for (NodeId output : from_.outputs) to.outputs.push_back(place(output));
    return std::move(to);
  }

  Graph to;

 private:
  const Graph& from_;
  std::vector<NodeId> places_;
};

class GraphPass : public Pass {
 public:
  PassReport run(Program& program) const final;

 protected:
  struct Result {
    Graph graph;
    int changes = 0;
    std::string what;  // ends the summary: "2 shared"
  };
  virtual Result rewrite(const Graph& graph) const = 0;
};

}  // namespace mini
