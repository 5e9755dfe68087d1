#include "tolerance/few_bits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "metric/accumulators.hpp"
#include "tolerance/product_terms.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::int64_t kOutputs = 128;
constexpr std::int64_t kTerms = std::int64_t{1} << 22;  ///< most products that are replayed

float sum_of(const TermsOf& a, const TermsOf& b, std::int64_t k, core::Dtype format, core::Rounding rounding) {
  double sum = 0;
  for (std::int64_t t = 0; t < k; ++t) {
    sum += core::round_to(a.at(t), format, core::Overflow::ieee, rounding) *
           core::round_to(b.at(t), format, core::Overflow::ieee, rounding);
  }
  return static_cast<float>(sum);
}

}  // namespace

std::array<double, 3> few_bit_shares(const op::GemmParams& params, const op::Operand& a, const op::Operand& b,
                                     core::Dtype format, core::Rounding rounding) {
  constexpr double kMost = 0.5;
  std::array<double, 3> shares{};
  const std::int64_t outputs = std::clamp<std::int64_t>(kTerms / std::max<std::int64_t>(1, params.k), 1, kOutputs);
  if (params.m == 0 || params.n == 0) {
    return shares;
  }
  const auto alpha = static_cast<float>(params.alpha);
  std::vector<std::uint32_t> results(static_cast<std::size_t>(outputs));
  core::parallel_for(results.size(), [&](std::size_t at) {
    const auto s = static_cast<std::int64_t>(at);
    const float sum = sum_of(row_of(params, a, middle_of(s, outputs, params.m)),
                             column_of(params, b, middle_of(s, outputs, params.n)), params.k, format, rounding);
    results[at] = std::bit_cast<std::uint32_t>(alpha * sum);
  });
  std::ranges::sort(results);
  results.erase(std::unique(results.begin(), results.end()), results.end());
  for (const std::uint32_t bits : results) {
    for (std::size_t l = 0; l < shares.size(); ++l) {
      shares[l] += (bits & ((std::uint32_t{1} << metric::kLatticeBits[l]) - 1)) == 0 ? 1 : 0;
    }
  }
  for (double& share : shares) {
    const double most = (share + 3 * std::sqrt(share + 1)) / static_cast<double>(results.size());
    share = most > kMost ? 1 : most;
  }
  return shares;
}

double rounded_operands(const op::Operand& a, const op::Operand& b, bool fp32_storage) {
  const auto is_rounded = [fp32_storage](const op::Operand& operand) {
    constexpr std::size_t kLooked = std::size_t{1} << 16;
    const int kept = fp32_storage ? core::dtype_info(core::Dtype::tf32).fraction_bits : 0;
    const std::uint64_t lost = (std::uint64_t{1} << (52 - kept)) - 1;  // bits of a double's fraction
    const std::size_t step = operand.elements() / kLooked + 1;
    for (std::size_t i = 0; i < operand.elements(); i += step) {
      if ((std::bit_cast<std::uint64_t>(operand.data[i]) & lost) != 0) {
        return true;
      }
    }
    return false;
  };
  return is_rounded(a) && is_rounded(b) ? 2 : 1;
}

}  // namespace numcheck::tolerance
