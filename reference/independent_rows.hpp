// Ops whose rows do not know of each other: op::Reference::on_rows.
#pragma once

#include <cstdint>
#include <optional>

#include "op/field.hpp"
#include "op/mxfp8.hpp"
#include "op/value.hpp"

namespace numcheck::reference {

/// The parameters with `rows` in the member that counts them, if `hold`.
template <class P, auto member>
[[nodiscard]] std::optional<op::Params> on_rows(const op::Params& params, std::int64_t rows) {
  auto typed = op::from_params<P>(params);
  typed.*member = rows;
  return op::to_params(typed);
}

/// The same of scores [batches, heads, sq, sk]: all of one head. Rows of a masked matrix depend on their numbers.
template <class P>
[[nodiscard]] std::optional<op::Params> on_score_rows(const op::Params& params, std::int64_t rows) {
  auto typed = op::from_params<P>(params);
  if (typed.mask != "none") {
    return std::nullopt;
  }
  typed.batches = typed.heads = 1;
  typed.sq = rows;
  return op::to_params(typed);
}

/// The same of activations, whose MXFP8 outputs have scales of blocks of rows.
template <class P>
[[nodiscard]] std::optional<op::Params> on_activation_rows(const op::Params& params, std::int64_t rows) {
  return op::is_mxfp8(op::from_params<P>(params).output) ? std::nullopt : on_rows<P, &P::rows>(params, rows);
}

}  // namespace numcheck::reference
