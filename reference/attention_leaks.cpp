#include "reference/attention_leaks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "reference/attention_compared.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kTile = 64;

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

/// Where a tensor of one head has something that is not finite.
class SpecialElements {
 public:
  SpecialElements(const HeadRows& rows, std::int64_t count, std::int64_t channels)
      : channels_(channels),
        elements_(static_cast<std::size_t>(count * channels)),
        rows_(static_cast<std::size_t>(count)) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t c = 0; c < channels; ++c) {
        if (!std::isfinite(rows.data[i * rows.stride + c])) {
          rows_[static_cast<std::size_t>(i)] = elements_[static_cast<std::size_t>(i * channels + c)] = true;
        }
      }
    }
  }
  [[nodiscard]] bool has(std::int64_t row) const { return rows_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] bool has(std::int64_t row, std::int64_t channel) const {
    return elements_[static_cast<std::size_t>(row * channels_ + channel)];
  }

 private:
  std::int64_t channels_;
  std::vector<bool> elements_, rows_;
};

/// Which elements of a gradient's head may have what leaks, and which of them lie so close to it that they are likely to:
/// in rows that may be in one tile with it, in its channel.
struct LeakedElements {
  std::int64_t channels;
  std::vector<bool> rows, beside;

  LeakedElements(std::int64_t count, std::int64_t of_channels)
      : channels(of_channels),
        rows(static_cast<std::size_t>(count)),
        beside(static_cast<std::size_t>(count * of_channels)) {}
  void add_beside(std::int64_t row, const SpecialElements& from, std::int64_t other) {
    for (std::int64_t c = 0; c < channels && from.has(other); ++c) {
      if (from.has(other, c)) {
        beside[static_cast<std::size_t>(row * channels + c)] = true;
      }
    }
  }
};

/// What one head of queries leaks.
struct HeadLeaks {
  LeakedElements dq, dk, dv;

  HeadLeaks(const AttentionProblem& problem, const HeadRows& gradient, std::int64_t batch, std::int64_t head);
};

HeadLeaks::HeadLeaks(const AttentionProblem& problem, const HeadRows& gradient, std::int64_t batch, std::int64_t head)
    : dq(op::positions(problem.params(), op::Side::queries, batch), problem.params().d),
      dk(op::positions(problem.params(), op::Side::keys, batch), problem.params().d),
      dv(op::positions(problem.params(), op::Side::keys, batch), problem.params().value_channels()) {
  const op::AttentionParams& p = problem.params();
  const auto queries = static_cast<std::int64_t>(dq.rows.size()), keys = static_cast<std::int64_t>(dk.rows.size());
  const Lengths lengths = problem.lengths(batch);
  const SpecialElements q(problem.queries(batch, head), queries, p.d), d_o(gradient, queries, p.value_channels()),
      k(problem.keys(batch, head), keys, p.d), v(problem.values(batch, head), keys, p.value_channels());
  SpecialKeys special;
  for (std::int64_t j = 0; j < keys; ++j) {
    if (k.has(j) || v.has(j)) {
      special.add(j);
    }
  }
  for (std::int64_t i = 0; i < queries; ++i) {
    const bool counts = i < lengths.queries, is_special = q.has(i) || d_o.has(i);
    const op::KeyRange seen = counts ? p.visible(i, lengths.queries, lengths.keys) : op::KeyRange{0, 0};
    dq.rows[static_cast<std::size_t>(i)] = special.any_outside(seen);
    const std::int64_t near_begin = std::max<std::int64_t>(0, seen.begin - kTile);
    const std::int64_t near_end = seen.begin < seen.end ? std::min(keys, seen.end + kTile) : near_begin;
    for (std::int64_t j = 0; j < keys; ++j) {
      const bool hidden = j < seen.begin || j >= seen.end;
      if (hidden && is_special) {
        dk.rows[static_cast<std::size_t>(j)] = dv.rows[static_cast<std::size_t>(j)] = true;
      }
      if (hidden && j >= near_begin && j < near_end) {
        dq.add_beside(i, k, j);
        dk.add_beside(j, q, i);
        dv.add_beside(j, d_o, i);
      }
    }
  }
}

/// How many elements of a gradient are NaN or infinite in the wrong places, how many of those a leak explains, and how many
/// are likely to have one.
struct LeakCounts {
  double broken = 0, leaked = 0, beside = 0;

  void add(const Compared& output, std::size_t at, bool may_leak, bool is_beside) {
    beside += is_beside && std::isfinite(output.expected[at]) ? 1 : 0;
    if (output.is_broken(at)) {
      ++broken;
      leaked += may_leak && std::isnan(output.got[at]) && !output.is_unwritten(at) ? 1 : 0;
    }
  }
};

struct Gradient {
  std::string_view port;
  op::Side side;
  LeakedElements HeadLeaks::* leaks;
};

/// Heads of queries that share keys leak into the same rows of dk and dv.
LeakCounts count_leaks(const AttentionProblem& problem, const Compared& output, const Gradient& gradient,
                       std::span<const HeadLeaks> heads) {
  const op::AttentionParams& p = problem.params();
  const bool of_keys = gradient.side == op::Side::keys;
  const std::int64_t sharing = of_keys ? p.heads / p.key_heads() : 1;
  LeakCounts counts;
  for (std::int64_t task = 0; task < p.batches * p.heads; task += sharing) {
    const std::int64_t batch = task / p.heads,
                       channels = (heads[static_cast<std::size_t>(task)].*gradient.leaks).channels;
    const op::HeadPlace place = op::head_place(p, gradient.side, batch, task % p.heads / sharing, channels);
    const std::int64_t rows = op::positions(p, gradient.side, batch);
    const auto group = heads.subspan(static_cast<std::size_t>(task), static_cast<std::size_t>(sharing));
    const auto any = [&](std::vector<bool> LeakedElements::* which, std::int64_t n) {
      return std::ranges::any_of(
          group, [&](const HeadLeaks& head) { return (head.*gradient.leaks.*which)[static_cast<std::size_t>(n)]; });
    };
    for (std::int64_t n = 0; n < rows; ++n) {
      const bool may_leak = any(&LeakedElements::rows, n);
      for (std::int64_t c = 0; c < channels; ++c) {
        counts.add(output, element_at(place, n) + static_cast<std::size_t>(c), may_leak,
                   any(&LeakedElements::beside, n * channels + c));
      }
    }
  }
  return counts;
}

constexpr double kFewest = 0.1;  // of the elements that are likely to have what leaks

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
  if (leaked < kFewest * beside) {
    return;
  }
  add_if_explained(findings, op::kMaskedLeak, *o, op::Finding::About::pattern, leaked / broken,
                   "NaN and infinities of values that are masked out reach the output");
}

void explain_gradient_leaks(const op::FindingRequest& request, const AttentionProblem& problem,
                            std::vector<op::Finding>& findings) {
  const op::AttentionParams& p = problem.params();
  std::vector<std::pair<Gradient, Compared>> broken;
  for (const Gradient& of :
       {Gradient{"dq", op::Side::queries, &HeadLeaks::dq}, Gradient{"dk", op::Side::keys, &HeadLeaks::dk},
        Gradient{"dv", op::Side::keys, &HeadLeaks::dv}}) {
    const std::optional<Compared> output = compared(request, of.port);
    for (std::size_t at = 0; output && at < output->got.size(); ++at) {
      if (output->is_broken(at)) {
        broken.emplace_back(of, *output);
        break;
      }
    }
  }
  if (broken.empty()) {
    return;
  }
  const op::Operand& gradient = op::operand_named(request.inputs, "do");
  std::vector<HeadLeaks> heads;
  for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
    const op::HeadPlace place =
        op::head_place(p, op::Side::queries, task / p.heads, task % p.heads, p.value_channels());
    heads.emplace_back(problem, HeadRows{gradient.data + place.first, place.stride}, task / p.heads, task % p.heads);
  }
  for (const auto& [of, output] : broken) {
    const LeakCounts counts = count_leaks(problem, output, of, heads);
    if (counts.leaked >= kFewest * counts.beside) {
      add_if_explained(findings, op::kMaskedLeak, output, op::Finding::About::pattern, counts.leaked / counts.broken,
                       "NaN and infinities that are masked out reach the gradients");
    }
  }
}

}  // namespace numcheck::reference
