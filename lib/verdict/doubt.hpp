// Why an output that passes all gates proves little.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/case.hpp"
#include "verdict/record.hpp"

namespace numcheck::verdict {

/// True if zeros in place of the output would not have passed.
[[nodiscard]] bool proves_something(const OutputResult& output);

/// The output that has to prove something: the first one. Where outputs have operands of their own (op::Port::of), as groups
/// of products do, each is as good, and the first one that proves something answers for those that are empty or have nothing
/// to add up.
[[nodiscard]] const OutputResult& main_output_of(const RunResult& result, const std::vector<op::Port>& ports);

/// Too few elements that are judged, or, of the main output, none at all or mostly NaN and infinities; empty if there is no
/// such doubt.
[[nodiscard]] std::string doubt_about(const OutputResult& output, bool is_main, const plan::ToleranceSpec& wanted);

/// No fake of any output was rejected, save NaN and infinities, although there were some: all were dropped. Empty if one
/// was.
[[nodiscard]] std::string doubt_about_fakes(std::span<const OutputResult> outputs);

/// Of the main output, numbers that are all larger by a tenth are within the predicted error, and no other output of about its size
/// or more would tell them. Empty otherwise.
[[nodiscard]] std::string doubt_about_size(std::span<const OutputResult> outputs, const OutputResult& main);

/// The same of groups, whose results do not vouch for each other: of any that has at least half as many elements as the largest.
[[nodiscard]] std::string doubt_about_groups(std::span<const OutputResult> outputs);

/// The run's single products are roundings of no format: what ran is not known, so the error model may be that of something
/// else. Empty if they are of one, or were not asked for.
[[nodiscard]] std::string doubt_about_class(const RunResult& run);

}  // namespace numcheck::verdict
