// Input tensors: generated once as doubles that are FP32 values, rounded once to the port's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/buffer.hpp"
#include "data/distribution.hpp"
#include "op/op.hpp"

namespace numcheck::data {

/// What the "exact" distribution needs to know about a port: "a" (or the op's first input) is the sparse operand, the
/// next one the dense one, all others are addends.
struct ExactRole {
  op::ExactPlan plan;
  enum class Kind { first, second, addend } kind = Kind::first;
  bool reduction_along_rows = false;
};

/// Values of an input port, dense in logical order (batch, row, column). `exact` matters only for the distribution
/// "exact", its reduction also for "one_hot". Parallel.
[[nodiscard]] core::Buffer<double> generate_port(const op::Port& port, const Distribution& distribution,
                                                 const core::StreamId& stream, const ExactRole& exact);

/// Largest finite |value|; 0 for an empty span. Parallel.
[[nodiscard]] double absolute_max(std::span<const double> values);
/// Smallest |value| that is not 0; infinite if there is none. Parallel.
[[nodiscard]] double absolute_min(std::span<const double> values);

/// What becomes of infinities in FP8: they saturate like all numbers that are too large, or, where they are codes that somebody saved,
/// stay what they are if the format has them.
enum class Infinities : std::uint8_t { saturate, kept };

/// Rounds the values to the port's format and lays them out (ld, batch stride, offset): bytes of Port::extent_bytes().
/// With scale != 1 the code is sat(RN(RN32(value * scale))), as TransformerEngine quantises. Padding is filled with
/// 0xFF, a NaN in every floating-point input format, so that a kernel that reads it is noticed. Parallel.
void store_port(const op::Port& port, std::span<const double> values, float scale, std::span<std::byte> bytes,
                Infinities infinities = Infinities::saturate);

/// What is known of values that are not there any more.
struct Drawn {
  double largest = 0;      ///< their absolute_max
  bool all_finite = true;  ///< so that it is the largest magnitude of all
};

/// generate_port and store_port in one, without the values. Not for the distribution "exact".
[[nodiscard]] Drawn draw_port(const op::Port& port, const Distribution& distribution, const core::StreamId& stream,
                              bool reduction_along_rows, std::span<std::byte> bytes);

/// Rounds numbers that are stored in FP32, one after the other, to another format of the same elements.
void convert_port(const op::Port& from, std::span<const std::byte> stored, const op::Port& port,
                  std::span<std::byte> bytes);

/// The stored values, dense in logical order: what the device sees, without the dequantisation factor. Parallel.
[[nodiscard]] core::Buffer<double> load_port(const op::Port& port, std::span<const std::byte> bytes);

/// The same of one row, counted through all matrices of the batch.
void load_row(const op::Port& port, std::span<const std::byte> bytes, std::int64_t row, std::span<double> values);

}  // namespace numcheck::data
