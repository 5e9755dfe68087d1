#include "failure_lines.hpp"

#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "report/causes.hpp"
#include "report/failure_groups.hpp"
#include "report/views/console_format.hpp"
#include "terminal.hpp"

namespace numcheck::app {
namespace {

constexpr std::chrono::seconds kLong(5);
constexpr std::size_t kMaxLines = 10;

}  // namespace

void FailureLines::add(const run::FinishedCase& finished, std::chrono::steady_clock::time_point start) {
  if (report::is_failure(finished.record) && lines_.size() <= kMaxLines) {
    lines_.push_back(lines_.size() < kMaxLines ? report::views::upper(verdict::status_name(finished.status)) + "  " +
                                                     core::printable(report::failure_sentence(finished.record))
                                               : "and more failures; all of them are in the report at the end");
  }
  const bool watched = context_.terminal.facts().stderr_is_tty;
  if (context_.common.quiet || (!watched && std::chrono::steady_clock::now() - start < kLong)) {
    return;
  }
  for (; shown_ < lines_.size(); ++shown_) {
    context_.terminal.err(lines_[shown_] + "\n");
  }
}

}  // namespace numcheck::app
