#include "interpreter.h"

#include <algorithm>

#include "error.h"
#include "evaluate.h"

namespace mini {

namespace {

// One run of a program. Values are found by node: in the caller's tensors, in the working memory,
// or, while its kernel runs, in a tensor of its own.
class Run {
 public:
  Run(const Program& program, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs)
      : program_(program),
        graph_(program.graph),
        outputs_(outputs),
        memory_(TensorType{DType::Bool, {program.working_bytes}}),
        known_(graph_.nodes.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) known(graph_.inputs[i]) = inputs[i];
  }

  void run() {
    for (const Kernel& kernel : program_.kernels) run(kernel);
    for (size_t i = 0; i < outputs_.size(); ++i) copy(value(graph_.outputs[i]), outputs_[i]);
  }

 private:
  using Known = std::optional<Tensor>;
  Known& known(NodeId id) { return known_[static_cast<size_t>(id)]; }

  // Generated code keeps what is inside a kernel in registers and stores results as it goes; here
  // results are stored when the kernel is done, so a kernel may write where it read.
  void run(const Kernel& kernel) {
    for (NodeId id : kernel.nodes) {
      if (kernel.nodes.size() == 1 && has_place(id)) {
        known(id) = place(id);
        evaluate(graph_[id], operands(id), *known(id));
      } else {
        known(id) = evaluate(graph_[id], operands(id)).contiguous();
      }
    }
    for (NodeId id : kernel.nodes) {
      const bool is_result =
          std::find(kernel.results.begin(), kernel.results.end(), id) != kernel.results.end();
      if (!is_result) {
        known(id).reset();
      } else if (has_place(id)) {
        const Tensor to = place(id);
        copy(*known(id), to);
        known(id) = to;
      }
    }
  }

  std::vector<Tensor> operands(NodeId id) {
    std::vector<Tensor> found;
    for (NodeId input : graph_[id].inputs) found.push_back(value(input));
    return found;
  }

  Tensor value(NodeId id) {
    const auto& view = program_.views[static_cast<size_t>(id)];
    if (view) return value(view->base).viewed(graph_[id].type.shape, view->strides, view->offset);
    if (known(id)) return *known(id);
    // In no kernel: a number that is made wherever it is read.
    return evaluate(graph_[id], operands(id));
  }

  bool has_place(NodeId id) const {
    return program_.slots[static_cast<size_t>(id)] || home_output(program_, id) >= 0;
  }

  // The slot, or the caller's memory.
  Tensor place(NodeId id) const {
    const TensorType& type = graph_[id].type;
    const auto& slot = program_.slots[static_cast<size_t>(id)];
    void* memory = slot ? memory_.data<std::byte>() + slot->offset
                        : outputs_[static_cast<size_t>(home_output(program_, id))].raw();
    return Tensor(type, memory, contiguous_strides(type.shape));
  }

  const Program& program_;
  const Graph& graph_;
  std::vector<Tensor>& outputs_;
  Tensor memory_;
  std::vector<Known> known_;
};

class InterpretedFunction : public CompiledFunction {
 public:
  explicit InterpretedFunction(Program program) : program_(std::move(program)) {}

  void run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override {
    interpret(program_, inputs, outputs);
  }
  std::string describe() const override {
    return "interpreter: node by node, no code is generated\n" + program_.to_text();
  }

 private:
  Program program_;
};

// A stride matters only where there is a second element to step to.
bool same_strides(const Shape& shape, const Strides& a, const Strides& b) {
  if (element_count(shape) == 0) return true;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] != 1 && a[dim] != b[dim]) return false;
  }
  return true;
}

}  // namespace

void check_arguments(const Graph& graph, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& outputs) {
  if (inputs.size() != graph.inputs.size()) {
    throw GraphError("the graph takes " + std::to_string(graph.inputs.size()) + " inputs, not " +
                     std::to_string(inputs.size()));
  }
  if (outputs.size() != graph.outputs.size()) {
    throw GraphError("the graph gives " + std::to_string(graph.outputs.size()) + " outputs, not " +
                     std::to_string(outputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = graph[graph.inputs[i]];
    const std::string name = "input " + std::to_string(i);
    if (inputs[i].type() != node.type) {
      throw GraphError(name + " is " + to_string(inputs[i].type()) + ", not " +
                       to_string(node.type));
    }
    if (!same_strides(node.type.shape, inputs[i].strides(), input_strides(node))) {
      throw GraphError(name + " has other strides than the graph was made for");
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].type() == graph[graph.outputs[i]].type && outputs[i].is_contiguous()) continue;
    throw GraphError("output " + std::to_string(i) + " must be " +
                     to_string(graph[graph.outputs[i]].type) + ", contiguous");
  }
}

void interpret(const Program& program, const std::vector<Tensor>& inputs,
               std::vector<Tensor>& outputs) {
  check_arguments(program.graph, inputs, outputs);
  Run(program, inputs, outputs).run();
}

std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  for (NodeId output : graph.outputs) outputs.emplace_back(graph[output].type);
  interpret(plan_plainly(graph), inputs, outputs);
  return outputs;
}

Program EagerInterpreter::optimize(const Graph& graph) {
  Program program = plan_plainly(graph);
  reports_ = plain_ ? std::vector<PassReport>{} : run_passes(program, passes_);
  return program;
}

std::unique_ptr<CompiledFunction> EagerInterpreter::compile(Program program) {
  return std::make_unique<InterpretedFunction>(std::move(program));
}

}  // namespace mini
