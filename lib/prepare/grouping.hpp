// Which cases share input values, and so references, and the memory they need: pure functions of the cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/hash.hpp"
#include "plan/case.hpp"

namespace numcheck::prepare {

/// True if the reference of the case does not depend on how its outputs are stored. Values of codes with scales of
/// their blocks do.
[[nodiscard]] bool shares_storage(const plan::Case& c);

/// Whether the case's inputs are integers of which every sum and product is exact, so that its outputs are compared bit for bit.
[[nodiscard]] bool compares_bits(const plan::Case& c);

/// Whether an input is scaled to its format.
[[nodiscard]] bool is_scaled(const std::vector<op::Port>& ports, std::string_view input);

/// Indices of cases that share op, seed, inputs and every parameter that is not storage_only (every one at all, where
/// shares_storage is false; and, in the exact leg, the integers), in plan order.
struct GroupPlan {
  core::Digest key;
  std::vector<std::size_t> cases;
};

[[nodiscard]] std::vector<GroupPlan> group_cases(const std::vector<plan::Case>& cases,
                                                 const std::vector<std::size_t>& selected);

/// How many groups all of these cases have, which takes a small part of the memory of the groups.
[[nodiscard]] std::size_t count_groups(const std::vector<plan::Case>& cases);

/// Host bytes that a group needs at its peak: unrounded and rounded doubles, values, yardsticks, stored tensors; if it streams,
/// stored tensors and the doubles that they are rounded from.
[[nodiscard]] std::uint64_t estimate_bytes(const std::vector<plan::Case>& cases, const GroupPlan& group, bool streams);

/// The group, halved until each part fits into the budget; nothing for an empty group, and a single case whatever it
/// needs.
[[nodiscard]] std::vector<GroupPlan> split_to_fit(const std::vector<plan::Case>& cases, const GroupPlan& group,
                                                  std::uint64_t budget_bytes, bool streams);

/// Host bytes of one case alone.
[[nodiscard]] std::uint64_t estimate_case_bytes(const plan::Case& c, bool streams = false);

}  // namespace numcheck::prepare
