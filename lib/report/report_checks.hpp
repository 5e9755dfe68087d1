// What a report that is read must be, for those who read it whole and those who read it case by case.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// Sentences about the file of that name.
[[nodiscard]] std::string not_a_report(const std::string& name);
[[nodiscard]] std::string too_deep(const std::string& name);
[[nodiscard]] std::string not_a_case(const std::string& name);

/// A report of a version that this program reads, with a list of cases. Throws core::IoError, as the others do.
void require_report(const nlohmann::json& report, const std::string& name);

/// An identifier, a digest and a status are there.
[[nodiscard]] bool is_case(const nlohmann::json& record);

/// What is there has the types of the schema.
void require_types(const nlohmann::json& report, const std::string& name);

/// The cases make the summary.
void require_true_summary(const nlohmann::json& report, const std::string& name);

}  // namespace numcheck::report
