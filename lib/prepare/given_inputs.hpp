// Inputs that are given instead of drawn: somebody's tensors.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "core/buffer.hpp"
#include "op/op.hpp"

namespace numcheck::prepare {

using SharedDoubles = std::shared_ptr<const core::Buffer<double>>;
using SharedBits = std::shared_ptr<const core::Buffer<std::byte>>;

/// By port: its elements as they are stored, dense and row-major. Those of a scaled operand are codes, whose factor is the
/// number given for the port that holds it.
class GivenInputs {
 public:
  void set(const std::string& port, SharedDoubles elements) {
    elements_[port] = std::move(elements);
    bits_.erase(port);
  }
  /// The elements as they are stored, which say more than their numbers: payloads and signs of NaN. After set().
  void set_bits(const std::string& port, SharedBits bits) { bits_[port] = std::move(bits); }

  /// The numbers of that port count as they are, although its format does not hold them: a bias in FP32 beside 16-bit operands.
  void keep_unrounded(const std::string& port) { unrounded_.insert(port); }
  [[nodiscard]] bool is_unrounded(const op::Port& port) const { return unrounded_.contains(port.name); }

  [[nodiscard]] bool has(const op::Port& port) const { return elements_.contains(port.name); }
  /// The elements of a port; null if they are not given. Throws core::InternalError if their number is not the port's.
  [[nodiscard]] SharedDoubles of(const op::Port& port) const;
  /// Its stored elements, dense and row-major; empty if only the numbers are known.
  [[nodiscard]] std::span<const std::byte> bits(const op::Port& port) const;
  /// The number given for a port of role scale.
  [[nodiscard]] std::optional<float> number(const op::Port& port) const;
  /// The factor of an operand's codes; 1 if it has none, or if none is given.
  [[nodiscard]] float factor(std::span<const op::Port> ports, const op::Port& operand) const;

  /// The same tensors in memory, not tensors of the same numbers.
  bool operator==(const GivenInputs&) const = default;

 private:
  std::map<std::string, SharedDoubles, std::less<>> elements_;
  std::map<std::string, SharedBits, std::less<>> bits_;
  std::set<std::string, std::less<>> unrounded_;
};

}  // namespace numcheck::prepare
