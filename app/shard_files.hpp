// The reports that merge reads, of which only a part is kept in memory.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/merge.hpp"
#include "report/report_text.hpp"
#include "report/stored_report.hpp"

namespace numcheck::app {

class ShardFiles {
 public:
  /// Reads the reports side by side, since those of large runs take seconds; records as keep_what_views_read leaves them.
  /// Throws core::IoError.
  [[nodiscard]] std::vector<report::NamedReport> read(const std::vector<std::string>& paths);

  /// The record of a case, as its file has it.
  [[nodiscard]] std::string record_text(const std::string& digest, report::Characters characters) const;

 private:
  std::vector<std::unique_ptr<report::StoredReport>> files_;
  std::map<std::string, std::pair<const report::StoredReport*, std::size_t>> places_;  ///< by digest
};

}  // namespace numcheck::app
