// Shapes, types, and tensors that own their numbers or look at somebody else's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtype.h"

namespace mini {

using Shape = std::vector<int64_t>;
// In elements, one a dimension.
using Strides = std::vector<int64_t>;

int64_t element_count(const Shape& shape);
Strides contiguous_strides(const Shape& shape);

// What is known of a value before there are numbers.
struct TensorType {
  DType dtype = DType::Float32;
  Shape shape;

  int64_t elements() const { return element_count(shape); }
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }
  bool operator==(const TensorType&) const = default;
};
std::string to_string(const TensorType& type);  // "f32[4, 8]"

class Tensor {
 public:
  Tensor() = default;
  // Contiguous and zero.
  explicit Tensor(TensorType type);
  // Looks at memory that must outlive it. `strides` may be any, 0 included.
  Tensor(TensorType type, void* data, Strides strides);

  static Tensor scalar(double value, DType dtype);
  template <class T>
  static Tensor from(const Shape& shape, const std::vector<T>& values);

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  const Strides& strides() const { return strides_; }
  bool is_contiguous() const;

  // The first element. For contiguous tensors, element i is data<T>()[i].
  template <class T>
  T* data() const { return static_cast<T*>(data_); }
  void* raw() const { return data_; }

  // The same memory seen in another way.
  Tensor viewed(Shape shape, Strides strides, int64_t offset) const;
  // Itself where it is contiguous, else a copy.
  Tensor contiguous() const;
  // Any element by its place in row-major order, as a double: for tests and printing.
  double at(int64_t place) const;

 private:
  TensorType type_;
  Strides strides_;
  std::shared_ptr<std::byte[]> owned_;
  void* data_ = nullptr;
};

}  // namespace mini
