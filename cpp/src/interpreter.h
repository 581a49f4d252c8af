// The backend that needs no compiler: it runs a program node by node.
//
// It follows the plan to the letter (kernels in order, views as views, results in the slots that
// they were given), so a pass that plans wrongly gives wrong numbers here too.
#pragma once

#include "backend.h"

namespace mini {

class EagerInterpreter : public CompilerBackend {
 public:
  // By default no pass runs. Others can be switched on to see what they change.
  EagerInterpreter() = default;
  explicit EagerInterpreter(PassOptions passes) : passes_(std::move(passes)), plain_(false) {}

  std::string_view name() const override { return "interpreter"; }
  Program optimize(const Graph& graph) override;
  std::unique_ptr<CompiledFunction> compile(Program program) override;
  // What the passes of the last `optimize` did.
  const std::vector<PassReport>& reports() const { return reports_; }

 private:
  PassOptions passes_;
  bool plain_ = true;
  std::vector<PassReport> reports_;
};

// Runs a program; what compile() above wraps.
void interpret(const Program& program, const std::vector<Tensor>& inputs,
               std::vector<Tensor>& outputs);
// Runs a graph by the plain plan and makes the outputs.
std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs);

// Throws GraphError unless these tensors are what the graph takes and gives.
void check_arguments(const Graph& graph, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& outputs);

}  // namespace mini
