// Building blocks of the plan's schema: values of fields, axes, ranges, distributions.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "op/op.hpp"

namespace numcheck::plan::schema {

[[nodiscard]] nlohmann::json reference(std::string_view name);

/// The rule with a description; a reference keeps it beside itself, because draft-07 ignores what stands in one.
[[nodiscard]] nlohmann::json described(nlohmann::json rule, std::string_view description);
/// The same with the value that a missing member stands for.
[[nodiscard]] nlohmann::json described(nlohmann::json rule, std::string_view description, nlohmann::json fallback);

[[nodiscard]] nlohmann::json strings(const std::vector<std::string_view>& values);

/// An object with these properties, "$comment", and nothing else.
[[nodiscard]] nlohmann::json closed_object(nlohmann::json properties, std::string_view description = {});

[[nodiscard]] nlohmann::json non_empty_list(nlohmann::json items);
[[nodiscard]] nlohmann::json tag();

/// The value, or a list of them: an axis.
[[nodiscard]] nlohmann::json axis(const nlohmann::json& value);

/// A number in a range. Infinity is written as text, and only if it is in the range.
[[nodiscard]] nlohmann::json number(double minimum, double maximum);

/// Parameters of an op.
[[nodiscard]] nlohmann::json params_of(const op::Op& op);

/// {"from", "to", "step"} of that type.
[[nodiscard]] nlohmann::json ranges(const char* type);
[[nodiscard]] nlohmann::json pow2_range();

/// One of the distributions; with ports, every other member is a distribution for the input of that name.
[[nodiscard]] nlohmann::json distributions(bool with_ports);

}  // namespace numcheck::plan::schema
