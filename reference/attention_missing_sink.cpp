#include "reference/attention_missing_sink.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "op/attention_fwd.hpp"
#include "reference/attention_compared.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

/// By how much outputs of E4M3 weights may be too small on average: rounding takes 0.18 u^2 and subnormal weights lose more.
/// This is what gate G3 allows outputs of some hundred keys.
constexpr double kRoundedDown = 0.4 * 0x1p-8;

constexpr const char* kCause = "the sink is left out of the denominator";

/// Elements of an output, without those of queries of which kernels may think differently.
std::vector<std::size_t> elements_of(const op::AttentionParams& p, std::string_view port, const op::OutputValues& o) {
  if (port == "s_amax") {
    return {0};
  }
  const bool is_statistic = port != "o";
  const std::int64_t width = is_statistic ? 1 : p.value_channels();
  std::vector<std::size_t> elements;
  for (std::int64_t query = 0; query < p.batches * p.heads * p.sq; ++query) {
    const std::int64_t batch = query / p.sq / p.heads, head = query / p.sq % p.heads;
    if (!o.row_facts.empty() && std::isinf(o.row_facts.front()[static_cast<std::size_t>(query)])) {
      continue;
    }
    const op::HeadPlace place =
        is_statistic ? op::statistic_place(p, batch, head) : op::head_place(p, op::Side::queries, batch, head, width);
    for (std::int64_t c = 0; c < width; ++c) {
      elements.push_back(element_at(place, query % p.sq) + static_cast<std::size_t>(c));
    }
  }
  return elements;
}

/// What errors of an output may have besides.
struct OwnErrors {
  bool rounds_weights;   ///< E4M3 weights: a part of up to kRoundedDown of all values
  bool grow_with_value;  ///< those of a log-sum-exp do, from 1 on: truncated FP8 products have the sign of their sum
};

/// The numbers as the output's format holds them: FP8 saturates where a missing sink makes values larger than its scale allows.
std::vector<double> held(std::span<const double> values, const Compared& output, double scale) {
  std::vector<double> all(values.begin(), values.end());
  if (core::is_fp8(output.dtype)) {
    const double most = core::dtype_info(output.dtype).max_finite / std::fabs(scale);
    std::ranges::transform(all, all.begin(),
                           [most](double y) { return std::isfinite(y) ? std::clamp(y, -most, most) : y; });
  }
  return all;
}

/// t = sum(w (e + r y) g) / sum(w g^2) over those elements that are finite, with the r in [0, kRoundedDown] that brings it
/// closest to 1; r is 0 unless weights are rounded. w is 1, or y^-4 where errors grow with y. The share is 1 - |1 - t|, but
/// for twice the standard error of t where that is small beside t; NaN if the sink makes no difference.
double part_of_difference(const Compared& output, std::span<const double> vanilla,
                          std::span<const std::size_t> elements, const OwnErrors& own) {
  constexpr double kFewestErrors = 5, kDoubt = 2;
  struct Pair {
    double error, difference, weight;
  };
  double product = 0, common = 0, squares = 0;
  std::vector<Pair> pairs;
  for (const std::size_t at : elements) {
    const double y = output.expected[at], g = vanilla[at] - y, e = output.error(at);
    if (std::isfinite(g) && std::isfinite(output.got[at])) {
      const double w = own.grow_with_value ? std::pow(std::max(1.0, std::fabs(y)), -4) : 1;
      product += w * e * g;
      common += w * y * g;
      squares += w * g * g;
      pairs.push_back({e, g, w});
    }
  }
  const bool moves = own.rounds_weights && common > 0 && squares > 0;
  const double r = moves ? std::clamp((squares - product) / common, 0.0, kRoundedDown) : 0;
  const double t = (product + r * common) / squares;
  double left = 0;
  for (const Pair& pair : pairs) {
    const double part = pair.weight * (pair.error - t * pair.difference) * pair.difference;
    left += part * part;
  }
  const double error = std::sqrt(left) / squares;
  return 1 - std::max(0.0, std::fabs(1 - t) - (t > kFewestErrors * error ? kDoubt * error : 0));
}

/// Whether most of what queries are grossly off by, an eighth of their values and more, is something else: rows that are exchanged.
bool has_other_errors(const Compared& output, std::span<const double> vanilla, std::span<const std::size_t> elements,
                      std::size_t width) {
  constexpr double kGross = 0.125, kMost = 0.5;
  double all = 0, left = 0;
  for (std::size_t first = 0; first + width <= elements.size(); first += width) {
    double errors = 0, others = 0, squares = 0;
    for (const std::size_t at : elements.subspan(first, width)) {
      const double y = output.expected[at], difference = vanilla[at] - y, e = output.error(at);
      if (std::isfinite(difference)) {
        const double scatter = output.deviation.empty() ? 0 : static_cast<double>(output.deviation[at]);
        errors += e * e;
        others += (e - difference) * (e - difference);
        squares += y * y + scatter * scatter;
      }
    }
    if (errors > kGross * kGross * squares) {
      all += errors;
      left += others;
    }
  }
  return left > kMost * all;
}

/// Of o, as it would be without the sink, which other outputs lack: the share is 1 - |got - that| / (got - expected).
void explain_amax(const op::FindingRequest& request, const op::OutputValues& o, const op::OutputValues& vanilla,
                  std::vector<op::Finding>& findings) {
  const auto amax = std::ranges::find(request.outputs, std::string_view("o_amax"), &op::Delivered::port);
  if (amax == request.outputs.end() || !request.sample->all()) {
    return;
  }
  const double got = amax->value[0], expected = largest_magnitude(o.value.span());
  if (got > expected) {
    add_if_explained(findings, op::kSinkMissing, Compared{.port = amax->port}, op::Finding::About::numbers,
                     1 - std::fabs(got - largest_magnitude(vanilla.value.span())) / (got - expected), kCause);
  }
}

}  // namespace

void explain_missing_sink(const op::FindingRequest& request, std::vector<op::Finding>& findings) {
  auto p = op::from_params<op::AttentionFwdParams>(*request.params);
  if (p.softmax == "vanilla" || p.dropout > 0) {
    return;
  }
  const bool is_fp8 = op::find_operand(request.inputs, "s_scale") != nullptr;
  p.softmax = "vanilla";
  const op::Params params = op::to_params(p);
  std::vector<op::Operand> inputs;
  std::ranges::copy_if(request.inputs, std::back_inserter(inputs),
                       [](const op::Operand& input) { return input.port != "softmax_offset"; });
  const op::Values vanilla = attention_fwd_reference().values(
      {.params = &params, .inputs = std::move(inputs), .sample = *request.sample, .values_only = true});
  const auto o = std::ranges::find(request.expected->outputs, "o", &op::OutputValues::port);
  for (const op::OutputValues& values : vanilla.outputs) {
    if (const std::optional<Compared> output = compared(request, values.port)) {
      const double scale = std::ranges::find(request.outputs, values.port, &op::Delivered::port)->scale;
      const std::vector<double> without = held(values.value.span(), *output, scale);
      const std::vector<std::size_t> elements = elements_of(p, values.port, *o);
      if (values.port == "o" &&
          has_other_errors(*output, without, elements, static_cast<std::size_t>(p.value_channels()))) {
        continue;
      }
      const double share =
          part_of_difference(*output, without, elements,
                             {.rounds_weights = is_fp8 && values.port == "o", .grow_with_value = values.port == "lse"});
      add_if_explained(findings, op::kSinkMissing, *output, op::Finding::About::numbers, share, kCause);
    }
  }
  if (std::ranges::find(findings, op::kSinkMissing.name, &op::Finding::name) != findings.end()) {
    explain_amax(request, *o, *std::ranges::find(vanilla.outputs, "o", &op::OutputValues::port), findings);
  }
}

}  // namespace numcheck::reference
