// Guards: what must hold for a compiled function to be used again, and the cache that asks them.
//
// A graph is traced and compiled for inputs of certain dtypes, shapes and strides. Called with
// others it would be wrong, so each call checks first. Where nothing fits, there is a recompile,
// and the guard that failed says why.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "tensor.h"

namespace mini {

class Guards {
 public:
  explicit Guards(const std::vector<Tensor>& examples);

  // Nothing where all hold, else the first that does not:
  // "input 0: size of dimension 1 is 16, compiled for 8".
  std::optional<std::string> failure(const std::vector<Tensor>& inputs) const;
  // One line a guard.
  std::vector<std::string> describe() const;

 private:
  struct Expected {
    TensorType type;
    Strides strides;
  };
  std::vector<Expected> expected_;
};

// Compiled functions and the guards that they stand behind.
class FunctionCache {
 public:
  struct Entry {
    Guards guards;
    std::shared_ptr<CompiledFunction> function;
    std::vector<TensorType> outputs;
  };
  struct Lookup {
    Entry* entry = nullptr;             // nothing where no entry fits
    std::vector<std::string> failures;  // why not, one for each entry that was asked
  };

  Lookup find(const std::vector<Tensor>& inputs);
  Entry& add(Entry entry);
  size_t size() const { return entries_.size(); }
  void clear() { entries_.clear(); }

 private:
  // The one that was used last is asked first.
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace mini
