// A pass makes a program better and says what it did. One a file, under passes/.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "program.h"

namespace mini {

struct PassReport {
  std::string pass;
  int changes = 0;
  std::string summary;  // one line: "common subexpressions: 7 nodes -> 5, 2 shared"
  std::string before;   // the graph or plan as text, where something changed
  std::string after;
};

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;  // "cse": what switches it off
  virtual std::string_view purpose() const = 0;
  // The documented mistake that it makes when it is `planted`.
  virtual std::string_view mistake() const { return ""; }
  virtual PassReport run(Program& program) const = 0;
};

// Which passes run, and the bug that somebody planted to see whether it is found.
struct PassOptions {
  std::vector<std::string> off;
  // A pass's name: it then makes one documented mistake (docs/guides/mini.md).
  std::string planted;
};

// In the order in which they run: constant_folding, algebraic, cse, dead_code, layout, fusion, memory.
std::vector<std::unique_ptr<Pass>> all_passes(const PassOptions& options);
std::vector<std::string> pass_names();
// Throws GraphError for a name that no pass has.
std::vector<PassReport> run_passes(Program& program, const PassOptions& options);

}  // namespace mini
