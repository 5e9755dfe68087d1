#include "reference/attention_leaks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "reference/attention_compared.hpp"

namespace numcheck::reference {
namespace {

/// First and last key with a value that is not finite, of one channel; first > last: there is none.
struct SpecialKeys {
  std::int64_t first = 0, last = -1;

  void add(std::int64_t j) noexcept {
    first = last < 0 ? j : first;
    last = j;
  }
  [[nodiscard]] bool any_outside(const op::KeyRange& seen) const noexcept {
    return last >= 0 && (first < seen.begin || last >= seen.end);
  }
  /// Whether the first or the last one is beside what is seen, so that they are in one tile as likely as not.
  [[nodiscard]] bool any_beside(const op::KeyRange& seen) const noexcept {
    constexpr std::int64_t kTile = 64;
    const auto is_beside = [&](std::int64_t j) {
      return (j < seen.begin && j >= seen.begin - kTile) || (j >= seen.end && j < seen.end + kTile);
    };
    return last >= 0 && seen.begin < seen.end && (is_beside(first) || is_beside(last));
  }
};

/// Per channel, among all keys that the tensor has of a sequence.
std::vector<SpecialKeys> special_keys(const AttentionProblem& problem, std::int64_t batch, std::int64_t head) {
  const op::AttentionParams& p = problem.params();
  const HeadRows values = problem.values(batch, head);
  std::vector<SpecialKeys> special(static_cast<std::size_t>(p.value_channels()));
  for (std::int64_t j = 0; j < op::positions(p, op::Side::keys, batch); ++j) {
    const double* const row = values.data + j * values.stride;
    for (std::size_t c = 0; c < special.size(); ++c) {
      if (!std::isfinite(row[c])) {
        special[c].add(j);
      }
    }
  }
  return special;
}

}  // namespace

void explain_leaks(const op::FindingRequest& request, const AttentionProblem& problem,
                   std::vector<op::Finding>& findings) {
  const std::optional<Compared> o = compared(request, "o");
  if (!o) {
    return;
  }
  const op::AttentionParams& p = problem.params();
  double broken = 0, leaked = 0, beside = 0;
  for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
    const std::int64_t batch = task / p.heads, head = task % p.heads;
    const std::vector<SpecialKeys> special = special_keys(problem, batch, head);
    const op::HeadPlace place = op::head_place(p, op::Side::queries, batch, head, p.value_channels());
    const Lengths lengths = problem.lengths(batch);
    for (std::int64_t i = 0; i < lengths.queries; ++i) {
      const op::KeyRange seen = p.visible(i, lengths.queries, lengths.keys);
      for (std::size_t c = 0; c < special.size(); ++c) {
        const std::size_t at = element_at(place, i) + c;
        beside += std::isfinite(o->expected[at]) && special[c].any_beside(seen) ? 1 : 0;
        if (o->is_broken(at)) {
          ++broken;
          leaked += std::isnan(o->got[at]) && !o->is_unwritten(at) && special[c].any_outside(seen) ? 1 : 0;
        }
      }
    }
  }
  constexpr double kFewest = 0.1;  // of the elements that are likely to have it
  if (leaked < kFewest * beside) {
    return;
  }
  add_if_explained(findings, op::kMaskedLeak, *o, op::Finding::About::pattern, leaked / broken,
                   "NaN and infinities of values that are masked out reach the output");
}

}  // namespace numcheck::reference
