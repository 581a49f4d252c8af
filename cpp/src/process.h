// Running another program, with a time limit.
#pragma once

#include <string>
#include <vector>

namespace mini {

struct ProcessResult {
  bool started = false;
  bool timed_out = false;
  int status = -1;
  std::string output;  // of stdout and stderr together; where it did not start: why
};

ProcessResult run_process(const std::vector<std::string>& arguments, double seconds);

}  // namespace mini
