// What turns a graph into something that runs. Two live here: EagerInterpreter (interpreter.h) and
// OptimizingCompiler (compiler.h); docs show how to add a third.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pass.h"
#include "program.h"

namespace mini {

// What a backend made of a graph.
class CompiledFunction {
 public:
  virtual ~CompiledFunction() = default;
  // Inputs must have the graph's types and strides, outputs its types, contiguous. Neither is kept.
  // Inputs are never written. An output may not share memory with an input.
  virtual void run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) = 0;
  // How it was made and what will run, for people: passes, generated source, fallback and why.
  virtual std::string describe() const = 0;
};

class CompilerBackend {
 public:
  virtual ~CompilerBackend() = default;
  virtual std::string_view name() const = 0;
  // The program that `compile` is to run. By default the plain plan.
  virtual Program optimize(const Graph& graph) { return plan_plainly(graph); }
  virtual std::unique_ptr<CompiledFunction> compile(Program program) = 0;
};

}  // namespace mini
