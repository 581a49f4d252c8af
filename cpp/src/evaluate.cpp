#include "evaluate.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>

#include "error.h"
#include "kernel_math.h"

namespace mini {

namespace {

// ---- Pointwise: one loop, for every operator of ops.def.

template <int inputs, Accepts rule, class Function>
void map(const std::vector<Tensor>& in, const Tensor& out, Function&& function) {
  with_dtype(in[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (accepts(rule, dtype_of<T>)) {
      const int64_t count = out.type().elements();
      const Tensor first = in[0].contiguous();
      const Tensor last = in[inputs - 1].contiguous();
      const T* a = first.data<T>();
      const T* b = last.data<T>();
      if constexpr (inputs == 1) {
        auto* to = out.data<decltype(function(*a))>();
        for (int64_t i = 0; i < count; ++i) to[i] = function(a[i]);
      } else {
        auto* to = out.data<decltype(function(*a, *b))>();
        for (int64_t i = 0; i < count; ++i) to[i] = function(a[i], b[i]);
      }
    }
  });
}

void pointwise(const Node& node, const std::vector<Tensor>& in, const Tensor& out) {
  switch (node.op) {
#define MINI_POINTWISE(type, name, inputs, rule, result)                                    \
  case OpType::type:                                                                        \
    map<inputs, Accepts::rule>(in, out,                                                     \
                               [](auto... operands) { return kernel::name(operands...); }); \
    break;
#include "ops.def"
    default: break;
  }
}

void cast(const Tensor& x, const Tensor& out) {
  const Tensor from = x.contiguous();
  with_dtype(x.dtype(), [&](auto a) {
    with_dtype(out.dtype(), [&](auto b) {
      using From = decltype(a);
      using To = decltype(b);
      std::transform(from.data<From>(), from.data<From>() + out.type().elements(), out.data<To>(),
                     [](From value) { return kernel::cast<To>(value); });
    });
  });
}

void where(const std::vector<Tensor>& in, const Tensor& out) {
  const Tensor condition = in[0].contiguous(), then = in[1].contiguous(),
               other = in[2].contiguous();
  with_dtype(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < out.type().elements(); ++i) {
      out.data<T>()[i] =
          kernel::where(condition.data<bool>()[i], then.data<T>()[i], other.data<T>()[i]);
    }
  });
}

// ---- Leaves

void fill(const Node& node, const Tensor& out) {
  with_dtype(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Scalar& value = node.attributes.value;
    const T number = is_float(out.dtype()) ? static_cast<T>(value.d) : static_cast<T>(value.i);
    std::fill_n(out.data<T>(), out.type().elements(), number);
  });
}

void iota(const Node& node, const Tensor& out) {
  with_dtype(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto& [start, step] = std::pair(node.attributes.start, node.attributes.step);
    for (int64_t i = 0; i < out.type().elements(); ++i) {
      out.data<T>()[i] = kernel::cast<T>(kernel::add(start, kernel::mul(step, i)));
    }
  });
}

// ---- Reductions: the reduced dimensions are brought to the end, then each result has its row.

// Halves and halves again, so that rounding errors grow with the logarithm of the length.
template <class Wide, class T>
Wide pairwise_sum(const T* row, int64_t length) {
  if (length > 32) {
    const int64_t half = length / 2;
    return pairwise_sum<Wide>(row, half) + pairwise_sum<Wide>(row + half, length - half);
  }
  Wide sum{};
  for (int64_t i = 0; i < length; ++i) sum += static_cast<Wide>(row[i]);
  return sum;
}

template <class T>
T sum(const T* row, int64_t length) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<int64_t>(pairwise_sum<uint64_t>(row, length));  // wraps
  } else {
    return static_cast<T>(pairwise_sum<double>(row, length));
  }
}

template <class T>
T product(const T* row, int64_t length) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return std::accumulate(row, row + length, T{1}, [](T a, T b) { return kernel::mul(a, b); });
  } else {
    return static_cast<T>(std::accumulate(row, row + length, 1.0, std::multiplies<double>{}));
  }
}

// The place of the first element that no other beats. A NaN beats everything.
template <class T, class Beats>
int64_t best(const T* row, int64_t length, Beats beats) {
  int64_t found = 0;
  for (int64_t i = 1; i < length; ++i) {
    if (row[found] != row[found]) break;
    if (beats(row[i], row[found]) || row[i] != row[i]) found = i;
  }
  return found;
}

template <class T>
void reduce_row(OpType op, const T* row, int64_t length, const Tensor& out, int64_t place) {
  const int64_t greatest = op == OpType::Max || op == OpType::ArgMax
                               ? best(row, length, std::greater<T>{})
                               : best(row, length, std::less<T>{});
  switch (op) {
    case OpType::Max:
    case OpType::Min: out.data<T>()[place] = row[greatest]; return;
    case OpType::ArgMax:
    case OpType::ArgMin: out.data<int64_t>()[place] = greatest; return;
    default: break;
  }
  if constexpr (std::is_same_v<T, bool>) {
    const bool any = std::find(row, row + length, true) != row + length;
    const bool all = std::find(row, row + length, false) == row + length;
    out.data<bool>()[place] = op == OpType::Any ? any : all;
  } else {
    out.data<T>()[place] = op == OpType::Sum ? sum(row, length) : product(row, length);
  }
}

void reduce(const Node& node, const Tensor& x, const Tensor& out) {
  const std::vector<int64_t>& dims = node.attributes.dims;
  Shape shape;
  Strides strides;
  int64_t length = 1;
  const auto append = [&](size_t dim) {
    shape.push_back(x.shape()[dim]);
    strides.push_back(x.strides()[dim]);
  };
  const auto is_reduced = [&](size_t dim) {
    return std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim)) != dims.end();
  };
  for (size_t dim = 0; dim < x.shape().size(); ++dim) {
    if (!is_reduced(dim)) append(dim);
  }
  for (size_t dim = 0; dim < x.shape().size(); ++dim) {
    if (!is_reduced(dim)) continue;
    append(dim);
    length *= x.shape()[dim];
  }
  const Tensor rows = x.viewed(shape, strides, 0).contiguous();
  with_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t place = 0; place < out.type().elements(); ++place) {
      reduce_row(node.op, rows.data<T>() + place * length, length, out, place);
    }
  });
}

// ---- MatMul: a row of the result at a time, wider than its dtype until it is done.

template <class T, class Wide>
void multiply(const T* a, const T* b, T* out, int64_t rows, int64_t inner, int64_t columns) {
  std::vector<Wide> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows; ++i) {
    std::fill(row.begin(), row.end(), Wide{});
    for (int64_t k = 0; k < inner; ++k) {
      const Wide factor = static_cast<Wide>(a[i * inner + k]);
      const T* from = b + k * columns;
      for (int64_t j = 0; j < columns; ++j)
        row[static_cast<size_t>(j)] += factor * static_cast<Wide>(from[j]);
    }
    std::transform(row.begin(), row.end(), out + i * columns,
                   [](Wide x) { return static_cast<T>(x); });
  }
}

void matmul(const Tensor& left, const Tensor& right, const Tensor& out) {
  const Tensor a = left.contiguous();
  const Tensor b = right.contiguous();
  const size_t last = out.shape().size() - 1;
  const int64_t rows = out.shape()[last - 1];
  const int64_t columns = out.shape()[last];
  const int64_t inner = a.shape()[last];
  with_dtype(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, double>;
    if (out.type().elements() == 0) return;
    const int64_t batch = out.type().elements() / (rows * columns);
    for (int64_t i = 0; i < batch; ++i) {
      multiply<T, Wide>(a.data<T>() + i * rows * inner, b.data<T>() + i * inner * columns,
                        out.data<T>() + i * rows * columns, rows, inner, columns);
    }
  });
}

// ---- Moving whole elements. Their dtype does not matter, only its size.

// How many elements lie before, in and after a dimension in row-major order.
struct Split {
  Split(const Shape& shape, int64_t dim) : size(shape[static_cast<size_t>(dim)]) {
    const auto at = shape.begin() + static_cast<ptrdiff_t>(dim);
    outer = element_count(Shape(shape.begin(), at));
    inner = element_count(Shape(at + 1, shape.end()));
  }
  int64_t outer, size, inner;
};

void cat(const Node& node, const std::vector<Tensor>& in, const Tensor& out) {
  const Split whole(out.shape(), node.attributes.dim);
  const int64_t row = whole.size * whole.inner * dtype_bytes(out.dtype());
  int64_t begin = 0;
  for (const Tensor& input : in) {
    const Tensor part = input.contiguous();
    const int64_t bytes =
        Split(part.shape(), node.attributes.dim).size * whole.inner * dtype_bytes(out.dtype());
    for (int64_t i = 0; i < whole.outer && bytes > 0; ++i) {
      std::memcpy(out.data<std::byte>() + i * row + begin, part.data<std::byte>() + i * bytes,
                  static_cast<size_t>(bytes));
    }
    begin += bytes;
  }
}

int64_t checked(const Node& node, int64_t index, int64_t size) {
  if (index >= 0 && index < size) return index;
  throw GraphError(std::string(op_name(node.op)) + ": index " + std::to_string(index) +
                   " is out of range for a dimension of size " + std::to_string(size));
}

void take(const Node& node, const std::vector<Tensor>& in, const Tensor& out) {
  const Tensor x = in[0].contiguous();
  const Tensor index = in[1].contiguous();
  const Split split(x.shape(), node.attributes.dim);
  const int64_t wanted = index.type().elements();
  const int64_t bytes = split.inner * dtype_bytes(x.dtype());
  for (int64_t i = 0; i < split.outer; ++i) {
    for (int64_t j = 0; j < wanted; ++j) {
      const int64_t from = checked(node, index.data<int64_t>()[j], split.size);
      if (bytes == 0) continue;
      std::memcpy(out.data<std::byte>() + (i * wanted + j) * bytes,
                  x.data<std::byte>() + (i * split.size + from) * bytes,
                  static_cast<size_t>(bytes));
    }
  }
}

void gather(const Node& node, const std::vector<Tensor>& in, const Tensor& out) {
  const Tensor index = in[1].contiguous();
  const Tensor& x = in[0];
  const size_t dims = out.shape().size();
  const size_t along = static_cast<size_t>(node.attributes.dim);
  const size_t bytes = static_cast<size_t>(dtype_bytes(x.dtype()));
  for (int64_t place = 0; place < out.type().elements(); ++place) {
    int64_t rest = place;
    int64_t offset = 0;
    for (size_t dim = dims; dim-- > 0;) {
      const int64_t here = rest % out.shape()[dim];
      rest /= out.shape()[dim];
      const int64_t from =
          dim == along ? checked(node, index.data<int64_t>()[place], x.shape()[dim]) : here;
      offset += from * x.strides()[dim];
    }
    std::memcpy(out.data<std::byte>() + static_cast<size_t>(place) * bytes,
                x.data<std::byte>() + offset * static_cast<int64_t>(bytes), bytes);
  }
}

// ---- Views: the same memory, other strides.

Tensor view(const Node& node, const Tensor& x) {
  Shape shape = node.type.shape;
  Strides strides = x.strides();
  const Attributes& given = node.attributes;
  int64_t offset = 0;
  switch (node.op) {
    case OpType::Reshape: return x.contiguous().viewed(shape, contiguous_strides(shape), 0);
    case OpType::Permute:
      for (size_t i = 0; i < strides.size(); ++i) {
        strides[i] = x.strides()[static_cast<size_t>(given.dims[i])];
      }
      break;
    case OpType::Expand:
      for (size_t i = 0; i < strides.size(); ++i) {
        if (x.shape()[i] == 1) strides[i] = 0;
      }
      break;
    default: {  // Slice
      int64_t& stride = strides[static_cast<size_t>(given.dim)];
      // An empty slice may begin at the very end: it has no first element to point to.
      if (node.type.elements() > 0) offset = given.start * stride;
      // A step may be huge where it is never taken.
      if (shape[static_cast<size_t>(given.dim)] > 1) stride *= given.step;
    }
  }
  return x.viewed(shape, strides, offset);
}

}  // namespace

void copy(const Tensor& from, const Tensor& to) {
  const Tensor packed = from.contiguous();
  if (packed.raw() == to.raw() || to.type().elements() == 0) return;
  std::memmove(to.raw(), packed.raw(), static_cast<size_t>(to.type().bytes()));
}

void evaluate(const Node& node, const std::vector<Tensor>& in, const Tensor& out) {
  if (pointwise_rule(node.op)) return pointwise(node, in, out);
  if (is_reduction(node.op)) return reduce(node, in[0], out);
  if (is_view(node.op)) return copy(view(node, in[0]), out);
  switch (node.op) {
    case OpType::Cast: return cast(in[0], out);
    case OpType::Where: return where(in, out);
    case OpType::Constant: return fill(node, out);
    case OpType::Iota: return iota(node, out);
    case OpType::MatMul: return matmul(in[0], in[1], out);
    case OpType::Cat: return cat(node, in, out);
    case OpType::Take: return take(node, in, out);
    case OpType::Gather: return gather(node, in, out);
    default: break;  // an Input has nothing to compute
  }
}

Tensor evaluate(const Node& node, const std::vector<Tensor>& in) {
  if (is_view(node.op)) return view(node, in[0]);
  Tensor out(node.type);
  evaluate(node, in, out);
  return out;
}

}  // namespace mini
