// What completion offers as values of options and arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numcheck::app {

/// Values that depend on the files of the command line, or on the machine, and are asked for at every completion.
inline constexpr std::string_view kPlanValues = "plan";
inline constexpr std::string_view kTagValues = "tag";
inline constexpr std::string_view kCaseValues = "case";

struct OfferedValues {
  std::vector<std::string> fixed;
  std::string_view asked;  ///< one of the above; empty if there are none
  bool is_list = false;    ///< the option takes several, separated by commas
};

/// For an option ("--op"); nothing if its values are not a set.
[[nodiscard]] OfferedValues offered_values(std::string_view option);

/// What `te-numcheck completion --values KIND -- WORD...` prints: values for a command line of these words. Plans among
/// them that cannot be read offer nothing.
[[nodiscard]] std::vector<std::string> asked_values(std::string_view kind, const std::vector<std::string>& words);

}  // namespace numcheck::app
