// Whether attention's dropout mask drops as many weights of every head, query, key, row and tile.
#pragma once

#include <span>
#include <vector>

#include "op/attention_params.hpp"
#include "op/reference.hpp"

namespace numcheck::reference {

/// "dropped share of a head", "of a query" and "of a key": of each, the one whose share of dropped weights is furthest off,
/// of all weights that are seen: of a query those of all heads of all sequences, of a key likewise; "of a row", those of a query in
/// one head, and "of a tile", of 16 queries and keys in one.
[[nodiscard]] std::vector<op::Finding> judge_shares(const op::AttentionParams& p, std::span<const double> mask,
                                                    double one_in);

}  // namespace numcheck::reference
