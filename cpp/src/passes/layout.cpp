// Views as views: a permuted, expanded, sliced or reshaped tensor is the same memory with other
// strides. What strides can express needs no kernel and no copy; readers step through memory as
// the view says. A reshape of something that does not lie in one piece stays a copy.
#include "codegen/loop_nest.h"
#include "pass.h"

namespace mini {
namespace {

class LayoutPass : public Pass {
 public:
  explicit LayoutPass(bool planted) : planted_(planted) {}
  std::string_view name() const override { return "layout"; }
  std::string_view purpose() const override { return "views read in place"; }
  std::string_view mistake() const override {
    return "a transposed square matrix that is read in place keeps the strides it had before";
  }

  PassReport run(Program& program) const override {
    PassReport report{"layout", 0, "", program.to_text(), ""};
    const size_t before = program.kernels.size();
    int copies = 0;
    for (NodeId id = 0; id < program.graph.size(); ++id) {
      const Node& node = program.graph[id];
      if (!is_view(node.op)) continue;
      const NodeId input = node.inputs[0];
      auto view = view_through(node, view_of(program, input), program.graph[input].type.shape);
      if (!view) {
        ++copies;
        continue;
      }
      if (planted_ && swaps_square(node)) *view = view_of(program, input);
      program.views[static_cast<size_t>(id)] = view;
      ++report.changes;
    }
    std::erase_if(program.kernels, [&](const Kernel& kernel) {
      return program.views[static_cast<size_t>(kernel.nodes[0])].has_value();
    });
    give_slots(program);
    report.summary = std::string(purpose()) + ": " + std::to_string(before) + " kernels -> " +
                     std::to_string(program.kernels.size()) + ", " + std::to_string(copies) +
                     " copies left";
    if (report.changes == 0) report.before.clear();
    if (report.changes > 0) report.after = program.to_text();
    return report;
  }

 private:
  // The planted mistake: strides of a permuted tensor are forgotten where its last two sizes are
  // equal, so that nothing but the numbers gives it away.
  static bool swaps_square(const Node& node) {
    const size_t rank = node.type.shape.size();
    if (node.op != OpType::Permute || rank < 2) return false;
    for (size_t d = 0; d + 2 < rank; ++d) {
      if (node.attributes.dims[d] != static_cast<int64_t>(d)) return false;
    }
    return node.attributes.dims[rank - 1] == static_cast<int64_t>(rank - 2) &&
           node.type.shape[rank - 1] == node.type.shape[rank - 2];
  }

  bool planted_;
};

}  // namespace

std::unique_ptr<Pass> make_layout_pass(bool planted) { return std::make_unique<LayoutPass>(planted); }

}  // namespace mini
