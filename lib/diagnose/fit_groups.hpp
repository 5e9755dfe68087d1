// The sizes of the groups of grouped_gemm, which are lists.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/fit.hpp"

namespace numcheck::diagnose {

/// What is chosen, and what a port of that name takes besides: a number of groups that has it. Nothing if no group has such a port.
[[nodiscard]] std::optional<ChosenParams> chosen_with_group(const ChosenParams& chosen, std::string_view port);

struct GroupSizes {
  ChosenParams chosen;             ///< what was chosen, with the lists and with the switches that exchange dimensions
  std::vector<std::string> notes;  ///< "group_m = 96+48"
  std::vector<std::string> mistakes;  ///< why there are none
};

/// Fits the product of each group, as one of `gemm`, with the same switches in all groups, for the lists that are not chosen.
[[nodiscard]] GroupSizes fit_group_sizes(const op::Mode& mode, const ChosenParams& chosen,
                                         std::span<const TensorShape> shapes);

}  // namespace numcheck::diagnose
