// The C interface: options are read, exceptions become messages, strings are kept alive.
#include "c_api.h"

#include <cstdio>
#include <sstream>

#include "compiler.h"
#include "error.h"
#include "interpreter.h"

struct mini_function {
  std::unique_ptr<mini::RunnableFunction> function;
  std::string info;
  std::string description;
};

namespace {

thread_local std::string last_error;
thread_local std::string last_text;

// Runs `action`; what it throws becomes this thread's message and `failed` the result.
template <class Result, class Action>
Result guarded(Result failed, Action action) {
  last_error.clear();
  try {
    return action();
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "an unknown error";
  }
  return failed;
}

struct Options {
  bool interpreter = false;
  mini::CompilerOptions compiler;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// One of two words; anything else is an error.
bool choice(const std::string& key, const std::string& value, const char* yes, const char* no) {
  if (value == yes || value == no) return value == yes;
  throw mini::GraphError("option " + key + " is '" + value + "': " + yes + " or " + no);
}

int number(const std::string& key, const std::string& value) {
  if (value.empty() || value.size() > 4 || value.find_first_not_of("0123456789") != std::string::npos)
    throw mini::GraphError("option " + key + " is '" + value + "': a number from 0 to 9999");
  return std::stoi(value);
}

Options parse_options(const char* text) {
  Options options;
  for (const std::string& line : split(text ? text : "", '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos)
      throw mini::GraphError("an option is key=value, not '" + line + "'");
    const std::string key = line.substr(0, equals);
    const std::string value = line.substr(equals + 1);
    mini::CompilerOptions& compiler = options.compiler;
    if (key == "backend") options.interpreter = choice(key, value, "interpreter", "compiler");
    else if (key == "off") compiler.passes.off = split(value, ',');
    else if (key == "planted") compiler.passes.planted = value;
    else if (key == "cache") compiler.cache = value;
    else if (key == "cxx") compiler.cxx = value;
    else if (key == "flags") compiler.flags = value;
    else if (key == "threads") compiler.threads = number(key, value);
    else if (key == "fallback") compiler.fallback = choice(key, value, "interpreter", "error");
    else throw mini::GraphError("there is no option '" + key + "'");
  }
  return options;
}

std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(c));
      quoted += code;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string info_json(const mini::RunnableFunction& function) {
  const mini::CompileInfo& info = function.info();
  std::ostringstream json;
  json << "{\"backend\": " << json_string(info.backend)
       << ", \"fallback\": " << json_string(info.fallback)
       << ", \"kernels\": " << function.program().kernels.size()
       << ", \"nodes_before\": " << info.nodes_before << ", \"nodes_after\": " << info.nodes_after
       << ", \"working_bytes\": " << function.program().working_bytes
       << ", \"source_path\": " << json_string(info.source_path)
       << ", \"library_path\": " << json_string(info.library_path)
       << ", \"cached\": " << (info.cached ? "true" : "false")
       << ", \"compile_seconds\": " << info.seconds << ", \"passes\": [";
  for (size_t i = 0; i < info.reports.size(); ++i) {
    const mini::PassReport& report = info.reports[i];
    json << (i ? ", " : "") << "{\"pass\": " << json_string(report.pass)
         << ", \"changes\": " << report.changes
         << ", \"summary\": " << json_string(report.summary) << "}";
  }
  json << "]}";
  return json.str();
}

std::vector<mini_function*> compile(const char* const* graphs, int32_t count, const char* text) {
  const Options options = parse_options(text);
  std::vector<mini::Program> programs;
  std::vector<mini::CompileInfo> infos;
  for (int32_t i = 0; i < count; ++i) {
    const mini::Graph graph = mini::parse_graph(graphs[i]);
    mini::CompileInfo info;
    info.nodes_before = graph.size();
    programs.push_back(mini::plan_plainly(graph));
    info.reports = mini::run_passes(programs.back(), options.compiler.passes);
    info.nodes_after = programs.back().graph.size();
    infos.push_back(std::move(info));
  }
  std::vector<std::unique_ptr<mini::RunnableFunction>> made;
  if (options.interpreter) {
    for (size_t i = 0; i < programs.size(); ++i)
      made.push_back(mini::interpreted(std::move(programs[i]), std::move(infos[i])));
  } else {
    made = mini::OptimizingCompiler(options.compiler)
               .compile_all(std::move(programs), std::move(infos));
  }
  std::vector<mini_function*> functions;
  for (auto& function : made) {
    std::string info = info_json(*function);
    std::string description = function->describe();
    functions.push_back(
        new mini_function{std::move(function), std::move(info), std::move(description)});
  }
  return functions;
}

}  // namespace

extern "C" {

int32_t mini_version(void) { return 1; }
const char* mini_error(void) { return last_error.c_str(); }

const char* mini_passes(void) {
  last_text.clear();
  for (const std::string& name : mini::pass_names()) last_text += (last_text.empty() ? "" : " ") + name;
  return last_text.c_str();
}

const char* mini_operators(void) {
  last_text =
#define MINI_POINTWISE(type, name, inputs, accepts, result) #name " "
#define MINI_OTHER(type, name) #name " "
#include "ops.def"
      ;
  last_text.pop_back();
  return last_text.c_str();
}

mini_function* mini_compile(const char* graph, const char* options) {
  return guarded<mini_function*>(nullptr, [&] { return compile(&graph, 1, options)[0]; });
}

int32_t mini_compile_batch(const char* const* graphs, int32_t count, const char* options,
                           mini_function** functions) {
  return guarded<int32_t>(1, [&] {
    const auto made = compile(graphs, count, options);
    for (size_t i = 0; i < made.size(); ++i) functions[i] = made[i];
    return 0;
  });
}

int32_t mini_run(mini_function* function, const void* const* inputs, void* const* outputs) {
  return guarded<int32_t>(1, [&] {
    function->function->run_raw(inputs, outputs);
    return 0;
  });
}

void mini_free(mini_function* function) { delete function; }
const char* mini_info(mini_function* function) { return function->info.c_str(); }
const char* mini_describe(mini_function* function) { return function->description.c_str(); }

}  // extern "C"
