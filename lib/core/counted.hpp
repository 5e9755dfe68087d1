// Numbers of things in words.
#pragma once

#include <string>
#include <string_view>

namespace numcheck::core {

/// "1 case", "2 cases": a whole number and a noun whose plural ends in s.
[[nodiscard]] std::string counted(double count, std::string_view noun);

}  // namespace numcheck::core
