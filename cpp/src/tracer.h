// The tracer: runs a C++ function on tensors without numbers and writes down what it does.
//
//   std::vector<Sym> f(const std::vector<Sym>& x) { return {sin(x[0]) + cos(x[1])}; }
//   Graph graph = trace(f, examples);
//
// It sees operators, not C++: an `if` on a shape is decided while tracing, and the graph holds the
// branch that was taken. That is why a graph is only good for the shapes it was traced with
// (guards.h).
#pragma once

#include <functional>
#include <vector>

#include "graph.h"

namespace mini {

class Tracer;

// A tensor that is a node of the graph being traced; or a plain number, which becomes a Constant of
// the type of what it meets.
class Sym {
 public:
  Sym(double number) : number_(number) {}  // implicit: x * 2.0
  Sym(Tracer& tracer, NodeId id) : tracer_(&tracer), id_(id) {}

  bool is_number() const { return tracer_ == nullptr; }
  double number() const { return number_; }
  Tracer& tracer() const;  // throws GraphError for a number
  NodeId id() const { return id_; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }

 private:
  Tracer* tracer_ = nullptr;
  NodeId id_ = -1;
  double number_ = 0;
};

// Holds the graph while it grows. Types are inferred and checked at once, so a mistake is reported
// at the line that makes it.
class Tracer {
 public:
  Tracer() = default;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  Sym input(const TensorType& type, const Strides& strides = {});
  Sym constant(double value, const TensorType& type);
  Sym iota(int64_t start, int64_t step, int64_t count, DType dtype = DType::Int64);
  // Any node. `type` matters only to operators that keep the type they are asked for.
  Sym add(OpType op, const std::vector<Sym>& inputs, const Attributes& attributes = {},
          const TensorType& type = {});
  Graph finish(const std::vector<Sym>& outputs);
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
};

using TracedFunction = std::function<std::vector<Sym>(const std::vector<Sym>&)>;
// The graph of `function` for inputs like these: their types and strides count, not their numbers.
Graph trace(const TracedFunction& function, const std::vector<Tensor>& examples);

// ---- Pointwise: every operator of ops.def is a function of the same name. Operands are brought to
// one dtype (bool < i64 < f32 < f64, and f32 where only floats will do) and one shape, by Expand.
#define MINI_SYM_OPERANDS_1 const Sym& x
#define MINI_SYM_OPERANDS_2 const Sym &a, const Sym &b
#define MINI_POINTWISE(type, name, inputs, accepts, result) Sym name(MINI_SYM_OPERANDS_##inputs);
#include "ops.def"
#undef MINI_SYM_OPERANDS_1
#undef MINI_SYM_OPERANDS_2

inline Sym operator-(const Sym& x) { return neg(x); }
inline Sym operator+(const Sym& a, const Sym& b) { return add(a, b); }
inline Sym operator-(const Sym& a, const Sym& b) { return sub(a, b); }
inline Sym operator*(const Sym& a, const Sym& b) { return mul(a, b); }
inline Sym operator/(const Sym& a, const Sym& b) { return div(a, b); }
inline Sym operator<(const Sym& a, const Sym& b) { return lt(a, b); }
inline Sym operator<=(const Sym& a, const Sym& b) { return le(a, b); }
inline Sym operator>(const Sym& a, const Sym& b) { return gt(a, b); }
inline Sym operator>=(const Sym& a, const Sym& b) { return ge(a, b); }

Sym cast(const Sym& x, DType dtype);
Sym where(const Sym& condition, const Sym& then, const Sym& other);

// ---- The others. Dimensions may be counted from the end: -1 is the last.
using Dims = std::vector<int64_t>;
Sym sum(const Sym& x, const Dims& dims, bool keepdim = false);
Sym prod(const Sym& x, const Dims& dims, bool keepdim = false);
Sym max(const Sym& x, const Dims& dims, bool keepdim = false);
Sym min(const Sym& x, const Dims& dims, bool keepdim = false);
Sym any(const Sym& x, const Dims& dims, bool keepdim = false);
Sym all(const Sym& x, const Dims& dims, bool keepdim = false);
Sym argmax(const Sym& x, int64_t dim, bool keepdim = false);
Sym argmin(const Sym& x, int64_t dim, bool keepdim = false);
// Batch dimensions are broadcast.
Sym matmul(const Sym& a, const Sym& b);
Sym reshape(const Sym& x, Shape shape);  // one size may be -1: what is left
Sym permute(const Sym& x, const Dims& dims);
Sym transpose(const Sym& x, int64_t a, int64_t b);
Sym expand(const Sym& x, const Shape& shape);  // broadcasts: the rank may grow
Sym slice(const Sym& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
Sym cat(const std::vector<Sym>& parts, int64_t dim = 0);
Sym take(const Sym& x, const Sym& index, int64_t dim = 0);
Sym gather(const Sym& x, const Sym& index, int64_t dim);

// ---- Made of the above, as frameworks do.
Sym mean(const Sym& x, const Dims& dims, bool keepdim = false);
Sym softmax(const Sym& x, int64_t dim = -1);
Sym layer_norm(const Sym& x, double epsilon = 1e-5);  // over the last dimension

}  // namespace mini
