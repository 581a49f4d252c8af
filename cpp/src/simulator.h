// torch.compile in small: trace, guard, compile, cache, recompile. With any backend.
//
//   TorchCompileSimulator compiled(backend);
//   compiled.create_function_graph(f, {x, y});           // what torch.compile(f) would capture
//   auto results = compiled.execute_compiled_function({x, y});
//
// As in PyTorch, nothing is compiled before the first call, a call with other shapes recompiles,
// and after too many recompiles the function runs in eager mode.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "guards.h"
#include "tracer.h"

namespace mini {

class TorchCompileSimulator {
 public:
  struct Statistics {
    int calls = 0;
    int cache_hits = 0;
    int compilations = 0;
    int recompiles = 0;  // those of the compilations that a failed guard caused
    int eager_calls = 0;
  };

  explicit TorchCompileSimulator(std::shared_ptr<CompilerBackend> backend,
                                 size_t recompile_limit = 8);

  // Traces the function for inputs like these and forgets what was compiled before.
  const Graph& create_function_graph(TracedFunction function, const std::vector<Tensor>& examples);
  // Checks guards, compiles where none hold, runs. Throws GraphError where there is no function
  // yet.
  std::vector<Tensor> execute_compiled_function(const std::vector<Tensor>& inputs);

  const Statistics& statistics() const { return statistics_; }
  // What happened, a line an event: "recompile 1: input 0: size of dimension 0 is 8, compiled for
  // 4".
  const std::vector<std::string>& events() const { return events_; }
  // The function that ran last; nothing before the first call.
  const CompiledFunction* last_function() const { return last_.get(); }

 private:
  FunctionCache::Entry& compile(const std::vector<Tensor>& inputs);
  std::vector<Tensor> run_eagerly(const std::vector<Tensor>& inputs);

  std::shared_ptr<CompilerBackend> backend_;
  size_t recompile_limit_;
  TracedFunction function_;
  Graph graph_;
  FunctionCache cache_;
  Statistics statistics_;
  std::vector<std::string> events_;
  std::shared_ptr<CompiledFunction> last_;
};

}  // namespace mini
