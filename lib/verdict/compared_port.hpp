// An output in the form in which it is compared: most as stored, scaled codes and E8M0 scales as FP32.
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

/// What the worker reported of a run's output; throws core::InternalError if it reported nothing.
[[nodiscard]] const worker::OutputDigest& output_named(const worker::RunReport& run, std::string_view port);

/// Codes with block scales are compared as FP32 numbers code * scale, using the scales that the device stored.
/// Power-of-two scales (E8M0) are compared as FP32, too. In both, elements that were not written keep the poison
/// pattern.
class ComparedPort {
 public:
  /// Port `index` of the case; `host` has the bytes that the run left, and is parallel to the ports. All arguments must
  /// outlive this object.
  ComparedPort(const prepare::PreparedCase& prepared, std::span<const worker::HostPort> host, std::size_t index,
               const worker::RunReport& run);

  [[nodiscard]] const op::Port& port() const noexcept { return port_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Equal if all compared bits are equal.
  [[nodiscard]] const std::string& digest() const noexcept { return digest_; }

  /// Bit pattern of an element as the device stored it, by flat logical index.
  [[nodiscard]] std::uint64_t bits_at(std::size_t flat) const;
  /// The same of neighbouring elements, from `first` on.
  void bits_from(std::size_t first, std::span<std::uint64_t> bits) const;

  /// Replaces FP32 ulps by ulps of the codes in the statistics, and the bits of the worst elements by their codes. Does
  /// nothing for ports that are compared as stored.
  void measure_in_code_ulps(std::span<const double> expected, metric::Statistics& statistics) const;

 private:
  void convert();
  /// Scale of an element, by flat logical index; 1 if the port has no scales.
  [[nodiscard]] double scale_of(std::size_t flat) const;
  /// Distance of two values of that element: in ulps of the code near the expected one, or, for powers of two, in
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
