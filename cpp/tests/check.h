// The few lines that the tests need of a framework. A check that fails says where, and goes on.
#pragma once

#include <cstdio>
#include <exception>
#include <source_location>
#include <string>
#include <string_view>

namespace mini::test {

using Where = std::source_location;

inline int failures = 0;
inline int checks = 0;

inline void failed(const std::string& what, const Where& where) {
  ++failures;
  if (failures > 20) return;
  std::printf("%s:%u: %s\n", where.file_name(), static_cast<unsigned>(where.line()), what.c_str());
}

inline void check(bool holds, const std::string& what, const Where& where = Where::current()) {
  ++checks;
  if (!holds) failed(what, where);
}

inline std::string shown(const std::string& text) { return "\"" + text + "\""; }
inline std::string shown(std::string_view text) { return shown(std::string(text)); }
inline std::string shown(const char* text) { return shown(std::string(text)); }
inline std::string shown(bool value) { return value ? "true" : "false"; }
template <class T>
std::string shown(const T& value) {
  return std::to_string(value);
}

template <class A, class B>
void check_equal(const A& found, const B& expected, const Where& where = Where::current()) {
  check(found == expected, "found " + shown(found) + ", expected " + shown(expected), where);
}

inline void check_contains(const std::string& text, const std::string& part,
                           const Where& where = Where::current()) {
  check(text.find(part) != text.npos, "no " + shown(part) + " in " + shown(text), where);
}

// The message of the exception must contain `part`.
template <class Error, class Function>
void check_throws(Function&& function, const std::string& part,
                  const Where& where = Where::current()) {
  try {
    function();
  } catch (const Error& error) {
    return check_contains(error.what(), part, where);
  } catch (const std::exception& error) {
    return check(false, std::string("another exception: ") + error.what(), where);
  }
  check(false, "nothing was thrown; expected " + shown(part), where);
}

// What main returns.
inline int finish() {
  std::printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 && checks > 0 ? 0 : 1;
}

}  // namespace mini::test
