// The members of an output's record that are there to be looked at: the map of its errors, and what is around the worst.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "verdict/record.hpp"

namespace numcheck::report {

/// Members of an output's object that only some outputs have:
///
///   error_map     {rows, cols, cell_rows, cell_cols, worst: ["aab!", ...], mean: ["mmma", ...], mean_unit}
///   around_worst  {first, got, got_bits, expected}: up to 5 x 5 elements, if all are known
///
/// Both maps have one text per row of cells and one character per cell (metric::ErrorMap).
///
///   worst   largest |e| / B: "0" no error, "a" up to 2^-8, then a letter per doubling, "i" up to the bound, "j" up to twice
///           the bound, ... "z" beyond 2^16; "#" an element whose NaN or infinity is wrong, "!" one that was not written,
///           "?" nothing compared (the element is not in the sample)
///   mean    mean of e from -mean_unit ("a") over 0 ("m") to mean_unit ("y"), "?" as above
[[nodiscard]] nlohmann::json picture_json(const verdict::OutputPicture& picture, const op::Port& port);

/// Their schema, by name.
[[nodiscard]] nlohmann::json picture_properties();

}  // namespace numcheck::report
