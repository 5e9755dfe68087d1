// Operands of one product whose sum tells after how many products FP8 sums are promoted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/harness/classify.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::kernels::harness {

/// Products that cuBLASLt sums before it promotes.
inline constexpr std::int64_t kPromotionInterval = 128;

/// Why no operands of such a product tell; empty if some do.
///
/// With more than two intervals, two products of +-2^13 cancel, the first and the last one of each sum, and what is left are
/// 128 products of 2^-1 in between: as long as 2^13 is in the accumulator, they are lost. Rows have them at various distances.
/// With k in (128, 256], 2^13 stays, beside half an ulp of the output, so that the sum is a tie that is rounded down: a product of
/// 2^-1 in the second interval makes it round up, and is lost where the first interval was not promoted.
[[nodiscard]] std::string sums_probe_obstacle(const op::GemmParams& product, const op::Mode& mode);

/// The product's inputs are zero before fill(); its output is read after the launch. Precondition: no obstacle.
class SumsProbe {
 public:
  SumsProbe(const op::Product& product, DeviceMemory& memory, std::span<const PortMemory> ports);

  void fill();
  /// Asks for the sums of the first column, which are there once the device has been waited for.
  void read();
  [[nodiscard]] Classification classify() const;

 private:
  void fill_long();
  void fill_short();
  [[nodiscard]] Classification classify_long(std::span<const double> sums) const;
  [[nodiscard]] Classification classify_short(double sum) const;

  void set_scales();
  /// Scales of rows or blocks, those between them that nobody reads included.
  void set_all(const PortMemory& port, double scale);
  /// Sets elements [begin, begin + values.size()) along k of row `line` of A, or of column `line` of B.
  void put(bool first, std::int64_t line, std::int64_t begin, const std::vector<double>& values);

  op::Product product_;
  DeviceMemory& memory_;
  std::span<const PortMemory> ports_;
  const PortMemory& d_;
  std::vector<std::int64_t> distances_;  ///< in intervals, of the rows of a long sum
  std::vector<std::byte> got_;
};

}  // namespace numcheck::kernels::harness
