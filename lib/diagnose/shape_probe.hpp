// What the dimensions of an op's ports are made of, found out by asking for the ports of sizes that are distinct primes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "op/op.hpp"

namespace numcheck::diagnose {

/// constant * product of sizes ^ power.
struct Product {
  std::int64_t constant = 1;
  std::vector<int> powers;  ///< parallel to ShapeProbe::sizes()

  [[nodiscard]] bool is_constant() const noexcept;
  bool operator==(const Product&) const = default;
};

[[nodiscard]] Product operator*(const Product& a, const Product& b);

/// Of a port; nothing where a dimension is no product of sizes (a rounded-up quotient).
struct Dims {
  std::optional<Product> batch, rows, cols;
};

class ShapeProbe {
 public:
  /// `sizes`: the fields that are sizes. All arguments but the last must outlive the probe.
  ShapeProbe(const op::Op& op, const op::Mode& mode, std::vector<std::size_t> sizes);

  [[nodiscard]] const std::vector<std::size_t>& sizes() const noexcept { return sizes_; }
  /// The ports, whose sizes mean nothing; empty if there are none with these parameters.
  [[nodiscard]] std::vector<op::Port> ports(const op::Params& params) const { return ports(params, 0); }
  [[nodiscard]] bool has_port(const op::Params& params, std::string_view name) const;
  /// Whether turning that switch exchanges rows and columns of a port, and does nothing else to ports.
  [[nodiscard]] bool exchanges_dims(const op::Params& params, std::size_t field) const;
  /// Nothing if there is no such port.
  [[nodiscard]] std::optional<Dims> dims_of(const op::Params& params, std::string_view name) const;

 private:
  /// With the sizes of one of the sets of primes.
  [[nodiscard]] std::vector<op::Port> ports(op::Params params, std::size_t set) const;

  const op::Op& op_;
  const op::Mode& mode_;
  std::vector<std::size_t> sizes_;
};

}  // namespace numcheck::diagnose
