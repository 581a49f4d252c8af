// The list of passes, and running them.
#include <algorithm>

#include "error.h"
#include "pass.h"
#include "passes/graph_pass.h"

namespace mini {

// Each in the file of its name.
std::unique_ptr<Pass> make_constant_folding_pass(bool planted);
std::unique_ptr<Pass> make_algebraic_pass(bool planted);
std::unique_ptr<Pass> make_cse_pass(bool planted);
std::unique_ptr<Pass> make_dead_code_pass(bool planted);
std::unique_ptr<Pass> make_layout_pass(bool planted);
std::unique_ptr<Pass> make_fusion_pass(bool planted);
std::unique_ptr<Pass> make_memory_pass(bool planted);

namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Pass> (*make)(bool planted);
};

// In order: the first four work on the graph, the others on the plan. Folding comes first because
// the rules look for constants; sharing comes after the rules because they make more nodes equal.
constexpr Entry entries[] = {
    {"constant_folding", make_constant_folding_pass},
    {"algebraic", make_algebraic_pass},
    {"cse", make_cse_pass},
    {"dead_code", make_dead_code_pass},
    {"layout", make_layout_pass},
    {"fusion", make_fusion_pass},
    {"memory", make_memory_pass},
};

void check_name(const std::string& name) {
  std::string known;
  for (const Entry& entry : entries) {
    if (name == entry.name) return;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw GraphError("there is no pass '" + name + "': there are " + known);
}

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}

std::vector<std::unique_ptr<Pass>> all_passes(const PassOptions& options) {
  for (const std::string& name : options.off) check_name(name);
  if (!options.planted.empty()) check_name(options.planted);
  std::vector<std::unique_ptr<Pass>> passes;
  for (const Entry& entry : entries) {
    const bool off =
        std::find(options.off.begin(), options.off.end(), entry.name) != options.off.end();
    if (!off) passes.push_back(entry.make(options.planted == entry.name));
  }
  return passes;
}

std::vector<PassReport> run_passes(Program& program, const PassOptions& options) {
  std::vector<PassReport> reports;
  for (const std::unique_ptr<Pass>& pass : all_passes(options)) {
    reports.push_back(pass->run(program));
    verify(program);
  }
  return reports;
}

PassReport GraphPass::run(Program& program) const {
  const Graph& before = program.graph;
  Result result = rewrite(before);
  verify(result.graph);
  PassReport report;
  report.pass = name();
  report.changes = result.changes;
  report.summary = std::string(purpose()) + ": " + std::to_string(before.size()) + " nodes -> " +
                   std::to_string(result.graph.size()) + ", " + result.what;
  if (result.changes > 0) {
    report.before = to_text(before);
    report.after = to_text(result.graph);
    program = plan_plainly(std::move(result.graph));
  }
  return report;
}

}  // namespace mini
