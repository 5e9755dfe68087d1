// An output as it is compared: most as they lie, numbers that are more than their bytes as FP32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/buffer.hpp"
#include "metric/compare.hpp"
#include "prepare/group.hpp"
#include "worker/execution.hpp"

namespace numcheck::verdict {

/// Digest of an output of a run, by port; throws core::InternalError if the worker gave none.
[[nodiscard]] const core::Digest& digest_named(const worker::RunReport& run, std::string_view port);

/// Codes with scales of their blocks are compared as FP32 numbers code * scale, with the scales that the device stored;
/// scales that are powers of two as FP32, too. In both, what was not written keeps the poison pattern.
class ComparedPort {
 public:
  /// Port `index` of the case, from the outputs of the run. References to both are kept.
  ComparedPort(const prepare::PreparedCase& prepared, std::size_t index, const worker::RunReport& run);

  [[nodiscard]] const op::Port& port() const noexcept { return port_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Equal for equal bits of everything that is compared.
  [[nodiscard]] const std::string& digest() const noexcept { return digest_; }

  /// Counts errors in the spacing of the codes instead of that of FP32, and shows codes as the bits of the worst
  /// elements. Nothing for ports that are compared as they lie.
  void count_in_codes(std::span<const double> expected, metric::Statistics& statistics) const;

 private:
  void convert();
  [[nodiscard]] std::uint64_t bits_at(std::size_t flat) const;
  /// Scale of an element, by flat logical index; 1 if there is none.
  [[nodiscard]] double scale_of(std::size_t flat) const;
  /// Distance of two values of that element in codes: in their spacing near the expected one, or, of powers of two, in
  /// exponents.
  [[nodiscard]] double steps_between(std::size_t flat, double got, double expected) const;

  const op::Port& stored_;
  std::span<const std::byte> stored_bytes_;
  op::Port port_;
  std::span<const std::byte> bytes_;
  std::string digest_;
  bool converted_ = false;
  core::Buffer<double> codes_;   ///< decoded, dense
  core::Buffer<double> scales_;  ///< decoded, dense; empty if there are none
  core::Buffer<float> values_;
};

}  // namespace numcheck::verdict
