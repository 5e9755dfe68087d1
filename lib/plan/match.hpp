// Which cases of a sweep an `exclude` or `xfail` entry matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/case.hpp"
#include "plan/node.hpp"
#include "plan/plan.hpp"
#include "plan/reporter.hpp"

namespace numcheck::plan {

/// Numbers from `from` to `to`, which double holds exactly: no field has larger integers.
struct Interval {
  double from, to;
};

/// One key of a match object: the case's value must be one of these.
struct Condition {
  enum class Kind { parameter, mode, backend, inputs, environment } kind = Kind::parameter;
  std::size_t field = 0;                  ///< parameter: index in the op's fields
  std::vector<op::Value> values;          ///< names are strings
  std::vector<Interval> ranges;           ///< of a parameter that is a number
  std::vector<Environment> environments;  ///< all variables of one of them must be set (or unset) like this
};

/// A match object: all conditions must hold; without conditions it matches every case.
struct Match {
  const Node* node = nullptr;
  std::vector<Condition> conditions;
  DeviceCondition device;  ///< xfail only
};

/// Cases are excluded before there is a device; known issues are matched once there is one.
enum class MatchUse { exclude, xfail };

/// Values that all match objects of one case object may list together: matching takes time proportional to their number
/// for every case.
inline constexpr std::size_t kMaxMatchValues = 1'000;

/// Decodes {"rows": 1, "backend": ["cudnn", "cuda"]}: keys are parameters of the op (numbers also as
/// {"from": 513, "to": 1024}, a missing end is open), "mode", "backend", "inputs" (name
/// of the common distribution) and "environment"; in an xfail entry also "architecture" and "libraries".
[[nodiscard]] std::optional<Match> decode_match(const Node& node, const op::Op& op, MatchUse use,
                                                const Vocabulary& vocabulary, Reporter& reporter);

/// Whether all conditions hold, the one on the device aside.
[[nodiscard]] bool matches(const Match& match, const Case& c);

/// Decodes a backend's name: one of the vocabulary's, or "auto".
[[nodiscard]] std::optional<std::string> decode_backend(const Node& node, const Vocabulary& vocabulary,
                                                        Reporter& reporter);

/// The elements of a list, or the value itself. An empty list is reported; `what` names it.
[[nodiscard]] std::vector<const Node*> elements(const Node& node, std::string_view what, Reporter& reporter);

}  // namespace numcheck::plan
