// The pass over an output that its op defines bit for bit, for as long as it is right.
#pragma once

#include <optional>

#include "metric/compare.hpp"
#include "metric/pass.hpp"
#include "metric/row_scan.hpp"
#include "metric/setup.hpp"

namespace numcheck::metric {

/// Whether run_exact_pass may be asked: what the output must be is known without a yardstick, and nothing but bits is judged.
[[nodiscard]] bool has_exact_pass(const CompareInput& input, const Setup& setup);

/// What run_pass() yields of that which a report shows, if every element is finite and RN(y), with the sign of y where it is 0. It is
/// several times as fast: of errors that are those of one rounding, nothing needs to be known of groups, flips and slopes. Nothing if
/// one element is not, or cannot be told so quickly: then run_pass() says what is.
[[nodiscard]] std::optional<PassResult> run_exact_pass(const CompareInput& input, const Setup& setup, RowScan* scan);

}  // namespace numcheck::metric
