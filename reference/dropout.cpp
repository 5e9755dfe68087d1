#include "op/dropout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "reference/chance.hpp"
#include "reference/copied_draws.hpp"
#include "reference/draw_correlation.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"
#include "reference/scrambled.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;
constexpr std::size_t kBits = 8;

/// 1 / (1 - p) in FP32 arithmetic on an FP32 p.
Tracked scale_of(const op::DropoutParams& p) {
  if (p.p == 0) {
    return Tracked(1.0);  // in any arithmetic
  }
  return Tracked(1.0) / (Tracked(1.0) - Tracked(static_cast<double>(static_cast<float>(p.p))));
}

bool kept(std::span<const double> mask, std::size_t i) {
  return (static_cast<unsigned>(mask[i / kBits]) >> (i % kBits) & 1U) != 0;
}

/// The values of kept elements; which ones are dropped is not known beforehand. Where a kept one would not be finite,
/// the value is zero: the element is then not checked, whereas an infinity would be.
op::Values forward(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::DropoutParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const double scale = scale_of(p).y;
  const double largest = core::dtype_info(x.dtype).max_finite;
  TrackedOutput y("y", x.elements(), request.values_only);
  TrackedOutput mask("mask", x.elements() / kBits, request.values_only);
  core::parallel_chunks(x.elements(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const double value = x.data[i] * scale;
      y.set_undetermined(i, std::fabs(value) <= largest ? value : 0);
    }
  });
  for (std::size_t i = 0; i < mask.values().value.size(); ++i) {
    mask.set_undetermined(i, 0);
  }
  op::Values result;
  y.values().unpredictable = true;
  mask.values().unpredictable = true;
  result.outputs.push_back(std::move(y).take());
  result.outputs.push_back(std::move(mask).take());
  return result;
}

/// True if a device may store `got`. Rounding is monotonic: what is between the ends of the error interval rounds to
/// between them, and an end beyond the format's range rounds to infinity.
bool may_be(double got, const Tracked& expected, core::Dtype format) {
  if (!std::isfinite(expected.y)) {
    return std::isnan(expected.y) ? std::isnan(got) : got == expected.y;
  }
  // The bound has FP32's last rounding, which round_to makes as well: the largest number would be infinite.
  const double last = format == core::Dtype::fp32 ? tolerance::kUnit32 * std::fabs(expected.y) : 0;
  const double before = std::fmax(0, expected.b - last);
  return std::fabs(got - expected.y) <= expected.b ||
         (core::round_to(expected.y - before, format) <= got && got <= core::round_to(expected.y + before, format));
}

const op::Delivered& delivered(const op::FindingRequest& request, std::string_view port) {
  return *std::ranges::find(request.outputs, port, &op::Delivered::port);
}

/// Calls back with each element that is not what the mask says, and that: the kept value, within its error, or a dropped zero.
template <class Visit>
void for_each_broken(const op::FindingRequest& request, const Visit& visit) {
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const op::Delivered& y = delivered(request, "y");
  const std::span<const double> mask = delivered(request, "mask").value;
  const Tracked scale = scale_of(op::from_params<op::DropoutParams>(*request.params));
  for (std::size_t i = 0; i < x.elements(); ++i) {
    const Tracked expected = kept(mask, i) ? Tracked(x.data[i]) * scale : Tracked(0.0);
    if (!may_be(y.value[i], expected, y.dtype)) {
      visit(i, expected.y);
    }
  }
}

std::vector<op::ImpossibleDraw> impossible(const op::FindingRequest& request) {
  std::vector<op::ImpossibleDraw> all;
  for_each_broken(request, [&](std::size_t i, double expected) { all.push_back({"y", i, expected}); });
  return all;
}

struct MaskStatistics {
  double dropped = 0;     ///< elements
  double neighbours = 0;  ///< pairs (i, i + 1) that are both dropped
};

MaskStatistics count(std::span<const double> mask, std::size_t elements) {
  MaskStatistics found;
  bool before = false;
  for (std::size_t i = 0; i < elements; ++i) {
    const bool drops = !kept(mask, i);
    found.dropped += drops ? 1 : 0;
    found.neighbours += drops && before ? 1 : 0;
    before = drops;
  }
  return found;
}

/// How far the share of neighbours that are both dropped may be from share^2. With b = 1 where an element is dropped, and
/// q = share, the sum of b_i b_(i+1) - q^2 over n - 1 pairs is one of martingale differences,
///
///   (b_i - q) (b_(i-1) + q)        |..| <= max(q, 1 - q) (1 + q)
///
/// the last of which is smaller. Their conditional variances q (1 - q) (b + q)^2 are linear in b, so that the share of dropped
/// elements bounds their sum.
double neighbours_error(double share, double n) {
  const double most = std::fmin(1, share + share_error(share, n));
  const double variance = share * (1 - share) * n * (share * share + most * (1 + 2 * share));
  const double largest = std::fmax(share, 1 - share) * (1 + share);
  return (exceeded_by_chance(variance, largest, kGateOneIn) + share * share) / n;
}

/// Draws that are copies of others, of the first so many.
std::vector<op::Finding> repeats(std::span<const double> mask, std::size_t elements, double share) {
  if (share == 0) {
    return {};
  }
  std::vector<float> draws(std::min(elements, kMostCorrelatedDraws));
  for (std::size_t i = 0; i < draws.size(); ++i) {
    draws[i] = static_cast<float>(kept(mask, i) ? -share : 1 - share);
  }
  const DrawCorrelation found = draw_correlation(draws, share);
  return {{"repeated draws", "mask", found.measured, found.limit,
           fmt::format("correlation of elements {} apart, the largest of all", found.lag)}};
}

/// Draws that are copies of others, however far apart, of all.
std::vector<op::Finding> copies(std::span<const double> mask, std::size_t elements, double share) {
  if (share == 0) {
    return {};
  }
  DrawMatrix draws(1, static_cast<std::int64_t>(elements));
  for (std::size_t i = 0; i < elements; ++i) {
    draws.add(0, static_cast<std::int64_t>(i), !kept(mask, i));
  }
  const std::optional<CopiedDraws> copy = copied_draws(std::span(&draws, 1), share);
  if (!copy) {
    return {};
  }
  const auto range = [elements](const DrawRegion& region) {
    return fmt::format("{} to {}", region.column,
                       std::min(region.column + region.length, static_cast<std::int64_t>(elements)) - 1);
  };
  const std::string text =
      copy->measured == 0 ? "no range of elements is a copy of another"
                          : fmt::format("elements {} have the mask of {}, as independent ones have once in 10^{:.0f}",
                                        range(copy->second), range(copy->first), copy->measured);
  return {{"copied draws", "mask", copy->measured, copy->limit, text}};
}

std::vector<op::Finding> findings(const op::FindingRequest& request) {
  const auto p = op::from_params<op::DropoutParams>(*request.params);
  const std::span<const double> mask = delivered(request, "mask").value;
  const std::size_t elements = op::operand_named(request.inputs, "x").elements();
  if (elements == 0) {
    return {};
  }
  const double n = static_cast<double>(elements);
  const double share = p.dropped_share();
  const MaskStatistics found = count(mask, elements);
  const double pairs = share * share;
  double broken = 0;
  for_each_broken(request, [&broken](std::size_t, double) { broken += 1; });
  std::vector<op::Finding> all = {
      {"elements off the mask", "y", broken, 0, "elements that are not mask ? x / (1 - p) : 0"},
      {"dropped share", "mask", std::fabs(found.dropped / n - share), share == 0 ? 0 : share_error(share, n),
       fmt::format("{:.5f} of the elements are dropped; as implemented it is floor(256 p) / 256 = {:.5f}",
                   found.dropped / n, share)},
      {"dropped neighbours", "mask", std::fabs(found.neighbours / n - pairs),
       share == 0 ? 0 : neighbours_error(share, n), "neighbouring bits are independent"}};
  std::ranges::move(repeats(mask, elements, share), std::back_inserter(all));
  std::ranges::move(copies(mask, elements, share), std::back_inserter(all));
  return all;
}

op::Values backward(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::DropoutParams>(*request.params);
  const op::Operand& dy = op::operand_named(request.inputs, "dy");
  const op::Operand& mask = op::operand_named(request.inputs, "mask");
  const std::span<const double> bits(mask.data, mask.elements());
  const Tracked scale = scale_of(p);
  TrackedOutput dx("dx", dy.elements(), request.values_only);
  core::parallel_chunks(dy.elements(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      dx.set(i, kept(bits, i) ? Tracked(dy.data[i]) * scale : Tracked(0.0));
    }
  });
  op::Values result;
  result.outputs.push_back(std::move(dx).take());
  return result;
}

/// Masks as forward dropout with this p leaves them: each bit is 0 with the probability floor(256 p) / 256, whatever the draws'
/// distribution.
void derive_mask(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::DropoutParams>(*request.params);
  const auto threshold = static_cast<std::uint64_t>(std::floor(256 * static_cast<float>(p.p)));
  core::parallel_chunks(values.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      std::uint64_t random = scrambled(values[i], i);
      unsigned byte = 0;
      for (std::size_t bit = 0; bit < kBits; ++bit, random >>= kBits) {
        byte |= (random & 0xFF) >= threshold ? 1U << bit : 0U;
      }
      values[i] = byte;
    }
  });
}

}  // namespace

op::Reference dropout_fwd_reference() {
  op::Reference reference;
  reference.values = &forward;
  static constexpr std::array kGates = {
      op::OwnGate{"elements off the mask", "elements that are not what the mask makes of them"},
      op::OwnGate{"dropped share", "share of the elements that are dropped, against floor(256 p) / 256"},
      op::OwnGate{"dropped neighbours", "share of neighbours of which both are dropped, against its square"},
      op::OwnGate{"repeated draws", "largest correlation of elements that are a fixed distance apart"},
      op::OwnGate{"copied draws", "ranges of elements that are copies of others: -log10 of the chance of the copy"},
  };
  reference.findings = &findings;
  reference.impossible = &impossible;
  reference.gates = kGates;
  reference.version = "dropout_fwd-4";
  reference.mistakes = &dropout_fwd_mistakes;
  return reference;
}

op::Reference dropout_bwd_reference() {
  op::Reference reference;
  reference.values = &backward;
  reference.derive = &derive_mask;
  reference.version = "dropout_bwd-3";
  reference.mistakes = &dropout_bwd_mistakes;
  return reference;
}

}  // namespace numcheck::reference
