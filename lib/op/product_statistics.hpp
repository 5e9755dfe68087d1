// What is measured of products besides errors.
#pragma once

#include <array>
#include <string_view>

namespace numcheck::op {

/// Of products that are added to an addend: the share of the output's numbers that are those of the addend.
inline constexpr std::string_view kUpdatesLost = "updates lost";
inline constexpr std::array kProductStatistics = {kUpdatesLost};

}  // namespace numcheck::op
