// The passes over graphs: what each does to small graphs, that none changes the numbers of random
// ones, and that each planted mistake does what its words say.
#include <algorithm>

#include "compare.h"
#include "error.h"
#include "interpreter.h"
#include "pass.h"
#include "random_graph.h"

using namespace mini;
using namespace mini::test;

namespace {

const std::vector<std::string> graph_passes = {"constant_folding", "algebraic", "cse", "dead_code"};

// All passes off but these.
PassOptions only(const std::vector<std::string>& on, const std::string& planted = "") {
  PassOptions options;
  options.planted = planted;
  for (const std::string& name : pass_names()) {
    if (std::find(on.begin(), on.end(), name) == on.end()) options.off.push_back(name);
  }
  return options;
}

struct Outcome {
  Program program;
  std::vector<PassReport> reports;
  std::string text() const { return to_text(program.graph); }
};

Outcome apply(const Graph& graph, const PassOptions& options) {
  Outcome outcome{plan_plainly(graph), {}};
  outcome.reports = run_passes(outcome.program, options);
  return outcome;
}

// The body of a graph, after "mini 1".
Outcome apply(const std::string& body, const std::vector<std::string>& passes) {
  return apply(parse_graph("mini 1\n" + body), only(passes));
}

std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  for (NodeId output : program.graph.outputs) outputs.emplace_back(program.graph[output].type);
  interpret(program, inputs, outputs);
  return outputs;
}

void folding() {
  const Outcome sum = apply(
      "%0 = constant value=0.5 : f32[2, 8]\n%1 = constant value=1 : f32[2, 8]\n"
      "%2 = add %0 %1 : f32[2, 8]\n%3 = sum %2 dims=[1] : f32[2]\n%4 = reshape %3 : f32[2, "
      "1]\nreturn %4\n",
      {"constant_folding", "dead_code"});
  check_equal(sum.text(), "mini 1\n%0 = constant value=12 : f32[2, 1]\nreturn %0\n");
  check_equal(sum.reports[0].changes, 3);
  check_equal(sum.reports[0].summary, "constant folding: 5 nodes -> 5, 3 computed");
  check_contains(sum.reports[0].before, "add %0 %1");
  check_contains(sum.reports[0].after, "value=12");
  const Outcome whole = apply(
      "%0 = constant value=-7 : i64[]\n%1 = constant value=2 : i64[]\n%2 = floor_div %0 %1 : "
      "i64[]\n"
      "%3 = lt %0 %1 : bool[]\n%4 = cast %2 : f64[]\nreturn %2 %3 %4\n",
      {"constant_folding"});
  check_contains(whole.text(),
                 "%2 = constant value=-4 : i64[]\n%3 = constant value=1 : bool[]\n%4 = constant "
                 "value=-4 : f64[]");
  // Not one number everywhere, or not known: these stay.
  const std::string others =
      "%0 = constant value=1 : f32[2]\n%1 = constant value=-0 : f32[2]\n%2 = constant value=0 : "
      "f32[2]\n"
      "%3 = cat %0 %1 : f32[4]\n%4 = cat %1 %2 : f32[4]\n%5 = iota : f32[2]\n%6 = neg %5 : "
      "f32[2]\nreturn %3 %4 %6\n";
  check_equal(apply(others, {"constant_folding"}).text(), "mini 1\n" + others);
  check_contains(apply("%0 = constant value=3 : i64[2]\n%1 = cat %0 %0 : i64[4]\nreturn %1\n",
                       {"constant_folding"})
                     .text(),
                 "%1 = constant value=3 : i64[4]");
}

// What one expression over %0 (f32[2, 2]), %1 (f32[2, 2]), %2 (i64[2, 2]) and %3 (bool[2, 2])
// becomes; the last line is returned, dead code is dropped and inputs are not shown.
void rule(const std::string& lines, const std::string& result,
          const Where& where = Where::current()) {
  const std::string inputs =
      "%0 = input : f32[2, 2]\n%1 = input : f32[2, 2]\n%2 = input : i64[2, 2]\n%3 = input : "
      "bool[2, 2]\n";
  const int last = 3 + static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
  const std::string body = inputs + lines + "return %" + std::to_string(last) + "\n";
  const std::string text = apply(body, {"algebraic", "dead_code"}).text();
  check_equal(text.substr(7 + inputs.size()), result, where);
}
// Rules that must not hold.
void no_rule(const std::string& lines, const Where& where = Where::current()) {
  const int last = 3 + static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
  rule(lines, lines + "return %" + std::to_string(last) + "\n", where);
}

void arithmetic_rules() {
  rule("%4 = constant value=1 : f32[2, 2]\n%5 = mul %4 %0 : f32[2, 2]\n", "return %0\n");
  rule("%4 = constant value=-1 : f32[2, 2]\n%5 = mul %0 %4 : f32[2, 2]\n",
       "%4 = neg %0 : f32[2, 2]\nreturn %4\n");
  rule("%4 = constant value=-0 : f32[2, 2]\n%5 = add %0 %4 : f32[2, 2]\n", "return %0\n");
  no_rule("%4 = constant value=0 : f32[2, 2]\n%5 = add %0 %4 : f32[2, 2]\n");
  rule("%4 = constant value=0 : i64[2, 2]\n%5 = add %2 %4 : i64[2, 2]\n", "return %2\n");
  rule("%4 = constant value=0 : f32[2, 2]\n%5 = sub %0 %4 : f32[2, 2]\n", "return %0\n");
  no_rule("%4 = constant value=-0 : f32[2, 2]\n%5 = sub %0 %4 : f32[2, 2]\n");
  no_rule("%4 = constant value=0 : f32[2, 2]\n%5 = sub %4 %0 : f32[2, 2]\n");
  rule("%4 = constant value=-0 : f32[2, 2]\n%5 = sub %4 %0 : f32[2, 2]\n",
       "%4 = neg %0 : f32[2, 2]\nreturn %4\n");
  rule("%4 = sub %2 %2 : i64[2, 2]\n", "%4 = constant value=0 : i64[2, 2]\nreturn %4\n");
  no_rule("%4 = sub %0 %0 : f32[2, 2]\n");
  no_rule("%4 = constant value=0 : f32[2, 2]\n%5 = mul %0 %4 : f32[2, 2]\n");
  no_rule("%4 = div %0 %0 : f32[2, 2]\n");
  rule("%4 = neg %1 : f32[2, 2]\n%5 = sub %0 %4 : f32[2, 2]\n",
       "%4 = add %0 %1 : f32[2, 2]\nreturn %4\n");
  rule("%4 = neg %1 : f32[2, 2]\n%5 = add %4 %0 : f32[2, 2]\n",
       "%4 = sub %0 %1 : f32[2, 2]\nreturn %4\n");
  rule("%4 = constant value=8 : f32[2, 2]\n%5 = div %0 %4 : f32[2, 2]\n",
       "%4 = constant value=0.125 : f32[2, 2]\n%5 = mul %0 %4 : f32[2, 2]\nreturn %5\n");
  no_rule("%4 = constant value=3 : f32[2, 2]\n%5 = div %0 %4 : f32[2, 2]\n");
  no_rule("%4 = constant value=1.7014118e+38 : f32[2, 2]\n%5 = div %0 %4 : f32[2, 2]\n");
  rule("%4 = constant value=2 : f32[2, 2]\n%5 = pow %0 %4 : f32[2, 2]\n",
       "%4 = mul %0 %0 : f32[2, 2]\nreturn %4\n");
  rule("%4 = constant value=0 : f32[2, 2]\n%5 = pow %0 %4 : f32[2, 2]\n",
       "%4 = constant value=1 : f32[2, 2]\nreturn %4\n");
  no_rule("%4 = constant value=0.5 : f32[2, 2]\n%5 = pow %0 %4 : f32[2, 2]\n");
  rule("%4 = sqrt %0 : f32[2, 2]\n%5 = reciprocal %4 : f32[2, 2]\n",
       "%4 = rsqrt %0 : f32[2, 2]\nreturn %4\n");
  rule("%4 = neg %0 : f32[2, 2]\n%5 = neg %4 : f32[2, 2]\n", "return %0\n");
  rule("%4 = neg %0 : f32[2, 2]\n%5 = abs %4 : f32[2, 2]\n%6 = abs %5 : f32[2, 2]\n",
       "%4 = abs %0 : f32[2, 2]\nreturn %4\n");
  rule("%4 = ceil %0 : f32[2, 2]\n%5 = floor %4 : f32[2, 2]\n",
       "%4 = ceil %0 : f32[2, 2]\nreturn %4\n");
  rule("%4 = maximum %0 %0 : f32[2, 2]\n", "return %0\n");
}

void logic_rules() {
  rule("%4 = logical_not %3 : bool[2, 2]\n%5 = logical_not %4 : bool[2, 2]\n", "return %3\n");
  no_rule("%4 = logical_not %0 : bool[2, 2]\n%5 = logical_not %4 : bool[2, 2]\n");
  rule("%4 = constant value=1 : bool[2, 2]\n%5 = logical_and %3 %4 : bool[2, 2]\n", "return %3\n");
  rule("%4 = constant value=1 : bool[2, 2]\n%5 = where %4 %0 %1 : f32[2, 2]\n", "return %0\n");
  rule("%4 = constant value=0 : bool[2, 2]\n%5 = where %4 %0 %1 : f32[2, 2]\n", "return %1\n");
  rule("%4 = where %3 %0 %0 : f32[2, 2]\n", "return %0\n");
  rule("%4 = logical_not %3 : bool[2, 2]\n%5 = where %4 %0 %1 : f32[2, 2]\n",
       "%4 = where %3 %1 %0 : f32[2, 2]\nreturn %4\n");
}

void view_rules() {
  rule("%4 = reshape %0 : f32[4]\n%5 = reshape %4 : f32[2, 2]\n", "return %0\n");
  rule("%4 = reshape %0 : f32[4]\n%5 = reshape %4 : f32[4, 1]\n",
       "%4 = reshape %0 : f32[4, 1]\nreturn %4\n");
  rule("%4 = permute %0 dims=[1, 0] : f32[2, 2]\n%5 = permute %4 dims=[1, 0] : f32[2, 2]\n",
       "return %0\n");
  rule("%4 = slice %0 end=2 : f32[2, 2]\n", "return %0\n");
  rule(
      "%4 = reshape %0 : f32[4]\n%5 = slice %4 start=1 end=4 : f32[3]\n%6 = slice %5 end=3 step=2 "
      ": f32[2]\n",
      "%4 = reshape %0 : f32[4]\n%5 = slice %4 start=1 end=4 step=2 : f32[2]\nreturn %5\n");
  rule("%4 = cast %0 : f32[2, 2]\n", "return %0\n");
  rule("%4 = cast %0 : f64[2, 2]\n%5 = cast %4 : f32[2, 2]\n", "return %0\n");
  no_rule("%4 = cast %2 : f64[2, 2]\n%5 = cast %4 : i64[2, 2]\n");
  rule("%4 = cast %3 : i64[2, 2]\n%5 = cast %4 : f32[2, 2]\n",
       "%4 = cast %3 : f32[2, 2]\nreturn %4\n");
}

void sharing() {
  const Outcome shared = apply(
      "%0 = input : f32[2]\n%1 = input : f32[2]\n%2 = add %0 %1 : f32[2]\n%3 = add %1 %0 : f32[2]\n"
      "%4 = mul %2 %3 : f32[2]\nreturn %4\n",
      {"cse"});
  check_equal(shared.text(),
              "mini 1\n%0 = input : f32[2]\n%1 = input : f32[2]\n%2 = add %0 %1 : f32[2]\n%3 = mul "
              "%2 %2 : f32[2]\nreturn %3\n");
  check_equal(shared.reports[0].summary, "common subexpressions: 5 nodes -> 4, 1 shared");
  // Inputs, other orders, other attributes, and zeros of another sign are not the same.
  const std::string different =
      "%0 = input : f32[2, 2]\n%1 = input : f32[2, 2]\n%2 = sub %0 %1 : f32[2, 2]\n%3 = sub %1 %0 "
      ": f32[2, 2]\n"
      "%4 = sum %0 dims=[0] : f32[2]\n%5 = sum %0 dims=[1] : f32[2]\n%6 = constant value=0 : "
      "f32[]\n"
      "%7 = constant value=-0 : f32[]\n%8 = maximum %0 %1 : f32[2, 2]\n%9 = maximum %1 %0 : f32[2, "
      "2]\n"
      "return %2 %3 %4 %5 %6 %7 %8 %9\n";
  check_equal(apply(different, {"cse"}).text(), "mini 1\n" + different);
}

void dropping() {
  const Outcome dropped = apply(
      "%0 = input : f32[2]\n%1 = input : f32[2]\n%2 = exp %1 : f32[2]\n%3 = neg %0 : f32[2]\n%4 = "
      "abs %2 : f32[2]\nreturn %3 %0\n",
      {"dead_code"});
  check_equal(
      dropped.text(),
      "mini 1\n%0 = input : f32[2]\n%1 = input : f32[2]\n%2 = neg %0 : f32[2]\nreturn %2 %0\n");
  check_equal(dropped.reports[0].summary, "dead code: 5 nodes -> 3, 2 dropped");
}

void names() {
  const std::vector<std::string> expected = {"constant_folding", "algebraic", "cse",   "dead_code",
                                             "layout",           "fusion",    "memory"};
  check(pass_names() == expected, "the order of the passes");
  check_throws<GraphError>([] { all_passes({{"cse", "inlining"}, ""}); }, "no pass 'inlining'");
  check_throws<GraphError>([] { all_passes({{}, "inlining"}); }, "no pass 'inlining'");
  for (const auto& pass : all_passes({})) {
    check(!pass->purpose().empty() && !pass->mistake().empty(),
          std::string(pass->name()) + " has no words");
  }
  check_equal(all_passes({{"layout", "cse"}, ""}).size(), size_t{5});
}

// With planted, the numbers of `body` must differ from those without, and those of `other` must
// not.
void mistake(const std::string& pass, const std::string& body, const std::string& other,
             const std::vector<Tensor>& inputs, const Where& where = Where::current()) {
  const auto differs = [&](const std::string& text) {
    const Graph graph = parse_graph("mini 1\n" + text);
    const std::vector<Tensor> right = interpret(graph, inputs);
    const std::vector<Tensor> found = run(apply(graph, only({pass}, pass)).program, inputs);
    double worst = 0;
    for (size_t i = 0; i < right.size(); ++i)
      worst = std::fmax(worst, distance(right[i], found[i]));
    return worst > 0;
  };
  check(differs(body), pass + ": the mistake does not show", where);
  check(!differs(other), pass + ": the mistake shows where it should not", where);
}

void mistakes() {
  const Tensor a = Tensor::from<float>({2, 2}, {1, -2, 3, -4});
  const Tensor b = Tensor::from<float>({2, 2}, {5, 6, -7, 8});
  const std::string two = "%0 = input : f32[2, 2]\n%1 = input : f32[2, 2]\n";
  mistake("constant_folding",
          two + "%2 = constant value=3 : f32[4]\n%3 = sum %2 dims=[0] : f32[]\nreturn %3\n",
          two +
              "%2 = constant value=3 : f32[4]\n%3 = max %2 dims=[0] : f32[]\n%4 = sum %0 dims=[0] "
              ": f32[2]\nreturn %3 %4\n",
          {a, b});
  mistake("algebraic", two + "%2 = mul %0 %0 : f32[2, 2]\n%3 = sqrt %2 : f32[2, 2]\nreturn %3\n",
          two + "%2 = mul %0 %1 : f32[2, 2]\n%3 = sqrt %2 : f32[2, 2]\nreturn %3\n", {a, b});
  mistake("cse", two + "%2 = sub %0 %1 : f32[2, 2]\n%3 = sub %1 %0 : f32[2, 2]\nreturn %2 %3\n",
          two +
              "%2 = add %0 %1 : f32[2, 2]\n%3 = add %1 %0 : f32[2, 2]\n%4 = sub %0 %1 : f32[2, "
              "2]\nreturn %2 %3 %4\n",
          {a, b});
  mistake("dead_code", two + "%2 = neg %0 : f32[2, 2]\n%3 = abs %1 : f32[2, 2]\nreturn %2 %3\n",
          two + "%2 = neg %0 : f32[2, 2]\n%3 = sum %1 dims=[0] : f32[2]\nreturn %2 %3\n", {a, b});
}

// Planted mistakes change numbers, but nothing crashes.
void mistakes_on_random_graphs() {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const RandomGraph random(seed, 16);
    for (const std::string& planted : pass_names()) {
      const Outcome outcome = apply(random.graph, {{}, planted});
      try {
        run(outcome.program, random.inputs);
      } catch (const GraphError& error) {
        // Wrong numbers may be wrong indices: an error, not a crash.
        check_contains(error.what(), "out of range");
      }
    }
  }
}

// The whole pipeline, and the pipeline without each pass, run as planned: kernels of several nodes,
// views, and memory that is used twice.
void pipelines_on_random_graphs() {
  std::vector<PassOptions> choices{{}};
  for (const std::string& pass : pass_names()) choices.push_back({{pass}, ""});
  for (uint64_t seed = 1000; seed < 1120; ++seed) {
    const RandomGraph random(seed, 8 + static_cast<int>(seed % 24));
    const std::vector<Tensor> right = interpret(random.graph, random.inputs);
    for (const PassOptions& options : choices) {
      const Outcome outcome = apply(random.graph, options);
      const std::vector<Tensor> found = run(outcome.program, random.inputs);
      for (size_t i = 0; i < right.size(); ++i) {
        check(distance(right[i], found[i]) <= 1e-5,
              "seed " + std::to_string(seed) + " differs without '" +
                  (options.off.empty() ? "" : options.off[0]) + "'\n" + to_text(random.graph) +
                  outcome.program.to_text());
      }
    }
  }
}

// The rule for pow(x, 2) may round differently; nothing else may change a bit. Without pow in the
// graph the bits must be the same, with it the results must be close.
void random_graphs() {
  std::vector<std::vector<std::string>> choices{graph_passes};
  for (const std::string& pass : graph_passes) choices.push_back({pass});
  int changed = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const RandomGraph random(seed, 8 + static_cast<int>(seed % 24));
    bool has_power = false;
    for (const Node& node : random.graph.nodes) has_power = has_power || node.op == OpType::Pow;
    const std::vector<Tensor> right = interpret(random.graph, random.inputs);
    for (const auto& passes : choices) {
      const Outcome outcome = apply(random.graph, only(passes));
      for (const PassReport& report : outcome.reports) changed += report.changes;
      const std::vector<Tensor> found = run(outcome.program, random.inputs);
      for (size_t i = 0; i < right.size(); ++i) {
        const double limit = has_power ? 1e-5 : 0;
        check(distance(right[i], found[i]) <= limit,
              "seed " + std::to_string(seed) + " differs after " + passes[0] + ": " +
                  shown(right[i]) + " became " + shown(found[i]) + "\n" + to_text(random.graph) +
                  outcome.text());
      }
    }
  }
  check(changed > 800, "the random graphs hardly change");
}

}  // namespace

int main() {
  folding();
  arithmetic_rules();
  logic_rules();
  view_rules();
  sharing();
  dropping();
  names();
  mistakes();
  mistakes_on_random_graphs();
  random_graphs();
  pipelines_on_random_graphs();
  return finish();
}
