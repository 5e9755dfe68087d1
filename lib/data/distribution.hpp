// Input distributions and the counter-based generator.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.hpp"
#include "data/geometry.hpp"
#include "data/pattern.hpp"
#include "op/op.hpp"
#include "op/value.hpp"

namespace numcheck::data {

/// One row of the distribution table. Parameters are described like op parameters, so the plan decoder, the schema
/// and `explain` treat both alike.
struct DistributionInfo {
  std::string_view name;  ///< "normal", "positive", "uniform", "constant", "large_mean", "log_uniform", "outliers",
                          ///< "exact", "ties", "specials", "structured", "patterns", "rows", "signs", "one_hot",
                          ///< "activations"
  std::string_view doc;
  const std::vector<op::Field>& (*fields)();
  /// Fills the span with elements [first, ...); the parameters are in the order of the fields. See generate().
  void (*generate)(const op::Params& params, const core::StreamId& stream, std::uint64_t first, std::span<double> out,
                   const Geometry& geometry);
  /// How values that are rounded to `format` relate to each other.
  Pattern (*pattern)(const op::Params& params, core::Dtype format);
};

[[nodiscard]] std::span<const DistributionInfo> all_distributions() noexcept;
[[nodiscard]] const DistributionInfo* find_distribution(std::string_view name) noexcept;

/// A distribution and all its parameters.
struct Distribution {
  std::string name = "normal";
  op::Params params;  ///< in the order of the distribution's fields

  friend bool operator==(const Distribution&, const Distribution&) = default;
};

/// Default parameters of a distribution; throws InternalError on an unknown name.
[[nodiscard]] Distribution make_distribution(std::string_view name);

/// Pattern of a distribution whose values are rounded to `format`. Throws InternalError as generate() does.
[[nodiscard]] Pattern pattern_of(const Distribution& distribution, core::Dtype format);

/// Fills `out` with elements [first, first + out.size()) of the stream: doubles that are FP32 values, bit-identical on
/// every machine, instruction set, thread count and shard (no libm, no FMA contraction). Sequential; callers
/// parallelise over ranges. Ranges that begin at multiples of 256 are fastest. Throws InternalError on an unknown name
/// or on parameters that are not the distribution's. Element indices stay below 2^58. The geometry matters only
/// for the distributions "rows", "one_hot" and "activations".
void generate(const Distribution& distribution, const core::StreamId& stream, std::uint64_t first,
              std::span<double> out, const Geometry& geometry = {});

/// Geometry that the "exact" distribution needs: which coordinate of the logical element (row, col) is the reduction
/// index, and whether this is the sparse (first) or the dense (second) operand.
struct ExactGeometry {
  op::ExactPlan plan;
  bool first_operand = true;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  bool reduction_along_rows = false;  ///< true: the row index is the reduction index
};

/// The exact leg's integers for elements [first, first + out.size()).
void generate_exact(const ExactGeometry& geometry, const core::StreamId& stream, std::uint64_t first,
                    std::span<double> out);

}  // namespace numcheck::data
