// Reports as they are read back.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// A report with at least what selection by it needs: every case has its identifier, digest and status. `name` is for
/// messages. Throws core::IoError if the text is none, or one of another major version.
[[nodiscard]] nlohmann::json parse_report(std::string_view text, const std::string& name);

}  // namespace numcheck::report
