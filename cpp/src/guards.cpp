#include "guards.h"

#include <algorithm>

namespace mini {

namespace {

std::string list(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

std::string mismatch(const std::string& what, const std::string& found,
                     const std::string& expected) {
  return what + " is " + found + ", compiled for " + expected;
}

}  // namespace

Guards::Guards(const std::vector<Tensor>& examples) {
  for (const Tensor& example : examples) expected_.push_back({example.type(), example.strides()});
}

std::optional<std::string> Guards::failure(const std::vector<Tensor>& inputs) const {
  if (inputs.size() != expected_.size()) {
    return mismatch("number of inputs", std::to_string(inputs.size()),
                    std::to_string(expected_.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& [type, strides] = expected_[i];
    const std::string name = "input " + std::to_string(i) + ": ";
    if (inputs[i].dtype() != type.dtype) {
      return name + mismatch("dtype", std::string(dtype_name(inputs[i].dtype())),
                             std::string(dtype_name(type.dtype)));
    }
    if (inputs[i].shape().size() != type.shape.size()) {
      return name + mismatch("rank", std::to_string(inputs[i].shape().size()),
                             std::to_string(type.shape.size()));
    }
    for (size_t dim = 0; dim < type.shape.size(); ++dim) {
      if (inputs[i].shape()[dim] == type.shape[dim]) continue;
      return name + mismatch("size of dimension " + std::to_string(dim),
                             std::to_string(inputs[i].shape()[dim]),
                             std::to_string(type.shape[dim]));
    }
    if (inputs[i].strides() != strides) {
      return name +
             mismatch("layout", "strides " + list(inputs[i].strides()), "strides " + list(strides));
    }
  }
  return std::nullopt;
}

std::vector<std::string> Guards::describe() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < expected_.size(); ++i) {
    lines.push_back("input " + std::to_string(i) + " is " + to_string(expected_[i].type) +
                    " with strides " + list(expected_[i].strides));
  }
  return lines;
}

FunctionCache::Lookup FunctionCache::find(const std::vector<Tensor>& inputs) {
  Lookup lookup;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (const auto failure = (*entry)->guards.failure(inputs)) {
      lookup.failures.push_back(*failure);
      continue;
    }
    std::rotate(entries_.begin(), entry, entry + 1);
    lookup.entry = entries_.front().get();
    break;
  }
  return lookup;
}

FunctionCache::Entry& FunctionCache::add(Entry entry) {
  entries_.insert(entries_.begin(), std::make_unique<Entry>(std::move(entry)));
  return *entries_.front();
}

}  // namespace mini
