// A report that is safe to print.
#pragma once

#include <memory>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// The report itself if all its strings and names are printable, which is the normal case, otherwise a copy made
/// printable. The report must outlive this object.
class PrintableReport {
 public:
  explicit PrintableReport(const nlohmann::json& report);
  ~PrintableReport();
  PrintableReport(const PrintableReport&) = delete;
  PrintableReport& operator=(const PrintableReport&) = delete;

  [[nodiscard]] const nlohmann::json& get() const noexcept;

 private:
  const nlohmann::json* report_;
  std::unique_ptr<nlohmann::json> copy_;  ///< null if not needed
};

}  // namespace numcheck::report
