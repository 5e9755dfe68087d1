// The views of a report, one file each, and the table that lists them.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

/// A view is a pure function of the record. To add one, write its file, a row in view.cpp, and a test.
struct View {
  const char* flag;  ///< option for its file: "--json"
  const char* doc;   ///< of the option, for --help
  std::string (*render)(const nlohmann::json& report);
  bool is_record = false;  ///< the full report: its file replaces the default folder, and "-" means stdout
  bool of_brief = false;   ///< can be made of a brief report, too
};

/// All views, in the order of --help.
[[nodiscard]] std::span<const View> all_views() noexcept;

}  // namespace numcheck::report::views
