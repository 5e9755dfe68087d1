#include "shard_files.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/parallel.hpp"
#include "files.hpp"

namespace numcheck::app {

std::vector<report::NamedReport> ShardFiles::read(const std::vector<std::string>& paths) {
  files_.resize(paths.size());
  std::vector<report::NamedReport> reports(paths.size());
  std::ranges::for_each(paths, refuse_folder);
  core::parallel_for(paths.size(), [&](std::size_t i) {
    files_[i] = std::make_unique<report::StoredReport>(paths[i], kMaxReportBytes);
    reports[i] = {paths[i], files_[i]->read(&report::keep_what_views_read)};
  });
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const nlohmann::json& cases = reports[i].report.at("cases");
    for (std::size_t at = 0; at < cases.size(); ++at) {
      places_.try_emplace(cases[at].at("digest").get<std::string>(), files_[i].get(), at);
    }
  }
  return reports;
}

std::string ShardFiles::record_text(const std::string& digest, report::Characters characters) const {
  const auto& [file, index] = places_.at(digest);
  return report::record_text(file->record(index), characters);
}

}  // namespace numcheck::app
