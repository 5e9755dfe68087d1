// Random tamperings with an output of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

#include "op/op.hpp"
#include "worker/execution.hpp"

namespace numcheck::detect {

using Random = std::mt19937_64;

[[nodiscard]] inline std::size_t below(Random& random, std::size_t count) {
  return static_cast<std::size_t>(random() % count);
}

/// An output of a run, to be changed in place. Elements are counted row by row, through all matrices of the batch.
class Output {
 public:
  explicit Output(const worker::HostPort& host) : port_(*host.port), bytes_(host.bytes) {}

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(port_.elements()); }
  [[nodiscard]] std::size_t cols() const { return static_cast<std::size_t>(port_.cols); }
  [[nodiscard]] std::size_t rows() const { return size() / cols(); }
  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] std::uint64_t bits(std::size_t i) const;
  void set_bits(std::size_t i, std::uint64_t word);
  [[nodiscard]] double value(std::size_t i) const;
  void set(std::size_t i, double value);

 private:
  [[nodiscard]] std::byte* at(std::size_t i) const;

  const op::Port& port_;
  std::span<std::byte> bytes_;
};

struct Tampering {
  const char* name;
  void (*apply)(Output&, Random&);
};

/// Numbers, bits, signs, factors, noise, copies, coarser formats, of an element, a row, a column, a tile, or all elements.
[[nodiscard]] std::span<const Tampering> tamperings() noexcept;

}  // namespace numcheck::detect
