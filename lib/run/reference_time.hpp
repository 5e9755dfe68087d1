// References that cannot end within the time limit of their case: told before anything runs.
#pragma once

#include <optional>
#include <string>

#include "plan/case.hpp"
#include "prepare/catalog.hpp"

namespace numcheck::run {

/// Seconds below which no machine of today computes the reference of the case with so many threads; 0 where it may be a
/// sample of the outputs. The reference does at least the op's own operations, in double precision.
[[nodiscard]] double least_reference_s(const plan::Case& c, const prepare::CatalogRow& row, int threads);

/// Why the case is not run if that is more than its limit: a sentence.
[[nodiscard]] std::optional<std::string> hopeless_reference(const plan::Case& c, const prepare::CatalogRow& row,
                                                            double timeout_s, int threads);

}  // namespace numcheck::run
