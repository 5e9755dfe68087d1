#include "reference/gemm_slices.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace numcheck::reference {
namespace {

constexpr std::array<std::int64_t, 9> kStages = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr std::int64_t kShortestDealt = 8;
constexpr std::int64_t kCoarse = 128;  // products of a slice that need not be cut any further

std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

/// Collects partitions; those that it has already are left out.
class Partitions {
 public:
  Partitions(std::int64_t k, std::int64_t count)
      : k_(k), least_(std::min(count, (k + kCoarse - 1) / kCoarse) / 2 + 1) {}

  /// Contiguous slices with these ends; ends beyond k are k.
  void add_contiguous(const std::vector<std::int64_t>& ends, std::string text) {
    Partition partition{.slices = {}, .text = std::move(text)};
    std::int64_t begin = 0;
    for (const std::int64_t wanted : ends) {
      const std::int64_t end = std::min(wanted, k_);
      if (end > begin) {
        partition.slices.push_back({Range{begin, end}});
        begin = end;
      }
    }
    add(std::move(partition));
  }

  /// Slice i gets stages i, i + count, i + 2 count, ...
  void add_dealt(std::int64_t stage, std::int64_t count) {
    Partition partition{.slices = std::vector<Slice>(static_cast<std::size_t>(count)),
                        .text = fmt::format("of every {}th {}", count, stage)};
    for (std::int64_t begin = 0, turn = 0; begin < k_; begin += stage, ++turn) {
      partition.slices[static_cast<std::size_t>(turn % count)].push_back({begin, std::min(begin + stage, k_)});
    }
    std::erase_if(partition.slices, [](const Slice& slice) { return slice.empty(); });
    add(std::move(partition));
  }

  [[nodiscard]] std::vector<Partition> take() { return std::move(found_); }

 private:
  static bool same(const Partition& x, const Partition& y) {
    const auto same_range = [](const Range& a, const Range& b) { return a.begin == b.begin && a.end == b.end; };
    return std::ranges::equal(x.slices, y.slices,
                              [&](const Slice& a, const Slice& b) { return std::ranges::equal(a, b, same_range); });
  }
  void add(Partition partition) {
    const bool enough = static_cast<std::int64_t>(partition.slices.size()) >= std::min(least_, k_);
    if (enough && std::ranges::none_of(found_, [&](const Partition& other) { return same(other, partition); })) {
      found_.push_back(std::move(partition));
    }
  }

  std::int64_t k_, least_;
  std::vector<Partition> found_;
};

/// Ends of `count` slices of whole stages, where slice i has stages(i) of them.
template <class Stages>
std::vector<std::int64_t> ends_of(std::int64_t count, std::int64_t stage, Stages stages) {
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    end += stages(i) * stage;
    ends.push_back(end);
  }
  return ends;
}

}  // namespace

std::vector<Partition> plausible_partitions(std::int64_t k, std::int64_t count) {
  Partitions all(k, count);
  for (const std::int64_t stage : kStages) {
    const std::int64_t length = round_up((k + count - 1) / count, stage);
    all.add_contiguous(ends_of(count, length, [](std::int64_t) { return 1; }), fmt::format("of {} each", length));
  }
  for (const std::int64_t stage : kStages) {
    const std::int64_t stages = (k + stage - 1) / stage;
    const std::int64_t each = stages / count, more = stages % count;
    const std::string text = fmt::format("of {} or {} each", each * stage, (each + 1) * stage);
    all.add_contiguous(ends_of(count, stage, [&](std::int64_t i) { return each + (i < more ? 1 : 0); }), text);
    all.add_contiguous(ends_of(count, stage, [&](std::int64_t i) { return each + (i >= count - more ? 1 : 0); }), text);
    all.add_contiguous(ends_of(count, stage, [&](std::int64_t i) { return i + 1 < count ? each : stages; }),
                       fmt::format("of {} each, and the rest in the last", each * stage));
  }
  for (const std::int64_t stage : kStages) {
    if (stage >= kShortestDealt && stage * count < k) {
      all.add_dealt(stage, count);
    }
  }
  return all.take();
}

}  // namespace numcheck::reference
