// The dropout mask that a backend draws for attention (op::attention_dropout).
#pragma once

#include <span>
#include <vector>

#include "op/attention_params.hpp"
#include "op/reference.hpp"
#include "reference/chance.hpp"

namespace numcheck::reference {

/// True for a case whose mask is drawn, unless what was drawn is given.
[[nodiscard]] bool lacks_drawn_mask(const op::ReferenceRequest& request);

/// The mask alone, of which nothing is known: every other output depends on it.
[[nodiscard]] op::Values drawn_mask(const op::ReferenceRequest& request);

/// What is asked of a mask that was drawn.
[[nodiscard]] std::span<const op::OwnGate> drawn_mask_gates();

/// In a mask: a weight that is left out of what is judged.
inline constexpr double kNoDraw = -1;

/// Gates that a correct generator trips once in `one_in` masks at most: the share of dropped weights, of all and of
/// each head, query and key (share_error); how often neighbours are dropped together, likewise; draws that repeat
/// (judge_repeats), and copies (judge_copies).
[[nodiscard]] std::vector<op::Finding> judge_draws(const op::AttentionParams& p, std::span<const double> mask,
                                                   double one_in = kGateOneIn);

/// Findings about a mask that was drawn, none in other cases: numbers other than 0 and 1, and judge_draws.
[[nodiscard]] std::vector<op::Finding> judge_drawn_mask(const op::FindingRequest& request);

}  // namespace numcheck::reference
