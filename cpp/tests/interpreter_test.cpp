// The interpreter against numbers that were worked out by hand.
#include "interpreter.h"

#include "compare.h"
#include "error.h"
#include "random_graph.h"

using namespace mini;
using namespace mini::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t lowest = std::numeric_limits<int64_t>::min();

// One operator on inputs %0, %1, ..; `line` is what stands after the "=" of its line.
Tensor run(const std::string& line, const std::vector<Tensor>& inputs) {
  std::string text = "mini 1\n";
  size_t id = 0;
  for (const Tensor& input : inputs) {
    text += "%" + std::to_string(id++) + " = input : " + to_string(input.type()) + "\n";
  }
  text += "%" + std::to_string(id) + " = " + line + "\nreturn %" + std::to_string(id) + "\n";
  return interpret(parse_graph(text), inputs)[0];
}

Tensor f32(const Shape& shape, const std::vector<float>& v) { return Tensor::from(shape, v); }
Tensor f64(const Shape& shape, const std::vector<double>& v) { return Tensor::from(shape, v); }
Tensor i64(const Shape& shape, const std::vector<int64_t>& v) { return Tensor::from(shape, v); }
Tensor truth(const Shape& shape, const std::vector<bool>& v) { return Tensor::from(shape, v); }

void pointwise() {
  const Tensor x = f64({6}, {-2.5, -0.0, 0.5, 1.5, inf, nan});
  check_values(run("neg %0 : f64[6]", {x}), {2.5, 0.0, -0.5, -1.5, -inf, nan});
  check_values(run("abs %0 : f64[6]", {x}), {2.5, 0, 0.5, 1.5, inf, nan});
  check_values(run("relu %0 : f64[6]", {x}), {0, -0.0, 0.5, 1.5, inf, nan});
  check_values(run("round %0 : f64[6]", {x}), {-2, -0.0, 0, 2, inf, nan});
  check_values(run("floor %0 : f64[6]", {x}), {-3, -0.0, 0, 1, inf, nan});
  check_values(run("is_nan %0 : bool[6]", {x}), {0, 0, 0, 0, 0, 1});
  check_values(run("is_inf %0 : bool[6]", {x}), {0, 0, 0, 0, 1, 0});
  check_values(run("logical_not %0 : bool[6]", {x}), {0, 1, 0, 0, 0, 0});
  check_values(run("exp %0 : f64[1]", {f64({1}, {0})}), {1});
  check_values(run("sqrt %0 : f32[2]", {f32({2}, {9, -1})}), {3, nan});
  const Tensor y = f64({6}, {1, 2, nan, -1, inf, 3});
  check_values(run("maximum %0 %1 : f64[6]", {x, y}), {1, 2, nan, 1.5, inf, nan});
  check_values(run("minimum %0 %1 : f64[6]", {x, y}), {-2.5, -0.0, nan, -1, inf, nan});
  check_values(run("lt %0 %1 : bool[6]", {x, y}), {1, 1, 0, 0, 0, 0});
  check_values(run("where %0 %1 %2 : i64[2]",
                   {truth({2}, {true, false}), i64({2}, {1, 2}), i64({2}, {3, 4})}),
               {1, 4});
}

void whole_numbers() {
  const Tensor a = i64({5}, {7, -7, 7, -7, lowest});
  const Tensor b = i64({5}, {2, 2, -2, -2, -1});
  check_values(run("floor_div %0 %1 : i64[5]", {a, b}),
               {3, -4, -4, 3, static_cast<double>(lowest)});
  check_values(run("trunc_div %0 %1 : i64[5]", {a, b}),
               {3, -3, -3, 3, static_cast<double>(lowest)});
  check_values(run("remainder %0 %1 : i64[5]", {a, b}), {1, 1, -1, -1, 0});
  check_values(run("fmod %0 %1 : i64[5]", {a, b}), {1, -1, 1, -1, 0});
  check_values(run("floor_div %0 %1 : i64[1]", {i64({1}, {5}), i64({1}, {0})}), {0});
  check_values(run("pow %0 %1 : i64[4]", {i64({4}, {3, -2, 2, -1}), i64({4}, {4, 3, -1, -3})}),
               {81, -8, 0, -1});
  check_values(
      run("add %0 %1 : i64[1]", {i64({1}, {std::numeric_limits<int64_t>::max()}), i64({1}, {1})}),
      {static_cast<double>(lowest)});
  check_values(run("bitwise_not %0 : i64[1]", {i64({1}, {5})}), {-6});
  check_values(
      run("bitwise_xor %0 %1 : bool[2]", {truth({2}, {true, true}), truth({2}, {true, false})}),
      {0, 1});
}

void casts() {
  const Tensor x = f64({6}, {2.7, -2.7, nan, 1e30, -0.0, 0.1});
  const double low = static_cast<double>(lowest);
  check_values(run("cast %0 : i64[6]", {x}), {2, -2, low, low, 0, 0});
  check_values(run("cast %0 : bool[6]", {x}), {1, 1, 1, 1, 0, 1});
  check_values(run("cast %0 : f32[6]", {x}), {2.7f, -2.7f, nan, 1e30f, -0.0, 0.1f});
  check_values(run("cast %0 : f32[1]", {i64({1}, {16777217})}), {16777216});
}

void leaves() {
  check_values(run("constant value=-inf : f32[2]", {}), {-inf, -inf});
  check_values(run("constant value=1 : bool[2]", {}), {1, 1});
  check_values(run("iota start=3 step=-2 : i64[4]", {}), {3, 1, -1, -3});
  check_values(run("iota start=1 : f32[3]", {}), {1, 2, 3});
  check_values(run("iota : i64[0]", {}), {});
}

void reductions() {
  const Tensor x = f32({2, 3}, {1, 5, 3, 4, 2, 6});
  check_values(run("sum %0 dims=[1] : f32[2]", {x}), {9, 12});
  check_values(run("sum %0 dims=[0] keepdim=1 : f32[1, 3]", {x}), {5, 7, 9});
  check_values(run("sum %0 dims=[1, 0] : f32[]", {x}), {21});
  check_values(run("sum %0 : f32[2, 3]", {x}), {1, 5, 3, 4, 2, 6});
  check_values(run("prod %0 dims=[0] : f32[3]", {x}), {4, 10, 18});
  check_values(run("max %0 dims=[1] : f32[2]", {x}), {5, 6});
  check_values(run("min %0 dims=[0, 1] : f32[]", {x}), {1});
  check_values(run("argmax %0 dims=[0] : i64[3]", {x}), {1, 0, 1});
  check_values(run("argmin %0 dims=[1] keepdim=1 : i64[2, 1]", {x}), {0, 1});
  const Tensor y = f32({2, 3}, {1, static_cast<float>(nan), 3, 2, 2, 2});
  check_values(run("max %0 dims=[1] : f32[2]", {y}), {nan, 2});
  check_values(run("min %0 dims=[1] : f32[2]", {y}), {nan, 2});
  check_values(run("argmax %0 dims=[1] : i64[2]", {y}), {1, 0});
  check_values(run("argmin %0 dims=[1] : i64[2]", {y}), {1, 0});
  const Tensor t = truth({2, 2}, {true, false, true, true});
  check_values(run("any %0 dims=[0] : bool[2]", {t}), {1, 1});
  check_values(run("all %0 dims=[0] : bool[2]", {t}), {1, 0});
  check_values(run("sum %0 dims=[0] : f32[3]", {f32({0, 3}, {})}), {0, 0, 0});
  check_values(run("prod %0 dims=[0] : i64[]", {i64({0}, {})}), {1});
  check_values(run("all %0 dims=[0] : bool[]", {truth({0}, {})}), {1});
  // 2^24 ones: a plain f32 sum would stop growing there.
  const std::vector<float> ones((1 << 24) + 4, 1.f);
  check_values(run("sum %0 dims=[0] : f32[]", {f32({static_cast<int64_t>(ones.size())}, ones)}),
               {16777220});
}

void matmul() {
  const Tensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = f32({3, 2}, {1, 0, 0, 1, 1, 1});
  check_values(run("matmul %0 %1 : f32[2, 2]", {a, b}), {4, 5, 10, 11});
  const Tensor batch = i64({2, 1, 2}, {1, 2, 3, 4});
  check_values(run("matmul %0 %1 : i64[2, 1, 1]", {batch, i64({2, 2, 1}, {1, 1, 2, 2})}), {3, 14});
  check_values(run("matmul %0 %1 : f32[2, 2]", {f32({2, 0}, {}), f32({0, 2}, {})}), {0, 0, 0, 0});
}

void views() {
  const Tensor x = i64({2, 3}, {0, 1, 2, 3, 4, 5});
  check_values(run("reshape %0 : i64[3, 2]", {x}), {0, 1, 2, 3, 4, 5});
  check_values(run("permute %0 dims=[1, 0] : i64[3, 2]", {x}), {0, 3, 1, 4, 2, 5});
  check_values(run("slice %0 dim=1 start=0 end=3 step=2 : i64[2, 2]", {x}), {0, 2, 3, 5});
  check_values(run("slice %0 dim=1 start=3 end=3 : i64[2, 0]", {x}), {});
  check_values(run("slice %0 dim=1 start=2 end=3 step=9223372036854775807 : i64[2, 1]", {x}),
               {2, 5});
  check_values(run("expand %0 : i64[2, 3]", {i64({2, 1}, {7, 8})}), {7, 7, 7, 8, 8, 8});
}

void moving() {
  const Tensor x = i64({2, 3}, {0, 1, 2, 3, 4, 5});
  check_values(run("cat %0 %1 dim=1 : i64[2, 4]", {x, i64({2, 1}, {8, 9})}),
               {0, 1, 2, 8, 3, 4, 5, 9});
  check_values(run("cat %0 %1 %0 : i64[5, 3]", {x, i64({1, 3}, {6, 7, 8})}),
               {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5});
  check_values(run("take %0 %1 : i64[3, 3]", {x, i64({3}, {1, 0, 1})}),
               {3, 4, 5, 0, 1, 2, 3, 4, 5});
  check_values(run("take %0 %1 dim=1 : i64[2, 2, 1]", {x, i64({2, 1}, {2, 0})}), {2, 0, 5, 3});
  check_values(run("take %0 %1 dim=1 : i64[2]", {x, i64({}, {1})}), {1, 4});
  check_values(run("gather %0 %1 dim=1 : i64[2, 2]", {x, i64({2, 2}, {0, 2, 1, 1})}), {0, 2, 4, 4});
  check_throws<GraphError>([&] { run("take %0 %1 : i64[1, 3]", {x, i64({1}, {2})}); },
                           "index 2 is out of range");
  check_throws<GraphError>([&] { run("take %0 %1 : i64[1, 3]", {x, i64({1}, {-1})}); }, "index -1");
  check_throws<GraphError>([&] { run("gather %0 %1 dim=1 : i64[1, 1]", {x, i64({1, 1}, {3})}); },
                           "index 3");
}

void strides_and_arguments() {
  const Graph graph = parse_graph(
      "mini 1\n%0 = input : f32[2, 3] strides=[1, 2]\n%1 = neg %0 : f32[2, 3]\nreturn %1 %0 %1\n");
  const Tensor memory = f32({6}, {1, 2, 3, 4, 5, 6});
  const Tensor x = memory.viewed({2, 3}, {1, 2}, 0);
  const std::vector<Tensor> outputs = interpret(graph, {x});
  check_values(outputs[0], {-1, -3, -5, -2, -4, -6});
  check_values(outputs[1], {1, 3, 5, 2, 4, 6});
  check_values(outputs[2], {-1, -3, -5, -2, -4, -6});
  check_throws<GraphError>([&] { interpret(graph, {f32({2, 3}, {1, 2, 3, 4, 5, 6})}); },
                           "other strides");
  check_throws<GraphError>([&] { interpret(graph, {memory}); }, "is f32[6], not f32[2, 3]");
  check_throws<GraphError>([&] { interpret(graph, {}); }, "takes 1 inputs, not 0");
  EagerInterpreter interpreter;
  const auto function = interpreter.compile(interpreter.optimize(graph));
  std::vector<Tensor> wrong(3);
  check_throws<GraphError>([&] { function->run({x}, wrong); }, "output 0 must be f32[2, 3]");
  check_contains(function->describe(), "interpreter");
}

// Views, slots and kernels of several nodes, as passes would plan them.
void plans() {
  const Graph graph = parse_graph(
      "mini 1\n%0 = input : f32[2, 3]\n%1 = sum %0 dims=[1] keepdim=1 : f32[2, 1]\n"
      "%2 = expand %1 : f32[2, 3]\n%3 = sub %0 %2 : f32[2, 3]\n%4 = permute %3 dims=[1, 0] : "
      "f32[3, 2]\n"
      "%5 = neg %4 : f32[3, 2]\nreturn %5\n");
  Program program = plan_plainly(graph);
  program.kernels = {{Kernel::Kind::Reduction, {1, 3}, {3}}, {Kernel::Kind::Pointwise, {5}, {5}}};
  program.views[2] = View{1, {1, 0}, 0};
  program.views[4] = View{3, {1, 3}, 0};
  program.slots.assign(6, std::nullopt);
  program.slots[3] = Slot{64, 24};
  program.working_bytes = 128;
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  std::vector<Tensor> outputs{Tensor({DType::Float32, {3, 2}})};
  interpret(program, {x}, outputs);
  check_values(outputs[0], {5, 11, 4, 10, 3, 9});
  // A slot that is overwritten too early shows.
  Program wrong =
      plan_plainly(parse_graph("mini 1\n%0 = input : f32[2]\n%1 = neg %0 : f32[2]\n%2 = abs %0 : "
                               "f32[2]\n%3 = add %1 %2 : f32[2]\nreturn %3\n"));
  for (NodeId id : {1, 2}) wrong.slots[static_cast<size_t>(id)] = Slot{0, 8};
  std::vector<Tensor> sums{Tensor({DType::Float32, {2}})};
  interpret(wrong, {f32({2}, {1, -2})}, sums);
  check_values(sums[0], {2, 4});
}

void tensors() {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  const Tensor turned = x.viewed({2, 2}, {1, 2}, 0);
  check(!turned.is_contiguous(), "a turned matrix is not contiguous");
  check_values(turned.contiguous(), {1, 3, 2, 4});
  check_values(turned, {1, 3, 2, 4});
  check_values(Tensor::scalar(3, DType::Bool), {1});
  check_equal(to_string(TensorType{DType::Float32, {4, 8}}), "f32[4, 8]");
  check_throws<GraphError>([] { Tensor::from<float>({3}, {1.f}); }, "1 numbers for f32[3]");
  check_throws<GraphError>([] { parse_dtype("half"); }, "not a dtype");
}

// Nothing to compare with: that no graph crashes is what sanitizers are asked here.
void random_graphs() {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomGraph random(seed);
    check_equal(interpret(random.graph, random.inputs).size(), random.graph.outputs.size());
  }
}

}  // namespace

int main() {
  tensors();
  pointwise();
  whole_numbers();
  casts();
  leaves();
  reductions();
  matmul();
  views();
  moving();
  strides_and_arguments();
  plans();
  random_graphs();
  return finish();
}
