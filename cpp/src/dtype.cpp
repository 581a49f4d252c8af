#include "dtype.h"

#include "error.h"

namespace mini {

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::Float32: return "f32";
    case DType::Float64: return "f64";
    case DType::Int64: return "i64";
    case DType::Bool: break;
  }
  return "bool";
}

DType parse_dtype(std::string_view name) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Int64, DType::Bool}) {
    if (dtype_name(dtype) == name) return dtype;
  }
  throw GraphError("'" + std::string(name) + "' is not a dtype: f32, f64, i64 and bool are");
}

}  // namespace mini
