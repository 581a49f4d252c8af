// Memory that is used again: a result that nobody will read any more makes room for a later one.
// Each result gets the smallest free gap that holds it, or the end of the working memory.
#include <algorithm>
#include <map>

#include "pass.h"

namespace mini {
namespace {

// The working memory while kernels run one after the other.
class Arena {
 public:
  int64_t take(int64_t bytes) {
    auto best = gaps_.end();
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      if (gap->second < bytes) continue;
      if (best == gaps_.end() || gap->second < best->second) best = gap;
    }
    if (best == gaps_.end()) return grow(bytes);
    const auto [offset, size] = *best;
    gaps_.erase(best);
    if (size > bytes) gaps_[offset + bytes] = size - bytes;
    return offset;
  }

  void give(int64_t offset, int64_t bytes) {
    auto gap = gaps_.emplace(offset, bytes).first;
    const auto next = std::next(gap);
    if (next != gaps_.end() && next->first == offset + bytes) {
      gap->second += next->second;
      gaps_.erase(next);
    }
    if (gap == gaps_.begin()) return;
    const auto before = std::prev(gap);
    if (before->first + before->second != offset) return;
    before->second += gap->second;
    gaps_.erase(gap);
  }

  int64_t size() const { return end_; }

 private:
  // A gap at the end is stretched rather than left behind.
  int64_t grow(int64_t bytes) {
    int64_t offset = end_;
    if (!gaps_.empty() && gaps_.rbegin()->first + gaps_.rbegin()->second == end_) {
      offset = gaps_.rbegin()->first;
      gaps_.erase(std::prev(gaps_.end()));
    }
    end_ = offset + bytes;
    return offset;
  }

  std::map<int64_t, int64_t> gaps_;  // offset -> bytes
  int64_t end_ = 0;
};

class MemoryPass : public Pass {
 public:
  explicit MemoryPass(bool planted) : planted_(planted) {}
  std::string_view name() const override { return "memory"; }
  std::string_view purpose() const override { return "memory used again"; }
  std::string_view mistake() const override {
    return "a result that is read more than one kernel later is freed one kernel too early";
  }

  PassReport run(Program& program) const override {
    PassReport report{"memory", 0, "", program.to_text(), ""};
    const int64_t before = program.working_bytes;
    const std::vector<size_t> last = last_reads(program);
    std::vector<std::vector<NodeId>> ends(program.kernels.size());
    Arena arena;
    for (size_t k = 0; k < program.kernels.size(); ++k) {
      for (NodeId id : program.kernels[k].results) {
        auto& slot = program.slots[static_cast<size_t>(id)];
        if (!slot) continue;
        const int64_t end = arena.size();
        slot->offset = arena.take(slot->bytes);
        if (slot->offset < end) ++report.changes;
        const size_t until = freed_after(k, last[static_cast<size_t>(id)]);
        if (until < ends.size()) ends[until].push_back(id);
      }
      for (NodeId id : ends[k]) {
        const Slot& slot = *program.slots[static_cast<size_t>(id)];
        arena.give(slot.offset, slot.bytes);
      }
    }
    program.working_bytes = arena.size();
    report.summary = std::string(purpose()) + ": " + std::to_string(before) + " bytes -> " +
                     std::to_string(program.working_bytes) + ", " +
                     std::to_string(report.changes) + " results in memory used before";
    if (report.changes > 0)
      report.after = program.to_text();
    else
      report.before.clear();
    return report;
  }

 private:
  // By node: the last kernel that reads it; past the end where an output is copied from it.
  static std::vector<size_t> last_reads(const Program& program) {
    std::vector<size_t> last(program.graph.nodes.size(), 0);
    for (size_t k = 0; k < program.kernels.size(); ++k) {
      for (NodeId id : program.kernels[k].nodes) {
        last[static_cast<size_t>(id)] = std::max(last[static_cast<size_t>(id)], k);
        for (NodeId input : program.graph[id].inputs)
          last[static_cast<size_t>(view_of(program, input).base)] = k;
      }
    }
    for (NodeId id : program.graph.outputs)
      last[static_cast<size_t>(view_of(program, id).base)] = program.kernels.size();
    return last;
  }

  // The planted mistake: off by one for results with kernels between writer and last reader, so
  // that the kernel before the last reader may write over them.
  size_t freed_after(size_t written, size_t last_read) const {
    const bool early = planted_ && last_read > written + 1;
    return early ? last_read - 2 : last_read;
  }

  bool planted_;
};

}  // namespace

std::unique_ptr<Pass> make_memory_pass(bool planted) { return std::make_unique<MemoryPass>(planted); }

}  // namespace mini
