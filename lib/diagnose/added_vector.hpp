// What a number per column or per row, which an output has besides what is expected, has to do with the vectors that were given.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

/// A way to use a given vector that leaves such numbers.
struct AddedVector {
  std::string name, cause, remedy;
  std::vector<double> offsets;  ///< of each line, besides what is expected
  std::vector<double> errors;   ///< that the additions may make
  bool is_fitted = false;       ///< to a number that nobody would have typed
};

/// The vector that the op was given to add to its results: "bias", "beta"; empty if there is none.
[[nodiscard]] std::string given_to_add(const Evidence& evidence);

/// The ways that are near: `offsets` are those of the columns, or of the rows.
[[nodiscard]] std::vector<AddedVector> misused_vectors(const Evidence& evidence, bool are_columns,
                                                       std::span<const double> offsets);

}  // namespace numcheck::diagnose
