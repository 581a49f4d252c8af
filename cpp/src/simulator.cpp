#include "simulator.h"

#include "error.h"
#include "interpreter.h"

namespace mini {

TorchCompileSimulator::TorchCompileSimulator(std::shared_ptr<CompilerBackend> backend,
                                             size_t recompile_limit)
    : backend_(std::move(backend)), recompile_limit_(recompile_limit) {}

const Graph& TorchCompileSimulator::create_function_graph(TracedFunction function,
                                                          const std::vector<Tensor>& examples) {
  graph_ = trace(function, examples);
  function_ = std::move(function);
  cache_.clear();
  last_.reset();
  statistics_ = {};
  events_ = {"captured a graph of " + std::to_string(graph_.size()) + " nodes"};
  return graph_;
}

std::vector<Tensor> TorchCompileSimulator::execute_compiled_function(
    const std::vector<Tensor>& inputs) {
  if (!function_) throw GraphError("call create_function_graph first");
  ++statistics_.calls;
  FunctionCache::Lookup lookup = cache_.find(inputs);
  if (lookup.entry != nullptr) {
    ++statistics_.cache_hits;
    events_.push_back("cache hit: all guards hold");
  } else if (cache_.size() > recompile_limit_) {
    return run_eagerly(inputs);
  } else {
    if (!lookup.failures.empty()) {
      ++statistics_.recompiles;
      // The entry that was asked first was used last: its guard is the one of interest.
      events_.push_back("recompile " + std::to_string(statistics_.recompiles) + ": " +
                        lookup.failures[0]);
    }
    lookup.entry = &compile(inputs);
  }
  std::vector<Tensor> outputs;
  for (const TensorType& type : lookup.entry->outputs) outputs.emplace_back(type);
  last_ = lookup.entry->function;
  last_->run(inputs, outputs);
  return outputs;
}

FunctionCache::Entry& TorchCompileSimulator::compile(const std::vector<Tensor>& inputs) {
  const Graph graph = trace(function_, inputs);
  FunctionCache::Entry entry{Guards(inputs), nullptr, {}};
  entry.function = backend_->compile(backend_->optimize(graph));
  for (NodeId output : graph.outputs) entry.outputs.push_back(graph[output].type);
  ++statistics_.compilations;
  events_.push_back("compiled with " + std::string(backend_->name()));
  for (const std::string& guard : entry.guards.describe()) events_.push_back("  guard: " + guard);
  return cache_.add(std::move(entry));
}

std::vector<Tensor> TorchCompileSimulator::run_eagerly(const std::vector<Tensor>& inputs) {
  ++statistics_.eager_calls;
  events_.push_back("fell back to eager: more than " + std::to_string(recompile_limit_) +
                    " recompiles");
  return interpret(trace(function_, inputs), inputs);
}

}  // namespace mini
