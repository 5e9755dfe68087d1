// Adds up the sums of neighbouring parts of the grid.
#pragma once

#include "metric/accumulators.hpp"
#include "metric/reader.hpp"

namespace numcheck::metric {

/// into += from, lane by lane; `from` comes after `into` in grid order.
void merge(Accumulators& into, const Accumulators& from);
void merge(SpecialCounts& into, const SpecialCounts& from);

/// The fixed order in which lanes are added.
[[nodiscard]] double total_of(const double (&lanes)[kLanes]);
[[nodiscard]] std::uint64_t total_of(const std::int64_t (&lanes)[kLanes]);
[[nodiscard]] double largest_of(const double (&lanes)[kLanes]);

}  // namespace numcheck::metric
