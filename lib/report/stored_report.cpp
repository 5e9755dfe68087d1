#include "report/stored_report.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_depth.hpp"
#include "core/parallel.hpp"
#include "report/record_shape.hpp"
#include "report/report_checks.hpp"
#include "verdict/record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr std::size_t kBlock = std::size_t{1} << 20;

/// Why records cannot be used; what is worse is told first, as if the whole text had been parsed at once.
struct RecordProblem {
  enum class Kind : std::uint8_t { none, type, not_a_case, not_json } kind = Kind::none;
  std::string what;
};

/// A member whose elements are changed; none if it is not there.
json& list_at(json& object, const char* member) {
  static json none = json::array();
  const auto found = object.find(member);
  return found == object.end() ? none : *found;
}

/// Of the object that is this member, if it is there.
void keep_only(const std::set<std::string>& kept, json& object, const char* member) {
  if (const auto found = object.find(member); found != object.end() && found->is_object()) {
    std::erase_if(found->get_ref<json::object_t&>(), [&kept](const auto& item) { return !kept.contains(item.first); });
  }
}

}  // namespace

StoredReport::StoredReport(const std::filesystem::path& path, std::uint64_t max_bytes) : name_(path.string()) {
  core::OpenFile opened = core::open_regular_file(path, max_bytes);
  if (!opened.problem.empty()) {
    throw core::IoError(fmt::format("cannot read {}: {}", name_, opened.problem));
  }
  file_ = std::move(opened.file);
  CaseRanges ranges;
  for (std::uint64_t at = 0;;) {
    const std::string block = core::read_at(file_, name_, at, kBlock);
    ranges.take(block);
    at += block.size();
    if (block.size() < kBlock) {
      break;
    }
  }
  if (ranges.depth() > core::kMaxJsonDepth) {
    throw core::IoError(too_deep(name_));
  }
  if (!ranges.sound()) {
    throw core::IoError(not_a_report(name_));
  }
  head_ = ranges.head();
  cases_ = ranges.cases();
}

std::string StoredReport::text(TextRange range) const {
  return core::read_at(file_, name_, range.begin, range.end - range.begin);
}

json StoredReport::record(std::size_t index) const {
  json record = json::parse(text(cases_[index]), nullptr, false);
  if (record.is_discarded()) {
    throw core::IoError(fmt::format("{} has changed since it was read", name_));
  }
  return record;
}

json StoredReport::read(const std::function<void(json&)>& reduced) const {
  using Kind = RecordProblem::Kind;
  constexpr std::size_t kCasesPerChunk = 64;
  json report = json::parse(head_, nullptr, false);
  require_report(report, name_);
  if (!report.at("cases").empty()) {
    throw core::IoError(not_a_report(name_));
  }
  std::vector<json> records(cases_.size());
  std::vector<RecordProblem> problems((cases_.size() + kCasesPerChunk - 1) / kCasesPerChunk);
  core::parallel_chunks(records.size(), kCasesPerChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    RecordProblem& problem = problems[chunk];
    const auto note = [&problem](Kind kind, std::string what) {
      if (kind > problem.kind) {
        problem = {kind, std::move(what)};
      }
    };
    const std::uint64_t start = cases_[begin].begin;
    const std::string all = text({start, cases_[end - 1].end});
    for (std::size_t i = begin; i < end; ++i) {
      const TextRange& range = cases_[i];
      const auto own = std::string_view(all).substr(range.begin - start, range.end - range.begin);
      records[i] = json::parse(own, nullptr, false);
      if (records[i].is_discarded()) {
        note(Kind::not_json, not_a_report(name_));
      } else if (!is_case(records[i])) {
        note(Kind::not_a_case, not_a_case(name_));
      } else if (std::string what = record_type_error(report, records[i]); !what.empty()) {
        note(Kind::type, fmt::format("{} is not a valid report: cases/{}/{}", name_, i, what));
      } else {
        reduced(records[i]);
      }
    }
  });
  const auto worst = std::ranges::max_element(problems, {}, &RecordProblem::kind);
  if (worst != problems.end() && worst->kind > Kind::type) {
    throw core::IoError(worst->what);
  }
  require_types(report, name_);
  if (worst != problems.end() && worst->kind == Kind::type) {
    throw core::IoError(worst->what);
  }
  report["cases"] = std::move(records);
  require_true_summary(report, name_);
  return report;
}

void keep_what_views_read(json& record) {
  static const std::set<std::string> kMetrics = {"elements", "finite",         "judged",        "nonfinite_mismatch",
                                                 "rel_l2",   "max_abs",        "max_ulp",       "effective_bits",
                                                 "z_rms",    "max_over_bound", "ulp_histogram", "z_histogram"};
  static const std::set<std::string> kTotalError = {"rel_l2"};
  const bool passed = record.at("status") == verdict::status_name(verdict::Status::pass);
  for (json& run : list_at(record, "runs")) {
    for (json& output : list_at(run, "outputs")) {
      for (const char* member : {"certificate", "opinions", "model"}) {
        output.erase(member);
      }
      if (passed) {
        output.erase("worst");
        keep_only(kMetrics, output, "metrics");
        keep_only(kTotalError, output, "total_error");
        for (json& criterion : list_at(output, "criteria")) {
          criterion.erase("source");
        }
      }
    }
  }
}

}  // namespace numcheck::report
