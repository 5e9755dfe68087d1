// Where wrong elements lie, in words.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

/// "128 of 4096 elements wrong: all of rows 0 and 32", from an output's member "wrong".
[[nodiscard]] std::string wrong_sentence(const nlohmann::json& wrong);

}  // namespace numcheck::report::views
