// The rules of the operators: what each takes and what type it gives.
#include <algorithm>
#include <utility>

#include "error.h"
#include "graph.h"

namespace mini {

namespace {

// 64 TiB, as for sizes: no offset overflows.
constexpr int64_t farthest_element = int64_t{1} << 43;
constexpr NodeId most_nodes = 1 << 17;

[[noreturn]] void fail(const Node& node, const std::string& what) {
  throw GraphError(std::string(op_name(node.op)) + ": " + what);
}

void require(bool holds, const Node& node, const char* what) {
  if (!holds) fail(node, what);
}

const TensorType& operand(const Graph& graph, const Node& node, size_t place) {
  return graph[node.inputs[place]].type;
}

void take_inputs(const Node& node, size_t count) {
  if (node.inputs.size() == count) return;
  fail(node, "takes " + std::to_string(count) + (count == 1 ? " input" : " inputs") + ", not " +
                 std::to_string(node.inputs.size()));
}

int64_t rank(const TensorType& type) { return static_cast<int64_t>(type.shape.size()); }

void check_dim(const Node& node, int64_t dim, const TensorType& type) {
  if (dim >= 0 && dim < rank(type)) return;
  fail(node, "there is no dimension " + std::to_string(dim) + " in " + to_string(type));
}

void check_distinct_dims(const Node& node, const TensorType& type) {
  std::vector<bool> seen(type.shape.size(), false);
  for (int64_t dim : node.attributes.dims) {
    check_dim(node, dim, type);
    if (seen[static_cast<size_t>(dim)])
      fail(node, "names dimension " + std::to_string(dim) + " twice");
    seen[static_cast<size_t>(dim)] = true;
  }
}

TensorType pointwise_type(const Graph& graph, const Node& node, const PointwiseRule& rule) {
  take_inputs(node, static_cast<size_t>(rule.inputs));
  const TensorType& first = operand(graph, node, 0);
  if (!accepts(rule.accepts, first.dtype)) {
    fail(node, "does not take " + std::string(dtype_name(first.dtype)));
  }
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const TensorType& other = operand(graph, node, i);
    if (other != first)
      fail(node, "takes equal types, not " + to_string(first) + " and " + to_string(other));
  }
  return {rule.result == Result::Truth ? DType::Bool : first.dtype, first.shape};
}

TensorType cast_type(const Graph& graph, const Node& node) {
  take_inputs(node, 1);
  return {node.type.dtype, operand(graph, node, 0).shape};
}

TensorType where_type(const Graph& graph, const Node& node) {
  take_inputs(node, 3);
  const TensorType& condition = operand(graph, node, 0);
  const TensorType& then = operand(graph, node, 1);
  require(condition.dtype == DType::Bool, node, "the condition must be bool");
  require(then == operand(graph, node, 2) && condition.shape == then.shape, node,
          "takes equal shapes and a choice of equal dtypes");
  return then;
}

TensorType input_type(const Node& node) {
  take_inputs(node, 0);
  const Strides strides = input_strides(node);
  require(strides.size() == node.type.shape.size(), node, "takes one stride for each dimension");
  int64_t farthest = 0;
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    require(strides[dim] >= 0, node, "a stride may not be negative");
    const int64_t steps = node.type.shape[dim] - 1;
    if (steps <= 0) continue;
    require(strides[dim] <= (farthest_element - farthest) / steps, node, "no memory is that large");
    farthest += steps * strides[dim];
  }
  return node.type;
}

TensorType constant_type(const Node& node) {
  take_inputs(node, 0);
  const int64_t value = node.attributes.value.i;
  require(node.type.dtype != DType::Bool || value == 0 || value == 1, node, "a bool is 0 or 1");
  return node.type;
}

TensorType iota_type(const Node& node) {
  take_inputs(node, 0);
  require(node.type.dtype != DType::Bool, node, "does not give bool");
  require(node.type.shape.size() == 1, node, "has one dimension");
  return node.type;
}

DType reduced_dtype(const Node& node, DType dtype) {
  switch (node.op) {
    case OpType::Sum:
    case OpType::Prod: require(dtype != DType::Bool, node, "does not take bool"); return dtype;
    case OpType::Any:
    case OpType::All: require(dtype == DType::Bool, node, "takes bool only"); return dtype;
    case OpType::ArgMax:
    case OpType::ArgMin:
      require(node.attributes.dims.size() == 1, node, "reduces one dimension");
      return DType::Int64;
    default: return dtype;
  }
}

TensorType reduction_type(const Graph& graph, const Node& node) {
  take_inputs(node, 1);
  const TensorType& x = operand(graph, node, 0);
  check_distinct_dims(node, x);
  const bool has_value_of_nothing = node.op == OpType::Sum || node.op == OpType::Prod ||
                                    node.op == OpType::Any || node.op == OpType::All;
  TensorType result{reduced_dtype(node, x.dtype), {}};
  const std::vector<int64_t>& dims = node.attributes.dims;
  for (int64_t dim = 0; dim < rank(x); ++dim) {
    const int64_t size = x.shape[static_cast<size_t>(dim)];
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) {
      result.shape.push_back(size);
      continue;
    }
    require(size > 0 || has_value_of_nothing, node,
            "nothing can be chosen from an empty dimension");
    if (node.attributes.keepdim) result.shape.push_back(1);
  }
  return result;
}

TensorType matmul_type(const Graph& graph, const Node& node) {
  take_inputs(node, 2);
  const TensorType& a = operand(graph, node, 0);
  const TensorType& b = operand(graph, node, 1);
  const size_t dims = a.shape.size();
  const bool fits = a.dtype == b.dtype && a.dtype != DType::Bool && dims >= 2 &&
                    b.shape.size() == dims && a.shape[dims - 1] == b.shape[dims - 2] &&
                    std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin());
  if (!fits) fail(node, to_string(a) + " and " + to_string(b) + " cannot be multiplied");
  TensorType result = a;
  result.shape[dims - 1] = b.shape[dims - 1];
  return result;
}

TensorType reshape_type(const Graph& graph, const Node& node) {
  take_inputs(node, 1);
  const TensorType& x = operand(graph, node, 0);
  require(x.elements() == node.type.elements(), node, "must keep the number of elements");
  return {x.dtype, node.type.shape};
}

TensorType permute_type(const Graph& graph, const Node& node) {
  take_inputs(node, 1);
  const TensorType& x = operand(graph, node, 0);
  require(node.attributes.dims.size() == x.shape.size(), node, "names each dimension once");
  check_distinct_dims(node, x);
  TensorType result{x.dtype, {}};
  for (int64_t dim : node.attributes.dims)
    result.shape.push_back(x.shape[static_cast<size_t>(dim)]);
  return result;
}

TensorType expand_type(const Graph& graph, const Node& node) {
  take_inputs(node, 1);
  const TensorType& x = operand(graph, node, 0);
  const Shape& wanted = node.type.shape;
  bool fits = wanted.size() == x.shape.size();
  for (size_t dim = 0; fits && dim < wanted.size(); ++dim) {
    fits = x.shape[dim] == wanted[dim] || x.shape[dim] == 1;
  }
  if (!fits) fail(node, to_string(x) + " cannot become " + to_string(node.type));
  return {x.dtype, wanted};
}

TensorType slice_type(const Graph& graph, const Node& node) {
  take_inputs(node, 1);
  TensorType result = operand(graph, node, 0);
  const auto& [dims, dim, start, end, step, keepdim, value, strides] = node.attributes;
  check_dim(node, dim, result);
  int64_t& size = result.shape[static_cast<size_t>(dim)];
  require(step > 0 && 0 <= start && start <= end && end <= size, node,
          "needs step > 0 and 0 <= start <= end <= size");
  const int64_t length = end - start;
  size = length / step + (length % step != 0 ? 1 : 0);
  return result;
}

TensorType cat_type(const Graph& graph, const Node& node) {
  require(!node.inputs.empty(), node, "takes at least one input");
  TensorType result = operand(graph, node, 0);
  check_dim(node, node.attributes.dim, result);
  const size_t dim = static_cast<size_t>(node.attributes.dim);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    TensorType other = operand(graph, node, i);
    const bool same_rank = other.shape.size() == result.shape.size();
    const int64_t more = same_rank ? std::exchange(other.shape[dim], result.shape[dim]) : 0;
    if (other != result)
      fail(node, "the inputs differ in more than dimension " + std::to_string(dim));
    result.shape[dim] += more;
    element_count(result.shape);  // throws where it is too large
  }
  return result;
}

TensorType take_type(const Graph& graph, const Node& node) {
  take_inputs(node, 2);
  const TensorType& x = operand(graph, node, 0);
  const TensorType& index = operand(graph, node, 1);
  require(index.dtype == DType::Int64, node, "the index must be i64");
  check_dim(node, node.attributes.dim, x);
  TensorType result = x;
  const auto place = result.shape.begin() + static_cast<ptrdiff_t>(node.attributes.dim);
  result.shape.insert(result.shape.erase(place), index.shape.begin(), index.shape.end());
  return result;
}

TensorType gather_type(const Graph& graph, const Node& node) {
  take_inputs(node, 2);
  const TensorType& x = operand(graph, node, 0);
  const TensorType& index = operand(graph, node, 1);
  require(index.dtype == DType::Int64, node, "the index must be i64");
  check_dim(node, node.attributes.dim, x);
  require(index.shape.size() == x.shape.size(), node, "the index must have as many dimensions");
  for (size_t dim = 0; dim < x.shape.size(); ++dim) {
    require(static_cast<int64_t>(dim) == node.attributes.dim || index.shape[dim] <= x.shape[dim],
            node, "the index is larger than what it points into");
  }
  return {x.dtype, index.shape};
}

}  // namespace

Strides input_strides(const Node& node) {
  if (!node.attributes.strides.empty()) return node.attributes.strides;
  return contiguous_strides(node.type.shape);
}

TensorType infer_type(const Graph& graph, const Node& node) {
  if (const auto rule = pointwise_rule(node.op)) return pointwise_type(graph, node, *rule);
  if (is_reduction(node.op)) return reduction_type(graph, node);
  switch (node.op) {
    case OpType::Input: return input_type(node);
    case OpType::Constant: return constant_type(node);
    case OpType::Iota: return iota_type(node);
    case OpType::Cast: return cast_type(graph, node);
    case OpType::Where: return where_type(graph, node);
    case OpType::MatMul: return matmul_type(graph, node);
    case OpType::Reshape: return reshape_type(graph, node);
    case OpType::Permute: return permute_type(graph, node);
    case OpType::Expand: return expand_type(graph, node);
    case OpType::Slice: return slice_type(graph, node);
    case OpType::Cat: return cat_type(graph, node);
    case OpType::Take: return take_type(graph, node);
    case OpType::Gather: return gather_type(graph, node);
    default: break;
  }
  fail(node, "has no rule");
}

void verify(const Graph& graph, const Node& node, const std::string& where) {
  try {
    element_count(node.type.shape);
    for (NodeId input : node.inputs) {
      if (input >= 0 && input < graph.size()) continue;
      fail(node, "reads %" + std::to_string(input) + ", which does not exist");
    }
    const TensorType found = infer_type(graph, node);
    if (found != node.type)
      fail(node, "gives " + to_string(found) + ", not " + to_string(node.type));
  } catch (const GraphError& error) {
    throw GraphError(where + ": " + error.what());
  }
}

void verify(const Graph& graph) {
  if (graph.size() > most_nodes) throw GraphError("the graph has too many nodes");
  std::vector<NodeId> inputs;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const std::string where = "%" + std::to_string(id);
    verify(graph, node, where);
    for (NodeId input : node.inputs) {
      if (input >= id)
        throw GraphError(where + " reads %" + std::to_string(input) + ", which comes later");
    }
    if (node.op == OpType::Input) inputs.push_back(id);
  }
  std::vector<NodeId> listed = graph.inputs;
  std::sort(listed.begin(), listed.end());
  if (listed != inputs) throw GraphError("the list of inputs is not that of the input nodes");
  for (NodeId output : graph.outputs) {
    if (output >= 0 && output < graph.size()) continue;
    throw GraphError("returns %" + std::to_string(output) + ", which does not exist");
  }
}

}  // namespace mini
