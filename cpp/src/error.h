// Errors that a caller can act on. Anything else that goes wrong is a bug of ours: an assertion.
#pragma once

#include <stdexcept>

namespace mini {

// A graph that is not well formed: its text, its types, or what it is called with.
struct GraphError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine's compiler is missing or failed, or its result could not be kept or loaded.
struct BuildError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace mini
