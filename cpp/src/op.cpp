#include "op.h"

namespace mini {

namespace {

struct Entry {
  OpType op;
  std::string_view name;
  std::optional<PointwiseRule> rule;
};

// In the order of OpType.
constexpr Entry entries[] = {
#define MINI_POINTWISE(type, name, inputs, accepts, result) \
  {OpType::type, #name, PointwiseRule{inputs, Accepts::accepts, Result::result}},
#define MINI_OTHER(type, name) {OpType::type, name, std::nullopt},
#include "ops.def"
};

const Entry& entry(OpType op) { return entries[static_cast<size_t>(op)]; }

}  // namespace

std::string_view op_name(OpType op) { return entry(op).name; }

std::optional<OpType> find_op(std::string_view name) {
  for (const Entry& candidate : entries) {
    if (candidate.name == name) return candidate.op;
  }
  return std::nullopt;
}

std::optional<PointwiseRule> pointwise_rule(OpType op) { return entry(op).rule; }

bool is_pointwise(OpType op) {
  return entry(op).rule.has_value() || op == OpType::Cast || op == OpType::Where;
}

bool is_reduction(OpType op) { return op >= OpType::Sum && op <= OpType::ArgMin; }

bool is_view(OpType op) { return op >= OpType::Reshape && op <= OpType::Slice; }

bool is_leaf(OpType op) { return op >= OpType::Input && op <= OpType::Iota; }

}  // namespace mini
