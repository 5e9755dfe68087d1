// The record's member that says where wrong elements lie.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "metric/wrong_elements.hpp"

namespace numcheck::report {

[[nodiscard]] nlohmann::json wrong_json(const metric::WrongElements& wrong);
[[nodiscard]] nlohmann::json wrong_rule();

}  // namespace numcheck::report
