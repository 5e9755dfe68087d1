// Where a library says that it rounds before the end: facts about one run of one algorithm, as its binding knows them.
#pragma once

namespace numcheck::model {

/// Roundings to the output's format that a backend declares for a product. They make a result less precise than its
/// mode promises, and are then warned about instead of failed (lib/verdict/declared_rounding.hpp).
struct DeclaredRounding {
  int slices = 1;         ///< of k, summed in the output's format; 1: k is not split, or the slices are summed in FP32
  bool in_place = false;  ///< the product is written to D before C is added to it there
  bool bias = false;      ///< a fused epilogue adds the bias, perhaps to the rounded sum
  bool gelu = false;      ///< a fused epilogue applies gelu, perhaps to the rounded sum and with an approximate tanh

  bool operator==(const DeclaredRounding&) const = default;
};

}  // namespace numcheck::model
