// The lists of te-numcheck list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace numcheck::app {

/// Objects, each with a name, and the keys that a table of them has as columns.
struct ListTopic {
  nlohmann::json entries;
  std::vector<std::string> columns;
};

/// ops, modes, backends, devices, distributions, faults, causes or variables.
[[nodiscard]] ListTopic list_topic(std::string_view name);

/// Whether each op has some of the topic's entries: modes, backends and faults.
[[nodiscard]] bool lists_by_op(std::string_view topic) noexcept;

/// Those of one op; no column says of which. Precondition: lists_by_op, and the catalog has the op.
[[nodiscard]] ListTopic list_topic_of_op(std::string_view name, std::string_view op);

}  // namespace numcheck::app
