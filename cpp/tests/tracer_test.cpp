// Tracing C++ functions, and drawing what was traced.
#include "tracer.h"

#include <algorithm>

#include "compare.h"
#include "error.h"
#include "interpreter.h"

using namespace mini;
using namespace mini::test;

namespace {

Tensor f32(const Shape& shape, const std::vector<float>& v) { return Tensor::from(shape, v); }

std::vector<Tensor> run(const TracedFunction& function, const std::vector<Tensor>& inputs) {
  return interpret(trace(function, inputs), inputs);
}

void a_function() {
  // Named, because C++ may evaluate the operands of + in any order.
  const auto function = [](const std::vector<Sym>& x) -> std::vector<Sym> {
    const Sym sine = sin(x[0]);
    const Sym cosine = cos(x[1]);
    return {sine + cosine};
  };
  const Graph graph = trace(function, {f32({2}, {0, 0}), f32({2}, {0, 0})});
  check_equal(to_text(graph),
              "mini 1\n%0 = input : f32[2]\n%1 = input : f32[2]\n%2 = sin %0 : f32[2]\n%3 = cos %1 "
              ": f32[2]\n"
              "%4 = add %2 %3 : f32[2]\nreturn %4\n");
  check_values(interpret(graph, {f32({2}, {0, 0}), f32({2}, {0, 0})})[0], {1, 1});
}

void broadcasting() {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor row = f32({3}, {10, 20, 30});
  const Tensor column = f32({2, 1}, {100, 200});
  const auto outputs = run(
      [](const auto& in) -> std::vector<Sym> {
        return {in[0] + in[1], in[1] - in[2], 1.0 - in[0] * 2.0};
      },
      {x, row, column});
  check_values(outputs[0], {11, 22, 33, 14, 25, 36});
  check_values(outputs[1], {-90, -80, -70, -190, -180, -170});
  check_values(outputs[2], {-1, -3, -5, -7, -9, -11});
  check_throws<GraphError>(
      [&] {
        run([](const auto& in) -> std::vector<Sym> { return {in[0] + in[1]}; },
            {x, f32({2}, {1, 2})});
      },
      "sizes 3 and 2 cannot be broadcast");
}

void promotion() {
  const Tensor whole = Tensor::from<int64_t>({2}, {1, 2});
  const Tensor yes = Tensor::from<bool>({2}, {true, false});
  const Tensor wide = Tensor::from<double>({2}, {0.5, 0.25});
  const auto outputs = run(
      [](const auto& in) -> std::vector<Sym> {
        return {in[0] + in[1],  in[0] + in[2], in[0] / 2.0, in[0] * 0.5,
                in[0] * 2.0,    sqrt(in[0]),   in[0] > 1.0, where(in[1], in[0], 7.0),
                sum(in[1], {0})};
      },
      {whole, yes, wide});
  const DType expected[] = {DType::Int64,   DType::Float64, DType::Float32,
                            DType::Float32, DType::Int64,   DType::Float32,
                            DType::Bool,    DType::Int64,   DType::Int64};
  for (size_t i = 0; i < outputs.size(); ++i)
    check(outputs[i].dtype() == expected[i], "dtype of output " + std::to_string(i));
  check_values(outputs[0], {2, 2});
  check_values(outputs[1], {1.5, 2.25});
  check_values(outputs[2], {0.5, 1});
  check_values(outputs[7], {1, 7});
  check_values(outputs[8], {1});
}

void functions() {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto outputs = run(
      [](const std::vector<Sym>& in) -> std::vector<Sym> {
        const Sym& a = in[0];
        return {mean(a, {-1}),
                transpose(a, 0, -1),
                reshape(a, {-1, 2}),
                matmul(a, transpose(a, 0, 1)),
                cat({a, a}, -1),
                slice(a, 1, 1, 3),
                take(a, in[1], 1),
                argmax(a, 1),
                max(a, {0, 1}) - min(a, {0, 1}),
                prod(a, {0}),
                gather(a, reshape(in[1], {1, 1}), 0),
                any(a > 5.0, {1}),
                all(a > 0.0, {0, 1})};
      },
      {x, Tensor::from<int64_t>({1}, {1})});
  check_values(outputs[0], {2, 5});
  check_values(outputs[1], {1, 4, 2, 5, 3, 6});
  check(outputs[2].shape() == Shape{3, 2}, "reshape with -1");
  check_values(outputs[3], {14, 32, 32, 77});
  check(outputs[4].shape() == Shape{2, 6}, "cat along the last dimension");
  check_values(outputs[5], {2, 3, 5, 6});
  check_values(outputs[6], {2, 5});
  check_values(outputs[7], {2, 2});
  check_values(outputs[8], {5});
  check_values(outputs[9], {4, 10, 18});
  check_values(outputs[10], {4});
  check_values(outputs[11], {0, 1});
  check_values(outputs[12], {1});
}

void composed() {
  const Tensor x = f32({2, 2}, {0, 0, 1000, 1000});
  const auto outputs = run(
      [](const auto& in) -> std::vector<Sym> {
        return {softmax(in[0]), layer_norm(in[0] * in[1], 0.0)};
      },
      {x, f32({2}, {1, 3})});
  check_values(outputs[0], {0.5, 0.5, 0.5, 0.5});
  check(std::fabs(outputs[1].at(2) + 1) < 1e-6 && std::fabs(outputs[1].at(3) - 1) < 1e-6,
        "layer norm");
  // A batch on one side only.
  const auto products =
      run([](const auto& in) -> std::vector<Sym> { return {matmul(in[0], in[1])}; },
          {f32({2, 1, 2}, {1, 2, 3, 4}), f32({2, 1}, {1, 10})});
  check_values(products[0], {21, 43});
}

// An `if` on a shape is decided while tracing.
void control_flow() {
  const TracedFunction function = [](const std::vector<Sym>& x) -> std::vector<Sym> {
    if (x[0].shape()[0] > 2) return {exp(x[0])};
    return {neg(x[0])};
  };
  check_contains(to_text(trace(function, {f32({3}, {0, 0, 0})})), "exp %0");
  check_contains(to_text(trace(function, {f32({1}, {0})})), "neg %0");
}

void mistakes() {
  Tracer one, other;
  const Sym a = one.input({DType::Float32, {2}});
  const Sym b = other.input({DType::Float32, {2}});
  check_throws<GraphError>([&] { a + b; }, "another trace");
  check_throws<GraphError>([&] { add(1.0, 2.0); }, "at least one tensor");
  check_throws<GraphError>([&] { one.finish({b}); }, "another trace");
  check_throws<GraphError>([&] { bitwise_and(a, a); }, "does not take f32");
  check_throws<GraphError>([&] { sum(a, {3}); }, "no dimension 3");
  check_throws<GraphError>([&] { transpose(a, 0, 1); }, "no such dimension");
  check_throws<GraphError>([&] { matmul(a, a); }, "matrices");
  check_throws<GraphError>([&] { reshape(a, {3}); }, "number of elements");
  check_throws<GraphError>([&] { cat({}); }, "at least one");
  check_throws<GraphError>([] { Sym(1.0).shape(); }, "not a tensor");
}

void strides() {
  const Tensor turned = f32({2, 3}, {1, 2, 3, 4, 5, 6}).viewed({3, 2}, {1, 3}, 0);
  const Graph graph =
      trace([](const auto& in) -> std::vector<Sym> { return {neg(in[0])}; }, {turned});
  check_contains(to_text(graph), "input strides=[1, 3] : f32[3, 2]");
  check_values(interpret(graph, {turned})[0], {-1, -4, -2, -5, -3, -6});
}

void drawing() {
  Tracer tracer;
  const Sym x = tracer.input({DType::Float32, {2, 3}});
  const std::string dot = to_dot(tracer.finish({x - sum(x, {1}, true), x}));
  check_contains(dot, "n0 [label=\"%0 input\\nf32[2, 3]\"");
  check_contains(dot, "n1 [label=\"%1 sum dims=[1] keepdim=1\\nf32[2, 1]\"");
  check_contains(dot, "n0 -> n1;");
  check_contains(dot, "n2 -> n3 [label=\"1\"];");
  check_contains(dot, "n0 -> output1;");
  check_equal(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
}

}  // namespace

int main() {
  a_function();
  broadcasting();
  promotion();
  functions();
  composed();
  control_flow();
  mistakes();
  strides();
  drawing();
  return finish();
}
