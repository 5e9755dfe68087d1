// Which cases of a sweep an `exclude` or `xfail` entry means.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/case.hpp"
#include "plan/node.hpp"
#include "plan/plan.hpp"
#include "plan/reporter.hpp"

namespace numcheck::plan {

/// One key of a match object: the case's value must be one of these.
struct Condition {
  enum class Kind { parameter, mode, backend, inputs, environment } kind = Kind::parameter;
  std::size_t field = 0;                  ///< parameter: index in the op's fields
  std::vector<op::Value> values;          ///< names are strings
  std::vector<Environment> environments;  ///< all of one's variables must be set (or unset) like this
};

/// A match object: all conditions must hold; without any it means every case.
struct Match {
  const Node* node = nullptr;
  std::vector<Condition> conditions;
  DeviceCondition device;  ///< xfail only
};

/// Cases are excluded before there is a device; known issues are looked at when one is there.
enum class MatchUse { exclude, xfail };

/// Values that all match objects of one case may list together: matching costs their number per case.
inline constexpr std::size_t kMaxMatchValues = 1'000;

/// Decodes {"rows": 1, "backend": ["cudnn", "cuda"]}: keys are parameters of the op, "mode", "backend", "inputs" (name
/// of the common distribution) and "environment"; in an xfail entry also "architecture" and "libraries".
[[nodiscard]] std::optional<Match> decode_match(const Node& node, const op::Op& op, MatchUse use,
                                                const Vocabulary& vocabulary, Reporter& reporter);

/// Whether all but the condition on the device holds.
[[nodiscard]] bool matches(const Match& match, const Case& c);

/// Decodes a backend's name: one of the vocabulary's, or "auto".
[[nodiscard]] std::optional<std::string> decode_backend(const Node& node, const Vocabulary& vocabulary,
                                                        Reporter& reporter);

/// The elements of a list, or the value itself. An empty list is reported; `what` names it.
[[nodiscard]] std::vector<const Node*> elements(const Node& node, std::string_view what, Reporter& reporter);

}  // namespace numcheck::plan
