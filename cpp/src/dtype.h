// The four kinds of numbers a tensor can hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mini {

enum class DType : uint8_t { Float32, Float64, Int64, Bool };

// "f32", "f64", "i64", "bool": in graphs that are printed and read.
std::string_view dtype_name(DType dtype);
// Throws GraphError for a name that is none of the four.
DType parse_dtype(std::string_view name);

constexpr int64_t dtype_bytes(DType dtype) {
  return dtype == DType::Float32 ? 4 : dtype == DType::Bool ? 1 : 8;
}
constexpr bool is_float(DType dtype) { return dtype == DType::Float32 || dtype == DType::Float64; }

// Calls `visit` with a value of the C++ type that holds such numbers: one generic lambda then
// serves all dtypes. A Bool is a `bool`.
template <class Visitor>
decltype(auto) with_dtype(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::Float32: return visit(float{});
    case DType::Float64: return visit(double{});
    case DType::Int64: return visit(int64_t{});
    case DType::Bool: break;
  }
  return visit(bool{});
}

template <class T>
constexpr DType dtype_of = DType::Float32;
template <>
inline constexpr DType dtype_of<double> = DType::Float64;
template <>
inline constexpr DType dtype_of<int64_t> = DType::Int64;
template <>
inline constexpr DType dtype_of<bool> = DType::Bool;

}  // namespace mini
