#include "tensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "error.h"

namespace mini {

namespace {

// 64 TiB. No machine has it, and no sum or product of what is below comes near an overflow.
constexpr int64_t most_elements = int64_t{1} << 43;

// Calls visit(offset) for each element in row-major order.
template <class Visitor>
void each_offset(const Shape& shape, const Strides& strides, Visitor&& visit) {
  const int64_t count = element_count(shape);
  std::vector<int64_t> index(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t place = 0; place < count; ++place) {
    visit(offset);
    for (size_t dim = shape.size(); dim-- > 0;) {
      offset += strides[dim];
      if (++index[dim] < shape[dim]) break;
      offset -= strides[dim] * shape[dim];
      index[dim] = 0;
    }
  }
}

}  // namespace

int64_t element_count(const Shape& shape) {
  int64_t product = 1;  // with empty dimensions counted as 1: strides are made of it
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) throw GraphError("a dimension of size " + std::to_string(size));
    if (size > most_elements / product) throw GraphError("a tensor that no memory can hold");
    product *= std::max<int64_t>(size, 1);
    empty = empty || size == 0;
  }
  return empty ? 0 : product;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.size());
  int64_t step = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = step;
    step *= std::max<int64_t>(shape[dim], 1);
  }
  return strides;
}

std::string to_string(const TensorType& type) {
  std::string text{dtype_name(type.dtype)};
  text += '[';
  for (size_t dim = 0; dim < type.shape.size(); ++dim) {
    if (dim > 0) text += ", ";
    text += std::to_string(type.shape[dim]);
  }
  return text + ']';
}

Tensor::Tensor(TensorType type)
    : type_(std::move(type)), strides_(contiguous_strides(type_.shape)) {
  // Never of length 0, so that an empty tensor has an address too.
  owned_.reset(new std::byte[static_cast<size_t>(std::max<int64_t>(type_.bytes(), 1))]());
  data_ = owned_.get();
}

Tensor::Tensor(TensorType type, void* data, Strides strides)
    : type_(std::move(type)), strides_(std::move(strides)), data_(data) {
  assert(strides_.size() == type_.shape.size());
}

Tensor Tensor::scalar(double value, DType dtype) {
  Tensor result(TensorType{dtype, {}});
  with_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    *result.data<T>() = static_cast<T>(value);
  });
  return result;
}

template <class T>
Tensor Tensor::from(const Shape& shape, const std::vector<T>& values) {
  Tensor result(TensorType{dtype_of<T>, shape});
  if (static_cast<int64_t>(values.size()) != result.type_.elements()) {
    throw GraphError(std::to_string(values.size()) + " numbers for " + to_string(result.type_));
  }
  std::copy(values.begin(), values.end(), result.data<T>());
  return result;
}
template Tensor Tensor::from(const Shape&, const std::vector<float>&);
template Tensor Tensor::from(const Shape&, const std::vector<double>&);
template Tensor Tensor::from(const Shape&, const std::vector<int64_t>&);
template Tensor Tensor::from(const Shape&, const std::vector<bool>&);

bool Tensor::is_contiguous() const {
  int64_t step = 1;
  for (size_t dim = strides_.size(); dim-- > 0;) {
    if (shape()[dim] == 0) return true;
    // The stride of a dimension of size 1 is never used.
    if (shape()[dim] != 1 && strides_[dim] != step) return false;
    step *= shape()[dim];
  }
  return true;
}

Tensor Tensor::viewed(Shape shape, Strides strides, int64_t offset) const {
  Tensor result = *this;
  result.type_.shape = std::move(shape);
  result.strides_ = std::move(strides);
  result.data_ = static_cast<std::byte*>(data_) + offset * dtype_bytes(dtype());
  return result;
}

Tensor Tensor::contiguous() const {
  if (is_contiguous()) return *this;
  Tensor result(type_);
  with_dtype(dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = data<T>();
    T* to = result.data<T>();
    each_offset(shape(), strides_, [&](int64_t offset) { *to++ = from[offset]; });
  });
  return result;
}

double Tensor::at(int64_t place) const {
  int64_t offset = 0;
  for (size_t dim = strides_.size(); dim-- > 0;) {
    offset += place % shape()[dim] * strides_[dim];
    place /= shape()[dim];
  }
  return with_dtype(dtype(),
                    [&](auto zero) { return static_cast<double>(data<decltype(zero)>()[offset]); });
}

}  // namespace mini
