#include "tracer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "error.h"

namespace mini {

namespace {

// bool < i64 < f32 < f64
int width(DType dtype) {
  switch (dtype) {
    case DType::Bool: return 0;
    case DType::Int64: return 1;
    case DType::Float32: return 2;
    case DType::Float64: break;
  }
  return 3;
}

Tracer& tracer_of(const std::vector<Sym>& operands) {
  for (const Sym& operand : operands) {
    if (!operand.is_number()) return operand.tracer();
  }
  throw GraphError("an operator needs at least one tensor");
}

// The dtype that all operands can have. A number asks for no more than what it meets has, except
// that 0.5 makes whole numbers f32.
DType common_dtype(const std::vector<Sym>& operands) {
  DType found = DType::Bool;
  bool fraction = false;
  bool numbers = false;
  for (const Sym& operand : operands) {
    if (operand.is_number()) {
      numbers = true;
      fraction = fraction || operand.number() != std::trunc(operand.number()) ||
                 std::isinf(operand.number());
    } else if (width(operand.dtype()) > width(found)) {
      found = operand.dtype();
    }
  }
  if (fraction && !is_float(found)) return DType::Float32;
  return numbers && found == DType::Bool ? DType::Int64 : found;
}

Shape broadcast(Shape a, Shape b) {
  if (a.size() < b.size()) std::swap(a, b);
  const size_t skipped = a.size() - b.size();
  for (size_t dim = 0; dim < b.size(); ++dim) {
    int64_t& size = a[skipped + dim];
    if (size == 1) size = b[dim];
    if (size == b[dim] || b[dim] == 1) continue;
    throw GraphError("sizes " + std::to_string(size) + " and " + std::to_string(b[dim]) +
                     " cannot be broadcast together");
  }
  return a;
}

Shape common_shape(const std::vector<Sym>& operands) {
  Shape found;
  for (const Sym& operand : operands) {
    if (!operand.is_number()) found = broadcast(found, operand.shape());
  }
  return found;
}

Sym fitted(Tracer& tracer, const Sym& x, const TensorType& type) {
  if (x.is_number()) return tracer.constant(x.number(), type);
  return expand(cast(x, type.dtype), type.shape);
}

Sym pointwise(OpType op, const std::vector<Sym>& operands) {
  Tracer& tracer = tracer_of(operands);
  const Accepts rule = pointwise_rule(op)->accepts;
  DType dtype = common_dtype(operands);
  if (!accepts(rule, dtype) && rule == Accepts::Float) dtype = DType::Float32;
  if (!accepts(rule, dtype) && rule == Accepts::Number) dtype = DType::Int64;
  const TensorType type{dtype, common_shape(operands)};
  std::vector<Sym> inputs;
  for (const Sym& operand : operands) inputs.push_back(fitted(tracer, operand, type));
  return tracer.add(op, inputs);
}

int64_t from_start(const Sym& x, int64_t dim) { return dim < 0 ? dim + x.rank() : dim; }

Sym reduce(OpType op, const Sym& x, const Dims& dims, bool keepdim) {
  Attributes attributes;
  attributes.keepdim = keepdim;
  for (int64_t dim : dims) attributes.dims.push_back(from_start(x, dim));
  return x.tracer().add(op, {x}, attributes);
}

// Sums and products of bool count.
Sym counted(const Sym& x) { return x.dtype() == DType::Bool ? cast(x, DType::Int64) : x; }

Sym with_dim(OpType op, const std::vector<Sym>& inputs, int64_t dim) {
  Attributes attributes;
  attributes.dim = from_start(inputs[0], dim);
  return inputs[0].tracer().add(op, inputs, attributes);
}

}  // namespace

Tracer& Sym::tracer() const {
  if (is_number()) throw GraphError("a plain number is not a tensor");
  return *tracer_;
}

const TensorType& Sym::type() const { return tracer().graph()[id_].type; }

Sym Tracer::input(const TensorType& type, const Strides& strides) {
  Attributes attributes;
  if (strides != contiguous_strides(type.shape)) attributes.strides = strides;
  return add(OpType::Input, {}, attributes, type);
}

Sym Tracer::constant(double value, const TensorType& type) {
  Attributes attributes;
  switch (type.dtype) {
    case DType::Float32: attributes.value.d = static_cast<double>(static_cast<float>(value)); break;
    case DType::Float64: attributes.value.d = value; break;
    case DType::Int64: attributes.value.i = static_cast<int64_t>(value); break;
    case DType::Bool: attributes.value.i = value != 0 ? 1 : 0; break;
  }
  return add(OpType::Constant, {}, attributes, type);
}

Sym Tracer::iota(int64_t start, int64_t step, int64_t count, DType dtype) {
  Attributes attributes;
  attributes.start = start;
  attributes.step = step;
  return add(OpType::Iota, {}, attributes, {dtype, {count}});
}

Sym Tracer::add(OpType op, const std::vector<Sym>& inputs, const Attributes& attributes,
                const TensorType& type) {
  Node node;
  node.op = op;
  node.attributes = attributes;
  node.type = type;
  for (const Sym& input : inputs) {
    if (&input.tracer() != this) throw GraphError("a tensor of another trace");
    node.inputs.push_back(input.id());
  }
  node.type = infer_type(graph_, node);
  verify(graph_, node, "%" + std::to_string(graph_.size()));
  return Sym(*this, graph_.add(std::move(node)));
}

Graph Tracer::finish(const std::vector<Sym>& outputs) {
  Graph graph = graph_;
  for (const Sym& output : outputs) {
    if (&output.tracer() != this) throw GraphError("a tensor of another trace");
    graph.outputs.push_back(output.id());
  }
  verify(graph);
  return graph;
}

Graph trace(const TracedFunction& function, const std::vector<Tensor>& examples) {
  Tracer tracer;
  std::vector<Sym> inputs;
  for (const Tensor& example : examples)
    inputs.push_back(tracer.input(example.type(), example.strides()));
  return tracer.finish(function(inputs));
}

#define MINI_SYM_OPERANDS_1 const Sym& x
#define MINI_SYM_OPERANDS_2 const Sym &a, const Sym &b
#define MINI_SYM_LIST_1 {x}
#define MINI_SYM_LIST_2 {a, b}
#define MINI_POINTWISE(type, name, inputs, accepts, result) \
  Sym name(MINI_SYM_OPERANDS_##inputs) { return pointwise(OpType::type, MINI_SYM_LIST_##inputs); }
#include "ops.def"

Sym cast(const Sym& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return x.tracer().add(OpType::Cast, {x}, {}, {dtype, x.shape()});
}

Sym where(const Sym& condition, const Sym& then, const Sym& other) {
  Tracer& tracer = tracer_of({condition, then, other});
  const TensorType type{common_dtype({then, other}), common_shape({condition, then, other})};
  return tracer.add(OpType::Where, {fitted(tracer, condition, {DType::Bool, type.shape}),
                                    fitted(tracer, then, type), fitted(tracer, other, type)});
}

Sym sum(const Sym& x, const Dims& dims, bool keepdim) {
  return reduce(OpType::Sum, counted(x), dims, keepdim);
}
Sym prod(const Sym& x, const Dims& dims, bool keepdim) {
  return reduce(OpType::Prod, counted(x), dims, keepdim);
}
Sym max(const Sym& x, const Dims& dims, bool keepdim) {
  return reduce(OpType::Max, x, dims, keepdim);
}
Sym min(const Sym& x, const Dims& dims, bool keepdim) {
  return reduce(OpType::Min, x, dims, keepdim);
}
Sym any(const Sym& x, const Dims& dims, bool keepdim) {
  return reduce(OpType::Any, cast(x, DType::Bool), dims, keepdim);
}
Sym all(const Sym& x, const Dims& dims, bool keepdim) {
  return reduce(OpType::All, cast(x, DType::Bool), dims, keepdim);
}
Sym argmax(const Sym& x, int64_t dim, bool keepdim) {
  return reduce(OpType::ArgMax, x, {dim}, keepdim);
}
Sym argmin(const Sym& x, int64_t dim, bool keepdim) {
  return reduce(OpType::ArgMin, x, {dim}, keepdim);
}

Sym matmul(const Sym& a, const Sym& b) {
  if (a.rank() < 2 || b.rank() < 2) throw GraphError("matmul: takes matrices");
  const auto batched = [](const Sym& x, const Shape& batch) {
    Shape shape = batch;
    shape.insert(shape.end(), x.shape().end() - 2, x.shape().end());
    return expand(x, shape);
  };
  const Shape left(a.shape().begin(), a.shape().end() - 2);
  const Shape right(b.shape().begin(), b.shape().end() - 2);
  const Shape batch = broadcast(left, right);
  return a.tracer().add(OpType::MatMul, {batched(a, batch), batched(b, batch)});
}

Sym reshape(const Sym& x, Shape shape) {
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    *open = x.type().elements() / std::max<int64_t>(element_count(shape), 1);
  }
  if (shape == x.shape()) return x;
  return x.tracer().add(OpType::Reshape, {x}, {}, {x.dtype(), shape});
}

Sym permute(const Sym& x, const Dims& dims) {
  Attributes attributes;
  for (int64_t dim : dims) attributes.dims.push_back(from_start(x, dim));
  return x.tracer().add(OpType::Permute, {x}, attributes);
}

Sym transpose(const Sym& x, int64_t a, int64_t b) {
  Dims dims(x.shape().size());
  std::iota(dims.begin(), dims.end(), 0);
  const int64_t first = from_start(x, a), second = from_start(x, b);
  if (std::min(first, second) < 0 || std::max(first, second) >= x.rank()) {
    throw GraphError("transpose: there is no such dimension in " + to_string(x.type()));
  }
  std::swap(dims[static_cast<size_t>(first)], dims[static_cast<size_t>(second)]);
  return permute(x, dims);
}

Sym expand(const Sym& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Shape aligned = x.shape();
  if (aligned.size() < shape.size())
    aligned.insert(aligned.begin(), shape.size() - aligned.size(), 1);
  const Sym same_rank = reshape(x, aligned);
  if (aligned == shape) return same_rank;
  return x.tracer().add(OpType::Expand, {same_rank}, {}, {x.dtype(), shape});
}

Sym slice(const Sym& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  Attributes attributes;
  attributes.dim = from_start(x, dim);
  attributes.start = start;
  attributes.end = end;
  attributes.step = step;
  return x.tracer().add(OpType::Slice, {x}, attributes);
}

Sym cat(const std::vector<Sym>& parts, int64_t dim) {
  if (parts.empty()) throw GraphError("cat: takes at least one input");
  return with_dim(OpType::Cat, parts, dim);
}

Sym take(const Sym& x, const Sym& index, int64_t dim) {
  return with_dim(OpType::Take, {x, index}, dim);
}
Sym gather(const Sym& x, const Sym& index, int64_t dim) {
  return with_dim(OpType::Gather, {x, index}, dim);
}

Sym mean(const Sym& x, const Dims& dims, bool keepdim) {
  const Sym total = sum(is_float(x.dtype()) ? x : cast(x, DType::Float32), dims, keepdim);
  const int64_t results = std::max<int64_t>(total.type().elements(), 1);
  return total / static_cast<double>(x.type().elements() / results);
}

// The maximum is subtracted so that exp cannot overflow.
Sym softmax(const Sym& x, int64_t dim) {
  const Sym powers = exp(x - max(x, {dim}, true));
  return powers / sum(powers, {dim}, true);
}

Sym layer_norm(const Sym& x, double epsilon) {
  const Sym centered = x - mean(x, {-1}, true);
  return centered * rsqrt(mean(centered * centered, {-1}, true) + epsilon);
}

}  // namespace mini
