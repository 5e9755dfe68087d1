#include "run/result_collector.hpp"

#include <map>

#include "core/trace.hpp"
#include "prepare/grouping.hpp"
#include "report/record_json.hpp"
#include "report/summary.hpp"

namespace numcheck::run {
namespace {

bool counts_as_failure(verdict::Status status) {
  using verdict::Status;
  return status == Status::fail || status == Status::error || status == Status::crashed || status == Status::timeout ||
         status == Status::xpass;
}

/// Roughly the seconds that a case takes, for shares of the whole: what every case costs, its arithmetic (the reference's
/// on a few cores), and drawing and comparing its elements.
double predicted_cost_s(const plan::Case& c) {
  constexpr double kEveryCase_s = 1e-3;
  constexpr double kFlops = 1e10;
  constexpr double kBytes = 5e8;
  return kEveryCase_s + c.op->flops(c.params) / kFlops + static_cast<double>(prepare::estimate_case_bytes(c)) / kBytes;
}

}  // namespace

ResultCollector::ResultCollector(const std::vector<plan::Case>& cases, const PipelineOptions& options)
    : cases_(cases), options_(options) {
  result_.cases.resize(cases.size());
}

std::vector<std::size_t> ResultCollector::restore(const std::vector<std::pair<core::Digest, nlohmann::json>>& done) {
  std::map<core::Digest, const nlohmann::json*> known;
  for (const auto& [digest, record] : done) {
    known.emplace(digest, &record);
  }
  std::vector<std::size_t> remaining;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const auto found = known.find(cases_[i].digest);
    if (found == known.end()) {
      remaining.push_back(i);
      continue;
    }
    const auto status = verdict::parse_status(found->second->at("status").get<std::string>());
    result_.cases[i] = {status.value_or(verdict::Status::error), *found->second};
    ++finished_;
  }
  for (const std::size_t index : remaining) {
    whole_cost_s_ += predicted_cost_s(cases_[index]);
  }
  return remaining;
}

void ResultCollector::finish(std::size_t index, const verdict::CaseResult& result, bool keep) {
  const core::Span span("record");
  nlohmann::json record = report::to_json(result);
  record["reproduce"] = options_.reproduce_prefix + " --case " + cases_[index].digest.short_hex();
  const std::lock_guard lock(mutex_);
  result_.cases[index] = {result.status, std::move(record)};
  result_.times.stages.device_s += result.times.device_s;  // those of groups come with add_times
  result_.times.stages.comparison_s += result.times.comparison_s;
  ++finished_;
  finished_cost_s_ += predicted_cost_s(cases_[index]);
  failed_ += counts_as_failure(result.status) ? 1 : 0;
  if (options_.on_finished && keep) {
    options_.on_finished(cases_[index], result_.cases[index]);
  }
  if (options_.on_progress) {
    options_.on_progress({finished_, cases_.size(), failed_, cases_[index].id, finished_cost_s_ / whole_cost_s_});
  }
}

void ResultCollector::add_times(const prepare::Group& group) {
  const std::lock_guard lock(mutex_);
  result_.times.stages += group.times;
}

bool ResultCollector::is_finished(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return !result_.cases[index].record.is_null();
}

std::size_t ResultCollector::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

}  // namespace numcheck::run
