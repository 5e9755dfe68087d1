// Delivered and expected outputs of attention, as its diagnoses see them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "op/attention_layout.hpp"
#include "op/known_cause.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// One output, delivered and expected.
struct Compared {
  std::string_view port;
  std::span<const double> got, expected;
  std::span<const std::size_t> unwritten;
  std::span<const op::OutputValues::Range> outside;
  core::Dtype dtype = core::Dtype::fp32;  ///< of the delivered numbers
  std::span<const float> deviation;       ///< infinite where anything is right; may be empty

  /// NaN or an infinity that is not expected, or a number where one of them is.
  [[nodiscard]] bool is_broken(std::size_t at) const noexcept {
    const bool finite = std::isfinite(got[at]) && std::isfinite(expected[at]);
    const bool asked = deviation.empty() || !std::isinf(deviation[at]);
    return !finite && asked && got[at] != expected[at] && !(std::isnan(got[at]) && std::isnan(expected[at]));
  }
  /// got - expected; 0 unless both are finite.
  [[nodiscard]] double error(std::size_t at) const noexcept {
    const double e = got[at] - expected[at];
    return std::isfinite(e) ? e : 0;
  }
  [[nodiscard]] bool is_unwritten(std::size_t at) const noexcept;
  /// All elements but those that the op leaves to the implementation, in ascending order.
  [[nodiscard]] std::vector<std::size_t> judged() const;
};

/// That output of a request; nothing if the case does not have it or only a sample of it is expected.
[[nodiscard]] std::optional<Compared> compared(const op::FindingRequest& request, std::string_view port);

/// Adds a finding that names the cause if it explains 90 % of what is wrong: `share`, NaN where nothing is wrong.
void add_if_explained(std::vector<op::Finding>& findings, const op::KnownCause& known, const Compared& output,
                      op::Finding::About about, double share, std::string cause);

/// The largest finite magnitude; 0 if there is none.
[[nodiscard]] double largest_magnitude(std::span<const double> values);

/// First element of position i.
[[nodiscard]] inline std::size_t element_at(const op::HeadPlace& place, std::int64_t i) noexcept {
  return static_cast<std::size_t>(place.first + i * place.stride);
}

}  // namespace numcheck::reference
