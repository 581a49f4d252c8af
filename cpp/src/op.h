// What kinds of operators there are. The list itself is ops.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dtype.h"

namespace mini {

enum class OpType : uint8_t {
#define MINI_POINTWISE(type, name, inputs, accepts, result) type,
#define MINI_OTHER(type, name) type,
#include "ops.def"
};

// Dtypes that a pointwise operator takes.
enum class Accepts : uint8_t { Float, Number, Any, Logic };
enum class Result : uint8_t { Same, Truth };

struct PointwiseRule {
  int inputs;
  Accepts accepts;
  Result result;
};

std::string_view op_name(OpType op);
// Nothing for a name that no operator has.
std::optional<OpType> find_op(std::string_view name);
// Nothing for what is not in ops.def as MINI_POINTWISE.
std::optional<PointwiseRule> pointwise_rule(OpType op);
constexpr bool accepts(Accepts rule, DType dtype) {
  switch (rule) {
    case Accepts::Float: return is_float(dtype);
    case Accepts::Number: return dtype != DType::Bool;
    case Accepts::Logic: return !is_float(dtype);
    case Accepts::Any: break;
  }
  return true;
}

// Each element of the result depends on the same element of the inputs: pointwise operators, Cast
// and Where.
bool is_pointwise(OpType op);
bool is_reduction(OpType op);
bool is_view(OpType op);
// Has no inputs: Input, Constant, Iota.
bool is_leaf(OpType op);

}  // namespace mini
