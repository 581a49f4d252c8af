// The plain plan, where values are, and what every plan must fulfil.
#include "program.h"

#include <sstream>
#include <stdexcept>

namespace mini {
namespace {

Kernel::Kind kind_of(OpType op) {
  if (is_pointwise(op)) return Kernel::Kind::Pointwise;
  if (is_reduction(op)) return Kernel::Kind::Reduction;
  if (op == OpType::MatMul) return Kernel::Kind::MatMul;
  return Kernel::Kind::Copy;
}

std::string_view kind_name(Kernel::Kind kind) {
  switch (kind) {
    case Kernel::Kind::Pointwise: return "pointwise";
    case Kernel::Kind::Reduction: return "reduction";
    case Kernel::Kind::MatMul: return "matmul";
    case Kernel::Kind::Copy: break;
  }
  return "copy";
}

// All of the base's elements in the base's order.
bool is_whole(const Program& program, const View& view, const TensorType& type) {
  if (view.offset != 0 || type.elements() != program.graph[view.base].type.elements()) return false;
  const Strides wanted = contiguous_strides(type.shape);
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (type.shape[d] > 1 && view.strides[d] != wanted[d]) return false;
  }
  return true;
}

std::string list(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("the plan is broken: " + what);
}

// Every read finds a value that an earlier kernel, or an earlier node of the same one, has made.
void verify_order(const Program& program) {
  std::vector<bool> made(program.graph.nodes.size(), false);
  for (NodeId id : program.graph.inputs) made[static_cast<size_t>(id)] = true;
  for (const Kernel& kernel : program.kernels) {
    std::vector<bool> inside = made;
    for (NodeId id : kernel.nodes) {
      for (NodeId input : program.graph[id].inputs) {
        const NodeId base = view_of(program, input).base;
        require(inside[static_cast<size_t>(base)],
                "%" + std::to_string(id) + " reads %" + std::to_string(base) + " too early");
      }
      inside[static_cast<size_t>(id)] = true;
    }
    for (NodeId id : kernel.results) {
      require(inside[static_cast<size_t>(id)], "a result is not in its kernel");
      made[static_cast<size_t>(id)] = true;
    }
  }
  for (NodeId id : program.graph.outputs) {
    require(made[static_cast<size_t>(view_of(program, id).base)],
            "output %" + std::to_string(id) + " is never made");
  }
}

void verify_places(const Program& program) {
  for (const Kernel& kernel : program.kernels) {
    require(!kernel.nodes.empty(), "a kernel without nodes");
    for (NodeId id : kernel.nodes) require(!program.views[static_cast<size_t>(id)], "a view runs");
    for (NodeId id : kernel.results) {
      const auto& slot = program.slots[static_cast<size_t>(id)];
      require(slot.has_value() == (home_output(program, id) < 0),
              "%" + std::to_string(id) + " needs exactly one place");
      if (!slot) continue;
      require(slot->bytes >= program.graph[id].type.bytes() && slot->offset >= 0 &&
                  slot->offset + slot->bytes <= program.working_bytes,
              "the slot of %" + std::to_string(id));
    }
  }
  for (const auto& view : program.views)
    require(!view || !program.views[static_cast<size_t>(view->base)], "a view of a view");
}

}  // namespace

int home_output(const Program& program, NodeId id) {
  if (program.graph[id].op == OpType::Input) return -1;
  for (size_t k = 0; k < program.graph.outputs.size(); ++k) {
    const NodeId output = program.graph.outputs[k];
    const View view = view_of(program, output);
    if (view.base == id && is_whole(program, view, program.graph[output].type))
      return static_cast<int>(k);
  }
  return -1;
}

void give_slots(Program& program) {
  program.slots.assign(program.graph.nodes.size(), std::nullopt);
  program.working_bytes = 0;
  for (const Kernel& kernel : program.kernels) {
    for (NodeId id : kernel.results) {
      if (home_output(program, id) >= 0) continue;
      const int64_t bytes = slot_bytes(program.graph[id].type);
      program.slots[static_cast<size_t>(id)] = Slot{program.working_bytes, bytes};
      program.working_bytes += bytes;
    }
  }
}

int64_t slot_bytes(const TensorType& type) { return (type.bytes() + 63) / 64 * 64; }

Program plan_plainly(Graph graph) {
  Program program;
  program.graph = std::move(graph);
  program.views.resize(program.graph.nodes.size());
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    const OpType op = program.graph[id].op;
    if (op != OpType::Input) program.kernels.push_back({kind_of(op), {id}, {id}});
  }
  give_slots(program);
  return program;
}

View view_of(const Program& program, NodeId id) {
  if (const auto& view = program.views[static_cast<size_t>(id)]) return *view;
  const Node& node = program.graph[id];
  const bool given = node.op == OpType::Input && !node.attributes.strides.empty();
  return {id, given ? node.attributes.strides : contiguous_strides(node.type.shape), 0};
}

void verify(const Program& program) {
  verify(program.graph);
  require(program.views.size() == program.graph.nodes.size() &&
              program.slots.size() == program.graph.nodes.size(),
          "lists by node have the wrong length");
  verify_places(program);
  verify_order(program);
}

std::string Program::to_text() const {
  std::ostringstream text;
  text << mini::to_text(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (const auto& view = views[static_cast<size_t>(id)])
      text << "view %" << id << " of %" << view->base << " strides=" << list(view->strides)
           << " offset=" << view->offset << "\n";
  }
  for (const Kernel& kernel : kernels) {
    text << "kernel " << kind_name(kernel.kind) << ":";
    for (NodeId id : kernel.nodes) text << " %" << id;
    text << " ->";
    for (NodeId id : kernel.results) {
      text << " %" << id;
      if (const auto& slot = slots[static_cast<size_t>(id)])
        text << "@" << slot->offset;
      else
        text << "@output" << home_output(*this, id);
    }
    text << "\n";
  }
  text << "working memory: " << working_bytes << " bytes\n";
  return text.str();
}

}  // namespace mini
