// Whether rows, columns and tiles of attention's dropout mask are copies of others.
#pragma once

#include <span>
#include <vector>

#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// "copied draws": of queries, keys and tiles of one head, those of which most speaks for a copy (copied_draws),
/// wherever it is; only weights that are seen are compared. A query of one head may be a copy of a key of another, as
/// where a mask was transposed. Nothing where masks are too small to tell.
[[nodiscard]] std::vector<op::Finding> judge_copies(const op::AttentionParams& p, std::span<const double> mask,
                                                    double one_in);

}  // namespace numcheck::reference
