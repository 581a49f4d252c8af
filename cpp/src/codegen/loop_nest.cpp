#include "loop_nest.h"

#include <algorithm>
#include <set>

namespace mini {
namespace {

// The coarsest dimensions of which all shapes are made by joining neighbours: [6, 4] and [2, 12]
// give [2, 3, 4]. Nothing for [6, 4] and [4, 6]. Every shape has the same number of elements.
std::optional<Shape> refine(const std::vector<Shape>& shapes) {
  std::set<int64_t> products = {1};
  for (const Shape& shape : shapes) {
    int64_t product = 1;
    for (size_t d = shape.size(); d-- > 0;) products.insert(product *= shape[d]);
  }
  Shape sizes;
  for (auto low = products.begin(), high = std::next(low); high != products.end(); ++low, ++high) {
    if (*high % *low != 0) return std::nullopt;
    sizes.push_back(*high / *low);
  }
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

// `values`, one a dimension of `shape`, carried over to the finer `sizes`: visit(finer dimension,
// dimension, elements of the dimension that one step in the finer one skips).
template <class Visit>
void walk_finer(const Shape& sizes, const Shape& shape, Visit visit) {
  size_t fine = sizes.size();
  for (size_t d = shape.size(); d-- > 0;) {
    int64_t step = 1;
    while (step < shape[d]) {
      --fine;
      visit(fine, d, step);
      step *= sizes[fine];
    }
  }
}

Strides finer_strides(const Shape& sizes, const Shape& shape, const Strides& strides) {
  Strides finer(sizes.size(), 0);
  walk_finer(sizes, shape,
             [&](size_t fine, size_t d, int64_t step) { finer[fine] = strides[d] * step; });
  return finer;
}

std::vector<bool> reduced_dims(const Node& node, size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (int64_t dim : node.attributes.dims) reduced[static_cast<size_t>(dim)] = true;
  return reduced;
}

class Analysis {
 public:
  Analysis(const Program& program, const std::vector<NodeId>& ids) : program_(program) {
    for (NodeId id : ids) {
      inside_.insert(id);
      if (graph()[id].op != OpType::Constant) ids_.push_back(id);
    }
  }

  std::optional<LoopNest> run() {
    if (!find_space() || !split_rows() || !same_reductions()) return std::nullopt;
    for (NodeId id : ids_) {
      if (!add_node(id)) return std::nullopt;
    }
    for (const NestNode& node : nest_.nodes) {
      if (!node.per_row) nest_.phases = std::max(nest_.phases, node.phase + 1);
    }
    return std::move(nest_);
  }

 private:
  const Graph& graph() const { return program_.graph; }

  // The shape in which a node's operands are read.
  const Shape& read_shape(NodeId id) const {
    const Node& node = graph()[id];
    const bool other = is_reduction(node.op) || node.op == OpType::Reshape;
    return other ? graph()[node.inputs[0]].type.shape : node.type.shape;
  }

  bool find_space() {
    if (ids_.empty()) return false;
    NodeId main = ids_[0];
    for (NodeId id : ids_) {
      if (is_reduction(graph()[id].op)) {
        main = id;
        break;
      }
    }
    elements_ = element_count(read_shape(main));
    rows_ = graph()[main].type.elements();
    if (elements_ == 0 || rows_ == 0) return false;
    std::vector<Shape> shapes = {read_shape(main)};
    for (NodeId id : ids_) {
      if (element_count(read_shape(id)) == elements_) {
        shapes.push_back(read_shape(id));
        if (!is_reduction(graph()[id].op)) shapes.push_back(graph()[id].type.shape);
      } else if (is_reduction(graph()[id].op) || graph()[id].type.elements() != rows_) {
        return false;
      }
    }
    const auto sizes = refine(shapes);
    if (!sizes) return false;
    nest_.sizes = *sizes;
    nest_.reduced = mask_of(main);
    return true;
  }

  std::vector<bool> mask_of(NodeId id) const {
    std::vector<bool> mask(nest_.sizes.size(), false);
    if (!is_reduction(graph()[id].op)) return mask;
    const Shape& shape = read_shape(id);
    const std::vector<bool> reduced = reduced_dims(graph()[id], shape.size());
    walk_finer(nest_.sizes, shape,
               [&](size_t fine, size_t d, int64_t) { mask[fine] = reduced[d]; });
    return mask;
  }

  // Nodes that have one value a row may see the kept dimensions in finer pieces.
  bool split_rows() {
    Shape kept;
    for (size_t d = 0; d < nest_.sizes.size(); ++d) {
      if (!nest_.reduced[d]) kept.push_back(nest_.sizes[d]);
    }
    std::vector<Shape> shapes = {kept};
    for (NodeId id : ids_) {
      if (is_per_row(id) && !is_reduction(graph()[id].op)) {
        shapes.push_back(graph()[id].type.shape);
        shapes.push_back(read_shape(id));
      }
    }
    const auto finer = refine(shapes);
    if (!finer) return false;
    Shape sizes;
    std::vector<bool> reduced;
    size_t next = 0;
    for (size_t d = 0; d < nest_.sizes.size(); ++d) {
      if (nest_.reduced[d]) {
        sizes.push_back(nest_.sizes[d]);
        reduced.push_back(true);
        continue;
      }
      for (int64_t product = 1; product < nest_.sizes[d]; ++next) {
        product *= (*finer)[next];
        sizes.push_back((*finer)[next]);
        reduced.push_back(false);
      }
    }
    nest_.sizes = sizes;
    nest_.reduced = reduced;
    return true;
  }

  bool same_reductions() const {
    return std::all_of(ids_.begin(), ids_.end(), [&](NodeId id) {
      return !is_reduction(graph()[id].op) || mask_of(id) == nest_.reduced;
    });
  }

  bool is_per_row(NodeId id) const {
    return is_reduction(graph()[id].op) || element_count(read_shape(id)) != elements_;
  }

  // Strides over the nest's dimensions of something that is read in `shape`.
  Strides nest_strides(const Shape& shape, const Strides& strides, bool per_row) const {
    if (!per_row) return finer_strides(nest_.sizes, shape, strides);
    Shape kept;
    for (size_t d = 0; d < nest_.sizes.size(); ++d) {
      if (!nest_.reduced[d]) kept.push_back(nest_.sizes[d]);
    }
    const Strides of_kept = finer_strides(kept, shape, strides);
    Strides all(nest_.sizes.size(), 0);
    for (size_t d = 0, next = 0; d < all.size(); ++d) {
      if (!nest_.reduced[d]) all[d] = of_kept[next++];
    }
    return all;
  }

  bool add_node(NodeId id) {
    const Node& node = graph()[id];
    NestNode made{id, is_per_row(id), is_reduction(node.op), 0, {}};
    for (NodeId input : node.inputs) {
      auto operand = operand_of(id, input, made.per_row && !made.reduction);
      if (!operand) return false;
      if (operand->from == Operand::From::Nest) {
        const NestNode& source = *nest_.find(operand->node);
        made.phase = std::max(made.phase, source.phase);
        // A row cannot be made of one element.
        if (made.per_row && !made.reduction && !source.per_row) return false;
        if (made.reduction && source.per_row) return false;
      }
      made.operands.push_back(std::move(*operand));
    }
    if (made.reduction) ++made.phase;
    nest_.nodes.push_back(std::move(made));
    return true;
  }

  std::optional<Operand> operand_of(NodeId id, NodeId input, bool per_row) const {
    const Node& node = graph()[id];
    std::optional<View> view = view_of(program_, input);
    if (is_view(node.op) && node.op != OpType::Reshape)
      view = view_through(node, *view, graph()[input].type.shape);
    if (!view) return std::nullopt;
    Operand operand{Operand::From::Memory, view->base, {}, view->offset};
    const bool inside = inside_.count(view->base) != 0;
    if (inside && graph()[view->base].op == OpType::Constant) {
      operand.from = Operand::From::Literal;
      return operand;
    }
    operand.strides = nest_strides(read_shape(id), view->strides, per_row);
    if (!inside) return operand;
    // In the nest only what stands at the same element, or the row's own value, can be read.
    const NestNode* source = nest_.find(view->base);
    if (!source || view->offset != 0 || operand.strides != nest_.result_strides(source->per_row))
      return std::nullopt;
    operand.from = Operand::From::Nest;
    return operand;
  }

  const Program& program_;
  std::vector<NodeId> ids_;
  std::set<NodeId> inside_;
  int64_t elements_ = 0;
  int64_t rows_ = 0;
  LoopNest nest_;
};

bool joined(const LoopNest& nest, size_t d) {
  if (nest.reduced[d] != nest.reduced[d + 1]) return false;
  for (const NestNode& node : nest.nodes) {
    for (const Operand& operand : node.operands) {
      if (operand.from != Operand::From::Memory) continue;
      if (operand.strides[d] != operand.strides[d + 1] * nest.sizes[d + 1]) return false;
    }
  }
  return true;
}

// Strides that give the same numbers in the same order in another shape, where there are any.
std::optional<Strides> reshaped_strides(const Shape& from, const Strides& strides,
                                        const Shape& to) {
  if (element_count(to) == 0) return contiguous_strides(to);
  const auto sizes = refine({from, to});
  if (!sizes) {
    // Only numbers that lie in one piece can be cut anew.
    Strides wanted = contiguous_strides(from);
    for (size_t d = 0; d < from.size(); ++d) {
      if (from[d] != 1 && strides[d] != wanted[d]) return std::nullopt;
    }
    return contiguous_strides(to);
  }
  const Strides fine = finer_strides(*sizes, from, strides);
  Strides result(to.size(), 0);
  bool fits = true;
  walk_finer(*sizes, to, [&](size_t f, size_t d, int64_t step) {
    if (step == 1) result[d] = fine[f];
    fits = fits && fine[f] == result[d] * step;
  });
  if (!fits) return std::nullopt;
  // Dimensions of size 1: any stride does; the contiguous one makes views recognizable.
  for (size_t d = to.size(); d-- > 0;) {
    if (to[d] == 1) result[d] = d + 1 < to.size() ? result[d + 1] * to[d + 1] : 1;
  }
  return result;
}

}  // namespace

const NestNode* LoopNest::find(NodeId id) const {
  const auto found = std::lower_bound(nodes.begin(), nodes.end(), id,
                                      [](const NestNode& node, NodeId key) { return node.id < key; });
  return found != nodes.end() && found->id == id ? &*found : nullptr;
}

int64_t LoopNest::rows() const {
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) count *= reduced[d] ? 1 : sizes[d];
  return count;
}

int64_t LoopNest::row_length() const { return element_count(sizes) / rows(); }

Strides LoopNest::result_strides(bool per_row) const {
  Strides strides(sizes.size(), 0);
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (per_row && reduced[d]) continue;
    strides[d] = step;
    step *= sizes[d];
  }
  return strides;
}

std::optional<LoopNest> nest_of(const Program& program, const std::vector<NodeId>& nodes) {
  return Analysis(program, nodes).run();
}

void merge_dimensions(LoopNest& nest) {
  for (size_t d = nest.sizes.size(); d-- > 1;) {
    if (!joined(nest, d - 1)) continue;
    nest.sizes[d - 1] *= nest.sizes[d];
    nest.sizes.erase(nest.sizes.begin() + static_cast<std::ptrdiff_t>(d));
    nest.reduced.erase(nest.reduced.begin() + static_cast<std::ptrdiff_t>(d));
    for (NestNode& node : nest.nodes) {
      for (Operand& operand : node.operands) {
        if (operand.from == Operand::From::Memory)
          operand.strides.erase(operand.strides.begin() + static_cast<std::ptrdiff_t>(d - 1));
      }
    }
  }
}

std::optional<View> view_through(const Node& node, const View& input, const Shape& input_shape) {
  View view = input;
  const Attributes& attributes = node.attributes;
  switch (node.op) {
    case OpType::Permute:
      for (size_t d = 0; d < view.strides.size(); ++d)
        view.strides[d] = input.strides[static_cast<size_t>(attributes.dims[d])];
      return view;
    case OpType::Expand:
      for (size_t d = 0; d < view.strides.size(); ++d) {
        if (input_shape[d] != node.type.shape[d]) view.strides[d] = 0;
      }
      return view;
    case OpType::Slice: {
      int64_t& stride = view.strides[static_cast<size_t>(attributes.dim)];
      view.offset += attributes.start * stride;
      // A step that is never taken may be as large as it likes.
      if (node.type.shape[static_cast<size_t>(attributes.dim)] > 1) stride *= attributes.step;
      return view;
    }
    case OpType::Reshape: {
      const auto strides = reshaped_strides(input_shape, input.strides, node.type.shape);
      if (!strides) return std::nullopt;
      view.strides = *strides;
      return view;
    }
    default: return std::nullopt;
  }
}

}  // namespace mini
