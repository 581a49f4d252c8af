// Reductions with the pointwise work around them. Two shapes of loops, by which dimension is
// innermost in memory:
//
//   rows      it is reduced (softmax, layer norm): threads share the rows; a row is walked once a
//             phase in pieces that stay in the fastest cache
//   columns   it is kept (the sum over a batch): threads share blocks of columns, each of which has
//             its own accumulators
//
// Sums of f32 are added in short runs of f32 and the runs in f64: as fast and more exact than one
// long f32 sum.
#include <algorithm>
#include <map>
#include <set>

#include "writer.h"

namespace mini {
namespace {

constexpr int64_t piece = 1024;        // elements of a row that are computed before they are folded
constexpr int64_t parts = 64;          // into which a row is cut where there are few rows
constexpr int64_t worth_keeping = 8;   // work an element that is saved by keeping its value

std::string accumulator_type(const Node& node) {
  const bool wide = node.op == OpType::Sum || node.op == OpType::Prod;
  return wide && node.type.dtype == DType::Float32 ? "double" : cpp_type(node.type.dtype);
}

std::string identity(const Node& node) {
  const std::string limits = "std::numeric_limits<" + cpp_type(node.type.dtype) + ">::";
  const bool floats = is_float(node.type.dtype);
  switch (node.op) {
    case OpType::Prod: return "1";
    case OpType::All: return "true";
    case OpType::Any: return "false";
    case OpType::Max: return floats ? "-" + limits + "infinity()" : limits + "min()";
    case OpType::Min: return floats ? limits + "infinity()" : limits + "max()";
    default: return "0";
  }
}

std::string combined(const Node& node, const std::string& a, const std::string& b) {
  switch (node.op) {
    case OpType::Prod: return "kernel::mul(" + a + ", " + b + ")";
    case OpType::Max: return "kernel::maximum(" + a + ", " + b + ")";
    case OpType::Min: return "kernel::minimum(" + a + ", " + b + ")";
    case OpType::Any: return "kernel::bitwise_or(" + a + ", " + b + ")";
    case OpType::All: return "kernel::bitwise_and(" + a + ", " + b + ")";
    default: return "kernel::add(" + a + ", " + b + ")";
  }
}

class ReductionWriter {
 public:
  ReductionWriter(Writer& out, const Program& program, const Kernel& kernel, const LoopNest& nest)
      : out_(out), graph_(program.graph), nest_(nest),
        results_(kernel.results.begin(), kernel.results.end()) {
    const size_t rank = nest.sizes.size();
    rows_ = rank > 0 && nest.reduced[rank - 1];
    for (size_t d = 0; d < rank; ++d)
      names_.push_back((nest.reduced[d] ? "r" : "k") + std::to_string(d));
    // In columns and rows alike the innermost dimension is walked in blocks: c is where one begins.
    if (rank > 0) names_[rank - 1] = "c + i";
    if (!rows_ && rank > 0)
      column_block_ = std::clamp<int64_t>((nest.sizes.back() / 8 + 15) / 16 * 16, 16, 128);
    choose_kept();
  }

  void write() {
    bool parallel = worth_threads(work());
    // Few long rows: the threads share the parts of a row instead.
    split_ = parallel && rows_ && nest_.phases == 1 && nest_.rows() < 16;
    parallel = parallel && !split_ && (nest_.rows() > 1);
    if (parallel) out_.line("#pragma omp parallel num_threads(mini_threads())");
    out_.line("{");
    for (NodeId id : kept_) {
      const int64_t count = nest_.row_length() * (rows_ ? 1 : column_block_);
      out_.line("Scratch<" + cpp_type(graph_[id].type.dtype) + "> keep" + std::to_string(id) + "(" +
                std::to_string(count) + ");");
    }
    const size_t loops = open_outer(parallel);
    row_nodes(0);
    for (int phase = 0; phase < nest_.phases; ++phase) {
      write_phase(phase);
      row_nodes(phase + 1);
    }
    for (size_t i = 0; i < loops; ++i) out_.close();
    out_.close();
  }

 private:
  int64_t work() const {
    int64_t weight = 1;
    for (const NestNode& node : nest_.nodes) weight += op_weight(graph_[node.id].op);
    return weight * element_count(nest_.sizes);
  }

  void loop(const std::string& name, int64_t size, int64_t step = 1) {
    out_.line("for (int64_t " + name + " = 0; " + name + " < " + std::to_string(size) + "; " +
              (step == 1 ? "++" + name : name + " += " + std::to_string(step)) + ") {");
  }

  // A loop inside a row; where rows are cut into parts, the outermost goes over its part only.
  void part_loop(const std::string& name, int64_t size, int64_t step, bool outermost) {
    if (!split_ || !outermost) return loop(name, size, step);
    const std::string count = std::to_string(size);
    const std::string of = " / " + std::to_string(parts);
    out_.line("const int64_t end = " + count + " * (part + 1)" + of + ";");
    out_.line("for (int64_t " + name + " = " + count + " * part" + of + "; " + name +
              " < end; " + name + " += " + std::to_string(step) + ") {");
  }

  // The loops that threads share. Returns how many blocks it opened.
  size_t open_outer(bool parallel) {
    std::vector<size_t> outer;
    const size_t rank = nest_.sizes.size();
    for (size_t d = 0; d + (rows_ ? 0 : 1) < rank; ++d) {
      if (!nest_.reduced[d]) outer.push_back(d);
    }
    const size_t count = outer.size() + (rows_ ? 0 : 1);
    if (parallel && count > 0) {
      out_.line("#pragma omp for schedule(static) nowait" +
                (count > 1 ? " collapse(" + std::to_string(count) + ")" : ""));
    }
    for (size_t d : outer) loop(names_[d], nest_.sizes[d]);
    if (!rows_) {
      loop("c", rank > 0 ? nest_.sizes[rank - 1] : 1, column_block_);
      declare_n(rank > 0 ? nest_.sizes[rank - 1] : 1, column_block_);
    }
    return count;
  }

  void declare_n(int64_t size, int64_t block) {
    if (size % block == 0)
      out_.line("constexpr int64_t n = " + std::to_string(block) + ";");
    else
      out_.line("const int64_t n = " + std::to_string(size) + " - c < " + std::to_string(block) +
                " ? " + std::to_string(size) + " - c : " + std::to_string(block) + ";");
  }

  std::string place(const Strides& strides) const {
    std::string text;
    for (size_t d = 0; d < names_.size(); ++d) {
      if (strides[d] == 0) continue;
      const bool sum = names_[d] == "c + i" && strides[d] != 1;
      text += (text.empty() ? "" : " + ") + (sum ? "(" + names_[d] + ")" : names_[d]);
      if (strides[d] != 1) text += " * " + std::to_string(strides[d]);
    }
    return text.empty() ? "0" : text;
  }

  // Where in `keep` the current element of the row is.
  std::string kept_place() const {
    Strides strides(nest_.sizes.size(), 0);
    int64_t step = rows_ ? 1 : column_block_;
    for (size_t d = strides.size(); d-- > 0;) {
      if (!nest_.reduced[d]) continue;
      strides[d] = step;
      step *= nest_.sizes[d];
    }
    const std::string text = place(strides);
    return rows_ ? text : text + " + i";
  }

  std::string operand_text(const Operand& operand) const {
    const Node& node = graph_[operand.node];
    if (operand.from == Operand::From::Literal)
      return cpp_literal(node.type.dtype, node.attributes.value);
    if (operand.from == Operand::From::Nest) {
      const bool array = !rows_ && nest_.find(operand.node)->per_row;
      return value_name(operand.node) + (array ? "[i]" : "");
    }
    const std::string offset = operand.offset ? " + " + std::to_string(operand.offset) : "";
    return memory_name(operand.node) + "[" + place(operand.strides) + offset + "]";
  }

  std::string value_of(const NestNode& node) const {
    std::vector<std::string> operands;
    for (const Operand& operand : node.operands) operands.push_back(operand_text(operand));
    return expression(graph_, node.id, operands);
  }

  // Values that a later phase needs and that cost too much to compute again.
  void choose_kept() {
    std::map<NodeId, int64_t> cost;
    std::map<NodeId, int> last_use;
    for (const NestNode& node : nest_.nodes) {
      for (const Operand& operand : node.operands) {
        if (operand.from != Operand::From::Nest) continue;
        const int phase = node.reduction ? node.phase - 1 : node.phase;
        last_use[operand.node] = std::max(last_use[operand.node], phase);
      }
    }
    for (const NestNode& node : nest_.nodes) {
      if (node.per_row) continue;
      int64_t sum = op_weight(graph_[node.id].op);
      for (const Operand& operand : node.operands) {
        if (operand.from == Operand::From::Nest) sum += cost[operand.node];
      }
      const bool again = last_use.count(node.id) && last_use[node.id] > node.phase;
      if (again && sum >= worth_keeping) {
        kept_.insert(node.id);
        sum = 1;
      }
      cost[node.id] = sum;
    }
  }

  // Writes what the element `id` needs in this phase, once.
  void compute(NodeId id, int phase, std::set<NodeId>& done) {
    const NestNode& node = *nest_.find(id);
    if (node.per_row || !done.insert(id).second) return;
    const std::string name = "const " + cpp_type(graph_[id].type.dtype) + " " + value_name(id);
    if (node.phase < phase && kept_.count(id)) {
      out_.line(name + " = keep" + std::to_string(id) + "[" + kept_place() + "];");
      return;
    }
    for (const Operand& operand : node.operands) {
      if (operand.from == Operand::From::Nest) compute(operand.node, phase, done);
    }
    out_.line(name + " = " + value_of(node) + ";");
  }

  void write_phase(int phase) {
    std::vector<const NestNode*> reductions;
    std::vector<const NestNode*> stored;
    for (const NestNode& node : nest_.nodes) {
      if (node.reduction && node.phase == phase + 1) reductions.push_back(&node);
      const bool wanted = results_.count(node.id) || kept_.count(node.id);
      if (!node.per_row && node.phase == phase && wanted) stored.push_back(&node);
    }
    if (reductions.empty() && stored.empty()) return;
    if (split_) begin_parts(reductions);
    begin_accumulators(reductions);
    const size_t loops = open_inner(reductions);
    const bool only_folds = stored.empty() && std::all_of(reductions.begin(), reductions.end(),
                                                          [&](auto* n) { return !lies(*n).empty(); });
    if (!only_folds) {
      out_.line("#pragma omp simd");
      out_.line("for (int64_t i = 0; i < n; ++i) {");
      std::set<NodeId> done;
      for (const NestNode* node : stored) store(*node, phase, done);
      for (const NestNode* node : reductions) take(*node, phase, done);
      out_.close();
    }
    if (rows_) fold(reductions);
    for (size_t i = 0; i < loops; ++i) out_.close();
    if (split_) end_parts(reductions);
  }

  void begin_parts(const std::vector<const NestNode*>& reductions) {
    for (const NestNode* node : reductions)
      out_.line(accumulator_type(graph_[node->id]) + " parts" + std::to_string(node->id) + "[" +
                std::to_string(parts) + "];");
    out_.line("#pragma omp parallel for schedule(static) num_threads(mini_threads())");
    loop("part", parts);
  }

  void end_parts(const std::vector<const NestNode*>& reductions) {
    for (const NestNode* node : reductions) {
      const std::string id = std::to_string(node->id);
      out_.line("parts" + id + "[part] = a" + id + ";");
    }
    out_.close();
    begin_accumulators(reductions);
    for (const NestNode* node : reductions) {
      const std::string id = std::to_string(node->id);
      out_.line("for (int64_t part = 0; part < " + std::to_string(parts) + "; ++part) a" + id +
                " = " + combined(graph_[node->id], "a" + id, "parts" + id + "[part]") + ";");
    }
  }

  void begin_accumulators(const std::vector<const NestNode*>& reductions) {
    for (const NestNode* node : reductions) {
      const std::string type = accumulator_type(graph_[node->id]);
      const std::string name = "a" + std::to_string(node->id);
      const std::string start = identity(graph_[node->id]);
      if (rows_) {
        out_.line(type + " " + name + " = " + start + ";");
      } else {
        out_.line(type + " " + name + "[" + std::to_string(column_block_) + "];");
        out_.line("for (int64_t i = 0; i < n; ++i) " + name + "[i] = " + start + ";");
      }
    }
  }

  size_t open_inner(const std::vector<const NestNode*>& reductions) {
    size_t count = 0;
    for (size_t d = 0; d < names_.size(); ++d) {
      if (!nest_.reduced[d] || (rows_ && d + 1 == names_.size())) continue;
      part_loop(names_[d], nest_.sizes[d], 1, count == 0);
      ++count;
    }
    if (!rows_) return count;
    part_loop("c", nest_.sizes.back(), piece, count == 0);
    if (split_ && count == 0)
      out_.line("const int64_t n = end - c < " + std::to_string(piece) + " ? end - c : " +
                std::to_string(piece) + ";");
    else
      declare_n(nest_.sizes.back(), piece);
    for (const NestNode* node : reductions) {
      if (!lies(*node).empty()) continue;
      const DType dtype = graph_[graph_[node->id].inputs[0]].type.dtype;
      out_.line(cpp_type(dtype) + " t" + std::to_string(node->id) + "[" + std::to_string(piece) +
                "];");
    }
    return count + 1;
  }

  void store(const NestNode& node, int phase, std::set<NodeId>& done) {
    compute(node.id, phase, done);
    if (results_.count(node.id)) {
      out_.line(memory_name(node.id) + "[" + place(nest_.result_strides(false)) + "] = " +
                value_name(node.id) + ";");
    }
    if (kept_.count(node.id))
      out_.line("keep" + std::to_string(node.id) + "[" + kept_place() + "] = " +
                value_name(node.id) + ";");
  }

  // Where a piece of what is reduced lies side by side in memory already; empty: nowhere.
  std::string lies(const NestNode& node) {
    const Operand& operand = node.operands[0];
    if (!rows_) return "";
    names_.back() = "c";
    std::string text;
    if (operand.from == Operand::From::Memory && operand.strides.back() == 1)
      text = "&" + operand_text(operand);
    else if (operand.from == Operand::From::Nest && kept_.count(operand.node))
      text = "&keep" + std::to_string(operand.node) + "[" + kept_place() + "]";
    names_.back() = "c + i";
    return text;
  }

  void take(const NestNode& node, int phase, std::set<NodeId>& done) {
    if (!lies(node).empty()) return;
    const Operand& operand = node.operands[0];
    if (operand.from == Operand::From::Nest) compute(operand.node, phase, done);
    const std::string id = std::to_string(node.id);
    if (rows_) {
      out_.line("t" + id + "[i] = " + operand_text(operand) + ";");
      return;
    }
    const std::string value = accumulator_type(graph_[node.id]) + "(" + operand_text(operand) + ")";
    out_.line("a" + id + "[i] = " + combined(graph_[node.id], "a" + id + "[i]", value) + ";");
  }

  void fold(const std::vector<const NestNode*>& reductions) {
    for (const NestNode* node : reductions) {
      const std::string id = std::to_string(node->id);
      const std::string lying = lies(*node);
      const std::string from = lying.empty() ? "t" + id : lying;
      const std::string folded =
          "fold_" + std::string(op_name(graph_[node->id].op)) + "(" + from + ", n)";
      out_.line("a" + id + " = " + combined(graph_[node->id], "a" + id, folded) + ";");
    }
  }

  // The values a row that are known before this phase.
  void row_nodes(int phase) {
    std::vector<const NestNode*> nodes;
    for (const NestNode& node : nest_.nodes) {
      if (node.per_row && node.phase == phase) nodes.push_back(&node);
    }
    if (nodes.empty()) return;
    if (!rows_) {
      for (const NestNode* node : nodes)
        out_.line(cpp_type(graph_[node->id].type.dtype) + " " + value_name(node->id) + "[" +
                  std::to_string(column_block_) + "];");
      out_.line("for (int64_t i = 0; i < n; ++i) {");
    }
    for (const NestNode* node : nodes) row_node(*node);
    if (!rows_) out_.close();
  }

  void row_node(const NestNode& node) {
    const std::string type = cpp_type(graph_[node.id].type.dtype);
    const std::string index = rows_ ? "" : "[i]";
    const std::string value =
        node.reduction ? type + "(a" + std::to_string(node.id) + index + ")" : value_of(node);
    out_.line((rows_ ? "const " + type + " " : "") + value_name(node.id) + index + " = " + value +
              ";");
    if (!results_.count(node.id)) return;
    out_.line(memory_name(node.id) + "[" + place(nest_.result_strides(true)) + "] = " +
              value_name(node.id) + index + ";");
  }

  Writer& out_;
  const Graph& graph_;
  const LoopNest& nest_;
  const std::set<NodeId> results_;
  std::set<NodeId> kept_;
  std::vector<std::string> names_;
  bool rows_ = true;
  bool split_ = false;
  int64_t column_block_ = 16;  // columns that a thread takes at once
};

}  // namespace

void write_reduction(Writer& out, const Program& program, const Kernel& kernel, LoopNest nest) {
  merge_dimensions(nest);
  ReductionWriter(out, program, kernel, nest).write();
}

void write_arg_reduction(Writer& out, const Program& program, NodeId id) {
  const Node& node = program.graph[id];
  const NodeId input = node.inputs[0];
  const View view = view_of(program, input);
  const Shape& shape = program.graph[input].type.shape;
  const size_t dim = static_cast<size_t>(node.attributes.dims[0]);
  const std::string better = node.op == OpType::ArgMax ? ">" : "<";
  std::vector<std::string> names;
  Strides result(shape.size(), 0);
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (d == dim) continue;
    result[d] = step;
    step *= shape[d];
  }
  size_t outer = shape.size() - 1;
  for (size_t d = 0; d < shape.size(); ++d) names.push_back("i" + std::to_string(d));
  auto loop = [&](size_t d) {
    out.line("for (int64_t " + names[d] + " = 0; " + names[d] + " < " + std::to_string(shape[d]) +
             "; ++" + names[d] + ") {");
  };
  if (outer > 0) out.pragma(loop_pragma(2 * element_count(shape), false, outer));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != dim) loop(d);
  }
  const std::string type = cpp_type(program.graph[input].type.dtype);
  const std::string from = memory_name(view.base) + " + " + std::to_string(view.offset) + " + ";
  Strides first = view.strides;
  first[dim] = 0;
  out.line("const " + type + "* const x = " + from + sum_of_products(names, first) + ";");
  out.line(type + " best = x[0];");
  out.line("int64_t at = 0;");
  loop(dim);
  out.line("const " + type + " v = x[" + names[dim] + " * " + std::to_string(view.strides[dim]) +
           "];");
  // A NaN beats all but an earlier NaN.
  out.line("if (v " + better + " best || (v != v && best == best)) {");
  out.line("best = v;");
  out.line("at = " + names[dim] + ";");
  out.close();
  out.close();
  out.line(memory_name(id) + "[" + sum_of_products(names, result) + "] = at;");
  for (size_t d = 0; d < outer; ++d) out.close();
}

}  // namespace mini
