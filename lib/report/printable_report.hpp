// A report whose texts may be shown.
#pragma once

#include <memory>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// The report itself if all its texts and names are printable, which is the rule and costs one look at each; else a
/// copy in which they are. The report must outlive it.
class PrintableReport {
 public:
  explicit PrintableReport(const nlohmann::json& report);
  ~PrintableReport();
  PrintableReport(const PrintableReport&) = delete;
  PrintableReport& operator=(const PrintableReport&) = delete;

  [[nodiscard]] const nlohmann::json& get() const noexcept;

 private:
  const nlohmann::json* report_;
  std::unique_ptr<nlohmann::json> copy_;  ///< null if none was needed
};

}  // namespace numcheck::report
