// Dead code: nodes that no output needs are dropped. Inputs stay, because the caller passes them.
#include "passes/graph_pass.h"

namespace mini {

namespace {

class DeadCode final : public GraphPass {
 public:
  explicit DeadCode(bool planted) : planted_(planted) {}
  std::string_view name() const override { return "dead_code"; }
  std::string_view purpose() const override { return "dead code"; }
  std::string_view mistake() const override {
    return "An output that no other node reads is taken for unused where an earlier output has its "
           "type: that one is returned twice.";
  }

 private:
  Result rewrite(const Graph& graph) const override {
    const std::vector<NodeId> outputs = planted_ ? confused_outputs(graph) : graph.outputs;
    std::vector<bool> needed(graph.nodes.size(), false);
    for (NodeId output : outputs) needed[static_cast<size_t>(output)] = true;
    // Readers come after what they read, so one walk from the end finds all.
    for (NodeId id = graph.size(); id-- > 0;) {
      if (!needed[static_cast<size_t>(id)]) continue;
      for (NodeId input : graph[id].inputs) needed[static_cast<size_t>(input)] = true;
    }
    Rewriting rewriting(graph);
    Result result;
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (needed[static_cast<size_t>(id)] || graph[id].op == OpType::Input) {
        rewriting.replace(id, rewriting.to.add(rewriting.translated(id)));
      } else {
        ++result.changes;
      }
    }
    for (NodeId output : outputs) rewriting.to.outputs.push_back(rewriting.place(output));
    if (outputs != graph.outputs && result.changes == 0) result.changes = 1;
    result.graph = std::move(rewriting.to);
    result.what = std::to_string(result.changes) + " dropped";
    return result;
  }

  // The planted mistake: uses are counted without the outputs, and "unused" results of one type
  // are taken for one result.
  static std::vector<NodeId> confused_outputs(const Graph& graph) {
    std::vector<int> reads = graph.use_counts();
    for (NodeId output : graph.outputs) --reads[static_cast<size_t>(output)];
    std::vector<NodeId> outputs = graph.outputs;
    for (size_t i = 1; i < outputs.size(); ++i) {
      if (reads[static_cast<size_t>(outputs[i])] > 0 || graph[outputs[i]].op == OpType::Input)
        continue;
      for (size_t earlier = 0; earlier < i; ++earlier) {
        if (graph[outputs[earlier]].type != graph[outputs[i]].type) continue;
        outputs[i] = outputs[earlier];
        break;
      }
    }
    return outputs;
  }

  bool planted_;
};

}  // namespace

std::unique_ptr<Pass> make_dead_code_pass(bool planted) {
  return std::make_unique<DeadCode>(planted);
}

}  // namespace mini
