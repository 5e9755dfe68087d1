#include "reference/amax_of_codes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"

namespace numcheck::reference {
namespace {

/// Of the elements that belong to a sequence; nothing if one of them is not finite, or was not written.
std::optional<double> largest_code(const op::Delivered& tensor, const op::OutputValues* expected) {
  std::vector<bool> counts(tensor.value.size(), true);
  for (const op::OutputValues::Range& range :
       expected == nullptr ? std::vector<op::OutputValues::Range>() : expected->outside) {
    std::fill(counts.begin() + range.begin, counts.begin() + range.end, false);
  }
  double largest = 0;
  for (std::size_t at = 0; at < counts.size(); ++at) {
    const double code = std::fabs(tensor.value[at] * tensor.scale);
    if (counts[at] && !std::isfinite(code)) {
      return std::nullopt;
    }
    largest = counts[at] ? std::max(largest, code) : largest;
  }
  return tensor.unwritten.empty() ? std::optional(core::round_to(largest, tensor.dtype)) : std::nullopt;
}

}  // namespace

std::vector<op::Finding> judge_amaxes(const op::FindingRequest& request) {
  constexpr std::string_view kSuffix = "_amax";
  constexpr double kRounded = 0x1p-22;  // two roundings to FP32
  std::vector<op::Finding> findings;
  for (const op::Delivered& amax : request.outputs) {
    if (!amax.port.ends_with(kSuffix) || amax.value.size() != 1 || !std::isfinite(amax.value[0])) {
      continue;
    }
    const std::string_view of = amax.port.substr(0, amax.port.size() - kSuffix.size());
    const auto tensor = std::ranges::find(request.outputs, of, &op::Delivered::port);
    if (tensor == request.outputs.end() || !core::is_fp8(tensor->dtype)) {
      continue;
    }
    const auto expected = std::ranges::find(request.expected->outputs, of, &op::OutputValues::port);
    const std::optional<double> code =
        largest_code(*tensor, expected == request.expected->outputs.end() ? nullptr : &*expected);
    if (!code.has_value()) {
      continue;
    }
    const auto stored = [&](double factor) {
      return core::round_to(std::fabs(amax.value[0]) * tensor->scale * factor, tensor->dtype, core::Overflow::saturate);
    };
    const double low = stored(1 - kRounded), high = stored(1 + kRounded);
    const double apart = *code < low ? low - *code : *code > high ? *code - high : 0;
    const double share = apart == 0 ? 0 : *code == 0 ? std::numeric_limits<double>::max() : apart / *code;
    findings.push_back({std::string(kAmaxOfCodes.name), std::string(amax.port), share, 0,
                        "amax times the scale, as it would be stored, beside the largest code of " + std::string(of)});
  }
  return findings;
}

}  // namespace numcheck::reference
