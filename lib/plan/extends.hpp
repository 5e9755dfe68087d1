// The files behind a plan: `extends` and `include` merged into one document.
#pragma once

#include <string>
#include <string_view>

#include "plan/node.hpp"
#include "plan/plan.hpp"
#include "plan/reporter.hpp"
#include "plan/source.hpp"

namespace numcheck::plan {

/// Files that one plan may read, repetitions included: nested `extends` and `include` can double with every level.
inline constexpr std::size_t kMaxFiles = 64;

/// Parses `text` and every file that it extends: bases in order, then the file itself; objects are merged recursively,
/// everything else is replaced. The cases of plans that a file includes come before its own (plan/include.hpp). Paths
/// are relative to the file that names them. Cycles, missing files and (with limits.sandbox) paths outside the plan's
/// folder are errors. Top-level "$schema", "extends", "include" and "$comment" are not part of the result. `sources`
/// receives every file that was read; the plan is sources[0].
[[nodiscard]] Node load_merged(std::string_view text, const std::string& path, const Limits& limits, Sources& sources,
                               Reporter& reporter);

}  // namespace numcheck::plan
