#include "reference/attention_zero_channels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "reference/attention_compared.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kRowsOfTile = 16;

/// Squared errors beyond what a rounding of the format may do, and the part of them that is in zeros.
struct Wrong {
  double all = 0, zeros = 0;
};

/// `may_lack`: whether half of the row's channels may be what is seen.
Wrong wrong_with(const Compared& dq, std::size_t first, std::size_t channels, bool may_lack) {
  const std::span<const double> got = dq.got.subspan(first, channels), expected = dq.expected.subspan(first, channels);
  const auto zeros = static_cast<std::size_t>(std::ranges::count(got, 0.0));
  const bool lacks_half = may_lack && zeros < channels && 2 * zeros >= channels;
  const double squares = std::transform_reduce(expected.begin(), expected.end(), 0.0, std::plus<>(),
                                               [](double y) { return std::isfinite(y) ? y * y : 0; });
  const double rms = std::sqrt(squares / static_cast<double>(channels));
  const double unit = core::dtype_info(dq.dtype).unit_roundoff;
  Wrong wrong;
  for (std::size_t c = 0; c < channels; ++c) {
    const double beyond = std::fabs(dq.error(first + c)) - unit * std::max(std::fabs(expected[c]), rms);
    const double square = beyond > 0 ? beyond * beyond : 0;
    wrong.all += square;
    wrong.zeros += lacks_half && got[c] == 0 ? square : 0;
  }
  return wrong;
}

}  // namespace

void explain_zero_channels(const op::FindingRequest& request, const AttentionProblem& problem,
                           std::vector<op::Finding>& findings) {
  const op::AttentionParams& p = problem.params();
  const std::optional<Compared> dq = compared(request, "dq");
  const std::int64_t whole = p.sq / kRowsOfTile * kRowsOfTile;
  if (!dq || !core::is_fp8(dq->dtype) || whole == p.sq) {
    return;
  }
  Wrong total;
  for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
    const op::HeadPlace place = op::head_place(p, op::Side::queries, task / p.heads, task % p.heads, p.d);
    for (std::int64_t i = 0; i < op::positions(p, op::Side::queries, task / p.heads); ++i) {
      const Wrong row = wrong_with(*dq, element_at(place, i), static_cast<std::size_t>(p.d), i >= whole);
      total.all += row.all;
      total.zeros += row.zeros;
    }
  }
  add_if_explained(findings, *dq, op::Finding::About::numbers, total.zeros / total.all,
                   "half of the channels of the last rows of dq are zero");
}

}  // namespace numcheck::reference
