// Kernels joined: what runs in one loop nest needs no memory in between. Pointwise nodes join their
// producers, their consumers and others that read the same memory; reductions join the pointwise
// work before and after them, so that softmax and layer norm become one kernel each.
//
// Two kernels may be joined where one loop nest can hold both (loop_nest.h) and no third kernel
// stands between them. Constants become numbers in the code of whoever reads them.
#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "codegen/loop_nest.h"
#include "pass.h"

namespace mini {
namespace {

using GroupId = int32_t;
constexpr size_t most_nodes = 64;  // beyond that registers run out and nothing is won

class Fuser {
 public:
  explicit Fuser(Program& program)
      : program_(program), graph_(program.graph), group_of_(graph_.nodes.size(), -1),
        readers_(graph_.nodes.size()) {
    for (const Kernel& kernel : program.kernels) {
      if (is_constant(kernel.nodes[0])) continue;
      for (NodeId id : kernel.nodes) group_of_[index(id)] = static_cast<GroupId>(groups_.size());
      groups_.push_back({kernel.nodes, joins(kernel)});
    }
    for (const Group& group : groups_) {
      for (NodeId id : group.nodes) {
        for (NodeId base : bases(id)) readers_[index(base)].push_back(id);
      }
    }
  }

  void run() {
    for (GroupId id = 0; id < static_cast<GroupId>(groups_.size()); ++id) {
      while (grow(id)) ++joined;
    }
    replace_kernels();
  }

  int joined = 0;

 private:
  struct Group {
    std::vector<NodeId> nodes;  // in order; empty: it went into another
    bool joins = false;
  };

  static size_t index(NodeId id) { return static_cast<size_t>(id); }
  Group& group(GroupId id) { return groups_[static_cast<size_t>(id)]; }
  bool is_constant(NodeId id) const { return graph_[id].op == OpType::Constant; }

  // Only loop nests can be joined.
  bool joins(const Kernel& kernel) const {
    const Node& node = graph_[kernel.nodes[0]];
    if (node.op == OpType::ArgMax || node.op == OpType::ArgMin) return false;
    if (is_view(node.op)) return node.op == OpType::Reshape;
    return kernel.kind == Kernel::Kind::Pointwise || kernel.kind == Kernel::Kind::Reduction;
  }

  std::vector<NodeId> bases(NodeId id) const {
    std::vector<NodeId> found;
    for (NodeId input : graph_[id].inputs) found.push_back(view_of(program_, input).base);
    return found;
  }

  // Joins one more group with this one, the closest first.
  bool grow(GroupId id) {
    if (group(id).nodes.empty() || !group(id).joins) return false;
    std::set<GroupId, std::greater<>> candidates;
    for (NodeId node : group(id).nodes) {
      for (NodeId base : bases(node)) {
        if (group_of_[index(base)] >= 0) candidates.insert(group_of_[index(base)]);
        if (is_constant(base)) continue;
        for (NodeId reader : readers_[index(base)]) candidates.insert(group_of_[index(reader)]);
      }
    }
    for (GroupId other : candidates) {
      // Later groups look for their own partners when it is their turn.
      if (other < id && group(other).joins && join(other, id)) return true;
    }
    return false;
  }

  bool join(GroupId a, GroupId b) {
    std::vector<NodeId> nodes = group(a).nodes;
    nodes.insert(nodes.end(), group(b).nodes.begin(), group(b).nodes.end());
    if (nodes.size() > most_nodes) return false;
    std::sort(nodes.begin(), nodes.end());
    const auto nest = nest_of(program_, with_constants(nodes));
    if (!nest || !worthwhile(*nest) || detour(a, b) || detour(b, a)) return false;
    for (NodeId id : group(a).nodes) group_of_[index(id)] = b;
    group(b).nodes = std::move(nodes);
    group(a).nodes.clear();
    return true;
  }

  // Rows that are walked more than once must fit into a cache, and there must be enough of them for
  // all threads.
  static bool worthwhile(const LoopNest& nest) {
    if (nest.phases == 1) return true;
    const bool columns = !nest.sizes.empty() && !nest.reduced.back();
    const int64_t length = nest.row_length();
    if (columns) return length <= (1 << 13);
    return length <= (1 << 17) && (nest.rows() >= 16 || length <= (1 << 14));
  }

  // Whether what `from` gives reaches `to` by way of a third group.
  bool detour(GroupId from, GroupId to) {
    std::set<GroupId> seen = {from};
    std::vector<GroupId> waiting = {from};
    const NodeId last = group(to).nodes.back();  // what begins later cannot lead there
    while (!waiting.empty()) {
      const GroupId at = waiting.back();
      waiting.pop_back();
      for (NodeId id : group(at).nodes) {
        for (NodeId reader : readers_[index(id)]) {
          const GroupId next = group_of_[index(reader)];
          if (next == to) {
            if (at != from) return true;
          } else if (group(next).nodes.front() < last && seen.insert(next).second) {
            waiting.push_back(next);
          }
        }
      }
    }
    return false;
  }

  std::vector<NodeId> with_constants(std::vector<NodeId> nodes) const {
    std::set<NodeId> all(nodes.begin(), nodes.end());
    for (NodeId id : nodes) {
      for (NodeId base : bases(id)) {
        if (is_constant(base)) all.insert(base);
      }
    }
    return {all.begin(), all.end()};
  }

  void replace_kernels() {
    std::set<NodeId> wanted;  // read from memory
    for (NodeId id : graph_.outputs) wanted.insert(view_of(program_, id).base);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      for (NodeId reader : readers_[index(id)]) {
        const GroupId to = group_of_[index(reader)];
        const bool inside = is_constant(id) ? group(to).joins : to == group_of_[index(id)];
        if (!inside) wanted.insert(id);
      }
    }
    std::vector<Kernel> kernels;
    for (const Kernel& kernel : program_.kernels) {
      if (is_constant(kernel.nodes[0]) && wanted.count(kernel.nodes[0])) kernels.push_back(kernel);
    }
    for (GroupId id : order()) {
      Kernel kernel = kernel_of(group(id));
      for (NodeId node : group(id).nodes) {
        if (wanted.count(node)) kernel.results.push_back(node);
      }
      // What nobody reads still runs: removing it is another pass's work.
      if (kernel.results.empty()) kernel.results.push_back(group(id).nodes.back());
      kernels.push_back(std::move(kernel));
    }
    program_.kernels = std::move(kernels);
    give_slots(program_);
  }

  Kernel kernel_of(const Group& group) const {
    Kernel kernel;
    kernel.nodes = group.joins ? with_constants(group.nodes) : group.nodes;
    for (const Kernel& old : program_.kernels) {
      if (old.nodes[0] == group.nodes[0]) kernel.kind = old.kind;
    }
    if (group.nodes.size() == 1) return kernel;
    kernel.kind = Kernel::Kind::Pointwise;
    for (NodeId id : group.nodes) {
      if (is_reduction(graph_[id].op)) kernel.kind = Kernel::Kind::Reduction;
    }
    return kernel;
  }

  // Groups after all that they read; of those that could be next, the one that began first.
  std::vector<GroupId> order() {
    std::map<GroupId, std::set<GroupId>> before;
    std::map<GroupId, std::set<GroupId>> after;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const GroupId from = group_of_[index(id)];
      for (NodeId reader : readers_[index(id)]) {
        const GroupId to = group_of_[index(reader)];
        if (from < 0 || from == to) continue;
        before[to].insert(from);
        after[from].insert(to);
      }
    }
    std::set<std::pair<NodeId, GroupId>> ready;
    auto offer = [&](GroupId id) {
      if (before[id].empty()) ready.insert({group(id).nodes.front(), id});
    };
    for (GroupId id = 0; id < static_cast<GroupId>(groups_.size()); ++id) {
      if (!group(id).nodes.empty()) offer(id);
    }
    std::vector<GroupId> ordered;
    while (!ready.empty()) {
      const GroupId id = ready.begin()->second;
      ready.erase(ready.begin());
      ordered.push_back(id);
      for (GroupId next : after[id]) {
        before[next].erase(id);
        offer(next);
      }
    }
    return ordered;
  }

  Program& program_;
  const Graph& graph_;
  std::vector<Group> groups_;
  std::vector<GroupId> group_of_;             // by node
  std::vector<std::vector<NodeId>> readers_;  // by node: who reads its memory
};

// The planted mistake: where a kernel has two values a row of the same type, such as the mean and
// the scale of a layer norm, a broadcast of the second reads the first.
void confuse_rows(Program& program, const Kernel& kernel) {
  if (kernel.kind != Kernel::Kind::Reduction) return;
  const auto nest = nest_of(program, kernel.nodes);
  if (!nest) return;
  const std::set<NodeId> inside(kernel.nodes.begin(), kernel.nodes.end());
  std::set<NodeId> read_outside(program.graph.outputs.begin(), program.graph.outputs.end());
  std::vector<NodeId> broadcasts;
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    for (NodeId input : program.graph[id].inputs) {
      if (!inside.count(id)) {
        read_outside.insert(input);
        continue;
      }
      const NestNode* row = nest->find(view_of(program, input).base);
      if (row && row->per_row && !nest->find(id)->per_row) broadcasts.push_back(input);
    }
  }
  for (NodeId input : broadcasts) {
    auto& view = program.views[static_cast<size_t>(input)];
    if (!view || read_outside.count(input)) continue;
    for (NodeId other : broadcasts) {
      const NodeId base = view_of(program, other).base;
      const bool same = program.graph[base].type == program.graph[view->base].type;
      if (base >= view->base || !same) continue;
      view->base = base;
      break;
    }
  }
}

class FusionPass : public Pass {
 public:
  explicit FusionPass(bool planted) : planted_(planted) {}
  std::string_view name() const override { return "fusion"; }
  std::string_view purpose() const override { return "kernels joined"; }
  std::string_view mistake() const override {
    return "where a fused kernel has two values per row of one type, the second is taken for the first";
  }

  PassReport run(Program& program) const override {
    PassReport report{"fusion", 0, "", program.to_text(), ""};
    const size_t before = program.kernels.size();
    const int64_t bytes = program.working_bytes;
    Fuser fuser(program);
    fuser.run();
    if (planted_) {
      for (const Kernel& kernel : program.kernels) confuse_rows(program, kernel);
    }
    report.changes = static_cast<int>(before - program.kernels.size());
    report.summary = std::string(purpose()) + ": " + std::to_string(before) + " kernels -> " +
                     std::to_string(program.kernels.size()) + ", " +
                     std::to_string(bytes - program.working_bytes) + " bytes never written";
    if (report.changes > 0)
      report.after = program.to_text();
    else
      report.before.clear();
    return report;
  }

 private:
  bool planted_;
};

}  // namespace

std::unique_ptr<Pass> make_fusion_pass(bool planted) { return std::make_unique<FusionPass>(planted); }

}  // namespace mini
