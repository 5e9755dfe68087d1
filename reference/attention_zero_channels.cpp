#include "reference/attention_zero_channels.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "reference/attention_compared.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kRowsOfTile = 16;

/// Squared errors beyond what rounding may do, and the part of them that is in zeros.
struct Wrong {
  double all = 0, zeros = 0;
};

/// One query of one head.
struct Row {
  std::span<const double> got, expected;
  double rms = 0;  ///< of what is expected

  Row(const Compared& dq, std::size_t first, std::size_t channels)
      : got(dq.got.subspan(first, channels)), expected(dq.expected.subspan(first, channels)) {
    double squares = 0;
    for (const double y : expected) {
      squares += std::isfinite(y) ? y * y : 0;
    }
    rms = std::sqrt(squares / static_cast<double>(channels));
  }
  /// |got - expected|; 0 unless both are finite.
  [[nodiscard]] double error(std::size_t c) const noexcept {
    const double e = std::fabs(got[c] - expected[c]);
    return std::isfinite(e) ? e : 0;
  }
  /// Mean square of the errors, as a part of that of the numbers.
  [[nodiscard]] double relative_square() const noexcept {
    double squares = 0;
    for (std::size_t c = 0; c < got.size(); ++c) {
      squares += error(c) * error(c);
    }
    return rms > 0 ? squares / (static_cast<double>(got.size()) * rms * rms) : 0;
  }
};

/// `noise`: root mean square of the relative errors of rows that are not under suspicion. `may_lack`: whether half of the
/// row's channels may be what is seen.
Wrong wrong_with(const Row& row, double unit, double noise, bool may_lack) {
  constexpr double kTimesNoise = 3;
  const std::size_t channels = row.got.size();
  const auto zeros = static_cast<std::size_t>(std::ranges::count(row.got, 0.0));
  const bool lacks_half = may_lack && zeros < channels && 2 * zeros >= channels;
  Wrong wrong;
  for (std::size_t c = 0; c < channels; ++c) {
    const double allowed = unit * std::max(std::fabs(row.expected[c]), row.rms) + kTimesNoise * noise * row.rms;
    const double beyond = std::fmax(row.error(c) - allowed, 0);
    wrong.all += beyond * beyond;
    wrong.zeros += lacks_half && row.got[c] == 0 ? beyond * beyond : 0;
  }
  return wrong;
}

/// Calls body(row, whether it is beyond the last whole tile) for all queries of all heads that count.
template <class Body>
void for_each_row(const Compared& dq, const op::AttentionParams& p, const Body& body) {
  const std::int64_t whole = p.sq / kRowsOfTile * kRowsOfTile;
  for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
    const op::HeadPlace place = op::head_place(p, op::Side::queries, task / p.heads, task % p.heads, p.d);
    for (std::int64_t i = 0; i < op::positions(p, op::Side::queries, task / p.heads); ++i) {
      body(Row(dq, element_at(place, i), static_cast<std::size_t>(p.d)), i >= whole);
    }
  }
}

}  // namespace

void explain_zero_channels(const op::FindingRequest& request, const AttentionProblem& problem,
                           std::vector<op::Finding>& findings) {
  const op::AttentionParams& p = problem.params();
  const std::optional<Compared> dq = compared(request, "dq");
  if (!dq || !core::is_fp8(dq->dtype) || p.sq % kRowsOfTile == 0) {
    return;
  }
  double squares = 0, rows = 0;
  for_each_row(*dq, p, [&](const Row& row, bool is_last) {
    squares += is_last ? 0 : row.relative_square();
    rows += is_last ? 0 : 1;
  });
  const double noise = rows > 0 ? std::sqrt(squares / rows) : 0, unit = core::dtype_info(dq->dtype).unit_roundoff;
  Wrong total;
  for_each_row(*dq, p, [&](const Row& row, bool is_last) {
    const Wrong wrong = wrong_with(row, unit, noise, is_last);
    total.all += wrong.all;
    total.zeros += wrong.zeros;
  });
  add_if_explained(findings, op::kZeroChannels, *dq, op::Finding::About::numbers, total.zeros / total.all,
                   "half of the channels of the last rows of dq are zero");
}

}  // namespace numcheck::reference
