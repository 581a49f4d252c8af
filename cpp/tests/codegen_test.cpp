// Generated code against the interpreter: random graphs with all passes on, all off, and each one
// off; batches of them, because starting the compiler is what takes the time.
#include <cstdlib>

#include "check.h"
#include "compare.h"
#include "compiler.h"
#include "interpreter.h"
#include "random_graph.h"

using namespace mini;
using namespace mini::test;

namespace {

std::vector<Tensor> outputs_for(const Graph& graph) {
  std::vector<Tensor> outputs;
  for (NodeId id : graph.outputs) outputs.emplace_back(graph[id].type);
  return outputs;
}

void run_batch(uint64_t first, int count, const PassOptions& passes, const std::string& what) {
  CompilerOptions options;
  options.passes = passes;
  options.fallback = false;
  // The loops' meaning, not their speed.
#if defined(__SANITIZE_ADDRESS__)
  options.flags = "-O1 -ffp-contract=off -w -fsanitize=address,undefined -fno-sanitize-recover=all";
#elif defined(_MSC_VER)
  options.flags = "/O1 /nologo /EHsc";
#else
  options.flags = "-O1 -ffp-contract=off -fopenmp -w";
#endif
  std::vector<RandomGraph> graphs;
  std::vector<Program> programs;
  OptimizingCompiler compiler(options);
  for (int i = 0; i < count; ++i) {
    graphs.emplace_back(first + static_cast<uint64_t>(i), 6 + i % 20, false);
    programs.push_back(compiler.optimize(graphs.back().graph));
  }
  auto functions = compiler.compile_all(programs, std::vector<CompileInfo>(programs.size()));
  for (size_t i = 0; i < graphs.size(); ++i) {
    const auto expected = interpret(graphs[i].graph, graphs[i].inputs);
    auto found = outputs_for(graphs[i].graph);
    functions[i]->run(graphs[i].inputs, found);
    for (size_t k = 0; k < found.size(); ++k) {
      check(distance(found[k], expected[k], 1e-5) <= 1e-3, what + ", seed " + std::to_string(first + i) +
                                              ", output " + std::to_string(k) + "\n" +
                                              to_text(graphs[i].graph));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 60;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  run_batch(first, count, {}, "all passes");
  run_batch(first, count, {pass_names(), ""}, "no pass");
  const auto names = pass_names();
  for (size_t i = 0; i < names.size(); ++i)
    run_batch(first + 1000 * (i + 1), count / 3, {{names[i]}, ""}, "without " + names[i]);
  return finish();
}
